/* Sample indices: where they originate, how ops propagate them, and which uses
 * are valid.
 *
 * Replicas count their samples from 0.  That is valid only for an index into a
 * value with samples, so the indices that a mask finds are followed from op to
 * op.
 */
#include "passes/data_parallel/dp_partition.h"

enum { VISITED_NODES = 256 }; /* nodes that are looked at for a column */

static bool find_index(const struct dp_partition *, struct column,
                       struct sample_index *, int *left);

/* The dim whose only element is taken, others being whole; -1: another. */
static int
sliced_dim(const Shape *x, const Node *n, const Shape *y)
{
	int found = -1;

	for (int i = 0; i < y->rank; i++) {
		if (y->dim[i] == x->dim[i])
			continue;
		if (found >= 0 || y->dim[i] != 1)
			return -1;
		found = i;
	}
	for (int i = 0; i < y->rank; i++)
		if (i != found && (n->attr.SLICE.start.v[i]
		                   || n->attr.SLICE.step.v[i] != 1))
			return -1;
	return found;
}

/* Where a move takes the column from, in c; false: from several. */
static bool
trace_move(const struct dp_partition *d, const Node *n, struct column *c)
{
	const Shape *x = &d->g->val[n->in[0]].shape;
	const Shape *y = &d->g->val[n->out[0]].shape;
	bool all = c->axis < 0 || y->dim[c->axis] == 1;
	int last = x->rank - 1;

	switch (n->op) {
	case OP_CAST:
		if (d->g->val[n->out[0]].dt != DT_I64
		    && d->g->val[n->out[0]].dt != DT_I32)
			return false;
		break;
	case OP_EXPAND:
		if (!all)
			return false;
		*c = (struct column){ .axis = -1, .dim = -1 };
		break;
	case OP_TRANSPOSE:
		c->axis = c->axis < 0 ? -1
		        : (int)n->attr.TRANSPOSE.perm.v[c->axis];
		c->dim = -1;
		break;
	case OP_RESHAPE:
		if (!all && (c->axis != y->rank - 1
		             || x->dim[last] != y->dim[c->axis]))
			return false;
		*c = (struct column){ .axis = all ? -1 : last, .at = c->at,
			.dim = -1 };
		break;
	case OP_SLICE:
		if (!all || sliced_dim(x, n, y) < 0)
			return false;
		c->axis = sliced_dim(x, n, y);
		c->at = n->attr.SLICE.start.v[c->axis];
		break;
	default:
		return false;
	}
	c->v = n->in[0];
	return true;
}

/* ---- where sample indices begin ---- */

/* The places of elements of a mask that has samples. */
static bool
index_of_selected(const struct dp_partition *d, const Node *n,
                  const struct column *c, struct sample_index *y)
{
	const Shape *x = &d->g->val[n->in[0]].shape;
	const Placement *s = dp_placement(d, n->in[0]);
	int k = c->axis < 0 ? 0 : (int)c->at;

	if (c->axis > 0 || (c->axis < 0 && x->rank > 1)
	    || s->kind != PLACEMENT_SHARD || n->attr.SELECTED.compact)
		return false;
	*y = (struct sample_index){ 0, 0, x->dim[k] - 1, 0 };
	if (k > s->axis || k < s->first_axis)
		return true;
	y->stride = x->dim[k] / d->samples;
	y->hi = y->stride - 1;
	return s->first_axis == s->axis && s->nsegment == 1
		&& x->dim[k] % d->samples == 0;
}

/* A constant that counts its own place in the dim of the samples. */
static bool
index_of_const(const struct dp_partition *d, const struct column *c,
               struct sample_index *y)
{
	const Val *x = &d->g->val[c->v];
	int last = x->shape.rank - 1;
	int64_t each = 1, inner, all = val_nelem(x);
	double same;

	if (val_splat(d->g, c->v, &same)) {
		*y = (struct sample_index){ 0, (int64_t)same, (int64_t)same,
		                            0 };
		return same >= 0 && same < INT32_MAX;
	}
	if (x->kind != V_CONST || !x->data || c->dim < 0
	    || c->dim > last || (c->axis >= 0 && c->axis != last))
		return false;
	each = c->axis < 0 ? 1 : x->shape.dim[last];
	inner = shape_span(&x->shape, c->dim + 1, x->shape.rank)
	      / (c->dim < last ? each : 1);
	for (int64_t i = 0; i < all / each; i++)
		if (val_int(x, i * each + c->at)
		    != i / inner % x->shape.dim[c->dim])
			return false;
	each = x->shape.dim[c->dim] / d->samples;
	*y = (struct sample_index){ each, 0, each - 1, 0 };
	return each * d->samples == x->shape.dim[c->dim];
}

/* ---- following them ---- */

static bool
combine_indices(Op op, const struct sample_index *a,
                const struct sample_index *b, struct sample_index *y)
{
	y->beyond = 0;
	if (a->beyond || b->beyond)
		return false;
	if (op == OP_ADD)
		return !__builtin_add_overflow(a->stride, b->stride, &y->stride)
			&& !__builtin_add_overflow(a->lo, b->lo, &y->lo)
			&& !__builtin_add_overflow(a->hi, b->hi, &y->hi);
	if (b->stride || b->lo != b->hi)
		return false;
	return !__builtin_mul_overflow(a->stride, b->lo, &y->stride)
		&& !__builtin_mul_overflow(a->lo, b->lo, &y->lo)
		&& !__builtin_mul_overflow(a->hi, b->lo, &y->hi);
}

/* Of elements of the same places, or of one number. */
static bool
index_of_binary(const struct dp_partition *d, const Node *n, struct column c,
                struct sample_index *y, int *left)
{
	struct sample_index x[2];

	for (int k = 0; k < 2; k++) {
		const Val *v = &d->g->val[c.v = n->in[k]];
		double same;

		if (!val_splat(d->g, c.v, &same)
		    && !shape_eq(&v->shape, &d->g->val[n->out[0]].shape))
			return false;
		if (!find_index(d, c, &x[k], left))
			return false;
	}
	return combine_indices(n->op, &x[0], &x[1], y)
		|| (n->op == OP_MUL && combine_indices(n->op, &x[1], &x[0], y));
}

/* where(v < 0, ..., v), of v that is not; or where(c, v, beyond), with a number
 * for all or for each of the last dim. */
static bool
index_of_where(const struct dp_partition *d, const Node *n, struct column c,
               struct sample_index *y, int *left)
{
	const Val *yes = &d->g->val[n->in[1]], *no = &d->g->val[n->in[2]];
	const Shape *s = &d->g->val[n->out[0]].shape;
	const Node *less = &d->g->node[d->g->val[n->in[0]].def];
	int64_t many = val_nelem(no);
	double zero;

	if (no->kind == V_CONST && no->data) {
		bool each = no->shape.rank == 1 && c.axis == s->rank - 1
			&& many == s->dim[c.axis];

		c.v = n->in[1];
		if ((many != 1 && !each) || !shape_eq(&yes->shape, s)
		    || !find_index(d, c, y, left) || y->beyond)
			return false;
		y->beyond = val_int(no, many == 1 ? 0 : c.at);
		return y->beyond > 0;
	}
	c.v = n->in[2];
	return shape_eq(&no->shape, s) && less->op == OP_LT
		&& less->in[0] == c.v && val_splat(d->g, less->in[1], &zero)
		&& zero == 0 && find_index(d, c, y, left) && y->lo >= 0;
}

/* The operand of a concat that element *at comes from, where it is *at. */
static ValId
concat_operand(const struct dp_partition *d, const Node *n, int64_t *at)
{
	int k = 0;

	for (; k < n->nin - 1; k++) {
		const Shape *x = &d->g->val[n->in[k]].shape;
		int64_t here = x->dim[n->attr.CONCAT.axis];

		if (*at < here)
			break;
		*at -= here;
	}
	return n->in[k];
}

static bool
find_index(const struct dp_partition *d, struct column c,
           struct sample_index *y, int *left)
{
	const Node *n = &d->g->node[d->g->val[c.v].def];

	if (--*left < 0)
		return false;
	switch (d->g->val[c.v].def ? n->op : OP_COUNT) {
	case OP_SELECTED:
		return d->g->val[c.v].result_index == 0
			&& index_of_selected(d, n, &c, y);
	case OP_CONCAT:
		if (n->attr.CONCAT.axis != c.axis)
			return false;
		c.v = concat_operand(d, n, &c.at);
		return find_index(d, c, y, left);
	case OP_ADD: case OP_MUL:
		return index_of_binary(d, n, c, y, left);
	case OP_WHERE:
		return index_of_where(d, n, c, y, left);
	case OP_COUNT:
		return index_of_const(d, &c, y);
	default:
		return trace_move(d, n, &c)
			&& find_index(d, c, y, left);
	}
}

bool
dp_find_sample_index(const struct dp_partition *d, struct column c,
                     struct sample_index *y)
{
	int left = VISITED_NODES;

	return d->samples > 0 && find_index(d, c, y, &left);
}

/* Whether elements of a constant are those of the first sample in its dim. */
static bool
repeats_first_sample(const struct dp_partition *d, const struct column *c)
{
	const Val *x = &d->g->val[c->v];
	int last = x->shape.rank - 1;
	int64_t width = c->axis < 0 ? 1 : x->shape.dim[last], inner, each;
	double same;

	if (val_splat(d->g, c->v, &same))
		return true;
	if (!x->data || c->dim < 0 || c->dim > last
	    || (c->axis >= 0 && c->axis != last)
	    || x->shape.dim[c->dim] % d->samples)
		return false;
	each = x->shape.dim[c->dim] / d->samples;
	inner = shape_span(&x->shape, c->dim + 1, x->shape.rank)
	      / (c->dim < last ? width : 1);
	for (int64_t i = 0; i < val_nelem(x) / width; i++) {
		int64_t at = i / inner % x->shape.dim[c->dim];
		int64_t first = i - (at - at % each) * inner;

		if (val_int(x, i * width + c->at)
		    != val_int(x, first * width + c->at))
			return false;
	}
	return true;
}

bool
dp_lacks_sample_index(const struct dp_partition *d, struct column c)
{
	struct sample_index x;

	if (dp_find_sample_index(d, c, &x))
		return x.stride == 0 && !x.beyond;
	for (;;) {
		const Node *n = &d->g->node[d->g->val[c.v].def];

		if (!d->g->val[c.v].def)
			return d->g->val[c.v].kind != V_CONST
				|| repeats_first_sample(d, &c);
		if (n->op == OP_CONCAT && n->attr.CONCAT.axis == c.axis)
			c.v = concat_operand(d, n, &c.at);
		else if (!trace_move(d, n, &c))
			return !dp_has_sample_index(d, c.v);
	}
}

bool
dp_has_sample_index(const struct dp_partition *d, ValId v)
{
	return v < d->nindexed && d->indexed[v];
}
