/* File names. */
#ifndef RUNTIME_SUPPORT_PATH_H
#define RUNTIME_SUPPORT_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* The part of path after the last slash. */
const char *path_base(const char *path);
/* Write to `dir` the next folder of a list that colons separate, such as PATH,
 * and move *list behind it; longer ones are cut off.  false: there is none, or
 * no list. */
bool path_next(const char **list, char *dir, size_t size);
/* The folder; NULL: no memory.  Caller frees. */
char *path_folder(const char *path);
/* Whether both are one file, by device and inode; for files that do not exist
 * yet, by those of the folder and the name in it. */
bool path_same(const char *, const char *);

/* ---- whether a command would write over what it reads, or twice ---- */

struct named_file {
	const char *role;               /* "--save", "the model" */
	const char *path;               /* NULL: not given */
	bool written;
};

/* Find the first two entries of the list that are one file, of which at least
 * one is written; false: there are none. */
bool clash_find(const struct named_file *, size_t n, size_t *a, size_t *b);

#endif
