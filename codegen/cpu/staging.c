/* Conversion staging: kernels written for float32, on 16-bit floats.
 *
 * Operands of a 16-bit type are copied to workspace as float32, the kernel runs
 * on the copies as on any float32 operands, and its results are rounded to
 * where they belong.  Where images, or rows of dim 0, are independent
 * (F_IMAGES) that is done for some of them at a time; a gradient of weights is
 * summed over these.  The rest is whole: all inputs are read before any output
 * is written, so that results may lie over operands.
 *
 * ORDER TILE: workspace is the copies, the sum if there is one, and what the
 * kernel itself needs.
 */
#include "codegen/cpu/conv_tile.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/tile.h"

enum { OPERANDS = 32 };

/* The node as its kernel sees it: a graph of its operands alone, those of 16
 * bits as packed float32. */
struct staging {
	Graph g;
	Node n;
	Val val[OPERANDS + 1];
	ValId id[OPERANDS];
	int nslot;
	int64_t slices;
	bool sliced[OPERANDS];
	bool copied[OPERANDS];
	bool summed;                    /* output 0, over slices */
	int64_t at[OPERANDS];           /* where in workspace a copy is */
	int64_t sum;                    /* ... the sum */
	int64_t bytes;                  /* ... the kernel's own begins; -1: too
	                                 * many */
};

bool
staging_needed(const Graph *g, const Node *n)
{
	return op_info[n->op].flags & F_STAGED && tile_is_mixed(g, n)
		&& !conv_takes_half(g, n);
}

static ValId
operand_id(const Node *n, int i)
{
	return i < n->nin ? n->in[i] : n->out[i - n->nin];
}

/* The node can run on some images, or rows of dim 0, at a time. */
static bool
can_be_sliced(const Graph *g, const Node *n)
{
	Attr attr = n->attr;
	const int64_t *axis = attr_int_of(n->op, &attr, "axis");

	return op_info[n->op].flags & F_IMAGES
		&& (!axis || emit_axis(*axis, g->val[n->in[0]].shape.rank) > 0);
}

/* Operands of images: of convolutions all but weights and bias. */
static bool
has_images(const Node *n, int i)
{
	uint64_t flags = op_info[n->op].flags;

	return !(flags & F_CONTRACT) || i == 0 || (i == 1 && !(flags & F_BIAS2))
		|| (i == n->nin && flags & F_BIAS2);
}

/* Bytes of the operand as packed float32, broadcast dims staying so; a
 * multiple of 64, -1 if too many. */
static int64_t
packed_bytes(const Val *v, int64_t *stride)
{
	int64_t n = 1;

	for (int i = v->shape.rank - 1; i >= 0; i--) {
		bool spread = v->laid_out && v->stride[i] == 0
		              && v->shape.dim[i] > 1;

		stride[i] = spread ? 0 : n;
		if (!spread && !mul_ok(n, v->shape.dim[i], &n))
			return -1;
	}
	return n > INT64_MAX / 8 ? -1 : (n * 4 + 63) / 64 * 64;
}

/* The least number of equal slices whose copies are small. */
static int64_t
count_slices(const Graph *g, const Node *n)
{
	int64_t images = g->val[n->in[0]].shape.dim[0], all = 0;
	int64_t stride[MAX_RANK];

	for (int i = 0; i < n->nin + n->nout; i++) {
		const Val *v = &g->val[operand_id(n, i)];

		if (operand_id(n, i) && has_images(n, i)
		    && dtype_is_half(v->dt))
			all += larger(0, packed_bytes(v, stride)) / 64;
	}
	if (images < 1 || all <= TILE_STAGING / 64)
		return 1;
	/* images at a time: few, where there are very many */
	for (int64_t each = (int64_t)((double)TILE_STAGING / 64 * (double)images
	                              / (double)all) + 1; each > 1; each--)
		if (images % each == 0
		    && all / (images / each) <= TILE_STAGING / 64)
			return images / each;
	return images;
}

static bool
staging_open(struct staging *s, const Graph *g, const Node *n)
{
	uint64_t flags = op_info[n->op].flags;

	*s = (struct staging){ .g = *g, .n = *n, .nslot = n->nin + n->nout,
		.slices = 1 };
	if (s->nslot > OPERANDS)
		return false;
	s->g.val = s->val;
	s->g.nval = (uint32_t)s->nslot + 1;
	s->n.in = s->id;
	s->n.out = s->id + n->nin;
	if (can_be_sliced(g, n))
		s->slices = count_slices(g, n);
	s->summed = s->slices > 1 && flags & F_CONTRACT && !(flags & F_BIAS2);
	for (int i = 0; i < s->nslot; i++) {
		const Val *v = &g->val[operand_id(n, i)];
		Val *to = &s->val[i + 1];
		int64_t bytes;

		if (!operand_id(n, i))
			continue;
		s->id[i] = (ValId)i + 1;
		*to = *v;
		s->sliced[i] = s->slices > 1 && has_images(n, i);
		if (s->sliced[i])
			to->shape.dim[0] /= s->slices;
		s->copied[i] = dtype_is_half(v->dt)
			|| (s->summed && i == n->nin);
		if (!s->copied[i])
			continue;
		bytes = packed_bytes(to, to->stride);
		to->nbytes = bytes;
		to->dt = DT_F32;
		to->start = 0;
		to->data = NULL;
		s->at[i] = s->bytes;
		if (s->bytes < 0 || bytes < 0
		    || !add_ok(s->bytes, bytes, &s->bytes))
			s->bytes = -1;
	}
	s->sum = s->bytes;
	if (s->summed && s->bytes >= 0
	    && !add_ok(s->bytes, s->val[n->nin + 1].nbytes, &s->bytes))
		s->bytes = -1;
	return true;
}

int64_t
staging_bytes(const Graph *g, const Node *n, int threads)
{
	struct staging s;
	int64_t own;

	if (!staging_open(&s, g, n))
		return -1;
	own = rule_workspace(cpu_op, &s.g, &s.n, threads);
	return s.bytes < 0 || own < 0 || !add_ok(s.bytes, own, &own) ? -1
	     : own;
}

/* ---- writing it ---- */

/* Print conversions between operands and their copies, for inputs or outputs
 * that are, or are not, sliced. */
static bool
emit_conversions(struct emit *e, const Node *n, const struct staging *s,
                 bool outputs, bool sliced)
{
	int first = outputs ? n->nin : 0, end = outputs ? s->nslot : n->nin;
	struct scalar_op m = { .op = OP_COPY, .dt = DT_F32, .narg = 1 };
	int result = 0;
	struct body body = { 1, &m, &result };

	for (int i = first; i < end; i++) {
		const Val *v = &e->g->val[operand_id(n, i)];
		const Val *copy = &s->val[i + 1];
		struct nest_operand half = { .dt = v->dt, .arg = i };
		struct nest_operand wide = { .dt = DT_F32,
			.arg = i + s->nslot };
		struct loop_nest nest = { .shape = copy->shape,
			.nin = 1, .nout = 1, .in = outputs ? &wide : &half,
			.out = outputs ? &half : &wide, .body = &body };

		if (!operand_id(n, i) || !s->copied[i]
		    || s->sliced[i] != sliced)
			continue;
		nest_strides(v, &v->shape, half.stride);
		nest_strides(copy, &copy->shape, wide.stride);
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

/* Address of operand i, inside a loop over slices or outside. */
static const char *
operand_text(struct emit *e, const Node *n, const struct staging *s, int i,
             bool loop)
{
	const Val *v = &e->g->val[operand_id(n, i)];

	if (!operand_id(n, i))
		return "NULL";
	if (!loop || !s->sliced[i])
		return arena_printf(e->arena, "p[%d]", i);
	return arena_printf(e->arena, "(char *)p[%d] + slice * %lld", i,
		(long long)(s->val[i + 1].shape.dim[0]
		            * (v->laid_out ? v->stride[0]
		               : shape_span(&v->shape, 1, v->shape.rank))
		            * dtype_info[v->dt].nbytes));
}

/* The copy of operand i: of what is summed, the sum after the loop. */
static const char *
copy_text(struct emit *e, const Node *n, const struct staging *s, int i,
          bool loop)
{
	bool sum = s->summed && i == n->nin;

	if (sum && loop)
		return arena_printf(e->arena, "stage + (slice ? %lld : %lld)",
		                    (long long)s->at[i], (long long)s->sum);
	return arena_printf(e->arena, "stage + %lld",
	                    (long long)(sum ? s->sum : s->at[i]));
}

/* "both": operands and copies; "wide": what the kernel takes. */
static void
emit_tables(struct emit *e, const Node *n, const struct staging *s, bool loop)
{
	out_line(e->out, "void *const both[] = {");
	for (int i = 0; i < s->nslot; i++)
		out_line(e->out, "%s,", operand_text(e, n, s, i, loop));
	for (int i = 0; i < s->nslot; i++)
		out_line(e->out, "%s,", s->copied[i]
		         ? copy_text(e, n, s, i, loop) : "NULL");
	out_line(e->out, "};");
}

static bool
emit_kernel(struct emit *e, const Node *n, const struct staging *s)
{
	const Graph *g = e->g;
	bool ok;

	out_line(e->out, "{");
	out_line(e->out, "void *const wide[] = {");
	for (int i = 0; i < s->nslot; i++)
		out_line(e->out, "both[%d],", s->copied[i] ? s->nslot + i : i);
	out_line(e->out, "stage + %lld", (long long)s->bytes);
	out_line(e->out, "};");
	out_line(e->out, "void *const *p = wide;");
	e->g = &s->g;
	ok = emit_node(e, &s->n);
	e->g = g;
	out_line(e->out, "}");
	if (s->summed) {
		out_line(e->out, "if (slice)");
		out_line(e->out, "\tckr_add((float *)(stage + %lld), both[%d], "
		         "%lld, env);", (long long)s->sum, s->nslot + n->nin,
		         (long long)val_nelem(&s->val[n->nin + 1]));
	}
	return ok;
}

/* Operands that are not images: converted before or after the loop. */
static bool
emit_whole(struct emit *e, const Node *n, const struct staging *s, bool outputs)
{
	int first = outputs ? n->nin : 0, end = outputs ? s->nslot : n->nin;
	bool any = false;

	for (int i = first; i < end; i++)
		any |= s->copied[i] && !s->sliced[i];
	if (!any)
		return true;
	out_line(e->out, "{");
	emit_tables(e, n, s, false);
	if (!emit_conversions(e, n, s, outputs, false))
		return false;
	out_line(e->out, "}");
	return true;
}

static bool
emit_slices(struct emit *e, const Node *n, const struct staging *s)
{
	if (!emit_whole(e, n, s, false))
		return false;
	out_line(e->out, "for (int64_t slice = 0; slice < %lld; slice++) {",
	         (long long)s->slices);
	emit_tables(e, n, s, true);
	if (!emit_conversions(e, n, s, false, true) || !emit_kernel(e, n, s)
	    || !emit_conversions(e, n, s, true, true))
		return false;
	out_line(e->out, "}");
	return emit_whole(e, n, s, true);
}

bool
staging_emit(struct emit *e, const Node *n)
{
	struct staging s;

	if (!staging_open(&s, e->g, n))
		return diag_internal(e->diag, "codegen: %s has %d operands",
		                     op_info[n->op].text, n->nin + n->nout);
	emit_shapes(e, n);
	out_line(e->out, "char *stage = p[%d];", emit_workspace(n));
	if (s.slices > 1)
		return emit_slices(e, n, &s);
	emit_tables(e, n, &s, false);
	return emit_conversions(e, n, &s, false, false)
	       && emit_kernel(e, n, &s)
	       && emit_conversions(e, n, &s, true, false);
}
