/* The matrix products of a training step alone, through the library that the
 * run time picks: the floor under the step's time.
 *
 *	gemm [LINE-FILE] < products
 *
 * Each input line is "COUNT TA TB M N K BATCH": COUNT products of M x K by
 * K x N; with BATCH > 1 that many at a time, one per thread.  Prints one JSON
 * object: seconds for all of them (median of five passes), FLOPs, library.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/blas/gemm.h"

enum { MAX_LINES = 64, PASSES = 5 };

struct product {
	int count, ta, tb, batch;
	int64_t m, n, k;
};

static float *
filled(size_t n)
{
	float *p = aligned_alloc(64, (n * sizeof *p + 63) / 64 * 64);

	if (!p) {
		fputs("gemm: out of memory\n", stderr);
		exit(1);
	}
	for (size_t i = 0; i < n; i++)
		p[i] = (float)(i % 251) * 0.01f - 1.25f;
	return p;
}

static void
run(const struct gemm *g, const struct product *p, const float *a,
    const float *b, float *c)
{
	int64_t lda = p->ta ? p->m : p->k, ldb = p->tb ? p->k : p->n;

	if (p->batch == 1) {
		g->fn(p->ta, p->tb, p->m, p->n, p->k, 1, a, lda, b, ldb, 0,
		      c, p->n);
		return;
	}
#pragma omp parallel for schedule(static)
	for (int i = 0; i < p->batch; i++)
		g->fn(p->ta, p->tb, p->m, p->n, p->k, 1,
		      a + i * p->m * p->k, lda, b + i * p->k * p->n, ldb, 0,
		      c + i * p->m * p->n, p->n);
}

static int
compare(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

int
main(void)
{
	struct product list[MAX_LINES];
	int n = 0;
	size_t na = 0, nb = 0, nc = 0;
	double seconds[PASSES], flops = 0;
	struct gemm g;
	struct err err = { 0 };

	while (n < MAX_LINES) {
		struct product *p = &list[n];
		long long m, nn, k;

		if (scanf("%d %d %d %lld %lld %lld %d", &p->count, &p->ta,
		          &p->tb, &m, &nn, &k, &p->batch) != 7)
			break;
		p->m = m;
		p->n = nn;
		p->k = k;
		if ((size_t)(m * k * p->batch) > na)
			na = (size_t)(m * k * p->batch);
		if ((size_t)(k * nn * p->batch) > nb)
			nb = (size_t)(k * nn * p->batch);
		if ((size_t)(m * nn * p->batch) > nc)
			nc = (size_t)(m * nn * p->batch);
		flops += 2.0 * p->count * p->batch * (double)m * (double)nn
		         * (double)k;
		n++;
	}
	if (gemm_choose(&g, NULL, UINT64_MAX, omp_get_max_threads(),
	                &err)) {
		fputs("gemm: no library\n", stderr);
		return 1;
	}
	float *a = filled(na), *b = filled(nb), *c = filled(nc);

	for (int pass = -1; pass < PASSES; pass++) {
		double start = omp_get_wtime();

		for (int i = 0; i < n; i++)
			for (int j = 0; j < list[i].count; j++)
				run(&g, &list[i], a, b, c);
		if (pass >= 0)
			seconds[pass] = omp_get_wtime() - start;
	}
	qsort(seconds, PASSES, sizeof *seconds, compare);
	printf("{\"what\": \"products alone\", \"seconds\": %.6f, "
	       "\"flops\": %.6g, \"gflops\": %.1f, \"threads\": %d, "
	       "\"library\": \"%s\"}\n", seconds[PASSES / 2], flops,
	       flops / seconds[PASSES / 2] * 1e-9, omp_get_max_threads(),
	       g.text);
	free(a);
	free(b);
	free(c);
	return 0;
}
