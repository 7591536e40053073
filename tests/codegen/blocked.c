/* Convolutions in blocks of channels, by their definition in ckr_abi.h. */
#include "tests/codegen/blocked.h"

#include <stdlib.h>
#include <string.h>

/* Element i of image n, channel c in blocks; those of plain images too. */
static float *
blocked_at(float *p, const struct ckr_blocked *b, int64_t channels,
           const int32_t *dim, int64_t n, int64_t c, int64_t i)
{
	int64_t size = (int64_t)dim[0] * dim[1], k = b->block;

	if (channels < k)
		return p + (n * channels + c) * size + i;
	return p + ((n * (channels / k) + c / k) * size + i) * k + c % k;
}

/* Inputs that weights have. */
static int64_t
weight_inputs(const struct ckr_blocked *b)
{
	return b->cin < b->block && b->type == CKR_BF16 && b->kind == CKR_CONV_Y
		? (b->cin + 1) / 2 * 2 : b->cin;
}

int64_t
blocked_weights(const struct ckr_blocked *b)
{
	return b->cout * weight_inputs(b) * b->kernel[0] * b->kernel[1];
}

static float *
weight_at(float *p, const struct ckr_blocked *b, int64_t o, int64_t i,
          int64_t tap)
{
	int64_t k = b->block, taps = (int64_t)b->kernel[0] * b->kernel[1];

	if (b->cin < k && b->type == CKR_BF16 && b->kind == CKR_CONV_Y)
		return p + ((o / k * taps + tap) * weight_inputs(b) + i / 2 * 2)
			* k + o % k * 2 + i % 2;
	if (b->cin < k)
		return p + ((o / k * taps + tap) * b->cin + i) * k + o % k;
	if (b->type == CKR_BF16 && b->kind != CKR_CONV_DW) {
		int64_t row = b->kind == CKR_CONV_Y ? i % k : o % k;
		int64_t column = b->kind == CKR_CONV_Y ? o % k : i % k;

		return p + ((o / k * (b->cin / k) + i / k) * taps + tap) * k * k
			+ row / 2 * 2 * k + column * 2 + row % 2;
	}
	if (b->kind != CKR_CONV_DX)
		return p + ((o / k * (b->cin / k) + i / k) * taps + tap) * k *
		           k + i % k * k + o % k;
	if (taps == 1 && k == 16)
		return p + (i / k * (b->cout / k) + o / k) * k * k + o % k * k +
		       i % k;
	return p + ((o / k * (b->cin / k) + i / k) * taps + tap) * k * k +
	       o % k * k + i % k;
}

enum { MOST = 16 };     /* channels of a block */

/* A row of windows of one channel of x and a block of y: add the products with
 * one tap's weights, or to sum what those of x and y are. */
static void
blocked_row(const struct ckr_blocked *b, float *x, const float *w, float *y,
            double *sum)
{
	int64_t k = b->block, step = b->stride[1] * (b->cin < k ? 1 : k);

	for (int64_t i = 0; i < b->out[1]; i++, x += step, y += k)
		for (int64_t o = 0; o < k; o++)
			if (b->kind == CKR_CONV_Y)
				y[o] += *x * w[o];
			else if (b->kind == CKR_CONV_DX)
				*x += y[o] * w[o];
			else
				sum[o] += (double)*x * (double)y[o];
}

/* Channel i of one image's x, and a block of y from channel o on. */
static void
blocked_part(const struct ckr_blocked *b, float *x, float *w, float *y,
             int64_t n, int64_t o, int64_t i)
{
	for (int64_t t = 0; t < b->kernel[0] * b->kernel[1]; t++) {
		double sum[MOST] = { 0 };
		float tap[MOST];

		for (int64_t k = 0; k < b->block; k++)
			tap[k] = *weight_at(w, b, o + k, i, t);
		for (int64_t h = 0; h < b->out[0]; h++) {
			int64_t at = (h * b->stride[0] + t / b->kernel[1] *
			              b->dilation[0]) * b->in[1] +
			             t % b->kernel[1] * b->dilation[1];

			blocked_row(b, blocked_at(x, b, b->cin, b->in, n, i,
				at), tap, blocked_at(y, b, b->cout, b->out, n,
				o, h * b->out[1]), sum);
		}
		for (int64_t k = 0; b->kind == CKR_CONV_DW && k < b->block; k++)
			*weight_at(w, b, o + k, i, t) += (float)sum[k];
	}
}

/* n floats: x itself, or what its bf16 stand for. */
static float *
as_floats(const struct ckr_blocked *b, int kind, void *x, int64_t n)
{
	const uint16_t *half = x;
	float *to;

	if (b->type != CKR_BF16 || b->kind == kind)
		return x;
	to = malloc((size_t)n * sizeof *to + 1);
	for (int64_t i = 0; i < n; i++) {
		uint32_t bits = (uint32_t)half[i] << 16;

		memcpy(&to[i], &bits, sizeof bits);
	}
	return to;
}

void
blocked_conv(void *convs, int thread, uint32_t job, void *x_given,
             void *w_given, void *y_given, void *scratch)
{
	const struct ckr_blocked *b = &((const struct ckr_blocked *)convs)[job];
	int64_t in = (int64_t)b->in[0] * b->in[1];
	int64_t out = (int64_t)b->out[0] * b->out[1];
	int64_t weights = blocked_weights(b);
	float *x, *w, *y;

	(void)thread;
	memset(scratch, 0xa5, (size_t)b->scratch);
	x = as_floats(b, CKR_CONV_DX, x_given, b->images * b->cin * in);
	w = as_floats(b, CKR_CONV_DW, w_given, weights);
	y = as_floats(b, CKR_CONV_Y, y_given, b->images * b->cout * out);
	if (b->kind == CKR_CONV_Y)
		memset(y, 0, (size_t)(b->images * b->cout * out) * sizeof *y);
	else if (b->kind == CKR_CONV_DX)
		memset(x, 0, (size_t)(b->images * b->cin * in) * sizeof *x);
	else
		memset(w, 0, (size_t)weights * sizeof *w);
	for (int64_t n = 0; n < b->images; n++)
		for (int64_t o = 0; o < b->cout; o += b->block)
			for (int64_t i = 0; i < b->cin; i++)
				blocked_part(b, x, w, y, n, o, i);
	if (x != x_given)
		free(x);
	if (w != w_given)
		free(w);
	if (y != y_given)
		free(y);
}
