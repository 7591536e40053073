/* Types of elements, shapes, and the contents of constants. */
#include "ir/ir.h"
#include "runtime/support/block_layout.h"
#include "runtime/support/half.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct dtype_info dtype_info[DT_COUNT] = {
	[DT_NONE] = { "?", "void", "?", 0, 0, '?' },
#define DT(id, text, nbytes, ctype, onnx, st, npy, cls) \
	[DT_##id] = { text, ctype, st, nbytes, onnx, cls },
#include "runtime/support/dtypes.h"
#undef DT
};

/* ---- shapes ---- */

Shape
shape_make(int rank, const int64_t *dim)
{
	Shape s = { .rank = rank };

	for (int i = 0; i < rank && i < MAX_RANK; i++)
		s.dim[i] = dim[i];
	return s;
}

IntList
shape_list(const Shape *s)
{
	IntList l = { .n = s->rank };

	for (int i = 0; i < s->rank; i++)
		l.v[i] = s->dim[i];
	return l;
}

Shape
shape_scalar(void)
{
	return (Shape){ .rank = 0 };
}

Shape
shape_along(int rank, int axis, int64_t n)
{
	Shape s = { .rank = rank };

	for (int i = 0; i < rank; i++)
		s.dim[i] = i == axis ? n : 1;
	return s;
}

int64_t
shape_span(const Shape *s, int first, int last)
{
	int64_t n = 1;

	for (int i = first; i < last; i++)
		n *= s->dim[i];
	return n;
}

IntList
list_filled(int n, int64_t x)
{
	IntList l = { .n = n };

	for (int i = 0; i < n; i++)
		l.v[i] = x;
	return l;
}

Shape
shape_without(Shape s, int back)
{
	s.rank--;
	for (int i = s.rank + 1 - back; i < s.rank; i++)
		s.dim[i] = s.dim[i + 1];
	s.dim[s.rank] = 0;
	return s;
}

bool
shape_eq(const Shape *a, const Shape *b)
{
	if (a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	return true;
}

bool
shape_known(const Shape *s)
{
	for (int i = 0; i < s->rank; i++)
		if (s->dim[i] < 0)
			return false;
	return s->rank >= 0;
}

int64_t
shape_nelem(const Shape *s)
{
	int64_t n = 1;
	bool zero = false;

	if (!shape_known(s))
		return -1;
	for (int i = 0; i < s->rank; i++)
		zero |= s->dim[i] == 0;
	if (zero)
		return 0;
	for (int i = 0; i < s->rank; i++)
		if (!mul_ok(n, s->dim[i], &n) || n > (int64_t)1 << 62)
			return -1;
	return n;
}

/* An unknown extent against one above 1 is taken to be that extent: anything
 * else would be an error once dims are bound. */
static bool
broadcast_dim(int64_t *a, int64_t b)
{
	if (*a == b || b == 1)
		return true;
	if (*a == 1) {
		*a = b;
		return true;
	}
	if (*a < 0 || b < 0) {
		*a = *a < 0 ? b : *a;
		return true;
	}
	return false;
}

bool
shape_broadcast(Shape *a, const Shape *b)
{
	Shape s = { .rank = a->rank > b->rank ? a->rank : b->rank };

	if (a->rank < 0 || b->rank < 0) {
		a->rank = -1;
		return true;
	}
	for (int i = 0; i < s.rank; i++) {
		int ia = i - (s.rank - a->rank), ib = i - (s.rank - b->rank);

		s.dim[i] = ia >= 0 ? a->dim[ia] : 1;
		if (ib >= 0 && !broadcast_dim(&s.dim[i], b->dim[ib]))
			return false;
	}
	*a = s;
	return true;
}

char *
shape_text(char *buf, size_t size, DType dt, const Shape *s)
{
	size_t at = 0;
	const char *type = dt > DT_NONE && dt < DT_COUNT
		? dtype_info[dt].text : "?";

	if (s->rank < 0) {
		snprintf(buf, size, "%s[*]", type);
		return buf;
	}
	at += (size_t)snprintf(buf, size, "%s[", type);
	for (int i = 0; i < s->rank && at < size; i++) {
		if (s->dim[i] < 0)
			at += (size_t)snprintf(buf + at, size - at, "%s?",
			                       i ? "," : "");
		else
			at += (size_t)snprintf(buf + at, size - at, "%s%lld",
			                       i ? "," : "",
			                       (long long)s->dim[i]);
	}
	if (at < size)
		snprintf(buf + at, size - at, "]");
	return buf;
}

void
shape_strides(const Shape *s, int64_t stride[MAX_RANK])
{
	int64_t n = 1;

	memset(stride, 0, MAX_RANK * sizeof *stride);
	for (int i = s->rank - 1; i >= 0; i--) {
		stride[i] = n;
		if (s->dim[i] > 0 && !mul_ok(n, s->dim[i], &n))
			n = INT64_MAX;
	}
}

/* numpy's rule for reshaping without a copy.  Groups of axes with equal
 * products are matched; within a group the old axes must be dense relative to
 * each other.  Axes of one element say nothing. */
bool
shape_view(const Shape *from, const int64_t *stride, const Shape *to,
           int64_t out[MAX_RANK])
{
	Shape old = { .rank = 0 };
	int64_t step[MAX_RANK];
	int i = 0, k = 0;

	if (shape_nelem(from) == 0) {
		shape_strides(to, out);
		return true;
	}
	for (int d = 0; d < from->rank; d++)
		if (from->dim[d] != 1) {
			old.dim[old.rank] = from->dim[d];
			step[old.rank++] = stride[d];
		}
	while (k < to->rank) {
		if (to->dim[k] == 1) {
			out[k++] = 1;
			continue;
		}
		int i0 = i, k0 = k;
		if (i == old.rank)
			return false;
		int64_t a = old.dim[i++], b = to->dim[k++];
		while (a != b)
			if (a < b ? i == old.rank : k == to->rank)
				return false;
			else if (!(a < b ? mul_ok(a, old.dim[i++], &a)
			                 : mul_ok(b, to->dim[k++], &b)))
				return false;
		for (int d = i0; d + 1 < i; d++)
			if (step[d] != step[d + 1] * old.dim[d + 1])
				return false;
		int64_t s = step[i - 1];
		for (int d = k; d-- > k0; s *= to->dim[d])
			out[d] = s;
	}
	return true;
}

/* ---- values ---- */

int64_t
val_nelem(const Val *v)
{
	return shape_nelem(&v->shape);
}

int64_t
val_data_bytes(const Val *v)
{
	int64_t n = shape_nelem(&v->shape);

	if (n < 0 || v->dt <= DT_NONE || v->dt >= DT_COUNT
	    || !mul_ok(n, dtype_info[v->dt].nbytes, &n))
		return -1;
	return n;
}

Shape
val_weights_shape(const Val *v)
{
	Shape s = v->shape;
	int64_t *last = s.dim + s.rank - 1;

	if (val_is_blocks(v) && s.rank > 0 && *last > 0
	    && !mul_ok(*last, BLOCK_WEIGHTS, last))
		*last = INT64_MAX;
	return s;
}

/* The stride of an axis of extent 1 is never used. */
bool
val_contiguous(const Val *v)
{
	int64_t want[MAX_RANK];

	if (!v->laid_out)
		return false;
	shape_strides(&v->shape, want);
	for (int i = 0; i < v->shape.rank; i++)
		if (v->shape.dim[i] != 1 && v->stride[i] != want[i])
			return false;
	return true;
}

bool
val_reach(const Val *v, int64_t *first, int64_t *last)
{
	*first = *last = v->start;
	for (int i = 0; i < v->shape.rank; i++) {
		int64_t far;

		if (!mul_ok(v->shape.dim[i] - 1, v->stride[i], &far)
		    || !add_ok(far < 0 ? *first : *last, far,
		               far < 0 ? first : last))
			return false;
	}
	return true;
}

bool
val_is_const(const Val *v)
{
	return v->kind == V_CONST && v->data;
}

union element {
	float f32;
	double f64;
	uint16_t u16;
	int64_t i64;
	int32_t i32;
	int16_t i16;
	int8_t i8;
	uint64_t u64;
	uint32_t u32;
	uint8_t u8;
};

static union element
element_at(const Val *v, int64_t i)
{
	union element e = { .u64 = 0 };
	size_t size = (size_t)dtype_info[v->dt].nbytes;

	if (size <= sizeof e)           /* a block is no number */
		memcpy(&e, (const char *)v->data + (size_t)i * size, size);
	return e;
}

/* Truncation of a float that no int64_t can hold is undefined in C. */
static int64_t
int_of(double x)
{
	if (isnan(x))
		return 0;
	if (x >= 0x1p63)
		return INT64_MAX;
	return x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}

int64_t
val_int(const Val *v, int64_t i)
{
	union element e = element_at(v, i);

	switch (v->dt) {
	case DT_I64:  return e.i64;
	case DT_I32:  return e.i32;
	case DT_I16:  return e.i16;
	case DT_I8:   return e.i8;
	case DT_U64:  return (int64_t)e.u64;
	case DT_U32:  return e.u32;
	case DT_U16:  return e.u16;
	case DT_U8:   return e.u8;
	case DT_BOOL: return e.u8 != 0;
	default:      return int_of(val_float(v, i));
	}
}

double
val_float(const Val *v, int64_t i)
{
	union element e = element_at(v, i);

	switch (v->dt) {
	case DT_F32:  return e.f32;
	case DT_F64:  return e.f64;
	case DT_F16:  return half_to_float(e.u16);
	case DT_BF16: return bf16_to_float(e.u16);
	case DT_U64:  return (double)e.u64;
	case DT_NONE: return 0;
	default:      return (double)val_int(v, i);
	}
}

bool
val_splat(const Graph *g, ValId id, double *x)
{
	const Val *v = &g->val[id];
	int64_t n = val_nelem(v);
	size_t size;

	if (!id || !val_is_const(v) || n < 1 || v->dt == DT_NONE)
		return false;
	size = (size_t)dtype_info[v->dt].nbytes;
	/* every element equals the next one iff the bytes shifted by one
	 * element are the same */
	if (n > 1 && memcmp(v->data, (const char *)v->data + size,
	                    ((size_t)n - 1) * size) != 0)
		return false;
	*x = val_float(v, 0);
	return true;
}
