/* What libckr asks of OpenBLAS, by the simplest means: it says that its threads
 * are its own, and remembers how many it may use. */
#include <stddef.h>

static int threads = 7;
int fake_threads_in_product;

int
openblas_get_num_threads(void)
{
	return threads;
}

void
openblas_set_num_threads(int n)
{
	threads = n;
}

int
openblas_get_parallel(void)
{
	return 1;
}

void
cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha,
            const float *a, int lda, const float *b, int ldb, float beta,
            float *c, int ldc)
{
	int trans = 112;

	(void)order;
	fake_threads_in_product = threads;
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			float s = 0;

			for (int p = 0; p < k; p++)
				s += a[ta == trans ? p * lda + i : i * lda + p]
				     * b[tb == trans ? j * ldb + p
				         : p * ldb + j];
			s *= alpha;
			c[i * ldc + j] = beta == 0 ? s
			                 : beta * c[i * ldc + j] + s;
		}
}
