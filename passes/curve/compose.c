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
 * bound   The same over all configurations, with what any plan needs and keeps
 *         (parts_least has the proof); a range holds its least room and its
 *         least seconds, so that nothing is lost.  Bytes that a plan may free
 *         in other ways are bought at their price when the bound is read.
 *         The fewer parts, the finer the ranges.
 * source  the exchange of room for state is that of Griewank's and Walther's
 *         revolve and of rotor (Beaumont et al., 2019), on parts with
 *         configurations
 * cost    parts * CELLS * configurations
 */
#include "passes/curve/parts.h"

#include <math.h>
#include <string.h>

enum { CELLS = 4096, BOUND_CELLS = 1 << 16, BOUND_WORK = 1 << 22 };

/* An answer for a part and all behind it. */
struct entry {
	int64_t room;
	double sec, least;              /* reckoned; no plan takes less */
	int32_t config, next;
};

struct row {
	struct entry *at;               /* by rising room, falling seconds */
	int32_t n;
};

/* All that is remembered of answers: the configuration, and the answer
 * behind. */
struct link {
	int32_t config, next;
};

struct curve {
	struct parts *y;
	int64_t top;
	struct row first;               /* of the first part */
	struct link **row;              /* by part */
	struct link *(*pressed)[PART_LEVELS];   /* the same, the part before
	                                         * puts bytes back; by level */
	struct row bound;               /* NULL: not computed yet */
};

/* What is under construction: a cell each. */
struct cells {
	struct entry *at;               /* sec < 0: empty */
	int32_t n, lo, hi;              /* all others are empty */
	int64_t width;
	Arena *arena;
};

static void
cells_open(struct cells *c, int32_t n, int64_t top)
{
	c->arena = arena_new();
	c->n = c->lo = n;
	c->hi = -1;
	c->at = arena_array(c->arena, (size_t)n, sizeof *c->at);
	c->width = top / n + 1;
	for (int32_t i = 0; i < c->n; i++)
		c->at[i].sec = -1;
}

/* The cell for so much room. */
static struct entry *
cell(struct cells *c, int64_t room)
{
	int32_t i = (int32_t)(room / c->width);

	c->lo = i < c->lo ? i : c->lo;
	c->hi = i > c->hi ? i : c->hi;
	return &c->at[i];
}

/* The cells' undominated entries; clears them. */
static struct row
cells_take(struct cells *c, Arena *arena)
{
	struct row row = { NULL, 0 };
	double best = INFINITY;

	for (int32_t i = c->lo; i <= c->hi; i++)
		if (c->at[i].sec >= 0 && c->at[i].sec < best) {
			best = c->at[i].sec;
			c->at[c->lo + row.n++] = c->at[i];
		}
	row.at = arena_array(arena, (size_t)row.n + 1, sizeof *row.at);
	if (row.n)
		memcpy(row.at, c->at + c->lo,
		       (size_t)row.n * sizeof *row.at);
	for (int32_t i = c->lo; i <= c->hi; i++)
		c->at[i].sec = -1;
	c->lo = c->n;
	c->hi = -1;
	return row;
}

/* ---- plans ---- */

static void
offer(struct cells *c, const struct entry *new)
{
	struct entry *e = cell(c, new->room);

	if (e->sec < 0 || new->sec < e->sec
	    || (new->sec <= e->sec && new->room < e->room))
		*e = *new;
}

/* Part i with its j-th useful configuration in front of the answers behind,
 * which with it take less than `limit`.  Where a configuration is beaten by
 * one that needs more, it is of use only as long as that need is not met. */
static void
put_before(const struct curve *v, int32_t i, int32_t j, int64_t more,
           int64_t limit, const struct row *behind, struct cells *c)
{
	const struct part *p = &v->y->part[i];
	const struct kind *k = &v->y->kind[p->kind];
	int32_t id = k->plan[j];
	const struct config *f = &k->config[id];
	int64_t least = p->need->of[id] + p->need_more + more;
	int64_t to = j < k->nplan ? p->need->limit[j] : INT64_MAX;

	if (least >= v->top)
		return;
	if (to < INT64_MAX && to + p->need_more + more < limit)
		limit = to + p->need_more + more;
	for (int32_t e = 0; e < behind->n; e++) {
		const struct entry *b = &behind->at[e];
		struct entry new = { b->room + f->bytes, b->sec + f->sec,
			b->least + f->least, id, e };

		if (new.room >= limit || new.room >= v->top)
			break;
		if (new.room < least)
			new.room = least;
		offer(c, &new);
	}
}

/* Closed configurations of part i. */
static void
put_closed(const struct curve *v, int32_t i, int64_t more, int64_t limit,
           const struct row *behind, struct cells *c)
{
	const struct part *p = &v->y->part[i];

	for (int32_t j = 0; j < v->y->kind[p->kind].nplan; j++)
		put_before(v, i, j, more, limit, behind, c);
}

static struct link *
links_of(const struct row *row, Arena *arena)
{
	struct link *l = arena_array(arena, (size_t)row->n + 1, sizeof *l);

	for (int32_t i = 0; i < row->n; i++)
		l[i] = (struct link){ row->at[i].config, row->at[i].next };
	return l;
}

/* The closed answers when the part before puts `more` bytes back: the same
 * from where no need is felt. */
static struct row
press(const struct curve *v, int32_t i, int64_t more, const struct row *closed,
      const struct row *behind, struct cells *c, Arena *arena)
{
	const struct part *p = &v->y->part[i];
	int64_t felt = p->need->most + p->need_more + more;

	put_closed(v, i, more, felt, behind, c);
	for (int32_t e = 0; e < closed->n; e++)
		if (closed->at[e].room >= felt)
			offer(c, &closed->at[e]);
	return cells_take(c, arena);
}

static void
compose(struct curve *v)
{
	const struct parts *y = v->y;
	struct row behind = { NULL, 0 }, pressed[PART_LEVELS] = { 0 };
	Arena *old = arena_new();       /* of the rows behind */
	struct cells c;

	cells_open(&c, CELLS, v->top);
	offer(&c, &(struct entry){ 0 });
	behind = cells_take(&c, old);
	for (int32_t i = y->n - 1; i >= 0 && !watch_over(y->r->watch); i--) {
		const struct kind *k = &y->kind[y->part[i].kind];
		const struct kind *b = i > 0
			? &y->kind[y->part[i - 1].kind] : k;
		Arena *fresh = i > 0 ? arena_new() : y->arena;
		struct row row, next[PART_LEVELS] = { 0 };

		put_closed(v, i, 0, INT64_MAX, &behind, &c);
		row = cells_take(&c, fresh);
		for (int32_t l = 0; i > 0 && l < b->nlevel; l++) {
			next[l] = press(v, i, b->level[l], &row, &behind, &c,
			                fresh);
			v->pressed[i][l] = links_of(&next[l], y->arena);
		}
		for (int32_t e = 0; e < row.n; e++)
			offer(&c, &row.at[e]);
		for (int32_t j = 0; i + 1 < y->n && j < k->nopen; j++) {
			int32_t at = k->nplan + j;
			int32_t level = k->config[k->plan[at]].level;

			put_before(v, i, at, 0, INT64_MAX, &pressed[level],
			           &c);
		}
		row = cells_take(&c, fresh);
		v->row[i] = links_of(&row, y->arena);
		behind = row;
		memcpy(pressed, next, sizeof next);
		arena_free(old);
		old = fresh;
	}
	if (old != y->arena)            /* no time for the others */
		arena_free(old);
	else
		v->first = behind;
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
	struct entry *e = cell(c, room);

	if (e->sec < 0)
		*e = (struct entry){ room, sec, sec, 0, 0 };
	e->room = room < e->room ? room : e->room;
	e->sec = fmin(e->sec, sec);
}

/* All configurations of a part in front of answers behind.  Not all: no memory
 * but that of configurations counts. */
static void
offer_part(const struct curve *v, int32_t at, bool all, const struct row *b,
           struct cells *c)
{
	const struct part *p = &v->y->part[at];
	const struct kind *k = &v->y->kind[p->kind];

	for (int32_t j = 0; j < k->nlow; j++) {
		const struct config *f = &k->config[k->low[j]];
		int64_t least = 0, to = p->least->limit[j];
		int64_t bytes = all ? f->firm : f->lead;

		if (all)
			least = p->least->of[k->low[j]] + p->least_more;
		if (least >= v->top)
			continue;
		to = !all || to > v->top - p->least_more ? v->top
			: to + p->least_more;
		for (int32_t e = 0; e < b->n; e++) {
			int64_t room = b->at[e].room + bytes;

			if (room >= to)
				break;
			offer_low(c, room < least ? least : room,
			          b->at[e].sec + f->least);
		}
	}
}

static void
find_bound(struct curve *v)
{
	struct parts *y = v->y;
	Arena *old = arena_new();       /* of the row behind */
	struct row behind;
	struct cells c;

	cells_open(&c, bound_cells(v), v->top);
	offer_low(&c, 0, 0);
	behind = cells_take(&c, old);
	for (int32_t i = y->n - 1; i >= 0 && !watch_over(y->r->watch); i--) {
		Arena *fresh = i > 0 ? arena_new() : y->arena;

		offer_part(v, i, true, &behind, &c);
		behind = cells_take(&c, fresh);
		arena_free(old);
		old = fresh;
	}
	if (old != y->arena)            /* no time for the others */
		arena_free(old);
	else
		v->bound = behind;
	arena_free(c.arena);
}

/* Answers within so much room, or within more of which the rest is freed in
 * ways of which the answers know nothing. */
static double
least_within(const struct curve *v, const struct row *row, int64_t room)
{
	const struct parts *y = v->y;
	double best = INFINITY;

	for (int32_t i = 0; i < row->n; i++) {
		int64_t over = row->at[i].room - room;
		double sec = row->at[i].sec;

		for (int32_t k = 0; k < y->nloose && over > 0; k++) {
			const struct loose *l = &y->loose[k];

			sec += l->price * (double)(over < l->bytes ? over
			                           : l->bytes);
			over -= l->bytes;
		}
		if (over <= 0 && sec < best)
			best = sec;
	}
	return best;
}

/* ---- bound for plans that repeat as often as they like ---- */

/* What lives when a node of backward runs, beside what is kept of parts that
 * backward has not reached: results that cannot be made again, the node's
 * operands and its scratch. */
static int64_t *
working_set(const struct parts *y)
{
	const struct remat *r = y->r;
	size_t n = r->nnode;
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

/* Take any plan, and a node k of backward that runs before anything of parts
 * < i is read (the nodes looked at lie between part i's begin and that of
 * i - 1).  Of what is in memory then let K(q) be the picks of part q < i.
 * All that backward reads of those parts is read later, so what is missing is
 * made after k, which takes the seconds of the configuration K(q) at least,
 * however often anything is repeated; and the K(q) lie beside what k itself
 * needs, of which no storage is one of theirs. */
double
curve_bound_any(const struct curve *v, int64_t memory)
{
	struct parts *y = v->y;
	int64_t *work = working_set(y);
	struct row behind;
	struct cells c;
	double best = 0;
	Arena *old = arena_new();       /* of the row behind */

	cells_open(&c, bound_cells(v), v->top);
	offer_low(&c, 0, 0);
	behind = cells_take(&c, old);
	for (int32_t i = 1; i < y->n && memory < v->top
	     && !watch_over(y->r->watch); i++) {
		Arena *fresh = arena_new();
		NodeId to = y->part[i - 1].begin;
		int64_t most = -1;

		offer_part(v, i - 1, false, &behind, &c);
		behind = cells_take(&c, fresh);
		arena_free(old);
		old = fresh;
		for (NodeId k = y->part[i].lo; k < to; k++)
			if (work[k] > most)
				most = work[k];
		if (most >= 0)
			best = fmax(best, least_within(v, &behind,
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
	v->row = arena_array(y->arena, (size_t)y->n, sizeof *v->row);
	v->pressed = arena_array(y->arena, (size_t)y->n, sizeof *v->pressed);
	remat_keep_all(y->r, y->must, drop);
	v->top = remat_eval(y->r, drop).live;
	v->top += v->top / 16 + 1;
	compose(v);
	return v->first.at ? v : NULL;
}

int32_t
curve_count(const struct curve *v)
{
	return v->first.n;
}

/* The row is by rising room, callers count from the fastest. */
static const struct entry *
entry_of(const struct curve *v, int32_t i)
{
	return &v->first.at[v->first.n - 1 - i];
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
	struct link e = { entry_of(v, i)->config, entry_of(v, i)->next };

	remat_keep_all(y->r, y->must, drop);
	for (int32_t s = 0; s < y->r->nstore; s++)
		if (y->tied[s])
			drop[s] = 0;
	for (int32_t at = 0; at < y->n; at++) {
		const struct part *p = &y->part[at];
		const struct config *c = &y->kind[p->kind].config[e.config];

		part_set(y, p, c, drop);
		if (at + 1 < y->n)
			e = c->open ? v->pressed[at + 1][c->level][e.next]
				: v->row[at + 1][e.next];
	}
}

double
curve_bound(struct curve *v, int64_t memory)
{
	if (memory >= v->top)
		return 0;
	if (!v->bound.at)
		find_bound(v);
	return v->bound.n ? least_within(v, &v->bound, memory) : 0;
}
