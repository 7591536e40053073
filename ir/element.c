#include "ir/element.h"
#include "runtime/support/half.h"

#include <math.h>
#include <string.h>

/* Little-endian hosts only, as everywhere in ckc. */
#define LOAD(type, value) \
	for (int i = 0; i < n; i++) { \
		type e; \
		memcpy(&e, p + (size_t)i * sizeof e, sizeof e); \
		y[i] = value; \
	} \
	return
#define STORE(type, value) \
	for (int i = 0; i < n; i++) { \
		type e = (type)(value); \
		memcpy(p + (size_t)i * sizeof e, &e, sizeof e); \
	} \
	return

void
element_get_ints(DType dt, const void *array, int64_t at, int n, int64_t *y)
{
	const char *p = (const char *)array + at * dtype_info[dt].nbytes;
	Val v = { .dt = dt, .data = array };

	switch (dt) {
	case DT_I64:
	case DT_U64:  LOAD(int64_t, e);
	case DT_I32:  LOAD(int32_t, e);
	case DT_U32:  LOAD(uint32_t, e);
	case DT_I16:  LOAD(int16_t, e);
	case DT_U16:  LOAD(uint16_t, e);
	case DT_I8:   LOAD(int8_t, e);
	case DT_U8:   LOAD(uint8_t, e);
	case DT_BOOL: LOAD(uint8_t, e != 0);
	default:
		for (int i = 0; i < n; i++)
			y[i] = val_int(&v, at + i);
	}
}

void
element_get_floats(DType dt, const void *array, int64_t at, int n, double *y)
{
	const char *p = (const char *)array + at * dtype_info[dt].nbytes;

	switch (dt) {
	case DT_F32:  LOAD(float, e);
	case DT_F64:  LOAD(double, e);
	case DT_F16:  LOAD(uint16_t, half_to_float(e));
	case DT_BF16: LOAD(uint16_t, bf16_to_float(e));
	case DT_U64:  LOAD(uint64_t, (double)e);
	case DT_I64:  LOAD(int64_t, (double)e);
	case DT_I32:  LOAD(int32_t, e);
	case DT_U32:  LOAD(uint32_t, e);
	case DT_I16:  LOAD(int16_t, e);
	case DT_U16:  LOAD(uint16_t, e);
	case DT_I8:   LOAD(int8_t, e);
	case DT_U8:   LOAD(uint8_t, e);
	case DT_BOOL: LOAD(uint8_t, e != 0);
	default:
		memset(y, 0, (size_t)n * sizeof *y);
	}
}

void
element_set_ints(DType dt, void *array, int64_t at, int n, const int64_t *x)
{
	char *p = (char *)array + at * dtype_info[dt].nbytes;

	switch (dt) {
	case DT_F32:  STORE(float, x[i]);
	case DT_F64:  STORE(double, x[i]);
	case DT_F16:  STORE(uint16_t, float_to_half((float)x[i]));
	case DT_BF16: STORE(uint16_t, float_to_bf16((float)x[i]));
	case DT_BOOL: STORE(uint8_t, x[i] != 0);
	default:
		break;
	}
	switch (dtype_info[dt].nbytes) {
	case 8: STORE(uint64_t, x[i]);
	case 4: STORE(uint32_t, x[i]);
	case 2: STORE(uint16_t, x[i]);
	case 1: STORE(uint8_t, x[i]);
	}
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
element_set_floats(DType dt, void *array, int64_t at, int n, const double *x)
{
	char *p = (char *)array + at * dtype_info[dt].nbytes;

	switch (dt) {
	case DT_F32:  STORE(float, x[i]);
	case DT_F64:  STORE(double, x[i]);
	case DT_F16:  STORE(uint16_t, float_to_half((float)x[i]));
	case DT_BF16: STORE(uint16_t, float_to_bf16((float)x[i]));
	case DT_BOOL: STORE(uint8_t, x[i] != 0);
	default:
		for (int i = 0; i < n; i++) {
			int64_t k = float_to_int(dt, x[i]);

			element_set_ints(dt, array, at + i, 1, &k);
		}
	}
}

void
element_set_int(DType dt, void *array, int64_t i, int64_t x)
{
	element_set_ints(dt, array, i, 1, &x);
}

void
element_set_float(DType dt, void *array, int64_t i, double x)
{
	element_set_floats(dt, array, i, 1, &x);
}

bool
element_equal(const Val *a, const Val *b)
{
	if (a->kind != b->kind || a->kind == V_TEMP || a->dt != b->dt
	    || strcmp(a->name, b->name) != 0
	    || !shape_eq(&a->shape, &b->shape))
		return false;
	return a->kind != V_CONST
		|| (a->data && b->data
		    && !memcmp(a->data, b->data, (size_t)val_data_bytes(a)));
}

bool
element_same(const Graph *g, const Graph *h, ValId v)
{
	return v < g->nval && v < h->nval
		&& element_equal(&g->val[v], &h->val[v]);
}
