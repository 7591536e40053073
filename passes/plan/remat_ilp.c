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
 *         row the later one; scratch and copies inside a stage, early copies
 *         of nodes with several outputs and packing losses are left out.  So
 *         no plan that repeats each node at most once, with backward in the
 *         given order, is faster (bound class "once").
 * cost    some thousand columns and rows for a dozen layers
 */
#include "passes/solve/ilp.h"
#include "passes/problem/remat.h"

#include <math.h>
#include <string.h>

enum { MAX_BREAK = 40, ROUNDS = 40, ROWS_PER_ROUND = 6 };

struct point {                          /* a place for a memory row */
	NodeId node;
	int32_t stage;                  /* -1: forward */
	bool after;                     /* the stage itself is over */
	int64_t fixed;
	bool used;
};

struct model {
	struct remat *r;
	const uint8_t *must;
	Arena *arena;
	Ilp *ilp;
	double unit_sec, unit_bytes;
	int64_t memory;
	int32_t nstage;
	int32_t *stage_of;              /* by node: last stage begun; -1 */
	int32_t *first, *last;          /* stages of direct uses, by storage */
	NodeId *end_forward;            /* last forward node that touches it */
	NodeId *end;                    /* last node that touches it */
	int32_t *x;                     /* column by storage; -1 */
	int32_t *hi, *lo;               /* stages by node; hi -1: never again */
	int32_t *nbreak;
	int32_t (*at)[MAX_BREAK];       /* stages of z, ascending, by node */
	int32_t (*z)[MAX_BREAK];        /* columns of z */
	int32_t **user;                 /* by storage: forward nodes reading */
	int32_t *nuser;
	struct point *point;
	int32_t npoint;
	int ncol, nrow;
	int *col;                       /* row under construction */
	double *coef;
	int len;
	double *value;                  /* of columns, last solution */
	int32_t *leaner;                /* by node: storage + 1 that leans */
	int *wcol;
	int wlen;
	double extra;
};

/* May be made again without being stored. */
static bool
inlinable(const struct model *m, int32_t s)
{
	return m->r->node[m->r->store[s].def].inlinable;
}

static bool
forward(const struct model *m, int32_t s)
{
	return !m->r->node[m->r->store[s].def].backward;
}

/* ---- uses and stages ---- */

static void
find_uses(struct model *m)
{
	struct remat *r = m->r;

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
				m->nuser[s]++;
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
	for (int32_t s = 0; s < r->nstore; s++)
		m->user[s] = arena_array(m->arena, (size_t)m->nuser[s] + 1, 4);
	memset(m->nuser, 0, (size_t)r->nstore * 4);
	for (NodeId i = 1; i < r->nnode; i++)
		for (int k = 0; k < r->node[i].nread
		     && !r->node[i].backward; k++) {
			int32_t s = r->node[i].read[k];

			m->user[s][m->nuser[s]++] = (int32_t)i;
		}
}

static bool
droppable(const struct model *m, int32_t s)
{
	return m->r->store[s].candidate && m->must[s] != 'k';
}

/* Latest stage at which each node may have to be repeated first. */
static void
find_ranges(struct model *m)
{
	struct remat *r = m->r;

	for (NodeId i = r->nnode - 1; i >= 1; i--) {
		struct rnode *n = &r->node[i];

		m->hi[i] = -1;
		m->lo[i] = INT32_MAX;
		if (n->backward)
			continue;
		for (int k = 0; k < n->nwrite; k++) {
			int32_t s = n->write[k];

			if (!droppable(m, s))
				continue;
			if (m->first[s] > m->hi[i])
				m->hi[i] = m->first[s];
			if (m->first[s] >= 0 && m->first[s] < m->lo[i])
				m->lo[i] = m->first[s];
			for (int u = 0; u < m->nuser[s]; u++) {
				int32_t c = m->user[s][u];

				if (m->hi[c] > m->hi[i])
					m->hi[i] = m->hi[c];
				if (m->hi[c] >= 0 && m->lo[c] < m->lo[i])
					m->lo[i] = m->lo[c];
			}
		}
	}
}

/* ---- columns ---- */

static int
new_col(struct model *m, double lower, double upper, double cost, bool integer)
{
	m->ncol++;
	return ilp_col(m->ilp, lower, upper, cost, integer);
}

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
make_columns(struct model *m)
{
	struct remat *r = m->r;

	for (int32_t s = 0; s < r->nstore; s++) {
		m->x[s] = -1;
		if (droppable(m, s) && m->hi[r->store[s].def] >= 0)
			m->x[s] = new_col(m, 0, m->must[s] == 'r' ? 0 : 1, 0,
			                  true);
	}
	for (NodeId i = 1; i < r->nnode; i++)
		if (m->hi[i] >= 0)
			make_breaks(m, i);
}

/* Column of z at the first of its stages >= t. */
static int
z_up(const struct model *m, NodeId n, int32_t t)
{
	for (int32_t k = 0; k < m->nbreak[n]; k++)
		if (m->at[n][k] >= t)
			return m->z[n][k];
	return m->z[n][m->nbreak[n] - 1];
}

/* Column of z at the last of its stages <= t, or -1 if there is none. */
static int
z_down(const struct model *m, NodeId n, int32_t t)
{
	for (int32_t k = m->nbreak[n] - 1; k >= 0; k--)
		if (m->at[n][k] <= t)
			return m->z[n][k];
	return -1;
}

/* ---- rows ---- */

static void
term(struct model *m, int col, double coef)
{
	m->col[m->len] = col;
	m->coef[m->len++] = coef;
}

static void
end_row(struct model *m, double lower, double upper)
{
	ilp_row(m->ilp, lower, upper, m->len, m->col, m->coef);
	m->nrow++;
	m->len = 0;
}

static void
make_logic(struct model *m)
{
	struct remat *r = m->r;

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

/* Whether some output of node i may lie in the bytes of storage `in`, and
 * which: such an output costs nothing at its own step. */
static bool
may_share(const struct model *m, const struct rnode *n, int32_t out)
{
	for (int i = 0; i < n->npair; i++) {
		int32_t in = n->pair[2 * i + 1];

		/* a forward value dies here unless it is needed later */
		if (n->pair[2 * i] == out
		    && (m->end[in] == n->node
		        || (!n->backward && m->end_forward[in] == n->node)))
			return true;
	}
	return false;
}

/* What lives at the point in every plan. */
static int64_t
fixed_bytes(const struct model *m, const struct point *p)
{
	const struct remat *r = m->r;
	const struct rnode *n = &r->node[p->node];
	int64_t sum = n->workspace;

	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *st = &r->store[s];
		bool alive;

		if (st->def > p->node)
			continue;
		if (st->def == p->node)
			alive = !may_share(m, n, s);
		else if (st->output)
			alive = true;
		else if (!forward(m, s))
			alive = m->end[s] >= p->node;
		else if (p->stage < 0)
			alive = m->end_forward[s] >= p->node
				|| (m->x[s] < 0 && m->end[s] >= p->node);
		else if (m->x[s] < 0 && !st->candidate)
			alive = m->end[s] >= p->node;
		else
			alive = m->first[s] >= 0
				&& (m->x[s] < 0 || (m->first[s] <= p->stage
				                    && !inlinable(m, s)))
				&& m->last[s] >= p->stage + p->after;
		if (alive)
			sum += st->size;
	}
	return sum;
}

static void
make_points(struct model *m)
{
	const struct remat *r = m->r;

	/* fewer rows make a weaker bound, and no wrong one */
	for (NodeId i = 1; i < r->nnode && !watch_over(r->watch); i++) {
		struct point *p = &m->point[m->npoint++];

		p->node = i;
		p->stage = r->node[i].backward ? m->stage_of[i] : -1;
		p->after = p->stage >= 0 && m->stage_of[i - 1] == p->stage;
		p->fixed = fixed_bytes(m, p);
	}
}

/* A storage j that only repeats read is in memory while it is kept and none of
 * its readers has been repeated:  a >= x_j - sum of z_c.  Where z_c has no
 * stage at this point, the earlier one serves if the reader's own output is
 * still to be used first: somewhere in between the reader is repeated, before
 * that j is there, afterwards the copy, so that the smaller of the two always
 * is.  One j may lean on a reader that way, or the copy would count twice.
 * Returns the bytes; the row's columns but a in m->wcol, m->wlen of them. */
static int64_t
waiting(struct model *m, int32_t j, int32_t stage)
{
	const struct remat *r = m->r;
	int64_t size = r->store[j].size;
	bool lean = true;

	m->wlen = 0;
	for (int u = 0; u < m->nuser[j]; u++) {
		NodeId c = (NodeId)m->user[j][u];

		if (m->hi[c] < 0)
			continue;
		lean = m->leaner[c] == 0 || m->leaner[c] == j + 1;
		if (r->node[c].nwrite == 1 && lean
		    && m->first[r->node[c].write[0]] > stage) {
			int32_t d = r->node[c].write[0];
			int z = z_down(m, c, stage);

			m->leaner[c] = j + 1;
			if (r->store[d].size < size)
				size = r->store[d].size;
			if (z >= 0)
				m->wcol[m->wlen++] = z;
		} else {
			m->wcol[m->wlen++] = z_up(m, c, stage);
		}
	}
	return size;
}

/* The share of a waiting storage in a memory row: a new column, or its value
 * in the last solution. */
static void
waiting_term(struct model *m, int32_t s, int32_t stage, bool measure)
{
	double size = (double)waiting(m, s, stage) / m->unit_bytes;
	double value = 0;
	int n = m->wlen + 2;
	double *coef;

	if (measure) {
		value = m->value[m->x[s]];
		for (int i = 0; i < m->wlen; i++)
			value -= m->value[m->wcol[i]];
		m->extra += value > 0 ? value * size : 0;
		return;
	}
	coef = arena_array(m->arena, (size_t)n, sizeof *coef);
	for (int i = 0; i < n; i++)
		coef[i] = 1;
	coef[n - 1] = -1;
	m->wcol[n - 2] = new_col(m, 0, 1, 0, false);
	m->wcol[n - 1] = m->x[s];
	ilp_row(m->ilp, 0, INFINITY, n, m->wcol, coef);
	m->nrow++;
	term(m, m->wcol[n - 2], size);
}

/* Terms of what is kept or repeated early at the point. */
static void
memory_terms(struct model *m, const struct point *p, bool measure)
{
	const struct remat *r = m->r;

	memset(m->leaner, 0, r->nnode * sizeof *m->leaner);
	m->len = 0;
	m->extra = 0;
	for (int32_t s = 0; s < r->nstore; s++) {
		NodeId def = r->store[s].def;
		double size = (double)r->store[s].size / m->unit_bytes;

		if (m->x[s] < 0 || def >= p->node || size <= 0)
			continue;
		if (p->stage < 0) {
			if (m->end_forward[s] < p->node)
				term(m, m->x[s], size);
		} else if (m->first[s] > p->stage) {
			int z = z_down(m, def, p->stage);

			term(m, m->x[s], size);
			if (z >= 0 && r->node[def].nwrite == 1
			    && !inlinable(m, s))
				term(m, z, size);
		} else if (m->first[s] < 0 && m->hi[def] > p->stage) {
			waiting_term(m, s, p->stage, measure);
		} else if (inlinable(m, s)
		           && m->last[s] >= p->stage + p->after) {
			term(m, m->x[s], size);
		}
	}
}

static double
slack(struct model *m, struct point *p)
{
	double room = (double)(m->memory - p->fixed) / m->unit_bytes;

	memory_terms(m, p, true);
	for (int i = 0; i < m->len; i++)
		room -= m->coef[i] * m->value[m->col[i]];
	m->len = 0;
	return room - m->extra;
}

static void
add_memory_row(struct model *m, struct point *p)
{
	double room = (double)(m->memory - p->fixed) / m->unit_bytes;

	memory_terms(m, p, false);
	end_row(m, -INFINITY, room);
	p->used = true;
}

/* Add the most violated rows; false if there is none. */
static bool
add_violated(struct model *m)
{
	double *room = arena_array(m->arena, (size_t)m->npoint + 1,
	                           sizeof *room);
	bool any = false;

	for (int32_t i = 0; i < m->npoint; i++)
		room[i] = m->point[i].used || watch_over(m->r->watch) ? 0
			: slack(m, &m->point[i]);
	for (int k = 0; k < ROWS_PER_ROUND; k++) {
		int32_t worst = -1;

		for (int32_t i = 0; i < m->npoint; i++)
			if (room[i] < -1e-7
			    && (worst < 0 || room[i] < room[worst]))
				worst = i;
		if (worst < 0)
			break;
		add_memory_row(m, &m->point[worst]);
		/* its neighbours say nearly the same */
		for (int32_t i = worst - 4; i <= worst + 4; i++)
			if (i >= 0 && i < m->npoint)
				room[i] = 0;
		any = true;
	}
	return any;
}

static struct model *
model_new(struct remat *r, const uint8_t *must, int64_t memory, Arena *arena)
{
	struct model *m = arena_alloc(arena, sizeof *m);
	size_t n = r->nnode, k = (size_t)r->nstore + 1;

	m->r = r;
	m->must = must;
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
	m->user = arena_array(arena, k, sizeof *m->user);
	m->nuser = arena_array(arena, k, 4);
	m->point = arena_array(arena, n, sizeof *m->point);
	m->leaner = arena_array(arena, n, sizeof *m->leaner);
	m->wcol = arena_array(arena, n + 2, sizeof *m->wcol);
	m->col = arena_array(arena, 3 * k + 16, sizeof *m->col);
	m->coef = arena_array(arena, 3 * k + 16, sizeof *m->coef);
	find_uses(m);
	find_ranges(m);
	make_columns(m);
	make_logic(m);
	make_points(m);
	return m;
}

/* Lower bound; adds rows until none is violated or the work is spent. */
static struct ilp_answer
relax(struct model *m)
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
		if (!add_violated(m))
			break;
	}
	return best;
}

double
remat_bound(struct remat *r, const uint8_t *must, int64_t memory, double sec,
            double gap, int64_t nodes)
{
	Arena *arena = arena_new();
	struct model *m = model_new(r, must, memory, arena);
	struct ilp_answer a = relax(m);
	double bound = a.status == ILP_INFEASIBLE ? INFINITY
		: a.bound > 0 ? a.bound * m->unit_sec : 0;

	if (a.status == ILP_OPTIMAL && sec - bound > gap && nodes > 0) {
		struct ilp_limit limit = { .nodes = nodes, .for_bound = true,
		                           .watch = r->watch };

		a = ilp_solve(m->ilp, &limit, arena);
		if (a.status != ILP_FAILED && a.bound * m->unit_sec > bound)
			bound = a.bound * m->unit_sec;
	}
	ilp_free(m->ilp);
	arena_free(arena);
	return bound;
}

/* Round a solution to a plan and polish that. */
static void
take(struct model *m, struct archive *a, const double *x, double threshold,
     int64_t evals)
{
	const struct remat *r = m->r;
	uint8_t *drop = arena_array(m->arena, (size_t)r->nstore + 1, 1);

	remat_keep_all(r, m->must, drop);
	for (int32_t s = 0; s < r->nstore; s++)
		if (m->x[s] >= 0)
			drop[s] = x[m->x[s]] < threshold;
	archive_try(a, drop);
	remat_polish(a, m->memory, evals, drop);
}

double
remat_ilp(struct archive *a, int64_t memory, double gap, int64_t nodes,
          int64_t evals)
{
	Arena *arena = arena_new();
	struct model *m = model_new(a->known.r, a->must, memory, arena);
	struct ilp_answer lp = relax(m);
	double bound = lp.status == ILP_INFEASIBLE ? INFINITY
		: lp.bound > 0 ? lp.bound * m->unit_sec : 0;
	struct found *f;

	if (lp.status == ILP_OPTIMAL) {
		take(m, a, lp.x, 0.5, evals);
		take(m, a, lp.x, 0.9, evals);
	}
	f = shelf_live(&a->known, memory);
	if (nodes > 0 && lp.status == ILP_OPTIMAL
	    && (!f || f->sec - bound > gap)) {
		struct ilp_limit limit = {
			.nodes = nodes, .gap = gap / m->unit_sec / 2,
			.watch = m->r->watch,
		};
		struct ilp_answer mip = ilp_solve(m->ilp, &limit, arena);

		if (mip.x)
			take(m, a, mip.x, 0.5, evals);
		if (mip.bound * m->unit_sec > bound
		    && mip.status != ILP_FAILED)
			bound = mip.bound * m->unit_sec;
	}
	ilp_free(m->ilp);
	arena_free(arena);
	return bound;
}
