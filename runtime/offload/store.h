/* A file without a name, as memory. */
#ifndef RUNTIME_OFFLOAD_STORE_H
#define RUNTIME_OFFLOAD_STORE_H

#include "runtime/base/err.h"

struct store {
	int fd;                         /* -1: closed */
	char *dir;                      /* own copy */
};

/* A file of so many zeros in the folder, with all its blocks. */
ckr_status store_open(struct store *, const char *dir, uint64_t bytes,
                      struct err *);
void store_close(struct store *);
/* All n bytes at a position. */
ckr_status store_read(const struct store *, void *to, uint64_t at, uint64_t n,
                      struct err *);
ckr_status store_write(const struct store *, uint64_t at, const void *from,
                       uint64_t n, struct err *);

#endif
