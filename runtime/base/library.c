/* Load a library under a name of its own.
 *
 * The loader of the C library compares names, then inodes.  A file that
 * replaces another one has the same name and a new inode: more slashes make it
 * a new library.  The inode of a library that is loaded is not used again. */
#include "runtime/base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct loaded {
	struct loaded *next;
	struct stat file;
	size_t slashes;                 /* more than the path has */
	char path[];
};

static struct loaded *all_loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool
same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool
same_contents(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size
	       && a->st_mtim.tv_sec == b->st_mtim.tv_sec
	       && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* dir/name with more slashes between the two. */
static void *
load_as(const char *path, size_t slashes)
{
	size_t dir = (size_t)(strrchr(path, '/') - path) + 1;
	size_t n = strlen(path) + 1;
	char *name = malloc(n + slashes);
	void *handle;

	if (!name)
		return NULL;
	memcpy(name, path, dir);
	memset(name + dir, '/', slashes);
	memcpy(name + dir + slashes, path + dir, n - dir);
	/* a library built by clang brings an OpenMP run time of its own, whose
	 * threads outlive dlclose and must not lose their code */
	handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	free(name);
	return handle;
}

/* The entry of a file that is loaded, or a new one at the head of the list. */
static ckr_status
find_loaded(struct loaded **found, const char *path, const struct stat *file,
            struct err *e)
{
	struct loaded *made, *l;
	size_t slashes = 0, size = strlen(path) + 1;

	for (l = all_loaded; l && !same_file(&l->file, file); l = l->next)
		slashes += !strcmp(l->path, path);
	*found = l;
	if (l && same_contents(&l->file, file))
		return CKR_OK;
	if (l)
		return err_set(e, CKR_EIO, "%s: the file was overwritten while "
		               "this process runs its code; write a new file "
		               "and rename it, as ckc does", path);
	made = malloc(sizeof(*made) + size);
	if (!made)
		return err_no_memory(e);
	*made = (struct loaded){ all_loaded, *file, slashes };
	memcpy(made->path, path, size);
	*found = all_loaded = made;
	return CKR_OK;
}

static ckr_status
load_file(void **handle, const char *path, const struct stat *file,
          struct err *e)
{
	struct loaded *l;

	CKR_TRY(find_loaded(&l, path, file, e));
	*handle = load_as(l->path, l->slashes);
	if (*handle)
		return CKR_OK;
	/* what was loaded before does not fail: l is new */
	all_loaded = l->next;
	free(l);
	return err_set(e, CKR_EFORMAT, "%s: cannot load: %s", path, dlerror());
}

ckr_status
library_load(void **handle, const char *path, struct err *e)
{
	struct stat file;
	ckr_status s;

	if (stat(path, &file))
		return err_set(e, CKR_EIO, "%s: cannot read: %m", path);
	pthread_mutex_lock(&lock);
	s = load_file(handle, path, &file, e);
	pthread_mutex_unlock(&lock);
	return s;
}
