/* Room file: files of arrays.  This header: new files that appear whole or not
 * at all, and reads and writes of all bytes.
 *
 * in      paths, arrays to write
 * out     arrays of .safetensors, .npy, .npz and token files, by name
 * must not know models and what arrays are for
 */
#ifndef RUNTIME_FILE_FILE_H
#define RUNTIME_FILE_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "runtime/base/err.h"
#include "runtime/support/file_io.h"

ckr_status new_file_open(struct new_file *, const char *path, struct err *);
/* The same under a temporary name in the folder until it is committed. */
ckr_status new_file_open_named(struct new_file *, const char *path,
                               struct err *);
/* Flush to disk, give it its name over any older file, flush the folder. */
ckr_status new_file_commit(struct new_file *, struct err *);
/* Call `print` and commit the file.  A failure, also that of print, deletes the
 * file; print sets its own message. */
ckr_status new_file_print(struct new_file *,
                          ckr_status (*print)(FILE *, void *user), void *user,
                          struct err *);

/* Write all n bytes at offset `at`; a failure names path. */
ckr_status file_write(int fd, const char *path, const void *, size_t n,
                      uint64_t at, struct err *);
/* Read n bytes; *got: their number, fewer at the end of the file.  file_read
 * reads all n bytes or fails. */
ckr_status file_some(int fd, const char *path, void *, size_t n, uint64_t at,
                     size_t *got, struct err *);
ckr_status file_read(int fd, const char *path, void *, size_t n, uint64_t at,
                     struct err *);
/* n bytes from `at` on as text that NUL ends; NULL after a failure.  Caller
 * frees. */
ckr_status file_text(int fd, const char *path, uint64_t n, uint64_t at,
                     char **text, struct err *);
/* Open for reading; refuses what is not a regular file. */
ckr_status file_open(const char *path, int *fd, uint64_t *size, struct err *);
/* "DIR/NAME.so" to "DIR/NAME<suffix>" (any extension is replaced); NULL: no
 * memory.  Caller frees. */
char *file_beside(const char *path, const char *suffix);

#endif
