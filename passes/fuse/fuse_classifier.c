/* Fusion of the classifier end: the last product, its loss and the gradients
 * of both, a chunk of rows at a time, so that logits never exist as a whole.
 *
 *   matmul(x, w) -> logits -> sce, sce_grad -> dx, dw, db     =>  classifier
 *
 * What adds up the losses of replicas then runs behind it.
 *
 * Where ranks hold pieces of the classes, the chunks are written out
 * (fuse_vocab.c): what goes between ranks stands between two products.
 */
#include "passes/fuse/classifier.h"

static bool
are_same_rows(const Graph *g, ValId a, ValId b)
{
	return edit_through_reshapes(g, a) == edit_through_reshapes(g, b)
	       && shape_eq(&g->val[a].shape, &g->val[b].shape);
}

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
gather_readers(struct classifier_end *c, ValId v)
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
			if (!gather_readers(c, n->out[0]))
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

/* The loss's adjoint: an attribute if it is known, else an operand. */
static void
set_seed(Graph *g, Node *n, ValId seed)
{
	if (constant_seed(g, seed, &n->attr.CLASSIFIER.seed))
		return;
	n->in[4] = seed;
	n->nin = 5;
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

/* Where classes are cut: what tells a rank of the others' pieces. */
static bool
match_stats(struct classifier_end *c)
{
	const Graph *g = c->e->g;
	const Node *sce = &g->node[c->sce], *n;

	if (sce->nin < 4 || !sce->in[3])
		return true;
	c->gather = g->val[sce->in[3]].def;
	n = &g->node[c->gather];
	if (n->op != OP_ALL_GATHER || !edit_single(c->e, sce->in[3]))
		return false;
	c->stats = g->val[n->in[0]].def;
	return g->node[c->stats].op == OP_VOCAB_STATS
		&& edit_single(c->e, n->in[0])
		&& g->node[c->stats].in[0] == sce->in[0]
		&& g->node[c->stats].in[1] == sce->in[1];
}

/* The loss is sce's, or that over a count, added up over replicas. */
static bool
match_loss(struct classifier_end *c)
{
	const Graph *g = c->e->g;
	ValId v = g->loss;

	for (;;) {
		const Node *n = &g->node[g->val[v].def];

		if (!g->val[v].def || c->ntail == USES_MAX)
			return false;
		c->sce = g->val[v].def;
		if (n->op == OP_SCE)
			return c->ntail ? edit_single(c->e, v)
			       : edit_nuses(c->e, v) == 0;
		if (!g->replicas
		    || (n->op != OP_DIV && !(op_info[n->op].flags & F_COMM))
		    || (c->ntail && !edit_single(c->e, v)))
			return false;
		c->tail[c->ntail++] = c->sce;
		v = n->in[0];
	}
}

/* Those nodes run behind the classifier. */
static bool
move_tail(struct classifier_end *c)
{
	struct edit *e = c->e;
	Graph *g = e->g;

	for (int i = c->ntail; i-- > 0; ) {
		const Node *n = &g->node[c->tail[i]];
		ValId y = n->out[0];
		Attr attr = n->attr;
		ValId v = emit_op(g, e->p->diag, n->op, n->nin, n->in, &attr,
		                  c->grad);

		if (!v)
			return false;
		g->node[g->val[v].def].out[0] = y;
		edit_claim(g, &g->node[g->val[v].def]);
		edit_place(e, g->val[v].def, c->grad + 1);
		e->dead[c->tail[i]] = true;
	}
	return true;
}

static bool
match_forward(struct classifier_end *c)
{
	const Graph *g = c->e->g;
	const Node *sce = &g->node[c->sce];
	ValId logits = logits_of(g, sce->in[0]);

	if ((sce->nin > 2 && sce->in[2]) || sce->attr.SCE.reduction == 0
	    || g->val[sce->in[0]].shape.rank != 2 || !g->val[logits].def
	    || !shape_eq(&g->val[logits].shape, &g->val[sce->in[0]].shape))
		return false;
	c->product = g->val[logits].def;
	const Node *m = &g->node[c->product];
	if (!is_plain_product(g, m, 3) || m->attr.MATMUL.ta)
		return false;
	c->nuse = 0;
	if (!match_stats(c) || !gather_readers(c, logits)
	    || c->nuse != (c->stats ? 3 : 2))
		return false;
	for (int i = 0; i < c->nuse; i++)
		if (c->use[i] != c->sce && c->use[i] != c->stats)
			c->grad = c->use[i];
	return g->node[c->grad].op == OP_SCE_GRAD;
}

static bool
match_loss_grad(struct classifier_end *c)
{
	const Graph *g = c->e->g;
	const Node *sce = &g->node[c->sce], *n = &g->node[c->grad];

	return n->in[2] == sce->in[1] && n->in[3] == sce->out[1]
	       && n->in[4] == sce->out[2] && (n->nin < 6 || !n->in[5])
	       && n->attr.SCE_GRAD.reduction == sce->attr.SCE.reduction
	       && n->attr.SCE_GRAD.ignore == sce->attr.SCE.ignore
	       && edit_single(c->e, sce->out[1])
	       && edit_single(c->e, sce->out[2]);
}

/* Which gradient is this reader of dlogits (reached as `via`)? */
static bool
match_gradient(struct classifier_end *c, NodeId id, ValId via)
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
	if (dl == via && are_same_rows(g, x, m->in[0]) && nta && !ntb
	    && !c->dw) {
		c->dw = id;
		return true;
	}
	return false;
}

static bool
match_gradients(struct classifier_end *c)
{
	c->nuse = 0;
	if (!gather_readers(c, c->e->g->node[c->grad].out[0]))
		return false;
	for (int i = 0; i < c->nuse; i++)
		if (!match_gradient(c, c->use[i], c->via[i]))
			return false;
	return c->dx || c->dw;
}

/* The weight before it was rounded for the product, which the classifier reads
 * as it is; 0: it was not.  A machine that wants copies of weights in 16 bits
 * reads them so in any case: a budget that has no room for copies may not
 * change a bit, and neither may copies that nobody asked for. */
static ValId
full_weight(const struct classifier_end *c)
{
	const Graph *g = c->e->g;
	ValId w = g->node[c->product].in[1];
	const Node *cast = &g->node[g->val[w].def];
	bool copy = !c->copies && g->val[w].kind == V_STATE;
	ValId full = copy ? g->val[w].param
		: cast->op == OP_CAST ? cast->in[0] : 0;

	return full && g->val[full].dt == DT_F32
	       && !(c->target->fuses & FUSE_COPIES) ? full : 0;
}

static void
build_classifier(struct classifier_end *c)
{
	struct edit *e = c->e;
	Graph *g = e->g;
	Node *n = &g->node[c->grad];
	const Node *m = &g->node[c->product], *sce = &g->node[c->sce];
	bool bias = m->nin > 2 && m->in[2];
	ValId dw = c->dw ? g->node[c->dw].out[0] : 0, w = full_weight(c);
	ValId seed = n->in[0];
	Attr attr = attr_default(OP_CLASSIFIER);

	attr.CLASSIFIER.tb = m->attr.MATMUL.tb;
	attr.CLASSIFIER.reduction = sce->attr.SCE.reduction;
	attr.CLASSIFIER.ignore = sce->attr.SCE.ignore;
	const Shape *s = &g->val[m->out[0]].shape;
	attr.CLASSIFIER.chunk = c->target->classifier_rows(s->dim[0],
		s->dim[1], !w && dtype_is_half(g->val[m->in[0]].dt));
	node_add_origin(g, n, m->origin, m->norigin);
	node_add_origin(g, n, sce->origin, sce->norigin);
	n->op = OP_CLASSIFIER;
	n->attr = attr;
	n->nin = bias ? 4 : 3;
	n->in = arena_array(g->arena, 5, sizeof *n->in);
	n->in[0] = m->in[0];
	n->in[1] = w ? w : m->in[1];
	n->in[2] = sce->in[1];
	n->in[3] = bias ? m->in[2] : 0;
	set_seed(g, n, seed);
	n->nout = bias ? 4 : 3;
	n->out = arena_array(g->arena, 4, sizeof *n->out);
	n->out[0] = sce->out[0];
	n->out[1] = c->dx ? g->node[c->dx].out[0] : 0;
	n->out[2] = dw;
	n->out[3] = c->db ? g->node[c->db].out[0] : 0;
	edit_claim(g, n);
}

/* What the classifier does instead. */
static void
remove_classifier(const struct classifier_end *c)
{
	NodeId gone[] = { c->product, c->sce, c->stats, c->gather, c->dx,
	                  c->dw, c->db };

	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
		c->e->dead[gone[i]] = gone[i] != 0;
	for (int i = 0; i < c->nview; i++)
		c->e->dead[c->view[i]] = true;
}

bool
fuse_classifier(Pass *p, Graph *g)
{
	struct edit e = edit_new(p, g);
	struct classifier_end c = { .e = &e, .target = p->target,
		.copies = p->opt->resident_copies == TRI_ON };

	if (!g->loss || !match_loss(&c) || !match_forward(&c)
	    || !match_loss_grad(&c) || !match_gradients(&c))
		return true;
	if (c.stats) {
		if (!unroll_classifier(&c))
			return false;
	} else if (g->val[g->loss].dt == DT_F32) {
		build_classifier(&c);
	} else {
		return true;
	}
	remove_classifier(&c);
	if (!move_tail(&c))
		return false;
	edit_commit(&e);
	FOR_NODES (n, g)
		if (n->op == OP_CLASSIFIER && !shape_infer(g, p->diag, n))
			return false;
	return true;
}

