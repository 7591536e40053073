/* Softmax and cross entropy on independent rows.
 *
 * A row whose elements are neighbours is a block's (lines.cuh); one whose
 * elements lie apart is a thread's, next to others.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_ROWS_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_ROWS_CUH

#include "lines.cuh"
#include "places.h"
#include "classes.h"

/* ---- softmax: x is [outer, n, inner], over n ---- */

template <typename T, int PER> CKR_GLOBAL
ckr_softmax_rows(T *y, const T *x, int64_t rows, int64_t n, int log,
                 bool whole)
{
	__shared__ float room[CKR_WARP];
	ckr_line<T, PER> a;

	CKR_BLOCK_TASKS(i, rows) {
		float m, s = 0.0f;

		a.load(x + i * n, n, whole);
		m = ckr_row_top(a.max(room));
		a.each([&](float &v, int64_t) {
			float e = ckr_exp(v - m);

			s += e;
			v = log ? v : e;
		});
		s = ckr_block_sum(s, room);
		s = ckr_row_end(m, s, log);
		a.store(y + i * n, whole, [&](float v, int64_t) {
			if (log)
				return v - s;
			return (PER ? v : ckr_exp(v - m)) * s;
		});
	}
}

/* Maximum and sum of exponentials of n elements, `inner` apart. */
template <typename T> CKR_DEVICE void
ckr_column_stats(const T *x, int64_t n, int64_t inner, float *m, float *s)
{
	*m = -__builtin_inff(), *s = 0.0f;
#pragma unroll 4
	for (int64_t i = 0; i < n; i++) {
		float v = ckr_get(x[i * inner]);

		*m = v > *m ? v : *m;
	}
	*m = ckr_row_top(*m);
#pragma unroll 4
	for (int64_t i = 0; i < n; i++)
		*s += ckr_exp(ckr_get(x[i * inner]) - *m);
}

template <typename T> CKR_GLOBAL
ckr_softmax_columns(T *y, const T *x, int64_t outer, int64_t n, int64_t inner,
                    int log)
{
	CKR_TASKS(int64_t, t, outer * inner) {
		int64_t at = t / inner * n * inner + t % inner;
		float m, s;

		ckr_column_stats(x + at, n, inner, &m, &s);
		s = ckr_row_end(m, s, log);
#pragma unroll 4
		for (int64_t i = 0; i < n; i++) {
			float v = ckr_get(x[at + i * inner]);

			ckr_put(&y[at + i * inner],
			        log ? v - s : ckr_exp(v - m) * s);
		}
	}
}

template <typename T> void
ckr_softmax(T *y, const T *x, int64_t outer, int64_t n, int64_t inner,
            int log, struct ckr_env *env)
{
	if (inner > 1) {
		CKR_EACH(ckr_softmax_columns<T>, outer * inner, env, y, x,
		         outer, n, inner, log);
		return;
	}
	CKR_LINES(T, n, CKR_EACH_BLOCK((ckr_softmax_rows<T, PER>), outer,
		ckr_line_threads<T>(n), 0, env, y, x, outer, n, log,
		ckr_whole(x, n) && ckr_whole(y, n)));
}

/* The term of dy and y in the row's sum; the gradient. */
CKR_DEVICE float
ckr_softmax_term(float dy, float y, int log)
{
	return log ? dy : dy * y;
}

CKR_DEVICE float
ckr_softmax_dx(float dy, float y, float s, int log)
{
	return log ? dy - ckr_exp(y) * s : y * (dy - s);
}

template <typename T, typename D, int PER> CKR_GLOBAL
ckr_softmax_grad_rows(T *dx, const D *dy, const T *y, int64_t rows, int64_t n,
                      int log, bool whole)
{
	__shared__ float room[CKR_WARP];
	ckr_line<T, PER> a;
	enum { N = ckr_line<T, PER>::N };

	CKR_BLOCK_TASKS(i, rows) {
		const D *from = dy + i * n;
		T *to = dx + i * n;
		float s = 0.0f;

		a.load(y + i * n, n, whole);
		a.packs([&](int, int64_t at, float *v) {
			float d[N];

			ckr_fetch<N>(d, from, at, n, whole);
#pragma unroll
			for (int j = 0; j < N; j++)
				if (at + j < n)
					s += ckr_softmax_term(d[j], v[j], log);
		});
		s = ckr_block_sum(s, room);
		a.packs([&](int, int64_t at, float *v) {
			float d[N];

			ckr_fetch<N>(d, from, at, n, whole);
#pragma unroll
			for (int j = 0; j < N; j++)
				d[j] = ckr_softmax_dx(d[j], v[j], s, log);
			ckr_write<N>(to, d, at, n, whole);
		});
	}
}

template <typename T, typename D> CKR_GLOBAL
ckr_softmax_grad_columns(T *dx, const D *dy, const T *y, int64_t outer,
                         int64_t n, int64_t inner, int log)
{
	CKR_TASKS(int64_t, t, outer * inner) {
		int64_t at = t / inner * n * inner + t % inner;
		float s = 0.0f;

#pragma unroll 4
		for (int64_t i = at; i < at + n * inner; i += inner)
			s += ckr_softmax_term(ckr_get(dy[i]), ckr_get(y[i]),
			                      log);
#pragma unroll 4
		for (int64_t i = at; i < at + n * inner; i += inner)
			ckr_put(&dx[i], ckr_softmax_dx(ckr_get(dy[i]),
				ckr_get(y[i]), s, log));
	}
}

template <typename T, typename D> void
ckr_softmax_grad(T *dx, const D *dy, const T *y, int64_t outer, int64_t n,
                 int64_t inner, int log, struct ckr_env *env)
{
	bool whole = ckr_whole(dx, n) && ckr_whole(dy, n) && ckr_whole(y, n);

	if (inner > 1) {
		CKR_EACH((ckr_softmax_grad_columns<T, D>), outer * inner, env,
		         dx, dy, y, outer, n, inner, log);
		return;
	}
	CKR_LINES(T, n, CKR_EACH_BLOCK((ckr_softmax_grad_rows<T, D, PER>),
		outer, ckr_line_threads<T>(n), 0, env, dx, dy, y, outer, n, log, whole));
}

/* ---- cross entropy: x is [rows, n, inner], labels [rows, inner] ---- */

/* Log-sum-exp of rows. */
template <typename T, int PER> CKR_GLOBAL
ckr_lse_rows(float *lse, const T *x, int64_t rows, int64_t n, bool whole)
{
	__shared__ float room[CKR_WARP];
	ckr_line<T, PER> a;

	CKR_BLOCK_TASKS(i, rows) {
		float m, s = 0.0f;

		a.load(x + i * n, n, whole);
		m = a.max(room);
		a.each([&](float &v, int64_t) { s += ckr_exp(v - m); });
		s = ckr_block_sum(s, room);
		if (threadIdx.x == 0)
			lse[i] = m + ckr_log(s);
	}
}

template <typename T> CKR_GLOBAL
ckr_lse_columns(float *lse, const T *x, int64_t rows, int64_t n, int64_t inner)
{
	CKR_TASKS(int64_t, t, rows * inner) {
		float m, s;

		ckr_column_stats(x + t / inner * n * inner + t % inner, n,
		                 inner, &m, &s);
		lse[t] = m + ckr_log(s);
	}
}

template <typename T> void
ckr_lse(float *lse, const T *x, int64_t rows, int64_t n, int64_t inner,
        struct ckr_env *env)
{
	if (inner > 1) {
		CKR_EACH(ckr_lse_columns<T>, rows * inner, env, lse, x, rows, n,
		         inner);
		return;
	}
	CKR_LINES(T, n, CKR_EACH_BLOCK((ckr_lse_rows<T, PER>), rows,
		ckr_line_threads<T>(n), 0, env, lse, x, rows, n, ckr_whole(x, n)));
}

/* Each block has a slice of the labels, parts[0 .. 1][block] their losses and
 * weights.  F: loss of label k of class c, but for its weight. */
template <typename F> CKR_DEVICE void
ckr_loss_part(ckr_any loss, float *parts, const struct ckr_labels &l,
              int64_t count, int reduction, struct ckr_env *env, F f)
{
	__shared__ float room[CKR_WARP];
	int64_t size = (count + gridDim.x - 1) / gridDim.x;
	int64_t begin = blockIdx.x * size;
	int64_t end = begin + size < count ? begin + size : count;
	float s = 0.0f, w = 0.0f;

	for (int64_t k = begin + threadIdx.x; k < end; k += blockDim.x) {
		int64_t c = ckr_label(&l, k, env);
		float wc = ckr_label_weight(&l, c);
		float t = c < 0 ? 0.0f : wc * f(k, c);

		if (loss.at && !reduction)
			ckr_set(loss, k, t);
		s += t;
		w += wc;
	}
	s = ckr_block_sum(s, room);
	w = ckr_block_sum(w, room);
	if (threadIdx.x == 0) {
		parts[blockIdx.x] = s;
		parts[CKR_LOSS_PARTS + blockIdx.x] = w;
	}
}

/* The loss from sums of parts: none of it if the loss is per row. */
CKR_GLOBAL
ckr_loss_finish(ckr_any loss, float *denom, const float *parts, int nparts,
                int reduction)
{
	__shared__ float room[CKR_WARP];
	int i = (int)threadIdx.x;
	float s = ckr_block_sum(i < nparts ? parts[i] : 0.0f, room);
	float w = ckr_block_sum(i < nparts ? parts[CKR_LOSS_PARTS + i] : 0.0f,
	                        room);

	if (i)
		return;
	if (denom)
		*denom = reduction == 1 ? w : 1.0f;
	if (loss.at && reduction)
		ckr_set(loss, 0, reduction == 1 ? s / w : s);
}

/* Blocks that share so many labels. */
static inline int64_t
ckr_loss_blocks(int64_t count)
{
	int64_t n = (count + CKR_THREADS - 1) / CKR_THREADS;

	return n < 1 ? 1 : ckr_least(n, CKR_LOSS_PARTS);
}

template <typename T> CKR_GLOBAL
ckr_sce_part_kernel(ckr_any loss, float *parts, const T *x, const float *lse,
                    struct ckr_labels l, int64_t rows, int64_t n,
                    int64_t inner, int reduction, struct ckr_env *env)
{
	ckr_loss_part(loss, parts, l, rows * inner, reduction, env,
	              [&](int64_t k, int64_t c) {
		int64_t at = k / inner * n * inner + k % inner;

		return (lse ? lse[k] : 0.0f) - ckr_get(x[at + c * inner]);
	});
}

/* logp 1: x holds log-probabilities already (nll).  parts: sums of parts, and
 * where there is no lse room for it.  ORDER WORK. */
template <typename T> void
ckr_sce(ckr_any loss, float *lse, float *denom, const T *x,
        const struct ckr_labels *l, int64_t rows, int64_t n, int64_t inner,
        int reduction, int logp, float *parts, struct ckr_env *env)
{
	int64_t blocks = ckr_loss_blocks(rows * inner);

	if (!logp && !lse)
		lse = parts + 2 * CKR_LOSS_PARTS;
	if (!logp && rows * inner > 0)
		ckr_lse(lse, x, rows, n, inner, env);
	CKR_LAUNCH_BLOCK(ckr_sce_part_kernel<T>, blocks, CKR_THREADS, 0, env,
	                 loss, parts, x, lse, *l, rows, n, inner, reduction,
	                 env->device);
	CKR_LAUNCH_BLOCK(ckr_loss_finish, 1, CKR_LOSS_PARTS, 0, env, loss,
	                 denom, parts, (int)blocks, reduction);
}

/* dx, x: [rows, size], a part of the classes; padding of the last shard gets
 * zeros. */
template <typename T> CKR_GLOBAL
ckr_sce_grad_part_kernel(T *dx, ckr_any dloss, const T *x, struct ckr_labels l,
                         ckr_any lse, ckr_any denom, int64_t rows,
                         int64_t size, struct ckr_part part, int reduction,
                         bool whole, struct ckr_env *env)
{
	ckr_line<T, 0> a;

	CKR_BLOCK_TASKS(i, rows) {
		int64_t c = ckr_label(&l, i, env), n = c < 0 ? 0 : part.n;
		float g = ckr_loss_factor(&l, dloss, denom, i, c, reduction);
		float z = ckr_at(lse, i);

		c = ckr_in_part(&part, c);
		a.load(x + i * size, size, whole);
		a.store(dx + i * size, whole, [&](float v, int64_t q) {
			float p = ckr_exp(v - z) * g;

			return q >= n ? 0.0f : q == c ? p - g : p;
		});
	}
}

template <typename T> void
ckr_sce_grad_part(T *dx, ckr_any dloss, const T *x, const struct ckr_labels *l,
                  ckr_any lse, ckr_any denom, int64_t rows, int64_t size,
                  struct ckr_part part, int reduction, struct ckr_env *env)
{
	CKR_EACH_BLOCK(ckr_sce_grad_part_kernel<T>, rows,
	               ckr_line_threads<T>(size), 0, env, dx, dloss, x, *l, lse,
	               denom, rows, size, part, reduction,
	               ckr_whole(x, size) && ckr_whole(dx, size), env->device);
}

template <typename T> CKR_GLOBAL
ckr_sce_grad_columns(T *dx, ckr_any dloss, const T *x, struct ckr_labels l,
                     ckr_any lse, ckr_any denom, int64_t rows, int64_t n,
                     int64_t inner, int reduction, struct ckr_env *env)
{
	CKR_TASKS(int64_t, k, rows * inner) {
		int64_t at = k / inner * n * inner + k % inner;
		int64_t c = ckr_label(&l, k, env);
		float g = ckr_loss_factor(&l, dloss, denom, k, c, reduction);
		float z = ckr_at(lse, k);

#pragma unroll 4
		for (int64_t q = 0; q < n; q++) {
			float v = ckr_get(x[at + q * inner]);
			float p = ckr_exp(v - z) * g;

			ckr_put(&dx[at + q * inner],
			        c < 0 ? 0.0f : q == c ? p - g : p);
		}
	}
}

template <typename T> void
ckr_sce_grad(T *dx, ckr_any dloss, const T *x, const struct ckr_labels *l,
             ckr_any lse, ckr_any denom, int64_t rows, int64_t n,
             int64_t inner, int reduction, struct ckr_env *env)
{
	const struct ckr_part all = { n, 0, n };

	if (inner > 1)
		CKR_EACH(ckr_sce_grad_columns<T>, rows * inner, env, dx, dloss,
		         x, *l, lse, denom, rows, n, inner, reduction,
		         env->device);
	else
		ckr_sce_grad_part(dx, dloss, x, l, lse, denom, rows, n, all,
		                  reduction, env);
}

template <typename T> CKR_GLOBAL
ckr_nll_grad_kernel(T *dx, ckr_any dloss, struct ckr_labels l, ckr_any denom,
                    int64_t rows, int64_t n, int64_t inner, int reduction,
                    struct ckr_env *env)
{
	CKR_TASKS(int64_t, e, rows * n * inner) {
		int64_t q = e / inner % n, k = e / (n * inner) * inner
			+ e % inner;
		int64_t c = ckr_label_read(&l, k);
		float g = 0.0f;

		if (q == 0)
			ckr_label(&l, k, env);
		if (c == q && c != l.ignore)
			g = -ckr_loss_factor(&l, dloss, denom, k, c, reduction);
		ckr_put(&dx[e], g);
	}
}

template <typename T> void
ckr_nll_grad(T *dx, ckr_any dloss, const struct ckr_labels *l, ckr_any denom,
             int64_t rows, int64_t n, int64_t inner, int reduction,
             struct ckr_env *env)
{
	CKR_EACH(ckr_nll_grad_kernel<T>, rows * n * inner, env, dx, dloss, *l,
	         denom, rows, n, inner, reduction, env->device);
}

#endif
