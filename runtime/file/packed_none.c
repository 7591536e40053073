/* Stub of a build without zlib: callers check packed_can first. */
#include "runtime/file/packed.h"

bool
packed_can(void)
{
	return false;
}

static ckr_status
no_zlib(const char *path, struct err *e)
{
	return err_set(e, CKR_EUNSUPPORTED, "%s: the file is compressed, and "
	               "zlib is not built in", path);
}

ckr_status
packed_peek(int fd, const char *path, const struct packed *p, void *out,
            size_t n, struct err *e)
{
	(void)fd;
	(void)p;
	(void)out;
	(void)n;
	return no_zlib(path, e);
}

ckr_status
packed_inflate(int fd, const char *path, struct packed *p, struct err *e)
{
	(void)fd;
	(void)p;
	return no_zlib(path, e);
}
