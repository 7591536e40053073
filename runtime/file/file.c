/* Atomic writing: an unnamed file in the target's folder, fsync, a name, a
 * rename over the old file, fsync of the folder.  At any moment a reader, or
 * the user after a crash, finds the old file or the new one, whole; a killed
 * process leaves nothing behind, because the unnamed file vanishes with it
 * (where O_TMPFILE is missing, "PATH.tmpXXXXXX" may stay).
 */
#include "runtime/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/support/path.h"

static char *
with_suffix(const char *path, const char *suffix)
{
	size_t n = strlen(path) + strlen(suffix) + 1;
	char *s = malloc(n);

	if (s)
		snprintf(s, n, "%s%s", path, suffix);
	return s;
}

static ckr_status
open_named(struct new_file *f, struct err *e)
{
	mode_t mask = umask(0);

	umask(mask);
	f->tmp = with_suffix(f->path, ".tmpXXXXXX");
	if (!f->tmp)
		return err_set(e, CKR_ENOMEM, "out of memory");
	f->fd = mkostemp(f->tmp, O_CLOEXEC);
	if (f->fd < 0) {
		free(f->tmp);
		f->tmp = NULL;
		return err_set(e, CKR_EIO, "%s: cannot write: %m", f->path);
	}
	if (fchmod(f->fd, 0666 & ~mask)) {
		/* stays private: an inconvenience, not a failure */
	}
	return CKR_OK;
}

ckr_status
new_file_open(struct new_file *f, const char *path, struct err *e)
{
	struct stat st;
	ckr_status s;
	char *dir;

	*f = (struct new_file){ .fd = -1 };
	f->path = realpath(path, NULL);
	if (!f->path)
		f->path = strdup(path);
	if (!f->path)
		return err_set(e, CKR_ENOMEM, "out of memory");
	if (!stat(f->path, &st) && !S_ISREG(st.st_mode)) {
		s = err_set(e, CKR_EIO, "%s: cannot write: not a regular file",
		            path);
		new_file_abort(f);
		return s;
	}
	dir = path_folder(f->path);
	if (!dir) {
		new_file_abort(f);
		return err_set(e, CKR_ENOMEM, "out of memory");
	}
	f->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	free(dir);
	if (f->fd >= 0)
		return CKR_OK;
	s = open_named(f, e);
	if (s != CKR_OK)
		new_file_abort(f);
	return s;
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

/* Where an unnamed file cannot get a name (no /proc): copy it. */
static ckr_status
copy_named(struct new_file *f, struct err *e)
{
	char buf[65536];
	struct new_file to = { .fd = -1, .path = f->path };
	ckr_status s = open_named(&to, e);
	uint64_t at = 0;
	ssize_t n = 0;

	if (s != CKR_OK)
		return s;
	while (s == CKR_OK
	       && (n = pread(f->fd, buf, sizeof(buf), (off_t)at)) > 0) {
		s = file_write(to.fd, f->path, buf, (size_t)n, at, e);
		at += (uint64_t)n;
	}
	close(f->fd);
	f->fd = to.fd;
	f->tmp = to.tmp;
	if (s == CKR_OK && (n < 0 || fsync(f->fd)))
		s = err_set(e, CKR_EIO, "%s: cannot write: %m", f->path);
	return s;
}

ckr_status
new_file_commit(struct new_file *f, struct err *e)
{
	ckr_status s = CKR_OK;
	char *dir;
	int fd;

	if (fsync(f->fd))
		s = err_set(e, CKR_EIO, "%s: cannot write: %m", f->path);
	if (s == CKR_OK && !f->tmp && !name_it(f))
		s = copy_named(f, e);
	if (s == CKR_OK && close(f->fd)) {
		f->fd = -1;
		s = err_set(e, CKR_EIO, "%s: cannot write: %m", f->path);
	}
	if (s == CKR_OK) {
		f->fd = -1;
		if (rename(f->tmp, f->path))
			s = err_set(e, CKR_EIO, "%s: cannot write: %m",
			            f->path);
	}
	if (s == CKR_OK) {
		free(f->tmp);
		f->tmp = NULL;
		dir = path_folder(f->path);
		fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
		if (fd >= 0) {
			fsync(fd);
			close(fd);
		}
		free(dir);
	}
	new_file_abort(f);
	return s;
}

ckr_status
new_file_print(struct new_file *f, void (*print)(FILE *, void *), void *user,
               struct err *e)
{
	int fd = dup(f->fd);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	bool ok = out;
	ckr_status s;

	if (out) {
		print(out, user);
		ok = !ferror(out);
		ok &= !fclose(out);
	} else if (fd >= 0) {
		close(fd);
	}
	if (ok)
		return new_file_commit(f, e);
	s = err_set(e, CKR_EIO, "%s: cannot write: %m", f->path);
	new_file_abort(f);
	return s;
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

ckr_status
file_write(int fd, const char *path, const void *data, size_t n, uint64_t at,
           struct err *e)
{
	const char *p = data;

	while (n) {
		ssize_t k = pwrite(fd, p, n < 1 << 30 ? n : 1 << 30, (off_t)at);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return err_set(e, CKR_EIO, "%s: cannot write: %m",
			               path);
		p += k;
		n -= (size_t)k;
		at += (uint64_t)k;
	}
	return CKR_OK;
}

ckr_status
file_read(int fd, const char *path, void *data, size_t n, uint64_t at,
          struct err *e)
{
	char *p = data;

	while (n) {
		ssize_t k = pread(fd, p, n < 1 << 30 ? n : 1 << 30, (off_t)at);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return err_set(e, CKR_EIO, "%s: cannot read: %m", path);
		if (!k)
			return err_set(e, CKR_EIO, "%s: ends early: %zu bytes "
			               "are missing at %llu", path, n,
			               (unsigned long long)at);
		p += k;
		n -= (size_t)k;
		at += (uint64_t)k;
	}
	return CKR_OK;
}

ckr_status
file_open(const char *path, int *fd, uint64_t *size, struct err *e)
{
	struct stat st;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0)
		return err_set(e, CKR_EIO, "%s: cannot read: %m", path);
	if (fstat(*fd, &st) || !S_ISREG(st.st_mode)) {
		close(*fd);
		*fd = -1;
		return err_set(e, CKR_EIO,
		               "%s: cannot read: not a regular file",
		               path);
	}
	*size = (uint64_t)st.st_size;
	return CKR_OK;
}

char *
file_beside(const char *path, const char *suffix)
{
	const char *base = path_base(path), *dot = strrchr(base, '.');
	size_t stem = dot && dot > base ? (size_t)(dot - path) : strlen(path);
	size_t n = stem + strlen(suffix) + 1;
	char *s = malloc(n);

	if (s)
		snprintf(s, n, "%.*s%s", (int)stem, path, suffix);
	return s;
}
