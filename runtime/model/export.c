/* The ONNX file again, with trained weights.
 *
 * The compiled model carries the original file with the values of trained
 * initializers cut out; here they are put back.  Nothing is parsed.
 */
#include <stdlib.h>

#include "runtime/model/rt.h"

enum { PIECE = 1 << 14 };

static ckr_status
put(ckr_ctx *c, struct new_file *f, const void *data, uint64_t n,
    uint64_t *at)
{
	CKR_TRY(file_write(f->fd, f->path, data, n, *at, &c->err));
	*at += n;
	return CKR_OK;
}

/* Dense elements, converted piece by piece. */
static ckr_status
put_converted(ckr_ctx *c, struct new_file *f, const struct ckr_tensor *t,
              const char *from, uint8_t dtype, uint64_t *at)
{
	char buf[PIECE * 8];
	struct ckr_tensor whole = rt_whole(c, t);
	uint64_t n = rt_nelem(&whole), size = dtype_row[t->dtype].nbytes;
	size_t bad;

	for (uint64_t i = 0; i < n; i += PIECE) {
		uint64_t k = n - i < PIECE ? n - i : PIECE;

		if (!dtype_convert(buf, dtype, from + i * size, t->dtype, k,
		                   &bad))
			return err_set(&c->err, CKR_EFORMAT, "'%s' does not "
			               "fit the type it has in the ONNX file",
			               t->name);
		CKR_TRY(put(c, f, buf, k * dtype_row[dtype].nbytes, at));
	}
	return CKR_OK;
}

static ckr_status
put_value(ckr_ctx *c, struct new_file *f, const struct ckr_tensor *t,
          uint8_t dtype, uint64_t *at)
{
	const void *from;
	void *copy;
	ckr_status s = rt_read(c, &c->plan, t, &from, &copy);

	if (s == CKR_OK && dtype == t->dtype)
		s = put(c, f, from, rt_whole(c, t).nbytes, at);
	else if (s == CKR_OK)
		s = put_converted(c, f, t, from, dtype, at);
	free(copy);
	return s;
}

static ckr_status
put_all(ckr_ctx *c, struct new_file *f)
{
	const struct ckr_library *lib = c->lib;
	uint64_t from = 0, at = 0;

	for (uint32_t i = 0; i < lib->nhole; i++) {
		const struct ckr_hole *h = &lib->hole[i];

		if (h->at < from || h->at > lib->onnx_bytes || h->tensor < 0
		    || h->tensor >= (int64_t)lib->nshared || h->transform
		    || h->dtype == CKR_NONE || h->dtype >= CKR_DTYPE_COUNT)
			return err_set(&c->err, CKR_EFORMAT, "%s: the ONNX "
			               "file inside it is damaged; compile the "
			               "model again", c->path);
		CKR_TRY(put(c, f, lib->onnx + from, h->at - from, &at));
		CKR_TRY(put_value(c, f, &lib->program[0].tensor[h->tensor],
		                  h->dtype, &at));
		from = h->at;
	}
	return put(c, f, lib->onnx + from, lib->onnx_bytes - from, &at);
}

ckr_status
ckr_export_onnx(ckr_ctx *c, const char *path)
{
	struct new_file f;
	ckr_status s;

	CKR_TRY(rt_need_ready(c));
	if (!c->lib->onnx)
		return err_set(&c->err, CKR_EUNSUPPORTED, "%s does not carry "
		               "its ONNX file; compile it from an .onnx file",
		               c->path);
	CKR_TRY(new_file_open(&f, path, &c->err));
	s = put_all(c, &f);
	if (s == CKR_OK)
		return new_file_commit(&f, &c->err);
	new_file_abort(&f);
	return s;
}
