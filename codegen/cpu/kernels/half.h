/* 16-bit floats in memory, float32 in arithmetic: conversions of runs, and
 * matrix products tile by tile.
 */
#ifndef CKR_HALF_H
#define CKR_HALF_H

/* to[0..n-1] = from[at..at+n-1], elements of this type (CKR_F32 too). */
static inline void
ckr_widen(float *to, const void *from, int type, int64_t at, int64_t n)
{
	const uint16_t *h = (const uint16_t *)from + at;

	if (type == CKR_F32) {
		memcpy(to, (const float *)from + at, (size_t)n * sizeof *to);
	} else if (type == CKR_BF16) {
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			to[i] = ckr_from_bf16(h[i]);
	} else {
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			to[i] = ckr_from_f16(h[i]);
	}
}

static inline void
ckr_narrow(void *to, int type, int64_t at, const float *from, int64_t n)
{
	uint16_t *h = (uint16_t *)to + at;

	if (type == CKR_F32) {
		memcpy((float *)to + at, from, (size_t)n * sizeof *from);
	} else if (type == CKR_BF16) {
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			h[i] = ckr_to_bf16(from[i]);
	} else {
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			h[i] = ckr_to_f16(from[i]);
	}
}

/* ---- products ---- */

/* An operand: its bytes (NULL: none), type, first element, row stride. */
struct ckr_half {
	void *data;
	int type;
	int64_t start, ld;
};

/* y[m,n] = alpha op(a) op(b) + bias + acc, in tiles of at most rows x cols,
 * sums cut every `depth` of k.  Only the tile of the result is rounded, when
 * it is complete. */
struct ckr_half_product {
	int ta, tb;
	int64_t m, n, k, rows, cols, depth;
	float alpha;
	struct ckr_half a, b, bias, acc, y;
};

static inline int64_t
ckr_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* A tile of x, packed. */
static inline void
ckr_half_tile(float *to, const struct ckr_half *x, int64_t row, int64_t col,
              int64_t rows, int64_t cols, const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (rows * cols > CKR_SMALL)
	for (int64_t i = 0; i < rows; i++)
		ckr_widen(to + i * cols, x->data, x->type,
		          x->start + (row + i) * x->ld + col, cols);
}

static inline void
ckr_half_begin(float *to, const struct ckr_half_product *p, int64_t i0,
               int64_t j0, int64_t rows, int64_t cols, float *bias,
               const struct ckr_env *env)
{
	if (p->acc.data)
		ckr_half_tile(to, &p->acc, i0, j0, rows, cols, env);
	else
		memset(to, 0, (size_t)(rows * cols) * sizeof *to);
	if (!p->bias.data)
		return;
	ckr_widen(bias, p->bias.data, p->bias.type, j0, cols);
	for (int64_t i = 0; i < rows; i++)
#pragma omp simd
		for (int64_t j = 0; j < cols; j++)
			to[i * cols + j] += bias[j];
}

/* scratch: the tiles of a, b and y, and a row.  ORDER TILE: node_workspace()
 * counts on this. */
static inline void
ckr_half_matmul(const struct ckr_half_product *p, float *scratch,
                struct ckr_env *env)
{
	int64_t depth = ckr_least(p->k, p->depth);
	float *a = scratch, *b = a + ckr_least(p->m, p->rows) * depth;
	float *y = b + ckr_least(p->n, p->cols) * depth;
	float *bias = y + ckr_least(p->m, p->rows) * ckr_least(p->n, p->cols);

	for (int64_t j0 = 0; j0 < p->n; j0 += p->cols)
	for (int64_t i0 = 0; i0 < p->m; i0 += p->rows) {
		int64_t m = ckr_least(p->m - i0, p->rows);
		int64_t n = ckr_least(p->n - j0, p->cols);

		ckr_half_begin(y, p, i0, j0, m, n, bias, env);
		for (int64_t k0 = 0; k0 < p->k; k0 += depth) {
			int64_t k = ckr_least(p->k - k0, depth);

			ckr_half_tile(a, &p->a, p->ta ? k0 : i0,
			              p->ta ? i0 : k0, p->ta ? k : m,
			              p->ta ? m : k, env);
			ckr_half_tile(b, &p->b, p->tb ? j0 : k0,
			              p->tb ? k0 : j0, p->tb ? n : k,
			              p->tb ? k : n, env);
			env->sgemm(p->ta, p->tb, m, n, k, p->alpha, a,
			           p->ta ? m : k, b, p->tb ? k : n, 1.0f, y,
			           n);
		}
#pragma omp parallel for num_threads(env->threads) \
	if (m * n > CKR_SMALL)
		for (int64_t i = 0; i < m; i++)
			ckr_narrow(p->y.data, p->y.type,
			           p->y.start + (i0 + i) * p->y.ld + j0,
			           y + i * n, n);
	}
}

#endif
