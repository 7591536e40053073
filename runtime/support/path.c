#include "runtime/support/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *
path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool
path_next(const char **list, char *dir, size_t size)
{
	size_t n;

	if (!*list || !**list)
		return false;
	n = strcspn(*list, ":");
	snprintf(dir, size, "%.*s", (int)n, *list);
	*list += n + ((*list)[n] == ':');
	return true;
}

char *
path_folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	if (slash == path)
		return strdup("/");
	return strndup(path, (size_t)(slash - path));
}

/* Of the file, or else of its folder; *there: which. */
static bool
stat_or_folder(const char *path, struct stat *st, bool *there)
{
	char *dir;
	bool ok;

	*there = !stat(path, st);
	if (*there)
		return true;
	dir = path_folder(path);
	ok = dir && !stat(dir, st);
	free(dir);
	return ok;
}

bool
path_same(const char *a, const char *b)
{
	struct stat s, t;
	bool there, too;

	return stat_or_folder(a, &s, &there) && stat_or_folder(b, &t, &too)
	       && there == too && s.st_dev == t.st_dev && s.st_ino == t.st_ino
	       && (there || !strcmp(path_base(a), path_base(b)));
}

/* Devices and pipes take any number of writers, and are no concern here. */
static bool
is_same_regular(const char *a, const char *b)
{
	struct stat st;

	return (stat(a, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
	       && (!strcmp(a, b) || path_same(a, b));
}

bool
clash_find(const struct named_file *f, size_t n, size_t *a, size_t *b)
{
	for (*a = 0; *a < n; ++*a)
		for (*b = *a + 1; *b < n; ++*b)
			if (f[*a].path && f[*b].path
			    && (f[*a].written || f[*b].written)
			    && is_same_regular(f[*a].path, f[*b].path))
				return true;
	return false;
}
