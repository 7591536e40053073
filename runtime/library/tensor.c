#include "runtime/library/tensor.h"
#include "runtime/base/dtype.h"
#include "runtime/ranks/comm.h"
#include "runtime/support/blocks.h"

#include <string.h>

static bool
is_state_named(const struct ckr_tensor *t, const char *name)
{
	return t->kind == CKR_STATE && t->state && !strcmp(t->state, name)
	       && !t->tied;
}

bool
tensor_is_copy(const struct ckr_tensor *t)
{
	return is_state_named(t, "copy");
}

bool
tensor_is_average(const struct ckr_tensor *t)
{
	return is_state_named(t, "ema");
}

bool
tensor_is_public(const struct ckr_tensor *t)
{
	return t->name && !t->tied
	       && (t->kind == CKR_PARAM || t->kind == CKR_BUFFER
	           || t->kind == CKR_INPUT
	           || (t->kind == CKR_STATE && !tensor_is_copy(t))
	           || t->flags & (CKR_OUTPUT | CKR_LOSS));
}

bool
tensor_is_weight(const struct ckr_tensor *t)
{
	return (t->kind == CKR_PARAM || t->kind == CKR_BUFFER) && !t->tied;
}

bool
tensor_is_sharded(const struct ckr_tensor *t)
{
	return t->shard_of || (t->placement && t->placement->kind == CKR_SHARD);
}

bool
tensor_is_dense(const struct ckr_tensor *t)
{
	int64_t want = 1;

	for (int i = t->rank - 1; i >= 0; i--) {
		if (t->dim[i] != 1 && t->stride[i] != want)
			return false;
		want *= t->dim[i];
	}
	return true;
}

uint64_t
tensor_nelem(const struct ckr_tensor *t)
{
	return comm_nelem(t);
}

uint64_t
tensor_elem_bytes(const struct ckr_tensor *t)
{
	return dtype_row[t->dtype].nbytes;
}

uint64_t
tensor_nbytes(const struct ckr_tensor *t)
{
	return tensor_nelem(t) * tensor_elem_bytes(t);
}

uint64_t
tensor_piece(const struct ckr_tensor *t, uint64_t nbytes)
{
	uint64_t size = tensor_elem_bytes(t);

	return nbytes / (size > 8 ? size : 8);
}

struct ckr_tensor
tensor_part(const struct ckr_tensor *t, uint64_t at, uint64_t n)
{
	struct ckr_tensor part = *t;

	part.rank = 1;
	part.dim[0] = (int64_t)n;
	part.stride[0] = 1;
	part.offset += at * tensor_elem_bytes(t);
	part.nbytes = tensor_nbytes(&part);
	return part;
}

bool
tensor_is_blocks(const struct ckr_tensor *t)
{
	return blocks_is(t->dtype);
}

struct ckr_tensor
tensor_weights(const struct ckr_tensor *t)
{
	struct ckr_tensor w = *t;
	int64_t stride = 1;

	if (!tensor_is_blocks(t))
		return w;
	w.dtype = CKR_F32;
	w.dim[w.rank - 1] *= BLOCK_WEIGHTS;
	for (int i = w.rank; i-- > 0; stride *= w.dim[i])
		w.stride[i] = stride;
	w.nbytes = tensor_nbytes(&w);
	return w;
}

void
tensor_reach(const struct ckr_tensor *t, int64_t *from, int64_t *to)
{
	int64_t size = dtype_row[t->dtype].nbytes;
	int64_t lo = (int64_t)t->offset, hi = lo + size;

	/* workspace has bytes, but neither type nor shape */
	if (t->dtype == CKR_NONE)
		hi = lo + (int64_t)t->nbytes;
	for (int i = 0; i < t->rank; i++) {
		int64_t step = (t->dim[i] - 1) * t->stride[i] * size;

		if (step < 0)
			lo += step;
		else
			hi += step;
	}
	*from = lo;
	*to = hi;
	if (tensor_nelem(t) == 0)
		*from = *to = (int64_t)t->offset;
}

bool
tensor_overlaps(const struct ckr_tensor *t, const struct ckr_tensor *u)
{
	int64_t from, to, lo, hi;

	if ((t->flags ^ u->flags) & CKR_HOST || t->stage != u->stage)
		return false;
	tensor_reach(t, &from, &to);
	tensor_reach(u, &lo, &hi);
	return lo < to && from < hi;
}

/* Copy between a strided tensor and dense elements, row by row. */
static void
copy_strided(const struct ckr_tensor *t, char *tensor, char *dense, bool pack)
{
	size_t size = dtype_row[t->dtype].nbytes;
	uint64_t n = tensor_nelem(t);
	int64_t i[CKR_MAX_DIMS] = { 0 };

	if (tensor_is_dense(t)) {
		memcpy(pack ? dense : tensor, pack ? tensor : dense, n * size);
		return;
	}
	for (uint64_t e = 0; e < n; e++, dense += size) {
		int64_t at = 0;
		char *p;

		for (int d = 0; d < t->rank; d++)
			at += i[d] * t->stride[d];
		p = tensor + at * (int64_t)size;
		memcpy(pack ? dense : p, pack ? p : dense, size);
		for (int d = t->rank - 1; d >= 0 && ++i[d] == t->dim[d]; d--)
			i[d] = 0;
	}
}

void
tensor_pack(const struct ckr_tensor *t, const void *tensor, void *dense)
{
	copy_strided(t, (char *)(uintptr_t)tensor, dense, true);
}

void
tensor_unpack(const struct ckr_tensor *t, void *tensor, const void *dense)
{
	copy_strided(t, tensor, (char *)(uintptr_t)dense, false);
}
