/* Matrix products on a GPU, by cuBLASLt.
 *
 * The library's matrices lie by columns: row-major Y = A B is Y^T = B^T A^T
 * there, so the factors change places, and a bias of Y's columns is one of the
 * rows of Y^T, as the library's epilogue wants it.  Sums are float32, parts of
 * sums too, so that they may be cut along k.
 *
 * A product's algorithm is the library's first answer for its key, which is
 * the same in every run: what a node computes depends on its shapes and on the
 * alignment of its operands alone.  Answers are kept.
 */
#include "runtime/device/products.h"
#include "runtime/support/gpu_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16, BUCKETS = 256 };

/* Keys are compared byte by byte. */
_Static_assert(sizeof(struct ckr_gemm) == 2 * sizeof(int32_t)
               + 12 * sizeof(int64_t) + 8 + sizeof(float) + sizeof(uint32_t),
               "struct ckr_gemm has padding");

struct key {
	struct ckr_gemm g;
	unsigned char align[6];         /* of a, b, c, y, vector, x, in bytes */
	uint64_t work;
};

/* What epilogues read and write. */
struct epilogue_operands {
	const void *vector;             /* bias or sums; NULL: none */
	const void *x;                  /* NULL: none */
};

struct cublas_product {
	struct cublas_product *next;
	struct key key;
	lt_operation operation;
	lt_layout a, b, c, y;           /* as the library sees them */
	bool refused;                   /* there is no algorithm with its
	                                 * epilogue */
	struct lt_algorithm algorithm;
	uint64_t work;
};

struct products {
	struct lt lt;
	void *dl;
	struct device *device;
	cu_stream stream;
	lt_handle handle;
	struct cublas_product *bucket[BUCKETS];
	bool refused[CKR_EPILOGUES];
};

/* ---- the library ---- */

static void
report_failure(struct products *p, ckr_status s, const char *what,
               lt_status status)
{
	if (!p->device->first.text[0])
		err_set(&p->device->first, s, "matrix products on the GPU: %s: "
		        "cuBLASLt status %d", what, status);
}

static bool
load_cublaslt(struct products *p)
{
	static const char *const names[] = { "libcublasLt.so.13",
		"libcublasLt.so.12", "libcublasLt.so", NULL };

	p->dl = gpu_library_open(names);
	if (!p->dl) {
		err_set(&p->device->first, CKR_EUNSUPPORTED, "cuBLAS cannot be "
		        "loaded: %s; install cuBLAS (or set LD_LIBRARY_PATH to "
		        "its directory)", dlerror());
		return false;
	}
#define X(member, symbol, args) \
	*(void **)&p->lt.member = dlsym(p->dl, #symbol); \
	if (!p->lt.member) { \
		err_set(&p->device->first, CKR_EUNSUPPORTED, \
		        "libcublasLt has no " #symbol); \
		return false; \
	}
	LT_CALLS(X)
#undef X
	return true;
}

struct products *
products_open(struct device *d, cu_stream stream)
{
	struct products *p = calloc(1, sizeof(*p));
	lt_status s;

	if (!p) {
		err_no_memory(&d->first);
		return NULL;
	}
	p->device = d;
	p->stream = stream;
	if (!load_cublaslt(p)) {
		products_close(p);
		return NULL;
	}
	s = p->lt.create(&p->handle);
	if (s) {
		report_failure(p, CKR_EUNSUPPORTED, "cublasLtCreate", s);
		products_close(p);
		return NULL;
	}
	return p;
}

static void
product_free(struct products *p, struct cublas_product *q)
{
	if (q->operation)
		p->lt.operation_free(q->operation);
	if (q->a)
		p->lt.layout_free(q->a);
	if (q->b)
		p->lt.layout_free(q->b);
	if (q->c)
		p->lt.layout_free(q->c);
	if (q->y)
		p->lt.layout_free(q->y);
	free(q);
}

void
products_close(struct products *p)
{
	if (!p)
		return;
	for (int i = 0; i < BUCKETS; i++)
		while (p->bucket[i]) {
			struct cublas_product *q = p->bucket[i];

			p->bucket[i] = q->next;
			product_free(p, q);
		}
	if (p->handle)
		p->lt.destroy(p->handle);
	if (p->dl)
		dlclose(p->dl);
	free(p);
}

/* ---- one product ---- */

static int
cublas_type(uint8_t dtype)
{
	return dtype == CKR_BF16 ? LT_BF16 : dtype == CKR_F16 ? LT_F16
	       : LT_F32;
}

/* Row-major [rows, cols] of the batch. */
static lt_status
create_layout(struct products *p, lt_layout *to, uint8_t dtype, int64_t rows,
              int64_t cols, int64_t ld, int64_t batch, int64_t stride)
{
	int32_t n = (int32_t)batch;
	lt_status s = p->lt.layout_new(to, cublas_type(dtype), (uint64_t)cols,
	                               (uint64_t)rows, ld);

	if (!s && batch > 1)
		s = p->lt.layout_set(*to, LT_LAYOUT_BATCH, &n, sizeof(n));
	if (!s && batch > 1)
		s = p->lt.layout_set(*to, LT_LAYOUT_STRIDE, &stride,
		                     sizeof(stride));
	return s;
}

static lt_status
create_layouts(struct products *p, struct cublas_product *q,
               const struct ckr_gemm *g)
{
	lt_status s = create_layout(p, &q->a, g->a, g->ta ? g->k : g->m,
	                            g->ta ? g->m : g->k, g->lda, g->batch,
	                            g->sa);

	if (!s)
		s = create_layout(p, &q->b, g->b, g->tb ? g->n : g->k,
		                  g->tb ? g->k : g->n, g->ldb, g->batch, g->sb);
	if (!s)
		s = create_layout(p, &q->c, g->c ? g->c : g->y, g->m, g->n,
		                  g->c ? g->ldc : g->ldy, g->batch,
		                  g->c ? g->sc : g->sy);
	if (!s)
		s = create_layout(p, &q->y, g->y, g->m, g->n, g->ldy, g->batch,
		                  g->sy);
	return s;
}

static int32_t
epilogue_of(const struct ckr_gemm *g, const struct epilogue_operands *ends)
{
	switch (g->epilogue) {
	case CKR_EPILOGUE_SUMS_A:            /* the library's second factor */
		return LT_EPILOGUE_BGRADB;
	case CKR_EPILOGUE_SUMS_B:
		return LT_EPILOGUE_BGRADA;
	case CKR_EPILOGUE_GELU_GRAD:
		return LT_EPILOGUE_DGELU;
	case CKR_EPILOGUE_GELU_GRAD_SUMS:
		return LT_EPILOGUE_DGELU_BGRAD;
	default:
		return ends->vector ? LT_EPILOGUE_BIAS : LT_EPILOGUE_NONE;
	}
}

static lt_status
set_epilogue_pointers(struct products *p, struct cublas_product *q,
                      const struct epilogue_operands *ends)
{
	lt_status s = 0;

	if (ends->vector)
		s = p->lt.operation_set(q->operation, LT_OP_BIAS,
		                        &ends->vector, sizeof(ends->vector));
	if (!s && ends->x)
		s = p->lt.operation_set(q->operation, LT_OP_AUX, &ends->x,
		                        sizeof(ends->x));
	return s;
}

static lt_status
describe_operation(struct products *p, struct cublas_product *q,
                   const struct ckr_gemm *g,
                   const struct epilogue_operands *ends)
{
	int32_t first = g->tb != 0, second = g->ta != 0;
	int32_t epilogue = epilogue_of(g, ends);
	int32_t type = cublas_type(g->epilogue ? g->y : g->bias);
	lt_status s = p->lt.operation_new(&q->operation, LT_COMPUTE_F32,
	                                  LT_F32);

	if (!s)
		s = p->lt.operation_set(q->operation, LT_OP_TRANSA, &first,
		                        sizeof(first));
	if (!s)
		s = p->lt.operation_set(q->operation, LT_OP_TRANSB, &second,
		                        sizeof(second));
	if (!s)
		s = p->lt.operation_set(q->operation, LT_OP_EPILOGUE,
		                        &epilogue, sizeof(epilogue));
	if (!s && ends->vector)
		s = p->lt.operation_set(q->operation, LT_OP_BIAS_TYPE, &type,
		                        sizeof(type));
	if (!s && ends->x)
		s = p->lt.operation_set(q->operation, LT_OP_AUX_LD, &g->ldy,
		                        sizeof(g->ldy));
	return s ? s : set_epilogue_pointers(p, q, ends);
}

/* The first answer. */
static lt_status
choose_algorithm(struct products *p, struct cublas_product *q)
{
	uint32_t reductions = LT_REDUCE_IN_F32;
	uint64_t work = q->key.work;
	struct lt_choice c;
	lt_preference want = NULL;
	int found = 0;
	lt_status s = p->lt.preference_new(&want);

	if (!s)
		s = p->lt.preference_set(want, LT_PREFER_WORKSPACE, &work,
		                         sizeof(work));
	if (!s)
		s = p->lt.preference_set(want, LT_PREFER_REDUCTIONS,
		                         &reductions, sizeof(reductions));
	for (int i = 0; i < 4 && !s; i++) {
		/* the library's a is b */
		static const int order[] = { 1, 0, 2, 3 };
		uint32_t align = q->key.align[order[i]];

		s = p->lt.preference_set(want, LT_PREFER_ALIGN_A + i, &align,
		                         sizeof(align));
	}
	if (!s)
		s = p->lt.choose(p->handle, q->operation, q->b, q->a, q->c,
		                 q->y, want, 1, &c, &found);
	if (want)
		p->lt.preference_free(want);
	if (!s && (found < 1 || c.state))
		s = found < 1 ? -1 : c.state;
	if (!s) {
		q->algorithm = c.algorithm;
		q->work = c.workspace;
	}
	return s;
}

/* Note in what is said of libraries that it computes no such epilogue. */
static void
note_refusal(struct products *p, uint8_t epilogue)
{
	static const char *const name[] = {
		[CKR_EPILOGUE_SUMS_A] = "bgradb",
		[CKR_EPILOGUE_SUMS_B] = "bgrada",
		[CKR_EPILOGUE_GELU_GRAD] = "dgelu",
		[CKR_EPILOGUE_GELU_GRAD_SUMS] = "dgelu-bgrad",
	};
	char *text = p->device->libraries;
	size_t n = strlen(text);

	if (!p->refused[epilogue])
		snprintf(text + n, sizeof(p->device->libraries) - n,
		         ", without epilogue %s", name[epilogue]);
	p->refused[epilogue] = true;
}

static struct cublas_product *
prepare_product(struct products *p, const struct key *key,
                const struct epilogue_operands *ends)
{
	struct cublas_product *q = calloc(1, sizeof(*q));
	lt_status s;

	if (!q)
		return NULL;
	q->key = *key;
	s = create_layouts(p, q, &key->g);
	if (!s)
		s = describe_operation(p, q, &key->g, ends);
	if (!s)
		s = choose_algorithm(p, q);
	q->refused = s && key->g.epilogue;
	if (q->refused)
		note_refusal(p, key->g.epilogue);
	if (!s || q->refused)
		return q;
	report_failure(p, CKR_EUNSUPPORTED, "no algorithm", s);
	product_free(p, q);
	return NULL;
}

/* ---- calls ---- */

static unsigned char
alignment_of(const void *x)
{
	unsigned n = ALIGN;

	while (n > 1 && (uintptr_t)x % n)
		n /= 2;
	return (unsigned char)n;
}

static struct cublas_product *
find_product(struct products *p, const struct key *key,
             const struct epilogue_operands *ends)
{
	const unsigned char *at = (const unsigned char *)key;
	struct cublas_product *q;
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < sizeof(*key); i++)
		h = (h ^ at[i]) * 16777619u;
	for (q = p->bucket[h % BUCKETS]; q; q = q->next)
		if (!memcmp(&q->key, key, sizeof(*key)))
			return q;
	q = prepare_product(p, key, ends);
	if (q) {
		q->next = p->bucket[h % BUCKETS];
		p->bucket[h % BUCKETS] = q;
	}
	return q;
}

/* Whether it was computed, or may not be after an error. */
static bool
run_product(struct products *p, const struct ckr_gemm *g, const void *a,
            const void *b, const struct epilogue_operands *ends, const void *c,
            void *y, void *work, uint64_t bytes)
{
	float alpha = g->alpha, beta = g->c ? 1.0f : 0.0f;
	struct key key;
	struct cublas_product *q;
	lt_status s;

	if (p->device->first.text[0])
		return true;
	memset(&key, 0, sizeof(key));
	key.g = *g;
	key.align[0] = alignment_of(a);
	key.align[1] = alignment_of(b);
	key.align[2] = alignment_of(g->c ? c : y);
	key.align[3] = alignment_of(y);
	key.align[4] = alignment_of(ends->vector);
	key.align[5] = alignment_of(ends->x);
	key.work = bytes;
	q = find_product(p, &key, ends);
	if (!q || q->refused)
		return !q;
	s = set_epilogue_pointers(p, q, ends);
	if (!s)
		s = p->lt.matmul(p->handle, q->operation, &alpha, b, q->b, a,
		                 q->a, &beta, g->c ? c : y, q->c, y, q->y,
		                 &q->algorithm, q->work ? work : NULL, q->work,
		                 p->stream);
	if (s)
		report_failure(p, CKR_EUNSUPPORTED, "cublasLtMatmul", s);
	return true;
}

void
products_run(struct ckr_env *env, const struct ckr_gemm *g, const void *a,
             const void *b, const void *bias, const void *c, void *y,
             void *work, uint64_t bytes)
{
	const struct epilogue_operands ends = { bias, NULL };

	run_product(env->gemms, g, a, b, &ends, c, y, work, bytes);
}

int
products_run_epilogue(struct ckr_env *env, const struct ckr_gemm *g,
                      const void *a, const void *b, const void *x,
                      const void *c, void *y, void *sums, void *work,
                      uint64_t bytes)
{
	const struct epilogue_operands ends = { sums, x };

	return run_product(env->gemms, g, a, b, &ends, c, y, work, bytes);
}
