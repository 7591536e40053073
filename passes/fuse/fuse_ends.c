/* Fusion of nodes that are not element-wise: the classifier end, packed
 * attention gradients, and sums that become accumulators.
 *
 *   matmul(x, w) -> logits -> sce, sce_grad -> dx, dw, db     =>  classifier
 *   concat(transposed dq, dk, dv of one attention_grad)       =>  packed = 1
 *   add(a, matmul(..)), add(a, scatter_add(..))               =>  acc = a
 */
#include "passes/fuse/edit.h"
#include "passes/fuse/fuse.h"

#include <string.h>

static bool
same_rows(const Graph *g, ValId a, ValId b)
{
	return edit_through_reshapes(g, a) == edit_through_reshapes(g, b)
	       && shape_eq(&g->val[a].shape, &g->val[b].shape);
}

/* ---- classifier ---- */

enum { USES_MAX = 8 };

struct classifier {
	struct edit *e;
	const struct target *target;
	NodeId product, sce, grad;      /* forward product, loss and gradient */
	NodeId dx, dw, db;              /* 0: absent */
	NodeId use[2 * USES_MAX];       /* scratch of reach() */
	ValId via[2 * USES_MAX];
	int nuse;
	NodeId view[USES_MAX];          /* reshapes that die with it */
	int nview;
	double seed;
};

/* Logits may be widened for the loss; the classifier sums in f32 anyway. */
static bool
is_transparent(const Graph *g, const Node *n)
{
	if (n->op == OP_RESHAPE)
		return true;
	return n->op == OP_CAST && dtype_info[g->val[n->in[0]].dt].cls == 'f'
	       && dtype_info[g->val[n->out[0]].dt].cls == 'f';
}

static ValId
logits_of(const Graph *g, ValId v)
{
	while (g->val[v].def && is_transparent(g, &g->node[g->val[v].def]))
		v = g->node[g->val[v].def].in[0];
	return v;
}

/* Gather the readers of v, looking through reshapes and casts. */
static bool
reach(struct classifier *c, ValId v)
{
	const struct edit *e = c->e;

	if (e->g->val[v].output)
		return false;
	FOR_USES (i, &e->uses, v) {
		NodeId id = e->uses.node[i];
		const Node *n = &e->g->node[id];
		if (is_transparent(e->g, n)) {
			if (c->nview == USES_MAX)
				return false;
			c->view[c->nview++] = id;
			if (!reach(c, n->out[0]))
				return false;
			continue;
		}
		if (c->nuse == 2 * USES_MAX)
			return false;
		c->via[c->nuse] = v;
		c->use[c->nuse++] = id;
	}
	return true;
}

static bool
constant_seed(const Graph *g, ValId v, double *x)
{
	const Val *s = &g->val[v];

	if (s->def && g->node[s->def].op == OP_FILL) {
		*x = g->node[s->def].attr.FILL.value;
		return true;
	}
	return val_splat(g, v, x);
}

/* A plain product of two matrices. */
static bool
is_plain_product(const Graph *g, const Node *n, int max_in)
{
	if (n->op != OP_MATMUL || n->attr.MATMUL.alpha != 1)
		return false;
	for (int i = max_in; i < n->nin; i++)
		if (n->in[i])
			return false;
	return g->val[n->in[0]].shape.rank == 2
	       && g->val[n->in[1]].shape.rank == 2;
}

static bool
match_forward(struct classifier *c)
{
	const Graph *g = c->e->g;
	const Node *sce = &g->node[c->sce];
	ValId logits = logits_of(g, sce->in[0]);

	if ((sce->nin > 2 && sce->in[2]) || sce->attr.SCE.reduction == 0
	    || g->val[sce->in[0]].shape.rank != 2 || !g->val[logits].def
	    || !shape_eq(&g->val[logits].shape, &g->val[sce->in[0]].shape)
	    || edit_nuses(c->e, sce->out[0]) != 0)
		return false;
	c->product = g->val[logits].def;
	const Node *m = &g->node[c->product];
	if (!is_plain_product(g, m, 3) || m->attr.MATMUL.ta)
		return false;
	c->nuse = 0;
	if (!reach(c, logits) || c->nuse != 2)
		return false;
	c->grad = c->use[0] == c->sce ? c->use[1] : c->use[0];
	return g->node[c->grad].op == OP_SCE_GRAD;
}

static bool
match_loss_grad(struct classifier *c)
{
	const Graph *g = c->e->g;
	const Node *sce = &g->node[c->sce], *n = &g->node[c->grad];

	return n->in[2] == sce->in[1] && n->in[3] == sce->out[1]
	       && n->in[4] == sce->out[2] && (n->nin < 6 || !n->in[5])
	       && n->attr.SCE_GRAD.reduction == sce->attr.SCE.reduction
	       && n->attr.SCE_GRAD.ignore == sce->attr.SCE.ignore
	       && edit_single(c->e, sce->out[1])
	       && edit_single(c->e, sce->out[2])
	       && constant_seed(g, n->in[0], &c->seed);
}

/* Which gradient is this reader of dlogits (reached as `via`)? */
static bool
match_gradient(struct classifier *c, NodeId id, ValId via)
{
	const Graph *g = c->e->g;
	const Node *n = &g->node[id], *m = &g->node[c->product];
	bool tb = m->attr.MATMUL.tb;

	if (!shape_eq(&g->val[via].shape, &g->val[m->out[0]].shape))
		return false;
	if (n->op == OP_REDUCE_SUM && m->nin > 2 && m->in[2] && !c->db) {
		const IntList *axes = &n->attr.REDUCE_SUM.axes;
		c->db = id;
		return axes->n == 1 && axes->v[0] == 0
		       && !n->attr.REDUCE_SUM.keepdims;
	}
	if (!is_plain_product(g, n, 2))
		return false;
	bool nta = n->attr.MATMUL.ta, ntb = n->attr.MATMUL.tb;
	if (n->in[0] == via && n->in[1] == m->in[1] && !nta && ntb == !tb
	    && !c->dx) {
		c->dx = id;
		return true;
	}
	/* w [V,K]: dlogits^T x; w [K,V]: x^T dlogits */
	ValId dl = n->in[tb ? 0 : 1], x = n->in[tb ? 1 : 0];
	if (dl == via && same_rows(g, x, m->in[0]) && nta && !ntb && !c->dw) {
		c->dw = id;
		return true;
	}
	return false;
}

static bool
match_gradients(struct classifier *c)
{
	c->nuse = 0;
	if (!reach(c, c->e->g->node[c->grad].out[0]))
		return false;
	for (int i = 0; i < c->nuse; i++)
		if (!match_gradient(c, c->use[i], c->via[i]))
			return false;
	return c->dx || c->dw;
}

static void
build_classifier(struct classifier *c)
{
	struct edit *e = c->e;
	Graph *g = e->g;
	Node *n = &g->node[c->grad];
	const Node *m = &g->node[c->product], *sce = &g->node[c->sce];
	NodeId gone[] = { c->product, c->sce, c->dx, c->dw, c->db };
	bool bias = m->nin > 2 && m->in[2];
	Attr attr = attr_default(OP_CLASSIFIER);

	attr.CLASSIFIER.tb = m->attr.MATMUL.tb;
	attr.CLASSIFIER.reduction = sce->attr.SCE.reduction;
	attr.CLASSIFIER.ignore = sce->attr.SCE.ignore;
	attr.CLASSIFIER.seed = c->seed;
	const Shape *s = &g->val[m->out[0]].shape;
	attr.CLASSIFIER.chunk = c->target->classifier_rows(s->dim[0],
	                                                   s->dim[1]);
	node_add_origin(g, n, m->origin, m->norigin);
	node_add_origin(g, n, sce->origin, sce->norigin);
	n->op = OP_CLASSIFIER;
	n->attr = attr;
	n->nin = bias ? 4 : 3;
	n->in = arena_array(g->arena, 4, sizeof *n->in);
	n->in[0] = m->in[0];
	n->in[1] = m->in[1];
	n->in[2] = sce->in[1];
	n->in[3] = bias ? m->in[2] : 0;
	n->nout = bias ? 4 : 3;
	n->out = arena_array(g->arena, 4, sizeof *n->out);
	n->out[0] = sce->out[0];
	n->out[1] = c->dx ? g->node[c->dx].out[0] : 0;
	n->out[2] = c->dw ? g->node[c->dw].out[0] : 0;
	n->out[3] = c->db ? g->node[c->db].out[0] : 0;
	edit_claim(g, n);
	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
		e->dead[gone[i]] = gone[i] != 0;
	for (int i = 0; i < c->nview; i++)
		e->dead[c->view[i]] = true;
}

bool
fuse_classifier(Pass *p, Graph *g)
{
	struct edit e = edit_new(p, g);
	struct classifier c = { .e = &e, .target = p->target };

	if (!g->loss || !g->val[g->loss].def)
		return true;
	c.sce = g->val[g->loss].def;
	if (g->node[c.sce].op != OP_SCE || !match_forward(&c)
	    || !match_loss_grad(&c) || !match_gradients(&c))
		return true;
	build_classifier(&c);
	p->changed = true;
	edit_commit(&e);
	FOR_NODES (n, g)
		if (n->op == OP_CLASSIFIER && !shape_infer(g, p->diag, n))
			return false;
	return true;
}

/* ---- packed attention gradient ---- */

/* reshape(transpose(dq)) -> the attention_grad that wrote dq at `slot`. */
static NodeId
packed_part(const struct edit *e, ValId v, int slot)
{
	const Graph *g = e->g;

	for (int i = 0; i < 2; i++) {
		const Val *x = &g->val[v];
		if (!x->def || !edit_single(e, v))
			return 0;
		const Node *n = &g->node[x->def];
		const IntList *perm = &n->attr.TRANSPOSE.perm;
		if (n->op != (i == 0 ? OP_RESHAPE : OP_TRANSPOSE))
			return 0;
		if (i == 1 && (perm->n != 4 || perm->v[0] != 0
		               || perm->v[1] != 2 || perm->v[2] != 1))
			return 0;
		v = n->in[0];
	}
	NodeId id = g->val[v].def;
	return id && edit_single(e, v) && g->val[v].slot == slot
	       && g->node[id].op == OP_ATTENTION_GRAD
	       && !g->node[id].attr.ATTENTION_GRAD.packed ? id : 0;
}

/* Rows of [B,T,width]: the parts keep B and T apart or together, but do not
 * mix heads with rows. */
static bool
parts_are_rows(const Graph *g, const Node *concat, const Node *a)
{
	for (int k = 0; k < 3; k++) {
		const Shape *s = &g->val[concat->in[k]].shape;
		const Shape *d = &g->val[a->out[k]].shape;
		if (s->dim[s->rank - 1] != d->dim[1] * d->dim[3])
			return false;
	}
	const Shape *q = &g->val[a->out[0]].shape;
	const Shape *k = &g->val[a->out[1]].shape;
	const Shape *v = &g->val[a->out[2]].shape;
	return q->dim[2] == k->dim[2] && q->dim[3] == v->dim[3];
}

static void
pack(struct edit *e, NodeId id, NodeId grad)
{
	Graph *g = e->g;
	Node *n = &g->node[id], *a = &g->node[grad];
	const Shape *q = &g->val[a->out[0]].shape;
	const Shape *y = &g->val[n->out[0]].shape;
	Shape packed = SHAPE(q->dim[0], q->dim[2], y->dim[y->rank - 1]);

	for (int k = 0; k < 3; k++) {
		NodeId r = g->val[n->in[k]].def;
		e->dead[r] = true;
		e->dead[g->val[g->node[r].in[0]].def] = true;
	}
	a->attr.ATTENTION_GRAD.packed = 1;
	a->nout = 1;
	node_add_origin(g, a, n->origin, n->norigin);
	if (shape_eq(y, &packed)) {
		a->out[0] = n->out[0];
		edit_claim(g, a);
		e->dead[id] = true;
		return;
	}
	Shape flat = *y;
	ValId v = val_new(g, V_TEMP, NULL, g->val[a->out[0]].dt, packed);
	a->out[0] = v;
	edit_claim(g, a);
	n->op = OP_RESHAPE;
	n->attr = attr_reshape(&flat);
	n->nin = 1;
	n->in[0] = v;
}

bool
fuse_packed(Pass *p, Graph *g)
{
	struct edit e = edit_new(p, g);

	for (NodeId id = 1; id < e.nold; id++) {
		const Node *n = &g->node[id];
		if (n->op != OP_CONCAT || n->nin != 3)
			continue;
		int rank = g->val[n->out[0]].shape.rank;
		NodeId a = packed_part(&e, n->in[0], 0);
		if (!a || n->attr.CONCAT.axis != rank - 1
		    || packed_part(&e, n->in[1], 1) != a
		    || packed_part(&e, n->in[2], 2) != a
		    || !parts_are_rows(g, n, &g->node[a]))
			continue;
		pack(&e, id, a);
		p->changed = true;
	}
	edit_commit(&e);
	return true;
}

/* ---- sums as accumulators ---- */

/* The node that computes v and could add to an accumulator: a product, behind
 * reshapes perhaps, or a scatter_add. */
static NodeId
adder_of(const struct edit *e, ValId v, Phase phase)
{
	const Graph *g = e->g;

	for (;;) {
		NodeId id = g->val[v].def;
		const Node *n = &g->node[id];
		if (!id || !edit_single(e, v) || n->phase != phase)
			return 0;
		int acc = op_accumulator(n->op);
		if (acc > 0)
			return (n->nin <= acc || !n->in[acc])
			       && (n->op != OP_MATMUL
			           || g->val[v].shape.rank == 2) ? id : 0;
		if (n->op != OP_RESHAPE)
			return 0;
		v = n->in[0];
	}
}

/* Where the value is there: the node that computes it, looking through
 * reshapes. */
static NodeId
ready_at(const Graph *g, ValId v)
{
	return g->val[edit_through_reshapes(g, v)].def;
}

/* v in another shape, from its root: v's own reshape may stand further down. */
static ValId
reshaped(struct edit *e, ValId v, const Shape *s, NodeId before)
{
	Attr attr = attr_reshape(s);

	v = edit_through_reshapes(e->g, v);
	if (shape_eq(&e->g->val[v].shape, s))
		return v;
	ValId y = emit_op(e->g, e->p->diag, OP_RESHAPE, 1, &v, &attr, before);
	if (y)
		edit_place(e, e->g->val[y].def, before);
	return y;
}

/* Node id, add(other, result of `adder`), becomes adder's accumulator. */
static bool
accumulate_into(struct edit *e, NodeId id, NodeId adder, ValId other)
{
	Graph *g = e->g;
	int slot = op_accumulator(g->node[adder].op);
	ValId sum = g->node[id].out[0], product = g->node[adder].out[0];
	Shape s = g->val[product].shape;
	ValId acc = reshaped(e, other, &s, adder);

	if (!acc)
		return false;
	Node *n = &g->node[id], *m = &g->node[adder];
	ValId *in = arena_array(g->arena, (size_t)slot + 1, sizeof *in);
	memcpy(in, m->in, (size_t)m->nin * sizeof *in);
	in[slot] = acc;
	m->in = in;
	m->nin = slot + 1;
	node_add_origin(g, m, n->origin, n->norigin);
	if (shape_eq(&g->val[sum].shape, &s)) {
		m->out[0] = sum;
		edit_claim(g, m);
		e->dead[id] = true;
		return true;
	}
	const Shape *to = &g->val[sum].shape;
	n->op = OP_RESHAPE;
	n->attr = attr_reshape(to);
	n->nin = 1;
	n->in[0] = product;
	return true;
}

bool
fuse_accumulators(Pass *p, Graph *g)
{
	struct edit e = edit_new(p, g);

	for (NodeId id = 1; id < e.nold; id++) {
		const Node *n = &g->node[id];
		const Shape *y = &g->val[n->out[0]].shape;
		if (n->op != OP_ADD || n->in[0] == n->in[1]
		    || !shape_eq(&g->val[n->in[0]].shape, y)
		    || !shape_eq(&g->val[n->in[1]].shape, y))
			continue;
		/* the later of the two adds to the earlier, so that nothing
		 * has to move */
		NodeId a = ready_at(g, n->in[0]), b = ready_at(g, n->in[1]);
		int k = a > b ? 0 : 1;
		ValId other = n->in[1 - k];
		NodeId adder = adder_of(&e, n->in[k], n->phase);
		if (!adder || !(k ? a : b))
			continue;
		if (!accumulate_into(&e, id, adder, other))
			return false;
		p->changed = true;
	}
	edit_commit(&e);
	return true;
}
