/* Pools: a thread per result; gradients are gathered, or added in the order of
 * the windows. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_POOL_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_POOL_CUH

#include "windows.h"

/* Window w of a plane. */
CKR_DEVICE void
ckr_cover_of(const struct ckr_pool *p, int64_t w, struct ckr_cover *v)
{
	struct ckr_spatial o = ckr_split(p->out, w);

	v->at[0] = ckr_pool_taps(p, 0, o.d, &v->lo[0], &v->hi[0]);
	v->at[1] = ckr_pool_taps(p, 1, o.h, &v->lo[1], &v->hi[1]);
	v->at[2] = ckr_pool_taps(p, 2, o.w, &v->lo[2], &v->hi[2]);
}

/* The first of equals, the last NaN. */
template <typename T> CKR_GLOBAL
ckr_maxpool_device(struct ckr_pool p, T *y, int32_t *idx, const T *x)
{
	int64_t in = ckr_volume(p.in), out = ckr_volume(p.out);

	CKR_TASKS(int64_t, t, p.planes * out) {
		int64_t plane = ckr_div(t, out);
		const T *from = x + plane * in;
		float best = -__builtin_inff();
		struct ckr_cover v;
		int32_t at = -1;

		ckr_cover_of(&p, t - plane * out, &v);
		for (int64_t kd = v.lo[0]; kd < v.hi[0]; kd++)
		for (int64_t kh = v.lo[1]; kh < v.hi[1]; kh++) {
			int64_t row = ckr_cover_row(&p, &v, kd, kh);

			for (int64_t k = v.lo[2]; k < v.hi[2]; k++) {
				int64_t i = row + k * p.dilation[2];
				float e = ckr_get(from[i]);
				bool take = e > best || e != e || at < 0;

				best = take ? e : best;
				at = take ? (int32_t)i : at;
			}
		}
		if (y)
			ckr_put(&y[t], best);
		if (idx)
			idx[t] = at;
	}
}

/* y or idx may be NULL. */
template <typename T> static inline void
ckr_maxpool(const struct ckr_pool *p, ckr_is<T> *y, int32_t *idx,
            const T *x, const struct ckr_env *env)
{
	int64_t n = p->planes * ckr_volume(p->out);

	CKR_EACH(ckr_maxpool_device<T>, n, env, *p, y, idx, x);
}

/* A warp for each plane, which walks its windows. */
template <typename T> CKR_GLOBAL
ckr_maxpool_grad_device(float *dx, const T *dy, const int32_t *idx,
                        int64_t planes, int64_t in, int64_t out)
{
	enum { WARPS = CKR_THREADS / CKR_WARP };
	int lane = threadIdx.x % CKR_WARP, warp = threadIdx.x / CKR_WARP;

	CKR_BLOCK_TASKS(b, (planes + WARPS - 1) / WARPS) {
		int64_t plane = b * WARPS + warp, n = plane < planes ? in : 0;
		float *to = dx + plane * in;

		for (int64_t i = lane; i < n; i += CKR_WARP)
			to[i] = 0.0f;
		__syncwarp();
		n = plane < planes ? out : 0;
		for (int64_t i = 0; i < n; i += CKR_WARP) {
			int64_t at = plane * out + i + lane;
			int64_t key = i + lane < n ? idx[at] : -1;

			key = key < in ? key : -1;
			ckr_add_in_order(to, key, key < 0 ? 0.0f
			                 : ckr_get(dy[at]));
		}
	}
}

/* room: dx in float32, if it is not. */
template <typename T> static inline void
ckr_maxpool_grad(T *dx, const T *dy, const int32_t *idx, int64_t planes,
                 int64_t in, int64_t out, const struct ckr_env *env,
                 float *room = NULL)
{
	float *sums = ckr_sums_of(dx, room);

	if (planes * in == 0)
		return;
	CKR_EACH_BLOCK(ckr_maxpool_grad_device<T>,
	               ckr_ceil_div(planes, CKR_THREADS / CKR_WARP),
	               CKR_THREADS, 0, env, sums, dy, idx, planes, in, out);
	ckr_sums_done(dx, sums, planes * in, env);
}

/* ---- averages ---- */

template <typename T> CKR_GLOBAL
ckr_avgpool_device(struct ckr_pool p, T *y, const T *x)
{
	int64_t in = ckr_volume(p.in), out = ckr_volume(p.out);

	CKR_TASKS(int64_t, t, p.planes * out) {
		int64_t plane = ckr_div(t, out);
		struct ckr_cover v;

		ckr_cover_of(&p, t - plane * out, &v);
		ckr_put(&y[t], ckr_cover_mean(&p, &v, x + plane * in));
	}
}

template <typename T> static inline void
ckr_avgpool(const struct ckr_pool *p, T *y, const T *x,
            const struct ckr_env *env)
{
	int64_t n = p->planes * ckr_volume(p->out);

	CKR_EACH(ckr_avgpool_device<T>, n, env, *p, y, x);
}

/* The gradient of element e of a plane, summed in the order of windows. */
template <typename T> CKR_DEVICE float
ckr_avgpool_share(const struct ckr_pool *p, const T *dy,
                  const struct ckr_spatial &e)
{
	float sum = 0.0f;

	for (int64_t kd = p->kernel[0] - 1; kd >= 0; kd--)
	for (int64_t kh = p->kernel[1] - 1; kh >= 0; kh--)
	for (int64_t kw = p->kernel[2] - 1; kw >= 0; kw--) {
		int64_t od = ckr_window_at(*p, e.d, kd, 0);
		int64_t oh = ckr_window_at(*p, e.h, kh, 1);
		int64_t ow = ckr_window_at(*p, e.w, kw, 2);
		struct ckr_cover v;
		int64_t at;

		if (od < 0 || oh < 0 || ow < 0)
			continue;
		at = (od * p->out[1] + oh) * p->out[2] + ow;
		ckr_cover_of(p, at, &v);
		sum += ckr_get(dy[at]) / ckr_pool_share(p, &v);
	}
	return sum;
}

template <typename T> CKR_GLOBAL
ckr_avgpool_grad_device(struct ckr_pool p, T *dx, const T *dy)
{
	int64_t in = ckr_volume(p.in), out = ckr_volume(p.out);

	CKR_TASKS(int64_t, t, p.planes * in) {
		int64_t plane = ckr_div(t, in);

		ckr_put(&dx[t], ckr_avgpool_share(&p, dy + plane * out,
		                                  ckr_split(p.in, t - plane
		                                            * in)));
	}
}

template <typename T> static inline void
ckr_avgpool_grad(const struct ckr_pool *p, T *dx, const T *dy,
                 const struct ckr_env *env)
{
	int64_t n = p->planes * ckr_volume(p->in);

	CKR_EACH(ckr_avgpool_grad_device<T>, n, env, *p, dx, dy);
}

#endif
