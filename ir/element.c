#include "ir/element.h"
#include "ir/base/half.h"

#include <math.h>
#include <string.h>

static void
put(DType dt, void *array, int64_t i, const void *bits)
{
	int size = dtype_info[dt].nbytes;

	memcpy((char *)array + i * size, bits, (size_t)size);
}

void
element_put_int(DType dt, void *array, int64_t i, int64_t x)
{
	union { float f; double d; uint16_t h; uint8_t u8; uint32_t u32;
	        uint64_t u64; } u = { 0 };

	switch (dt) {
	case DT_F32:
		u.f = (float)x;
		break;
	case DT_F64:
		u.d = (double)x;
		break;
	case DT_F16:
		u.h = float_to_half((float)x);
		break;
	case DT_BF16:
		u.h = float_to_bf16((float)x);
		break;
	case DT_BOOL:
		u.u8 = x != 0;
		break;
	default:
		switch (dtype_info[dt].nbytes) {
		case 1:
			u.u8 = (uint8_t)x;
			break;
		case 2:
			u.h = (uint16_t)x;
			break;
		case 4:
			u.u32 = (uint32_t)x;
			break;
		default:
			u.u64 = (uint64_t)x;
		}
	}
	put(dt, array, i, &u);
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
	union { float f; double d; uint16_t h; } u = { 0 };

	switch (dt) {
	case DT_F32:
		u.f = (float)x;
		break;
	case DT_F64:
		u.d = x;
		break;
	case DT_F16:
		u.h = float_to_half((float)x);
		break;
	case DT_BF16:
		u.h = float_to_bf16((float)x);
		break;
	case DT_BOOL:
		element_put_int(dt, array, i, x != 0);
		return;
	default:
		element_put_int(dt, array, i, float_to_int(dt, x));
		return;
	}
	put(dt, array, i, &u);
}
