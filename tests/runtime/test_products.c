/* Matrix products: of each library, their bits, their threads and memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/ckr.h"
#include "runtime/blas/gemm.h"
#include "runtime/support/half.h"
#include "tests/sanitize/sanitized.h"

static bool coarse;                     /* eight bits are enough */

static void
fill(float *x, size_t n, unsigned *seed)
{
	for (size_t i = 0; i < n; i++) {
		*seed = *seed * 1103515245 + 12345;
		x[i] = (float)(*seed >> 8 & 0xffff) / 65536 - 0.5f;
		if (coarse)
			x[i] = (float)(*seed >> 8 & 0xff) / 256 - 0.5f;
	}
}

struct shape {
	int64_t m, n, k;
	int ta, tb;
	float alpha, beta;
	int gap;                        /* unused columns */
};

static void
check_product(ckr_sgemm_fn *gemm, const struct shape *s, unsigned *seed)
{
	int64_t lda = (s->ta ? s->m : s->k) + s->gap;
	int64_t ldb = (s->tb ? s->k : s->n) + s->gap, ldc = s->n + s->gap;
	size_t na = (size_t)(lda * (s->ta ? s->k : s->m));
	size_t nb = (size_t)(ldb * (s->tb ? s->n : s->k));
	size_t nc = (size_t)(ldc * s->m);
	float *a = malloc(4 * na), *b = malloc(4 * nb);
	float *c = malloc(4 * nc), *was = malloc(4 * nc);

	fill(a, na, seed);
	fill(b, nb, seed);
	fill(c, nc, seed);
	if (s->beta == 0)               /* then C must not be read */
		for (int64_t i = 0; i < s->m; i++)
			for (int64_t j = 0; j < s->n; j++)
				c[i * ldc + j] = NAN;
	memcpy(was, c, 4 * nc);
	gemm(s->ta, s->tb, s->m, s->n, s->k, s->alpha, a, lda, b, ldb, s->beta,
	     c, ldc);
	for (int64_t i = 0; i < s->m; i++)
		for (int64_t j = 0; j < ldc; j++) {
			double sum = 0, tol = 1e-5 * (1 + sqrt((double)s->k));

			if (j >= s->n) {        /* gaps are left alone */
				assert_true(c[i * ldc + j] == was[i * ldc + j]);
				continue;
			}
			for (int64_t p = 0; p < s->k; p++)
				sum += (double)a[s->ta ? p * lda + i
				                 : i * lda + p]
				       * b[s->tb ? j * ldb + p : p * ldb + j];
			sum *= s->alpha;
			if (s->beta != 0)
				sum += s->beta * was[i * ldc + j];
			assert_float_equal(c[i * ldc + j], sum, tol);
		}
	free(a);
	free(b);
	free(c);
	free(was);
}

static void
check_library(ckr_sgemm_fn *gemm)
{
	static const float betas[] = { 0, 1, -0.5f };
	unsigned seed = 7;

	for (int t = 0; t < 250; t++) {
		unsigned r = seed * 2654435761u >> 4;
		struct shape s = {
			.m = 1 + r % 61, .n = 1 + (r >> 3) % 83,
			.k = 1 + (r >> 6) % (t % 5 ? 70 : 700),
			.ta = t & 1, .tb = t >> 1 & 1,
			.alpha = t % 3 ? 1 : 0.25f, .beta = betas[t % 3],
			.gap = t % 4 ? 0 : 3,
		};

		if (t % 25 == 0)
			s.m *= 9, s.n *= 14;
		check_product(gemm, &s, &seed);
	}
	/* nothing to add up: C becomes beta C */
	check_product(gemm, &(struct shape){ 3, 5, 0, 0, 0, 1, 0.5f, 1 },
	              &seed);
	check_product(gemm, &(struct shape){ 3, 5, 0, 1, 1, 1, 0, 1 }, &seed);
}

static bgemm_fn *bf16_product;

static uint16_t *
as_bf16(const float *x, size_t n)
{
	uint16_t *h = malloc(2 * n);

	for (size_t i = 0; i < n; i++)
		h[i] = float_to_bf16(x[i]);
	return h;
}

/* Operands of these tests have values that bf16 holds. */
static void
by_bf16(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
        const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
        float *c, int64_t ldc)
{
	uint16_t *ah = as_bf16(a, (size_t)(lda * (ta ? k : m)));
	uint16_t *bh = as_bf16(b, (size_t)(ldb * (tb ? n : k)));

	bf16_product(ta, tb, m, n, k, alpha, ah, lda, bh, ldb, beta, c, ldc);
	free(ah);
	free(bh);
}

static void
test_bf16_products(void **state)
{
	struct gemm g;
	struct err e;

	(void)state;
	if (gemm_choose(&g, "onednn-bf16", 0, 2, &e) != CKR_OK) {
		print_message("%s\n", e.text);
		skip();
	}
	bf16_product = g.bf16;
	coarse = true;
	check_library(by_bf16);
	coarse = false;
}

static void
test_products(void **state)
{
	static const char *const names[] = { "own", "onednn", "openblas" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct gemm g;
		struct err e;

		if (gemm_choose(&g, names[i], 0, 2, &e) != CKR_OK) {
			print_message("%s\n", e.text);
			assert_int_not_equal(i, 0);
			continue;
		}
		print_message("products by %s\n", g.text);
		check_library(g.fn);
		check_library(g.tile);
	}
}

struct product {
	ckr_sgemm_fn *gemm;
	const struct shape *s;
	const float *a, *b;
	float *c;
	int left;                       /* threads for those who come next */
};

static void *
compute(void *arg)
{
	struct product *p = arg;
	const struct shape *s = p->s;

	p->gemm(s->ta, s->tb, s->m, s->n, s->k, 1, p->a, s->ta ? s->m : s->k,
	        p->b, s->tb ? s->k : s->n, 0, p->c, s->n);
	p->left = omp_get_max_threads();
	return NULL;
}

/* One product at so many threads, or by `one` inside a parallel region (0), or
 * on a thread that is not OpenMP's (-1). */
static void
product_at(const struct gemm *g, const struct shape *s, int threads,
           const float *a, const float *b, float *c)
{
	struct product p = { threads > 0 ? g->fn : g->one, s, a, b, c, 0 };
	pthread_t id;

	omp_set_num_threads(threads > 0 ? threads : 2);
	if (threads > 0) {
		compute(&p);
		assert_int_equal(p.left, threads);
	} else if (threads < 0) {
		assert_int_equal(pthread_create(&id, NULL, compute, &p), 0);
		pthread_join(id, NULL);
		/* a product by all threads may follow on this one */
		compute(&p);
		assert_int_equal(p.left, 2);
	} else {
#pragma omp parallel num_threads(2)
#pragma omp single
		compute(&p);
	}
}

static void
same_bits(const struct gemm *g)
{
	enum { SIDE = 1100, LONG = 4096 };
	/* few rows or columns and long sums are what libraries divide */
	static const struct shape shape[] = {
		{ .m = 301, .n = 515, .k = 600 },
		{ .m = 16, .n = 1000, .k = 2048, .tb = 1 },
		{ .m = 512, .n = 128, .k = 2048, .tb = 1 },
		{ .m = 128, .n = 1000, .k = 1000, .tb = 1 },
		{ .m = 1, .n = 48, .k = 512 }, { .m = 32, .n = 1, .k = 4096 },
		{ .m = 32, .n = 1, .k = 1000, .ta = 1 },
		{ .m = 64, .n = 64, .k = 4096, .ta = 1 },
		{ .m = 1024, .n = 96, .k = 300, .ta = 1 },
		{ .m = 1000, .n = 128, .k = 2048, .ta = 1, .tb = 1 },
	};
	static const int threads[] = { 2, 3, 8, 0, -1 };
	float *a = malloc(sizeof(float) * SIDE * LONG);
	float *b = malloc(sizeof(float) * SIDE * LONG);
	float *one = malloc(sizeof(float) * SIDE * SIDE);
	float *more = malloc(sizeof(float) * SIDE * SIDE);
	int was = omp_get_max_threads();
	unsigned seed = 3;

	fill(a, (size_t)SIDE * LONG, &seed);
	fill(b, (size_t)SIDE * LONG, &seed);
	for (size_t i = 0; i < sizeof(shape) / sizeof(*shape); i++) {
		const struct shape *s = &shape[i];
		size_t n = sizeof(float) * (size_t)(s->m * s->n);

		product_at(g, s, 1, a, b, one);
		for (size_t t = 0; t < 5; t++) {
			product_at(g, s, threads[t], a, b, more);
			assert_memory_equal(one, more, n);
		}
	}
	omp_set_num_threads(was);
	free(a);
	free(b);
	free(one);
	free(more);
}

/* The same bits at any number of threads, inside a parallel region and on a
 * thread of somebody else's. */
static void
test_product_bits(void **state)
{
	static const char *const names[] = { "own", "onednn", "openblas" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct gemm g;
		struct err e;

		if (gemm_choose(&g, names[i], 0, 8, &e) != CKR_OK) {
			print_message("%s\n", e.text);
			continue;
		}
		same_bits(&g);
	}
}

/* The caller's own products keep their threads. */
static void
test_threads_of_openblas(void **state)
{
	struct ckr_options opt = { .weights = "", .blas = "openblas" };
	void *dl = dlopen(MODELS "/libfake_openblas.so", RTLD_NOW);
	int (*threads)(void);
	int *in_product;
	void *input;
	ckr_ctx *c;

	(void)state;
	assert_non_null(dl);
	*(void **)&threads = dlsym(dl, "openblas_get_num_threads");
	*(void **)&in_product = dlsym(dl, "fake_threads_in_product");
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", &opt), CKR_OK);
	assert_int_equal(threads(), 7);
	assert_int_equal(ckr_input(c, "x", &input), CKR_OK);
	assert_int_equal(ckr_input(c, "target", &input), CKR_OK);
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	assert_int_equal(*in_product, 1);
	assert_int_equal(threads(), 7);
	*in_product = 0;
	assert_int_equal(ckr_eval(c, NULL), CKR_OK);
	assert_int_equal(*in_product, 1);
	assert_int_equal(threads(), 7);
	ckr_close(c);
}

/* A processor is not blamed for what a build lacks. */
static void
test_build_without_bf16(void **state)
{
	struct gemm g;
	struct err e;

	(void)state;
	assert_non_null(dlopen(MODELS "/libfake_onednn.so", RTLD_NOW));
	assert_int_equal(gemm_choose(&g, "onednn-bf16", 0, 2, &e),
	                 CKR_EUNSUPPORTED);
	assert_string_equal(e.text, "this build of onednn 3.1.4 has no bf16 "
	                    "matrix products; try: --blas onednn");
	assert_int_equal(gemm_choose(&g, "onednn", 0, 2, &e), CKR_OK);
	assert_null(g.bf16);
}

/* Limit the process to the memory that it has. */
static void
set_memory_limit(bool on)
{
	struct rlimit r = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned long pages = 0;
	FILE *f = on ? fopen("/proc/self/statm", "r") : NULL;

	if (f) {
		assert_int_equal(fscanf(f, "%lu", &pages), 1);
		fclose(f);
		r.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE);
	}
	assert_int_equal(setrlimit(RLIMIT_AS, &r), 0);
}

/* Before any other product: without a packing buffer, and with no memory for
 * one, the bits are the same; opening a model fails then. */
static void
test_products_without_memory(void **state)
{
	enum { M = 77, N = 131, K = 700 };
	static float a[M * K], b[K * N], with[M * N], without[M * N];
	struct ckr_options opt = { .weights = "", .blas = "own" };
	int threads = omp_get_max_threads();
	unsigned seed = 5;
	ckr_ctx *c;

	(void)state;
	if (SANITIZED) {
		print_message("a sanitizer's addresses cannot be limited\n");
		skip();
	}
	fill(a, M * K, &seed);
	fill(b, K * N, &seed);
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", &opt), CKR_OK);
	ckr_close(c);
	omp_set_num_threads(1);
	set_memory_limit(true);
	gemm_own(0, 0, M, N, K, 1, a, K, b, N, 0, without, N);
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", &opt), CKR_ENOMEM);
	assert_non_null(strstr(ckr_error(c), "packing buffers of matrix products"));
	ckr_close(c);
	set_memory_limit(false);
	assert_int_equal(gemm_own_add_buffers(1), 1);
	gemm_own(0, 0, M, N, K, 1, a, K, b, N, 0, with, N);
	gemm_own_remove_buffers(1);
	omp_set_num_threads(threads);
	assert_memory_equal(with, without, sizeof(with));
}

/* With an argument: what must not see the real libraries. */
int
main(int argc, char **argv)
{
	const struct CMUnitTest alone[] = {
		cmocka_unit_test(test_threads_of_openblas),
		cmocka_unit_test(test_build_without_bf16),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products_without_memory),
		cmocka_unit_test(test_bf16_products),
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_product_bits),
	};

	(void)argv;
	return argc > 1 ? cmocka_run_group_tests(alone, NULL, NULL)
	       : cmocka_run_group_tests(tests, NULL, NULL);
}
