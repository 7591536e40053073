/* Reference interpreter: products, rows, losses and attention. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/support/half.h"
#include "tests/ref/interp_int.h"

/* ---- products ---- */

/* Start of the matrix of x that belongs to batch index idx of `out`. */
static int64_t
matrix_at(const Shape *x, const Shape *out, const int64_t idx[MAX_RANK])
{
	Shape xs = *x, os = *out;

	xs.rank -= 2;
	os.rank -= 2;
	return interp_bcast(&xs, &os, idx) * x->dim[x->rank - 2]
	       * x->dim[x->rank - 1];
}

/* An element of b as the product takes it: in a's type. */
static double
right_element(const struct ten *a, double x)
{
	return a->dt == DT_BF16 ? bf16_to_float(float_to_bf16((float)x))
	     : a->dt == DT_F16 ? half_to_float(float_to_half((float)x)) : x;
}

bool
interp_matmul(struct call *c)
{
	const struct ten *a = &c->in[0], *b = &c->in[1];
	const double *bias = c->nin > 2 ? c->in[2].x : NULL;
	const double *acc = c->nin > 3 ? c->in[3].x : NULL;
	struct ten *y = &c->out[0];
	bool ta = c->a->MATMUL.ta, tb = c->a->MATMUL.tb;
	int64_t k, idx[MAX_RANK];

	if (a->s.rank < 2 || b->s.rank < 2)
		return interp_fail(c, "operands of rank < 2");
	k = a->s.dim[a->s.rank - (ta ? 2 : 1)];
	if (k != b->s.dim[b->s.rank - (tb ? 1 : 2)])
		return interp_fail(c, "inner extents");
	for (int64_t l = 0; l < y->n; l++) {
		const double *p, *q;
		int64_t i, j, lda, ldb;
		double sum = 0;

		interp_unravel(&y->s, l, idx);
		i = idx[y->s.rank - 2];
		j = idx[y->s.rank - 1];
		lda = a->s.dim[a->s.rank - 1];
		ldb = b->s.dim[b->s.rank - 1];
		p = a->x + matrix_at(&a->s, &y->s, idx) + (ta ? i : i * lda);
		q = b->x + matrix_at(&b->s, &y->s, idx) + (tb ? j * ldb : j);
		for (int64_t m = 0; m < k; m++)
			sum += p[ta ? m * lda : m]
				* right_element(a, q[tb ? m : m * ldb]);
		y->x[l] = c->a->MATMUL.alpha * sum;
		if (bias != NULL)
			y->x[l] += bias[j];
		if (acc != NULL)
			y->x[l] += acc[l];
	}
	return true;
}

/* The matrix of row i; false: there is none. */
static bool
expert_of(struct call *c, int64_t i, int64_t mine, int64_t all, int64_t *e)
{
	double at = c->in[2].x[i];
	int64_t experts = all ? all : mine;

	*e = (int64_t)(at < 0 ? at + (double)experts : at);
	if (*e >= 0 && *e < experts) {
		*e -= all ? interp_shard(c->it, true) * mine : 0;
		*e = *e < mine ? *e : -1;
		return true;
	}
	return interp_fail(c, "index %g of %lld experts", at,
		               (long long)experts);
}

bool
interp_expert_matmul(struct call *c)
{
	const struct ten *x = &c->in[0], *w = &c->in[1];
	int64_t inner = x->s.dim[1], width = c->out[0].s.dim[1], e;
	bool tb = c->a->EXPERT_MATMUL.tb;

	for (int64_t i = 0; i < x->s.dim[0]; i++) {
		const double *row = x->x + i * inner, *m;

		if (!expert_of(c, i, w->s.dim[0], c->a->EXPERT_MATMUL.all, &e))
			return false;
		m = w->x + e * inner * width;
		for (int64_t j = 0; j < width; j++) {
			double sum = 0;

			for (int64_t k = 0; e >= 0 && k < inner; k++)
				sum += row[k] * m[tb ? j * inner + k
				                     : k * width + j];
			c->out[0].x[i * width + j] = sum;
		}
	}
	return true;
}

bool
interp_expert_dw(struct call *c)
{
	const struct ten *a = &c->in[0], *b = &c->in[1];
	int64_t inner = a->s.dim[1], width = b->s.dim[1], e;
	struct ten *y = &c->out[0];

	for (int64_t i = 0; i < y->n; i++)
		y->x[i] = 0;
	for (int64_t i = 0; i < a->s.dim[0]; i++) {
		if (!expert_of(c, i, y->s.dim[0], c->a->EXPERT_DW.all, &e))
			return false;
		for (int64_t k = 0; e >= 0 && k < inner * width; k++)
			y->x[e * inner * width + k] +=
				a->x[i * inner + k / width]
				* b->x[i * width + k % width];
	}
	return true;
}

static void
put_index(const struct call *c, int out, int64_t i, int64_t x)
{
	if (c->out[out].x)
		c->out[out].x[i] = (double)x;
}

/* How many rows before i go where it goes. */
static int64_t
count_before(const struct call *c, int64_t i, int64_t *to)
{
	int64_t all = c->a->EXPERT_SLOTS.all, count = 0;
	int64_t each = all / c->a->EXPERT_SLOTS.replicas, e;

	for (int64_t k = 0; k <= i; k++) {
		e = (int64_t)c->in[0].x[i - k];
		e = (e < 0 ? e + all : e) / each;
		if (k == 0)
			*to = e;
		else
			count += e == *to;
	}
	return count;
}

bool
interp_expert_slots(struct call *c)
{
	int64_t all = c->a->EXPERT_SLOTS.all, n = c->in[0].n, d;
	int64_t replicas = c->a->EXPERT_SLOTS.replicas;
	int64_t room = c->a->EXPERT_SLOTS.room;

	for (int64_t s = 0; s < replicas * room; s++) {
		put_index(c, 1, s, n);
		put_index(c, 2, s, (s / room + 1) % replicas * (all / replicas));
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t before = count_before(c, i, &d);

		put_index(c, 0, i, before < room ? d * room + before
		                           : replicas * room);
		if (before < room) {
			put_index(c, 1, d * room + before, i);
			put_index(c, 2, d * room + before, (int64_t)c->in[0].x[i]
			    + (c->in[0].x[i] < 0 ? all : 0));
		} else if (!c->a->EXPERT_SLOTS.drop) {
			return interp_fail(c, "a row has no room");
		}
	}
	return true;
}

bool
interp_take_rows(struct call *c)
{
	int64_t rows = c->in[0].s.dim[0], n = c->out[0].s.dim[0];
	int64_t width = interp_extent(&c->in[0].s, 1, c->in[0].s.rank);

	for (int64_t i = 0; i < n * width; i++) {
		int64_t at = (int64_t)c->in[1].x[i / width];

		c->out[0].x[i] = at < rows
			? c->in[0].x[at * width + i % width] : 0;
	}
	return true;
}

/* ---- softmax ---- */

/* A line along an axis: element j is p[j * step]. */
struct lines {
	int64_t n, len, step;
};

static struct lines
lines_along(const struct ten *x, int axis)
{
	struct lines l = { 0, x->s.dim[axis],
		interp_extent(&x->s, axis + 1, x->s.rank) };

	l.n = l.len > 0 ? x->n / l.len : 0;
	return l;
}

static int64_t
line_start(const struct lines *l, int64_t i)
{
	return i / l->step * l->len * l->step + i % l->step;
}

static double
log_sum_exp(const double *p, int64_t n, int64_t step)
{
	double top = -INFINITY, sum = 0;

	for (int64_t j = 0; j < n; j++)
		if (p[j * step] > top || isnan(p[j * step]))
			top = p[j * step];
	if (isinf(top) && top < 0)
		return top;
	for (int64_t j = 0; j < n; j++)
		sum += exp(p[j * step] - top);
	return top + log(sum);
}

bool
interp_softmax(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct lines l = lines_along(x, axis_of(c->a->SOFTMAX.axis, x->s.rank));

	for (int64_t i = 0; i < l.n; i++) {
		int64_t at = line_start(&l, i);
		double lse = log_sum_exp(x->x + at, l.len, l.step);
		bool dead = isinf(lse) && lse < 0;

		for (int64_t j = 0; j < l.len; j++) {
			double z = dead ? lse : x->x[at + j * l.step] - lse;

			c->out[0].x[at + j * l.step] =
			    c->n->op == OP_SOFTMAX ? exp(z) : z;
		}
	}
	return true;
}

bool
interp_softmax_grad(struct call *c)
{
	const double *dy = c->in[0].x, *y = c->in[1].x;
	bool logs = c->n->op == OP_LOG_SOFTMAX_GRAD;
	struct lines l = lines_along(&c->in[0],
	    axis_of(c->a->SOFTMAX_GRAD.axis, c->in[0].s.rank));

	for (int64_t i = 0; i < l.n; i++) {
		int64_t at = line_start(&l, i);
		double sum = 0;

		for (int64_t j = 0; j < l.len; j++)
			sum += dy[at + j * l.step]
			       * (logs ? 1 : y[at + j * l.step]);
		for (int64_t j = 0; j < l.len; j++) {
			int64_t k = at + j * l.step;

			c->out[0].x[k] = logs ? dy[k] - exp(y[k]) * sum
			                      : y[k] * (dy[k] - sum);
		}
	}
	return true;
}

/* ---- normalisation ---- */

/* Where element j of a row of x finds its scale: scale has the shape of the
 * normalised dims or broadcasts to it. */
static int64_t
scale_at(const struct ten *scale, const struct ten *x, int64_t row, int64_t j,
         int64_t len)
{
	int64_t idx[MAX_RANK];

	interp_unravel(&x->s, row * len + j, idx);
	return interp_bcast(&scale->s, &x->s, idx);
}

static int64_t
row_length(const struct ten *x, int64_t axis)
{
	return interp_extent(&x->s, axis_of(axis, x->s.rank), x->s.rank);
}

static void
set(const struct ten *t, int64_t i, double x)
{
	if (t->x != NULL)
		t->x[i] = x;
}

bool
interp_layernorm(struct call *c)
{
	const struct ten *x = &c->in[0], *scale = &c->in[1];
	int64_t d = row_length(x, c->a->LAYERNORM.axis);

	for (int64_t r = 0; d > 0 && r < x->n / d; r++) {
		const double *p = x->x + r * d;
		double mean = 0, var = 0, rstd;

		for (int64_t j = 0; j < d; j++)
			mean += p[j];
		mean /= (double)d;
		for (int64_t j = 0; j < d; j++)
			var += (p[j] - mean) * (p[j] - mean);
		rstd = 1 / sqrt(var / (double)d + c->a->LAYERNORM.eps);
		for (int64_t j = 0; j < d; j++) {
			int64_t s = scale_at(scale, x, r, j, d);
			double y = (p[j] - mean) * rstd * scale->x[s];

			if (c->nin > 2 && c->in[2].x != NULL)
				y += c->in[2].x[scale_at(&c->in[2], x, r, j,
				                         d)];
			set(&c->out[0], r * d + j, y);
		}
		if (c->nout > 1)
			set(&c->out[1], r, mean);
		if (c->nout > 2)
			set(&c->out[2], r, rstd);
	}
	return true;
}

/* Element i of operand k, an accumulator; 0 if there is none. */
static double
added(const struct call *c, int k, int64_t i)
{
	return c->nin > k && c->in[k].x != NULL ? c->in[k].x[i] : 0;
}

static void
clear(const struct ten *t)
{
	if (t->x != NULL)
		memset(t->x, 0, (size_t)t->n * sizeof *t->x);
}

bool
interp_layernorm_grad(struct call *c)
{
	const struct ten *dy = &c->in[0], *x = &c->in[1], *scale = &c->in[2];
	const double *mean = c->in[3].x, *rstd = c->in[4].x;
	struct ten *dx = &c->out[0], *ds = &c->out[1], *db = &c->out[2];
	int64_t d = row_length(x, c->a->LAYERNORM_GRAD.axis);

	clear(ds);
	clear(db);
	for (int64_t r = 0; d > 0 && r < x->n / d; r++) {
		double g = 0, gx = 0;

		for (int64_t j = 0; j < d; j++) {
			int64_t s = scale_at(scale, x, r, j, d);
			double dyj = dy->x[r * d + j];
			double xhat = (x->x[r * d + j] - mean[r]) * rstd[r];

			g += dyj * scale->x[s];
			gx += dyj * scale->x[s] * xhat;
			if (ds->x != NULL)
				ds->x[s] += dyj * xhat;
			if (db->x != NULL)
				db->x[s] += dyj;
		}
		for (int64_t j = 0; j < d; j++) {
			int64_t s = scale_at(scale, x, r, j, d);
			double xhat = (x->x[r * d + j] - mean[r]) * rstd[r];

			set(dx, r * d + j, added(c, 5, r * d + j) + rstd[r]
			    * (dy->x[r * d + j] * scale->x[s]
			       - (g + xhat * gx) / (double)d));
		}
	}
	return true;
}

bool
interp_rmsnorm(struct call *c)
{
	const struct ten *x = &c->in[0], *scale = &c->in[1];
	int64_t d = row_length(x, c->a->RMSNORM.axis);

	for (int64_t r = 0; d > 0 && r < x->n / d; r++) {
		const double *p = x->x + r * d;
		double sum = 0, rstd;

		for (int64_t j = 0; j < d; j++)
			sum += p[j] * p[j];
		rstd = 1 / sqrt(sum / (double)d + c->a->RMSNORM.eps);
		for (int64_t j = 0; j < d; j++)
			set(&c->out[0], r * d + j, p[j] * rstd
			    * scale->x[scale_at(scale, x, r, j, d)]);
		if (c->nout > 1)
			set(&c->out[1], r, rstd);
	}
	return true;
}

bool
interp_rmsnorm_grad(struct call *c)
{
	const struct ten *dy = &c->in[0], *x = &c->in[1], *scale = &c->in[2];
	const double *rstd = c->in[3].x;
	struct ten *dx = &c->out[0], *ds = &c->out[1];
	int64_t d = row_length(x, c->a->RMSNORM_GRAD.axis);

	clear(ds);
	for (int64_t r = 0; d > 0 && r < x->n / d; r++) {
		double gx = 0;

		for (int64_t j = 0; j < d; j++) {
			int64_t s = scale_at(scale, x, r, j, d);
			double xhat = x->x[r * d + j] * rstd[r];

			gx += dy->x[r * d + j] * scale->x[s] * xhat;
			if (ds->x != NULL)
				ds->x[s] += dy->x[r * d + j] * xhat;
		}
		for (int64_t j = 0; j < d; j++) {
			int64_t s = scale_at(scale, x, r, j, d);
			double xhat = x->x[r * d + j] * rstd[r];

			set(dx, r * d + j, added(c, 4, r * d + j) + rstd[r]
			    * (dy->x[r * d + j] * scale->x[s]
			       - xhat * gx / (double)d));
		}
	}
	return true;
}

/* ---- cross entropy ---- */

/* Rows of [N, C, d...]: row i has its classes at start + c * step. */
struct rows {
	int64_t n, classes, step;
};

static struct rows
class_rows(const struct ten *x)
{
	struct rows r = { 0, x->s.rank > 1 ? x->s.dim[1] : 1,
		interp_extent(&x->s, 2, x->s.rank) };

	r.n = r.classes > 0 ? x->n / r.classes : 0;
	return r;
}

static int64_t
row_start(const struct rows *r, int64_t i)
{
	return i / r->step * r->classes * r->step + i % r->step;
}

/* Weight of label y; 0 for an ignored one.  False: out of range. */
static bool
label_weight(struct call *c, double y, int64_t ignore, int64_t classes,
             const double *weights, double *w)
{
	*w = 0;
	if ((int64_t)y == ignore)
		return true;
	if (y < 0 || y >= (double)classes)
		return interp_fail(c, "label %g out of range", y);
	*w = weights ? weights[(int64_t)y] : 1;
	return true;
}

static bool
is_ignored(double y, int64_t ignore)
{
	return (int64_t)y == ignore;
}

/* Losses from log-probabilities x - shift[i]; writes loss and denom. */
static bool
nll(struct call *c, const struct ten *x, const struct ten *labels,
    const double *weights, const double *shift, const struct ten *loss,
    const struct ten *denom)
{
	int64_t ignore = c->a->SCE.ignore, reduction = c->a->SCE.reduction;
	struct rows r = class_rows(x);
	double sum = 0, total = 0;

	if (labels->n != r.n)
		return interp_fail(c, "labels have %lld elements, not %lld",
		                   (long long)labels->n, (long long)r.n);
	for (int64_t i = 0; i < r.n; i++) {
		double w, l = 0;

		if (!label_weight(c, labels->x[i], ignore, r.classes, weights,
		                  &w))
			return false;
		if (!is_ignored(labels->x[i], ignore))
			l = -w * (x->x[row_start(&r, i)
			    + (int64_t)labels->x[i] * r.step]
			    - (shift ? shift[i] : 0));
		sum += l;
		total += w;
		if (reduction == 0)
			set(loss, i, l);
	}
	if (reduction != 0)
		set(loss, 0, reduction == 1 ? sum / total : sum);
	if (denom != NULL)
		set(denom, 0, reduction == 1 ? total : 1);
	return true;
}

/* A rank's columns of logits that are a piece of the classes. */
struct columns {
	int64_t first, n;               /* n without what a last piece lacks */
};

static struct columns
columns_of(const struct call *c, ValId v, const struct ten *x, int64_t part)
{
	int64_t extent = x->s.dim[1];
	struct columns k = { interp_piece(c, v) * extent, extent };

	if (k.first + k.n > part)
		k.n = part > k.first ? part - k.first : 0;
	return k;
}

bool
interp_vocab_stats(struct call *c)
{
	const struct ten *x = &c->in[0], *y = &c->in[1];
	struct columns k = columns_of(c, c->n->in[0], x,
	                              c->a->VOCAB_STATS.whole_extent);

	for (int64_t i = 0; i < x->s.dim[0]; i++) {
		const double *row = x->x + i * x->s.dim[1];
		double *s = c->out[0].x + 3 * i;
		double label = y->x[i] - (double)k.first;

		s[0] = -INFINITY;
		s[1] = 0;
		for (int64_t j = 0; j < k.n; j++)
			s[0] = maximum(s[0], row[j]);
		for (int64_t j = 0; j < k.n; j++)
			s[1] += exp(row[j] - s[0]);
		s[2] = label >= 0 && label < (double)k.n
			? row[(int64_t)label] : 0;
	}
	return true;
}

/* Log-sum-exp of row i and the logit of its label from what all ranks have. */
static double
join_stats(const struct ten *stats, int64_t i, double *label)
{
	int64_t ranks = stats->s.dim[0], rows = stats->s.dim[1];
	double most = -INFINITY, sum = 0;

	*label = 0;
	for (int64_t r = 0; r < ranks; r++)
		most = maximum(most, stats->x[(r * rows + i) * 3]);
	for (int64_t r = 0; r < ranks; r++) {
		const double *s = stats->x + (r * rows + i) * 3;

		if (s[1] != 0)
			sum += s[1] * exp(s[0] - most);
		*label += s[2];
	}
	return most + log(sum);
}

static bool
sce_of_stats(struct call *c)
{
	const struct ten *y = &c->in[1];
	int64_t ignore = c->a->SCE.ignore, reduction = c->a->SCE.reduction;
	double sum = 0, total = 0;

	for (int64_t i = 0; i < y->n; i++) {
		double w, label, lse = join_stats(&c->in[3], i, &label), l;

		if (!label_weight(c, y->x[i], ignore, c->a->SCE.whole_extent, NULL,
		                  &w))
			return false;
		l = w != 0 ? lse - label : 0;
		sum += l;
		total += w;
		if (reduction == 0)
			set(&c->out[0], i, l);
		if (c->nout > 1)
			set(&c->out[1], i, lse);
	}
	if (reduction != 0)
		set(&c->out[0], 0, reduction == 1 ? sum / total : sum);
	if (c->nout > 2)
		set(&c->out[2], 0, reduction == 1 ? total : 1);
	return true;
}

bool
interp_sce(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct rows r = class_rows(x);
	double *lse;
	bool ok;

	if (c->a->SCE.whole_extent)
		return sce_of_stats(c);
	lse = calloc((size_t)r.n + 1, sizeof *lse);
	if (lse == NULL)
		abort();
	for (int64_t i = 0; i < r.n; i++) {
		lse[i] = log_sum_exp(x->x + row_start(&r, i), r.classes,
		                     r.step);
		if (c->nout > 1)
			set(&c->out[1], i, lse[i]);
	}
	ok = nll(c, x, &c->in[1], c->nin > 2 ? c->in[2].x : NULL, lse,
	         &c->out[0], c->nout > 2 ? &c->out[2] : NULL);
	free(lse);
	return ok;
}

bool
interp_nll(struct call *c)
{
	return nll(c, &c->in[0], &c->in[1], c->nin > 2 ? c->in[2].x : NULL,
	           NULL, &c->out[0], c->nout > 1 ? &c->out[1] : NULL);
}

bool
interp_sce_grad(struct call *c)
{
	const struct ten *dloss = &c->in[0], *x = &c->in[1], *y = &c->in[2];
	const double *lse = c->in[3].x, denom = c->in[4].x[0];
	const double *weights = c->nin > 5 ? c->in[5].x : NULL;
	int64_t ignore = c->a->SCE_GRAD.ignore, part = c->a->SCE_GRAD.whole_extent;
	struct rows r = class_rows(x);
	struct columns mine = { 0, r.classes };

	if (part)
		mine = columns_of(c, c->n->in[1], x, part);
	clear(&c->out[0]);
	for (int64_t i = 0; i < r.n; i++) {
		double w, g;

		if (!label_weight(c, y->x[i], ignore, part ? part : r.classes,
		                  weights, &w))
			return false;
		if (is_ignored(y->x[i], ignore))
			continue;
		g = dloss->x[c->a->SCE_GRAD.reduction == 0 ? i : 0] * w / denom;
		for (int64_t k = 0; k < mine.n; k++) {
			int64_t at = row_start(&r, i) + k * r.step;

			c->out[0].x[at] = g * (exp(x->x[at] - lse[i])
			    - (k + mine.first == (int64_t)y->x[i]));
		}
	}
	return true;
}

bool
interp_nll_grad(struct call *c)
{
	const struct ten *dloss = &c->in[0], *y = &c->in[1];
	const double denom = c->in[2].x[0];
	const double *weights = c->nin > 3 ? c->in[3].x : NULL;
	int64_t ignore = c->a->NLL_GRAD.ignore;
	struct rows r = class_rows(&c->out[0]);

	clear(&c->out[0]);
	for (int64_t i = 0; i < r.n; i++) {
		double w;

		if (!label_weight(c, y->x[i], ignore, r.classes, weights, &w))
			return false;
		if (is_ignored(y->x[i], ignore))
			continue;
		c->out[0].x[row_start(&r, i) + (int64_t)y->x[i] * r.step] =
		    -w / denom
		    * dloss->x[c->a->NLL_GRAD.reduction == 0 ? i : 0];
	}
	return true;
}

/* ---- classifier ---- */

/* Logits of row i into z. */
static void
classifier_row(struct call *c, int64_t i, int64_t k, int64_t v, double *z)
{
	const double *x = c->in[0].x + i * k, *w = c->in[1].x;
	const double *bias = c->nin > 3 ? c->in[3].x : NULL;

	for (int64_t j = 0; j < v; j++) {
		z[j] = bias ? bias[j] : 0;
		for (int64_t l = 0; l < k; l++)
			z[j] += x[l] * w[c->a->CLASSIFIER.tb ? j * k + l
			                                     : l * v + j];
	}
}

/* Add the gradients of row i, whose logits' gradient is dz. */
static void
classifier_back(struct call *c, int64_t i, int64_t k, int64_t v,
                const double *dz)
{
	const double *x = c->in[0].x + i * k, *w = c->in[1].x;

	for (int64_t j = 0; j < v; j++) {
		for (int64_t l = 0; l < k; l++) {
			int64_t at = c->a->CLASSIFIER.tb ? j * k + l
			                                 : l * v + j;

			if (c->out[1].x != NULL)
				c->out[1].x[i * k + l] += dz[j] * w[at];
			if (c->out[2].x != NULL)
				c->out[2].x[at] += dz[j] * x[l];
		}
		if (c->nout > 3 && c->out[3].x != NULL)
			c->out[3].x[j] += dz[j];
	}
}

bool
interp_classifier(struct call *c)
{
	const struct ten *x = &c->in[0], *w = &c->in[1], *labels = &c->in[2];
	int64_t n = x->s.dim[0], k = x->s.dim[1];
	int64_t v = w->s.dim[c->a->CLASSIFIER.tb ? 0 : 1];
	int64_t ignore = c->a->CLASSIFIER.ignore;
	double *z = calloc((size_t)v + 1, sizeof *z);
	double seed = c->nin > 4 && c->in[4].x ? c->in[4].x[0]
	                                       : c->a->CLASSIFIER.seed;
	double loss = 0, denom = 0, wt;
	bool ok = z != NULL;

	for (int o = 1; o < c->nout; o++)
		clear(&c->out[o]);
	for (int64_t i = 0; ok && i < n; i++) {
		ok = label_weight(c, labels->x[i], ignore, v, NULL, &wt);
		denom += wt;
	}
	if (c->a->CLASSIFIER.reduction != 1)
		denom = 1;
	for (int64_t i = 0; ok && i < n; i++) {
		double lse;

		if (is_ignored(labels->x[i], ignore))
			continue;
		classifier_row(c, i, k, v, z);
		lse = log_sum_exp(z, v, 1);
		loss += lse - z[(int64_t)labels->x[i]];
		for (int64_t j = 0; j < v; j++)
			z[j] = seed / denom
			       * (exp(z[j] - lse)
			          - (j == (int64_t)labels->x[i]));
		classifier_back(c, i, k, v, z);
	}
	if (ok)
		set(&c->out[0], 0, loss / denom);
	free(z);
	return ok;
}

/* ---- attention ---- */

struct heads {
	int64_t b, h, g, t, s, d, e;
	const struct ten *q, *k, *v, *mask;
	double scale, ratio;
	int64_t causal, stream;
	int64_t context;                        /* replicas that share queries */
	int64_t part;                           /* which of them this one is */
	int64_t share;                          /* replicas that share heads */
	bool zigzag;
	int64_t batch;                          /* which batch of all it has */
	const struct interp *it;
	const Placement *placement;             /* of o, whose first dims are rows */
};

static struct heads
heads_of(const struct call *c, const struct ten *q, const struct ten *k,
         const struct ten *v, const struct ten *mask)
{
	/* attention and attention_grad name their attributes in the same
	 * order, but the rows are read apart. */
	const Attr *a = c->a;
	bool grad = c->n->op == OP_ATTENTION_GRAD;
	struct heads m = { q->s.dim[0], q->s.dim[1], k->s.dim[1], q->s.dim[2],
		k->s.dim[2], q->s.dim[3], v->s.dim[3], q, k, v,
		mask != NULL && mask->x != NULL ? mask : NULL,
		grad ? a->ATTENTION_GRAD.scale : a->ATTENTION.scale,
		grad ? a->ATTENTION_GRAD.ratio : a->ATTENTION.ratio,
		grad ? a->ATTENTION_GRAD.causal : a->ATTENTION.causal,
		grad ? a->ATTENTION_GRAD.stream : a->ATTENTION.stream,
		grad ? a->ATTENTION_GRAD.context : a->ATTENTION.context, 0, 1, c->g->zigzag, 0,
		c->it, &c->g->val[grad ? c->n->in[4] : c->n->out[0]].placement };

	m.context = m.context > 0 ? m.context : 1;
	m.part = c->it->replica % m.context;
	if (grad ? a->ATTENTION_GRAD.share_heads : a->ATTENTION.share_heads) {
		m.share = m.context;
		m.context = 1;
	}
	if (grad ? a->ATTENTION_GRAD.batch_segments
	    : a->ATTENTION.batch_segments)
		m.batch = c->it->replica / (m.context * m.share);
	return m;
}

/* Which of the queries of all replicas query i of this one is. */
static int64_t
query_of_all(const struct heads *m, int64_t i)
{
	int64_t half = m->t / 2;

	if (m->context == 1)
		return i;
	if (!m->zigzag)
		return m->part * m->t + i;
	return i < half ? m->part * half + i
	                : (2 * m->context - 1 - m->part) * half + i - half;
}

/* Masked scores of query (b, h, i) into s; returns their log-sum-exp. */
static double
scores(const struct heads *m, int64_t b, int64_t h, int64_t i, double *s)
{
	Shape full = { 4, { m->b, m->h, m->t, m->s } };
	int64_t kv = b * m->g + h / (m->h / m->g);
	const double *q = m->q->x + ((b * m->h + h) * m->t + i) * m->d;

	for (int64_t j = 0; j < m->s; j++) {
		const double *k = m->k->x + (kv * m->s + j) * m->d;
		int64_t idx[MAX_RANK] = { b, h, i, j };

		s[j] = 0;
		for (int64_t l = 0; l < m->d; l++)
			s[j] += q[l] * k[l];
		s[j] *= m->scale;
		if (m->mask != NULL) {
			double x = m->mask->x[interp_bcast(&m->mask->s, &full,
			                                   idx)];

			if (m->mask->dt != DT_BOOL)
				s[j] += x;
			else if (x == 0)
				s[j] = -INFINITY;
		}
		if (m->causal && j > query_of_all(m, i) + m->s
		                 - m->t * m->context)
			s[j] = -INFINITY;
	}
	return log_sum_exp(s, m->s, 1);
}

/* Probability before dropout; 0 in rows that see nothing. */
static double
prob(double s, double lse)
{
	return isinf(s) && s < 0 ? 0 : exp(s - lse);
}

static uint64_t
score_index(const struct heads *m, int64_t row, int64_t j)
{
	Shape rows = { 3, { m->b, m->h, m->t } };

	if (m->placement->axis < 3) {
		row = interp_whole(m->it, m->placement, &rows, row);
		rows = interp_whole_shape(m->placement, &rows);
	}
	if (m->share > 1) {
		int64_t i = row % m->t, h = row / m->t % rows.dim[1];
		int64_t b = row / m->t / rows.dim[1];

		h = (h / m->h * m->share + m->part) * m->h + h % m->h;
		rows.dim[1] *= m->share;
		row = (b * rows.dim[1] + h) * m->t + i;
	}
	row += m->batch * interp_nelem(&rows);
	row = row / m->t * m->context * m->t + query_of_all(m, row % m->t);
	return (uint64_t)(row * m->s + j);
}

bool
interp_attention(struct call *c)
{
	struct heads m = heads_of(c, &c->in[0], &c->in[1], &c->in[2],
	                          c->nin > 3 ? &c->in[3] : NULL);
	double *s = calloc((size_t)m.s + 1, sizeof *s);

	if (s == NULL || m.g == 0 || m.h % m.g != 0) {
		free(s);
		return interp_fail(c, "heads");
	}
	clear(&c->out[0]);
	for (int64_t row = 0; row < m.b * m.h * m.t; row++) {
		int64_t i = row % m.t, h = row / m.t % m.h;
		int64_t b = row / m.t / m.h;
		int64_t kv = b * m.g + h / (m.h / m.g);
		double lse = scores(&m, b, h, i, s);

		if (c->nout > 1)
			set(&c->out[1], row, lse);
		for (int64_t j = 0; c->out[0].x && j < m.s; j++) {
			double p = interp_dropout(c->env, prob(s[j], lse),
			    m.ratio, m.stream, score_index(&m, row, j));

			for (int64_t l = 0; l < m.e; l++)
				c->out[0].x[row * m.e + l] +=
				    p * m.v->x[(kv * m.s + j) * m.e + l];
		}
	}
	free(s);
	return true;
}

/* Where gradients go: element (b, head, row, l) of part 0 q, 1 k, 2 v. */
static double *
grad_place(struct call *c, const struct heads *m, int part, int64_t b,
           int64_t h, int64_t i, int64_t l)
{
	int64_t heads = part == 0 ? m->h : m->g;
	int64_t rows = part == 0 ? m->t : m->s;
	int64_t width = part == 2 ? m->e : m->d;
	int64_t before = part == 0 ? 0 : part == 1 ? m->h : m->h + m->g;
	struct ten *o = &c->out[c->a->ATTENTION_GRAD.packed ? 0 : part];

	if (o->x == NULL)
		return NULL;
	if (!c->a->ATTENTION_GRAD.packed)
		return &o->x[((b * heads + h) * rows + i) * width + l];
	return &o->x[(b * m->t + i) * (m->h + 2 * m->g) * m->d
	             + (before + h) * m->d + l];
}

static void
put(double *to, double x)
{
	if (to != NULL)
		*to += x;
}

/* Add what the score (row, j) contributes; p before dropout. */
static void
attention_back(struct call *c, const struct heads *m, int64_t row, int64_t j,
               double p, double delta)
{
	int64_t i = row % m->t, h = row / m->t % m->h, b = row / m->t / m->h;
	int64_t g = h / (m->h / m->g), kv = (b * m->g + g) * m->s + j;
	const double *dout = c->in[0].x + row * m->e;
	double keep = interp_dropout(c->env, 1, m->ratio, m->stream,
	                             score_index(m, row, j));
	double dp = 0, ds;

	for (int64_t l = 0; l < m->e; l++) {
		dp += dout[l] * m->v->x[kv * m->e + l];
		put(grad_place(c, m, 2, b, g, j, l), keep * p * dout[l]);
	}
	ds = m->scale * p * (keep * dp - delta);
	for (int64_t l = 0; l < m->d; l++) {
		put(grad_place(c, m, 0, b, h, i, l),
		    ds * m->k->x[kv * m->d + l]);
		put(grad_place(c, m, 1, b, g, j, l),
		    ds * m->q->x[row * m->d + l]);
	}
}

bool
interp_attention_grad(struct call *c)
{
	const struct ten *dout = &c->in[0], *o = &c->in[4], *lse = &c->in[5];
	struct heads m = heads_of(c, &c->in[1], &c->in[2], &c->in[3],
	                          c->nin > 6 ? &c->in[6] : NULL);
	double *s = calloc((size_t)m.s + 1, sizeof *s);

	if (s == NULL || m.g == 0 || m.h % m.g != 0) {
		free(s);
		return interp_fail(c, "heads");
	}
	if (c->a->ATTENTION_GRAD.packed && (m.s != m.t || m.e != m.d)) {
		free(s);
		return interp_fail(c, "packed with unequal q, k, v");
	}
	for (int k = 0; k < c->nout; k++)
		clear(&c->out[k]);
	for (int64_t row = 0; row < m.b * m.h * m.t; row++) {
		double delta = 0;

		for (int64_t l = 0; l < m.e; l++)
			delta += dout->x[row * m.e + l] * o->x[row * m.e + l];
		scores(&m, row / m.t / m.h, row / m.t % m.h, row % m.t, s);
		for (int64_t j = 0; j < m.s; j++)
			attention_back(c, &m, row, j,
			               prob(s[j], lse->x[row]), delta);
	}
	free(s);
	return true;
}

/* ---- determinants, by Laplace's expansion along the first row ---- */

/* Of the n x n matrix left of x (m x m) without the rows and columns given. */
static double
laplace(const double *x, int m, unsigned rows, unsigned cols)
{
	double sum = 0, sign = 1;
	int row = 0;

	while (row < m && rows >> row & 1)
		row++;
	if (row == m)
		return 1;
	for (int j = 0; j < m; j++) {
		if (cols >> j & 1)
			continue;
		sum += sign * x[row * m + j]
		       * laplace(x, m, rows | 1u << row, cols | 1u << j);
		sign = -sign;
	}
	return sum;
}

bool
interp_det(struct call *c)
{
	int m = (int)c->in[0].s.dim[c->in[0].s.rank - 1];

	for (int64_t i = 0; i < interp_nelem(&c->out[0].s); i++)
		c->out[0].x[i] = laplace(c->in[0].x + i * m * m, m, 0, 0);
	return true;
}

bool
interp_det_grad(struct call *c)
{
	int m = (int)c->in[1].s.dim[c->in[1].s.rank - 1];

	for (int64_t i = 0; i < interp_nelem(&c->in[1].s); i++) {
		int row = (int)(i / m % m), col = (int)(i % m);

		c->out[0].x[i] = c->in[0].x[i / m / m]
			* ((row + col) % 2 ? -1 : 1)
			* laplace(c->in[1].x + i / m / m * m * m, m, 1u << row,
			          1u << col);
	}
	return true;
}
