/* Why a batch cannot be split over replicas. */
#include "passes/data_parallel/dp_partition.h"

/* One sample looks like any other dim of extent 1. */
const char *
dp_remedy(const struct dp_partition *d)
{
	bool one = d->samples == 1;

	if (d->g->halves == HALVES_ONE)
		return one ? "; try: --halves off, or two samples or more in "
		             "each half" : "; try: --halves off";
	return d->p->opt->dp <= DP_TRY ? ""
		: one ? "; try: --dp off, or two samples or more per batch"
		: "; try: --dp off";
}

const char *
dp_parts(const struct dp_partition *d)
{
	return d->g->halves == HALVES_ONE ? "into halves" : "over replicas";
}

bool
dp_refuse(struct dp_partition *d, NodeId id, const char *why)
{
	const Graph *g = d->g;
	const Node *n = &g->node[id];
	const char *label = node_label(g, n), *type = node_type(g, n);

	if (d->p->opt->dp <= DP_SUMS)
		return diag_error(d->p->diag, "node '%s' (%s) mixes samples of "
		                  "a batch: %s%s", label, type, why,
		                  dp_mean_hint(d, n));
	return diag_error(d->p->diag, "node '%s' (%s): cannot split the batch "
	                  "%s: %s%s%s", label, type, dp_parts(d), why,
	                  dp_mean_hint(d, n), dp_remedy(d));
}

/* Where an operand has the samples. */
static const char *
describe_samples(const struct dp_partition *d, ValId v)
{
	const Placement *s = dp_placement(d, v);
	Arena *a = d->p->scratch;

	switch (s->kind) {
	case PLACEMENT_SHARD:
		return s->nsegment == 1
			? arena_printf(a, "has samples along dim %d", s->axis)
			: arena_printf(a, "has samples in %d segments of dim "
			               "%d", s->nsegment, s->axis);
	case PLACEMENT_PARTIAL:
		return "is a sum over samples";
	default:
		return "is the same for all samples";
	}
}

bool
dp_refuse_mixing(struct dp_partition *d, NodeId id)
{
	const Node *n = &d->g->node[id];
	Arena *a = d->p->scratch;
	const char *why = "the op combines samples:";
	char shape[SHARDING_WHY];

	for (int k = 0; k < n->nin; k++)
		if (dp_has_sample_index(d, n->in[k]))
			return dp_refuse(d, id, "it computes with sample "
			                 "indices, which each part of the "
			                 "batch counts from 0");
	for (int k = 0; k < n->nin && k < 4; k++) {
		const Val *v = &d->g->val[n->in[k]];

		if (n->in[k])
			why = arena_printf(a, "%s%s operand %d, %s, %s", why,
			                   k ? "," : "", k,
			                   shape_text(shape, sizeof shape,
			                              v->dt, &v->shape),
			                   describe_samples(d, n->in[k]));
	}
	return dp_refuse(d, id, arena_printf(a, "%s; expected an op that "
	                                     "treats samples independently, "
	                                     "or a sum or mean over samples",
	                                     why));
}
