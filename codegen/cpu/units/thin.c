/* Convolutions of one input channel per group.
 *
 * A plane of x is copied, its padding written out, into one plane for every
 * phase of the stride, whose lines are as long as those of the copy of y: then
 * every tap is one run over the whole plane, however short its lines are.
 * Elements between the lines of y are zeros or are not looked at.
 */
#include "thin.h"
#include "sums.h"

/* ORDER THIN: sizes as ir/window.c gives scratch for. */
struct ckr_thin {
	int64_t phases[3];              /* that taps can ask for */
	int64_t room[3];                /* elements of a phase */
	int64_t size, all;              /* floats of a phase, of all */
	int64_t run;                    /* first to last element of y */
};

static inline struct ckr_thin
ckr_thin(const struct ckr_conv *c)
{
	struct ckr_thin t = { .size = 1, .all = 1 };

	for (int i = 0; i < 3; i++) {
		int64_t reach = (c->kernel[i] - 1) * c->dilation[i];

		t.phases[i] = c->stride[i] < reach + 1 ? c->stride[i]
		                                       : reach + 1;
		t.room[i] = c->out[i] + reach / c->stride[i];
		t.size *= t.room[i];
		t.all *= t.phases[i];
	}
	t.all *= t.size;
	t.run = ((c->out[0] - 1) * t.room[1] + c->out[1] - 1) * t.room[2] +
	        c->out[2];
	return t;
}

/* Where a tap's run begins among the phases. */
static inline int64_t
ckr_thin_tap(const struct ckr_conv *c, const struct ckr_thin *t, int64_t kd,
             int64_t kh, int64_t kw)
{
	int64_t tap[3] = { kd, kh, kw }, phase = 0, at = 0;

	for (int i = 0; i < 3; i++) {
		int64_t e = tap[i] * c->dilation[i];

		phase = phase * t->phases[i] + e % c->stride[i];
		at = at * t->room[i] + e / c->stride[i];
	}
	return phase * t->size + at;
}

/* Element e of a phase along dim i is element first + e * stride of the
 * plane, for e in lo..hi-1. */
struct ckr_span {
	int64_t first, lo, hi;
};

static inline struct ckr_span
ckr_span(const struct ckr_conv *c, const struct ckr_thin *t, int i,
         int64_t phase)
{
	struct ckr_span r = { phase - c->begin[i], 0, 0 };
	int64_t s = c->stride[i];

	if (r.first < 0)
		r.lo = (s - 1 - r.first) / s;
	if (r.first < c->in[i])
		r.hi = (c->in[i] - 1 - r.first) / s + 1;
	r.hi = r.hi > t->room[i] ? t->room[i] : r.hi;
	r.lo = r.lo > r.hi ? r.hi : r.lo;
	return r;
}

#define CKR_FOR_PHASES(t) \
	for (int64_t pd = 0, p_ = 0; pd < (t)->phases[0]; pd++) \
	for (int64_t ph = 0; ph < (t)->phases[1]; ph++) \
	for (int64_t pw = 0; pw < (t)->phases[2]; pw++, p_++)

/* x to its phases; or, with `back`, the phases added to dx. */
static inline void
ckr_thin_x(const struct ckr_conv *c, const struct ckr_thin *t, float *phases,
           float *x, int back)
{
	int64_t s = c->stride[2];

	CKR_FOR_PHASES(t) {
		struct ckr_span a = ckr_span(c, t, 0, pd);
		struct ckr_span b = ckr_span(c, t, 1, ph);
		struct ckr_span w = ckr_span(c, t, 2, pw);

		for (int64_t d = a.lo; d < a.hi; d++)
		for (int64_t h = b.lo; h < b.hi; h++) {
			float *p = phases + p_ * t->size +
				(d * t->room[1] + h) * t->room[2];
			float *q = x + ((a.first + d * c->stride[0]) *
				c->in[1] + b.first + h * c->stride[1]) *
				c->in[2] + w.first;

			if (back)
				for (int64_t i = w.lo; i < w.hi; i++)
					q[i * s] += p[i];
			else if (s == 1)
				memcpy(p + w.lo, q + w.lo, (size_t)
				       (w.hi - w.lo) * sizeof *p);
			else
				for (int64_t i = w.lo; i < w.hi; i++)
					p[i] = q[i * s];
		}
	}
}

/* Lines of y to their places in a run, or back. */
static inline void
ckr_thin_y(const struct ckr_conv *c, const struct ckr_thin *t, float *run,
           float *y, int back)
{
	for (int64_t d = 0; d < c->out[0]; d++)
		for (int64_t h = 0; h < c->out[1]; h++) {
			float *p = run + (d * t->room[1] + h) * t->room[2];
			float *q = y + (d * c->out[1] + h) * c->out[2];

			memcpy(back ? q : p, back ? p : q,
			       (size_t)c->out[2] * sizeof *q);
		}
}

static inline void
ckr_add_scaled(float *to, const float *from, float factor, int64_t n)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		to[i] += factor * from[i];
}

/* All channels of y over one of x. */
static inline void
ckr_thin_conv(const struct ckr_conv *c, float *y, const float *x,
              const float *w, const float *bias, int64_t plane, float *own)
{
	struct ckr_thin t = ckr_thin(c);
	int64_t g = plane % c->group;
	float *run = own + t.all;
	enum { PIECE = 2048 };

	memset(own, 0, (size_t)t.all * sizeof *own);
	ckr_thin_x(c, &t, own, (float *)(uintptr_t)x + plane * c->in_size, 0);
	for (int64_t o = 0; o < c->cout; o++) {
		const float *f = w + (g * c->cout + o) * c->taps;
		float start = bias ? bias[g * c->cout + o] : 0.0f;

		for (int64_t i = 0; i < t.run; i += PIECE) {
			int64_t n = t.run - i < PIECE ? t.run - i : PIECE;
			int64_t tap = 0;

			for (int64_t j = 0; j < n; j++)
				run[i + j] = start;
			CKR_FOR_TAPS(c)
				ckr_add_scaled(run + i, own + i +
					ckr_thin_tap(c, &t, kd, kh, kw),
					f[tap++], n);
		}
		ckr_thin_y(c, &t, run, y + (plane * c->cout + o) *
		           c->out_size, 1);
	}
}

static inline void
ckr_thin_dx(const struct ckr_conv *c, float *dx, const float *dy,
            const float *w, const float *bias, int64_t plane, float *own)
{
	struct ckr_thin t = ckr_thin(c);
	int64_t g = plane % c->group;
	float *run = own + t.all, start = bias ? bias[g] : 0.0f;

	dx += plane * c->in_size;
	memset(own, 0, (size_t)(t.all + t.run) * sizeof *own);
	for (int64_t o = 0; o < c->cout; o++) {
		const float *f = w + (g * c->cout + o) * c->taps;

		ckr_thin_y(c, &t, run, (float *)(uintptr_t)dy +
		           (plane * c->cout + o) * c->out_size, 0);
		CKR_FOR_TAPS(c)
			ckr_add_scaled(own + ckr_thin_tap(c, &t, kd, kh, kw),
			               run, *f++, t.run);
	}
	for (int64_t i = 0; i < c->in_size; i++)
		dx[i] = start;
	ckr_thin_x(c, &t, own, dx, 1);
}

/* Weights of group g, summed over the images. */
static inline void
ckr_thin_dw(const struct ckr_conv *c, float *dw, const float *x,
            const float *dy, int64_t g, float *own)
{
	struct ckr_thin t = ckr_thin(c);
	int64_t n = c->cout * c->taps;
	float *run = own + t.all;

	dw += g * n;
	memset(own, 0, (size_t)(t.all + t.run) * sizeof *own);
	memset(dw, 0, (size_t)n * sizeof *dw);
	for (int64_t i = 0; i < c->images; i++) {
		int64_t plane = i * c->group + g, tap = 0;

		ckr_thin_x(c, &t, own, (float *)(uintptr_t)x +
		           plane * c->in_size, 0);
		for (int64_t o = 0; o < c->cout; o++) {
			ckr_thin_y(c, &t, run, (float *)(uintptr_t)dy +
			           (plane * c->cout + o) * c->out_size, 0);
			CKR_FOR_TAPS(c)
				dw[tap++] += ckr_dot(run, own +
					ckr_thin_tap(c, &t, kd, kh, kw),
					t.run);
		}
	}
}

/* ---- over the threads ---- */

static inline float *
ckr_thin_own(const struct ckr_conv *c, float *scratch)
{
	return scratch + omp_get_thread_num() * c->scratch;
}

void
ckr_thins_conv(const struct ckr_conv *c, float *y, const float *x,
               const float *w, const float *bias, float *scratch,
               const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) schedule(dynamic)
	for (int64_t i = 0; i < c->images * c->group; i++)
		ckr_thin_conv(c, y, x, w, bias, i, ckr_thin_own(c, scratch));
}

void
ckr_thins_dx(const struct ckr_conv *c, float *dx, const float *dy,
             const float *w, const float *bias, float *scratch,
             const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) schedule(dynamic)
	for (int64_t i = 0; i < c->images * c->group; i++)
		ckr_thin_dx(c, dx, dy, w, bias, i, ckr_thin_own(c, scratch));
}

void
ckr_thins_dw(const struct ckr_conv *c, float *dw, const float *x,
             const float *dy, float *scratch, const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) schedule(dynamic)
	for (int64_t g = 0; g < c->group; g++)
		ckr_thin_dw(c, dw, x, dy, g, ckr_thin_own(c, scratch));
}
