/* Precision: the float type of every value, for --dtype.
 *
 * what    Products, attention and convolutions take and give the target type;
 *         norms take it and have their statistics, scales and shifts in
 *         float32; reductions, comparisons and losses take float32.
 *         Element-wise ops and data movement follow their operands:
 *
 *           weak alone                       weak
 *           weak and target                  target
 *           weak and full                    full
 *           target and full                  target if both have an element
 *                                            for each of the result's (x +
 *                                            f(x)), else full (x - mean)
 *
 *         Between the last product and the loss full wins, and float32 inputs
 *         count as full (target - x), see loss_side.c.
 *         Kernels compute in float32 within an op whatever its operands are.
 *         Which op is of which kind, its row says (F_HALF, F_HALF_0, F_FULL).
 *         Logarithms are full, and so is what they are of, back to a sigmoid
 *         or softmax, see logs.c.  Products of integers, such as positions,
 *         are full, see positions.c, and terms of sums, see terms.c.
 *         Parameters stay float32 masters, and a cast makes the copy that a
 *         product takes: it is planned as any value, so it costs memory only
 *         where that is cheaper than making it again.  Without masters they
 *         have the target type themselves.  Frozen ones of 16 bits stay so,
 *         whatever the target type; of blocks of quantised weights the
 *         copy is unpacked in the type that a product takes.
 *         --precision overrules all of that, by value or by op.
 *         --dtype f32 makes everything float32.
 *         --dropout-mask=store: see mask.c.  What was decided of each value
 *         is what the pass's dump tells, see table.c.
 * method  one walk in order; one cast per value and type; the shape rules
 *         give every output its new type
 * needs   P_LOSS | P_STATIC       gives   nothing
 * breaks  what comes later
 * cost    linear; contents of constants are converted, of parameters without
 *         masters too
 * refuses graphs that have a backward part already
 */
#include "passes/precision/precision.h"
#include "runtime/support/glob.h"
#include "ir/element.h"

#include <math.h>

enum type_class { WEAK, TARGET, FULL };

static const enum type_class kind_of[WHY_COUNT] = {
	[WHY_INPUT] = WEAK, [WHY_CONST] = WEAK, [WHY_BUFFER] = WEAK,
	[WHY_MASTER] = WEAK, [WHY_PARAM] = TARGET, [WHY_WEAK] = WEAK,
	[WHY_OF_TARGET] = TARGET, [WHY_OF_FULL] = FULL, [WHY_EACH] = TARGET,
	[WHY_SPREAD] = FULL, [WHY_LOSS_SIDE] = FULL, [WHY_HALF] = TARGET,
	[WHY_FULL] = FULL,
	[WHY_LOG] = FULL, [WHY_DIFFERENCE] = FULL, [WHY_POSITION] = FULL,
	[WHY_TERM] = FULL,
	[WHY_WISH_TARGET] = TARGET, [WHY_WISH_FULL] = FULL,
};

/* By value: the kind, and what stands for it in float32 and in the target
 * type; 0: not there yet. */
struct typed_value {
	enum type_class kind;
	bool of_input;                  /* it is a float32 input, or computed
	                                 * of one */
	ValId full, target;
	struct reason reason;
};

struct precise {
	Pass *p;
	Graph *g;
	DType dt;                       /* the target type; DT_NONE: types
	                                 * stay */
	NodeId *order;
	size_t cap;
	uint32_t n;
	ValId *now;                     /* by old value: what stands for it */
	struct typed_value *typed;
	size_t ntyped, cap_typed;
	bool *used;                     /* by wish of --precision */
	const bool *log;                /* by node that there was, see logs.c */
	const bool *difference;         /* ... see logs.c */
	const bool *position;           /* ... see positions.c */
	const bool *term;               /* ... see terms.c */
	const bool *loss_side;          /* ... see loss_side.c */
	const bool *sentinel;           /* by value that there was, see
	                                 * sentinels.c */
	uint32_t nval;                  /* values that there were */
};

static bool
is_float_val(const struct precise *c, ValId v)
{
	return dtype_info[c->g->val[v].dt].cls == 'f';
}

static struct typed_value *
typed_of(struct precise *c, ValId v)
{
	if (v >= c->ntyped) {
		c->typed = arena_grow(c->p->scratch, c->typed, c->ntyped,
		                      &c->cap_typed, (size_t)v + 1,
		                      sizeof *c->typed);
		c->ntyped = (size_t)v + 1;
	}
	return &c->typed[v];
}

static void
push_placed(void *of, NodeId id)
{
	struct precise *c = of;

	c->order = arena_grow(c->p->scratch, c->order, c->n, &c->cap,
	                      (size_t)c->n + 1, sizeof *c->order);
	c->order[c->n++] = id;
}

/* ---- contents ---- */

/* Finite numbers beyond `most` are brought to it. */
static const void *
converted(struct precise *c, const Val *v, DType to, double most)
{
	int64_t n = val_nelem(v);
	uint8_t *data;

	if (!v->data || n < 0)
		return NULL;
	data = arena_array(c->g->arena, (size_t)n + 1,
	                   (size_t)dtype_info[to].nbytes);
	for (int64_t i = 0; i < n; i++) {
		double x = val_float(v, i);

		element_set_float(to, data, i, isfinite(x) && fabs(x) > most
		                  ? copysign(most, x) : x);
	}
	return data;
}

static void
convert_val(struct precise *c, Val *v, DType to)
{
	if (v->dt == to)
		return;
	v->data = converted(c, v, to, INFINITY);
	v->dt = to;
}

/* ---- casts ---- */

static bool
is_sentinel(const struct precise *c, ValId v, DType to)
{
	return v < c->nval && c->sentinel[v] && dtype_is_half(to);
}

/* A sentinel within the target's numbers; 0 after a diagnostic. */
static ValId
limited(struct precise *c, ValId v, DType to, NodeId like)
{
	double most = precision_sentinel(to);
	ValId in[2] = { v, val_scalar(c->g, DT_F32, most) };

	in[0] = emit_op(c->g, c->p->diag, OP_MIN, 2, in, NULL, like);
	if (!in[0])
		return 0;
	push_placed(c, c->g->val[in[0]].def);
	in[1] = val_scalar(c->g, DT_F32, -most);
	v = emit_op(c->g, c->p->diag, OP_MAX, 2, in, NULL, like);
	if (v)
		push_placed(c, c->g->val[v].def);
	return v;
}

/* A constant of the type. */
static ValId
cast_const(struct precise *c, ValId v, DType to)
{
	const Val *old = &c->g->val[v];
	double most = is_sentinel(c, v, to) ? precision_sentinel(to) : INFINITY;

	return val_const(c->g, old->name, to, old->shape,
	                 converted(c, old, to, most));
}

static ValId
insert_cast(struct precise *c, ValId v, DType to, NodeId like)
{
	Attr a = attr_cast(to);
	const Val *old = &c->g->val[v];
	ValId y;

	if (old->kind == V_CONST && old->data)
		return cast_const(c, v, to);
	if (is_sentinel(c, v, to))
		v = limited(c, v, to, like);
	if (!v)
		return 0;
	old = &c->g->val[v];
	if (c->g->node[old->def].op == OP_DEQUANTIZE) {
		v = c->g->node[old->def].in[0];
		a = attr_default(OP_DEQUANTIZE);
		a.DEQUANTIZE.to = to;
		y = emit_op(c->g, c->p->diag, OP_DEQUANTIZE, 1, &v, &a, like);
	} else {
		y = emit_op(c->g, c->p->diag, OP_CAST, 1, &v, &a, like);
	}
	if (y)
		push_placed(c, c->g->val[y].def);
	return y;
}

/* The place of what stands for v in that type. */
static ValId *
slot_of(struct precise *c, ValId v, DType to)
{
	struct typed_value *typed = typed_of(c, v);

	return to == c->dt ? &typed->target : &typed->full;
}

/* v in another type, before the node at hand.  0 after a diagnostic. */
static ValId
as(struct precise *c, ValId v, DType to, NodeId like)
{
	struct typed_value typed = *typed_of(c, v);
	ValId y = *slot_of(c, v, to);

	if (c->g->val[v].dt == to)
		return v;
	if (y)
		return y;
	y = insert_cast(c, v, to, like);
	if (y) {
		typed.reason = (struct reason){ .why = WHY_COPY, .of = v,
			.op = c->g->node[like].op };
		*typed_of(c, y) = typed;
		*slot_of(c, v, to) = y;
	}
	return y;
}

/* ---- nodes ---- */

static bool
has_every_element(const Graph *g, ValId v, const Shape *s)
{
	const Val *x = &g->val[v];

	return val_nelem(x) == shape_nelem(s);
}

/* What the operands of an op without an opinion come to. */
static enum why
why_of_operands(struct precise *c, NodeId id)
{
	const Node *n = &c->g->node[id];
	const Shape *s = &c->g->val[n->out[0]].shape;
	bool any[3] = { false }, whole[3] = { false }, side = c->loss_side[id];

	for (int k = 0; k < n->nin; k++) {
		ValId v = n->in[k];
		enum type_class kind;

		if (!v || !is_float_val(c, v))
			continue;
		kind = typed_of(c, v)->kind;
		if (side && kind == WEAK && typed_of(c, v)->of_input)
			kind = FULL;
		any[kind] = true;
		whole[kind] |= has_every_element(c->g, v, s);
	}
	if (any[TARGET] && any[FULL] && side)
		return WHY_LOSS_SIDE;
	if (any[TARGET] && any[FULL])
		return whole[TARGET] && whole[FULL] ? WHY_EACH : WHY_SPREAD;
	return any[TARGET] ? WHY_OF_TARGET : any[FULL] ? WHY_OF_FULL
		: WHY_WEAK;
}

/* The wish for what node n computes, the last one counts; NULL: none. */
static const struct precision_wish *
wish_of(struct precise *c, const Node *n)
{
	const struct options *o = c->p->opt;
	const struct precision_wish *found = NULL;

	for (int i = 0; i < o->nprecision; i++) {
		const struct precision_wish *w = &o->precision[i];
		bool fits = w->op && glob_match(w->glob, op_info[n->op].text);

		for (int k = 0; k < n->nout && !w->op; k++) {
			const Val *v = &c->g->val[n->out[k]];

			fits |= n->out[k] && (glob_match(w->glob, v->name)
			        || (v->onnx && glob_match(w->glob, v->onnx)));
		}
		c->used[i] |= fits;
		found = fits ? w : found;
	}
	return found;
}

/* Of the floats that the node takes; *w: the wish for it. */
static enum why
why_of_node(struct precise *c, NodeId id, const struct precision_wish **w)
{
	const Node *n = &c->g->node[id];
	uint64_t flags = op_info[n->op].flags;

	*w = wish_of(c, n);
	if (*w)
		return (*w)->dt == DT_F32 ? WHY_WISH_FULL : WHY_WISH_TARGET;
	if (flags & (F_HALF | F_HALF_0))
		return c->position[id] ? WHY_POSITION : WHY_HALF;
	if (flags & (F_FULL | F_WIDE_0 | F_TO_BOOL | F_TO_I64))
		return WHY_FULL;
	return c->log[id] ? WHY_LOG : c->difference[id] ? WHY_DIFFERENCE
		: c->term[id] ? WHY_TERM : why_of_operands(c, id);
}

/* Whether operand k goes along with the kind of its node. */
static bool
is_converted(const Node *n, int k)
{
	uint64_t flags = op_info[n->op].flags;

	if (flags & (F_HALF_0 | F_WIDE_0))
		return k == 0;
	return k != 3 || !(flags & F_WIDE_3);
}

static bool
convert_operands(struct precise *c, NodeId id, enum type_class kind)
{
	const Node *n = &c->g->node[id];
	DType to = kind == TARGET ? c->dt : DT_F32;

	for (int k = 0; k < n->nin; k++) {
		ValId v = n->in[k];

		if (!v || !is_float_val(c, v))
			continue;
		v = as(c, v, is_converted(n, k) ? to : DT_F32, id);
		if (!v)
			return false;
		n = &c->g->node[id];
		n->in[k] = v;
	}
	return true;
}

static bool
takes_input(struct precise *c, const Node *n)
{
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && typed_of(c, n->in[k])->of_input)
			return true;
	return false;
}

static void
set_type_class(struct precise *c, ValId v, enum why why,
               const struct precision_wish *wish)
{
	bool of_input = takes_input(c, &c->g->node[c->g->val[v].def]);
	struct typed_value *typed = typed_of(c, v);

	typed->of_input = of_input;
	typed->kind = kind_of[why] == WEAK ? WEAK
		: c->g->val[v].dt == c->dt ? TARGET : FULL;
	typed->reason.why = why;
	typed->reason.wish = wish;
}

/* Types of the results follow from the shape rule. */
static bool
retype(struct precise *c, NodeId id)
{
	Graph *g = c->g;
	Node *n = &g->node[id];
	const struct precision_wish *wish;
	enum why why = why_of_node(c, id, &wish);
	enum type_class kind = kind_of[why];

	if (!convert_operands(c, id, kind))
		return false;
	n = &g->node[id];
	if (n->op == OP_RANDOM)
		n->attr.RANDOM.dt = DT_F32;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && is_float_val(c, n->out[k]))
			g->val[n->out[k]].dt = DT_NONE;
	if (!shape_infer(g, c->p->diag, n))
		return false;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && is_float_val(c, n->out[k]))
			set_type_class(c, n->out[k], why, wish);
	return true;
}

/* Between floats: what the file says of types is overruled.  Of a cast to
 * what is narrower than that, rounding remains. */
static bool
is_overruled(struct precise *c, const Node *n)
{
	DType to = (DType)n->attr.CAST.to;

	return n->op == OP_CAST && is_float_val(c, n->in[0])
		&& dtype_info[to].cls == 'f'
		&& (!dtype_is_half(to) || to == c->dt
		    || dtype_is_half(c->g->val[n->in[0]].dt));
}

static void
overrule(struct precise *c, ValId y, ValId x)
{
	struct typed_value *typed = typed_of(c, y);

	typed->kind = typed_of(c, x)->kind;
	typed->reason.why = WHY_OVERRULED;
	typed->reason.of = x;
}

static bool
store_mask(struct precise *c, NodeId id)
{
	Graph *g = c->g;
	ValId old = g->node[id].out[0];
	ValId first = g->nval;
	ValId v = precision_mask(g, c->p->diag, id, push_placed, c);

	if (!v)
		return false;
	*typed_of(c, v) = *typed_of(c, old);
	for (ValId made = first; made < g->nval; made++)
		typed_of(c, made)->reason = (struct reason){ .why = WHY_MASK };
	typed_of(c, old)->reason.why = WHY_MASK;
	typed_of(c, old)->reason.of = v;
	c->now[old] = v;
	g->val[v].onnx = g->val[old].onnx;
	g->val[v].output = g->val[old].output;
	g->val[v].rows = g->val[old].rows;
	g->val[old].output = false;
	return true;
}

static bool
retype_nodes(struct precise *c, uint32_t nnode)
{
	Graph *g = c->g;

	for (NodeId id = 1; id < nnode; id++) {
		Node *n = &g->node[id];

		for (int i = 0; i < n->nin; i++)
			n->in[i] = c->now[n->in[i]];
		if (c->dt != DT_NONE && is_overruled(c, n)) {
			n->attr.CAST.to = g->val[n->in[0]].dt;
			overrule(c, n->out[0], n->in[0]);
			if (!g->val[n->out[0]].output) {
				c->now[n->out[0]] = n->in[0];
				continue;
			}
			g->val[n->out[0]].dt = g->val[n->in[0]].dt;
		} else if (c->dt != DT_NONE && !retype(c, id)) {
			return false;
		}
		if (g->node[id].op == OP_DROPOUT
		    && c->p->opt->store_masks) {
			if (!store_mask(c, id))
				return false;
		} else {
			push_placed(c, id);
		}
	}
	return true;
}

static bool
check_type_wishes(struct precise *c)
{
	const struct options *o = c->p->opt;

	for (int i = 0; i < o->nprecision; i++) {
		const struct precision_wish *w = &o->precision[i];
		const char *of = w->op ? "op:" : "";

		if (w->dt != DT_F32 && w->dt != c->dt)
			return diag_error(c->p->diag, "--precision %s%s=%s: "
			                  "expected f32 or the type of --dtype",
			                  of, w->glob, dtype_info[w->dt].text);
		if (!c->used[i])
			return diag_error(c->p->diag, "--precision %s%s=%s: "
			                  "there is no such %s", of, w->glob,
			                  dtype_info[w->dt].text,
			                  w->op ? "op" : "value");
	}
	return true;
}

static enum why
why_of_start(const Val *v, bool in_target)
{
	switch (v->kind) {
	case V_INPUT: return WHY_INPUT;
	case V_PARAM: return in_target ? WHY_PARAM : WHY_MASTER;
	case V_CONST: return WHY_CONST;
	case V_BUFFER: return WHY_BUFFER;
	default: return WHY_WEAK;
	}
}

/* Masters are weakly typed.  Without them the parameter itself has the target
 * type. */
static void
start_value(struct precise *c, Val *v)
{
	bool in_target = v->kind == V_PARAM && !c->p->opt->masters;
	struct typed_value *typed = typed_of(c, val_id(c->g, v));

	typed->reason.before = v->dt;
	if (dtype_info[v->dt].cls != 'f')
		return;
	typed->of_input = v->kind == V_INPUT && v->dt == DT_F32;
	typed->reason.why = why_of_start(v, in_target);
	typed->kind = kind_of[typed->reason.why];
	if (v->kind == V_PARAM && !val_is_stored(v))
		convert_val(c, v, in_target ? c->dt : DT_F32);
}

static void
print_notes(const void *of, FILE *out)
{
	const struct precise *c = of;
	struct reason *reason = arena_array(c->p->scratch, c->g->nval,
	                                    sizeof *reason);

	for (size_t v = 0; v < c->ntyped; v++)
		reason[v] = c->typed[v].reason;
	precision_table(c->g, c->dt, reason, out);
}

bool
pass_precision(Pass *p, Graph *g)
{
	struct precise *c = arena_array(p->scratch, 1, sizeof *c);
	uint32_t nval = g->nval;

	*c = (struct precise){ .p = p, .g = g, .dt = p->opt->dtype };
	if (c->dt == DT_NONE && p->opt->nprecision)
		return diag_error(p->diag, "--precision requires --dtype, "
		                  "which sets the default");
	if (c->dt == DT_NONE && !p->opt->store_masks)
		return true;
	if (g->props & P_BWD)
		return diag_error(p->diag, "--dtype and --dropout-mask must be "
		                  "applied before differentiation, but the "
		                  "graph already has a backward pass");
	c->log = precision_logs(g, p->scratch);
	c->difference = precision_differences(g, p->scratch);
	c->position = precision_positions(g, p->scratch);
	c->term = precision_terms(g, p->scratch);
	c->loss_side = precision_loss_side(g, p->scratch);
	c->sentinel = precision_sentinels(g, p->scratch, c->dt);
	c->nval = nval;
	c->now = arena_array(p->scratch, nval, sizeof *c->now);
	for (ValId v = 0; v < nval; v++)
		c->now[v] = v;
	c->used = arena_array(p->scratch, (size_t)p->opt->nprecision + 1,
	                     sizeof *c->used);
	for (ValId v = 1; c->dt != DT_NONE && v < nval; v++)
		start_value(c, &g->val[v]);
	if (!retype_nodes(c, g->nnode)
	    || (c->dt != DT_NONE && !check_type_wishes(c)))
		return false;
	g->loss = c->now[g->loss];
	graph_reorder(g, c->order, c->n);
	if (c->dt != DT_NONE) {
		p->notes = print_notes;
		p->noted = c;
	}
	return true;
}
