/* Feeding inputs: what pair.c decided, step by step.
 *
 * Windows begin at random places, rows of arrays come in a new random order
 * every epoch; both are functions of (seed, step, micro-batch, sample) alone,
 * so that a resumed run sees the data it would have seen.
 */
#include "runtime/ckrun/data.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"

/* ---- filling ---- */

static ckr_status
read_into(struct data *d, const struct item *it, uint64_t first, uint64_t n,
          uint64_t at)
{
	const struct ckr_tensor *t = it->t;
	char *to = rt_at(d->ctx, &d->ctx->arena, t);

	return array_read(&d->file, it->array, first, n, t->dtype,
	                  to + at * dtype_row[t->dtype].nbytes, &d->ctx->err);
}

static void
fill(struct data *d, const struct item *it)
{
	const struct ckr_tensor *t = it->t;
	char *to = rt_at(d->ctx, &d->ctx->arena, t);
	uint64_t n = rt_nelem(t);
	size_t bad;

	for (uint64_t i = 0; i < n; i++) {
		int64_t x = it->source == FROM_ONES ? 1
		            : it->source == FROM_POSITIONS
		            ? (int64_t)(i % it->row) : 0;

		dtype_convert(to + i * dtype_row[t->dtype].nbytes, t->dtype,
		              &x, CKR_I64, 1, &bad);
	}
}

/* Contents that never change are set once. */
static ckr_status
fill_once(struct data *d)
{
	for (size_t i = 0; i < d->pair.n; i++) {
		const struct item *it = &d->pair.item[i];

		if (it->source >= FROM_ONES)
			fill(d, it);
		else if (it->source == FROM_WHOLE)
			CKR_TRY(read_into(d, it, 0, rt_nelem(it->t), 0));
	}
	return CKR_OK;
}

static ckr_status
feed_windows(struct data *d, const struct item *it, uint64_t batch)
{
	uint64_t seed = ckr_seed(d->ctx);
	uint64_t starts = it->array->nelem - it->row - d->pair.next + 1;

	for (uint64_t r = 0; r < it->rows; r++) {
		uint64_t at = rng_below(seed, RNG_WINDOW, batch * it->rows + r,
		                        starts);

		CKR_TRY(read_into(d, it, at + (it->source == FROM_NEXT),
		                  it->row, r * it->row));
	}
	return CKR_OK;
}

static ckr_status
feed_rows(struct data *d, const struct item *it, uint64_t batch)
{
	uint64_t seed = ckr_seed(d->ctx);
	uint64_t all = (uint64_t)it->array->dim[0];

	for (uint64_t r = 0; r < it->rows; r++) {
		uint64_t i = batch * it->rows + r;

		i = rng_shuffled(seed, i / all, i % all, all);
		CKR_TRY(read_into(d, it, i * it->row, it->row, r * it->row));
	}
	return CKR_OK;
}

ckr_status
data_feed(void *user, ckr_ctx *ctx, uint64_t step, uint32_t micro)
{
	struct data *d = user;
	uint32_t nmicro = ckr_micro_batches(ctx);
	uint64_t batch = step * nmicro + micro;

	for (size_t i = 0; i < d->pair.n; i++) {
		const struct item *it = &d->pair.item[i];
		uint64_t n = rt_nelem(it->t);

		if (it->source == FROM_TOKENS || it->source == FROM_NEXT)
			CKR_TRY(feed_windows(d, it, batch));
		else if (it->source == FROM_SAMPLES)
			CKR_TRY(feed_rows(d, it, batch));
		else if (it->source == FROM_WHOLE && it->array->nelem > n)
			CKR_TRY(read_into(d, it, micro * n, n, 0));
	}
	return CKR_OK;
}

/* ---- opening ---- */

static ckr_status
open_file(struct data *d, const struct data_options *o)
{
	struct err *e = &d->ctx->err;
	uint8_t raw = CKR_NONE;

	if (o->inputs)
		return array_open(&d->file, o->inputs, e);
	if (!o->data)
		return CKR_OK;
	if (!o->tokens)
		return array_open(&d->file, o->data, e);
	if (!strcmp(o->tokens, "u16"))
		raw = CKR_U16;
	else if (!strcmp(o->tokens, "u32"))
		raw = CKR_U32;
	else if (!strcmp(o->tokens, "bytes"))
		raw = CKR_U8;
	else
		return err_set(e, CKR_EARG, "--tokens '%s': expected u16, u32 "
		               "or bytes", o->tokens);
	return array_open_raw(&d->file, o->data, raw, e);
}

static ckr_status
list_inputs(struct data *d)
{
	const struct ckr_library *lib = d->ctx->lib;
	const struct ckr_tensor *tensor = lib->program[0].tensor;
	struct pairing *p = &d->pair;

	p->item = calloc(lib->nshared + 1, sizeof(*p->item));
	if (!p->item)
		return err_set(&d->ctx->err, CKR_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < lib->nshared; i++)
		if (tensor[i].kind == CKR_INPUT)
			p->item[p->n++].t = &tensor[i];
	return CKR_OK;
}

/* What a step's throughput counts: tokens if there are any, else samples. */
static void
count_units(struct data *d)
{
	uint32_t nmicro = d->pair.nmicro;

	for (size_t i = 0; i < d->pair.n; i++) {
		const struct ckr_tensor *t = d->pair.item[i].t;

		if (!d->units)
			d->units = nmicro * (t->rank ? (uint64_t)t->dim[0] : 1);
		if (pair_kind(t->dtype) == 'i' && t->rank >= 2
		    && !d->unit_tokens && pair_meaning(t) == FROM_TOKENS) {
			d->unit_tokens = true;
			d->units = nmicro * rt_nelem(t);
		}
	}
}

ckr_status
data_open(struct data *d, ckr_ctx *ctx, const struct data_options *o)
{
	*d = (struct data){ .ctx = ctx, .file = { .fd = -1 } };
	CKR_TRY(open_file(d, o));
	d->pair = (struct pairing){ .array = d->file.v, .narray = d->file.n,
		.path = d->file.path, .raw = o->tokens, .whole = o->inputs,
		.nmicro = ckr_micro_batches(ctx), .err = &ctx->err };
	CKR_TRY(list_inputs(d));
	CKR_TRY(pair_all(&d->pair, o->feed, o->nfeed));
	count_units(d);
	return fill_once(d);
}

void
data_close(struct data *d)
{
	array_close(&d->file);
	free(d->pair.item);
	*d = (struct data){ .file = { .fd = -1 } };
}
