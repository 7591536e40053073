#include "ir/base/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fill text[0..n-1]; false if the file gives less. */
static bool
read_exactly(int fd, char *text, size_t n)
{
	while (n > 0) {
		ssize_t got = read(fd, text, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got ? errno : EIO;
			return false;
		}
		text += got;
		n -= (size_t)got;
	}
	return true;
}

static char *
read_open(int fd, size_t max, size_t *n, Arena *arena, Diag *diag)
{
	struct stat st;
	char *text;

	if (fstat(fd, &st) != 0) {
		diag_error(diag, "cannot read the file: %s", strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max) {
		diag_error(diag, "expected a regular file of at most %zu MiB",
		           max >> 20);
		return NULL;
	}
	*n = (size_t)st.st_size;
	text = arena_alloc(arena, *n + 1);
	if (!read_exactly(fd, text, *n)) {
		diag_error(diag, "cannot read the file: %s", strerror(errno));
		return NULL;
	}
	return text;
}

char *
input_file_read(const char *path, size_t max, size_t *n, Arena *arena,
                Diag *diag)
{
	/* a pipe without a writer shall not block */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char *text;

	if (fd < 0) {
		diag_error(diag, "cannot read the file: %s", strerror(errno));
		return NULL;
	}
	text = read_open(fd, max, n, arena, diag);
	close(fd);
	return text;
}
