/* Classifies the contents of initializers.
 *
 * An exporter that folds parts of a model leaves unnamed constants.  Some hold
 * parameters.  Masks, sinusoidal tables, frequencies, and copies for each row
 * of a batch do not, and must not be taken for parameters.
 *
 * cost   a few passes over the elements
 */
#include "frontend/lint/lint.h"

#include <math.h>
#include <string.h>

/* The float elements of v; false if they are not available. */
static bool
load_floats(struct flat *f, const struct flat_val *v, Val *val, int64_t *n)
{
	*n = flat_load(f, v->init, val);
	return *n >= 0 && dtype_info[val->dt].cls == 'f';
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

/* Rows of positions begin as sin and cos do: row 0 has sin 0 and cos 0, row 1
 * begins with sin 1 or cos 1. */
static bool
begins_as_sines(const Val *val, int64_t width)
{
	double first = val_float(val, width);

	for (int64_t i = 0; i < width; i++) {
		double x = val_float(val, i);

		if ((x != 0 && x != 1)
		    || fabs(val_float(val, width + i)) > 1.01)
			return false;
	}
	return fabs(first - sin(1)) < 1e-2 || fabs(first - cos(1)) < 1e-2;
}

/* Whether all rows are equal. */
static bool
is_one_row(const Val *val, int64_t rows, int64_t width)
{
	for (int64_t i = width; i < rows * width; i++)
		if (val_float(val, i) != val_float(val, i - width))
			return false;
	return true;
}

/* Whether rows consist of pairs of a sine and a cosine, in any order and for
 * any positions: then their squares add up to half the width.  Rows of zeros
 * belong to padding and class tokens. */
static bool
is_pairs(const Val *val, int64_t rows, int64_t width)
{
	int64_t zero = 0;

	for (int64_t r = 0; r < rows; r++) {
		double sum = 0;

		for (int64_t i = r * width; i < (r + 1) * width; i++) {
			double x = val_float(val, i);

			if (!(fabs(x) <= 1.0001))
				return false;
			sum += x * x;
		}
		zero += sum == 0;
		if (zero == 3 && r == 2)
			return false;   /* most likely all of it */
		if (sum != 0 && fabs(2 * sum - (double)width)
		    > 1e-4 * (double)width)
			return false;
	}
	return 2 * zero < rows && !is_one_row(val, rows, width);
}

/* Whether a column is a sine of the row number, with an offset: x[r - 1] +
 * x[r + 1] = a + b x[r] for all r, with |b| <= 2.  a and b are fitted by least
 * squares.  A constant column has frequency 0; *waves counts the others. */
static bool
is_wave(const Val *val, int64_t rows, int64_t width, int64_t col,
        int64_t *waves)
{
	double n = (double)rows - 2, sx = 0, sy = 0, xx = 0, xy = 0, a, b, det;
	double zero = val_float(val, col), high = 0, room, scale = fabs(zero);
#define AT(r) (val_float(val, (r) * width + col) - zero)

	for (int64_t r = 1; r + 1 < rows; r++) {
		double x = AT(r), y = AT(r - 1) + AT(r + 1);

		sx += x;
		sy += y;
		xx += x * x;
		xy += x * y;
		high = fmax(high, fabs(x));
	}
	scale = fmax(scale, high);
	room = 1e-4 * high + 1e-6 * scale;
	if (!(high > 1e-5 * scale))
		return fabs(AT(rows - 1)) <= 1e-5 * scale;
	det = n * xx - sx * sx;
	b = det > 1e-9 * n * xx ? (n * xy - sx * sy) / det : 2;
	a = (sy - b * sx) / n;
	for (int64_t r = 1; r + 1 < rows; r++)
		if (!(fabs(AT(r - 1) + AT(r + 1) - a - b * AT(r)) <= room))
			return false;
	++*waves;
	return fabs(b) <= 2.001 || high < 1e-3 * scale;
#undef AT
}

/* Whether v is a sinusoidal table, perhaps scaled and shifted.  Sines of low
 * frequency may look like lines. */
static bool
is_sines(const Val *val, int64_t n)
{
	int rank = val->shape.rank;
	int64_t width = rank > 1 ? val->shape.dim[rank - 1] : 0;
	int64_t rows = width ? n / width : 0, waves = 0;

	if (width < 4 || rows < 2)
		return false;
	if (begins_as_sines(val, width)
	    || (rows > 2 && is_pairs(val, rows, width)))
		return true;
	for (int64_t i = 0; i < width; i++)
		if (rows < 6 || !is_wave(val, rows, width, i, &waves))
			return false;
	return 2 * waves > width;
}

/* Whether a vector has equal differences or ratios. */
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

/* Whether all slices along the axis have equal bytes. */
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
all_zero(const Val *val, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (val_float(val, i) != 0)
			return false;
	return true;
}

enum contents
classify_contents(struct flat *f, const struct flat_val *v)
{
	int64_t n;
	Val val;

	if (!load_floats(f, v, &val, &n) || n == 0)
		return CONTENTS_UNKNOWN;
	if (is_mask(&val, n))
		return CONTENTS_MASK;
	if (is_sines(&val, n))
		return CONTENTS_SINES;
	if (is_copies(&val))
		return all_zero(&val, n) ? CONTENTS_STATE : CONTENTS_COPIES;
	return is_steps(&val, n) ? CONTENTS_STEPS : CONTENTS_PLAIN;
}

bool
is_sinusoid_table(struct flat *f, const struct flat_val *v)
{
	int64_t n;
	Val val;

	return load_floats(f, v, &val, &n) && is_sines(&val, n);
}

bool
is_transpose_of(struct flat *f, const struct flat_val *a,
                const struct flat_val *b)
{
	const char *p, *q;
	size_t rows, cols, size;
	bool varies = false;            /* zeros equal any transpose */
	int64_t n;
	Val s, t;

	if (a->init->n_dims != 2 || b->init->n_dims != 2
	    || a->init->data_type != b->init->data_type
	    || a->init->dims[0] != b->init->dims[1]
	    || a->init->dims[1] != b->init->dims[0]
	    || !load_floats(f, a, &s, &n) || !load_floats(f, b, &t, &n)
	    || n == 0)
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
same_contents(struct flat *f, const struct flat_val *a,
              const struct flat_val *b)
{
	int64_t n, m;
	Val s, t;

	return load_floats(f, a, &s, &n) && load_floats(f, b, &t, &m) && n == m
		&& s.dt == t.dt && s.shape.rank == t.shape.rank
		&& memcmp(s.shape.dim, t.shape.dim, (size_t)s.shape.rank
		          * sizeof *s.shape.dim) == 0
		&& memcmp(s.data, t.data, (size_t)n
		          * (size_t)dtype_info[s.dt].nbytes) == 0;
}
