#include "runtime/offload/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* O_TMPFILE is not known to all file systems. */
static int
open_unnamed(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	size_t n = strlen(dir) + sizeof("/ckr-XXXXXX");
	char *path;

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR
	                && errno != EINVAL))
		return fd;
	path = malloc(n);
	if (!path)
		return -1;
	snprintf(path, n, "%s/ckr-XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	free(path);
	return fd;
}

ckr_status
store_open(struct store *s, const char *dir, uint64_t bytes, struct err *e)
{
	int error;

	*s = (struct store){ open_unnamed(dir), strdup(dir) };
	if (!s->dir)
		return err_no_memory(e);
	if (s->fd < 0)
		return err_set(e, CKR_EIO, "%s: cannot create a file for "
		               "offloaded values: %m; choose another folder "
		               "(ckrun --offload-dir)", dir);
	error = posix_fallocate(s->fd, 0, (off_t)bytes);
	if (!error)
		return CKR_OK;
	errno = error;
	return err_set(e, CKR_EIO, "%s: cannot allocate %llu bytes for "
	               "offloaded values: %m; choose another folder "
	               "(ckrun --offload-dir)", dir,
	               (unsigned long long)bytes);
}

void
store_close(struct store *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->dir);
	*s = (struct store){ .fd = -1 };
}

ckr_status
store_read(const struct store *s, void *to, uint64_t at, uint64_t n,
           struct err *e)
{
	char *p = to;

	while (n) {
		ssize_t got = pread(s->fd, p, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(e, CKR_EIO, "%s: cannot read offloaded "
			               "values: %m", s->dir);
		if (got == 0)
			return err_set(e, CKR_EIO, "%s: cannot read offloaded "
			               "values: the file is too short: "
			               "expected %llu bytes more at %llu",
			               s->dir, (unsigned long long)n,
			               (unsigned long long)at);
		p += got;
		at += (uint64_t)got;
		n -= (uint64_t)got;
	}
	return CKR_OK;
}

ckr_status
store_write(const struct store *s, uint64_t at, const void *from, uint64_t n,
            struct err *e)
{
	const char *p = from;

	while (n) {
		ssize_t put = pwrite(s->fd, p, n, (off_t)at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return err_set(e, CKR_EIO, "%s: cannot write offloaded "
			               "values: %m", s->dir);
		p += put;
		at += (uint64_t)put;
		n -= (uint64_t)put;
	}
	return CKR_OK;
}
