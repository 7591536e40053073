/* Choose two plans for the slots of a stage (Korthikanti et al. 2023, appendix
 * C: "microbatch-level activation recomputation").
 *
 * what    K micro-batches are in flight.  A plan keeps S bytes of each, runs in
 *         R bytes beside them, and recomputes for T seconds.  If n of them take
 *         plan a and the others plan b, the arena has
 *         n S(a) + (K - n) S(b) + max(R(a), R(b)) bytes, and recomputation
 *         takes (n T(a) + (K - n) T(b)) / K seconds on average: the lower hull
 *         of the plans, in steps of 1 / K
 * method  All pairs of known plans, which do not depend on the budget, so that
 *         a larger one has no slower pair.  If few storages are free, these are
 *         all sets; otherwise the best one for each of some memories
 * cost    plans^2 K, and an evaluation of each plan
 */
#include "passes/planner/slot_plans.h"

#include <string.h>

enum {
	FEW = 10,                       /* storages: all sets are tried */
	GRID = 48,                      /* memories, if there are more */
	KNOWN = 1 << FEW
};

/* Two schedules in place of one for less than this share of a step are not
 * worth their code. */
#define LEAST_GAIN 1e-4

struct slot_plan {
	int64_t slot, rest;             /* bytes */
	double sec;
	uint8_t *drop;
};

struct slot_plans {
	struct plan_source *s;
	const struct remat *r;
	int64_t arena;                  /* bytes that the pair may have */
	struct slot_plan *plan;
	int n;
};

/* Of plans a and b; n slots have a. */
struct pair {
	int a, b, n;
	double sec;
};

/* No pair is better with x than with y in its place. */
static bool
is_dominated(const struct slot_plan *x, const struct slot_plan *y)
{
	return y->slot <= x->slot && y->rest <= x->rest && y->sec <= x->sec;
}

/* Take a set, unless a known one is as good, in place of those that it
 * beats. */
static void
add_set(struct slot_plans *l, const uint8_t *drop)
{
	struct schedule *w = l->s->w;
	Arena *scratch = arena_new();
	struct slot_plan x;
	int n = 0;

	x.sec = schedule_set(w, drop).sec;
	x.slot = schedule_slot_bytes(w);
	x.rest = schedule_packed(w, scratch) - l->r->slots * x.slot;
	arena_free(scratch);
	for (int i = 0; i < l->n; i++)
		if (is_dominated(&x, &l->plan[i]))
			return;
	for (int i = 0; i < l->n; i++)
		if (!is_dominated(&l->plan[i], &x))
			l->plan[n++] = l->plan[i];
	x.drop = arena_copy(l->r->arena, drop, (size_t)l->r->nstore + 1);
	l->plan[n++] = x;
	l->n = n;
}

/* ---- which plans ---- */

static int
list_free(const struct slot_plans *l, int32_t *list)
{
	int n = 0;

	for (int32_t s = 0; s < l->r->nstore && n <= FEW; s++)
		if (l->r->store[s].candidate && !l->s->constraint[s])
			list[n++] = s;
	return n;
}

static void
add_all_sets(struct slot_plans *l, const int32_t *list, int n)
{
	uint8_t *drop = arena_array(l->r->arena, (size_t)l->r->nstore + 1, 1);

	remat_keep_all(l->r, l->s->constraint, drop);
	for (int k = 0; k < 1 << n && !watch_over(l->r->watch); k++) {
		for (int i = 0; i < n; i++)
			drop[list[i]] = k >> i & 1;
		add_set(l, drop);
	}
}

static void
add_sets_of_grid(struct slot_plans *l)
{
	uint8_t *drop = arena_array(l->r->arena, (size_t)l->r->nstore + 1, 1);

	remat_keep_all(l->r, l->s->constraint, drop);
	add_set(l, drop);
	for (int i = 0; i <= GRID && !watch_over(l->r->watch); i++) {
		const struct known_plan *f = selector_known_set(l->s->c, i,
		                                                GRID);

		if (f)
			add_set(l, f->drop);
	}
}

/* The sets that an equal stage knows. */
static void
add_sets_of(struct slot_plans *l, const struct planned *like)
{
	add_set(l, like->drop);
	for (int i = 0; like->pair && i < 2; i++)
		add_set(l, like->pair->drop[i]);
}

/* ---- the pair ---- */

static struct pair
best_pair(const struct slot_plans *l, double than)
{
	int64_t slots = l->r->slots;
	struct pair best = { .sec = than };

	for (int a = 0; a < l->n; a++)
		for (int b = 0; b < l->n; b++) {
			const struct slot_plan *x = &l->plan[a];
			const struct slot_plan *y = &l->plan[b];
			int64_t rest = x->rest > y->rest ? x->rest : y->rest;

			for (int64_t n = x->sec < y->sec ? slots - 1 : 0;
			     n > 0; n--) {
				int64_t left = l->arena - rest - n * x->slot
					- (slots - n) * y->slot;
				double sec = ((double)n * x->sec
				              + (double)(slots - n) * y->sec)
					/ (double)slots;

				if (left >= 0 && sec < best.sec)
					best = (struct pair){ a, b, (int)n,
						              sec };
			}
		}
	return best;
}

static const struct slot_pair *
keep_pair(Pass *p, const struct slot_plans *l, struct pair q)
{
	struct slot_pair *pair = arena_alloc(p->keep, sizeof *pair);
	int of[2] = { q.a, q.b };

	pair->slots = q.n;
	for (int i = 0; i < 2; i++) {
		const struct slot_plan *x = &l->plan[of[i]];

		pair->slot_bytes[i] = x->slot;
		pair->drop[i] = arena_copy(p->keep, x->drop,
		                           (size_t)l->r->nstore + 1);
	}
	return pair;
}

/* ---- the stage ---- */

/* What is read of a micro-batch when its turns are over would be in the memory
 * of either plan; count passes run under one. */
static bool
is_read_afterwards(const Graph *g)
{
	bool any = g->loss != 0;

	FOR_VALS (v, g)
		any |= v->output && v->kind == V_TEMP;
	FOR_NODES (n, g)
		any |= n->count_pass != 0;
	return any;
}

static bool
may_have_pair(const Pass *p, const struct plan_source *s,
              const struct known_plan *one)
{
	const struct options *o = p->opt;

	return s->g->slots > 1 && !s->g->other_slots && !s->g->weight_slots
		&& p->planned.budget > 0
		&& o->remat == REMAT_AUTO && !o->brief && !o->save_dtype
		&& o->offload == OFFLOAD_OFF && one->sec > 0
		&& !is_read_afterwards(s->g) && !watch_over(p->watch);
}

void
slot_plans_find(Pass *p, struct plan_source *s, const struct known_plan *one)
{
	const struct remat *r = s->w->r;
	struct slot_plans l = { .s = s, .r = r,
		.arena = p->planned.budget - r->resident };
	double than = one->sec - LEAST_GAIN * r->base_sec;
	const struct planned *like = s->c ? NULL : p->like;
	int32_t list[FEW + 1];
	struct pair q;
	int n;

	p->planned.pair = NULL;
	if (!may_have_pair(p, s, one) || (!s->c && !(like && like->drop)))
		return;
	l.plan = arena_array(r->arena, KNOWN + 1, sizeof *l.plan);
	n = list_free(&l, list);
	if (like) {
		add_sets_of(&l, like);
	} else if (n <= FEW) {
		add_all_sets(&l, list, n);
	} else {
		add_sets_of_grid(&l);
	}
	q = best_pair(&l, than);
	if (q.n)
		p->planned.pair = keep_pair(p, &l, q);
}
