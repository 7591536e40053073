/* Layer and RMS normalisation: x is [rows, n], a row a block's. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_NORM_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_NORM_CUH

#include "lines.cuh"

/* Types are those of the operands, which say them too. */
struct ckr_norm {
	int64_t rows, n;
	double eps;
	int x, scale;
};

/* centre 0: rmsnorm, whose mean is 0. */
template <typename X, typename S, int PER> CKR_GLOBAL
ckr_norm_rows(X *y, float *mean, float *rstd, const X *x, const S *scale,
              const S *bias, int64_t rows, int64_t n, float eps, int centre,
              bool whole, bool whole_scale)
{
	__shared__ float room[CKR_WARP];
	ckr_line<X, PER> a;
	enum { N = ckr_line<X, PER>::N };

	CKR_BLOCK_TASKS(i, rows) {
		X *to = y + i * n;
		float m = 0.0f, s = 0.0f, r;

		a.load(x + i * n, n, whole);
		if (centre) {
			a.each([&](float &v, int64_t) { m += v; });
			m = ckr_block_sum(m, room) / (float)n;
		}
		a.each([&](float &v, int64_t) { s += (v - m) * (v - m); });
		s = ckr_block_sum(s, room) / (float)n;
		r = 1.0f / __builtin_sqrtf(s + eps);
		if (mean && threadIdx.x == 0)
			mean[i] = m;
		if (rstd && threadIdx.x == 0)
			rstd[i] = r;
		if (!y)
			continue;
		a.packs([&](int, int64_t at, float *v) {
			float w[N], b[N];

			ckr_fetch<N>(w, scale, at, n, whole_scale);
			if (bias)
				ckr_fetch<N>(b, bias, at, n, whole_scale);
#pragma unroll
			for (int j = 0; j < N; j++) {
				w[j] = (v[j] - m) * r * w[j];
				w[j] = bias ? w[j] + b[j] : w[j];
			}
			ckr_write<N>(to, w, at, n, whole);
		});
	}
}

template <typename X, typename S> void
ckr_norm_forward(X *y, float *mean, float *rstd, const X *x, const S *scale,
                 const S *bias, const struct ckr_norm *c, int centre,
                 struct ckr_env *env)
{
	int64_t n = c->n;

	CKR_LINES(X, n, CKR_EACH_BLOCK((ckr_norm_rows<X, S, PER>), c->rows,
		ckr_line_threads<X>(n), 0, env, y, mean, rstd, x, scale, bias,
		c->rows, n, (float)c->eps, centre, ckr_whole(x, n)
		&& ckr_whole(y, n), ckr_whole(scale, n) && ckr_whole(bias, n)
		&& n % ckr_vec<X>::N == 0));
}

template <typename X, typename S> void
ckr_layernorm(ckr_is<X> *y, float *mean, float *rstd, const X *x,
              const S *scale, const ckr_is<S> *bias, const struct ckr_norm *c,
              struct ckr_env *env)
{
	ckr_norm_forward(y, mean, rstd, x, scale, bias, c, 1, env);
}

template <typename X, typename S> void
ckr_rmsnorm(ckr_is<X> *y, float *rstd, const X *x, const S *scale,
            const struct ckr_norm *c, struct ckr_env *env)
{
	ckr_norm_forward(y, (float *)nullptr, rstd, x, scale,
	                 (const S *)nullptr, c, 0, env);
}

/* Gradient of part_rows rows, one by one; a thread keeps the sums of its
 * columns.  part [parts, 2, n]: of scale's gradient and of bias'.  acc, if
 * given, is added to dx, which may be written over it. */
template <typename X, typename S, int PER> CKR_GLOBAL
__launch_bounds__(CKR_LINE_THREADS)
ckr_norm_grad_rows(X *dx, float *part, const X *dy, const X *x,
                   const S *scale, const float *mean, const float *rstd,
                   const X *acc, int64_t rows, int64_t n, int64_t part_rows,
                   bool whole, bool whole_scale)
{
	__shared__ float room[CKR_WARP];
	enum { N = ckr_line<X, PER>::N, KEPT = ckr_line<X, PER>::KEPT };
	float ds[KEPT][N], db[KEPT][N];
	float *to = part + blockIdx.x * 2 * n;
	int64_t end = (blockIdx.x + 1) * part_rows;
	ckr_line<X, PER> a;

	a.n = n;
#pragma unroll
	for (int k = 0; k < KEPT; k++)
#pragma unroll
		for (int j = 0; j < N; j++)
			ds[k][j] = db[k][j] = 0.0f;
	if constexpr (PER == 0)
		for (int64_t j = threadIdx.x * N; j < n; j += blockDim.x * N)
			for (int k = 0; k < N && j + k < n; k++)
				to[j + k] = to[n + j + k] = 0.0f;
	for (int64_t i = blockIdx.x * part_rows; i < end && i < rows; i++) {
		const X *d_row = dy + i * n;
		X *dx_row = dx + i * n;
		float m = mean ? mean[i] : 0.0f, r = rstd[i];
		float sum = 0.0f, product = 0.0f, d[KEPT][N];

		a.load(x + i * n, n, whole);
		a.packs([&](int k, int64_t at, float *v) {
			float w[N];

			ckr_fetch<N>(d[k], d_row, at, n, whole);
			ckr_fetch<N>(w, scale, at, n, whole_scale);
#pragma unroll
			for (int j = 0; j < N; j++) {
				float t = d[k][j] * w[j], z = v[j] - m;

				if (at + j >= n)
					break;
				sum += t;
				product += t * z;
				if (PER) {
					ds[k][j] += d[k][j] * (z * r);
					db[k][j] += d[k][j];
				} else {
					to[at + j] += d[k][j] * (z * r);
					to[n + at + j] += d[k][j];
				}
			}
		});
		if (!dx)
			continue;
		sum = ckr_block_sum(sum, room);
		product = ckr_block_sum(product, room);
		sum = mean ? sum / (float)n : 0.0f;
		product = product * r * r / (float)n;
		a.packs([&](int k, int64_t at, float *v) {
			float w[N], b[N];

			if (!PER)
				ckr_fetch<N>(d[k], d_row, at, n, whole);
			ckr_fetch<N>(w, scale, at, n, whole_scale);
			if (acc)
				ckr_fetch<N>(b, acc + i * n, at, n, whole);
#pragma unroll
			for (int j = 0; j < N; j++) {
				w[j] = r * (d[k][j] * w[j] - sum
				            - (v[j] - m) * product);
				w[j] = acc ? b[j] + w[j] : w[j];
			}
			ckr_write<N>(dx_row, w, at, n, whole);
		});
	}
	if constexpr (PER > 0)
#pragma unroll
		for (int k = 0; k < KEPT; k++)
#pragma unroll
			for (int j = 0; j < N; j++) {
				int64_t at = a.place(k) + j;

				if (at < n) {
					to[at] = ds[k][j];
					to[n + at] = db[k][j];
				}
			}
}

template <typename X, typename S> void
ckr_norm_grad(ckr_is<X> *dx, ckr_any dscale, ckr_any dbias, const X *dy,
              const X *x, const S *scale, const float *mean, const float *rstd,
              const ckr_is<X> *acc, const struct ckr_norm *c,
              int64_t part_rows, float *part, struct ckr_env *env)
{
	int64_t n = c->n, nparts = (c->rows + part_rows - 1) / part_rows;
	bool whole = ckr_whole(x, n) && ckr_whole(dy, n) && ckr_whole(dx, n)
	             && ckr_whole(acc, n);

	if (c->rows > 0)
		CKR_LINES(X, n, CKR_LAUNCH_BLOCK(
			(ckr_norm_grad_rows<X, S, PER>), nparts,
			ckr_line_threads<X>(n), 0, env, dx, part, dy, x, scale,
			mean, rstd, acc, c->rows, n, part_rows, whole,
			ckr_whole(scale, n) && n % ckr_vec<X>::N == 0));
	ckr_column_pairs(dscale, dbias, part, nparts, n, env);
}

#endif
