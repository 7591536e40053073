/* Adafactor. */
#ifndef CKR_ADAFACTOR_H
#define CKR_ADAFACTOR_H

#include "half_update.h"

struct ckr_adafactor {
	int64_t matrices, rows, cols;   /* 1, 1, n of what is not factored */
	int decay;
	struct ckr_half_types types;
};

/* scratch: a number per matrix.  ORDER TILE: node_workspace() counts on
 * this. */
void ckr_adafactor(const struct ckr_adafactor *a, void *y, float *row1,
                   float *col1, const void *p, const void *g, const float *row,
                   const float *col, const float *norm, float *scratch,
                   const struct ckr_env *env);

#endif
