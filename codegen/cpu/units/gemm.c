/* Preparation of matrix products: operands that a product adds to are written
 * to its result first.  / */
#include "gemm.h"

void
ckr_prefill(float *y, const float *bias, const float *acc, int64_t rows,
            int64_t n, const struct ckr_env *env)
{
	if (!bias && acc == y)
		return;
	CKR_SHARE(rows * n)
	for (int64_t i = 0; i < rows; i++) {
		float *to = y + i * n;
		const float *from = acc ? acc + i * n : bias;

		if (!acc || !bias) {
			memcpy(to, from, (size_t)n * sizeof *to);
			continue;
		}
#pragma omp simd
		for (int64_t j = 0; j < n; j++)
			to[j] = from[j] + bias[j];
	}
}
