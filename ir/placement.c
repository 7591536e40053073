/* Placement of values on the ranks of a tensor-parallel group. */
#include "ir/placement.h"

/* ---- attributes ---- */

static Placement
placement_from_segments(int64_t axis, int64_t first_axis, int64_t replication,
                    const IntList *segment)
{
	Placement s = { .kind = PLACEMENT_SHARD,
		    .axis = (int)axis,
		    .first_axis = (int)first_axis,
		    .nsegment = segment->n,
		    .replication = replication };

	for (int i = 0; i < segment->n; i++)
		s.segment[i] = segment->v[i];
	return s;
}

/* The ops that shard begin with the same attributes. */
Placement
placement_of_attr(const Node *n)
{
	Placement s = placement_from_segments(n->attr.OWN.axis,
	                                      n->attr.OWN.first_axis,
	                                      n->attr.OWN.replication,
	                                      &n->attr.OWN.segment);

	s.mirror = n->attr.OWN.mirror != 0;
	return s;
}

void
placement_to_attr(const Placement *s, Op op, Attr *a)
{
	*a = attr_default(op);
	a->OWN.axis = s->axis;
	a->OWN.first_axis = s->first_axis;
	a->OWN.replication = s->replication;
	a->OWN.segment.n = s->nsegment;
	a->OWN.mirror = s->mirror;
	for (int i = 0; i < s->nsegment; i++)
		a->OWN.segment.v[i] = s->segment[i];
}

Placement
placement_after_exchange(const Node *n)
{
	Placement s = placement_from_segments(n->attr.ALL_TO_ALL.to_axis,
	                           n->attr.ALL_TO_ALL.to_first_axis,
	                           n->attr.ALL_TO_ALL.to_replication,
	                           &n->attr.ALL_TO_ALL.to_segment);

	s.mirror = n->attr.ALL_TO_ALL.mirror != 0;
	return s;
}

void
placement_to_exchange(const Placement *from, const Placement *to, Attr *a)
{
	placement_to_attr(from, OP_ALL_TO_ALL, a);
	a->ALL_TO_ALL.to_axis = to->axis;
	a->ALL_TO_ALL.to_first_axis = to->first_axis;
	a->ALL_TO_ALL.to_replication = to->replication;
	a->ALL_TO_ALL.to_segment.n = to->nsegment;
	for (int i = 0; i < to->nsegment; i++)
		a->ALL_TO_ALL.to_segment.v[i] = to->segment[i];
}

Placement
placement_dim(int axis, int64_t extent)
{
	return (Placement){ .kind = PLACEMENT_SHARD,
		        .axis = axis,
		        .first_axis = axis,
		        .nsegment = 1,
		        .replication = 1,
		        .segment = { extent } };
}

Placement
placement_segments(int axis, int64_t count, int64_t extent)
{
	Placement s = placement_dim(axis, extent);

	s.nsegment = (int)count;
	for (int i = 1; i < placement_listed(&s); i++)
		s.segment[i] = extent;
	return s;
}

static bool
append_segments(Placement *s, int64_t count, int64_t extent)
{
	if (count > SEGMENTS_MAX - s->nsegment)
		return false;
	for (; count > 0 && s->nsegment < MAX_RANK; count--)
		s->segment[s->nsegment++] = extent;
	for (int i = 0; count > 0 && i < placement_listed(s); i++)
		if (s->segment[i] != extent)
			return false;
	s->nsegment += (int)count;
	return true;
}

bool
placement_append_from(Placement *s, const Placement *from, int first,
                      int64_t count)
{
	bool ok = true;

	if (from->nsegment > MAX_RANK)
		return append_segments(s, count, from->segment[0]);
	for (int i = first; ok && i < first + count; i++)
		ok = append_segments(s, 1, from->segment[i]);
	return ok;
}

bool
placement_eq(const Placement *a, const Placement *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind != PLACEMENT_SHARD)
		return true;
	if (a->axis != b->axis || a->first_axis != b->first_axis
	    || a->nsegment != b->nsegment || a->replication != b->replication
	    || a->mirror != b->mirror)
		return false;
	for (int i = 0; i < placement_listed(a); i++)
		if (a->segment[i] != b->segment[i])
			return false;
	return true;
}

bool
placement_alike(const Placement *a, const Placement *b)
{
	return (a->kind != PLACEMENT_SHARD && b->kind != PLACEMENT_SHARD)
		|| placement_eq(a, b);
}

/* ---- extents ---- */

/* How often each listed extent counts. */
static int64_t
segment_repeats(const Placement *s)
{
	return s->nsegment > MAX_RANK ? s->nsegment : 1;
}

int64_t
placement_local_extent(const Placement *s, int64_t ranks)
{
	int64_t sum = 0, shards;

	if (s->nsegment < 1 || s->replication < 1 || ranks < 1
	    || ranks % s->replication)
		return -1;
	shards = ranks / s->replication;
	for (int i = 0; i < placement_listed(s); i++) {
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
placement_is_even(const Placement *s, int64_t ranks)
{
	return s->nsegment > 1
		|| (placement_local_extent(s, ranks) >= 0
		    && s->segment[0] % (ranks / s->replication) == 0);
}

static int64_t
segments_sum(const Placement *s)
{
	int64_t sum = 0;

	for (int i = 0; i < placement_listed(s); i++)
		sum += s->segment[i];
	return sum * segment_repeats(s);
}

bool
placement_local(const Placement *s, int64_t ranks, const Shape *whole,
                Shape *local)
{
	int64_t merged = 1;

	*local = *whole;
	if (s->kind != PLACEMENT_SHARD)
		return true;
	if (s->first_axis < 0 || s->first_axis > s->axis
	    || s->axis >= whole->rank
	    || (s->first_axis < s->axis && s->nsegment != 1)
	    || placement_local_extent(s, ranks) < 0)
		return false;
	for (int i = s->first_axis; i <= s->axis; i++) {
		merged *= whole->dim[i];
		local->dim[i] = 1;
	}
	local->dim[s->axis] = placement_local_extent(s, ranks);
	return merged == segments_sum(s);
}

Shape
placement_whole(const Placement *s, const Shape *local)
{
	Shape whole = *local;

	if (s->kind == PLACEMENT_SHARD && s->axis < whole.rank)
		whole.dim[s->axis] = segments_sum(s);
	return whole;
}

Shape
val_whole(const Val *v)
{
	return v->shard
		? placement_whole(&v->shard->placement, &v->shard->shape)
		: placement_whole(&v->placement, &v->shape);
}

Placement
placement_without_dim(const Placement *s, int rank, int back)
{
	int gone = rank - back;
	Placement to = *s;

	if (s->kind != PLACEMENT_SHARD || s->axis < gone)
		return to;
	if (s->axis == gone)
		return (Placement){ .kind = PLACEMENT_REPLICATE };
	to.axis--;
	to.first_axis--;
	return to;
}

Placement
placement_over_replicas(const Shape *s)
{
	Placement cut = placement_dim(s->rank - 1, shape_nelem(s));

	cut.first_axis = 0;
	return cut;
}

Placement
shard_over_replicas(const struct replica_shard *s)
{
	return s->rows ? placement_dim(0, s->shape.dim[0])
		: placement_over_replicas(&s->shape);
}

Placement
placement_of_shard(const Placement *of, int64_t ranks, const Shape *shard)
{
	int last = shard->rank - 1;

	return of->kind == PLACEMENT_SHARD
		? placement_dim(last, ranks * shard->dim[last])
		: *of;
}
