/* cuBLASLt's products on the host, as far as libckr asks: matrices by columns,
 * of float32, float16 and bfloat16, summed in float32 or better, rounded once.
 * Built as libcublasLt.so.13.  The workspace is filled with rubbish.
 *
 * CKR_FAKE_ALIGNED=1: there is no algorithm for 16-bit operands whose columns
 * do not all begin at a multiple of 16 bytes, as tensor cores load them fastest.
 * CKR_FAKE_GPU_COUNT=FILE: FILE.products has in the end how often an algorithm
 * was asked for, and how many descriptors, layouts and preferences are left,
 * which is complained of.
 */
#include "runtime/support/half.h"
#include "tests/cuda/stream.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct layout {
	int type;
	uint64_t rows, cols;
	int64_t ld, stride;
	int32_t batch;
};

struct operation {
	int32_t ta, tb, epilogue, bias_type;
	void *bias;                     /* or where its gradient goes */
	const void *aux;
	int64_t aux_ld;
};

enum { BIAS = 4, DGELU = 192, DGELU_BGRAD = 208, BGRADA = 256, BGRADB = 512 };

struct preference {
	uint64_t work;
	uint32_t align[4];              /* least bytes of a, b, c, d */
};

struct choice {
	uint64_t algorithm[8];
	size_t work;
	int state;
	float waves;
	int reserved[4];
};

static unsigned long heuristics;
static long descriptors;                /* those that are there */

__attribute__((destructor)) static void
write_count(void)
{
	const char *path = getenv("CKR_FAKE_GPU_COUNT");
	char name[4096];
	FILE *f;

	if (descriptors)
		fprintf(stderr, "emulated GPU: %ld descriptors of products "
		        "were not destroyed\n", descriptors);
	if (!path)
		return;
	snprintf(name, sizeof name, "%s.products", path);
	f = fopen(name, "w");
	if (!f)
		return;
	fprintf(f, "{\"heuristics\": %lu, \"descriptors\": %ld}\n", heuristics,
	        descriptors);
	fclose(f);
}

static void *
new_descriptor(size_t size)
{
	descriptors++;
	return calloc(1, size);
}

static int
free_descriptor(void *d)
{
	descriptors--;
	free(d);
	return 0;
}

EXPORT int
cublasLtCreate(void **h)
{
	*h = malloc(1);
	return 0;
}

EXPORT int
cublasLtDestroy(void *h)
{
	free(h);
	return 0;
}

EXPORT int
cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t cols,
                           int64_t ld)
{
	struct layout *l;

	if (ld < (int64_t)rows)
		return 7;
	l = new_descriptor(sizeof *l);
	*l = (struct layout){ type, rows, cols, ld, 0, 1 };
	*out = l;
	return 0;
}

EXPORT int
cublasLtMatrixLayoutDestroy(void *l)
{
	return free_descriptor(l);
}

EXPORT int
cublasLtMatrixLayoutSetAttribute(void *l, int what, const void *x, size_t n)
{
	struct layout *to = l;

	if (what == 5 && n == 4)
		memcpy(&to->batch, x, n);
	else if (what == 6 && n == 8)
		memcpy(&to->stride, x, n);
	else
		return 7;
	return 0;
}

EXPORT int
cublasLtMatmulDescCreate(void **out, int compute, int scale)
{
	struct operation *o;

	if ((compute != 68 && compute != 77) || scale != 0)
		return 15;
	o = new_descriptor(sizeof *o);
	o->epilogue = 1;
	*out = o;
	return 0;
}

EXPORT int
cublasLtMatmulDescDestroy(void *o)
{
	return free_descriptor(o);
}

EXPORT int
cublasLtMatmulDescSetAttribute(void *o, int what, const void *x, size_t n)
{
	struct operation *to = o;
	void *at = what == 3 ? &to->ta : what == 4 ? &to->tb
	         : what == 7 ? &to->epilogue : what == 26 ? &to->bias_type
	         : what == 8 ? (void *)&to->bias
	         : what == 11 ? (void *)&to->aux
	         : what == 12 ? (void *)&to->aux_ld : NULL;

	if (!at || n != (what == 8 || what == 11 || what == 12 ? 8 : 4))
		return 7;
	memcpy(at, x, n);
	return 0;
}

EXPORT int
cublasLtMatmulPreferenceCreate(void **out)
{
	*out = new_descriptor(sizeof(struct preference));
	return 0;
}

EXPORT int
cublasLtMatmulPreferenceDestroy(void *p)
{
	return free_descriptor(p);
}

EXPORT int
cublasLtMatmulPreferenceSetAttribute(void *p, int what, const void *x,
                                     size_t n)
{
	struct preference *to = p;

	if (what == 1 && n == 8)
		memcpy(&to->work, x, n);
	if (what >= 5 && what <= 8 && n == 4)
		memcpy(&to->align[what - 5], x, n);
	return 0;
}

static int
is_aligned(const struct layout *l, uint32_t align)
{
	int64_t step = (l->cols > 1 ? l->ld : 0) | (l->batch > 1 ? l->stride
	                                             : 0);

	return l->type == 0 || (align >= 16 && step % 8 == 0);
}

EXPORT int
cublasLtMatmulAlgoGetHeuristic(void *h, void *o, void *a, void *b, void *c,
                               void *d, void *p, int most, void *out,
                               int *found)
{
	struct choice *to = out;
	const struct operation *of = o;
	const struct layout *y = d;
	const struct preference *prefer = p;

	(void)h, (void)most;
	*found = 0;
	heuristics++;
	if (getenv("CKR_FAKE_ALIGNED")
	    && !(is_aligned(a, prefer->align[0])
	         && is_aligned(b, prefer->align[1])
	         && is_aligned(c, prefer->align[2])
	         && is_aligned(y, prefer->align[3])))
		return 15;
	if (of->epilogue > BIAS
	    && (getenv("CKR_FAKE_NO_EPILOGUE") || y->batch != 1
	        || (of->bias && of->bias_type != y->type)
	        || (of->epilogue & DGELU
	            && (!of->aux || of->aux_ld % 8
	                || of->aux_ld < (int64_t)y->rows))))
		return 15;
	memset(to, 0, sizeof *to);
	to->work = prefer->work;
	*found = 1;
	return 0;
}

static float
load(int type, const void *x, int64_t i)
{
	return type == 0 ? ((const float *)x)[i]
	     : type == 2 ? half_to_float(((const uint16_t *)x)[i])
	     : bf16_to_float(((const uint16_t *)x)[i]);
}

static void
store(int type, void *y, int64_t i, float x)
{
	if (type == 0)
		((float *)y)[i] = x;
	else
		((uint16_t *)y)[i] = type == 2 ? float_to_half(x)
		                               : float_to_bf16(x);
}

/* op(x) as rows of `k` elements side by side, a row per element of the other
 * dim. */
static float *
rows_of(const void *x, const struct layout *l, int64_t q, int by_columns,
        int64_t n, int64_t k)
{
	float *to = malloc((size_t)(n * k) * sizeof *to + 1);
	int64_t at = q * l->stride;

	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < k; j++)
			to[i * k + j] = load(l->type, x, at + (by_columns
			                     ? i * l->ld + j : j * l->ld + i));
	return to;
}

/* Of GELU's tanh form. */
static double
gelu_slope(double x)
{
	const double c = 0.79788456080286535588, a = 0.044715;
	double t = tanh(c * (x + a * x * x * x));

	return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * a * x * x);
}

/* Sums of `rows` rows of `k`. */
static void
put_sums(const struct operation *o, const float *x, int64_t rows, int64_t k)
{
	for (int64_t i = 0; i < rows; i++) {
		float s = 0;

		for (int64_t t = 0; t < k; t++)
			s += x[i * k + t];
		store(o->bias_type, o->bias, i, s);
	}
}

struct call {
	struct operation op;
	struct layout la, lb, lc, ld;
	float alpha, beta;
	const void *a, *b, *c;
	void *d, *work;
	size_t bytes;
};

static void
matmul(void *of)
{
	const struct call *call = of;
	const struct operation *o = &call->op;
	const struct layout *al = &call->la, *bl = &call->lb, *cl = &call->lc;
	const struct layout *dl = &call->ld;
	const void *a = call->a, *b = call->b, *c = call->c;
	void *d = call->d;
	int64_t m = (int64_t)dl->rows, n = (int64_t)dl->cols;
	int64_t k = (int64_t)(o->ta ? al->rows : al->cols);
	float scale = call->alpha, keep = call->beta;

	float *sums = calloc((size_t)m, sizeof *sums);

	if (call->bytes)
		memset(call->work, 0xa5, call->bytes);
	for (int64_t q = 0; q < dl->batch; q++) {
		float *x = rows_of(a, al, q, o->ta, m, k);
		float *y = rows_of(b, bl, q, !o->tb, n, k);

		for (int64_t j = 0; j < n; j++)
			for (int64_t i = 0; i < m; i++) {
				float s = 0;
				int64_t at = q * cl->stride + j * cl->ld + i;

				for (int64_t t = 0; t < k; t++)
					s += x[i * k + t] * y[j * k + t];
				s *= scale;
				if (keep != 0)
					s += keep * load(cl->type, c, at);
				if (o->epilogue == BIAS)
					s += load(o->bias_type, o->bias, i);
				if (o->epilogue & DGELU)
					s *= (float)gelu_slope(load(dl->type,
						o->aux, j * o->aux_ld + i));
				sums[i] += s;
				store(dl->type, d, q * dl->stride
				      + j * dl->ld + i, s);
			}
		if (o->epilogue == BGRADA)
			put_sums(o, x, m, k);
		if (o->epilogue == BGRADB)
			put_sums(o, y, n, k);
		free(x);
		free(y);
	}
	if (o->epilogue == DGELU_BGRAD)
		put_sums(o, sums, m, 1);
	free(sums);
}

EXPORT int
cublasLtMatmul(void *h, void *op, const void *alpha, const void *a, void *la,
               const void *b, void *lb, const void *beta, const void *c,
               void *lc, void *d, void *ld, const void *algorithm, void *work,
               size_t bytes, struct fake_stream *stream)
{
	struct call call = { *(struct operation *)op, *(struct layout *)la,
		*(struct layout *)lb, *(struct layout *)lc,
		*(struct layout *)ld, *(const float *)alpha,
		*(const float *)beta, a, b, c, d, work, bytes }, *kept;
	const struct operation *o = &call.op;

	(void)h, (void)algorithm;
	if (call.la.type != call.lb.type
	    || (o->ta ? call.la.cols : call.la.rows) != call.ld.rows
	    || (o->tb ? call.lb.rows : call.lb.cols) != call.ld.cols
	    || (o->tb ? call.lb.cols : call.lb.rows)
	    != (o->ta ? call.la.rows : call.la.cols) || (bytes && !work))
		return 7;
	if (!stream->end) {
		stream->enter();
		matmul(&call);
		stream->leave();
		return 0;
	}
	kept = malloc(sizeof *kept);
	*kept = call;
	stream->keep(stream, matmul, free, kept);
	return 0;
}
