/* Opening a file of arrays by its contents, and model.safetensors.index.json:
 * which of several files beside it holds a tensor.
 *
 *	{"metadata": {...}, "weight_map": {"NAME": "FILE", ...}}
 *
 * The arrays are those of the files; each must be where the index says.
 */
#include "runtime/base/mem.h"
#include "runtime/file/format.h"
#include "runtime/file/names.h"
#include "runtime/file/parts_folder.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/support/json.h"
#include "runtime/support/path.h"

enum { MAX_INDEX = 100 << 20, MAX_SHARDS = 4096 };

struct index_reader {
	struct array_file *f;
	struct err *e;
	ckr_status failed;              /* of what is no fault of JSON */
};

static bool
set_failed(struct index_reader *r, ckr_status s)
{
	r->failed = s;
	return false;
}

/* Of a file in the same directory, and fit for a message. */
static bool
is_plain_name(const char *name)
{
	for (const char *s = name; *s; s++)
		if (*s == '/' || (unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

/* The shard, opened when it is named first; NULL after a failure. */
static struct array_file *
open_named_shard(struct index_reader *r, const char *name)
{
	struct array_file *f = r->f;
	size_t folder = (size_t)(path_base(f->path) - f->path);
	char *path = names_joined(f->path, folder, name), text[NAME_TEXT];

	if (!path) {
		r->failed = err_no_memory(r->e);
		return NULL;
	}
	for (size_t i = 0; i < f->npart; i++)
		if (!strcmp(f->part[i].path, path)) {
			free(path);
			return &f->part[i];
		}
	if (!is_plain_name(name) || f->npart == MAX_SHARDS)
		r->failed = err_set(r->e, CKR_EFORMAT, "%s: expected names of "
		                    "at most %d files in the same directory, "
		                    "found '%s'",
		                    f->path, MAX_SHARDS,
		                    err_name(text, sizeof(text), name));
	else
		r->failed = array_open_as(&f->part[f->npart], path,
		                          format_read, NULL, r->e);
	free(path);
	return r->failed == CKR_OK ? &f->part[f->npart++] : NULL;
}

static bool
read_weight_file(struct json *j, const char *name, void *reader)
{
	struct index_reader *r = reader;
	struct array_file *f = r->f, *shard;
	const struct array *a;
	struct array *v;
	char *file, text[NAME_TEXT];

	if (!json_string(j, &file))
		return false;
	shard = open_named_shard(r, file);
	if (!shard)
		return false;
	a = array_find(shard, name);
	if (!a)
		return set_failed(r, err_set(r->e, CKR_EFORMAT, "%s: tensor "
		                             "'%s' is missing from its shard "
		                             "%s",
		                             f->path,
		                             err_name(text, sizeof(text), name),
		                             shard->path));
	v = mem_append(f->v, f->n, sizeof(*v));
	if (!v)
		return set_failed(r, err_no_memory(r->e));
	f->v = v;
	f->v[f->n] = *a;
	f->v[f->n++].shard = shard;
	return true;
}

static bool
read_index_key(struct json *j, const char *key, void *reader)
{
	return strcmp(key, "weight_map") ? json_skip(j)
	       : json_object(j, read_weight_file, reader);
}

static ckr_status
read_index(struct array_file *f, struct err *e)
{
	struct index_reader r = { .f = f, .e = e };
	struct json j;

	if (f->size > MAX_INDEX)
		return err_set(e, CKR_EFORMAT, "%s: the index has %llu bytes; "
		               "expected at most %d", f->path,
		               (unsigned long long)f->size, MAX_INDEX);
	f->part = calloc(MAX_SHARDS, sizeof(*f->part));
	if (!f->part)
		return err_no_memory(e);
	CKR_TRY(file_text(f->fd, f->path, f->size, 0, &f->text, e));
	j = (struct json){ .text = f->text, .size = f->size };
	if (json_object(&j, read_index_key, &r) && json_end(&j) && f->n)
		return CKR_OK;
	return r.failed ? r.failed
	       : err_set(e, CKR_EFORMAT, "%s: expected an index of shards, "
	                 "with a weight_map of tensors, found %s (byte %zu)",
	                 f->path, j.fault ? j.fault : "none", j.at);
}

static ckr_status
read_by_content(struct array_file *f, const void *none, struct err *e)
{
	bool index;

	CKR_TRY(format_is_index(f, &index, e));
	return index ? read_index(f, e) : format_read(f, none, e);
}

ckr_status
array_open(struct array_file *f, const char *path, struct err *e)
{
	return parts_in_folder(path) ? parts_open(f, path, e)
	       : array_open_as(f, path, read_by_content, NULL, e);
}
