/* Weights of 4 bits in the files of bitsandbytes, read as float32.
 *
 * W is a matrix of codes, two in a byte, the first in the upper half.  Beside
 * it are W.absmax, a scale for each block of consecutive weights; W.quant_map,
 * the 16 levels; W.quant_state.bitsandbytes__nf4 (or fp4), JSON with the shape
 * and the size of blocks.  With double quantisation, W.absmax has codes of 8
 * bits, into W.nested_quant_map, times W.nested_absmax of their block, plus an
 * offset in the JSON. */
#ifndef RUNTIME_FILE_CODES_H
#define RUNTIME_FILE_CODES_H

#include "runtime/file/array.h"

struct weight_codes {
	float level[16], nested_level[256];
	uint64_t block, nested_block;   /* weights, scales of a block */
	uint64_t scale_at, nested_at;   /* places in the file */
	bool nested;
	float offset;
};

/* Make one float32 array of each matrix of codes and what is beside it, in a
 * file whose arrays are not sorted yet. */
ckr_status codes_find(struct array_file *, struct err *);
/* Elements first .. first + n - 1 of an array with codes. */
ckr_status codes_read(const struct array_file *, const struct array *,
                      uint64_t first, uint64_t n, float *out, struct err *);

#endif
