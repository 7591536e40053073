/* Export of the ONNX file with trained weights.
 *
 * The compiled model carries the original file with the values of trained
 * initializers cut out; here they are put back.  Nothing is parsed.
 */
#include "runtime/base/dtype.h"
#include "runtime/files/inside.h"
#include "runtime/support/blocks.h"

#include <stdlib.h>

enum { PIECE = 1 << 14 };

struct export {
	struct files *c;
	struct new_file file;           /* fd -1: another process writes it */
	uint64_t at;                    /* bytes written */
	const struct ckr_tensor *t;     /* the value that is written, and its */
	uint8_t dtype;                  /* type in the ONNX file */
};

static ckr_status
write_data(struct export *x, const void *data, uint64_t n)
{
	uint64_t at = x->at;

	x->at += n;
	return x->file.fd < 0 ? CKR_OK
	       : file_write(x->file.fd, x->file.path, data, n, at, x->c->err);
}

/* n elements of a type, converted piece by piece. */
static ckr_status
write_converted(struct export *x, uint8_t dtype, uint64_t n, const char *from)
{
	uint64_t size = dtype_row[dtype].nbytes;
	char buf[PIECE * 8];
	size_t bad;

	if (x->dtype == dtype)
		return write_data(x, from, n * size);
	for (uint64_t i = 0; i < n; i += PIECE) {
		uint64_t k = n - i < PIECE ? n - i : PIECE;

		if (!dtype_convert(buf, x->dtype, from + i * size, dtype, k,
		                   &bad))
			return err_set(x->c->err, CKR_EFORMAT, "'%s' has a "
			               "value that does not fit its dtype in "
			               "the ONNX file", x->t->name);
		CKR_TRY(write_data(x, buf, k * dtype_row[x->dtype].nbytes));
	}
	return CKR_OK;
}

/* n elements of x->t; of blocks their weights. */
static ckr_status
write_elements(void *user, uint64_t at, uint64_t n, const void *from)
{
	struct export *x = user;
	uint64_t size = tensor_elem_bytes(x->t);
	float y[BLOCK_WEIGHTS];

	(void)at;
	if (!tensor_is_blocks(x->t))
		return write_converted(x, x->t->dtype, n, from);
	for (uint64_t i = 0; i < n; i++) {
		blocks_unpack(x->t->dtype, y, (const char *)from + i * size, 1);
		CKR_TRY(write_converted(x, CKR_F32, BLOCK_WEIGHTS, (char *)y));
	}
	return CKR_OK;
}

static ckr_status
write_value(struct export *x)
{
	struct world *w = x->c->world;
	struct ckr_tensor whole = world_whole(w, x->t);
	struct ckr_tensor weights = tensor_weights(&whole);
	void *merged;
	ckr_status s = lora_merge(x->c, x->t, &merged);

	if (s == CKR_OK)
		s = merged ? write_converted(x, weights.dtype,
			tensor_nelem(&weights), merged)
		    : world_gather_ranges(w, &w->plan, x->t, write_elements, x);
	free(merged);
	return s;
}

/* After the first failure nothing more is written, but other processes wait for
 * what this one has. */
static ckr_status
write_pieces(struct export *x)
{
	const struct ckr_library *lib = x->c->lib;
	ckr_status s = CKR_OK, one;
	uint64_t from = 0;

	for (uint32_t i = 0; i < lib->nhole; i++) {
		const struct ckr_hole *h = &lib->hole[i];

		if (h->at < from || h->at > lib->onnx_bytes || h->tensor < 0
		    || h->tensor >= (int64_t)lib->nshared || h->transform
		    || h->dtype == CKR_NONE || h->dtype >= CKR_DTYPE_COUNT)
			return err_set(x->c->err, CKR_EFORMAT, "%s: the ONNX "
			               "file inside it is damaged; compile the "
			               "model again",
			               x->c->world->library->path);
		x->t = &lib->program[0].tensor[h->tensor];
		x->dtype = h->dtype;
		if (s == CKR_OK)
			s = write_data(x, lib->onnx + from, h->at - from);
		one = write_value(x);
		s = s == CKR_OK ? one : s;
		if (one == CKR_ERANK)
			return one;
		from = h->at;
	}
	return s != CKR_OK ? s
	       : write_data(x, lib->onnx + from, lib->onnx_bytes - from);
}

ckr_status
files_export_onnx(struct files *c, const char *path)
{
	struct export x = { .c = c, .file = { .fd = -1 } };
	ckr_status s = CKR_OK;

	if (!c->lib->onnx)
		return err_set(c->err, CKR_EUNSUPPORTED, "%s does not contain "
		               "its ONNX file; compile it from an .onnx file, "
		               "and see the notes that ckc prints",
		               c->world->library->path);
	if (c->lib->nadapter)
		CKR_TRY(lora_may_merge(c));
	if (!path)
		return CKR_OK;
	if (world_is_first(c->world))
		s = new_file_open(&x.file, path, c->err);
	CKR_TRY(world_agree(c->world, s, "opening a file"));
	s = write_pieces(&x);
	if (s == CKR_OK && world_is_first(c->world))
		s = new_file_commit(&x.file, c->err);
	new_file_abort(&x.file);
	return world_agree(c->world, s, "writing a file");
}
