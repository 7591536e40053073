/* Sequences of evaluations that change bit by bit, for annealing.
 *
 * what    evaluations in slots, most of them free; lifetimes; the bytes in
 *         memory over each slot and their sum above a budget
 * method  A change puts, takes and shifts evaluations and notes how lifetimes
 *         end; only then the profile (dag_profile.c) is asked, and written if
 *         the change is kept.
 * cost    of a change: the evaluations of the neighbours and the length of
 *         the lifetimes that change
 */
#include "passes/standalone/dag_walk.h"

#include <string.h>

enum { CHANGES_MAX = 4096, OPS_MAX = 64, BLOCK = WALK_BLOCK };

/* All bytes together, in units: a block of them fits 32 bits. */
#define UNITS_MAX (INT64_C(1) << 25)

int32_t
walk_pick(uint64_t *random, int32_t n)
{
	return (int32_t)((dag_draw(random) >> 32) * (uint64_t)n >> 32);
}

/* ---- lifetimes ---- */

/* Note where e ended before; false: no room, the change must be undone. */
static bool
log_end(struct dag_walk *s, int32_t e)
{
	if (s->nlog >= CHANGES_MAX) {
		s->overflow = true;
		return false;
	}
	s->log[s->nlog++] = (struct walk_end){ e, s->end[e] };
	return true;
}

/* Evaluation e is now read last in slot `end`. */
static void
set_end(struct dag_walk *s, int32_t e, int32_t end)
{
	int32_t ram = s->ram[s->node[e]];
	int32_t old = s->end[e];

	if (end == old || !log_end(s, e))
		return;
	s->event[s->nevent++] = (struct walk_event){ old + 1, ram };
	s->event[s->nevent++] = (struct walk_event){ end + 1, -ram };
	s->end[e] = end;
}

int32_t
walk_provider(const struct dag_walk *s, int32_t v, int32_t t)
{
	int32_t e = s->first[v];

	if (e < 0 || s->pos[e] >= t)
		return -1;
	while (s->next[e] >= 0 && s->pos[s->next[e]] < t)
		e = s->next[e];
	return e;
}

int32_t
walk_last(struct dag_walk *s, int32_t v, int32_t from, int32_t to)
{
	const struct dag *g = s->g;
	int32_t last = from;

	for (int32_t k = g->succ_at[v]; k < g->succ_at[v + 1]; k++) {
		int32_t q = s->first[g->succ[k]];

		for (; q >= 0 && s->pos[q] < to; q = s->next[q])
			if (s->pos[q] > last)
				last = s->pos[q];
	}
	s->work -= g->succ_at[v + 1] - g->succ_at[v];
	return last;
}

int32_t
walk_next(struct dag_walk *s, int32_t e, int32_t t)
{
	const struct dag *g = s->g;
	int32_t v = s->node[e], next = s->end[e];

	for (int32_t k = g->succ_at[v]; k < g->succ_at[v + 1]; k++) {
		int32_t q = s->first[g->succ[k]];

		for (; q >= 0 && s->pos[q] < next; q = s->next[q])
			if (s->pos[q] > t)
				next = s->pos[q];
	}
	s->work -= g->succ_at[v + 1] - g->succ_at[v];
	return next;
}

static int32_t
next_pos(const struct dag_walk *s, int32_t e)
{
	return s->next[e] >= 0 ? s->pos[s->next[e]] : s->nslot;
}

/* Lifetimes after e came to its slot (already linked in). */
static void
live_in(struct dag_walk *s, int32_t e)
{
	const struct dag *g = s->g;
	int32_t v = s->node[e], t = s->pos[e];

	if (!log_end(s, e))
		return;
	s->end[e] = t - 1;              /* nothing counted yet */
	set_end(s, e, walk_last(s, v, t, next_pos(s, e)));
	if (s->prev[e] >= 0 && s->end[s->prev[e]] > t)
		set_end(s, s->prev[e], walk_last(s, v, s->pos[s->prev[e]],
		                                 t));
	for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++) {
		int32_t f = walk_provider(s, g->pred[k], t);

		if (s->end[f] < t)
			set_end(s, f, t);
	}
}

/* Lifetimes after e was linked out of slot t. */
static void
live_out(struct dag_walk *s, int32_t e, int32_t t)
{
	const struct dag *g = s->g;
	int32_t v = s->node[e];

	if (s->prev[e] >= 0 && s->end[e] > t)
		set_end(s, s->prev[e], s->end[e]);
	set_end(s, e, t - 1);
	for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++) {
		int32_t f = walk_provider(s, g->pred[k], t);

		if (s->end[f] == t)
			set_end(s, f, walk_last(s, g->pred[k], s->pos[f], t));
	}
}

/* ---- evaluations in and out ---- */

static void
extra_add(struct dag_walk *s, int32_t e)
{
	s->extra_at[e] = s->nextra;
	s->extra[s->nextra++] = e;
}

static void
extra_drop(struct dag_walk *s, int32_t e)
{
	int32_t last = s->extra[--s->nextra];

	s->extra[s->extra_at[e]] = last;
	s->extra_at[last] = s->extra_at[e];
}

static int32_t
new_eval(struct dag_walk *s, int32_t v)
{
	int32_t e = s->free_list[--s->nfree];

	s->node[e] = v;
	s->all_at[e] = s->neval;
	s->all[s->neval++] = e;
	return e;
}

static void
drop_eval(struct dag_walk *s, int32_t e)
{
	int32_t last = s->all[--s->neval];

	s->all[s->all_at[e]] = last;
	s->all_at[last] = s->all_at[e];
	s->free_list[s->nfree++] = e;
}

/* Into its node's list, by position. */
static void
link_in(struct dag_walk *s, int32_t e, int32_t t)
{
	int32_t v = s->node[e], prev = walk_provider(s, v, t);
	int32_t next = prev >= 0 ? s->next[prev] : s->first[v];

	s->pos[e] = t;
	s->slot[t] = e;
	s->prev[e] = prev;
	s->next[e] = next;
	if (next >= 0)
		s->prev[next] = e;
	if (prev >= 0) {
		s->next[prev] = e;
		extra_add(s, e);
	} else {
		s->first[v] = e;
		if (next >= 0)
			extra_add(s, next);
	}
}

static void
link_out(struct dag_walk *s, int32_t e)
{
	int32_t prev = s->prev[e], next = s->next[e];

	if (next >= 0)
		s->prev[next] = prev;
	if (prev >= 0) {
		s->next[prev] = next;
		extra_drop(s, e);
	} else {
		s->first[s->node[e]] = next;
		if (next >= 0)
			extra_drop(s, next);
	}
	s->slot[s->pos[e]] = -1;
	s->pos[e] = s->nslot;           /* where nothing is */
}

bool
walk_removable(const struct dag_walk *s, int32_t e)
{
	return s->prev[e] >= 0 || (s->next[e] >= 0 && s->end[e] == s->pos[e]);
}

/* A free slot in lo..hi-1, looked for from a random one downwards. */
static int32_t
free_slot(const struct dag_walk *s, int32_t lo, int32_t hi, int32_t from)
{
	for (int32_t k = 0; k < 48 && from - k >= lo; k++)
		if (s->slot[from - k] < 0)
			return from - k;
	for (int32_t k = 1; k < 16 && from + k < hi; k++)
		if (s->slot[from + k] < 0)
			return from + k;
	return -1;
}

/* ---- changes ---- */

void
walk_begin(struct dag_walk *s, double limit)
{
	s->nop = s->nlog = s->nevent = 0;
	s->overflow = false;
	s->dcost = 0;
	s->limit = limit;
}

bool
walk_hopeless(const struct dag_walk *s, double cost)
{
	return cost > s->limit + s->weight * (double)s->over;
}

int32_t
walk_put(struct dag_walk *s, int32_t v, int32_t lo, int32_t hi,
         uint64_t *random, bool late)
{
	int32_t t, e;

	if (hi <= lo || s->nfree == 0 || s->nop == OPS_MAX)
		return -1;
	t = free_slot(s, lo, hi, late ? hi - 1
	              : lo + walk_pick(random, hi - lo));
	if (t < 0)
		return -1;
	e = new_eval(s, v);
	link_in(s, e, t);
	live_in(s, e);
	s->op[s->nop++] = (struct walk_op){ e, -1, t };
	s->dcost += s->g->cpu[v];
	return e;
}

void
walk_take(struct dag_walk *s, int32_t e)
{
	const struct dag *g = s->g;
	int32_t queue[OPS_MAX], n = 0;

	queue[n++] = e;
	for (int32_t k = 0; k < n && s->nop < OPS_MAX; k++) {
		int32_t x = queue[k], t = s->pos[x], v = s->node[x];

		/* what was unread may meanwhile be the only one */
		if (k && (s->end[x] != t || !walk_removable(s, x)))
			continue;
		s->op[s->nop++] = (struct walk_op){ x, t, -1 };
		s->dcost -= g->cpu[v];
		link_out(s, x);
		live_out(s, x, t);
		for (int32_t i = g->pred_at[v]; i < g->pred_at[v + 1]
		     && n < OPS_MAX; i++) {
			int32_t f = walk_provider(s, g->pred[i], t);

			if (s->end[f] == s->pos[f] && walk_removable(s, f))
				queue[n++] = f;
		}
	}
}

bool
walk_shift(struct dag_walk *s, int32_t e, int32_t lo, int32_t hi,
           uint64_t *random)
{
	int32_t from = s->pos[e], to = -1;

	if (hi > lo && s->nop < OPS_MAX)
		to = free_slot(s, lo, hi, lo + walk_pick(random, hi - lo));
	if (to < 0)
		return false;
	link_out(s, e);
	live_out(s, e, from);
	link_in(s, e, to);
	live_in(s, e);
	s->op[s->nop++] = (struct walk_op){ e, from, to };
	return true;
}

static void
undo(struct dag_walk *s)
{
	while (s->nlog > 0) {
		struct walk_end *c = &s->log[--s->nlog];

		s->end[c->eval] = c->end;
	}
	while (s->nop > 0) {
		struct walk_op *op = &s->op[--s->nop];

		if (op->to >= 0)
			link_out(s, op->eval);
		if (op->from >= 0)
			link_in(s, op->eval, op->from);
		else
			drop_eval(s, op->eval);
	}
}

bool
walk_end(struct dag_walk *s)
{
	int64_t over;

	if (s->overflow || walk_hopeless(s, s->dcost)) {
		undo(s);
		return false;
	}
	over = walk_gather(s);
	if (s->dcost + s->weight * (double)over > s->limit) {
		undo(s);
		return false;
	}
	walk_apply(s);
	s->over += over;
	s->cost += s->dcost;
	for (int32_t k = 0; k < s->nop; k++)
		if (s->op[k].to < 0)
			drop_eval(s, s->op[k].eval);
	return true;
}

/* ---- sequences in and out ---- */

void
walk_load(struct dag_walk *s, const struct dag_seq *q)
{
	const struct dag *g = s->g;

	for (int32_t t = 0; t <= s->nslot; t++) {
		s->slot[t] = -1;
		s->mem[t] = 0;
	}
	for (int32_t v = 0; v < g->n; v++)
		s->first[v] = -1;
	s->neval = s->nextra = s->nfree = 0;
	for (int32_t e = s->nslot; e-- > 0;)
		s->free_list[s->nfree++] = e;
	s->over = 0;
	s->cost = 0;
	for (int32_t k = 0; k < q->len; k++) {
		int32_t e = new_eval(s, q->node[k]);
		int32_t t = (int32_t)(((int64_t)k * s->nslot + s->nslot / 2)
		                      / q->len);

		link_in(s, e, t);
		s->end[e] = t;
		for (int32_t i = g->pred_at[q->node[k]];
		     i < g->pred_at[q->node[k] + 1]; i++)
			s->end[walk_provider(s, g->pred[i], t)] = t;
		s->cost += g->cpu[q->node[k]];
	}
	for (int32_t k = 0; k < s->neval; k++) {
		int32_t e = s->all[k], ram = s->ram[s->node[e]];

		s->mem[s->pos[e]] += ram;
		s->mem[s->end[e] + 1] -= ram;
	}
	for (int32_t t = 0; t <= s->nslot; t++) {
		s->mem[t] += t ? s->mem[t - 1] : 0;
		s->over += s->mem[t] > s->budget ? s->mem[t] - s->budget : 0;
	}
	for (int32_t b = 0; b <= s->nslot / BLOCK; b++)
		s->top[b] = walk_top(s->mem + b * BLOCK);
}

int32_t
walk_unload(const struct dag_walk *s, int32_t *node)
{
	int32_t len = 0;

	for (int32_t t = 0; t < s->nslot; t++)
		if (s->slot[t] >= 0)
			node[len++] = s->node[s->slot[t]];
	return len;
}

/* Bytes in units that 32 bits can add up. */
static void
find_units(struct dag_walk *s, int64_t budget, Arena *a)
{
	const struct dag *g = s->g;
	int64_t unit = 0, sum = 0;

	for (int32_t v = 0; v < g->n; v++) {
		int64_t x = g->ram[v], y = unit;

		for (sum += x; y;) {
			int64_t rest = x % y;

			x = y;
			y = rest;
		}
		unit = x;
	}
	if (unit == 0)
		unit = 1;
	unit *= sum / unit / UNITS_MAX + 1;
	s->ram = arena_array(a, (size_t)g->n + 1, sizeof *s->ram);
	for (int32_t v = 0; v < g->n; v++)
		s->ram[v] = (int32_t)((g->ram[v] + unit - 1) / unit);
	/* what is beyond all bytes together is never short */
	s->budget = (int32_t)((budget < sum ? budget : sum) / unit);
}

void
walk_open(struct dag_walk *s, const struct dag *g, int64_t budget, int32_t len,
          Arena *a)
{
	size_t n;

	memset(s, 0, sizeof *s);
	s->g = g;
	find_units(s, budget, a);
	s->nslot = 2 * len + 64;
	n = (size_t)s->nslot + 1;
	s->slot = arena_array(a, n, sizeof *s->slot);
	s->mem = arena_array(a, n + BLOCK, sizeof *s->mem);
	s->top = arena_array(a, n / BLOCK + 1, sizeof *s->top);
	s->node = arena_array(a, n, sizeof *s->node);
	s->pos = arena_array(a, n, sizeof *s->pos);
	s->end = arena_array(a, n, sizeof *s->end);
	s->next = arena_array(a, n, sizeof *s->next);
	s->prev = arena_array(a, n, sizeof *s->prev);
	s->free_list = arena_array(a, n, sizeof *s->free_list);
	s->all = arena_array(a, n, sizeof *s->all);
	s->all_at = arena_array(a, n, sizeof *s->all_at);
	s->extra = arena_array(a, n, sizeof *s->extra);
	s->extra_at = arena_array(a, n, sizeof *s->extra_at);
	s->first = arena_array(a, (size_t)g->n + 1, sizeof *s->first);
	s->op = arena_array(a, OPS_MAX, sizeof *s->op);
	s->log = arena_array(a, CHANGES_MAX, sizeof *s->log);
	s->event = arena_array(a, 2 * CHANGES_MAX, sizeof *s->event);
}
