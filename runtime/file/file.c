/* Complete reads and writes with error messages, and files that appear whole
 * (support/file_io.h). */
#include "runtime/file/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/support/path.h"

static ckr_status
write_error(const char *path, struct err *e)
{
	if (errno == ENOMEM)
		return err_no_memory(e);
	return err_set(e, CKR_EIO, "%s: cannot write: %m", path);
}

static ckr_status
open_new(struct new_file *f, const char *path, bool named, struct err *e)
{
	struct stat st;
	ckr_status s = CKR_OK;

	*f = (struct new_file){ .fd = -1 };
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return err_set(e, CKR_EIO, "%s: cannot write: not a regular "
		               "file", path);
	if (!new_file_start(f, path, named)) {
		s = write_error(path, e);
		new_file_abort(f);
	}
	return s;
}

ckr_status
new_file_open(struct new_file *f, const char *path, struct err *e)
{
	return open_new(f, path, false, e);
}

ckr_status
new_file_open_named(struct new_file *f, const char *path, struct err *e)
{
	return open_new(f, path, true, e);
}

ckr_status
new_file_commit(struct new_file *f, struct err *e)
{
	ckr_status s = new_file_place(f, true) ? CKR_OK
		: write_error(f->path, e);

	new_file_abort(f);
	return s;
}

ckr_status
new_file_print(struct new_file *f, ckr_status (*print)(FILE *, void *),
               void *user, struct err *e)
{
	int fd = dup(f->fd);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	bool ok = out;
	ckr_status s = CKR_OK;

	if (out) {
		s = print(out, user);
		ok = !ferror(out);
		ok &= !fclose(out);
	} else if (fd >= 0) {
		close(fd);
	}
	if (ok && s == CKR_OK)
		return new_file_commit(f, e);
	if (s == CKR_OK)
		s = err_set(e, CKR_EIO, "%s: cannot write: %m", f->path);
	new_file_abort(f);
	return s;
}

ckr_status
file_write(int fd, const char *path, const void *data, size_t n, uint64_t at,
           struct err *e)
{
	return io_write(fd, data, n, at) ? CKR_OK
	       : err_set(e, CKR_EIO, "%s: cannot write: %m", path);
}

ckr_status
file_some(int fd, const char *path, void *data, size_t n, uint64_t at,
          size_t *got, struct err *e)
{
	return io_read(fd, data, n, at, got) ? CKR_OK
	       : err_set(e, CKR_EIO, "%s: cannot read: %m", path);
}

ckr_status
file_read(int fd, const char *path, void *data, size_t n, uint64_t at,
          struct err *e)
{
	size_t got;

	CKR_TRY(file_some(fd, path, data, n, at, &got, e));
	return got == n ? CKR_OK
	       : err_set(e, CKR_EIO, "%s: the file ends early: %zu bytes are "
	                 "missing at offset %llu", path, n - got,
	                 (unsigned long long)(at + got));
}

ckr_status
file_text(int fd, const char *path, uint64_t n, uint64_t at, char **text,
          struct err *e)
{
	ckr_status s;

	*text = malloc(n + 1);
	if (!*text)
		return err_no_memory(e);
	s = file_read(fd, path, *text, n, at, e);
	(*text)[n] = '\0';
	if (s != CKR_OK) {
		free(*text);
		*text = NULL;
	}
	return s;
}

ckr_status
file_open(const char *path, int *fd, uint64_t *size, struct err *e)
{
	if (io_open(path, fd, size))
		return CKR_OK;
	return errno ? err_set(e, CKR_EIO, "%s: cannot read: %m", path)
	       : err_set(e, CKR_EIO, "%s: cannot read: not a regular file",
	                 path);
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
