/* Optimizer steps, accumulation, gradient norm, from the papers' and PyTorch's
 * formulas.
 */
#include <math.h>
#include <stdlib.h>

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
interp_ema(struct call *c)
{
	double w = c->env->step == 0 ? 1 : 1 - c->env->ema_decay;

	for (int64_t i = 0; i < c->out[0].n; i++)
		c->out[0].x[i] = (1 - w) * c->in[0].x[i] + w * c->in[1].x[i];
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
		double p = c->in[0].x[i],
		       g = factor * c->in[1].x[i] + decay * p;
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

/* A parameter whose rows and columns have means; rows 0: each element has one.
 * all_rows ...: of the whole of which a rank has a piece. */
struct factors {
	int64_t n, rows, cols, all_rows, all_cols, all;
	bool rows_cut;
	double *row, *col;              /* new means */
};

static struct factors
factors_of(const struct call *c)
{
	const Placement *split = &c->g->val[c->n->in[0]].placement;
	Shape s = c->in[0].s, whole = interp_whole_shape(split, &s);
	struct factors f = { .n = c->in[0].n, .all = interp_nelem(&whole) };

	if (s.rank < 2)
		return f;
	f.rows = s.dim[s.rank - 2];
	f.cols = s.dim[s.rank - 1];
	f.all_rows = whole.dim[s.rank - 2];
	f.all_cols = whole.dim[s.rank - 1];
	f.rows_cut = split->kind == PLACEMENT_SHARD && split->axis == s.rank - 2;
	return f;
}

/* Means over rows and columns of the squares of g are added to row and col, or
 * all of those squares to row. */
static void
add_squares(const struct factors *f, const double *g, double factor,
            double *row, double *col)
{
	for (int64_t i = 0; i < f->n; i++) {
		double square = factor * g[i] * g[i];

		if (!f->rows) {
			row[i] += square;
			continue;
		}
		row[i / f->cols] += square / (double)f->all_cols;
		col[i / (f->rows * f->cols) * f->cols + i % f->cols]
			+= square / (double)f->all_rows;
	}
}

bool
interp_adafactor_means(struct call *c)
{
	struct factors f = factors_of(c);
	double factor = clip(c, 1);

	for (int k = 0; k < 2; k++)
		for (int64_t i = 0; i < c->out[k].n; i++)
			c->out[k].x[i] = 0;
	add_squares(&f, c->in[0].x, factor * factor, c->out[0].x,
	            c->out[1].x);
	return true;
}

static const double *
given(const struct call *c, int i)
{
	return i < c->nin ? c->in[i].x : NULL;
}

/* Operands 2 and 3, moved towards the squares of operand 1 or given means. */
static void
new_means(const struct call *c, struct factors *f, double factor)
{
	/* nothing new comes of an empty parameter */
	double fresh = c->in[1].n ? pow((double)c->env->step + 1,
	                                c->env->beta2_decay) : 0;
	double *to[2] = { f->row, f->col };

	for (int k = 0; k < (f->rows ? 2 : 1); k++)
		for (int64_t i = 0; i < c->in[2 + k].n; i++) {
			to[k][i] = (1 - fresh) * c->in[2 + k].x[i];
			if (given(c, 4))
				to[k][i] += fresh * c->in[4 + k].x[i];
		}
	if (!given(c, 4))
		add_squares(f, c->in[1].x, fresh * factor * factor, f->row,
		            f->col);
}

/* What element i of the gradient is divided by the root of. */
static double
factored_square(const struct call *c, const struct factors *f, int64_t i)
{
	double least = c->env->eps * c->env->eps, mean = 0, v;
	int64_t matrix, n = f->rows_cut ? f->cols : f->rows;
	const double *x = f->rows_cut ? f->col : f->row;

	if (!f->rows)
		return fmax(f->row[i], least);
	matrix = i / (f->rows * f->cols);
	for (int64_t k = 0; k < n; k++)
		mean += x[matrix * n + k] / (double)(f->rows_cut ? f->all_cols
		                                     : f->all_rows);
	v = f->row[i / f->cols] * f->col[matrix * f->cols + i % f->cols];
	return fmax(v / fmax(mean, c->env->eps), least);
}

static double
mean_square(const double *x, const struct factors *f)
{
	double s = 0;

	for (int64_t i = 0; i < f->n; i++)
		s += x[i] * x[i];
	return s / (double)f->all;
}

/* u = the update, before it is brought down; 0 of a gradient of 0. */
static void
factored_update(const struct call *c, const struct factors *f, double factor,
                double *u)
{
	for (int64_t i = 0; i < f->n; i++) {
		double g = factor * c->in[1].x[i];

		u[i] = g == 0 ? 0 : g / sqrt(factored_square(c, f, i));
	}
}

bool
interp_adafactor_squares(struct call *c)
{
	struct factors f = factors_of(c);
	int64_t rows = c->in[2].n, cols = f.rows ? c->in[3].n : 0;
	double *room = interp_need(calloc((size_t)(rows + cols + f.n + 1),
	                                  sizeof *room));
	double factor = clip(c, 6);

	f.row = room;
	f.col = room + rows;
	new_means(c, &f, factor);
	factored_update(c, &f, factor, room + rows + cols);
	c->out[0].x[0] = mean_square(c->in[0].x, &f);
	c->out[0].x[1] = mean_square(room + rows + cols, &f);
	free(room);
	return true;
}

bool
interp_adafactor(struct call *c)
{
	const struct interp_env *e = c->env;
	double shrink = c->a->ADAFACTOR.decay ? 1 - e->lr * e->weight_decay : 1;
	double factor = clip(c, 7), *p = c->out[0].x, rate;
	const double *squares = given(c, 6);
	struct factors f = factors_of(c);

	f.row = c->out[1].x;
	f.col = f.rows ? c->out[2].x : NULL;
	new_means(c, &f, factor);
	factored_update(c, &f, factor, p);
	rate = fmin(e->lr, 1 / sqrt((double)e->step + 1))
	       * fmax(e->eps2, sqrt(squares ? squares[0]
	                            : mean_square(c->in[0].x, &f)));
	rate /= fmax(1, sqrt(squares ? squares[1] : mean_square(p, &f))
	             / e->threshold);
	for (int64_t i = 0; i < f.n; i++)
		p[i] = c->in[0].x[i] * shrink - rate * p[i];
	return true;
}
