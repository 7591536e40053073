/* Atomic writing: an unnamed file in the target's folder, fsync, a name, a
 * rename over the old file, fsync of the folder.  At any moment a reader, or
 * the user after a crash, finds the old file or the new one, whole; a killed
 * process leaves nothing behind, because the unnamed file vanishes with it
 * (where O_TMPFILE is missing, "PATH.tmpXXXXXX" may stay).  What need not
 * outlive a crash of the system is not flushed.
 */
#include "runtime/support/new_file.h"
#include "runtime/support/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *
with_suffix(const char *path, const char *suffix)
{
	size_t n = strlen(path) + strlen(suffix) + 1;
	char *s = malloc(n);

	if (s)
		snprintf(s, n, "%s%s", path, suffix);
	return s;
}

static bool
open_named(struct new_file *f)
{
	mode_t mask = umask(0);

	umask(mask);
	f->tmp = with_suffix(f->path, ".tmpXXXXXX");
	f->fd = f->tmp ? mkostemp(f->tmp, O_CLOEXEC) : -1;
	if (f->fd < 0) {
		free(f->tmp);
		f->tmp = NULL;
		return false;
	}
	if (fchmod(f->fd, 0666 & ~mask)) {
		/* stays private: an inconvenience, not a failure */
	}
	return true;
}

bool
new_file_start(struct new_file *f, const char *path, bool named)
{
	char *dir;

	*f = (struct new_file){ .fd = -1, .path = realpath(path, NULL) };
	if (!f->path)
		f->path = strdup(path);
	dir = f->path ? path_folder(f->path) : NULL;
	if (!dir)
		return false;
	if (!named)
		f->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	free(dir);
	return f->fd >= 0 || open_named(f);
}

/* Give an unnamed file a name beside the final one: link cannot replace. */
static bool
name_it(struct new_file *f)
{
	char proc[64], suffix[40];

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", f->fd);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(suffix, sizeof(suffix), ".tmp%ld-%u", (long)getpid(),
		         i);
		f->tmp = with_suffix(f->path, suffix);
		if (!f->tmp)
			return false;
		if (!linkat(AT_FDCWD, proc, AT_FDCWD, f->tmp,
		            AT_SYMLINK_FOLLOW))
			return true;
		free(f->tmp);
		f->tmp = NULL;
		if (errno != EEXIST)
			return false;
	}
	return false;
}

static bool
copy(int from, int to)
{
	char buf[65536];
	off_t at = 0;
	ssize_t n, k;

	while ((n = pread(from, buf, sizeof(buf), at)) > 0)
		for (ssize_t i = 0; i < n; i += k, at += k) {
			k = pwrite(to, buf + i, (size_t)(n - i), at);
			if (k <= 0)
				return false;
		}
	return n == 0;
}

/* Where an unnamed file cannot get a name (no /proc): copy it. */
static bool
copy_named(struct new_file *f, bool lasting)
{
	struct new_file to = { .fd = -1, .path = f->path };
	bool ok = open_named(&to) && copy(f->fd, to.fd);

	if (to.fd >= 0) {
		close(f->fd);
		f->fd = to.fd;
		f->tmp = to.tmp;
	}
	return ok && (!lasting || !fsync(f->fd));
}

/* Best effort: the file is there. */
static void
flush_folder(const char *path)
{
	char *dir = path_folder(path);
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(dir);
}

bool
new_file_place(struct new_file *f, bool lasting)
{
	bool ok = (!lasting || !fsync(f->fd))
		&& (f->tmp || name_it(f) || copy_named(f, lasting));

	if (ok) {
		ok = !close(f->fd);
		f->fd = -1;
	}
	if (!ok || rename(f->tmp, f->path))
		return false;
	free(f->tmp);
	f->tmp = NULL;
	if (lasting)
		flush_folder(f->path);
	return true;
}

void
new_file_abort(struct new_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->tmp)
		unlink(f->tmp);
	free(f->tmp);
	free(f->path);
	*f = (struct new_file){ .fd = -1 };
}
