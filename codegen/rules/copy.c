/* Data movement: materialised views, concat, pad, trilu, fill. */
#include "codegen/rules/target_emitter.h"

#include <string.h>

static struct nest_operand
view_operand(const Val *v, int arg)
{
	struct nest_operand op = { .dt = v->dt, .arg = arg, .base = v->start };

	memcpy(op.stride, v->stride, sizeof op.stride);
	return op;
}

/* A view's output as an operand: how the input's bytes look through it. */
static struct nest_operand
through_view(const Val *x, const Node *n, const Val *y)
{
	struct nest_operand op = view_operand(x, 0);

	switch (n->op) {
	case OP_EXPAND:
		nest_strides(x, &y->shape, op.stride);
		break;
	case OP_TRANSPOSE:
		for (int i = 0; i < y->shape.rank; i++)
			op.stride[i] = x->stride[n->attr.TRANSPOSE.perm.v[i]];
		break;
	case OP_SLICE:
		for (int i = 0; i < y->shape.rank; i++) {
			op.start += n->attr.SLICE.start.v[i] * x->stride[i];
			op.stride[i] *= n->attr.SLICE.step.v[i];
		}
		break;
	default:
		break;
	}
	return op;
}

/* Strided copy between operands of one type. */
static void
emit_copy(struct emit *e, const Shape *shape, const struct nest_operand *from,
          const struct nest_operand *to)
{
	struct nest_operand in = *from, out = *to;
	struct loop_nest nest = { .shape = *shape, .nin = 1, .nout = 1,
		.in = &in, .out = &out };

	/* bits, not numbers */
	if (dtype_is_half(in.dt))
		in.dt = out.dt = DT_U16;
	emit_nest(e, &nest);
}

bool
emit_view(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);
	struct nest_operand from = through_view(x, n, y);
	struct nest_operand to = view_operand(y, n->nin);

	emit_shapes(e, n);
	if (n->op == OP_RESHAPE) {
		/* same elements in the same order */
		shape_strides(&x->shape, to.stride);
		emit_copy(e, &x->shape, &from, &to);
	} else {
		emit_copy(e, &y->shape, &from, &to);
	}
	return true;
}

/* How many inputs from i on are alike and can be copied in a loop. */
static int
count_alike_inputs(const struct emit *e, const Node *n, int i)
{
	const Val *x = emit_in(e, n, i);
	int k = i + 1;

	if (!e->emitter->loops_operands)
		return 1;
	for (; k < n->nin; k++) {
		const Val *v = emit_in(e, n, k);

		if (v->dt != x->dt || !shape_eq(&v->shape, &x->shape)
		    || memcmp(v->stride, x->stride, (size_t)x->shape.rank
		              * sizeof *x->stride))
			break;
	}
	return k - i;
}

bool
emit_concat(struct emit *e, const Node *n)
{
	const Val *y = emit_out(e, n, 0);
	int axis = emit_axis(n->attr.CONCAT.axis, y->shape.rank);
	int64_t at = 0;

	emit_shapes(e, n);
	for (int i = 0, many; i < n->nin; i += many) {
		const Val *x = emit_in(e, n, i);
		struct nest_operand from = view_operand(x, i), to;

		many = count_alike_inputs(e, n, i);
		to = view_operand(y, n->nin);
		to.start = at * y->stride[axis];
		at += x->shape.dim[axis] * many;
		if (many > 1) {
			from.many = true;
			to.step = x->shape.dim[axis] * y->stride[axis];
			out_line(e->out, "for (int64_t r = 0; r < %d; r++) {",
			         many);
		} else {
			out_line(e->out, "{");
		}
		emit_copy(e, &x->shape, &from, &to);
		out_line(e->out, "}");
	}
	return true;
}

static void
emit_splat(struct emit *e, const Val *y, int arg, double value)
{
	struct nest_operand in = { .dt = y->dt, .scalar = true,
	                           .value = value };
	struct nest_operand out = view_operand(y, arg);
	struct scalar_op m = { .op = OP_COPY, .dt = y->dt, .narg = 1 };
	int result = 0;
	struct body body = { 1, &m, &result };
	struct loop_nest nest = { .shape = y->shape, .nin = 1, .nout = 1,
		.in = &in, .out = &out, .body = &body };

	emit_nest(e, &nest);
}

bool
emit_fill(struct emit *e, const Node *n)
{
	emit_shapes(e, n);
	emit_splat(e, emit_out(e, n, 0), n->nin, n->attr.FILL.value);
	return true;
}

/* The result is one number. */
static bool
emit_one_number(struct emit *e, const Node *n, const char *value)
{
	emit_shapes(e, n);
	emit_work_items(e, 1, false);
	out_line(e->out, "*(float *)p[0] = %s;", value);
	out_line(e->out, "}");
	return true;
}

bool
emit_loss_scale(struct emit *e, const Node *n)
{
	return emit_one_number(e, n, arena_printf(e->arena,
		"env->loss_scale * %s",
		emit_float(e->arena, n->attr.LOSS_SCALE.value)));
}

bool
emit_share(struct emit *e, const Node *n)
{
	return emit_one_number(e, n, n->attr.SHARE.micro
		? "1.0f / (float)env->nmicro" : "1.0f / (float)env->replicas");
}

/* Constant padding: the value everywhere, then what is left of the input.
 * Negative padding cuts. */
static void
emit_pad_constant(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);
	struct nest_operand from = view_operand(x, 0);
	struct nest_operand to = view_operand(y, n->nin);
	Shape s = x->shape;

	out_line(e->out, "{");
	emit_splat(e, y, n->nin, n->attr.PAD.value);
	out_line(e->out, "}");
	for (int i = 0; i < s.rank; i++) {
		int64_t before = n->attr.PAD.begin.v[i];
		int64_t after = n->attr.PAD.end.v[i];

		if (before < 0) {
			from.start -= before * x->stride[i];
			s.dim[i] += before;
		} else {
			to.start += before * y->stride[i];
		}
		if (after < 0)
			s.dim[i] += after;
		if (s.dim[i] <= 0)
			return;
	}
	out_line(e->out, "{");
	emit_copy(e, &s, &from, &to);
	out_line(e->out, "}");
}

bool
emit_pad(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);

	emit_shapes(e, n);
	if (n->attr.PAD.mode == 0) {
		emit_pad_constant(e, n);
		return true;
	}
	emit_include(e, "index");
	out_line(e->out, "ckr_pad(p[%d], p[0], %d, %d, %lld,", n->nin,
	         dtype_info[x->dt].nbytes, x->shape.rank,
	         (long long)n->attr.PAD.mode);
	out_line(e->out, "        %s,", emit_list(e, x->shape.dim,
	         x->shape.rank));
	out_line(e->out, "        %s,", emit_list(e, x->stride, x->shape.rank));
	out_line(e->out, "        %s,", emit_list(e, y->shape.dim,
	         y->shape.rank));
	out_line(e->out, "        %s, env);", emit_list(e,
	         n->attr.PAD.begin.v, x->shape.rank));
	return true;
}

/* Rows of the last two dims: a part is copied, the rest is zero. */
bool
emit_trilu(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);
	int r = y->shape.rank;
	int64_t rows = y->shape.dim[r - 2], cols = y->shape.dim[r - 1];

	emit_shapes(e, n);
	emit_include(e, "index");
	out_line(e->out, "ckr_trilu(p[%d], p[0], %d, %lld, %lld, %lld, %lld, "
	         "%lld, env);", n->nin, dtype_info[x->dt].nbytes,
	         (long long)shape_span(&y->shape, 0, r - 2), (long long)rows,
	         (long long)cols, (long long)n->attr.TRILU.upper,
	         (long long)n->attr.TRILU.k);
	return true;
}
