/* Determinants and their gradients, in double since terms cancel: a thread for
 * each matrix, with room for two. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_DET_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_DET_CUH

enum { CKR_DET_TASKS = 1 << 14 };       /* ORDER CUDA: work_det() */

CKR_DEVICE double *
ckr_det_room(double *workspace, int64_t n)
{
	return workspace + ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * 2
		* n * n;
}

template <typename T> CKR_GLOBAL
ckr_det_device(T *y, const T *x, double *workspace, int64_t count, int64_t n)
{
	double *a = ckr_det_room(workspace, n);

	CKR_TASKS(int64_t, m, count) {
		for (int64_t i = 0; i < n * n; i++)
			a[i] = ckr_get(x[m * n * n + i]);
		ckr_put(&y[m], (float)ckr_eliminate(a, NULL, n));
	}
}

/* One warp for each block, so that there are many. */
static inline int64_t
ckr_det_blocks(int64_t count)
{
	return ckr_ceil_div(ckr_least(count, CKR_DET_TASKS), CKR_WARP);
}

template <typename T> static inline void
ckr_det(T *y, const T *x, double *workspace, int64_t count, int64_t n,
        const struct ckr_env *env)
{
	if (count > 0)
		CKR_LAUNCH(ckr_det_device<T>, ckr_det_blocks(count), CKR_WARP,
		           0, env, y, x, workspace, count, n);
}

/* The cofactors of a regular matrix are its determinant times the transpose of
 * its inverse. */
template <typename D, typename T> CKR_GLOBAL
ckr_det_grad_device(T *dx, const D *dy, const T *x, double *workspace,
                    int64_t count, int64_t n)
{
	double *a = ckr_det_room(workspace, n), *b = a + n * n;

	CKR_TASKS(int64_t, m, count) {
		const T *xm = x + m * n * n;
		double det, d = ckr_get(dy[m]);

		for (int64_t i = 0; i < n * n; i++) {
			a[i] = ckr_get(xm[i]);
			b[i] = i % (n + 1) == 0;
		}
		det = ckr_eliminate(a, b, n);
		for (int64_t i = 0; det != 0.0 && i < n * n; i++)
			ckr_put(&dx[m * n * n + i], (float)(d * det
				* b[i % n * n + i / n] / a[i % n * (n + 1)]));
		for (int64_t i = 0; det == 0.0 && i < n * n; i++)
			b[i] = ckr_get(xm[i]);
		for (int64_t i = 0; det == 0.0 && i < n * n; i++)
			ckr_put(&dx[m * n * n + i], (float)(d
				* ckr_cofactor(a, b, n, i / n, i % n)));
	}
}

template <typename D, typename T> static inline void
ckr_det_grad(T *dx, const D *dy, const T *x, double *workspace, int64_t count,
             int64_t n, const struct ckr_env *env)
{
	if (count > 0)
		CKR_LAUNCH((ckr_det_grad_device<D, T>), ckr_det_blocks(count),
		           CKR_WARP, 0, env, dx, dy, x, workspace, count, n);
}

#endif
