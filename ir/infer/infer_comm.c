/* Shape rules: what ranks and replicas exchange. */
#include "ir/infer/rules.h"
#include "ir/placement.h"

/* How many share it: a replica's ranks, or replicas. */
static int64_t
group_size(const struct infer *c)
{
	return graph_group_size(c->g, node_group(c->n));
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
check_local_shape(struct infer *c, const Placement *s, const Shape *whole,
                  Shape *local)
{
	char text[INFER_TEXT];

	return placement_local(s, group_size(c), whole, local)
		|| rule_fail(c, "%s cannot be sharded in this way over %lld "
		             "ranks",
		             shape_text(text, INFER_TEXT, in(c, 0)->dt, whole),
		             (long long)group_size(c));
}

bool
infer_own(struct infer *c)
{
	Placement s = placement_of_attr(c->n);
	Shape local;

	return check_ranks(c) && shape_known(&in(c, 0)->shape)
		&& check_local_shape(c, &s, &in(c, 0)->shape, &local)
		&& rule_shape(c, local);
}

/* The whole of what is sharded as s says; merged dims are one. */
bool
infer_gathered(struct infer *c)
{
	Placement s = placement_of_attr(c->n);
	Shape x = shape_of(c, 0), whole, local;

	if (!check_ranks(c) || s.axis < 0 || s.axis >= x.rank || s.nsegment < 1
	    || s.nsegment > MAX_RANK)
		return rule_fail(c, "invalid shard axis %d for rank %d", s.axis,
		                 x.rank);
	whole = placement_whole(&s, &x);
	if (!check_local_shape(c, &s, &whole, &local))
		return false;
	return rule_want_shape(c, 0, &local, "shard of a rank")
		&& rule_shape(c, whole);
}

bool
infer_gather_into(struct infer *c)
{
	Placement s = placement_of_attr(c->n);
	Shape whole = shape_of(c, 0), local;

	return check_ranks(c) && check_local_shape(c, &s, &whole, &local)
		&& rule_want_shape(c, 1, &local, "shard of a replica")
		&& rule_shape(c, whole);
}

bool
infer_gather_shape(struct infer *c)
{
	Placement s = placement_of_attr(c->n);
	const IntList *to = &c->n->attr.GATHER_PIECES.shape;
	Shape whole = { .rank = to->n }, local;

	for (int i = 0; i < to->n; i++)
		whole.dim[i] = to->v[i];
	return check_ranks(c) && check_local_shape(c, &s, &whole, &local)
		&& rule_want_shape(c, 0, &local, "shard of a replica")
		&& rule_shape(c, whole);
}

/* Dim 0 of a value with rows, times or divided by the replicas. */
static bool
replica_rows(struct infer *c, bool all)
{
	Shape s = shape_of(c, 0);
	int64_t n = group_size(c);

	if (!check_ranks(c) || s.rank < 0)
		return check_ranks(c) && rule_shape(c, s);
	if (s.rank == 0)
		return rule_fail(c, "expected rows, found a scalar");
	if (s.dim[0] < 0)
		return rule_shape(c, s);
	if (!all && s.dim[0] % n)
		return rule_fail(c, "%lld rows cannot be those of %lld "
		                 "replicas", (long long)s.dim[0],
		                 (long long)n);
	if (all && !mul_ok(s.dim[0], n, &s.dim[0]))
		return rule_fail(c, "too many rows");
	s.dim[0] /= all ? 1 : n;
	return rule_shape(c, s);
}

bool
infer_gather_rows(struct infer *c)
{
	return replica_rows(c, true);
}

bool
infer_sum_rows(struct infer *c)
{
	return replica_rows(c, false);
}

bool
infer_exchange_rows(struct infer *c)
{
	Shape s = shape_of(c, 0);
	int64_t n = group_size(c);
	bool out;

	if (!check_ranks(c) || s.rank < 0)
		return check_ranks(c) && rule_shape(c, s);
	if (!rule_want_rank(c, 0, 2))
		return false;
	out = s.dim[0] == 1;
	if (!rule_want_shape(c, 0, &(Shape){ s.rank, {
		out ? 1 : n, out ? n : 1, s.dim[2], s.dim[3], s.dim[4],
		s.dim[5], s.dim[6], s.dim[7] } }, "blocks of replicas"))
		return false;
	s.dim[0] = out ? n : 1;
	s.dim[1] = out ? 1 : n;
	return rule_shape(c, s);
}

/* Its output is absent. */
bool
infer_send(struct infer *c)
{
	(void)c;
	return true;
}

bool
infer_receive(struct infer *c)
{
	const IntList *l = &c->n->attr.RECEIVE.shape;
	int64_t dt = c->n->attr.RECEIVE.dt;

	if (dt <= DT_NONE || dt >= DT_COUNT)
		return rule_fail(c, "unknown type %lld", (long long)dt);
	for (int i = 0; i < l->n; i++)
		if (l->v[i] < 0)
			return rule_fail(c, "extent %lld is out of range",
			                 (long long)l->v[i]);
	return rule_result(c, 0, (DType)dt, shape_make(l->n, l->v));
}

bool
infer_all_to_all(struct infer *c)
{
	Placement from = placement_of_attr(c->n),
		  to = placement_after_exchange(c->n);
	Shape x = shape_of(c, 0), whole, local;

	if (!check_ranks(c) || from.axis < 0 || from.axis >= x.rank
	    || from.first_axis != from.axis || to.first_axis != to.axis)
		return rule_fail(c, "invalid shard axes %d and %d for rank %d",
		                 from.axis,
		                 to.axis, x.rank);
	whole = placement_whole(&from, &x);
	return check_local_shape(c, &from, &whole, &local)
		&& rule_want_shape(c, 0, &local, "shard of a rank")
		&& check_local_shape(c, &to, &whole, &local)
		&& rule_shape(c, local);
}
