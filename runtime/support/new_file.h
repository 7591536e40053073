/* A file that appears whole or not at all.  Until new_file_place it has no
 * name, or one beside its place: where the file system cannot do without, and
 * where nothing but a rename shall be left to fail.  What returns false has
 * set errno. */
#ifndef RUNTIME_SUPPORT_NEW_FILE_H
#define RUNTIME_SUPPORT_NEW_FILE_H

#include <stdbool.h>

struct new_file {
	int fd;                         /* -1: none */
	char *path;                     /* final, links resolved */
	char *tmp;                      /* NULL: nameless */
};

bool new_file_start(struct new_file *, const char *path, bool named);
/* Give it its name over any older file; lasting: with file and folder flushed
 * to disk. */
bool new_file_place(struct new_file *, bool lasting);
/* Forget it: it is dropped unless it was placed.  Harmless after a failed
 * start. */
void new_file_abort(struct new_file *);

#endif
