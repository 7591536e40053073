/* Weights in blocks of 64: 8-bit integers or 4-bit codes, and a scale.
 *
 * int8x64  the scale is 1/127 of the block's largest magnitude; a weight is
 *          its code times the scale (symmetric absmax quantisation)
 * nf4x64   the scale is the largest magnitude; a weight is the level of its
 *          code times that.  Codes and scales equal those of bitsandbytes with
 *          blocks of 64, without double quantisation. */
#ifndef RUNTIME_SUPPORT_BLOCKS_H
#define RUNTIME_SUPPORT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/support/block_layout.h"

/* Whether a type, numbered as dtypes.h orders them, is of blocks. */
bool blocks_is(uint8_t dtype);
/* n blocks from n * BLOCK_WEIGHTS floats, or those from n blocks.  A block with
 * a float that is not finite gets the scale NaN. */
void blocks_pack(uint8_t dtype, void *to, const float *from, size_t n);
void blocks_unpack(uint8_t dtype, float *to, const void *from, size_t n);

#endif
