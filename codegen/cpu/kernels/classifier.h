/* The last product and its loss, in chunks of rows. */
#ifndef CODEGEN_CPU_KERNELS_CLASSIFIER_H
#define CODEGEN_CPU_KERNELS_CLASSIFIER_H

#include "labels.h"

/* A tile of a product of 16-bit floats. */
struct ckr_classifier_tile {
	int64_t rows, cols, depth;
};

/* As struct classifier_tile of codegen/cpu/tile.h, which see. */
struct ckr_classifier {
	int64_t rows, classes, dim, chunk, most;
	int tb, reduction, keep;
	float seed;
	int x, w, bias;         /* types; gradients are as x */
	/* where in workspace what lies, floats of a thread's tiles */
	int64_t each, bias_at, db, dw, tiles, thread, slice, weights, dx;
	struct ckr_classifier_tile tile[3];
};

void ckr_classify(const struct ckr_classifier *c, float *loss, void *dx,
                  void *dw, void *dbias, const void *x, const void *w,
                  const struct ckr_labels *l, const void *bias,
                  float *workspace, struct ckr_env *env);

#endif
