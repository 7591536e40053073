/* Atomic writing: an unnamed file in the target's folder, fsync, a name, a
 * rename over the old file, fsync of the folder.  At any moment a reader, or
 * the user after a crash, finds the old file or the new one, whole.  The
 * unnamed file vanishes with a killed process; killed between name and rename,
 * or where O_TMPFILE is missing, it leaves "PATH.ckc-tmpN", which the next
 * file for the same place takes away: who writes holds a lock on it (where
 * there are no locks nobody gets one, and all stays).  What need not outlive a
 * crash of the system is not flushed.
 */
#include "runtime/support/file_io.h"
#include "runtime/support/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- bytes ---- */

enum { MOST_AT_ONCE = 1 << 30 };

bool
io_open(const char *path, int *fd, uint64_t *size)
{
	struct stat st;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0)
		return false;
	if (!fstat(*fd, &st) && S_ISREG(st.st_mode)) {
		*size = (uint64_t)st.st_size;
		return true;
	}
	close(*fd);
	*fd = -1;
	errno = 0;
	return false;
}

bool
io_read(int fd, void *data, size_t n, uint64_t at, size_t *got)
{
	for (*got = 0; *got < n;) {
		size_t left = n - *got;
		ssize_t k = pread(fd, (char *)data + *got,
		                  left < MOST_AT_ONCE ? left : MOST_AT_ONCE,
		                  (off_t)(at + *got));

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k == 0;
		*got += (size_t)k;
	}
	return true;
}

bool
io_write(int fd, const void *data, size_t n, uint64_t at)
{
	for (const char *p = data; n;) {
		ssize_t k = pwrite(fd, p, n < MOST_AT_ONCE ? n : MOST_AT_ONCE,
		                   (off_t)at);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
		at += (uint64_t)k;
	}
	return true;
}

/* ---- new files ---- */

static bool
is_file_at(int fd, const char *path)
{
	struct stat a, b;

	return !fstat(fd, &a) && !stat(path, &b) && a.st_dev == b.st_dev
		&& a.st_ino == b.st_ino;
}

/* Remove what a dead writer left; false when its writer may live.  Only who
 * holds the lock renames or removes the file. */
static bool
remove_stale(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return errno == ENOENT;
	ok = !flock(fd, LOCK_EX | LOCK_NB) && is_file_at(fd, path)
		&& !unlink(path);
	close(fd);
	return ok;
}

/* A new file of this name: the unnamed one under it (link cannot replace), or
 * an empty one.  False with EEXIST: it is somebody's. */
static bool
make_named(struct new_file *f)
{
	char proc[64];

	if (f->fd >= 0) {
		snprintf(proc, sizeof(proc), "/proc/self/fd/%d", f->fd);
		return !linkat(AT_FDCWD, proc, AT_FDCWD, f->tmp,
		               AT_SYMLINK_FOLLOW);
	}
	f->fd = open(f->tmp, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
	if (f->fd < 0)
		return false;
	flock(f->fd, LOCK_EX | LOCK_NB);
	if (is_file_at(f->fd, f->tmp))
		return true;
	close(f->fd);                   /* taken for stale before the lock */
	f->fd = -1;
	errno = EEXIST;
	return false;
}

/* A name beside the final one. */
static bool
link_temp_name(struct new_file *f)
{
	size_t n = strlen(f->path) + sizeof(".ckc-tmp99");
	bool ok = false;

	f->tmp = malloc(n);
	for (unsigned i = 0; f->tmp && i < 100 && !ok; i++) {
		snprintf(f->tmp, n, "%s.ckc-tmp%u", f->path, i);
		ok = make_named(f);
		if (!ok && errno != EEXIST)
			break;
		if (!ok && remove_stale(f->tmp))
			ok = make_named(f);
	}
	if (!ok) {
		free(f->tmp);
		f->tmp = NULL;
	}
	return ok;
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
	if (f->fd >= 0)
		flock(f->fd, LOCK_EX | LOCK_NB);
	return f->fd >= 0 || link_temp_name(f);
}

static bool
copy_bytes(int from, int to)
{
	char buf[65536];
	size_t n = 1;

	for (uint64_t at = 0; n; at += n)
		if (!io_read(from, buf, sizeof(buf), at, &n)
		    || !io_write(to, buf, n, at))
			return false;
	return true;
}

/* Where an unnamed file cannot get a name (no /proc): copy it. */
static bool
copy_named(struct new_file *f, bool lasting)
{
	struct new_file to = { .fd = -1, .path = f->path };
	bool ok = link_temp_name(&to) && copy_bytes(f->fd, to.fd);

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

/* What a file system says only at the end of writing; the file stays open, and
 * so the lock. */
static bool
close_duplicate(int fd)
{
	int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return duplicate >= 0 && !close(duplicate);
}

bool
new_file_place(struct new_file *f, bool lasting)
{
	bool ok = (!lasting || !fsync(f->fd))
		&& (f->tmp || link_temp_name(f) || copy_named(f, lasting))
		&& close_duplicate(f->fd) && !rename(f->tmp, f->path);

	if (!ok)
		return false;
	close(f->fd);
	f->fd = -1;
	free(f->tmp);
	f->tmp = NULL;
	if (lasting)
		flush_folder(f->path);
	return true;
}

void
new_file_abort(struct new_file *f)
{
	if (f->tmp)
		unlink(f->tmp);
	if (f->fd >= 0)
		close(f->fd);
	free(f->tmp);
	free(f->path);
	*f = (struct new_file){ .fd = -1 };
}
