/* Element types of the runtime: sizes, names and conversion. */
#ifndef RUNTIME_BASE_DTYPE_H
#define RUNTIME_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/ckr_abi.h"

#define CKR_DTYPE_COUNT (CKR_NF4X64 + 1)

struct dtype_row {
	const char *text;               /* in messages and ckr.h */
	const char *st;                 /* in safetensors */
	const char *npy;                /* in .npy, without byte order; NULL */
	uint8_t nbytes;
	char cls;                       /* f i u b, q: blocks */
};
extern const struct dtype_row dtype_row[CKR_DTYPE_COUNT];

/* The type of this name; CKR_NONE: there is none. */
uint8_t dtype_from_text(const char *text);
uint8_t dtype_from_st(const char *st, size_t n);

/* Convert n elements of type st to type dt; src may be dst only if the types
 * are equal.  False if a value does not fit: an integer out of the type's
 * range, or a fraction that should become an integer.  *at: its index.  Blocks
 * of quantised weights fit their own type alone, see support/blocks.h. */
bool dtype_convert(void *dst, uint8_t dt, const void *src, uint8_t st,
                   size_t n, size_t *at);
double dtype_double(uint8_t, const void *element);

/* Elements and bytes of a tensor of these dims; false above 2^62. */
bool dtype_bytes(uint8_t, int rank, const int64_t *dim, uint64_t *nelem,
                 uint64_t *nbytes);

#endif
