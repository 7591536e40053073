/* Fill memory that a sequence leaves idle.
 *
 * what    from known sequences faster ones for some amounts of memory
 * method  A clone can go if the instance before it may stay until then: if its
 *         bytes fit between its last reader and the clone.  Greedily, those
 *         that save most seconds per byte and step first; then the exact
 *         evaluation, which also drops what was made for such clones alone;
 *         again while that helps.
 * cost    counted steps
 */
#include "passes/recursive/sequence_generators.h"

#include <stdlib.h>
#include <string.h>

enum { GRID = 64, ROUNDS = 12, BLOCK = 64 };

/* A clone that may go. */
struct spare {
	int32_t step;
	double worth;
};

struct filler {
	struct plan_pool *pool;
	struct step_list *steps;
	int64_t budget;
	Arena *arena;                   /* of one round */
	int32_t *before;                /* by instance: the one before; -1 */
	int32_t *inst;                  /* by step: its first instance */
	int64_t *most;                  /* live bytes, by block of steps */
	bool *held;                     /* by storage: changed in this round */
	bool *shared;                   /* by instance: gave its bytes away, or
	                                 * lies in those of another */
	struct spare *spare;
	int32_t nspare;
};

static void
find_before(struct filler *f)
{
	const struct remat *r = f->pool->r;
	const struct schedule *w = f->pool->trial;
	int32_t *now = arena_array(f->arena, (size_t)r->nstore + 1, 4), y = 0;

	memset(now, -1, (size_t)r->nstore * 4);
	f->before = arena_array(f->arena, (size_t)w->ninst + 1, 4);
	f->inst = arena_array(f->arena, (size_t)w->nstep + 1, 4);
	f->shared = arena_array(f->arena, (size_t)w->ninst + 1, 1);
	f->held = arena_array(f->arena, (size_t)r->nstore + 1, 1);
	for (int32_t k = 0; k < w->nstep; k++) {
		const struct rnode *n = &r->node[w->step[k].node];

		f->inst[k] = y;
		for (int i = 0; i < n->nwrite; i++)
			if (remat_writes(&w->step[k], i)) {
				f->before[y] = now[n->write[i]];
				now[n->write[i]] = y++;
			}
	}
	for (y = 0; y < w->ninst; y++)
		if (w->block[y] != y)
			f->shared[y] = f->shared[w->block[y]] = true;
}

static void
find_most(struct filler *f)
{
	const struct schedule *w = f->pool->trial;

	f->most = arena_array(f->arena, (size_t)w->nstep / BLOCK + 1,
	                      sizeof *f->most);
	for (int32_t k = 0; k < w->nstep; k++)
		if (w->live[k] > f->most[k / BLOCK])
			f->most[k / BLOCK] = w->live[k];
}

/* Whether so many bytes more fit the budget from that step to before another
 * one. */
static bool
may_hold(const struct filler *f, int32_t from, int32_t to, int64_t bytes)
{
	const struct schedule *w = f->pool->trial;
	int64_t most = f->budget - w->other_slots - bytes;
	int32_t t = from;

	while (t < to)
		if (t % BLOCK == 0 && to - t >= BLOCK
		    && f->most[t / BLOCK] <= most)
			t += BLOCK;
		else if (w->live[t++] > most)
			return false;
	return true;
}

static void
hold(struct filler *f, int32_t from, int32_t to, int64_t bytes)
{
	int64_t *live = f->pool->trial->live;

	for (int32_t t = from; t < to; t++) {
		live[t] += bytes;
		if (live[t] > f->most[t / BLOCK])
			f->most[t / BLOCK] = live[t];
	}
}

/* Instances that the clone at step k makes, each with the one before: whether
 * those may stay; if so, and wanted, they do. */
static bool
may_extend_instances(struct filler *f, int32_t k, bool wanted, double *cost)
{
	const struct remat *r = f->pool->r;
	const struct schedule *w = f->pool->trial;
	int32_t end = f->inst[k + 1];

	*cost = 0;
	for (int32_t y = f->inst[k]; y < end; y++) {
		int32_t x = f->before[y], s = w->of_inst[y];
		int64_t size = r->store[s].size;

		if (w->first[y] < 0)
			continue;
		if (x < 0 || w->first[x] < 0 || f->shared[x] || f->held[s])
			return false;
		if (!may_hold(f, w->last[x] + 1, k, size))
			return false;
		*cost += (double)size * (k - w->last[x]);
	}
	for (int32_t y = f->inst[k]; wanted && y < end; y++) {
		int32_t x = f->before[y], s = w->of_inst[y];

		f->held[s] = true;
		hold(f, x < 0 ? k : w->last[x] + 1, k, r->store[s].size);
	}
	return true;
}

static int
by_seconds_saved(const void *a, const void *b)
{
	const struct spare *x = a, *y = b;

	if (x->worth < y->worth || x->worth > y->worth)
		return x->worth > y->worth ? -1 : 1;
	return x->step < y->step ? -1 : x->step > y->step;
}

/* The sequence tried last less clones that may go into d->steps; false: there
 * are none. */
static bool
remove_idle_copies(struct filler *f)
{
	const struct remat *r = f->pool->r;
	const struct schedule *w = f->pool->trial;
	struct step_list *out = f->steps;
	bool *gone = arena_array(f->arena, (size_t)w->nstep + 1, 1);
	bool any = false;
	double cost;

	find_before(f);
	find_most(f);
	f->inst[w->nstep] = w->ninst;
	f->spare = arena_array(f->arena, (size_t)w->nstep + 1,
	                       sizeof *f->spare);
	f->nspare = 0;
	for (int32_t k = 0; k < w->nstep; k++)
		if (w->step[k].makes
		    && may_extend_instances(f, k, false, &cost))
			f->spare[f->nspare++] = (struct spare){
				k, r->node[w->step[k].node].sec / (cost + 1) };
	qsort(f->spare, (size_t)f->nspare, sizeof *f->spare, by_seconds_saved);
	for (int32_t i = 0; i < f->nspare; i++)
		any |= gone[f->spare[i].step] =
			may_extend_instances(f, f->spare[i].step, true, &cost);
	out->n = 0;
	for (int32_t k = 0; k < w->nstep; k++) {
		const struct rstep *t = &w->step[k];

		if (!gone[k] && (!t->clone || t->makes)
		    && !steps_add(out, t->node, t->clone, t->makes))
			return false;
	}
	return any;
}

static void
fill_idle(struct filler *f, const struct known_plan *from, int64_t *work)
{
	struct plan_pool *pool = f->pool;
	struct remat_cost now = known_eval(pool->trial, from);

	for (int round = 0; round < ROUNDS && *work > 0
	     && !watch_over(pool->r->watch); round++) {
		struct remat_cost c = { 0, 0, 0, 0 };
		bool any;

		f->arena = arena_new();
		any = remove_idle_copies(f);
		arena_free(f->arena);
		*work -= 3 * pool->trial->nstep;
		if (any)
			c = pool_try_steps(pool, f->steps->step, f->steps->n);
		if (!any || c.live > f->budget || c.sec >= now.sec)
			break;
		now = c;
	}
}

void
recursive_fill(struct plan_pool *pool, struct step_list *steps, int64_t work)
{
	int64_t least = pool_smallest(pool)->live;

	for (int k = 0; k < GRID && least >= 0 && work > 0; k++) {
		struct filler f = { .pool = pool, .steps = steps,
		                    .budget = least + (pool->top - least)
		                              / GRID * (k + 1) };
		const struct known_plan *best = pool_best_live(pool, f.budget);
		struct known_plan from;

		if (!best)
			continue;
		from = *best;           /* the pool changes */
		fill_idle(&f, &from, &work);
	}
}
