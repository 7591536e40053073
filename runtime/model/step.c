/* Steps in the public interface: in one call, or begun and ended.
 *
 * On the host, and wherever something is looked at while a step runs (a trace,
 * transfers between ranks), beginning a step runs it.  On a GPU it is enqueued
 * then, and waited for when it is ended: see async_step.c.
 */
#include "runtime/model/rt.h"

#include <math.h>

static struct inflight_step *
inflight_at(ckr_ctx *c, uint32_t number)
{
	return &c->async.inflight[(c->async.first + number) % MAX_INFLIGHT];
}

/* ---- what came of it ---- */

static void
read_results(ckr_ctx *c, struct inflight_step *f)
{
	const struct ckr_program *p = c->plan.p;
	uint32_t n = ckr_micro_batches(c);
	double sum = 0;

	for (uint32_t m = 0; m < n; m++)
		sum += p->loss < 0 ? (double)NAN
		       : dtype_double(p->tensor[p->loss].dtype,
		                      &f->losses[m]);
	f->loss = rt_loss(c, sum);
	c->norm.value = c->norm.tensor && c->env.clip > 0 ? (double)*f->norm
	                                                  : (double)NAN;
}

/* Again, synchronously, with the inputs it had. */
static ckr_status
run_again(ckr_ctx *c, struct inflight_step *f)
{
	ckr_status s;

	if (f->staged)
		async_restore_inputs(c, f);
	c->async.inputs_placed = f->staged;
	do
		s = rt_run(c, &c->plan, NULL, &f->loss);
	while (s == CKR_ENAN && scale_try_again(c));
	c->async.inputs_placed = false;
	return s;
}

static bool
is_clean(const struct ckr_env *found)
{
	return !found->device_fault && !found->device_nonfinite;
}

/* The device has failed, and with it all enqueued steps. */
static ckr_status
fail_async(ckr_ctx *c, struct inflight_step *f)
{
	struct err why = c->err;

	async_roll_back(c, f);
	return err_set(&c->err, CKR_EIO, "step %llu: %s; %llu steps had "
	               "completed", (unsigned long long)c->step + 1, why.text,
	               (unsigned long long)c->step);
}

/* Wait for the device, and see what came of the step. */
static ckr_status
finish_async(ckr_ctx *c, struct inflight_step *f)
{
	CKR_TRY(async_requeue(c, f));
	CKR_TRY(rt_prepare(c, &f->hyper));
	c->norm.value = NAN;
	c->device->call->event_sync(c->device, f->finished);
	if (device_failed(c->device, &c->err))
		return fail_async(c, f);
	if (f->status == CKR_OK && is_clean(&f->found[1])) {
		f->queued = false;
		c->finite.nonfinite = c->finite.overflow = false;
		read_results(c, f);
		if (!async_is_busy(c))
			rt_show_loss(c, &c->plan, f->loss);
		return CKR_OK;
	}
	async_roll_back(c, f);
	c->err = f->err;
	if (f->status != CKR_OK)
		return f->status;
	/* some updates have been applied: none may be twice */
	if (is_clean(&f->found[0]))
		return rt_fault_in_updates(c, &f->found[1]);
	return run_again(c, f);
}

/* ---- steps ---- */

ckr_status
rt_done(ckr_ctx *c, ckr_status s)
{
	const struct ckr_program *p = &c->lib->program[0];
	bool skipped = s == CKR_ENAN && (c->finite.mode == CKR_NAN_SKIP
	                                 || c->finite.overflow);

	if (s != CKR_OK && !skipped)
		return s;
	scale_after(c, !c->finite.nonfinite);
	/* a step that overflows has run up to the updates */
	if (!async_is_busy(c)
	    && (!skipped || (c->finite.overflow
	                     && rt_last_output(p) < (int32_t)p->apply)))
		c->outputs = &c->plan;
	else
		c->outputs = NULL;
	c->skipped += skipped;
	c->step++;
	c->samples += c->per_step;
	if (c->grads && !skipped)
		CKR_TRY(grads_finish(c));
	return c->trace ? trace_step_end(c) : CKR_OK;
}

static bool
can_run_async(const ckr_ctx *c)
{
	return c->async.possible && c->async.warm && !c->trace && !c->profile
	       && !c->grads;
}

/* Carry it out. */
static void
run_sync(ckr_ctx *c, struct inflight_step *f)
{
	if (c->trace)
		trace_step_begin(c->trace, &c->env);
	do
		f->status = rt_run(c, &c->plan, NULL, &f->loss);
	while (f->status == CKR_ENAN && scale_try_again(c));
	f->err = c->err;
	if (c->async.possible && f->status == CKR_OK) {
		c->async.warm = true;
		c->peak = ckr_peak_bytes(c);
	}
}

/* Stand where the step that was begun will have led, if all goes well. */
static void
assume_success(ckr_ctx *c, const struct inflight_step *f)
{
	scale_prepare(c, &f->hyper);
	c->finite.nonfinite = c->finite.overflow = false;
	scale_after(c, true);
	c->step++;
	c->samples += c->per_step;
}

/* Who feeds a step sets inputs, and does nothing else. */
static ckr_status
need_fed(ckr_ctx *c)
{
	CKR_TRY(rt_need_ready(c));
	return c->feeding ? err_set(&c->err, CKR_EARG, "inputs of a step are "
	                            "being set: return from the feed function "
	                            "first") : CKR_OK;
}

ckr_status
rt_need_quiet(ckr_ctx *c)
{
	CKR_TRY(need_fed(c));
	for (uint32_t k = 0; k < c->async.count; k++)
		if (inflight_at(c, k)->queued || !inflight_at(c, k)->is_async)
			return err_set(&c->err, CKR_EARG, "a step is in "
			               "flight: end it first");
	return CKR_OK;
}

bool
ckr_can_begin(const ckr_ctx *c)
{
	uint32_t at = c->async.first % MAX_INFLIGHT;
	const struct inflight_step *f = &c->async.inflight[at];

	if (!c->ready || c->async.count == 0)
		return c->ready;
	return c->async.count < MAX_INFLIGHT && f->is_async
	       && f->status == CKR_OK && can_run_async(c);
}

/* The environment is ready for it. */
static void
begin_step(ckr_ctx *c, struct inflight_step *f, const struct ckr_hyper *hyper)
{
	f->hyper = hyper ? *hyper : ckr_model_hyper(c);
	f->is_async = can_run_async(c);
	if (f->is_async)
		async_enqueue(c, f, true);
	else
		run_sync(c, f);
	c->async.count++;
}

/* Begin the step after `before`, unless that one could not be enqueued. */
static ckr_status
begin_next(ckr_ctx *c, struct inflight_step *before, struct inflight_step *f,
           const struct ckr_hyper *hyper)
{
	uint64_t step = c->step, samples = c->samples;
	struct loss_scale scale = c->scale;
	ckr_status s;

	CKR_TRY(async_requeue(c, before));
	if (before->status != CKR_OK)
		return CKR_OK;
	assume_success(c, before);
	s = rt_prepare(c, hyper);
	if (s == CKR_OK)
		begin_step(c, f, hyper);
	c->step = step;
	c->samples = samples;
	c->scale = scale;
	return s;
}

ckr_status
ckr_begin_step(ckr_ctx *c, const struct ckr_hyper *hyper)
{
	struct inflight_step *f = inflight_at(c, c->async.count);

	CKR_TRY(need_fed(c));
	if (!ckr_can_begin(c))
		return err_set(&c->err, CKR_EARG, "the maximum number of steps "
		               "is in flight: end one first");
	if (c->async.count)
		return begin_next(c, inflight_at(c, 0), f, hyper);
	CKR_TRY(rt_prepare(c, hyper));
	begin_step(c, f, hyper);
	return CKR_OK;
}

ckr_status
ckr_end_step(ckr_ctx *c, double *loss)
{
	struct inflight_step *f = inflight_at(c, 0);
	ckr_status s;

	CKR_TRY(need_fed(c));
	if (!c->async.count)
		return err_set(&c->err, CKR_EARG, "no step is in flight");
	c->async.first++;
	c->async.count--;
	if (f->is_async) {
		s = finish_async(c, f);
	} else {
		s = f->status;
		c->err = f->err;
	}
	if (loss)
		*loss = f->loss;
	s = rt_done(c, s);
	if (s != CKR_OK)
		c->async.count = 0;
	return s;
}

ckr_status
ckr_step(ckr_ctx *c, const struct ckr_hyper *hyper, double *loss)
{
	CKR_TRY(rt_need_quiet(c));
	if (c->async.count)
		return err_set(&c->err, CKR_EARG, "a step was begun and rolled "
		               "back: end it first");
	CKR_TRY(ckr_begin_step(c, hyper));
	return ckr_end_step(c, loss);
}
