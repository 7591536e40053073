/* Adafactor: Shazeer and Stern, "Adafactor: adaptive learning rates with
 * sublinear memory cost", 2018, as torch.optim has it.
 *
 * A parameter of matrices keeps, of the squares of its gradient, means over
 * the rows and over the columns of each; another keeps all of them.  The
 * update is made twice, for its norm and to be applied, and never stored.
 * Every sum has a shape that follows from the parameter's alone.
 */
#include "adafactor.h"
#include "half.h"
#include "sums.h"
#include "update.h"

enum { CKR_FACTOR_COLUMNS = 64 };

/* A step at work: row and col are the new means, each matrix's row is divided
 * by its mean, scale[matrix]; col NULL: row is the mean of every element. */
struct ckr_factored {
	const struct ckr_adafactor *a;
	const void *g;
	const float *row, *col, *scale;
	float clip, least;
	int64_t tall, wide;             /* rows and columns of a piece */
};

/* d[0..n-1] = the gradient from element `at` on, clipped. */
static inline void
ckr_factor_grad(float *d, const struct ckr_factored *f, int64_t at, int64_t n)
{
	float clip = f->clip;

	ckr_widen(d, f->g, f->a->types.g, at, n);
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		d[i] *= clip;
}

/* ---- means of squares ---- */

/* old moved towards the mean of n squares by the share `fresh`. */
static inline float
ckr_factor_mean(float old, double squares, int64_t n, float fresh)
{
	return old + fresh * ((float)(squares / (double)n) - old);
}

static inline void
ckr_factor_rows(float *to, const struct ckr_factored *f, const float *old,
                const struct ckr_env *env)
{
	int64_t rows = f->a->matrices * f->a->rows, cols = f->a->cols;

#pragma omp parallel for num_threads(env->threads) \
	if (rows * cols > CKR_SMALL)
	for (int64_t i = 0; i < rows; i++) {
		float d[CKR_HALF_BLOCK];
		double s = 0;

		for (int64_t j = 0; j < cols; j += CKR_HALF_BLOCK) {
			int64_t n = ckr_least(cols - j, CKR_HALF_BLOCK);

			ckr_factor_grad(d, f, i * cols + j, n);
			s += (double)ckr_sum_squares(d, n);
		}
		to[i] = ckr_factor_mean(old[i], s, cols, env->fresh);
	}
}

static inline void
ckr_factor_cols(float *to, const struct ckr_factored *f, const float *old,
                const struct ckr_env *env)
{
	int64_t rows = f->a->rows, cols = f->a->cols;
	int64_t strips = (cols + CKR_FACTOR_COLUMNS - 1) / CKR_FACTOR_COLUMNS;

#pragma omp parallel for num_threads(env->threads) \
	if (f->a->matrices * rows * cols > CKR_SMALL)
	for (int64_t s = 0; s < f->a->matrices * strips; s++) {
		int64_t m = s / strips, j = s % strips * CKR_FACTOR_COLUMNS;
		int64_t n = ckr_least(cols - j, CKR_FACTOR_COLUMNS);
		float d[CKR_FACTOR_COLUMNS];
		double sum[CKR_FACTOR_COLUMNS] = { 0 };

		for (int64_t i = 0; i < rows; i++) {
			ckr_factor_grad(d, f, (m * rows + i) * cols + j, n);
#pragma omp simd
			for (int64_t k = 0; k < n; k++)
				sum[k] += (double)d[k] * (double)d[k];
		}
		for (int64_t k = m * cols + j; k < m * cols + j + n; k++)
			to[k] = ckr_factor_mean(old[k], sum[k - m * cols - j],
			                        rows, env->fresh);
	}
}

/* Sum of squares of n elements, `step` apart. */
static inline double
ckr_factor_squares(const float *d, int64_t n, int64_t step)
{
	double s = 0;

	for (int64_t i = 0; i < n; i++)
		s += (double)d[i * step] * (double)d[i * step];
	return s;
}

/* Rows and columns of matrices of which several make a block: the taps of a
 * convolution. */
static inline void
ckr_factor_small(float *row1, float *col1, const struct ckr_factored *f,
                 const float *row, const float *col, const struct ckr_env *env)
{
	int64_t rows = f->a->rows, cols = f->a->cols, size = rows * cols;
	int64_t all = f->a->matrices, group = CKR_HALF_BLOCK / size;

#pragma omp parallel for num_threads(env->threads) \
	if (all * size > CKR_SMALL)
	for (int64_t first = 0; first < all; first += group) {
		float block[CKR_HALF_BLOCK], *d = block;
		int64_t end = ckr_least(all, first + group);

		ckr_factor_grad(d, f, first * size, (end - first) * size);
		for (int64_t m = first; m < end; m++, d += size) {
			for (int64_t i = 0; i < rows; i++)
				row1[m * rows + i] = ckr_factor_mean(
					row[m * rows + i], ckr_factor_squares(
					d + i * cols, cols, 1), cols,
					env->fresh);
			for (int64_t j = 0; j < cols; j++)
				col1[m * cols + j] = ckr_factor_mean(
					col[m * cols + j], ckr_factor_squares(
					d + j, rows, cols), rows, env->fresh);
		}
	}
}

/* Mean of every element's squares: of one. */
static inline void
ckr_factor_all(float *to, const struct ckr_factored *f, const float *old,
               const struct ckr_env *env)
{
	int64_t n = f->a->cols;
	float fresh = env->fresh;

#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i = 0; i < n; i += CKR_HALF_BLOCK) {
		float d[CKR_HALF_BLOCK];
		int64_t k = ckr_least(n - i, CKR_HALF_BLOCK);

		ckr_factor_grad(d, f, i, k);
#pragma omp simd
		for (int64_t j = 0; j < k; j++)
			to[i + j] = old[i + j] + fresh * (d[j] * d[j]
			                                  - old[i + j]);
	}
}

/* What a matrix's rows are divided by: the mean of all of it. */
static inline void
ckr_factor_scale(float *scale, const struct ckr_adafactor *a, const float *row,
                 const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (a->matrices * a->rows > CKR_SMALL)
	for (int64_t m = 0; m < a->matrices; m++) {
		double s = 0;

		for (int64_t i = 0; i < a->rows; i++)
			s += (double)row[m * a->rows + i];
		s /= (double)a->rows;
		scale[m] = (float)(1 / (s < (double)env->eps
		                        ? (double)env->eps : s));
	}
}

/* ---- the update, piece by piece ---- */

static inline int64_t
ckr_factor_pieces(const struct ckr_factored *f)
{
	int64_t rows = f->a->matrices * f->a->rows;

	return (rows + f->tall - 1) / f->tall
	       * ((f->a->cols + f->wide - 1) / f->wide);
}

/* The mean square that rows and columns stand for. */
static inline void
ckr_factor_product(float *v, const struct ckr_factored *f, int64_t row,
                   int64_t col, int64_t tall, int64_t wide)
{
	int64_t rows = f->a->rows, m = row / rows, next = (m + 1) * rows;

	for (int64_t r = row; r < row + tall; r++, v += wide) {
		const float *c;
		float x;

		if (r == next) {
			m++;
			next += rows;
		}
		c = f->col + m * f->a->cols + col;
		x = f->row[r] * f->scale[m];
		for (int64_t j = 0; j < wide; j++)
			v[j] = x * c[j];
	}
}

/* Piece `i` of the update: its first element, how many they are. */
static inline int64_t
ckr_factor_piece(float *u, const struct ckr_factored *f, int64_t i, int64_t *n)
{
	const struct ckr_adafactor *a = f->a;
	int64_t across = (a->cols + f->wide - 1) / f->wide;
	int64_t row = i / across * f->tall, col = i % across * f->wide;
	int64_t tall = ckr_least(a->matrices * a->rows - row, f->tall);
	int64_t wide = ckr_least(a->cols - col, f->wide);
	int64_t at = row * a->cols + col;
	float least = f->least, square[CKR_HALF_BLOCK];
	const float *v = f->col ? square : f->row + at;

	*n = tall * wide;
	ckr_factor_grad(u, f, at, *n);
	if (f->col)
		ckr_factor_product(square, f, row, col, tall, wide);
	/* a NaN stays one */
#pragma omp simd
	for (int64_t j = 0; j < tall * wide; j++)
		u[j] /= __builtin_sqrtf(v[j] < least ? least : v[j]);
	return at;
}

/* Sum of squares of the update. */
static inline double
ckr_factor_norm(const struct ckr_factored *f, const struct ckr_env *env)
{
	double part[CKR_NORM_PARTS], s = 0;
	int64_t pieces = ckr_factor_pieces(f);
	int64_t size = (pieces + CKR_NORM_PARTS - 1) / CKR_NORM_PARTS;
	int64_t nparts = (pieces + size - 1) / size;

#pragma omp parallel for num_threads(env->threads) \
	if (pieces > 1)
	for (int64_t i = 0; i < nparts; i++) {
		float u[CKR_HALF_BLOCK];

		part[i] = 0;
		for (int64_t j = i * size;
		     j < ckr_least(pieces, (i + 1) * size); j++) {
			int64_t n;

			ckr_factor_piece(u, f, j, &n);
			part[i] += (double)ckr_sum_squares(u, n);
		}
	}
	for (int64_t i = 0; i < nparts; i++)
		s += part[i];
	return s;
}

/* p * keep - step * update. */
static inline void
ckr_factor_apply(void *y, const void *p, const struct ckr_factored *f,
                 float keep, float step, const struct ckr_env *env)
{
	struct ckr_half_types t = f->a->types;
	int64_t pieces = ckr_factor_pieces(f);

#pragma omp parallel for num_threads(env->threads) \
	if (pieces > 1)
	for (int64_t i = 0; i < pieces; i++) {
		float u[CKR_HALF_BLOCK], x[CKR_HALF_BLOCK];
		int64_t n, at = ckr_factor_piece(u, f, i, &n);

		ckr_widen(x, p, t.y, at, n);
#pragma omp simd
		for (int64_t j = 0; j < n; j++)
			x[j] = x[j] * keep - step * u[j];
		ckr_half_store(y, NULL, t, at, x, n, env);
	}
}

void
ckr_adafactor(const struct ckr_adafactor *a, void *y, float *row1, float *col1,
              const void *p, const void *g, const float *row, const float *col,
              const float *norm, float *scratch, const struct ckr_env *env)
{
	int64_t wide = ckr_least(a->cols, CKR_HALF_BLOCK);
	int64_t n = a->matrices * a->rows * a->cols;
	struct ckr_factored f = { a, g, row1, col1, scratch,
		ckr_clip_scale(norm, env), env->eps * env->eps,
		col && wide > 0 ? CKR_HALF_BLOCK / wide : 1, wide };
	float lr = ckr_own_lr(env), keep = 1.0f - lr
	           * ckr_own_decay(a->decay, env);
	double size, over;

	if (n == 0)
		return;
	size = sqrt(ckr_half_norm_part(p, a->types.y, n, env) / (double)n);
	if (!col) {
		ckr_factor_all(row1, &f, row, env);
	} else if (a->rows * a->cols <= CKR_HALF_BLOCK) {
		ckr_factor_small(row1, col1, &f, row, col, env);
	} else {
		ckr_factor_rows(row1, &f, row, env);
		ckr_factor_cols(col1, &f, col, env);
	}
	if (col)
		ckr_factor_scale(scratch, a, row1, env);
	over = sqrt(ckr_factor_norm(&f, env) / (double)n)
	       / (double)env->threshold;
	if (size < (double)env->eps2)
		size = (double)env->eps2;
	lr = lr < env->most ? lr : env->most;
	ckr_factor_apply(y, p, &f, keep, (float)(size * (double)lr
	                 / (over > 1 ? over : 1)), env);
}
