/* Convolutions: x is [images, group cin, in], y [images, group cout, out], w
 * [group cout, cin taps].  A sum of each result, or products over unfolded
 * patches; no two threads write to one place, sums have the order of channels
 * and taps.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_CONV_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_CONV_CUH

struct ckr_conv {
	int64_t images, group, cin, cout;       /* channels of one group */
	int64_t in[3], out[3], kernel[3], stride[3], dilation[3], begin[3];
	int64_t taps, in_size, out_size;        /* products of the above */
	int64_t line;                   /* out_size, made even */
	int direct;                     /* patches are the image */
	int64_t each, groups, channels, windows;        /* unfolded at a
	                                                 * time */
	int64_t planes, sum, own, all;  /* parts of workspace, in bytes */
};

/* The element that tap k of window o takes; -1: it is in the padding. */
CKR_DEVICE int64_t
ckr_tap_at(const struct ckr_conv &c, const struct ckr_spatial &o,
           const struct ckr_spatial &k)
{
	int64_t d = o.d * c.stride[0] + k.d * c.dilation[0] - c.begin[0];
	int64_t h = o.h * c.stride[1] + k.h * c.dilation[1] - c.begin[1];
	int64_t w = o.w * c.stride[2] + k.w * c.dilation[2] - c.begin[2];

	if (d < 0 || d >= c.in[0] || h < 0 || h >= c.in[1] || w < 0
	    || w >= c.in[2])
		return -1;
	return (d * c.in[1] + h) * c.in[2] + w;
}

#define CKR_FOR_TAPS(c, k) \
	for (struct ckr_spatial k = { 0, 0, 0 }; k.d < (c).kernel[0]; k.d++) \
		for (k.h = 0; k.h < (c).kernel[1]; k.h++) \
			for (k.w = 0; k.w < (c).kernel[2]; k.w++)

/* ---- a sum for each result ---- */

template <typename Y, typename X, typename W, typename B> CKR_GLOBAL
ckr_conv_device(struct ckr_conv c, Y *y, const X *x, const W *w, const B *bias)
{
	int64_t channels = c.group * c.cout;

	CKR_TASKS(int64_t, t, c.images * channels * c.out_size) {
		int64_t plane = ckr_div(t, c.out_size);
		int64_t image = ckr_div(plane, channels);
		int64_t co = plane - image * channels, g = ckr_div(co, c.cout);
		struct ckr_spatial o = ckr_split(c.out, t - plane
		                                 * c.out_size);
		const X *from = x + (image * c.group + g) * c.cin * c.in_size;
		const W *v = w + co * c.cin * c.taps;
		float sum = bias ? ckr_get(bias[co]) : 0.0f;

		for (int64_t i = 0; i < c.cin; i++, from += c.in_size)
			CKR_FOR_TAPS(c, k) {
				int64_t at = ckr_tap_at(c, o, k);

				sum += at < 0 ? 0.0f : ckr_get(from[at])
					* ckr_get(*v);
				v++;
			}
		ckr_put(&y[t], sum);
	}
}

template <typename Y, typename X, typename W, typename B> static inline void
ckr_conv(const struct ckr_conv &c, Y *y, const X *x, const W *w,
         const B *bias, const struct ckr_env *env)
{
	CKR_EACH((ckr_conv_device<Y, X, W, B>),
	         c.images * c.group * c.cout * c.out_size, env, c, y, x, w,
	         bias);
}

template <typename Y, typename X, typename W, typename B> CKR_GLOBAL
ckr_conv_dx_device(struct ckr_conv c, Y *dx, const X *dy, const W *w,
                   const B *bias)
{
	int64_t channels = c.group * c.cin;

	CKR_TASKS(int64_t, t, c.images * channels * c.in_size) {
		int64_t plane = ckr_div(t, c.in_size);
		int64_t image = ckr_div(plane, channels);
		int64_t ci = plane - image * channels, g = ckr_div(ci, c.cin);
		struct ckr_spatial i = ckr_split(c.in, t - plane * c.in_size);
		const X *from = dy + (image * c.group + g) * c.cout
			* c.out_size;
		const W *v = w + (g * c.cout * c.cin + ci - g * c.cin)
			* c.taps;
		float sum = bias ? ckr_get(bias[ci]) : 0.0f;
		int64_t tap = 0;

		CKR_FOR_TAPS(c, k) {
			int64_t d = ckr_window_at(c, i.d, k.d, 0);
			int64_t h = ckr_window_at(c, i.h, k.h, 1);
			int64_t o = ckr_window_at(c, i.w, k.w, 2);
			int64_t at = (d * c.out[1] + h) * c.out[2] + o;

			for (int64_t co = 0; co < c.cout && d >= 0 && h >= 0
			     && o >= 0; co++)
				sum += ckr_get(from[co * c.out_size + at])
					* ckr_get(v[co * c.cin * c.taps + tap]);
			tap++;
		}
		ckr_put(&dx[t], sum);
	}
}

template <typename Y, typename X, typename W, typename B> static inline void
ckr_conv_dx(const struct ckr_conv &c, Y *dx, const X *dy, const W *w,
            const B *bias, const struct ckr_env *env)
{
	CKR_EACH((ckr_conv_dx_device<Y, X, W, B>),
	         c.images * c.group * c.cin * c.in_size, env, c, dx, dy, w,
	         bias);
}

/* A block for each weight. */
template <typename Y, typename X, typename D> CKR_GLOBAL
ckr_conv_dw_device(struct ckr_conv c, Y *dw, const X *x, const D *dy)
{
	CKR_SHARED(float, room);
	int64_t rows = c.cin * c.taps;

	CKR_BLOCK_TASKS(t, c.group * c.cout * rows) {
		int64_t co = t / rows, r = t - co * rows, ci = r / c.taps;
		int64_t plane = co / c.cout * c.cin + ci;
		struct ckr_spatial k = ckr_split(c.kernel, r - ci * c.taps);
		float sum = 0.0f;

		for (int64_t e = threadIdx.x; e < c.images * c.out_size;
		     e += CKR_THREADS) {
			int64_t image = ckr_div(e, c.out_size);
			int64_t i = e - image * c.out_size;
			int64_t at = ckr_tap_at(c, ckr_split(c.out, i), k);
			const X *from = x + (image * c.group * c.cin + plane)
				* c.in_size;

			sum += at < 0 ? 0.0f : ckr_get(from[at])
				* ckr_get(dy[(image * c.group * c.cout + co)
				             * c.out_size + i]);
		}
		sum = ckr_block_sum(sum, room);
		if (threadIdx.x == 0)
			ckr_put(&dw[t], sum);
	}
}

template <typename Y, typename X, typename D> static inline void
ckr_conv_dw(const struct ckr_conv &c, Y *dw, const X *x, const D *dy,
            const struct ckr_env *env)
{
	CKR_EACH_BLOCK((ckr_conv_dw_device<Y, X, D>),
	               c.group * c.cout * c.cin * c.taps, CKR_THREADS,
	               CKR_THREADS / CKR_WARP * sizeof(float), env, c, dw, x,
	               dy);
}

/* ---- products ---- */

/* Row k, window from + o of image i of group g: [g * sg + i * si + k * sk +
 * o]. */
struct ckr_patches {
	int64_t images, sg, si, sk, from, windows;
};

/* As many channels and groups of c as are unfolded at a time, and are there
 * from such a channel on.  Kernels that get a part take its images to lie
 * behind each other: it has all channels and groups, or is one image's. */
static inline struct ckr_conv
ckr_conv_part(const struct ckr_conv &c, int64_t channel)
{
	struct ckr_conv part = c;

	part.group = c.groups;
	part.cin = ckr_least(c.channels, c.cin - channel);
	return part;
}

/* Windows of a line side by side, zeros behind the last: a task has 8 of a
 * row. */
template <typename T> CKR_GLOBAL
ckr_unfold_device(struct ckr_conv c, struct ckr_patches s, T *col, const T *x)
{
	enum { N = 8 };
	int64_t packs = s.windows / N, rows = c.cin * c.taps;

	CKR_TASKS(int64_t, t, s.images * c.group * rows * packs) {
		int64_t line = ckr_div(t, packs), at_col = (t - line * packs)
			* N, q = s.from + at_col;
		int64_t plane = ckr_div(line, rows), r = line - plane * rows;
		int64_t i = ckr_div(plane, c.group), g = plane - i * c.group;
		int64_t ci = ckr_div(r, c.taps);
		struct ckr_spatial o = ckr_split(c.out, q);
		struct ckr_spatial k = ckr_split(c.kernel, r - ci * c.taps);
		const T *from = x + (plane * c.cin + ci) * c.in_size;
		ckr_pack<T, N> v;

#pragma unroll
		for (int j = 0; j < N; j++) {
			int64_t at = q + j < c.out_size ? ckr_tap_at(c, o, k)
			                                : -1;

			v.v[j] = at < 0 ? T() : from[at];
			if (++o.w == c.out[2]) {
				o.w = 0;
				if (++o.h == c.out[1]) {
					o.h = 0;
					o.d++;
				}
			}
		}
		ckr_store<N>(col + g * s.sg + i * s.si + r * s.sk + at_col, v);
	}
}

template <typename T> static inline void
ckr_unfold(const struct ckr_conv &c, const struct ckr_patches &s, T *col,
           const T *x, const struct ckr_env *env)
{
	CKR_EACH(ckr_unfold_device<T>,
	         s.images * c.group * c.cin * c.taps * s.windows / 8, env, c,
	         s, col, x);
}

/* Every channel of y [rows, n], or so, holds its bias. */
template <typename Y, typename B> CKR_GLOBAL
ckr_bias_device(Y *y, const B *bias, int64_t total, int64_t channels,
                int64_t size)
{
	CKR_TASKS(int64_t, t, total) {
		int64_t plane = ckr_div(t, size);

		ckr_put(&y[t], ckr_get(bias[plane - ckr_div(plane, channels)
		                            * channels]));
	}
}

template <typename Y, typename B> static inline void
ckr_bias(Y *y, const B *bias, int64_t images, int64_t channels, int64_t size,
         const struct ckr_env *env)
{
	int64_t n = images * channels * size;

	if (bias)
		CKR_EACH((ckr_bias_device<Y, B>), n, env, y, bias, n, channels,
		         size);
}

template <typename Y, typename B> CKR_GLOBAL
ckr_add_bias_device(Y *y, const B *bias, int64_t total, int64_t channels,
                    int64_t size)
{
	CKR_TASKS(int64_t, t, total) {
		int64_t plane = ckr_div(t, size);
		int64_t channel = plane - ckr_div(plane, channels) * channels;

		ckr_put(&y[t], ckr_get(y[t]) + ckr_get(bias[channel]));
	}
}

template <typename Y, typename B> static inline void
ckr_add_bias(Y *y, const B *bias, int64_t images, int64_t channels,
             int64_t size, const struct ckr_env *env)
{
	int64_t n = images * channels * size;

	CKR_EACH((ckr_add_bias_device<Y, B>), n, env, y, bias, n, channels,
	         size);
}

/* Whether the run time's library has computed convolution `job` of them. */
static inline bool
ckr_by_library(struct ckr_env *env, uint32_t job, const void *x, const void *w,
               const void *y, const void *work)
{
	return env->convolve && env->convolve(env, job, (void *)x, (void *)w,
	                                      (void *)y, (void *)work);
}

/* One product with the library's part of workspace; add: to what y holds. */
template <typename Y, typename T> static inline void
ckr_conv_gemm(const struct ckr_conv &c, struct ckr_gemm g, Y *y, const T *a,
              const T *b, bool add, char *workspace, struct ckr_env *env)
{
	g.a = g.b = ckr_type_of(a);
	g.y = ckr_type_of(y);
	g.c = add ? g.y : (uint8_t)CKR_NONE;
	g.ldc = g.ldy;
	g.sc = g.sy;
	g.alpha = 1.0f;
	env->gemm(env, &g, a, b, NULL, add ? y : NULL, y, workspace + c.own,
	          (uint64_t)(c.all - c.own));
}

/* Images i and on, from a window on. */
template <typename Y, typename T> static inline void
ckr_conv_windows(const struct ckr_conv &c, const struct ckr_patches &s,
                 int64_t i, Y *y, const T *x, const T *w, bool add,
                 struct ckr_env *env, char *workspace)
{
	int64_t rows = c.cin * c.taps;
	const T *col = c.direct ? x + i * s.si : (const T *)workspace;
	struct ckr_gemm g = { 0, 0, c.cout, ckr_least(s.windows, c.out_size
	                                              - s.from), rows };

	if (!c.direct)
		ckr_unfold(c, s, (T *)workspace, x + i * c.group * c.cin
		           * c.in_size, env);
	g.batch = s.images;
	g.lda = rows;
	g.ldb = s.sk;
	g.ldy = c.out_size;
	g.sb = s.si;
	g.sy = c.group * c.cout * c.out_size;
	for (int64_t k = 0; k < c.group; k++)
		ckr_conv_gemm(c, g, y + i * g.sy + k * c.cout * c.out_size
		              + s.from, w + k * c.cout * rows, col + k * s.sg,
		              add, workspace, env);
}

template <typename Y, typename T, typename B> static inline void
ckr_conv_product(const struct ckr_conv &c, Y *y, const T *x, const T *w,
                 const B *bias, struct ckr_env *env, char *workspace)
{
	int64_t rows = c.cin * c.taps, ld = c.direct ? c.out_size : c.windows;
	struct ckr_patches s = { 0, rows * ld, c.group * rows * ld, ld };

	ckr_bias(y, bias, c.images, c.group * c.cout, c.out_size, env);
	for (int64_t i = 0; i < c.images; i += s.images) {
		s.images = ckr_least(c.each, c.images - i);
		for (s.from = 0; s.from < c.out_size; s.from += c.windows) {
			s.windows = ckr_least(c.windows, c.line - s.from);
			ckr_conv_windows(c, s, i, y, x, w, bias != NULL, env,
			                 workspace);
		}
	}
}

/* dx from what the products give for every tap. */
template <typename Y, typename B> CKR_GLOBAL
ckr_fold_device(struct ckr_conv c, int64_t images, Y *dx, const float *col,
                const B *bias)
{
	int64_t channels = c.group * c.cin;

	CKR_TASKS(int64_t, t, images * channels * c.in_size) {
		int64_t plane = ckr_div(t, c.in_size);
		int64_t image = ckr_div(plane, channels);
		struct ckr_spatial i = ckr_split(c.in, t - plane * c.in_size);
		const float *from = col + plane * c.taps * c.line;
		float sum = bias ? ckr_get(bias[plane - image * channels])
		                 : 0.0f;

		CKR_FOR_TAPS(c, k) {
			int64_t d = ckr_window_at(c, i.d, k.d, 0);
			int64_t h = ckr_window_at(c, i.h, k.h, 1);
			int64_t w = ckr_window_at(c, i.w, k.w, 2);

			if (d >= 0 && h >= 0 && w >= 0)
				sum += from[(d * c.out[1] + h) * c.out[2] + w];
			from += c.line;
		}
		ckr_put(&dx[t], sum);
	}
}

template <typename Y, typename T, typename B> static inline void
ckr_conv_dx_direct(const struct ckr_conv &c, Y *dx, const T *dy, const T *w,
                   const B *bias, struct ckr_env *env, char *workspace)
{
	struct ckr_gemm g = { 1, 0, c.cin, c.in_size, c.cout, c.images };

	g.lda = c.cin;
	g.ldb = g.ldy = c.in_size;
	g.sb = c.group * c.cout * c.in_size;
	g.sy = c.group * c.cin * c.in_size;
	ckr_bias(dx, bias, c.images, c.group * c.cin, c.in_size, env);
	for (int64_t k = 0; k < c.group; k++)
		ckr_conv_gemm(c, g, dx + k * c.cin * c.in_size,
		              w + k * c.cout * c.cin,
		              dy + k * c.cout * c.in_size, bias != NULL,
		              workspace, env);
}

/* n images from image i on, groups from k on, channels from ci on. */
template <typename Y, typename T, typename B> static inline void
ckr_conv_dx_part(const struct ckr_conv &c, int64_t n, int64_t i, int64_t k,
                 int64_t ci, Y *dx, const T *dy, const T *w, const B *bias,
                 float *col, struct ckr_env *env, char *workspace)
{
	struct ckr_conv part = ckr_conv_part(c, ci);
	int64_t rows = part.cin * c.taps, plane = k * c.cin + ci;
	struct ckr_gemm g = { 1, 0, rows, c.out_size, c.cout, n };

	g.lda = c.cin * c.taps;
	g.ldb = c.out_size;
	g.ldy = c.line;
	g.sb = c.group * c.cout * c.out_size;
	g.sy = part.group * rows * c.line;
	for (int64_t j = 0; j < part.group; j++)
		ckr_conv_gemm(c, g, col + j * rows * c.line,
		              w + ((k + j) * c.cout * c.cin + ci) * c.taps,
		              dy + i * g.sb + (k + j) * c.cout * c.out_size,
		              false, workspace, env);
	CKR_EACH((ckr_fold_device<Y, B>), n * part.group * part.cin
	         * c.in_size, env, part, n, dx + (i * c.group * c.cin + plane)
	         * c.in_size, (const float *)col, bias ? bias + plane : bias);
}

template <typename Y, typename T, typename B> static inline void
ckr_conv_dx_product(const struct ckr_conv &c, Y *dx, const T *dy, const T *w,
                    const B *bias, struct ckr_env *env, char *workspace)
{
	float *col = (float *)workspace;
	int64_t n;

	if (c.direct) {
		ckr_conv_dx_direct(c, dx, dy, w, bias, env, workspace);
		return;
	}
	for (int64_t i = 0; i < c.images; i += n) {
		n = ckr_least(c.each, c.images - i);
		for (int64_t k = 0; k < c.group; k += c.groups)
			for (int64_t ci = 0; ci < c.cin; ci += c.channels)
				ckr_conv_dx_part(c, n, i, k, ci, dx, dy, w,
				                 bias, col, env, workspace);
	}
}

/* What ckr_conv_dw_product works with: patches, planes of dy, the sums. */
template <typename T> struct ckr_dw_work {
	T *col, *planes;
	float *sum;
};

/* Images i and on, from a window on: they stand beside each other, so that one
 * product sums over them. */
template <typename T> static inline void
ckr_conv_dw_windows(const struct ckr_conv &c, struct ckr_patches s, int64_t i,
                    const struct ckr_dw_work<T> &at, const T *x, const T *dy,
                    struct ckr_env *env, char *workspace)
{
	struct ckr_conv plane = { c.images, c.group, c.cout, c.cout };
	struct ckr_gemm g = { 0, 1, c.cout, c.cin * c.taps };

	for (int d = 0; d < 3; d++) {
		plane.in[d] = plane.out[d] = c.out[d];
		plane.kernel[d] = plane.stride[d] = plane.dilation[d] = 1;
	}
	plane.taps = 1;
	plane.in_size = plane.out_size = c.out_size;
	g.k = s.images * s.windows;
	g.batch = c.group;
	g.lda = g.ldb = s.sk = g.k;
	g.ldy = g.n;
	g.sy = c.cout * g.n;
	s.si = s.windows;
	s.sg = g.sa = c.cout * g.k;
	ckr_unfold(plane, s, at.planes, dy + i * c.group * c.cout * c.out_size,
	           env);
	s.sg = g.sb = g.n * g.k;
	ckr_unfold(c, s, at.col, x + i * c.group * c.cin * c.in_size, env);
	ckr_conv_gemm(c, g, at.sum, (const T *)at.planes, (const T *)at.col,
	              i > 0 || s.from > 0, workspace, env);
}

template <typename Y, typename T> static inline void
ckr_conv_dw_product(const struct ckr_conv &c, Y *dw, const T *x, const T *dy,
                    struct ckr_env *env, char *workspace)
{
	struct ckr_patches s = { 0 };
	struct ckr_dw_work<T> at = {
		(T *)workspace, (T *)(workspace + c.planes),
		ckr_sums_of(dw, (float *)(workspace + c.sum))
	};

	for (int64_t i = 0; i < c.images; i += s.images) {
		s.images = ckr_least(c.each, c.images - i);
		for (s.from = 0; s.from < c.out_size; s.from += c.windows) {
			s.windows = ckr_least(c.windows, c.line - s.from);
			ckr_conv_dw_windows(c, s, i, at, x, dy, env,
			                    workspace);
		}
	}
	ckr_sums_done(dw, at.sum, c.group * c.cout * c.cin * c.taps, env);
}

#endif
