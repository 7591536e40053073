/* The header of a safetensors file: 8 bytes with its length, and an object of
 * JSON with a member per tensor. */
#ifndef RUNTIME_SUPPORT_ST_HEAD_H
#define RUNTIME_SUPPORT_ST_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A comma and the tensor's member: its data are bytes from..to-1. */
void st_head_tensor(FILE *, const char *name, const char *dtype, int rank,
                    const int64_t *dim, uint64_t from, uint64_t to);
/* End the object and close the stream, one of open_memstream that keeps its
 * size in *n: blanks make the data begin on a multiple of align.  False: no
 * memory. */
bool st_head_close(FILE *, const size_t *n, size_t align);
/* The 8 bytes before a header of n. */
void st_head_length(unsigned char length[8], uint64_t n);
uint64_t st_head_size(const unsigned char length[8]);

enum { ST_HEAD_BEGINS = 9 };
/* Whether a file begins with the length of such a header, below 4 GiB, and a
 * brace.  The length's first bytes may be any: ask this before any other format
 * that is known by its first bytes. */
bool st_head_begins(const unsigned char first[ST_HEAD_BEGINS]);

#endif
