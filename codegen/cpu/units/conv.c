/* Convolutions as matrix products over unfolded patches (Chellapilla et al.,
 * 2006), in blocks that fit the cache.
 *
 * Tasks follow from the shapes alone and no two write to the same place, so
 * results do not depend on the threads.  A 1x1 convolution needs no
 * unfolding.
 */
#include "conv.h"

/* Windows lo..hi-1 of a row find tap k within the data. */
static inline void
ckr_tap_range(const struct ckr_conv *c, int64_t k, int64_t *lo, int64_t *hi)
{
	int64_t at = k * c->dilation[2] - c->begin[2], s = c->stride[2];

	*hi = at < c->in[2] ? (c->in[2] - 1 - at) / s + 1 : 0;
	*hi = *hi > c->out[2] ? c->out[2] : *hi;
	*lo = at < 0 ? (s - 1 - at) / s : 0;
	*lo = *lo > *hi ? *hi : *lo;
}

/* Offset in a plane of tap (kd, kh) of a line of windows; -1: in the padding.
 */
static inline int64_t
ckr_tap_line(const struct ckr_conv *c, int64_t line, int64_t kd, int64_t kh)
{
	int64_t d = line / c->out[1] * c->stride[0] + kd * c->dilation[0] -
	            c->begin[0];
	int64_t h = line % c->out[1] * c->stride[1] + kh * c->dilation[1] -
	            c->begin[1];

	if (d < 0 || d >= c->in[0] || h < 0 || h >= c->in[1])
		return -1;
	return (d * c->in[1] + h) * c->in[2];
}

/* Windows of a block in one line: n of them, of which lo..hi-1 find a tap
 * within the data, the first of those at `at` of a plane. */
struct ckr_run {
	int64_t line, from, left;       /* where it begins; windows of the block
	                                 * from there on */
	int64_t n, lo, hi, at;
};

static inline struct ckr_run
ckr_first_run(const struct ckr_conv *c, int64_t first, int64_t windows)
{
	int64_t line = first / c->out[2];

	return (struct ckr_run){ .line = line,
		.from = first - line * c->out[2], .left = windows };
}

/* Those of tap (kd, kh, kw), which windows lo..hi-1 of a line find. */
static inline void
ckr_find_tap(const struct ckr_conv *c, struct ckr_run *r, int64_t lo,
             int64_t hi, int64_t kd, int64_t kh, int64_t kw)
{
	int64_t rest = c->out[2] - r->from;
	int64_t at = ckr_tap_line(c, r->line, kd, kh);

	r->n = r->left < rest ? r->left : rest;
	lo -= r->from;
	hi -= r->from;
	r->lo = lo > 0 ? lo : 0;
	r->hi = hi < r->n ? hi : r->n;
	if (at < 0 || r->hi <= r->lo)
		r->lo = r->hi = r->n;
	r->at = at + (r->from + r->lo) * c->stride[2] + kw * c->dilation[2]
		- c->begin[2];
}

static inline void
ckr_next_line(struct ckr_run *r)
{
	r->line++;
	r->from = 0;
	r->left -= r->n;
}

/* One row of col: tap (kd, kh, kw) of a channel for the windows. */
static inline void
ckr_unfold_tap(const struct ckr_conv *c, float *col, const float *x,
               int64_t first, int64_t windows, int64_t kd, int64_t kh,
               int64_t kw)
{
	struct ckr_run r = ckr_first_run(c, first, windows);
	int64_t lo, hi, s = c->stride[2];

	ckr_tap_range(c, kw, &lo, &hi);
	for (; r.left > 0; ckr_next_line(&r), col += r.n) {
		ckr_find_tap(c, &r, lo, hi, kd, kh, kw);
		ckr_zero(col, r.lo);
		if (s == 1 && r.hi > r.lo)
			memcpy(col + r.lo, x + r.at,
			       (size_t)(r.hi - r.lo) * sizeof *col);
		else
			for (int64_t i = r.lo; i < r.hi; i++)
				col[i] = x[r.at + (i - r.lo) * s];
		ckr_zero(col + r.hi, r.n - r.hi);
	}
}

/* The reverse: add a row of col to where its elements come from. */
static inline void
ckr_fold_tap(const struct ckr_conv *c, float *x, const float *col,
             int64_t first, int64_t windows, int64_t kd, int64_t kh,
             int64_t kw)
{
	struct ckr_run r = ckr_first_run(c, first, windows);
	int64_t lo, hi, s = c->stride[2];

	ckr_tap_range(c, kw, &lo, &hi);
	for (; r.left > 0; ckr_next_line(&r), col += r.n) {
		float *to = x;

		ckr_find_tap(c, &r, lo, hi, kd, kh, kw);
		if (r.hi > r.lo)
			to += r.at;
		if (s == 1) {
#pragma omp simd
			for (int64_t i = r.lo; i < r.hi; i++)
				to[i - r.lo] += col[i];
		} else {
			for (int64_t i = r.lo; i < r.hi; i++)
				to[(i - r.lo) * s] += col[i];
		}
	}
}

static inline void
ckr_unfold(const struct ckr_conv *c, float *col, const float *x,
           int64_t channels, int64_t first, int64_t windows)
{
	for (int64_t i = 0; i < channels; i++)
		CKR_FOR_TAPS(c) {
			ckr_unfold_tap(c, col, x + i * c->in_size, first,
			               windows, kd, kh, kw);
			col += windows;
		}
}

static inline void
ckr_fold_back(const struct ckr_conv *c, float *x, const float *col,
              int64_t channels, int64_t first, int64_t windows)
{
	for (int64_t i = 0; i < channels; i++)
		CKR_FOR_TAPS(c) {
			ckr_fold_tap(c, x + i * c->in_size, col, first,
			             windows, kd, kh, kw);
			col += windows;
		}
}

static inline void
ckr_fill_rows(float *y, const float *bias, int64_t rows, int64_t n,
              int64_t ld)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < n; j++)
			y[i * ld + j] = bias ? bias[i] : 0.0f;
}

static inline int64_t
ckr_windows_left(const struct ckr_conv *c, int64_t first)
{
	int64_t left = c->out_size - first;

	return left < c->windows ? left : c->windows;
}

/* ---- y = conv(x, w) + bias ---- */

static inline void
ckr_conv_block(const struct ckr_conv *c, float *y, const float *x,
               const float *w, const float *bias, int64_t image, int64_t g,
               int64_t first, float *col, const struct ckr_env *env)
{
	int64_t n = ckr_windows_left(c, first), rows = c->cin * c->taps;
	int64_t ld = c->direct ? c->in_size : n;
	const float *b = col;

	x += (image * c->group + g) * c->cin * c->in_size;
	y += (image * c->group + g) * c->cout * c->out_size + first;
	if (c->direct)
		b = x + first;
	else
		ckr_unfold(c, col, x, c->cin, first, n);
	if (bias)
		ckr_fill_rows(y, bias + g * c->cout, c->cout, n, c->out_size);
	ckr_sgemm(env)(0, 0, c->cout, n, rows, 1.0f, w + g * c->cout * rows,
	               rows, b, ld, bias ? 1.0f : 0.0f, y, c->out_size);
}

typedef void ckr_conv_task(const struct ckr_conv *c, float *to,
                           const float *from, const float *w,
                           const float *bias, int64_t image, int64_t g,
                           int64_t first, float *col,
                           const struct ckr_env *env);

/* A task for each image, group, and `step` of the n windows or channels. */
static inline void
ckr_conv_share(ckr_conv_task *task, int64_t n, int64_t step,
               const struct ckr_conv *c, float *to, const float *from,
               const float *w, const float *bias, float *workspace,
               const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) collapse(3) \
	schedule(dynamic) if (c->images * c->group > 1 || n > step)
	for (int64_t image = 0; image < c->images; image++)
		for (int64_t g = 0; g < c->group; g++)
			for (int64_t i = 0; i < n; i += step)
				task(c, to, from, w, bias, image, g, i,
				     workspace + omp_get_thread_num()
				     * c->workspace, env);
}

void
ckr_conv(const struct ckr_conv *c, float *y, const float *x, const float *w,
         const float *bias, float *workspace, const struct ckr_env *env)
{
	ckr_conv_share(ckr_conv_block, c->out_size, c->windows, c, y, x, w,
	               bias, workspace, env);
}

/* ---- dx ---- */

static inline void
ckr_conv_dx_task(const struct ckr_conv *c, float *dx, const float *dy,
                 const float *w, const float *bias, int64_t image, int64_t g,
                 int64_t first, float *col, const struct ckr_env *env)
{
	int64_t left = c->cin - first, rows = c->cin * c->taps;
	int64_t channels = left < c->channels ? left : c->channels;

	dx += ((image * c->group + g) * c->cin + first) * c->in_size;
	dy += (image * c->group + g) * c->cout * c->out_size;
	w += g * c->cout * rows + first * c->taps;
	if (bias)
		bias += g * c->cin + first;
	if (bias || !c->direct)
		ckr_fill_rows(dx, bias, channels, c->in_size, c->in_size);
	if (c->direct) {
		ckr_sgemm(env)(1, 0, channels, c->out_size, c->cout, 1.0f, w,
		               rows, dy, c->out_size, bias ? 1.0f : 0.0f, dx,
		               c->in_size);
		return;
	}
	for (int64_t at = 0; at < c->out_size; at += c->windows) {
		int64_t n = ckr_windows_left(c, at);

		ckr_sgemm(env)(1, 0, channels * c->taps, n, c->cout, 1.0f, w,
		               rows, dy + at, c->out_size, 0.0f, col, n);
		ckr_fold_back(c, dx, col, channels, at, n);
	}
}

void
ckr_conv_dx(const struct ckr_conv *c, float *dx, const float *dy,
            const float *w, const float *bias, float *workspace,
            const struct ckr_env *env)
{
	ckr_conv_share(ckr_conv_dx_task, c->cin, c->channels, c, dx, dy, w,
	               bias, workspace, env);
}

/* ---- dw ---- */

static inline void
ckr_conv_dw_task(const struct ckr_conv *c, float *dw, const float *x,
                 const float *dy, int64_t image, int64_t images, int64_t g,
                 int64_t first, float *col, const struct ckr_env *env)
{
	int64_t left = c->cin - first, rows = c->cin * c->taps;
	int64_t channels = left < c->channels ? left : c->channels;
	float beta = 0.0f;

	dw += g * c->cout * rows + first * c->taps;
	for (int64_t i = image; i < image + images; i++) {
		const float *from = x + ((i * c->group + g) * c->cin + first) *
		                        c->in_size;
		const float *d = dy + (i * c->group + g) * c->cout *
		                      c->out_size;

		for (int64_t at = 0; at < c->out_size;
		     at += c->windows, beta = 1.0f) {
			int64_t n = ckr_windows_left(c, at);

			if (!c->direct)
				ckr_unfold(c, col, from, channels, at, n);
			ckr_sgemm(env)(0, 1, c->cout, channels * c->taps, n,
			               1.0f, d + at, c->out_size,
			               c->direct ? from + at : col,
			               c->direct ? c->in_size : n, beta, dw,
			               rows);
		}
	}
}

void
ckr_conv_dw(const struct ckr_conv *c, float *dw, const float *x,
            const float *dy, float *workspace, const struct ckr_env *env)
{
	int64_t size = c->group * c->cout * c->cin * c->taps;
	int64_t shared = c->parts > 1 ? (c->parts * size + 15) / 16 * 16 : 0;
	float *to = c->parts > 1 ? workspace : dw;

#pragma omp parallel for num_threads(env->threads) collapse(3) \
	schedule(dynamic) \
	if (c->parts * c->group * c->cin > c->channels)
	for (int64_t p = 0; p < c->parts; p++)
		for (int64_t g = 0; g < c->group; g++)
			for (int64_t i = 0; i < c->cin; i += c->channels) {
				int64_t first = p * c->each;
				int64_t left = c->images - first;

				ckr_conv_dw_task(
					c, to + p * size, x, dy, first,
					left < c->each ? left : c->each, g, i,
					workspace + shared
						+ omp_get_thread_num()
							* c->workspace,
					env);
			}
	if (c->parts == 1)
		return;
	CKR_SHARE(size)
	for (int64_t i = 0; i < size; i++) {
		float sum = to[i];

		for (int64_t p = 1; p < c->parts; p++)
			sum += to[p * size + i];
		dw[i] = sum;
	}
}
