/* Convolutions on a GPU: by the run time's library if it supports the shape,
 * else as products of the weights with unfolded patches if there are many
 * channels, else as a sum for each result.  Workspace is planned for each case
 * from shapes alone.
 *
 * Patches are unfolded for as many images as fit in workspace of a fixed size;
 * where one does not, for as many windows, or for the gradient of x as many
 * channels of one group, at least one.  Its patches are the results of the
 * product, in float32.
 */
#include "codegen/cuda/cuda.h"
#include "ir/window.h"

enum {
	PRODUCT = 16,                   /* rows and columns worth a product */
	PATCHES = 64 << 20,             /* bytes of unfolded patches wanted */
	COPIES = 256 << 20,             /* of operands in another layout */
	EVEN = 8,                       /* what their lines are multiples of */
	ALIGN = 256,
	LIBRARY_ALIGN = 16,             /* struct ckr_convolved */
	GEMM_BYTES = 32 << 20,          /* that the library makes use of */
	PART_BYTES = 1 << 20,
};

/* Workspace: patches, planes of dy beside them, a sum in float32, the library's
 * own. */
struct conv_tiling {
	struct window w;
	bool product, direct;           /* direct: patches are the image */
	bool alone;                     /* all of it is one product */
	int64_t taps, in, out, line;    /* elements; line: of a padded plane */
	int64_t each, groups, channels, windows;        /* at a time */
	int64_t planes, sum, own, all;  /* where they begin, in bytes */
	int64_t room;                   /* all, or what a library has use for */
};

static int64_t
dims_volume(const int64_t *v)
{
	return v[0] * v[1] * v[2];
}

static int64_t
align_bytes(int64_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static int64_t
patches_wanted(const Node *n)
{
	Attr attr = n->attr;
	int64_t bytes = *attr_int_of(n->op, &attr, "patches");

	return bytes > 0 ? bytes : PATCHES;
}

/* Bytes of one channel's patch in a window; 0: none is unfolded. */
static int64_t
patch_bytes(const struct conv_tiling *c, Op op, int size)
{
	if (c->direct && op != OP_CONV_DW)
		return 0;
	return c->taps * (op == OP_CONV_DX ? 4 : size);
}

static int64_t
between(int64_t n, int64_t least, int64_t most)
{
	return n < least ? least : n < most ? n : most;
}

/* Cut what is unfolded at a time to the bytes wanted; bytes of a channel's
 * patch, and of dy of one group, in a window. */
static void
cut_patches(struct conv_tiling *c, int64_t patch, int64_t plane, int64_t wanted,
            bool by_windows)
{
	int64_t window = c->w.group * (c->w.cin * patch + plane), fit;

	c->each = c->w.images;
	c->groups = c->w.group;
	c->channels = c->w.cin;
	c->windows = c->line;
	if (window == 0 || c->line == 0)
		return;
	fit = wanted / window;
	c->each = between(fit / c->line, 1, c->w.images);
	if (fit >= c->line)
		return;
	if (by_windows) {
		c->windows = between(fit / EVEN * EVEN, EVEN, c->line);
		return;
	}
	c->groups = 1;
	c->channels = between(wanted / patch / c->line, 1, c->w.cin);
}

/* Of so many windows of so many images; as many as a graph may have: that, or
 * more. */
static int64_t
bytes_of_parts(int64_t bytes, int64_t windows, int64_t images)
{
	return mul_ok(bytes, windows, &bytes) && mul_ok(bytes, images, &bytes)
		&& bytes < GRAPH_BYTES_MAX ? align_bytes(bytes)
		: GRAPH_BYTES_MAX;
}

/* Bytes of all operands, which a library may want to lay out in its own way:
 * 16-bit ones with channels made even for tensor cores; 0: too many. */
static int64_t
layout_copy_bytes(const struct conv_tiling *c, int size)
{
	const struct window *w = &c->w;
	int64_t even = size == 2 ? EVEN : 1;
	int64_t in = (w->group * w->cin + even - 1) / even * even;
	int64_t out = (w->group * w->cout + even - 1) / even * even;
	int64_t one = (w->cin + even - 1) / even * even;
	int64_t all = size * (w->images * (in * c->in + out * c->out)
	                      + out * one * c->taps);

	return all <= COPIES ? align_bytes(all) : 0;
}

static struct conv_tiling
conv_tiling_of(const Graph *g, const Node *n)
{
	const Val *a = &g->val[n->in[0]], *b = &g->val[n->in[1]];
	const Val *y = &g->val[n->out[0]];
	struct conv_tiling c = { .w = window_of(g, n) };
	int64_t patch, plane, rows, sum = 0, own;
	int size = dtype_info[a->dt].nbytes;

	c.taps = dims_volume(c.w.kernel);
	c.in = dims_volume(c.w.in);
	c.out = dims_volume(c.w.out);
	c.line = (c.out + EVEN - 1) / EVEN * EVEN;
	c.direct = window_is_direct(&c.w);
	rows = c.w.cin * c.taps;
	c.product = rows >= PRODUCT && c.w.cout >= PRODUCT && a->dt == b->dt;
	if (!c.product || c.w.images == 0)
		return c;
	patch = patch_bytes(&c, n->op, size);
	plane = n->op == OP_CONV_DW ? c.w.cout * size : 0;
	cut_patches(&c, patch, plane, patches_wanted(n), n->op != OP_CONV_DX);
	if (plane > 0 && y->dt != DT_F32)
		sum = c.w.group * c.w.cout * rows * 4;
	own = shape_nelem(&y->shape) * 16;
	own = own < GEMM_BYTES ? align_bytes(own) : GEMM_BYTES;
	c.planes = bytes_of_parts(patch * c.groups * c.channels, c.windows,
	                          c.each);
	c.sum = c.planes + bytes_of_parts(plane * c.groups, c.windows, c.each);
	c.own = c.sum + align_bytes(sum);
	c.all = c.own + own;
	c.room = c.all;
	c.alone = patch + plane == 0;
	/* sums over images are cut into more parts where they are few */
	if (plane > 0 && size == 2 && own < PART_BYTES)
		own = PART_BYTES < own * 32 ? PART_BYTES : own * 32;
	if (!c.alone && layout_copy_bytes(&c, size) + own > c.all)
		c.room = layout_copy_bytes(&c, size) + own;
	return c;
}

int64_t
cuda_work_conv(const Graph *g, const Node *n, int threads)
{
	(void)threads;
	return conv_tiling_of(g, n).room;
}

static void
emit_gpu_geometry(struct emit *e, const struct conv_tiling *c)
{
	const struct window *w = &c->w;

	out_line(e->out, "static const struct ckr_conv c1 = {");
	EMIT_MEMBERS(e, "images group cin cout", w->images, w->group, w->cin,
	             w->cout);
	emit_window(e, w);
	EMIT_MEMBERS(e, "taps in_size out_size line", c->taps, c->in, c->out,
	             c->line);
	EMIT_MEMBERS(e, "direct each groups channels windows", c->direct,
	             c->each, c->groups, c->channels, c->windows);
	EMIT_MEMBERS(e, "planes sum own all", c->planes, c->sum, c->own,
	             c->all);
	out_line(e->out, "};");
}

/* ---- the library ---- */

static const char *
triple_text(struct emit *e, const int64_t *v)
{
	return arena_printf(e->arena, "{ %lld, %lld, %lld }", (long long)v[0],
	                    (long long)v[1], (long long)v[2]);
}

/* Padding behind that windows reach.  False: windows would be more than there
 * are, which libraries do not know. */
static bool
find_end_padding(const struct window *w, int64_t end[WINDOW_DIMS])
{
	for (int i = 0; i < WINDOW_DIMS; i++) {
		int64_t all = (w->kernel[i] - 1) * w->dilation[i] + 1;
		int64_t past = (w->out[i] - 1) * w->stride[i] + all
			- w->in[i] - w->begin[i];

		end[i] = past > 0 ? past : 0;
		if ((w->in[i] + w->begin[i] + end[i] - all) / w->stride[i] + 1
		    != w->out[i])
			return false;
	}
	return true;
}

/* A view may start anywhere in memory that is aligned. */
static bool
is_library_aligned(const Val *v)
{
	return v->start * dtype_info[v->dt].nbytes % LIBRARY_ALIGN == 0;
}

/* Operand numbers of x, w and y in a rule; 2: the result. */
struct conv_role {
	const char *name, *kind;        /* of the kernel; ckr_conv_kind's */
	int x, w, y;
};

/* The number of this convolution in the library's table; -1: it is one product
 * as it stands, or not of the kind that libraries know. */
static int
convolved_job(struct emit *e, const Node *n, const struct conv_role *r,
              const struct conv_tiling *c)
{
	const struct window *w = &c->w;
	const Val *a = emit_in(e, n, 0), *b = emit_in(e, n, 1);
	const Val *y = emit_out(e, n, 0);
	int64_t end[WINDOW_DIMS];

	if (c->alone || a->dt != b->dt || shape_nelem(&a->shape) == 0
	    || shape_nelem(&b->shape) == 0 || !is_library_aligned(a)
	    || !is_library_aligned(b) || !is_library_aligned(y)
	    || !find_end_padding(w, end))
		return -1;
	return emit_job(e, arena_printf(e->arena, "\t{ CKR_CONV_%s, %s, %s, "
		"%d, %lld, %lld, %lld, %lld,\n\t  %s, %s, %s,\n\t  %s, %s,\n"
		"\t  %s, %s, %lld },\n", r->kind, tables_dtype(a->dt),
		tables_dtype(y->dt), c->product,
		(long long)w->images, (long long)w->group, (long long)w->cin,
		(long long)w->cout, triple_text(e, w->in),
		triple_text(e, w->out),
		triple_text(e, w->kernel), triple_text(e, w->stride),
		triple_text(e, w->dilation), triple_text(e, w->begin),
		triple_text(e, end),
		(long long)c->room));
}

/* If the library may compute this: if (it does) add the bias, else the rest;
 * false if it does not. */
static bool
emit_library(struct emit *e, const Node *n, const struct conv_role *r,
             const struct conv_tiling *c)
{
	const char *at[] = { p_in(e, n, 0), p_in(e, n, 1), p_out(e, n, 0) };
	int job = convolved_job(e, n, r, c);

	if (job < 0)
		return false;
	out_line(e->out, "if (%sckr_by_library(env, %d, %s, %s, %s, %s)) {",
	         emit_in(e, n, 2) ? "" : "!", job, at[r->x], at[r->w], at[r->y],
	         p_workspace(e, n));
	if (!emit_in(e, n, 2))
		return true;
	emit_line(e, n, "ckr_add_bias($o0, $i2, %s, env);",
	          emit_planes(e, &emit_out(e, n, 0)->shape));
	out_line(e->out, "} else {");
	return true;
}

static bool
emit_conv_call(struct emit *e, const Node *n, const struct conv_role *r)
{
	const Val *bias = emit_in(e, n, 2);
	bool has_bias = op_info[n->op].flags & F_BIAS2, library;
	struct conv_tiling c;

	if (!emit_float_operands(e, n, "conv"))
		return false;
	if (shape_nelem(&emit_out(e, n, 0)->shape) == 0)
		return true;
	c = conv_tiling_of(e->g, n);
	emit_gpu_geometry(e, &c);
	library = emit_library(e, n, r, &c);
	emit_line(e, n, "ckr_%s%s(c1, $o0, $i0, $i1,", r->name,
	          c.product && c.w.images > 0 ? "_product" : "");
	if (has_bias)
		out_line(e->out, "\t%s,", bias ? p_in(e, n, 2)
		         : "(const float *)NULL");
	emit_line(e, n, "\tenv$,w);");
	if (library)
		out_line(e->out, "}");
	return true;
}

bool
cuda_conv(struct emit *e, const Node *n)
{
	const struct conv_role role = { "conv", "Y", 0, 1, 2 };

	return emit_conv_call(e, n, &role);
}

bool
cuda_conv_dx(struct emit *e, const Node *n)
{
	const struct conv_role role = { "conv_dx", "DX", 2, 1, 0 };

	return emit_conv_call(e, n, &role);
}

bool
cuda_conv_dw(struct emit *e, const Node *n)
{
	const struct conv_role role = { "conv_dw", "DW", 0, 2, 1 };

	return emit_conv_call(e, n, &role);
}
