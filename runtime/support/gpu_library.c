#include "runtime/support/gpu_library.h"
#include "runtime/support/env.h"
#include "runtime/support/path.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- folders ---- */

#define IN_PYTHON "/lib/python3*/site-packages/nvidia/*/lib"

/* Folders are patterns below the value of a variable, or below the root. */
static const struct {
	const char *variable, *pattern;
} place[] = {
	{ "CUDA_HOME", "/lib64" },
	{ "CUDA_PATH", "/lib64" },
	{ NULL, "/usr/local/cuda/lib64" },
	{ NULL, "/usr/local/cuda-*/lib64" },
	{ "CONDA_PREFIX", "/lib" },
	{ "VIRTUAL_ENV", IN_PYTHON },
	{ "CONDA_PREFIX", IN_PYTHON },
	{ "HOME", "/.local" IN_PYTHON },
	{ NULL, "/usr/local/lib/python3*/dist-packages/nvidia/*/lib" },
	{ NULL, "/usr/lib/python3*/dist-packages/nvidia/*/lib" },
};

/* Those of the program python3: below /usr/local of /usr/local/bin/python3. */
static bool
python_folders(char *dir, size_t size)
{
	const char *list = getenv("PATH");
	char program[PATH_MAX + 16], *end;

	while (path_next(&list, dir, size)) {
		snprintf(program, sizeof(program), "%s/python3", dir);
		if (access(program, X_OK))
			continue;
		end = strrchr(dir, '/');
		if (!end)
			return false;
		size -= (size_t)(end - dir);
		return (size_t)snprintf(end, size, "%s", IN_PYTHON) < size;
	}
	return false;
}

struct search {
	const char *list;               /* CKR_GPU_LIBRARIES; NULL: not set */
	size_t at;
};

/* The pattern of the next folders to search; false: there are no more. */
static bool
next_folders(struct search *s, char *dir, size_t size)
{
	if (s->list)
		return path_next(&s->list, dir, size);
	for (; s->at < sizeof(place) / sizeof(*place); s->at++) {
		const char *variable = place[s->at].variable;
		const char *below = variable ? getenv(variable) : "";

		if (below && (*below || !variable)) {
			snprintf(dir, size, "%s%s", below,
			         place[s->at++].pattern);
			return true;
		}
	}
	return s->at++ == sizeof(place) / sizeof(*place)
	       && python_folders(dir, size);
}

/* The first library of this name in folders of the pattern. */
static void *
open_below(const char *pattern, const char *name)
{
	char path[PATH_MAX];
	void *library = NULL;
	glob_t found;
	int n = snprintf(path, sizeof(path), "%s/%s", pattern, name);

	if (n < 0 || (size_t)n >= sizeof(path) || glob(path, 0, NULL, &found))
		return NULL;
	for (size_t i = 0; i < found.gl_pathc && !library; i++)
		library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
	globfree(&found);
	return library;
}

static void *
open_in_folders(const char *name)
{
	struct search s = { getenv("CKR_GPU_LIBRARIES"), 0 };
	char dir[PATH_MAX];
	void *library = NULL;

	while (!library && next_folders(&s, dir, sizeof(dir)))
		library = open_below(dir, name);
	return library;
}

void
gpu_library_folders(FILE *f)
{
	struct search s = { getenv("CKR_GPU_LIBRARIES"), 0 };
	char dir[PATH_MAX];

	fputs("the loader's path", f);
	while (next_folders(&s, dir, sizeof(dir)))
		fprintf(f, ", %s", dir);
}

/* ---- libraries ---- */

void *
gpu_library_open(const char *const *names)
{
	void *library = NULL;

	for (size_t i = 0; names[i] && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; names[i] && !library; i++)
		library = open_in_folders(names[i]);
	if (!library)
		dlopen(names[0], RTLD_NOW | RTLD_LOCAL);        /* its error */
	else if (env_is_on("CKR_LOG"))
		fprintf(stderr, "ckr: %s\n", gpu_library_file(library));
	return library;
}

const char *
gpu_library_file(void *library)
{
	struct link_map *map = NULL;

	return library && !dlinfo(library, RTLD_DI_LINKMAP, &map) && map->l_name
	       ? map->l_name : "";
}
