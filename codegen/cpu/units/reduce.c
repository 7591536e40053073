/* Reductions of float32: x is [outer, n, inner], over n.
 *
 * Sums of rows have the shape of ckr_sum; long rows are cut into parts first.
 * Columns are summed in groups of rows, so that the error grows with the
 * group and the number of groups, not with n; where they are few, rows are cut
 * into parts first.  Threads share rows, parts or columns; the shape of a sum
 * does not depend on them.
 */
#include "reduce.h"
#include "half.h"
#include "sums.h"

enum {
	CKR_REDUCE_PARTS = 256,
	CKR_REDUCE_LONG = 1 << 16,
	CKR_REDUCE_COLUMNS = 512,
	CKR_REDUCE_GROUP = 64,
	CKR_REDUCE_WIDE = 1024,
	CKR_REDUCE_TASKS = 16,          /* wanted */
	CKR_REDUCE_ROOM = 1 << 14,      /* sums of all parts */
	CKR_REDUCE_ROWS = 128,          /* of a part, at least */
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

/* Reduce x[at..at+n-1]; 16-bit floats block by block. */
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
	CKR_SHARE(outer * n)
	for (int64_t i = 0; i < outer; i++) {
		float s = ckr_reduce_typed(op, x, type, i * n, n) / divisor;

		ckr_narrow(y, type, i, &s, 1);
	}
}

void
ckr_reduce_planes(enum ckr_reduce op, void *y, const void *x, int type,
                  int64_t lead, int64_t outer, int64_t n, float divisor,
                  const struct ckr_env *env)
{
	CKR_SHARE(lead * outer * n)
	for (int64_t i = 0; i < outer; i++) {
		float s = ckr_reduce_start(op);
		double sum = 0;

		for (int64_t k = 0; k < lead; k++) {
			float run = ckr_reduce_typed(op, x, type,
			                             (k * outer + i) * n, n);

			sum += (double)run;
			s = ckr_reduce_two(op, s, run);
		}
		s = op == CKR_ADD ? (float)(sum / (double)divisor)
		                  : s / divisor;
		ckr_narrow(y, type, i, &s, 1);
	}
}

/* Rows i to i + 3, of which those from `end` on are `none`. */
static inline void
ckr_reduce_four(const float *row[4], float (*wide)[CKR_REDUCE_COLUMNS],
                const void *x, int type, int64_t at, int64_t i, int64_t end,
                int64_t inner, int64_t w, const float *none)
{
	for (int r = 0; r < 4; r++)
		row[r] = i + r >= end ? none
			: ckr_row(wide[r], x, type, at + (i + r) * inner, w);
}

/* Sums, or whatever op is, of w columns of the n rows from x[at] on.  Inlined
 * with a constant op: the loop must not ask which it is. */
CKR_LANE void
ckr_reduce_block(enum ckr_reduce op, float *total, const void *x, int type,
                 int64_t at, int64_t n, int64_t inner, int64_t w)
{
	float s[CKR_REDUCE_COLUMNS], none[CKR_REDUCE_COLUMNS];
	float wide[4][CKR_REDUCE_COLUMNS];

	for (int64_t j = 0; j < w; j++)
		none[j] = total[j] = ckr_reduce_start(op);
	for (int64_t i0 = 0; i0 < n; i0 += CKR_REDUCE_GROUP) {
		int64_t end = ckr_least(i0 + CKR_REDUCE_GROUP, n);

		memcpy(s, none, (size_t)w * sizeof *s);
		for (int64_t i = i0; i < end; i += 4) {
			const float *row[4], *a, *b, *c, *d;

			ckr_reduce_four(row, wide, x, type, at, i, end, inner,
			                w, none);
			a = row[0];
			b = row[1];
			c = row[2];
			d = row[3];
#pragma omp simd
			for (int64_t j = 0; j < w; j++)
				s[j] = ckr_reduce_two(op, s[j],
					ckr_reduce_two(op,
					ckr_reduce_two(op, a[j], b[j]),
					ckr_reduce_two(op, c[j], d[j])));
		}
		for (int64_t j = 0; j < w; j++)
			total[j] = ckr_reduce_two(op, total[j], s[j]);
	}
}

static void
ckr_reduce_any(enum ckr_reduce op, float *total, const void *x, int type,
               int64_t at, int64_t n, int64_t inner, int64_t w)
{
	switch (op) {
	case CKR_ADD:
		ckr_reduce_block(CKR_ADD, total, x, type, at, n, inner, w);
		break;
	case CKR_MAX:
		ckr_reduce_block(CKR_MAX, total, x, type, at, n, inner, w);
		break;
	case CKR_MIN:
		ckr_reduce_block(CKR_MIN, total, x, type, at, n, inner, w);
		break;
	case CKR_MUL:
		ckr_reduce_block(CKR_MUL, total, x, type, at, n, inner, w);
	}
}

static inline void
ckr_reduce_put(void *y, int type, int64_t at, float *total, int64_t w,
               float divisor)
{
	for (int64_t j = 0; j < w; j++)
		total[j] /= divisor;
	ckr_narrow(y, type, at, total, w);
}

/* Few columns of many rows, which threads share. */
static void
ckr_reduce_parts(enum ckr_reduce op, void *y, const void *x, int type,
                 int64_t to, int64_t at, int64_t n, int64_t inner,
                 int64_t parts, float divisor, const struct ckr_env *env)
{
	float total[CKR_REDUCE_ROOM];
	int64_t size = (n + parts - 1) / parts;
	int64_t blocks = (inner + CKR_REDUCE_COLUMNS - 1) / CKR_REDUCE_COLUMNS;

	CKR_SHARE(n * inner)
	for (int64_t t = 0; t < parts * blocks; t++) {
		int64_t part = t / blocks, i = part * size;
		int64_t j = t % blocks * CKR_REDUCE_COLUMNS;
		int64_t rows = ckr_least(size, n - i);

		ckr_reduce_any(op, total + part * inner + j, x, type,
		               at + i * inner + j, rows, inner,
		               ckr_least(inner - j, CKR_REDUCE_COLUMNS));
	}
	for (int64_t part = 1; part < parts; part++)
		for (int64_t j = 0; j < inner; j++)
			total[j] = ckr_reduce_two(op, total[j],
			                          total[part * inner + j]);
	ckr_reduce_put(y, type, to, total, inner, divisor);
}

/* Into how many parts rows are cut; 0: there are columns enough. */
static inline int64_t
ckr_reduce_cut(int64_t outer, int64_t n, int64_t inner)
{
	int64_t blocks = (inner + CKR_REDUCE_COLUMNS - 1) / CKR_REDUCE_COLUMNS;
	int64_t most = CKR_REDUCE_ROOM / inner, wanted = CKR_REDUCE_TASKS;

	if (outer * blocks >= wanted || most < 2)
		return 0;
	most = ckr_least(most, n / CKR_REDUCE_ROWS);
	most = ckr_least(most, wanted);
	return most < 2 ? 0 : most;
}

void
ckr_reduce_columns(enum ckr_reduce op, void *y, const void *x, int type,
                   int64_t outer, int64_t n, int64_t inner, float divisor,
                   const struct ckr_env *env)
{
	int64_t parts = ckr_reduce_cut(outer, n, inner);

	for (int64_t i = 0; parts && i < outer; i++)
		ckr_reduce_parts(op, y, x, type, i * inner, i * n * inner, n,
		                 inner, parts, divisor, env);
	if (parts)
		return;
	CKR_SHARE(outer * n * inner, collapse(2))
	for (int64_t i = 0; i < outer; i++) {
		for (int64_t j = 0; j < inner; j += CKR_REDUCE_COLUMNS) {
			float total[CKR_REDUCE_COLUMNS];
			int64_t w = ckr_least(inner - j, CKR_REDUCE_COLUMNS);

			ckr_reduce_any(op, total, x, type, i * n * inner + j,
			               n, inner, w);
			ckr_reduce_put(y, type, i * inner + j, total, w,
			               divisor);
		}
	}
}
