/* Labels of losses: numbers of classes. */
#ifndef CODEGEN_RULES_KERNELS_CLASSES_H
#define CODEGEN_RULES_KERNELS_CLASSES_H

struct ckr_labels {
	const void *v;
	int nbytes;             /* 8 or 4 */
	int64_t ignore, n;
	ckr_any weight;         /* per class, or NULL */
};

CKR_DEVICE int64_t
ckr_label_read(const struct ckr_labels *l, int64_t i)
{
	return l->nbytes == 8 ? ((const int64_t *)l->v)[i]
	                      : ((const int32_t *)l->v)[i];
}

/* Label i; -1 if it is to be ignored or bad, which is a fault of the step. */
CKR_DEVICE int64_t
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

CKR_DEVICE float
ckr_label_weight(const struct ckr_labels *l, int64_t c)
{
	return c < 0 ? 0.0f : ckr_is_given(l->weight) ? ckr_at(l->weight, c)
	       : 1.0f;
}

/* The factor of the adjoint of label k's loss, whose class is c. */
CKR_DEVICE float
ckr_loss_factor(const struct ckr_labels *l, ckr_any dloss, ckr_any denom,
                int64_t k, int64_t c, int reduction)
{
	float g = ckr_label_weight(l, c) * ckr_at(dloss, reduction ? 0 : k);

	return reduction == 1 ? g / ckr_at(denom, 0) : g;
}

#endif
