/* Arrays in files: finding, reading with conversion. */
#include "runtime/file/codes.h"
#include "runtime/file/format.h"
#include "runtime/support/blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		return err_no_memory(e);
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

ckr_status
array_alloc(struct array_file *f, size_t n, struct err *e)
{
	f->v = calloc(n + 1, sizeof(*f->v));
	return f->v ? CKR_OK : err_no_memory(e);
}

ckr_status
array_alone(struct array_file *f, uint8_t dtype, uint64_t at, uint64_t n,
            struct err *e)
{
	CKR_TRY(array_alloc(f, 1, e));
	f->n = 1;
	f->v[0] = (struct array){ .name = "", .dtype = dtype, .rank = 1,
		.dim = { (int64_t)n }, .nelem = n,
		.nbytes = n * dtype_row[dtype].nbytes, .at = at };
	return CKR_OK;
}

/* ---- opening ---- */

ckr_status
array_open_as(struct array_file *f, const char *path, ArrayReader *read,
              const void *options, struct err *e)
{
	ckr_status s;

	*f = (struct array_file){ .fd = -1, .path = strdup(path) };
	s = f->path ? file_open(path, &f->fd, &f->size, e) : err_no_memory(e);
	if (s == CKR_OK)
		s = read(f, options, e);
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
	if (f->joiner)
		f->joiner->close(f);
	for (size_t i = 0; i < f->npart; i++)
		array_close(&f->part[i]);
	for (size_t i = 0; f->renamed && i < f->n; i++)
		free(f->renamed[i]);
	for (size_t i = 0; i < f->ncodes; i++)
		free(f->codes[i]);
	free(f->codes);
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

ckr_status
array_check_range(const char *path, const struct array *a, uint64_t first,
                  uint64_t n, struct err *e)
{
	if (first <= a->nelem && n <= a->nelem - first)
		return CKR_OK;
	return err_set(e, CKR_EARG, "%s: elements %llu..%llu are out of range: "
	               "the array has %llu", path, (unsigned long long)first,
	               (unsigned long long)(first + n),
	               (unsigned long long)a->nelem);
}

/* Elements first..first+n-1 as they are. */
static ckr_status
read_plain(const struct array_file *f, const struct array *a, uint64_t first,
           uint64_t n, void *out, struct err *e)
{
	uint64_t size = dtype_row[a->dtype].nbytes;

	if (a->joined)
		return f->joiner->read(f, a, first, n, out, e);
	if (a->codes)
		return codes_read(f, a, first, n, out, e);
	if (a->made)
		return f->provider->read(f->made, first, n, out, e);
	return file_read(a->packed ? a->packed->fd : f->fd, f->path, out,
	                 n * size, a->at + first * size, e);
}

/* Blocks of quantised weights as they are, or from their weights. */
static ckr_status
read_blocks(const struct array_file *f, const struct array *a, uint64_t first,
            uint64_t n, uint8_t dtype, char *out, struct err *e)
{
	uint64_t size = dtype_row[dtype].nbytes;
	enum { SOME = 128 };
	float x[SOME * BLOCK_WEIGHTS];

	if (a->dtype == CKR_U8)
		return array_read(f, a, first * size, n * size, CKR_U8, out, e);
	for (uint64_t i = 0; i < n; i += SOME) {
		uint64_t k = n - i < SOME ? n - i : SOME;

		CKR_TRY(array_read(f, a, (first + i) * BLOCK_WEIGHTS,
		                   k * BLOCK_WEIGHTS, CKR_F32, x, e));
		blocks_pack(dtype, out + i * size, x, k);
	}
	return CKR_OK;
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

	if (blocks_is(dtype))
		return read_blocks(f, a, first, n, dtype, out, e);
	if (a->shard)
		f = a->shard;
	CKR_TRY(array_check_range(f->path, a, first, n, e));
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
	snprintf(buf, size, "%s[", dtype_row[dtype].text);
	for (int i = 0; i < rank; i++)
		err_append(buf, size, "%s%lld", i ? "," : "",
		           (long long)dim[i]);
	err_append(buf, size, "]");
	return buf;
}
