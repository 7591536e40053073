/* Placement of values on the ranks of a tensor-parallel group, and the shapes
 * of collectives.
 */
#include "ir/infer.h"
#include "ir/split.h"

/* ---- attributes ---- */

static Split
split_from_parts(int64_t axis, int64_t lead, int64_t shared,
                 const IntList *part)
{
	Split s = { .kind = SPLIT_S, .axis = (int)axis, .lead = (int)lead,
	            .npart = part->n, .shared = shared };

	for (int i = 0; i < part->n; i++)
		s.part[i] = part->v[i];
	return s;
}

/* The ops that cut begin with the same attributes. */
Split
split_of_attr(const Node *n)
{
	return split_from_parts(n->attr.OWN.axis, n->attr.OWN.lead,
	                        n->attr.OWN.shared, &n->attr.OWN.part);
}

void
split_to_attr(const Split *s, Op op, Attr *a)
{
	*a = attr_default(op);
	a->OWN.axis = s->axis;
	a->OWN.lead = s->lead;
	a->OWN.shared = s->shared;
	a->OWN.part.n = s->npart;
	for (int i = 0; i < s->npart; i++)
		a->OWN.part.v[i] = s->part[i];
}

Split
split_after_exchange(const Node *n)
{
	return split_from_parts(n->attr.ALL_TO_ALL.to_axis,
	                        n->attr.ALL_TO_ALL.to_lead,
	                        n->attr.ALL_TO_ALL.to_shared,
	                        &n->attr.ALL_TO_ALL.to_part);
}

Split
split_cut(int axis, int64_t extent)
{
	return (Split){ .kind = SPLIT_S, .axis = axis, .lead = axis,
	                .npart = 1, .shared = 1, .part = { extent } };
}

Split
split_segments(int axis, int64_t count, int64_t extent)
{
	Split s = split_cut(axis, extent);

	s.npart = (int)count;
	for (int i = 1; i < split_listed(&s); i++)
		s.part[i] = extent;
	return s;
}

static bool
append_segments(Split *s, int64_t count, int64_t extent)
{
	if (count > SEGMENTS_MAX - s->npart)
		return false;
	for (; count > 0 && s->npart < MAX_RANK; count--)
		s->part[s->npart++] = extent;
	for (int i = 0; count > 0 && i < split_listed(s); i++)
		if (s->part[i] != extent)
			return false;
	s->npart += (int)count;
	return true;
}

bool
split_append_from(Split *s, const Split *from, int first, int64_t count)
{
	bool ok = true;

	if (from->npart > MAX_RANK)
		return append_segments(s, count, from->part[0]);
	for (int i = first; ok && i < first + count; i++)
		ok = append_segments(s, 1, from->part[i]);
	return ok;
}

bool
split_eq(const Split *a, const Split *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind != SPLIT_S)
		return true;
	if (a->axis != b->axis || a->lead != b->lead || a->npart != b->npart
	    || a->shared != b->shared)
		return false;
	for (int i = 0; i < split_listed(a); i++)
		if (a->part[i] != b->part[i])
			return false;
	return true;
}

bool
split_alike(const Split *a, const Split *b)
{
	return (a->kind != SPLIT_S && b->kind != SPLIT_S) || split_eq(a, b);
}

/* ---- extents ---- */

/* How often each listed extent counts. */
static int64_t
times(const Split *s)
{
	return s->npart > MAX_RANK ? s->npart : 1;
}

int64_t
split_local_extent(const Split *s, int64_t ranks)
{
	int64_t sum = 0, pieces;

	if (s->npart < 1 || s->shared < 1 || ranks < 1 || ranks % s->shared)
		return -1;
	pieces = ranks / s->shared;
	for (int i = 0; i < split_listed(s); i++) {
		if (s->part[i] < 1 || s->part[i] > GRAPH_BYTES_MAX / times(s))
			return -1;
		/* zeros in the middle would be rows of the whole */
		if (s->npart > 1 && s->part[i] % pieces)
			return -1;
		sum += s->part[i] / pieces + (s->part[i] % pieces != 0);
	}
	return sum * times(s);
}

bool
split_is_even(const Split *s, int64_t ranks)
{
	return s->npart > 1 || s->part[0] % (ranks / s->shared) == 0;
}

static int64_t
parts_sum(const Split *s)
{
	int64_t sum = 0;

	for (int i = 0; i < split_listed(s); i++)
		sum += s->part[i];
	return sum * times(s);
}

bool
split_local(const Split *s, int64_t ranks, const Shape *whole, Shape *local)
{
	int64_t merged = 1;

	*local = *whole;
	if (s->kind != SPLIT_S)
		return true;
	if (s->lead < 0 || s->lead > s->axis || s->axis >= whole->rank
	    || (s->lead < s->axis && s->npart != 1)
	    || split_local_extent(s, ranks) < 0)
		return false;
	for (int i = s->lead; i <= s->axis; i++) {
		merged *= whole->dim[i];
		local->dim[i] = 1;
	}
	local->dim[s->axis] = split_local_extent(s, ranks);
	return merged == parts_sum(s);
}

Shape
split_whole(const Split *s, const Shape *local)
{
	Shape whole = *local;

	if (s->kind == SPLIT_S && s->axis < whole.rank)
		whole.dim[s->axis] = parts_sum(s);
	return whole;
}

Shape
val_whole(const Val *v)
{
	return v->piece ? split_whole(&v->piece->split, &v->piece->shape)
	     : split_whole(&v->split, &v->shape);
}

Split
split_without(const Split *s, int rank, int back)
{
	int gone = rank - back;
	Split to = *s;

	if (s->kind != SPLIT_S || s->axis < gone)
		return to;
	if (s->axis == gone)
		return (Split){ .kind = SPLIT_I };
	to.axis--;
	to.lead--;
	return to;
}

Split
split_over_replicas(const Shape *s)
{
	Split cut = split_cut(s->rank - 1, shape_nelem(s));

	cut.lead = 0;
	return cut;
}

Split
split_of_piece(const Split *of, int64_t ranks, const Shape *piece)
{
	int last = piece->rank - 1;

	return of->kind == SPLIT_S
		? split_cut(last, ranks * piece->dim[last])
		: *of;
}

/* ---- shapes of collectives ---- */

/* How many share it: a replica's ranks, or replicas. */
static int64_t
sharers(const struct infer *c)
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
	return sharers(c) > 0
		|| rule_fail(c, "the graph does not declare its number of "
		             "ranks");
}

/* The whole operand's shard. */
static bool
local_shape(struct infer *c, const Split *s, const Shape *whole, Shape *local)
{
	char text[INFER_TEXT];

	return split_local(s, sharers(c), whole, local)
		|| rule_fail(c, "%s cannot be sharded in this way over %lld "
		             "ranks",
		             shape_text(text, INFER_TEXT, in(c, 0)->dt, whole),
		             (long long)sharers(c));
}

bool
infer_own(struct infer *c)
{
	Split s = split_of_attr(c->n);
	Shape local;

	return check_ranks(c) && shape_known(&in(c, 0)->shape)
		&& local_shape(c, &s, &in(c, 0)->shape, &local)
		&& rule_shape(c, local);
}

/* The whole of what is sharded as s says; dims that were taken as one are
 * one. */
bool
infer_gathered(struct infer *c)
{
	Split s = split_of_attr(c->n);
	Shape x = shape_of(c, 0), whole, local;

	if (!check_ranks(c) || s.axis < 0 || s.axis >= x.rank || s.npart < 1
	    || s.npart > MAX_RANK)
		return rule_fail(c, "invalid shard axis %d for rank %d", s.axis,
		                 x.rank);
	whole = split_whole(&s, &x);
	if (!local_shape(c, &s, &whole, &local))
		return false;
	return rule_want_shape(c, 0, &local, "shard of a rank")
		&& rule_shape(c, whole);
}

bool
infer_gather_into(struct infer *c)
{
	Split s = split_of_attr(c->n);
	Shape whole = shape_of(c, 0), local;

	return check_ranks(c) && local_shape(c, &s, &whole, &local)
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
	return check_ranks(c) && local_shape(c, &s, &whole, &local)
		&& rule_want_shape(c, 0, &local, "shard of a replica")
		&& rule_shape(c, whole);
}

bool
infer_all_to_all(struct infer *c)
{
	Split from = split_of_attr(c->n), to = split_after_exchange(c->n);
	Shape x = shape_of(c, 0), whole, local;

	if (!check_ranks(c) || from.axis < 0 || from.axis >= x.rank
	    || from.lead != from.axis || to.lead != to.axis)
		return rule_fail(c, "invalid shard axes %d and %d for rank %d",
		                 from.axis,
		                 to.axis, x.rank);
	whole = split_whole(&from, &x);
	return local_shape(c, &from, &whole, &local)
		&& rule_want_shape(c, 0, &local, "shard of a rank")
		&& local_shape(c, &to, &whole, &local)
		&& rule_shape(c, local);
}
