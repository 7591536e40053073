/* Export of the ONNX file with trained weights, and checks of adapter scales.
 *
 * The compiled model carries the original file with the values of trained
 * initializers cut out; here they are put back.  Nothing is parsed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/file/peft.h"
#include "runtime/model/files.h"
#include "runtime/model/peers.h"
#include "runtime/support/hash.h"

enum { PIECE = 1 << 14 };

struct export {
	ckr_ctx *c;
	struct new_file file;           /* fd -1: another process writes it */
	uint64_t at;
	ckr_status s;                   /* after the first failure nothing
	                                 * more is written; others may wait
	                                 * for what this process has */
};

static void
write_data(struct export *x, const void *data, uint64_t n)
{
	if (x->s == CKR_OK && x->file.fd >= 0)
		x->s = file_write(x->file.fd, x->file.path, data, n, x->at,
		                  &x->c->err);
	x->at += n;
}

/* n elements of a tensor, converted piece by piece. */
static void
write_elements(struct export *x, const struct ckr_tensor *t, const char *from,
               uint64_t n, uint8_t dtype)
{
	char buf[PIECE * 8];
	uint64_t size = dtype_row[t->dtype].nbytes;
	size_t bad;

	if (dtype == t->dtype) {
		write_data(x, from, n * size);
		return;
	}
	for (uint64_t i = 0; i < n; i += PIECE) {
		uint64_t k = n - i < PIECE ? n - i : PIECE;

		if (!dtype_convert(buf, dtype, from + i * size, t->dtype, k,
		                   &bad) && x->s == CKR_OK)
			x->s = err_set(&x->c->err, CKR_EFORMAT, "'%s' has a "
			               "value that does not fit its dtype in "
			               "the ONNX file",
			               t->name);
		write_data(x, buf, k * dtype_row[dtype].nbytes);
	}
}

/* Range by range, from processes that all come to this. */
static ckr_status
write_gathered(struct export *x, const struct ckr_tensor *t, uint8_t dtype)
{
	struct ckr_tensor w = rt_whole(x->c, t);
	uint64_t n = rt_nelem(&w), k;
	struct tensor_gather f;
	ckr_status s = gather_begin(&f, x->c, &x->c->plan, t);
	char *part = malloc(f.most * dtype_row[t->dtype].nbytes);

	if (s == CKR_OK && !part)
		s = rt_no_memory(x->c);
	for (uint64_t at = 0; s == CKR_OK && at < n; at += k) {
		k = n - at < f.most ? n - at : f.most;
		s = gather_next(&f, at, k, part);
		if (s == CKR_OK)
			write_elements(x, t, part, k, dtype);
	}
	gather_end(&f);
	free(part);
	return s;
}

/* ---- adapters ---- */

/* w [rows, cols], float32, plus scale b a, or its transpose if turned. */
static void
merge_adapter(float *w, const float *a, const float *b, int64_t in, int64_t out,
              int64_t rank, const struct ckr_adapter *how)
{
	for (int64_t o = 0; o < out; o++)
		for (int64_t i = 0; i < in; i++) {
			float *to = how->transposed ? &w[i * out + o]
			            : &w[o * in + i];
			double s = 0;

			for (int64_t r = 0; r < rank; r++)
				s += (double)b[o * rank + r]
				     * (double)a[r * in + i];
			*to = (float)((double)*to + (double)how->scale * s);
		}
}

/* The whole tensor, converted to float32. */
static ckr_status
read_floats(ckr_ctx *c, const struct ckr_tensor *t, float **x)
{
	struct ckr_tensor w = rt_whole(c, t);
	const void *from;
	void *copy = NULL;
	size_t bad;
	ckr_status s;

	*x = malloc(rt_nelem(&w) * sizeof(**x) + 1);
	if (!*x)
		return rt_no_memory(c);
	s = rt_view_whole(c, &c->plan, t, &from, &copy);
	if (s == CKR_OK)
		dtype_convert(*x, CKR_F32, from, t->dtype, rt_nelem(&w), &bad);
	free(copy);
	return s;
}

static ckr_status
merge_all(ckr_ctx *c, const struct ckr_adapter *how, float *w)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	struct ckr_tensor a = rt_whole(c, &t[how->a]);
	struct ckr_tensor b = rt_whole(c, &t[how->b]);
	float *x = NULL, *y = NULL;
	ckr_status s = read_floats(c, &t[how->a], &x);

	if (s == CKR_OK)
		s = read_floats(c, &t[how->b], &y);
	if (s == CKR_OK)
		merge_adapter(w, x, y, a.dim[1], b.dim[0], a.dim[0], how);
	free(x);
	free(y);
	return s;
}

ckr_status
files_may_merge(ckr_ctx *c)
{
	return !c->team ? CKR_OK
	       : err_set(&c->err, CKR_EUNSUPPORTED, "adapters can only be "
	                 "merged by a single process; write a checkpoint with "
	                 "--save, and merge after --resume without mpirun");
}

ckr_status
files_merged(ckr_ctx *c, const struct ckr_tensor *t, void **copy)
{
	const struct ckr_library *lib = c->lib;
	struct ckr_tensor whole = rt_whole(c, t);
	uint64_t n = rt_nelem(&whole);
	int32_t at = (int32_t)(t - lib->program[0].tensor);
	const struct ckr_adapter *how = NULL;
	ckr_status s = CKR_OK;
	float *w = NULL;
	size_t bad;

	*copy = NULL;
	for (uint32_t i = 0; i < lib->nadapter; i++)
		if (lib->adapter[i].weight == at)
			how = &lib->adapter[i];
	if (!how)
		return CKR_OK;
	CKR_TRY(files_may_merge(c));
	s = read_floats(c, t, &w);
	if (s == CKR_OK)
		s = merge_all(c, how, w);
	*copy = s == CKR_OK ? malloc(n * dtype_row[t->dtype].nbytes + 1) : NULL;
	if (*copy)
		dtype_convert(*copy, t->dtype, w, CKR_F32, n, &bad);
	else if (s == CKR_OK)
		s = rt_no_memory(c);
	free(w);
	return s;
}

static ckr_status
write_value(struct export *x, const struct ckr_tensor *t, uint8_t dtype)
{
	struct ckr_tensor w = rt_whole(x->c, t);
	const void *from;
	void *copy;
	ckr_status s;

	s = files_merged(x->c, t, &copy);
	if (s == CKR_OK && copy)
		write_elements(x, t, copy, rt_nelem(&w), dtype);
	if (s != CKR_OK || copy) {
		free(copy);
		return s;
	}
	if (x->c->team)
		return write_gathered(x, t, dtype);
	s = rt_view_whole(x->c, &x->c->plan, t, &from, &copy);
	if (s == CKR_OK)
		write_elements(x, t, from, rt_nelem(&w), dtype);
	free(copy);
	return s;
}

static ckr_status
write_pieces(struct export *x)
{
	const struct ckr_library *lib = x->c->lib;
	uint64_t from = 0;

	for (uint32_t i = 0; i < lib->nhole; i++) {
		const struct ckr_hole *h = &lib->hole[i];

		if (h->at < from || h->at > lib->onnx_bytes || h->tensor < 0
		    || h->tensor >= (int64_t)lib->nshared || h->transform
		    || h->dtype == CKR_NONE || h->dtype >= CKR_DTYPE_COUNT)
			return err_set(&x->c->err, CKR_EFORMAT, "%s: the ONNX "
			               "file inside it is damaged; compile the "
			               "model again", x->c->path);
		write_data(x, lib->onnx + from, h->at - from);
		CKR_TRY(write_value(x, &lib->program[0].tensor[h->tensor],
		                    h->dtype));
		from = h->at;
	}
	write_data(x, lib->onnx + from, lib->onnx_bytes - from);
	return x->s;
}

ckr_status
ckr_export_onnx(ckr_ctx *c, const char *path)
{
	struct export x = { .c = c, .file = { .fd = -1 } };
	ckr_status s = CKR_OK;

	CKR_TRY(rt_need_quiet(c));
	if (!c->lib->onnx)
		return err_set(&c->err, CKR_EUNSUPPORTED, "%s does not contain "
		               "its ONNX file; compile it from an .onnx file, "
		               "and see the notes that ckc prints",
		               c->path);
	if (c->lib->nadapter)
		CKR_TRY(files_may_merge(c));
	if (!path)
		return CKR_OK;
	if (peers_first(c))
		s = new_file_open(&x.file, path, &c->err);
	CKR_TRY(peers_agree(c, s, "opening a file"));
	s = write_pieces(&x);
	if (s == CKR_OK && peers_first(c))
		s = new_file_commit(&x.file, &c->err);
	new_file_abort(&x.file);
	return peers_agree(c, s, "writing a file");
}

bool
ckr_exports_training_form(const ckr_ctx *c)
{
	return c->lib && c->lib->onnx_trains;
}

/* ---- what they are scaled by ---- */

void
files_scales(const ckr_ctx *c, char text[SCALES_TEXT])
{
	uint64_t h = HASH_START;

	for (uint32_t i = 0; i < c->lib->nadapter; i++) {
		const struct ckr_adapter *a = &c->lib->adapter[i];
		const char *name = c->lib->program[0].tensor[a->weight].name;

		h = hash_bytes(h, name, strlen(name));
		h = hash_bytes(h, &a->scale, sizeof(a->scale));
	}
	snprintf(text, SCALES_TEXT, "%.9g, %016llx",
	         (double)c->lib->adapter[0].scale, (unsigned long long)h);
}

ckr_status
files_need_scales(ckr_ctx *c, const struct array_file *f)
{
	const char *was = array_meta(f, SCALES_KEY);
	char is[SCALES_TEXT], text[NAME_TEXT];

	if (!was || !c->lib->nadapter)
		return CKR_OK;
	files_scales(c, is);
	if (!strcmp(was, is))
		return CKR_OK;
	return err_set(&c->err, CKR_EFORMAT, "%s: the scales ALPHA/RANK of its "
	               "adapters do not match: the file has %s, the library %s "
	               "(first scale, hash of all); compile with the --lora of "
	               "the run that saved it", f->path,
	               err_name(text, sizeof(text), was), is);
}

static ckr_status
compare_scales(ckr_ctx *c, const struct array_file *f, const double *scale)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	char name[NAME_TEXT];

	for (uint32_t i = 0; i < c->lib->nadapter; i++) {
		const struct ckr_adapter *a = &c->lib->adapter[i];
		double rank = (double)rt_whole(c, &t[a->a]).dim[0];

		if (!(fabs(scale[i] - (double)a->scale)
		      <= 1e-6 * fabs(scale[i])))
			return err_set(&c->err, CKR_EFORMAT, "%s: "
			               "adapter_config.json scales the adapter "
			               "of '%s' by %g, but the library by %g; "
			               "compile with --lora 'GLOB=%g:%g' for "
			               "it", f->path,
			               err_name(name, sizeof(name),
			                        t[a->weight].name),
			               scale[i], (double)a->scale, rank,
			               scale[i] * rank);
	}
	return CKR_OK;
}

ckr_status
files_need_peft_scales(ckr_ctx *c, const struct array_file *f)
{
	uint32_t n = c->lib->nadapter;
	const char **weight = calloc(n, sizeof(*weight));
	double *scale = calloc(n, sizeof(*scale));
	bool there = false;
	ckr_status s = weight && scale ? CKR_OK : rt_no_memory(c);

	for (uint32_t i = 0; i < n && s == CKR_OK; i++)
		weight[i] = c->lib->program[0].tensor[
			c->lib->adapter[i].weight].name;
	if (s == CKR_OK && !array_meta(f, SCALES_KEY))
		s = peft_scales(f->path, weight, n, scale, &there, &c->err);
	if (s == CKR_OK && there)
		s = compare_scales(c, f, scale);
	free(weight);
	free(scale);
	return s;
}
