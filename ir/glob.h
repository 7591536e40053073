/* Shell-like patterns on names. */
#ifndef IR_GLOB_H
#define IR_GLOB_H

#include <stdbool.h>

/* *, ? and [...]; * also matches '/'.  The whole name must match. */
bool glob_match(const char *pattern, const char *s);
/* Whether one of n patterns does. */
bool glob_any(int n, const char *const *patterns, const char *s);

#endif
