/* Variables of the environment that switch something on. */
#ifndef RUNTIME_SUPPORT_ENV_H
#define RUNTIME_SUPPORT_ENV_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Whether the variable is set, and neither empty nor 0. */
static inline bool
env_is_on(const char *name)
{
	const char *s = getenv(name);

	return s && *s && strcmp(s, "0") != 0;
}

#endif
