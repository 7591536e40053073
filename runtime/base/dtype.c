/* Element types: sizes, names and conversion.
 *
 * Conversion goes through int64 or double, one element at a time: it runs
 * when a file holds another type than the model wants, never inside a step.
 */
#include "runtime/base/dtype.h"

#include <math.h>
#include <string.h>

#include "runtime/support/half.h"

const struct dtype_row dtype_row[CKR_DTYPE_COUNT] = {
	[CKR_NONE] = { "none", "", NULL, 0, 0 },
#define DT(id, text, nbytes, ctype, onnx, st, npy, cls) \
	[CKR_##id] = { text, st, npy, nbytes, cls },
#include "runtime/support/dtypes.h"
#undef DT
};

uint8_t
dtype_from_text(const char *text)
{
	for (int d = 1; d < CKR_DTYPE_COUNT; d++)
		if (!strcmp(dtype_row[d].text, text))
			return (uint8_t)d;
	return CKR_NONE;
}

uint8_t
dtype_from_st(const char *st, size_t n)
{
	for (int d = 1; d < CKR_DTYPE_COUNT; d++)
		if (strlen(dtype_row[d].st) == n && !memcmp(dtype_row[d].st, st,
		                                            n))
			return (uint8_t)d;
	return CKR_NONE;
}

static bool
is_float_dtype(uint8_t d)
{
	return dtype_row[d].cls == 'f';
}

bool
dtype_bytes(uint8_t d, int rank, const int64_t *dim, uint64_t *nelem,
            uint64_t *nbytes)
{
	uint64_t n = 1;

	for (int i = 0; i < rank; i++)
		if (dim[i] < 0 || __builtin_mul_overflow(n, (uint64_t)dim[i],
		                                         &n))
			return false;
	*nelem = n;
	if (__builtin_mul_overflow(n, (uint64_t)dtype_row[d].nbytes, nbytes))
		return false;
	return *nbytes <= (uint64_t)1 << 62 && n <= (uint64_t)1 << 62;
}

#define LOAD(type) (memcpy(&type##_, p, sizeof(type##_)), type##_)

double
dtype_double(uint8_t d, const void *p)
{
	float f_;
	double d_;
	uint16_t h_;
	int64_t l_ = 0;

	switch (d) {
	case CKR_F32:
		return (double)LOAD(f);
	case CKR_F64:
		return LOAD(d);
	case CKR_F16:
		return (double)half_to_float(LOAD(h));
	case CKR_BF16:
		return (double)bf16_to_float(LOAD(h));
	case CKR_U64:
		memcpy(&l_, p, 8);
		return (double)(uint64_t)l_;
	default:
		if (dtype_convert(&l_, CKR_I64, p, d, 1, &(size_t){ 0 }))
			return (double)l_;
		return NAN;
	}
}

/* Integer element as int64 (little-endian machine); u64 beyond int64 fails. */
static bool
decode_int(uint8_t d, const unsigned char *p, int64_t *x)
{
	int nbytes = dtype_row[d].nbytes, shift = 64 - 8 * nbytes;
	uint64_t u = 0;

	memcpy(&u, p, (size_t)nbytes);
	switch (dtype_row[d].cls) {
	case 'b':
		*x = u != 0;
		return true;
	case 'i':
		*x = (int64_t)(u << shift) >> shift;    /* the sign */
		return true;
	default:
		*x = (int64_t)u;
		return u <= INT64_MAX;
	}
}

/* Store the low bytes (little-endian machine) after a range check. */
static bool
encode_int(uint8_t d, unsigned char *p, int64_t x)
{
	int bits = dtype_row[d].nbytes * 8;

	switch (dtype_row[d].cls) {
	case 'b':
		*p = x != 0;
		return true;
	case 'i':
		if (bits < 64 && (x < -((int64_t)1 << (bits - 1))
		                  || x >= (int64_t)1 << (bits - 1)))
			return false;
		break;
	default:
		if (x < 0 || (bits < 64 && x >= (int64_t)1 << bits))
			return false;
	}
	memcpy(p, &x, dtype_row[d].nbytes);
	return true;
}

static void
encode_float(uint8_t d, unsigned char *p, double x)
{
	float f = (float)x;
	uint16_t h;

	switch (d) {
	case CKR_F32:
		memcpy(p, &f, 4);
		return;
	case CKR_F64:
		memcpy(p, &x, 8);
		return;
	case CKR_F16:
		h = float_to_half(f);
		break;
	default:
		h = float_to_bf16(f);
	}
	memcpy(p, &h, 2);
}

static bool
convert_one(unsigned char *to, uint8_t dt, const unsigned char *from,
            uint8_t st)
{
	int64_t l;
	double x;

	if (is_float_dtype(st)) {
		x = dtype_double(st, from);
		if (is_float_dtype(dt)) {
			encode_float(dt, to, x);
			return true;
		}
		if (!(fabs(x) <= 0x1p62) || x != floor(x))
			return false;
		return encode_int(dt, to, (int64_t)x);
	}
	if (!decode_int(st, from, &l))
		return false;
	if (!is_float_dtype(dt))
		return encode_int(dt, to, l);
	encode_float(dt, to, (double)l);
	return true;
}

bool
dtype_convert(void *dst, uint8_t dt, const void *src, uint8_t st, size_t n,
              size_t *at)
{
	unsigned char *to = dst;
	const unsigned char *from = src;

	if (dt == st && dt != CKR_BOOL) {
		memcpy(to, from, n * dtype_row[dt].nbytes);
		return true;
	}
	*at = 0;
	if (dtype_row[dt].cls == 'q' || dtype_row[st].cls == 'q')
		return n == 0;
	for (size_t i = 0; i < n; i++) {
		if (!convert_one(to, dt, from, st)) {
			*at = i;
			return false;
		}
		to += dtype_row[dt].nbytes;
		from += dtype_row[st].nbytes;
	}
	return true;
}
