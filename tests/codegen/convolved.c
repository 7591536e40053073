/* Convolutions on memory of the host, by their definition in ckr_abi.h. */
#include "tests/codegen/convolved.h"

#include <stdbool.h>
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

/* Elements as doubles; zeros for those that are the result. */
static double *
widened(uint8_t type, const void *x, int64_t n, bool result)
{
	double *y = calloc((size_t)n + 1, sizeof(*y));

	for (int64_t i = 0; i < n && !result; i++)
		y[i] = element(type, x, i);
	return y;
}

/* Add the products of one channel of an image with the taps for one output
 * channel; at: by output and tap, where it lies in the channel. */
static void
add_channel(const struct ckr_convolved *c, const int64_t *at, double *x,
            double *w, double *y)
{
	int64_t out = volume(c->out), taps = volume(c->kernel);

	for (int64_t o = 0; o < out; o++)
		for (int64_t k = 0; k < taps; k++, at++)
			if (*at < 0)
				continue;
			else if (c->kind == CKR_CONV_Y)
				y[o] += x[*at] * w[k];
			else if (c->kind == CKR_CONV_DX)
				x[*at] += y[o] * w[k];
			else
				w[k] += x[*at] * y[o];
}

int
convolved(struct ckr_env *env, uint32_t job, void *x, void *w, void *y,
          void *work)
{
	const struct ckr_convolved *c =
		&((const struct ckr_convolved *)env->convs)[job];
	int64_t in = volume(c->in), out = volume(c->out);
	int64_t taps = volume(c->kernel), cout = c->group * c->cout;
	int64_t nx = c->images * c->group * c->cin * in;
	int64_t nw = cout * c->cin * taps, ny = c->images * cout * out;
	bool of_y = c->kind == CKR_CONV_Y, of_x = c->kind == CKR_CONV_DX;
	double *dx = widened(c->type, x, nx, of_x);
	double *dw = widened(c->type, w, nw, !of_y && !of_x);
	double *dy = widened(c->type, y, ny, of_y), *sum = of_y ? dy
		: of_x ? dx : dw;
	int64_t *at = calloc((size_t)(out * taps) + 1, sizeof(*at));

	if (c->workspace)
		memset(work, 0xa5, (size_t)c->workspace);
	for (int64_t i = 0; i < out * taps; i++)
		at[i] = place(c, i / taps, i % taps);
	for (int64_t plane = 0; plane < c->images * cout; plane++)
		for (int64_t ci = 0; ci < c->cin; ci++) {
			int64_t co = plane % cout;
			int64_t from = (plane / cout * c->group + co / c->cout)
				* c->cin + ci;

			add_channel(c, at, dx + from * in,
			            dw + (co * c->cin + ci) * taps,
			            dy + plane * out);
		}
	for (int64_t i = 0; i < (of_y ? ny : of_x ? nx : nw); i++)
		put(c->result, of_y ? y : of_x ? x : w, i, sum[i]);
	free(dx);
	free(dw);
	free(dy);
	free(at);
	return 1;
}
