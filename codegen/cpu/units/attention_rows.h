/* Rows of scores: what is seen, masked and dropped. */
#ifndef CODEGEN_CPU_UNITS_ATTENTION_ROWS_H
#define CODEGEN_CPU_UNITS_ATTENTION_ROWS_H

#include "attention.h"
#include "half.h"
#include "sums.h"
#include "words.h"

/* Rows of one head, or of its scores, as products take them: float32, or bf16
 * where the processor multiplies that. */
struct ckr_head {
	void *p;
	int type;
	int64_t ld;
};

static inline int
ckr_head_type(int type, const struct ckr_env *env)
{
	return type == CKR_BF16 && env->bgemm ? CKR_BF16 : CKR_F32;
}

/* float32 rows for the result from element `at` on: as they lie, or packed in
 * *room, which moves on. */
static inline struct ckr_head
ckr_head_room(void *x, int type, int64_t at, int64_t ld, int64_t rows,
              int64_t dim, float **room)
{
	struct ckr_head h = { *room, CKR_F32, dim };

	if (!x || type == CKR_F32)
		return (struct ckr_head){ x ? (float *)x + at : NULL, CKR_F32,
			ld };
	*room += rows * dim;
	return h;
}

/* The rows from element `at` on: as they lie, or widened in *room. */
static inline struct ckr_head
ckr_head_read(const void *x, int type, int64_t at, int64_t ld, int64_t rows,
              int64_t dim, float **room, const struct ckr_env *env)
{
	struct ckr_head h;

	if (ckr_head_type(type, env) == CKR_BF16)
		return (struct ckr_head){ ckr_item(x, type, at), type, ld };
	h = ckr_head_room((void *)x, type, at, ld, rows, dim, room);
	if (type != CKR_F32)
		for (int64_t i = 0; i < rows; i++)
			ckr_widen((float *)h.p + i * dim, x, type, at + i * ld,
			          dim);
	return h;
}

static inline void
ckr_head_write(void *x, int type, int64_t at, int64_t ld, int64_t rows,
               int64_t dim, struct ckr_head h)
{
	if (x && type != CKR_F32)
		for (int64_t i = 0; i < rows; i++)
			ckr_narrow(x, type, at + i * ld,
			           (float *)h.p + i * dim, dim);
}

/* Rows of float32 scores as products take them. */
static inline struct ckr_head
ckr_head_scores(const struct ckr_attention *a, float *s,
                const struct ckr_env *env)
{
	int type = ckr_head_type(a->type, env);

	return (struct ckr_head){ s, type,
		type == CKR_F32 ? a->ld : 2 * a->ld };
}

/* y = alpha op(a) op(b) + beta y; y is float32. */
static inline void
ckr_head_product(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
                 struct ckr_head a, struct ckr_head b, float beta,
                 struct ckr_head y, const struct ckr_env *env)
{
	ckr_product(a.type, ta, tb, m, n, k, alpha, a.p, a.ld, b.p, b.ld, beta,
	            y.p, y.ld, env);
}

/* Which of all queries this replica's query i is. */
static inline int64_t
ckr_query(const struct ckr_attention *a, int64_t i)
{
	return i + a->before[i >= a->stretch];
}

/* Keys that query i sees. */
static inline int64_t
ckr_visible(const struct ckr_attention *a, int64_t i)
{
	int64_t n = a->causal ? ckr_query(a, i) + 1 + a->shift : a->keys;

	return n < 0 ? 0 : n > a->keys ? a->keys : n;
}

/* Mask one row of n scores. */
static inline void
ckr_mask_row(const struct ckr_attention *a, float *s, const void *mask,
             int64_t b, int64_t h, int64_t i, int64_t n)
{
	int64_t at = b * a->mask[0] + h * a->mask[1] + i * a->mask[2];
	int64_t step = a->mask[3];

	if (a->mask_type == CKR_F32) {
		const float *m = (const float *)mask + at;

		if (step == 1) {
#pragma omp simd
			for (int64_t j = 0; j < n; j++)
				s[j] += m[j];
		} else {
			for (int64_t j = 0; j < n; j++)
				s[j] += m[j * step];
		}
	} else if (a->mask_type == CKR_BOOL) {
		const uint8_t *m = (const uint8_t *)mask + at;

		if (step == 1) {
#pragma omp simd
			for (int64_t j = 0; j < n; j++)
				s[j] = m[j] ? s[j] : -__builtin_inff();
		} else {
			for (int64_t j = 0; j < n; j++)
				s[j] = m[j * step] ? s[j] : -__builtin_inff();
		}
	} else if (a->mask_type != CKR_NONE) {
		for (int64_t j = 0; j < n; j++) {
			float m;

			ckr_widen(&m, mask, a->mask_type, at + j * step, 1);
			s[j] += m;
		}
	}
}

/* Index of a row's first score, for dropout. */
static inline uint64_t
ckr_score_index(const struct ckr_attention *a, int64_t b, int64_t h,
                int64_t i)
{
	int64_t at = b * (a->all ? a->all : a->heads) + h + a->first;

	return (uint64_t)((at * a->all_queries + ckr_query(a, i)) * a->keys);
}

static inline void
ckr_drop_row(const struct ckr_attention *a, float *s, uint64_t index,
             int64_t n, const struct ckr_env *env)
{
	uint32_t buffer[CKR_WORD_BUFFER];
	uint32_t below = ckr_drop_below(a->ratio, env);
	float scale = ckr_drop_scale(a->ratio, env);

	for (int64_t j = 0; j < n; j += CKR_WORDS) {
		int64_t m = n - j < CKR_WORDS ? n - j : CKR_WORDS;
		const uint32_t *w = ckr_words(buffer, index + (uint64_t)j, m,
		                              a->stream, env);

#pragma omp simd
		for (int64_t i = 0; i < m; i++)
			s[j + i] = w[i] >= below ? s[j + i] * scale : 0.0f;
	}
}

/* Rows of scores are worked on in blocks of 16: what lies between n and the
 * next multiple (a row has room for it) is set to what gives 0. */
static inline int64_t
ckr_fill16(float *s, int64_t n, float value)
{
	int64_t end = (n + 15) / 16 * 16;

	for (int64_t j = n; j < end; j++)
		s[j] = value;
	return end;
}

/* x[0..n-1] to where the row s has elements `at` to at + n - 1 of the type;
 * what lies there has been read.  n: at most 64. */
static inline void
ckr_score_put(float *s, int type, int64_t at, const float *x, int64_t n)
{
	uint16_t half[64];

	if (type == CKR_F32) {
		memcpy(s + at, x, (size_t)n * sizeof *x);
		return;
	}
	ckr_narrow(half, type, 0, x, n);
	memcpy((uint16_t *)s + at, half, (size_t)n * sizeof *half);
}

/* The row's elements from..to-1 of the type become 0. */
static inline void
ckr_score_zero(float *s, int type, int64_t from, int64_t to)
{
	ckr_zeros(ckr_item(s, type, from), type, to - from);
}

/* The n scores, a multiple of 16, become e^(s - m), of the type; returns their
 * sum, as ckr_sum(). */
static inline float
ckr_score_exp(float *s, int type, int64_t n, float m)
{
	float lane[64] = { 0 }, e[64];
	int64_t j = 0;

	for (; j + 64 <= n; j += 64) {
#pragma omp simd
		for (int i = 0; i < 64; i++) {
			e[i] = ckr_exp(s[j + i] - m);
			lane[i] += e[i];
		}
		ckr_score_put(s, type, j, e, 64);
	}
	for (int64_t i = 0; j + i < n; i += 16) {
#pragma omp simd
		for (int64_t k = i; k < i + 16; k++) {
			e[k] = ckr_exp(s[j + k] - m);
			lane[k] += e[k];
		}
	}
	ckr_score_put(s, type, j, e, n - j);
	return ckr_fold(lane);
}

/* Scores to probabilities of the type, but for the factor returned; what lies
 * beyond the n visible ones becomes 0. */
static inline float
ckr_score_row(float *s, int type, int64_t n, int64_t ncol, float *lse)
{
	int64_t end = ckr_fill16(s, n, -__builtin_inff());
	float m = ckr_max_of(s, end), sum;

	/* nothing to see; a NaN is not nothing */
	if (m == -__builtin_inff() && ckr_sum(s, n) <= 0.0f) {
		ckr_score_zero(s, type, 0, ncol);
		*lse = m;
		return 0.0f;
	}
	sum = ckr_score_exp(s, type, end, m);
	ckr_score_zero(s, type, end, ncol);
	*lse = m + ckr_log(sum);
	return 1.0f / sum;
}

#endif
