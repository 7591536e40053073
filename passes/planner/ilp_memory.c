/* Memory rows of the monotone 0-1 program.
 *
 * what    for every node of the step what is in memory there in any plan, and
 *         what the program's columns put there; rows for those places where
 *         the last solution has too much
 */
#include "passes/planner/remat_ilp.h"

#include <math.h>
#include <string.h>

enum { ROWS_PER_ROUND = 6 };

/* Whether some output of node i may lie in the bytes of storage `in`, and
 * which: such an output costs nothing at its own step. */
static bool
may_overlay(const struct model *m, const struct rnode *n, int32_t out)
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

/* What backward makes for phase weight, or the like, may lie in the bytes of
 * what forward has made: where slots are few, both count once. */
static int64_t
other_weight_slots(const struct remat *r)
{
	int64_t n = r->through_slots - (r->slots > 1 ? r->slots : 1);

	return n < r->weight_slots - 1 ? n : r->weight_slots - 1;
}

/* Slots of other micro-batches that have the storage if it is dropped: made
 * again for backward, it lives on to phase weight. */
static int64_t
slots_if_dropped(const struct model *m, int32_t s)
{
	const struct storage *st = &m->r->store[s];

	return m->r->weight_slots && st->late && st->early && !inlinable(m, s)
		? other_weight_slots(m->r) : 0;
}

/* What lies in the other micro-batches' slots in every plan. */
static int64_t
least_slots(const struct model *m)
{
	const struct remat *r = m->r;
	int64_t sum = 0;

	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *st = &r->store[s];

		if (forward(m, s) && m->x[s] < 0
		    && (st->output || m->first[s] >= 0))
			sum += remat_other_slots(r, s) * st->size;
		if (r->weight_slots && !forward(m, s)
		    && !r->node[st->def].late && st->late)
			sum += other_weight_slots(r) * st->size;
		if (m->x[s] >= 0)
			sum += slots_if_dropped(m, s) * st->size;
	}
	return sum;
}

/* What lives at the point in every plan. */
static int64_t
bytes_at_point(const struct model *m, const struct point *p)
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
			alive = !may_overlay(m, n, s);
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

void
model_points(struct model *m)
{
	const struct remat *r = m->r;
	int64_t slots = least_slots(m);

	/* fewer rows make a weaker bound, and no wrong one */
	for (NodeId i = 1; i < r->nnode && !watch_over(r->watch); i++) {
		struct point *p = &m->point[m->npoint++];

		p->node = i;
		p->stage = r->node[i].backward ? m->stage_of[i] : -1;
		p->after = p->stage >= 0 && m->stage_of[i - 1] == p->stage;
		p->fixed = bytes_at_point(m, p) + slots;
	}
}

/* A storage j that only repeats read is in memory while it is kept and none of
 * its readers has been repeated:  a >= x_j - sum of z_c.  Where z_c has no
 * stage at this point, the earlier one serves if the reader's own output is
 * still to be used first: somewhere in between the reader is repeated, before
 * that j is there, afterwards the clone, so that the smaller of the two always
 * is.  One j may be charged to a reader that way, or the clone would count
 * twice.
 * Returns the bytes; the row's columns but a in m->wcol, m->wlen of them. */
static int64_t
pending_bytes(struct model *m, int32_t j, int32_t stage)
{
	const struct remat *r = m->r;
	int64_t size = r->store[j].size;
	bool may_charge = true;

	m->wlen = 0;
	for (int32_t u = m->use.at[j]; u < m->use.at[j + 1]; u++) {
		NodeId c = m->use.node[u];

		if (m->hi[c] < 0)
			continue;
		may_charge = m->charged_to[c] == 0 || m->charged_to[c] == j + 1;
		if (r->node[c].nwrite == 1 && may_charge
		    && m->first[r->node[c].write[0]] > stage) {
			int32_t d = r->node[c].write[0];
			int z = z_down(m, c, stage);

			m->charged_to[c] = j + 1;
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
pending_term(struct model *m, int32_t s, int32_t stage, bool measure)
{
	double size = (double)pending_bytes(m, s, stage) / m->unit_bytes;
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

/* Whether storage s is in memory at the point if it is kept; z: or if its node
 * has been repeated, the column of that; -1. */
static bool
is_there_if_kept(struct model *m, const struct point *p, int32_t s,
                 bool measure, int *z)
{
	const struct rnode *def = &m->r->node[m->r->store[s].def];

	*z = -1;
	if (def->node >= p->node)
		return false;
	if (p->stage < 0)
		return m->end_forward[s] < p->node;
	if (m->first[s] > p->stage) {
		if (def->nwrite == 1 && !inlinable(m, s))
			*z = z_down(m, def->node, p->stage);
		return true;
	}
	if (m->first[s] < 0 && m->hi[def->node] > p->stage) {
		pending_term(m, s, p->stage, measure);
		return false;
	}
	return inlinable(m, s) && m->last[s] >= p->stage + p->after;
}

/* Terms of what is kept or repeated early at the point. */
static void
memory_terms(struct model *m, const struct point *p, bool measure)
{
	const struct remat *r = m->r;

	memset(m->charged_to, 0, r->nnode * sizeof *m->charged_to);
	m->len = 0;
	m->extra = 0;
	for (int32_t s = 0; s < r->nstore; s++) {
		double size = (double)r->store[s].size / m->unit_bytes;
		int64_t times;
		int z;

		if (m->x[s] < 0 || size <= 0)
			continue;
		times = is_there_if_kept(m, p, s, measure, &z)
			+ remat_other_slots(r, s) - slots_if_dropped(m, s);
		if (times > 0)
			term(m, m->x[s], (double)times * size);
		if (z >= 0)
			term(m, z, size);
	}
}

static double
row_slack(struct model *m, struct point *p)
{
	double slack = (double)(m->memory - p->fixed) / m->unit_bytes;

	memory_terms(m, p, true);
	for (int i = 0; i < m->len; i++)
		slack -= m->coef[i] * m->value[m->col[i]];
	m->len = 0;
	return slack - m->extra;
}

static void
add_memory_row(struct model *m, struct point *p)
{
	double slack = (double)(m->memory - p->fixed) / m->unit_bytes;

	memory_terms(m, p, false);
	end_row(m, -INFINITY, slack);
	p->used = true;
}

bool
model_violated(struct model *m)
{
	double *slack = arena_array(m->arena, (size_t)m->npoint + 1,
	                            sizeof *slack);
	bool any = false;

	for (int32_t i = 0; i < m->npoint; i++)
		slack[i] = m->point[i].used || watch_over(m->r->watch) ? 0
			: row_slack(m, &m->point[i]);
	for (int k = 0; k < ROWS_PER_ROUND; k++) {
		int32_t worst = -1;

		for (int32_t i = 0; i < m->npoint; i++)
			if (slack[i] < -1e-7
			    && (worst < 0 || slack[i] < slack[worst]))
				worst = i;
		if (worst < 0)
			break;
		add_memory_row(m, &m->point[worst]);
		/* its neighbours say nearly the same */
		for (int32_t i = worst - 4; i <= worst + 4; i++)
			if (i >= 0 && i < m->npoint)
				slack[i] = 0;
		any = true;
	}
	return any;
}

