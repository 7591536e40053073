/* Element-wise loop nests as loops.
 *
 * The innermost loop is marked `omp simd` and cut into blocks, the loops
 * around it are shared by the threads.  Operands that do not depend on the
 * innermost loop are read before it.  Results do not depend on the cutting:
 * every element is computed by itself.
 *
 * Random words are drawn a block at a time into a buffer (random.c).
 */
#include "codegen/cpu/cpu.h"
#include "codegen/rules/loop_nest.h"

enum {
	BLOCK = 8192,                   /* innermost iterations */
	WORDS = 1024,                   /* ... with random ones: CKR_WORDS */
	PARALLEL = 1 << 15,             /* elements worth waking threads for */
};

/* Open the outer loops; returns how many. */
static int
open_loops(struct emit *e, const struct loop_nest *nest,
           const struct nest_dims *d, int64_t block, bool blocked)
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
emit_row_operands(struct emit *e, const struct loop_nest *nest,
                  const struct nest_dims *d, bool blocked,
                  struct nest_names *s)
{
	int inner = d->n - 1;

	for (int k = 0; k < nest->nin; k++) {
		struct nest_operand *op = &nest->in[k];
		const char *at;

		if (op->scalar || nest_is_one(op, d))
			continue;
		at = nest_offset(e, op->stride, d, blocked);
		if (op->stride[inner] == 0) {
			nest_read(e, k, op, arena_printf(e->arena, "*(p%d%s)",
			                                 k, at));
			continue;
		}
		out_line(e->out, "const %s *a%d = p%d%s;", emit_ctype(op->dt),
		         k, k, at);
		s->from[k] = nest_element(e, "a", k, op->stride[inner]);
	}
	for (int k = 0; k < nest->nout; k++) {
		struct nest_operand *op = &nest->out[k];

		out_line(e->out, "%s *y%d = q%d%s;", emit_ctype(op->dt), k, k,
		         nest_offset(e, op->stride, d, blocked));
		s->to[k] = nest_element(e, "y", k, op->stride[inner]);
	}
}

bool
cpu_nest(struct emit *e, const struct loop_nest *nest)
{
	struct nest_dims d;
	struct nest_names s;
	int64_t block = random_drawn(nest) ? WORDS : BLOCK, inner;
	const char *count;
	bool blocked, ok;
	int nloop;

	if (shape_nelem(&nest->shape) == 0)
		return true;
	if (!random_check(e, nest))
		return false;
	d = nest_merge(nest);
	inner = d.extent[d.n - 1];
	block = random_run(e, nest, inner, block);
	blocked = inner > block;
	s = nest_open(e, nest, &d);
	random_numbers(e, nest);
	nloop = open_loops(e, nest, &d, block, blocked);
	emit_row_operands(e, nest, &d, blocked, &s);
	count = arena_printf(e->arena, "%lld",
	                     (long long)(blocked ? block : inner));
	if (blocked && inner % block) {
		out_line(e->out, "const int64_t n = %lld - j0 < %lld ? "
		         "%lld - j0 : %lld;", (long long)inner,
		         (long long)block, (long long)inner,
		         (long long)block);
		count = "n";
	}
	random_words(e, nest, nest_offset(e, d.linear, &d, blocked), count,
	             true);
	out_line(e->out, "#pragma omp simd");
	out_line(e->out, "for (int64_t j = 0; j < %s; j++) {", count);
	ok = nest_body(e, nest, &s);
	out_line(e->out, "}");
	while (nloop-- > 0)
		out_line(e->out, "}");
	return ok;
}
