/* Assembles the columns of a dataset from the arrays of its files. */
#include "runtime/data/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/base/mem.h"
#include "runtime/data/images.h"
#include "runtime/support/path.h"

enum { MAX_LISTED = 8 };

/* ---- files ---- */

/* Every file stays open. */
static void
allow_files(size_t n)
{
	const rlim_t spare = 256;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= n + spare)
		return;
	l.rlim_cur = l.rlim_max < n + spare ? l.rlim_max : n + spare;
	setrlimit(RLIMIT_NOFILE, &l);
}

uint8_t
dataset_token_type(const char *text)
{
	return !strcmp(text, "u16") ? CKR_U16 : !strcmp(text, "u32") ? CKR_U32
	       : !strcmp(text, "bytes") ? CKR_U8 : CKR_NONE;
}

/* Formats that the file's name tells; runtime/file tells others by contents. */
static const struct named_format {
	const char *suffix[2];
	ArrayReader *read;
} named_formats[] = {
	{ { ".csv", ".tsv" }, csv_read },
	{ { ".lst" }, images_read },
};

static const struct named_format *
find_format(const char *path)
{
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < sizeof(named_formats)
	     / sizeof(*named_formats); i++)
		for (int k = 0; k < 2 && named_formats[i].suffix[k]; k++)
			if (!strcasecmp(dot, named_formats[i].suffix[k]))
				return &named_formats[i];
	return NULL;
}

static ckr_status
open_format(struct array_file *f, const char *path,
            const struct dataset_options *o, struct err *e)
{
	const struct named_format *k = find_format(path);

	if (o->tokens)
		return array_open_raw(f, path, dataset_token_type(o->tokens),
		                      e);
	if (o->columns.n && (!k || k->read != csv_read))
		return err_set(e, CKR_EARG, "--columns: '%s' has no columns; "
		               "expected a file *.csv or *.tsv", path);
	return k ? array_open_as(f, path, k->read, &o->columns, e)
	         : array_open(f, path, e);
}

static ckr_status
open_file(struct array_file *f, const struct named_data *d,
          const struct dataset_options *o, struct err *e)
{
	CKR_TRY(open_format(f, d->path, o, e));
	if (!d->name)
		return CKR_OK;
	if (f->n != 1 || *f->v[0].name)
		return err_set(e, CKR_EARG, "--data %s=%s: the arrays of the "
		               "file already have names; try: --data %s --feed "
		               "INPUT=ARRAY", d->name, d->path, d->path);
	f->v[0].name = d->name;
	return CKR_OK;
}

static ckr_status
open_files(struct dataset *s, const struct dataset_options *o, struct err *e)
{
	allow_files(s->list.n);
	s->file = calloc(s->list.n + 1, sizeof(*s->file));
	if (!s->file)
		return err_no_memory(e);
	for (; s->nfile < s->list.n; s->nfile++)
		CKR_TRY(open_file(&s->file[s->nfile], &s->list.v[s->nfile],
		                  o, e));
	return CKR_OK;
}

/* ---- columns ---- */

/* Files of the same names: the first one, and where its columns are. */
struct shard_group {
	const struct array_file *first;
	size_t at;
};

static bool
same_row_shape(const struct array *a, const struct array *b)
{
	return a->dtype == b->dtype && a->rank == b->rank
	       && !memcmp(a->dim + 1, b->dim + 1,
	                  a->rank ? (size_t)(a->rank - 1) * sizeof(*a->dim)
	                          : 0);
}

/* "x" of "some/x.npy", for a name to suggest. */
static int
path_stem(const char *path)
{
	return (int)strcspn(path_base(path), ".=");
}

static ckr_status
shape_mismatch(const struct array_file *f, const struct array *a,
               const struct array_file *g, const struct array *b, struct err *e)
{
	char place[NAME_TEXT + 4], one[128], other[128];

	array_text(one, sizeof(one), a->dtype, a->rank, a->dim);
	array_text(other, sizeof(other), b->dtype, b->rank, b->dim);
	array_place(place, sizeof(place), a);
	if (*a->name)
		return err_set(e, CKR_EARG, "%s%s is %s, but %s in '%s': rows "
		               "of shards must have the same shape and dtype",
		               f->path,
		               place, one, other, g->path);
	return err_set(e, CKR_EARG, "'%s' is %s and '%s' is %s: the files are "
	               "not shards of one array, and their arrays have no "
	               "names; try:\n    --data %.*s=%s --data %.*s=%s",
	               g->path, other, f->path, one, path_stem(g->path),
	               path_base(g->path), g->path, path_stem(f->path),
	               path_base(f->path), f->path);
}

static ckr_status
missing_array(const struct array_file *f, const struct array_file *of,
              const char *name, struct err *e)
{
	char text[NAME_TEXT];

	return err_set(e, CKR_EARG, "%s: array '%s' is missing, but other "
	               "arrays of '%s' are present; shards must hold the same "
	               "arrays", f->path,
	               err_name(text, sizeof(text), name), of->path);
}

/* All names of f are g's. */
static ckr_status
check_shard_names(const struct array_file *f, const struct array_file *g,
                  struct err *e)
{
	for (size_t i = 0; i < f->n; i++)
		if (!array_find(g, f->v[i].name))
			return missing_array(g, f, f->v[i].name, e);
	return CKR_OK;
}

static ckr_status
append_shard(struct array *whole, struct data_column *c,
             const struct array_file *f, const struct array *a, struct err *e)
{
	struct data_shard *v;
	int64_t rows = 0;

	if (c->n && !same_row_shape(a, c->shard->array))
		return shape_mismatch(f, a, c->shard->file, c->shard->array, e);
	v = mem_append(c->shard, c->n, sizeof(*v));
	if (!v)
		return err_no_memory(e);
	c->shard = v;
	c->shard[c->n++] = (struct data_shard){ f, a,
	                                      c->n > 1 ? whole->nelem : 0 };
	if (c->n == 1) {
		*whole = *a;
		return CKR_OK;
	}
	/* numbers without an axis do not add up: nobody can be given them */
	if (!a->rank) {
		whole->dtype = CKR_NONE;
		return CKR_OK;
	}
	if (__builtin_add_overflow(whole->dim[0], a->dim[0], &rows))
		rows = -1;
	whole->dim[0] = rows;
	if (rows < 0 || (a->dtype != CKR_NONE
	                 && !dtype_bytes(a->dtype, a->rank, whole->dim,
	                                 &whole->nelem, &whole->nbytes)))
		return err_set(e, CKR_EFORMAT, "%s: this shard makes the "
		               "number of rows too large", f->path);
	return CKR_OK;
}

/* f brings columns of its own. */
static ckr_status
add_file_columns(struct dataset *s, const struct array_file *f, struct err *e)
{
	size_t n = s->narray + f->n;
	struct array *a = reallocarray(s->array, n + 1, sizeof(*a));
	struct data_column *c;

	if (!a)
		return err_no_memory(e);
	s->array = a;
	c = reallocarray(s->column, n + 1, sizeof(*c));
	if (!c)
		return err_no_memory(e);
	s->column = c;
	for (size_t i = 0; i < f->n; i++) {
		size_t at = s->narray++;

		c[at] = (struct data_column){ 0 };
		CKR_TRY(append_shard(&a[at], &c[at], f, &f->v[i], e));
	}
	return CKR_OK;
}

/* f is a shard of the group's columns. */
static ckr_status
extend_columns(struct dataset *s, const struct shard_group *g,
               const struct array_file *f, struct err *e)
{
	CKR_TRY(check_shard_names(f, g->first, e));
	CKR_TRY(check_shard_names(g->first, f, e));
	for (size_t i = 0; i < f->n; i++) {
		const struct array *a = array_find(g->first, f->v[i].name);
		size_t at = g->at + (size_t)(a - g->first->v);

		CKR_TRY(append_shard(&s->array[at], &s->column[at], f, &f->v[i],
		                     e));
	}
	return CKR_OK;
}

/* The group that has any name of the file; NULL: none. */
static const struct shard_group *
find_group(const struct shard_group *g, size_t n, const struct array_file *f)
{
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < f->n; i++)
			if (array_find(g[k].first, f->v[i].name))
				return &g[k];
	return NULL;
}

static ckr_status
build_columns(struct dataset *s, struct err *e)
{
	struct shard_group *group = calloc(s->nfile + 1, sizeof(*group));
	ckr_status status = group ? CKR_OK : err_no_memory(e);
	size_t n = 0;

	for (size_t i = 0; i < s->nfile && status == CKR_OK; i++) {
		const struct array_file *f = &s->file[i];
		const struct shard_group *g = find_group(group, n, f);

		if (g) {
			status = extend_columns(s, g, f, e);
			continue;
		}
		group[n++] = (struct shard_group){ f, s->narray };
		status = add_file_columns(s, f, e);
	}
	free(group);
	return status;
}

static ckr_status
make_path(struct dataset *s, struct err *e)
{
	size_t size;

	if (!s->nfile)
		return CKR_OK;
	size = strlen(s->file[0].path) + 40;
	s->path = malloc(size);
	if (!s->path)
		return err_no_memory(e);
	if (s->nfile == 1)
		snprintf(s->path, size, "%s", s->file[0].path);
	else
		snprintf(s->path, size, "%s and %zu more", s->file[0].path,
		         s->nfile - 1);
	return CKR_OK;
}

ckr_status
dataset_open(struct dataset *s, const struct dataset_options *o,
             struct err *e)
{
	*s = (struct dataset){ 0 };
	CKR_TRY(data_list_make(&s->list, o->text, o->n, e));
	CKR_TRY(open_files(s, o, e));
	CKR_TRY(make_path(s, e));
	return build_columns(s, e);
}

void
dataset_close(struct dataset *s)
{
	for (size_t i = 0; i < s->nfile; i++)
		array_close(&s->file[i]);
	for (size_t i = 0; i < s->narray; i++)
		free(s->column[i].shard);
	free(s->file);
	free(s->array);
	free(s->column);
	free(s->path);
	data_list_free(&s->list);
	*s = (struct dataset){ 0 };
}

/* ---- reading ---- */

const struct data_column *
dataset_column(const struct dataset *s, const struct array *a)
{
	return &s->column[a - s->array];
}

const struct data_shard *
dataset_shard(const struct data_column *c, uint64_t i)
{
	size_t lo = 0, hi = c->n;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->shard[mid].first <= i)
			lo = mid;
		else
			hi = mid;
	}
	return &c->shard[lo];
}

ckr_status
dataset_prepare(const struct dataset *s, const struct array *a, struct err *e)
{
	const struct data_column *c = dataset_column(s, a);

	for (size_t i = 0; i < c->n; i++)
		CKR_TRY(array_prepare(c->shard[i].file, c->shard[i].array, e));
	return CKR_OK;
}

ckr_status
dataset_read(const struct dataset *s, const struct array *a, uint64_t first,
            uint64_t n, uint8_t dtype, void *out, struct err *e)
{
	const struct data_column *c = dataset_column(s, a);

	CKR_TRY(array_check_range(s->path, a, first, n, e));
	for (uint64_t k; n; first += k, n -= k) {
		const struct data_shard *p = dataset_shard(c, first);
		uint64_t at = first - p->first, left = p->array->nelem - at;

		k = n < left ? n : left;
		CKR_TRY(array_read(p->file, p->array, at, k, dtype, out, e));
		out = (char *)out + k * dtype_row[dtype].nbytes;
	}
	return CKR_OK;
}

/* ---- reports ---- */

ckr_status
dataset_same_rows(const struct dataset *s, const struct array *a,
                 const struct array *b, struct err *e)
{
	const struct data_column *x = dataset_column(s, a);
	const struct data_column *y = dataset_column(s, b);
	char one[NAME_TEXT], other[NAME_TEXT];

	err_name(one, sizeof(one), a->name);
	err_name(other, sizeof(other), b->name);
	for (size_t i = 0; i < x->n && i < y->n; i++) {
		const struct data_shard *p = &x->shard[i], *q = &y->shard[i];

		if (p->array->dim[0] != q->array->dim[0])
			return err_set(e, CKR_EARG, "'%s' has %lld rows of "
			               "'%s', but '%s' has %lld of '%s': "
			               "corresponding shards must have the "
			               "same number of rows, in the same order",
			               p->file->path,
			               (long long)p->array->dim[0], one,
			               q->file->path,
			               (long long)q->array->dim[0], other);
	}
	if (x->n != y->n)
		return err_set(e, CKR_EARG, "'%s' has %zu shards, but '%s' has "
		               "%zu: both arrays must have the same number of "
		               "shards", one,
		               x->n, other, y->n);
	return CKR_OK;
}

/* What a file holds, as its first array goes. */
static void
print_file(const struct array_file *f, FILE *out)
{
	char place[NAME_TEXT + 4], text[128];
	const struct array *a = &f->v[0];

	fprintf(out, "    %s", f->path);
	if (f->n)
		fprintf(out, "%s %s", array_place(place, sizeof(place), a),
		        array_text(text, sizeof(text), a->dtype, a->rank,
		                   a->dim));
	if (f->n > 1)
		fprintf(out, " and %zu more", f->n - 1);
	fputc('\n', out);
}

void
dataset_print(const struct dataset *s, FILE *out)
{
	if (s->nfile < 2)
		return;
	fprintf(out, "  data of %zu files, in this order:\n", s->nfile);
	for (size_t i = 0; i < s->nfile && i < MAX_LISTED; i++)
		print_file(&s->file[i], out);
	if (s->nfile > MAX_LISTED)
		fprintf(out, "    and %zu more, the last one %s\n",
		        s->nfile - MAX_LISTED, s->file[s->nfile - 1].path);
}
