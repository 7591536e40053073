/* Shell-like patterns on names. */
#ifndef RUNTIME_SUPPORT_GLOB_H
#define RUNTIME_SUPPORT_GLOB_H

#include <stdbool.h>

/* Whether the whole name matches a pattern of *, ? and [...]; * also matches
 * '/'. */
bool glob_match(const char *pattern, const char *s);
/* Whether one of n patterns matches. */
bool glob_any(int n, const char *const *patterns, const char *s);

/* Names or patterns of an option, in the order in which they were given. */
struct name_list {
	int n;
	const char *const *v;
};

/* A pattern of names that an option asks to include or to exclude. */
struct glob_wish {
	const char *glob;
	bool wanted;
};

/* The last of n wishes that matches s; NULL: none does. */
const struct glob_wish *glob_last(int n, const struct glob_wish *,
                                  const char *s);

#endif
