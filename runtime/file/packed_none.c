/* Built without zlib: who asks packed_can goes no further. */
#include "runtime/file/packed.h"

bool
packed_can(void)
{
	return false;
}

static ckr_status
refuse(const char *path, struct err *e)
{
	return err_set(e, CKR_EUNSUPPORTED, "%s: compressed, and zlib not "
	               "built in", path);
}

ckr_status
packed_start(int fd, const char *path, const struct packed *p, void *out,
             size_t n, struct err *e)
{
	(void)fd;
	(void)p;
	(void)out;
	(void)n;
	return refuse(path, e);
}

ckr_status
packed_open(int fd, const char *path, struct packed *p, struct err *e)
{
	(void)fd;
	(void)p;
	return refuse(path, e);
}
