/* What the rules of shardings share, and those of element-wise ops, updates and
 * reductions. */
#include "ir/sharding/sharding.h"
#include "runtime/support/block_layout.h"

bool
placement_shift(const Placement *s, int by, int rank, Placement *to)
{
	*to = *s;
	to->axis += by;
	to->first_axis += by;
	return to->first_axis >= 0 && to->axis < rank;
}

static int
listed_segments(const Placement *s)
{
	return s->nsegment < MAX_RANK ? s->nsegment : MAX_RANK;
}

bool
placement_of_blocks(Placement *s, int64_t ranks)
{
	int64_t shards = ranks / s->replication;

	for (int i = 0; i < listed_segments(s); i++) {
		if (s->segment[i] % (BLOCK_WEIGHTS * shards))
			return false;
		s->segment[i] /= BLOCK_WEIGHTS;
	}
	return true;
}

bool
placement_of_weights(Placement *s, int64_t ranks)
{
	int64_t shards = ranks / s->replication;

	for (int i = 0; i < listed_segments(s); i++) {
		if (s->segment[i] % shards)
			return false;
		s->segment[i] *= BLOCK_WEIGHTS;
	}
	return true;
}

bool
sharding_dequantize(struct sharding_rule *c)
{
	Placement s = *given_split(c);
	int last = c->shape[c->from].rank - 1;
	bool fits = s.axis != last
		|| (s.first_axis == last
		    && (c->from ? placement_of_blocks(&s, c->ranks)
		        : placement_of_weights(&s, c->ranks)));

	c->at[!c->from] = s;
	return fits;
}

bool
sharding_none(struct sharding_rule *c)
{
	(void)c;
	return false;
}

/* Whether a node does nothing but round its operand, as a loop too. */
static bool
is_cast(const Node *n)
{
	return n->op == OP_CAST
		|| (n->body && n->nin == 1 && n->body->nop == 1
		    && n->body->op[0].op == OP_CAST);
}

/* What a value repeats: itself, or what was expanded or cast to it. */
static ValId
expanded_source(const Graph *g, ValId v)
{
	while (g->val[v].def && (g->node[g->val[v].def].op == OP_EXPAND
	                         || is_cast(&g->node[g->val[v].def])))
		v = g->node[g->val[v].def].in[0];
	return v;
}

bool
sharding_is_fill(const Graph *g, ValId of, double *x)
{
	ValId v = expanded_source(g, of);
	const Node *def = &g->node[g->val[v].def];

	if (val_splat(g, v, x))
		return true;
	if (!g->val[v].def)
		return false;
	switch (def->op) {
	case OP_FILL:
		*x = def->attr.FILL.value;
		return true;
	case OP_LOSS_SCALE:
		*x = def->attr.LOSS_SCALE.value;
		return true;
	default:
		return false;
	}
}

bool
sharding_is_zero(const Graph *g, ValId v)
{
	double x;

	return sharding_is_fill(g, v, &x) && x == 0;
}

/* ---- element-wise ---- */

static int
result_rank(const struct sharding_rule *c)
{
	int rank = 0;

	for (int p = 0; p < c->nvalue; p++)
		if (c->shape[p].rank > rank)
			rank = c->shape[p].rank;
	return rank;
}

/* Whether s has the extents of t over the dims of the sharding, or ones
 * there. */
static bool
has_sharded_dims(const Shape *s, const Placement *sharded, const Shape *t,
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

/* Value p aligned at the last dim with the value whose placement is given. */
static bool
align_port(struct sharding_rule *c, int p)
{
	const Shape *from = &c->shape[c->from], *s = &c->shape[p];
	int shift = s->rank - from->rank;
	Placement to;
	bool ones, same;

	if (given_split(c)->axis + shift < 0)
		return p < c->nin;      /* broadcast */
	if (!placement_shift(given_split(c), shift, s->rank, &to)) {
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
sharding_ew(struct sharding_rule *c)
{
	int rank = result_rank(c);
	bool sharded = false;

	if (!placement_is_even(given_split(c), c->ranks)
	    && op_info[c->n->op].flags & F_POLES)
		return false;
	for (int p = 0; p < c->nvalue; p++) {
		if (p != c->from && has_value(c, p) && !align_port(c, p))
			return false;
		sharded |= p >= c->nin && has_value(c, p)
			&& c->shape[p].rank == rank
			&& c->at[p].kind == PLACEMENT_SHARD;
	}
	return sharded || c->from >= c->nin;
}

/* Everything but scalars and the clipping norm is like the parameter. */
bool
sharding_update(struct sharding_rule *c)
{
	for (int p = 0; p < c->nvalue; p++)
		if (has_value(c, p) && c->shape[p].rank > 0)
			c->at[p] = *given_split(c);
	return true;
}

/* How rows and columns of what Adafactor updates lie, of which operand 0 may be
 * a replica's shard. */
static void
factor_splits(const struct sharding_rule *c, Placement *row, Placement *col)
{
	const struct replica_shard *shard = c->g->val[c->n->in[0]].shard;
	const Placement *s = shard ? &shard->placement : given_split(c);
	int rank = c->shape[0].rank;

	*row = rank < 2 ? *given_split(c) : placement_without_dim(s, rank, 1);
	*col = rank < 2 ? (Placement){ .kind = PLACEMENT_REPLICATE }
	     : placement_without_dim(s, rank, 2);
}

/* Parameter, gradient, then rows and columns in turn. */
static bool
factor_operands(struct sharding_rule *c)
{
	Placement row, col;

	if (c->from != 0)
		return false;
	factor_splits(c, &row, &col);
	c->at[1] = *given_split(c);
	for (int p = 2; p < 6 && p < c->nin; p++)
		if (has_value(c, p))
			c->at[p] = p % 2 ? col : row;
	return true;
}

bool
sharding_adafactor(struct sharding_rule *c)
{
	if (!factor_operands(c))
		return false;
	for (int k = 0; result_value(c, k) < c->nvalue; k++)
		c->at[result_value(c, k)] = c->at[op_overwrites(c->n->op, k)];
	return true;
}

bool
sharding_adafactor_squares(struct sharding_rule *c)
{
	c->at[result_value(c, 0)].kind = PLACEMENT_PARTIAL;
	return factor_operands(c);
}

/* Over a sharded dim each rank has a share. */
bool
sharding_adafactor_means(struct sharding_rule *c)
{
	if (c->from != 0)
		return false;
	factor_splits(c, &c->at[result_value(c, 0)],
	              &c->at[result_value(c, 1)]);
	for (int k = 0; k < 2; k++)
		if (c->at[result_value(c, k)].kind != PLACEMENT_SHARD)
			c->at[result_value(c, k)].kind = PLACEMENT_PARTIAL;
	return true;
}

/* Of shards alone: of what is whole every rank would add its own. */
bool
sharding_squares(struct sharding_rule *c)
{
	if (!c->stated)
		return false;
	for (int k = 0; k < c->nin; k++) {
		if (c->stated[k].kind != PLACEMENT_SHARD)
			return false;
		c->at[k] = c->stated[k];
	}
	c->at[c->nin].kind = PLACEMENT_PARTIAL;
	return true;
}

/* The axis of the attribute stays whole. */
static bool
keep_axis_whole(struct sharding_rule *c, int64_t axis, int rank)
{
	return !shards_dim(given_split(c), (int)(axis < 0 ? axis + rank : axis))
		&& sharding_ew(c);
}

bool
sharding_axis(struct sharding_rule *c)
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
count_kept_dims(const struct sharding_rule *c, int dim)
{
	int n = 0;

	for (int i = 0; i < dim; i++)
		n += c->n->attr.REDUCE_SUM.keepdims || !is_reduced_dim(c->n, i);
	return n;
}

static bool
reduce_result(struct sharding_rule *c, Placement *to)
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

/* Over a sharded dim a sum becomes a summand of the whole's.  Padding of a last
 * shard would be part of it, which in backward is zeros. */
bool
sharding_sum(struct sharding_rule *c)
{
	Placement to = *given_split(c);
	int reduced = 0;

	if (c->from != 0)
		return reduce_result(c, &to);
	for (int i = to.first_axis; i <= to.axis; i++)
		reduced += is_reduced_dim(c->n, i);
	if (reduced == to.axis - to.first_axis + 1) {
		c->at[1].kind = PLACEMENT_PARTIAL;
		return placement_is_even(&to, c->ranks)
			|| (c->stated && c->n->phase != PH_FORWARD);
	}
	if (reduced)
		return false;
	to.axis = count_kept_dims(c, to.axis);
	to.first_axis = count_kept_dims(c, to.first_axis);
	c->at[1] = to;
	return true;
}

bool
sharding_reduce(struct sharding_rule *c)
{
	if (op_info[c->n->op].flags & F_POLES
	    && !placement_is_even(given_split(c), c->ranks))
		return false;
	return sharding_sum(c) && c->at[1].kind != PLACEMENT_PARTIAL;
}
