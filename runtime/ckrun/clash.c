/* Which paths name the same file.
 *
 * Files that are there are the same if device and inode are; of a file that is
 * not there yet, the folder's device and inode and the name in it count.
 * Devices and pipes take any number of writers, and are no concern here.
 */
#include "runtime/ckrun/clash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/file/file.h"

struct identity {
	bool known, there;
	dev_t dev;
	ino_t ino;
	const char *name;               /* unless there */
};

/* The folder of path; false if that cannot be found. */
static bool
folder(const char *path, struct stat *st)
{
	char *dir = file_folder(path);
	bool ok = dir && !stat(dir, st);

	free(dir);
	return ok;
}

static struct identity
identify(const char *path)
{
	struct identity id = { .known = false };
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (!stat(path, &st)) {
		id.known = S_ISREG(st.st_mode);
		id.there = true;
	} else if (folder(path, &st)) {
		id.known = true;
		id.name = slash ? slash + 1 : path;
	} else {
		return id;
	}
	id.dev = st.st_dev;
	id.ino = st.st_ino;
	return id;
}

static bool
same(const char *a, const char *b)
{
	struct identity x = identify(a), y = identify(b);

	return x.known && y.known && x.there == y.there && x.dev == y.dev
	       && x.ino == y.ino && (x.there || !strcmp(x.name, y.name));
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
