/* Weights from blocks of quantised ones. */
#ifndef CODEGEN_CPU_KERNELS_DEQUANTIZE_H
#define CODEGEN_CPU_KERNELS_DEQUANTIZE_H

#include "block_layout.h"
#include "half.h"

static inline int64_t
ckr_block_bytes(int type)
{
	return type == CKR_INT8X64 ? (int64_t)sizeof(struct block_int8)
		: (int64_t)sizeof(struct block_nf4);
}

#if defined(__AVX512F__) && !defined(__clang__)
/* The levels are one register, which codes permute. */
typedef float ckr_levels __attribute__((vector_size(64), aligned(4),
                                        may_alias));
typedef int ckr_level_index __attribute__((vector_size(64)));
typedef unsigned char ckr_code_bytes __attribute__((vector_size(16),
                                                    aligned(1), may_alias));

static inline void
ckr_unpack_nf4(float *to, const struct block_nf4 *b)
{
	const ckr_levels level = BLOCK_NF4_LEVELS;
	const ckr_level_index first = { 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
		21, 6, 22, 7, 23 }, second = first + 8;

	for (int i = 0; i < BLOCK_WEIGHTS / 2; i += 16) {
		ckr_level_index code = __builtin_convertvector(
			*(const ckr_code_bytes *)(b->code + i),
			ckr_level_index);
		ckr_levels high = __builtin_shuffle(level, code >> 4)
			* b->scale;
		ckr_levels low = __builtin_shuffle(level, code & 15) * b->scale;

		*(ckr_levels *)(to + 2 * i) =
			__builtin_shuffle(high, low, first);
		*(ckr_levels *)(to + 2 * i + 16) =
			__builtin_shuffle(high, low, second);
	}
}
#else
static inline void
ckr_unpack_nf4(float *to, const struct block_nf4 *b)
{
	static const float level[16] = BLOCK_NF4_LEVELS;

#pragma omp simd
	for (int i = 0; i < BLOCK_WEIGHTS / 2; i++) {
		to[2 * i] = level[b->code[i] >> 4] * b->scale;
		to[2 * i + 1] = level[b->code[i] & 15] * b->scale;
	}
}
#endif

/* to[0..63] = a block of this type. */
static inline void
ckr_unpack_block(float *to, const void *block, int type)
{
	if (type == CKR_INT8X64) {
		const struct block_int8 *b = block;

#pragma omp simd
		for (int i = 0; i < BLOCK_WEIGHTS; i++)
			to[i] = (float)b->code[i] * b->scale;
	} else {
		ckr_unpack_nf4(to, block);
	}
}

/* to[0..n-1] = the weights at..at+n-1 of blocks of this type. */
static inline void
ckr_unpack(float *to, const void *from, int type, int64_t at, int64_t n)
{
	int64_t size = ckr_block_bytes(type);
	float whole[BLOCK_WEIGHTS];

	for (int64_t i = 0; i < n;) {
		const char *block = (const char *)from
			+ (at + i) / BLOCK_WEIGHTS * size;
		int64_t first = (at + i) % BLOCK_WEIGHTS;
		int64_t some = ckr_least(BLOCK_WEIGHTS - first, n - i);

		if (some == BLOCK_WEIGHTS) {
			ckr_unpack_block(to + i, block, type);
		} else {
			ckr_unpack_block(whole, block, type);
			memcpy(to + i, whole + first,
			       (size_t)some * sizeof *to);
		}
		i += some;
	}
}

/* y = the weights of n blocks of this type. */
static inline void
ckr_dequantize(void *y, int ytype, const void *q, int qtype, int64_t n,
               const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (n * BLOCK_WEIGHTS > CKR_SMALL)
	for (int64_t i = 0; i < n; i++) {
		float x[BLOCK_WEIGHTS];

		ckr_unpack_block(x, (const char *)q
		                 + i * ckr_block_bytes(qtype), qtype);
		ckr_narrow(y, ytype, i * BLOCK_WEIGHTS, x, BLOCK_WEIGHTS);
	}
}

#endif
