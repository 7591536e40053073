#include "ir/element.h"
#include "runtime/support/half.h"

#include <math.h>
#include <string.h>

/* The low bytes of what was stored: little-endian hosts only, as everywhere in
 * ckc. */
union bits {
	float f;
	double d;
	uint16_t h;
	uint64_t u;
};

static void
put(DType dt, void *array, int64_t i, union bits b)
{
	int size = dtype_info[dt].nbytes;

	memcpy((char *)array + i * size, &b, (size_t)size);
}

void
element_put_int(DType dt, void *array, int64_t i, int64_t x)
{
	union bits b = { .u = 0 };

	switch (dt) {
	case DT_F32:  b.f = (float)x; break;
	case DT_F64:  b.d = (double)x; break;
	case DT_F16:  b.h = float_to_half((float)x); break;
	case DT_BF16: b.h = float_to_bf16((float)x); break;
	case DT_BOOL: b.u = x != 0; break;
	default:      b.u = (uint64_t)x;
	}
	put(dt, array, i, b);
}

/* Truncation towards zero; what does not fit is cut to the range of 64 bits
 * and then wraps like any integer, so that nothing here is undefined. */
static int64_t
float_to_int(DType dt, double x)
{
	if (isnan(x))
		return 0;
	if (dt == DT_U64 && x >= 9223372036854775808.0)
		return x < 18446744073709551616.0
		       ? (int64_t)(uint64_t)x : (int64_t)UINT64_MAX;
	if (x >= 9223372036854775808.0)
		return INT64_MAX;
	if (x < -9223372036854775808.0)
		return INT64_MIN;
	return (int64_t)x;
}

void
element_put_float(DType dt, void *array, int64_t i, double x)
{
	union bits b = { .u = 0 };

	switch (dt) {
	case DT_F32:  b.f = (float)x; break;
	case DT_F64:  b.d = x; break;
	case DT_F16:  b.h = float_to_half((float)x); break;
	case DT_BF16: b.h = float_to_bf16((float)x); break;
	default:
		element_put_int(dt, array, i, dt == DT_BOOL ? x != 0
		                : float_to_int(dt, x));
		return;
	}
	put(dt, array, i, b);
}

bool
element_same(const Graph *g, const Graph *h, ValId v)
{
	const Val *a = &g->val[v], *b = &h->val[v];

	if (v >= g->nval || v >= h->nval || a->kind != b->kind
	    || a->kind == V_TEMP || a->kind == V_STATE || a->dt != b->dt
	    || strcmp(a->name, b->name) != 0
	    || !shape_eq(&a->shape, &b->shape))
		return false;
	return a->kind != V_CONST
		|| (a->data && b->data
		    && !memcmp(a->data, b->data, (size_t)val_data_bytes(a)));
}
