/* Folding rules of shapes, sequences, reductions, products and rows. */
#include "passes/eval/eval_rules.h"

#include <math.h>
#include <string.h>

/* ---- shapes and sequences ---- */

enum eval_status
eval_shape(struct eval *e)
{
	const Shape *s = &eval_in(e, 0)->shape;
	Val *y = eval_out(e, 0);
	int64_t first = e->n->attr.SHAPE.start, n = val_nelem(y);
	int64_t *data = e->data;

	if (first < 0)
		first += s->rank;
	if (first < 0)
		first = 0;
	for (int64_t i = 0; i < n; i++)
		data[i] = s->dim[first + i];
	return EVAL_DONE;
}

enum eval_status
eval_size(struct eval *e)
{
	int64_t *data = e->data;

	data[0] = val_nelem(eval_in(e, 0));
	if (data[0] < 0)
		return eval_fail(e, "too many elements");
	return EVAL_DONE;
}

enum eval_status
eval_range(struct eval *e)
{
	const Val *from = eval_in(e, 0), *step = eval_in(e, 2);
	Val *y = eval_out(e, 0);
	int64_t n = val_nelem(y);
	void *data = e->data;

	for (int64_t i = 0; i < n; i++)
		if (dt_is_float(y->dt))
			element_set_float(y->dt, data, i, val_float(from, 0)
			                  + (double)i * val_float(step, 0));
		else
			element_set_int(y->dt, data, i,
			                (int64_t)((uint64_t)val_int(from, 0)
			                + (uint64_t)i
			                * (uint64_t)val_int(step, 0)));
	return EVAL_DONE;
}

static enum eval_status
fill_with(struct eval *e, double value)
{
	Val *y = eval_out(e, 0);
	int64_t n = val_nelem(y);
	void *data = e->data;

	for (int64_t i = 0; value != 0 && i < n; i++)
		element_set_float(y->dt, data, i, value);
	return EVAL_DONE;
}

enum eval_status
eval_constant_of_shape(struct eval *e)
{
	return fill_with(e, e->n->attr.CONSTANT_OF_SHAPE.value);
}

enum eval_status
eval_fill(struct eval *e)
{
	return fill_with(e, e->n->attr.FILL.value);
}

static bool
is_zero_element(const Val *x, int64_t i)
{
	return dt_is_float(x->dt) ? val_float(x, i) == 0 : val_int(x, i) == 0;
}

/* The result's extent depends on the contents, so the shape is set here. */
enum eval_status
eval_nonzero(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	int64_t n = val_nelem(x), count = 0, k = 0;
	int rank = x->shape.rank;

	for (int64_t i = 0; i < n; i++)
		count += !is_zero_element(x, i);
	y->dt = DT_I64;
	y->shape = SHAPE(rank ? rank : 1, count);
	int64_t *data = eval_room(e, 0);
	if (!data)
		return EVAL_LARGE;
	struct element_walk w = walk_new(&x->shape);
	for (int64_t i = 0; i < n; i++, walk_next(&w)) {
		if (is_zero_element(x, i))
			continue;
		for (int d = 0; d < rank; d++)
			data[d * count + k] = w.idx[d];
		k++;
	}
	y->data = data;
	return EVAL_DONE;
}

/* ---- along one axis ---- */

/* An array seen as [outer][extent][inner] around an axis. */
struct split {
	int64_t outer, extent, inner;
};

static struct split
split_at(const Shape *s, int axis)
{
	struct split r = { 1, s->dim[axis], 1 };

	for (int d = 0; d < axis; d++)
		r.outer *= s->dim[d];
	for (int d = axis + 1; d < s->rank; d++)
		r.inner *= s->dim[d];
	return r;
}

enum eval_status
eval_cumsum(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	struct split s = split_at(&x->shape, (int)e->n->attr.CUMSUM.axis);
	bool exclusive = e->n->attr.CUMSUM.exclusive;
	bool reverse = e->n->attr.CUMSUM.reverse;
	bool product = e->n->attr.CUMSUM.product;
	void *data = e->data;

	for (int64_t r = 0; r < s.outer * s.inner; r++) {
		int64_t base = r / s.inner * s.extent * s.inner + r % s.inner;
		uint64_t isum = product;
		double fsum = product;
		for (int64_t k = 0; k < s.extent; k++) {
			int64_t j = reverse ? s.extent - 1 - k : k;
			int64_t at = base + j * s.inner;
			double f = val_float(x, at);
			uint64_t i = dt_is_float(x->dt)
			             ? 0 : (uint64_t)val_int(x, at);
			if (!exclusive) {
				fsum = product ? fsum * f : fsum + f;
				isum = product ? isum * i : isum + i;
			}
			if (dt_is_float(x->dt))
				element_set_float(y->dt, data, at, fsum);
			else
				element_set_int(y->dt, data, at, (int64_t)isum);
			if (exclusive) {
				fsum = product ? fsum * f : fsum + f;
				isum = product ? isum * i : isum + i;
			}
		}
	}
	return EVAL_DONE;
}

/* a > b, in the type of x. */
static bool
is_greater(const Val *x, int64_t a, int64_t b)
{
	return dt_is_float(x->dt) ? val_float(x, a) > val_float(x, b)
	                          : val_int(x, a) > val_int(x, b);
}

enum eval_status
eval_argmax(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	struct split s = split_at(&x->shape, (int)e->n->attr.ARGMAX.axis);
	bool last = e->n->attr.ARGMAX.last;
	void *data = e->data;

	if (s.extent == 0)
		return eval_fail(e, "argmax over an empty axis");
	for (int64_t r = 0; r < s.outer * s.inner; r++) {
		int64_t base = r / s.inner * s.extent * s.inner + r % s.inner;
		int64_t best = 0;
		for (int64_t k = 1; k < s.extent; k++) {
			int64_t a = base + k * s.inner;
			int64_t b = base + best * s.inner;
			if (is_greater(x, a, b)
			    || (last && !is_greater(x, b, a)))
				best = k;
		}
		element_set_int(y->dt, data, r, best);
	}
	return EVAL_DONE;
}

static bool
in_list(const IntList *l, int64_t x)
{
	for (int i = 0; i < l->n; i++)
		if (l->v[i] == x)
			return true;
	return false;
}

double
eval_reduced(Op op, double acc, double x)
{
	switch (op) {
	case OP_REDUCE_MAX:
		return isnan(acc) || acc > x ? acc : x;
	case OP_REDUCE_MIN:
		return isnan(acc) || acc < x ? acc : x;
	case OP_REDUCE_PROD:
		return acc * x;
	default:
		return acc + x;
	}
}

int64_t
eval_reduced_int(Op op, DType dt, int64_t acc, int64_t x)
{
	bool more = dt == DT_U64 ? (uint64_t)acc > (uint64_t)x : acc > x;

	switch (op) {
	case OP_REDUCE_MAX:
		return more ? acc : x;
	case OP_REDUCE_MIN:
		return more ? x : acc;
	case OP_REDUCE_PROD:
		return (int64_t)((uint64_t)acc * (uint64_t)x);
	default:
		return (int64_t)((uint64_t)acc + (uint64_t)x);
	}
}

/* Strides into the result for a walk over x: 0 along reduced axes. */
static void
reduce_strides(const Shape *x, const IntList *axes, int64_t stride[])
{
	int64_t step = 1;

	for (int d = x->rank; d-- > 0; ) {
		bool gone = in_list(axes, d);
		stride[d] = gone ? 0 : step;
		step *= gone ? 1 : x->dim[d];
	}
}

enum eval_status
eval_reduce(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	/* the five reductions share the layout of their attributes */
	const IntList *axes = &e->n->attr.REDUCE_SUM.axes;
	Op op = e->n->op;
	int64_t n = val_nelem(x), ny = val_nelem(y), stride[MAX_RANK] = { 0 };
	bool floats = dt_is_float(x->dt), mean = op == OP_REDUCE_MEAN;
	void *data = e->data;

	if (n == 0 && ny > 0
	    && (op == OP_REDUCE_MAX || op == OP_REDUCE_MIN || mean))
		return eval_fail(e, "reduction over no elements");
	double *facc = arena_array(e->p->scratch, (size_t)ny + 1, 8);
	int64_t *iacc = arena_array(e->p->scratch, (size_t)ny + 1, 8);
	bool *seen = arena_array(e->p->scratch, (size_t)ny + 1, 1);
	for (int64_t i = 0; op == OP_REDUCE_PROD && i < ny; i++) {
		facc[i] = 1;
		iacc[i] = 1;
	}
	struct element_walk w = walk_new(&x->shape);
	reduce_strides(&x->shape, axes, stride);
	walk_add_array(&w, 0, stride);
	for (int64_t i = 0; i < n; i++, walk_next(&w)) {
		int64_t o = w.at[0];
		bool first = !seen[o] && op != OP_REDUCE_PROD;
		seen[o] = true;
		if (floats)
			facc[o] = first ? val_float(x, i)
			          : eval_reduced(op, facc[o], val_float(x, i));
		else
			iacc[o] = first ? val_int(x, i)
			          : eval_reduced_int(op, x->dt, iacc[o],
			                             val_int(x, i));
	}
	int64_t count = ny ? n / ny : 1;
	for (int64_t i = 0; i < ny; i++)
		if (floats)
			element_set_float(y->dt, data, i,
			          mean ? facc[i] / (double)count : facc[i]);
		else
			element_set_int(y->dt, data, i,
			                mean ? iacc[i] / count : iacc[i]);
	return EVAL_DONE;
}

/* softmax and log_softmax */
enum eval_status
eval_softmax(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	bool logs = e->n->op == OP_LOG_SOFTMAX;
	/* both ops have the one attribute axis */
	struct split s = split_at(&x->shape, (int)e->n->attr.SOFTMAX.axis);
	void *data = e->data;

	for (int64_t r = 0; r < s.outer * s.inner; r++) {
		int64_t base = r / s.inner * s.extent * s.inner + r % s.inner;
		double max = -INFINITY, sum = 0;
		for (int64_t k = 0; k < s.extent; k++)
			max = eval_reduced(OP_REDUCE_MAX, max,
			                  val_float(x, base + k * s.inner));
		bool dead = max == -INFINITY;

		for (int64_t k = 0; k < s.extent; k++)
			sum += exp(val_float(x, base + k * s.inner) - max);
		for (int64_t k = 0; k < s.extent; k++) {
			int64_t at = base + k * s.inner;
			double d = val_float(x, at) - max;
			double z = dead ? max : d - log(sum);

			element_set_float(y->dt, data, at, logs ? z
			                  : dead ? 0 : exp(d) / sum);
		}
	}
	return EVAL_DONE;
}

/* ---- product ---- */

/* Strides of a matmul operand for a walk over the result's leading dims. */
static void
batch_strides(const Shape *s, const Shape *y, int64_t stride[])
{
	int64_t own[MAX_RANK] = { 0 };

	shape_strides(s, own);
	for (int d = 0; d < y->rank - 2; d++) {
		int k = d - (y->rank - s->rank);
		stride[d] = k < 0 || s->dim[k] == 1 ? 0 : own[k];
	}
}

/* Element at [i][j] of the (transposed) matrix at `at`. */
static double
matrix_at(const Val *v, int64_t at, bool t, int64_t i, int64_t j)
{
	int64_t cols = v->shape.dim[v->shape.rank - 1];

	return val_float(v, at + (t ? j * cols + i : i * cols + j));
}

static int64_t
matrix_int_at(const Val *v, int64_t at, bool t, int64_t i, int64_t j)
{
	int64_t cols = v->shape.dim[v->shape.rank - 1];

	return val_int(v, at + (t ? j * cols + i : i * cols + j));
}

/* One element of the product of two float or two integer matrices. */
static void
put_product(struct eval *e, void *data, int64_t o, int64_t i, int64_t j,
            const struct element_walk *w)
{
	const Val *a = eval_in(e, 0), *b = eval_in(e, 1);
	Val *y = eval_out(e, 0);
	bool ta = e->n->attr.MATMUL.ta, tb = e->n->attr.MATMUL.tb;
	int64_t k = a->shape.dim[a->shape.rank - (ta ? 2 : 1)];
	double sum = 0;
	uint64_t isum = 0;

	if (!dt_is_float(y->dt)) {
		for (int64_t l = 0; l < k; l++)
			isum += (uint64_t)matrix_int_at(a, w->at[0], ta, i, l)
			      * (uint64_t)matrix_int_at(b, w->at[1], tb, l, j);
		element_set_int(y->dt, data, o, (int64_t)isum);
		return;
	}
	for (int64_t l = 0; l < k; l++)
		sum += matrix_at(a, w->at[0], ta, i, l)
		     * matrix_at(b, w->at[1], tb, l, j);
	sum *= e->n->attr.MATMUL.alpha;
	if (eval_has(e, 2))
		sum += val_float(eval_in(e, 2), j);
	if (eval_has(e, 3))
		sum += val_float(eval_in(e, 3), o);
	element_set_float(y->dt, data, o, sum);
}

enum eval_status
eval_matmul(struct eval *e)
{
	const Val *a = eval_in(e, 0), *b = eval_in(e, 1);
	Val *y = eval_out(e, 0);
	int rank = y->shape.rank;
	int64_t stride[MAX_RANK] = { 0 }, o = 0;
	bool extras = eval_has(e, 2) || eval_has(e, 3)
	              || e->n->attr.MATMUL.alpha != 1;

	if (a->shape.rank < 2 || b->shape.rank < 2
	    || (extras && !dt_is_float(y->dt)))
		return EVAL_SKIP;
	void *data = eval_room(e, 0);
	if (!data)
		return EVAL_LARGE;
	int64_t m = y->shape.dim[rank - 2], n = y->shape.dim[rank - 1];
	Shape lead = y->shape;
	lead.rank -= 2;
	struct element_walk w = walk_new(&lead);
	batch_strides(&a->shape, &y->shape, stride);
	walk_add_array(&w, 0, stride);
	batch_strides(&b->shape, &y->shape, stride);
	walk_add_array(&w, 0, stride);
	int64_t nbatch = shape_nelem(&lead);
	for (int64_t batch = 0; batch < nbatch; batch++, walk_next(&w))
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++)
				put_product(e, data, o++, i, j, &w);
	y->data = data;
	return EVAL_DONE;
}
