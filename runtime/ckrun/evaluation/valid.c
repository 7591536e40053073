/* --valid: scores beside training, and when training stops improving. */
#include "runtime/ckrun/evaluation/evaluation.h"

#include "runtime/ckrun/start.h"

#include <math.h>

ckr_status
valid_open(struct valid *v, ckr_ctx *m, const struct ckrun_options *o,
           struct data *trained)
{
	struct data_options data = start_data(o, &o->valid);

	data.in_order = true;
	*v = (struct valid){ .m = m, .trained = trained,
		.every = o->valid_every };
	CKR_TRY(data_open(&v->data, m, &data));
	return data_fill(trained);
}

void
valid_close(struct valid *v)
{
	if (v->m)
		data_close(&v->data);
}

bool
valid_is_due(const struct valid *v, uint64_t step, uint64_t total)
{
	return v->m && (step == total || (v->every && step % v->every == 0));
}

ckr_status
valid_run(struct valid *v, bool *best)
{
	ckr_status s;

	CKR_TRY(data_fill(&v->data));
	s = score_data(&v->last, v->m, &v->data, false);
	CKR_TRY(score_error(v->m, &v->data, "--valid", s));
	if (!v->noted || !isfinite(v->last.loss))
		score_note(&v->last, &v->data, "--valid");
	v->noted = true;
	CKR_TRY(data_fill(v->trained));
	return ckr_record_validation(v->m, v->last.loss, best);
}

bool
valid_stalled(const ckr_ctx *m, const struct ckrun_options *o)
{
	uint64_t worse;

	ckr_best_loss(m, &worse);
	return o->patience && worse >= o->patience;
}
