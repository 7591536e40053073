/* What the contents of an initializer look like.
 *
 * An exporter that evaluates parts of a model leaves constants without names.
 * Some hold parameters; masks, tables of sines, frequencies and copies for
 * each row of a batch do not, and must not be taken for them.
 *
 * cost   a few passes over the elements
 */
#include "frontend/damage/damage.h"

#include <math.h>
#include <string.h>

/* The float elements of v; false if they are not at hand. */
static bool
load(struct flat *f, const struct flat_val *v, Val *val, int64_t *n)
{
	struct onnx_tensor t;

	if (!v->init || !onnx_tensor_load(f->file, v->init, &t) || !t.data
	    || dtype_info[t.dt].cls != 'f')
		return false;
	*val = (Val){ .kind = V_CONST, .dt = t.dt, .shape = t.shape,
	              .data = t.data };
	*n = t.nelem;
	return true;
}

static bool
is_mask(const Val *val, int64_t n)
{
	double other = 0;
	bool zero = false, two = true;

	for (int64_t i = 0; i < n; i++) {
		double x = val_float(val, i);

		if (x < -1e4)
			return true;
		if (x == 0)
			zero = true;
		else if (other == 0)
			other = x;
		two &= x == 0 || x == other;
	}
	return two && zero && other != 0;
}

/* Rows of positions: 0 is sin 0 and cos 0, 1 begins with sin 1 or cos 1. */
static bool
is_sines(const Val *val, int64_t n)
{
	int rank = val->shape.rank;
	int64_t width = rank > 1 ? val->shape.dim[rank - 1] : 0;
	double first;

	if (width < 4 || n < 2 * width)
		return false;
	for (int64_t i = 0; i < width; i++) {
		double x = val_float(val, i);

		if ((x != 0 && x != 1)
		    || fabs(val_float(val, width + i)) > 1.01)
			return false;
	}
	first = val_float(val, width);
	return fabs(first - sin(1)) < 1e-2 || fabs(first - cos(1)) < 1e-2;
}

/* Equal differences or ratios, in a vector. */
static bool
is_steps(const Val *val, int64_t n)
{
	double a, step, ratio;
	bool sum = true, product = true;

	if (n < 3 || val->shape.rank < 1
	    || val->shape.dim[val->shape.rank - 1] != n)
		return false;
	a = val_float(val, 0);
	step = val_float(val, 1) - a;
	ratio = a != 0 ? val_float(val, 1) / a : 0;
	for (int64_t i = 1; i < n; i++) {
		double x = val_float(val, i - 1), y = val_float(val, i);

		sum &= fabs(y - x - step) <= 1e-5 * fabs(y);
		product &= fabs(y - x * ratio) <= 1e-5 * fabs(y);
	}
	return (sum && step != 0)
		|| (product && fabs(ratio) > 1e-9 && fabs(ratio - 1) > 1e-5);
}

/* Whether all slices along the axis are the same bytes. */
static bool
is_same_along(const Val *val, int axis)
{
	const char *data = val->data;
	size_t inner = (size_t)dtype_info[val->dt].nbytes;
	int64_t outer = 1, extent = val->shape.dim[axis];

	for (int i = 0; i < axis; i++)
		outer *= val->shape.dim[i];
	for (int i = axis + 1; i < val->shape.rank; i++)
		inner *= (size_t)val->shape.dim[i];
	for (int64_t o = 0; o < outer; o++)
		for (int64_t k = 1; k < extent; k++)
			if (memcmp(data + (size_t)(o * extent + k) * inner,
			           data + (size_t)(o * extent) * inner, inner)
			    != 0)
				return false;
	return extent > 1;
}

static bool
is_copies(const Val *val)
{
	for (int axis = 0; axis < val->shape.rank - 1; axis++)
		if (is_same_along(val, axis))
			return true;
	return false;
}

static bool
is_zero(const Val *val, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (val_float(val, i) != 0)
			return false;
	return true;
}

enum contents
damage_contents(struct flat *f, const struct flat_val *v)
{
	int64_t n;
	Val val;

	if (!load(f, v, &val, &n) || n == 0)
		return CONTENTS_UNKNOWN;
	if (is_mask(&val, n))
		return CONTENTS_MASK;
	if (is_sines(&val, n))
		return CONTENTS_SINES;
	if (is_copies(&val))
		return is_zero(&val, n) ? CONTENTS_STATE : CONTENTS_COPIES;
	return is_steps(&val, n) ? CONTENTS_STEPS : CONTENTS_PLAIN;
}

bool
damage_is_sinusoid(struct flat *f, const struct flat_val *v)
{
	int64_t n;
	Val val;

	return load(f, v, &val, &n) && is_sines(&val, n);
}

bool
damage_transposed(struct flat *f, const struct flat_val *a,
                  const struct flat_val *b)
{
	const char *p, *q;
	size_t rows, cols, size;
	bool varies = false;            /* zeros are anything's transposed */
	int64_t n;
	Val s, t;

	if (a->init->n_dims != 2 || b->init->n_dims != 2
	    || a->init->data_type != b->init->data_type
	    || a->init->dims[0] != b->init->dims[1]
	    || a->init->dims[1] != b->init->dims[0]
	    || !load(f, a, &s, &n) || !load(f, b, &t, &n) || n == 0)
		return false;
	p = s.data;
	q = t.data;
	rows = (size_t)s.shape.dim[0];
	cols = (size_t)s.shape.dim[1];
	size = (size_t)dtype_info[s.dt].nbytes;
	for (size_t i = 0; i < rows; i++)
		for (size_t k = 0; k < cols; k++) {
			const char *x = p + (i * cols + k) * size;

			if (memcmp(x, q + (k * rows + i) * size, size) != 0)
				return false;
			varies |= memcmp(x, p, size) != 0;
		}
	return varies;
}

bool
damage_same(struct flat *f, const struct flat_val *a, const struct flat_val *b)
{
	int64_t n, m;
	Val s, t;

	return load(f, a, &s, &n) && load(f, b, &t, &m) && n == m
		&& s.dt == t.dt && s.shape.rank == t.shape.rank
		&& memcmp(s.shape.dim, t.shape.dim, (size_t)s.shape.rank
		          * sizeof *s.shape.dim) == 0
		&& memcmp(s.data, t.data, (size_t)n
		          * (size_t)dtype_info[s.dt].nbytes) == 0;
}
