/* Determinants and their gradients: a thread for each matrix, with room for
 * two. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_DET_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_DET_CUH

#include "eliminate.h"

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

	CKR_TASKS(int64_t, m, count)
		ckr_det_of(&y[m], x + m * n * n, a, n);
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

template <typename D, typename T> CKR_GLOBAL
ckr_det_grad_device(T *dx, const D *dy, const T *x, double *workspace,
                    int64_t count, int64_t n)
{
	double *a = ckr_det_room(workspace, n);

	CKR_TASKS(int64_t, m, count)
		ckr_det_grad_of(dx + m * n * n, (double)ckr_get(dy[m]),
		                x + m * n * n, a, n);
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
