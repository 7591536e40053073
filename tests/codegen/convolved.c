/* Convolutions on memory of the host, by their definition in ckr_abi.h. */
#include "tests/codegen/convolved.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/support/half.h"

static double
element(uint8_t type, const void *x, int64_t i)
{
	return type == CKR_F32 ? ((const float *)x)[i]
	     : type == CKR_F16 ? half_to_float(((const uint16_t *)x)[i])
	     : bf16_to_float(((const uint16_t *)x)[i]);
}

static void
put(uint8_t type, void *y, int64_t i, double x)
{
	if (type == CKR_F32)
		((float *)y)[i] = (float)x;
	else
		((uint16_t *)y)[i] = type == CKR_F16 ? float_to_half((float)x)
		                                     : float_to_bf16((float)x);
}

static int64_t
volume(const int64_t *v)
{
	return v[0] * v[1] * v[2];
}

/* Where tap k of window o begins in an image; -1: in the padding. */
static int64_t
place(const struct ckr_convolved *c, int64_t o, int64_t k)
{
	int64_t at = 0, row = 1;

	for (int i = 2; i >= 0; i--) {
		int64_t x = o % c->out[i] * c->stride[i]
			+ k % c->kernel[i] * c->dilation[i] - c->begin[i];

		if (x < 0 || x >= c->in[i])
			return -1;
		at += x * row;
		row *= c->in[i];
		o /= c->out[i];
		k /= c->kernel[i];
	}
	return at;
}

struct place {
	int64_t x, w, y;
};

/* Add the product of one pair of elements. */
static void
add(const struct ckr_convolved *c, double *sum, const void *x, const void *w,
    const void *y, const struct place *p)
{
	if (c->kind == CKR_CONV_Y)
		sum[p->y] += element(c->type, x, p->x)
			* element(c->type, w, p->w);
	else if (c->kind == CKR_CONV_DX)
		sum[p->x] += element(c->type, y, p->y)
			* element(c->type, w, p->w);
	else
		sum[p->w] += element(c->type, x, p->x)
			* element(c->type, y, p->y);
}

int
convolved(struct ckr_env *env, uint32_t job, void *x, void *w, void *y,
          void *work)
{
	const struct ckr_convolved *c =
		&((const struct ckr_convolved *)env->convs)[job];
	int64_t in = volume(c->in), out = volume(c->out);
	int64_t taps = volume(c->kernel), cout = c->group * c->cout;
	int64_t size = c->kind == CKR_CONV_Y ? c->images * cout * out
		: c->kind == CKR_CONV_DX ? c->images * c->group * c->cin * in
		: cout * c->cin * taps;
	void *to = c->kind == CKR_CONV_Y ? y : c->kind == CKR_CONV_DX ? x : w;
	double *sum = calloc((size_t)size, sizeof(*sum));

	if (c->workspace)
		memset(work, 0xa5, (size_t)c->workspace);
	for (int64_t i = 0; i < c->images * cout * c->cin * out * taps; i++) {
		int64_t k = i % taps, o = i / taps % out;
		int64_t ci = i / taps / out % c->cin;
		int64_t plane = i / taps / out / c->cin, co = plane % cout;
		int64_t at = place(c, o, k);
		int64_t from = (plane / cout * c->group + co / c->cout)
			* c->cin + ci;

		if (at >= 0)
			add(c, sum, x, w, y, &(struct place){ from * in + at,
				(co * c->cin + ci) * taps + k,
				plane * out + o });
	}
	for (int64_t i = 0; i < size; i++)
		put(c->result, to, i, sum[i]);
	free(sum);
	return 1;
}
