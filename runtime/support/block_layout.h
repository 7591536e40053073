/* How blocks of quantised weights lie in memory.  This text also goes into
 * generated code.
 *
 * A weight is its code, or the level of its code, times the scale.  Of two
 * 4-bit codes the first is the upper half of the byte.  Levels: Dettmers et
 * al., "QLoRA: efficient finetuning of quantized LLMs", 2023, appendix E. */
#ifndef RUNTIME_SUPPORT_BLOCK_LAYOUT_H
#define RUNTIME_SUPPORT_BLOCK_LAYOUT_H

#include <stdint.h>

enum { BLOCK_WEIGHTS = 64 };

struct block_int8 {
	float scale;
	int8_t code[BLOCK_WEIGHTS];
};

struct block_nf4 {
	float scale;
	uint8_t code[BLOCK_WEIGHTS / 2];
};

#define BLOCK_NF4_LEVELS { -1.0f, -0.6961928009986877f, \
	-0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f, \
	-0.18477343022823334f, -0.09105003625154495f, 0.0f, \
	0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, \
	0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, \
	0.7229568362236023f, 1.0f }

#endif
