/* Cost of an op: FLOPs, bytes moved, seconds.
 *
 * what    node_cost for every row of the op table, by its cost column
 * method  seconds by device_profile.c from FLOPs and bytes.  Bytes are the
 *         operands read once and the results written once, so broadcast
 *         operands count as often as they are stored.  A multiply and an add
 *         are two FLOPs; a transcendental function counts as the length of its
 *         polynomial.
 * needs   known shapes
 * note    an op that a run does not want an output of still moves it: equal
 *         work costs the same in its first run and in its repetition
 */
#include "passes/cost/cost.h"
#include "ir/window.h"

#include <string.h>

/* FLOPs by the unit that does them; bytes moved, or sent to other ranks. */
struct work {
	double product, vector, bytes;
};

typedef struct work CostRule(const Graph *, const Node *);

#define OP(id, text, sig, attr, rules, emit) rules
#define RULES(shape, eval, dynamic, cost, grad, shard) \
	static CostRule cost_##cost;
#include "ir/ops.h"

static double
elems(const Graph *g, ValId v)
{
	int64_t n = v ? val_nelem(&g->val[v]) : 0;

	return n > 0 ? (double)n : 0;
}

/* Elements that lie in memory: extents of stride 0 count once. */
static double
stored(const Graph *g, ValId id)
{
	const Val *v = &g->val[id];
	double n = 1;

	if (!id || v->shape.rank < 0)
		return 0;
	for (int i = 0; i < v->shape.rank; i++)
		if (!v->laid_out || v->stride[i] != 0)
			n *= v->shape.dim[i] > 0 ? (double)v->shape.dim[i] : 0;
	return n;
}

static double
val_traffic(const Graph *g, ValId v)
{
	return v ? stored(g, v) * dtype_info[g->val[v].dt].nbytes : 0;
}

/* A single element stays in a register: it is no traffic beside arrays. */
static double
node_traffic(const Graph *g, const Node *n)
{
	double bytes = 0;

	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && stored(g, n->in[i]) > 1)
			bytes += val_traffic(g, n->in[i]);
	for (int i = 0; i < n->nout; i++)
		bytes += val_traffic(g, n->out[i]);
	return bytes;
}

/* The largest operand stands for the work, since an output may be absent. */
static double
largest_operand(const Graph *g, const Node *n)
{
	double most = 0;

	for (int i = 0; i < n->nin; i++)
		if (elems(g, n->in[i]) > most)
			most = elems(g, n->in[i]);
	for (int i = 0; i < n->nout; i++)
		if (elems(g, n->out[i]) > most)
			most = elems(g, n->out[i]);
	return most;
}

static struct work
cost_none(const Graph *g, const Node *n)
{
	(void)g;
	(void)n;
	return (struct work){ 0, 0, 0 };
}

static struct work
cost_copy(const Graph *g, const Node *n)
{
	double bytes = 0;

	/* a gather or slice reads about as much as it writes */
	for (int i = 0; i < n->nout; i++)
		bytes += 2 * val_traffic(g, n->out[i]);
	return (struct work){ 0, 0, bytes };
}

/* A view moves nothing unless it has to be carried out as a copy. */
static struct work
cost_view(const Graph *g, const Node *n)
{
	ValId y = n->out[0];

	if (!y || !g->val[y].laid_out || g->val[y].base)
		return (struct work){ 0, 0, 0 };
	return cost_copy(g, n);
}

static struct work
cost_ew(const Graph *g, const Node *n)
{
	return (struct work){ 0, largest_operand(g, n) * op_flops(n->op),
	                      node_traffic(g, n) };
}

/* Over rows and over columns. */
static struct work
cost_adafactor_means(const Graph *g, const Node *n)
{
	struct work w = cost_ew(g, n);

	w.bytes += val_traffic(g, n->in[0]);
	return w;
}

/* Sums over rows, over columns and of the update's squares before the update
 * itself, and the parameter's norm, unless they are given. */
static struct work
cost_adafactor(const Graph *g, const Node *n)
{
	struct work w = cost_ew(g, n);
	bool given = n->nin > 6 && n->in[6];

	if (!given)
		w.bytes += 3 * val_traffic(g, n->in[1])
			+ val_traffic(g, n->in[0]);
	return w;
}

/* Is it an argument of a scalar op from `own` on? */
static bool
is_argument(const Node *n, int own, int arg)
{
	for (int i = own; i < n->body->nop; i++)
		for (int k = 0; k < n->body->op[i].narg; k++)
			if (n->body->op[i].arg[k] == arg)
				return true;
	return false;
}

/* Traffic of the scalar ops from `own` on.  Results of earlier ones stand for
 * what was read before they stood in the same loop. */
static double
loop_traffic(const Graph *g, const Node *n, int own)
{
	double bytes = 0;

	for (int i = 0; i < n->nin; i++)
		if (stored(g, n->in[i]) > 1 && is_argument(n, own, i))
			bytes += val_traffic(g, n->in[i]);
	for (int i = 0; i < own; i++)
		if (is_argument(n, own, ~i))
			bytes += elems(g, n->out[0])
				* dtype_info[n->body->op[i].dt].nbytes;
	for (int i = 0; i < n->nout; i++)
		bytes += val_traffic(g, n->out[i]);
	return bytes;
}

/* The loop without what it took in: see inlined_cost. */
static struct work
cost_loop(const Graph *g, const Node *n)
{
	double flops = 0;
	int own = 0;

	for (int i = 0; i < n->ninlined; i++)
		own += g->node[n->inlined[i]].body->nop;
	for (int i = own; n->body && i < n->body->nop; i++)
		flops += op_flops(n->body->op[i].op);
	return (struct work){ 0, largest_operand(g, n) * flops,
	                      own ? loop_traffic(g, n, own)
		: node_traffic(g, n) };
}

static struct work
cost_reduce(const Graph *g, const Node *n)
{
	double flops = 0;

	for (int i = 0; i < n->nin; i++)
		flops += elems(g, n->in[i]);
	return (struct work){ 0, flops, node_traffic(g, n) };
}

static struct work
cost_scatter_add(const Graph *g, const Node *n)
{
	double bytes = 2 * val_traffic(g, n->in[1]) + val_traffic(g, n->in[0]);

	if (n->nin < 3 || !n->in[2])
		bytes += val_traffic(g, n->out[0]); /* zeros first */
	return (struct work){ 0, elems(g, n->in[1]), bytes };
}

/* For each element of the result a sum of k terms. */
static struct work
product_work(const Graph *g, const Node *n, double k)
{
	return (struct work){ 2 * elems(g, n->out[0]) * k, 0,
	                      node_traffic(g, n) };
}

static struct work
cost_matmul(const Graph *g, const Node *n)
{
	const Val *a = &g->val[n->in[0]];
	int r = a->shape.rank;
	double k = 1;

	if (r >= 1)
		k = (double)a->shape.dim[n->attr.MATMUL.ta && r > 1 ? r - 2
		                         : r - 1];
	return product_work(g, n, k);
}

/* Of rows of all replicas of a group, an equal part has matrices of this one;
 * of rows that were sent here, all. */
static struct work
own_expert_work(struct work w, int64_t experts, int64_t all, bool sent)
{
	if (all > 0 && !sent)
		w.product *= (double)experts / (double)all;
	return w;
}

/* Every row meets one matrix. */
static struct work
cost_expert_matmul(const Graph *g, const Node *n)
{
	const Shape *x = &g->val[n->in[0]].shape;

	return own_expert_work(product_work(g, n, x->rank == 2
	                                    ? (double)x->dim[1] : 1),
	                       g->val[n->in[1]].shape.dim[0],
	                       n->attr.EXPERT_MATMUL.all,
	                       n->attr.EXPERT_MATMUL.sent != 0);
}

static struct work
cost_expert_dw(const Graph *g, const Node *n)
{
	const Shape *b = &g->val[n->in[1]].shape;
	double width = b->rank == 2 ? (double)b->dim[1] : 1;

	return own_expert_work((struct work){
		2 * elems(g, n->in[0]) * width, 0, node_traffic(g, n)
	}, n->attr.EXPERT_DW.experts, n->attr.EXPERT_DW.all,
	                       n->attr.EXPERT_DW.sent != 0);
}

/* The last replica's queries see most, unless each has as far from the end what
 * it has from the beginning. */
double
causal_share(const Graph *g, const Node *n)
{
	Attr a = n->attr;
	int64_t context = *attr_int_of(n->op, &a, "share_heads") ? 0
		: *attr_int_of(n->op, &a, "context");
	double c = context > 1 && !g->zigzag ? (double)context : 1;

	return (2 * c - 1) / (2 * c);
}

/* FLOPs of `count` products of size T x S x D per head, and S x T softmax;
 * seen: the share of scores that is computed. */
static struct work
attention_work(const Graph *g, const Node *n, ValId q, ValId k, ValId v,
               double seen, int count_d, int count_e)
{
	const Shape *qs = &g->val[q].shape, *ks = &g->val[k].shape;
	double scores, d, e;

	if (qs->rank != 4 || ks->rank != 4)
		return (struct work){ 0, 0, node_traffic(g, n) };
	scores = (double)qs->dim[0] * (double)qs->dim[1] * (double)qs->dim[2]
		* (double)ks->dim[2] * seen;
	d = (double)qs->dim[3];
	e = (double)g->val[v].shape.dim[3];
	return (struct work){
		2 * scores * (count_d * d + count_e * e),
		scores * 20, node_traffic(g, n)
	};
}

static struct work
cost_attention(const Graph *g, const Node *n)
{
	double seen = n->attr.ATTENTION.causal ? causal_share(g, n) : 1;

	return attention_work(g, n, n->in[0], n->in[1], n->in[2], seen, 1, 1);
}

/* Scores again, dp, dq, dk, dv. */
static struct work
cost_attention_grad(const Graph *g, const Node *n)
{
	double seen = n->attr.ATTENTION_GRAD.causal ? causal_share(g, n) : 1;

	return attention_work(g, n, n->in[1], n->in[2], n->in[3], seen, 3, 2);
}

/* A tap is a multiplication and an addition.  Unfolded patches are written
 * and read once, in the cache where they fit.  With one input channel per
 * group there is no product in it: vectors run over the windows. */
static struct work
cost_conv(const Graph *g, const Node *n)
{
	struct window w = window_of(g, n);
	double taps = (double)w.cin, windows = (double)w.images, out;

	for (int i = 0; i < WINDOW_DIMS; i++) {
		taps *= (double)w.kernel[i];
		windows *= (double)w.out[i];
	}
	out = windows * (double)w.cout * (double)w.group;
	if (w.cin == 1 && w.group > 1)
		return (struct work){ 0, 2 * out * taps, node_traffic(g, n) };
	return (struct work){ 2 * out * taps,
	                      windows * taps * (double)w.group,
	                      node_traffic(g, n) };
}

static struct work
cost_pool(const Graph *g, const Node *n)
{
	struct window w = window_of(g, n);
	double taps = 1;

	for (int i = 0; i < WINDOW_DIMS; i++)
		taps *= (double)w.kernel[i];
	return (struct work){ 0, largest_operand(g, n) * taps,
		node_traffic(g, n) };
}

/* `spots`: samples, each of as many corners as a cell of the grid has. */
static struct work
grid_sample(const Graph *g, const Node *n, double spots, int64_t mode)
{
	const Shape *grid = &g->val[n->in[1]].shape;
	int corners = 1 << mode * grid->dim[grid->rank - 1];

	return (struct work){ 0, 2 * corners * spots + 20 * elems(g, n->in[1]),
	                      node_traffic(g, n) };
}

static struct work
cost_grid_sample(const Graph *g, const Node *n)
{
	return grid_sample(g, n, elems(g, n->out[0]),
	                   n->attr.GRID_SAMPLE.mode);
}

/* Both gradients: the corners twice. */
static struct work
cost_grid_sample_grad(const Graph *g, const Node *n)
{
	return grid_sample(g, n, elems(g, n->in[0])
	                   * (n->out[0] && n->out[1] ? 2 : 1),
	                   n->attr.GRID_SAMPLE_GRAD.mode);
}

static double
count_logits(const Graph *g, const Node *n)
{
	const Shape *w = &g->val[n->in[1]].shape;

	return w->rank == 2 ? (double)g->val[n->in[0]].shape.dim[0]
		* (double)w->dim[n->attr.CLASSIFIER.tb ? 0 : 1] : 0;
}

static struct work
cost_classifier(const Graph *g, const Node *n)
{
	double logits = count_logits(g, n), rows = (double)g->val[n->in[0]]
		.shape.dim[0];
	double width = logits > 0 ? elems(g, n->in[1]) * rows / logits : 0;

	return (struct work){ 6 * logits * width, 20 * logits,
	                      node_traffic(g, n) + 4 * logits * 4 };
}

static int64_t
ranks_of_replica(const Graph *g)
{
	return g->ranks > 1 ? g->ranks : 1;
}

struct ring
group_ring(const Graph *g, int64_t group)
{
	int64_t ranks = ranks_of_replica(g);
	int64_t size = group < GROUP_EXPERTS ? g->zero_group : g->expert_group;

	switch (group) {
	case GROUP_RANKS: return (struct ring){ ranks, 1 };
	case GROUP_REPLICAS: return (struct ring){ g->replicas, ranks };
	case GROUP_SHARDS: case GROUP_EXPERTS:
		return (struct ring){ size, ranks };
	case GROUP_COPIES: case GROUP_EXPERT_COPIES:
		return (struct ring){ g->replicas / size, ranks * size };
	case GROUP_STAGES:
		return (struct ring){ g->stages, ranks
			* (g->replicas > 0 ? g->replicas : 1) };
	case GROUP_CONTEXT: return (struct ring){ g->context, ranks };
	default: return (struct ring){ 1, 1 };
	}
}

/* Bytes that a rank sends: a ring over all ranks (Thakur et al. 2005). */
static struct work
sent_work(const Graph *g, const Node *n, double bytes)
{
	double ranks = (double)group_ring(g, node_group(n)).ranks;

	return (struct work){ 0, 0, bytes * (ranks - 1) / ranks };
}

/* The whole, which is the larger side, goes round once. */
static struct work
cost_ring(const Graph *g, const Node *n)
{
	double x = val_traffic(g, n->in[0]), y = val_traffic(g, n->out[0]);

	return sent_work(g, n, x > y ? x : y);
}

/* Reduce-scatter and all-gather. */
static struct work
cost_two_rings(const Graph *g, const Node *n)
{
	return sent_work(g, n, 2 * val_traffic(g, n->in[0]));
}

static struct work
cost_exchange(const Graph *g, const Node *n)
{
	return sent_work(g, n, val_traffic(g, n->in[0]));
}

static struct work
cost_send(const Graph *g, const Node *n)
{
	return (struct work){ 0, 0, val_traffic(g, n->in[0]) };
}

/* The sender's seconds are those of both. */
static struct work
cost_receive(const Graph *g, const Node *n)
{
	(void)g, (void)n;
	return (struct work){ 0, 0, 0 };
}

static struct work
cost_host(const Graph *g, const Node *n)
{
	return (struct work){ 0, 0, val_traffic(g, n->out[0]) };
}

static bool
is_sent(CostRule *r)
{
	return r == cost_ring || r == cost_two_rings || r == cost_exchange
		|| r == cost_send;
}

static CostRule *const rule[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, dynamic, cost, grad, shard) cost_##cost
#include "ir/ops.h"
};

/* Its operands have 16 bits. */
static bool
has_16bit_operand(const Graph *g, const Node *n)
{
	const Val *v = &g->val[n->nin && n->in[0] ? n->in[0] : 0];

	return v->dt == DT_F16 || v->dt == DT_BF16;
}

/* Elements of the results of products.  Attention's stay in registers. */
static double
started(const Graph *g, const Node *n)
{
	CostRule *r = rule[n->op];

	if (r == cost_classifier)
		return count_logits(g, n);
	return r == cost_matmul || r == cost_conv ? elems(g, n->out[0]) : 0;
}

static struct cost
cost_of_work(const Graph *g, const Node *n, struct work w)
{
	const struct device_profile *d = device_of(g);
	struct cost c = { .flops = w.product + w.vector, .bytes = w.bytes,
		.product = w.product, .started = started(g, n) };

	if (is_sent(rule[n->op])) {
		struct ring ring = group_ring(g, node_group(n));

		c.sent = w.bytes;
		c.sec = device_ring_seconds(d, ring, c.sent);
		if (c.sent > 0)
			c.lane = device_ring_link(d, ring).network
				? LANE_NETWORK : LANE_LINK;
		return c;
	}
	if (rule[n->op] == cost_host) {
		c.sent = w.bytes;
		c.sec = device_host_seconds(d, c.sent);
		c.lane = op_info[n->op].flags & F_FETCH ? LANE_FETCH
			: LANE_OFFLOAD;
		return c;
	}
	c.sec = device_measured(d, n->op, c.flops, c.bytes);
	if (c.sec < 0)
		c.sec = device_seconds(d, n->op, has_16bit_operand(g, n), &c);
	return c;
}

struct cost
inlined_cost(const Graph *g, const Node *first)
{
	struct work w = rule[first->op](g, first);
	struct cost c;

	for (int i = 0; i < first->nout; i++)
		w.bytes -= val_traffic(g, first->out[i]);
	c = cost_of_work(g, first, w);
	if (c.sec > 0)
		c.sec -= device_of(g)->launch;
	return c;
}

struct cost
node_cost(const Graph *g, const Node *n)
{
	struct cost c = cost_of_work(g, n, rule[n->op](g, n));

	for (int i = 0; i < n->ninlined; i++) {
		struct cost more = inlined_cost(g, &g->node[n->inlined[i]]);

		c.flops += more.flops;
		c.bytes += more.bytes;
		c.sec += more.sec;
	}
	return c;
}

double
node_lane_seconds(const Graph *g, const Node *n, struct cost c)
{
	NodeId id = node_id(g, n), last;
	double bytes = c.sent;

	if (!lane_is_link(c.lane))
		return c.sec;
	if (node_joins(g, id))
		return 0;
	last = message_last(g, id);
	while (++id <= last)
		bytes += rule[n->op](g, &g->node[id]).bytes;
	return device_ring_seconds(device_of(g), group_ring(g, node_group(n)),
	                           bytes);
}

double
transfer_latency(const Graph *g, const Node *n)
{
	if (rule[n->op] == cost_host)
		return device_host_seconds(device_of(g), 0);
	return device_ring_seconds(device_of(g),
	                           group_ring(g, node_group(n)), 0);
}
