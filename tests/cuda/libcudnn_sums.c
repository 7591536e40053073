/* Convolutions of the emulated cuDNN: tensors side by side, summed in double,
 * rounded once. */
#include "runtime/support/half.h"
#include "tests/cuda/libcudnn.h"

static double
load(int type, const void *x, int64_t i)
{
	return type == DNN_F32 ? ((const float *)x)[i]
	     : type == DNN_F16 ? half_to_float(((const uint16_t *)x)[i])
	     : bf16_to_float(((const uint16_t *)x)[i]);
}

static void
store(int type, void *y, int64_t i, float x)
{
	if (type == DNN_F32)
		((float *)y)[i] = x;
	else
		((uint16_t *)y)[i] = type == DNN_F16 ? float_to_half(x)
		                                     : float_to_bf16(x);
}

static double *
widened(const struct tensor *t, const void *x, bool sums, bool narrow)
{
	int64_t n = t->stride[0] * t->dim[0];
	double *to = calloc((size_t)n, sizeof(*to));

	for (int64_t i = 0; i < n && !sums; i++)
		to[i] = narrow ? bf16_to_float(float_to_bf16(
			(float)load(t->type, x, i))) : load(t->type, x, i);
	return to;
}

/* The element of x that tap k of window o takes; -1: it is in the padding. */
static int64_t
element(const struct job *j, int64_t o, int64_t k)
{
	int64_t n = j->c.dims, at = 0;

	for (int64_t i = 0; i < n; i++) {
		int64_t a = o / j->y.stride[i + 2] % j->y.dim[i + 2];
		int64_t b = k / j->w.stride[i + 2] % j->w.dim[i + 2];
		int64_t x = a * j->c.stride[i] + b * j->c.dilation[i]
			- j->c.begin[i];

		if (x < 0 || x >= j->x.dim[i + 2])
			return -1;
		at += x * j->x.stride[i + 2];
	}
	return at;
}

/* element() of all windows and taps. */
static int64_t *
elements(const struct job *j)
{
	int64_t taps = j->w.stride[1], windows = j->y.stride[1];
	int64_t *at = calloc((size_t)(taps * windows), sizeof *at);

	for (int64_t o = 0; o < windows; o++)
		for (int64_t k = 0; k < taps; k++)
			at[o * taps + k] = element(j, o, k);
	return at;
}

/* One pass over all triples of elements serves all three kinds. */
static void
add_products(const struct job *j, double *x, double *w, double *y)
{
	int64_t cin = j->w.dim[1], cout = j->w.dim[0] / (j->x.dim[1] / cin);
	int64_t taps = j->w.stride[1], *at = elements(j);

	for (int64_t p = 0; p < j->y.dim[0] * j->y.dim[1]; p++) {
		int64_t co = p % j->y.dim[1];
		double *image = x + p / j->y.dim[1] * j->x.stride[0]
			+ co / cout * cin * j->x.stride[1];

		for (int64_t o = 0; o < j->y.stride[1]; o++)
			for (int64_t r = 0; r < j->w.stride[0]; r++) {
				int64_t to = at[o * taps + r % taps];
				double *a = image + r / taps * j->x.stride[1]
					+ to;
				double *b = w + co * j->w.stride[0] + r;
				double *c = y + p * j->y.stride[1] + o;

				if (to < 0)
					continue;
				if (j->kind == DNN_FORWARD)
					*c += *a * *b;
				else if (j->kind == DNN_BACK_DATA)
					*a += *c * *b;
				else
					*b += *a * *c;
			}
	}
	free(at);
}

void
fake_convolve(void *of)
{
	static int runs;
	const struct call *call = of;
	const struct job *j = &call->job;
	const struct tensor *t = j->kind == DNN_FORWARD ? &j->y
		: j->kind == DNN_BACK_DATA ? &j->x : &j->w;
	bool narrow = call->engine == NARROWS;
	double *x = widened(&j->x, call->x, t == &j->x, narrow);
	double *w = widened(&j->w, call->w, t == &j->w, narrow);
	double *y = widened(&j->y, call->y, t == &j->y, narrow);
	double *sum = t == &j->y ? y : t == &j->x ? x : w;
	void *to = t == &j->y ? call->y : t == &j->x ? call->x : call->w;

	if (call->bytes)
		memset(call->work, 0xa5, (size_t)call->bytes);
	add_products(j, x, w, y);
	for (int64_t i = 0; i < t->stride[0] * t->dim[0]; i++)
		store(t->type, to, i, (float)(call->engine == NO_ORDER
			? sum[i] * (1 + 1e-5 * (++runs % 7)) : sum[i]));
	free(x);
	free(w);
	free(y);
}
