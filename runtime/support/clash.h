/* Whether a command would write over what it reads, or write a file twice. */
#ifndef CKR_CLASH_H
#define CKR_CLASH_H

#include <stdbool.h>
#include <stddef.h>

struct named_file {
	const char *role;               /* "--save", "the model" */
	const char *path;               /* NULL: not given */
	bool written;
};

/* The first two files of the list that are one, at least one of them written;
 * false if there are none. */
bool clash_find(const struct named_file *, size_t n, size_t *a, size_t *b);

#endif
