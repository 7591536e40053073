/* Pass fold: constants that repeat and are too large to compute.
 *
 * Such a constant stays an expand of a small one.  Ops apply to the small one
 * before the expand: masks for the rows of a batch become one mask.
 */
#include "passes/fold/fold_rules.h"

ValId
fold_expand_source(const struct fold *f, ValId v)
{
	const Graph *g = f->g;
	const Node *def;

	while (!val_is_const(&g->val[v])) {
		def = g->val[v].def ? &g->node[g->val[v].def] : NULL;
		if (!def || def->op != OP_EXPAND || def->nin > 1)
			return 0;
		v = def->in[0];
	}
	return v;
}

bool
fold_splat(const struct fold *f, ValId v, double *x)
{
	ValId core = v ? fold_expand_source(f, v) : 0;

	return core && val_splat(f->g, core, x);
}

Shape
fold_aligned(const Shape *s, int rank)
{
	Shape wide = { .rank = rank };

	for (int d = 0; d < rank; d++)
		wide.dim[d] = d < rank - s->rank ? 1
			: s->dim[d - (rank - s->rank)];
	return wide;
}

/* Sink the expands of an element-wise op's constant operands. */
static ValId
sink_elementwise(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	const Attr attr = n->attr;
	ValId core[3];

	if (!op_fuses(n->op) || op_info[n->op].flags & F_RNG || n->nin > 3)
		return 0;
	for (int i = 0; i < n->nin; i++)
		if (!n->in[i] || !(core[i] = fold_expand_source(f, n->in[i])))
			return 0;
	return fold_emit(f, n->op, n->nin, core, &attr, id);
}

/* The result's shape before the expand: extents of 1 where elements repeat. */
static ValId
sink_reshape(struct fold *f, NodeId id, ValId core)
{
	const Node *n = &f->g->node[id];
	const Shape big = in_val(f, n, 0)->shape, out = out_val(f, n)->shape;
	Shape small = fold_aligned(&f->g->val[core].shape, big.rank);
	int64_t stride[MAX_RANK], moved[MAX_RANK];

	shape_strides(&small, stride);
	for (int d = 0; d < big.rank; d++)
		stride[d] = small.dim[d] == 1 ? 0 : stride[d];
	if (!shape_view(&big, stride, &out, moved))
		return 0;
	small = out;
	for (int d = 0; d < out.rank; d++)
		small.dim[d] = moved[d] == 0 ? 1 : out.dim[d];
	return shape_nelem(&small) == val_nelem(&f->g->val[core])
		? fold_reshape(f, core, &small, id) : 0;
}

static ValId
sink_transpose(struct fold *f, NodeId id, ValId core)
{
	const Attr attr = f->g->node[id].attr;
	const Shape s = fold_aligned(&f->g->val[core].shape,
	                             attr.TRANSPOSE.perm.n);

	core = fold_reshape(f, core, &s, id);
	return fold_emit(f, OP_TRANSPOSE, 1, &core, &attr, id);
}

bool
fold_sink_expand(struct fold *f, NodeId id, enum step *step)
{
	const Node *n = &f->g->node[id];
	ValId core = 0, v;

	/* the first operand that repeats */
	for (int i = 0; i < n->nin && !core; i++)
		if (n->in[i] && !val_is_const(in_val(f, n, i)))
			core = fold_expand_source(f, n->in[i]);
	if (!core || fold_facts(f, n->out[0])->padded)
		return false;
	v = n->op == OP_RESHAPE && n->nin == 1 ? sink_reshape(f, id, core)
		: n->op == OP_TRANSPOSE ? sink_transpose(f, id, core)
		: sink_elementwise(f, id);
	if (!v)
		return false;
	*step = fold_set_broadcast(f, id, v);
	return true;
}
