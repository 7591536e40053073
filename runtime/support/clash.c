/* Which paths name the same file.  Devices and pipes take any number of
 * writers, and are no concern here. */
#include "runtime/support/clash.h"

#include <sys/stat.h>

#include "runtime/support/path.h"

static bool
same(const char *a, const char *b)
{
	struct stat st;

	return (stat(a, &st) || S_ISREG(st.st_mode)) && path_same(a, b);
}

bool
clash_find(const struct named_file *f, size_t n, size_t *a, size_t *b)
{
	for (*a = 0; *a < n; ++*a)
		for (*b = *a + 1; *b < n; ++*b)
			if (f[*a].path && f[*b].path
			    && (f[*a].written || f[*b].written)
			    && same(f[*a].path, f[*b].path))
				return true;
	return false;
}
