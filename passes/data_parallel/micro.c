/* Micro-batches: make the loss of each its part of the loss of the whole
 * batch, so that losses and gradients add up.
 *
 * what    what a loss divides by is counted over all micro-batches before the
 *         first one (count_passes.c), and so is all that a formula is made of
 *         that is more than a sum of quotients
 * method  a copy of the graph is partitioned as if micro-batches were replicas
 *         (DP_MICRO); what is added up over them there and no gradient passes
 *         is a total.  What that changes in the graph is copied into it
 * keeps   a loss that is a mean over samples alone is the mean of its
 *         micro-batches as it stands, to the bit; of a sum of terms those that
 *         mix samples otherwise remain their means, with a note
 * gives   Graph.adds if losses add up
 */
#include "passes/data_parallel/dp_partition.h"
#include "passes/data_parallel/count_passes.h"

#include <string.h>

struct micro_loss {
	Pass *p;
	Graph *g;
	const Graph *replica;
	const char *why;                /* a term is a mean; NULL: none is */
	bool *grad;                     /* by value of `replica`: a gradient
	                                 * passes */
	const char *assumed;            /* a node whose placements are assumed;
	                                 * NULL: there is none */
	bool *doubtful;                 /* by value of `replica`: it depends on
	                                 * what may be assumed */
	bool *counted;                  /* ... it depends on a total */
	bool *mixed;                    /* ... on a sum that is not known before
	                                 * the step */
	ValId *copy;                    /* ... where it is in g; 0: nowhere */
	ValId share;                    /* 1 / micro-batches; 0: not there */
	struct count_passes count_passes;
	bool statistics;                /* are of several samples */
	bool sums, formulas, means;     /* terms are sums, perhaps divided;
	                                 * formulas of sums that parameters
	                                 * decide; means of what is mixed */
};

/* ---- what is known of values of the partitioned copy ---- */

static const Node *
replica_producer(const struct micro_loss *m, ValId v)
{
	NodeId def = m->replica->val[v].def;

	return def ? &m->replica->node[def] : NULL;
}

static bool
is_sum_of_all(const Node *n)
{
	return n->op == OP_ALL_REDUCE && n->attr.ALL_REDUCE.group == 1;
}

/* What is added up last is the loss. */
static bool
is_loss_reduction(const struct micro_loss *m, const Node *n)
{
	return n->out[0] == m->replica->loss;
}

static void
record_mixing(struct micro_loss *m, const Node *n)
{
	if (!m->why)
		m->why = arena_printf(m->p->scratch, "node '%s' (%s) mixes "
		                      "samples of a batch other than by a sum "
		                      "or mean", node_label(m->replica, n),
		                      node_type(m->replica, n));
}

/* Whether the statistics are of several samples.  Normalizations within a
 * sample, such as GroupNorm, have the samples among their channels.  Without
 * placements, and of one sample, the file's operator tells. */
static bool
mixes_statistics(const Graph *g, const Node *n)
{
	const Val *x = &g->val[n->in[0]];
	const char *type = node_type(g, n);

	if (n->op != OP_BATCHNORM || dp_has_own_channels(&x->placement))
		return false;
	if (x->placement.kind == PLACEMENT_SHARD && x->shape.dim[0] > 1)
		return true;
	return strcmp(type, "InstanceNormalization") != 0
		&& strcmp(type, "GroupNormalization") != 0;
}

/* A sum that a gradient passes is not known before the step, nor are, for
 * other micro-batches, the statistics of one, or a sum after a guess. */
static bool
is_mixed_result(struct micro_loss *m, const Node *n, int slot)
{
	bool any = (is_sum_of_all(n) && !is_loss_reduction(m, n)
	            && (m->grad[n->in[0]] || m->doubtful[n->in[0]]))
		|| (slot > 0 && mixes_statistics(m->replica, n));

	for (int k = 0; k < n->nin; k++)
		any |= m->mixed[n->in[k]];
	return any;
}

static bool
depends_on_total(const struct micro_loss *m, const Node *n)
{
	bool any = is_sum_of_all(n) && !is_loss_reduction(m, n);

	for (int k = 0; k < n->nin; k++)
		any |= m->counted[n->in[k]];
	return any;
}

static bool
depends_on_assumption(const struct micro_loss *m, const Node *n)
{
	bool any = m->assumed && dp_is_lookup(n->op);

	for (int k = 0; k < n->nin; k++)
		any |= m->doubtful[n->in[k]];
	return any;
}

static void
analyze_values(struct micro_loss *m)
{
	const Graph *g = m->replica;
	Arena *a = m->p->scratch;

	m->grad = sharding_requires_grad(g, a);
	m->mixed = arena_array(a, g->nval, sizeof *m->mixed);
	m->counted = arena_array(a, g->nval, sizeof *m->counted);
	m->doubtful = arena_array(a, g->nval, sizeof *m->doubtful);
	m->copy = arena_array(a, g->nval, sizeof *m->copy);
	FOR_NODES (n, g) {
		for (int k = 0; k < n->nout; k++) {
			m->mixed[n->out[k]] = is_mixed_result(m, n, k);
			m->counted[n->out[k]] = depends_on_total(m, n);
			m->doubtful[n->out[k]] = depends_on_assumption(m, n);
		}
		m->mixed[0] = m->counted[0] = m->doubtful[0] = false;
		for (int k = 0; k < n->nin; k++)
			if (m->mixed[n->in[k]]
			    && is_sum_of_all(replica_producer(m, n->in[k]))
			    && !is_loss_reduction(m, n))
				record_mixing(m, n);
	}
}

static bool
is_share_value(const struct micro_loss *m, ValId v)
{
	const Node *n = replica_producer(m, v);

	while (n && n->op == OP_CAST)
		n = replica_producer(m, n->in[0]);
	return n && n->op == OP_SHARE;
}

/* Whether v, a summand, is a mean of means, or made of such alone. */
static bool
is_mean_value(const struct micro_loss *m, ValId v)
{
	const Node *n = replica_producer(m, v);
	enum formula_op as;

	if (!n || m->replica->val[v].placement.kind != PLACEMENT_PARTIAL
	    || m->counted[v] || m->mixed[v])
		return false;
	for (int k = 0; k < n->nin; k++)
		if (is_share_value(m, n->in[k]))
			return true;
	for (int k = 0; k < n->nin; k++)
		if (m->replica->val[n->in[k]].placement.kind
		            == PLACEMENT_PARTIAL
		    && !is_mean_value(m, n->in[k]))
			return false;
	return formula_op_of(n->op, &as);
}

/* ---- the loss of a micro-batch ---- */

/* Whether the node does in g what it does in the partitioned copy. */
static bool
is_unchanged_node(const struct micro_loss *m, const Node *n)
{
	const Graph *g = m->g;
	ValId y = n->out[0];
	const Node *was = y && y < g->nval && g->val[y].def
		? &g->node[g->val[y].def] : NULL;
	Attr a = n->attr, b;
	int64_t *replica = attr_int_of(n->op, &a, "batch_segments"), *before;

	if (!was || was->op != n->op || was->nin != n->nin
	    || was->nout != n->nout)
		return false;
	b = was->attr;
	before = attr_int_of(n->op, &b, "batch_segments");
	if (replica)
		*replica = *before;
	for (int k = 0; k < n->nin; k++)
		if (was->in[k] != n->in[k]
		    || (n->in[k] && m->copy[n->in[k]] != n->in[k]))
			return false;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && was->out[k] != n->out[k])
			return false;
	return attr_equal(n->op, &a, &b);
}

static ValId
micro_share(struct micro_loss *m)
{
	Attr a = attr_default(OP_SHARE);

	a.SHARE.micro = 1;
	if (!m->share)
		m->share = emit_op(m->g, m->p->diag, OP_SHARE, 0, NULL, &a, 0);
	return m->share;
}

/* Leaves of the copy, where they are in g. */
static void
map_leaves(struct micro_loss *m)
{
	for (ValId v = 1; v < m->replica->nval; v++) {
		const Val *x = &m->replica->val[v];

		if (x->def)
			continue;
		m->copy[v] = v < m->g->nval ? v : x->kind == V_CONST && x->data
			? val_const(m->g, x->name, x->dt, x->shape, x->data)
			: 0;
	}
}

static bool
copy_to_graph(struct micro_loss *m, const Node *n)
{
	Graph *g = m->g;
	ValId *in = arena_array(m->p->scratch, (size_t)n->nin + 1, sizeof *in);
	NodeId id;

	if (n->op == OP_SHARE)
		return (m->copy[n->out[0]] = micro_share(m));
	for (int k = 0; k < n->nin; k++)
		in[k] = m->copy[n->in[k]];
	if (is_sum_of_all(n))
		return (m->copy[n->out[0]] = count_total(&m->count_passes,
		                                         in[0]));
	id = count_pass_copy(g, m->replica, n, in);
	for (int k = 0; k < n->nout; k++)
		m->copy[n->out[k]] = g->node[id].out[k];
	m->copy[0] = 0;
	return true;
}

/* What is mixed is as before, of the micro-batch alone, if it was there. */
static bool
copy_all_nodes(struct micro_loss *m)
{
	uint32_t nval = m->g->nval;

	map_leaves(m);
	FOR_NODES (n, m->replica) {
		bool keep = is_unchanged_node(m, n) || m->mixed[n->out[0]];

		if (is_loss_reduction(m, n))
			continue;
		for (int k = 0; k < n->nout && keep; k++)
			m->copy[n->out[k]] = n->out[k] < nval ? n->out[k] : 0;
		if (!keep && !copy_to_graph(m, n))
			return false;
	}
	return true;
}

/* The part that one micro-batch has of a mean; in float32 at least. */
static ValId
scale_mean(struct micro_loss *m, ValId v)
{
	Graph *g = m->g;
	Diag *d = m->p->diag;
	DType dt = g->val[v].dt, wide = dtype_is_half(dt) ? DT_F32 : dt;
	ValId in[2] = { emit_cast(g, d, v, wide, 0),
	                emit_cast(g, d, micro_share(m), wide, 0) };

	if (!in[0] || !in[1])
		return 0;
	return emit_cast(g, d, emit_op(g, d, OP_MUL, 2, in, NULL, 0), dt, 0);
}

static ValId full_batch_value(struct micro_loss *, ValId v);

/* The same of what a node makes of scalars. */
static ValId
full_batch_node(struct micro_loss *m, const Node *n)
{
	enum { OPERANDS = 3 };          /* of element-wise ops */
	ValId in[OPERANDS] = { 0 };
	bool scalar = op_info[n->op].flags & F_EW
		&& !(op_info[n->op].flags & F_RNG);
	enum formula_op as;

	for (int k = 0; k < n->nin && k < OPERANDS; k++) {
		in[k] = full_batch_value(m, n->in[k]);
		if (!in[k])
			return 0;
	}
	if (is_sum_of_all(n) || (n->nin == 2 && is_share_value(m, n->in[1])))
		return in[0];
	return n->nin <= OPERANDS && (scalar || formula_op_of(n->op, &as))
		? emit_op(m->g, m->p->diag, n->op, n->nin, in, &n->attr, 0)
		: 0;
}

/* v, a scalar, of all micro-batches: a formula of sums, of which parameters
 * decide some; 0: it is none. */
static ValId
full_batch_value(struct micro_loss *m, ValId v)
{
	const Val *x = &m->replica->val[v];
	const Node *n = replica_producer(m, v);
	ValId in[2] = { m->copy[v], 0 };

	if (val_nelem(x) != 1 || (!m->mixed[v] && !in[0]))
		return 0;
	if (m->mixed[v])
		return n ? full_batch_node(m, n) : 0;
	if (x->placement.kind != PLACEMENT_PARTIAL)
		return in[0];
	in[1] = count_total(&m->count_passes, in[0]);
	return in[1] ? emit_op(m->g, m->p->diag, OP_BATCH_TOTAL, 2, in, NULL, 0)
		     : 0;
}

/* v, a summand of the loss, as a summand of each micro-batch; 0: it is none. */
static ValId
micro_summand(struct micro_loss *m, ValId v)
{
	const Node *n = replica_producer(m, v);
	bool shares = n && n->nin == 2 && is_share_value(m, n->in[1]);
	ValId in[2], y;

	if (!m->mixed[v]) {
		m->sums |= !is_mean_value(m, v);
		return m->copy[v];
	}
	if (op_info[n->op].flags & F_JOINT && n->nin == 2) {
		in[0] = micro_summand(m, n->in[0]);
		in[1] = micro_summand(m, n->in[1]);
		return !in[0] || !in[1] ? 0 : emit_op(m->g, m->p->diag, n->op,
		                                      2, in, &n->attr, 0);
	}
	y = full_batch_value(m, v);
	m->formulas |= y != 0;
	if (!y) {
		/* a mean that was scaled by the share is v itself in g */
		y = shares && m->copy[n->in[0]] ? m->copy[n->in[0]]
		  : m->copy[v];
		m->means = true;
	}
	return y ? scale_mean(m, y) : 0;
}

static void
replace_loss(Graph *g, ValId y)
{
	ValId old = g->loss;
	const char *name = g->val[old].name;

	g->adds = true;
	if (y == old)
		return;
	val_rename(g, old, arena_printf(g->arena, "%s.micro", name));
	val_rename(g, y, name);
	g->val[y].onnx = g->val[old].onnx;
	g->val[old].onnx = NULL;
	g->val[y].output = true;
	g->val[old].output = false;
	g->loss = y;
}

static bool
rewrite_loss(struct micro_loss *m)
{
	ValId part = replica_producer(m, m->replica->loss)->in[0], y;

	if (is_mean_value(m, part))
		return true;
	if (!copy_all_nodes(m))
		return false;
	y = micro_summand(m, part);
	if (!y)
		return false;
	if (m->formulas || m->sums)
		replace_loss(m->g, y);
	count_pass_order(m->g, m->p->scratch);
	graph_dce(m->g);
	return true;
}

static void
note_micro(const struct micro_loss *m)
{
	Diag *d = m->p->diag;

	if (m->p->opt->quiet)
		return;
	if (m->why && (m->means || !m->g->adds))
		diag_note(d, "%s of a step is the mean over its micro-batches: "
		          "%s", m->g->adds ? "a term of the loss" : "the loss",
		          m->why);
	if (m->assumed && (m->g->adds || !m->why))
		diag_note(d, "%s is assumed not to mix samples of different "
		          "micro-batches; ckc cannot prove it",
		          m->assumed);
	if (m->formulas)
		diag_note(d, "the loss is a formula of sums that depend on "
		          "parameters: each step runs one more forward pass "
		          "over all micro-batches to compute the sums");
	if (m->statistics)
		diag_note(d, "batch normalization uses the statistics of each "
		          "micro-batch, not of all samples of a step");
}

bool
pass_micro(Pass *p, Graph *g)
{
	struct micro_loss m = { .p = p, .g = g,
	                        .count_passes = { .p = p, .g = g } };
	Graph *replica;
	bool ok;

	if (p->opt->grad_accum <= 1 || !g->loss || g->adds
	    || p->opt->forward_only)
		return true;
	replica = dp_partition_copy(p, g, g->loss, DP_MICRO, &m.why);
	m.replica = replica;
	FOR_NODES (n, replica ? replica : g)
		m.statistics |= mixes_statistics(replica ? replica : g, n);
	if (replica) {
		m.assumed = m.why;
		m.why = NULL;
		analyze_values(&m);
	}
	ok = !replica || rewrite_loss(&m);
	graph_free(replica);
	if (ok)
		note_micro(&m);
	return ok;
}
