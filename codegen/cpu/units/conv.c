/* Convolutions as matrix products over unfolded patches (Chellapilla et al.,
 * 2006), in blocks that fit the cache.
 *
 * Tasks follow from the shapes alone and no two write to the same place, so
 * results do not depend on the threads.  A 1x1 convolution needs no
 * unfolding.  Products of bf16 are summed in float32, in room of their own, and
 * rounded once.
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
ckr_unfold_tap(const struct ckr_conv *c, char *col, const void *x,
               int64_t first, int64_t windows, int64_t kd, int64_t kh,
               int64_t kw)
{
	struct ckr_run r = ckr_first_run(c, first, windows);
	int64_t lo, hi, s = c->stride[2], size = ckr_size(c->type);

	ckr_tap_range(c, kw, &lo, &hi);
	for (; r.left > 0; ckr_next_line(&r), col += r.n * size) {
		char *to;
		int64_t n;

		ckr_find_tap(c, &r, lo, hi, kd, kh, kw);
		to = col + r.lo * size;
		n = r.hi - r.lo;
		ckr_zeros(col, c->type, r.lo);
		ckr_zeros(col + r.hi * size, c->type, r.n - r.hi);
		if (n <= 0)
			continue;
		if (s == 1)
			memcpy(to, ckr_item(x, c->type, r.at),
			       (size_t)(n * size));
		else
			ckr_copy_elements(to, 1, ckr_item(x, c->type, r.at), s,
			                  c->type, n);
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
ckr_unfold(const struct ckr_conv *c, float *col, const void *x,
           int64_t channels, int64_t first, int64_t windows)
{
	char *to = (char *)col;

	for (int64_t i = 0; i < channels; i++)
		CKR_FOR_TAPS(c) {
			ckr_unfold_tap(c, to, ckr_item(x, c->type,
			                             i * c->in_size),
			               first, windows, kd, kh, kw);
			to += windows * ckr_size(c->type);
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
ckr_fill_rows(float *y, const void *bias, int type, int64_t rows, int64_t n,
              int64_t ld)
{
	for (int64_t i = 0; i < rows; i++) {
		float b = 0.0f;

		if (bias)
			ckr_widen(&b, bias, type, i, 1);
		for (int64_t j = 0; j < n; j++)
			y[i * ld + j] = b;
	}
}

static inline int64_t
ckr_windows_left(const struct ckr_conv *c, int64_t first)
{
	int64_t left = c->out_size - first;

	return left < c->windows ? left : c->windows;
}

/* y = op(a) op(b), or that added to y. */
static inline void
ckr_conv_product(const struct ckr_conv *c, int ta, int tb, int64_t m,
                 int64_t n, int64_t k, const void *a, int64_t lda,
                 const void *b, int64_t ldb, int more, float *y, int64_t ldy,
                 const struct ckr_env *env)
{
	ckr_product(c->type, ta, tb, m, n, k, 1.0f, a, lda, b, ldb,
	            more ? 1.0f : 0.0f, y, ldy, env);
}

/* Rows of sums: where they belong, or in a room. */
struct ckr_sums {
	float *p;
	int64_t ld;
};

static inline struct ckr_sums
ckr_conv_sums(const struct ckr_conv *c, void *y, int64_t ld, int64_t n,
              float *room)
{
	if (c->type == CKR_F32)
		return (struct ckr_sums){ y, ld };
	return (struct ckr_sums){ room + c->room, n };
}

/* ... to where they belong. */
static inline void
ckr_conv_round(const struct ckr_conv *c, void *y, int64_t ld,
               struct ckr_sums sums, int64_t rows, int64_t n)
{
	for (int64_t i = 0; i < rows && c->type != CKR_F32; i++)
		ckr_narrow(y, c->type, i * ld, sums.p + i * sums.ld, n);
}

/* ---- y = conv(x, w) + bias ---- */

static inline void
ckr_conv_block(const struct ckr_conv *c, void *y, const void *x, const void *w,
               const void *bias, int64_t image, int64_t g, int64_t first,
               float *col, const struct ckr_env *env)
{
	int64_t n = ckr_windows_left(c, first), rows = c->cin * c->taps;
	struct ckr_sums sums;

	x = ckr_item(x, c->type, (image * c->group + g) * c->cin
	                * c->in_size);
	y = ckr_item(y, c->type, (image * c->group + g) * c->cout
	                * c->out_size + first);
	sums = ckr_conv_sums(c, y, c->out_size, n, col);
	if (!c->direct)
		ckr_unfold(c, col, x, c->cin, first, n);
	if (bias)
		ckr_fill_rows(sums.p, ckr_item(bias, c->type, g * c->cout),
		              c->type, c->cout, n, sums.ld);
	ckr_conv_product(c, 0, 0, c->cout, n, rows,
	                 ckr_item(w, c->type, g * c->cout * rows), rows,
	                 c->direct ? ckr_item(x, c->type, first) : col,
	                 c->direct ? c->in_size : n, bias != NULL, sums.p,
	                 sums.ld, env);
	ckr_conv_round(c, y, c->out_size, sums, c->cout, n);
}

typedef void ckr_conv_task(const struct ckr_conv *c, void *to,
                           const void *from, const void *w, const void *bias,
                           int64_t image, int64_t g, int64_t first, float *col,
                           const struct ckr_env *env);

/* A task for each image, group, and `step` of the n windows or channels. */
static inline void
ckr_conv_share(ckr_conv_task *task, int64_t n, int64_t step,
               const struct ckr_conv *c, void *to, const void *from,
               const void *w, const void *bias, float *workspace,
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
ckr_conv(const struct ckr_conv *c, void *y, const void *x, const void *w,
         const void *bias, float *workspace, const struct ckr_env *env)
{
	ckr_conv_share(ckr_conv_block, c->out_size, c->windows, c, y, x, w,
	               bias, workspace, env);
}

/* ---- dx ---- */

/* Of a 1x1 convolution: a product.  Sums in a room are some windows at a
 * time. */
static inline void
ckr_conv_dx_direct(const struct ckr_conv *c, void *dx, const void *dy,
                   const void *w, const void *bias, int64_t channels,
                   float *room, const struct ckr_env *env)
{
	int64_t rows = c->cin * c->taps;
	int64_t step = c->type == CKR_F32 ? c->out_size : c->windows;

	for (int64_t at = 0; at < c->out_size; at += step) {
		int64_t n = ckr_least(c->out_size - at, step);
		void *to = ckr_item(dx, c->type, at);
		struct ckr_sums sums = ckr_conv_sums(c, to, c->in_size, n,
		                                     room);

		if (bias)
			ckr_fill_rows(sums.p, bias, c->type, channels, n,
			              sums.ld);
		ckr_conv_product(c, 1, 0, channels, n, c->cout, w, rows,
		                 ckr_item(dy, c->type, at), c->out_size,
		                 bias != NULL, sums.p, sums.ld, env);
		ckr_conv_round(c, to, c->in_size, sums, channels, n);
	}
}

static inline void
ckr_conv_dx_task(const struct ckr_conv *c, void *dx, const void *dy,
                 const void *w, const void *bias, int64_t image, int64_t g,
                 int64_t first, float *col, const struct ckr_env *env)
{
	int64_t left = c->cin - first, rows = c->cin * c->taps;
	int64_t channels = left < c->channels ? left : c->channels;
	struct ckr_sums sums;

	dx = ckr_item(dx, c->type, ((image * c->group + g) * c->cin + first)
	            * c->in_size);
	dy = ckr_item(dy, c->type, (image * c->group + g) * c->cout
	            * c->out_size);
	w = ckr_item(w, c->type, g * c->cout * rows + first * c->taps);
	if (bias)
		bias = ckr_item(bias, c->type, g * c->cin + first);
	if (c->direct) {
		ckr_conv_dx_direct(c, dx, dy, w, bias, channels, col, env);
		return;
	}
	sums = ckr_conv_sums(c, dx, c->in_size, c->in_size, col);
	ckr_fill_rows(sums.p, bias, c->type, channels, c->in_size, sums.ld);
	for (int64_t at = 0; at < c->out_size; at += c->windows) {
		int64_t n = ckr_windows_left(c, at);

		ckr_conv_product(c, 1, 0, channels * c->taps, n, c->cout, w,
		                 rows, ckr_item(dy, c->type, at),
		                 c->out_size, 0, col, n, env);
		ckr_fold_back(c, sums.p, col, channels, at, n);
	}
	ckr_conv_round(c, dx, c->in_size, sums, channels, c->in_size);
}

void
ckr_conv_dx(const struct ckr_conv *c, void *dx, const void *dy, const void *w,
            const void *bias, float *workspace, const struct ckr_env *env)
{
	ckr_conv_share(ckr_conv_dx_task, c->cin, c->channels, c, dx, dy, w,
	               bias, workspace, env);
}

/* ---- dw ---- */

static inline void
ckr_conv_dw_task(const struct ckr_conv *c, float *dw, const void *x,
                 const void *dy, int64_t image, int64_t images, int64_t g,
                 int64_t first, float *col, const struct ckr_env *env)
{
	int64_t left = c->cin - first, rows = c->cin * c->taps;
	int64_t channels = left < c->channels ? left : c->channels;
	int more = 0;

	dw += g * c->cout * rows + first * c->taps;
	for (int64_t i = image; i < image + images; i++) {
		const void *from = ckr_item(x, c->type,
			((i * c->group + g) * c->cin + first) * c->in_size);
		const void *d = ckr_item(dy, c->type,
			(i * c->group + g) * c->cout * c->out_size);

		for (int64_t at = 0; at < c->out_size;
		     at += c->windows, more = 1) {
			int64_t n = ckr_windows_left(c, at);

			if (!c->direct)
				ckr_unfold(c, col, from, channels, at, n);
			ckr_conv_product(c, 0, 1, c->cout, channels * c->taps,
			                 n, ckr_item(d, c->type, at),
			                 c->out_size, c->direct
			                 ? ckr_item(from, c->type, at) : col,
			                 c->direct ? c->in_size : n, more, dw,
			                 rows, env);
		}
	}
}

void
ckr_conv_dw(const struct ckr_conv *c, void *dw, const void *x, const void *dy,
            float *workspace, const struct ckr_env *env)
{
	int64_t size = c->group * c->cout * c->cin * c->taps;
	int there = c->type == CKR_F32 && c->parts == 1;
	int64_t shared = there ? 0 : (c->parts * size + 15) / 16 * 16;
	float *to = there ? dw : workspace;

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
	if (there)
		return;
	CKR_SHARE(size)
	for (int64_t at = 0; at < size; at += 256) {
		int64_t n = ckr_least(size - at, 256);
		float sum[256];

		memcpy(sum, to + at, (size_t)n * sizeof *sum);
		for (int64_t p = 1; p < c->parts; p++) {
#pragma omp simd
			for (int64_t i = 0; i < n; i++)
				sum[i] += to[p * size + at + i];
		}
		ckr_narrow(dw, c->type, at, sum, n);
	}
}
