/* Expands --data to a list of files. */
#include "runtime/data/dataset.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/mem.h"

enum { MAX_FILES = 1 << 16 };

static ckr_status
append_file(struct data_list *l, const char *name, size_t n, const char *path,
            struct err *e)
{
	struct named_data *v, *new;

	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i].path, path))
			return err_set(e, CKR_EARG, "--data %s: the file is "
			               "given twice",
			               path);
	if (l->n == MAX_FILES)
		return err_set(e, CKR_EARG, "--data %s: expected at most %d "
		               "files", path, MAX_FILES);
	v = mem_append(l->v, l->n, sizeof(*v));
	if (!v)
		return err_no_memory(e);
	l->v = v;
	new = &v[l->n++];
	new->name = name ? strndup(name, n) : NULL;
	new->path = strdup(path);
	return new->path && (new->name || !name) ? CKR_OK : err_no_memory(e);
}

static ckr_status
add_pattern(struct data_list *l, const char *name, size_t n,
            const char *pattern, struct err *e)
{
	glob_t found = { 0 };
	int failed = glob(pattern, 0, NULL, &found);
	ckr_status s = CKR_OK;

	if (failed == GLOB_NOMATCH)
		s = err_set(e, CKR_EIO, "--data '%s': no file matches the "
		            "pattern", pattern);
	else if (failed)
		s = err_set(e, CKR_EIO, "--data '%s': cannot expand the "
		            "pattern",
		            pattern);
	for (size_t i = 0; s == CKR_OK && i < found.gl_pathc; i++)
		s = append_file(l, name, n, found.gl_pathv[i], e);
	globfree(&found);
	return s;
}

static bool
path_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static ckr_status
add_data_arg(struct data_list *l, const char *text, struct err *e)
{
	size_t n = strcspn(text, "=/");
	const char *name = NULL, *path = text;

	if (n && text[n] == '=' && !path_exists(text)) {
		name = text;
		path = text + n + 1;
	}
	if (!path_exists(path) && strpbrk(path, "*?["))
		return add_pattern(l, name, n, path, e);
	return append_file(l, name, n, path, e);
}

ckr_status
data_list_make(struct data_list *l, const char *const *text, size_t n,
               struct err *e)
{
	*l = (struct data_list){ 0 };
	for (size_t i = 0; i < n; i++) {
		ckr_status s = add_data_arg(l, text[i], e);

		if (s != CKR_OK) {
			data_list_free(l);
			return s;
		}
	}
	return CKR_OK;
}

void
data_list_free(struct data_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].name);
		free(l->v[i].path);
	}
	free(l->v);
	*l = (struct data_list){ 0 };
}
