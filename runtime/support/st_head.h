/* The header of a safetensors file: 8 bytes with its length, and an object of
 * JSON with a member per tensor. */
#ifndef RUNTIME_SUPPORT_ST_HEAD_H
#define RUNTIME_SUPPORT_ST_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A stream to memory at *text, of *n bytes once it is flushed; the caller frees
 * it.  NULL: no memory. */
FILE *st_head_open(char **text, size_t *n);
/* Write a comma and the tensor's member; its data are bytes from..to-1. */
void st_head_tensor(FILE *, const char *name, const char *dtype, int rank,
                    const int64_t *dim, uint64_t from, uint64_t to);
/* End the object and close the stream, whose size is *n.  Blanks align
 * the data to `align`.  False: no memory. */
bool st_head_close(FILE *, const size_t *n, size_t align);
/* Encode the length n of a header; decode it. */
void st_head_length(unsigned char length[8], uint64_t n);
uint64_t st_head_size(const unsigned char length[8]);

enum { ST_HEAD_BEGINS = 9 };
/* Whether a file begins with a length below 4 GiB and a brace.  Test for this
 * format first: the length may look like the first bytes of another format. */
bool st_head_begins(const unsigned char first[ST_HEAD_BEGINS]);

#endif
