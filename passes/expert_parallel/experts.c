/* Expert parallelism: each replica has some of the experts and computes them
 * for the tokens of its whole group.
 *
 * what    parameters of experts, of dim 0, become one replica's rows of them
 *         (struct replica_shard); exchange.c brings rows to them and back.
 *         These are the matrices of products, and biases [experts,N] that are
 *         gathered by the indices of a product and read by nothing else
 * where   --ep E runs along the replicas, as in DeepSpeed-MoE (Rajbhandari et
 *         al. 2022) and Megatron: E replicas side by side are a group, with
 *         all experts together, and --dp / E groups hold copies
 *         (Graph.expert_group).  Zero groups, which shard other parameters,
 *         have a size of their own.  Ranks of --tp are inside: they shard each
 *         expert.  An axis along those ranks would take attention's heads with
 *         it
 * why     an expert's gradient is complete in its group, and its optimizer
 *         state exists there once: nothing is gathered or reduced but sums over
 *         copies, where there are any
 * needs   P_CANON; behind pass shard, before autodiff, which makes the other
 *         half
 * refuses numbers of experts that E does not divide; matrices that something
 *         else than a product of experts reads
 * cost    linear in operands
 */
#include "passes/expert_parallel/expert_parallel.h"
#include "ir/placement.h"

struct matrices {
	Pass *p;
	Graph *g;
	bool *is;                       /* by value: matrices of experts, or
	                                 * biases */
	int *readers;                   /* by value, and 1 for an output */
	int64_t count;                  /* replicas of a group */
};

/* The number below it that divides both; 1: none. */
static int64_t
common_divisor(int64_t a, int64_t b, int64_t most)
{
	int64_t d = most < a ? most : a;

	while (d > 1 && (a % d || b % d))
		d--;
	return d < 1 ? 1 : d;
}

static bool
refuse_number(const struct matrices *m, const Node *n, const Val *param)
{
	long long ep = m->count, all = param->shape.dim[0];
	long long near = common_divisor(all, m->g->replicas, ep - 1);

	if (near < 2)
		return node_error(m->g, m->p->diag, n, "--ep %lld: expected a "
		                  "divisor of the %lld experts of parameter "
		                  "'%s'; try: --dp %lld --ep %lld", ep, all,
		                  param->name, all, all);
	return node_error(m->g, m->p->diag, n, "--ep %lld: expected a divisor "
	                  "of the %lld experts of parameter '%s'; try: --ep "
	                  "%lld", ep, all, param->name, near);
}

/* Between the ranks of a replica (--tp), of other dims than 0. */
static bool
moves_other_dims(const Node *n)
{
	Attr a = n->attr;
	const int64_t *from = attr_int_of(n->op, &a, "first_axis");
	const int64_t *to = attr_int_of(n->op, &a, "to_first_axis");

	return node_group(n) == GROUP_RANKS && from && *from > 0
		&& (!to || *to > 0);
}

/* Its result has along dim 0 the experts of its operand. */
static bool
keeps_experts(const Graph *g, const Node *n)
{
	const Val *x = &g->val[n->in[0]], *y = &g->val[n->out[0]];
	uint64_t flags = op_info[n->op].flags;

	if (n->nin != 1 || n->nout != 1 || x->shape.rank < 1
	    || y->shape.rank < 1 || x->shape.dim[0] != y->shape.dim[0])
		return false;
	if (n->op == OP_TRANSPOSE)
		return n->attr.TRANSPOSE.perm.v[0] == 0;
	if (n->op == OP_SLICE)
		return n->attr.SLICE.step.v[0] == 1;
	return flags & F_COMM ? moves_other_dims(n)
		: flags & F_VIEW || n->op == OP_CAST;
}

/* What the product reads, back to the parameter. */
static bool
mark_matrices(struct matrices *m, const Node *product)
{
	const Graph *g = m->g;
	ValId v = product->in[1];

	m->is[v] = true;
	while (g->val[v].def && keeps_experts(g, &g->node[g->val[v].def])) {
		v = g->node[g->val[v].def].in[0];
		m->is[v] = true;
	}
	if (g->val[v].kind != V_PARAM)
		return node_error(g, m->p->diag, product, "--ep: expected the "
		                  "matrices of experts in one parameter, found "
		                  "computed ones, '%s'; leave out --ep",
		                  g->val[v].name);
	if (product->count_pass)
		return node_error(g, m->p->diag, product, "--ep: the step's "
		                  "loss counts what experts give over all "
		                  "micro-batches; leave out --grad-accum");
	if (g->val[v].shape.dim[0] % m->count)
		return refuse_number(m, product, &g->val[v]);
	return true;
}

int64_t
experts_count(const Graph *g)
{
	int64_t all = 0;

	FOR_NODES (n, g) {
		int64_t a = n->op == OP_EXPERT_MATMUL
			? g->val[n->in[1]].shape.dim[0] : all;

		while (a) {
			int64_t rest = all % a;

			all = a;
			a = rest;
		}
	}
	return all;
}

static bool
find_matrices(struct matrices *m)
{
	bool any = false;

	FOR_NODES (n, m->g) {
		if (n->op != OP_EXPERT_MATMUL)
			continue;
		any = true;
		if (!mark_matrices(m, n))
			return false;
	}
	return any || diag_error(m->p->diag, "--ep %lld: the model has no "
	                         "products of rows with matrices of experts, "
	                         "which are matmul(w[index], x) of a parameter "
	                         "w; for transformers export with "
	                         "experts_implementation=\"batched_mm\", or "
	                         "leave out --ep", (long long)m->count);
}

/* Nothing else reads them. */
static bool
check_readers(const struct matrices *m)
{
	FOR_NODES (n, m->g)
		for (int k = 0; k < n->nin; k++) {
			if (!m->is[n->in[k]]
			    || (n->op == OP_EXPERT_MATMUL && k == 1)
			    || (k == 0 && n->nout > 0 && m->is[n->out[0]]))
				continue;
			return node_error(m->g, m->p->diag, n, "--ep: reads "
			                  "'%s', matrices of experts, of which "
			                  "a replica has a part; leave out "
			                  "--ep", m->g->val[n->in[k]].name);
		}
	return true;
}

/* ---- biases ---- */

static void
count_readers(struct matrices *m)
{
	FOR_VALS (v, m->g)
		m->readers[val_id(m->g, v)] = v->output;
	FOR_NODES (n, m->g)
		for (int k = 0; k < n->nin; k++)
			m->readers[n->in[k]]++;
}

/* A product of as many experts takes its matrices by these indices. */
static bool
is_choice_of(const Graph *g, ValId idx, int64_t experts)
{
	FOR_NODES (n, g)
		if (n->op == OP_EXPERT_MATMUL && n->in[2] == idx
		    && g->val[n->in[1]].shape.dim[0] == experts)
			return true;
	return false;
}

/* Rows of a parameter of experts by their index: the gather alone reads it. */
static bool
is_bias(const struct matrices *m, const Node *n)
{
	const Graph *g = m->g;
	const Shape *s = &g->val[n->in[0]].shape;
	ValId v = n->in[0];

	if (n->op != OP_GATHER || n->attr.GATHER.axis != 0 || s->rank != 2
	    || n->attr.GATHER.whole_extent || n->count_pass)
		return false;
	while (m->readers[v] == 1 && g->val[v].def
	       && keeps_experts(g, &g->node[g->val[v].def]))
		v = g->node[g->val[v].def].in[0];
	return m->readers[v] == 1 && g->val[v].kind == V_PARAM
		&& is_choice_of(g, n->in[1], s->dim[0]);
}

static void
mark_biases(struct matrices *m)
{
	count_readers(m);
	FOR_NODES (n, m->g) {
		ValId v = n->in[0];

		if (!is_bias(m, n))
			continue;
		n->attr.GATHER.all = m->g->val[v].shape.dim[0];
		m->is[v] = true;
		while (m->g->val[v].def) {
			v = m->g->node[m->g->val[v].def].in[0];
			m->is[v] = true;
		}
	}
}

static void
take_own_experts(Graph *g, Val *v, int64_t count)
{
	struct replica_shard *of;
	IntList *shape = v->def ? attr_list_of(g->node[v->def].op,
	                                       &g->node[v->def].attr, "shape")
				: NULL;

	if (v->kind == V_PARAM) {
		of = arena_alloc(g->arena, sizeof *of);
		*of = (struct replica_shard){ .shape = v->shape, .rows = true };
		if (v->placement.kind == PLACEMENT_SHARD)
			of->placement = v->placement;
		v->shard = of;
	}
	v->shape.dim[0] /= count;
	if (shape)
		shape->v[0] /= count;
}

/* The graph was made by this pass before. */
static bool
has_own_experts(const Graph *g)
{
	FOR_VALS (v, g)
		if (v->kind == V_PARAM && v->shard && v->shard->rows)
			return true;
	return false;
}

bool
pass_experts(Pass *p, Graph *g)
{
	struct matrices m = { .p = p, .g = g, .count = p->opt->ep };

	if (m.count < 2 || has_own_experts(g))
		return true;
	if (!g->exact)
		return diag_error(p->diag, "--ep: the graph does not declare "
		                  "an exact number of replicas");
	m.is = arena_array(p->scratch, g->nval, sizeof *m.is);
	m.readers = arena_array(p->scratch, g->nval, sizeof *m.readers);
	if (!find_matrices(&m) || !check_readers(&m))
		return false;
	mark_biases(&m);
	FOR_NODES (n, g) {
		if (n->op != OP_EXPERT_MATMUL)
			continue;
		n->attr.EXPERT_MATMUL.all = g->val[n->in[1]].shape.dim[0];
		n->attr.EXPERT_MATMUL.sent = p->opt->expert_capacity > 0;
	}
	FOR_VALS (v, g)
		if (m.is[val_id(g, v)])
			take_own_experts(g, v, m.count);
	return exchange_rows(p, g, m.count);
}
