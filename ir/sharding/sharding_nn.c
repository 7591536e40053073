/* How a sharding passes through products, norms, losses and attention. */
#include "ir/sharding/sharding.h"

/* ---- products ---- */

/* Dims of the value, from the last: a is m k, b is k n, the result m n. */
enum matmul_dim { M, K, N };

static int
matmul_dim_index(const struct sharding_rule *c, int value_index,
                 enum matmul_dim l)
{
	const Attr *a = &c->n->attr;
	int rank = c->shape[value_index].rank;

	if (value_index == 0)
		return rank - ((l == M) != (a->MATMUL.ta != 0) ? 2 : 1);
	if (value_index == 1)
		return rank - ((l == K) != (a->MATMUL.tb != 0) ? 2 : 1);
	return l == M ? rank - 2 : rank - 1;
}

/* Whether the dim of the value counts blocks of weights. */
static bool
counts_blocks(const struct sharding_rule *c, int value_index, int dim)
{
	return value_index == 1 && val_is_blocks(&c->g->val[c->n->in[1]])
	       && dim == c->shape[1].rank - 1;
}

/* False if a block would be cut. */
static bool
sharding_matmul_dim(struct sharding_rule *c, int value_index, enum matmul_dim l)
{
	Placement *to = &c->at[value_index];
	Placement s = *given_split(c);
	int dim = matmul_dim_index(c, value_index, l);

	if (!has_value(c, value_index))
		return true;
	if (counts_blocks(c, c->from, s.axis)
	    && !placement_of_weights(&s, c->ranks))
		return false;
	s.axis = s.first_axis = dim;
	if (counts_blocks(c, value_index, dim)
	    && !placement_of_blocks(&s, c->ranks))
		return false;
	*to = s;
	return true;
}

/* A batch dim, aligned at the back; the other side may not have it. */
static bool
sharding_batch_dim(struct sharding_rule *c)
{
	int rank = c->shape[result_value(c, 0)].rank, from = c->from;
	int at = given_split(c)->axis + rank - c->shape[from].rank;

	for (int p = 0; p < c->nvalue; p++) {
		int dim = at + c->shape[p].rank - rank;

		if (p == from || !has_value(c, p) || (p == 2 && p < c->nin))
			continue;
		if (p < 2 && (dim < 0 || c->shape[p].dim[dim] == 1))
			continue;
		c->at[p] = *given_split(c);
		c->at[p].axis = c->at[p].first_axis = dim;
	}
	return true;
}

/* ---- what pads a last shard ----
 *
 * A rank's product over an uneven sharding takes the padding along.  Zeros on
 * both sides add nothing, and the gradients of both stay zero there; of one
 * side alone the other's padding, if that is a parameter, would be trained.
 */

static int64_t
last_dim_extent(const Graph *g, ValId v)
{
	const Shape *s = &g->val[v].shape;

	return s->rank > 0 ? s->dim[s->rank - 1] : 1;
}

/* A value that a collective has just sharded has zeros there.  Of what another
 * stage sends, the whole graph has told. */
static bool
is_just_sharded(const Node *n)
{
	return n->op == OP_OWN || n->op == OP_REDUCE_SCATTER
		|| n->op == OP_ALL_TO_ALL
		|| op_info[n->op].flags & F_STAGES;
}

/* Whether v, sharded along its last dim, would have zeros for padding.  Sums of
 * a value and its own image are looked into twice at every level: *looks
 * bounds the values that are visited in all. */
static bool
pads_last_dim(const Graph *g, ValId v, int *looks)
{
	const Node *n = &g->node[g->val[v].def];
	bool any = n->op == OP_MUL;     /* operand will do, or all must */

	if (val_param_of(g, v))
		return true;
	if (!g->val[v].def || --*looks < 0)
		return false;
	if (is_just_sharded(n))
		return true;
	if (n->op == OP_MATMUL)         /* its columns are the right side's */
		return (val_param_of(g, n->in[1])
		        || (!n->attr.MATMUL.tb
		            && pads_last_dim(g, n->in[1], looks)))
			&& (n->nin < 3 || !n->in[2]
			    || pads_last_dim(g, n->in[2], looks));
	if (!any && !(op_info[n->op].flags & F_ZERO))
		return false;
	for (int k = 0; k < n->nin; k++) {
		ValId x = n->in[k];

		if (any == (last_dim_extent(g, x) == last_dim_extent(g, v)
		            && pads_last_dim(g, x, looks)))
			return any;
	}
	return !any;
}

static bool
pads_with_zeros(const struct sharding_rule *c, int value_index, int dim)
{
	ValId v = c->n->in[value_index];
	const Val *x = &c->g->val[v];
	int looks = 256;

	return val_param_of(c->g, v) || is_just_sharded(&c->g->node[x->def])
		|| (dim == c->shape[value_index].rank - 1
		    && pads_last_dim(c->g, v, &looks));
}

/* Adjoints have zeros there in any case. */
static bool
can_sum_inner_dim(const struct sharding_rule *c)
{
	return placement_is_even(given_split(c), c->ranks)
		|| c->n->phase != PH_FORWARD || c->g->props & P_FUSED
		|| (pads_with_zeros(c, 0, matmul_dim_index(c, 0, K))
		    && pads_with_zeros(c, 1, matmul_dim_index(c, 1, K)));
}

bool
sharding_matmul(struct sharding_rule *c)
{
	int out = result_value(c, 0), from = c->from,
	    rank = c->shape[from].rank;
	int axis = given_split(c)->axis;
	bool bias = from == 2 && from < c->nin;

	if (given_split(c)->first_axis != axis
	    || given_split(c)->replication != 1)
		return false;
	if (!bias && axis < rank - 2)
		return sharding_batch_dim(c);
	if (bias)
		axis = matmul_dim_index(c, 2, N);
	if (from < 2 && axis == matmul_dim_index(c, from, K)) {
		c->at[out].kind = PLACEMENT_PARTIAL;
		return sharding_matmul_dim(c, !from, K)
			&& can_sum_inner_dim(c)
			&& (c->nin <= 2 || !has_value(c, 2));
	}
	if (axis == matmul_dim_index(c, from, M) && from != 1 && !bias)
		return (from == 0 || sharding_matmul_dim(c, 0, M))
			&& (from == out || sharding_matmul_dim(c, out, M))
			&& (c->nin <= 3 || from == 3
			    || sharding_matmul_dim(c, 3, M));
	if (c->nin > 2 && has_value(c, 2) && !bias) {
		c->at[2] = *given_split(c);
		if (counts_blocks(c, from, axis)
		    && !placement_of_weights(&c->at[2], c->ranks))
			return false;
		c->at[2].axis = c->at[2].first_axis = 0;
	}
	return (from == 1 || sharding_matmul_dim(c, 1, N))
		&& (from == out || sharding_matmul_dim(c, out, N))
		&& (c->nin <= 3 || from == 3 || sharding_matmul_dim(c, 3, N));
}

/* ---- products of experts ---- */

/* The sharding at hand, of dim `axis` of that value. */
static void
set_dim(struct sharding_rule *c, int value_index, int axis)
{
	c->at[value_index] = *given_split(c);
	c->at[value_index].axis = c->at[value_index].first_axis = axis;
}

/* Rows and indices: dim 0 of the values but `without`. */
static void
set_rows(struct sharding_rule *c, int without)
{
	for (int p = 0; p < c->nvalue; p++)
		if (p != without)
			set_dim(c, p, 0);
}

static bool
is_plain_shard(const struct sharding_rule *c)
{
	const Placement *s = given_split(c);

	return s->first_axis == s->axis && s->replication == 1
		&& placement_is_even(s, c->ranks);
}

/* Rows go with their indices; inner extents and columns are as matmul's. */
bool
sharding_expert_matmul(struct sharding_rule *c)
{
	int out = result_value(c, 0), from = c->from;
	int inner = c->n->attr.EXPERT_MATMUL.tb ? 2 : 1;
	int axis = given_split(c)->axis;

	if (!is_plain_shard(c) || (from == 1 && axis == 0))
		return false;
	if (from != 1 && axis == 0) {
		set_rows(c, 1);
		return true;
	}
	if (from == out || (from == 1 && axis != inner)) {
		set_dim(c, out, 1);
		set_dim(c, 1, 3 - inner);
		return true;
	}
	set_dim(c, 0, 1);
	set_dim(c, 1, inner);
	c->at[out] = (Placement){ .kind = PLACEMENT_PARTIAL };
	return true;
}

/* A shard of the rows gives a summand. */
bool
sharding_expert_dw(struct sharding_rule *c)
{
	int out = result_value(c, 0), from = c->from;
	int axis = given_split(c)->axis;

	if (!is_plain_shard(c) || (from == out && axis == 0))
		return false;
	if (from != out && axis == 0) {
		set_rows(c, out);
		c->at[out] = (Placement){ .kind = PLACEMENT_PARTIAL };
		return true;
	}
	if (from == out)
		set_dim(c, axis - 1, 1);
	else
		set_dim(c, out, from + 1);
	return true;
}

/* Dims behind the rows. */
bool
sharding_take_rows(struct sharding_rule *c)
{
	int out = result_value(c, 0);

	if ((c->from != 0 && c->from != out) || given_split(c)->first_axis < 1)
		return false;
	c->at[0] = c->at[out] = *given_split(c);
	return true;
}

/* ---- products with what follows ---- */

/* Operands a, b, what is added, GELU's argument; results y and sums: of rows
 * of a, or of columns, which are b's sums over k, or y's over m. */
bool
sharding_matmul_end(struct sharding_rule *c)
{
	int end = (int)c->n->attr.MATMUL_END.end, from = c->from;
	int out = result_value(c, 0), sums = result_value(c, 1);
	enum matmul_dim of = end == END_ROWS ? M : N, along;

	if (given_split(c)->first_axis != given_split(c)->axis
	    || given_split(c)->replication != 1 || from == sums)
		return false;
	along = from < 2
		&& given_split(c)->axis == matmul_dim_index(c, from, K) ? K
		: from != 1
		&& given_split(c)->axis == matmul_dim_index(c, from, M) ? M : N;
	if (along == K && end == END_GELU_GRAD)
		return false;
	for (int p = 0; p < 2; p++)
		if (along == K || along == (p ? N : M))
			sharding_matmul_dim(c, p, along);
	for (int p = 2; p <= out; p++)
		if (along != K)
			sharding_matmul_dim(c, p, along);
		else if (has_value(c, p))
			c->at[p].kind = PLACEMENT_PARTIAL;
	if (along == of) {
		c->at[sums] = *given_split(c);
		c->at[sums].axis = c->at[sums].first_axis = 0;
	} else if (along == K || end == END_GELU_GRAD) {
		c->at[sums].kind = PLACEMENT_PARTIAL;
	}
	return along != K || can_sum_inner_dim(c);
}

/* ---- rows ---- */

static int
normalized_axis(const struct sharding_rule *c)
{
	Attr a = c->n->attr;
	int64_t axis = *attr_int_of(c->n->op, &a, "axis");

	return (int)(axis < 0 ? axis + c->shape[0].rank : axis);
}

/* The mean of a row of zeros is 0, and so would be its deviation. */
static bool
is_row_sharding(const struct sharding_rule *c)
{
	return given_split(c)->axis < normalized_axis(c);
}

bool
sharding_norm(struct sharding_rule *c)
{
	if (!is_row_sharding(c) || (c->from > 0 && c->from < c->nin))
		return false;
	if (!placement_is_even(given_split(c), c->ranks)
	    && !(c->n->attr.LAYERNORM.eps > 0))
		return false;
	for (int p = 0; p < c->nvalue; p++)
		if (has_value(c, p) && (p == 0 || p >= c->nin))
			c->at[p] = *given_split(c);
	return true;
}

bool
sharding_norm_grad(struct sharding_rule *c)
{
	int dx = result_value(c, 0);

	if (!is_row_sharding(c) || c->from == 2 || c->from > dx)
		return false;
	for (int p = 0; p <= dx; p++)
		if (p != 2)
			c->at[p] = *given_split(c);
	for (int p = dx + 1; p < c->nvalue; p++)
		c->at[p].kind = PLACEMENT_PARTIAL;
	return true;
}

/* A shard of the classes: `part` says of how many, and in a graph of whole
 * values that it can be done. */
static bool
shards_classes(struct sharding_rule *c, int logits)
{
	const Placement *s = given_split(c);

	return c->from == logits && s->first_axis == 1 && s->axis == 1
		&& s->nsegment == 1 && s->replication == 1
		&& c->shape[logits].rank == 2;
}

bool
sharding_sce(struct sharding_rule *c)
{
	if (!shards_classes(c, 0) || (c->nin > 2 && has_value(c, 2)))
		return false;
	for (int k = 0; k < c->n->nout; k++)
		c->at[result_value(c, k)].kind = PLACEMENT_REPLICATE;
	return !c->stated
		|| c->n->attr.SCE.whole_extent == given_split(c)->segment[0];
}

bool
sharding_sce_grad(struct sharding_rule *c)
{
	c->at[result_value(c, 0)] = *given_split(c);
	return shards_classes(c, 1)
		&& c->n->attr.SCE_GRAD.whole_extent
		== given_split(c)->segment[0];
}

bool
sharding_vocab_stats(struct sharding_rule *c)
{
	c->at[result_value(c, 0)] = placement_dim(0, c->ranks);
	return shards_classes(c, 0)
		&& c->n->attr.VOCAB_STATS.whole_extent
		== given_split(c)->segment[0];
}

/* ---- attention ---- */

/* Key heads fewer than ranks: some ranks hold the same one. */
static bool
sharding_key_heads(struct sharding_rule *c, int value_index)
{
	const Shape *k = &c->shape[value_index];
	Placement s = placement_dim(1, k->dim[1]);

	if (k->dim[1] % c->ranks != 0) {
		if (c->ranks % k->dim[1] != 0)
			return false;
		s.replication = c->ranks / k->dim[1];
	}
	c->at[value_index] = s;
	return true;
}

/* Heads, or the batch. */
static bool
sharding_head_dims(struct sharding_rule *c, int q, int k, int v, int mask)
{
	const Placement *s = given_split(c);
	bool masks = mask < c->nin && has_value(c, mask);
	int missing = masks ? 4 - c->shape[mask].rank : 0;      /* dims */
	int64_t heads = c->shape[q].dim[1];
	int axis = s->axis + (masks && c->from == mask ? missing : 0);

	if (s->first_axis != s->axis || axis > 1 || s->nsegment != 1
	    || (axis == 1 && heads % c->ranks != 0)
	    || !placement_is_even(s, c->ranks))
		return false;
	if (c->shape[c->from].dim[s->axis] != c->shape[q].dim[axis] && axis == 1
	    && c->from != k && c->from != v)
		return false;
	for (int p = 0; p < c->nvalue; p++) {
		bool key = axis == 1 && (p == k || p == v);

		if (!has_value(c, p) || (p == mask && p < c->nin))
			continue;
		if (key && !sharding_key_heads(c, p))
			return false;
		if (!key)
			c->at[p] = placement_dim(axis, axis
			                         ? heads : c->shape[q].dim[0]);
	}
	if (masks && axis >= missing
	    && c->shape[mask].dim[axis - missing] != 1)
		c->at[mask] = placement_dim(axis - missing,
		                            c->at[q].segment[0]);
	return true;
}

bool
sharding_heads(struct sharding_rule *c)
{
	return sharding_head_dims(c, 0, 1, 2, 3);
}

/* dk and dv lie as k and v do; packed, all are segments of one row. */
bool
sharding_heads_grad(struct sharding_rule *c)
{
	int dq = result_value(c, 0);
	const Placement *k = &c->at[2];
	const Shape *s = c->shape;
	int64_t q_row, k_row, v_row;

	if (!sharding_head_dims(c, 1, 2, 3, 6))
		return false;
	if (!c->n->attr.ATTENTION_GRAD.packed) {
		for (int i = 1; i < c->n->nout; i++)
			c->at[dq + i] = *k;
		return true;
	}
	if (k->axis == 0) {
		c->at[dq] = *k;
		return true;
	}
	q_row = s[1].dim[1] * s[1].dim[3];
	k_row = s[2].dim[1] * s[2].dim[3];
	v_row = s[3].dim[1] * s[3].dim[3];
	c->at[dq] = (Placement){ .kind = PLACEMENT_SHARD,
		                 .axis = 2,
		                 .first_axis = 2,
		                 .nsegment = 3,
		                 .replication = 1,
		                 .segment = { q_row, k_row, v_row } };
	return k->replication == 1;
}
