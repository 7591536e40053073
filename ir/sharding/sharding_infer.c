/* The table of rules: how a sharding passes through a node, and placements of
 * results from those of operands, on one rank's graph.
 *
 * Shardings pass through an op by its rule (sharding_*.c), partial sums pass
 * through linear ops, and results of replicated operands are replicated.  Any
 * other use of a partial sum is a missing reduction.
 */
#include "ir/sharding/sharding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Ports of a node, in an arena of its own where there are many. */
struct node_values {
	const Graph *g;
	const Node *n;
	char *why;
	int nin, nvalue;
	Shape *shape;
	Placement *stated, *at;
	bool *any;                      /* an operand that has no placement:
	                                 * equal elements, fit for every
	                                 * sharding */
	Arena *arena;
};

ShardingRule *const sharding_rule_of[OP_COUNT] = {
	[OP_NONE] = sharding_none,
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, dynamic, cost, grad, shard) sharding_##shard
#include "ir/ops.h"
};

/* What goes between ranks: the placement that it takes; where an attribute says
 * of which kind the whole side is, its name. */
static const struct comm {
	Op op;
	PlacementKind in, out;
	bool shards_in;                 /* the attributes are of the operand */
} comm[] = {
	{ OP_ALL_REDUCE, PLACEMENT_PARTIAL, PLACEMENT_REPLICATE, false },
	{ OP_ALL_GATHER, PLACEMENT_SHARD, PLACEMENT_REPLICATE, true },
	{ OP_REDUCE_SCATTER, PLACEMENT_PARTIAL, PLACEMENT_SHARD, false },
	{ OP_ALL_TO_ALL, PLACEMENT_SHARD, PLACEMENT_SHARD, true },
	{ OP_REPLICATE, PLACEMENT_REPLICATE, PLACEMENT_REPLICATE_PARTIAL,
	  false },
	{ OP_OWN, PLACEMENT_REPLICATE, PLACEMENT_SHARD, false },
	{ OP_OWN_GRAD, PLACEMENT_SHARD, PLACEMENT_PARTIAL, true },
};

static bool
set_why(struct node_values *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->why, SHARDING_WHY, fmt, ap);
	va_end(ap);
	return false;
}

static const struct comm *
find_comm(Op op)
{
	for (size_t i = 0; i < sizeof comm / sizeof *comm; i++)
		if (comm[i].op == op)
			return &comm[i];
	return NULL;
}

/* What is sharded over ranks, in front of a shard or behind it. */
static bool
replica_shard_rule(struct sharding_rule *c)
{
	int shard = op_info[c->n->op].flags & F_WRITES ? 1 : result_value(c, 0);
	Shape shape = { .rank = c->shape[0].rank };
	Placement s = placement_of_attr(c->n);

	if (c->from == shard || shape.rank < 1)
		return false;
	shape.dim[shape.rank - 1] = placement_local_extent(
		&s, graph_group_size(c->g, node_group(c->n)));
	for (int p = 0; p < c->nvalue; p++)
		c->at[p] = *given_split(c);
	c->at[shard] = placement_of_shard(given_split(c), c->ranks, &shape);
	return true;
}

/* Rows of all replicas have the placement of a replica's. */
bool
sharding_replica_rows(struct sharding_rule *c)
{
	int other = 1 - c->from;
	Placement s = *given_split(c);

	if (s.first_axis == 0) {
		if (s.axis != 0 || s.nsegment != 1 || s.replication != 1
		    || !placement_is_even(&s, c->ranks))
			return false;
		s.segment[0] = c->shape[other].dim[0];
		if (!placement_is_even(&s, c->ranks))
			return false;
	}
	c->at[other] = s;
	return true;
}

/* Blocks of replicas, before the other dims. */
bool
sharding_replica_blocks(struct sharding_rule *c)
{
	if (given_split(c)->first_axis < 2)
		return false;
	c->at[1 - c->from] = *given_split(c);
	return true;
}

/* Ranks of two stages hold it alike. */
bool
sharding_stages(struct sharding_rule *c)
{
	(void)c;
	return true;
}

/* Replicas exchange positions for heads: of a rank's heads each gets a part. */
static bool
exchange_rule(struct sharding_rule *c)
{
	const Placement *s = given_split(c);
	Placement *to = &c->at[1 - c->from];
	int one = (int)c->n->attr.ALL_TO_ALL.axis;
	int other = (int)c->n->attr.ALL_TO_ALL.to_axis;
	int heads = one < other ? one : other;

	*to = *s;
	if (shards_dim(s, one + other - heads))
		return false;
	if (!shards_dim(s, heads))
		return true;
	to->segment[0] = c->shape[1 - c->from].dim[heads];
	return s->first_axis == s->axis && s->nsegment == 1
		&& s->replication == 1 && placement_is_even(s, c->ranks)
		&& placement_is_even(to, c->ranks);
}

/* Between replicas with the same samples: dims that have no positions. */
static bool
position_rule(struct sharding_rule *c)
{
	const Placement *s = given_split(c);

	if (c->n->op == OP_ALL_TO_ALL)
		return exchange_rule(c);
	c->at[1 - c->from] = *s;
	return !shards_dim(s, placement_of_attr(c->n).axis);
}

/* Collectives change placements: sharding_infer knows how.  Those of replicas
 * do not care for them. */
bool
sharding_comm(struct sharding_rule *c)
{
	Attr a = c->n->attr;

	if (sharding_is_comm(c->n))
		return false;
	if (!attr_int_of(c->n->op, &a, "axis"))
		return sharding_ew(c);
	return node_group(c->n) == GROUP_CONTEXT ? position_rule(c)
	     : replica_shard_rule(c);
}

bool
sharding_is_comm(const Node *n)
{
	return find_comm(n->op) && node_group(n) == GROUP_RANKS;
}

static bool
infer_comm(struct node_values *c, const struct comm *m, Placement *out)
{
	Placement sharded = { .kind = PLACEMENT_SHARD };
	Attr a = c->n->attr;
	const int64_t *side = attr_int_of(c->n->op, &a, "side");
	const int64_t *largest = attr_int_of(c->n->op, &a, "reduction");
	const Placement *x = &c->stated[0];

	if (largest && *largest)
		return set_why(c, "all_reduce of the maximum cannot complete a "
		               "partial sum");
	if (m->in == PLACEMENT_SHARD || m->out == PLACEMENT_SHARD)
		sharded = placement_unmerged(placement_of_attr(c->n));
	if (m->in == PLACEMENT_REPLICATE ? !placement_is_replicated(x)
	    : x->kind != m->in)
		return set_why(c, "the operand has the wrong placement for "
		               "this collective");
	if (m->shards_in && !placement_eq(x, &sharded))
		return set_why(c, "the operand's sharding does not match the "
		               "attributes");
	out[0] = (Placement){ .kind = side && *side
		                      ? PLACEMENT_REPLICATE_PARTIAL
		                      : m->out };
	if (m->out == PLACEMENT_SHARD)
		out[0] = m->shards_in
			? placement_unmerged(placement_after_exchange(c->n))
			: sharded;
	return true;
}

/* ---- summands ---- */

bool
sharding_is_rounding(const Graph *g, const Node *n)
{
	DType x = g->val[n->in[0]].dt, y = g->val[n->out[0]].dt;
	bool whole = dtype_info[y].cls != 'f';

	if (n->op == OP_CAST)
		return y == DT_BOOL || (whole && dtype_info[x].cls == 'f');
	return whole && (n->op == OP_DIV || n->op == OP_REDUCE_MEAN);
}

static bool
is_linear_operand(const Graph *g, const Node *n, int k)
{
	uint64_t flags = op_info[n->op].flags;
	Attr a = n->attr;
	const int64_t *add = attr_int_of(n->op, &a, "add");

	if (add && *add > 1)            /* scatters that multiply, compare */
		return false;
	if (sharding_is_rounding(g, n))
		return false;
	if (op_info[n->op].max == VARIADIC && flags & F_JOINT)
		return true;
	return k < 3 && flags & (uint64_t)F_LIN0 << k;
}

/* Beside what is linear the op adds something of its own. */
static bool
adds_constant(const Node *n)
{
	if (n->op == OP_PAD)
		return n->attr.PAD.value != 0;
	if (n->op == OP_RESIZE)
		return n->attr.RESIZE.fill != 0;
	return op_info[n->op].flags & F_BIAS2 && n->nin > 2 && n->in[2];
}

static bool
partial_passes(struct node_values *c, Placement *out)
{
	bool joint = op_info[c->n->op].flags & F_JOINT;
	int acc = op_accumulator(c->n->op), nsum = 0;

	for (int k = 0; k < c->nin; k++) {
		bool sum = c->stated[k].kind == PLACEMENT_PARTIAL;

		if (!c->n->in[k] || (acc && k == acc))
			continue;
		if (sum && !is_linear_operand(c->g, c->n, k))
			return set_why(c, "operand %d is a partial sum, but "
			               "the op is not linear in it", k);
		if (joint && !sum && is_linear_operand(c->g, c->n, k)
		    && !sharding_is_zero(c->g, c->n->in[k]))
			return set_why(c, "operand %d is replicated and would "
			               "be added to a partial sum on every "
			               "rank", k);
		nsum += sum;
	}
	if (!joint && nsum > 1)
		return set_why(c, "two operands are partial sums");
	if (adds_constant(c->n))
		return set_why(c, "the op would add its bias or constant to a "
		               "partial sum on every rank");
	for (int k = 0; k < c->n->nout; k++)
		out[k] = (Placement){ .kind = PLACEMENT_PARTIAL };
	return true;
}

/* A loop is as linear as its body: placements go through its scalar ops. */
static bool
partial_passes_loop(struct node_values *c, Placement *out)
{
	const struct body *b = c->n->body;
	bool *sum = arena_array(c->arena, (size_t)b->nop + 1, sizeof *sum);

	for (int i = 0; i < b->nop; i++) {
		const struct scalar_op *m = &b->op[i];
		uint64_t flags = op_info[m->op].flags;
		int nsum = 0, nlinear = 0;

		for (int k = 0; k < m->narg; k++) {
			int a = m->arg[k];
			bool s = a < 0 ? sum[~a]
				: c->stated[a].kind == PLACEMENT_PARTIAL;
			bool zero = a >= 0
				&& sharding_is_zero(c->g, c->n->in[a]);

			if (s && !(flags & (uint64_t)F_LIN0 << k))
				return set_why(c, "a partial sum is an operand "
				               "of %s, which is not linear in "
				               "it", op_info[m->op].text);
			nsum += s || (zero && flags & F_JOINT);
			nlinear += (flags & (uint64_t)F_LIN0 << k) != 0;
			sum[i] |= s;
		}
		if (sum[i] && (flags & F_JOINT ? nsum != nlinear : nsum > 1))
			return set_why(c, "a partial sum and a replicated "
			               "value are operands of %s",
			               op_info[m->op].text);
	}
	for (int k = 0; k < c->n->nout; k++)
		out[k].kind = sum[b->result[k]] ? PLACEMENT_PARTIAL
		            : PLACEMENT_REPLICATE_PARTIAL;
	return true;
}

/* ---- shardings ---- */

/* One shard for all ranks is the whole value, whatever its dim. */
static bool
is_one_shard(const struct node_values *c, const Placement *s)
{
	return s->kind == PLACEMENT_SHARD && s->replication == c->g->ranks;
}

static bool
sharding_fits(struct node_values *c, int from, const Placement *as,
              Placement *out)
{
	struct sharding_rule r = { .g = c->g, .n = c->n, .ranks = c->g->ranks,
		.nin = c->nin, .nvalue = c->nvalue, .shape = c->shape,
		.from = from, .at = c->at, .stated = c->stated };

	for (int p = 0; p < c->nvalue; p++)
		c->at[p] = (Placement){ .kind = PLACEMENT_REPLICATE_PARTIAL };
	c->at[from] = *as;
	if (!sharding_rule_of[c->n->op](&r))
		return set_why(c, "the op does not support the sharding of "
		               "operand %d", from);
	for (int k = 0; k < c->nin; k++) {
		const Placement *s = &c->stated[k];
		Placement want = placement_unmerged(c->at[k]);

		if (!c->n->in[k] || c->any[k]
		    || k == op_accumulator(c->n->op))
			continue;
		if (is_one_shard(c, s) && is_one_shard(c, &want))
			continue;
		if (want.kind == PLACEMENT_SHARD ? !placement_eq(s, &want)
		    : !placement_is_replicated(s))
			return set_why(c, "the sharding of operand %d does not "
			               "match that of operand %d", k, from);
	}
	for (int k = 0; k < c->n->nout; k++)
		out[k] = placement_unmerged(c->at[c->nin + k]);
	return true;
}

/* The dim that one shard is said of may be one that the op joins or takes
 * apart, as adjoints of heads that are picked are put together again. */
static bool
sharding_passes(struct node_values *c, int from, Placement *out)
{
	const Placement *stated = &c->stated[from];
	const Shape *x = &c->shape[from];

	if (sharding_fits(c, from, stated, out))
		return true;
	for (int i = 0; is_one_shard(c, stated) && i < x->rank; i++) {
		Placement as = placement_dim(i, x->dim[i]);

		as.replication = stated->replication;
		if (sharding_fits(c, from, &as, out))
			return true;
	}
	return false;
}

/* ---- one node of a rank's graph ---- */

static void
fill_node_values(struct node_values *c)
{
	const Graph *g = c->g;
	double x;

	for (int p = 0; p < c->nvalue; p++) {
		ValId v = p < c->nin ? c->n->in[p] : c->n->out[p - c->nin];

		c->stated[p] = placement_unmerged(g->val[v].placement);
		c->shape[p] = placement_whole(&c->stated[p], &g->val[v].shape);
		c->any[p] = p < c->nin && v && sharding_is_fill(g, v, &x)
			&& placement_is_replicated(&c->stated[p]);
		if (!v)
			c->shape[p].rank = -1;
	}
}

/* The shards of a gathered value do not tell how it was sharded. */
static bool
is_gathered_shard(const struct node_values *c)
{
	const Val *v = c->g->val;

	return op_info[c->n->op].flags & F_COMM && v[c->n->in[0]].shard
		&& !v[c->n->out[0]].shard
		&& c->stated[c->nin].kind == PLACEMENT_SHARD;
}

/* What is made of nothing, or stretched along a dim that it lacks, is a shard
 * as well as a whole; adjoints have zeros where a last shard is short. */
static bool
is_own_shard(const struct node_values *c)
{
	const Node *n = c->n;
	const Val *y = &c->g->val[n->out[0]], *x;
	const Placement *s = &y->placement;
	int at;

	if (s->kind != PLACEMENT_SHARD
	    || placement_local_extent(s, c->g->ranks) != y->shape.dim[s->axis]
	    || (n->phase == PH_BACKWARD && !placement_is_even(s, c->g->ranks)))
		return false;
	if (n->nin == 0)
		return true;
	x = &c->g->val[n->in[0]];
	at = s->axis - (y->shape.rank - x->shape.rank);
	return n->op == OP_EXPAND && (at < 0 || x->shape.dim[at] == 1);
}

static bool
infer_results(struct node_values *c, Placement *out)
{
	const struct comm *m = sharding_is_comm(c->n) ? find_comm(c->n->op)
						      : NULL;
	int acc = op_accumulator(c->n->op), sharded = -1, sums = 0;

	if (m)
		return infer_comm(c, m, out);
	if (op_info[c->n->op].flags & F_STAGES) {
		out[0] = c->stated[c->nin];
		return true;
	}
	for (int k = 0; k < c->nin; k++) {
		if (!c->n->in[k] || (acc && k == acc))
			continue;
		if (c->stated[k].kind == PLACEMENT_SHARD && sharded < 0)
			sharded = k;
		sums += c->stated[k].kind == PLACEMENT_PARTIAL;
	}
	if (sharded >= 0 && sums)
		return set_why(c, "one operand is sharded and another is a "
		               "partial sum");
	if (sharded >= 0 && is_gathered_shard(c)) {
		out[0] = c->stated[c->nin];
	} else if (sharded >= 0) {
		/* equal elements are fit for every sharding */
		for (int k = 0; k < c->nin; k++)
			if (c->any[k] && c->shape[k].rank > 0)
				c->shape[k].rank = -1;
		if (!sharding_passes(c, sharded, out))
			return false;
	} else if (sums && c->n->body) {
		if (!partial_passes_loop(c, out))
			return false;
	} else if (sums) {
		if (!partial_passes(c, out))
			return false;
	} else {
		for (int k = 0; k < c->n->nout; k++)
			out[k] = (Placement){
				.kind = PLACEMENT_REPLICATE_PARTIAL
			};
		if (is_own_shard(c))
			out[0] = c->stated[c->nin];
		if (c->n->op == OP_SCATTER_ADD
		    && c->n->attr.SCATTER_ADD.whole_extent)
			out[0] = placement_dim(
				(int)c->n->attr.SCATTER_ADD.axis,
				c->n->attr.SCATTER_ADD.whole_extent);
	}
	if (acc && acc < c->nin && c->n->in[acc]
	    && (out[0].kind == PLACEMENT_REPLICATE_PARTIAL
	        ? !placement_is_replicated(&c->stated[acc])
	        : !placement_eq(&c->stated[acc], &out[0])))
		return set_why(c, "accumulator and result have different "
		               "placements");
	return true;
}

bool
sharding_infer(const Graph *g, const Node *n, Placement *out,
               char why[SHARDING_WHY])
{
	struct node_values c = { .g = g, .n = n, .nin = n->nin, .why = why,
		.nvalue = n->nin + n->nout };
	size_t count = (size_t)c.nvalue + 1;
	bool ok;

	c.arena = arena_new();
	c.shape = arena_array(c.arena, count, sizeof *c.shape);
	c.stated = arena_array(c.arena, count, sizeof *c.stated);
	c.at = arena_array(c.arena, count, sizeof *c.at);
	c.any = arena_array(c.arena, count, sizeof *c.any);
	fill_node_values(&c);
	ok = infer_results(&c, out);
	arena_free(c.arena);
	return ok;
}

/* ---- one node of a graph of whole values ---- */

/* There is something for every rank. */
static bool
reaches_all_ranks(const Placement *s, int64_t ranks)
{
	return s->nsegment > 1 || s->segment[0] >= ranks / s->replication;
}

bool
sharding_follow(const Graph *g, const Node *n, int64_t ranks, int value_index,
                const Placement *s, Placement *at)
{
	Shape shape[16];
	struct sharding_rule c = { .g = g,
		                   .n = n,
		                   .ranks = ranks,
		                   .nin = n->nin,
		                   .nvalue = n->nin + n->nout,
		                   .from = value_index,
		                   .at = at };

	if (c.nvalue > 16)
		return false;
	for (int p = 0; p < c.nvalue; p++) {
		ValId v = p < n->nin ? n->in[p] : n->out[p - n->nin];

		shape[p] = g->val[v].shape;
		if (!v)
			shape[p].rank = -1;
		at[p] = (Placement){ .kind = PLACEMENT_REPLICATE_PARTIAL };
	}
	c.shape = shape;
	at[value_index] = *s;
	if (!has_value(&c, value_index) || !sharding_rule_of[n->op](&c))
		return false;
	for (int p = 0; p < c.nvalue; p++) {
		Shape local;

		if (!has_value(&c, p) || at[p].kind != PLACEMENT_SHARD)
			continue;
		/* a mask's words go by the index in the whole */
		if (op_info[n->op].flags & F_RNG && at[p].nsegment > 1)
			return false;
		/* collectives list their segments */
		if (at[p].nsegment > MAX_RANK
		    || !placement_local(&at[p], ranks, &shape[p], &local)
		    || !reaches_all_ranks(&at[p], ranks))
			return false;
		at[p] = placement_normal(&at[p], ranks, &shape[p]);
	}
	return true;
}
