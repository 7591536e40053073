/* Kernels on square matrices: threads share matrices; each has room for two, of
 * doubles.
 */
#include "det.h"
#include "eliminate.h"

void
ckr_det(float *y, const float *x, double *workspace, int64_t count, int64_t n,
        const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) if (count > 1)
	for (int64_t m = 0; m < count; m++)
		ckr_det_of(y + m, x + m * n * n, workspace
		           + omp_get_thread_num() * 2 * n * n, n);
}

void
ckr_det_grad(float *dx, const float *dy, const float *x, double *workspace,
             int64_t count, int64_t n, const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) if (count > 1)
	for (int64_t m = 0; m < count; m++)
		ckr_det_grad_of(dx + m * n * n, (double)dy[m], x + m * n * n,
		                workspace + omp_get_thread_num() * 2 * n * n,
		                n);
}
