#include "codegen/object_cache.h"
#include "runtime/support/file_io.h"
#include "runtime/support/hash.h"
#include "runtime/support/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST_OBJECT = 64 << 20, LARGEST_CACHE = 256 << 20 };

/* ---- what an object depends on ---- */

/* Two hashes, of which one alone could be equal by chance. */
static void
add_bytes(uint64_t h[2], const void *data, size_t n)
{
	h[0] = hash_number(h[0], hash_block(data, n));
	h[1] = hash_bytes(hash_number(h[1], n), data, n);
}

static void
add_text(uint64_t h[2], const char *s)
{
	add_bytes(h, s, strlen(s) + 1);
}

/* The processor, for which -march=native compiles; false: it is unknown. */
static bool
add_processor(uint64_t h[2])
{
	static const char *const key[] = { "vendor_id", "cpu family",
		"model", "stepping", "flags", "Features", "CPU " };
	FILE *f = fopen("/proc/cpuinfo", "r");
	char *line = NULL;
	size_t cap = 0;
	bool found = false;

	while (f && getline(&line, &cap, f) > 1)
		for (size_t i = 0; i < sizeof key / sizeof *key; i++)
			if (!strncmp(line, key[i], strlen(key[i]))) {
				add_text(h, line);
				found = true;
			}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* A compiler is known by its file; a script may read other files. */
static bool
add_program(uint64_t h[2], const char *path)
{
	struct stat st;
	uint64_t size;
	char magic[2];
	size_t got;
	bool ok;
	int fd;

	if (!io_open(path, &fd, &size))
		return false;
	ok = io_read(fd, magic, sizeof magic, 0, &got) && got == sizeof magic
		&& memcmp(magic, "#!", sizeof magic) && fstat(fd, &st) == 0;
	close(fd);
	if (!ok)
		return false;
	add_text(h, path);
	h[0] = hash_number(h[0], (uint64_t)st.st_mtim.tv_sec);
	h[0] = hash_number(h[0], (uint64_t)st.st_mtim.tv_nsec);
	h[1] = hash_number(h[1], (uint64_t)st.st_ino);
	h[1] = hash_number(h[1], size);
	return true;
}

/* All programs of this name: the first one may be ccache, which runs the
 * next. */
static bool
add_programs(uint64_t h[2], const char *name, Arena *a)
{
	const char *list = getenv("PATH");
	char dir[PATH_MAX];
	bool found = false;

	if (strchr(name, '/'))
		return add_program(h, name);
	while (path_next(&list, dir, sizeof dir)) {
		const char *path = arena_printf(a, "%s/%s", dir, name);

		if (access(path, X_OK))
			continue;
		if (!add_program(h, path))
			return false;
		found = true;
	}
	return found;
}

/* Whether an argument names no file that an object could depend on. */
static bool
names_no_file(const char *arg)
{
	static const char *const harmless[] = { "-O", "-m", "-D", "-U", "-std=",
		"-W", "-w", "-g", "-f", "-pipe" };

	if (strpbrk(arg, "/@") || !strncmp(arg, "-fplugin", 8)
	    || !strncmp(arg, "-fprofile", 9) || !strncmp(arg, "-Wp,", 4)
	    || !strncmp(arg, "-Wa,", 4))
		return false;
	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
		if (!strncmp(arg, harmless[i], strlen(harmless[i])))
			return true;
	return false;
}

/* Variables that change what compilers do. */
static bool
has_variables(void)
{
	static const char *const name[] = { "CPATH", "C_INCLUDE_PATH",
		"CPLUS_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX",
		"CCACHE_COMPILER", "CCACHE_PREFIX", "CCC_OVERRIDE_OPTIONS",
		"CLANG_CONFIG_FILE_SYSTEM_DIR", "NVCC_CCBIN",
		"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS" };

	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		if (getenv(name[i]))
			return true;
	return false;
}

/* The user's words are programs ("ccache gcc"), then options; false: what an
 * object depends on is not known. */
static bool
add_command(uint64_t h[2], const struct command *c, Arena *a)
{
	bool programs = true;

	for (int i = 0; i < c->n; i++) {
		programs &= c->argv[i][0] != '-';
		if (programs && !add_programs(h, c->argv[i], a))
			return false;
		if (!programs && i < c->given && !names_no_file(c->argv[i]))
			return false;
		add_text(h, c->argv[i]);
	}
	add_text(h, gnu_get_libc_version());
	return c->n > 0 && !has_variables();
}

/* A file of the sources, and those that it includes. */
static void
add_source(uint64_t h[2], const struct sources *src, size_t i, bool *seen)
{
	static const char mark[] = "#include \"";
	const struct source_file *f = &src->v[i];
	const char *text = f->data, *end = text + f->n, *at = text;

	if (seen[i])
		return;
	seen[i] = true;
	add_text(h, f->name);
	add_bytes(h, text, f->n);
	while ((at = memmem(at, (size_t)(end - at), mark, sizeof mark - 1))) {
		at += sizeof mark - 1;
		for (size_t k = 0; k < src->n; k++) {
			size_t n = strlen(src->v[k].name);

			if ((size_t)(end - at) > n && at[n] == '"'
			    && !memcmp(at, src->v[k].name, n))
				add_source(h, src, k, seen);
		}
	}
}

/* ---- the folder ---- */

/* A folder of this user's, which nobody else writes to; NULL: none. */
static const char *
own_folder(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return NULL;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode)
	       && st.st_uid == geteuid() && !(st.st_mode & 022) ? path : NULL;
}

const char *
object_cache_folder(Arena *a)
{
	const char *own = getenv("CKC_CACHE"), *all = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");

	if (own && !strcmp(own, "off"))
		return NULL;
	if (own && *own)
		return own_folder(own);
	if (!all || *all != '/') {
		if (!home || *home != '/')
			return NULL;
		all = arena_printf(a, "%s/.cache", home);
		mkdir(all, 0700);
	}
	return own_folder(arena_printf(a, "%s/ckc", all));
}

struct object_cache
object_cache_open(const struct sources *src, const struct command *compiler,
                  Arena *a)
{
	struct object_cache c = { .sources = src, .arena = a,
	                          .base = { HASH_START, HASH_START } };

	if (add_processor(c.base) && add_command(c.base, compiler, a))
		c.dir = object_cache_folder(a);
	return c;
}

const char *
object_cache_path(const struct object_cache *c, const struct source_file *unit)
{
	uint64_t h[2] = { c->base[0], c->base[1] };
	const struct sources *src = c->sources;
	bool *seen;

	if (!c->dir)
		return NULL;
	seen = arena_array(c->arena, src->n, sizeof *seen);
	for (size_t i = 0; i < src->n; i++)
		if (src->v[i].data == unit->data)
			add_source(h, src, i, seen);
	return arena_printf(c->arena, "%s/%016llx%016llx.o", c->dir,
	                    (unsigned long long)h[0],
	                    (unsigned long long)h[1]);
}

/* ---- objects ---- */

static void *
read_whole(const char *path, size_t *n)
{
	uint64_t size;
	size_t got = 0;
	void *data = NULL;
	int fd;

	if (!io_open(path, &fd, &size))
		return NULL;
	if (size <= LARGEST_OBJECT)
		data = malloc((size_t)size + 1);
	if (data
	    && (!io_read(fd, data, (size_t)size, 0, &got) || got != size)) {
		free(data);
		data = NULL;
	}
	close(fd);
	*n = got;
	return data;
}

static bool
write_whole(const char *path, const void *data, size_t n, const void *end,
            size_t nend)
{
	struct new_file f;
	bool ok = new_file_start(&f, path, true)
		&& io_write(f.fd, data, n, 0) && io_write(f.fd, end, nend, n)
		&& new_file_place(&f, false);

	new_file_abort(&f);
	return ok;
}

/* The hash of its bytes ends a file in the cache. */
bool
object_cache_take(const char *path, const char *object)
{
	uint64_t hash;
	size_t n;
	char *data = path ? read_whole(path, &n) : NULL;
	bool ok = data && n > sizeof hash;

	if (ok) {
		n -= sizeof hash;
		memcpy(&hash, data + n, sizeof hash);
		ok = hash == hash_block(data, n)
			&& write_whole(object, data, n, "", 0);
	}
	if (ok)
		utimensat(AT_FDCWD, path, NULL, 0);
	free(data);
	return ok;
}

void
object_cache_put(const char *path, const char *object)
{
	uint64_t hash;
	size_t n;
	void *data = path ? read_whole(object, &n) : NULL;

	if (data) {
		hash = hash_block(data, n);
		write_whole(path, data, n, &hash, sizeof hash);
	}
	free(data);
}

struct kept {
	const char *path;
	struct timespec used;
	int64_t bytes;
};

static int
by_use(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->used.tv_sec != y->used.tv_sec
	       ? x->used.tv_sec < y->used.tv_sec ? -1 : 1
	       : x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
}

void
object_cache_trim(const struct object_cache *c)
{
	DIR *d = c->dir ? opendir(c->dir) : NULL;
	struct kept *v = NULL;
	size_t n = 0, cap = 0;
	int64_t total = 0;
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (len < 2 || strcmp(e->d_name + len - 2, ".o") != 0
		    || fstatat(dirfd(d), e->d_name, &st, 0))
			continue;
		v = arena_grow(c->arena, v, n, &cap, n + 1, sizeof *v);
		v[n++] = (struct kept){ arena_printf(c->arena, "%s/%s", c->dir,
			e->d_name), st.st_mtim, st.st_size };
		total += st.st_size;
	}
	if (d)
		closedir(d);
	if (total > LARGEST_CACHE)
		qsort(v, n, sizeof *v, by_use);
	for (size_t i = 0; i < n && total > LARGEST_CACHE; i++) {
		unlink(v[i].path);
		total -= v[i].bytes;
	}
}
