/* Files: read from any offset, and written so that they appear whole or not at
 * all.  Both ckc and libckr add messages of their own.  Functions that return
 * false have set errno. */
#ifndef RUNTIME_SUPPORT_FILE_IO_H
#define RUNTIME_SUPPORT_FILE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Open a regular file for reading; errno 0: it is none.  A pipe without a
 * writer does not block. */
bool io_open(const char *path, int *fd, uint64_t *size);
/* Read n bytes from offset `at`; *got: how many, fewer at the end of the file.
 */
bool io_read(int fd, void *, size_t n, uint64_t at, size_t *got);
/* Write all n bytes at offset `at`. */
bool io_write(int fd, const void *, size_t n, uint64_t at);

/* ---- new files ---- */

/* Until new_file_place it has no name, or a temporary name in the same folder:
 * if the file system needs one, or if the caller wants only a rename to be left
 * that can fail. */
struct new_file {
	int fd;                         /* -1: none */
	char *path;                     /* final path, links resolved */
	char *tmp;                      /* temporary name; NULL: none */
};

bool new_file_start(struct new_file *, const char *path, bool named);
/* Give the file its name, replacing an older file.  lasting: flush file and
 * folder to disk. */
bool new_file_place(struct new_file *, bool lasting);
/* Close the file, and delete it unless it was placed.  Harmless after a failed
 * start. */
void new_file_abort(struct new_file *);

#endif
