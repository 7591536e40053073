/* Precision: the float type of the step, and masks that are stored.
 *
 * what    --dtype: parameters, constants and activations take another float
 *         type.  Statistics of norms stay f32 by the ops' own rules, the loss
 *         by casting logits, added attention masks by casting them back;
 *         inputs and buffers keep the type they have.
 *         --dropout-mask=store: dropout(x) becomes where(mask, x / keep, 0)
 *         with a boolean mask that backward reads, as frameworks do it; for
 *         comparing bytes with them.  The mask holds the same random bits.
 * method  one walk in order: operands, then the shape rules again, which give
 *         every output its new type
 * needs   P_LOSS | P_STATIC       gives   nothing
 * breaks  what comes later
 * cost    linear; contents of parameters are converted once
 * refuses graphs that have a backward part already
 * note    fused attention draws its own random numbers and has no mask to
 *         store; --attention=unfused has
 */
#include "ir/element.h"
#include "passes/pass.h"

#include <string.h>

struct precise {
	Pass *p;
	Graph *g;
	DType dt;                       /* DT_NONE: types stay */
	NodeId *order;
	size_t cap;
	uint32_t n;
	ValId *now;                     /* by old value: what stands for it */
};

static bool
is_float(DType dt)
{
	return dt == DT_F32 || dt == DT_F64 || dt == DT_F16 || dt == DT_BF16;
}

static void
push(struct precise *c, NodeId id)
{
	c->order = arena_grow(c->p->scratch, c->order, c->n, &c->cap,
	                      (size_t)c->n + 1, sizeof *c->order);
	c->order[c->n++] = id;
}

/* A new node before the one at hand; its first output, or 0. */
static ValId
before(struct precise *c, Op op, int nin, const ValId *in, const Attr *a,
       NodeId like)
{
	ValId v = emit_op(c->g, c->p->diag, op, nin, in, a, like);

	if (v)
		push(c, c->g->val[v].def);
	return v;
}

static ValId
cast(struct precise *c, ValId v, DType to, NodeId like)
{
	Attr a = attr_default(OP_CAST);

	a.CAST.to = to;
	return c->g->val[v].dt == to ? v
		: before(c, OP_CAST, 1, &v, &a, like);
}

/* ---- contents ---- */

/* Numbers of parameters are not planned with, and there may be very many. */
static void
convert(struct precise *c, Val *v)
{
	int64_t n = val_nelem(v);
	uint8_t *to;

	if (v->kind == V_PARAM) {
		v->data = NULL;
	} else if (v->data && n >= 0) {
		to = arena_array(c->g->arena, (size_t)n + 1,
		                 (size_t)dtype_info[c->dt].nbytes);
		for (int64_t i = 0; i < n; i++)
			element_put_float(c->dt, to, i, val_float(v, i));
		v->data = to;
	}
	v->dt = c->dt;
}

/* ---- nodes ---- */

/* Operands that are wanted in f32 whatever the rest is in. */
static bool
widen(struct precise *c, NodeId id)
{
	unsigned flags = op_info[c->g->node[id].op].flags;
	int which = flags & F_WIDE_0 ? 0
		: flags & F_WIDE_3 && c->g->node[id].nin > 3 ? 3 : -1;
	ValId v = which >= 0 ? c->g->node[id].in[which] : 0;

	if (!v || !is_float(c->g->val[v].dt) || c->g->val[v].dt == DT_F64)
		return true;
	v = cast(c, v, DT_F32, id);
	c->g->node[id].in[which] = v;
	return v != 0;
}

/* Inputs and buffers join the rest through a cast. */
static bool
narrow(struct precise *c, NodeId id)
{
	const Node *n = &c->g->node[id];

	if (n->op == OP_CAST || n->op == OP_CAST_LIKE)
		return true;
	for (int i = 0; i < n->nin; i++) {
		ValId v = c->g->node[id].in[i];

		if (!v || c->g->val[v].kind != V_INPUT
		    || !is_float(c->g->val[v].dt))
			continue;
		v = cast(c, v, c->dt, id);
		if (!v)
			return false;
		c->g->node[id].in[i] = v;
	}
	return true;
}

static bool
retype(struct precise *c, NodeId id)
{
	Graph *g = c->g;
	Node *n;

	if (!narrow(c, id) || !widen(c, id))
		return false;
	n = &g->node[id];
	if (n->op == OP_CAST && is_float((DType)n->attr.CAST.to))
		n->attr.CAST.to = c->dt;
	if (n->op == OP_RANDOM)
		n->attr.RANDOM.dt = c->dt;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && is_float(g->val[n->out[i]].dt))
			g->val[n->out[i]].dt = DT_NONE;
	return shape_infer(g, c->p->diag, n);
}

/* where(mask, x / keep, 0); the mask is dropout of ones. */
static bool
store_mask(struct precise *c, NodeId id)
{
	Graph *g = c->g;
	Attr drop = g->node[id].attr, shape = attr_default(OP_EXPAND);
	ValId x = g->node[id].in[0], old = g->node[id].out[0], mask, in[3];
	DType dt = g->val[x].dt;
	const Shape *s = &g->val[x].shape;
	double keep = 1 - drop.DROPOUT.ratio;

	shape.EXPAND.shape = shape_list(s);
	mask = val_scalar(g, dt, 1);
	mask = before(c, OP_EXPAND, 1, &mask, &shape, id);
	mask = mask ? before(c, OP_DROPOUT, 1, &mask, &drop, id) : 0;
	mask = mask ? cast(c, mask, DT_BOOL, id) : 0;
	if (!mask)
		return false;
	in[0] = x;
	in[1] = val_scalar(g, dt, 1 / keep);
	in[1] = before(c, OP_MUL, 2, in, NULL, id);
	in[0] = mask;
	in[2] = val_scalar(g, dt, 0);
	if (!in[1])
		return false;
	c->now[old] = before(c, OP_WHERE, 3, in, NULL, id);
	if (!c->now[old])
		return false;
	g->val[c->now[old]].onnx = g->val[old].onnx;
	g->val[c->now[old]].output = g->val[old].output;
	g->val[old].output = false;
	return true;
}

static bool
walk(struct precise *c, uint32_t nnode)
{
	Graph *g = c->g;

	for (NodeId id = 1; id < nnode; id++) {
		Node *n = &g->node[id];

		for (int i = 0; i < n->nin; i++)
			n->in[i] = c->now[n->in[i]];
		if (c->dt != DT_NONE && !retype(c, id))
			return false;
		if (g->node[id].op == OP_DROPOUT
		    && c->p->opt->store_masks) {
			if (!store_mask(c, id))
				return false;
		} else {
			push(c, id);
		}
	}
	return true;
}

bool
pass_precision(Pass *p, Graph *g)
{
	struct precise c = { .p = p, .g = g, .dt = p->opt->dtype };
	uint32_t nval = g->nval;

	if (c.dt == DT_NONE && !p->opt->store_masks)
		return true;
	if (g->props & P_BWD)
		return diag_error(p->diag, "--dtype and --dropout-mask come "
		                  "before the backward graph, which is there "
		                  "already");
	c.now = arena_array(p->scratch, nval, sizeof *c.now);
	for (ValId v = 0; v < nval; v++)
		c.now[v] = v;
	for (ValId v = 1; c.dt != DT_NONE && v < nval; v++)
		if ((g->val[v].kind == V_PARAM || g->val[v].kind == V_CONST)
		    && is_float(g->val[v].dt))
			convert(&c, &g->val[v]);
	if (!walk(&c, g->nnode))
		return false;
	g->loss = c.now[g->loss];
	graph_reorder(g, c.order, c.n);
	p->changed = true;
	return true;
}
