#include "frontend/outfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
outfile_open(struct outfile *o, const char *path, Arena *arena, Diag *diag)
{
	int fd;

	o->path = path;
	o->diag = diag;
	o->tmp = arena_printf(arena, "%s.tmpXXXXXX", path);
	fd = mkstemp(o->tmp);
	if (fd < 0)
		return diag_error(diag, "cannot write '%s': %s", path,
		                  strerror(errno));
	fchmod(fd, 0644);
	o->f = fdopen(fd, "w");
	if (!o->f) {
		close(fd);
		unlink(o->tmp);
		return diag_error(diag, "cannot write '%s': %s", path,
		                  strerror(errno));
	}
	return true;
}

bool
outfile_close(struct outfile *o, bool ok)
{
	bool written = !ferror(o->f);

	written &= fclose(o->f) == 0;
	if (ok && written && rename(o->tmp, o->path) == 0)
		return true;
	if (ok)
		diag_error(o->diag, "cannot write '%s': %s", o->path,
		           strerror(errno));
	unlink(o->tmp);
	return false;
}
