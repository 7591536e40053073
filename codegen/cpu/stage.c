/* Kernels written for float32, on 16-bit floats.
 *
 * Each operand of a 16-bit type is copied to scratch as float32, the kernel
 * runs on the copies as on any float32 operands, and its results are rounded
 * to where they belong.  All inputs are read before any output is written, so
 * that results may lie over operands.  ORDER TILE: node_workspace() counts the
 * copies first, the kernel's own scratch after them.
 */
#include "codegen/cpu/emit.h"
#include "codegen/cpu/tile.h"

/* The graph with every 16-bit float a packed float32. */
static void
make_staged(struct emit *e)
{
	Graph *s = arena_copy(e->arena, e->g, sizeof *s);

	s->val = arena_copy(e->arena, e->g->val,
	                    e->g->nval * sizeof *s->val);
	for (ValId i = 1; i < s->nval; i++) {
		Val *v = &s->val[i];

		if (!dtype_is_half(v->dt))
			continue;
		v->nbytes = tile_stage(&e->g->val[i], v->stride);
		v->dt = DT_F32;
		v->start = 0;
		v->data = NULL;
	}
	e->staged = s;
}

static ValId
operand(const Node *n, int i)
{
	return i < n->nin ? n->in[i] : n->out[i - n->nin];
}

/* One run of conversions: inputs before the kernel, outputs after it.  In
 * `both`, the copy of operand i follows all operands. */
static bool
emit_conversions(struct emit *e, const Node *n, bool outputs)
{
	int first = outputs ? n->nin : 0, shift = n->nin + n->nout;
	int end = outputs ? shift : n->nin;
	struct micro m = { .op = OP_COPY, .dt = DT_F32, .narg = 1 };
	int result = 0;
	struct body body = { 1, &m, &result };

	for (int i = first; i < end; i++) {
		const Val *v = &e->g->val[operand(n, i)];
		struct nest_operand half = { .dt = v->dt, .arg = i };
		struct nest_operand wide = { .dt = DT_F32, .arg = i + shift };
		struct nest nest = { .shape = v->shape, .nin = 1, .nout = 1,
			.in = outputs ? &wide : &half,
			.out = outputs ? &half : &wide, .body = &body };

		if (!operand(n, i) || !dtype_is_half(v->dt))
			continue;
		nest_strides(v, &v->shape, half.stride);
		nest_strides(&e->staged->val[operand(n, i)], &v->shape,
		             wide.stride);
		/* a broadcast dim is copied once */
		for (int k = 0; k < v->shape.rank; k++)
			if (half.stride[k] == 0 && wide.stride[k] == 0)
				nest.shape.dim[k] = 1;
		out_line(e->out, "{");
		out_line(e->out, "void *const *p = both;");
		if (!emit_nest(e, &nest))
			return false;
		out_line(e->out, "}");
	}
	return true;
}

static void
emit_tables(struct emit *e, const Node *n)
{
	int nslot = n->nin + n->nout;
	int64_t at = 0, stride[MAX_RANK];
	const char *copy[32], *slot;

	out_line(e->out, "char *stage = p[%d];", emit_scratch(n));
	for (int i = 0; i < nslot; i++) {
		const Val *v = &e->g->val[operand(n, i)];
		bool half = operand(n, i) && dtype_is_half(v->dt);

		copy[i] = half ? arena_printf(e->arena, "stage + %lld",
		                              (long long)at) : "NULL";
		at += half ? tile_stage(v, stride) : 0;
	}
	out_line(e->out, "void *const both[] = {");
	for (int i = 0; i < 2 * nslot; i++) {
		slot = operand(n, i % nslot)
		     ? arena_printf(e->arena, "p[%d]", i % nslot) : "NULL";
		out_line(e->out, "%s,", i < nslot ? slot : copy[i - nslot]);
	}
	out_line(e->out, "};");
	out_line(e->out, "void *const wide[] = {");
	for (int i = 0; i < nslot; i++) {
		bool half = operand(n, i) &&
		            dtype_is_half(e->g->val[operand(n, i)].dt);

		out_line(e->out, "both[%d],", half ? nslot + i : i);
	}
	out_line(e->out, "stage + %lld", (long long)at);
	out_line(e->out, "};");
}

bool
emit_staged(struct emit *e, const Node *n)
{
	const Graph *g = e->g;
	bool ok;

	if (n->nin + n->nout > 32)
		return diag_internal(e->diag, "codegen: %s has %d operands",
		                     op_info[n->op].text, n->nin + n->nout);
	if (!e->staged)
		make_staged(e);
	emit_shapes(e, n);
	emit_tables(e, n);
	if (!emit_conversions(e, n, false))
		return false;
	out_line(e->out, "{");
	out_line(e->out, "void *const *p = wide;");
	e->g = e->staged;
	ok = cpu_emit_plain(e, n);
	e->g = g;
	out_line(e->out, "}");
	return ok && emit_conversions(e, n, true);
}
