/* .npy files: a header (support/npy.h) and the elements. */
#include <stdlib.h>
#include <string.h>

#include "runtime/file/format.h"
#include "runtime/support/npy.h"

/* What the dictionary says. */
static ckr_status
parse_dict(char *dict, size_t n, struct array *a, const char *path,
           struct err *e)
{
	struct npy x;
	char text[NAME_TEXT];

	if (!npy_parse(&x, dict, n))
		return err_set(e, x.legal ? CKR_EUNSUPPORTED : CKR_EFORMAT,
		               "%s: %s", path,
		               err_name(text, sizeof(text), x.fault));
	a->dtype = (uint8_t)x.dtype;
	a->rank = x.rank;
	memcpy(a->dim, x.dim, sizeof(x.dim));
	return CKR_OK;
}

/* The first n bytes of the .npy file. */
static ckr_status
read_start(const struct array_file *f, const struct array *a, void *to,
           size_t n, struct err *e)
{
	return a->packed ? packed_peek(f->fd, f->path, a->packed, to, n, e)
	       : file_read(f->fd, f->path, to, n, a->at, e);
}

ckr_status
npy_read(const struct array_file *f, struct array *a, uint64_t size,
         struct err *e)
{
	unsigned char head[NPY_HEAD];
	size_t skip, n;
	char *text;
	ckr_status s;

	if (size < NPY_HEAD)
		return err_set(e, CKR_EFORMAT, "%s: the .npy file is cut off",
		               f->path);
	CKR_TRY(read_start(f, a, head, NPY_HEAD, e));
	if (!npy_place(head, &skip, &n))
		return err_set(e, CKR_EFORMAT, "%s: not a valid .npy file",
		               f->path);
	if (n > NPY_TEXT_MAX || n > size - skip)
		return err_set(e, CKR_EFORMAT,
		               "%s: the length of the .npy header is invalid: "
		               "%zu bytes",
		               f->path, n);
	text = malloc(skip + n + 1);
	if (!text)
		return err_no_memory(e);
	s = read_start(f, a, text, skip + n, e);
	text[skip + n] = '\0';
	if (s == CKR_OK)
		s = parse_dict(text + skip, n, a, f->path, e);
	free(text);
	CKR_TRY(s);
	if (!dtype_bytes(a->dtype, a->rank, a->dim, &a->nelem, &a->nbytes)
	    || a->nbytes > size - skip - n)
		return err_set(e, CKR_EFORMAT, "%s: the array is larger than "
		               "the file; it may be cut off", f->path);
	a->at += skip + n;
	return CKR_OK;
}

ckr_status
npy_read_header(struct array_file *f, struct err *e)
{
	CKR_TRY(array_alloc(f, 1, e));
	f->n = 1;
	f->v[0].name = "";
	return npy_read(f, &f->v[0], f->size, e);
}
