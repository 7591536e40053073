/* Kernels on square matrices: determinants and their gradients, in double since
 * terms cancel.
 *
 * Threads share matrices; each has room for two, of doubles.
 */
#include "det.h"
#include "eliminate.h"

void
ckr_det(float *y, const float *x, double *workspace, int64_t count, int64_t n,
        const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) if (count > 1)
	for (int64_t m = 0; m < count; m++) {
		double *a = workspace + omp_get_thread_num() * 2 * n * n;

		for (int64_t i = 0; i < n * n; i++)
			a[i] = x[m * n * n + i];
		y[m] = (float)ckr_eliminate(a, NULL, n);
	}
}

void
ckr_det_grad(float *dx, const float *dy, const float *x, double *workspace,
             int64_t count, int64_t n, const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) if (count > 1)
	for (int64_t m = 0; m < count; m++) {
		double *a = workspace + omp_get_thread_num() * 2 * n * n;
		double *b = a + n * n, det;
		const float *xm = x + m * n * n;

		for (int64_t i = 0; i < n * n; i++) {
			a[i] = xm[i];
			b[i] = i % (n + 1) == 0;
		}
		det = ckr_eliminate(a, b, n);
		for (int64_t i = 0; det != 0.0 && i < n * n; i++)
			dx[m * n * n + i] = (float)(dy[m] * det
				* b[i % n * n + i / n] / a[i % n * (n + 1)]);
		for (int64_t i = 0; det == 0.0 && i < n * n; i++)
			b[i] = xm[i];
		for (int64_t i = 0; det == 0.0 && i < n * n; i++)
			dx[m * n * n + i] = (float)(dy[m]
				* ckr_cofactor(a, b, n, i / n, i % n));
	}
}
