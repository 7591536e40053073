/* Products of rows with the matrices of their experts.
 *
 * Rows are sorted by expert, and threads share tiles of each expert's product.
 * Rows of a tile are packed, as float32 or as bf16 for the processor's units;
 * nothing else is copied.  Tiles follow from shapes and indices alone, and one
 * thread computes a tile: results are the same for any number of threads.
 */
#include "experts.h"
#include "half.h"
#include "places.h"

/* order: rows by expert; begin[e]: where those of expert e begin. */
struct ckr_expert_rows {
	int64_t *order, *begin;
};

/* The matrix of row i; behind all others: its index is a fault, or its matrix
 * another replica's. */
static inline int64_t
ckr_expert_of(const struct ckr_experts *p, const void *idx, int64_t i,
              struct ckr_env *env)
{
	int64_t e = ckr_index(idx, i, p->idx_bytes, p->all, env) - p->first;

	return e < 0 || e >= p->experts ? p->experts : e;
}

/* A stable counting sort.  Rows without a matrix come last. */
static struct ckr_expert_rows
ckr_expert_sort(const struct ckr_experts *p, const void *idx,
                float *workspace, struct ckr_env *env)
{
	int64_t *begin = (int64_t *)workspace, *order = begin + p->experts + 2;

	memset(begin, 0, (size_t)(p->experts + 2) * sizeof *begin);
	for (int64_t i = 0; i < p->n; i++)
		begin[ckr_expert_of(p, idx, i, env) + 1]++;
	for (int64_t e = 0; e <= p->experts; e++)
		begin[e + 1] += begin[e];
	for (int64_t i = 0; i < p->n; i++)
		order[begin[ckr_expert_of(p, idx, i, NULL)]++] = i;
	/* each is now where the next one begins */
	for (int64_t e = p->experts + 1; e > 0; e--)
		begin[e] = begin[e - 1];
	begin[0] = 0;
	return (struct ckr_expert_rows){ order, begin };
}

static inline int64_t
ckr_expert_ceil(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* The type that products take: bf16 where the processor multiplies it. */
static inline int
ckr_expert_native(const struct ckr_experts *p, const struct ckr_env *env)
{
	return p->type == CKR_BF16 && env->bgemm ? CKR_BF16 : CKR_F32;
}

/* Columns from..from+k-1 of n rows of x [.., ld], which `order` lists. */
static inline void
ckr_expert_pack(float *to, const struct ckr_experts *p, int as, const void *x,
                int64_t ld, const int64_t *order, int64_t n, int64_t from,
                int64_t k)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t at = order[i] * ld + from;

		if (as == CKR_BF16)
			memcpy(ckr_item(to, as, i * k),
			       ckr_item(x, as, at), (size_t)k * 2);
		else
			ckr_widen(to + i * k, x, p->type, at, k);
	}
}

/* rows x cols elements of w from `at` on, as they lie or widened; *ld: their
 * row stride, at first that of w. */
static inline const void *
ckr_expert_weights(float *buffer, const struct ckr_experts *p, int as,
                   const void *w, int64_t at, int64_t rows, int64_t cols,
                   int64_t *ld)
{
	if (as == p->type)
		return ckr_item(w, as, at);
	for (int64_t i = 0; i < rows; i++)
		ckr_widen(buffer + i * cols, w, p->type, at + i * *ld, cols);
	*ld = cols;
	return buffer;
}

/* A tile's product, which is not cut again: parts of a transposed matrix with
 * few columns take half as long again. */
static inline void
ckr_expert_product(int as, int ta, int tb, int64_t m, int64_t n, int64_t k,
                   const void *a, int64_t lda, const void *b, int64_t ldb,
                   float beta, float *y, int64_t ldy,
                   const struct ckr_env *env)
{
	if (as == CKR_BF16)
		env->bgemm(ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, y, ldy);
	else
		env->sgemm_tile(ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, y,
		                ldy);
}

/* n rows of y, which `order` lists: columns j0..j0+cols-1. */
static inline void
ckr_expert_tile(const struct ckr_experts *p, void *y, const void *x,
                const void *w, const int64_t *order, int64_t n, int64_t e,
                int64_t j0, float *workspace, const struct ckr_env *env)
{
	int as = ckr_expert_native(p, env);
	int64_t cols = ckr_least(p->width - j0, p->cols), k, ld;
	float *a = workspace, *sum = a + p->rows * p->depth;
	float *b = sum + p->rows * p->cols;

	if (p->inner == 0)
		memset(sum, 0, (size_t)(n * cols) * sizeof *sum);
	for (int64_t k0 = 0; k0 < p->inner; k0 += k) {
		const void *at;

		k = ckr_least(p->inner - k0, p->depth);
		ld = p->tb ? p->inner : p->width;
		ckr_expert_pack(a, p, as, x, p->inner, order, n, k0, k);
		at = ckr_expert_weights(b, p, as, w, e * p->inner * p->width
		                        + (p->tb ? j0 * ld + k0
		                                 : k0 * ld + j0),
		                        p->tb ? cols : k, p->tb ? k : cols,
		                        &ld);
		ckr_expert_product(as, 0, p->tb, n, cols, k, a, k, at, ld,
		                   k0 ? 1.0f : 0.0f, sum, cols, env);
	}
	for (int64_t i = 0; i < n; i++)
		ckr_narrow(y, p->type, order[i] * p->width + j0,
		           sum + i * cols, cols);
}

/* Rows of one tile: n of expert e, in the order's places from `at` on. */
struct ckr_expert_span {
	int64_t e, at, n;
};

static inline int64_t
ckr_expert_tiles(const struct ckr_experts *p, const int64_t *begin, int64_t e)
{
	return ckr_expert_ceil(begin[e + 1] - begin[e], p->rows);
}

/* Tile t of all; those of an expert have about equal numbers of rows. */
static inline struct ckr_expert_span
ckr_expert_span(const struct ckr_experts *p, const int64_t *begin, int64_t t)
{
	int64_t e = 0, tiles, rows, n;

	while (t >= (tiles = ckr_expert_tiles(p, begin, e))) {
		t -= tiles;
		e++;
	}
	rows = begin[e + 1] - begin[e];
	n = ckr_expert_ceil(rows, tiles);
	return (struct ckr_expert_span){ e, begin[e] + t * n,
		ckr_least(rows - t * n, n) };
}

void
ckr_expert_matmul(const struct ckr_experts *p, void *y, const void *x,
                  const void *w, const void *idx, float *workspace,
                  struct ckr_env *env)
{
	struct ckr_expert_rows r = ckr_expert_sort(p, idx, workspace, env);
	int64_t across = ckr_expert_ceil(p->width, p->cols), tiles = 0;
	int64_t others = r.begin[p->experts];

	for (int64_t e = 0; e < p->experts; e++)
		tiles += ckr_expert_tiles(p, r.begin, e);
	CKR_SHARE(p->n * p->inner * p->width, schedule(dynamic))
	for (int64_t t = 0; t < tiles * across; t++) {
		struct ckr_expert_span span =
			ckr_expert_span(p, r.begin, t / across);

		ckr_expert_tile(p, y, x, w, r.order + span.at, span.n, span.e,
		                t % across * p->cols, workspace + p->tiles
		                + omp_get_thread_num() * p->thread, env);
	}
	for (int64_t i = others; i < p->n; i++)
		ckr_zeros(ckr_item(y, p->type, r.order[i] * p->width), p->type,
		          p->width);
}

/* Rows i0.. and columns j0.. of an expert's dw; `order`: its n rows. */
static inline void
ckr_expert_dw_tile(const struct ckr_experts *p, void *dw, const void *x,
                   const void *y, const int64_t *order, int64_t n, int64_t i0,
                   int64_t j0, float *workspace, const struct ckr_env *env)
{
	int as = ckr_expert_native(p, env), wide = p->type == CKR_F32;
	int64_t rows = ckr_least(p->inner - i0, p->rows), k;
	int64_t cols = ckr_least(p->width - j0, p->cols);
	int64_t ld = wide ? p->width : cols, at = i0 * p->width + j0;
	float *a = workspace, *b = a + p->rows * p->depth;
	float *sum = wide ? (float *)dw + at : b + p->cols * p->depth;

	for (int64_t i = 0; i < rows && n == 0; i++)
		memset(sum + i * ld, 0, (size_t)cols * sizeof *sum);
	for (int64_t r0 = 0; r0 < n; r0 += k) {
		k = ckr_least(n - r0, p->depth);
		ckr_expert_pack(a, p, as, x, p->inner, order + r0, k, i0,
		                rows);
		ckr_expert_pack(b, p, as, y, p->width, order + r0, k, j0,
		                cols);
		ckr_expert_product(as, 1, 0, rows, cols, k, a, rows, b, cols,
		                   r0 ? 1.0f : 0.0f, sum, ld, env);
	}
	for (int64_t i = 0; i < rows && !wide; i++)
		ckr_narrow(dw, p->type, at + i * p->width, sum + i * cols,
		           cols);
}

void
ckr_expert_dw(const struct ckr_experts *p, void *dw, const void *a,
              const void *b, const void *idx, float *workspace,
              struct ckr_env *env)
{
	struct ckr_expert_rows r = ckr_expert_sort(p, idx, workspace, env);
	int64_t across = ckr_expert_ceil(p->width, p->cols);
	int64_t tiles = ckr_expert_ceil(p->inner, p->rows) * across;

	CKR_SHARE((p->n + p->experts) * p->inner * p->width, schedule(dynamic))
	for (int64_t t = 0; t < p->experts * tiles; t++) {
		int64_t e = t / tiles, at = t % tiles;

		ckr_expert_dw_tile(p, ckr_item(dw, p->type, e * p->inner
		                               * p->width), a, b,
		                   r.order + r.begin[e],
		                   r.begin[e + 1] - r.begin[e],
		                   at / across * p->rows,
		                   at % across * p->cols, workspace + p->tiles
		                   + omp_get_thread_num() * p->thread, env);
	}
}

/* Into a list of int64 or int32, if there is one. */
static inline void
ckr_put_index(void *to, int64_t i, int nbytes, int64_t e)
{
	if (to && nbytes == 8)
		((int64_t *)to)[i] = e;
	else if (to)
		((int32_t *)to)[i] = (int32_t)e;
}

void
ckr_expert_slots(const struct ckr_slots *p, int64_t *slot, int64_t *row,
                 void *expert, const void *idx, int64_t *counts,
                 struct ckr_env *env)
{
	int64_t each = p->all / p->replicas, slots = p->replicas * p->room;
	int64_t most = 0;

	memset(counts, 0, (size_t)p->replicas * sizeof *counts);
	for (int64_t s = 0; s < slots; s++) {
		ckr_put_index(row, s, 8, p->n);
		ckr_put_index(expert, s, p->idx_bytes, (s / p->room + 1)
		              % p->replicas * each);
	}
	for (int64_t i = 0; i < p->n; i++) {
		int64_t e = ckr_index(idx, i, p->idx_bytes, p->all, env), d, s;

		ckr_put_index(slot, i, 8, slots);
		if (e < 0)
			continue;
		d = e / each;
		s = d * p->room + counts[d];
		if (++counts[d] > most)
			most = counts[d];
		if (counts[d] > p->room)
			continue;
		ckr_put_index(slot, i, 8, s);
		ckr_put_index(row, s, 8, i);
		ckr_put_index(expert, s, p->idx_bytes, e);
	}
	if (most > p->room && !p->drop)
		ckr_fault(env, CKR_BAD_CAPACITY, 0, ckr_expert_ceil(
			100 * most * p->replicas, p->n));
}
