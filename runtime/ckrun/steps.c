#include "runtime/ckrun/steps.h"

#include <math.h>

#include "runtime/ckrun/start.h"
#include "runtime/support/now.h"

bool
steps_only_skipped(const struct step_queue *t)
{
	return t->before + t->skipped + t->overflows == ckr_step_count(t->m);
}

bool
steps_can_begin(const struct step_queue *t)
{
	uint64_t next = ckr_step_count(t->m) + t->count;
	uint64_t every = t->o->save_every, valid = t->o->valid_every;

	if (next >= t->total || (t->count && t->o->check))
		return false;
	if (t->count && ((every && next % every == 0)
	                 || (valid && next % valid == 0)))
		return false;
	return ckr_can_begin(t->m);
}

ckr_status
steps_begin(struct step_queue *t)
{
	struct pending_step *b = &t->pending[(t->first + t->count)
	                                     % STEPS_AHEAD];
	uint64_t step = ckr_step_count(t->m) + t->count;
	ckr_status s = CKR_OK;

	*b = (struct pending_step){ .hyper = start_hyper(t->o, step, t->total),
		.at = now_sec() };
	if (!t->started)
		t->started = b->at;
	/* the last that could be written */
	if (t->o->grads && steps_only_skipped(t) && step + 1 == t->total)
		b->hyper.scale_again = true;
	if (!t->o->check)
		s = ckr_begin_step(t->m, &b->hyper);
	b->warned = *t->data->warning;
	t->count++;
	return s;
}

/* Of the last step; NaN: it has none. */
static double
grad_norm(const struct step_queue *t)
{
	double norm = NAN;

	if (t->has_norm)
		ckr_grad_norm(t->m, &norm);
	return norm;
}

/* Seconds to the last step, if they take what those of this run took. */
static double
time_left(const struct step_queue *t, uint64_t step)
{
	return step <= t->before ? -1 : (t->ended - t->started)
	       / (double)(step - t->before) * (double)(t->total - step);
}

static ckr_status
end_one(struct step_queue *t, const struct pending_step *b, double *loss)
{
	struct ckr_checked n;
	ckr_status s;

	if (!t->o->check)
		return ckr_end_step(t->m, loss);
	s = ckr_check(t->m, &b->hyper, loss, &n);
	checked_add(&t->checked, &n);
	return s;
}

ckr_status
steps_end(struct step_queue *t, struct step_row *row, bool *warned)
{
	const struct pending_step *b = &t->pending[t->first % STEPS_AHEAD];
	uint64_t skipped = ckr_skipped_count(t->m);
	double scale = ckr_loss_scale(t->m), loss = NAN, after;
	double from = fmax(b->at, t->ended);
	ckr_status s = end_one(t, b, &loss);

	t->first++;
	t->count--;
	t->ended = now_sec();
	*row = (struct step_row){
		.step = ckr_step_count(t->m) + (s == CKR_ENAN),
		.steps = t->total, .has_loss = t->has_loss, .exact = t->exact,
		.has_norm = t->has_norm, .loss = loss, .norm = grad_norm(t),
		.epoch = data_epoch(t->data),
		.lr = b->hyper.lr, .sec = t->ended - from,
		.units = t->data->units, .tokens = t->data->unit_tokens,
		.peak_bytes = ckr_peak_bytes(t->m),
		.skipped = ckr_skipped_count(t->m) > skipped,
	};
	row->left = time_left(t, row->step);
	after = ckr_loss_scale(t->m);
	row->overflow = row->skipped && after < scale;
	/* one that overflowed and was taken again */
	if (after < scale && !row->overflow)
		scale = after;
	row->scale = scale > 0 && b->hyper.loss_scale > 0 ? b->hyper.loss_scale
	                                                  : scale;
	*warned = b->warned || (t->o->check && *t->data->warning);
	return s;
}
