/* Adafactor. */
#ifndef CODEGEN_CPU_KERNELS_ADAFACTOR_H
#define CODEGEN_CPU_KERNELS_ADAFACTOR_H

#include "update.h"
#include "factored.h"

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
