/* Batch normalisation: x is [images, channels, size], statistics per channel.
 *
 * Threads share strips: channels whose planes lie side by side in lanes, or
 * one whose planes are long and come in pieces.  A short plane's lanes add up
 * over images, and then together; of a long one each piece adds up by itself.
 * No sum depends on which channels a strip has, nor on how many.
 *
 * Sums are of deviations from the mean of the channel's first plane: by that
 * plane alone the variance is at least 1 / images of the square of what that
 * mean is away from all images'.  Taking this square away thus costs at most
 * a factor of images in precision, and as much only where one image differs
 * from all others, which are alike.
 */
#include "batchnorm.h"
#include "half.h"
#include "sums.h"

enum {
	CKR_WIDTH = 1024,
	CKR_WIDTH_LEAST = 64,
	CKR_LONG = 256,                 /* elements of a plane */
	CKR_LONG_STRIP = 4096,          /* of an image's, side by side */
	CKR_ROWS = 4,                   /* of lanes at a time */
	CKR_FLUSH = 16 * CKR_ROWS,      /* numbers that a lane adds up */
};

/* Lanes hold what is of the channel that they belong to. */
struct ckr_strip {
	const struct ckr_batchnorm *p;
	int64_t first, channels;
	int64_t lanes;                  /* of a channel; of a long one 1 */
	int64_t planes;                 /* of an image, one by one */
	int64_t pieces, run;            /* of such a plane, elements each */
	_Alignas(64) float mean[CKR_WIDTH], k[CKR_WIDTH], a[CKR_WIDTH],
		b[CKR_WIDTH], s[CKR_WIDTH], q[CKR_WIDTH];
	float zero[CKR_WIDTH], room[2 * CKR_ROWS][CKR_WIDTH];
	double sum[CKR_WIDTH], dot[CKR_WIDTH];  /* by channel */
};

/* ---- strips ---- */

/* Few enough channels that there are strips for all threads. */
static int64_t
ckr_strip_channels(const struct ckr_batchnorm *p, int threads)
{
	int64_t most = CKR_WIDTH / p->size, n = p->channels / (4 * threads);
	int64_t least = CKR_WIDTH_LEAST / p->size;

	if (p->size >= CKR_LONG)
		most = CKR_LONG_STRIP / p->size;
	n = n < least ? least : n;
	n = n > most ? most : n;
	return n < 1 ? 1 : n;
}

static void
ckr_strip_set(struct ckr_strip *s, const struct ckr_batchnorm *p,
              int64_t first, int64_t channels)
{
	s->p = p;
	s->first = first;
	s->channels = ckr_least(channels, p->channels - first);
	s->lanes = p->size < CKR_LONG ? p->size : 1;
	s->planes = p->size < CKR_LONG ? 1 : s->channels;
	s->run = p->size < CKR_LONG ? s->channels * p->size
	       : p->type == CKR_F32 ? p->size
	       : ckr_least(p->size, CKR_WIDTH);
	s->pieces = p->size < CKR_LONG ? 1
	          : (p->size + s->run - 1) / s->run;
	memset(s->sum, 0, (size_t)s->channels * sizeof *s->sum);
	memset(s->dot, 0, (size_t)s->channels * sizeof *s->dot);
}

/* Offset of run i; runs are ordered by image, then plane, then piece. */
static inline int64_t
ckr_run_at(const struct ckr_strip *s, int64_t i)
{
	int64_t plane = i / s->pieces;

	return (plane / s->planes * s->p->channels + s->first
	        + plane % s->planes) * s->p->size + i % s->pieces * s->run;
}

/* The first lane of run i. */
static inline int64_t
ckr_run_lane(const struct ckr_strip *s, int64_t i)
{
	return i / s->pieces % s->planes;
}

static inline int64_t
ckr_runs(const struct ckr_strip *s)
{
	return s->p->images * s->planes * s->pieces;
}

static inline int64_t
ckr_run_length(const struct ckr_strip *s, int64_t i)
{
	return i % s->pieces < s->pieces - 1 || s->pieces == 1 ? s->run
		: s->p->size - (s->pieces - 1) * s->run;
}

static inline void
ckr_lanes_set(float *lane, const struct ckr_strip *s, int64_t channel, float x)
{
	for (int64_t i = 0; i < s->lanes; i++)
		lane[channel * s->lanes + i] = x;
}

/* ---- sums ---- */

/* Sum of n lanes. */
static inline double
ckr_lanes_sum(const float *x, int64_t n)
{
	double s = 0;

	if (n >= 48)
		return (double)ckr_sum(x, n);
	for (int64_t i = 0; i < n; i++)
		s += (double)x[i];
	return s;
}

/* Adds the lanes to their channels' sums, and clears them. */
static void
ckr_lanes_flush(struct ckr_strip *s)
{
	for (int64_t c = 0; c < s->channels; c++) {
		s->sum[c] += ckr_lanes_sum(s->s + c * s->lanes, s->lanes);
		s->dot[c] += ckr_lanes_sum(s->q + c * s->lanes, s->lanes);
	}
	memset(s->s, 0, (size_t)s->run * sizeof *s->s);
	memset(s->q, 0, (size_t)s->run * sizeof *s->q);
}

/* Sums over a piece of d, or where that is NULL of x - mean; and of that
 * times x - mean. */
CKR_LANE void
ckr_piece_sums(struct ckr_strip *s, int64_t c, const float *d, const float *x,
               int64_t n)
{
	ckr_lanes sums[32 / CKR_WIDE] = { 0 }, dots[32 / CKR_WIDE] = { 0 };
	float mean = s->mean[c], sum[64] = { 0 }, dot[64] = { 0 };
	int64_t i = 0;

	for (; i + 32 <= n; i += 32) {
		const ckr_lanes *at = (const ckr_lanes *)(x + i);
		const ckr_lanes *by = (const ckr_lanes *)(d + i);

		_Pragma("GCC unroll 8")
		for (int k = 0; k < 32 / CKR_WIDE; k++) {
			ckr_lanes v = at[k] - mean, w = d ? by[k] : v;

			sums[k] += w;
			dots[k] += w * v;
		}
	}
	for (int64_t j = 0; i + j < n; j++) {
		sum[j] = d ? d[i + j] : x[i + j] - mean;
		dot[j] = sum[j] * (x[i + j] - mean);
	}
	memcpy(sum + 32, sums, sizeof sums);
	memcpy(dot + 32, dots, sizeof dots);
	s->sum[c] += (double)ckr_fold(sum);
	s->dot[c] += (double)ckr_fold(dot);
}

/* The same of CKR_ROWS rows, lane by lane. */
CKR_LANE void
ckr_rows_sums(struct ckr_strip *s, const float *const *d,
              const float *const *x)
{
	const float *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
	const float *d0 = d ? d[0] : NULL, *d1 = d ? d[1] : NULL;
	const float *d2 = d ? d[2] : NULL, *d3 = d ? d[3] : NULL;

#pragma omp simd
	for (int64_t j = 0; j < s->run; j++) {
		float m = s->mean[j], v0 = x0[j] - m, v1 = x1[j] - m;
		float v2 = x2[j] - m, v3 = x3[j] - m;
		float w0 = d ? d0[j] : v0, w1 = d ? d1[j] : v1;
		float w2 = d ? d2[j] : v2, w3 = d ? d3[j] : v3;

		s->s[j] += (w0 + w1) + (w2 + w3);
		s->q[j] += (w0 * v0 + w1 * v1) + (w2 * v2 + w3 * v3);
	}
}

/* Rows i to i + CKR_ROWS - 1, as they lie or widened to rooms; behind the
 * last one rows that add nothing. */
static void
ckr_rows_at(const float **row, struct ckr_strip *s, int room, const void *x,
            int64_t i, const float *none)
{
	for (int r = 0; r < CKR_ROWS; r++)
		row[r] = i + r >= s->p->images ? none
			: ckr_row(s->room[room + r], x, s->p->type,
			          ckr_run_at(s, i + r), s->run);
}

CKR_LANE void
ckr_short_sums(struct ckr_strip *s, const void *dy, const void *x)
{
	const float *rows[CKR_ROWS], *grads[CKR_ROWS];

	memset(s->s, 0, (size_t)s->run * sizeof *s->s);
	memset(s->q, 0, (size_t)s->run * sizeof *s->q);
	if (dy)
		memset(s->zero, 0, (size_t)s->run * sizeof *s->zero);
	for (int64_t i = 0; i < s->p->images; i += CKR_ROWS) {
		ckr_rows_at(rows, s, 0, x, i, s->mean);
		if (dy)
			ckr_rows_at(grads, s, CKR_ROWS, dy, i, s->zero);
		ckr_rows_sums(s, dy ? grads : NULL, rows);
		if (i % CKR_FLUSH == CKR_FLUSH - CKR_ROWS)
			ckr_lanes_flush(s);
	}
	ckr_lanes_flush(s);
}

CKR_LANE void
ckr_long_sums(struct ckr_strip *s, const void *dy, const void *x)
{
	int type = s->p->type;

	for (int64_t i = 0; i < ckr_runs(s); i++) {
		int64_t at = ckr_run_at(s, i), n = ckr_run_length(s, i);

		const float *d = !dy ? NULL
			: ckr_row(s->room[1], dy, type, at, n);

		ckr_piece_sums(s, ckr_run_lane(s, i), d,
		               ckr_row(s->room[0], x, type, at, n), n);
	}
}

/* Sums of x - mean and of its square, by channel. */
static void
ckr_strip_moments(struct ckr_strip *s, const void *x)
{
	if (s->p->size >= CKR_LONG)
		ckr_long_sums(s, NULL, x);
	else
		ckr_short_sums(s, NULL, x);
}

/* Sums of dy, and of dy times x - mean. */
static void
ckr_strip_dots(struct ckr_strip *s, const void *dy, const void *x)
{
	if (s->p->size >= CKR_LONG)
		ckr_long_sums(s, dy, x);
	else
		ckr_short_sums(s, dy, x);
}

/* Means of the first image's planes. */
static void
ckr_strip_first_means(struct ckr_strip *s, const void *x)
{
	for (int64_t c = 0; c < s->channels; c++) {
		int64_t at = (s->first + c) * s->p->size, n;
		double sum = 0;

		for (int64_t i = 0; i < s->p->size; i += n) {
			n = ckr_least(s->run, s->p->size - i);
			sum += ckr_lanes_sum(ckr_row(s->room[0], x, s->p->type,
			                             at + i, n), n);
		}
		ckr_lanes_set(s->mean, s, c,
		              (float)(sum / (double)s->p->size));
	}
}

/* ---- what comes of them ---- */

static inline float
ckr_inverse_deviation(float var, double eps)
{
	return 1.0f / __builtin_sqrtf(var + (float)eps);
}

CKR_LANE void
ckr_run_scale(float *y, const struct ckr_strip *s, int64_t lane, const float *x,
              int64_t n)
{
	float mean = s->mean[lane], k = s->k[lane], b = s->b[lane];

	if (s->p->size < CKR_LONG) {
#pragma omp simd
		for (int64_t j = 0; j < n; j++)
			y[j] = (x[j] - s->mean[j]) * s->k[j] + s->b[j];
		return;
	}
#pragma omp simd
	for (int64_t j = 0; j < n; j++)
		y[j] = (x[j] - mean) * k + b;
}

/* y = (x - mean) * k + b. */
static void
ckr_strip_scale(void *y, struct ckr_strip *s, const void *x)
{
	int type = s->p->type;

	for (int64_t i = 0; i < ckr_runs(s); i++) {
		int64_t at = ckr_run_at(s, i), n = ckr_run_length(s, i);
		const float *from = ckr_row(s->room[0], x, type, at, n);
		float *to = ckr_row_new(s->room[1], y, type, at);

		ckr_run_scale(to, s, ckr_run_lane(s, i), from, n);
		ckr_row_put(y, type, at, to, n);
	}
}

static void
ckr_strip_forward(struct ckr_strip *s, void *y, float *mean, float *var,
                  const void *x, const float *scale, const float *bias)
{
	double count = (double)s->p->images * (double)s->p->size;

	ckr_strip_first_means(s, x);
	ckr_strip_moments(s, x);
	for (int64_t i = 0; i < s->channels; i++) {
		int64_t c = s->first + i;
		double off = s->sum[i] / count;
		double square = s->dot[i] / count - off * off;
		float m = (float)((double)s->mean[i * s->lanes] + off);
		/* not fmax: what is not a number stays that */
		float v = square < 0 ? 0.0f : (float)square;

		if (mean)
			mean[c] = m;
		if (var)
			var[c] = v;
		ckr_lanes_set(s->mean, s, i, m);
		ckr_lanes_set(s->k, s, i, ckr_inverse_deviation(v, s->p->eps)
		                          * (scale ? scale[c] : 1.0f));
		ckr_lanes_set(s->b, s, i, bias ? bias[c] : 0.0f);
	}
	if (y)
		ckr_strip_scale(y, s, x);
}

void
ckr_batchnorm(void *y, float *mean, float *var, const void *x,
              const float *scale, const float *bias,
              const struct ckr_batchnorm *p, const struct ckr_env *env)
{
	int64_t channels = ckr_strip_channels(p, env->threads);

	CKR_SHARE(p->images * p->channels * p->size)
	for (int64_t c = 0; c < p->channels; c += channels) {
		struct ckr_strip s;

		ckr_strip_set(&s, p, c, channels);
		ckr_strip_forward(&s, y, mean, var, x, scale, bias);
	}
}

CKR_LANE void
ckr_run_dx(float *dx, const struct ckr_strip *s, int64_t lane, const float *dy,
           const float *x, int64_t n)
{
	float mean = s->mean[lane], k = s->k[lane];
	float a = s->a[lane], b = s->b[lane];

	if (s->p->size < CKR_LONG) {
#pragma omp simd
		for (int64_t j = 0; j < n; j++)
			dx[j] = s->k[j] * (dy[j] - s->a[j]
			                   - (x[j] - s->mean[j]) * s->b[j]);
		return;
	}
#pragma omp simd
	for (int64_t j = 0; j < n; j++)
		dx[j] = k * (dy[j] - a - (x[j] - mean) * b);
}

/* dx = k * (dy - a - (x - mean) * b). */
static void
ckr_strip_dx(void *dx, struct ckr_strip *s, const void *dy, const void *x)
{
	int type = s->p->type;

	for (int64_t i = 0; i < ckr_runs(s); i++) {
		int64_t at = ckr_run_at(s, i), n = ckr_run_length(s, i);
		const float *from = ckr_row(s->room[0], x, type, at, n);
		const float *d = ckr_row(s->room[1], dy, type, at, n);
		float *to = ckr_row_new(s->room[1], dx, type, at);

		ckr_run_dx(to, s, ckr_run_lane(s, i), d, from, n);
		ckr_row_put(dx, type, at, to, n);
	}
}

static void
ckr_strip_backward(struct ckr_strip *s, void *dx, float *dscale, float *dbias,
                   const void *dy, const void *x, const float *mean,
                   const float *var, const float *scale)
{
	double count = (double)s->p->images * (double)s->p->size;

	for (int64_t i = 0; i < s->channels; i++)
		ckr_lanes_set(s->mean, s, i, mean[s->first + i]);
	ckr_strip_dots(s, dy, x);
	for (int64_t i = 0; i < s->channels; i++) {
		int64_t c = s->first + i;
		float r = ckr_inverse_deviation(var[c], s->p->eps);
		double dot = s->dot[i] * (double)r;

		if (dscale)
			dscale[c] = (float)dot;
		if (dbias)
			dbias[c] = (float)s->sum[i];
		ckr_lanes_set(s->k, s, i, r * (scale ? scale[c] : 1.0f));
		ckr_lanes_set(s->a, s, i, (float)(s->sum[i] / count));
		ckr_lanes_set(s->b, s, i, (float)(dot / count) * r);
	}
	if (dx)
		ckr_strip_dx(dx, s, dy, x);
}

void
ckr_batchnorm_grad(void *dx, float *dscale, float *dbias, const void *dy,
                   const void *x, const float *mean, const float *var,
                   const float *scale, const struct ckr_batchnorm *p,
                   const struct ckr_env *env)
{
	int64_t channels = ckr_strip_channels(p, env->threads);

	CKR_SHARE(p->images * p->channels * p->size)
	for (int64_t c = 0; c < p->channels; c += channels) {
		struct ckr_strip s;

		ckr_strip_set(&s, p, c, channels);
		ckr_strip_backward(&s, dx, dscale, dbias, dy, x, mean, var,
		                   scale);
	}
}

void
ckr_bn_update(float *y, const float *stat, const float *new, int64_t n,
              double momentum, const struct ckr_env *env)
{
	float keep = (float)momentum;

	for (int64_t i = 0; i < n; i++)
		y[i] = env->training ? stat[i] * keep + new[i] * (1.0f - keep)
		                     : stat[i];
}
