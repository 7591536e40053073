/* One tensor in the tables of a library: its elements on one rank. */
#ifndef RUNTIME_LIBRARY_TENSOR_H
#define RUNTIME_LIBRARY_TENSOR_H

#include <stdbool.h>

#include "runtime/ckr_abi.h"

/* None of these is true of a tensor that is tied to another.
 * Whether ckr.h shows it to users; whether files of weights hold it; whether it
 * is a 16-bit copy of a parameter, which files do not hold; whether it is the
 * moving average of a parameter. */
bool tensor_is_public(const struct ckr_tensor *);
bool tensor_is_weight(const struct ckr_tensor *);
bool tensor_is_copy(const struct ckr_tensor *);
bool tensor_is_average(const struct ckr_tensor *);
/* Whether it is sharded over the ranks of a replica or over replicas. */
bool tensor_is_sharded(const struct ckr_tensor *);
/* Whether its elements lie in row-major order without gaps. */
bool tensor_is_dense(const struct ckr_tensor *);
uint64_t tensor_nelem(const struct ckr_tensor *);
uint64_t tensor_elem_bytes(const struct ckr_tensor *);
uint64_t tensor_nbytes(const struct ckr_tensor *);
/* How many of its elements, or of 8 bytes if they are smaller, so many bytes
 * hold. */
uint64_t tensor_piece(const struct ckr_tensor *, uint64_t nbytes);

/* n of its elements, from the at-th on, as a tensor of one dim; it is dense. */
struct ckr_tensor tensor_part(const struct ckr_tensor *, uint64_t at,
                              uint64_t n);

/* Whether its elements are blocks of quantised weights; the tensor of float32
 * weights that these hold, of other tensors the same. */
bool tensor_is_blocks(const struct ckr_tensor *);
struct ckr_tensor tensor_weights(const struct ckr_tensor *);

/* The range of bytes that a tensor's elements lie in, from its block's start.
 * Views have gaps, so the range may be larger than the elements. */
void tensor_reach(const struct ckr_tensor *, int64_t *from, int64_t *to);
/* Whether the ranges of two tensors of one block overlap. */
bool tensor_overlaps(const struct ckr_tensor *, const struct ckr_tensor *);
/* Copy a tensor's elements to or from row-major order without gaps. */
void tensor_pack(const struct ckr_tensor *, const void *tensor, void *dense);
void tensor_unpack(const struct ckr_tensor *, void *tensor, const void *dense);

#endif
