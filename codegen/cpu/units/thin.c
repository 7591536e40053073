/* Convolutions of one input channel per group.
 *
 * Planes of x, of some images and one group, are copied, their padding written
 * out, into one plane for every phase of the stride, whose lines are as long
 * as those of the copy of y: then every tap is one run over all of it, however
 * short lines are, and sums over taps stay in registers.  Elements between the
 * lines of y are zeros or are not looked at.  Copies are float32, of 16-bit
 * floats too.
 */
#include "thin.h"
#include "sums.h"

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

/* The same of 16-bit floats. */
static inline void
ckr_thin_half_line(float *p, void *q, int type, struct ckr_span w, int64_t s,
                   int back, float start)
{
	int64_t n = w.hi - w.lo;

	if (back) {
#pragma omp simd
		for (int64_t i = w.lo; i < w.hi; i++)
			p[i] += start;
	}
	if (s == 1 && back)
		ckr_narrow(q, type, w.lo, p + w.lo, n);
	else if (s == 1)
		ckr_widen(p + w.lo, q, type, w.lo, n);
	else
		for (int64_t i = w.lo; i < w.hi; i++)
			if (back)
				ckr_narrow(q, type, i * s, p + i, 1);
			else
				ckr_widen(p + i, q, type, i * s, 1);
}

/* A line of x to its phase; or back, with `start` added. */
static inline void
ckr_thin_line(float *p, void *line, int type, struct ckr_span w, int64_t s,
              int back, float start)
{
	float *q = line;

	if (type != CKR_F32) {
		ckr_thin_half_line(p, line, type, w, s, back, start);
	} else if (back && s == 1) {
#pragma omp simd
		for (int64_t i = w.lo; i < w.hi; i++)
			q[i] = start + p[i];
	} else if (back) {
		for (int64_t i = w.lo; i < w.hi; i++)
			q[i * s] = start + p[i];
	} else if (s == 1) {
#pragma omp simd
		for (int64_t i = w.lo; i < w.hi; i++)
			p[i] = q[i];
	} else if (s == 2) {
#pragma omp simd
		for (int64_t i = w.lo; i < w.hi; i++)
			p[i] = q[2 * i];
	} else {
		for (int64_t i = w.lo; i < w.hi; i++)
			p[i] = q[i * s];
	}
}

/* A plane of x to its phases, or back. */
static inline void
ckr_thin_x(const struct ckr_conv *c, const struct ckr_thin *t, float *phases,
           const void *x, int back, float start)
{
	for (int64_t pd = 0; pd < t->phases[0]; pd++)
	for (int64_t ph = 0; ph < t->phases[1]; ph++)
	for (int64_t pw = 0; pw < t->phases[2]; pw++, phases += t->size) {
		struct ckr_span a = ckr_span(c, t, 0, pd);
		struct ckr_span b = ckr_span(c, t, 1, ph);
		struct ckr_span w = ckr_span(c, t, 2, pw);

		for (int64_t d = a.lo; d < a.hi; d++)
		for (int64_t h = b.lo; h < b.hi; h++)
			ckr_thin_line(phases + (d * t->room[1] + h) *
				t->room[2], ckr_item(x, c->type, ((a.first + d
				* c->stride[0]) * c->in[1] + b.first + h
				* c->stride[1]) * c->in[2] + w.first), c->type,
				w, c->stride[2], back, start);
	}
}

/* Lines of y to their places in a run, or back. */
static inline void
ckr_thin_y(const struct ckr_conv *c, const struct ckr_thin *t, float *run,
           const void *y, int back)
{
	for (int64_t d = 0; d < c->out[0]; d++)
		for (int64_t h = 0; h < c->out[1]; h++) {
			float *p = run + (d * t->room[1] + h) * t->room[2];
			void *q = ckr_item(y, c->type, (d * c->out[1] + h)
			                   * c->out[2]);

			if (back)
				ckr_narrow(q, c->type, 0, p, c->out[2]);
			else
				ckr_widen(p, q, c->type, 0, c->out[2]);
		}
}

/* to[i] = start, or what it is with `more`, + the sum over taps of f times
 * from[i + at]; up to a whole vector beyond n. */
static inline void
ckr_thin_sum(float *to, const float *from, int64_t n,
             const struct ckr_tap *tap, int64_t taps, const float *f,
             float start, int more)
{
	int64_t i = 0;

	for (; i + 4 * CKR_WIDE <= n; i += 4 * CKR_WIDE) {
		ckr_lanes *y = (ckr_lanes *)(to + i);
		ckr_lanes a0 = start + (ckr_lanes){ 0 }, a1 = a0, a2 = a0;
		ckr_lanes a3 = a0;

		if (more) {
			a0 = y[0];
			a1 = y[1];
			a2 = y[2];
			a3 = y[3];
		}
		for (int64_t k = 0; k < taps; k++) {
			const ckr_lanes *x = (const ckr_lanes *)
				(from + i + tap[k].at);
			float s = f[tap[k].weight];

			a0 += x[0] * s;
			a1 += x[1] * s;
			a2 += x[2] * s;
			a3 += x[3] * s;
		}
		y[0] = a0;
		y[1] = a1;
		y[2] = a2;
		y[3] = a3;
	}
	for (; i < n; i += CKR_WIDE) {
		ckr_lanes *y = (ckr_lanes *)(to + i);
		ckr_lanes a = start + (ckr_lanes){ 0 };

		if (more)
			a = *y;
		for (int64_t k = 0; k < taps; k++)
			a += *(const ckr_lanes *)(from + i + tap[k].at) *
			     f[tap[k].weight];
		*y = a;
	}
}

static inline float
ckr_fold_lanes(ckr_lanes a)
{
	float t[CKR_WIDE];

	*(ckr_lanes *)t = a;
	for (int w = CKR_WIDE / 2; w > 0; w /= 2)
		for (int i = 0; i < w; i++)
			t[i] += t[i + w];
	return t[0];
}

/* to[k] += the products of run and x[at k], for eight taps; n is a multiple
 * of the lanes. */
static inline void
ckr_thin_dots(float *to, const float *run, const float *x,
              const struct ckr_tap *tap, int64_t n)
{
	ckr_lanes a0 = { 0 }, a1 = a0, a2 = a0, a3 = a0;
	ckr_lanes a4 = a0, a5 = a0, a6 = a0, a7 = a0;

#define CKR_AT(k) *(const ckr_lanes *)(x + i + tap[k].at)
	for (int64_t i = 0; i < n; i += CKR_WIDE) {
		ckr_lanes r = *(const ckr_lanes *)(run + i);

		a0 += r * CKR_AT(0);
		a1 += r * CKR_AT(1);
		a2 += r * CKR_AT(2);
		a3 += r * CKR_AT(3);
		a4 += r * CKR_AT(4);
		a5 += r * CKR_AT(5);
		a6 += r * CKR_AT(6);
		a7 += r * CKR_AT(7);
	}
#undef CKR_AT
	to[0] += ckr_fold_lanes(a0);
	to[1] += ckr_fold_lanes(a1);
	to[2] += ckr_fold_lanes(a2);
	to[3] += ckr_fold_lanes(a3);
	to[4] += ckr_fold_lanes(a4);
	to[5] += ckr_fold_lanes(a5);
	to[6] += ckr_fold_lanes(a6);
	to[7] += ckr_fold_lanes(a7);
}

/* Number i of a bias, or 0. */
static inline float
ckr_thin_bias(const struct ckr_conv *c, const void *bias, int64_t i)
{
	float b = 0.0f;

	if (bias)
		ckr_widen(&b, bias, c->type, i, 1);
	return b;
}

/* Images first.. of group g: all channels of y over one of x. */
static inline void
ckr_thin_conv(const struct ckr_conv *c, const struct ckr_thin *t, void *y,
              const void *x, const void *w, const void *bias,
              int64_t first, int64_t g, float *own)
{
	float *run = own + t->all, weight[CKR_THIN_TAPS];

	for (int64_t i = 0; i < t->images; i++)
		ckr_thin_x(c, t, own + i * t->image, ckr_item(x, c->type,
		           ((first + i) * c->group + g) * c->in_size), 0, 0);
	for (int64_t o = g * c->cout; o < (g + 1) * c->cout; o++) {
		ckr_thin_sum(run, own, t->run, t->tap, c->taps,
		             ckr_row(weight, w, c->type, o * c->taps, c->taps),
		             ckr_thin_bias(c, bias, o), 0);
		for (int64_t i = 0; i < t->images; i++)
			ckr_thin_y(c, t, run + i * t->image, ckr_item(y,
			           c->type, ((first + i) * c->group * c->cout
			                     + o) * c->out_size), 1);
	}
}

static inline void
ckr_thin_dx(const struct ckr_conv *c, const struct ckr_thin *t, void *dx,
            const void *dy, const void *w, const void *bias,
            int64_t first, int64_t g, float *own)
{
	float *run = own + t->all + t->lead, start = ckr_thin_bias(c, bias, g);
	float weight[CKR_THIN_TAPS];
	int64_t phases = t->phases[0] * t->phases[1] * t->phases[2];

	for (int64_t o = g * c->cout; o < (g + 1) * c->cout; o++) {
		int64_t from = 0;

		for (int64_t i = 0; i < t->images; i++)
			ckr_thin_y(c, t, run + i * t->image, ckr_item(dy,
			           c->type, ((first + i) * c->group * c->cout
			                     + o) * c->out_size), 0);
		for (int64_t p = 0; p < phases; from = t->ends[p++])
			ckr_thin_sum(own + p * t->size, run, t->size,
			             t->tap + from, t->ends[p] - from,
			             ckr_row(weight, w, c->type, o * c->taps,
			                     c->taps), 0.0f, o > g * c->cout);
	}
	for (int64_t i = 0; i < t->images; i++) {
		void *to = ckr_item(dx, c->type, ((first + i) * c->group + g)
		                    * c->in_size);

		for (int64_t j = 0; j < c->in_size; j++)
			ckr_narrow(to, c->type, j, &start, 1);
		ckr_thin_x(c, t, own + i * t->image, to, 1, start);
	}
}

/* Weights of group g, summed over the images. */
static inline void
ckr_thin_dw(const struct ckr_conv *c, const struct ckr_thin *t, void *dw,
            const void *x, const void *dy, const void *none, int64_t first,
            int64_t g, float *own)
{
	float *run = own + t->all, *sum;
	int64_t n = (t->run + CKR_WIDE - 1) / CKR_WIDE * CKR_WIDE;

	(void)none;
	dw = ckr_item(dw, c->type, g * c->cout * c->taps);
	sum = c->type == CKR_F32 ? dw : own + c->room;
	memset(sum, 0, (size_t)(c->cout * c->taps) * sizeof *sum);
	for (; first < c->images; first += t->images) {
		for (int64_t i = 0; i < t->images; i++)
			ckr_thin_x(c, t, own + i * t->image, ckr_item(x,
			           c->type, ((first + i) * c->group + g)
			                    * c->in_size), 0, 0);
		for (int64_t o = 0; o < c->cout; o++) {
			float *to = sum + o * c->taps;
			int64_t k = 0;

			for (int64_t i = 0; i < t->images; i++)
				ckr_thin_y(c, t, run + i * t->image,
				           ckr_item(dy, c->type, (((first + i)
				                    * c->group + g) * c->cout
				                    + o) * c->out_size), 0);
			for (; k + 8 <= c->taps; k += 8)
				ckr_thin_dots(to + k, run, own, t->tap + k, n);
			for (; k < c->taps; k++)
				to[k] += ckr_dot(run, own + t->tap[k].at, n);
		}
	}
	if (c->type != CKR_F32)
		ckr_narrow(dw, c->type, 0, sum, c->cout * c->taps);
}

/* ---- over the threads ---- */

typedef void ckr_thin_task(const struct ckr_conv *c, const struct ckr_thin *t,
                           void *to, const void *from, const void *by,
                           const void *bias, int64_t first, int64_t g,
                           float *own);

/* So many tasks, of a group each.  Zeros of a thread's workspace stay where no
 * line lies. */
static inline void
ckr_thin_share(ckr_thin_task *task, int64_t tasks, const struct ckr_conv *c,
               const struct ckr_thin *t, void *to, const void *from,
               const void *by, const void *bias, float *workspace,
               const struct ckr_env *env)
{
#pragma omp parallel num_threads(env->threads)
	{
		float *own = workspace + omp_get_thread_num() * c->workspace;

		memset(own, 0, (size_t)c->workspace * sizeof *own);
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < tasks; i++)
			task(c, t, to, from, by, bias, i / c->group
			     * t->images, i % c->group, own);
	}
}

void
ckr_thins_conv(const struct ckr_conv *c, const struct ckr_thin *t, void *y,
               const void *x, const void *w, const void *bias,
               float *workspace, const struct ckr_env *env)
{
	ckr_thin_share(ckr_thin_conv, c->images / t->images * c->group, c, t,
	               y, x, w, bias, workspace, env);
}

void
ckr_thins_dx(const struct ckr_conv *c, const struct ckr_thin *t, void *dx,
             const void *dy, const void *w, const void *bias,
             float *workspace, const struct ckr_env *env)
{
	ckr_thin_share(ckr_thin_dx, c->images / t->images * c->group, c, t, dx,
	               dy, w, bias, workspace, env);
}

void
ckr_thins_dw(const struct ckr_conv *c, const struct ckr_thin *t, void *dw,
             const void *x, const void *dy, float *workspace,
             const struct ckr_env *env)
{
	ckr_thin_share(ckr_thin_dw, c->group, c, t, dw, x, dy, NULL, workspace,
	               env);
}
