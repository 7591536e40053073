/* Mappings of the model and of the files with its external data.
 *
 * External data is read only from beneath the model's folder, and only from
 * files that nobody else's name may lead to.
 */
#include "frontend/onnx_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* External files: each is a mapping, and they are looked up one by one. */
enum { MAPS_MAX = 1 << 14 };

static bool
map_fd(struct onnx_file *f, int fd, const char *what, const char *location,
       struct onnx_map **out)
{
	struct onnx_map *m, **tail = &f->maps;
	struct stat st;
	void *p = NULL;

	if (fstat(fd, &st) < 0)
		return diag_error(f->diag, "%s: %s", what, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return diag_error(f->diag, "%s: not a regular file", what);
	if (*location && *location != '/' && st.st_nlink > 1)
		return diag_error(
			f->diag,
			"%s: the file has %ju hard links; external data is "
			"read only from a file of its own; copy it",
			what, (uintmax_t)st.st_nlink);
	if (st.st_size > 0) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd,
		         0);
		if (p == MAP_FAILED)
			return diag_error(f->diag, "%s: %s", what,
			                  strerror(errno));
	}
	m = arena_alloc(f->arena, sizeof *m);
	m->location = arena_str(f->arena, location);
	m->data = p;
	m->n = (size_t)st.st_size;
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	while (*tail)
		tail = &(*tail)->next;
	*tail = m;
	*out = m;
	return true;
}

bool
onnx_map_path(struct onnx_file *f, const char *path, const char *what,
              struct onnx_map **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool ok;

	if (fd < 0)
		return diag_error(f->diag, "cannot be opened: %s",
		                  strerror(errno));
	/* the model comes first; a location that no external data can have
	 * stands for all others */
	ok = map_fd(f, fd, what, f->maps ? "/" : "", out);
	close(fd);
	return ok;
}

/* Open one component after the other so that no symbolic link, in whatever
 * place of the path, leads out of the model's folder. */
static int
open_beneath(struct onnx_file *f, const char *location)
{
	const char *slash = strrchr(f->path, '/');
	const char *dir =
		!slash ? "."
		: slash == f->path
			? "/"
			: arena_printf(f->arena, "%.*s", (int)(slash - f->path),
	                               f->path);
	char *rest = arena_str(f->arena, location), *name;
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	while (at >= 0 && (name = strsep(&rest, "/"))) {
		int flags = rest ? O_DIRECTORY : O_NONBLOCK;

		if (!*name)
			continue;
		fd = openat(at, name,
		            O_RDONLY | O_NOFOLLOW | O_CLOEXEC | flags);
		close(at);
		at = fd;
		if (!rest)
			return fd;
	}
	return at;
}

/* Why a location is not accepted, or NULL. */
static const char *
bad_location(const char *s)
{
	if (!*s)
		return "is empty";
	if (*s == '/')
		return "is an absolute path";
	if (strchr(s, '\\'))
		return "contains a backslash";
	if (s[strlen(s) - 1] == '/')
		return "is not a file";
	while (*s) {
		size_t n = strcspn(s, "/");

		if (n == 2 && s[0] == '.' && s[1] == '.')
			return "contains '..'";
		s += n + (s[n] == '/');
	}
	return NULL;
}

bool
onnx_map_finds(struct onnx_file *f, const char *location)
{
	int fd = bad_location(location) ? -1 : open_beneath(f, location);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool
onnx_map_external(struct onnx_file *f, const char *location,
                  const char *tensor, struct onnx_map **out)
{
	const char *why = bad_location(location);
	struct onnx_map *m;
	int fd;
	bool ok;

	if (why)
		return diag_error(f->diag,
		                  "tensor '%s': external data location '%s' %s",
		                  tensor, location, why);
	for (m = f->maps->next; m; m = m->next)
		if (strcmp(m->location, location) == 0) {
			*out = m;
			return !m->missing;     /* said once */
		}
	if (++f->nmap > MAPS_MAX)
		return diag_error(f->diag, "tensor '%s': external data in more "
		                  "than %d files", tensor, MAPS_MAX);
	fd = open_beneath(f, location);
	if (fd < 0) {
		int e = errno;
		const char *slash = strrchr(f->path, '/');
		int n = slash ? (int)(slash - f->path) : 1;

		for (m = f->maps; m->next; m = m->next)
			;
		m->next = arena_alloc(f->arena, sizeof *m);
		m->next->location = location;
		m->next->missing = true;
		return diag_error(
			f->diag,
			"tensor '%s': external data file '%s' cannot be "
			"opened: %s; put it beside the model, in '%.*s', or "
			"plan from shapes with --plan-only",
			tensor, location,
			e == ELOOP ? "symbolic links are not followed"
				   : strerror(e),
			n, slash ? f->path : ".");
	}
	ok = map_fd(f, fd, arena_printf(f->arena, "tensor '%s': external data "
	                                "'%s'", tensor, location), location,
	            out);
	close(fd);
	return ok;
}

bool
onnx_reads(const struct onnx_file *f, const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	for (const struct onnx_map *m = f->maps; m; m = m->next)
		if (m->dev == st.st_dev && m->ino == st.st_ino)
			return true;
	return false;
}

void
onnx_unmap(struct onnx_file *f)
{
	for (struct onnx_map *m = f->maps; m; m = m->next)
		if (m->data)
			munmap((void *)(uintptr_t)m->data, m->n);
}
