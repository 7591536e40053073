/* Halves: the graph of half a batch becomes that of the whole, with two chains
 * that share the weights.  While one of them waits for other ranks, the other
 * computes (Domino, Wang et al. 2024).
 *
 * what    a node that sees samples stands twice, for the first and the second
 *         half; what is summed over samples is added up
 * method  the halves are replicas to pass replicate, whose placements say what
 *         depends on samples.  Where it adds up over replicas, the sums of both
 *         halves are added first; inputs are sliced, outputs joined
 * needs   the placements of pass replicate, whose diagnostics have been made
 */
#include "passes/data_parallel/dp_partition.h"

struct doubling {
	Pass *p;
	Graph *g;
	uint32_t nval;                  /* number of values before */
	ValId *first, *second;          /* by value: its halves; 0: it is
	                                 * whole */
	NodeId *order;
	size_t norder, cap;
};

static void
order_node(struct doubling *h, NodeId id)
{
	h->order = arena_grow(h->p->scratch, h->order, h->norder, &h->cap,
	                      h->norder + 1, sizeof *h->order);
	h->order[h->norder++] = id;
}

static ValId
half_of(const struct doubling *h, int which, ValId v)
{
	ValId y = v < h->nval ? which ? h->second[v] : h->first[v] : 0;

	return y ? y : v;
}

static void
name_half(Graph *g, ValId v, const char *whole, int which)
{
	val_rename(g, v, arena_printf(g->arena, "%s.half%d", whole, which));
}

/* ---- inputs ---- */

static bool
is_batch_input(const Val *v)
{
	return v->kind == V_INPUT && v->placement.kind == PLACEMENT_SHARD;
}

static ValId
emit_input_half(struct doubling *h, ValId input, int count_pass, int which)
{
	Graph *g = h->g;
	Shape s = g->val[input].shape;
	Node *n = node_new(g, OP_SLICE, 1, &input, 1, 0);
	ValId y = n->out[0];

	s.dim[0] /= 2;
	n->count_pass = count_pass;
	n->attr.SLICE.start = list_filled(s.rank, 0);
	n->attr.SLICE.start.v[0] = which * s.dim[0];
	n->attr.SLICE.step = list_filled(s.rank, 1);
	order_node(h, node_id(g, n));
	g->val[y].shape = s;
	g->val[y].dt = g->val[input].dt;
	name_half(g, y, g->val[input].name, which);
	return y;
}

/* Every count pass, which come one after the other, has slices of its own. */
static void
slice_inputs(struct doubling *h, const Node *reader)
{
	Graph *g = h->g;
	int nin = reader->nin, count_pass = reader->count_pass;
	const ValId *in = reader->in;

	for (int k = 0; k < nin; k++) {
		ValId v = in[k], y = h->second[v];

		if (!is_batch_input(&g->val[v])
		    || (y && g->node[g->val[y].def].count_pass == count_pass))
			continue;
		h->first[v] = emit_input_half(h, v, count_pass, 0);
		h->second[v] = emit_input_half(h, v, count_pass, 1);
	}
}

/* ---- nodes ---- */

static bool
sees_samples(const struct doubling *h, const Node *n)
{
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && h->second[n->in[k]])
			return true;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && h->g->val[n->out[k]].placement.kind
		                         != PLACEMENT_REPLICATE_PARTIAL)
			return true;
	return false;
}

static void
set_half(Node *n, int which)
{
	int64_t *half = attr_int_of(n->op, &n->attr, "half");
	int64_t *segments = attr_int_of(n->op, &n->attr, "batch_segments");

	if (half && *segments > 0)
		*half = 1 + which;
}

static void
copy_result(struct doubling *h, ValId v, ValId copy)
{
	Graph *g = h->g;
	const Val *of = &g->val[v];
	Val *to = &g->val[copy];

	to->dt = of->dt;
	to->shape = of->shape;
	to->placement = of->placement;
	to->onnx = of->onnx;
	h->first[v] = v;
	h->second[v] = copy;
}

static void
double_node(struct doubling *h, NodeId id)
{
	Graph *g = h->g;
	int nin = g->node[id].nin, nout = g->node[id].nout;
	ValId *in = arena_array(h->p->scratch, (size_t)nin + 1, sizeof *in);
	Node *n, *copy;

	for (int k = 0; k < nin; k++)
		in[k] = half_of(h, 1, g->node[id].in[k]);
	copy = node_new(g, g->node[id].op, nin, in, nout, id);
	n = &g->node[id];
	copy->attr = n->attr;
	set_half(n, 0);
	set_half(copy, 1);
	for (int k = 0; k < nin; k++)
		n->in[k] = half_of(h, 0, n->in[k]);
	order_node(h, id);
	order_node(h, node_id(g, copy));
	for (int k = 0; k < nout; k++) {
		ValId v = g->node[id].out[k], y = copy->out[k];

		if (v) {
			copy_result(h, v, y);
		} else {
			copy->out[k] = 0;
			g->val[y].def = 0;
		}
	}
}

/* The sum over replicas of what both halves have. */
static bool
add_halves(struct doubling *h, NodeId id)
{
	Graph *g = h->g;
	Node *n = &g->node[id];
	ValId in[2] = { half_of(h, 0, n->in[0]), half_of(h, 1, n->in[0]) }, y;

	if (!h->p->opt->dp) {
		n->op = OP_ADD;
		n->attr = attr_default(OP_ADD);
		n->nin = 2;
		n->in = arena_copy(g->arena, in, sizeof in);
		order_node(h, id);
		return true;
	}
	y = emit_op(g, h->p->diag, OP_ADD, 2, in, NULL, id);
	if (!y)
		return false;
	g->node[id].in[0] = y;
	order_node(h, g->val[y].def);
	order_node(h, id);
	return true;
}

/* ---- outputs ---- */

static bool
join_output(struct doubling *h, ValId v)
{
	Graph *g = h->g;
	Attr a = attr_default(OP_CONCAT);
	ValId in[2] = { h->first[v], h->second[v] }, y;

	a.CONCAT.axis = g->val[v].placement.first_axis;
	y = emit_op(g, h->p->diag, OP_CONCAT, 2, in, &a, g->val[v].def);
	if (!y)
		return false;
	dp_replace_output(g, v, y);
	g->val[y].batch = h->p->opt->dp ? (int)a.CONCAT.axis + 1 : 0;
	g->val[v].batch = 0;
	order_node(h, g->val[y].def);
	return true;
}

bool
halves_expand(Pass *p, Graph *g)
{
	struct doubling h = { .p = p, .g = g, .nval = g->nval,
		.first = arena_array(p->scratch, g->nval, sizeof *h.first),
		.second = arena_array(p->scratch, g->nval, sizeof *h.second) };
	uint32_t nnode = g->nnode;

	for (ValId v = 1; v < h.nval; v++)
		if (is_batch_input(&g->val[v])) {
			g->val[v].shape.dim[0] *= 2;
			g->val[v].batch = p->opt->dp != 0;
		}
	for (NodeId id = 1; id < nnode; id++) {
		const Node *n;

		slice_inputs(&h, &g->node[id]);
		n = &g->node[id];
		if (!sees_samples(&h, n))
			order_node(&h, id);
		else if (!(op_info[n->op].flags & F_SENDS))
			double_node(&h, id);
		else if (!add_halves(&h, id))
			return false;
	}
	for (ValId v = 1; v < h.nval; v++)
		if (g->val[v].output && h.second[v]
		    && g->val[v].kind == V_TEMP
		    && g->val[v].placement.kind == PLACEMENT_SHARD
		    && !join_output(&h, v))
			return false;
	for (ValId v = 1; v < h.nval; v++)
		if (h.second[v] && g->val[v].kind == V_TEMP) {
			name_half(g, h.second[v], g->val[v].name, 1);
			name_half(g, v, g->val[v].name, 0);
		}
	graph_reorder(g, h.order, (uint32_t)h.norder);
	return true;
}
