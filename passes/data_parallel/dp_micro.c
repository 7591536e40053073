/* Rules of pass replicate for micro-batches (DP_MICRO) and totals over them. */
#include "passes/data_parallel/dp_partition.h"

static bool
is_linear_in(Op op, int k)
{
	return k < 3 && op_info[op].flags & (uint64_t)F_LIN0 << k;
}

int
dp_remaining_summand(const struct dp_partition *d, const Node *n)
{
	int found = -1, summands = 0;

	if (!dp_is_micro(d))
		return -1;
	for (int k = 0; k < n->nin; k++) {
		bool grad = n->in[k] >= d->nold_val || d->grad[n->in[k]];

		if (!dp_has_kind(d, n->in[k], PLACEMENT_PARTIAL))
			continue;
		summands++;
		if (is_linear_in(n->op, k) && (grad || found < 0))
			found = k;
	}
	return summands > 1 ? found : -1;
}

bool
dp_infer_statistics(const struct dp_partition *d, const Node *n, Placement *out)
{
	const Placement *x = dp_placement(d, n->in[0]);

	if (n->op != OP_BATCHNORM || !dp_is_micro(d)
	    || x->kind != PLACEMENT_SHARD || dp_has_own_channels(x))
		return false;
	for (int k = 0; k < n->nout; k++)
		out[k] = k ? (Placement){ .kind = PLACEMENT_REPLICATE_PARTIAL }
			   : *x;
	return true;
}

bool
dp_is_lookup(Op op)
{
	return op == OP_GATHER || op == OP_GATHER_ND || op == OP_SCATTER_ND
		|| op == OP_GATHER_ELEMENTS || op == OP_SCATTER_ELEMENTS
		|| op == OP_SELECTED;
}

/* The dim of samples, or of samples and what stands after them. */
static int
likely_sample_dim(const struct dp_partition *d, const Shape *s)
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
dp_assume_placement(struct dp_partition *d, NodeId id)
{
	Graph *g = d->g;
	const Node *n = &g->node[id];

	if (!dp_is_micro(d) || !dp_is_lookup(n->op))
		return false;
	for (int k = 0; k < n->nout; k++) {
		Val *v = &g->val[n->out[k]];
		int dim = likely_sample_dim(d, &v->shape);

		if (dim < 0 || !n->out[k])
			return false;
		v->placement = placement_dim(dim, DP_RANKS * v->shape.dim[dim]);
	}
	if (!d->assumed)
		d->assumed = arena_printf(d->p->keep, "node '%s' (%s)",
		                          node_label(g, n), node_type(g, n));
	return true;
}
