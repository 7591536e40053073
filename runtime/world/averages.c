/* Moving averages in place of parameters (ckc --ema).
 *
 * A float32 parameter and its average change places, which needs buffers for
 * one tensor at a time, not for all.  A 16-bit parameter has no room for the
 * bits of its average: the parameter becomes the rounded average, which itself
 * stays where it is, and the host keeps the elements of the parameter.
 */
#include "runtime/base/dtype.h"
#include "runtime/support/half.h"
#include "runtime/world/inside.h"

#include <stdlib.h>

/* For whole tensors, while all are exchanged. */
struct exchange {
	struct world *w;
	void *a;
	float *b;
};

static const struct ckr_tensor *
param_of(const struct world *w, const struct ckr_tensor *average)
{
	return &w->lib->program[0].tensor[average->param];
}

static bool
is_half(const struct ckr_tensor *t)
{
	return t->dtype != CKR_F32;
}

/* ---- memory ---- */

static bool
alloc_room(struct exchange *x)
{
	const struct ckr_tensor *t = x->w->lib->program[0].tensor;
	uint64_t most = 0;

	for (uint32_t i = 0; i < x->w->lib->nshared; i++) {
		uint64_t n = tensor_is_average(&t[i])
		             ? world_whole(x->w, &t[i]).nbytes : 0;

		most = n > most ? n : most;
	}
	x->a = malloc(most + 1);
	x->b = malloc(most + 1);
	return x->a && x->b;
}

/* For the elements of all 16-bit parameters. */
static bool
alloc_kept(struct world *w)
{
	const struct ckr_tensor *t = w->lib->program[0].tensor;
	void **kept = calloc(w->lib->nshared + 1, sizeof(*kept));

	w->memory->kept = kept;
	for (uint32_t i = 0; kept && i < w->lib->nshared; i++) {
		const struct ckr_tensor *p;

		if (!tensor_is_average(&t[i]))
			continue;
		p = param_of(w, &t[i]);
		if (!is_half(p))
			continue;
		kept[i] = malloc(world_whole(w, p).nbytes + 1);
		if (!kept[i])
			return false;
	}
	return kept;
}

void
averages_free(struct world *w)
{
	for (uint32_t i = 0; w->memory->kept && i < w->lib->nshared; i++)
		free(w->memory->kept[i]);
	free(w->memory->kept);
	w->memory->kept = NULL;
}

static ckr_status
alloc_all(struct exchange *x, bool use)
{
	bool ok = alloc_room(x) && (!use || alloc_kept(x->w));

	return ok ? CKR_OK : err_no_memory(x->w->err);
}

/* ---- one parameter ---- */

static ckr_status
swap(struct exchange *x, const struct ckr_tensor *p, const struct ckr_tensor *e)
{
	CKR_TRY(world_gather(x->w, &x->w->plan, p, x->a));
	CKR_TRY(world_gather(x->w, &x->w->plan, e, x->b));
	CKR_TRY(world_scatter(x->w, p, x->b));
	return world_scatter(x->w, e, x->a);
}

static ckr_status
use_rounded(struct exchange *x, const struct ckr_tensor *p,
            const struct ckr_tensor *e, void *kept)
{
	struct ckr_tensor whole = world_whole(x->w, p);
	uint64_t n = tensor_nelem(&whole);
	uint16_t *half = x->a;

	CKR_TRY(world_gather(x->w, &x->w->plan, p, kept));
	CKR_TRY(world_gather(x->w, &x->w->plan, e, x->b));
	for (uint64_t i = 0; i < n; i++)
		half[i] = p->dtype == CKR_BF16 ? float_to_bf16(x->b[i])
		                               : float_to_half(x->b[i]);
	return world_scatter(x->w, p, half);
}

static ckr_status
exchange_one(struct exchange *x, uint32_t i, bool use)
{
	const struct ckr_tensor *e = &x->w->lib->program[0].tensor[i];
	const struct ckr_tensor *p = param_of(x->w, e);

	if (!is_half(p))
		return swap(x, p, e);
	return use ? use_rounded(x, p, e, x->w->memory->kept[i])
	       : world_scatter(x->w, p, x->w->memory->kept[i]);
}

ckr_status
world_use_averages(struct world *w, bool use)
{
	const struct ckr_tensor *t = w->lib->program[0].tensor;
	struct exchange x = { .w = w };
	ckr_status s;

	if (use == w->averaged)
		return CKR_OK;
	s = world_agree(w, alloc_all(&x, use), "exchanging averages");
	if (s == CKR_OK)
		w->averaged = use;
	for (uint32_t i = 0; i < w->lib->nshared && s == CKR_OK; i++) {
		if (tensor_is_average(&t[i]))
			s = exchange_one(&x, i, use);
		/* some have changed places: neither set is whole */
		w->ready &= s == CKR_OK;
	}
	if (!w->averaged)
		averages_free(w);
	free(x.a);
	free(x.b);
	return s;
}
