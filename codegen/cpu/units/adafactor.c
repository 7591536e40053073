/* Adafactor (factored.h).  Every sum has a shape that follows from the
 * parameter's alone.
 */
#include "adafactor.h"
#include "half.h"
#include "sums.h"

enum { CKR_FACTOR_COLUMNS = 64 };

/* A step at work: row and col are the new means, each matrix's row is divided
 * by its mean, scale[matrix]; col NULL: row is the mean of every element, or
 * with old, the one before this step, follows from that. */
struct ckr_factored {
	const struct ckr_adafactor *a;
	const void *g;
	const float *row, *col, *scale, *old;
	float clip, least, fresh;
	int64_t end;                    /* of the elements at hand */
};

static inline int64_t
ckr_most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline struct ckr_factored
ckr_factor_open(const struct ckr_adafactor *a, const void *g,
                const float *norm, const struct ckr_env *env)
{
	int64_t all = a->matrices * a->rows * a->cols;

	return (struct ckr_factored){ .a = a, .g = g,
		.clip = ckr_clip_scale(norm, env),
		.least = env->eps * env->eps, .fresh = env->one_minus_beta2,
		.end = ckr_least(a->first + a->n, all) };
}

/* d[0..n-1] = the gradient from element `at` on, clipped. */
static inline void
ckr_factor_grad(float *d, const struct ckr_factored *f, int64_t at, int64_t n)
{
	float clip = f->clip;

	ckr_widen(d, f->g, f->a->types.g, at - f->a->first, n);
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		d[i] *= clip;
}

/* The same, of elements that are not at hand 0. */
static inline void
ckr_factor_window(float *d, const struct ckr_factored *f, int64_t at,
                  int64_t n)
{
	int64_t from = ckr_most(at, f->a->first);
	int64_t to = ckr_least(at + n, f->end);

	if (to - from < n)
		memset(d, 0, (size_t)n * sizeof *d);
	if (from < to)
		ckr_factor_grad(d + (from - at), f, from, to - from);
}

/* ---- means of squares ---- */

/* Mean i, moved towards that of n squares; old NULL: the latter. */
static inline float
ckr_factor_mean(const float *old, int64_t i, double squares, int64_t n,
                float fresh)
{
	float mean = (float)(squares / (double)n);

	return old ? ckr_factor_towards(old[i], mean, fresh) : mean;
}

static inline void
ckr_factor_rows(float *to, const struct ckr_factored *f, const float *old,
                const struct ckr_env *env)
{
	int64_t rows = f->a->matrices * f->a->rows, cols = f->a->cols;

	CKR_SHARE(rows * cols)
	for (int64_t i = 0; i < rows; i++) {
		int64_t end = ckr_least((i + 1) * cols, f->end);
		float d[CKR_HALF_BLOCK];
		double s = 0;

		for (int64_t j = ckr_most(i * cols, f->a->first); j < end;
		     j += CKR_HALF_BLOCK) {
			int64_t n = ckr_least(end - j, CKR_HALF_BLOCK);

			ckr_factor_grad(d, f, j, n);
			s += (double)ckr_sum_squares(d, n);
		}
		to[i] = ckr_factor_mean(old, i, s, f->a->all_cols, f->fresh);
	}
}

static inline void
ckr_factor_cols(float *to, const struct ckr_factored *f, const float *old,
                const struct ckr_env *env)
{
	int64_t rows = f->a->rows, cols = f->a->cols;
	int64_t strips = (cols + CKR_FACTOR_COLUMNS - 1) / CKR_FACTOR_COLUMNS;

	CKR_SHARE(f->a->matrices * rows * cols)
	for (int64_t s = 0; s < f->a->matrices * strips; s++) {
		int64_t m = s / strips, j = s % strips * CKR_FACTOR_COLUMNS;
		int64_t n = ckr_least(cols - j, CKR_FACTOR_COLUMNS);
		int64_t end = ckr_least((m + 1) * rows,
		                        (f->end + cols - 1) / cols);
		float d[CKR_FACTOR_COLUMNS];
		double sum[CKR_FACTOR_COLUMNS] = { 0 };

		for (int64_t i = ckr_most(m * rows, f->a->first / cols);
		     i < end; i++) {
			ckr_factor_window(d, f, i * cols + j, n);
#pragma omp simd
			for (int64_t k = 0; k < n; k++)
				sum[k] += (double)d[k] * (double)d[k];
		}
		j += m * cols;
		for (int64_t k = 0; k < n; k++)
			to[j + k] = ckr_factor_mean(old, j + k, sum[k],
			                            f->a->all_rows, f->fresh);
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

	CKR_SHARE(all * size)
	for (int64_t first = 0; first < all; first += group) {
		float block[CKR_HALF_BLOCK], *d = block;
		int64_t end = ckr_least(all, first + group);

		ckr_factor_window(d, f, first * size, (end - first) * size);
		for (int64_t m = first; m < end; m++, d += size) {
			for (int64_t i = 0; i < rows; i++)
				row1[m * rows + i] = ckr_factor_mean(row,
					m * rows + i, ckr_factor_squares(
					d + i * cols, cols, 1), f->a->all_cols,
					f->fresh);
			for (int64_t j = 0; j < cols; j++)
				col1[m * cols + j] = ckr_factor_mean(col,
					m * cols + j, ckr_factor_squares(
					d + j, rows, cols), f->a->all_rows,
					f->fresh);
		}
	}
}

/* Rows and columns; row and col are the means before, or NULL. */
static inline void
ckr_factor_means(float *row1, float *col1, const struct ckr_factored *f,
                 const float *row, const float *col, const struct ckr_env *env)
{
	if (f->a->rows * f->a->cols <= CKR_HALF_BLOCK) {
		ckr_factor_small(row1, col1, f, row, col, env);
		return;
	}
	ckr_factor_rows(row1, f, row, env);
	ckr_factor_cols(col1, f, col, env);
}

/* The mean square, moved towards the gradient's, d[j]. */
static inline void
ckr_factor_each(float *to, const float *old, const float *d, int64_t n,
                float fresh)
{
#pragma omp simd
	for (int64_t j = 0; j < n; j++)
		to[j] = ckr_factor_towards(old[j], d[j] * d[j], fresh);
}

/* Mean of every element's squares: of one. */
static inline void
ckr_factor_all(float *to, const struct ckr_factored *f, const float *old,
               const struct ckr_env *env)
{
	int64_t n = f->a->cols;

	CKR_SHARE(n)
	for (int64_t i = 0; i < n; i += CKR_HALF_BLOCK) {
		float d[CKR_HALF_BLOCK];
		int64_t k = ckr_least(n - i, CKR_HALF_BLOCK);

		ckr_factor_grad(d, f, i, k);
		ckr_factor_each(to + i, old + i, d, k, f->fresh);
	}
}

/* Means moved towards new ones. */
static inline void
ckr_factor_move(float *to, const float *old, const float *mean, int64_t n,
                float fresh, const struct ckr_env *env)
{
#pragma omp parallel for simd num_threads(env->threads) if (n > CKR_SMALL)
	for (int64_t i = 0; i < n; i++)
		to[i] = ckr_factor_towards(old[i], mean[i], fresh);
}

/* The divisor of a matrix's rows: the mean of the matrix, which is the mean of
 * its rows or of its columns, whichever this rank has all of. */
static inline void
ckr_factor_scale(float *scale, const struct ckr_factored *f,
                 const struct ckr_env *env)
{
	const struct ckr_adafactor *a = f->a;
	const float *x = a->by_cols ? f->col : f->row;
	int64_t n = a->by_cols ? a->cols : a->rows;

	CKR_SHARE(a->matrices * n)
	for (int64_t m = 0; m < a->matrices; m++) {
		double s = 0;

		for (int64_t i = 0; i < n; i++)
			s += (double)x[m * n + i];
		s /= (double)(a->by_cols ? a->all_cols : a->all_rows);
		scale[m] = (float)(1 / (s < (double)env->eps
		                        ? (double)env->eps : s));
	}
}

/* ---- the update, block by block ---- */

static inline int64_t
ckr_factor_blocks(const struct ckr_factored *f)
{
	int64_t n = ckr_most(f->end - f->a->first, 0);

	return (n + CKR_HALF_BLOCK - 1) / CKR_HALF_BLOCK;
}

/* The mean square that rows and columns stand for, of n elements. */
static inline void
ckr_factor_product(float *v, const struct ckr_factored *f, int64_t at,
                   int64_t n)
{
	int64_t rows = f->a->rows, cols = f->a->cols;
	int64_t row = at / cols, col = at % cols;
	int64_t m = row / rows, next = (m + 1) * rows;

	while (n > 0) {
		int64_t k = ckr_least(cols - col, n);
		const float *c = f->col + m * cols + col;
		float x = f->row[row] * f->scale[m];

#pragma omp simd
		for (int64_t j = 0; j < k; j++)
			v[j] = x * c[j];
		v += k;
		n -= k;
		col = 0;
		if (++row == next) {
			m++;
			next += rows;
		}
	}
}

/* Block `i` of the update: its first element, how many they are. */
static inline int64_t
ckr_factor_block(float *u, const struct ckr_factored *f, int64_t i, int64_t *n)
{
	int64_t at = f->a->first + i * CKR_HALF_BLOCK;
	float least = f->least, square[CKR_HALF_BLOCK];
	const float *v = f->col || f->old ? square : f->row + at;

	*n = ckr_least(f->end - at, CKR_HALF_BLOCK);
	ckr_factor_grad(u, f, at, *n);
	if (f->col)
		ckr_factor_product(square, f, at, *n);
	else if (f->old)
		ckr_factor_each(square, f->old + at, u, *n, f->fresh);
#pragma omp simd
	for (int64_t j = 0; j < *n; j++)
		u[j] = ckr_factor_update(u[j], v[j], least);
	return at;
}

/* Sum of squares of the update. */
static inline double
ckr_factor_norm(const struct ckr_factored *f, const struct ckr_env *env)
{
	double part[CKR_NORM_PARTS], s = 0;
	int64_t blocks = ckr_factor_blocks(f);
	int64_t size = (blocks + CKR_NORM_PARTS - 1) / CKR_NORM_PARTS;
	int64_t nparts = size ? (blocks + size - 1) / size : 0;

#pragma omp parallel for num_threads(env->threads) \
	if (blocks > 1)
	for (int64_t i = 0; i < nparts; i++) {
		float u[CKR_HALF_BLOCK];

		part[i] = 0;
		for (int64_t j = i * size;
		     j < ckr_least(blocks, (i + 1) * size); j++) {
			int64_t n;

			ckr_factor_block(u, f, j, &n);
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
	struct ckr_update_types t = f->a->types;
	int64_t blocks = ckr_factor_blocks(f);

#pragma omp parallel for num_threads(env->threads) \
	if (blocks > 1)
	for (int64_t i = 0; i < blocks; i++) {
		float u[CKR_HALF_BLOCK], buffer[CKR_HALF_BLOCK];
		int64_t n, at = ckr_factor_block(u, f, i, &n) - f->a->first;
		const float *from = ckr_row(buffer, p, t.y, at, n);
		float *x = ckr_row_new(buffer, y, t.y, at);

#pragma omp simd
		for (int64_t j = 0; j < n; j++)
			x[j] = from[j] * keep - step * u[j];
		ckr_update_store(y, t.y, t, 0, at, x, n, env);
	}
}

/* ---- steps ---- */

void
ckr_adafactor_means(const struct ckr_adafactor *a, float *row_mean,
                    float *col_mean, const void *g, const float *norm,
                    const struct ckr_env *env)
{
	struct ckr_factored f = ckr_factor_open(a, g, norm, env);

	if (a->all == 0)
		return;
	ckr_factor_means(row_mean, col_mean, &f, NULL, NULL, env);
}

void
ckr_adafactor_squares(const struct ckr_adafactor *a, float *squares,
                      const void *p, const void *g, const float *row,
                      const float *col, const float *row_mean,
                      const float *col_mean, const float *norm,
                      float *workspace, const struct ckr_env *env)
{
	struct ckr_factored f = ckr_factor_open(a, g, norm, env);
	int64_t rows = a->matrices * a->rows, cols = a->matrices * a->cols;
	float *row1 = workspace + a->matrices, *col1 = row1 + rows;

	if (col) {
		ckr_factor_move(row1, row, row_mean, rows, f.fresh, env);
		ckr_factor_move(col1, col, col_mean, cols, f.fresh, env);
		f.row = row1;
		f.col = col1;
		f.scale = workspace;
		ckr_factor_scale(workspace, &f, env);
	} else {
		f.old = row;
	}
	squares[0] = (float)(ckr_half_norm_part(p, a->types.y, a->n, env)
	                     / (double)a->all);
	squares[1] = (float)(ckr_factor_norm(&f, env) / (double)a->all);
}

void
ckr_adafactor(const struct ckr_adafactor *a, void *y, float *row1, float *col1,
              const void *p, const void *g, const float *row, const float *col,
              const float *row_mean, const float *col_mean,
              const float *squares, const float *norm, float *workspace,
              const struct ckr_env *env)
{
	int64_t rows = a->matrices * a->rows, cols = a->matrices * a->cols;
	struct ckr_factored f = ckr_factor_open(a, g, norm, env);
	const struct ckr_way way = { a->decay, 0, env->group };
	float lr = ckr_own_lr(&way, env);
	float keep = 1.0f - lr * ckr_own_decay(&way, env);
	double size, over;

	if (a->all == 0)
		return;
	f.row = row1;
	f.col = col1;
	f.scale = workspace;
	if (!col) {
		ckr_factor_all(row1, &f, row, env);
	} else if (row_mean) {
		ckr_factor_move(row1, row, row_mean, rows, f.fresh, env);
		ckr_factor_move(col1, col, col_mean, cols, f.fresh, env);
	} else {
		ckr_factor_means(row1, col1, &f, row, col, env);
	}
	if (col)
		ckr_factor_scale(workspace, &f, env);
	size = squares ? (double)squares[0]
	     : ckr_half_norm_part(p, a->types.y, a->n, env) / (double)a->all;
	over = squares ? (double)squares[1]
	     : ckr_factor_norm(&f, env) / (double)a->all;
	ckr_factor_apply(y, p, &f, keep, ckr_factor_rate(size, over, lr, env),
	                 env);
}
