/* Labels of losses. */
#ifndef CODEGEN_CPU_KERNELS_LABELS_H
#define CODEGEN_CPU_KERNELS_LABELS_H

#include "cpu.h"

enum { CKR_LOSS_PARTS = 64 };     /* of a sum over rows */

struct ckr_labels {
	const void *v;
	int nbytes;             /* 8 or 4 */
	int64_t ignore, n;
	const float *weight;    /* per class, or NULL */
};

static inline int64_t
ckr_label_read(const struct ckr_labels *l, int64_t i)
{
	return l->nbytes == 8 ? ((const int64_t *)l->v)[i]
	                      : ((const int32_t *)l->v)[i];
}

/* Label i; -1 if it is to be ignored or bad, which is a fault of the step. */
static inline int64_t
ckr_label(const struct ckr_labels *l, int64_t i, struct ckr_env *env)
{
	int64_t c = ckr_label_read(l, i);

	if (c == l->ignore)
		return -1;
	if (c >= 0 && c < l->n)
		return c;
	ckr_fault(env, CKR_BAD_LABEL, i, c);
	return -1;
}

static inline float
ckr_label_weight(const struct ckr_labels *l, int64_t c)
{
	return c < 0 ? 0.0f : l->weight ? l->weight[c] : 1.0f;
}

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
