/* A file that appears whole or not at all.  Until new_file_place it has no
 * name, or a temporary name in the same folder: if the file system needs one,
 * or if the caller wants only a rename to be left that can fail.  Functions
 * that return false have set errno. */
#ifndef RUNTIME_SUPPORT_NEW_FILE_H
#define RUNTIME_SUPPORT_NEW_FILE_H

#include <stdbool.h>

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
