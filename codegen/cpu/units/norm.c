/* Layer and RMS normalisation: x is [rows, n].
 *
 * Threads share rows; sums over rows are taken in parts whose number depends
 * on the shape alone, so that the result does not depend on the threads.
 */
#include "norm.h"
#include "half.h"
#include "sums.h"

/* Row i of workspace; NULL: there is none. */
static inline float *
ckr_norm_row(const struct ckr_norm *c, int64_t i)
{
	return c->workspace ? c->workspace + i * c->n : NULL;
}

/* Row i of x, in row `own` of workspace if it is widened. */
static inline const float *
ckr_norm_read(const struct ckr_norm *c, const void *x, int64_t i, int64_t own)
{
	return ckr_row(ckr_norm_row(c, own), x, c->x, i * c->n, c->n);
}

/* Memory in which row i of y is computed, likewise; NULL: there is no y. */
static inline float *
ckr_norm_make(const struct ckr_norm *c, void *y, int64_t i, int64_t own)
{
	return ckr_row_new(ckr_norm_row(c, own), y, c->x, i * c->n);
}

/* centre 0: rmsnorm, whose mean is 0. */
static inline void
ckr_norm_forward(void *y, float *mean, float *rstd, const void *x,
                 const void *scales, const void *biases, int centre,
                 const struct ckr_norm *c, const struct ckr_env *env)
{
	int64_t n = c->n;
	const float *scale = ckr_row(ckr_norm_row(c, 0), scales, c->scale, 0,
	                             n);
	const float *bias = ckr_row(ckr_norm_row(c, 1), biases, c->scale, 0, n);

	CKR_SHARE(c->rows * n)
	for (int64_t i = 0; i < c->rows; i++) {
		int64_t own = 2 + 2 * omp_get_thread_num();
		const float *a = ckr_norm_read(c, x, i, own);
		float *to = ckr_norm_make(c, y, i, own + 1);
		float m = centre ? ckr_sum(a, n) / (float)n : 0.0f;
		float var = ckr_sum_deviations(a, n, m) / (float)n;
		float r = 1.0f / __builtin_sqrtf(var + (float)c->eps);

		if (mean)
			mean[i] = m;
		if (rstd)
			rstd[i] = r;
		if (!y)
			continue;
		if (bias) {
#pragma omp simd
			for (int64_t j = 0; j < n; j++)
				to[j] = (a[j] - m) * r * scale[j] + bias[j];
		} else {
#pragma omp simd
			for (int64_t j = 0; j < n; j++)
				to[j] = (a[j] - m) * r * scale[j];
		}
		ckr_row_put(y, c->x, i * n, to, n);
	}
}

void
ckr_layernorm(void *y, float *mean, float *rstd, const void *x,
              const void *scales, const void *biases,
              const struct ckr_norm *c, const struct ckr_env *env)
{
	ckr_norm_forward(y, mean, rstd, x, scales, biases, 1, c, env);
}

void
ckr_rmsnorm(void *y, float *rstd, const void *x, const void *scales,
            const struct ckr_norm *c, const struct ckr_env *env)
{
	ckr_norm_forward(y, NULL, rstd, x, scales, NULL, 0, c, env);
}

/* Sums over a row of dy * scale and of dy * scale * (x - mean). */
static inline void
ckr_norm_sums(const float *dy, const float *x, const float *scale, int64_t n,
              float mean, float *sum, float *product)
{
	ckr_lanes sums[64 / CKR_WIDE] = { 0 }, dots[64 / CKR_WIDE] = { 0 };
	float a[64], b[64];
	int64_t i = 0;

	for (; i + 64 <= n; i += 64) {
		const ckr_lanes *d = (const ckr_lanes *)(dy + i);
		const ckr_lanes *s = (const ckr_lanes *)(scale + i);
		const ckr_lanes *v = (const ckr_lanes *)(x + i);

		_Pragma("GCC unroll 16")
		for (int k = 0; k < 64 / CKR_WIDE; k++) {
			ckr_lanes t = d[k] * s[k];

			sums[k] += t;
			dots[k] += t * (v[k] - mean);
		}
	}
	memcpy(a, sums, sizeof a);
	memcpy(b, dots, sizeof b);
	for (int64_t j = 0; i + j < n; j++) {
		float t = dy[i + j] * scale[i + j];

		a[j] += t;
		b[j] += t * (x[i + j] - mean);
	}
	*sum = ckr_fold(a);
	*product = ckr_fold(b);
}

/* One row of dx: acc, which it may be written over, and the gradient.  mean is
 * 0 and `centre` 0 for rmsnorm. */
static inline void
ckr_norm_grad_row(float *dx, const float *acc, const float *dy,
                  const float *x, const float *scale, int64_t n, float mean,
                  float rstd, int centre)
{
	float a, b;

	ckr_norm_sums(dy, x, scale, n, mean, &a, &b);
	a = centre ? a / (float)n : 0.0f;
	b = b * rstd * rstd / (float)n;
	if (acc) {
#pragma omp simd
		for (int64_t j = 0; j < n; j++)
			dx[j] = acc[j] + rstd * (dy[j] * scale[j] - a -
			                         (x[j] - mean) * b);
		return;
	}
#pragma omp simd
	for (int64_t j = 0; j < n; j++)
		dx[j] = rstd * (dy[j] * scale[j] - a - (x[j] - mean) * b);
}

/* Add what one row gives to dscale and dbias. */
static inline void
ckr_norm_grad_sums(float *dscale, float *dbias, const float *dy,
                   const float *x, int64_t n, float mean, float rstd)
{
	if (dscale) {
#pragma omp simd
		for (int64_t j = 0; j < n; j++)
			dscale[j] += dy[j] * ((x[j] - mean) * rstd);
	}
	if (dbias) {
#pragma omp simd
		for (int64_t j = 0; j < n; j++)
			dbias[j] += dy[j];
	}
}

/* Sum of parts [nparts, stride] in order. */
static inline void
ckr_add_parts(float *y, const float *part, int64_t nparts, int64_t stride,
              int64_t n)
{
	memset(y, 0, (size_t)n * sizeof *y);
	for (int64_t p = 0; p < nparts; p++) {
#pragma omp simd
		for (int64_t j = 0; j < n; j++)
			y[j] += part[p * stride + j];
	}
}

/* Row i of the gradient, as it lies.  acc is widened where dx is made. */
static inline void
ckr_norm_grad_at(void *dx, float *dscale, float *dbias, const void *dy,
                 const void *x, const float *scale, float mean, float rstd,
                 const void *acc, int centre, const struct ckr_norm *c,
                 int64_t i)
{
	int64_t n = c->n, own = 2 + 3 * omp_get_thread_num();
	float *to = ckr_norm_make(c, dx, i, own + 2);
	const float *d = ckr_norm_read(c, dy, i, own);
	const float *a = ckr_norm_read(c, x, i, own + 1);

	ckr_norm_grad_sums(dscale, dbias, d, a, n, mean, rstd);
	if (!dx)
		return;
	ckr_norm_grad_row(to, acc ? ckr_norm_read(c, acc, i, own + 2) : NULL,
	                  d, a, scale, n, mean, rstd, centre);
	ckr_row_put(dx, c->x, i * n, to, n);
}

/* A gradient of scale or bias from its parts. */
static inline void
ckr_norm_sum(void *y, const float *part, int64_t nparts, int64_t stride,
             const struct ckr_norm *c)
{
	float *sum = ckr_row_new(ckr_norm_row(c, 0), y, c->scale, 0);

	if (!y)
		return;
	ckr_add_parts(sum, part, nparts, stride, c->n);
	ckr_row_put(y, c->scale, 0, sum, c->n);
}

void
ckr_norm_grad(void *dx, void *dscale, void *dbias, const void *dy,
              const void *x, const void *scales, const float *mean,
              const float *rstd, const void *acc, const struct ckr_norm *c,
              int64_t part_rows, float *part, const struct ckr_env *env)
{
	int64_t nparts = (c->rows + part_rows - 1) / part_rows, n = c->n;
	int64_t stride = mean ? 2 * n : n;
	const float *scale = ckr_row(ckr_norm_row(c, 0), scales, c->scale, 0,
	                             n);

	CKR_SHARE(c->rows * n)
	for (int64_t p = 0; p < nparts; p++) {
		float *ds = part + p * stride, *db = ds + n;
		int64_t end = ckr_least(c->rows, (p + 1) * part_rows);

		memset(ds, 0, (size_t)stride * sizeof *ds);
		for (int64_t i = p * part_rows; i < end; i++)
			ckr_norm_grad_at(dx, dscale ? ds : NULL,
				dbias && mean ? db : NULL, dy, x, scale,
				mean ? mean[i] : 0.0f, rstd[i], acc,
				mean != NULL, c, i);
	}
	ckr_norm_sum(dscale, part, nparts, stride, c);
	ckr_norm_sum(dbias, part + n, nparts, stride, c);
}
