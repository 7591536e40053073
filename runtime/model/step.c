/* Steps as a caller has them: in one call, or begun and ended.
 *
 * On the host, and wherever something is looked at while a step runs (a trace,
 * transfers between ranks), a step has been carried out when it was begun.  A
 * GPU is given it then, and done when it is ended: see late.c.
 */
#include "runtime/model/rt.h"

#include <math.h>

static struct flight *
flight(ckr_ctx *c, uint32_t number)
{
	return &c->late.flight[(c->late.first + number) % FLIGHTS];
}

/* ---- what came of it ---- */

static void
take_results(ckr_ctx *c, struct flight *f)
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

/* Again, plainly, with the inputs it had. */
static ckr_status
take_again(ckr_ctx *c, struct flight *f)
{
	ckr_status s;

	if (f->kept)
		late_restore_inputs(c, f);
	c->late.fed = f->kept;
	do
		s = rt_run(c, &c->plan, NULL, &f->loss);
	while (s == CKR_ENAN && scale_try_again(c));
	c->late.fed = false;
	return s;
}

static bool
is_clean(const struct ckr_env *found)
{
	return !found->device_fault && !found->device_bad;
}

/* The device is gone, and all it was given. */
static ckr_status
lose(ckr_ctx *c, struct flight *f)
{
	struct err why = c->err;

	late_recall(c, f);
	return err_set(&c->err, CKR_EIO, "step %llu: %s; %llu steps had ended "
	               "well", (unsigned long long)c->step + 1, why.text,
	               (unsigned long long)c->step);
}

/* Wait for the device, and see what came of the step. */
static ckr_status
land(ckr_ctx *c, struct flight *f)
{
	CKR_TRY(late_give_again(c, f));
	CKR_TRY(rt_prepare(c, &f->hyper));
	c->norm.value = NAN;
	c->device->call->await(c->device, f->done);
	if (device_failed(c->device, &c->err))
		return lose(c, f);
	if (f->status == CKR_OK && is_clean(&f->found[1])) {
		f->given = false;
		c->guard.bad = c->guard.overflow = false;
		take_results(c, f);
		if (!late_is_busy(c))
			rt_show_loss(c, &c->plan, f->loss);
		return CKR_OK;
	}
	late_recall(c, f);
	c->err = f->err;
	if (f->status != CKR_OK)
		return f->status;
	/* some updates have been applied: none may be twice */
	if (is_clean(&f->found[0]))
		return rt_fault_in_updates(c, &f->found[1]);
	return take_again(c, f);
}

/* ---- steps ---- */

ckr_status
rt_done(ckr_ctx *c, ckr_status s)
{
	const struct ckr_program *p = &c->lib->program[0];
	bool skipped = s == CKR_ENAN && (c->guard.mode == CKR_NAN_SKIP
	                                 || c->guard.overflow);

	if (s != CKR_OK && !skipped)
		return s;
	scale_after(c, !c->guard.bad);
	/* a step that overflows has run up to the updates */
	if (!late_is_busy(c)
	    && (!skipped || (c->guard.overflow
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
is_late(const ckr_ctx *c)
{
	return c->late.can && c->late.warm && !c->trace && !c->profile
	       && !c->grads;
}

/* Carry it out. */
static void
run_now(ckr_ctx *c, struct flight *f)
{
	if (c->trace)
		trace_step_begin(c->trace, &c->env);
	do
		f->status = rt_run(c, &c->plan, NULL, &f->loss);
	while (f->status == CKR_ENAN && scale_try_again(c));
	f->err = c->err;
	if (c->late.can && f->status == CKR_OK) {
		c->late.warm = true;
		c->peak = ckr_peak_bytes(c);
	}
}

/* Stand where the step that was begun will have led, if all goes well. */
static void
go_ahead(ckr_ctx *c, const struct flight *f)
{
	scale_prepare(c, &f->hyper);
	c->guard.bad = c->guard.overflow = false;
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
	                            "being set: return first") : CKR_OK;
}

ckr_status
rt_need_quiet(ckr_ctx *c)
{
	CKR_TRY(need_fed(c));
	for (uint32_t k = 0; k < c->late.count; k++)
		if (flight(c, k)->given || !flight(c, k)->late)
			return err_set(&c->err, CKR_EARG, "a step is under "
			               "way: end it first");
	return CKR_OK;
}

bool
ckr_can_begin(const ckr_ctx *c)
{
	const struct flight *f = &c->late.flight[c->late.first % FLIGHTS];

	if (!c->ready || c->late.count == 0)
		return c->ready;
	return c->late.count < FLIGHTS && f->late && f->status == CKR_OK
	       && is_late(c);
}

/* The environment is ready for it. */
static void
begin(ckr_ctx *c, struct flight *f, const struct ckr_hyper *hyper)
{
	f->hyper = hyper ? *hyper : ckr_hyper_of(c);
	f->late = is_late(c);
	if (f->late)
		late_give(c, f, true);
	else
		run_now(c, f);
	c->late.count++;
}

/* One more.  Behind one that the host could not give whole there is none. */
static ckr_status
begin_behind(ckr_ctx *c, struct flight *before, struct flight *f,
             const struct ckr_hyper *hyper)
{
	uint64_t step = c->step, samples = c->samples;
	struct scale scale = c->scale;
	ckr_status s;

	CKR_TRY(late_give_again(c, before));
	if (before->status != CKR_OK)
		return CKR_OK;
	go_ahead(c, before);
	s = rt_prepare(c, hyper);
	if (s == CKR_OK)
		begin(c, f, hyper);
	c->step = step;
	c->samples = samples;
	c->scale = scale;
	return s;
}

ckr_status
ckr_begin_step(ckr_ctx *c, const struct ckr_hyper *hyper)
{
	struct flight *f = flight(c, c->late.count);

	CKR_TRY(need_fed(c));
	if (!ckr_can_begin(c))
		return err_set(&c->err, CKR_EARG, "as many steps as can be "
		               "under way have been begun: end one first");
	if (c->late.count)
		return begin_behind(c, flight(c, 0), f, hyper);
	CKR_TRY(rt_prepare(c, hyper));
	begin(c, f, hyper);
	return CKR_OK;
}

ckr_status
ckr_end_step(ckr_ctx *c, double *loss)
{
	struct flight *f = flight(c, 0);
	ckr_status s;

	CKR_TRY(need_fed(c));
	if (!c->late.count)
		return err_set(&c->err, CKR_EARG, "no step has been begun");
	c->late.first++;
	c->late.count--;
	if (f->late) {
		s = land(c, f);
	} else {
		s = f->status;
		c->err = f->err;
	}
	if (loss)
		*loss = f->loss;
	s = rt_done(c, s);
	if (s != CKR_OK)
		c->late.count = 0;
	return s;
}

ckr_status
ckr_step(ckr_ctx *c, const struct ckr_hyper *hyper, double *loss)
{
	CKR_TRY(rt_need_quiet(c));
	if (c->late.count)
		return err_set(&c->err, CKR_EARG, "a step has been begun and "
		               "recalled: end it first");
	CKR_TRY(ckr_begin_step(c, hyper));
	return ckr_end_step(c, loss);
}
