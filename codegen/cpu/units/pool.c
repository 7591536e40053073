/* Pools and resampling.  Threads share planes; within a plane the order is
 * fixed. */
#include "pool.h"

#define CKR_FOR_WINDOWS(p, v) \
	for (int64_t d_ = 0, w_ = 0; d_ < (p)->out[0]; d_++) \
	for (int64_t h_ = (v.at[0] = ckr_pool_taps(p, 0, d_, &v.lo[0], \
	     &v.hi[0]), 0); h_ < (p)->out[1]; h_++) \
	for (int64_t i_ = (v.at[1] = ckr_pool_taps(p, 1, h_, &v.lo[1], \
	     &v.hi[1]), 0); i_ < (p)->out[2] && \
	     (v.at[2] = ckr_pool_taps(p, 2, i_, &v.lo[2], &v.hi[2]), 1); \
	     i_++, w_++)

/* One tap of windows lo..hi-1: the first of equals, the last NaN. */
static inline void
ckr_max_tap(const float *x, int64_t row, int64_t s, int64_t lo, int64_t hi,
            float *best, int32_t *at)
{
#pragma omp simd
	for (int64_t i = lo; i < hi; i++) {
		float e = x[row + i * s];
		int take = (e > best[i]) | (e != e) | (at[i] < 0);

		best[i] = take ? e : best[i];
		at[i] = take ? (int32_t)(row + i * s) : at[i];
	}
}

/* The best of windows from..from+n-1 of a line, tap by tap. */
static inline void
ckr_max_piece(const struct ckr_pool *p, const struct ckr_cover *v,
              const float *x, int64_t from, int64_t n, float *best,
              int32_t *at)
{
	int64_t s = p->stride[2];

	for (int64_t i = 0; i < n; i++) {
		best[i] = -__builtin_inff();
		at[i] = -1;
	}
	for (int64_t kd = v->lo[0]; kd < v->hi[0]; kd++)
	for (int64_t kh = v->lo[1]; kh < v->hi[1]; kh++)
	for (int64_t k = 0; k < p->kernel[2]; k++) {
		int64_t first = from * s - p->begin[2] + k * p->dilation[2];
		int64_t row = ckr_cover_row(p, v, kd, kh) + first;
		int64_t lo = first < 0 ? (s - 1 - first) / s : 0, hi = 0;

		if (first < p->in[2])
			hi = (p->in[2] - 1 - first) / s + 1;
		hi = hi > n ? n : hi;
		/* a constant step needs no gather */
		if (s == 1)
			ckr_max_tap(x, row, 1, lo, hi, best, at);
		else if (s == 2)
			ckr_max_tap(x, row, 2, lo, hi, best, at);
		else
			ckr_max_tap(x, row, s, lo, hi, best, at);
	}
}

/* One plane; y or idx may be NULL. */
static inline void
ckr_max_plane(const struct ckr_pool *p, float *y, int32_t *idx,
              const float *x)
{
	enum { PIECE = 64 };
	float best[PIECE];
	int32_t at[PIECE];
	struct ckr_cover v = { 0 };

	for (int64_t line = 0; line < p->out[0] * p->out[1]; line++)
		for (int64_t i = 0; i < p->out[2]; i += PIECE) {
			int64_t n = p->out[2] - i < PIECE ? p->out[2] - i
			                                  : PIECE;
			int64_t to = line * p->out[2] + i;

			v.at[0] = ckr_pool_taps(p, 0, line / p->out[1],
			                        &v.lo[0], &v.hi[0]);
			v.at[1] = ckr_pool_taps(p, 1, line % p->out[1],
			                        &v.lo[1], &v.hi[1]);
			ckr_max_piece(p, &v, x, i, n, best, at);
			if (y)
				memcpy(y + to, best, (size_t)n * sizeof *y);
			if (idx)
				memcpy(idx + to, at, (size_t)n * sizeof *idx);
		}
}

void
ckr_maxpool(const struct ckr_pool *p, float *y, int32_t *idx, const float *x,
            const struct ckr_env *env)
{
	int64_t in = ckr_volume(p->in), out = ckr_volume(p->out);

	CKR_SHARE(p->planes * in)
	for (int64_t n = 0; n < p->planes; n++)
		ckr_max_plane(p, y ? y + n * out : NULL,
		              idx ? idx + n * out : NULL, x + n * in);
}

void
ckr_maxpool_grad(float *dx, const float *dy, const int32_t *idx,
                 int64_t planes, int64_t in, int64_t out,
                 const struct ckr_env *env)
{
	CKR_SHARE(planes * in)
	for (int64_t n = 0; n < planes; n++) {
		float *to = dx + n * in;

		memset(to, 0, (size_t)in * sizeof *to);
		for (int64_t i = n * out; i < (n + 1) * out; i++)
			if (idx[i] >= 0 && idx[i] < in)
				to[idx[i]] += dy[i];
	}
}

void
ckr_avgpool(const struct ckr_pool *p, float *y, const float *x,
            const struct ckr_env *env)
{
	int64_t in = ckr_volume(p->in), out = ckr_volume(p->out);

	CKR_SHARE(p->planes * in)
	for (int64_t n = 0; n < p->planes; n++) {
		struct ckr_cover v;

		CKR_FOR_WINDOWS(p, v)
			y[n * out + w_] = ckr_cover_mean(p, &v, x + n * in);
	}
}

void
ckr_avgpool_grad(const struct ckr_pool *p, float *dx, const float *dy,
                 const struct ckr_env *env)
{
	int64_t in = ckr_volume(p->in), out = ckr_volume(p->out);

	CKR_SHARE(p->planes * in)
	for (int64_t n = 0; n < p->planes; n++) {
		float *to = dx + n * in;
		struct ckr_cover v;

		memset(to, 0, (size_t)in * sizeof *to);
		CKR_FOR_WINDOWS(p, v) {
			float d = dy[n * out + w_] / ckr_pool_share(p, &v);

			for (int64_t kd = v.lo[0]; kd < v.hi[0]; kd++)
			for (int64_t kh = v.lo[1]; kh < v.hi[1]; kh++) {
				int64_t row = ckr_cover_row(p, &v, kd, kh);

				for (int64_t k = v.lo[2]; k < v.hi[2]; k++)
					to[row + k * p->dilation[2]] += d;
			}
		}
	}
}

/* ---- resampling: one axis, as a sparse matrix by rows ---- */

static inline void
ckr_resize_row(const struct ckr_resize *r, float *y, const float *x,
               int64_t t)
{
	int64_t n = r->inner;

	for (int64_t i = 0; i < n; i++)
		y[i] = r->first[t] == r->first[t + 1] ? r->fill : 0.0f;
	for (int32_t k = r->first[t]; k < r->first[t + 1]; k++) {
		const float *from = x + r->at[k] * n;
		float w = r->weight[k];

#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			y[i] += w * from[i];
	}
}

static inline void
ckr_resize_line(const struct ckr_resize *r, float *y, const float *x)
{
	for (int64_t t = 0; t < r->to; t++) {
		float sum = r->first[t] == r->first[t + 1] ? r->fill : 0.0f;

		for (int32_t k = r->first[t]; k < r->first[t + 1]; k++)
			sum += r->weight[k] * x[r->at[k]];
		y[t] = sum;
	}
}

void
ckr_resize(const struct ckr_resize *r, float *y, const float *x,
           const struct ckr_env *env)
{
	if (r->inner == 1) {
		CKR_SHARE(r->outer * r->to)
		for (int64_t o = 0; o < r->outer; o++)
			ckr_resize_line(r, y + o * r->to, x + o * r->from);
		return;
	}
	CKR_SHARE(r->outer * r->to * r->inner, collapse(2))
	for (int64_t o = 0; o < r->outer; o++)
		for (int64_t t = 0; t < r->to; t++)
			ckr_resize_row(r, y + (o * r->to + t) * r->inner,
			               x + o * r->from * r->inner, t);
}
