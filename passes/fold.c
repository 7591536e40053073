/* Fold: make the graph static.
 *
 * One walk in node order.  Each node has its shapes inferred, its static
 * operands turned into attributes, axes made non-negative, and is then either
 * computed (all inputs constant: eval.c), rewritten into simpler ops, dropped
 * (it changes nothing), or kept.  Because dims are bound, what exporters write
 * as shape arithmetic is all constant, so one walk is a fixpoint.
 *
 * Afterwards constants lose the axes along which they repeat if their user
 * broadcasts anyway (a mask expanded over the batch), equal constants become
 * one, and dead nodes go.  Parameters and buffers are never folded: they
 * change.
 *
 * needs  P_BOUND     gives  P_STATIC
 * cost   nodes + elements of folded constants
 * refuses  shapes that depend on what is computed at run time, results above
 *          opt->fold_limit where a shape needs them, division by zero and
 *          indices out of range within constants
 */
#include "passes/fold.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void
push(struct fold *f, NodeId id)
{
	f->order = arena_grow(f->p->scratch, f->order, f->norder, &f->cap,
	                      (size_t)f->norder + 1, sizeof *f->order);
	f->order[f->norder++] = id;
}

/* Values appear while the walk goes on. */
static void
note_room(struct fold *f)
{
	f->note = arena_grow(f->p->scratch, f->note, f->nnote, &f->note_cap,
	                     f->g->nval, sizeof *f->note);
	f->nnote = f->g->nval;
}

struct val_note *
fold_note(struct fold *f, ValId v)
{
	if (v >= f->nnote)
		note_room(f);
	return &f->note[v];
}

/* ---- building ---- */

/* Compute the node if it can be, else put it in the new order. */
static bool
finish(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	switch (eval_node(f->p, f->g, n, f->mem)) {
	case EVAL_DONE:
		for (int i = 0; i < n->nout; i++)
			if (n->out[i])
				fold_note(f, n->out[i])->folded = true;
		f->p->changed = true;
		return true;
	case EVAL_FAIL:
		return false;
	case EVAL_LARGE:
		fold_note(f, n->out[0])->large = true;
		break;
	case EVAL_SKIP:
		break;
	}
	push(f, id);
	return true;
}

ValId
fold_emit(struct fold *f, Op op, int nin, const ValId *in, const Attr *attr,
          NodeId like)
{
	ValId v = emit_op(f->g, f->p->diag, op, nin, in, attr, like);

	f->p->changed = true;
	return v && finish(f, f->g->val[v].def) ? v : 0;
}

ValId
fold_reshape(struct fold *f, ValId x, const Shape *s, NodeId like)
{
	Attr attr = attr_default(OP_RESHAPE);

	if (shape_eq(&f->g->val[x].shape, s))
		return x;
	fold_shape_list(&attr.RESHAPE.shape, s);
	attr.RESHAPE.allowzero = shape_nelem(s) == 0;
	return fold_emit(f, OP_RESHAPE, 1, &x, &attr, like);
}

ValId
fold_expand(struct fold *f, ValId x, const Shape *s, NodeId like)
{
	Attr attr = attr_default(OP_EXPAND);

	if (shape_eq(&f->g->val[x].shape, s))
		return x;
	fold_shape_list(&attr.EXPAND.shape, s);
	return fold_emit(f, OP_EXPAND, 1, &x, &attr, like);
}

/* Slice with one start and step per axis; s holds the extents. */
ValId
fold_slice(struct fold *f, ValId x, const IntList *start, const IntList *step,
           const Shape *s, NodeId like)
{
	if (fold_is_whole(start, step, &f->g->val[x].shape, s))
		return x;
	Node *n = node_new(f->g, OP_SLICE, 1, &x, 0, like);
	NodeId id = node_id(f->g, n);
	ValId y = n->out[0];

	n->attr.SLICE.start = *start;
	n->attr.SLICE.step = *step;
	f->g->val[y].shape = *s;
	f->p->changed = true;
	return shape_infer(f->g, f->p->diag, n) && finish(f, id) ? y : 0;
}

void
fold_shape_list(IntList *l, const Shape *s)
{
	l->n = s->rank;
	for (int d = 0; d < s->rank; d++)
		l->v[d] = s->dim[d];
}

bool
fold_is_whole(const IntList *start, const IntList *step, const Shape *x,
              const Shape *y)
{
	for (int d = 0; d < x->rank; d++)
		if (start->v[d] != 0 || step->v[d] != 1
		    || x->dim[d] != y->dim[d])
			return false;
	return true;
}

/* Turn node id into a node of another op with one input, same output. */
void
fold_turn(struct fold *f, NodeId id, Op op, ValId x)
{
	Node *n = &f->g->node[id];

	n->op = op;
	n->attr = attr_default(op);
	n->nin = 1;
	n->in[0] = x;
	f->p->changed = true;
}

enum step
fold_turn_reshape(struct fold *f, NodeId id, ValId x)
{
	Node *n = &f->g->node[id];
	const Shape *s = &f->g->val[n->out[0]].shape;

	fold_turn(f, id, OP_RESHAPE, x);
	fold_shape_list(&n->attr.RESHAPE.shape, s);
	n->attr.RESHAPE.allowzero = shape_nelem(s) == 0;
	return fold_simplify(f, id);
}

/* Output 0 of node id is x.  A graph output keeps its name: x takes it over
 * if x has no name to keep, else the node stays as a copy. */
enum step
fold_become(struct fold *f, NodeId id, ValId x)
{
	Node *n = &f->g->node[id];
	Val *y = &f->g->val[n->out[0]], *v = &f->g->val[x];

	if (!shape_eq(&y->shape, &v->shape)) {
		fold_turn(f, id, OP_EXPAND, x);
		fold_shape_list(&n->attr.EXPAND.shape, &y->shape);
		return STEP_KEEP;
	}
	if (y->output && (v->kind != V_TEMP || v->output)) {
		if (n->op != OP_COPY)
			fold_turn(f, id, OP_COPY, x);
		return STEP_KEEP;
	}
	if (y->output) {
		const char *name = y->name, *onnx = y->onnx;
		val_rename(f->g, n->out[0], v->name);
		y->onnx = v->onnx;
		val_rename(f->g, x, name);
		v->onnx = onnx;
		v->output = true;
		y->output = false;
	}
	if (f->g->loss == n->out[0])
		f->g->loss = x;
	fold_note(f, n->out[0])->now = x;
	f->p->changed = true;
	return STEP_GONE;
}

/* ---- the walk ---- */

static void
follow_replacements(struct fold *f, Node *n)
{
	for (int i = 0; i < n->nin; i++) {
		ValId now = n->in[i] ? fold_note(f, n->in[i])->now : 0;
		if (now)
			n->in[i] = now;
	}
}

/* Trailing absent operands say nothing. */
static void
trim_inputs(Node *n)
{
	while (n->nin > op_info[n->op].min && n->in[n->nin - 1] == 0)
		n->nin--;
}

static void
normalise_axis(const Graph *g, Node *n)
{
	int nattr;
	const struct attr_info *info = op_attrs(n->op, &nattr);

	for (int i = 0; i < nattr; i++) {
		if (info[i].type != AT_INT || strcmp(info[i].name, "axis") != 0)
			continue;
		int64_t *axis = (int64_t *)((char *)&n->attr + info[i].offset);
		/* the new axis of one_hot counts in the output */
		int rank = n->op == OP_ONE_HOT || n->op == OP_SCATTER_ADD
		           ? g->val[n->out[0]].shape.rank
		           : g->val[n->in[0]].shape.rank;
		if (*axis < 0 && rank >= 0)
			*axis += rank;
	}
}

static bool
step(struct fold *f, NodeId id)
{
	Graph *g = f->g;

	follow_replacements(f, &g->node[id]);
	trim_inputs(&g->node[id]);
	if (!shape_infer(g, f->p->diag, &g->node[id]))
		return false;
	normalise_axis(g, &g->node[id]);
	if (!fold_absorb(f, id))
		return false;
	/* computed before it is simplified: that gives a constant at once */
	switch (eval_node(f->p, g, &g->node[id], f->mem)) {
	case EVAL_DONE:
		for (int i = 0; i < g->node[id].nout; i++)
			if (g->node[id].out[i])
				fold_note(f, g->node[id].out[i])->folded = true;
		f->p->changed = true;
		return true;
	case EVAL_FAIL:
		return false;
	case EVAL_LARGE:
		fold_note(f, g->node[id].out[0])->large = true;
		break;
	case EVAL_SKIP:
		break;
	}
	switch (fold_simplify(f, id)) {
	case STEP_GONE:
		return true;
	case STEP_FAIL:
		return false;
	case STEP_KEEP:
		break;
	}
	return finish(f, id);
}

/* ---- constants afterwards ---- */

/* True if v does not change along axis d. */
static bool
repeats(const Val *v, int d)
{
	int64_t inner = dtype_info[v->dt].nbytes, outer = 1;
	const char *data = v->data;

	for (int i = 0; i < d; i++)
		outer *= v->shape.dim[i];
	for (int i = d + 1; i < v->shape.rank; i++)
		inner *= v->shape.dim[i];
	for (int64_t o = 0; o < outer; o++, data += inner * v->shape.dim[d])
		if (memcmp(data, data + inner,
		           (size_t)(inner * (v->shape.dim[d] - 1))) != 0)
			return false;
	return true;
}

/* The constant with axis d cut to its first element. */
static ValId
cut_axis(struct fold *f, ValId id, int d)
{
	Val v = f->g->val[id];
	int64_t inner = dtype_info[v.dt].nbytes, outer = 1;
	Shape s = v.shape;

	for (int i = 0; i < d; i++)
		outer *= s.dim[i];
	for (int i = d + 1; i < s.rank; i++)
		inner *= s.dim[i];
	s.dim[d] = 1;
	char *data = arena_alloc(f->mem, (size_t)(outer * inner) + 1);
	for (int64_t o = 0; o < outer; o++)
		memcpy(data + o * inner,
		       (const char *)v.data + o * inner * v.shape.dim[d],
		       (size_t)inner);
	ValId y = val_new(f->g, V_CONST, v.name, v.dt, s);
	f->g->val[y].data = data;
	f->g->val[y].onnx = v.onnx;
	fold_note(f, y)->folded = true;
	return y;
}

/* True if the output of n has the same shape with operand k's axis d (counted
 * from the end) at extent 1. */
static bool
others_span(const Graph *g, const Node *n, int k, int from_end)
{
	const Shape *x = &g->val[n->in[k]].shape;

	if (n->op == OP_ATTENTION)
		return true;
	for (int i = 0; i < n->nin; i++) {
		const Shape *s = &g->val[n->in[i]].shape;
		if (i != k && n->in[i] && s->rank >= from_end
		    && s->dim[s->rank - from_end] == x->dim[x->rank - from_end])
			return true;
	}
	return false;
}

static void
shrink_operand(struct fold *f, Node *n, int k)
{
	Graph *g = f->g;

	for (int d = 0; d < g->val[n->in[k]].shape.rank; d++) {
		const Val *v = &g->val[n->in[k]];
		if (v->shape.dim[d] > 1 && repeats(v, d)
		    && others_span(g, n, k, v->shape.rank - d))
			n->in[k] = cut_axis(f, n->in[k], d);
	}
	/* leading axes of 1 are left to the other operands */
	const Val *v = &g->val[n->in[k]];
	if (n->op == OP_ATTENTION || v->shape.rank == 0 || val_nelem(v) != 1)
		return;
	for (int i = 0; i < n->nin; i++)
		if (i != k && n->in[i]
		    && g->val[n->in[i]].shape.rank >= v->shape.rank) {
			Val was = *v;
			ValId y = val_new(g, V_CONST, was.name, was.dt,
			                  shape_scalar());
			g->val[y].data = was.data;
			g->val[y].onnx = was.onnx;
			fold_note(f, y)->folded = true;
			n->in[k] = y;
			return;
		}
}

static void
shrink_constants(struct fold *f)
{
	Graph *g = f->g;

	FOR_NODES (n, g) {
		bool ew = op_info[n->op].flags & F_EW && n->op != OP_LOOP;
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && val_is_const(&g->val[n->in[k]])
			    && val_nelem(&g->val[n->in[k]]) > 0
			    && ((ew && n->nin > 1 && op_info[n->op].nstat > k)
			        || (n->op == OP_ATTENTION && k == 3)))
				shrink_operand(f, n, k);
	}
}

static uint64_t
hash_bytes(const void *data, size_t n)
{
	const unsigned char *s = data;
	uint64_t h = 14695981039346656037u, word;

	for (; n >= 8; n -= 8, s += 8) {
		memcpy(&word, s, 8);
		h = (h ^ word) * 1099511628211u;
		h ^= h >> 29;
	}
	for (; n; n--)
		h = (h ^ *s++) * 1099511628211u;
	return h ^ h >> 32;
}

static bool
same_constant(const Val *a, const Val *b)
{
	return a->dt == b->dt && shape_eq(&a->shape, &b->shape)
	       && memcmp(a->data, b->data, (size_t)val_data_bytes(a)) == 0;
}

/* The first constant seen that equals v, from an open-addressed table. */
static ValId
first_equal(const Graph *g, ValId *slot, size_t nslot, ValId v)
{
	const Val *x = &g->val[v];
	size_t i = hash_bytes(x->data, (size_t)val_data_bytes(x))
	           & (nslot - 1);

	while (slot[i] && !same_constant(x, &g->val[slot[i]]))
		i = (i + 1) & (nslot - 1);
	if (!slot[i])
		slot[i] = v;
	return slot[i];
}

/* Equal constants become one; the first in order of use stays. */
static void
merge_constants(struct fold *f)
{
	Graph *g = f->g;
	size_t nslot = 64;

	while (nslot < 4 * (size_t)g->nval)
		nslot *= 2;
	ValId *slot = arena_array(f->p->scratch, nslot, sizeof *slot);
	ValId *now = arena_array(f->p->scratch, g->nval, sizeof *now);
	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++) {
			ValId v = n->in[k];
			const Val *x = &g->val[v];
			if (!v || !val_is_const(x) || x->output
			    || val_data_bytes(x) < 0)
				continue;
			if (!now[v])
				now[v] = first_equal(g, slot, nslot, v);
			n->in[k] = now[v];
		}
}

/* Contents that survive move to the graph; the rest goes with f->mem. */
static void
keep_contents(struct fold *f)
{
	FOR_VALS (v, f->g)
		if (fold_note(f, val_id(f->g, v))->folded && v->data)
			v->data = arena_copy(f->g->arena, v->data,
			                     (size_t)val_data_bytes(v));
}

/* ---- what is not static ---- */

/* Why v is not a constant, into buf. */
static const char *
reason(struct fold *f, ValId v, char *buf, size_t size, int depth)
{
	const Graph *g = f->g;
	const Val *x = &g->val[v];

	if (x->kind == V_CONST)
		snprintf(buf, size, "the contents of '%s' are not known",
		         x->name);
	else if (x->kind != V_TEMP || !x->def || depth > 64)
		snprintf(buf, size, "it depends on the contents of '%s'",
		         x->onnx ? x->onnx : x->name);
	else if (fold_note(f, v)->large)
		snprintf(buf, size, "node '%s' is not folded because its "
		         "result exceeds %" PRId64 " bytes; try a larger "
		         "--fold-limit", node_name(g, &g->node[x->def]),
		         f->p->opt->fold_limit);
	else {
		const Node *n = &g->node[x->def];
		for (int i = 0; i < n->nin; i++)
			if (n->in[i] && !val_is_const(&g->val[n->in[i]]))
				return reason(f, n->in[i], buf, size,
				              depth + 1);
		snprintf(buf, size, "node '%s' (%s) is not folded",
		         node_name(g, n), node_type(g, n));
	}
	return buf;
}

/* What keeps this node from being static: text into buf, or false. */
static bool
node_fault(struct fold *f, const Node *n, char *buf, size_t size)
{
	const Graph *g = f->g;
	char why[192];

	for (int i = op_info[n->op].nstat; i < n->nin; i++)
		if (n->in[i] && !val_is_const(&g->val[n->in[i]])) {
			snprintf(buf, size, "operand %d must be constant: %s",
			         i, reason(f, n->in[i], why, sizeof why, 0));
			return true;
		}
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !shape_known(&g->val[n->in[i]].shape))
			return false;   /* the fault lies further up */
	if (n->nin > op_info[n->op].nstat && n->in[n->nin - 1]
	    && fold_note(f, n->out[0])->large) {
		snprintf(buf, size, "its result exceeds %" PRId64 " bytes; try "
		         "a larger --fold-limit", f->p->opt->fold_limit);
		return true;
	}
	if (n->op == OP_ONE_HOT && !val_is_const(&g->val[n->in[1]])) {
		snprintf(buf, size, "the depth must be constant: %s",
		         reason(f, n->in[1], why, sizeof why, 0));
		return true;
	}
	if (n->op == OP_NONZERO) {
		snprintf(buf, size, "the number of results is known only at "
		         "run time: %s", reason(f, n->in[0], why, sizeof why,
		                                0));
		return true;
	}
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !shape_known(&g->val[n->out[i]].shape)) {
			snprintf(buf, size, "the shape of '%s' is not known",
			         g->val[n->out[i]].name);
			return true;
		}
	return false;
}

static bool
check_static(struct fold *f)
{
	Graph *g = f->g;
	NodeId first[OP_COUNT] = { 0 };
	int count[OP_COUNT] = { 0 };
	bool ok = true;
	char buf[320];

	FOR_NODES (n, g)
		if (node_fault(f, n, buf, sizeof buf) && count[n->op]++ == 0)
			first[n->op] = node_id(g, n);
	FOR_NODES (n, g) {
		if (first[n->op] != node_id(g, n))
			continue;
		node_fault(f, n, buf, sizeof buf);
		ok = diag_at(f->p->diag, node_name(g, n), node_type(g, n),
		             "%s", buf);
		if (count[n->op] > 1)
			diag_note(f->p->diag, "and %d more like this",
			          count[n->op] - 1);
	}
	return ok;
}

/* Outputs that are the same at every step are copied at every step: whoever
 * runs the model without training it finds all of them in one place. */
static void
copy_constant_outputs(struct fold *f)
{
	Graph *g = f->g;

	for (ValId v = 1, end = g->nval; v < end; v++) {
		ValId c;
		Node *n;

		if (!g->val[v].output || g->val[v].kind != V_CONST)
			continue;
		c = val_new(g, V_CONST, NULL, g->val[v].dt, g->val[v].shape);
		g->val[c].data = g->val[v].data;
		fold_note(f, c)->folded = fold_note(f, v)->folded;
		fold_note(f, v)->folded = false;
		val_replace(g, v, c, 1, g->nnode);
		n = node_new(g, OP_COPY, 1, &c, 0, 0);
		g->val[n->out[0]].def = 0;
		n->out[0] = v;
		g->val[v].kind = V_TEMP;
		g->val[v].data = NULL;
		g->val[v].def = node_id(g, n);
		g->val[v].slot = 0;
	}
}

bool
pass_fold(Pass *p, Graph *g)
{
	struct fold f = { .p = p, .g = g, .mem = arena_new() };
	NodeId last = g->nnode;
	bool ok = true;

	for (NodeId i = 1; i < last; i++)
		if (!step(&f, i)) {
			ok = false;
			push(&f, i);
		}
	graph_reorder(g, f.order, f.norder);
	graph_dce(g);
	if (ok) {
		shrink_constants(&f);
		merge_constants(&f);
		graph_dce(g);
		ok = check_static(&f);
	}
	if (ok && p->opt->forward_only)
		copy_constant_outputs(&f);
	keep_contents(&f);
	arena_free(f.mem);
	return ok;
}
