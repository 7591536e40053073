#include "ir/base/input_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "runtime/support/file_io.h"

static char *
read_open(int fd, size_t n, Arena *arena, Diag *diag)
{
	char *text = arena_alloc(arena, n + 1);
	size_t got;
	bool ok = io_read(fd, text, n, 0, &got);

	if (ok && got == n)
		return text;
	diag_error(diag, "cannot read the file: %s",
	           strerror(ok ? EIO : errno));
	return NULL;
}

char *
input_file_read(const char *path, size_t max, size_t *n, Arena *arena,
                Diag *diag)
{
	char *text = NULL;
	uint64_t size;
	int fd;
	bool regular = io_open(path, &fd, &size);

	*n = 0;
	if (!regular && errno) {
		diag_error(diag, "cannot read the file: %s", strerror(errno));
	} else if (!regular || size > max) {
		diag_error(diag, "expected a regular file of at most %zu MiB",
		           max >> 20);
	} else {
		*n = (size_t)size;
		text = read_open(fd, *n, arena, diag);
	}
	if (fd >= 0)
		close(fd);
	return text;
}
