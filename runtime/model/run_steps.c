/* Steps: walking the table of kernel calls. */
#include "runtime/model/peers.h"
#include "runtime/ranks/transfers.h"

#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

struct ckr_hyper
ckr_hyper_default(void)
{
	return (struct ckr_hyper){ .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999,
	                           .eps = 1e-8, .weight_decay = 0.01,
	                           .beta2_decay = -0.8, .clip_threshold = 1,
	                           .eps2 = 1e-3 };
}

static bool
updates_by(const ckr_ctx *c, const char *optimizer)
{
	return !strcmp(ckr_optimizer(c), optimizer);
}

/* Defaults of PyTorch; for Lion, of its paper. */
struct ckr_hyper
ckr_model_hyper(const ckr_ctx *c)
{
	struct ckr_hyper h = ckr_hyper_default();

	if (updates_by(c, "sgdm"))
		h.momentum = 0.9;
	if (updates_by(c, "adam"))
		h.weight_decay = 0;
	if (updates_by(c, "lion")) {
		h.lr = 1e-4;
		h.beta2 = 0.99;
	}
	if (updates_by(c, "adafactor")) {
		h.lr = 1e-2;
		h.eps = FLT_EPSILON;
	}
	return h;
}

double
ckr_schedule_lr(enum ckr_schedule kind, double lr, double min_lr,
                uint64_t step, uint64_t warmup, uint64_t total)
{
	double x;

	if (step < warmup)
		return lr * (double)(step + 1) / (double)warmup;
	if (kind == CKR_CONSTANT_LR || total <= warmup)
		return lr;
	if (step >= total)
		return min_lr;
	x = (double)(step - warmup) / (double)(total - warmup);
	if (kind == CKR_LINEAR_LR)
		return lr + (min_lr - lr) * x;
	return min_lr + (lr - min_lr) * 0.5 * (1 + cos(acos(-1.0) * x));
}

static void
set_hyper_env(ckr_ctx *c, const struct ckr_hyper *hyper)
{
	struct ckr_hyper h = hyper ? *hyper : ckr_model_hyper(c);
	struct ckr_env *env = &c->env;
	double t = (double)(c->step - c->skipped) + 1;

	env->lr = (float)h.lr;
	env->beta1 = (float)h.beta1;
	env->beta2 = (float)h.beta2;
	env->eps = (float)h.eps;
	env->weight_decay = (float)h.weight_decay;
	env->momentum = (float)h.momentum;
	env->clip = norm_clip(c, h.clip);
	scale_prepare(c, hyper);
	env->c1 = (float)(1 - pow(h.beta1, t));
	env->c2 = (float)(1 - pow(h.beta2, t));
	env->nesterov = h.nesterov;
	env->one_minus_beta2 = (float)pow(t, h.beta2_decay);
	env->max_lr = (float)(1 / sqrt(t));
	env->eps2 = (float)h.eps2;
	env->threshold = (float)h.clip_threshold;
}

/* What only some optimizers know. */
static ckr_status
check_special(ckr_ctx *c, const struct ckr_hyper *h)
{
	bool sgdm = updates_by(c, "sgdm");

	if (!(h->momentum >= 0) || !isfinite(h->momentum))
		return err_set(&c->err, CKR_EARG, "momentum must be 0 or more, "
		               "got %g", h->momentum);
	if (h->momentum != 0 && !sgdm)
		return err_set(&c->err, CKR_EUNSUPPORTED, "this model's "
		               "optimizer is %s, which keeps no momentum; "
		               "compile it with --optimizer sgdm, or leave "
		               "momentum at 0", ckr_optimizer(c));
	if (h->nesterov && sgdm && h->momentum == 0)
		return err_set(&c->err, CKR_EARG, "nesterov needs momentum");
	if (!updates_by(c, "adafactor"))
		return CKR_OK;
	if (!(h->beta2_decay <= 0) || !isfinite(h->beta2_decay))
		return err_set(&c->err, CKR_EARG, "beta2-decay must be 0 or "
		               "less, got %g", h->beta2_decay);
	if (!(h->clip_threshold >= 1))
		return err_set(&c->err, CKR_EARG, "clip-threshold must be at "
		               "least 1, got %g", h->clip_threshold);
	if (!(h->eps2 >= 0))
		return err_set(&c->err, CKR_EARG, "eps2 must be 0 or more, got "
		               "%g", h->eps2);
	return CKR_OK;
}

static ckr_status
check_hyper(ckr_ctx *c, const struct ckr_hyper *h)
{
	if (!h)
		return CKR_OK;
	if (!(h->beta1 >= 0 && h->beta1 < 1 && h->beta2 >= 0 && h->beta2 < 1))
		return err_set(&c->err, CKR_EARG, "betas must be at least 0 "
		               "and below 1, got %g and %g", h->beta1,
		               h->beta2);
	if (!(h->lr >= 0) || !isfinite(h->lr))
		return err_set(&c->err, CKR_EARG, "lr must be 0 or more, got "
		               "%g", h->lr);
	if (!(h->weight_decay >= 0) || !isfinite(h->weight_decay))
		return err_set(&c->err, CKR_EARG, "weight_decay must be 0 or "
		               "more, got %g", h->weight_decay);
	if (!(h->eps >= 0) || !(h->clip >= 0)
	    || (unsigned)h->on_nan > CKR_NAN_GO)
		return err_set(&c->err, CKR_EARG, "eps or clip is negative or "
		               "not a number, or on_nan is unknown");
	CKR_TRY(check_special(c, h));
	CKR_TRY(scale_check(c, h->loss_scale));
	if (h->clip > 0 && !c->lib->clip_ok)
		return err_set(&c->err, CKR_EUNSUPPORTED, "this model updates "
		               "in backward and cannot clip gradients; compile "
		               "it with --update-in-backward off");
	return CKR_OK;
}

double
rt_scalar(ckr_ctx *c, const struct loaded_program *b)
{
	const struct ckr_tensor *t;
	double whole;

	if (b->p->loss < 0)
		return NAN;
	t = &b->p->tensor[b->p->loss];
	if (!t->placement)
		return rt_number(c, t, rt_at(c, b, 0, t));
	return rt_nelem(t) == 1 && rt_gather_whole(c, b, t, &whole) == CKR_OK
	       ? dtype_double(t->dtype, &whole) : NAN;
}

ckr_status
rt_fault(ckr_ctx *c, const struct ckr_instr *s)
{
	const char *why = c->env.fault;
	char origin[NAME_TEXT];

	c->env.fault = NULL;
	return err_set(&c->err, CKR_EDATA,
	               "step %llu: node '%s' (%s): %s: %lld",
	               (unsigned long long)c->step + 1,
	               err_name(origin, sizeof(origin),
	                        s->origin ? s->origin : ""), s->op, why,
	               (long long)c->env.fault_value);
}

/* CKR_POISON: NaN in every byte of the arena that no tensor needs after step
 * s: of tensors that die here, minus those that live on. */
static void
poison_dead_bytes(const struct ckr_program *p, struct block *arena, uint32_t s)
{
	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];
		int64_t from, to, lo, hi;
		unsigned char *keep;

		if (t->flags & (CKR_RESIDENT | CKR_OUTPUT | CKR_LOSS)
		    || t->last != (int32_t)s)
			continue;
		rt_reach(t, &from, &to);
		keep = from < to ? calloc(1, (size_t)(to - from)) : NULL;
		if (!keep)
			continue;
		for (uint32_t k = 0; k < p->ntensor; k++) {
			const struct ckr_tensor *u = &p->tensor[k];

			if (u->flags & CKR_RESIDENT || u->ready > (int32_t)s
			    || (u->last <= (int32_t)s
			        && !(u->flags & (CKR_OUTPUT | CKR_LOSS))))
				continue;
			rt_reach(u, &lo, &hi);
			lo = lo > from ? lo : from;
			hi = hi < to ? hi : to;
			if (lo < hi)
				memset(keep + (lo - from), 1,
				       (size_t)(hi - lo));
		}
		for (int64_t b = from; b < to; b++)
			if (!keep[b - from])
				arena->p[b] = 0xff;
		free(keep);
	}
}

/* What rank r here does of step i, or what moves between all. */
static ckr_status
run_timed(ckr_ctx *c, const struct loaded_program *b, uint32_t i, uint32_t r,
          bool moves)
{
	const struct ckr_instr *s = &b->p->instr[i];
	bool timed = c->trace || c->profile;
	double from = 0, to;
	ckr_status status = CKR_OK;

	cpu_monitor_poll(c->cpu_monitor);
	if (timed)
		from = now_sec();
	if (moves)
		status = rt_begin_transfer(c, b, i);
	else
		s->run(b->ptr[r] + s->arg0,
		       b->p->constant + s->const0, &c->env);
	if (!timed)
		return status;
	c->device->call->sync(c->device);
	to = now_sec();
	if (c->trace)
		trace_op(c->trace, i, from, to);
	if (c->profile)
		/* all ranks at once: a rank's share */
		profile_op(c->profile, i,
		           (to - from) / (moves ? c->world.count : 1));
	return status;
}

ckr_status
rt_defer_error(ckr_ctx *c, ckr_status s, uint32_t i)
{
	uint64_t passes = (uint64_t)(c->count.pass ? c->count.pass - 1
	                                           : c->count.npass);

	if (s == CKR_OK || s == CKR_ERANK || !c->team)
		return s;
	if (c->deferred.status == CKR_OK)
		c->deferred = (struct deferred_error){ s,
			(passes * c->env.nmicro + c->env.micro)
					* c->lib->program[0].ninstr
				+ i,
			c->err
		};
	return CKR_OK;
}

/* Ends the deferral: all processes take the earliest failure. */
static ckr_status
agree_on_step(ckr_ctx *c)
{
	ckr_status s = c->deferred.status;

	CKR_TRY(rt_finish_transfers(c));
	if (s != CKR_OK)
		c->err = c->deferred.err;
	return peers_agree_step(c, s, c->deferred.order);
}

ckr_status
rt_run_one(ckr_ctx *c, const struct loaded_program *b, uint32_t i)
{
	const struct ckr_instr *s = &b->p->instr[i];
	bool computes = s->run && c->deferred.status == CKR_OK;

	c->env.group = rt_group(c, b->p, i);
	for (uint32_t r = 0; r < c->world.count && computes; r++) {
		rt_select_rank(c, r);
		CKR_TRY(run_timed(c, b, i, r, false));
		if (c->env.fault)
			return rt_fault(c, s);
	}
	rt_select_rank(c, 0);
	if (s->comm)
		CKR_TRY(run_timed(c, b, i, 0, true));
	CKR_TRY(rt_end_transfers(c, i));
	for (uint32_t r = 0; r < c->world.count && c->poison
	     && c->device->addressable; r++)
		poison_dead_bytes(b->p, &b->arena[r], i);
	return CKR_OK;
}

/* Behind step i: what is not finite may come of bad data, which a GPU goes on
 * with. */
static ckr_status
prefer_fault(ckr_ctx *c, const struct loaded_program *b, uint32_t i,
             ckr_status s)
{
	if (s == CKR_ENAN)
		CKR_TRY(rt_check_faults(c, b, i + 1));
	return s;
}

/* Whether step i has no part in the micro-batch. */
static bool
is_skipped_in_micro(const struct ckr_program *p, uint32_t i, bool last)
{
	int32_t phase = p->instr[i].phase;

	return phase >= CKR_COUNT || (phase == CKR_UPDATE && !last);
}

static ckr_status
run_micro(ckr_ctx *c, const struct loaded_program *b,
          const struct instr_hook *w)
{
	const struct ckr_program *p = b->p;
	bool last = c->env.micro + 1 == c->env.nmicro;
	uint32_t end = last ? p->ninstr : p->update;
	uint32_t commit = rt_commit_step(p);
	ckr_status s;

	CKR_TRY(rt_begin_micro(c, b));
	for (uint32_t i = 0; i < end; i++) {
		if (i == commit)
			CKR_TRY(rt_defer_error(c, rt_check_faults(c, b, i), i));
		if (is_skipped_in_micro(p, i, last)) {
			CKR_TRY(rt_end_transfers(c, i));
			continue;
		}
		CKR_TRY(rt_defer_error(c, rt_run_one(c, b, i), i));
		s = prefer_fault(c, b, i, finite_check_loss(c, b, i));
		CKR_TRY(rt_defer_error(c, s, i));
		norm_after(c, b, i);
		if (c->grads && last && p == &c->lib->program[0])
			CKR_TRY(rt_defer_error(c, grads_after(c, b, i), i));
		if (w)
			CKR_TRY(rt_defer_error(c, w->after(w->user, i), i));
		s = prefer_fault(c, b, i, finite_check_grads(c, b, i + 1));
		CKR_TRY(rt_defer_error(c, s, i));
		/* nothing is updated that one of them would not */
		if (last && i + 1 == p->apply)
			CKR_TRY(agree_on_step(c));
	}
	return rt_check_faults(c, b, end);
}

/* Threads of kernels and products; returns what leave_step restores. */
static int
enter_step(const ckr_ctx *c)
{
	int was = omp_get_max_threads();

	omp_set_num_threads(c->env.threads);
	c->device->call->take_libraries(c->device);
	return was;
}

static void
leave_step(const ckr_ctx *c, int was)
{
	c->device->call->release_libraries(c->device);
	omp_set_num_threads(was);
}

ckr_status
rt_run(ckr_ctx *c, const struct loaded_program *b, const struct instr_hook *w,
       double *loss)
{
	double sum = 0;
	int was = enter_step(c);
	ckr_status s = CKR_OK;

	c->env.step = c->step;
	c->env.nmicro = ckr_micro_batches(c);
	c->env.fault = NULL;
	c->deferred.status = CKR_OK;
	transfers_drop(c->transfers);
	c->outputs = NULL;
	c->norm.value = NAN;
	finite_save(c);
	s = count_run_passes(c, b);
	for (uint32_t m = 0; m < c->env.nmicro && s == CKR_OK; m++) {
		c->env.micro = m;
		s = rt_defer_error(c, rt_feed(c, m), 0);
		if (s == CKR_OK)
			s = run_micro(c, b, w);
		if (s == CKR_OK || s == CKR_ENAN)
			sum += rt_scalar(c, b);
	}
	if (s == CKR_OK)
		s = agree_on_step(c);
	if (s != CKR_OK) {
		finite_roll_back(c);
		c->norm.value = NAN;
	}
	if (s == CKR_OK)
		rt_show_loss(c, b, rt_loss(c, sum));
	leave_step(c, was);
	if (loss)
		*loss = rt_loss(c, sum);
	return s;
}

int32_t
rt_last_output(const struct ckr_program *p)
{
	int32_t last = -1;

	for (uint32_t i = 0; i < p->ntensor; i++)
		if (p->tensor[i].flags & (CKR_OUTPUT | CKR_LOSS)
		    && rt_made(p, i) > last)
			last = rt_made(p, i);
	return last;
}

static bool
has_backward(const struct ckr_program *p)
{
	for (uint32_t i = 0; i < p->ninstr; i++)
		if (p->instr[i].phase != CKR_FORWARD)
			return true;
	return false;
}

ckr_status
rt_prepare(ckr_ctx *c, const struct ckr_hyper *hyper)
{
	CKR_TRY(check_hyper(c, hyper));
	set_hyper_env(c, hyper);
	c->env.training = has_backward(&c->lib->program[0]);
	c->finite.mode = !c->lib->optimizer ? CKR_NAN_GO
	                : hyper ? hyper->on_nan : CKR_NAN_STOP;
	c->finite.off = c->finite.mode == CKR_NAN_GO && !scale_can_fall(c);
	return rt_make_copies(c);
}

/* Constants that no other program has: training has overwritten them. */
static void
upload_constants(ckr_ctx *c, const struct loaded_program *b)
{
	for (uint32_t i = c->lib->nshared; i < b->p->ntensor; i++) {
		const struct ckr_tensor *t = &b->p->tensor[i];

		if (t->kind == CKR_CONSTANT)
			FOR_RANKS (r, c)
				c->device->call->copy_h2d(c->device,
					rt_at(c, b, r, t),
					c->lib->constants + t->data,
					t->nbytes);
	}
}

ckr_status
rt_run_forward(ckr_ctx *c, const struct loaded_program *b, int32_t end,
               double *loss)
{
	ckr_status s;
	int was;

	set_hyper_env(c, NULL);
	c->env.training = 0;
	c->env.step = c->step;
	c->env.micro = 0;
	c->env.nmicro = 1;
	c->env.fault = NULL;
	c->deferred.status = CKR_OK;
	c->outputs = NULL;
	transfers_drop(c->transfers);
	was = enter_step(c);
	upload_constants(c, b);
	s = rt_scatter_inputs(c);
	if (s == CKR_OK)
		s = rt_send_env(c);
	for (int32_t i = 0; i <= end && s == CKR_OK; i++)
		if (b->p->instr[i].phase != CKR_UPDATE)
			s = rt_defer_error(c, rt_run_one(c, b, (uint32_t)i),
			                   (uint32_t)i);
	if (s == CKR_OK)
		s = rt_check_faults(c, b, (uint32_t)(end + 1));
	if (s == CKR_OK)
		s = agree_on_step(c);
	leave_step(c, was);
	if (s == CKR_OK)
		c->outputs = b;
	if (loss)
		*loss = rt_scalar(c, b);
	return s;
}
