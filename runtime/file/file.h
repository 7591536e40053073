/* Files that appear whole or not at all, and complete reads and writes. */
#ifndef RUNTIME_FILE_FILE_H
#define RUNTIME_FILE_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "runtime/base/err.h"
#include "runtime/support/new_file.h"

ckr_status new_file_open(struct new_file *, const char *path, struct err *);
/* With a name beside its place until it is there. */
ckr_status new_file_open_named(struct new_file *, const char *path,
                               struct err *);
/* Flush to disk, give it its name over any older file, flush the folder. */
ckr_status new_file_commit(struct new_file *, struct err *);
/* Commit what `print` writes; after a failure, also its own, which is returned
 * and whose words are its own, the file is dropped. */
ckr_status new_file_print(struct new_file *,
                          ckr_status (*print)(FILE *, void *user), void *user,
                          struct err *);

/* All n bytes at `at`, or a failure that names path. */
ckr_status file_write(int fd, const char *path, const void *, size_t n,
                      uint64_t at, struct err *);
/* Up to n bytes, at the end of the file none: *got. */
ckr_status file_some(int fd, const char *path, void *, size_t n, uint64_t at,
                     size_t *got, struct err *);
ckr_status file_read(int fd, const char *path, void *, size_t n, uint64_t at,
                     struct err *);
/* Open for reading; refuses what is not a regular file. */
ckr_status file_open(const char *path, int *fd, uint64_t *size, struct err *);
/* "DIR/NAME.so" to "DIR/NAME<suffix>" (any extension is replaced); NULL: no
 * memory.  Caller frees. */
char *file_beside(const char *path, const char *suffix);

#endif
