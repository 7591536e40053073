/* Deflated pieces of a file (RFC 1951), and unnamed files. */
#ifndef RUNTIME_FILE_PACKED_H
#define RUNTIME_FILE_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"

struct packed {
	const char *name;               /* for messages */
	uint64_t at, stored;            /* where it lies, in how many bytes */
	uint64_t size;                  /* ... inflated */
	uint32_t crc;                   /* ... then, CRC-32 of ISO 3309 */
	int fd;                         /* inflated; -1: not yet */
};

/* Whether this was built to inflate anything. */
bool packed_can(void);
/* The first n bytes inflated; fd and path are of the file. */
ckr_status packed_peek(int fd, const char *path, const struct packed *,
                       void *out, size_t n, struct err *);
/* Inflate all of it, once, into a file without a name: exactly its size, with
 * its checksum. */
ckr_status packed_inflate(int fd, const char *path, struct packed *,
                          struct err *);
/* An empty file without a name where TMPDIR says, else in /tmp, if it has room
 * for so many bytes; whose names the file they are for. */
ckr_status temp_open(int *fd, uint64_t room, const char *whose, struct err *);

#endif
