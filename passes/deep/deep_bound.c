/* Keep or recompute: a bound for plans that repeat nodes as often as they
 * like.
 *
 * what    seconds of copies below which no plan gets within an amount of
 *         memory
 * method  A few nodes of backward, the first one among them, are the moments
 *         t_1 < t_2 < ...; interval i begins with the run of t_i and ends
 *         before that of t_i+1.  Of any plan let
 *           x_i,j = 1: some writing of storage j is in memory while t_i runs
 *           y_i,n = 1: a copy of node n runs in interval i.
 *         What is read is what was written last before, so that
 *           t_i reads j:                  x_i,j = 1
 *           others of i read j:           x_i,j + y_i,def(j) >= 1
 *           operands j of copies:         y_i,n <= x_i,j + y_i,def(j)
 *           from moment to moment:        x_i+1,j <= x_i,j + y_i,def(j)
 *           memory while t_i runs:        sum size_j x_i,j <= M - fixed_i
 *         where fixed_i is what no plan can be without.  First runs of forward
 *         come before t_1.  A copy that t_i takes in stores nothing: there the
 *         first row is the second one.  The least sum of sec_n y_i,n, without
 *         integrality or as far as branch and bound gets, is the bound.
 * needs   backward in the given order; copies of forward nodes alone
 * cost    counted pivots and nodes; fewer moments where there are many nodes
 */
#include "passes/deep/deep.h"
#include "passes/solve/ilp.h"

#include <math.h>

enum { MOMENTS = 10, COLUMNS = 2500, PIVOTS = 20000 };

struct stages {
	const struct remat *r;
	Arena *arena;
	Ilp *ilp;
	int n;
	NodeId t[MOMENTS + 1];          /* t[n]: the end */
	int *x[MOMENTS], *y[MOMENTS];   /* columns by storage, by node; -1 */
	int *z;                         /* by node; -1 */
	NodeId *end;                    /* by storage: last reader */
	double unit_sec, unit_bytes;
	int *col;                       /* of the row of memory */
	double *coef;
};

/* ---- moments ---- */

/* Reads of forward storages by first runs of backward. */
static int
reads(const struct remat *r, NodeId id)
{
	int n = 0;

	for (int k = 0; r->node[id].backward && k < r->node[id].nread; k++)
		n += r->store[r->node[id].read[k]].candidate;
	return n;
}

/* Spread over what backward reads; the first node of backward is one. */
static bool
choose_moments(struct stages *m, int64_t most)
{
	const struct remat *r = m->r;
	int64_t all = 0, sum = 0;
	int64_t forward = 1;

	for (NodeId i = 1; i < r->g->nnode; i++) {
		all += reads(r, i);
		forward += !r->node[i].backward;
	}
	if (most > COLUMNS / (2 * forward))
		most = COLUMNS / (2 * forward);
	for (NodeId i = 1; i < r->g->nnode && m->n < most; i++) {
		if (!r->node[i].backward)
			continue;
		if (m->n == 0 || (reads(r, i) && sum * most >= all * m->n))
			m->t[m->n++] = i;
		sum += reads(r, i);
	}
	m->t[m->n] = (NodeId)r->g->nnode;
	return m->n > 0;
}

/* ---- the program ---- */

/* a + b - c >= lower; columns -1 are left out. */
static void
row(struct stages *m, double lower, int a, int b, int c)
{
	const int all[3] = { a, b, c };
	int col[3], n = 0;
	double coef[3];

	for (int i = 0; i < 3; i++)
		if (all[i] >= 0) {
			col[n] = all[i];
			coef[n++] = i < 2 ? 1 : -1;
		}
	ilp_row(m->ilp, lower, INFINITY, n, col, coef);
}

/* Column of the copy that makes storage s in interval i; -1: none can. */
static int
maker(const struct stages *m, int i, int32_t s)
{
	return m->y[i][m->r->store[s].def];
}

static void
add_columns(struct stages *m)
{
	const struct remat *r = m->r;

	for (int i = 0; i < m->n; i++) {
		m->x[i] = arena_array(m->arena, (size_t)r->nstore + 1,
		                      sizeof *m->x[i]);
		m->y[i] = arena_array(m->arena, r->g->nnode, sizeof *m->y[i]);
		for (int32_t s = 0; s < r->nstore; s++)
			m->x[i][s] = r->store[s].candidate
				? ilp_col(m->ilp, 0, 1, 0, true) : -1;
		for (NodeId n = 0; n < r->g->nnode; n++)
			m->y[i][n] = n && !r->node[n].backward
				&& r->node[n].clonable && r->node[n].nwrite > 0
				? ilp_col(m->ilp, 0, 1, r->node[n].least_sec
				          / m->unit_sec, true) : -1;
	}
}

/* Copies of a node in all intervals at once.  Without integrality the rows of
 * the intervals would let one byte that is kept stand for a share of a copy in
 * each of them. */
static void
add_total(struct stages *m)
{
	const struct remat *r = m->r;

	m->z = arena_array(m->arena, r->g->nnode, sizeof *m->z);
	for (NodeId n = 0; n < r->g->nnode; n++) {
		int col[MOMENTS + 1];
		double coef[MOMENTS + 1];

		m->z[n] = -1;
		if (m->y[0][n] < 0)
			continue;
		col[m->n] = m->z[n] = ilp_col(m->ilp, 0, 1, 0, false);
		coef[m->n] = -1;
		for (int i = 0; i < m->n; i++) {
			col[i] = m->y[i][n];
			coef[i] = 1;
		}
		ilp_row(m->ilp, 0, INFINITY, m->n + 1, col, coef);
	}
	for (NodeId id = 1; id < r->g->nnode; id++)
		for (int k = 0; k < r->node[id].nread; k++) {
			int32_t s = r->node[id].read[k];
			NodeId def = r->store[s].def;

			if (m->x[0][s] < 0)
				continue;
			if (r->node[id].backward)
				row(m, 1, m->x[0][s], m->z[def], -1);
			else if (m->z[id] >= 0)
				row(m, 0, m->x[0][s], m->z[def], m->z[id]);
		}
}

/* Everything of interval i that reads. */
static void
add_reads(struct stages *m, int i)
{
	const struct remat *r = m->r;

	for (NodeId id = 1; id < r->g->nnode; id++) {
		const struct rnode *n = &r->node[id];
		bool first = n->backward && id >= m->t[i] && id < m->t[i + 1];

		for (int k = 0; k < n->nread; k++) {
			int32_t s = n->read[k];
			bool stored = id == m->t[i]
				&& !r->node[r->store[s].def].inlinable;

			if (m->x[i][s] < 0)
				continue;
			if (first)
				row(m, 1, m->x[i][s], stored
				    ? -1 : maker(m, i, s), -1);
			else if (m->y[i][id] >= 0)
				row(m, 0, m->x[i][s], maker(m, i, s),
				    m->y[i][id]);
		}
	}
	for (int32_t s = 0; i > 0 && s < r->nstore; s++)
		if (m->x[i][s] >= 0)
			row(m, 0, m->x[i - 1][s], maker(m, i - 1, s),
			    m->x[i][s]);
}

/* What is in memory while t_i runs whatever the plan: what copies cannot make
 * and is read from there on, scratch, and outputs that have bytes of their
 * own. */
static int64_t
fixed_bytes(const struct stages *m, int i)
{
	const struct remat *r = m->r;
	const struct rnode *n = &r->node[m->t[i]];
	int64_t sum = n->workspace;

	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *st = &r->store[s];

		if (!st->candidate && st->def < m->t[i]
		    && (st->output || m->end[s] >= m->t[i]))
			sum += st->size;
	}
	for (int k = 0; k < n->nwrite; k++)
		if (!n->npair)
			sum += r->store[n->write[k]].size;
	return sum;
}

static void
add_memory(struct stages *m, int i, int64_t memory)
{
	const struct remat *r = m->r;
	int n = 0;

	for (int32_t s = 0; s < r->nstore; s++)
		if (m->x[i][s] >= 0) {
			m->col[n] = m->x[i][s];
			m->coef[n++] = (double)r->store[s].size
				/ m->unit_bytes;
		}
	ilp_row(m->ilp, -INFINITY, (double)(memory - fixed_bytes(m, i))
	        / m->unit_bytes, n, m->col, m->coef);
}

static void
find_ends(struct stages *m)
{
	const struct remat *r = m->r;

	m->end = arena_array(m->arena, (size_t)r->nstore + 1, sizeof *m->end);
	m->coef = arena_array(m->arena, (size_t)r->nstore + 1,
	                      sizeof *m->coef);
	m->col = arena_array(m->arena, (size_t)r->nstore + 1, sizeof *m->col);
	for (NodeId i = 1; i < r->g->nnode; i++)
		for (int k = 0; k < r->node[i].nread; k++) {
			int32_t s = r->node[i].read[k];

			if (r->node[i].backward || m->end[s] == 0)
				m->end[s] = i;
		}
}

static double
solve(const struct remat *r, int64_t memory, int moments, int64_t nodes)
{
	Arena *arena = arena_new();
	struct ilp_limit limit = { .pivots = PIVOTS, .watch = r->watch };
	struct stages m = {
		.r = r, .arena = arena, .unit_sec = r->base_sec / 100,
		.unit_bytes = (double)memory / 1000 + 1,
	};
	double bound = 0;

	if (r->base_sec > 0 && !watch_over(r->watch)
	    && choose_moments(&m, moments)) {
		struct ilp_answer a;

		find_ends(&m);
		m.ilp = ilp_new(arena);
		add_columns(&m);
		add_total(&m);
		for (int i = 0; i < m.n; i++) {
			add_reads(&m, i);
			add_memory(&m, i, memory);
		}
		a = ilp_relax(m.ilp, &limit, arena);
		if (a.status == ILP_OPTIMAL) {
			bound = a.bound;
			limit.nodes = nodes;
			limit.for_bound = true;
			a = ilp_solve(m.ilp, &limit, arena);
			if (a.status != ILP_FAILED && a.bound > bound)
				bound = a.bound;
		}
		ilp_free(m.ilp);
	}
	arena_free(arena);
	return isfinite(bound) && bound > 0 ? bound * m.unit_sec : 0;
}

/* Two moments are few enough for branch and bound to come far; many say more
 * where memory is short. */
double
deep_bound(const struct remat *r, int64_t memory)
{
	return fmax(solve(r, memory, 2, 300), solve(r, memory, MOMENTS, 100));
}
