/* oneDNN as a build without bf16 products: its sgemm leaves products to libckr,
 * as one that refuses sizes does. */
#include <stdint.h>

int
dnnl_sgemm(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha,
           const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
           float *c, int64_t ldc)
{
	(void)ta, (void)tb, (void)m, (void)n, (void)k, (void)alpha, (void)a;
	(void)lda, (void)b, (void)ldb, (void)beta, (void)c, (void)ldc;
	return 1;
}

const void *
dnnl_version(void)
{
	static const int version[] = { 3, 1, 4 };

	return version;
}
