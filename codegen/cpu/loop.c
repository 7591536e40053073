/* Element-wise loop nests as loops.
 *
 * Adjacent dims that every operand walks as one are merged; the innermost
 * loop is marked `omp simd` and cut into blocks, the loops around it are
 * shared by the threads.  Operands that do not depend on the innermost loop
 * are read before it.  Results do not depend on the cutting: every element is
 * computed by itself.
 *
 * Random words are drawn a block at a time into a buffer (random.c).
 */
#include "codegen/cpu/cpu.h"

#include <stdio.h>
#include <string.h>

enum {
	BLOCK = 8192,                   /* innermost iterations */
	WORDS = 1024,                   /* ... with random ones: CKR_WORDS */
	PARALLEL = 1 << 15,             /* elements worth waking threads for */
};

struct dims {
	int n;
	int64_t extent[MAX_RANK];
	int64_t linear[MAX_RANK];       /* strides of random words */
};

static struct nest_operand *
operand(const struct nest *nest, int i)
{
	return i < nest->nin ? &nest->in[i] : &nest->out[i - nest->nin];
}

/* Merge dims where all operands allow it; drop those of extent 1.  Rewrites
 * the operands' strides. */
static struct dims
merge_dims(const struct nest *nest)
{
	struct dims d = { 0 };
	int64_t linear[MAX_RANK];
	int nop = nest->nin + nest->nout;

	random_strides(nest, linear);
	for (int i = 0; i < nest->shape.rank; i++) {
		int64_t n = nest->shape.dim[i];
		bool fits = d.n > 0;

		if (n == 1)
			continue;
		for (int k = 0; k < nop && fits; k++) {
			const int64_t *s = operand(nest, k)->stride;

			fits = s[d.n - 1] == s[i] * n;
		}
		fits = fits && d.linear[d.n - 1] == linear[i] * n;
		if (!fits)
			d.n++;
		d.extent[d.n - 1] = fits ? d.extent[d.n - 1] * n : n;
		d.linear[d.n - 1] = linear[i];
		for (int k = 0; k < nop; k++)
			operand(nest, k)->stride[d.n - 1] =
				operand(nest, k)->stride[i];
	}
	/* words are drawn for neighbours in the innermost dim */
	if (d.n == 0 || d.linear[d.n - 1] != 1) {
		d.extent[d.n] = d.linear[d.n] = 1;
		for (int k = 0; k < nop; k++)
			operand(nest, k)->stride[d.n] = 0;
		d.n++;
	}
	return d;
}

static bool
all_zero(const int64_t *stride, int n)
{
	for (int i = 0; i < n; i++)
		if (stride[i])
			return false;
	return true;
}

/* "+ i0 * 768 + j0 * 2" for the outer loops, into the arena. */
static const char *
offset_text(struct emit *e, const int64_t *stride, const struct dims *d,
            bool blocked)
{
	struct out o = { .arena = e->arena };
	int inner = d->n - 1;

	out_put(&o, "%s", "");
	for (int i = 0; i < inner + blocked; i++) {
		if (stride[i] == 0)
			continue;
		if (i == inner)
			out_put(&o, " + j0");
		else
			out_put(&o, " + i%d", i);
		if (stride[i] != 1)
			out_put(&o, " * %lld", (long long)stride[i]);
	}
	return o.s ? o.s : "";
}

static const char *
element(struct emit *e, const char *name, int k, int64_t stride)
{
	if (stride == 1)
		return arena_printf(e->arena, "%s%d[j]", name, k);
	if (stride == 0)
		return arena_printf(e->arena, "%s%d[0]", name, k);
	return arena_printf(e->arena, "%s%d[j * %lld]", name, k,
	                    (long long)stride);
}

/* ---- the body ---- */

/* The first element of an operand, as NAMEk. */
static void
emit_operand(struct emit *e, const char *quality, char name, int k,
             const struct nest_operand *op)
{
	const char *type = emit_ctype(op->dt);

	out_line(e->out, "%s%s *%c%d = (%s%s *)p[%d]%s;", quality, type, name,
	         k, quality, type, op->arg, op->start
	         ? arena_printf(e->arena, " + %lld", (long long)op->start)
	         : "");
}

/* Input k, read from an lvalue, as xk. */
static void
emit_read(struct emit *e, int k, const struct nest_operand *op,
          const char *from)
{
	out_line(e->out, "const %s x%d = %s;", ew_type(op->dt), k,
	         ew_load(e, op->dt, from));
}

struct names {
	const char **in;                /* input k, in the computed type */
	const char **micro;
	DType *in_dt;
};

static const char *
argument(const struct nest *nest, const struct names *s, int a, DType *dt)
{
	*dt = a >= 0 ? s->in_dt[a] : nest->body->micro[~a].dt;
	return a >= 0 ? s->in[a] : s->micro[~a];
}

static bool
emit_micro(struct emit *e, const struct nest *nest, struct names *s, int i)
{
	const struct micro *m = &nest->body->micro[i];
	const char *arg[3] = { NULL }, *text;
	DType from[3] = { DT_NONE };
	const double *exponent = NULL;

	for (int a = 0; a < m->narg; a++)
		arg[a] = argument(nest, s, m->arg[a], &from[a]);
	if (m->op == OP_POW && m->arg[1] >= 0 &&
	    nest->in[m->arg[1]].scalar)
		exponent = &nest->in[m->arg[1]].value;
	if (op_info[m->op].flags & F_RNG)
		text = ew_load(e, m->dt,
		               ew_store(e, m->dt,
		                        random_draw(e, m, i, arg[0])));
	else
		text = ew_expression(e, m, arg, from, exponent);
	if (!text)
		return false;
	s->micro[i] = arena_printf(e->arena, "t%d", i);
	out_line(e->out, "const %s t%d = %s;", ew_type(m->dt), i, text);
	return true;
}

static bool
emit_body(struct emit *e, const struct nest *nest, struct names *s,
          const struct dims *d)
{
	int inner = d->n - 1;

	for (int k = 0; k < nest->nin; k++) {
		const struct nest_operand *op = &nest->in[k];

		if (!op->scalar && op->stride[inner] != 0)
			emit_read(e, k, op,
			          element(e, "a", k, op->stride[inner]));
	}
	for (int i = 0; nest->body && i < nest->body->nmicro; i++)
		if (!emit_micro(e, nest, s, i))
			return false;
	for (int k = 0; k < nest->nout; k++) {
		const struct nest_operand *op = &nest->out[k];
		DType dt = DT_NONE;
		int r = nest->body ? nest->body->result[k] : 0;
		const char *from = nest->body
			? argument(nest, s, ~r, &dt) : s->in[0];

		out_line(e->out, "%s = %s;",
		         element(e, "y", k, op->stride[inner]),
		         ew_store(e, op->dt, from));
	}
	return true;
}

/* ---- the loops ---- */

static void
emit_pointers(struct emit *e, const struct nest *nest, struct names *s,
              const struct dims *d)
{
	for (int k = 0; k < nest->nin; k++) {
		struct nest_operand *op = &nest->in[k];

		s->in_dt[k] = op->dt;
		s->in[k] = op->scalar ? nest_literal(e, op)
		                      : arena_printf(e->arena, "x%d", k);
		if (op->scalar)
			continue;
		emit_operand(e, "const ", 'p', k, op);
		if (all_zero(op->stride, d->n))
			emit_read(e, k, op, arena_printf(e->arena, "p%d[0]",
			                                 k));
	}
	for (int k = 0; k < nest->nout; k++)
		emit_operand(e, "", 'q', k, &nest->out[k]);
}

/* Open the outer loops; returns how many. */
static int
open_loops(struct emit *e, const struct nest *nest, const struct dims *d,
           int64_t block, bool blocked)
{
	int inner = d->n - 1, nloop = inner + blocked;

	if (nloop > 0 && shape_nelem(&nest->shape) >= PARALLEL)
		out_line(e->out, "#pragma omp parallel for "
		         "num_threads(env->threads)%s", nloop > 1
		         ? arena_printf(e->arena, " collapse(%d)", nloop) : "");
	for (int i = 0; i < inner; i++)
		out_line(e->out, "for (int64_t i%d = 0; i%d < %lld; i%d++) {",
		         i, i, (long long)d->extent[i], i);
	if (blocked)
		out_line(e->out,
		         "for (int64_t j0 = 0; j0 < %lld; j0 += %lld) {",
		         (long long)d->extent[inner], (long long)block);
	return nloop;
}

static void
emit_row_operands(struct emit *e, const struct nest *nest,
                  const struct dims *d, bool blocked)
{
	int inner = d->n - 1;

	for (int k = 0; k < nest->nin; k++) {
		struct nest_operand *op = &nest->in[k];
		const char *at;

		if (op->scalar || all_zero(op->stride, d->n))
			continue;
		at = offset_text(e, op->stride, d, blocked);
		if (op->stride[inner] == 0)
			emit_read(e, k, op, arena_printf(e->arena, "*(p%d%s)",
			                                 k, at));
		else
			out_line(e->out, "const %s *a%d = p%d%s;",
			         emit_ctype(op->dt), k, k, at);
	}
	for (int k = 0; k < nest->nout; k++)
		out_line(e->out, "%s *y%d = q%d%s;",
		         emit_ctype(nest->out[k].dt), k, k,
		         offset_text(e, nest->out[k].stride, d, blocked));
}

bool
cpu_nest(struct emit *e, const struct nest *nest)
{
	struct dims d;
	struct names s = {
		arena_array(e->arena, (size_t)nest->nin + 1, sizeof *s.in),
		arena_array(e->arena, nest->body ?
		            (size_t)nest->body->nmicro + 1 : 1,
		            sizeof *s.micro),
		arena_array(e->arena, (size_t)nest->nin + 1, sizeof *s.in_dt),
	};
	int64_t block = random_drawn(nest) ? WORDS : BLOCK, inner;
	const char *count;
	bool blocked, ok;
	int nloop;

	if (shape_nelem(&nest->shape) == 0)
		return true;
	if (!random_check(e, nest))
		return false;
	d = merge_dims(nest);
	inner = d.extent[d.n - 1];
	blocked = inner > block;
	emit_pointers(e, nest, &s, &d);
	random_numbers(e, nest);
	nloop = open_loops(e, nest, &d, block, blocked);
	emit_row_operands(e, nest, &d, blocked);
	count = arena_printf(e->arena, "%lld",
	                     (long long)(blocked ? block : inner));
	if (blocked && inner % block) {
		out_line(e->out, "const int64_t n = %lld - j0 < %lld ? "
		         "%lld - j0 : %lld;", (long long)inner,
		         (long long)block, (long long)inner,
		         (long long)block);
		count = "n";
	}
	random_words(e, nest, offset_text(e, d.linear, &d, blocked), count);
	out_line(e->out, "#pragma omp simd");
	out_line(e->out, "for (int64_t j = 0; j < %s; j++) {", count);
	ok = emit_body(e, nest, &s, &d);
	out_line(e->out, "}");
	while (nloop-- > 0)
		out_line(e->out, "}");
	return ok;
}
