#include "ir/base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* An arena that gets no memory ends the process in the middle of a file. */
static struct outfile *unfinished;

static void
remove_unfinished(void)
{
	for (struct outfile *o = unfinished; o; o = o->next)
		new_file_abort(&o->file);
}

static void
list_unfinished(struct outfile *o)
{
	static bool registered;

	if (!registered)
		atexit(remove_unfinished);
	registered = true;
	o->next = unfinished;
	unfinished = o;
}

static void
unlist_finished(const struct outfile *o)
{
	struct outfile **at = &unfinished;

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
}

bool
outfile_open(struct outfile *o, const char *path, Diag *diag)
{
	int fd;

	*o = (struct outfile){ .file.fd = -1, .path = path, .diag = diag };
	if (outfile_is_stdout(path)) {
		fflush(stdout);
		fd = dup(STDOUT_FILENO);
	} else if (is_stream(path)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		fd = new_file_start(&o->file, path, true)
			? fcntl(o->file.fd, F_DUPFD_CLOEXEC, 0) : -1;
	}
	o->f = fd < 0 ? NULL : fdopen(fd, "wb");
	if (o->f) {
		list_unfinished(o);
		return true;
	}
	diag_error(diag, "cannot write '%s': %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	new_file_abort(&o->file);
	return false;
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

	unlist_finished(o);
	written &= fclose(o->f) == 0;
	written = ok && written
		&& (o->file.fd < 0 || new_file_place(&o->file, false));
	if (ok && !written)
		diag_error(o->diag, "cannot write '%s': %s", o->path,
		           strerror(errno));
	new_file_abort(&o->file);
	return written;
}

char *
outfile_folder(Arena *a, Diag *d)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = arena_printf(a, "%s/ckc-XXXXXX",
	                         tmp && *tmp ? tmp : "/tmp");

	if (mkdtemp(dir))
		return dir;
	diag_error(d, "cannot create the folder '%s': %s; set TMPDIR to a "
	           "writable folder", dir, strerror(errno));
	return NULL;
}
