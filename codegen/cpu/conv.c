/* Calls of the convolution kernels. */
#include "codegen/cpu/conv_tile.h"
#include "codegen/cpu/cpu.h"
#include "codegen/rules/emit.h"

static int64_t
window_volume(const int64_t *v)
{
	return v[0] * v[1] * v[2];
}

/* ---- convolutions ---- */

/* True if there is something to compute; otherwise the result is zero. */
static bool
has_work(struct emit *e, const Node *n)
{
	const Val *y = emit_out(e, n, 0);

	if (shape_nelem(&emit_in(e, n, 0)->shape) > 0
	    && shape_nelem(&emit_in(e, n, 1)->shape) > 0)
		return true;
	out_line(e->out, "memset(p[%d], 0, %lld);", n->nin,
	         (long long)val_data_bytes(y));
	return false;
}

static void
emit_conv_geometry(struct emit *e, const Node *n)
{
	struct window w = window_of(e->g, n);
	struct conv_tile t = conv_tile(e->g, n);

	out_line(e->out, "static const struct ckr_conv c1 = {");
	out_line(e->out, ".type = %s,", tables_dtype(emit_in(e, n, 0)->dt));
	EMIT_MEMBERS(e, "images group cin cout", w.images, w.group, w.cin,
	             w.cout);
	emit_window(e, &w);
	EMIT_MEMBERS(e, "taps in_size out_size", window_volume(w.kernel),
	             window_volume(w.in), window_volume(w.out));
	EMIT_MEMBERS(e, "direct windows channels", t.direct, t.windows,
	             t.channels);
	EMIT_MEMBERS(e, "parts each room workspace", t.parts, t.each, t.room,
	             t.workspace);
	out_line(e->out, "};");
}

/* The number of this convolution in the library's table. */
static int
blocked_job(struct emit *e, const Node *n, const struct window *w,
            const struct conv_blocked *b)
{
	static const char *const kind[] = { "Y", "DX", "DW" };
	int64_t cin = n->op == OP_CONV_DX ? b->channels : b->cin;
	int64_t cout = n->op == OP_CONV_DX ? b->cout : b->channels;

	return emit_job(e, arena_printf(e->arena, "\t{ CKR_CONV_%s, %s, %d, "
		"%lld, CKR_BLOCK, %lld, %lld, %lld, { %lld, %lld }, "
		"{ %lld, %lld },\n\t  { %lld, %lld }, { %lld, %lld }, "
		"{ %lld, %lld } },\n",
		kind[n->op - OP_CONV],
		tables_dtype(emit_in(e, n, 0)->dt), e->without_units,
		(long long)b->scratch * 4, (long long)b->images, (long long)cin,
		(long long)cout, (long long)b->extent[0],
		(long long)b->extent[1], (long long)b->lines,
		(long long)w->out[2], (long long)w->kernel[1],
		(long long)w->kernel[2],
		(long long)(b->point ? 1 : w->stride[1]),
		(long long)(b->point ? 1 : w->stride[2]),
		(long long)w->dilation[1], (long long)w->dilation[2]));
}

/* If a library of convolutions suits: if (it is there) call, else the rest;
 * false if none does. */
static bool
emit_blocks(struct emit *e, const Node *n, const char *call)
{
	struct conv_blocked b = conv_blocked(e->g, n);
	struct window w = window_of(e->g, n);

	if (!b.fits)
		return false;
	emit_include(e, "conv_blocks");
	out_line(e->out, "static const struct ckr_blocks b1 = {");
	EMIT_MEMBERS(e, "job point cin cout", blocked_job(e, n, &w, &b),
	             b.point, b.cin, b.cout);
	EMIT_MEMBERS(e, "images lines channels", b.images, b.lines,
	             b.channels);
	out_line(e->out, ".halo = %lld, .each = %lld, .extent = { %lld, %lld "
	         "},", (long long)b.halo, (long long)b.each,
	         (long long)b.extent[0], (long long)b.extent[1]);
	EMIT_MEMBERS(e, "weights x y w scratch", b.weights, b.x, b.y, b.w,
	             b.scratch);
	out_line(e->out, "};");
	out_line(e->out, "if (ckr_has_blocks(&b1, env)) {");
	out_line(e->out, "ckr_blocks_%s", call);
	out_line(e->out, "} else {");
	return true;
}

/* Declare the geometry; false: there is nothing to compute. */
static bool
begin_conv(struct emit *e, const Node *n)
{
	if (shape_nelem(&emit_out(e, n, 0)->shape) == 0 || !has_work(e, n))
		return false;
	emit_conv_geometry(e, n);
	return true;
}

/* name: "conv", "dx" or "dw"; without: the function that unfolds; back: into
 * the side that windows slide over. */
static bool
emit_convolution(struct emit *e, const Node *n, const char *name, bool back,
                 const char *without, const char *operands)
{
	const char *s = p_workspace(e, n);
	bool blocks;

	if (conv_takes_bf16(e->g, n) || conv_takes_half(e->g, n))
		emit_include(e, "conv");
	else if (!emit_float_operands(e, n, "conv"))
		return false;
	if (!begin_conv(e, n))
		return true;
	if (conv_depthwise(e->g, n).fits) {
		emit_include(e, "thin");
		emit_depthwise(e, n, back);
		out_line(e->out, "ckr_thins_%s(&c1, &t1, %s, %s, env);", name,
		         operands, s);
		return true;
	}
	blocks = emit_blocks(e, n, arena_printf(e->arena, "%s(&c1, &b1, %s, "
	                                        "%s, env);", name, operands,
	                                        s));
	out_line(e->out, "%s(&c1, %s, %s, env);", without, operands, s);
	if (blocks)
		out_line(e->out, "}");
	return true;
}

bool
cpu_conv(struct emit *e, const Node *n)
{
	return emit_convolution(e, n, "conv", false, "ckr_conv",
		arena_printf(e->arena, "p[%d], p[0], p[1], %s", n->nin,
		             p_in(e, n, 2)));
}

bool
cpu_conv_dx(struct emit *e, const Node *n)
{
	return emit_convolution(e, n, "dx", true, "ckr_conv_dx",
		arena_printf(e->arena, "p[%d], p[0], p[1], %s", n->nin,
		             p_in(e, n, 2)));
}

bool
cpu_conv_dw(struct emit *e, const Node *n)
{
	return emit_convolution(e, n, "dw", false, "ckr_conv_dw",
	                        "p[2], p[0], p[1]");
}
