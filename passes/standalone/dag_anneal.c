/* Annealing over sequences of evaluations.
 *
 * what    better plans from any plan: order, number and place of evaluations
 *         are all free
 * method  After FastSA (Yamamoto et al., "FastSA: a scalable simulated
 *         annealing for rematerialization", NeurIPS 2023): a sequence of
 *         slots, most of them free to take an evaluation; insert, remove or
 *         move one and update the memory profile.  Most changes are made
 *         where memory is full, as elsewhere they change nothing.  The energy
 *         is cost plus a weight times the bytes above the budget, summed over
 *         slots.  The weight rises while something is above and falls while
 *         nothing is; now and then it is cut, so that expensive evaluations
 *         leave and the order makes room before new ones come.
 * cost    see passes/standalone/dag_walk.c
 */
#include "passes/standalone/dag_walk.h"

#include <math.h>
#include <string.h>

enum { CHAIN_MAX = 12, HELD_TRIES = 24, MISSED_TRIES = 16, OTHER_TRIES = 6 };

/* Slots drawn to find a full one. */
enum { FULL_OF = 9 };

/* Temperature at the start of a walk over that at its end. */
#define COOLING 20.0

/* Growth of the weight over a whole walk, as powers of e, and what it is
 * divided by when a round begins. */
#define WEIGHT_UP 48.0
#define WEIGHT_DOWN 24.0
#define WEIGHT_CUT 50.0
enum { ROUNDS = 8 };

struct anneal {
	struct dag_walk w;
	struct dag_best *b;
	double heat;
	int32_t *seq;
	struct dag_seq found;           /* best within the budget */
};

static int32_t
draw_below(struct anneal *s, int32_t n)
{
	return walk_pick(&s->b->random, n);
}

static bool
coin(struct anneal *s)
{
	return dag_draw(&s->b->random) & 1;
}

static void
begin_change(struct anneal *s)
{
	double u = (double)(dag_draw(&s->b->random) >> 11) + 0.5;

	walk_begin(&s->w, -s->heat * log(u * 0x1p-53));
}

/* A slot where memory is rather full. */
static int32_t
full_slot(struct anneal *s)
{
	const struct dag_walk *w = &s->w;
	int32_t t = draw_below(s, w->nslot);

	for (int k = 1; k < FULL_OF; k++) {
		int32_t u = draw_below(s, w->nslot);

		if (w->top[u / WALK_BLOCK] > w->top[t / WALK_BLOCK])
			t = u;
	}
	return t;
}

/* Whether v costs less than u for its bytes. */
static bool
cheaper(const struct dag *g, int32_t v, int32_t u)
{
	return g->cpu[v] * (double)g->ram[u] < g->cpu[u] * (double)g->ram[v];
}

/* An evaluation whose value is held over slot t, or -1; half the time the
 * cheaper one of two. */
static int32_t
held_at(struct anneal *s, int32_t t)
{
	const struct dag_walk *w = &s->w;
	int32_t best = -1;

	for (int k = 0; k < HELD_TRIES; k++) {
		int32_t e = w->all[draw_below(s, w->neval)];

		if (w->pos[e] >= t || w->end[e] <= t)
			continue;
		if (best >= 0)
			return cheaper(w->g, w->node[e], w->node[best])
				? e : best;
		best = e;
		if (coin(s))
			return best;
	}
	return best;
}

/* An extra evaluation of a value that is not held over slot t, or -1. */
static int32_t
missed_at(struct anneal *s, int32_t t)
{
	const struct dag_walk *w = &s->w;

	for (int k = 0; k < MISSED_TRIES && w->nextra; k++) {
		int32_t e = w->extra[draw_below(s, w->nextra)];

		if (w->pos[e] > t && w->end[w->prev[e]] < t)
			return e;
	}
	return -1;
}

/* ---- moves ---- */

/* Evaluate v in a slot of lo..hi-1 and, half the time, what would have to be
 * held long for that, and so on. */
static void
put_chain(struct anneal *s, int32_t v, int32_t lo, int32_t hi, bool late)
{
	struct dag_walk *w = &s->w;
	const struct dag *g = w->g;
	int32_t e[CHAIN_MAX], n = 0, patience = 2 << draw_below(s, 5);
	int32_t chain = coin(s) ? 1 : 2 + draw_below(s, CHAIN_MAX - 1);

	e[0] = walk_put(w, v, lo, hi, &s->b->random, late);
	n = e[0] >= 0;
	for (int32_t i = 0; i < n; i++) {
		int32_t u = w->node[e[i]], t = w->pos[e[i]];

		for (int32_t k = g->pred_at[u]; k < g->pred_at[u + 1]
		     && n < chain; k++) {
			int32_t q = g->pred[k], f = walk_provider(w, q, t);

			/* read here last, and not since long before */
			if (w->end[f] != t || walk_last(w, q, w->pos[f],
			    t) > t - patience)
				continue;
			e[n] = walk_put(w, q, w->pos[f] + 1, t,
			                &s->b->random, true);
			n += e[n] >= 0;
		}
	}
}

/* Evaluate a value again, after a full slot or before some reader. */
static void
try_insert(struct anneal *s)
{
	struct dag_walk *w = &s->w;
	const struct dag *g = w->g;
	int32_t v, lo, hi;

	begin_change(s);
	if (draw_below(s, 8)) {
		int32_t t = full_slot(s), e = held_at(s, t);

		if (e < 0 || walk_hopeless(w, g->cpu[w->node[e]]))
			return;
		v = w->node[e];
		lo = t + 1;
		hi = walk_next(w, e, t);
	} else {
		int32_t r = w->all[draw_below(s, w->neval)], u = w->node[r];
		int32_t deg = g->pred_at[u + 1] - g->pred_at[u];

		if (deg == 0)
			return;
		v = g->pred[g->pred_at[u] + draw_below(s, deg)];
		if (walk_hopeless(w, g->cpu[v]))
			return;
		hi = w->pos[r];
		lo = w->pos[walk_provider(w, v, hi)] + 1;
	}
	put_chain(s, v, lo, hi, coin(s));
	walk_end(w);
}

static void
try_remove(struct anneal *s)
{
	struct dag_walk *w = &s->w;
	int32_t e;

	if (w->nextra == 0)
		return;
	e = w->extra[draw_below(s, w->nextra)];
	if (coin(s))
		e = w->first[w->node[e]];
	if (!walk_removable(w, e))
		return;
	begin_change(s);
	walk_take(w, e);
	walk_end(w);
}

/* Evaluate again what is held over slot t, other than v. */
static void
put_other(struct anneal *s, int32_t t, int32_t v)
{
	struct dag_walk *w = &s->w;

	for (int k = 0; k < OTHER_TRIES; k++) {
		int32_t e = held_at(s, t);

		if (e < 0)
			return;
		if (w->node[e] == v || walk_hopeless(w, w->dcost
		    + w->g->cpu[w->node[e]]))
			continue;
		put_chain(s, w->node[e], t + 1, walk_next(w, e, t), true);
		return;
	}
}

/* Hold one or two values over a full slot instead of one or two others. */
static void
try_exchange(struct anneal *s)
{
	struct dag_walk *w = &s->w;
	int32_t t = full_slot(s), e = missed_at(s, t), v;
	int shape = draw_below(s, 4);

	if (e < 0)
		return;
	v = w->node[e];
	begin_change(s);
	walk_take(w, e);
	if (shape == 0 && (e = missed_at(s, t)) >= 0)
		walk_take(w, e);
	put_other(s, t, v);
	if (shape == 1)
		put_other(s, t, v);
	walk_end(w);
}

static void
move_evaluation(struct anneal *s, int32_t e)
{
	struct dag_walk *w = &s->w;
	const struct dag *g = w->g;
	int32_t v = w->node[e], t = w->pos[e], lo = 0, reach;
	int32_t hi = w->next[e] >= 0 ? w->pos[w->next[e]] : w->nslot;

	if (w->prev[e] >= 0)
		lo = w->pos[w->prev[e]] + 1;
	for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++) {
		int32_t f = w->first[g->pred[k]];

		lo = w->pos[f] >= lo ? w->pos[f] + 1 : lo;
	}
	if (w->prev[e] >= 0) {
		hi = w->end[e] > t ? w->end[e] : hi;
	} else {
		for (int32_t k = g->succ_at[v]; k < g->succ_at[v + 1]; k++) {
			int32_t q = w->first[g->succ[k]];

			hi = w->pos[q] < hi ? w->pos[q] : hi;
		}
	}
	/* mostly near by */
	reach = 2 << draw_below(s, 12);
	lo = t - reach > lo ? t - reach : lo;
	hi = t + reach < hi ? t + reach : hi;
	begin_change(s);
	if (walk_shift(w, e, lo, hi, &s->b->random))
		walk_end(w);
}

/* Some evaluation, rather one where memory is full. */
static void
try_move(struct anneal *s)
{
	struct dag_walk *w = &s->w;
	int32_t e = w->all[draw_below(s, w->neval)];

	if (draw_below(s, 8)) {
		int32_t t = full_slot(s), end = t + WALK_BLOCK;

		while (t < end && t < w->nslot && w->slot[t] < 0)
			t++;
		if (t < end && t < w->nslot)
			e = w->slot[t];
	}
	move_evaluation(s, e);
}

/* ---- the walk ---- */

/* Heat and weight after a part of the walk. */
static void
adjust(struct anneal *s, double hot, double part, double now)
{
	struct dag_walk *w = &s->w;

	s->heat = hot * pow(COOLING, -now);
	/* slowly: a weight that runs away freezes the walk */
	w->weight *= exp((w->over ? WEIGHT_UP : -WEIGHT_DOWN) * (now - part));
	if ((int)(now * ROUNDS) != (int)(part * ROUNDS))
		w->weight /= WEIGHT_CUT;
}

static void
anneal_steps(struct anneal *s, int64_t work, double hot)
{
	struct dag_walk *w = &s->w;
	const struct dag_seq *own = &s->b->grid[s->b->at].best;
	double low = own->len ? own->cost : INFINITY, part = 0;

	w->work = work;
	for (int64_t k = 0; w->work > 0; k++) {
		int kind = draw_below(s, 8);

		if (k % 256 == 0) {
			double now = 1 - (double)w->work / (double)work;

			adjust(s, hot, part, now);
			part = now;
			if (dag_stopped(s->b))
				return;
		}
		if (k % 65536 == 65535) {
			/* slots free evenly again */
			struct dag_seq q = { .node = s->seq };

			q.len = walk_unload(w, q.node);
			walk_load(w, &q);
		}
		w->work -= 16;
		if (kind < 4)
			try_move(s);
		else if (kind < 6)
			try_insert(s);
		else if (kind < 7)
			try_exchange(s);
		else
			try_remove(s);
		if (w->over == 0 && w->cost < low * (1 - 1e-12)) {
			s->found.len = walk_unload(w, s->found.node);
			low = w->cost;
		}
	}
}

void
dag_anneal(struct dag_best *b, const struct dag_seq *start, int64_t work,
           double hot)
{
	struct anneal s = { .b = b };
	Arena *a = arena_new();
	double unit = b->g->cost / b->g->n;

	if (work < start->len) {        /* to load it would take longer */
		arena_free(a);
		return;
	}
	walk_open(&s.w, b->g, b->grid[b->at].budget, start->len, a);
	s.seq = arena_array(a, (size_t)s.w.nslot + 1, sizeof *s.seq);
	s.found.node = arena_array(a, (size_t)s.w.nslot + 1, sizeof *s.seq);
	s.w.weight = unit / ((double)s.w.budget / 20 + 1);
	walk_load(&s.w, start);
	anneal_steps(&s, work, hot * unit);
	if (s.found.len == 0)
		s.found.len = walk_unload(&s.w, s.found.node);
	dag_offer(b, s.found.node, s.found.len);
	arena_free(a);
}
