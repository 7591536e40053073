/* How a sharding passes through a node: shard_follow, element-wise ops,
 * reductions. */
#include "ir/placement/placement.h"

bool
split_shift(const Split *s, int by, int rank, Split *to)
{
	*to = *s;
	to->axis += by;
	to->first_axis += by;
	return to->first_axis >= 0 && to->axis < rank;
}

bool
shard_none(struct shard_rule *c)
{
	(void)c;
	return false;
}

/* What is sharded over ranks, in front of a shard or behind it. */
static bool
replica_shard_rule(struct shard_rule *c)
{
	int shard = op_info[c->n->op].flags & F_WRITES ? 1 : result_port(c, 0);
	Shape shape = { .rank = c->shape[0].rank };
	Split s = split_of_attr(c->n);

	if (c->from == shard || shape.rank < 1)
		return false;
	shape.dim[shape.rank - 1] = split_local_extent(&s, c->g->replicas);
	for (int p = 0; p < c->nport; p++)
		c->at[p] = *given_split(c);
	c->at[shard] = split_of_shard(given_split(c), c->ranks, &shape);
	return true;
}

/* Collectives change placements: shard_infer knows how.  Those of replicas do
 * not care for them. */
bool
shard_comm(struct shard_rule *c)
{
	Attr a = c->n->attr;

	if (shard_is_comm(c->n))
		return false;
	return attr_int_of(c->n->op, &a, "axis") ? replica_shard_rule(c)
	     : shard_ew(c);
}

/* ---- element-wise ---- */

static int
result_rank(const struct shard_rule *c)
{
	int rank = 0;

	for (int p = 0; p < c->nport; p++)
		if (c->shape[p].rank > rank)
			rank = c->shape[p].rank;
	return rank;
}

/* Whether s has the extents of t over the dims of the sharding, or ones
 * there. */
static bool
has_sharded_dims(const Shape *s, const Split *sharded, const Shape *t,
                 int shift, bool *ones)
{
	bool same = true;

	*ones = true;
	for (int i = sharded->first_axis; i <= sharded->axis; i++) {
		*ones &= s->dim[i] == 1;
		same &= s->dim[i] == t->dim[i + shift];
	}
	return same;
}

/* Port p aligned at the last dim with the port given. */
static bool
align_port(struct shard_rule *c, int p)
{
	const Shape *from = &c->shape[c->from], *s = &c->shape[p];
	int shift = s->rank - from->rank;
	Split to;
	bool ones, same;

	if (given_split(c)->axis + shift < 0)
		return p < c->nin;      /* broadcast */
	if (!split_shift(given_split(c), shift, s->rank, &to)) {
		/* some of the dims are not there: the others must be ones */
		for (int i = 0; i <= to.axis; i++)
			if (s->dim[i] != 1)
				return false;
		return p < c->nin;
	}
	same = has_sharded_dims(s, &to, from, -shift, &ones);
	if (p >= c->nin && c->stated) {
		c->at[p] = to;
		return true;
	}
	if (!same)
		return ones && p < c->nin;
	c->at[p] = to;
	return true;
}

bool
shard_ew(struct shard_rule *c)
{
	int rank = result_rank(c);
	bool sharded = false;

	if (!split_is_even(given_split(c), c->ranks)
	    && op_info[c->n->op].flags & F_POLES)
		return false;
	for (int p = 0; p < c->nport; p++) {
		if (p != c->from && has_port(c, p) && !align_port(c, p))
			return false;
		sharded |= p >= c->nin && has_port(c, p)
			&& c->shape[p].rank == rank
			&& c->at[p].kind == SPLIT_SHARD;
	}
	return sharded || c->from >= c->nin;
}

/* Everything but scalars and the clipping norm is like the parameter. */
bool
shard_update(struct shard_rule *c)
{
	for (int p = 0; p < c->nport; p++)
		if (has_port(c, p) && c->shape[p].rank > 0)
			c->at[p] = *given_split(c);
	return true;
}

/* How rows and columns of what Adafactor updates lie, of which port 0 may be a
 * replica's shard. */
static void
factor_splits(const struct shard_rule *c, Split *row, Split *col)
{
	const struct replica_shard *shard = c->g->val[c->n->in[0]].shard;
	const Split *s = shard ? &shard->split : given_split(c);
	int rank = c->shape[0].rank;

	*row = rank < 2 ? *given_split(c) : split_without_dim(s, rank, 1);
	*col = rank < 2 ? (Split){ .kind = SPLIT_REPLICATE }
	     : split_without_dim(s, rank, 2);
}

/* Parameter, gradient, then rows and columns in turn. */
static bool
factor_operands(struct shard_rule *c)
{
	Split row, col;

	if (c->from != 0)
		return false;
	factor_splits(c, &row, &col);
	c->at[1] = *given_split(c);
	for (int p = 2; p < 6 && p < c->nin; p++)
		if (has_port(c, p))
			c->at[p] = p % 2 ? col : row;
	return true;
}

bool
shard_adafactor(struct shard_rule *c)
{
	if (!factor_operands(c))
		return false;
	for (int k = 0; result_port(c, k) < c->nport; k++)
		c->at[result_port(c, k)] = c->at[op_overwrites(c->n->op, k)];
	return true;
}

bool
shard_adafactor_squares(struct shard_rule *c)
{
	c->at[result_port(c, 0)].kind = SPLIT_PARTIAL;
	return factor_operands(c);
}

/* Over a sharded dim each rank has a share. */
bool
shard_adafactor_means(struct shard_rule *c)
{
	if (c->from != 0)
		return false;
	factor_splits(c, &c->at[result_port(c, 0)], &c->at[result_port(c, 1)]);
	for (int k = 0; k < 2; k++)
		if (c->at[result_port(c, k)].kind != SPLIT_SHARD)
			c->at[result_port(c, k)].kind = SPLIT_PARTIAL;
	return true;
}

/* Of shards alone: of what is whole every rank would add its own. */
bool
shard_squares(struct shard_rule *c)
{
	if (!c->stated)
		return false;
	for (int k = 0; k < c->nin; k++) {
		if (c->stated[k].kind != SPLIT_SHARD)
			return false;
		c->at[k] = c->stated[k];
	}
	c->at[c->nin].kind = SPLIT_PARTIAL;
	return true;
}

/* The axis of the attribute stays whole. */
static bool
keep_axis_whole(struct shard_rule *c, int64_t axis, int rank)
{
	return !shards_dim(given_split(c), (int)(axis < 0 ? axis + rank : axis))
		&& shard_ew(c);
}

bool
shard_axis(struct shard_rule *c)
{
	Attr a = c->n->attr;
	const int64_t *axis = attr_int_of(c->n->op, &a, "axis");

	return axis && keep_axis_whole(c, *axis, c->shape[c->from].rank);
}

/* ---- reductions ---- */

static bool
is_reduced_dim(const Node *n, int dim)
{
	const IntList *axes = &n->attr.REDUCE_SUM.axes;

	if (axes->n == 0)
		return !n->attr.REDUCE_SUM.noop;
	for (int i = 0; i < axes->n; i++)
		if (axes->v[i] == dim)
			return true;
	return false;
}

/* Dims of the operand before `dim` that the result has. */
static int
count_kept_dims(const struct shard_rule *c, int dim)
{
	int n = 0;

	for (int i = 0; i < dim; i++)
		n += c->n->attr.REDUCE_SUM.keepdims || !is_reduced_dim(c->n, i);
	return n;
}

static bool
reduce_result(struct shard_rule *c, Split *to)
{
	int x = c->shape[0].rank;

	for (int first_axis = 0; first_axis < x; first_axis++) {
		int axis = first_axis + to->axis - to->first_axis;

		if (count_kept_dims(c, first_axis) != to->first_axis
		    || is_reduced_dim(c->n, first_axis) || axis >= x)
			continue;
		for (int i = first_axis; i <= axis; i++)
			if (is_reduced_dim(c->n, i))
				return false;
		to->first_axis = first_axis;
		to->axis = axis;
		c->at[0] = *to;
		return true;
	}
	return false;
}

/* Over a sharded dim a sum becomes a summand of the whole's. */
bool
shard_sum(struct shard_rule *c)
{
	Split to = *given_split(c);
	int reduced = 0;

	if (c->from != 0)
		return reduce_result(c, &to);
	for (int i = to.first_axis; i <= to.axis; i++)
		reduced += is_reduced_dim(c->n, i);
	if (reduced == to.axis - to.first_axis + 1) {
		c->at[1].kind = SPLIT_PARTIAL;
		return c->stated || split_is_even(&to, c->ranks);
	}
	if (reduced)
		return false;
	to.axis = count_kept_dims(c, to.axis);
	to.first_axis = count_kept_dims(c, to.first_axis);
	c->at[1] = to;
	return true;
}

bool
shard_reduce(struct shard_rule *c)
{
	if (op_info[c->n->op].flags & F_POLES
	    && !split_is_even(given_split(c), c->ranks))
		return false;
	return shard_sum(c) && c->at[1].kind != SPLIT_PARTIAL;
}

/* ---- shard_follow ---- */

/* There is something for every rank. */
static bool
reaches_all_ranks(const Split *s, int64_t ranks)
{
	return s->nsegment > 1 || s->segment[0] >= ranks / s->replication;
}

bool
shard_follow(const Graph *g, const Node *n, int64_t ranks, int port,
             const Split *s, Split *at)
{
	Shape shape[16];
	struct shard_rule c = { .g = g, .n = n, .ranks = ranks, .nin = n->nin,
		.nport = n->nin + n->nout, .from = port, .at = at };

	if (c.nport > 16)
		return false;
	for (int p = 0; p < c.nport; p++) {
		ValId v = p < n->nin ? n->in[p] : n->out[p - n->nin];

		shape[p] = g->val[v].shape;
		if (!v)
			shape[p].rank = -1;
		at[p] = (Split){ .kind = SPLIT_REPLICATE_PARTIAL };
	}
	c.shape = shape;
	at[port] = *s;
	if (!has_port(&c, port) || !shard_rule_of[n->op](&c))
		return false;
	for (int p = 0; p < c.nport; p++) {
		Shape local;

		if (!has_port(&c, p) || at[p].kind != SPLIT_SHARD)
			continue;
		/* a mask's words go by the index in the whole */
		if (op_info[n->op].flags & F_RNG && at[p].nsegment > 1)
			return false;
		/* collectives list their segments */
		if (at[p].nsegment > MAX_RANK
		    || !split_local(&at[p], ranks, &shape[p], &local)
		    || !reaches_all_ranks(&at[p], ranks))
			return false;
		at[p] = split_normal(&at[p], ranks, &shape[p]);
	}
	return true;
}
