#include "runtime/support/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool
number_whole(const char *s, uint64_t max, uint64_t *x)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	*x = strtoull(s, &end, 10);
	return !*end && !errno && *x <= max;
}

bool
number_real(const char *s, double *x)
{
	char *end;

	if (!*s || isspace((unsigned char)*s))
		return false;
	*x = strtod(s, &end);
	return !*end && isfinite(*x);
}

const char *
number_bytes(char buf[24], double bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	int i = 0;

	while (bytes >= 1023.95 && i < 4) {
		bytes /= 1024;
		i++;
	}
	snprintf(buf, 24, "%.*f %s", i ? 1 : 0, bytes, unit[i]);
	return buf;
}
