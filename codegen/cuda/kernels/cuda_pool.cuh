/* Pools: a thread per result; gradients are gathered, or added in the order of
 * the windows. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_POOL_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_POOL_CUH

CKR_LANE int64_t
ckr_volume(const int64_t *v)
{
	return v[0] * v[1] * v[2];
}

/* Window w of a plane. */
CKR_DEVICE void
ckr_cover_of(const struct ckr_pool *p, int64_t w, struct ckr_cover *v)
{
	int64_t line = ckr_div(w, p->out[2]), d = ckr_div(line, p->out[1]);

	v->at[0] = ckr_pool_taps(p, 0, d, &v->lo[0], &v->hi[0]);
	v->at[1] = ckr_pool_taps(p, 1, line - d * p->out[1], &v->lo[1],
	                         &v->hi[1]);
	v->at[2] = ckr_pool_taps(p, 2, w - line * p->out[2], &v->lo[2],
	                         &v->hi[2]);
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

	if (n > 0)
		CKR_LAUNCH(ckr_maxpool_device<T>, ckr_blocks(n), CKR_THREADS,
		           0, env, *p, y, idx, x);
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
	CKR_LAUNCH_BLOCK(ckr_maxpool_grad_device<T>,
	                 ckr_least(ckr_ceil_div(planes, CKR_THREADS
	                                        / CKR_WARP), INT32_MAX),
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
		const T *from = x + plane * in;
		struct ckr_cover v;
		float sum = 0.0f;

		ckr_cover_of(&p, t - plane * out, &v);
		for (int64_t kd = v.lo[0]; kd < v.hi[0]; kd++)
		for (int64_t kh = v.lo[1]; kh < v.hi[1]; kh++) {
			int64_t row = ckr_cover_row(&p, &v, kd, kh);

			for (int64_t k = v.lo[2]; k < v.hi[2]; k++)
				sum += ckr_get(from[row + k * p.dilation[2]]);
		}
		ckr_put(&y[t], sum / ckr_pool_share(&p, &v));
	}
}

template <typename T> static inline void
ckr_avgpool(const struct ckr_pool *p, T *y, const T *x,
            const struct ckr_env *env)
{
	int64_t n = p->planes * ckr_volume(p->out);

	if (n > 0)
		CKR_LAUNCH(ckr_avgpool_device<T>, ckr_blocks(n), CKR_THREADS,
		           0, env, *p, y, x);
}

/* The window whose tap k along dim i is element `at`; -1: there is none. */
CKR_DEVICE int64_t
ckr_window_at(int64_t at, int64_t k, const int64_t *stride,
              const int64_t *dilation, const int64_t *begin,
              const int64_t *out, int i)
{
	int64_t x = at + begin[i] - k * dilation[i], o;

	if (x < 0)
		return -1;
	o = ckr_div(x, stride[i]);
	return o * stride[i] == x && o < out[i] ? o : -1;
}

/* The gradient of element (d, h, w) of a plane, summed in the order of windows.
 */
template <typename T> CKR_DEVICE float
ckr_avgpool_share(const struct ckr_pool *p, const T *dy, int64_t d, int64_t h,
                  int64_t w)
{
	float sum = 0.0f;

	for (int64_t kd = p->kernel[0] - 1; kd >= 0; kd--)
	for (int64_t kh = p->kernel[1] - 1; kh >= 0; kh--)
	for (int64_t kw = p->kernel[2] - 1; kw >= 0; kw--) {
		int64_t od = ckr_window_at(d, kd, p->stride, p->dilation,
		                           p->begin, p->out, 0);
		int64_t oh = ckr_window_at(h, kh, p->stride, p->dilation,
		                           p->begin, p->out, 1);
		int64_t ow = ckr_window_at(w, kw, p->stride, p->dilation,
		                           p->begin, p->out, 2);
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
		int64_t line = ckr_div(t, p.in[2]), w = t - line * p.in[2];
		int64_t slice = ckr_div(line, p.in[1]);
		int64_t plane = ckr_div(slice, p.in[0]);

		ckr_put(&dx[t], ckr_avgpool_share(&p, dy + plane * out,
			slice - plane * p.in[0], line - slice * p.in[1], w));
	}
}

template <typename T> static inline void
ckr_avgpool_grad(const struct ckr_pool *p, T *dx, const T *dy,
                 const struct ckr_env *env)
{
	int64_t n = p->planes * ckr_volume(p->in);

	if (n > 0)
		CKR_LAUNCH(ckr_avgpool_grad_device<T>, ckr_blocks(n),
		           CKR_THREADS, 0, env, *p, dx, dy);
}

#endif
