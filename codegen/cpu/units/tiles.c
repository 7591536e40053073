/* Matrix products of 16-bit floats, tile by tile in float32. */
#include "tiles.h"
#include "dequantize.h"

/* Index of element (row, col) of matrix `at` of the batch. */
static inline int64_t
ckr_half_index(const struct ckr_half_product *p, const struct ckr_half *x,
               int64_t at, int64_t row, int64_t col)
{
	int64_t index = row * x->ld + col;

	for (int i = p->nbatch - 1; i >= 0; i--) {
		index += at % p->extent[i] * x->batch[i];
		at /= p->extent[i];
	}
	return index;
}

static inline int
ckr_is_blocks(int type)
{
	return type == CKR_INT8X64 || type == CKR_NF4X64;
}

/* A row of weights from blocks, rounded to a type of 16 bits if `as` is one. */
static inline void
ckr_half_unpack(float *to, const struct ckr_half *x, int as, int64_t at,
                int64_t n)
{
	ckr_unpack(to, x->data, x->type, at, n);
	if (as == CKR_BF16)
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			to[i] = ckr_from_bf16(ckr_to_bf16(to[i]));
	else if (as == CKR_F16)
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			to[i] = ckr_from_f16(ckr_to_f16(to[i]));
}

/* rows x cols elements from `at` on as float32: as they lie, or packed in the
 * buffer; *ld: their row stride.  Weights from blocks have the type `as`. */
static inline const float *
ckr_half_open(float *buffer, const struct ckr_half *x, int as, int64_t at,
              int64_t rows, int64_t cols, int64_t *ld)
{
	*ld = cols;
	if (ckr_is_blocks(x->type)) {
		for (int64_t i = 0; i < rows; i++)
			ckr_half_unpack(buffer + i * cols, x, as,
			                at + i * x->ld, cols);
		return buffer;
	}
	if (x->type == CKR_F32) {
		*ld = x->ld;
		return (const float *)x->data + at;
	}
	for (int64_t i = 0; i < rows; i++)
		ckr_widen(buffer + i * cols, x->data, x->type,
		          at + i * x->ld, cols);
	return buffer;
}

/* The same of blocks, as bf16 in the buffer. */
static inline const uint16_t *
ckr_half_bf16(float *buffer, const struct ckr_half *x, int64_t at,
              int64_t rows, int64_t cols, int64_t *ld)
{
	uint16_t *to = (uint16_t *)buffer;
	float part[BLOCK_WEIGHTS];

	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j += BLOCK_WEIGHTS) {
			int64_t n = ckr_least(cols - j, BLOCK_WEIGHTS);

			ckr_unpack(part, x->data, x->type, at + i * x->ld + j,
			           n);
			ckr_narrow(to, CKR_BF16, i * cols + j, part, n);
		}
	*ld = cols;
	return to;
}

/* Write bias and accumulator of a tile to y[rows, cols], which sums are added
 * to; 0: there are none. */
static inline int
ckr_half_begin(float *y, int64_t ld, const struct ckr_half_product *p,
               int64_t at, int64_t i0, int64_t j0, int64_t rows, int64_t cols,
               float *bias)
{
	if (!p->acc.data && !p->bias.data)
		return 0;
	if (p->bias.data)
		ckr_widen(bias, p->bias.data, p->bias.type, j0, cols);
	for (int64_t i = 0; i < rows; i++) {
		float *row = y + i * ld;

		if (!p->acc.data) {
			memcpy(row, bias, (size_t)cols * sizeof *row);
			continue;
		}
		if (p->acc.data != p->y.data || p->y.type != CKR_F32)
			ckr_widen(row, p->acc.data, p->acc.type,
			          ckr_half_index(p, &p->acc, at, i0 + i, j0),
			          cols);
		if (!p->bias.data)
			continue;
#pragma omp simd
		for (int64_t j = 0; j < cols; j++)
			row[j] += bias[j];
	}
	return 1;
}

/* Sums of a tile: y = alpha op(a) op(b), or that added to y. */
static inline void
ckr_half_sums(const struct ckr_half_product *p, int64_t at, int64_t i0,
              int64_t j0, int64_t rows, int64_t cols, float *y, int64_t ld,
              int more, float *a, float *b, const struct ckr_env *env)
{
	int blocks = ckr_is_blocks(p->b.type);
	int native = env->bgemm && p->a.type == CKR_BF16
		&& (blocks || p->b.type == CKR_BF16);
	int64_t depth = native && !blocks ? p->k : p->depth, lda, ldb;

	for (int64_t k0 = 0; k0 < p->k; k0 += depth, more = 1) {
		int64_t k = ckr_least(p->k - k0, depth);
		int64_t ai = ckr_half_index(p, &p->a, at, p->ta ? k0 : i0,
		                            p->ta ? i0 : k0);
		int64_t bi = ckr_half_index(p, &p->b, at, p->tb ? j0 : k0,
		                            p->tb ? k0 : j0);
		const void *ap, *bp;

		if (native) {
			lda = p->a.ld;
			ldb = p->b.ld;
			ap = ckr_item(p->a.data, CKR_BF16, ai);
			bp = blocks ? ckr_half_bf16(b, &p->b, bi,
			                            p->tb ? cols : k,
			                            p->tb ? k : cols, &ldb)
				: ckr_item(p->b.data, CKR_BF16, bi);
		} else {
			ap = ckr_half_open(a, &p->a, p->a.type, ai,
			                   p->ta ? k : rows, p->ta ? rows : k,
			                   &lda);
			bp = ckr_half_open(b, &p->b, p->a.type, bi,
			                   p->tb ? cols : k, p->tb ? k : cols,
			                   &ldb);
		}
		ckr_product(native ? CKR_BF16 : CKR_F32, p->ta, p->tb, rows,
		            cols, k, p->alpha, ap, lda, bp, ldb,
		            more ? 1.0f : 0.0f, y, ld, env);
	}
}

/* The tile at (i0, j0) of matrix `at` of the batch.  workspace: tiles of those
 * of a, b and y that are not float32, and a row. */
static inline void
ckr_half_tile(const struct ckr_half_product *p, int64_t at, int64_t i0,
              int64_t j0, float *workspace, const struct ckr_env *env)
{
	int64_t rows = ckr_least(p->m - i0, p->rows);
	int64_t cols = ckr_least(p->n - j0, p->cols), ld;
	int64_t to = ckr_half_index(p, &p->y, at, i0, j0);
	int wide = p->y.type == CKR_F32, more;
	float *a = workspace;
	float *b = a + (p->a.type == CKR_F32 ? 0 : p->rows * p->depth);
	float *y = b + (p->b.type == CKR_F32 ? 0 : p->cols * p->depth);
	float *bias = y + (wide ? 0 : p->rows * p->cols);

	if (wide)
		y = (float *)p->y.data + to;
	ld = wide ? p->y.ld : cols;
	more = ckr_half_begin(y, ld, p, at, i0, j0, rows, cols, bias);
	if (p->k > 0)
		ckr_half_sums(p, at, i0, j0, rows, cols, y, ld, more, a, b,
		              env);
	for (int64_t i = 0; i < rows && p->k == 0 && !more; i++)
		memset(y + i * ld, 0, (size_t)cols * sizeof *y);
	for (int64_t i = 0; i < rows && !wide; i++)
		ckr_narrow(p->y.data, p->y.type, to + i * p->y.ld,
		           y + i * ld, cols);
}

void
ckr_half_matmul(const struct ckr_half_product *p, int64_t each,
                float *workspace, const struct ckr_env *env)
{
	int64_t across = (p->n + p->cols - 1) / p->cols;
	int64_t tiles = (p->m + p->rows - 1) / p->rows * across, all = tiles;

	for (int i = 0; i < p->nbatch; i++)
		all *= p->extent[i];
#pragma omp parallel for schedule(dynamic) num_threads(env->threads) \
	if (all > 1 && all * p->rows * p->cols * p->k > CKR_SMALL)
	for (int64_t t = 0; t < all; t++)
		ckr_half_tile(p, t / tiles, t % tiles / across * p->rows,
		              t % across * p->cols,
		              workspace + omp_get_thread_num() * each, env);
}
