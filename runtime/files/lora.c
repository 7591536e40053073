/* Low-rank adapters in files: merging them into weights, and checks of their
 * scales. */
#include "runtime/base/dtype.h"
#include "runtime/file/peft.h"
#include "runtime/files/inside.h"
#include "runtime/support/blocks.h"
#include "runtime/support/hash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
lora_owns(const struct ckr_library *lib, uint32_t tensor)
{
	for (uint32_t i = 0; i < lib->nadapter; i++)
		if (lib->adapter[i].a == (int32_t)tensor
		    || lib->adapter[i].b == (int32_t)tensor)
			return true;
	return false;
}

/* ---- merging ---- */

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

ckr_status
lora_read_floats(struct files *c, const struct ckr_tensor *t, float **x)
{
	struct ckr_tensor whole = world_whole(c->world, t);
	struct ckr_tensor weights = tensor_weights(&whole);
	void *from = malloc(whole.nbytes + 1);
	ckr_status s;
	size_t bad;

	*x = malloc(tensor_nelem(&weights) * sizeof(**x) + 1);
	s = *x && from ? world_gather(c->world, &c->world->plan, t, from)
	    : err_no_memory(c->err);
	if (s == CKR_OK && tensor_is_blocks(t))
		blocks_unpack(t->dtype, *x, from, tensor_nelem(&whole));
	else if (s == CKR_OK)
		dtype_convert(*x, CKR_F32, from, t->dtype, tensor_nelem(&whole),
		              &bad);
	free(from);
	return s;
}

static ckr_status
merge_all(struct files *c, const struct ckr_adapter *how, float *w)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	struct ckr_tensor a = world_whole(c->world, &t[how->a]);
	struct ckr_tensor b = world_whole(c->world, &t[how->b]);
	float *x = NULL, *y = NULL;
	ckr_status s = lora_read_floats(c, &t[how->a], &x);

	if (s == CKR_OK)
		s = lora_read_floats(c, &t[how->b], &y);
	if (s == CKR_OK)
		merge_adapter(w, x, y, a.dim[1], b.dim[0], a.dim[0], how);
	free(x);
	free(y);
	return s;
}

ckr_status
lora_may_merge(struct files *c)
{
	return !c->world->team ? CKR_OK
	       : err_set(c->err, CKR_EUNSUPPORTED, "adapters can only be "
	                 "merged by a single process; write a checkpoint with "
	                 "--save, and merge after --resume without mpirun");
}

ckr_status
lora_merge(struct files *c, const struct ckr_tensor *t, void **copy)
{
	const struct ckr_library *lib = c->lib;
	struct ckr_tensor whole = world_whole(c->world, t);
	uint64_t n = tensor_nelem(&whole);
	bool blocks = tensor_is_blocks(t);
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
	CKR_TRY(lora_may_merge(c));
	s = lora_read_floats(c, t, &w);
	if (s == CKR_OK)
		s = merge_all(c, how, w);
	if (s == CKR_OK && blocks) {
		*copy = w;
		return s;
	}
	*copy = s == CKR_OK ? malloc(n * tensor_elem_bytes(t) + 1) : NULL;
	if (*copy)
		dtype_convert(*copy, t->dtype, w, CKR_F32, n, &bad);
	else if (s == CKR_OK)
		s = err_no_memory(c->err);
	free(w);
	return s;
}

/* ---- what they are scaled by ---- */

void
lora_scales(const struct files *c, char text[SCALES_TEXT])
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
lora_check_scales(struct files *c, const struct array_file *f)
{
	const char *was = array_meta(f, SCALES_KEY);
	char is[SCALES_TEXT], text[NAME_TEXT];

	if (!was || !c->lib->nadapter)
		return CKR_OK;
	lora_scales(c, is);
	if (!strcmp(was, is))
		return CKR_OK;
	return err_set(c->err, CKR_EFORMAT, "%s: the scales ALPHA/RANK of its "
	               "adapters do not match: the file has %s, the library %s "
	               "(first scale, hash of all); compile with the --lora of "
	               "the run that saved it", f->path,
	               err_name(text, sizeof(text), was), is);
}

static ckr_status
compare_scales(struct files *c, const struct array_file *f, const double *scale)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	char name[NAME_TEXT];

	for (uint32_t i = 0; i < c->lib->nadapter; i++) {
		const struct ckr_adapter *a = &c->lib->adapter[i];
		double rank = (double)world_whole(c->world, &t[a->a]).dim[0];

		if (!(fabs(scale[i] - (double)a->scale)
		      <= 1e-6 * fabs(scale[i])))
			return err_set(c->err, CKR_EFORMAT, "%s: "
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
lora_check_peft_scales(struct files *c, const struct array_file *f)
{
	uint32_t n = c->lib->nadapter;
	const char **weight = calloc(n, sizeof(*weight));
	double *scale = calloc(n, sizeof(*scale));
	bool there = false;
	ckr_status s = weight && scale ? CKR_OK : err_no_memory(c->err);

	for (uint32_t i = 0; i < n && s == CKR_OK; i++)
		weight[i] = c->lib->program[0].tensor[
			c->lib->adapter[i].weight].name;
	if (s == CKR_OK && !array_meta(f, SCALES_KEY))
		s = peft_scales(f->path, weight, n, scale, &there, c->err);
	if (s == CKR_OK && there)
		s = compare_scales(c, f, scale);
	free(weight);
	free(scale);
	return s;
}
