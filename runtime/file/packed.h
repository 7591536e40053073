/* Deflated pieces of a file (RFC 1951), and unnamed files. */
#ifndef RUNTIME_FILE_PACKED_H
#define RUNTIME_FILE_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"

struct packed {
	const char *name;               /* for messages */
	uint64_t at, stored;            /* offset and size in the file */
	uint64_t size;                  /* inflated size */
	uint32_t crc;                   /* CRC-32 (ISO 3309) when inflated */
	int fd;                         /* the inflated file; -1: not yet */
};

/* Whether this build can inflate. */
bool packed_can(void);
/* Inflate the first n bytes; fd and path are the file's. */
ckr_status packed_peek(int fd, const char *path, const struct packed *,
                       void *out, size_t n, struct err *);
/* Inflate all bytes, once, into an unnamed file; fails unless size and checksum
 * are right. */
ckr_status packed_inflate(int fd, const char *path, struct packed *,
                          struct err *);
/* Open an empty unnamed file in TMPDIR, else in /tmp, if there is space for
 * `room` bytes.  whose: the file that they are for, in messages. */
ckr_status temp_open(int *fd, uint64_t room, const char *whose, struct err *);

#endif
