/* The 0-1 stage program: its columns and rows. */
#include "passes/recursive/stage_program.h"

#include <math.h>

/* ---- order ---- */

static void
find_after(struct stage_program *p)
{
	const struct remat *r = p->r;

	p->nword = r->nnode / 64 + 1;
	p->after = arena_array(p->arena, r->nnode * p->nword,
	                       sizeof *p->after);
	for (NodeId i = r->nnode - 1; i > 0; i--)
		for (int k = 0; k < r->node[i].nread; k++) {
			NodeId d = r->store[r->node[i].read[k]].def;
			uint64_t *own = p->after + d * p->nword;
			const uint64_t *his = p->after + i * p->nword;

			for (size_t j = i / 64; j < p->nword; j++)
				own[j] |= his[j];
			own[i / 64] |= UINT64_C(1) << i % 64;
		}
}

/* Last reader of storage s; 0: none. */
static NodeId
last_reader(const struct stage_program *p, int32_t s)
{
	int32_t to = p->readers.at[s + 1];

	return to > p->readers.at[s] ? p->readers.node[to - 1] : 0;
}

void
stages_index(struct stage_program *p)
{
	p->readers = remat_readers(p->r, p->arena);
	if (p->job->any_order)
		find_after(p);
}

/* ---- columns ---- */

/* Storage s while w_i runs. */
static int
column_of_storage(struct stage_program *p, int i, int32_t s)
{
	const struct storage *st = &p->r->store[s];
	NodeId w = p->w[i];

	if (!st->candidate || is_before(p, w, st->def))
		return ZERO;
	if (st->def == w || (node_reads(&p->r->node[w], s)
	                     && !p->r->node[st->def].inlinable))
		return ONE;
	return ilp_col(p->lp, 0, 1, 0, true);
}

/* Node v in stage i, which w_i begins (counted from 1) and w_i+1 ends. */
static int
column_of_node(struct stage_program *p, int i, NodeId v)
{
	const struct rnode *n = &p->r->node[v];
	NodeId from = i > 0 ? p->w[i - 1] : 0, to = i < p->n ? p->w[i] : 0;

	if (to && (v == to || is_before(p, to, v)))
		return ZERO;
	if (v == from || ((!from || is_before(p, from, v))
	                  && (!to || is_before(p, v, to))))
		return ONE;
	if (!p->after && (n->backward || !n->clonable || n->nwrite == 0))
		return ZERO;
	return ilp_col(p->lp, 0, 1, n->least_sec / p->unit_sec, true);
}

static void
add_stage_columns(struct stage_program *p)
{
	const struct remat *r = p->r;

	for (int i = 0; i <= p->n; i++) {
		if (i < p->n)
			p->x[i] = arena_array(p->arena, (size_t)r->nstore + 1,
			                      sizeof *p->x[i]);
		for (int32_t s = 0; i < p->n && s < r->nstore; s++)
			p->x[i][s] = column_of_storage(p, i, s);
		p->y[i] = arena_array(p->arena, r->nnode, sizeof *p->y[i]);
		for (NodeId v = 1; v < r->nnode; v++)
			p->y[i][v] = column_of_node(p, i, v);
	}
}

/* ---- rows ---- */

/* a <= b + c, where they are variables. */
static void
add_sum_bound(struct stage_program *p, int a, int b, int c)
{
	int col[3], n = 0;
	double coef[3];

	if (a == ZERO || b == ONE || c == ONE)
		return;
	if (a >= 0) {
		col[n] = a;
		coef[n++] = 1;
	}
	for (int k = 0; k < 2; k++)
		if ((k ? c : b) >= 0) {
			col[n] = k ? c : b;
			coef[n++] = -1;
		}
	ilp_row(p->lp, -INFINITY, a == ONE ? -1 : 0, n, col, coef);
}

/* The variables among y_from.., v, and whether it runs in any case. */
static bool
list_runs(const struct stage_program *p, int from, NodeId v, int *col, int *n)
{
	bool sure = false;

	*n = 0;
	for (int i = from; i <= p->n; i++) {
		sure |= p->y[i][v] == ONE;
		if (p->y[i][v] >= 0)
			col[(*n)++] = p->y[i][v];
	}
	return sure;
}

/* Every node runs; and clones of a node in all stages at once. */
static void
add_totals(struct stage_program *p)
{
	const struct remat *r = p->r;
	double coef[STAGES_MAX + 2];
	int col[STAGES_MAX + 2], n;

	for (int k = 0; k < STAGES_MAX + 2; k++)
		coef[k] = 1;
	p->z = arena_array(p->arena, r->nnode, sizeof *p->z);
	p->sure = 0;
	for (NodeId v = 1; v < r->nnode; v++) {
		if (!list_runs(p, 0, v, col, &n) && n > 0)
			ilp_row(p->lp, 1, INFINITY, n, col, coef);
		for (int i = 0; i <= p->n; i++)
			p->sure += p->y[i][v] == ONE ? r->node[v].sec : 0;
		p->z[v] = list_runs(p, 1, v, col, &n) ? ONE : ZERO;
		if (p->z[v] == ONE || n == 0 || p->after)
			continue;
		p->z[v] = col[n] = ilp_col(p->lp, 0, 1, 0, false);
		coef[n] = -1;
		ilp_row(p->lp, 0, INFINITY, n + 1, col, coef);
		coef[n] = 1;
	}
	for (NodeId v = 1; !p->after && v < r->nnode; v++)
		for (int k = 0; k < r->node[v].nread; k++) {
			int32_t s = r->node[v].read[k];

			if (r->store[s].candidate)
				add_sum_bound(p, p->z[v], p->x[0][s],
				              p->z[r->store[s].def]);
		}
}

/* What stage i reads, and what is left at the next stage. */
static void
add_reads(struct stage_program *p, int i)
{
	const struct remat *r = p->r;

	for (NodeId v = 1; v < r->nnode; v++)
		for (int k = 0; k < r->node[v].nread; k++) {
			int32_t s = r->node[v].read[k];

			if (r->store[s].candidate)
				add_sum_bound(p, p->y[i][v], i ? p->x[i - 1][s]
				              : ZERO, p->y[i][r->store[s].def]);
		}
	for (int32_t s = 0; i < p->n && s < r->nstore; s++)
		if (r->store[s].def != p->w[i])
			add_sum_bound(p, p->x[i][s], i ? p->x[i - 1][s] : ZERO,
			              p->y[i][r->store[s].def]);
}

/* In memory while w_i runs whatever the plan: what cannot be made again and is
 * read from there on, scratch, and outputs that have bytes of their own. */
static int64_t
forced_bytes(const struct stage_program *p, int i)
{
	const struct remat *r = p->r;
	const struct rnode *n = &r->node[p->w[i]];
	int64_t sum = n->workspace;

	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *st = &r->store[s];

		if (!st->candidate && st->def < p->w[i]
		    && (st->output || last_reader(p, s) >= p->w[i]))
			sum += st->size;
	}
	for (int k = 0; k < n->nwrite; k++)
		if (!n->npair && !r->store[n->write[k]].candidate)
			sum += r->store[n->write[k]].size;
	return sum;
}

static void
add_memory(struct stage_program *p, int i)
{
	const struct remat *r = p->r;
	size_t most = (size_t)r->nstore + 1;
	int *col = arena_array(p->arena, most, sizeof *col), n = 0;
	double *coef = arena_array(p->arena, most, sizeof *coef);
	int64_t free_bytes = p->job->memory - forced_bytes(p, i);

	for (int32_t s = 0; s < r->nstore; s++) {
		int64_t size = r->store[s].size;

		if (p->x[i][s] == ONE)
			free_bytes -= size;
		if (p->x[i][s] < 0 || size == 0)
			continue;
		col[n] = p->x[i][s];
		coef[n++] = (double)size / p->unit_bytes;
	}
	ilp_row(p->lp, -INFINITY, (double)free_bytes / p->unit_bytes, n, col,
	        coef);
}

void
stages_fill(struct stage_program *p)
{
	add_stage_columns(p);
	add_totals(p);
	for (int i = 0; i <= p->n; i++) {
		add_reads(p, i);
		if (i < p->n)
			add_memory(p, i);
	}
}
