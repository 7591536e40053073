/* Pass fold: building and replacing nodes during the walk. */
#include "passes/fold_build/fold_build.h"

#include <inttypes.h>

/* Replace the node's output by v, which has equal contents. */
static void
share_contents(struct fold *f, NodeId id, ValId v)
{
	ValId y = f->g->node[id].out[0];
	Val *to = &f->g->val[y];

	to->kind = V_CONST;
	to->def = 0;
	to->result_index = 0;
	to->data = f->g->val[v].data;
	if (!to->output)
		fold_facts(f, y)->replacement = v;
}

enum eval_status
fold_eval(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	bool constant = n->nin > 0 && are_const(f, n, 0) && eval_knows(n->op);
	bool from_extents = fold_is_from_extents(f, n);
	/* numbers from extents stay separate from constants that happen to
	 * equal them */
	bool merges = constant
		&& !(from_extents && val_nelem(out_val(f, n)) == 1);
	ValId known = merges ? fold_find_equal(f, id) : 0;
	/* else a node too large to compute, from fold_finish */
	bool held = known && val_is_const(&f->g->val[known]);
	enum eval_status status;

	if (held) {
		share_contents(f, id, known);
		fold_facts(f, known)->from_extents |= from_extents;
	}
	status = held ? EVAL_DONE
		: known || (constant && fold_is_expensive(f, n)) ? EVAL_LARGE
		: eval_node(f->p, f->g, n, f->mem);
	if (status == EVAL_LARGE)
		fold_facts(f, n->out[0])->large = true;
	if (status != EVAL_DONE)
		return status;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			fold_facts(f, n->out[i])->folded = true;
			fold_facts(f, n->out[i])->from_extents |= from_extents;
		}
	if (merges && !known)
		fold_add_known(f, id);
	return EVAL_DONE;
}

void
fold_push(struct fold *f, NodeId id)
{
	f->order = arena_grow(f->p->scratch, f->order, f->norder, &f->cap,
	                      (size_t)f->norder + 1, sizeof *f->order);
	f->order[f->norder++] = id;
}

bool
fold_finish(struct fold *f, NodeId id)
{
	enum eval_status status = fold_eval(f, id);
	ValId known;

	if (status != EVAL_SKIP && status != EVAL_LARGE)
		return status == EVAL_DONE;
	known = fold_find_equal(f, id);
	if (known && fold_set_broadcast(f, id, known) == STEP_GONE)
		return true;
	fold_push(f, id);
	fold_add_known(f, id);
	return true;
}

/* The result of a node just finished. */
static ValId
replaced_value(struct fold *f, ValId v)
{
	ValId now = fold_facts(f, v)->replacement;

	return now ? now : v;
}

ValId
fold_emit(struct fold *f, Op op, int nin, const ValId *in, const Attr *attr,
          NodeId like)
{
	ValId v = 1;

	for (int i = 0; i < nin && i < op_info[op].min; i++)
		v = v && in[i];
	v = v ? emit_op(f->g, f->p->diag, op, nin, in, attr, like) : 0;
	return v && fold_finish(f, f->g->val[v].def) ? replaced_value(f, v) : 0;
}

ValId
fold_binary(struct fold *f, Op op, ValId a, ValId b, NodeId like)
{
	return fold_emit(f, op, 2, (ValId[]){ a, b }, NULL, like);
}

ValId
fold_where(struct fold *f, ValId c, ValId yes, ValId no, NodeId like)
{
	return fold_emit(f, OP_WHERE, 3, (ValId[]){ c, yes, no }, NULL, like);
}

ValId
fold_cast(struct fold *f, ValId x, DType to, NodeId like)
{
	Attr a = attr_cast(to);

	return !x || f->g->val[x].dt == to ? x
	       : fold_emit(f, OP_CAST, 1, &x, &a, like);
}

ValId
fold_reshape(struct fold *f, ValId x, const Shape *s, NodeId like)
{
	Attr attr = attr_reshape(s);

	return !x || shape_eq(&f->g->val[x].shape, s) ? x
	       : fold_emit(f, OP_RESHAPE, 1, &x, &attr, like);
}

ValId
fold_expand(struct fold *f, ValId x, const Shape *s, NodeId like)
{
	Attr attr = attr_expand(s);

	return !x || shape_eq(&f->g->val[x].shape, s) ? x
	       : fold_emit(f, OP_EXPAND, 1, &x, &attr, like);
}

ValId
fold_slice(struct fold *f, ValId x, const IntList *start, const IntList *step,
           const Shape *s, NodeId like)
{
	if (!x || fold_is_whole(start, step, &f->g->val[x].shape, s))
		return x;
	Node *n = node_new(f->g, OP_SLICE, 1, &x, 0, like);
	NodeId id = node_id(f->g, n);
	ValId y = n->out[0];

	n->attr.SLICE.start = *start;
	n->attr.SLICE.step = *step;
	f->g->val[y].shape = *s;
	return shape_infer(f->g, f->p->diag, n) && fold_finish(f, id)
		? replaced_value(f, y) : 0;
}

ValId
fold_slice_axis(struct fold *f, ValId x, int axis, int64_t at, int64_t n,
                NodeId like)
{
	Shape s = f->g->val[x].shape;
	IntList start = list_filled(s.rank, 0), step = list_filled(s.rank, 1);

	if (!x)
		return 0;
	start.v[axis] = at;
	s.dim[axis] = n;
	return fold_slice(f, x, &start, &step, &s, like);
}

ValId
fold_wrap_index(struct fold *f, ValId idx, ValId zero, ValId extent,
                NodeId like)
{
	ValId below = fold_binary(f, OP_LT, idx, zero, like);
	ValId moved = fold_binary(f, OP_ADD, idx, extent, like);

	return fold_where(f, below, moved, idx, like);
}

/* MiB of --fold-limit that allow a result of that many bytes. */
static int64_t
enough_limit(const struct fold *f, Op op, int64_t bytes)
{
	int64_t limit = f->p->opt->fold_limit;

	return bytes / (eval_limit(f->p, op) > limit ? 64 : 1) / (1 << 20) + 1;
}

ValId
fold_numbers(struct fold *f, int64_t count, const Shape *s, NodeId like)
{
	int64_t limit = eval_limit(f->p, OP_RANGE), *x;

	if (count > limit / (int64_t)sizeof *x) {
		return node_error(f->g, f->p->diag, &f->g->node[like],
		                  "a range of %" PRId64 " integers exceeds %"
		                  PRId64 " bytes; try: --fold-limit %" PRId64
		                  "MiB", count, limit,
		                  enough_limit(f, OP_RANGE,
		                               count < INT64_MAX / 8
		                               ? 8 * count : INT64_MAX));
	}
	x = arena_array(f->mem, (size_t)count + 1, sizeof *x);
	for (int64_t i = 0; i < count; i++)
		x[i] = i;
	return val_const(f->g, NULL, DT_I64, *s, x);
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

void
fold_set_op(struct fold *f, NodeId id, Op op, ValId x)
{
	Node *n = &f->g->node[id];

	n->op = op;
	n->attr = attr_default(op);
	n->nin = 1;
	n->in[0] = x;
}

void
fold_replace(struct fold *f, ValId from, ValId to)
{
	Val *y = &f->g->val[from], *v = &f->g->val[to];

	if (y->output) {
		const char *name = y->name, *onnx = y->onnx;

		val_rename(f->g, from, v->name);
		y->onnx = v->onnx;
		val_rename(f->g, to, name);
		v->onnx = onnx;
		v->output = true;
		y->output = false;
	}
	if (f->g->loss == from)
		f->g->loss = to;
	fold_facts(f, from)->replacement = to;
}

enum step
fold_set_broadcast(struct fold *f, NodeId id, ValId x)
{
	Node *n = &f->g->node[id];
	Val *y = &f->g->val[n->out[0]], *v = &f->g->val[x];

	if (!x)
		return STEP_FAIL;
	if (!shape_eq(&y->shape, &v->shape)) {
		fold_set_op(f, id, OP_EXPAND, x);
		n->attr = attr_expand(&y->shape);
		return STEP_KEEP;
	}
	if (y->output && (v->kind != V_TEMP || v->output)) {
		if (n->op != OP_COPY)
			fold_set_op(f, id, OP_COPY, x);
		return STEP_KEEP;
	}
	fold_replace(f, n->out[0], x);
	return STEP_GONE;
}

const char *
fold_excess(const struct fold *f, ValId v, char *buf, size_t size)
{
	const Val *x = &f->g->val[v];
	int64_t limit = eval_limit(f->p, f->g->node[x->def].op);
	int64_t bytes = val_data_bytes(x);

	if (bytes < 0)
		snprintf(buf, size, "its result exceeds %" PRId64 " bytes",
		         limit);
	else if (bytes > limit)
		snprintf(buf, size, "its result exceeds %" PRId64 " bytes; "
		         "try: --fold-limit %" PRId64 "MiB", limit,
		         enough_limit(f, f->g->node[x->def].op, bytes));
	else
		snprintf(buf, size, "computing it takes too long; "
		         "try: --fold-limit %" PRId64 "MiB",
		         fold_steps_enough(f, &f->g->node[x->def]));
	return buf;
}

/* Write the reason why v is not a constant to buf. */
static const char *
reason_text(struct fold *f, ValId v, char *buf, size_t size, int depth)
{
	const Graph *g = f->g;
	const Val *x = &g->val[v];
	char why[96];

	if (x->kind == V_CONST)
		snprintf(buf, size, "the contents of '%s' are not known",
		         x->name);
	else if (x->kind != V_TEMP || !x->def || depth > 64)
		snprintf(buf, size, "it depends on the contents of '%s'",
		         x->onnx ? x->onnx : x->name);
	else if (fold_facts(f, v)->large)
		snprintf(buf, size, "node '%s' is not folded because %s",
		         node_label(g, &g->node[x->def]),
		         fold_excess(f, v, why, sizeof why));
	else {
		const Node *n = &g->node[x->def];
		for (int i = 0; i < n->nin; i++)
			if (n->in[i] && !val_is_const(&g->val[n->in[i]]))
				return reason_text(f, n->in[i], buf, size,
				                   depth + 1);
		snprintf(buf, size, "node '%s' (%s) is not folded",
		         node_label(g, n), node_type(g, n));
	}
	return buf;
}

const char *
fold_reason(struct fold *f, ValId v, char *buf, size_t size)
{
	return reason_text(f, v, buf, size, 0);
}
