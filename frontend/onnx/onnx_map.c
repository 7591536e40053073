/* Mappings of the model and of the files with its external data.
 *
 * External data is read only from beneath the model's folder, and only from
 * files without symbolic links or further hard links.
 */
#include "frontend/onnx/onnx_file.h"
#include "runtime/support/hash.h"
#include "runtime/support/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Most external files: each has a mapping. */
enum { MAPS_MAX = 1 << 14 };

static struct onnx_map **
maps_like(struct onnx_file *f, const char *location)
{
	size_t n = sizeof f->by_location / sizeof *f->by_location;

	return &f->by_location[hash_str(HASH_START, location) % n];
}

static struct onnx_map *
append_map(struct onnx_file *f, const char *location)
{
	struct onnx_map *m = arena_alloc(f->arena, sizeof *m);
	struct onnx_map **like = maps_like(f, location);

	m->location = arena_str(f->arena, location);
	m->same = *like;
	*like = m;
	*(f->last_map ? &f->last_map->next : &f->maps) = m;
	return f->last_map = m;
}

/* Reason why the file cannot be mapped, or NULL. */
static const char *
map_fd(struct onnx_file *f, int fd, const char *location,
       struct onnx_map **out)
{
	struct stat st;
	void *p = NULL;

	if (fstat(fd, &st) < 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "not a regular file";
	if (*location && *location != '/' && st.st_nlink > 1)
		return arena_printf(f->arena, "the file has %ju hard links, "
		                    "but an external data file must have one; "
		                    "copy the file", (uintmax_t)st.st_nlink);
	if (st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd,
		         0);
	if (p == MAP_FAILED)
		return strerror(errno);
	*out = append_map(f, location);
	(*out)->data = p;
	(*out)->n = (size_t)st.st_size;
	(*out)->dev = st.st_dev;
	(*out)->ino = st.st_ino;
	return NULL;
}

bool
onnx_map_path(struct onnx_file *f, const char *path, const char *what,
              struct onnx_map **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *why;

	if (fd < 0)
		return diag_error(f->diag, "cannot be opened: %s",
		                  strerror(errno));
	/* the model is mapped first; the invalid location of other user files
	 * matches no external data */
	why = map_fd(f, fd, f->maps ? "/" : "", out);
	close(fd);
	return !why || diag_error(f->diag, "%s: %s", what, why);
}

/* Open component by component, so that no symbolic link anywhere in the path
 * leads out of the model's folder. */
static int
open_beneath(struct onnx_file *f, const char *location)
{
	char *rest = arena_str(f->arena, location), *name;
	char *dir = path_folder(f->path);
	int at = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, fd;

	free(dir);
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

/* Reason why a location is rejected, or NULL. */
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
onnx_map_lacks(struct onnx_file *f, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (!f->shapes_do)
		return diag_error(f->diag, "%s", text);
	if (!f->lacks) {
		f->lacks = arena_printf(f->arena, "%s; without the data, ckc "
			"treats a parameter that several norms share as tied, "
			"and the values of constants, e.g. of attention masks, "
			"as unknown: a compile with the data may choose "
			"another plan", text);
		diag_warn(f->diag, "%s", f->lacks);
	}
	return false;
}

/* Reason why the file at the location cannot be mapped, or NULL. */
static const char *
map_beneath(struct onnx_file *f, const char *location, struct onnx_map **out)
{
	int fd = open_beneath(f, location), e = errno;
	const char *why, *slash = strrchr(f->path, '/');

	if (fd >= 0) {
		why = map_fd(f, fd, location, out);
		close(fd);
		return why ? arena_printf(f->arena, " '%s': %s", location, why)
		           : NULL;
	}
	why = arena_printf(f->arena, " file '%s' cannot be opened: %s",
	                   location, e == ELOOP
	                   ? "symbolic links are not followed" : strerror(e));
	if (f->shapes_do)
		return why;
	return arena_printf(f->arena, "%s; put the file next to the model, in "
		"'%.*s', or plan from shapes with --plan-only", why,
		slash ? (int)(slash - f->path) : 1, slash ? f->path : ".");
}

bool
onnx_map_external(struct onnx_file *f, const char *location,
                  const char *tensor, struct onnx_map **out)
{
	const char *why = bad_location(location);

	if (why)
		return onnx_map_lacks(f, "tensor '%s': external data location "
		                      "'%s' %s", tensor, location, why);
	for (struct onnx_map *m = *maps_like(f, location); m; m = m->same)
		if (strcmp(m->location, location) == 0) {
			*out = m;
			return !m->missing;     /* already reported */
		}
	if (++f->nmap > MAPS_MAX)
		return onnx_map_lacks(f, "tensor '%s': external data in more "
		                      "than %d files", tensor, MAPS_MAX);
	why = map_beneath(f, location, out);
	if (!why)
		return true;
	append_map(f, location)->missing = true;
	return onnx_map_lacks(f, "tensor '%s': external data%s", tensor, why);
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
