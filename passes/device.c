/* Device profiles: by name, from a file, or measured.
 *
 * what    peak rates as vendors state them for dense operands: products in
 *         f32 (where a device has a faster mode that keeps f32's range, it is
 *         not counted) and in 16 bits, vector units, memory; 5 us to start a
 *         kernel on a GPU.  Files are what device_json writes.
 * source  NVIDIA's data sheets of A100 80GB SXM, H100 SXM, H200 SXM
 */
#include "passes/cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct device device_default = {
	.name = "cpu",
	.product_flops = 400e9,
	.product_flops16 = 400e9,
	.vector_flops = 60e9,
	.bandwidth = 40e9,
	.launch = 1e-6,
};

static const struct device known[] = {
	{ "A100-80GB", 19.5e12, 312e12, 19.5e12, 2.039e12, 5e-6, 80e9 },
	{ "H100", 66.9e12, 989e12, 66.9e12, 3.35e12, 5e-6, 80e9 },
	{ "H200", 66.9e12, 989e12, 66.9e12, 4.8e12, 5e-6, 141e9 },
};

enum { NKNOWN = sizeof known / sizeof *known, FILE_MAX = 1 << 16 };

const struct device *
device_of(const Graph *g)
{
	return g->device ? g->device : &device_default;
}

/* ---- JSON ---- */

static const struct {
	const char *key;
	size_t at;
	bool needed;
} field[] = {
	{ "product_flops", offsetof(struct device, product_flops), true },
	{ "product_flops16", offsetof(struct device, product_flops16), false },
	{ "vector_flops", offsetof(struct device, vector_flops), true },
	{ "bandwidth", offsetof(struct device, bandwidth), true },
	{ "launch_seconds", offsetof(struct device, launch), false },
	{ "memory_bytes", offsetof(struct device, memory), false },
};

enum { NFIELD = sizeof field / sizeof *field };

char *
device_json(const struct device *d, Arena *arena)
{
	char *text = arena_printf(arena, "{\"name\": \"%s\"", d->name);

	for (int i = 0; i < NFIELD; i++)
		text = arena_printf(arena, "%s, \"%s\": %.9g", text,
		                    field[i].key,
		                    *(double *)((char *)d + field[i].at));
	return arena_printf(arena, "%s}", text);
}

static const char *
skip(const char *s)
{
	return s + strspn(s, " \t\r\n");
}

/* "text" without escapes; *end behind it.  NULL: something else. */
static char *
read_text(const char *s, const char **end, Arena *arena)
{
	size_t n;

	if (*s != '"')
		return NULL;
	for (n = 0, ++s; (unsigned char)s[n] >= ' ' && s[n] != '"'
	     && s[n] != '\\'; n++)
		;
	*end = s + n + 1;
	return s[n] == '"' ? arena_printf(arena, "%.*s", (int)n, s) : NULL;
}

/* One pair; false: malformed. */
static bool
read_pair(struct device *d, const char **s, Arena *arena)
{
	const char *key = read_text(*s, s, arena);
	char *end;
	double x;

	if (!key)
		return false;
	*s = skip(*s);
	if (**s != ':')
		return false;
	*s = skip(*s + 1);
	if (!strcmp(key, "name")) {
		d->name = read_text(*s, s, arena);
		return d->name != NULL;
	}
	x = strtod(*s, &end);
	if (end == *s || !isfinite(x) || x < 0)
		return false;
	*s = end;
	for (int i = 0; i < NFIELD; i++)
		if (!strcmp(key, field[i].key))
			*(double *)((char *)d + field[i].at) = x;
	return true;
}

static bool
parse(struct device *d, const char *s, Arena *arena)
{
	s = skip(s);
	if (*s++ != '{')
		return false;
	do {
		s = skip(s);
		if (!read_pair(d, &s, arena))
			return false;
		s = skip(s);
	} while (*s++ == ',');
	if (s[-1] != '}' || *skip(s))
		return false;
	if (d->product_flops16 <= 0)
		d->product_flops16 = d->product_flops;
	for (int i = 0; i < NFIELD; i++)
		if (field[i].needed
		    && *(double *)((char *)d + field[i].at) <= 0)
			return false;
	return d->name != NULL;
}

/* A small text file; NULL if it cannot be read. */
static char *
read_file(const char *path, Arena *arena)
{
	FILE *f = fopen(path, "rb");
	char *text;
	size_t n;

	if (!f)
		return NULL;
	text = arena_alloc(arena, FILE_MAX + 1);
	n = fread(text, 1, FILE_MAX, f);
	fclose(f);
	text[n] = 0;
	return text;
}

/* ---- this machine ---- */

static char *
cache_path(Arena *arena, int threads, bool make)
{
	const char *dir = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (dir && *dir == '/')
		dir = arena_str(arena, dir);
	else if (home && *home == '/')
		dir = arena_printf(arena, "%s/.cache", home);
	else
		return NULL;
	if (make)
		mkdir(dir, 0700);
	dir = arena_printf(arena, "%s/ckc", dir);
	if (make)
		mkdir(dir, 0700);
	return arena_printf(arena, "%s/host-%d.json", dir, threads);
}

/* A cache that cannot be written costs time and nothing else. */
static void
store(const struct device *d, int threads, Arena *arena)
{
	char *path = cache_path(arena, threads, true), *tmp;
	FILE *f;
	bool ok;
	int fd;

	if (!path)
		return;
	tmp = arena_printf(arena, "%s.XXXXXX", path);
	fd = mkstemp(tmp);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		if (fd >= 0)
			close(fd);
		return;
	}
	fprintf(f, "%s\n", device_json(d, arena));
	ok = fclose(f) == 0;
	if (!ok || rename(tmp, path) != 0)
		unlink(tmp);
}

static const struct device *
host(Diag *diag, Arena *arena)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	int threads = n < 1 ? 1 : n > 1024 ? 1024 : (int)n;
	struct device *d = arena_alloc(arena, sizeof *d);
	char *path = cache_path(arena, threads, false), *text;
	bool cached;

	text = path ? read_file(path, arena) : NULL;
	*d = (struct device){ 0 };
	cached = text && parse(d, text, arena);
	if (!cached) {
		*d = (struct device){ .name = "host" };
		device_measure(d, threads);
		store(d, threads, arena);
	}
	diag_note(diag, "host, %s: products %.0f GFLOP/s, vectors %.0f "
	          "GFLOP/s, memory %.1f GB/s, %.1f us to start an op%s%s",
	          cached ? "as measured before" : "measured now",
	          d->product_flops * 1e-9, d->vector_flops * 1e-9,
	          d->bandwidth * 1e-9, d->launch * 1e6,
	          cached ? "; remove to measure again: " : "",
	          cached ? path : "");
	return d;
}

const struct device *
device_find(const char *name, Diag *diag, Arena *arena)
{
	struct device *d;
	char *text;

	if (!strcmp(name, "cpu"))
		return &device_default;
	for (int i = 0; i < NKNOWN; i++)
		if (!strcmp(name, known[i].name))
			return &known[i];
	if (!strcmp(name, "host"))
		return host(diag, arena);
	text = read_file(name, arena);
	if (!text) {
		diag_error(diag, "--device '%s': %s", name, strerror(errno));
		diag_more(diag, "profiles: cpu, host, A100-80GB, H100, H200, "
		          "or a file");
		return NULL;
	}
	d = arena_alloc(arena, sizeof *d);
	*d = (struct device){ 0 };
	if (parse(d, text, arena))
		return d;
	diag_error(diag, "--device '%s': expected an object such as %s", name,
	           device_json(&device_default, arena));
	return NULL;
}
