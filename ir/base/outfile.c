#include "ir/base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A new file beside path, with the permissions that the umask leaves; mkstemp
 * would give it none but the owner's.  -1 after errno is set. */
static int
create(struct outfile *o, Arena *arena)
{
	int fd = -1;

	for (int i = 0; fd < 0 && i < 100; i++) {
		o->tmp = arena_printf(arena, "%s.tmp%ld-%d", o->path,
		                      (long)getpid(), i);
		fd = open(o->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		          0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

bool
outfile_is_stdout(const char *path)
{
	return strcmp(path, "-") == 0;
}

/* Devices and pipes are written to as they are: moving a file to their place
 * would take them away. */
static bool
is_stream(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode)
		&& !S_ISDIR(st.st_mode);
}

/* Where a path leads, so that a link stays one. */
static const char *
follow(const char *path, Arena *arena)
{
	char *real = realpath(path, NULL);
	const char *end = real ? arena_str(arena, real) : path;

	free(real);
	return end;
}

bool
outfile_open(struct outfile *o, const char *path, Arena *arena, Diag *diag)
{
	int fd;

	o->tmp = NULL;
	o->path = path;
	o->diag = diag;
	if (outfile_is_stdout(path)) {
		fflush(stdout);
		fd = dup(STDOUT_FILENO);
	} else if (is_stream(path)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		o->path = follow(path, arena);
		fd = create(o, arena);
	}
	if (fd < 0)
		return diag_error(diag, "cannot write '%s': %s", path,
		                  strerror(errno));
	o->f = fdopen(fd, "wb");
	if (!o->f) {
		close(fd);
		if (o->tmp)
			unlink(o->tmp);
		return diag_error(diag, "cannot write '%s': %s", path,
		                  strerror(errno));
	}
	return true;
}

void
outfile_executable(struct outfile *o)
{
	struct stat st;

	if (fstat(fileno(o->f), &st) == 0)
		fchmod(fileno(o->f), (st.st_mode | (st.st_mode & 0444) >> 2)
		       & 0777);
}

bool
outfile_close(struct outfile *o, bool ok)
{
	bool written = !ferror(o->f);

	written &= fclose(o->f) == 0;
	if (ok && written && (!o->tmp || rename(o->tmp, o->path) == 0))
		return true;
	if (ok)
		diag_error(o->diag, "cannot write '%s': %s", o->path,
		           strerror(errno));
	if (o->tmp)
		unlink(o->tmp);
	return false;
}
