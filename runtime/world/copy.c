/* Copies of tensors between the host and device memory, and copies of
 * parameters in 16 bits. */
#include "runtime/base/dtype.h"
#include "runtime/support/half.h"
#include "runtime/world/inside.h"

#include <stdlib.h>

double
world_number(struct world *w, const struct ckr_tensor *t, const void *at)
{
	uint64_t room = 0;

	w->device->call->copy_d2h(w->device, &room, at, tensor_elem_bytes(t));
	return dtype_double(t->dtype, &room);
}

/* A tensor with gaps: all bytes that it reaches, by way of the host. */
static ckr_status
copy_reach(struct world *w, const struct ckr_tensor *t, char *tensor,
           void *dense, bool push)
{
	struct device *d = w->device;
	int64_t from, to, before;
	char *p;

	tensor_reach(t, &from, &to);
	before = (int64_t)t->offset - from;
	p = malloc((uint64_t)(to - from) + 1);
	if (!p)
		return err_no_memory(w->err);
	d->call->copy_d2h(d, p, tensor - before, (uint64_t)(to - from));
	if (push) {
		tensor_unpack(t, p + before, dense);
		d->call->copy_h2d(d, tensor - before, p,
		                  (uint64_t)(to - from));
		d->call->sync(d);
	} else {
		tensor_pack(t, p + before, dense);
	}
	free(p);
	return CKR_OK;
}

/* From a host block. */
static ckr_status
pull_from_host(struct world *w, const struct ckr_tensor *t, const char *tensor,
               void *dense)
{
	int64_t from, to, before;
	ckr_status s;
	char *p;

	if (tensor_is_dense(t))
		return world_read_host(w, dense, tensor, tensor_nbytes(t));
	tensor_reach(t, &from, &to);
	before = (int64_t)t->offset - from;
	p = malloc((uint64_t)(to - from) + 1);
	if (!p)
		return err_no_memory(w->err);
	s = world_read_host(w, p, tensor - before, (uint64_t)(to - from));
	if (s == CKR_OK)
		tensor_pack(t, p + before, dense);
	free(p);
	return s;
}

ckr_status
world_pull(struct world *w, const struct ckr_tensor *t, const void *tensor,
           void *dense)
{
	struct device *d = w->device;

	if (t->flags & CKR_HOST)
		return pull_from_host(w, t, tensor, dense);
	if (d->addressable)
		tensor_pack(t, tensor, dense);
	else if (tensor_is_dense(t))
		d->call->copy_d2h(d, dense, tensor, tensor_nbytes(t));
	else
		CKR_TRY(copy_reach(w, t, (char *)(uintptr_t)tensor, dense,
		                   false));
	return device_status(d, w->err);
}

ckr_status
world_push(struct world *w, const struct ckr_tensor *t, void *tensor,
           const void *dense)
{
	struct device *d = w->device;

	if (t->flags & CKR_HOST)
		return world_write_host(w, tensor, dense, tensor_nbytes(t));
	if (d->addressable)
		tensor_unpack(t, tensor, dense);
	else if (tensor_is_dense(t))
		d->call->copy_h2d(d, tensor, dense, tensor_nbytes(t));
	else
		CKR_TRY(copy_reach(w, t, tensor, (void *)(uintptr_t)dense,
		                   true));
	return device_status(d, w->err);
}

/* ---- copies of parameters in 16 bits ----
 *
 * Products read them and updates write them.  Files hold float32 alone.
 */

enum { PIECE = 1 << 18 };               /* elements */

/* n elements of p at x become those of t at y, by way of `dense`, which has
 * room for both. */
static ckr_status
make_part(struct world *w, const struct ckr_tensor *p, const void *x,
          const struct ckr_tensor *t, void *y, float *dense)
{
	uint64_t n = tensor_nelem(p);
	uint16_t *half = (uint16_t *)(dense + n);

	CKR_TRY(world_pull(w, p, x, dense));
	for (uint64_t i = 0; i < n; i++)
		half[i] = t->dtype == CKR_BF16 ? float_to_bf16(dense[i])
		                               : float_to_half(dense[i]);
	CKR_TRY(world_push(w, t, y, half));
	w->device->call->sync(w->device);
	return CKR_OK;
}

static const struct ckr_tensor *
param_of_copy(const struct world *w, const struct ckr_tensor *t)
{
	return &w->lib->program[0].tensor[t->param];
}

/* Elements at a time: of tensors with gaps all. */
static uint64_t
piece_of_copy(const struct world *w, const struct ckr_tensor *t)
{
	uint64_t n = tensor_nelem(t);

	return n > PIECE && tensor_is_dense(t)
	       && tensor_is_dense(param_of_copy(w, t)) ? PIECE : n;
}

/* On rank r. */
static ckr_status
make_copy(struct world *w, const struct ckr_tensor *t, uint32_t r, float *dense)
{
	const struct ckr_tensor *p = param_of_copy(w, t);
	char *x = world_plan_at(w, r, p), *y = world_plan_at(w, r, t);
	uint64_t all = tensor_nelem(t), most = piece_of_copy(w, t);

	if (most == all)
		return make_part(w, p, x, t, y, dense);
	for (uint64_t at = 0; at < all; at += most) {
		uint64_t n = all - at < most ? all - at : most;
		struct ckr_tensor from = tensor_part(p, at, n);
		struct ckr_tensor to = tensor_part(t, at, n);

		CKR_TRY(make_part(w, &from, x + at * tensor_elem_bytes(p), &to,
		                  y + at * tensor_elem_bytes(t), dense));
	}
	return CKR_OK;
}

ckr_status
world_make_copies(struct world *w)
{
	const struct ckr_tensor *t = w->lib->program[0].tensor;
	struct memory *m = w->owner->memory;
	ckr_status s = CKR_OK;

	for (uint32_t i = 0; i < w->lib->nshared && !m->copied; i++) {
		float *dense;

		if (!tensor_is_copy(&t[i]))
			continue;
		dense = malloc(piece_of_copy(w, &t[i])
		               * (sizeof *dense + sizeof(uint16_t)) + 1);
		if (!dense)
			return err_no_memory(w->err);
		FOR_STAGE (r, w, t[i].stage)
			if (s == CKR_OK)
				s = make_copy(w, &t[i], r, dense);
		free(dense);
		CKR_TRY(s);
	}
	m->copied = true;
	return CKR_OK;
}
