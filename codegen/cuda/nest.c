/* Element-wise loop nests on a GPU: a work item is a run of `pack` neighbours
 * in the innermost dim, read and written as vectors where all allow it.
 *
 * Every element is computed by itself with the arithmetic of the CPU, so that
 * results are bitwise equal to those of the CPU.
 */
#include "codegen/cuda/cuda.h"
#include "codegen/rules/loop_nest.h"

#include <stdio.h>

enum { VECTOR = 16, MOST = 8 };         /* bytes; elements of an item */

/* Whether vectors of n elements of the operand are aligned, if its neighbours
 * are neighbours in memory. */
static bool
is_vector_aligned(const struct nest_operand *op, const struct nest_dims *d,
                  int n)
{
	for (int i = 0; i < d->n - 1; i++)
		if (op->stride[i] % n)
			return false;
	return (op->start + op->base) % n == 0;
}

static bool
is_vector_operand(const struct nest_operand *op, const struct nest_dims *d,
                  int n)
{
	return n > 1 && !op->scalar && op->stride[d->n - 1] == 1
	       && is_vector_aligned(op, d, n);
}

/* Elements of a work item: results are vectors, or it is one. */
static int
pack_of(const struct emit *e, const struct loop_nest *nest,
        const struct nest_dims *d)
{
	int least = 8, n;

	for (int k = 0; k < nest->nout; k++)
		if (dtype_info[nest->out[k].dt].nbytes < least)
			least = dtype_info[nest->out[k].dt].nbytes;
	n = VECTOR / least < MOST ? VECTOR / least : MOST;
	for (; n > 1; n /= 2) {
		bool fits = d->extent[d->n - 1] % n == 0
			&& random_run(e, nest, n, n) == n;

		for (int k = 0; k < nest->nout && fits; k++)
			fits = is_vector_operand(&nest->out[k], d, n);
		if (fits)
			break;
	}
	return n;
}

/* Indices i0, i1, ... and j0 of work item t. */
static void
emit_indices(struct emit *e, const struct nest_dims *d, int n, bool narrow)
{
	const char *type = narrow ? "uint32_t" : "int64_t";
	int last = d->n - 1;
	long long inner = d->extent[last] / n;

	if (last == 0) {
		out_line(e->out, "const int64_t j0 = (int64_t)t * %d;", n);
		return;
	}
	out_line(e->out, "const %s r%d = t / %lld;", type, last, inner);
	out_line(e->out, "const int64_t j0 = (int64_t)(t - r%d * %lld) * %d;",
	         last, inner, n);
	for (int i = last - 1; i > 0; i--) {
		out_line(e->out, "const %s r%d = r%d / %lld;", type, i, i + 1,
		         (long long)d->extent[i]);
		out_line(e->out, "const int64_t i%d = r%d - r%d * %lld;", i,
		         i + 1, i, (long long)d->extent[i]);
	}
	out_line(e->out, "const int64_t i0 = r1;");
}

static void
emit_operands(struct emit *e, const struct loop_nest *nest,
              const struct nest_dims *d, int n, struct nest_names *s)
{
	int last = d->n - 1;

	for (int k = 0; k < nest->nin; k++) {
		struct nest_operand *op = &nest->in[k];
		const char *at;

		if (op->scalar || nest_is_one(op, d))
			continue;
		at = nest_offset(e, op->stride, d, true);
		if (op->stride[last] == 0) {
			nest_read(e, k, op, arena_printf(e->arena, "*(p%d%s)",
			                                 k, at));
		} else if (is_vector_operand(op, d, n)) {
			out_line(e->out, "const ckr_pack<%s, %d> a%d = "
			         "ckr_load<%d>(p%d%s);", emit_ctype(op->dt), n,
			         k, n, k, at);
			s->from[k] = arena_printf(e->arena, "a%d.v[j]", k);
		} else {
			out_line(e->out, "const %s *a%d = p%d%s;",
			         emit_ctype(op->dt), k, k, at);
			s->from[k] = nest_element(e, "a", k, op->stride[last]);
		}
	}
	for (int k = 0; k < nest->nout; k++) {
		const struct nest_operand *op = &nest->out[k];

		if (n > 1) {
			out_line(e->out, "ckr_pack<%s, %d> y%d;",
			         emit_ctype(op->dt), n, k);
			s->to[k] = arena_printf(e->arena, "y%d.v[j]", k);
			continue;
		}
		out_line(e->out, "%s *y%d = q%d%s;", emit_ctype(op->dt), k, k,
		         nest_offset(e, op->stride, d, true));
		s->to[k] = nest_element(e, "y", k, op->stride[last]);
	}
}

static void
emit_stores(struct emit *e, const struct loop_nest *nest,
            const struct nest_dims *d, int n)
{
	for (int k = 0; k < nest->nout && n > 1; k++)
		out_line(e->out, "ckr_store<%d>(q%d%s, y%d);", n, k,
		         nest_offset(e, nest->out[k].stride, d, true), k);
}

bool
cuda_nest(struct emit *e, const struct loop_nest *nest)
{
	struct nest_dims d;
	struct nest_names s;
	int64_t all = shape_nelem(&nest->shape);
	bool ok;
	int n;

	if (all == 0)
		return true;
	if (!random_check(e, nest))
		return false;
	d = nest_merge(nest);
	n = pack_of(e, nest, &d);
	s = nest_open(e, nest, &d);
	random_numbers(e, nest);
	emit_work_items(e, all / n, true);
	emit_indices(e, &d, n, all / n < INT32_MAX);
	emit_operands(e, nest, &d, n, &s);
	random_words(e, nest, nest_offset(e, d.linear, &d, true),
	             arena_printf(e->arena, "%d", n), false);
	if (n > 1)
		out_line(e->out, "#pragma unroll");
	out_line(e->out, "for (int j = 0; j < %d; j++) {", n);
	ok = nest_body(e, nest, &s);
	out_line(e->out, "}");
	emit_stores(e, nest, &d, n);
	out_line(e->out, "}");
	return ok;
}
