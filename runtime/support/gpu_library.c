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

/* Folders are patterns below the value of a variable, or below the root. */
static const struct {
	const char *variable, *pattern;
} place[] = {
	{ "CUDA_HOME", "/lib64" },
	{ "CUDA_PATH", "/lib64" },
	{ NULL, "/usr/local/cuda/lib64" },
	{ NULL, "/usr/local/cuda-*/lib64" },
	{ "CONDA_PREFIX", "/lib" },
	{ "VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/*/lib" },
	{ "CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/*/lib" },
	{ "HOME", "/.local/lib/python3*/site-packages/nvidia/*/lib" },
	{ NULL, "/usr/local/lib/python3*/dist-packages/nvidia/*/lib" },
	{ NULL, "/usr/lib/python3*/dist-packages/nvidia/*/lib" },
};

/* The first library of this name in folders of the pattern below the root. */
static void *
open_below(const char *root, const char *pattern, const char *name)
{
	char path[PATH_MAX];
	void *library = NULL;
	glob_t found;
	int n = snprintf(path, sizeof(path), "%s%s/%s", root, pattern, name);

	if (n < 0 || (size_t)n >= sizeof(path) || glob(path, 0, NULL, &found))
		return NULL;
	for (size_t i = 0; i < found.gl_pathc && !library; i++)
		library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
	globfree(&found);
	return library;
}

/* The folder above that of the program python3: /usr/local of
 * /usr/local/bin/python3. */
static bool
python_root(char *root, size_t size)
{
	const char *list = getenv("PATH");
	char dir[PATH_MAX], program[PATH_MAX + 16];

	while (path_next(&list, dir, sizeof(dir))) {
		snprintf(program, sizeof(program), "%s/python3", dir);
		if (access(program, X_OK))
			continue;
		if (!strrchr(dir, '/'))
			return false;
		*strrchr(dir, '/') = '\0';
		snprintf(root, size, "%s", dir);
		return true;
	}
	return false;
}

static void *
open_in_list(const char *list, const char *name)
{
	char dir[PATH_MAX];
	void *library = NULL;

	while (!library && path_next(&list, dir, sizeof(dir)))
		library = open_below("", dir, name);
	return library;
}

static void *
open_in_folders(const char *name)
{
	const char *list = getenv("CKR_GPU_LIBRARIES");
	char root[PATH_MAX];
	void *library = NULL;

	if (list)
		return open_in_list(list, name);
	for (size_t i = 0; i < sizeof(place) / sizeof(*place) && !library;
	     i++) {
		const char *below = place[i].variable
		                    ? getenv(place[i].variable) : "";

		if (below && (*below || !place[i].variable))
			library = open_below(below, place[i].pattern, name);
	}
	if (!library && python_root(root, sizeof(root)))
		library = open_below(root, "/lib/python3*/site-packages/nvidia"
		                     "/*/lib", name);
	return library;
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
