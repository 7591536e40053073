/* Rows of a replica go to the experts of its group and back.
 *
 *     x -> gather_rows -> X -> expert_matmul -> Y -> sum_rows -> y
 *
 * X has the rows of all replicas of the group, Y those of this replica's
 * experts and zeros: in the sum of Y over the group each row has one summand
 * that is not zero.
 *
 * Between two products of experts, and behind the last one, rows stay as they
 * are, as far as an op treats each row alone:
 *
 *     all     a replica has every row as it is
 *     zero    ... those of its experts, and zeros: what is read behind
 *             the products
 *     other   ... those of its experts, and anything finite: what products of
 *             experts alone read
 *
 * Products of experts ignore rows of other experts, and so do their gradients:
 * an adjoint of rows `other` is zero in the others, and so is one of rows `all`
 * that pass through an op with rows `zero` or `other`.  So gather_rows and
 * sum_rows are each other's adjoints.
 *
 * x is gathered as early as it has fewer elements: tokens, before each is
 * repeated for its choices, and indices instead of what they select.  Y is
 * summed behind the sum over choices.  A gather of experts' biases takes
 * indices of the group, too: rows of this replica's experts, and zeros.
 *
 * With --expert-capacity a row goes to the replica of its expert alone (GShard,
 * Lepikhin et al. 2021), in a slot of which there are `room` for each pair of
 * replicas, so that bytes are known (expert_slots):
 *
 *     x -> take_rows -> exchange_rows -> X -> expert_matmul -> Y
 *       -> exchange_rows -> take_rows -> y
 *
 * Rows of other experts are then empty slots.  x is what has a row for each
 * choice, and Y goes back behind the last product.  Rows without a slot are
 * zeros in y (Switch Transformer, Fedus et al. 2022), or end the step.
 */
#include "passes/expert_parallel/exchange.h"
#include "ir/placement.h"

/* ---- ops that treat each row alone ---- */

static bool
is_scalable(const Graph *g, ValId v)
{
	const Val *x = &g->val[v];

	return x->shape.rank > 0
		&& (!exchange_shards_rows(g, v)
		    || (x->placement.nsegment == 1
		        && x->placement.replication == 1
		        && placement_is_even(&x->placement, g->ranks)));
}

/* Operand k has a row for each of n's results. */
static bool
has_rows(const Graph *g, const Node *n, int k)
{
	const Shape *x = &g->val[n->in[k]].shape;
	const Shape *y = &g->val[n->out[0]].shape;

	if (n->op == OP_GATHER)
		return k == 1;
	return n->nin == 1 || (x->rank == y->rank && x->dim[0] == y->dim[0]);
}

static bool
sums_rows(const Node *n)
{
	const IntList *axes = &n->attr.REDUCE_SUM.axes;

	for (int i = 0; i < axes->n; i++)
		if (axes->v[i] == 0)
			return true;
	return axes->n == 0;
}

/* Whether the attributes let rows pass. */
static bool
passes_rows(const Graph *g, const Node *n)
{
	const Shape *x = &g->val[n->in[0]].shape;
	const Shape *y = &g->val[n->out[0]].shape;
	uint64_t flags = op_info[n->op].flags;

	switch (n->op) {
	case OP_RESHAPE: case OP_REPLICATE:
		return true;
	case OP_EXPAND:
		return x->rank == y->rank && x->dim[0] == y->dim[0];
	case OP_TRANSPOSE:
		return n->attr.TRANSPOSE.perm.v[0] == 0;
	case OP_SLICE:
		return x->dim[0] == y->dim[0] && n->attr.SLICE.step.v[0] == 1;
	case OP_CONCAT:
		return n->attr.CONCAT.axis != 0;
	case OP_REDUCE_SUM:
		return !sums_rows(n);
	case OP_GATHER:
		return n->attr.GATHER.axis == 0
			&& n->attr.GATHER.whole_extent == 0
			&& n->attr.GATHER.all == 0
			&& g->val[n->in[1]].shape.rank > 0;
	case OP_ALL_REDUCE:
		return node_group(n) == GROUP_RANKS
			&& n->attr.ALL_REDUCE.reduction == 0;
	default:
		return flags & F_EW && !(flags & F_RNG);
	}
}

/* In slots each row is alone; otherwise those of a replica may be grouped. */
static bool
matches_rows(const struct exchange *e, ValId x, ValId y)
{
	const Graph *g = e->g;
	const Shape *s = &g->val[x].shape;
	bool sharded = exchange_shards_rows(g, x);

	if (!is_scalable(g, x) || sharded != exchange_shards_rows(g, y))
		return false;
	return !exchange_has_capacity(e)
		|| (!sharded && s->rank + 2 <= MAX_RANK
		    && s->dim[0] == g->val[y].shape.dim[0]);
}

/* Each result row follows from the operands' rows of that number and from what
 * is the same on all replicas. */
static bool
treats_rows_alone(const struct exchange *e, const Node *n)
{
	const Graph *g = e->g;

	if (n->nout != 1 || n->nin < 1 || n->count_pass
	    || !is_scalable(g, n->out[0]) || !passes_rows(g, n))
		return false;
	for (int k = 0; k < n->nin; k++) {
		ValId v = n->in[k];

		if (!v || (has_rows(g, n, k) ? !matches_rows(e, v, n->out[0])
		           : e->varies[v]))
			return false;
	}
	return true;
}

/* Rows that hold anything finite stay finite, and so do slopes. */
static bool
stays_finite(const Node *n)
{
	return !(op_info[n->op].flags & (F_POLES | F_STEEP));
}

static bool
is_shared_product(const Node *n)
{
	return n->op == OP_EXPERT_MATMUL && exchange_experts(n) > 0;
}

/* Operand k has a row for each row of the result, in products too. */
static bool
brings_rows(const Graph *g, const Node *n, int k)
{
	return is_shared_product(n) ? k != 1 : has_rows(g, n, k);
}

/* ---- what is known of values ---- */

static void
find_varying(struct exchange *e)
{
	FOR_VALS (v, e->g)
		e->varies[val_id(e->g, v)] = v->kind == V_INPUT
			|| v->kind == V_STATE;
	FOR_NODES (n, e->g) {
		bool any = (op_info[n->op].flags & F_RNG) != 0;

		for (int k = 0; k < n->nin; k++)
			any |= e->varies[n->in[k]];
		if (n->op == OP_ALL_REDUCE && node_group(n) == GROUP_REPLICAS)
			any = false;
		for (int k = 0; k < n->nout; k++)
			e->varies[n->out[k]] = any;
	}
	e->varies[0] = false;
}

static bool
reads_for_products(const struct exchange *e, const Node *n, int k)
{
	return is_shared_product(n) ? k == 0
		: treats_rows_alone(e, n) && stays_finite(n)
			&& e->feeds[n->out[0]];
}

static void
find_feeding(struct exchange *e)
{
	Graph *g = e->g;
	bool *is_read = arena_array(e->p->scratch, g->nval, sizeof *is_read);

	FOR_VALS (v, g)
		e->feeds[val_id(g, v)] = !v->output;
	for (NodeId id = g->nnode - 1; id > 0; id--) {
		const Node *n = &g->node[id];

		for (int k = 0; k < n->nout; k++)
			e->feeds[n->out[k]] &= is_read[n->out[k]];
		for (int k = 0; k < n->nin; k++) {
			e->feeds[n->in[k]] &= reads_for_products(e, n, k);
			is_read[n->in[k]] = true;
		}
	}
}

/* ---- rows of the group ---- */

/* The operand that has all rows and no more elements; 0: none. */
static ValId
earlier_rows(const struct exchange *e, ValId v)
{
	const Graph *g = e->g;
	NodeId def = g->val[v].def;
	const Node *n = &g->node[def];
	ValId x;

	if (!def || def >= e->nold || !treats_rows_alone(e, n)
	    || !(op_info[n->op].flags & F_VIEW || n->op == OP_CAST
	         || n->op == OP_GATHER))
		return 0;
	x = n->in[n->nin - 1];
	return val_data_bytes(&g->val[x]) <= val_data_bytes(&g->val[v]) ? x : 0;
}

/* v of all replicas of the group. */
static ValId
gathered(struct exchange *e, ValId v, NodeId reader)
{
	Graph *g = e->g;
	ValId x, in[2];
	Node n;

	if ((e->rows[v].v && e->rows[v].slots == e->at) || e->failed)
		return e->rows[v].v;
	x = exchange_has_capacity(e) && v == e->slots[e->at].idx ? 0
		: earlier_rows(e, v);
	if (!x) {
		e->rows[v].v = exchange_emit_gather(e, v, g->val[v].def
		                                    ? g->val[v].def : reader);
	} else {
		n = g->node[g->val[v].def];
		in[0] = n.in[0];
		in[n.nin - 1] = gathered(e, x, reader);
		if (!e->failed)
			e->rows[v].v = exchange_emit_rows(
				e, n.op, n.nin, in, &n.attr, v, g->val[v].def);
	}
	e->rows[v].kind = ROWS_ALL;
	e->rows[v].slots = e->at;
	return e->rows[v].v;
}

static bool
adds_by_operand(const Node *n, int k)
{
	uint64_t flags = op_info[n->op].flags;

	return k < 3 ? (flags & (uint64_t)F_LIN0 << k) != 0
		: flags & F_JOINT && op_info[n->op].max == VARIADIC;
}

/* Rows that are zeros in its operands are zeros in its result. */
static bool
keeps_zeros(const struct exchange *e, const Node *n)
{
	bool all = true, any = false, other = false;
	int zeros = 0;

	for (int k = 0; k < n->nin; k++) {
		bool zero = e->rows[n->in[k]].kind == ROWS_ZERO;

		zeros += zero;
		any |= zero && adds_by_operand(n, k);
		all &= zero || !adds_by_operand(n, k);
		other |= e->rows[n->in[k]].kind > ROWS_ALL
			&& !(zero && adds_by_operand(n, k));
	}
	if (zeros == n->nin && op_info[n->op].flags & F_ZERO)
		return true;
	return any && (stays_finite(n) || !other)
		&& (all || !(op_info[n->op].flags & F_JOINT));
}

/* Behind the last product rows go on where no more elements are summed for it,
 * and what is gathered is small. */
static bool
is_worth_it(const struct exchange *e, const Node *n)
{
	const Graph *g = e->g;
	int64_t y = val_data_bytes(&g->val[n->out[0]]), most = 0;

	if (op_info[n->op].flags & F_COMM || exchange_has_capacity(e))
		return false;
	for (int k = 0; k < n->nin; k++) {
		int64_t bytes = val_data_bytes(&g->val[n->in[k]]);

		if (e->rows[n->in[k]].kind)
			most = bytes > most ? bytes : most;
		else if (has_rows(g, n, k) && bytes * 4 > y)
			return false;
	}
	return y <= most;
}

/* The rows that n makes of those of its operands; ROWS_LOCAL: of none. */
static enum kind
result_kind(struct exchange *e, const Node *n)
{
	bool any = false, mixed = false;

	for (int k = 0; k < n->nin; k++) {
		const struct rows *r = &e->rows[n->in[k]];

		if (r->kind <= ROWS_ALL)
			continue;
		mixed |= any && r->slots != e->at;
		any = true;
		e->at = r->slots;
	}
	if (!any || mixed || !treats_rows_alone(e, n))
		return ROWS_LOCAL;
	if (keeps_zeros(e, n) && (e->feeds[n->out[0]] || is_worth_it(e, n)))
		return ROWS_ZERO;
	return e->feeds[n->out[0]] && stays_finite(n) ? ROWS_OTHER : ROWS_LOCAL;
}

/* Replace node id by one with rows of the group. */
static void
replace_node(struct exchange *e, NodeId id, enum kind kind)
{
	const Node n = e->g->node[id];
	ValId *in = arena_array(e->p->scratch, (size_t)n.nin, sizeof *in);
	ValId y = n.out[0];

	for (int k = 0; k < n.nin && !e->failed; k++)
		in[k] = brings_rows(e->g, &n, k) ? gathered(e, n.in[k], id)
						 : n.in[k];
	if (e->failed)
		return;
	e->rows[y].v = exchange_emit_rows(e, n.op, n.nin, in, &n.attr, y, id);
	e->rows[y].kind = kind;
	e->rows[y].slots = e->at;
	if (!e->failed && e->g->val[y].output)
		exchange_emit_own(e, y);
}

/* Rows of operand v that are not in the slots at hand come back first. */
static bool
bring_back(struct exchange *e, NodeId id, ValId v)
{
	int at = e->at;

	if (e->rows[v].kind <= ROWS_ALL || e->g->val[v].def >= e->nold)
		return true;
	if (e->rows[v].kind == ROWS_OTHER)
		return node_error(e->g, e->p->diag, &e->g->node[id],
		                  "--expert-capacity: its operands are rows by "
		                  "two choices of experts; leave out "
		                  "--expert-capacity");
	exchange_emit_own(e, v);
	e->at = at;
	return !e->failed;
}

/* A node reads its operands' rows of this replica. */
static bool
keep_node(struct exchange *e, NodeId id)
{
	const Node n = e->g->node[id];

	for (int k = 0; k < n.nin; k++)
		if (!bring_back(e, id, n.in[k]))
			return false;
	exchange_append(e, id);
	return true;
}

static bool
check_product(const struct exchange *e, const Node *n)
{
	bool sharded = false, scalable = is_scalable(e->g, n->out[0]);

	for (int k = 0; k < n->nin; k++) {
		if (!brings_rows(e->g, n, k))
			continue;
		sharded |= exchange_has_capacity(e)
			&& exchange_shards_rows(e->g, n->in[k]);
		scalable &= is_scalable(e->g, n->in[k]);
	}
	if (!sharded && scalable)
		return true;
	return node_error(e->g, e->p->diag, n, "--ep%s: its rows cannot be "
	                  "exchanged: %s; leave out --sp",
	                  sharded ? " --expert-capacity" : "", sharded
	                  ? "each rank of a replica has a part of them"
	                  : "the ranks of a replica have unequal numbers of "
	                    "them");
}

/* A product of experts, or a gather of their biases: of rows of the group. */
static bool
replace_product(struct exchange *e, NodeId id)
{
	const Node n = e->g->node[id];

	if (!check_product(e, &n)
	    || (exchange_has_capacity(e) && !exchange_find_slots(e, id)))
		return false;
	if (is_shared_product(&n) && e->rows[n.in[0]].slots != e->at
	    && !bring_back(e, id, n.in[0]))
		return false;
	replace_node(e, id, ROWS_ZERO);
	return true;
}

static bool
visit_node(struct exchange *e, NodeId id)
{
	const Node *n = &e->g->node[id];
	enum kind kind;

	if (exchange_experts(n))
		return replace_product(e, id);
	kind = result_kind(e, n);
	if (kind == ROWS_LOCAL)
		return keep_node(e, id);
	replace_node(e, id, kind);
	return true;
}

bool
exchange_rows(Pass *p, Graph *g, int64_t count)
{
	struct exchange e = { .p = p, .g = g, .count = count,
		.nold = g->nnode, .nslots = 1 };
	size_t n = g->nval;

	e.varies = arena_array(p->scratch, n, sizeof *e.varies);
	e.feeds = arena_array(p->scratch, n, sizeof *e.feeds);
	e.rows = arena_array(p->scratch, n, sizeof *e.rows);
	e.slots = arena_array(p->scratch, g->nnode + 1, sizeof *e.slots);
	find_varying(&e);
	find_feeding(&e);
	for (NodeId id = 1; id < e.nold && !e.failed; id++)
		if (!visit_node(&e, id))
			return false;
	if (e.failed)
		return false;
	graph_reorder(g, e.order, (uint32_t)e.norder);
	graph_dce(g);
	return true;
}
