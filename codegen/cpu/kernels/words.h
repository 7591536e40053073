/* Random words in runs. */
#ifndef CODEGEN_CPU_KERNELS_WORDS_H
#define CODEGEN_CPU_KERNELS_WORDS_H

#include "cpu.h"
#include "arith.h"
#include "random.h"

enum { CKR_WORDS = 1024, CKR_WORD_BUFFER = CKR_WORDS + 64 };

/* The words of elements index .. index + n - 1, n at most CKR_WORDS.  They
 * are written into buffer, the first one at the address returned. */
static inline const uint32_t *
ckr_words(uint32_t *buffer, uint64_t index, int64_t n, uint32_t stream,
          const struct ckr_env *env)
{
	uint64_t first = index / 4, nblock = (index % 4 + (uint64_t)n + 3) / 4;

	for (uint64_t b = 0; b < nblock; b += 16) {
#pragma omp simd
		for (uint32_t j = 0; j < 16; j++) {
			struct ckr_four f = ckr_philox(first + b + j, stream,
			                               env);

			buffer[(b + j) * 4] = f.w[0];
			buffer[(b + j) * 4 + 1] = f.w[1];
			buffer[(b + j) * 4 + 2] = f.w[2];
			buffer[(b + j) * 4 + 3] = f.w[3];
		}
	}
	return buffer + index % 4;
}

#endif
