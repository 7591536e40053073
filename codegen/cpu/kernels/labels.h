/* Labels of losses. */
#ifndef CODEGEN_CPU_KERNELS_LABELS_H
#define CODEGEN_CPU_KERNELS_LABELS_H

#include "cpu.h"

enum { CKR_LOSS_PARTS = 64 };     /* of a sum over rows */

/* Operands that may lack. */
typedef const float *ckr_any;
#define ckr_is_given(x) ((x) != NULL)
#define ckr_at(x, i) ((x)[i])

#include "classes.h"

/* The loss from sums of parts: none of it if the loss is per row. */
static inline void
ckr_loss_finish(float *loss, float *denom, const double *sum,
                const double *weight, int64_t nparts, int reduction)
{
	double s = 0, w = 0;

	for (int64_t p = 0; p < nparts; p++)
		s += sum[p], w += weight[p];
	if (denom)
		*denom = reduction == 1 ? (float)w : 1.0f;
	if (loss && reduction)
		*loss = (float)(reduction == 1 ? s / w : s);
}

#endif
