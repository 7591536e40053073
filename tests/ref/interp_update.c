/* Optimizer steps, accumulation, gradient norm, from the papers' and PyTorch's
 * formulas.
 */
#include <math.h>

#include "tests/ref/interp_int.h"

/* Of operands first..last-1. */
static double
squares(const struct call *c, int first, int last)
{
	double sum = 0;

	for (int k = first; k < last; k++)
		for (int64_t i = 0; i < c->in[k].n; i++)
			sum += c->in[k].x[i] * c->in[k].x[i];
	return sum;
}

bool
interp_sum_squares(struct call *c)
{
	c->out[0].x[0] = squares(c, 0, c->nin);
	return true;
}

bool
interp_grad_norm(struct call *c)
{
	int ngrad = c->nin - (int)c->a->GRAD_NORM.sums;
	double sum = squares(c, 0, ngrad);

	for (int k = ngrad; k < c->nin; k++)
		sum += c->in[k].x[0];
	c->out[0].x[0] = sqrt(sum) / c->env->loss_scale;
	return true;
}

bool
interp_accumulate(struct call *c)
{
	for (int64_t i = 0; i < c->out[0].n; i++)
		c->out[0].x[i] = (c->env->micro == 0 ? 0 : c->in[0].x[i])
		                 + c->in[1].x[i];
	return true;
}

bool
interp_loss_scale(struct call *c)
{
	c->out[0].x[0] = c->a->LOSS_SCALE.value * c->env->loss_scale;
	return true;
}

bool
interp_share(struct call *c)
{
	c->out[0].x[0] = 1 / (c->a->SHARE.micro ? c->env->nmicro
	                      : c->env->replicas);
	return true;
}

bool
interp_of_all(struct call *c)
{
	for (int64_t i = 0; i < c->out[0].n; i++)
		c->out[0].x[i] = c->in[1].x[i];
	return true;
}

/* Factor that takes the loss scale out of the gradient and clips it; norm
 * NULL: not clipped. */
static double
clip(const struct call *c, int norm)
{
	double limit = c->env->clip, scale = c->env->loss_scale, x;

	if (norm >= c->nin || c->in[norm].x == NULL || limit <= 0)
		return 1 / scale;
	x = c->in[norm].x[0];
	return (x > limit ? limit / x : 1) / scale;
}

/* Output k, if wanted, is the new parameter, which rounding makes a copy. */
static bool
copy_to(struct call *c, int k)
{
	for (int64_t i = 0; k < c->nout && c->out[k].x && i < c->out[0].n; i++)
		c->out[k].x[i] = c->out[0].x[i];
	return true;
}

bool
interp_sgd(struct call *c)
{
	const struct interp_env *e = c->env;
	double shrink = c->a->SGD.decay ? 1 - e->lr * e->weight_decay : 1;
	double factor = clip(c, 2);

	for (int64_t i = 0; i < c->out[0].n; i++)
		c->out[0].x[i] = c->in[0].x[i] * shrink
		                 - e->lr * factor * c->in[1].x[i];
	return copy_to(c, 1);
}

bool
interp_sgdm(struct call *c)
{
	const struct interp_env *e = c->env;
	double decay = c->a->SGDM.decay ? e->weight_decay : 0;
	double factor = clip(c, 3);

	for (int64_t i = 0; i < c->in[0].n; i++) {
		double p = c->in[0].x[i], g = factor * c->in[1].x[i] + decay * p;
		double m = e->momentum * c->in[2].x[i] + g;

		c->out[0].x[i] = p - e->lr * (e->nesterov
		                              ? g + e->momentum * m : m);
		c->out[1].x[i] = m;
	}
	return copy_to(c, 2);
}

bool
interp_lion(struct call *c)
{
	const struct interp_env *e = c->env;
	double decay = c->a->LION.decay ? e->weight_decay : 0;
	double factor = clip(c, 3);

	for (int64_t i = 0; i < c->in[0].n; i++) {
		double p = c->in[0].x[i], g = factor * c->in[1].x[i];
		double m = c->in[2].x[i];
		double x = e->beta1 * m + (1 - e->beta1) * g;

		c->out[0].x[i] = p - e->lr * ((x > 0) - (x < 0) + decay * p);
		c->out[1].x[i] = e->beta2 * m + (1 - e->beta2) * g;
	}
	return copy_to(c, 2);
}

bool
interp_adamw(struct call *c)
{
	const struct interp_env *e = c->env;
	bool coupled = c->a->ADAMW.coupled != 0;
	double decay = c->a->ADAMW.decay ? e->weight_decay : 0;
	double shrink = coupled ? 1 : 1 - e->lr * decay;
	double factor = clip(c, 4), t = (double)e->step + 1;
	double c1 = 1 - pow(e->beta1, t), c2 = 1 - pow(e->beta2, t);

	for (int64_t i = 0; i < c->in[0].n; i++) {
		double g = factor * c->in[1].x[i]
		           + (coupled ? decay * c->in[0].x[i] : 0);
		double m = e->beta1 * c->in[2].x[i] + (1 - e->beta1) * g;
		double v = e->beta2 * c->in[3].x[i] + (1 - e->beta2) * g * g;

		c->out[0].x[i] = c->in[0].x[i] * shrink
		    - e->lr * (m / c1) / (sqrt(v / c2) + e->eps);
		c->out[1].x[i] = m;
		c->out[2].x[i] = v;
	}
	return copy_to(c, 3);
}

/* Means over rows and columns of the gradient's squares, or all of those
 * (rows 0), moved towards the new ones. */
static void
average_squares(struct call *c, int64_t rows, int64_t cols, double factor)
{
	/* nothing new comes of an empty parameter */
	double fresh = c->in[1].n ? pow((double)c->env->step + 1,
	                                c->env->beta2_decay) : 0;
	double *row = c->out[1].x, *col = rows ? c->out[2].x : NULL;
	const double *g = c->in[1].x;

	for (int64_t i = 0; i < c->out[1].n; i++)
		row[i] = (1 - fresh) * c->in[2].x[i];
	for (int64_t i = 0; col && i < c->out[2].n; i++)
		col[i] = (1 - fresh) * c->in[3].x[i];
	for (int64_t i = 0; i < c->in[1].n; i++) {
		double square = fresh * factor * factor * g[i] * g[i];

		if (!rows) {
			row[i] += square;
			continue;
		}
		row[i / cols] += square / (double)cols;
		col[i / (rows * cols) * cols + i % cols] += square
		                                            / (double)rows;
	}
}

/* What element i of the gradient is divided by the root of. */
static double
factored_square(const struct call *c, int64_t rows, int64_t cols, int64_t i)
{
	const double *row = c->out[1].x;
	double least = c->env->eps * c->env->eps, mean = 0, v;
	int64_t matrix;

	if (!rows)
		return fmax(row[i], least);
	matrix = i / (rows * cols);
	for (int64_t k = 0; k < rows; k++)
		mean += row[matrix * rows + k] / (double)rows;
	v = row[i / cols] * c->out[2].x[matrix * cols + i % cols];
	return fmax(v / fmax(mean, c->env->eps), least);
}

static double
root_mean_square(const double *x, int64_t n)
{
	double s = 0;

	for (int64_t i = 0; i < n; i++)
		s += x[i] * x[i];
	return sqrt(s / (double)n);
}

bool
interp_adafactor(struct call *c)
{
	const struct interp_env *e = c->env;
	int rank = c->in[0].s.rank;
	int64_t n = c->in[0].n;
	int64_t rows = rank < 2 ? 0 : c->in[0].s.dim[rank - 2];
	int64_t cols = rank < 2 ? 0 : c->in[0].s.dim[rank - 1];
	double shrink = c->a->ADAFACTOR.decay ? 1 - e->lr * e->weight_decay : 1;
	double factor = clip(c, 4), *p = c->out[0].x, rate;

	average_squares(c, rows, cols, factor);
	rate = fmin(e->lr, 1 / sqrt((double)e->step + 1))
	       * fmax(e->eps2, root_mean_square(c->in[0].x, n));
	for (int64_t i = 0; i < n; i++)
		p[i] = factor * c->in[1].x[i]
		       / sqrt(factored_square(c, rows, cols, i));
	rate /= fmax(1, root_mean_square(p, n) / e->threshold);
	for (int64_t i = 0; i < n; i++)
		p[i] = c->in[0].x[i] * shrink - rate * p[i];
	return true;
}
