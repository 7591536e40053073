/* safetensors: 8 bytes little-endian header length, a JSON header, data.
 *
 *	{"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
 *	 "__metadata__": {"KEY": "VALUE"}}
 *
 * Reading trusts nothing: the header's size is limited, every shape is
 * multiplied with overflow checks, offsets must lie in the file and agree with
 * shape and type.  Writing puts the header first and lets data come in any
 * order, so that tensors can be written as they become ready.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/mem.h"
#include "runtime/file/codes.h"
#include "runtime/file/format.h"
#include "runtime/support/json.h"
#include "runtime/support/utf8.h"

enum { MAX_HEADER = 100 << 20, DATA_ALIGN = 64 };

struct st_reader {
	struct array_file *f;
	struct json j;
	struct err *e;
	uint64_t data;                  /* where data begins */
	ckr_status failed;              /* of what is no fault of JSON */
};

static bool
read_meta(struct json *j, const char *key, void *reader)
{
	struct st_reader *r = reader;
	struct array_file *f = r->f;
	struct meta *v;
	char *value;

	if (!json_string(j, &value))
		return false;
	v = mem_append(f->meta, f->nmeta, sizeof(*v));
	if (!v) {
		r->failed = err_no_memory(r->e);
		return false;
	}
	f->meta = v;
	f->meta[f->nmeta++] = (struct meta){ key, value };
	return true;
}

static bool
read_shape_dim(struct json *j, void *array)
{
	struct array *a = array;

	if (a->rank == CKR_MAX_DIMS)
		return json_fail(j, "more than 8 dimensions");
	return json_uint(j, &a->dim[a->rank++]);
}

/* A tensor's object. */
struct tensor_entry {
	struct array a;
	int64_t offset[2];
	unsigned have;                  /* which fields were seen */
};

static bool
read_field(struct json *j, const char *key, void *entry)
{
	struct tensor_entry *t = entry;
	unsigned bit = !strcmp(key, "dtype") ? 1 : !strcmp(key, "shape") ? 2
	               : !strcmp(key, "data_offsets") ? 4 : 0;
	char *type;

	if (t->have & bit)
		return json_fail(j, "a field occurs twice");
	t->have |= bit;
	switch (bit) {
	case 1:
		if (!json_string(j, &type))
			return false;
		t->a.dtype = dtype_from_st(type, strlen(type));
		return true;
	case 2:
		return json_list(j, read_shape_dim, &t->a);
	case 4:
		return json_expect(j, '[') && json_uint(j, &t->offset[0])
		       && json_expect(j, ',') && json_uint(j, &t->offset[1])
		       && json_expect(j, ']');
	default:
		return json_skip(j);
	}
}

static ckr_status
add_array(struct st_reader *r, struct array a, const int64_t offset[2])
{
	struct array_file *f = r->f;
	struct array *v;
	char text[NAME_TEXT];

	err_name(text, sizeof(text), a.name);
	if (offset[0] > offset[1]
	    || (uint64_t)offset[1] > f->size - r->data)
		return err_set(r->e, CKR_EFORMAT, "%s: tensor '%s' lies at "
		               "bytes %lld..%lld, but the file holds %llu "
		               "bytes of data; it may be cut off", f->path,
		               text,
		               (long long)offset[0], (long long)offset[1],
		               (unsigned long long)(f->size - r->data));
	if (!dtype_bytes(a.dtype, a.rank, a.dim, &a.nelem, &a.nbytes))
		return err_set(r->e, CKR_EFORMAT, "%s: tensor '%s' has an "
		               "impossible shape", f->path, text);
	if (!a.dtype)
		a.nbytes = (uint64_t)(offset[1] - offset[0]);
	if (a.nbytes != (uint64_t)(offset[1] - offset[0]))
		return err_set(r->e, CKR_EFORMAT, "%s: tensor '%s' has %llu "
		               "bytes by its shape, but %lld by its offsets",
		               f->path,
		               text, (unsigned long long)a.nbytes,
		               (long long)(offset[1] - offset[0]));
	a.at = r->data + (uint64_t)offset[0];
	v = mem_append(f->v, f->n, sizeof(*v));
	if (!v)
		return err_no_memory(r->e);
	f->v = v;
	f->v[f->n++] = a;
	return CKR_OK;
}

static bool
read_entry(struct json *j, const char *name, void *reader)
{
	struct st_reader *r = reader;
	struct tensor_entry t = { .a.name = name };

	if (!strcmp(name, "__metadata__"))
		return json_object(j, read_meta, r);
	if (!json_object(j, read_field, &t))
		return false;
	if (t.have != 7)
		return json_fail(j, "dtype, shape or data_offsets is missing");
	r->failed = add_array(r, t.a, t.offset);
	return r->failed == CKR_OK;
}

static int
compare_offsets(const void *a, const void *b)
{
	const struct array *x = a, *y = b;

	return x->at != y->at ? (x->at > y->at) - (x->at < y->at)
	       : (x->nbytes > y->nbytes) - (x->nbytes < y->nbytes);
}

/* Bytes of the file that are no tensor's. */
static ckr_status
stray_bytes(struct st_reader *r, uint64_t from, uint64_t to)
{
	return err_set(r->e, CKR_EFORMAT, "%s: data bytes %llu..%llu belong to "
	               "no tensor; the file is damaged", r->f->path,
	               (unsigned long long)(from - r->data),
	               (unsigned long long)(to - r->data));
}

/* The format gives each byte of data to one tensor. */
static ckr_status
check_disjoint(struct st_reader *r)
{
	const struct array_file *f = r->f;
	struct array *v = malloc((f->n + 1) * sizeof(*v));
	uint64_t end = r->data;
	char one[NAME_TEXT], other[NAME_TEXT];
	ckr_status s = CKR_OK;

	if (!v)
		return err_no_memory(r->e);
	if (f->n)
		memcpy(v, f->v, f->n * sizeof(*v));
	qsort(v, f->n, sizeof(*v), compare_offsets);
	for (size_t i = 0, last = 0; i < f->n && s == CKR_OK; i++) {
		if (!v[i].nbytes)
			continue;
		if (v[i].at < end)
			s = err_set(r->e, CKR_EFORMAT, "%s: tensors '%s' and "
			            "'%s' overlap", f->path,
			            err_name(one, sizeof(one), v[last].name),
			            err_name(other, sizeof(other), v[i].name));
		else if (v[i].at > end)
			s = stray_bytes(r, end, v[i].at);
		end = v[i].at + v[i].nbytes;
		last = i;
	}
	if (s == CKR_OK && end < f->size)
		s = stray_bytes(r, end, f->size);
	free(v);
	return s;
}

ckr_status
safetensors_read_header(struct array_file *f, struct err *e)
{
	struct st_reader r = { .f = f, .e = e };
	unsigned char head[8];
	uint64_t n;

	CKR_TRY(file_read(f->fd, f->path, head, 8, 0, e));
	n = st_head_size(head);
	if (n > f->size - 8)
		return err_set(e, CKR_EFORMAT, "%s: the safetensors header has "
		               "%llu bytes, but the file has %llu; it may be "
		               "cut off",
		               f->path, (unsigned long long)n,
		               (unsigned long long)f->size);
	if (n > MAX_HEADER)
		return err_set(e, CKR_EFORMAT, "%s: the safetensors header has "
		               "%llu bytes; expected at most %d", f->path,
		               (unsigned long long)n, MAX_HEADER);
	CKR_TRY(file_text(f->fd, f->path, n, 8, &f->text, e));
	r.j = (struct json){ .text = f->text, .size = n };
	r.data = 8 + n;
	if (json_object(&r.j, read_entry, &r) && json_end(&r.j)) {
		CKR_TRY(check_disjoint(&r));
		return codes_find(f, e);
	}
	return r.failed ? r.failed
	       : err_set(e, CKR_EFORMAT, "%s: not a valid safetensors file: "
	                 "%s (byte %zu of the header)", f->path, r.j.fault,
	                 r.j.at);
}

/* ---- writing ---- */

/* The header text; w->at is filled relative to the data's beginning. */
static ckr_status
format_header(struct st_writer *w, const struct st_entry *t, size_t n,
              const struct meta *meta, size_t nmeta, char **text, size_t *size,
              struct err *e)
{
	FILE *h = st_head_open(text, size);
	uint64_t at = 0, nelem, nbytes;

	if (!h)
		return err_no_memory(e);
	fputs("{\"__metadata__\":{\"format\":\"ckc\"", h);
	for (size_t i = 0; i < nmeta; i++) {
		fputc(',', h);
		utf8_json(h, meta[i].key);
		fputc(':', h);
		utf8_json(h, meta[i].value);
	}
	fputc('}', h);
	for (size_t i = 0; i < n; i++) {
		w->at[i] = at;
		if (!dtype_bytes(t[i].dtype, t[i].rank, t[i].dim, &nelem,
		                 &nbytes)
		    || __builtin_add_overflow(at, nbytes, &at)) {
			fclose(h);
			return err_set(e, CKR_EARG, "'%s' is too large",
			               t[i].name);
		}
		st_head_tensor(h, t[i].name, dtype_row[t[i].dtype].st,
		               t[i].rank, t[i].dim, w->at[i], at);
	}
	w->at[n] = at;
	if (!st_head_close(h, size, DATA_ALIGN))
		return err_no_memory(e);
	return CKR_OK;
}

/* Where entries lie, and the header; *text is the caller's to free. */
static ckr_status
plan_offsets(struct st_writer *w, const struct st_entry *t, size_t n,
             const struct meta *meta, size_t nmeta, char **text, size_t *size,
             struct err *e)
{
	*w = (struct st_writer){ .file = { .fd = -1 }, .n = n };
	*text = NULL;
	w->at = calloc(n + 1, sizeof(*w->at));
	if (!w->at)
		return err_no_memory(e);
	CKR_TRY(format_header(w, t, n, meta, nmeta, text, size, e));
	for (size_t i = 0; i <= n; i++)
		w->at[i] += 8 + *size;
	return CKR_OK;
}

ckr_status
st_begin_in(struct st_writer *w, struct new_file file,
            const struct st_entry *t, size_t n, const struct meta *meta,
            size_t nmeta, struct err *e)
{
	unsigned char len[8];
	char *text;
	size_t size = 0;
	ckr_status s = plan_offsets(w, t, n, meta, nmeta, &text, &size, e);

	w->file = file;
	st_head_length(len, size);
	if (s == CKR_OK)
		s = file_write(file.fd, file.path, len, 8, 0, e);
	if (s == CKR_OK)
		s = file_write(file.fd, file.path, text, size, 8, e);
	free(text);
	if (s == CKR_OK && ftruncate(file.fd, (off_t)w->at[n]))
		s = err_set(e, CKR_EIO, "%s: cannot write: %m", file.path);
	if (s != CKR_OK)
		st_abort(w);
	return s;
}

ckr_status
st_begin(struct st_writer *w, const char *path, const struct st_entry *t,
         size_t n, const struct meta *meta, size_t nmeta, struct err *e)
{
	struct new_file file;

	*w = (struct st_writer){ .file = { .fd = -1 } };
	CKR_TRY(new_file_open(&file, path, e));
	return st_begin_in(w, file, t, n, meta, nmeta, e);
}

ckr_status
st_join(struct st_writer *w, const char *path, const struct st_entry *t,
        size_t n, const struct meta *meta, size_t nmeta, struct err *e)
{
	char *text;
	size_t size = 0;
	ckr_status s = plan_offsets(w, t, n, meta, nmeta, &text, &size, e);

	free(text);
	w->file.path = strdup(path);
	if (s == CKR_OK && !w->file.path)
		s = err_no_memory(e);
	if (s != CKR_OK)
		st_abort(w);
	return s;
}

ckr_status
st_offset(const struct st_writer *w, size_t i, uint64_t from, size_t n,
          uint64_t *at, struct err *e)
{
	if (i >= w->n || from + n > w->at[i + 1] - w->at[i])
		return err_set(e, CKR_EARG, "internal: write outside an entry");
	*at = w->at[i] + from;
	return CKR_OK;
}

ckr_status
st_write(struct st_writer *w, size_t i, uint64_t from, const void *data,
         size_t nbytes, struct err *e)
{
	uint64_t at;

	CKR_TRY(st_offset(w, i, from, nbytes, &at, e));
	return file_write(w->file.fd, w->file.path, data, nbytes, at, e);
}

ckr_status
st_commit(struct st_writer *w, struct err *e)
{
	ckr_status s = new_file_commit(&w->file, e);

	free(w->at);
	w->at = NULL;
	return s;
}

void
st_abort(struct st_writer *w)
{
	new_file_abort(&w->file);
	free(w->at);
	w->at = NULL;
}
