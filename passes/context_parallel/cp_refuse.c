/* Why positions cannot be shared out. */
#include "passes/context_parallel/cp_partition.h"

bool
cp_refuse(const struct cp_partition *c, NodeId id, const char *why)
{
	return node_error(c->g, c->p->diag, &c->g->node[id], "--cp %lld: %s; "
	                  "leave out --cp", (long long)c->parts, why);
}

static const char *
describe(const struct cp_partition *c, ValId v)
{
	const Placement *s = &c->placement[v];
	Arena *a = c->p->scratch;

	if (s->kind == PLACEMENT_PARTIAL)
		return "is a sum over positions";
	if (s->kind != PLACEMENT_SHARD)
		return "is whole";
	return s->nsegment == 1
		? arena_printf(a, "has positions along dim %d", s->axis)
		: arena_printf(a, "has positions in %d segments of dim %d",
		               s->nsegment, s->axis);
}

bool
cp_refuse_mixing(const struct cp_partition *c, NodeId id)
{
	const Node *n = &c->g->node[id];
	const char *why = "the op runs along the sequence, or combines "
		"positions:";
	char shape[SHARDING_WHY];

	for (int k = 0; k < n->nin && k < 4; k++) {
		const Val *v = &c->g->val[n->in[k]];

		if (n->in[k])
			why = arena_printf(c->p->scratch, "%s%s operand %d, "
			                   "%s, %s", why, k ? "," : "", k,
			                   shape_text(shape, sizeof shape,
			                              v->dt, &v->shape),
			                   describe(c, n->in[k]));
	}
	return cp_refuse(c, id, arena_printf(c->p->scratch, "%s; expected an "
	                                     "op that treats positions "
	                                     "independently, attention, or a "
	                                     "sum or mean over positions",
	                                     why));
}

/* The name of the dim, if inputs have one of that extent. */
static const char *
dim_of_extent(const struct cp_partition *c, int64_t extent)
{
	FOR_VALS (v, c->g)
		for (int i = 0; v->kind == V_INPUT && i < v->shape.rank; i++)
			if (c->positions[val_id(c->g, v)].axis == i
			    && v->dim_name[i] && v->shape.dim[i] == extent)
				return v->dim_name[i];
	return NULL;
}

bool
cp_refuse_extent(const struct cp_partition *c, NodeId id, int64_t extent)
{
	long long n = c->parts, below = extent / n * n, above = below + n;
	const char *dim = dim_of_extent(c, extent);
	const char *found = arena_printf(
		c->p->scratch, "--cp %lld: expected a number of positions that "
		"%lld divides, such as %lld%s%lld, found %lld", n, n,
		below ? below : above, " or ", below ? above : above + n,
		(long long)extent);

	if (dim)
		return node_error(c->g, c->p->diag, &c->g->node[id], "%s; try: "
		                  "--dim %s=%lld", found, dim, above);
	return node_error(c->g, c->p->diag, &c->g->node[id], "%s", found);
}
