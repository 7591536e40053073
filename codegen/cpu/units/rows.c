/* Kernels on independent rows: softmax, cross entropy.
 *
 * Threads share rows; sums over rows are taken in parts whose number depends
 * on the shape alone, so that the result does not depend on the threads.
 */
#include "rows.h"
#include "sums.h"

enum { CKR_COLUMNS = 64 };        /* columns handled together */

/* ---- softmax: x is [outer, n, inner], over n ---- */

static inline void
ckr_softmax_row(float *y, const float *x, int64_t n, int log)
{
	float m = ckr_row_top(ckr_max_of(x, n)), s;

	if (log) {
		s = ckr_row_end(m, ckr_sum_exp(x, n, m), 1);
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			y[i] = x[i] - s;
		return;
	}
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		y[i] = ckr_exp(x[i] - m);
	s = ckr_row_end(m, ckr_sum(y, n), 0);
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		y[i] *= s;
}

/* Maximum and sum of exponentials of w columns, `inner` apart. */
static inline void
ckr_column_stats(const float *x, int64_t n, int64_t inner, int64_t w,
                 float *m, float *s)
{
	for (int64_t j = 0; j < w; j++)
		m[j] = -__builtin_inff(), s[j] = 0.0f;
	for (int64_t i = 0; i < n; i++) {
#pragma omp simd
		for (int64_t j = 0; j < w; j++)
			m[j] = x[i * inner + j] > m[j] ? x[i * inner + j]
			                               : m[j];
	}
	for (int64_t j = 0; j < w; j++)
		m[j] = ckr_row_top(m[j]);
	for (int64_t i = 0; i < n; i++) {
#pragma omp simd
		for (int64_t j = 0; j < w; j++)
			s[j] += ckr_exp(x[i * inner + j] - m[j]);
	}
}

static inline void
ckr_softmax_columns(float *y, const float *x, int64_t n, int64_t inner,
                    int64_t w, int log)
{
	float m[CKR_COLUMNS], s[CKR_COLUMNS];

	ckr_column_stats(x, n, inner, w, m, s);
	for (int64_t j = 0; j < w; j++)
		s[j] = ckr_row_end(m[j], s[j], log);
	for (int64_t i = 0; i < n; i++) {
#pragma omp simd
		for (int64_t j = 0; j < w; j++) {
			float v = x[i * inner + j];

			y[i * inner + j] = log ? v - s[j]
			                       : ckr_exp(v - m[j]) * s[j];
		}
	}
}

static inline void
ckr_softmax_grad_row(float *dx, const float *dy, const float *y, int64_t n,
                     int log)
{
	float s = log ? ckr_sum(dy, n) : ckr_dot(dy, y, n);

	if (log) {
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			dx[i] = dy[i] - ckr_exp(y[i]) * s;
	} else {
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			dx[i] = y[i] * (dy[i] - s);
	}
}

static inline void
ckr_softmax_grad_columns(float *dx, const float *dy, const float *y,
                         int64_t n, int64_t inner, int64_t w, int log)
{
	float s[CKR_COLUMNS] = { 0 };

	for (int64_t i = 0; i < n * inner; i += inner) {
#pragma omp simd
		for (int64_t j = 0; j < w; j++)
			s[j] += log ? dy[i + j] : dy[i + j] * y[i + j];
	}
	for (int64_t i = 0; i < n * inner; i += inner) {
#pragma omp simd
		for (int64_t j = 0; j < w; j++)
			dx[i + j] = log ? dy[i + j] - ckr_exp(y[i + j]) * s[j]
			                : y[i + j] * (dy[i + j] - s[j]);
	}
}

void
ckr_softmax_grad(float *dx, const float *dy, const float *y, int64_t outer,
                 int64_t n, int64_t inner, int log, const struct ckr_env *env)
{
	int64_t block = inner < CKR_COLUMNS ? inner : CKR_COLUMNS;

	CKR_SHARE(outer * n * inner, collapse(2))
	for (int64_t i = 0; i < outer; i++) {
		for (int64_t j = 0; j < inner; j += block) {
			int64_t at = i * n * inner + j;
			int64_t w = inner - j < block ? inner - j : block;

			if (dy && inner == 1)
				ckr_softmax_grad_row(dx + at, dy + at, y + at,
				                     n, log);
			else if (dy)
				ckr_softmax_grad_columns(dx + at, dy + at,
					y + at, n, inner, w, log);
			else if (inner == 1)
				ckr_softmax_row(dx + at, y + at, n, log);
			else
				ckr_softmax_columns(dx + at, y + at, n, inner,
				                    w, log);
		}
	}
}

void
ckr_softmax(float *y, const float *x, int64_t outer, int64_t n, int64_t inner,
            int log, const struct ckr_env *env)
{
	ckr_softmax_grad(y, NULL, x, outer, n, inner, log, env);
}

/* ---- cross entropy: x is [rows, n, inner], labels [rows, inner] ---- */

void
ckr_sce(float *loss, float *lse, float *denom, const float *x,
        const struct ckr_labels *l, int64_t rows, int64_t n, int64_t inner,
        int reduction, int logp, struct ckr_env *env)
{
	double sum[CKR_LOSS_PARTS], weight[CKR_LOSS_PARTS];
	int64_t part = (rows + CKR_LOSS_PARTS - 1) / CKR_LOSS_PARTS;
	int64_t nparts = part ? (rows + part - 1) / part : 0;

	CKR_SHARE(rows * n * inner)
	for (int64_t p = 0; p < nparts; p++) {
		double s = 0, w = 0;
		int64_t end = (p + 1) * part < rows ? (p + 1) * part : rows;

		for (int64_t k = p * part * inner; k < end * inner; k++) {
			const float *a = x + k / inner * n * inner + k % inner;
			int64_t c = ckr_label(l, k, env);
			float wc = ckr_label_weight(l, c), z = 0.0f, m, t;

			if (!logp && inner == 1) {
				m = ckr_max_of(a, n);
				z = m + ckr_log(ckr_sum_exp(a, n, m));
			} else if (!logp) {
				ckr_column_stats(a, n, inner, 1, &m, &t);
				z = m + ckr_log(t);
			}
			if (lse)
				lse[k] = z;
			t = c < 0 ? 0.0f : wc * (z - a[c * inner]);
			if (loss && !reduction)
				loss[k] = t;
			s += (double)t;
			w += (double)wc;
		}
		sum[p] = s;
		weight[p] = w;
	}
	ckr_loss_finish(loss, denom, sum, weight, nparts, reduction);
}

void
ckr_sce_grad(float *dx, const float *dloss, const float *x,
             const struct ckr_labels *l, const float *lse, const float *denom,
             int64_t rows, int64_t n, int64_t inner, int reduction,
             struct ckr_env *env)
{
	CKR_SHARE(rows * n * inner)
	for (int64_t i = 0; i < rows; i++) {
		for (int64_t j = 0; j < inner; j++) {
			int64_t k = i * inner + j, at = i * n * inner + j;
			int64_t c = ckr_label(l, k, env);
			float z = lse[k], g = ckr_loss_factor(l, dloss, denom,
				k, c, reduction);

			if (c < 0) {
				for (int64_t q = 0; q < n; q++)
					dx[at + q * inner] = 0.0f;
				continue;
			}
#pragma omp simd
			for (int64_t q = 0; q < n; q++)
				dx[at + q * inner] =
					ckr_exp(x[at + q * inner] - z) * g;
			dx[at + c * inner] -= g;
		}
	}
}

void
ckr_nll_grad(float *dx, const float *dloss, const struct ckr_labels *l,
             const float *denom, int64_t rows, int64_t n, int64_t inner,
             int reduction, struct ckr_env *env)
{
	CKR_SHARE(rows * n * inner)
	for (int64_t i = 0; i < rows; i++) {
		float *to = dx + i * n * inner;

		memset(to, 0, (size_t)(n * inner) * sizeof *to);
		for (int64_t j = 0; j < inner; j++) {
			int64_t k = i * inner + j, c = ckr_label(l, k, env);

			if (c >= 0)
				to[c * inner + j] = -ckr_loss_factor(l, dloss,
					denom, k, c, reduction);
		}
	}
}
