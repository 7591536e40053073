/* Plans and a bound for every amount of memory, from parts.
 *
 * what    the curve of seconds of recompute against memory; plans on it
 * method  Dynamic programming over parts from the last to the first.  A part
 *         with a configuration works if what is kept of earlier parts and what
 *         it needs itself fit; so what a row of parts asks for is room beside
 *         the former, and
 *             room(i) = max(room(i + 1) + bytes of the configuration,
 *                           what part i needs with it)
 *         whatever the memory is: one pass gives the whole curve.  Lists hold
 *         the fastest answer in each of CELLS ranges of room.  Behind an open
 *         configuration the next part is a closed one and needs more.
 * bound   The same over all configurations and with memory that no plan does
 *         without; a range holds its least room and its least seconds, so that
 *         nothing is lost.  If a plan drops what the next part reads, part of
 *         it may be back while backward is at that next part; so such a
 *         configuration counts only before backward touches it.  The fewer
 *         parts, the finer the ranges.
 * source  the exchange of room for state is that of Griewank's and Walther's
 *         revolve and of rotor (Beaumont et al., 2019), on parts with
 *         configurations
 * cost    parts * CELLS * configurations
 */
#include "passes/parts.h"

#include <math.h>
#include <string.h>

enum { CELLS = 4096, BOUND_CELLS = 1 << 18, BOUND_WORK = 1 << 22 };

struct entry {
	int64_t room;
	double sec, least;              /* reckoned; no plan takes less */
	int32_t config, next;
};

struct row {
	struct entry *at;               /* by rising room, falling seconds */
	int32_t n;
};

struct curve {
	struct parts *y;
	int64_t top;
	struct row *row;                /* by part, and one behind */
	struct row (*pressed)[PART_LEVELS];     /* the same, the part before
	                                         * puts bytes back; by level */
	struct row bound;
};

/* What is under construction: a cell each. */
struct cells {
	struct entry *at;               /* sec < 0: empty */
	int32_t n;
	int64_t width;
	Arena *arena;
};

static void
cells_clear(struct cells *c)
{
	for (int32_t i = 0; i < c->n; i++)
		c->at[i].sec = -1;
}

static void
cells_open(struct cells *c, int32_t n, int64_t top)
{
	c->arena = arena_new();
	c->n = n;
	c->at = arena_array(c->arena, (size_t)n, sizeof *c->at);
	c->width = top / n + 1;
	cells_clear(c);
}

/* The cells' undominated entries; clears them. */
static struct row
cells_take(struct cells *c, Arena *arena)
{
	struct row row = { NULL, 0 };
	double best = INFINITY;

	for (int32_t i = 0; i < c->n; i++)
		if (c->at[i].sec >= 0 && c->at[i].sec < best) {
			best = c->at[i].sec;
			c->at[row.n++] = c->at[i];
		}
	row.at = arena_array(arena, (size_t)row.n + 1, sizeof *row.at);
	memcpy(row.at, c->at, (size_t)row.n * sizeof *row.at);
	cells_clear(c);
	return row;
}

/* ---- plans ---- */

static void
offer(struct cells *c, const struct entry *new)
{
	struct entry *e = &c->at[new->room / c->width];

	if (e->sec < 0 || new->sec < e->sec
	    || (new->sec <= e->sec && new->room < e->room))
		*e = *new;
}

/* Part i with a configuration in front of the answers behind. */
static void
put_before(const struct curve *v, int32_t i, int32_t id, int64_t more,
           const struct row *behind, struct cells *c)
{
	const struct part *p = &v->y->part[i];
	const struct config *f = &v->y->kind[p->kind].config[id];
	int64_t least = p->need[id].all + more;

	for (int32_t e = 0; e < behind->n; e++) {
		const struct entry *b = &behind->at[e];
		struct entry new = { b->room + f->bytes, b->sec + f->sec,
			b->least + f->least, id, e };

		if (new.room < least)
			new.room = least;
		if (new.room >= v->top)
			break;
		offer(c, &new);
	}
}

static void
compose(struct curve *v)
{
	const struct parts *y = v->y;
	struct cells c;

	cells_open(&c, CELLS, v->top);
	offer(&c, &(struct entry){ 0 });
	v->row[y->n] = cells_take(&c, y->arena);
	for (int32_t i = y->n - 1; i >= 0; i--) {
		const struct kind *k = &y->kind[y->part[i].kind];
		const struct kind *b = i > 0
			? &y->kind[y->part[i - 1].kind] : k;

		for (int32_t l = 0; i > 0 && l < b->nlevel; l++) {
			for (int32_t j = 0; j < k->nplan; j++)
				put_before(v, i, k->plan[j], b->level[l],
				           &v->row[i + 1], &c);
			v->pressed[i][l] = cells_take(&c, y->arena);
		}
		for (int32_t j = 0; j < k->nplan; j++)
			put_before(v, i, k->plan[j], 0, &v->row[i + 1], &c);
		for (int32_t j = 0; i + 1 < y->n && j < k->nopen; j++) {
			int32_t l = k->config[k->open[j]].level;

			put_before(v, i, k->open[j], 0,
			           &v->pressed[i + 1][l], &c);
		}
		v->row[i] = cells_take(&c, y->arena);
	}
	arena_free(c.arena);
}

/* ---- bound ---- */

static int32_t
bound_cells(const struct curve *v)
{
	int32_t n = BOUND_WORK / v->y->n;

	/* no more than there are amounts to tell apart */
	if (n > BOUND_CELLS)
		n = BOUND_CELLS;
	return n > v->top / 64 ? (int32_t)(v->top / 64) + 1 : n;
}

static void
offer_low(struct cells *c, int64_t room, double sec)
{
	struct entry *e = &c->at[room / c->width];

	if (e->sec < 0) {
		*e = (struct entry){ room, sec, sec, 0, 0 };
		return;
	}
	if (room < e->room)
		e->room = room;
	if (sec < e->sec)
		e->sec = sec;
}

/* `after_open`: what kind of configuration the part before has; -1: no memory
 * but that of the configurations counts. */
static void
offer_part(const struct parts *y, int32_t at, int after_open, int64_t top,
           const struct row behind[2], struct cells *c)
{
	const struct part *p = &y->part[at];
	const struct kind *k = &y->kind[p->kind];

	for (int32_t j = 0; j < k->nlow; j++) {
		int32_t id = k->low[j];
		const struct config *f = &k->config[id];
		const struct row *b = &behind[f->open];
		int64_t least = after_open < 0 ? 0 : after_open
			? p->least[id].before : p->least[id].all;

		for (int32_t e = 0; e < b->n; e++) {
			int64_t room = b->at[e].room + f->lead;

			if (room < least)
				room = least;
			if (room >= top)
				break;
			offer_low(c, room, b->at[e].sec + f->least);
		}
	}
}

static void
find_bound(struct curve *v)
{
	struct parts *y = v->y;
	struct row behind[2];           /* the part before: closed, open */
	Arena *old = arena_new();       /* of the rows behind */
	struct cells c;

	cells_open(&c, bound_cells(v), v->top);
	offer_low(&c, 0, 0);
	behind[0] = behind[1] = cells_take(&c, old);
	for (int32_t i = y->n - 1; i >= 0; i--) {
		Arena *fresh = i > 0 ? arena_new() : y->arena;
		struct row next[2];

		for (int open = 0; open < 2; open++) {
			offer_part(y, i, open, v->top, behind, &c);
			next[open] = cells_take(&c, fresh);
		}
		memcpy(behind, next, sizeof next);
		arena_free(old);
		old = fresh;
	}
	v->bound = behind[0];
	arena_free(c.arena);
}

/* ---- bound for plans that repeat as often as they like ---- */

/* What lives when a node of backward runs, beside what is kept of parts that
 * backward has not reached: results that cannot be made again, the node's
 * operands and its scratch. */
static int64_t *
working_set(const struct parts *y)
{
	const struct remat *r = y->r;
	size_t n = r->g->nnode;
	int64_t *live = arena_array(y->arena, n + 2, sizeof *live), sum = 0;

	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *t = &r->store[s];
		NodeId to = y->last[s];

		if (to < y->end_forward[s])
			to = y->end_forward[s];
		if (t->output)
			to = (NodeId)n - 1;
		if (t->candidate || to <= t->def)
			continue;
		live[t->def + 1] += t->size;
		live[to + 1] -= t->size;
	}
	for (NodeId i = 1; i < n; i++) {
		const struct rnode *rn = &r->node[i];

		sum += live[i];
		live[i] = sum + rn->workspace;
		for (int k = 0; k < rn->nread; k++)
			if (r->store[rn->read[k]].candidate
			    && !r->node[r->store[rn->read[k]].def].inlinable)
				live[i] += r->store[rn->read[k]].size;
	}
	return live;
}

static double
least_within(const struct row *row, int64_t room)
{
	double best = INFINITY;

	for (int32_t i = 0; i < row->n && row->at[i].room <= room; i++)
		best = row->at[i].sec;  /* falls */
	return best;
}

double
curve_bound_any(const struct curve *v, int64_t memory)
{
	struct parts *y = v->y;
	int64_t *work = working_set(y);
	struct row behind[2] = { { NULL, 0 }, { NULL, 0 } };
	struct cells c;
	double best = 0;
	Arena *old = arena_new();       /* of the row behind */

	cells_open(&c, bound_cells(v), v->top);
	offer_low(&c, 0, 0);
	behind[0] = behind[1] = cells_take(&c, old);
	for (int32_t i = 1; i < y->n && memory < v->top; i++) {
		Arena *fresh = arena_new();
		NodeId to = y->part[i - 1].begin;
		int64_t most = -1;

		offer_part(y, i - 1, -1, v->top, behind, &c);
		behind[0] = behind[1] = cells_take(&c, fresh);
		arena_free(old);
		old = fresh;
		for (NodeId k = y->part[i].lo; k < to; k++)
			if (work[k] > most)
				most = work[k];
		if (most >= 0)
			best = fmax(best, least_within(&behind[0],
			                               memory - most));
	}
	arena_free(old);
	arena_free(c.arena);
	return best;
}

/* ---- entry ---- */

struct curve *
curve_new(struct parts *y)
{
	struct curve *v = arena_alloc(y->arena, sizeof *v);
	uint8_t *drop = arena_array(y->arena, (size_t)y->r->nstore + 1, 1);

	v->y = y;
	v->row = arena_array(y->arena, (size_t)y->n + 1, sizeof *v->row);
	v->pressed = arena_array(y->arena, (size_t)y->n + 1,
	                         sizeof *v->pressed);
	remat_keep_all(y->r, y->must, drop);
	v->top = remat_eval(y->r, drop).live;
	v->top += v->top / 16 + 1;
	compose(v);
	find_bound(v);
	return v;
}

int32_t
curve_count(const struct curve *v)
{
	return v->row[0].n;
}

/* The row is by rising room, callers count from the fastest. */
static const struct entry *
entry_of(const struct curve *v, int32_t i)
{
	return &v->row[0].at[v->row[0].n - 1 - i];
}

int64_t
curve_bytes(const struct curve *v, int32_t i)
{
	return entry_of(v, i)->room;
}

double
curve_least(const struct curve *v, int32_t i)
{
	return entry_of(v, i)->least;
}

void
curve_plan(const struct curve *v, int32_t i, uint8_t *drop)
{
	const struct parts *y = v->y;
	const struct entry *e = entry_of(v, i);

	remat_keep_all(y->r, y->must, drop);
	for (int32_t s = 0; s < y->r->nstore; s++)
		if (y->tied[s])
			drop[s] = 0;
	for (int32_t at = 0; at < y->n; at++) {
		const struct part *p = &y->part[at];
		const struct config *c = &y->kind[p->kind].config[e->config];

		part_set(y, p, c, drop);
		e = c->open ? &v->pressed[at + 1][c->level].at[e->next]
			: &v->row[at + 1].at[e->next];
	}
}

double
curve_bound(const struct curve *v, int64_t memory)
{
	double best = INFINITY;

	for (int32_t i = 0; i < v->bound.n; i++)
		if (v->bound.at[i].room <= memory
		    && v->bound.at[i].sec < best)
			best = v->bound.at[i].sec;
	return v->bound.n && memory < v->top ? best : 0;
}
