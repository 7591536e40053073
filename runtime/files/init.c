/* Initial weights from files of another model, or of parts of this one. */
#include "runtime/file/names.h"
#include "runtime/files/inside.h"
#include "runtime/support/glob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The weight keeps its value whatever the file holds. */
static bool
is_skipped(const struct ckr_init *how, const char *name)
{
	return glob_any((int)how->nskip, how->skip, name);
}

static ckr_status
need_match(struct files *c, const struct infile *o, size_t n, const char *glob)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	char text[NAME_TEXT], files[32];
	bool any = false;

	snprintf(files, sizeof(files), "the %zu files", n);
	for (uint32_t i = 0; i < c->lib->nshared && !any; i++)
		any = tensor_is_weight(&t[i]) && glob_match(glob, t[i].name);
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < o[k].f.n && !any; i++)
			any = glob_match(glob, o[k].f.v[i].name);
	return any ? CKR_OK
	       : err_set(c->err, CKR_EARG, "'%s' matches no parameter or "
	                 "buffer of %s, and no tensor of %s",
	                 err_name(text, sizeof(text), glob),
	                 c->world->library->path,
	                 n == 1 ? o->f.path : files);
}

/* ---- names ---- */

static bool
has_names_of_model(const struct files *c, const struct array_file *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (!library_find(c->lib, f->v[i].name, NULL))
			return false;
	return true;
}

static bool
matches_map(const struct array_file *f, const char *map)
{
	bool any = false;

	for (size_t i = 0; i < f->n; i++)
		any |= !strncmp(f->v[i].name, map, strcspn(map, "="));
	return any;
}

/* Among several files, a file with the model's names needs no mapping. */
static bool
is_mapped(const struct files *c, const struct infile *o, size_t n)
{
	return n == 1 || !has_names_of_model(c, &o->f);
}

/* A mapping applies to the files whose names it matches. */
static ckr_status
map_names(struct files *c, struct infile *o, size_t n,
          const struct ckr_init *how)
{
	const char **map = calloc(how->nmap + 1, sizeof(*map));
	size_t nmap = 0;
	ckr_status s = CKR_OK;

	if (!map)
		return err_no_memory(c->err);
	o->mapped = how->nmap && is_mapped(c, o, n);
	for (size_t k = 0; k < how->nmap && o->mapped; k++)
		if (n == 1 || matches_map(&o->f, how->map[k]))
			map[nmap++] = how->map[k];
	s = names_map(&o->f, map, nmap, c->err);
	free(map);
	return s;
}

/* With several files, fails unless the mapping matches one that is mapped. */
static ckr_status
need_fit(struct files *c, const struct infile *o, size_t n, const char *map)
{
	char text[NAME_TEXT], old[NAME_TEXT], begin[NAME_TEXT];
	const struct infile *idle = NULL;

	for (size_t k = 0; k < n; k++) {
		if (n > 1 && !matches_map(&o[k].f, map))
			continue;
		if (is_mapped(c, &o[k], n))
			return CKR_OK;
		idle = &o[k];
	}
	err_name(text, sizeof(text), map);
	if (idle)
		return err_set(c->err, CKR_EARG, "%s: --init-map '%s' changes "
		               "nothing: all tensors already have the model's "
		               "names; omit the option", idle->f.path,
		               text);
	snprintf(old, sizeof(old), "%.*s", (int)strcspn(map, "="), map);
	return err_set(c->err, CKR_EARG, "--init-map '%s': no tensor name in "
	               "the %zu files begins with '%s'", text, n,
	               err_name(begin, sizeof(begin), old));
}

/* ---- which weights come from which file ---- */

/* Whether a file of o[from..n-1] has it. */
static bool
is_in_files(const struct infile *o, size_t from, size_t n, const char *name)
{
	while (from < n && !array_find(&o[from].f, name))
		from++;
	return from < n;
}

/* Which weights file k, as this process sees it, leaves as they are: those that
 * a later one holds, and those that it lacks and another one has. */
static void
mark_skipped_weights(struct files *c, struct infile *o, size_t k, size_t n,
                     const struct ckr_init *how)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;

	for (uint32_t i = 0; i < c->lib->nshared; i++)
		o[k].leave[i] |= tensor_is_weight(&t[i])
			&& (is_skipped(how, t[i].name)
			    || is_in_files(o, k + 1, n, t[i].name)
			    || (!array_find(&o[k].f, t[i].name)
			        && (how->partial
			            || is_in_files(o, 0, n, t[i].name))));
}

/* Which weights of a file a later one holds, too. */
static void
note_twice(struct files *c, const struct infile *o, size_t k, size_t n)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	char *text = c->unread.text, name[NAME_TEXT], more[40] = " is";
	size_t end = strlen(text), twice = 0;
	const char *first = NULL;

	for (uint32_t i = 0; i < c->lib->nshared; i++)
		if (tensor_is_weight(&t[i]) && array_find(&o[k].f, t[i].name)
		    && is_in_files(o, k + 1, n, t[i].name)) {
			first = first ? first : t[i].name;
			twice++;
		}
	if (twice > 1)
		snprintf(more, sizeof(more), " and %zu more are", twice - 1);
	if (twice)
		snprintf(text + end, sizeof(c->unread.text) - end,
		         "%s%s: '%s'%s also in a later file, which takes "
		         "precedence",
		         end ? "; " : "", o[k].f.path,
		         err_name(name, sizeof(name), first), more);
}

/* ---- all ---- */

/* Weights are averages, as far as the files have them. */
static ckr_status
use_averages(struct files *c, struct infile *o, size_t n)
{
	size_t all = 0, some;

	for (size_t k = 0; k < n; k++) {
		if (o[k].far)
			return CKR_OK;
		CKR_TRY(names_use_averages(&o[k].f, &some, c->err));
		all += some;
	}
	return all ? CKR_OK
	       : err_set(c->err, CKR_EFORMAT, "%s: no moving averages of "
	                 "parameters: expected a checkpoint of a library of "
	                 "ckc --ema", o[0].f.path);
}

/* What is said of all files is the first process's to see. */
static ckr_status
prepare_files(struct files *c, struct infile *o, size_t n,
              const struct ckr_init *how)
{
	bool first = world_is_first(c->world);

	for (size_t k = 0; k < n; k++)
		CKR_TRY(infile_map_adapters(c, &o[k]));
	if (how->ema)
		CKR_TRY(use_averages(c, o, n));
	for (size_t k = 0; k < how->nmap && first; k++)
		CKR_TRY(need_fit(c, o, n, how->map[k]));
	for (size_t k = 0; k < n; k++)
		if (!o[k].far)
			CKR_TRY(map_names(c, &o[k], n, how));
	for (size_t k = 0; k < how->nskip && first; k++)
		CKR_TRY(need_match(c, o, n, how->skip[k]));
	return CKR_OK;
}

static ckr_status
init_from(struct files *c, struct infile *o, size_t n,
          const struct ckr_init *how)
{
	CKR_TRY(world_agree(c->world, prepare_files(c, o, n, how), "reading"));
	for (size_t k = 0; k < n; k++)
		CKR_TRY(infile_mark_kept(c, &o[k]));
	for (size_t k = 0; k < n; k++) {
		mark_skipped_weights(c, o, k, n, how);
		CKR_TRY(infile_agree(c, &o[k]));
	}
	CKR_TRY(load_weight_files(c, o, n));
	for (size_t k = 0; k < n; k++)
		note_twice(c, o, k, n);
	return CKR_OK;
}

ckr_status
files_init(struct files *c, const char *const *path, size_t n,
           const struct ckr_init *how)
{
	static const struct ckr_init plain;
	struct infile *o;
	size_t opened = 0;
	ckr_status s = CKR_OK;

	for (size_t k = 0; how && k < how->nmap; k++)
		if (!strchr(how->map[k], '='))
			return err_set(c->err, CKR_EARG, "expected a mapping "
			               "OLD=NEW, found '%s'", how->map[k]);
	o = calloc(n + 1, sizeof(*o));
	if (!o)
		return err_no_memory(c->err);
	for (; opened < n && s == CKR_OK; opened += s == CKR_OK)
		s = infile_open(c, path[opened], &o[opened]);
	if (s == CKR_OK && n)
		s = init_from(c, o, n, how ? how : &plain);
	while (opened > 0)
		infile_close(&o[--opened]);
	free(o);
	return s;
}

const char *
files_missing_weight(const struct files *c, size_t k)
{
	for (uint32_t i = 0; c->left && i < c->lib->nshared; i++)
		if (c->left[i] && !k--)
			return c->lib->program[0].tensor[i].name;
	return NULL;
}

/* ---- the room ---- */

struct files *
files_open(struct world *w, struct stepping *steps)
{
	struct files *c = malloc(sizeof(*c));

	if (c)
		*c = (struct files){ .err = w->err, .lib = w->lib,
			.world = w, .steps = steps };
	return c;
}

void
files_close(struct files *c)
{
	if (!c)
		return;
	grads_free(c);
	async_save_close(c);
	free(c->left);
	free(c);
}
