/* Keep or recompute: the compact monotone 0-1 program.
 *
 * what    a lower bound on the seconds of recompute within an amount of
 *         memory, and plans that come close to it
 * method  x_j = 1: storage j is kept.  z_n,t: node n has been repeated at or
 *         before backward stage t (monotone in t); stages are the backward
 *         nodes that read a forward storage.
 *           first use:  x_j + z_def(j),first(j) >= 1
 *           operands:   z_n,t <= x_j + z_def(j),t   for every operand j of n
 *           memory:     kept + repeated early + what lives anyway <= M, one
 *                       row per node of the step, added when it is violated
 *         minimise the sum of sec_n z_n,end.  With x integral, z is too.
 *         z exists only at some stages of each node: near its first use at
 *         all, further away at wider and wider distances.
 * bound   every row is a relaxation of what remat_eval computes: between
 *         stages of z the memory row takes the earlier value and the operand
 *         row the later one; scratch and clones inside a stage, early clones
 *         of nodes with several outputs and packing losses are left out.  So
 *         no plan that repeats each node at most once, with backward in the
 *         given order, is faster (bound class "once").
 * cost    some thousand columns and rows for a dozen layers
 */
#include "passes/planner/remat_ilp.h"
#include "passes/planner/set_generators.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 40 };

/* ---- uses and stages ---- */

static void
find_storage_uses(struct model *m)
{
	const struct remat *r = m->r;

	for (NodeId i = 1; i < r->nnode; i++) {
		struct rnode *n = &r->node[i];
		bool stage = false;

		for (int k = 0; k < n->nread; k++)
			stage |= n->backward && forward(m, n->read[k]);
		m->nstage += stage;
		m->stage_of[i] = n->backward ? m->nstage - 1 : -1;
		for (int k = 0; k < n->nread; k++) {
			int32_t s = n->read[k];

			m->end[s] = i;
			if (!n->backward) {
				m->end_forward[s] = i;
			} else if (forward(m, s)) {
				if (m->first[s] < 0)
					m->first[s] = m->nstage - 1;
				m->last[s] = m->nstage - 1;
			}
		}
		for (int k = 0; k < n->nwrite; k++) {
			m->end[n->write[k]] = i;
			if (!n->backward)
				m->end_forward[n->write[k]] = i;
		}
	}
}

static bool
is_droppable(const struct model *m, int32_t s)
{
	return m->r->store[s].candidate && m->constraint[s] != 'k';
}

/* Latest stage at which each node may have to be repeated first. */
static void
find_repeat_ranges(struct model *m)
{
	const struct remat *r = m->r;

	for (NodeId i = r->nnode - 1; i >= 1; i--) {
		struct rnode *n = &r->node[i];

		m->hi[i] = -1;
		m->lo[i] = INT32_MAX;
		if (n->backward)
			continue;
		for (int k = 0; k < n->nwrite; k++) {
			int32_t s = n->write[k];

			if (!is_droppable(m, s))
				continue;
			if (m->first[s] > m->hi[i])
				m->hi[i] = m->first[s];
			if (m->first[s] >= 0 && m->first[s] < m->lo[i])
				m->lo[i] = m->first[s];
			for (int32_t u = m->use.at[s]; u < m->use.at[s + 1];
			     u++) {
				NodeId c = m->use.node[u];

				if (m->hi[c] > m->hi[i])
					m->hi[i] = m->hi[c];
				if (m->hi[c] >= 0 && m->lo[c] < m->lo[i])
					m->lo[i] = m->lo[c];
			}
		}
	}
}

/* ---- columns ---- */

/* Distances from the last stage: 0..12, then half as far again each time. */
static void
make_breaks(struct model *m, NodeId i)
{
	int32_t back[MAX_BREAK], n = 0;

	for (int32_t d = 0; m->hi[i] - d >= m->lo[i] && n < MAX_BREAK;
	     d = d < 12 ? d + 1 : d + d / 2)
		back[n++] = m->hi[i] - d;
	m->nbreak[i] = n;
	for (int32_t k = 0; k < n; k++) {
		m->at[i][k] = back[n - 1 - k];
		m->z[i][k] = new_col(m, 0, 1, k == n - 1
			? m->r->node[i].least_sec / m->unit_sec : 0, false);
	}
}

static void
make_model_columns(struct model *m)
{
	const struct remat *r = m->r;

	for (int32_t s = 0; s < r->nstore; s++) {
		m->x[s] = -1;
		if (is_droppable(m, s) && m->hi[r->store[s].def] >= 0)
			m->x[s] = new_col(m, 0, m->constraint[s] == 'r' ? 0 : 1,
			                  0, true);
	}
	for (NodeId i = 1; i < r->nnode; i++)
		if (m->hi[i] >= 0)
			make_breaks(m, i);
}

/* ---- rows ---- */

static void
make_logic(struct model *m)
{
	const struct remat *r = m->r;

	for (int32_t s = 0; s < r->nstore; s++)
		if (m->x[s] >= 0 && m->first[s] >= 0) {
			term(m, m->x[s], 1);
			term(m, z_up(m, r->store[s].def, m->first[s]), 1);
			end_row(m, 1, INFINITY);
		}
	for (NodeId i = 1; i < r->nnode; i++)
		for (int32_t k = 0; k < m->nbreak[i]; k++) {
			if (k > 0) {
				term(m, m->z[i][k], 1);
				term(m, m->z[i][k - 1], -1);
				end_row(m, 0, INFINITY);
			}
			for (int j = 0; j < r->node[i].nread; j++) {
				int32_t s = r->node[i].read[j];

				if (m->x[s] < 0)
					continue;
				term(m, m->x[s], 1);
				term(m, z_up(m, r->store[s].def,
				             m->at[i][k]), 1);
				term(m, m->z[i][k], -1);
				end_row(m, 0, INFINITY);
			}
		}
}

static struct model *
model_new(const struct remat *r, const uint8_t *constraint, int64_t memory,
          Arena *arena)
{
	struct model *m = arena_alloc(arena, sizeof *m);
	size_t n = r->nnode, k = (size_t)r->nstore + 1;

	m->r = r;
	m->constraint = constraint;
	m->arena = arena;
	m->ilp = ilp_new(arena);
	m->memory = memory;
	m->unit_sec = r->base_sec > 0 ? r->base_sec / 100 : 1;
	m->unit_bytes = memory > 0 ? (double)memory / 100 : 1;
	m->stage_of = arena_array(arena, n, 4);
	m->first = arena_array(arena, k, 4);
	m->last = arena_array(arena, k, 4);
	memset(m->first, -1, k * 4);
	memset(m->last, -1, k * 4);
	memset(m->stage_of, -1, 4);     /* node 0 */
	m->end_forward = arena_array(arena, k, sizeof *m->end);
	m->end = arena_array(arena, k, sizeof *m->end);
	m->x = arena_array(arena, k, 4);
	m->hi = arena_array(arena, n, 4);
	m->lo = arena_array(arena, n, 4);
	m->nbreak = arena_array(arena, n, 4);
	m->at = arena_array(arena, n, sizeof *m->at);
	m->z = arena_array(arena, n, sizeof *m->z);
	m->use = remat_readers(r, arena);
	m->point = arena_array(arena, n, sizeof *m->point);
	m->charged_to = arena_array(arena, n, sizeof *m->charged_to);
	m->wcol = arena_array(arena, n + 2, sizeof *m->wcol);
	m->col = arena_array(arena, 3 * k + 16, sizeof *m->col);
	m->coef = arena_array(arena, 3 * k + 16, sizeof *m->coef);
	find_storage_uses(m);
	find_repeat_ranges(m);
	make_model_columns(m);
	make_logic(m);
	model_points(m);
	return m;
}

/* Lower bound; adds rows until none is violated or the work is spent. */
static struct ilp_answer
relax_model(struct model *m)
{
	struct ilp_limit limit = { .pivots = 20000, .watch = m->r->watch };
	struct ilp_answer best = { ILP_NONE, 0, 0, NULL };

	for (int round = 0; round < ROUNDS && !watch_over(m->r->watch);
	     round++) {
		struct ilp_answer a = ilp_relax(m->ilp, &limit, m->arena);

		if (a.status == ILP_INFEASIBLE)
			return a;
		if (a.status != ILP_OPTIMAL)
			return best;
		best = a;
		m->value = a.x;
		if (!model_violated(m))
			break;
	}
	return best;
}

/* Seconds that an answer proves; 0: none. */
static double
proven_seconds(const struct model *m, const struct ilp_answer *a)
{
	if (a->status == ILP_INFEASIBLE)
		return INFINITY;
	return a->status != ILP_FAILED && a->bound > 0
		? a->bound * m->unit_sec : 0;
}

double
remat_bound(const struct remat *r, const uint8_t *constraint, int64_t memory,
            double sec, double gap, int64_t nodes)
{
	Arena *arena = arena_new();
	struct model *m = model_new(r, constraint, memory, arena);
	struct ilp_answer a = relax_model(m);
	double bound = proven_seconds(m, &a);

	if (a.status == ILP_OPTIMAL && sec - bound > gap && nodes > 0) {
		struct ilp_limit limit = { .nodes = nodes, .for_bound = true,
		                           .watch = r->watch };

		a = ilp_solve(m->ilp, &limit, arena);
		bound = fmax(bound, proven_seconds(m, &a));
	}
	ilp_free(m->ilp);
	arena_free(arena);
	return bound;
}

/* Round a solution to a plan and polish that. */
static void
round_to_plan(struct model *m, struct plan_pool *pool, const double *x,
              double threshold, int64_t evals)
{
	const struct remat *r = m->r;
	uint8_t *drop = arena_array(m->arena, (size_t)r->nstore + 1, 1);

	remat_keep_all(r, m->constraint, drop);
	for (int32_t s = 0; s < r->nstore; s++)
		if (m->x[s] >= 0)
			drop[s] = x[m->x[s]] < threshold;
	pool_try_set(pool, drop);
	remat_polish(pool, m->memory, evals, drop);
}

double
remat_ilp(struct plan_pool *pool, int64_t memory, double gap, int64_t nodes,
          int64_t evals)
{
	Arena *arena = arena_new();
	struct model *m = model_new(pool->r, pool->constraint, memory, arena);
	struct ilp_answer lp = relax_model(m);
	double bound = proven_seconds(m, &lp);
	struct known_plan *f;

	if (lp.status == ILP_OPTIMAL) {
		round_to_plan(m, pool, lp.x, 0.5, evals);
		round_to_plan(m, pool, lp.x, 0.9, evals);
	}
	f = pool_best_live(pool, memory);
	if (nodes > 0 && lp.status == ILP_OPTIMAL
	    && (!f || f->sec - bound > gap)) {
		struct ilp_limit limit = {
			.nodes = nodes, .gap = gap / m->unit_sec / 2,
			.watch = m->r->watch,
		};
		struct ilp_answer mip = ilp_solve(m->ilp, &limit, arena);

		if (mip.x)
			round_to_plan(m, pool, mip.x, 0.5, evals);
		bound = fmax(bound, proven_seconds(m, &mip));
	}
	ilp_free(m->ilp);
	arena_free(arena);
	return bound;
}
