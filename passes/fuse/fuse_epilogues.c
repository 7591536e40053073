/* Epilogue fusion of 16-bit products, for machines whose matrix library
 * supports it.
 *
 *   gelu_grad(x, a @ b), tanh form          =>  matmul_end(a, b, x), end 3
 *   .. and the sums of its columns          =>  .. its second result
 *   a^T @ b, and the sums of b's columns    =>  matmul_end(a, b), end 2
 *   a^T @ b, and the sums of a's columns    =>  matmul_end(a, b), end 1
 *
 * The last two are the gradients of a weight, as it lies or transposed, and of
 * its bias, both of which read the result's adjoint.  The product takes the
 * earlier place of the two, before all readers of either result, also updates
 * right after a bias gradient.
 *
 * GELU itself stays a loop: as an epilogue its result and its argument would
 * be one product's, and dropping either would mean to repeat that product.
 */
#include "passes/fuse/edit.h"
#include "passes/fuse/fuse.h"

#include <string.h>

enum { COLUMNS = 8 };                   /* of x: a multiple */

/* A rank's summand: sums beside a product may be none of one. */
static bool
is_summand(const Graph *g, ValId v)
{
	return g->val[v].placement.kind == PLACEMENT_PARTIAL;
}

/* A matrix of 16 bits, and not empty. */
static bool
is_half_matrix(const Graph *g, ValId v)
{
	const Val *x = &g->val[v];

	return dtype_is_half(x->dt) && x->shape.rank == 2
	       && shape_nelem(&x->shape) > 0;
}

/* A product of matrices in 16 bits, with nothing else yet but perhaps what it
 * adds to. */
static bool
is_half_product(const Graph *g, const Node *n, bool acc)
{
	return n->op == OP_MATMUL && n->attr.MATMUL.alpha == 1
	       && (n->nin < 3 || !n->in[2]) && (acc || n->nin < 4 || !n->in[3])
	       && is_half_matrix(g, n->in[0]) && is_half_matrix(g, n->out[0])
	       && g->val[n->in[1]].shape.rank == 2
	       && g->val[n->out[0]].dt == g->val[n->in[0]].dt
	       && !is_summand(g, n->in[0]) && !is_summand(g, n->in[1]);
}

/* The product becomes one with an end, whose sums are absent so far. */
static void
set_epilogue(Graph *g, Node *n, int end, ValId x)
{
	Attr attr = attr_default(OP_MATMUL_END);
	ValId *in = arena_array(g->arena, 4, sizeof *in);
	ValId *out = arena_array(g->arena, 2, sizeof *out);

	in[0] = n->in[0];
	in[1] = n->in[1];
	in[2] = n->nin > 3 ? n->in[3] : 0;
	in[3] = x;
	out[0] = n->out[0];
	attr.MATMUL_END.ta = n->attr.MATMUL.ta;
	attr.MATMUL_END.tb = n->attr.MATMUL.tb;
	attr.MATMUL_END.end = end;
	n->op = OP_MATMUL_END;
	n->attr = attr;
	n->in = in;
	n->nin = x ? 4 : in[2] ? 3 : 2;
	n->out = out;
	n->nout = 2;
}

/* ---- GELU's gradient ---- */

static bool
fuse_gelu(struct edit *e, NodeId id)
{
	Graph *g = e->g;
	const Node *n = &g->node[id];
	ValId x = n->in[0], dy = n->in[1], from = edit_through_reshapes(g, dy);
	NodeId m = g->val[from].def;
	Shape s = g->val[from].shape;

	for (ValId v = dy; v != from; v = g->node[g->val[v].def].in[0])
		if (!edit_single(e, v))
			return true;
	if (!m || !n->attr.GELU_GRAD.tanh || !edit_single(e, from)
	    || !is_half_product(g, &g->node[m], false)
	    || g->val[x].dt != g->val[from].dt
	    || g->node[m].phase != n->phase || s.dim[1] % COLUMNS
	    || g->val[edit_through_reshapes(g, x)].def >= m)
		return true;
	x = edit_reshaped(e, x, &s, m);
	if (!x)
		return false;
	set_epilogue(g, &g->node[m], END_GELU_GRAD, x);
	edit_replace_node(e, id, m);
	return true;
}

/* ---- sums ---- */

/* Of all extents but the last. */
static bool
sums_columns(const Graph *g, const Node *n)
{
	const Shape *x = &g->val[n->in[0]].shape;
	const Shape *y = &g->val[n->out[0]].shape;

	if (n->op != OP_REDUCE_SUM || x->rank < 2 || y->rank != 1
	    || n->attr.REDUCE_SUM.axes.n != x->rank - 1
	    || g->val[n->out[0]].dt != g->val[n->in[0]].dt)
		return false;
	for (int i = 0; i < x->rank - 1; i++)
		if (n->attr.REDUCE_SUM.axes.v[i] != i)
			return false;
	return true;
}

/* The product whose factor the matrix `x` is, summed over its rows. */
static NodeId
reader_of(const struct edit *e, ValId x, Phase phase, bool *left)
{
	const Graph *g = e->g;

	FOR_USES (i, &e->uses, x) {
		NodeId id = e->uses.node[i];
		const Node *n = &g->node[id];

		if (e->dead[id])
			continue;
		if (n->phase != phase || !is_half_product(g, n, true)
		    || n->in[0] == n->in[1])
			continue;
		*left = n->in[0] == x;
		if (*left ? n->attr.MATMUL.ta : !n->attr.MATMUL.tb)
			return id;
	}
	return 0;
}

/* The same of a value and what it is a reshape of, and its reshapes. */
static NodeId
product_reading(const struct edit *e, ValId x, Phase phase, bool *left)
{
	const Graph *g = e->g;
	int64_t columns = g->val[x].shape.dim[g->val[x].shape.rank - 1];
	NodeId id = 0;

	x = edit_through_reshapes(g, x);
	if (g->val[x].shape.rank == 2 && g->val[x].shape.dim[1] == columns)
		id = reader_of(e, x, phase, left);
	FOR_USES (i, &e->uses, x) {
		const Node *n = &g->node[e->uses.node[i]];
		const Shape *s = &g->val[n->out[0]].shape;

		if (!id && !e->dead[e->uses.node[i]] && n->op == OP_RESHAPE
		    && s->rank == 2 && s->dim[1] == columns)
			id = reader_of(e, n->out[0], phase, left);
	}
	return id;
}

/* The product m, of a weight's gradient, at node `at`, which stands before it
 * and is its reduction; false: an operand is not there yet. */
static bool
moves_up(const struct edit *e, NodeId m, NodeId at)
{
	const Node *n = &e->g->node[m];

	for (int i = 0; i < n->nin; i++) {
		ValId from = edit_through_reshapes(e->g, n->in[i]);

		if (e->g->val[from].def >= at)
			return false;
	}
	return true;
}

static bool
move_product_up(struct edit *e, NodeId m, NodeId at)
{
	Graph *g = e->g;
	ValId *in = g->node[m].in;

	for (int i = 0; i < g->node[m].nin; i++) {
		Shape s = g->val[in[i]].shape;

		if (g->val[in[i]].def < at)
			continue;
		in[i] = edit_reshaped(e, in[i], &s, at);
		if (!in[i])
			return false;
	}
	node_add_origin(g, &g->node[m], g->node[at].origin,
	                g->node[at].norigin);
	g->node[at] = g->node[m];
	e->dead[m] = true;
	return true;
}

static bool
fuse_sums(struct edit *e, NodeId id)
{
	Graph *g = e->g;
	ValId sums = g->node[id].out[0];
	bool left = false;
	NodeId m =
		product_reading(e, g->node[id].in[0], g->node[id].phase, &left);
	Node *n = &g->node[m < id ? m : id];

	if (!m || (m > id && !moves_up(e, m, id)))
		return true;
	if (m < id) {
		node_add_origin(g, &g->node[m], g->node[id].origin,
		                g->node[id].norigin);
		e->dead[id] = true;
	} else if (!move_product_up(e, m, id)) {
		return false;
	}
	set_epilogue(g, n, left ? END_ROWS : END_COLUMNS, 0);
	n->out[1] = sums;
	edit_claim(g, n);
	return true;
}

/* Sums of what a product with GELU's gradient gives. */
static bool
fuse_gelu_sums(struct edit *e, NodeId id)
{
	Graph *g = e->g;
	const Node *n = &g->node[id];
	ValId x = edit_through_reshapes(g, n->in[0]);
	Node *m = &g->node[g->val[x].def];
	const Shape *s = &g->val[x].shape;

	if (!g->val[x].def || m->op != OP_MATMUL_END || m->out[1]
	    || m->phase != n->phase
	    || s->dim[1] != g->val[n->out[0]].shape.dim[0])
		return false;
	node_add_origin(g, m, n->origin, n->norigin);
	m->out[1] = n->out[0];
	edit_claim(g, m);
	e->dead[id] = true;
	return true;
}

bool
fuse_epilogues(Pass *p, Graph *g)
{
	struct edit e = edit_new(p, g);

	if (!p->opt->epilogues)
		return true;
	for (NodeId id = 1; id < e.nold; id++)
		if (g->node[id].op == OP_GELU_GRAD && !fuse_gelu(&e, id))
			return false;
	edit_commit(&e);
	e = edit_new(p, g);
	for (NodeId id = 1; id < e.nold; id++)
		if (sums_columns(g, &g->node[id]) && !fuse_gelu_sums(&e, id)
		    && !fuse_sums(&e, id))
			return false;
	edit_commit(&e);
	return true;
}
