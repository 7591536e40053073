/* Annealing over sequences of evaluations.
 *
 * what    better plans from any plan: order, number and place of evaluations
 *         are all free
 * method  after FastSA (Yamamoto et al., "FastSA: a scalable simulated
 *         annealing for rematerialization", NeurIPS 2023): a sequence of
 *         slots, most of them free to take an evaluation; insert, remove or
 *         move one and update the memory profile.  The profile is a plain
 *         array instead of a segment tree: that gives the sum of bytes above
 *         the budget, not only the peak, which is what leads out of plans
 *         with several tight places, and adding to a range of some hundred
 *         slots costs no more than a walk down and up a tree.
 * cost    a move costs the evaluations of the neighbours and the length of
 *         the lifetimes that change
 */
#include "passes/dag.h"

#include <math.h>
#include <string.h>

enum { CHANGES_MAX = 4096, BLOCK = 32, CHAIN_MAX = 12 };

/* Growth of the weight over a whole walk, as a power of e. */
/* Temperature at the start of a walk over that at its end. */
#define COOLING 20.0

#define WEIGHT_UP 12.0
#define WEIGHT_DOWN 6.0

/* All bytes together, in units: BLOCK of them fit 32 bits. */
#define UNITS_MAX (INT64_C(1) << 25)

struct change {                         /* to take back */
	int32_t eval, end;              /* end before */
};

/* From this slot on, so much more. */
struct event {
	int32_t slot, delta;
};

struct anneal {
	struct dag_best *b;
	const struct dag *g;
	int32_t budget;                 /* in units, rounded down */
	int32_t *ram;                   /* in units, rounded up */
	int32_t nslot, neval;           /* slots; evaluations in use */
	int32_t *slot;                  /* evaluation in it; -1: free */
	int32_t *mem, *top;             /* bytes; most in each block */
	/* by evaluation */
	int32_t *node, *pos, *end, *next, *prev;
	int32_t *free_list, nfree;
	int32_t *all, *all_at;          /* those in use, for drawing */
	int32_t *extra, *extra_at, nextra;
	int32_t *first;                 /* by node: its first evaluation */
	struct change *log;
	struct event *event;
	int32_t nlog, nevent;
	bool overflow;
	double cost;
	int64_t over;
	double weight, heat;
	int64_t work;
	int32_t *seq;
	struct dag_seq found;           /* best within the budget */
};

static uint64_t
draw(struct anneal *s)
{
	uint64_t x = s->b->random += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static int32_t
pick(struct anneal *s, int32_t n)
{
	return (int32_t)((draw(s) >> 32) * (uint64_t)n >> 32);
}

/* ---- the profile ---- */

/* What delta in a range of slots of one block adds above the budget. */
static int32_t
over_part(const int32_t *mem, int32_t n, int32_t budget, int32_t delta)
{
	int32_t over = 0;

	for (int32_t k = 0; k < n; k++) {
		int32_t old = mem[k] - budget, now = old + delta;

		over += (now > 0 ? now : 0) - (old > 0 ? old : 0);
	}
	return over;
}

/* The same for any range.  Blocks have a fixed length, which compilers turn
 * into vector code; most have nothing above the budget. */
static int64_t
over_by(struct anneal *s, int32_t lo, int32_t hi, int32_t delta)
{
	int32_t budget = s->budget, low = budget - (delta > 0 ? delta : 0);
	int64_t over = 0;

	s->work -= 4;
	while (lo < hi) {
		int32_t b = lo / BLOCK, end = (b + 1) * BLOCK;

		end = end < hi ? end : hi;
		s->work--;
		if (s->top[b] > low) {
			over += end - lo == BLOCK
				? over_part(s->mem + lo, BLOCK, budget, delta)
				: over_part(s->mem + lo, end - lo, budget,
				            delta);
			s->work -= 3;
		}
		lo = end;
	}
	return over;
}

static int32_t
top_of(const int32_t *mem)
{
	int32_t top = mem[0];

	for (int32_t k = 1; k < BLOCK; k++)
		top = mem[k] > top ? mem[k] : top;
	return top;
}

static void
add(struct anneal *s, int32_t lo, int32_t hi, int32_t delta)
{
	while (lo < hi) {
		int32_t b = lo / BLOCK, end = (b + 1) * BLOCK;

		if (end - lo == BLOCK && end <= hi) {
			for (int32_t k = 0; k < BLOCK; k++)
				s->mem[lo + k] += delta;
			s->top[b] += delta;
		} else {
			end = end < hi ? end : hi;
			for (int32_t k = lo; k < end; k++)
				s->mem[k] += delta;
			s->top[b] = top_of(s->mem + b * BLOCK);
		}
		lo = end;
	}
}

static void
sort_events(struct event *e, int32_t n)
{
	for (int32_t gap = n > 32 ? n / 3 + 1 : 1; ; gap = gap / 3 + 1) {
		for (int32_t i = gap; i < n; i++) {
			struct event x = e[i];
			int32_t j = i;

			for (; j >= gap && e[j - gap].slot > x.slot; j -= gap)
				e[j] = e[j - gap];
			e[j] = x;
		}
		if (gap == 1)
			return;
	}
}

/* Bring the pending changes into ranges; what they add above the budget. */
static int64_t
gather(struct anneal *s)
{
	struct event *e = s->event;
	int32_t net = 0, n = 0;
	int64_t over = 0;

	sort_events(e, s->nevent);
	for (int32_t i = 0; i < s->nevent;) {
		int32_t at = e[i].slot, old = net;

		for (; i < s->nevent && e[i].slot == at; i++)
			net += e[i].delta;
		if (net == old)
			continue;
		if (old)
			over += over_by(s, e[n - 1].slot, at, old);
		e[n++] = (struct event){ at, net };
	}
	s->nevent = n;
	return over;
}

static void
apply(struct anneal *s)
{
	const struct event *e = s->event;

	for (int32_t i = 0; i + 1 < s->nevent; i++)
		if (e[i].delta)
			add(s, e[i].slot, e[i + 1].slot, e[i].delta);
}

/* Evaluation e is now read last in slot `end`. */
static void
set_end(struct anneal *s, int32_t e, int32_t end)
{
	int32_t ram = s->ram[s->node[e]];
	int32_t old = s->end[e];

	if (end == old)
		return;
	if (s->nlog >= CHANGES_MAX) {
		s->overflow = true;
		return;
	}
	s->log[s->nlog++] = (struct change){ e, old };
	s->event[s->nevent++] = (struct event){ old + 1, ram };
	s->event[s->nevent++] = (struct event){ end + 1, -ram };
	s->end[e] = end;
}

/* The evaluation of v that a reader in slot t takes. */
static int32_t
provider(const struct anneal *s, int32_t v, int32_t t)
{
	int32_t e = s->first[v];

	if (e < 0 || s->pos[e] >= t)
		return -1;
	while (s->next[e] >= 0 && s->pos[s->next[e]] < t)
		e = s->next[e];
	return e;
}

/* Slot of the last reader of v after slot `from` and before `to`; or from. */
static int32_t
last_reader(struct anneal *s, int32_t v, int32_t from, int32_t to)
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

static int32_t
next_pos(const struct anneal *s, int32_t e)
{
	return s->next[e] >= 0 ? s->pos[s->next[e]] : s->nslot;
}

/* ---- evaluations in and out ---- */

static int32_t
new_eval(struct anneal *s, int32_t v)
{
	int32_t e = s->free_list[--s->nfree];

	s->node[e] = v;
	s->all_at[e] = s->neval;
	s->all[s->neval++] = e;
	s->extra_at[e] = -1;
	return e;
}

static void
drop_eval(struct anneal *s, int32_t e)
{
	int32_t last = s->all[--s->neval];

	s->all[s->all_at[e]] = last;
	s->all_at[last] = s->all_at[e];
	s->free_list[s->nfree++] = e;
}

/* Into its node's list, by position. */
static void
link_in(struct anneal *s, int32_t e, int32_t t)
{
	int32_t v = s->node[e], prev = provider(s, v, t);

	s->pos[e] = t;
	s->slot[t] = e;
	s->prev[e] = prev;
	s->next[e] = prev >= 0 ? s->next[prev] : s->first[v];
	if (prev >= 0)
		s->next[prev] = e;
	else
		s->first[v] = e;
	if (s->next[e] >= 0)
		s->prev[s->next[e]] = e;
}

static void
link_out(struct anneal *s, int32_t e)
{
	if (s->prev[e] >= 0)
		s->next[s->prev[e]] = s->next[e];
	else
		s->first[s->node[e]] = s->next[e];
	if (s->next[e] >= 0)
		s->prev[s->next[e]] = s->prev[e];
	s->slot[s->pos[e]] = -1;
}

/* Lifetimes after e came to slot t (already linked in). */
static void
live_in(struct anneal *s, int32_t e)
{
	const struct dag *g = s->g;
	int32_t v = s->node[e], t = s->pos[e];

	s->end[e] = t - 1;              /* nothing counted yet */
	set_end(s, e, last_reader(s, v, t, next_pos(s, e)));
	if (s->prev[e] >= 0 && s->end[s->prev[e]] > t)
		set_end(s, s->prev[e], last_reader(s, v, s->pos[s->prev[e]],
		                                   t));
	for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++) {
		int32_t f = provider(s, g->pred[k], t);

		if (s->end[f] < t)
			set_end(s, f, t);
	}
}

/* Lifetimes after e was linked out. */
static void
live_out(struct anneal *s, int32_t e)
{
	const struct dag *g = s->g;
	int32_t v = s->node[e], t = s->pos[e];

	if (s->prev[e] >= 0 && s->end[e] > t)
		set_end(s, s->prev[e], s->end[e]);
	set_end(s, e, t - 1);
	for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++) {
		int32_t f = provider(s, g->pred[k], t);

		if (s->end[f] == t)
			set_end(s, f, last_reader(s, g->pred[k], s->pos[f],
			                          t));
	}
}

static void
begin(struct anneal *s)
{
	s->nlog = s->nevent = 0;
	s->overflow = false;
}

/* Take back all changes of lifetimes since begin. */
static void
undo(struct anneal *s)
{
	while (s->nlog > 0) {
		struct change *c = &s->log[--s->nlog];

		s->end[c->eval] = c->end;
	}
}

static bool
accept(struct anneal *s, double dcost)
{
	int64_t over;
	double d;

	if (s->overflow)
		return false;
	over = gather(s);
	d = dcost + s->weight * (double)over;
	if (d > 0 && (double)(draw(s) >> 11) * 0x1p-53 >= exp(-d / s->heat))
		return false;
	apply(s);
	s->over += over;
	return true;
}

/* A free slot in lo..hi-1, looked for from a random one downwards. */
static int32_t
free_slot(struct anneal *s, int32_t lo, int32_t hi, bool late)
{
	int32_t t;

	if (hi <= lo)
		return -1;
	t = late ? hi - 1 : lo + pick(s, hi - lo);
	for (int32_t k = 0; k < 48 && t - k >= lo; k++)
		if (s->slot[t - k] < 0)
			return t - k;
	for (int32_t k = 1; k < 16 && t + k < hi; k++)
		if (s->slot[t + k] < 0)
			return t + k;
	return -1;
}

static void
extra_add(struct anneal *s, int32_t e)
{
	s->extra_at[e] = s->nextra;
	s->extra[s->nextra++] = e;
}

static void
extra_drop(struct anneal *s, int32_t e)
{
	int32_t last = s->extra[--s->nextra];

	s->extra[s->extra_at[e]] = last;
	s->extra_at[last] = s->extra_at[e];
	s->extra_at[e] = -1;
}

/* ---- moves ---- */

/* Evaluate v in a slot of lo..hi-1; its number, or -1. */
static int32_t
insert_one(struct anneal *s, int32_t v, int32_t lo, int32_t hi, bool late)
{
	int32_t t = s->nfree ? free_slot(s, lo, hi, late) : -1, e;

	if (t < 0)
		return -1;
	e = new_eval(s, v);
	link_in(s, e, t);
	live_in(s, e);
	return e;
}

/* Evaluate some input of some evaluation again, before it; and, half the
 * time, what would have to be held long for that, and so on. */
static void
try_insert(struct anneal *s)
{
	const struct dag *g = s->g;
	int32_t r = s->all[pick(s, s->neval)], v = s->node[r], p, f;
	int32_t deg = g->pred_at[v + 1] - g->pred_at[v], e[CHAIN_MAX], n = 0;
	int32_t chain = draw(s) % 2 ? 1 : 2 + pick(s, CHAIN_MAX - 1);
	double cost = 0;

	if (deg == 0)
		return;
	p = g->pred[g->pred_at[v] + pick(s, deg)];
	f = provider(s, p, s->pos[r]);
	begin(s);
	e[0] = insert_one(s, p, s->pos[f] + 1, s->pos[r], draw(s) % 2);
	if (e[0] < 0)
		return;
	n = 1;
	for (int32_t i = 0; i < n; i++) {
		int32_t u = s->node[e[i]], t = s->pos[e[i]];

		cost += g->cpu[u];
		for (int32_t k = g->pred_at[u]; k < g->pred_at[u + 1]
		     && n < chain; k++) {
			int32_t q = g->pred[k];

			f = provider(s, q, t);
			/* read here last, and not since long before */
			if (s->end[f] != t || last_reader(s, q, s->pos[f],
			    t) > t - 4)
				continue;
			e[n] = insert_one(s, q, s->pos[f] + 1, t, true);
			n += e[n] >= 0;
		}
	}
	if (accept(s, cost)) {
		s->cost += cost;
		for (int32_t i = 0; i < n; i++)
			extra_add(s, e[i]);
		return;
	}
	undo(s);
	while (n-- > 0) {
		link_out(s, e[n]);
		drop_eval(s, e[n]);
	}
}

/* The first of several may go if nobody reads it. */
static bool
removable(struct anneal *s, int32_t e)
{
	return s->prev[e] >= 0 || s->end[e] == s->pos[e];
}

static void
try_remove(struct anneal *s)
{
	int32_t x, e, t;

	if (s->nextra == 0)
		return;
	x = e = s->extra[pick(s, s->nextra)];
	if (draw(s) % 2)
		e = s->first[s->node[e]];
	if (!removable(s, e))
		return;
	t = s->pos[e];
	link_out(s, e);
	begin(s);
	live_out(s, e);
	if (accept(s, -s->g->cpu[s->node[e]])) {
		s->cost -= s->g->cpu[s->node[e]];
		extra_drop(s, s->extra_at[e] >= 0 ? e : x);
		drop_eval(s, e);
		return;
	}
	undo(s);
	link_in(s, e, t);
}

static void
try_move(struct anneal *s)
{
	const struct dag *g = s->g;
	int32_t e = s->all[pick(s, s->neval)], v = s->node[e];
	int32_t t = s->pos[e], lo = 0, hi = next_pos(s, e), to, reach;

	if (s->prev[e] >= 0)
		lo = s->pos[s->prev[e]] + 1;
	for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++) {
		int32_t f = s->first[g->pred[k]];

		lo = s->pos[f] >= lo ? s->pos[f] + 1 : lo;
	}
	if (s->prev[e] >= 0) {
		hi = s->end[e] > t ? s->end[e] : hi;
	} else {
		for (int32_t k = g->succ_at[v]; k < g->succ_at[v + 1]; k++) {
			int32_t q = s->first[g->succ[k]];

			hi = s->pos[q] < hi ? s->pos[q] : hi;
		}
	}
	/* mostly near by */
	reach = 2 << draw(s) % 12;
	lo = t - reach > lo ? t - reach : lo;
	hi = t + reach < hi ? t + reach : hi;
	to = free_slot(s, lo, hi, false);
	if (to < 0)
		return;
	link_out(s, e);
	begin(s);
	live_out(s, e);
	link_in(s, e, to);
	live_in(s, e);
	if (accept(s, 0))
		return;
	link_out(s, e);
	undo(s);
	link_in(s, e, t);
}

/* ---- the walk ---- */

/* Spread a sequence over the slots. */
static void
load(struct anneal *s, const struct dag_seq *q)
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
		if (s->prev[e] >= 0)
			extra_add(s, e);
		s->end[e] = t;
		for (int32_t i = g->pred_at[q->node[k]];
		     i < g->pred_at[q->node[k] + 1]; i++) {
			s->end[provider(s, g->pred[i], t)] = t;
		}
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
		s->top[b] = top_of(s->mem + b * BLOCK);
}

static struct dag_seq
unload(struct anneal *s)
{
	struct dag_seq q = { .node = s->seq };

	for (int32_t t = 0; t < s->nslot; t++)
		if (s->slot[t] >= 0)
			s->seq[q.len++] = s->node[s->slot[t]];
	return q;
}

static void
walk(struct anneal *s, int64_t work, double hot, double cold)
{
	int64_t all = work;
	const struct dag_seq *own = &s->b->rung[s->b->at].best;
	double low = own->len ? own->cost : INFINITY;
	double part = 0;

	s->work = work;
	for (int64_t k = 0; s->work > 0; k++) {
		uint64_t kind = draw(s) % 8;

		if (k % 256 == 0) {
			double now = 1 - (double)s->work / (double)all;

			s->heat = hot * pow(cold / hot, now);
			/* slowly: a weight that runs away freezes the walk */
			s->weight *= exp((s->over ? WEIGHT_UP : -WEIGHT_DOWN)
			                 * (now - part));
			part = now;
			if (dag_stopped(s->b))
				return;
			if (k % 65536 == 0 && k) {
				struct dag_seq q = unload(s);
				load(s, &q);
			}
		}
		s->work -= 16;
		if (kind < 4)
			try_move(s);
		else if (kind < 6)
			try_insert(s);
		else
			try_remove(s);
		if (s->over == 0 && s->cost < low * (1 - 1e-12)) {
			struct dag_seq q = unload(s);

			memcpy(s->found.node, q.node,
			       (size_t)q.len * sizeof *q.node);
			s->found.len = q.len;
			low = s->cost;
		}
	}
}

/* Bytes in units that 32 bits can add up. */
static void
find_units(struct anneal *s)
{
	const struct dag *g = s->g;
	int64_t unit = 0, sum = 0, budget = s->b->rung[s->b->at].budget;

	for (int32_t v = 0; v < g->n; v++) {
		int64_t a = g->ram[v], b = unit;

		for (sum += a; b;) {
			int64_t rest = a % b;

			a = b;
			b = rest;
		}
		unit = a;
	}
	if (unit == 0)
		unit = 1;
	unit *= sum / unit / UNITS_MAX + 1;
	s->ram = arena_array(s->b->scratch, (size_t)g->n + 1, sizeof *s->ram);
	for (int32_t v = 0; v < g->n; v++)
		s->ram[v] = (int32_t)((g->ram[v] + unit - 1) / unit);
	/* what is beyond all bytes together is never short */
	s->budget = (int32_t)((budget < sum ? budget : sum)
	                      / unit);
}

static void
open_slots(struct anneal *s, int32_t len)
{
	Arena *a = s->b->scratch;
	size_t n;

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
	s->seq = arena_array(a, n, sizeof *s->seq);
	s->found.node = arena_array(a, n, sizeof *s->seq);
	s->first = arena_array(a, (size_t)s->g->n + 1, sizeof *s->first);
	s->log = arena_array(a, CHANGES_MAX, sizeof *s->log);
	s->event = arena_array(a, 2 * CHANGES_MAX, sizeof *s->event);
}

void
dag_anneal(struct dag_best *b, const struct dag_seq *start, int64_t work,
           double hot)
{
	struct anneal s = { .b = b, .g = b->g };
	Arena *keep = b->scratch;
	double unit = b->g->cost / b->g->n;
	struct dag_seq last;

	b->scratch = arena_new();
	open_slots(&s, start->len);
	find_units(&s);
	s.weight = unit / ((double)s.budget / 20 + 1);
	load(&s, start);
	walk(&s, work, hot * unit, hot * unit / COOLING);
	last = s.found.len ? s.found : unload(&s);
	dag_offer(b, last.node, last.len);
	arena_free(b->scratch);
	b->scratch = keep;
}
