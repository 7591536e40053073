/* How a sharding passes through ops that look elements up, and through those
 * that order them: what is not looked up or ordered may be sharded, and
 * indices may be.
 */
#include "ir/placement/placement.h"

/* Equal elements, which are no port, have extents all the same. */
static const Shape *
operand_shape(const struct shard_rule *c, int k)
{
	return &c->g->val[c->n->in[k]].shape;
}

/* ---- rows: gather, scatter_add ---- */

/* x[.., axis, ..] by idx: the result has idx's dims in place of the axis. */
bool
shard_gather(struct shard_rule *c)
{
	int axis = (int)c->n->attr.GATHER.axis, out = c->nin;
	int nidx = operand_shape(c, 1)->rank, by = nidx - 1;
	const Split *s = given_split(c);
	Split to = *s;

	if (c->from == 1) {
		c->at[out] = *s;
		return split_shift(s, axis, MAX_RANK, &c->at[out]);
	}
	if (c->from == 0 && shards_dim(s, axis)) {
		c->at[out].kind = SPLIT_PARTIAL;
		return s->first_axis == s->axis && s->nsegment == 1
			&& s->replication == 1
			&& (!c->stated
		            || c->n->attr.GATHER.part == s->segment[0]);
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
shard_scatter(struct shard_rule *c)
{
	int axis = (int)c->n->attr.SCATTER_ADD.axis, out = c->nin;
	int nidx = operand_shape(c, 0)->rank;
	const Split *s = given_split(c);
	Split to = *s;

	if (c->n->attr.SCATTER_ADD.part > 0)
		return false;
	if (c->from == 0) {
		if (!split_shift(s, axis, MAX_RANK, &c->at[1]))
			return false;
		c->at[out].kind = SPLIT_PARTIAL;
		return true;
	}
	if (c->from != 1)
		return false;
	if (s->first_axis >= axis && s->axis < axis + nidx) {
		to.axis -= axis;
		to.first_axis -= axis;
		c->at[0] = to;
		c->at[out].kind = SPLIT_PARTIAL;
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

/* Shardings of the dims behind those that indices take: port x has them from
 * `first` on, port y from `second` on. */
static bool
shard_trailing_dims(struct shard_rule *c, int x, int first, int y, int second)
{
	int there = c->from == x ? first : second;
	int other = c->from == x ? y : x;

	if (given_split(c)->first_axis < there)
		return false;
	return split_shift(given_split(c), first + second - 2 * there, MAX_RANK,
	                   &c->at[other]);
}

/* The dim of idx, behind all others, that is a tuple. */
static int
tuple_dim(const struct shard_rule *c)
{
	return operand_shape(c, 1)->rank - 1;
}

/* x[idx]: idx's last dim takes dims of x behind the batch, its other dims are
 * the result's.  Nothing of the batch is sharded: backward numbers it. */
bool
shard_gather_nd(struct shard_rule *c)
{
	int batch = (int)c->n->attr.GATHER_ND.batch, out = c->nin;
	int tuples = tuple_dim(c);
	int taken = batch + (int)operand_shape(c, 1)->dim[tuples];

	if (c->from == 0 || given_split(c)->axis >= tuples)
		return c->from != 1
			&& shard_trailing_dims(c, 0, taken, out, tuples);
	c->at[1] = c->at[out] = *given_split(c);
	return given_split(c)->first_axis >= batch
		&& split_is_even(given_split(c), c->ranks);
}

/* What a shard of the indices adds to zeros is a summand. */
static bool
adds_to_zeros(struct shard_rule *c, int64_t add)
{
	c->at[c->nin].kind = SPLIT_PARTIAL;
	return add == 1 && split_is_even(given_split(c), c->ranks)
		&& shard_is_zero(c->g, c->n->in[0]);
}

/* x with upd at idx. */
bool
shard_scatter_nd(struct shard_rule *c)
{
	int tuples = tuple_dim(c);
	int taken = (int)operand_shape(c, 1)->dim[tuples];

	if (c->from == 1 || (c->from == 2 && given_split(c)->axis < tuples)) {
		c->at[1] = c->at[2] = *given_split(c);
		return given_split(c)->axis < tuples
			&& adds_to_zeros(c, c->n->attr.SCATTER_ND.add);
	}
	if (c->from == 2) {
		if (!shard_trailing_dims(c, 0, taken, 2, tuples))
			return false;
		c->at[c->nin] = c->at[0];
		return true;
	}
	if (given_split(c)->first_axis < taken
	    || !split_shift(given_split(c), tuples - taken, MAX_RANK,
	                    &c->at[2]))
		return false;
	c->at[0] = *given_split(c);
	c->at[c->nin] = *given_split(c);
	return true;
}

/* ---- along an axis ---- */

static bool
shards_axis(const struct shard_rule *c, int64_t axis)
{
	int rank = c->shape[c->from].rank;

	return shards_dim(given_split(c), (int)(axis < 0 ? axis + rank : axis));
}

/* All ports are sharded along the same dim; the shard must be even. */
static bool
shard_same_dim(struct shard_rule *c)
{
	for (int p = 0; p < c->nport; p++)
		if (has_port(c, p))
			c->at[p] = *given_split(c);
	return split_is_even(given_split(c), c->ranks);
}

/* Indices may be of part of the other dims' elements only. */
static bool
same_index_dims(const struct shard_rule *c)
{
	for (int i = given_split(c)->first_axis; i <= given_split(c)->axis; i++)
		if (has_port(c, 0) && has_port(c, 1)
		    && c->shape[0].dim[i] != c->shape[1].dim[i])
			return false;
	return true;
}

bool
shard_gather_elements(struct shard_rule *c)
{
	if (!shards_axis(c, c->n->attr.GATHER_ELEMENTS.axis))
		return same_index_dims(c) && shard_same_dim(c);
	c->at[1] = c->at[c->nin] = *given_split(c);
	return c->from != 0
		&& given_split(c)->first_axis == given_split(c)->axis
		&& split_is_even(given_split(c), c->ranks);
}

bool
shard_scatter_elements(struct shard_rule *c)
{
	if (!shards_axis(c, c->n->attr.SCATTER_ELEMENTS.axis))
		return same_index_dims(c) && shard_same_dim(c);
	if ((c->from != 1 && c->from != 2)
	    || given_split(c)->first_axis != given_split(c)->axis)
		return false;
	c->at[1] = c->at[2] = *given_split(c);
	return adds_to_zeros(c, c->n->attr.SCATTER_ELEMENTS.add);
}

bool
shard_topk(struct shard_rule *c)
{
	return !shards_axis(c, c->n->attr.TOPK.axis) && shard_same_dim(c);
}

/* Without keepdims the axis is not in the result. */
bool
shard_argmax(struct shard_rule *c)
{
	int axis = (int)c->n->attr.ARGMAX.axis, by;
	Split x = *given_split(c);

	axis += axis < 0 ? c->shape[0].rank : 0;
	by = !c->n->attr.ARGMAX.keepdims;
	if (c->from && x.first_axis >= axis
	    && !split_shift(&x, by, MAX_RANK, &x))
		return false;
	if (shards_dim(&x, axis) || !split_is_even(&x, c->ranks))
		return false;
	c->at[0] = x;
	c->at[1] = x;
	return x.first_axis < axis || split_shift(&x, -by, MAX_RANK, &c->at[1]);
}

/* ---- matrices ---- */

/* The last two dims of what has most are rows and columns. */
bool
shard_matrices(struct shard_rule *c)
{
	int rank = 0;

	for (int p = 0; p < c->nport; p++)
		if (c->shape[p].rank > rank)
			rank = c->shape[p].rank;
	return given_split(c)->axis < rank - 2 && shard_same_dim(c);
}
