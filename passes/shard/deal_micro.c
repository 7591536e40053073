/* Rules of pass deal for micro-batches (DP_MICRO) and for totals over them. */
#include "passes/shard/deal.h"

bool
deal_total(struct deal *d, NodeId id)
{
	ValId v = d->g->node[id].in[1];

	v = deal_is(d, v, SPLIT_P) ? deal_sum(d, v, id) : v;
	d->g->node[id].in[1] = v;
	return v && deal_visit(d, id);
}

static bool
is_linear_in(Op op, int k)
{
	return k < 3 && op_info[op].flags & (uint64_t)F_LIN0 << k;
}

int
deal_remains(const struct deal *d, const Node *n)
{
	int found = -1, summands = 0;

	if (!deal_is_micro(d))
		return -1;
	for (int k = 0; k < n->nin; k++) {
		bool grad = n->in[k] >= d->noldval || d->grad[n->in[k]];

		if (!deal_is(d, n->in[k], SPLIT_P))
			continue;
		summands++;
		if (is_linear_in(n->op, k) && (grad || found < 0))
			found = k;
	}
	return summands > 1 ? found : -1;
}

bool
deal_statistics(const struct deal *d, const Node *n, Split *out)
{
	const Split *x = deal_state(d, n->in[0]);

	if (n->op != OP_BATCHNORM || !deal_is_micro(d) || x->kind != SPLIT_S)
		return false;
	for (int k = 0; k < n->nout; k++)
		out[k] = k ? (Split){ .kind = SPLIT_R } : *x;
	return true;
}

bool
deal_looks_up(Op op)
{
	return op == OP_GATHER || op == OP_GATHER_ND || op == OP_SCATTER_ND
		|| op == OP_GATHER_ELEMENTS || op == OP_SCATTER_ELEMENTS
		|| op == OP_SELECTED;
}

/* The dim of samples, or of samples and what stands behind them. */
static int
likely_dim(const struct deal *d, const Shape *s)
{
	for (int i = 0; i < s->rank; i++)
		if (s->dim[i] == d->samples)
			return i;
	for (int i = 0; i < s->rank; i++)
		if (d->samples > 1 && s->dim[i] % d->samples == 0)
			return i;
	return -1;
}

bool
deal_guess(struct deal *d, NodeId id)
{
	Graph *g = d->g;
	const Node *n = &g->node[id];
	const char *label = node_label(g, n);

	if (!deal_is_micro(d) || !deal_looks_up(n->op))
		return false;
	for (int k = 0; k < n->nout; k++) {
		Val *v = &g->val[n->out[k]];
		int dim = likely_dim(d, &v->shape);

		if (dim < 0 || !n->out[k])
			return false;
		v->split = split_cut(dim, DEAL_RANKS * v->shape.dim[dim]);
	}
	if (!d->guess)
		d->guess = arena_printf(d->p->keep, "node '%s' (%s)", label
		                        ? label : g->val[n->out[0]].name,
		                        node_type(g, n));
	return true;
}
