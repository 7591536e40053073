/* Placement of values on the ranks of a tensor-parallel group, and the shapes
 * of collectives.
 */
#include "ir/infer.h"
#include "ir/split.h"

/* ---- attributes ---- */

static Split
split_from_segments(int64_t axis, int64_t first_axis, int64_t replication,
                    const IntList *segment)
{
	Split s = { .kind = SPLIT_SHARD,
		    .axis = (int)axis,
		    .first_axis = (int)first_axis,
		    .nsegment = segment->n,
		    .replication = replication };

	for (int i = 0; i < segment->n; i++)
		s.segment[i] = segment->v[i];
	return s;
}

/* The ops that shard begin with the same attributes. */
Split
split_of_attr(const Node *n)
{
	return split_from_segments(n->attr.OWN.axis, n->attr.OWN.lead,
	                           n->attr.OWN.shared, &n->attr.OWN.part);
}

void
split_to_attr(const Split *s, Op op, Attr *a)
{
	*a = attr_default(op);
	a->OWN.axis = s->axis;
	a->OWN.lead = s->first_axis;
	a->OWN.shared = s->replication;
	a->OWN.part.n = s->nsegment;
	for (int i = 0; i < s->nsegment; i++)
		a->OWN.part.v[i] = s->segment[i];
}

Split
split_after_exchange(const Node *n)
{
	return split_from_segments(n->attr.ALL_TO_ALL.to_axis,
	                           n->attr.ALL_TO_ALL.to_lead,
	                           n->attr.ALL_TO_ALL.to_shared,
	                           &n->attr.ALL_TO_ALL.to_part);
}

Split
split_dim(int axis, int64_t extent)
{
	return (Split){ .kind = SPLIT_SHARD,
		        .axis = axis,
		        .first_axis = axis,
		        .nsegment = 1,
		        .replication = 1,
		        .segment = { extent } };
}

Split
split_segments(int axis, int64_t count, int64_t extent)
{
	Split s = split_dim(axis, extent);

	s.nsegment = (int)count;
	for (int i = 1; i < split_listed(&s); i++)
		s.segment[i] = extent;
	return s;
}

static bool
append_segments(Split *s, int64_t count, int64_t extent)
{
	if (count > SEGMENTS_MAX - s->nsegment)
		return false;
	for (; count > 0 && s->nsegment < MAX_RANK; count--)
		s->segment[s->nsegment++] = extent;
	for (int i = 0; count > 0 && i < split_listed(s); i++)
		if (s->segment[i] != extent)
			return false;
	s->nsegment += (int)count;
	return true;
}

bool
split_append_from(Split *s, const Split *from, int first, int64_t count)
{
	bool ok = true;

	if (from->nsegment > MAX_RANK)
		return append_segments(s, count, from->segment[0]);
	for (int i = first; ok && i < first + count; i++)
		ok = append_segments(s, 1, from->segment[i]);
	return ok;
}

bool
split_eq(const Split *a, const Split *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind != SPLIT_SHARD)
		return true;
	if (a->axis != b->axis || a->first_axis != b->first_axis
	    || a->nsegment != b->nsegment || a->replication != b->replication)
		return false;
	for (int i = 0; i < split_listed(a); i++)
		if (a->segment[i] != b->segment[i])
			return false;
	return true;
}

bool
split_alike(const Split *a, const Split *b)
{
	return (a->kind != SPLIT_SHARD && b->kind != SPLIT_SHARD)
		|| split_eq(a, b);
}

/* ---- extents ---- */

/* How often each listed extent counts. */
static int64_t
segment_repeats(const Split *s)
{
	return s->nsegment > MAX_RANK ? s->nsegment : 1;
}

int64_t
split_local_extent(const Split *s, int64_t ranks)
{
	int64_t sum = 0, shards;

	if (s->nsegment < 1 || s->replication < 1 || ranks < 1
	    || ranks % s->replication)
		return -1;
	shards = ranks / s->replication;
	for (int i = 0; i < split_listed(s); i++) {
		if (s->segment[i] < 1
		    || s->segment[i] > GRAPH_BYTES_MAX / segment_repeats(s))
			return -1;
		/* zeros in the middle would be rows of the whole */
		if (s->nsegment > 1 && s->segment[i] % shards)
			return -1;
		sum += s->segment[i] / shards + (s->segment[i] % shards != 0);
	}
	return sum * segment_repeats(s);
}

bool
split_is_even(const Split *s, int64_t ranks)
{
	return s->nsegment > 1 || s->segment[0] % (ranks / s->replication) == 0;
}

static int64_t
segments_sum(const Split *s)
{
	int64_t sum = 0;

	for (int i = 0; i < split_listed(s); i++)
		sum += s->segment[i];
	return sum * segment_repeats(s);
}

bool
split_local(const Split *s, int64_t ranks, const Shape *whole, Shape *local)
{
	int64_t merged = 1;

	*local = *whole;
	if (s->kind != SPLIT_SHARD)
		return true;
	if (s->first_axis < 0 || s->first_axis > s->axis
	    || s->axis >= whole->rank
	    || (s->first_axis < s->axis && s->nsegment != 1)
	    || split_local_extent(s, ranks) < 0)
		return false;
	for (int i = s->first_axis; i <= s->axis; i++) {
		merged *= whole->dim[i];
		local->dim[i] = 1;
	}
	local->dim[s->axis] = split_local_extent(s, ranks);
	return merged == segments_sum(s);
}

Shape
split_whole(const Split *s, const Shape *local)
{
	Shape whole = *local;

	if (s->kind == SPLIT_SHARD && s->axis < whole.rank)
		whole.dim[s->axis] = segments_sum(s);
	return whole;
}

Shape
val_whole(const Val *v)
{
	return v->shard ? split_whole(&v->shard->split, &v->shard->shape)
	     : split_whole(&v->split, &v->shape);
}

Split
split_without_dim(const Split *s, int rank, int back)
{
	int gone = rank - back;
	Split to = *s;

	if (s->kind != SPLIT_SHARD || s->axis < gone)
		return to;
	if (s->axis == gone)
		return (Split){ .kind = SPLIT_REPLICATE };
	to.axis--;
	to.first_axis--;
	return to;
}

Split
split_over_replicas(const Shape *s)
{
	Split cut = split_dim(s->rank - 1, shape_nelem(s));

	cut.first_axis = 0;
	return cut;
}

Split
split_of_shard(const Split *of, int64_t ranks, const Shape *shard)
{
	int last = shard->rank - 1;

	return of->kind == SPLIT_SHARD
		? split_dim(last, ranks * shard->dim[last])
		: *of;
}

/* ---- shapes of collectives ---- */

/* How many share it: a replica's ranks, or replicas. */
static int64_t
group_size(const struct infer *c)
{
	Attr a = c->n->attr;
	const int64_t *group = attr_int_of(c->n->op, &a, "group");

	if (group && *group)
		return c->g->exact ? c->g->replicas : 0;
	return c->g->ranks;
}

static bool
check_ranks(struct infer *c)
{
	return group_size(c) > 0
		|| rule_fail(c, "the graph does not declare its number of "
		             "ranks");
}

/* The whole operand's shard. */
static bool
check_local_shape(struct infer *c, const Split *s, const Shape *whole,
                  Shape *local)
{
	char text[INFER_TEXT];

	return split_local(s, group_size(c), whole, local)
		|| rule_fail(c, "%s cannot be sharded in this way over %lld "
		             "ranks",
		             shape_text(text, INFER_TEXT, in(c, 0)->dt, whole),
		             (long long)group_size(c));
}

bool
infer_own(struct infer *c)
{
	Split s = split_of_attr(c->n);
	Shape local;

	return check_ranks(c) && shape_known(&in(c, 0)->shape)
		&& check_local_shape(c, &s, &in(c, 0)->shape, &local)
		&& rule_shape(c, local);
}

/* The whole of what is sharded as s says; merged dims are one. */
bool
infer_gathered(struct infer *c)
{
	Split s = split_of_attr(c->n);
	Shape x = shape_of(c, 0), whole, local;

	if (!check_ranks(c) || s.axis < 0 || s.axis >= x.rank || s.nsegment < 1
	    || s.nsegment > MAX_RANK)
		return rule_fail(c, "invalid shard axis %d for rank %d", s.axis,
		                 x.rank);
	whole = split_whole(&s, &x);
	if (!check_local_shape(c, &s, &whole, &local))
		return false;
	return rule_want_shape(c, 0, &local, "shard of a rank")
		&& rule_shape(c, whole);
}

bool
infer_gather_into(struct infer *c)
{
	Split s = split_of_attr(c->n);
	Shape whole = shape_of(c, 0), local;

	return check_ranks(c) && check_local_shape(c, &s, &whole, &local)
		&& rule_want_shape(c, 1, &local, "shard of a replica")
		&& rule_shape(c, whole);
}

bool
infer_gather_shape(struct infer *c)
{
	Split s = split_of_attr(c->n);
	const IntList *to = &c->n->attr.GATHER_PIECES.shape;
	Shape whole = { .rank = to->n }, local;

	for (int i = 0; i < to->n; i++)
		whole.dim[i] = to->v[i];
	return check_ranks(c) && check_local_shape(c, &s, &whole, &local)
		&& rule_want_shape(c, 0, &local, "shard of a replica")
		&& rule_shape(c, whole);
}

bool
infer_all_to_all(struct infer *c)
{
	Split from = split_of_attr(c->n), to = split_after_exchange(c->n);
	Shape x = shape_of(c, 0), whole, local;

	if (!check_ranks(c) || from.axis < 0 || from.axis >= x.rank
	    || from.first_axis != from.axis || to.first_axis != to.axis)
		return rule_fail(c, "invalid shard axes %d and %d for rank %d",
		                 from.axis,
		                 to.axis, x.rank);
	whole = split_whole(&from, &x);
	return check_local_shape(c, &from, &whole, &local)
		&& rule_want_shape(c, 0, &local, "shard of a rank")
		&& check_local_shape(c, &to, &whole, &local)
		&& rule_shape(c, local);
}
