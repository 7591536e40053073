/* Sampling at the positions of a grid, as a sum over the whole plane. */
#include "tests/ref/interp_int.h"

#include <stdlib.h>
#include <string.h>

enum { DIMS = 3 };

struct how {
	int64_t mode, padding, align;
};

/* x within n elements as the padding has it; *slope turns and ends with it. */
static double
padded(const struct how *h, double x, int64_t n, double *slope)
{
	double m = (double)n, first = h->align ? 0 : -.5, t;
	double period = h->align ? 2 * (m - 1) : 2 * m;

	if (h->padding == 2 && period > 0) {
		t = x - first - period * floor((x - first) / period);
		if (t > period / 2) {
			t = period - t;
			*slope = -*slope;
		}
		x = first + t;
	}
	if (h->padding && x >= m - 1) {
		x = m - 1;
		*slope = 0;
	}
	if (h->padding && x <= 0)
		x = *slope = 0;
	return x;
}

/* Keys' kernel with a = -0.75 and its derivative, at a distance. */
static double
keys(double x, double *slope)
{
	const double a = -.75;
	double far = fabs(x), sign = x < 0 ? -1 : 1;

	*slope = 0;
	if (far >= 2)
		return 0;
	if (far >= 1) {
		*slope = sign * a * (3 * far * far - 10 * far + 8);
		return a * (far * far * far - 5 * far * far + 8 * far - 4);
	}
	*slope = sign * (3 * (a + 2) * far * far - 2 * (a + 3) * far);
	return (a + 2) * far * far * far - (a + 3) * far * far + 1;
}

/* Elements around x as far as the kernel goes, each where the padding has
 * it. */
static void
cubic_weights(const struct how *h, double x, double slope, int64_t n,
              double *w, double *d)
{
	memset(w, 0, (size_t)n * sizeof *w);
	memset(d, 0, (size_t)n * sizeof *d);
	for (int k = -1; k <= 2; k++) {
		double from = floor(x) + k, flat, change;
		double to = padded(h, from, n, &flat);
		double weight = keys(x - from, &change);

		if (to < 0 || to >= (double)n)
			continue;
		w[(int64_t)to] += weight;
		d[(int64_t)to] += change * slope;
	}
}

/* Weights of all n elements of a dim for a grid's number, and their
 * derivatives. */
static void
axis_weights(const struct how *h, double grid, int64_t n, double *w, double *d)
{
	double m = (double)n, first = h->align ? 0 : -.5;
	double slope = (h->align ? m - 1 : m) / 2;
	double x = first + (grid + 1) * slope;

	if (h->mode == 2) {
		cubic_weights(h, x, slope, n, w, d);
		return;
	}
	x = padded(h, x, n, &slope);
	for (int64_t i = 0; i < n; i++) {
		double far = x - (double)i;

		w[i] = h->mode ? fmax(0, 1 - fabs(far))
		               : nearbyint(x) == (double)i;
		d[i] = !h->mode || far >= 1 || far < -1 ? 0
			: far < 0 ? slope : -slope;
	}
}

/* What one point has to do with element `at` of each plane of an image. */
struct pair {
	int64_t channels, points, plane;        /* y and x: strides */
	double weight, step[DIMS];
};

static void
forward(const struct pair *p, double *y, const double *x)
{
	for (int64_t c = 0; c < p->channels; c++)
		if (p->weight != 0)
			y[c * p->points] += p->weight * x[c * p->plane];
}

static void
backward(const struct pair *p, const double *dy, const double *x, double *dx,
         double *dgrid, int dims)
{
	for (int64_t c = 0; c < p->channels; c++) {
		double d = dy[c * p->points];

		if (dx)
			dx[c * p->plane] += p->weight * d;
		for (int k = 0; dgrid && k < dims; k++)
			dgrid[dims - 1 - k] += d * x[c * p->plane]
				* p->step[k];
	}
}

/* Weight and derivatives of element `at` of a plane. */
static void
element(struct pair *p, const Shape *x, int64_t at, double *const w[DIMS],
        double *const d[DIMS])
{
	int64_t idx[DIMS];

	for (int k = x->rank - 3; k >= 0; k--) {
		idx[k] = at % x->dim[2 + k];
		at /= x->dim[2 + k];
	}
	p->weight = 1;
	for (int k = 0; k < x->rank - 2; k++) {
		p->weight *= w[k][idx[k]];
		p->step[k] = d[k][idx[k]];
		for (int j = 0; j < x->rank - 2; j++)
			p->step[k] *= j == k ? 1 : w[j][idx[j]];
	}
}

/* y or, if dy is there, dx and dgrid. */
static void
sample(const struct how *h, const Shape *s, const struct ten *grid,
       const double *x, double *y, const double *dy, double *dx,
       double *dgrid)
{
	int dims = s->rank - 2;
	int64_t points = grid->n / (grid->s.dim[0] * dims);
	int64_t plane = interp_extent(s, 2, s->rank);
	struct pair p = { s->dim[1], points, plane, 0, { 0 } };
	double *w[DIMS], *d[DIMS];

	for (int k = 0; k < dims; k++) {
		size_t n = (size_t)s->dim[2 + k] * sizeof(double);

		w[k] = interp_need(malloc(n));
		d[k] = interp_need(malloc(n));
	}
	for (int64_t q = 0; q < s->dim[0] * points; q++) {
		int64_t from = q / points * s->dim[1] * plane;
		int64_t to = q / points * s->dim[1] * points + q % points;

		for (int k = 0; k < dims; k++)
			axis_weights(h, grid->x[q * dims + dims - 1 - k],
			             s->dim[2 + k], w[k], d[k]);
		for (int64_t i = 0; i < plane; i++) {
			element(&p, s, i, w, d);
			if (!dy)
				forward(&p, y + to, x + from + i);
			else
				backward(&p, dy + to, x ? x + from + i : x,
				         dx ? dx + from + i : dx,
				         dgrid ? dgrid + q * dims : dgrid,
				         dims);
		}
	}
	for (int k = 0; k < dims; k++) {
		free(w[k]);
		free(d[k]);
	}
}

bool
interp_grid_sample(struct call *c)
{
	const struct how h = { c->a->GRID_SAMPLE.mode,
		c->a->GRID_SAMPLE.padding, c->a->GRID_SAMPLE.align };
	struct ten *y = &c->out[0];

	memset(y->x, 0, (size_t)y->n * sizeof *y->x);
	sample(&h, &c->in[0].s, &c->in[1], c->in[0].x, y->x, NULL, NULL, NULL);
	return true;
}

bool
interp_grid_sample_grad(struct call *c)
{
	const Attr *a = c->a;
	const struct how h = { a->GRID_SAMPLE_GRAD.mode,
		a->GRID_SAMPLE_GRAD.padding, a->GRID_SAMPLE_GRAD.align };
	Shape s = c->in[0].s;

	for (int i = 0; i < a->GRID_SAMPLE_GRAD.out.n; i++)
		s.dim[2 + i] = a->GRID_SAMPLE_GRAD.out.v[i];
	if (c->out[1].x && (c->nin < 3 || !c->in[2].x))
		return interp_fail(c, "the grid's gradient without x");
	for (int k = 0; k < 2; k++)
		if (c->out[k].x)
			memset(c->out[k].x, 0,
			       (size_t)c->out[k].n * sizeof(double));
	sample(&h, &s, &c->in[1], c->nin > 2 ? c->in[2].x : NULL, NULL,
	       c->in[0].x, c->out[0].x, c->out[1].x);
	return true;
}
