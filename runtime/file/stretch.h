/* Regular sets of elements of a tensor: which of them a part of a checkpoint
 * has. */
#ifndef RUNTIME_FILE_STRETCH_H
#define RUNTIME_FILE_STRETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/file/array.h"

/* Elements first + i stride .. first + i stride + length - 1 of a tensor, in
 * row-major order, for i < count.  Text: "FIRST+LENGTH/STRIDE*COUNT", or
 * "FIRST+LENGTH" of one. */
struct stretch {
	uint64_t first, length, stride, count;
};

/* "96,64; 0+32/64*96, ...": the shape of a tensor, and n stretches of it, in
 * memory that the caller frees; NULL: no memory. */
char *stretch_text(int rank, const int64_t *dim, const struct stretch *,
                   size_t n);
/* Read the shape into an array of known type, up to its semicolon, and move *s
 * behind it; false: there is none, or it is too large. */
bool stretch_read_shape(const char **s, struct array *);
/* The same of the next stretch; false also unless it lies within nelem
 * elements, and its runs are apart. */
bool stretch_read(const char **s, uint64_t nelem, struct stretch *);
/* Behind its last element. */
uint64_t stretch_end(const struct stretch *);
/* How many of its elements are before element `at` of the tensor. */
uint64_t stretch_before(const struct stretch *, uint64_t at);
/* How many elements from `at` on it has without a gap; 0: not that one. */
uint64_t stretch_at(const struct stretch *, uint64_t at);
/* Whether they have an element in common, *at; in closed form.  *odd: unknown,
 * as both have several runs, at different distances. */
bool stretch_meets(const struct stretch *, const struct stretch *,
                   uint64_t *at, bool *odd);

#endif
