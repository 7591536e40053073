/* How a sharding passes through ops that move elements. */
#include "ir/sharding/sharding.h"

bool
sharding_transpose(struct sharding_rule *c)
{
	const IntList *perm = &c->n->attr.TRANSPOSE.perm;
	bool back = c->from >= c->nin;
	int other = back ? 0 : 1, where[MAX_RANK];
	Placement to = *given_split(c);

	for (int i = 0; i < perm->n; i++)
		where[back ? i : (int)perm->v[i]] = back ? (int)perm->v[i] : i;
	to.first_axis = where[given_split(c)->first_axis];
	to.axis = where[given_split(c)->axis];
	for (int i = given_split(c)->first_axis; i < given_split(c)->axis; i++)
		if (where[i + 1] != where[i] + 1)
			return false;
	c->at[other] = to;
	return true;
}

static bool
has_equal_segments(const Placement *s)
{
	for (int i = 1; i < placement_listed(s); i++)
		if (s->segment[i] != s->segment[0])
			return false;
	return true;
}

static int64_t
count_shards(const Placement *s, int64_t ranks)
{
	return ranks / s->replication;
}

static int64_t
div_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* Shardings of dims first_axis..axis of shape `to`, merged, with segments
 * of `run` elements of which a shard has `shard`. */
static bool
try_one_segment(const Shape *to, int first_axis, int64_t run, int64_t shard,
                Placement *s, int64_t ranks)
{
	int64_t n = 1;

	for (int axis = first_axis; axis < to->rank; axis++) {
		int64_t post = shape_span(to, axis + 1, to->rank);

		n *= to->dim[axis];
		if (n * post != run || div_up(n, count_shards(s, ranks)) * post
		    != shard)
			continue;
		s->first_axis = first_axis;
		s->axis = axis;
		s->nsegment = 1;
		s->segment[0] = n;
		while (s->first_axis < s->axis && to->dim[s->first_axis] == 1)
			s->first_axis++;
		return true;
	}
	return false;
}

/* All segments have `run` elements, and there are `count` of them. */
static bool
find_uniform_split(const Shape *to, int64_t count, int64_t run, int64_t shard,
                   Placement *s, int64_t ranks)
{
	int64_t shared;

	for (int first_axis = 0; first_axis < to->rank; first_axis++)
		if (shape_span(to, 0, first_axis) == count
		    && try_one_segment(to, first_axis, run, shard, s, ranks))
			return true;
	for (int axis = to->rank; axis-- > 0; ) {
		int64_t pre = shape_span(to, 0, axis);
		int64_t post = shape_span(to, axis + 1, to->rank);
		int64_t n = pre > 0 && count % pre == 0 ? count / pre : 0;
		int64_t part = n > 0 && to->dim[axis] % n == 0
			? to->dim[axis] / n : 0;

		if (n < 2 || n > SEGMENTS_MAX || part * post != run
		    || part % count_shards(s, ranks)
		    || part / count_shards(s, ranks) * post != shard)
			continue;
		shared = s->replication;
		*s = placement_segments(axis, n, part);
		s->replication = shared;
		return true;
	}
	return false;
}

/* What a reshape makes of a placement; false if it has no name there. */
static bool
split_reshape(const Placement *s, int64_t ranks, const Shape *from,
              const Shape *to, Placement *result)
{
	int64_t pre = shape_span(from, 0, s->first_axis);
	int64_t post = shape_span(from, s->axis + 1, from->rank);

	*result = *s;
	if (has_equal_segments(s))
		return find_uniform_split(to, pre * s->nsegment,
		                          s->segment[0] * post,
		                          div_up(s->segment[0],
		                                 count_shards(s, ranks))
		                          * post, result, ranks);
	for (int axis = 0; axis < to->rank; axis++)
		if (shape_span(to, 0, axis) == pre
		    && to->dim[axis] == from->dim[s->axis]
		    && shape_span(to, axis + 1, to->rank) == post) {
			result->axis = result->first_axis = axis;
			return true;
		}
	return false;
}

Placement
placement_normal(const Placement *s, int64_t ranks, const Shape *whole)
{
	Placement to;

	if (s->kind != PLACEMENT_SHARD
	    || !split_reshape(s, ranks, whole, whole, &to))
		return *s;
	return to;
}

/* The sharded dim itself stays, best as the same one. */
static bool
keep_sharded_dim(const Placement *s, const Shape *from, const Shape *to,
                 Placement *y)
{
	for (int i = -1; i < to->rank; i++) {
		int axis = i < 0 ? s->axis : i;

		if (axis >= to->rank
		    || shape_span(to, 0, axis) != shape_span(from, 0, s->axis)
		    || to->dim[axis] != from->dim[s->axis])
			continue;
		*y = *s;
		y->axis = y->first_axis = axis;
		return true;
	}
	return false;
}

/* A rank's shapes do not tell [1,8] of 4 x 8 from that of 1 x 32, so a stated
 * result is compared shard by shard; otherwise the sharding lies on the first
 * dim that is more than one. */
static bool
reshape_local_split(struct sharding_rule *c)
{
	const Placement *s = given_split(c),
			*y = &c->g->val[c->n->out[0]].placement;
	const Shape *from = &c->g->val[c->n->in[0]].shape;
	const Shape *to = &c->g->val[c->n->out[0]].shape;
	Shape x = c->shape[0], whole = placement_whole(y, to);
	Placement guess = *s;

	if (y->kind == PLACEMENT_SHARD) {
		Placement a = placement_normal(y, c->ranks, &whole);

		if (!split_reshape(s, c->ranks, &x, &whole, &guess)
		    || !placement_eq(&guess, &a))
			return false;
		c->at[1] = *y;
		return true;
	}
	if (keep_sharded_dim(s, from, to, &c->at[1]))
		return true;
	for (int first_axis = 0; first_axis < to->rank; first_axis++) {
		int axis = first_axis;
		int64_t whole_run = shape_span(&x, s->axis, x.rank), post;

		if (shape_span(to, 0, first_axis)
		    != shape_span(from, 0, s->axis)
		    || !has_equal_segments(s))
			continue;
		while (axis + 1 < to->rank && to->dim[axis] == 1)
			axis++;
		post = shape_span(to, axis + 1, to->rank);
		if (s->nsegment > 1 || whole_run % post)
			break;
		guess.axis = guess.first_axis = axis;
		guess.segment[0] = whole_run / post;
		if (placement_local_extent(&guess, c->ranks) != to->dim[axis])
			break;
		c->at[1] = guess;
		return true;
	}
	return false;
}

bool
sharding_reshape(struct sharding_rule *c)
{
	int other = c->from == 0 ? 1 : 0;

	if (c->stated)
		return reshape_local_split(c);
	return split_reshape(given_split(c), c->ranks, &c->shape[c->from],
	                     &c->shape[other], &c->at[other]);
}

/* How many segments from `first` on have `extent` elements, of which each of
 * the shards has its part; -1: they end elsewhere. */
static int
count_segments(const Placement *s, int first, int64_t extent, int64_t nshard)
{
	int i = first;

	if (s->nsegment > MAX_RANK) {
		int64_t each = s->segment[0] / nshard;

		return each > 0 && extent % each == 0
			&& extent / each <= s->nsegment - first
			? (int)(extent / each) : -1;
	}
	for (; i < s->nsegment && extent > 0; i++)
		extent -= s->segment[i] / nshard;
	return extent == 0 ? i - first : -1;
}

/* Segments that elements first..first+count-1 of the sharded dim are; a rank
 * counts in its own. */
static bool
slice_segments(const struct sharding_rule *c, int64_t first, int64_t count,
               Placement *to)
{
	const Placement *s = given_split(c);
	int64_t nshard = c->stated ? count_shards(s, c->ranks) : 1;
	int skip = count_segments(s, 0, first, nshard);
	int n = skip < 0 ? -1 : count_segments(s, skip, count, nshard);

	to->nsegment = 0;
	return n > 0 && placement_append_from(to, s, skip, n);
}

bool
sharding_slice(struct sharding_rule *c)
{
	const Attr *a = &c->n->attr;
	const Shape *x = &c->g->val[c->n->in[0]].shape;
	const Shape *y = &c->g->val[c->n->out[0]].shape;
	int other = c->from == 0 ? 1 : 0;
	Placement to = *given_split(c);

	for (int i = to.first_axis; i <= to.axis; i++) {
		if (a->SLICE.start.v[i] == 0 && y->dim[i] == x->dim[i])
			continue;
		if (to.first_axis != to.axis || c->from != 0
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
static Placement
fill_segments(const struct sharding_rule *c, int p, int first)
{
	const Placement *y = &c->g->val[c->n->out[0]].placement;
	int axis = (int)c->n->attr.CONCAT.axis, n = -1;
	int64_t extent = c->g->val[c->n->in[p]].shape.dim[axis];
	Placement one = *given_split(c);

	one.nsegment = 0;
	if (y->kind == PLACEMENT_SHARD && y->axis == axis)
		n = count_segments(y, first, extent, count_shards(y, c->ranks));
	if (n < 1 || !placement_append_from(&one, y, first, n))
		one.kind = PLACEMENT_REPLICATE;
	return one;
}

/* The sharding lies on the dim along which operands are joined: each brings its
 * segments. */
static bool
concat_shards(struct sharding_rule *c)
{
	int axis = (int)c->n->attr.CONCAT.axis;
	Placement to = *given_split(c);

	if (c->from >= c->nin || to.first_axis != to.axis)
		return false;
	to.nsegment = 0;
	for (int p = 0; p < c->nin; p++) {
		Placement one = !c->stated
			? placement_dim(axis, c->shape[p].dim[axis])
			: has_value(c, p) ? c->stated[p]
					 : fill_segments(c, p, to.nsegment);

		if (one.kind != PLACEMENT_SHARD || one.axis != axis
		    || one.replication != to.replication
		    || !placement_append_from(&to, &one, 0, one.nsegment))
			return false;
		c->at[p] = one;
	}
	c->at[c->nin] = to;
	return placement_local_extent(&to, c->ranks) > 0;
}

bool
sharding_concat(struct sharding_rule *c)
{
	if (given_split(c)->axis == c->n->attr.CONCAT.axis)
		return concat_shards(c);
	if (shards_dim(given_split(c), (int)c->n->attr.CONCAT.axis))
		return false;
	for (int p = 0; p < c->nvalue; p++)
		c->at[p] = *given_split(c);
	return true;
}

/* A rank's segments among others of zeros, which the stated result says: the
 * gradient of a slice that is one of several. */
static bool
pad_segments(struct sharding_rule *c)
{
	const Placement *s = given_split(c),
			*y = &c->g->val[c->n->out[0]].placement;
	const Attr *a = &c->n->attr;
	int64_t nshard;
	int i;

	if (!c->stated || c->from != 0 || y->kind != PLACEMENT_SHARD
	    || y->axis != s->axis || y->replication != s->replication
	    || a->PAD.mode != 0)
		return false;
	nshard = count_shards(y, c->ranks);
	i = count_segments(y, 0, a->PAD.begin.v[s->axis], nshard);
	if (i < 0 || s->nsegment > y->nsegment - i)
		return false;
	for (int k = 0; k < placement_listed(s); k++)
		if (placement_segment(y, i + k) != s->segment[k])
			return false;
	i += s->nsegment;
	c->at[1] = *y;
	return count_segments(y, i, a->PAD.end.v[s->axis], nshard)
		== y->nsegment - i;
}

/* What is added at neither end may be sharded. */
bool
sharding_pad(struct sharding_rule *c)
{
	const Attr *a = &c->n->attr;

	if (pad_segments(c))
		return true;
	for (int i = given_split(c)->first_axis; i <= given_split(c)->axis; i++)
		if (a->PAD.begin.v[i] != 0 || a->PAD.end.v[i] != 0)
			return false;
	c->at[c->from == 0 ? 1 : 0] = *given_split(c);
	return true;
}
