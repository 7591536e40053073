/* Reference interpreter: convolutions, batch normalisation, pools,
 * resampling.  Everything is written as sums over (window, tap) pairs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ref/interp_int.h"

enum { DIMS = MAX_RANK };

/* ---- windows ---- */

struct slide {
	int n;                          /* spatial dims */
	const int64_t *in, *out, *kernel;       /* extents */
	const int64_t *stride, *dilation, *begin;
};

static int64_t
product(const int64_t *v, int n)
{
	int64_t p = 1;

	for (int i = 0; i < n; i++)
		p *= v[i];
	return p;
}

/* Where tap k of window o lies in a plane, -1 if in the padding. */
static int64_t
tap_at(const struct slide *s, int64_t o, int64_t k)
{
	int64_t at = 0, step = 1;

	for (int i = s->n - 1; i >= 0; i--) {
		int64_t x = o % s->out[i] * s->stride[i]
			+ k % s->kernel[i] * s->dilation[i] - s->begin[i];

		if (x < 0 || x >= s->in[i])
			return -1;
		at += x * step;
		step *= s->in[i];
		o /= s->out[i];
		k /= s->kernel[i];
	}
	return at;
}

struct conv {
	struct slide s;
	int64_t images, group, cin, cout, insize, outsize, taps;
};

#define CONV(c, id, x, y, w) \
	conv_of(x, y, w, (c)->a->id.group, (c)->a->id.stride.v, \
	        (c)->a->id.dilation.v, (c)->a->id.begin.v)

static struct conv
conv_of(const struct ten *x, const struct ten *y, const struct ten *w,
        int64_t group, const int64_t *stride, const int64_t *dilation,
        const int64_t *begin)
{
	int n = x->s.rank - 2;

	return (struct conv){
		.s = { n, x->s.dim + 2, y->s.dim + 2, w->s.dim + 2, stride,
		       dilation, begin },
		.images = x->s.dim[0], .group = group,
		.cin = x->s.dim[1] / group, .cout = y->s.dim[1] / group,
		.insize = product(x->s.dim + 2, n),
		.outsize = product(y->s.dim + 2, n),
		.taps = product(w->s.dim + 2, n),
	};
}

enum role { FOR_Y, FOR_X, FOR_W };

/* By window and tap: tap_at(). */
static int64_t *
table_of_taps(const struct conv *c)
{
	size_t n = (size_t)(c->outsize * c->taps);
	int64_t *at = interp_need(malloc((n + 1) * sizeof *at));

	for (size_t i = 0; i < n; i++)
		at[i] = tap_at(&c->s, (int64_t)i / c->taps,
		               (int64_t)i % c->taps);
	return at;
}

/* The trilinear form: one operand gets the sum of products of the others. */
static void
convolve(const struct conv *c, double *x, double *y, double *w, enum role r)
{
	int64_t *table = table_of_taps(c);

	for (int64_t n = 0; n < c->images * c->group; n++)
	for (int64_t o = 0; o < c->cout; o++)
	for (int64_t i = 0; i < c->cin; i++)
	for (int64_t p = 0; p < c->outsize; p++)
	for (int64_t k = 0; k < c->taps; k++) {
		int64_t at = table[p * c->taps + k];
		double *xp = x + (n * c->cin + i) * c->insize + at;
		double *yp = y + (n * c->cout + o) * c->outsize + p;
		double *wp = w + ((n % c->group * c->cout + o) * c->cin + i)
			* c->taps + k;

		if (at < 0)
			continue;
		if (r == FOR_Y)
			*yp += *xp * *wp;
		else if (r == FOR_X)
			*xp += *yp * *wp;
		else
			*wp += *xp * *yp;
	}
	free(table);
}

/* Start with the bias, or with zero. */
static void
start(struct ten *y, const double *bias)
{
	int64_t size = product(y->s.dim + 2, y->s.rank - 2);

	for (int64_t i = 0; i < y->n; i++)
		y->x[i] = bias ? bias[i / size % y->s.dim[1]] : 0;
}

bool
interp_conv(struct call *c)
{
	struct ten *y = &c->out[0];
	struct conv v = CONV(c, CONV, &c->in[0], y, &c->in[1]);

	start(y, c->nin > 2 ? c->in[2].x : NULL);
	convolve(&v, c->in[0].x, y->x, c->in[1].x, FOR_Y);
	return true;
}

bool
interp_conv_dx(struct call *c)
{
	struct ten *x = &c->out[0];
	struct conv v = CONV(c, CONV_DX, x, &c->in[0], &c->in[1]);

	start(x, c->nin > 2 ? c->in[2].x : NULL);
	convolve(&v, x->x, c->in[0].x, c->in[1].x, FOR_X);
	return true;
}

bool
interp_conv_dw(struct call *c)
{
	struct ten *w = &c->out[0];
	struct conv v = CONV(c, CONV_DW, &c->in[0], &c->in[1], w);

	memset(w->x, 0, (size_t)w->n * sizeof *w->x);
	convolve(&v, c->in[0].x, c->in[1].x, w->x, FOR_W);
	return true;
}

/* ---- batch normalisation ---- */

/* Each element of channel ch of x; a channel of one image has size. */
#define FOR_CHANNEL(i, x, size, ch) \
	for (int64_t i##_0 = (ch) * (size); i##_0 < (x)->n; \
	     i##_0 += (x)->s.dim[1] * (size)) \
		for (int64_t i = i##_0; i < i##_0 + (size); i++)

/* Sum over all elements of channel ch of a * b; b NULL: of a. */
static double
channel_sum(const struct ten *a, const double *b, int64_t ch)
{
	int64_t size = product(a->s.dim + 2, a->s.rank - 2);
	double sum = 0;

	FOR_CHANNEL (i, a, size, ch)
		sum += a->x[i] * (b ? b[i] : 1);
	return sum;
}

bool
interp_batchnorm(struct call *c)
{
	const struct ten *x = &c->in[0];
	int64_t nch = x->s.dim[1], size = product(x->s.dim + 2, x->s.rank - 2);
	const double *scale = c->nin > 1 ? c->in[1].x : NULL;
	const double *bias = c->nin > 2 ? c->in[2].x : NULL;

	for (int64_t ch = 0; ch < nch; ch++) {
		double n = (double)(x->n / nch);
		double mean = channel_sum(x, NULL, ch) / n, var = 0, k;

		FOR_CHANNEL (i, x, size, ch)
			var += pow(x->x[i] - mean, 2) / n;
		k = (scale ? scale[ch] : 1)
			/ sqrt(var + c->a->BATCHNORM.eps);
		if (c->out[0].x)
			FOR_CHANNEL (i, x, size, ch)
				c->out[0].x[i] = (x->x[i] - mean) * k
					+ (bias ? bias[ch] : 0);
		if (c->nout > 1 && c->out[1].x)
			c->out[1].x[ch] = mean;
		if (c->nout > 2 && c->out[2].x)
			c->out[2].x[ch] = var;
	}
	return true;
}

bool
interp_batchnorm_grad(struct call *c)
{
	const struct ten *dy = &c->in[0], *x = &c->in[1];
	const double *mean = c->in[2].x, *var = c->in[3].x;
	const double *scale = c->nin > 4 ? c->in[4].x : NULL;
	int64_t nch = x->s.dim[1], size = product(x->s.dim + 2, x->s.rank - 2);
	double n = (double)x->n / (double)nch;

	for (int64_t ch = 0; ch < nch; ch++) {
		double r = 1 / sqrt(var[ch] + c->a->BATCHNORM_GRAD.eps);
		double db = channel_sum(dy, NULL, ch);
		double ds = (channel_sum(dy, x->x, ch) - mean[ch] * db) * r;

		if (c->out[1].x)
			c->out[1].x[ch] = ds;
		if (c->out[2].x)
			c->out[2].x[ch] = db;
		if (c->out[0].x)
			FOR_CHANNEL (i, x, size, ch)
				c->out[0].x[i] = (scale ? scale[ch] : 1) * r
					* (dy->x[i] - db / n - (x->x[i]
					- mean[ch]) * r * ds / n);
	}
	return true;
}

bool
interp_bn_update(struct call *c)
{
	double m = c->a->BN_UPDATE.momentum;

	for (int64_t i = 0; i < c->out[0].n; i++)
		c->out[0].x[i] = !c->env->training ? c->in[0].x[i]
			: m * c->in[0].x[i] + (1 - m) * c->in[1].x[i];
	return true;
}

/* ---- pools ---- */

#define SLIDE(c, id, x, y) \
	((struct slide){ (x)->s.rank - 2, (x)->s.dim + 2, (y)->s.dim + 2, \
		(c)->a->id.kernel.v, (c)->a->id.stride.v, \
		(c)->a->id.dilation.v, (c)->a->id.begin.v })

bool
interp_maxpool(struct call *c)
{
	const struct ten *x = &c->in[0];
	const struct ten *y = c->out[0].x ? &c->out[0] : &c->out[1];
	struct slide s = SLIDE(c, MAXPOOL, x, y);
	int64_t in = product(s.in, s.n), out = product(s.out, s.n);
	int64_t taps = product(s.kernel, s.n);

	for (int64_t i = 0; i < y->n; i++) {
		const double *plane = x->x + i / out * in;
		int64_t best = -1;

		for (int64_t k = 0; k < taps; k++) {
			int64_t at = tap_at(&s, i % out, k);

			if (at >= 0 && (best < 0 || plane[at] > plane[best]
			                || isnan(plane[at])))
				best = at;
		}
		if (c->out[0].x)
			c->out[0].x[i] = best < 0 ? -INFINITY : plane[best];
		if (c->nout > 1 && c->out[1].x)
			c->out[1].x[i] = (double)best;
	}
	return true;
}

bool
interp_maxpool_grad(struct call *c)
{
	const struct ten *dy = &c->in[0];
	struct ten *dx = &c->out[0];
	int64_t in = product(dx->s.dim + 2, dx->s.rank - 2);
	int64_t out = product(dy->s.dim + 2, dy->s.rank - 2);

	memset(dx->x, 0, (size_t)dx->n * sizeof *dx->x);
	for (int64_t i = 0; i < dy->n; i++)
		if (c->in[1].x[i] >= 0)
			dx->x[i / out * in + (int64_t)c->in[1].x[i]]
				+= dy->x[i];
	return true;
}

/* How many taps of window o an average divides by. */
static double
divisor(const struct slide *s, const int64_t *end, bool include, int64_t o)
{
	int64_t taps = product(s->kernel, s->n), count = 0;
	int64_t in[DIMS], begin[DIMS];
	struct slide padded = *s;

	/* the padded plane is a plane without padding */
	for (int i = 0; i < s->n; i++) {
		in[i] = s->in[i] + s->begin[i] + end[i];
		begin[i] = 0;
	}
	padded.in = in;
	padded.begin = begin;
	for (int64_t k = 0; k < taps; k++)
		count += tap_at(include ? &padded : s, o, k) >= 0;
	return (double)count;
}

/* Averages, or their transpose. */
static void
average(const struct slide *s, const int64_t *end, bool include,
        int64_t planes, double *x, double *y, bool back)
{
	int64_t in = product(s->in, s->n), out = product(s->out, s->n);
	int64_t taps = product(s->kernel, s->n);

	for (int64_t i = 0; i < planes * out; i++) {
		double n = divisor(s, end, include, i % out);

		for (int64_t k = 0; k < taps; k++) {
			int64_t at = tap_at(s, i % out, k);

			if (at < 0)
				continue;
			if (back)
				x[i / out * in + at] += y[i] / n;
			else
				y[i] += x[i / out * in + at] / n;
		}
	}
}

bool
interp_avgpool(struct call *c)
{
	struct ten *x = &c->in[0], *y = &c->out[0];
	struct slide s = SLIDE(c, AVGPOOL, x, y);

	memset(y->x, 0, (size_t)y->n * sizeof *y->x);
	average(&s, c->a->AVGPOOL.end.v, c->a->AVGPOOL.include,
	        x->s.dim[0] * x->s.dim[1], x->x, y->x, false);
	return true;
}

bool
interp_avgpool_grad(struct call *c)
{
	struct ten *dy = &c->in[0], *dx = &c->out[0];
	struct slide s = SLIDE(c, AVGPOOL_GRAD, dx, dy);

	memset(dx->x, 0, (size_t)dx->n * sizeof *dx->x);
	average(&s, c->a->AVGPOOL_GRAD.end.v, c->a->AVGPOOL_GRAD.include,
	        dx->s.dim[0] * dx->s.dim[1], dx->x, dy->x, true);
	return true;
}

/* ---- resampling ---- */

static double
source(const Attr *a, int64_t to)
{
	double n = (double)a->RESIZE.extent_in;
	double m = (double)a->RESIZE.extent_out;
	double x = (double)to, s = a->RESIZE.scale ? a->RESIZE.scale : m / n;
	double l = a->RESIZE.first, r = a->RESIZE.last;

	switch (a->RESIZE.coord) {
	case 0: return (x + .5) / s - .5;
	case 1: return m > 1 ? (x + .5) / s - .5 : 0;
	case 2: return m != 1 ? x * (n - 1) / (m - 1) : 0;
	case 3: return x / s;
	case 4: return m > 1 ? l * (n - 1) + x * (r - l) * (n - 1) / (m - 1)
	                     : .5 * (l + r) * (n - 1);
	case 5: return n / 2 * (1 - m / (s * n)) + (x + .5) / s - .5;
	default: return (x + .5) / s;
	}
}

static double
bump(const Attr *a, double d)
{
	double c = a->RESIZE.cubic;

	d = fabs(d);
	if (a->RESIZE.mode == 1)
		return d < 1 ? 1 - d : 0;
	if (d < 1)
		return (c + 2) * pow(d, 3) - (c + 3) * pow(d, 2) + 1;
	return d < 2 ? c * pow(d, 3) - 5 * c * pow(d, 2) + 8 * c * d - 4 * c
	             : 0;
}

/* Weight of tap i, anywhere on the line, for a position x. */
static double
tap_weight(const Attr *a, int64_t i, double x)
{
	double s = a->RESIZE.scale ? a->RESIZE.scale
		: (double)a->RESIZE.extent_out / (double)a->RESIZE.extent_in;
	double low = floor(x), part = x - low, pick;

	if (a->RESIZE.mode != 0)
		return bump(a, ((double)i - x)
		            * (a->RESIZE.antialias && s < 1 ? s : 1));
	switch (a->RESIZE.round) {
	case 0: pick = part <= .5 ? low : low + 1; break;
	case 1: pick = part < .5 ? low : low + 1; break;
	case 2: pick = low; break;
	default: pick = part > 0 ? low + 1 : low; break;
	}
	return (double)i == pick;
}

/* Row o of the matrix; false: nothing but the fill value. */
static bool
resize_row(const Attr *a, int64_t o, double *row)
{
	int64_t n = a->RESIZE.extent_in, m = a->RESIZE.extent_out;
	int64_t reach = 8 * (n + m) + 64;
	double x = source(a, o), sum = 0, half = round(2 * x) / 2;

	/* floats for decimal fractions */
	if ((a->RESIZE.scale > 0 || a->RESIZE.coord == 4)
	    && fabs(x - half) <= 7e-8 * (1 + fabs(x)))
		x = half;
	memset(row, 0, (size_t)n * sizeof *row);
	if (a->RESIZE.coord == 4 && (x < 0 || x > (double)(n - 1)))
		return false;
	for (int64_t i = -reach; i < n + reach; i++) {
		double w = tap_weight(a, i, x);

		if (a->RESIZE.exclude && a->RESIZE.mode != 0
		    && (i < 0 || i >= n))
			continue;
		sum += w;
		row[i < 0 ? 0 : i >= n ? n - 1 : i] += w;
	}
	for (int64_t i = 0; i < n; i++)
		row[i] /= sum;
	return true;
}

bool
interp_resize(struct call *c)
{
	const Attr *a = c->a;
	const struct ten *x = &c->in[0];
	struct ten *y = &c->out[0];
	int axis = (int)a->RESIZE.axis;
	int64_t inner = interp_extent(&x->s, axis + 1, x->s.rank);
	int64_t outer = interp_extent(&x->s, 0, axis);
	int64_t n = a->RESIZE.extent_in, m = a->RESIZE.extent_out;
	double *row = interp_need(malloc((size_t)n * sizeof *row));
	bool bwd = a->RESIZE.bwd;

	memset(y->x, 0, (size_t)y->n * sizeof *y->x);
	for (int64_t o = 0; o < m; o++) {
		bool any = resize_row(a, o, row);

		for (int64_t l = 0; l < outer * inner; l++) {
			int64_t big = l / inner * m * inner + l % inner;
			int64_t small = l / inner * n * inner + l % inner;

			for (int64_t i = 0; i < n && bwd && any; i++)
				y->x[small + i * inner]
					+= row[i] * x->x[big + o * inner];
			for (int64_t i = 0; i < n && !bwd && any; i++)
				y->x[big + o * inner]
					+= row[i] * x->x[small + i * inner];
			if (!bwd && !any)
				y->x[big + o * inner] = a->RESIZE.fill;
		}
	}
	free(row);
	return true;
}
