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

/* One row of col: tap (kd, kh, kw) of a channel for all windows of the
 * lines. */
static inline void
ckr_unfold_tap(const struct ckr_conv *c, float *to, const float *x,
               int64_t first, int64_t lines, int64_t kd, int64_t kh,
               int64_t kw)
{
	int64_t lo, hi, s = c->stride[2];

	ckr_tap_range(c, kw, &lo, &hi);
	for (int64_t l = first; l < first + lines; l++, to += c->out[2]) {
		int64_t at = ckr_tap_line(c, l, kd, kh);
		const float *from;

		if (at < 0) {
			ckr_zero(to, c->out[2]);
			continue;
		}
		at += lo * s + kw * c->dilation[2] - c->begin[2];
		from = hi > lo ? x + at : x;
		ckr_zero(to, lo);
		if (s == 1 && hi > lo)
			memcpy(to + lo, from, (size_t)(hi - lo) * sizeof *to);
		else
			for (int64_t i = lo; i < hi; i++)
				to[i] = from[(i - lo) * s];
		ckr_zero(to + hi, c->out[2] - hi);
	}
}

/* The reverse: add a row of col to where its elements come from. */
static inline void
ckr_fold_tap(const struct ckr_conv *c, float *x, const float *from,
             int64_t first, int64_t lines, int64_t kd, int64_t kh, int64_t kw)
{
	int64_t lo, hi, s = c->stride[2];

	ckr_tap_range(c, kw, &lo, &hi);
	for (int64_t l = first; l < first + lines; l++, from += c->out[2]) {
		int64_t at = ckr_tap_line(c, l, kd, kh);
		float *to;

		if (at < 0 || hi <= lo)
			continue;
		to = x + at + lo * s + kw * c->dilation[2] - c->begin[2];
		if (s == 1) {
#pragma omp simd
			for (int64_t i = lo; i < hi; i++)
				to[i - lo] += from[i];
		} else {
			for (int64_t i = lo; i < hi; i++)
				to[(i - lo) * s] += from[i];
		}
	}
}

static inline void
ckr_unfold(const struct ckr_conv *c, float *col, const float *x,
           int64_t channels, int64_t first, int64_t lines)
{
	for (int64_t i = 0; i < channels; i++)
		CKR_FOR_TAPS(c) {
			ckr_unfold_tap(c, col, x + i * c->in_size, first,
			               lines, kd, kh, kw);
			col += lines * c->out[2];
		}
}

static inline void
ckr_fold_back(const struct ckr_conv *c, float *x, const float *col,
              int64_t channels, int64_t first, int64_t lines)
{
	for (int64_t i = 0; i < channels; i++)
		CKR_FOR_TAPS(c) {
			ckr_fold_tap(c, x + i * c->in_size, col, first, lines,
			             kd, kh, kw);
			col += lines * c->out[2];
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
ckr_lines_left(const struct ckr_conv *c, int64_t first)
{
	int64_t left = c->out[0] * c->out[1] - first;

	return left < c->lines ? left : c->lines;
}

/* ---- y = conv(x, w) + bias ---- */

static inline void
ckr_conv_block(const struct ckr_conv *c, float *y, const float *x,
               const float *w, const float *bias, int64_t image, int64_t g,
               int64_t first, float *col, const struct ckr_env *env)
{
	int64_t lines = ckr_lines_left(c, first), n = lines * c->out[2];
	int64_t at = first * c->out[2], rows = c->cin * c->taps;
	int64_t ld = c->direct ? c->in_size : n;
	const float *b = col;

	x += (image * c->group + g) * c->cin * c->in_size;
	y += (image * c->group + g) * c->cout * c->out_size + at;
	if (c->direct)
		b = x + at;
	else
		ckr_unfold(c, col, x, c->cin, first, lines);
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

/* A task for each image, group, and `step` of the n lines or channels. */
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
	ckr_conv_share(ckr_conv_block, c->out[0] * c->out[1], c->lines, c, y,
	               x, w, bias, workspace, env);
}

/* ---- dx ---- */

static inline void
ckr_conv_dx_task(const struct ckr_conv *c, float *dx, const float *dy,
                 const float *w, const float *bias, int64_t image, int64_t g,
                 int64_t first, float *col, const struct ckr_env *env)
{
	int64_t left = c->cin - first, rows = c->cin * c->taps;
	int64_t channels = left < c->channels ? left : c->channels;
	int64_t lines = c->out[0] * c->out[1];

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
	for (int64_t l = 0; l < lines; l += c->lines) {
		int64_t nl = ckr_lines_left(c, l), n = nl * c->out[2];

		ckr_sgemm(env)(1, 0, channels * c->taps, n, c->cout, 1.0f, w,
		               rows, dy + l * c->out[2], c->out_size, 0.0f,
		               col, n);
		ckr_fold_back(c, dx, col, channels, l, nl);
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
	int64_t lines = c->out[0] * c->out[1];
	float beta = 0.0f;

	dw += g * c->cout * rows + first * c->taps;
	for (int64_t i = image; i < image + images; i++) {
		const float *from = x + ((i * c->group + g) * c->cin + first) *
		                        c->in_size;
		const float *d = dy + (i * c->group + g) * c->cout *
		                      c->out_size;

		for (int64_t l = 0; l < lines; l += c->lines, beta = 1.0f) {
			int64_t nl = ckr_lines_left(c, l), n = nl * c->out[2];
			int64_t at = l * c->out[2];

			if (!c->direct)
				ckr_unfold(c, col, from, channels, l, nl);
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
