/* Choose two plans for the slots of a stage (Korthikanti et al. 2023, appendix
 * C: "microbatch-level activation recomputation").
 *
 * what    K micro-batches are in flight.  A plan keeps S bytes of each, runs in
 *         R bytes beside them, and recomputes for T seconds.  If n of them take
 *         plan a and the others plan b, the arena has
 *         n S(a) + (K - n) S(b) + max(R(a), R(b)) bytes, and recomputation
 *         takes (n T(a) + (K - n) T(b)) / K seconds on average: the lower hull
 *         of the plans, in steps of 1 / K
 * method  All pairs of known plans.  If few storages are free, these are all
 *         sets.  Otherwise they are the best plans of one plan for all slots,
 *         for budgets below and above the one asked for; then the best pair's
 *         budgets are moved by the bytes that the pair leaves, a few times
 * cost    plans^2 K, and as many choices of a plan as there are budgets
 */
#include "passes/planner/slot_plans.h"

#include <string.h>

enum {
	FEW = 10,                       /* storages, of which all sets are tried */
	EACH = 4,                       /* budgets below, and above */
	ROUNDS = 4,                     /* in which a pair's budgets move */
	KNOWN = 1 << FEW
};

/* Two schedules in place of one for less than this share of a step are not
 * worth their code. */
#define LEAST_GAIN 1e-4

struct slot_plan {
	int64_t slot, rest;             /* bytes */
	double sec;
	int64_t arena;                  /* budget that it was chosen for */
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
	int64_t left;                   /* bytes of the budget */
};

static void
add_set(struct slot_plans *l, const uint8_t *drop, int64_t arena)
{
	struct schedule *w = l->s->w;
	size_t nstore = (size_t)l->r->nstore;
	struct slot_plan *x = &l->plan[l->n];
	Arena *scratch = arena_new();

	x->sec = schedule_set(w, drop).sec;
	x->slot = schedule_slot_bytes(w);
	x->rest = schedule_packed(w, scratch) - l->r->slots * x->slot;
	x->arena = arena;
	arena_free(scratch);
	for (int i = 0; i < l->n; i++)
		if (!memcmp(l->plan[i].drop, drop, nstore))
			return;
	x->drop = arena_copy(l->r->arena, drop, nstore + 1);
	l->n++;
}

/* Sequences are left out: they are no sets of equal graphs. */
static void
add_best(struct slot_plans *l, int64_t arena)
{
	const struct known_plan *f = l->n < KNOWN
		? selector_best(l->s->c, arena) : NULL;

	if (f && !f->step)
		add_set(l, f->drop, arena);
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
		add_set(l, drop, l->arena);
	}
}

/* top: the arena in which everything is kept. */
static void
add_budgets(struct slot_plans *l, int64_t top)
{
	int64_t least = selector_least(l->s->c);

	for (int i = 1; i <= EACH && !watch_over(l->r->watch); i++) {
		add_best(l, l->arena - (l->arena - least) / EACH * i);
		add_best(l, l->arena + (top - l->arena) / EACH * i);
	}
}

/* The sets that an equal stage knows. */
static void
add_sets_of(struct slot_plans *l, const struct planned *like)
{
	add_set(l, like->drop, l->arena);
	for (int i = 0; like->pair && i < 2; i++)
		add_set(l, like->pair->drop[i], l->arena);
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
						              sec, left };
			}
		}
	return best;
}

/* Plans for what a pair leaves to each of its slots. */
static void
move_budgets(struct slot_plans *l, struct pair q)
{
	int64_t slots = l->r->slots, each = slots * q.left;

	add_best(l, l->plan[q.a].arena + each / q.n);
	add_best(l, l->plan[q.b].arena + each / (slots - q.n));
	add_best(l, l->plan[q.a].arena - l->plan[q.a].slot / 64);
	add_best(l, l->plan[q.b].arena + q.left);
}

static struct pair
find_pair(struct slot_plans *l, double than)
{
	struct pair q = best_pair(l, than);

	for (int i = 0; i < ROUNDS && q.n && l->s->c
	     && !watch_over(l->r->watch); i++) {
		double before = q.sec;

		move_budgets(l, q);
		q = best_pair(l, than);
		if (q.sec >= before)
			break;
	}
	return q;
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

	return s->g->slots > 1 && !s->g->other_slots && p->planned.budget > 0
		&& o->remat == REMAT_AUTO && !o->candidate && !o->save_dtype
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
		if (!one->step)
			add_set(&l, one->drop, l.arena);
		add_budgets(&l, p->planned.baseline_peak - r->resident);
	}
	q = find_pair(&l, than);
	if (q.n)
		p->planned.pair = keep_pair(p, &l, q);
}
