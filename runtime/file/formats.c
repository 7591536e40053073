/* The table of formats, and what a file is by its first bytes.  Only shards.c,
 * above this file, knows what an index of files holds. */
#include "runtime/file/format.h"

#include <string.h>

static ckr_status
read_zip(struct array_file *f, struct err *e)
{
	bool pickle;

	CKR_TRY(pickle_is_in_zip(f, &pickle, e));
	return pickle ? pickle_refuse(f, e) : npz_read_directory(f, e);
}

ckr_status
format_refuse_index(struct array_file *f, struct err *e)
{
	return err_set(e, CKR_EFORMAT, "%s: expected a file with tensors, "
	               "found an index of shards", f->path);
}

/* The first that fits: the length of a safetensors header may look like the
 * first bytes of any other format. */
static const struct array_format formats[] = {
	{ .begins = st_head_begins, .read = safetensors_read_header },
	{ "\x93NUMPY", 6, .read = npy_read_header },
	{ "PK\3\4", 4, .read = read_zip },
	{ "PK\5\6", 4, .read = read_zip },
	{ .begins = tokens_begin, .read = tokens_read_header },
	{ .begins = pickle_begins, .read = pickle_refuse, .vague = true },
	{ "{", 1, .read = format_refuse_index, .vague = true },
};

const struct array_format *
format_find(const unsigned char head[FORMAT_HEAD])
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		const struct array_format *k = &formats[i];

		if (k->begins ? k->begins(head)
		              : !memcmp(head, k->magic, k->nmagic))
			return k;
	}
	return NULL;
}

/* *head: the first bytes, zeros behind a shorter file. */
static ckr_status
format_of(const struct array_file *f, unsigned char head[FORMAT_HEAD],
          const struct array_format **k, struct err *e)
{
	size_t n = f->size < FORMAT_HEAD ? (size_t)f->size : FORMAT_HEAD;

	memset(head, 0, FORMAT_HEAD);
	CKR_TRY(file_read(f->fd, f->path, head, n, 0, e));
	*k = format_find(head);
	return CKR_OK;
}

ckr_status
format_is_index(const struct array_file *f, bool *yes, struct err *e)
{
	unsigned char head[FORMAT_HEAD];
	const struct array_format *k;

	CKR_TRY(format_of(f, head, &k, e));
	*yes = k && k->read == format_refuse_index;
	return CKR_OK;
}

ckr_status
format_read(struct array_file *f, const void *none, struct err *e)
{
	unsigned char head[FORMAT_HEAD];
	const struct array_format *k;

	(void)none;
	CKR_TRY(format_of(f, head, &k, e));
	if (k)
		return k->read(f, e);
	if (!f->size)
		return err_set(e, CKR_EFORMAT, "%s: the file is empty",
		               f->path);
	return err_set(e, CKR_EFORMAT, "%s: unknown format; expected "
	               ".safetensors, .npy or .npz, or raw tokens with their "
	               "type (u16, u32 or bytes)",
	               f->path);
}

/* ---- raw tokens ---- */

/* Fails if the file has a header of a format, so is none of bare integers.  The
 * length of a header that would not lie within the file is none. */
static ckr_status
refuse_known(struct array_file *f, struct err *e)
{
	unsigned char head[FORMAT_HEAD];
	const struct array_format *k;

	CKR_TRY(format_of(f, head, &k, e));
	if (!k || k->vague || (k->read == safetensors_read_header
	                       && st_head_size(head) > f->size - 8))
		return CKR_OK;
	return err_set(e, CKR_EFORMAT, "%s: not raw tokens: the file is .npy, "
	               ".npz, .safetensors or has a token header, which gives "
	               "its type; omit --tokens", f->path);
}

static ckr_status
read_bare(struct array_file *f, const void *options, struct err *e)
{
	uint8_t dtype = *(const uint8_t *)options;
	uint64_t size = dtype_row[dtype].nbytes;

	CKR_TRY(refuse_known(f, e));
	if (f->size % size)
		return err_set(e, CKR_EFORMAT, "%s: %llu bytes are not a whole "
		               "number of %s tokens", f->path,
		               (unsigned long long)f->size,
		               dtype_row[dtype].text);
	return array_alone(f, dtype, 0, f->size / size, e);
}

ckr_status
array_open_raw(struct array_file *f, const char *path, uint8_t dtype,
               struct err *e)
{
	return array_open_as(f, path, read_bare, &dtype, e);
}
