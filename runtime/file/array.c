/* Arrays in files: opening by content, finding, reading with conversion. */
#include "runtime/file/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ckr_status
array_begin(struct array_file *f, const char *path, struct err *e)
{
	*f = (struct array_file){ .fd = -1 };
	f->path = strdup(path);
	if (!f->path)
		return err_set(e, CKR_ENOMEM, "out of memory");
	return file_open(path, &f->fd, &f->size, e);
}

static int
compare_names(const void *a, const void *b, void *file)
{
	const struct array_file *f = file;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = strcmp(f->v[x].name, f->v[y].name);

	return c ? c : x < y ? -1 : x > y;
}

ckr_status
array_index(struct array_file *f, struct err *e)
{
	char name[NAME_TEXT];

	if (f->n >= UINT32_MAX)
		return err_set(e, CKR_EFORMAT, "%s: too many arrays", f->path);
	f->index = malloc((f->n + 1) * sizeof(*f->index));
	if (!f->index)
		return err_set(e, CKR_ENOMEM, "out of memory");
	for (size_t i = 0; i < f->n; i++)
		f->index[i] = (uint32_t)i;
	qsort_r(f->index, f->n, sizeof(*f->index), compare_names, f);
	for (size_t i = 1; i < f->n; i++) {
		const char *s = f->v[f->index[i]].name;

		if (!strcmp(s, f->v[f->index[i - 1]].name))
			return err_set(e, CKR_EFORMAT, "%s: two arrays are "
			               "called '%s'", f->path,
			               err_name(name, sizeof(name), s));
	}
	return CKR_OK;
}

static ckr_status
read_zip(struct array_file *f, struct err *e)
{
	bool pickle;

	CKR_TRY(pickle_is_in_zip(f, &pickle, e));
	return pickle ? pickle_refuse(f, e) : npz_read_directory(f, e);
}

static bool
starts_with(const unsigned char *head, const char *with, size_t n)
{
	return !memcmp(head, with, n);
}

ReadHeader *
array_reader(const unsigned char head[ST_HEAD_BEGINS])
{
	if (st_head_begins(head))
		return safetensors_read_header;
	if (starts_with(head, "\x93NUMPY", 6))
		return npy_read_header;
	if (starts_with(head, "PK\3\4", 4) || starts_with(head, "PK\5\6", 4))
		return read_zip;
	if (tokens_begin(head))
		return tokens_read_header;
	if (pickle_begins(head))
		return pickle_refuse;
	return head[0] == '{' ? shards_read_index : NULL;
}

/* *head: the first bytes, zeros behind a shorter file. */
static ckr_status
find_reader(const struct array_file *f, unsigned char head[ST_HEAD_BEGINS],
            ReadHeader **read, struct err *e)
{
	size_t n = f->size < ST_HEAD_BEGINS ? (size_t)f->size : ST_HEAD_BEGINS;

	memset(head, 0, ST_HEAD_BEGINS);
	CKR_TRY(file_read(f->fd, f->path, head, n, 0, e));
	*read = array_reader(head);
	return CKR_OK;
}

static ckr_status
read_by_content(struct array_file *f, bool shard, struct err *e)
{
	unsigned char head[ST_HEAD_BEGINS];
	ReadHeader *read;

	CKR_TRY(find_reader(f, head, &read, e));
	if (shard && read == shards_read_index)
		return err_set(e, CKR_EFORMAT, "%s: expected a file with "
		               "tensors, found an index of shards", f->path);
	if (read)
		return read(f, e);
	if (!f->size)
		return err_set(e, CKR_EFORMAT, "%s: the file is empty",
		               f->path);
	return err_set(e, CKR_EFORMAT, "%s: unknown format; expected "
	               ".safetensors, .npy or .npz, or raw tokens with their "
	               "type (u16, u32 or bytes)",
	               f->path);
}

static ckr_status
open_any(struct array_file *f, const char *path, bool shard, struct err *e)
{
	ckr_status s = array_begin(f, path, e);

	if (s == CKR_OK)
		s = read_by_content(f, shard, e);
	if (s == CKR_OK)
		s = array_index(f, e);
	if (s != CKR_OK)
		array_close(f);
	return s;
}

ckr_status
array_open(struct array_file *f, const char *path, struct err *e)
{
	return open_any(f, path, false, e);
}

ckr_status
array_open_shard(struct array_file *f, const char *path, struct err *e)
{
	return open_any(f, path, true, e);
}

/* Bare integers may begin like a pickle, a text, or the length of a header that
 * would not lie within the file. */
static ckr_status
check_headerless(const struct array_file *f, struct err *e)
{
	unsigned char head[ST_HEAD_BEGINS];
	ReadHeader *read;

	CKR_TRY(find_reader(f, head, &read, e));
	if (!read || read == pickle_refuse || read == shards_read_index
	    || (read == safetensors_read_header
	        && st_head_size(head) > f->size - 8))
		return CKR_OK;
	return err_set(e, CKR_EFORMAT, "%s: not raw tokens: the file is .npy, "
	               ".npz, .safetensors or has a token header, which gives "
	               "its type; omit --tokens", f->path);
}

ckr_status
array_open_raw(struct array_file *f, const char *path, uint8_t dtype,
               struct err *e)
{
	ckr_status s = array_begin(f, path, e);

	if (s == CKR_OK)
		s = check_headerless(f, e);
	if (s == CKR_OK)
		s = tokens_bare(f, dtype, e);
	if (s == CKR_OK)
		s = array_index(f, e);
	if (s != CKR_OK)
		array_close(f);
	return s;
}

void
array_close(struct array_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	for (size_t i = 0; i < f->npacked; i++)
		if (f->packed[i].fd >= 0)
			close(f->packed[i].fd);
	if (f->provider)
		f->provider->close(f->made);
	for (size_t i = 0; i < f->npart; i++)
		array_close(&f->part[i]);
	for (size_t i = 0; f->renamed && i < f->n; i++)
		free(f->renamed[i]);
	free(f->part);
	free(f->renamed);
	free(f->packed);
	free(f->path);
	free(f->v);
	free(f->meta);
	free(f->text);
	free(f->index);
	*f = (struct array_file){ .fd = -1 };
}

const struct array *
array_find(const struct array_file *f, const char *name)
{
	size_t lo = 0, hi = f->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct array *a = &f->v[f->index[mid]];
		int c = strcmp(a->name, name);

		if (!c)
			return a;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const char *
array_meta(const struct array_file *f, const char *key)
{
	for (size_t i = 0; i < f->nmeta; i++)
		if (!strcmp(f->meta[i].key, key))
			return f->meta[i].value;
	return NULL;
}

const char *
array_place(char *buf, size_t size, const struct array *a)
{
	char name[NAME_TEXT];

	*buf = '\0';
	if (*a->name)
		snprintf(buf, size, ": '%s'",
		         err_name(name, sizeof(name), a->name));
	return buf;
}

ckr_status
array_prepare(const struct array_file *f, const struct array *a, struct err *e)
{
	if (a->shard)
		f = a->shard;
	return a->packed ? packed_inflate(f->fd, f->path, a->packed, e)
	       : CKR_OK;
}

/* Elements first..first+n-1 as they are. */
static ckr_status
read_plain(const struct array_file *f, const struct array *a, uint64_t first,
           uint64_t n, void *out, struct err *e)
{
	uint64_t size = dtype_row[a->dtype].nbytes;

	if (a->made)
		return f->provider->read(f->made, first, n, out, e);
	return file_read(a->packed ? a->packed->fd : f->fd, f->path, out,
	                 n * size, a->at + first * size, e);
}

ckr_status
array_read(const struct array_file *f, const struct array *a, uint64_t first,
           uint64_t n, uint8_t dtype, void *out, struct err *e)
{
	unsigned char buf[16384];
	uint64_t from = dtype_row[a->dtype].nbytes;
	uint64_t to = dtype_row[dtype].nbytes;
	uint64_t step = sizeof(buf) / 8;
	char place[NAME_TEXT + 4];

	if (a->shard)
		f = a->shard;
	if (first > a->nelem || n > a->nelem - first)
		return err_set(e, CKR_EARG, "%s: elements %llu..%llu are out "
		               "of range: the array has %llu",
		               f->path, (unsigned long long)first,
		               (unsigned long long)(first + n),
		               (unsigned long long)a->nelem);
	CKR_TRY(array_prepare(f, a, e));
	if (a->dtype == dtype && dtype != CKR_BOOL)
		return read_plain(f, a, first, n, out, e);
	if (a->dtype == CKR_NONE)
		return err_set(e, CKR_EUNSUPPORTED, "%s%s has an unsupported "
		               "dtype", f->path,
		               array_place(place, sizeof(place), a));
	for (uint64_t i = 0; i < n; i += step) {
		uint64_t k = n - i < step ? n - i : step;
		size_t bad;

		CKR_TRY(read_plain(f, a, first + i, k, buf, e));
		if (!dtype_convert((char *)out + i * to, dtype, buf, a->dtype,
		                   k, &bad))
			return err_set(e, CKR_EFORMAT, "%s%s: element %llu is "
			               "%.17g, which does not fit %s",
			               f->path,
			               array_place(place, sizeof(place), a),
			               (unsigned long long)(first + i + bad),
			               dtype_double(a->dtype, buf + bad * from),
			               dtype_row[dtype].text);
	}
	return CKR_OK;
}

const char *
array_text(char *buf, size_t size, uint8_t dtype, int rank,
           const int64_t *dim)
{
	size_t n = (size_t)snprintf(buf, size, "%s[", dtype_row[dtype].text);

	for (int i = 0; i < rank && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%lld", i ? "," : "",
		                      (long long)dim[i]);
	if (n < size)
		snprintf(buf + n, size - n, "]");
	return buf;
}
