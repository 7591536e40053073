/* Blocks of memory that are allocated once, touched once and never grow. */
#ifndef RUNTIME_BASE_MEM_H
#define RUNTIME_BASE_MEM_H

#include "runtime/base/err.h"

struct block {
	unsigned char *p;               /* aligned to 64; NULL: none */
	uint64_t size;                  /* usable bytes */
	void *map;                      /* with the guard page behind */
	uint64_t mapped;
	bool painted;                   /* filled with BLOCK_PAINT */
};

enum { BLOCK_PAINT = 0xb5 };

/* Map size bytes and touch them in parallel: zero, or painted so that
 * block_touched can find what was written.  at_end: the block ends at an
 * unmapped page, so that overruns fault. */
ckr_status block_map(struct block *, uint64_t size, bool paint, bool at_end,
                     int threads, struct err *);
/* Return the pages within bytes from .. to - 1 to the system. */
void block_forget(const struct block *, uint64_t from, uint64_t to);
void block_unmap(struct block *);
/* End of the last byte that was overwritten, rounded up to 64. */
uint64_t block_touched(const struct block *);
/* The process's anonymous resident memory; 0 if the system does not say. */
uint64_t mem_anonymous(void);

/* Room for element n of a list of elements of `size` bytes that grows by one at
 * a time from none, so that it has to move where n is a power of two.  NULL: no
 * memory, and the list is as it was. */
void *mem_append(void *list, size_t n, size_t size);
/* The hash h continued over n more bytes. */
uint64_t mem_hash(uint64_t h, const void *, uint64_t n);

#endif
