#include "runtime/support/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

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

bool
number_size(const char *s, int64_t *nbytes)
{
	static const struct {
		const char *unit;
		double bytes;
	} units[] = {
		{ "", 1 }, { "B", 1 }, { "kB", 1e3 }, { "MB", 1e6 },
		{ "GB", 1e9 }, { "TB", 1e12 }, { "k", 1e3 },
		{ "M", 1e6 }, { "G", 1e9 }, { "T", 1e12 },
		{ "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 },
		{ "TiB", 0x1p40 },
	};
	char *end;
	double x;

	if (number_whole(s, INT64_MAX, (uint64_t *)nbytes))
		return true;
	if (!isdigit((unsigned char)*s))
		return false;
	x = strtod(s, &end);
	while (*end == ' ')
		end++;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcasecmp(end, units[i].unit)) {
			x *= units[i].bytes;
			*nbytes = (int64_t)x;
			return x < 0x1p62;
		}
	return false;
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
