/* Reductions of float32: x is [outer, n, inner], over n.
 *
 * Sums of rows have the shape of ckr_sum; long rows are cut into parts first.
 * Columns are summed in groups of rows, so that the error grows with the
 * group and the number of groups, not with n.  Threads share rows, parts or
 * columns; the shape of a sum does not depend on them.
 */
#include "reduce.h"
#include "half.h"
#include "sums.h"

enum {
	CKR_REDUCE_PARTS = 256,
	CKR_REDUCE_LONG = 1 << 16,
	CKR_REDUCE_COLUMNS = 128,
	CKR_REDUCE_GROUP = 64,
	CKR_REDUCE_WIDE = 1024,
};

static inline float
ckr_reduce_start(enum ckr_reduce op)
{
	return op == CKR_ADD ? 0.0f : op == CKR_MUL ? 1.0f
	     : op == CKR_MAX ? -__builtin_inff() : __builtin_inff();
}

static inline float
ckr_reduce_two(enum ckr_reduce op, float a, float b)
{
	return op == CKR_ADD ? a + b : op == CKR_MUL ? a * b
	     : op == CKR_MAX ? ckr_max(a, b) : ckr_min(a, b);
}

static inline float
ckr_reduce_run(enum ckr_reduce op, const float *x, int64_t n)
{
	float s = ckr_reduce_start(op);

	if (op == CKR_ADD)
		return ckr_sum(x, n);
	if (op == CKR_MUL) {
		double p = 1;

		for (int64_t i = 0; i < n; i++)
			p *= (double)x[i];
		return (float)p;
	}
	for (int64_t i = 0; i < n; i++)
		s = ckr_reduce_two(op, s, x[i]);
	return s;
}

/* Of x[at..at+n-1]; 16-bit floats a block after the other. */
static inline float
ckr_reduce_typed(enum ckr_reduce op, const void *x, int type, int64_t at,
                 int64_t n)
{
	float block[CKR_REDUCE_WIDE], s = ckr_reduce_start(op);

	if (type == CKR_F32)
		return ckr_reduce_run(op, (const float *)x + at, n);
	for (int64_t i = 0; i < n; i += CKR_REDUCE_WIDE) {
		int64_t k = ckr_least(n - i, CKR_REDUCE_WIDE);

		ckr_widen(block, x, type, at + i, k);
		s = ckr_reduce_two(op, s, ckr_reduce_run(op, block, k));
	}
	return s;
}

/* One long row, by all threads. */
static inline float
ckr_reduce_long(enum ckr_reduce op, const void *x, int type, int64_t at,
                int64_t n, const struct ckr_env *env)
{
	float part[CKR_REDUCE_PARTS];
	int64_t size = (n + CKR_REDUCE_PARTS - 1) / CKR_REDUCE_PARTS;
	int64_t nparts = (n + size - 1) / size;

#pragma omp parallel for num_threads(env->threads)
	for (int64_t i = 0; i < nparts; i++)
		part[i] = ckr_reduce_typed(op, x, type, at + i * size,
			n - i * size < size ? n - i * size : size);
	return ckr_reduce_run(op, part, nparts);
}

void
ckr_reduce_rows(enum ckr_reduce op, void *y, const void *x, int type,
                int64_t outer, int64_t n, float divisor,
                const struct ckr_env *env)
{
	if (n >= CKR_REDUCE_LONG) {
		for (int64_t i = 0; i < outer; i++) {
			float s = ckr_reduce_long(op, x, type, i * n, n, env)
				/ divisor;

			ckr_narrow(y, type, i, &s, 1);
		}
		return;
	}
#pragma omp parallel for num_threads(env->threads) \
	if (outer * n > CKR_SMALL)
	for (int64_t i = 0; i < outer; i++) {
		float s = ckr_reduce_typed(op, x, type, i * n, n) / divisor;

		ckr_narrow(y, type, i, &s, 1);
	}
}

/* w columns of the rows from x[at] on, to y[to].  Inlined with a constant op:
 * the loop must not ask which it is. */
__attribute__((always_inline))
static inline void
ckr_reduce_block(enum ckr_reduce op, void *y, const void *x, int type,
                 int64_t to, int64_t at, int64_t n, int64_t inner, int64_t w,
                 float divisor)
{
	float total[CKR_REDUCE_COLUMNS], s[CKR_REDUCE_COLUMNS];
	float wide[CKR_REDUCE_COLUMNS];

	for (int64_t j = 0; j < w; j++)
		total[j] = ckr_reduce_start(op);
	for (int64_t i0 = 0; i0 < n; i0 += CKR_REDUCE_GROUP) {
		int64_t end = n - i0 < CKR_REDUCE_GROUP
		            ? n : i0 + CKR_REDUCE_GROUP;

		for (int64_t j = 0; j < w; j++)
			s[j] = ckr_reduce_start(op);
		for (int64_t i = i0; i < end; i++) {
			const float *row = ckr_row(wide, x, type,
			                           at + i * inner, w);

#pragma omp simd
			for (int64_t j = 0; j < w; j++)
				s[j] = ckr_reduce_two(op, s[j], row[j]);
		}
		for (int64_t j = 0; j < w; j++)
			total[j] = ckr_reduce_two(op, total[j], s[j]);
	}
	for (int64_t j = 0; j < w; j++)
		total[j] /= divisor;
	ckr_narrow(y, type, to, total, w);
}

static inline void
ckr_reduce_any(enum ckr_reduce op, void *y, const void *x, int type,
               int64_t to, int64_t at, int64_t n, int64_t inner, int64_t w,
               float divisor)
{
	switch (op) {
	case CKR_ADD:
		ckr_reduce_block(CKR_ADD, y, x, type, to, at, n, inner, w,
		                 divisor);
		break;
	case CKR_MAX:
		ckr_reduce_block(CKR_MAX, y, x, type, to, at, n, inner, w,
		                 divisor);
		break;
	case CKR_MIN:
		ckr_reduce_block(CKR_MIN, y, x, type, to, at, n, inner, w,
		                 divisor);
		break;
	case CKR_MUL:
		ckr_reduce_block(CKR_MUL, y, x, type, to, at, n, inner, w,
		                 divisor);
	}
}

void
ckr_reduce_columns(enum ckr_reduce op, void *y, const void *x, int type,
                   int64_t outer, int64_t n, int64_t inner, float divisor,
                   const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) collapse(2) \
	if (outer * n * inner > CKR_SMALL)
	for (int64_t i = 0; i < outer; i++) {
		for (int64_t j = 0; j < inner; j += CKR_REDUCE_COLUMNS)
			ckr_reduce_any(op, y, x, type, i * inner + j,
				i * n * inner + j, n, inner,
				ckr_least(inner - j, CKR_REDUCE_COLUMNS),
				divisor);
	}
}
