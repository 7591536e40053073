/* How a sharding passes through ops that look elements up, and through those
 * that order them: what is not looked up or ordered may be sharded, and
 * indices may be.
 */
#include "ir/sharding/sharding.h"

/* Equal elements, which are no operand, have extents all the same. */
static const Shape *
operand_shape(const struct sharding_rule *c, int k)
{
	return &c->g->val[c->n->in[k]].shape;
}

/* ---- rows: gather, scatter_add ---- */

/* x[.., axis, ..] by idx: the result has idx's dims in place of the axis. */
bool
sharding_gather(struct sharding_rule *c)
{
	int axis = (int)c->n->attr.GATHER.axis, out = c->nin;
	int nidx = operand_shape(c, 1)->rank, by = nidx - 1;
	const Placement *s = given_split(c);
	Placement to = *s;

	if (c->from == 1) {
		c->at[out] = *s;
		return placement_shift(s, axis, MAX_RANK, &c->at[out]);
	}
	if (c->from == 0 && shards_dim(s, axis)) {
		c->at[out].kind = PLACEMENT_PARTIAL;
		return s->first_axis == s->axis && s->nsegment == 1
			&& s->replication == 1
			&& (!c->stated
		            || c->n->attr.GATHER.whole_extent == s->segment[0]);
	}
	if (c->from == out && s->first_axis >= axis && s->axis < axis + nidx) {
		to.axis -= axis;
		to.first_axis -= axis;
		c->at[1] = to;
		return true;
	}
	if (s->first_axis < axis && s->axis >= axis)
		return false;
	if (s->first_axis > axis && c->from == 0) {
		to.axis += by;
		to.first_axis += by;
	} else if (s->first_axis >= axis + nidx && c->from == out) {
		to.axis -= by;
		to.first_axis -= by;
	} else if (s->axis >= axis) {
		return false;
	}
	c->at[c->from == 0 ? out : 0] = to;
	return true;
}

/* scatter_add(idx, upd, acc?): rows of upd are sharded, which gives a summand,
 * or columns. */
bool
sharding_scatter(struct sharding_rule *c)
{
	int axis = (int)c->n->attr.SCATTER_ADD.axis, out = c->nin;
	int nidx = operand_shape(c, 0)->rank;
	const Placement *s = given_split(c);
	Placement to = *s;

	if (c->n->attr.SCATTER_ADD.whole_extent > 0)
		return false;
	if (c->from == 0) {
		if (!placement_shift(s, axis, MAX_RANK, &c->at[1]))
			return false;
		c->at[out].kind = PLACEMENT_PARTIAL;
		return true;
	}
	if (c->from != 1)
		return false;
	if (s->first_axis >= axis && s->axis < axis + nidx) {
		to.axis -= axis;
		to.first_axis -= axis;
		c->at[0] = to;
		c->at[out].kind = PLACEMENT_PARTIAL;
		return true;
	}
	if (s->first_axis >= axis + nidx) {
		to.axis -= nidx - 1;
		to.first_axis -= nidx - 1;
	} else if (s->axis >= axis) {
		return false;
	}
	c->at[out] = to;
	return true;
}

/* ---- tuples of indices ---- */

/* Shardings of the dims behind those that indices take: value x has them from
 * `first` on, value y from `second` on. */
static bool
sharding_trailing_dims(struct sharding_rule *c, int x, int first, int y,
                       int second)
{
	int there = c->from == x ? first : second;
	int other = c->from == x ? y : x;

	if (given_split(c)->first_axis < there)
		return false;
	return placement_shift(given_split(c), first + second - 2 * there,
	                       MAX_RANK, &c->at[other]);
}

/* The dim of idx, behind all others, that is a tuple. */
static int
tuple_dim(const struct sharding_rule *c)
{
	return operand_shape(c, 1)->rank - 1;
}

/* x[idx]: idx's last dim takes dims of x behind the batch, its other dims are
 * the result's.  Nothing of the batch is sharded: backward numbers it. */
bool
sharding_gather_nd(struct sharding_rule *c)
{
	int batch = (int)c->n->attr.GATHER_ND.batch, out = c->nin;
	int tuples = tuple_dim(c);
	int taken = batch + (int)operand_shape(c, 1)->dim[tuples];

	if (c->from == 0 || given_split(c)->axis >= tuples)
		return c->from != 1
			&& sharding_trailing_dims(c, 0, taken, out, tuples);
	c->at[1] = c->at[out] = *given_split(c);
	return given_split(c)->first_axis >= batch
		&& placement_is_even(given_split(c), c->ranks);
}

/* What a shard of the indices adds to zeros is a summand. */
static bool
adds_to_zeros(struct sharding_rule *c, int64_t add)
{
	c->at[c->nin].kind = PLACEMENT_PARTIAL;
	return add == 1 && placement_is_even(given_split(c), c->ranks)
		&& sharding_is_zero(c->g, c->n->in[0]);
}

/* x with upd at idx. */
bool
sharding_scatter_nd(struct sharding_rule *c)
{
	int tuples = tuple_dim(c);
	int taken = (int)operand_shape(c, 1)->dim[tuples];

	if (c->from == 1 || (c->from == 2 && given_split(c)->axis < tuples)) {
		c->at[1] = c->at[2] = *given_split(c);
		return given_split(c)->axis < tuples
			&& adds_to_zeros(c, c->n->attr.SCATTER_ND.add);
	}
	if (c->from == 2) {
		if (!sharding_trailing_dims(c, 0, taken, 2, tuples))
			return false;
		c->at[c->nin] = c->at[0];
		return true;
	}
	if (given_split(c)->first_axis < taken
	    || !placement_shift(given_split(c), tuples - taken, MAX_RANK,
	                        &c->at[2]))
		return false;
	c->at[0] = *given_split(c);
	c->at[c->nin] = *given_split(c);
	return true;
}

/* ---- along an axis ---- */

static bool
shards_axis(const struct sharding_rule *c, int64_t axis)
{
	int rank = c->shape[c->from].rank;

	return shards_dim(given_split(c), (int)(axis < 0 ? axis + rank : axis));
}

/* All operands and results are sharded along the same dim; the shard must be
 * even. */
static bool
sharding_same_dim(struct sharding_rule *c)
{
	for (int p = 0; p < c->nvalue; p++)
		if (has_value(c, p))
			c->at[p] = *given_split(c);
	return placement_is_even(given_split(c), c->ranks);
}

/* Indices may be of part of the other dims' elements only. */
static bool
same_index_dims(const struct sharding_rule *c)
{
	for (int i = given_split(c)->first_axis; i <= given_split(c)->axis; i++)
		if (has_value(c, 0) && has_value(c, 1)
		    && c->shape[0].dim[i] != c->shape[1].dim[i])
			return false;
	return true;
}

bool
sharding_gather_elements(struct sharding_rule *c)
{
	if (!shards_axis(c, c->n->attr.GATHER_ELEMENTS.axis))
		return same_index_dims(c) && sharding_same_dim(c);
	c->at[1] = c->at[c->nin] = *given_split(c);
	return c->from != 0
		&& given_split(c)->first_axis == given_split(c)->axis
		&& placement_is_even(given_split(c), c->ranks);
}

bool
sharding_scatter_elements(struct sharding_rule *c)
{
	if (!shards_axis(c, c->n->attr.SCATTER_ELEMENTS.axis))
		return same_index_dims(c) && sharding_same_dim(c);
	if ((c->from != 1 && c->from != 2)
	    || given_split(c)->first_axis != given_split(c)->axis)
		return false;
	c->at[1] = c->at[2] = *given_split(c);
	return adds_to_zeros(c, c->n->attr.SCATTER_ELEMENTS.add);
}

bool
sharding_topk(struct sharding_rule *c)
{
	return !shards_axis(c, c->n->attr.TOPK.axis) && sharding_same_dim(c);
}

/* Without keepdims the axis is not in the result. */
bool
sharding_argmax(struct sharding_rule *c)
{
	int axis = (int)c->n->attr.ARGMAX.axis, by;
	Placement x = *given_split(c);

	axis += axis < 0 ? c->shape[0].rank : 0;
	by = !c->n->attr.ARGMAX.keepdims;
	if (c->from && x.first_axis >= axis
	    && !placement_shift(&x, by, MAX_RANK, &x))
		return false;
	if (shards_dim(&x, axis) || !placement_is_even(&x, c->ranks))
		return false;
	c->at[0] = x;
	c->at[1] = x;
	return x.first_axis < axis
		|| placement_shift(&x, -by, MAX_RANK, &c->at[1]);
}

/* ---- matrices ---- */

/* The last two dims of what has most are rows and columns. */
bool
sharding_matrices(struct sharding_rule *c)
{
	int rank = 0;

	for (int p = 0; p < c->nvalue; p++)
		if (c->shape[p].rank > rank)
			rank = c->shape[p].rank;
	return given_split(c)->axis < rank - 2 && sharding_same_dim(c);
}
