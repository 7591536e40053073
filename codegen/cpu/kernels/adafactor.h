/* Adafactor. */
#ifndef CODEGEN_CPU_KERNELS_ADAFACTOR_H
#define CODEGEN_CPU_KERNELS_ADAFACTOR_H

#include "update.h"

/* This rank's part of a parameter: so many matrices of rows x cols; 1, 1, n of
 * what is not factored.  At hand are n elements of it from `first` on, of which
 * those behind its end are padding.  Means are over the whole parameter: over
 * all_rows, all_cols, all elements.  by_cols: rows are cut over ranks, so that
 * a matrix's mean is that of its columns. */
struct ckr_adafactor {
	int64_t matrices, rows, cols, first, n, all_rows, all_cols, all;
	int by_cols, decay;
	struct ckr_update_types types;
};

/* Shares of the means of the new squares over rows and over columns. */
void ckr_adafactor_means(const struct ckr_adafactor *a, float *row_mean,
                         float *col_mean, const void *g, const float *norm,
                         const struct ckr_env *env);
/* Shares of the mean squares of the parameter and of the update.  workspace: a
 * number per matrix, row and column.  ORDER TILE: node_workspace() counts on
 * this. */
void ckr_adafactor_squares(const struct ckr_adafactor *a, float *squares,
                           const void *p, const void *g, const float *row,
                           const float *col, const float *row_mean,
                           const float *col_mean, const float *norm,
                           float *workspace, const struct ckr_env *env);
/* row_mean, col_mean, squares: sums over all shards; NULL: p is not sharded.
 * workspace: a number per matrix.  ORDER TILE: node_workspace() counts on this.
 */
void ckr_adafactor(const struct ckr_adafactor *a, void *y, float *row1,
                   float *col1, const void *p, const void *g, const float *row,
                   const float *col, const float *row_mean,
                   const float *col_mean, const float *squares,
                   const float *norm, float *workspace,
                   const struct ckr_env *env);

#endif
