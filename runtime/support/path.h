/* File names. */
#ifndef RUNTIME_SUPPORT_PATH_H
#define RUNTIME_SUPPORT_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Behind the last slash; in path itself. */
const char *path_base(const char *path);
/* The folder; NULL: no memory.  Caller frees. */
char *path_folder(const char *path);
/* Whether both lead to one file: device and inode tell, of files that are not
 * there yet those of the folder, and the name in it. */
bool path_same(const char *, const char *);

/* ---- whether a command would write over what it reads, or twice ---- */

struct named_file {
	const char *role;               /* "--save", "the model" */
	const char *path;               /* NULL: not given */
	bool written;
};

/* The first two files of the list that are one, at least one of them written;
 * false if there are none. */
bool clash_find(const struct named_file *, size_t n, size_t *a, size_t *b);

#endif
