/* Convolutions on a GPU: products of the weights with unfolded patches where
 * channels are many, else a sum for each result.
 *
 * Patches are unfolded for as many images at a time as fit scratch of a fixed
 * size; those of the gradient of x are what the product gives, in float32.
 */
#include "codegen/cuda/cuda.h"
#include "ir/window.h"

enum {
	PRODUCT = 16,                   /* rows and columns worth a product */
	PATCHES = 256 << 20,            /* bytes of unfolded patches wanted */
	EVEN = 8,                       /* what their lines are multiples of */
	ALIGN = 256,
	GEMM_BYTES = 32 << 20,          /* that the library makes use of */
};

/* Scratch: patches, planes of dy beside them, a sum in float32, the library's
 * own. */
struct cut {
	struct window w;
	bool product, direct;           /* direct: patches are the image */
	int64_t taps, in, out, line;    /* elements; line: of a padded plane */
	int64_t each;                   /* images at a time */
	int64_t planes, sum, own, all;  /* where they begin, in bytes */
};

static int64_t
volume(const int64_t *v)
{
	return v[0] * v[1] * v[2];
}

static int64_t
aligned(int64_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* Bytes of the patches, and of planes, of one image. */
static void
image_bytes(const struct cut *c, Op op, int size, int64_t *patches,
            int64_t *planes)
{
	int64_t lines = c->w.group * c->line;
	bool unfolds = op == OP_CONV_DW || !c->direct;

	*patches = unfolds ? lines * c->w.cin * c->taps
		* (op == OP_CONV_DX ? 4 : size) : 0;
	*planes = op == OP_CONV_DW ? lines * c->w.cout * size : 0;
}

static struct cut
cut_of(const Graph *g, const Node *n)
{
	const Val *a = &g->val[n->in[0]], *b = &g->val[n->in[1]];
	const Val *y = &g->val[n->out[0]];
	struct cut c = { .w = window_of(g, n) };
	int64_t patches, planes, rows, sum = 0, own;

	c.taps = volume(c.w.kernel);
	c.in = volume(c.w.in);
	c.out = volume(c.w.out);
	c.line = (c.out + EVEN - 1) / EVEN * EVEN;
	c.direct = window_is_direct(&c.w);
	rows = c.w.cin * c.taps;
	c.product = rows >= PRODUCT && c.w.cout >= PRODUCT && a->dt == b->dt;
	if (!c.product || c.w.images == 0)
		return c;
	image_bytes(&c, n->op, dtype_info[a->dt].nbytes, &patches, &planes);
	c.each = patches + planes > 0 ? PATCHES / (patches + planes)
	       : c.w.images;
	c.each = c.each < 1 ? 1 : c.each < c.w.images ? c.each : c.w.images;
	if (n->op == OP_CONV_DW && y->dt != DT_F32)
		sum = c.w.group * c.w.cout * rows * 4;
	own = shape_nelem(&y->shape) * 16;
	own = own < GEMM_BYTES ? aligned(own) : GEMM_BYTES;
	c.planes = aligned(c.each * patches);
	c.sum = c.planes + aligned(c.each * planes);
	c.own = c.sum + aligned(sum);
	c.all = c.own + own;
	return c;
}

int64_t
cuda_conv_bytes(const Graph *g, const Node *n)
{
	return cut_of(g, n).all;
}

static void
emit_geometry(struct emit *e, const struct cut *c)
{
	const struct window *w = &c->w;

	out_line(e->out, "static const struct ckr_conv c1 = {");
	out_line(e->out, ".images = %lld, .group = %lld, .cin = %lld, "
	         ".cout = %lld,", (long long)w->images, (long long)w->group,
	         (long long)w->cin, (long long)w->cout);
	emit_window(e, w);
	out_line(e->out, ".taps = %lld, .in_size = %lld, .out_size = %lld, "
	         ".line = %lld,", (long long)c->taps, (long long)c->in,
	         (long long)c->out, (long long)c->line);
	out_line(e->out, ".direct = %d, .each = %lld,", c->direct,
	         (long long)c->each);
	out_line(e->out, ".planes = %lld, .sum = %lld, .own = %lld, "
	         ".all = %lld,", (long long)c->planes, (long long)c->sum,
	         (long long)c->own, (long long)c->all);
	out_line(e->out, "};");
}

/* name: "conv", "conv_dx" or "conv_dw". */
static bool
emit_call(struct emit *e, const Node *n, const char *name)
{
	const Val *bias = n->op == OP_CONV_DW ? NULL : emit_in(e, n, 2);
	struct cut c;

	emit_shapes(e, n);
	e->need |= NEED_CONV;
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Val *v = i < n->nin ? emit_in(e, n, i)
		                          : emit_out(e, n, i - n->nin);

		if (v && !e->machine->takes(v->dt))
			return emit_unsupported(e, n, v->dt);
	}
	if (shape_nelem(&emit_out(e, n, 0)->shape) == 0)
		return true;
	c = cut_of(e->g, n);
	emit_geometry(e, &c);
	out_line(e->out, "ckr_%s%s(c1, %s, %s, %s,", name,
	         c.product && c.w.images > 0 ? "_product" : "",
	         p_out(e, n, 0), p_in(e, n, 0), p_in(e, n, 1));
	if (n->op != OP_CONV_DW)
		out_line(e->out, "\t%s,", bias ? p_in(e, n, 2)
		         : "(const float *)NULL");
	out_line(e->out, "\tenv%s);", emit_room(e, n));
	return true;
}

bool
cuda_conv(struct emit *e, const Node *n)
{
	return emit_call(e, n, "conv");
}

bool
cuda_conv_dx(struct emit *e, const Node *n)
{
	return emit_call(e, n, "conv_dx");
}

bool
cuda_conv_dw(struct emit *e, const Node *n)
{
	return emit_call(e, n, "conv_dw");
}
