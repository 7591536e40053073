/* Steps in the public interface: in one call, or begun and ended.
 *
 * On the host, and wherever something is looked at while a step runs (a trace,
 * transfers between ranks), beginning a step runs it.  On a GPU it is enqueued
 * then, and waited for when it is ended: see async_step.c.
 */
#include "runtime/base/dtype.h"
#include "runtime/stepping/inside.h"

#include <math.h>

static struct inflight_step *
inflight_at(struct stepping *c, uint32_t number)
{
	return &c->async.inflight[(c->async.first + number) % MAX_INFLIGHT];
}

/* ---- what came of it ---- */

static void
read_results(struct stepping *c, struct inflight_step *f)
{
	const struct ckr_program *p = c->world->plan.p;
	uint32_t n = library_micro_batches(c->lib);
	double sum = 0;

	for (uint32_t m = 0; m < n; m++)
		sum += p->loss < 0 ? (double)NAN
		       : dtype_double(p->tensor[p->loss].dtype,
		                      &f->losses[m]);
	f->loss = loss_of_sum(c, sum);
	c->norm.value = c->norm.tensor && c->env.clip > 0
		? (double)f->results->norm : (double)NAN;
}

/* Again, synchronously, with the inputs it had. */
static ckr_status
run_again(struct stepping *c, struct inflight_step *f)
{
	ckr_status s;

	if (f->staged)
		async_restore_inputs(c, f);
	c->async.inputs_placed = f->staged;
	do
		s = stepping_run(c, &c->world->plan, &f->loss);
	while (s == CKR_ENAN && stepping_again(c));
	c->async.inputs_placed = false;
	return s;
}

static bool
is_clean(const struct ckr_env *found)
{
	return !found->device_fault[0] && !found->device_nonfinite;
}

/* The device has failed, and with it all enqueued steps. */
static ckr_status
fail_async(struct stepping *c, struct inflight_step *f)
{
	struct err why = *c->err;

	async_roll_back(c, f);
	return err_set(c->err, CKR_EIO, "step %llu: %s; %llu steps had "
	               "completed", (unsigned long long)c->progress->step + 1,
	               why.text, (unsigned long long)c->progress->step);
}

static bool
in_flight(struct stepping *c)
{
	for (uint32_t k = 0; k < c->async.count; k++)
		if (inflight_at(c, k)->queued || !inflight_at(c, k)->is_async)
			return true;
	return false;
}

/* Devices of several libraries do not wait for each other. */
static ckr_status
need_others_quiet(struct stepping *c)
{
	for (struct stepping *o = c->next; o != c; o = o->next) {
		if (o->feeding || in_flight(o))
			return err_set(c->err, CKR_EARG, "a step of %s is in "
			               "flight: end it first",
			               o->world->library->path);
		o->device->call->sync(o->device);
	}
	return CKR_OK;
}

/* Enqueue again a step that was rolled back, unless it failed. */
static ckr_status
requeue(struct stepping *c, struct inflight_step *f)
{
	if (f->queued || f->status != CKR_OK)
		return CKR_OK;
	CKR_TRY(need_others_quiet(c));
	CKR_TRY(stepping_prepare(c, &f->hyper));
	async_enqueue(c, f, !f->staged);
	return CKR_OK;
}

/* Wait for the device, and see what came of the step. */
static ckr_status
finish_async(struct stepping *c, struct inflight_step *f)
{
	CKR_TRY(requeue(c, f));
	CKR_TRY(stepping_prepare(c, &f->hyper));
	c->norm.value = NAN;
	c->device->call->event_sync(c->device, f->finished);
	if (device_failed(c->device, c->err))
		return fail_async(c, f);
	if (f->status == CKR_OK && is_clean(&f->results->found[1])) {
		f->queued = false;
		c->finite.nonfinite = c->finite.overflow = false;
		read_results(c, f);
		if (!async_is_busy(c))
			loss_show(c, &c->world->plan, f->loss);
		return CKR_OK;
	}
	async_roll_back(c, f);
	*c->err = f->err;
	if (f->status != CKR_OK)
		return f->status;
	/* some updates have been applied: none may be twice */
	if (is_clean(&f->results->found[0]))
		return instr_fault_in_updates(c, &f->results->found[1]);
	return run_again(c, f);
}

/* ---- steps ---- */

ckr_status
stepping_done(struct stepping *c, ckr_status s)
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
	                     && program_last_output(p) < (int32_t)p->apply)))
		c->outputs = &c->world->plan;
	else
		c->outputs = NULL;
	c->progress->skipped += skipped;
	c->progress->step++;
	c->progress->samples += c->progress->per_step;
	s = CKR_OK;
	for (struct observer *o = c->observer, *next; o; o = next) {
		ckr_status end;

		next = o->next;
		end = o->end ? o->end(o->user, skipped) : CKR_OK;
		s = s == CKR_OK ? end : s;
	}
	return s;
}

static bool
can_run_async(const struct stepping *c)
{
	return c->async.possible && c->async.warm && !c->observer;
}

void
stepping_announce(struct stepping *c)
{
	for (struct observer *o = c->observer; o; o = o->next)
		if (o->begin)
			o->begin(o->user);
}

/* Carry it out. */
static void
run_sync(struct stepping *c, struct inflight_step *f)
{
	stepping_announce(c);
	do
		f->status = stepping_run(c, &c->world->plan, &f->loss);
	while (f->status == CKR_ENAN && stepping_again(c));
	f->err = *c->err;
	if (c->async.possible && f->status == CKR_OK) {
		/* observers keep updates from being launched together */
		if (!c->async.warm && !c->observer) {
			finite_load(c);
			c->async.warm = true;
		}
		c->peak = stepping_peak_bytes(c);
	}
}

/* Stand where the step that was begun will have led, if all goes well. */
static void
assume_success(struct stepping *c, const struct inflight_step *f)
{
	scale_prepare(c, &f->hyper);
	c->finite.nonfinite = c->finite.overflow = false;
	scale_after(c, true);
	c->progress->step++;
	c->progress->samples += c->progress->per_step;
}

ckr_status
stepping_need_quiet(struct stepping *c)
{
	CKR_TRY(stepping_need_fed(c));
	if (in_flight(c))
		return err_set(c->err, CKR_EARG, "a step is in flight: end it "
		               "first");
	return need_others_quiet(c);
}

bool
stepping_can_begin(const struct stepping *c)
{
	uint32_t at = c->async.first % MAX_INFLIGHT;
	const struct inflight_step *f = &c->async.inflight[at];

	if (!world_is_ready(c->world) || c->async.count == 0)
		return world_is_ready(c->world);
	return c->async.count < MAX_INFLIGHT && f->is_async
	       && f->status == CKR_OK && can_run_async(c);
}

/* The environment is ready for it. */
static void
begin_step(struct stepping *c, struct inflight_step *f,
           const struct ckr_hyper *hyper)
{
	f->hyper = hyper ? *hyper : hyper_of_library(c->lib);
	f->is_async = can_run_async(c);
	if (f->is_async)
		async_enqueue(c, f, true);
	else
		run_sync(c, f);
	c->async.count++;
}

/* Begin the step after `before`, unless that one could not be enqueued. */
static ckr_status
begin_next(struct stepping *c, struct inflight_step *before,
           struct inflight_step *f, const struct ckr_hyper *hyper)
{
	const struct progress was = *c->progress;
	struct loss_scale scale = c->scale;
	ckr_status s;

	CKR_TRY(requeue(c, before));
	if (before->status != CKR_OK)
		return CKR_OK;
	assume_success(c, before);
	s = stepping_prepare(c, hyper);
	if (s == CKR_OK)
		begin_step(c, f, hyper);
	/* what feeding it has set stays */
	c->progress->step = was.step;
	c->progress->samples = was.samples;
	c->progress->scale = was.scale;
	c->progress->scale_good = was.scale_good;
	c->scale = scale;
	return s;
}

ckr_status
stepping_begin(struct stepping *c, const struct ckr_hyper *hyper)
{
	struct inflight_step *f = inflight_at(c, c->async.count);

	CKR_TRY(stepping_need_fed(c));
	if (!stepping_can_begin(c))
		return err_set(c->err, CKR_EARG, "the maximum number of steps "
		               "is in flight: end one first");
	if (c->async.count)
		return begin_next(c, inflight_at(c, 0), f, hyper);
	CKR_TRY(need_others_quiet(c));
	CKR_TRY(stepping_prepare(c, hyper));
	begin_step(c, f, hyper);
	return CKR_OK;
}

ckr_status
stepping_end(struct stepping *c, double *loss)
{
	struct inflight_step *f = inflight_at(c, 0);
	ckr_status s;

	CKR_TRY(stepping_need_fed(c));
	if (!c->async.count)
		return err_set(c->err, CKR_EARG, "no step is in flight");
	c->async.first++;
	c->async.count--;
	if (f->is_async) {
		s = finish_async(c, f);
	} else {
		s = f->status;
		*c->err = f->err;
	}
	if (loss)
		*loss = f->loss;
	s = stepping_done(c, s);
	if (s != CKR_OK)
		c->async.count = 0;
	return s;
}

ckr_status
stepping_step(struct stepping *c, const struct ckr_hyper *hyper, double *loss)
{
	CKR_TRY(stepping_need_quiet(c));
	if (c->async.count)
		return err_set(c->err, CKR_EARG, "a step was begun and rolled "
		               "back: end it first");
	CKR_TRY(stepping_begin(c, hyper));
	return stepping_end(c, loss);
}
