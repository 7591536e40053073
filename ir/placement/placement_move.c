/* How a sharding passes through ops that move elements. */
#include "ir/placement/placement.h"

bool
shard_transpose(struct shard_rule *c)
{
	const IntList *perm = &c->n->attr.TRANSPOSE.perm;
	bool back = c->from >= c->nin;
	int other = back ? 0 : 1, where[MAX_RANK];
	Split to = *given(c);

	for (int i = 0; i < perm->n; i++)
		where[back ? i : (int)perm->v[i]] = back ? (int)perm->v[i] : i;
	to.lead = where[given(c)->lead];
	to.axis = where[given(c)->axis];
	for (int i = given(c)->lead; i < given(c)->axis; i++)
		if (where[i + 1] != where[i] + 1)
			return false;
	c->at[other] = to;
	return true;
}

/* Elements of dims first..last-1. */
static int64_t
dim_product(const Shape *s, int first, int last)
{
	int64_t n = 1;

	for (int i = first; i < last; i++)
		n *= s->dim[i];
	return n;
}

static bool
has_equal_segments(const Split *s)
{
	for (int i = 1; i < split_listed(s); i++)
		if (s->part[i] != s->part[0])
			return false;
	return true;
}

static int64_t
count_shards(const Split *s, int64_t ranks)
{
	return ranks / s->shared;
}

static int64_t
div_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* Shardings of dims lead..axis of shape `to`, taken as one part, with segments
 * of `run` elements of which a shard has `shard`. */
static bool
try_one_part(const Shape *to, int lead, int64_t run, int64_t shard,
             Split *s, int64_t ranks)
{
	int64_t n = 1;

	for (int axis = lead; axis < to->rank; axis++) {
		int64_t post = dim_product(to, axis + 1, to->rank);

		n *= to->dim[axis];
		if (n * post != run || div_up(n, count_shards(s, ranks)) * post
		    != shard)
			continue;
		s->lead = lead;
		s->axis = axis;
		s->npart = 1;
		s->part[0] = n;
		while (s->lead < s->axis && to->dim[s->lead] == 1)
			s->lead++;
		return true;
	}
	return false;
}

/* All segments have `run` elements, and there are `count` of them. */
static bool
find_uniform(const Shape *to, int64_t count, int64_t run, int64_t shard,
             Split *s, int64_t ranks)
{
	int64_t shared;

	for (int lead = 0; lead < to->rank; lead++)
		if (dim_product(to, 0, lead) == count
		    && try_one_part(to, lead, run, shard, s, ranks))
			return true;
	for (int axis = to->rank; axis-- > 0; ) {
		int64_t pre = dim_product(to, 0, axis);
		int64_t post = dim_product(to, axis + 1, to->rank);
		int64_t n = pre > 0 && count % pre == 0 ? count / pre : 0;
		int64_t part = n > 0 && to->dim[axis] % n == 0
			? to->dim[axis] / n : 0;

		if (n < 2 || n > SEGMENTS_MAX || part * post != run
		    || part % count_shards(s, ranks)
		    || part / count_shards(s, ranks) * post != shard)
			continue;
		shared = s->shared;
		*s = split_segments(axis, n, part);
		s->shared = shared;
		return true;
	}
	return false;
}

/* What a reshape makes of a split; false if it has no name there. */
static bool
split_reshape(const Split *s, int64_t ranks, const Shape *from,
              const Shape *to, Split *result)
{
	int64_t pre = dim_product(from, 0, s->lead);
	int64_t post = dim_product(from, s->axis + 1, from->rank);

	*result = *s;
	if (has_equal_segments(s))
		return find_uniform(to, pre * s->npart, s->part[0] * post,
		                    div_up(s->part[0], count_shards(s, ranks))
		                    * post, result, ranks);
	for (int axis = 0; axis < to->rank; axis++)
		if (dim_product(to, 0, axis) == pre
		    && to->dim[axis] == from->dim[s->axis]
		    && dim_product(to, axis + 1, to->rank) == post) {
			result->axis = result->lead = axis;
			return true;
		}
	return false;
}

Split
split_normal(const Split *s, int64_t ranks, const Shape *whole)
{
	Split to;

	if (s->kind != SPLIT_S
	    || !split_reshape(s, ranks, whole, whole, &to))
		return *s;
	return to;
}

/* The sharded dim itself stays, best as the same one. */
static bool
same_dim(const Split *s, const Shape *from, const Shape *to, Split *y)
{
	for (int i = -1; i < to->rank; i++) {
		int axis = i < 0 ? s->axis : i;

		if (axis >= to->rank
		    || dim_product(to, 0, axis) != dim_product(from, 0, s->axis)
		    || to->dim[axis] != from->dim[s->axis])
			continue;
		*y = *s;
		y->axis = y->lead = axis;
		return true;
	}
	return false;
}

/* A rank's shapes do not tell [1,8] of 4 x 8 from that of 1 x 32, so a stated
 * result is compared shard by shard; otherwise the sharding lies on the first
 * dim that is more than one. */
static bool
reshape_local(struct shard_rule *c)
{
	const Split *s = given(c), *y = &c->g->val[c->n->out[0]].split;
	const Shape *from = &c->g->val[c->n->in[0]].shape;
	const Shape *to = &c->g->val[c->n->out[0]].shape;
	Shape x = c->shape[0], whole = split_whole(y, to);
	Split guess = *s;

	if (y->kind == SPLIT_S) {
		Split a = split_normal(y, c->ranks, &whole);

		if (!split_reshape(s, c->ranks, &x, &whole, &guess)
		    || !split_eq(&guess, &a))
			return false;
		c->at[1] = *y;
		return true;
	}
	if (same_dim(s, from, to, &c->at[1]))
		return true;
	for (int lead = 0; lead < to->rank; lead++) {
		int axis = lead;
		int64_t whole_run = dim_product(&x, s->axis, x.rank), post;

		if (dim_product(to, 0, lead) != dim_product(from, 0, s->axis)
		    || !has_equal_segments(s))
			continue;
		while (axis + 1 < to->rank && to->dim[axis] == 1)
			axis++;
		post = dim_product(to, axis + 1, to->rank);
		if (s->npart > 1 || whole_run % post)
			break;
		guess.axis = guess.lead = axis;
		guess.part[0] = whole_run / post;
		if (split_local_extent(&guess, c->ranks) != to->dim[axis])
			break;
		c->at[1] = guess;
		return true;
	}
	return false;
}

bool
shard_reshape(struct shard_rule *c)
{
	int other = c->from == 0 ? 1 : 0;

	if (c->stated)
		return reshape_local(c);
	return split_reshape(given(c), c->ranks, &c->shape[c->from],
	                     &c->shape[other], &c->at[other]);
}

/* How many segments from `first` on have `extent` elements, of which each of
 * the shards has its part; -1: they end elsewhere. */
static int
count_segments(const Split *s, int first, int64_t extent, int64_t nshard)
{
	int i = first;

	if (s->npart > MAX_RANK) {
		int64_t each = s->part[0] / nshard;

		return each > 0 && extent % each == 0
			&& extent / each <= s->npart - first
			? (int)(extent / each) : -1;
	}
	for (; i < s->npart && extent > 0; i++)
		extent -= s->part[i] / nshard;
	return extent == 0 ? i - first : -1;
}

/* Segments that elements first..first+count-1 of the sharded dim are; a rank
 * counts in its own. */
static bool
slice_segments(const struct shard_rule *c, int64_t first, int64_t count,
               Split *to)
{
	const Split *s = given(c);
	int64_t nshard = c->stated ? count_shards(s, c->ranks) : 1;
	int skip = count_segments(s, 0, first, nshard);
	int n = skip < 0 ? -1 : count_segments(s, skip, count, nshard);

	to->npart = 0;
	return n > 0 && split_append_from(to, s, skip, n);
}

bool
shard_slice(struct shard_rule *c)
{
	const Attr *a = &c->n->attr;
	const Shape *x = &c->g->val[c->n->in[0]].shape;
	const Shape *y = &c->g->val[c->n->out[0]].shape;
	int other = c->from == 0 ? 1 : 0;
	Split to = *given(c);

	for (int i = to.lead; i <= to.axis; i++) {
		if (a->SLICE.start.v[i] == 0 && y->dim[i] == x->dim[i])
			continue;
		if (to.lead != to.axis || c->from != 0
		    || a->SLICE.step.v[i] != 1
		    || !slice_segments(c, a->SLICE.start.v[i], y->dim[i],
		                       &to))
			return false;
	}
	c->at[other] = to;
	return true;
}

/* Equal elements take the place of the stated result's segments from `first`
 * on, of which a rank has as many. */
static Split
fill_segments(const struct shard_rule *c, int p, int first)
{
	const Split *y = &c->g->val[c->n->out[0]].split;
	int axis = (int)c->n->attr.CONCAT.axis, n = -1;
	int64_t extent = c->g->val[c->n->in[p]].shape.dim[axis];
	Split one = *given(c);

	one.npart = 0;
	if (y->kind == SPLIT_S && y->axis == axis)
		n = count_segments(y, first, extent, count_shards(y, c->ranks));
	if (n < 1 || !split_append_from(&one, y, first, n))
		one.kind = SPLIT_I;
	return one;
}

/* The sharding lies on the dim along which operands are joined: each brings its
 * segments. */
static bool
concat_shards(struct shard_rule *c)
{
	int axis = (int)c->n->attr.CONCAT.axis;
	Split to = *given(c);

	if (c->from >= c->nin || to.lead != to.axis)
		return false;
	to.npart = 0;
	for (int p = 0; p < c->nin; p++) {
		Split one = !c->stated ? split_cut(axis, c->shape[p].dim[axis])
			: port_is(c, p) ? c->stated[p]
			: fill_segments(c, p, to.npart);

		if (one.kind != SPLIT_S || one.axis != axis
		    || one.shared != to.shared
		    || !split_append_from(&to, &one, 0, one.npart))
			return false;
		c->at[p] = one;
	}
	c->at[c->nin] = to;
	return split_local_extent(&to, c->ranks) > 0;
}

bool
shard_concat(struct shard_rule *c)
{
	if (given(c)->axis == c->n->attr.CONCAT.axis)
		return concat_shards(c);
	if (shards_dim(given(c), (int)c->n->attr.CONCAT.axis))
		return false;
	for (int p = 0; p < c->nport; p++)
		c->at[p] = *given(c);
	return true;
}

/* A rank's segments among others of zeros, which the stated result says: the
 * gradient of a slice that is one of several. */
static bool
pad_segments(struct shard_rule *c)
{
	const Split *s = given(c), *y = &c->g->val[c->n->out[0]].split;
	const Attr *a = &c->n->attr;
	int64_t nshard;
	int i;

	if (!c->stated || c->from != 0 || y->kind != SPLIT_S
	    || y->axis != s->axis || y->shared != s->shared
	    || a->PAD.mode != 0)
		return false;
	nshard = count_shards(y, c->ranks);
	i = count_segments(y, 0, a->PAD.begin.v[s->axis], nshard);
	if (i < 0 || s->npart > y->npart - i)
		return false;
	for (int k = 0; k < split_listed(s); k++)
		if (split_segment(y, i + k) != s->part[k])
			return false;
	i += s->npart;
	c->at[1] = *y;
	return count_segments(y, i, a->PAD.end.v[s->axis], nshard)
		== y->npart - i;
}

/* What is added at neither end may be sharded. */
bool
shard_pad(struct shard_rule *c)
{
	const Attr *a = &c->n->attr;

	if (pad_segments(c))
		return true;
	for (int i = given(c)->lead; i <= given(c)->axis; i++)
		if (a->PAD.begin.v[i] != 0 || a->PAD.end.v[i] != 0)
			return false;
	c->at[c->from == 0 ? 1 : 0] = *given(c);
	return true;
}
