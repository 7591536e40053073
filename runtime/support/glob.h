/* Shell-like patterns on names. */
#ifndef RUNTIME_SUPPORT_GLOB_H
#define RUNTIME_SUPPORT_GLOB_H

#include <stdbool.h>

/* *, ? and [...]; * also matches '/'.  The whole name must match. */
bool glob_match(const char *pattern, const char *s);
/* Whether one of n patterns does. */
bool glob_any(int n, const char *const *patterns, const char *s);

/* Names that an option asks for, or asks to leave out. */
struct glob_wish {
	const char *glob;
	bool wanted;
};

/* Of n wishes the last that matches s; NULL: none does. */
const struct glob_wish *glob_last(int n, const struct glob_wish *,
                                  const char *s);

#endif
