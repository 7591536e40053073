/* Calls that the rooms below carry out: steps, evaluation, files, measures. */
#include "runtime/api/context.h"

#include <math.h>

ckr_status
need_quiet(ckr_ctx *c)
{
	CKR_TRY(world_need_ready(&c->world));
	return stepping_need_quiet(c->steps);
}

static ckr_status
need_no_averages(ckr_ctx *c)
{
	return !c->world.owner->averaged ? CKR_OK
	       : err_set(&c->err, CKR_EARG, "the moving averages of the "
	                 "parameters are in use; put the parameters back "
	                 "first: ckr_use_ema(ctx, false), in Python the end "
	                 "of 'with t.ema()'");
}

ckr_status
need_parameters(ckr_ctx *c)
{
	CKR_TRY(need_quiet(c));
	return need_no_averages(c);
}

/* ---- settings ---- */

struct ckr_hyper
ckr_hyper_default(void)
{
	return hyper_of_library(NULL);
}

struct ckr_hyper
ckr_model_hyper(const ckr_ctx *c)
{
	return hyper_of_library(c->library.lib);
}

ckr_status
ckr_set_group(ckr_ctx *c, const char *name, double factor, double decay)
{
	CKR_TRY(need_quiet(c));
	return stepping_set_group(c->steps, name, factor, decay);
}

/* The share of the way from lr to min_lr, of a share of the time. */
static double
cosine_share(double x)
{
	return 0.5 * (1 - cos(acos(-1.0) * x));
}

/* After x steps of cycles of which each is `factor` times as long as the one
 * before: the share of the current one. */
static double
share_of_cycle(double x, double period, double factor)
{
	double cycles;

	if (factor <= 1)
		return fmod(x, period) / period;
	cycles = floor(log1p(x * (factor - 1) / period) / log(factor) + 1e-9);
	x -= period * (pow(factor, cycles) - 1) / (factor - 1);
	return x / (period * pow(factor, cycles));
}

double
ckr_schedule_lr(const struct ckr_schedule *s, uint64_t step)
{
	double at = (double)(step - s->warmup), period = (double)s->period;
	double span = (double)s->total - (double)s->warmup, fallen = 0;

	if (step < s->warmup)
		return s->lr * (double)(step + 1) / (double)s->warmup;
	switch (s->kind) {
	case CKR_CONSTANT_LR:
		break;
	case CKR_LINEAR_LR:
		fallen = span > 0 ? fmin(at / span, 1) : 0;
		break;
	case CKR_COSINE_LR:
		fallen = span > 0 ? cosine_share(fmin(at / span, 1)) : 0;
		break;
	case CKR_WSD_LR:
		period = fmin(period, span);
		fallen = span > 0 ? fmax(0, 1 - fmax(0, span - at) / period)
			: 0;
		break;
	case CKR_STEP_LR:
		return fmax(s->min_lr,
		            s->lr * pow(s->factor, floor(at / period)));
	case CKR_RESTARTS_LR:
		fallen = cosine_share(share_of_cycle(at, period, s->factor));
		break;
	}
	return s->lr + (s->min_lr - s->lr) * fallen;
}

/* ---- inputs ---- */

static ckr_status
call_user_feed(void *user, uint64_t step, uint32_t micro)
{
	ckr_ctx *c = user;

	return c->feed(c->feed_user, c, step, micro);
}

ckr_status
ckr_set_feed(ckr_ctx *c, ckr_feed_fn *feed, void *user)
{
	c->feed = feed;
	c->feed_user = user;
	stepping_set_feed(c->steps, feed ? call_user_feed : NULL, c);
	return CKR_OK;
}

bool
ckr_needs_input(const ckr_ctx *c, const char *input)
{
	uint32_t i;

	return !library_find(c->library.lib, input, &i)
	       || stepping_reads_input(c->steps, i);
}

/* ---- steps ---- */

ckr_status
ckr_step(ckr_ctx *c, const struct ckr_hyper *hyper, double *loss)
{
	CKR_TRY(world_need_ready(&c->world));
	CKR_TRY(need_no_averages(c));
	return stepping_step(c->steps, hyper, loss);
}

ckr_status
ckr_begin_step(ckr_ctx *c, const struct ckr_hyper *hyper)
{
	CKR_TRY(world_need_ready(&c->world));
	CKR_TRY(need_no_averages(c));
	return stepping_begin(c->steps, hyper);
}

ckr_status
ckr_end_step(ckr_ctx *c, double *loss)
{
	CKR_TRY(world_need_ready(&c->world));
	CKR_TRY(need_no_averages(c));
	return stepping_end(c->steps, loss);
}

bool
ckr_can_begin(const ckr_ctx *c)
{
	return world_is_ready(&c->world) && stepping_can_begin(c->steps);
}

ckr_status
ckr_grad_norm(ckr_ctx *c, double *norm)
{
	CKR_TRY(world_need_ready(&c->world));
	return stepping_grad_norm(c->steps, norm);
}

ckr_status
ckr_check_finite(ckr_ctx *c)
{
	CKR_TRY(need_quiet(c));
	return stepping_check_finite(c->steps);
}

/* ---- averages ---- */

ckr_status
ckr_use_ema(ckr_ctx *c, bool use)
{
	const struct progress *p;
	ckr_status s;

	CKR_TRY(need_quiet(c));
	if (!hyper_is_used(c->library.lib, "ema_decay"))
		return err_set(&c->err, CKR_EUNSUPPORTED, "%s keeps no moving "
		               "averages of its parameters; compile it with "
		               "ckc --ema", c->library.path);
	p = stepping_progress(c->steps);
	if (use && p->step == p->skipped)
		return err_set(&c->err, CKR_EARG, "the moving averages have no "
		               "values before the first update; train, or "
		               "resume from a checkpoint");
	s = world_use_averages(c->world.owner, use);
	if (s != CKR_OK && c->with)
		c->err = c->with->err;
	return s;
}

/* ---- evaluation ---- */

ckr_status
ckr_eval(ckr_ctx *c, double *loss)
{
	CKR_TRY(need_quiet(c));
	return stepping_eval(c->steps, loss);
}

int64_t
ckr_bad_number(const ckr_ctx *c)
{
	return c->steps ? stepping_env(c->steps)->fault_value : 0;
}

ckr_status
ckr_score_begin(ckr_ctx *c)
{
	CKR_TRY(world_need_ready(&c->world));
	evaluation_begin(c->evaluation);
	return CKR_OK;
}

ckr_status
ckr_score_add(ckr_ctx *c, double times)
{
	CKR_TRY(need_quiet(c));
	return evaluation_add(c->evaluation, times);
}

ckr_status
ckr_score_end(ckr_ctx *c, struct ckr_score *score)
{
	CKR_TRY(world_need_ready(&c->world));
	return evaluation_end(c->evaluation, score);
}

/* ---- measures ---- */

ckr_status
ckr_check(ckr_ctx *c, const struct ckr_hyper *hyper, double *loss,
	  struct ckr_checked *checked)
{
	CKR_TRY(need_parameters(c));
	return measure_check(c->measure, hyper, loss, checked);
}

ckr_status
ckr_trace(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_quiet(c));
	return measure_trace(c->measure, path);
}

ckr_status
ckr_profile(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_quiet(c));
	return measure_profile(c->measure, path);
}

ckr_status
ckr_profile_table(ckr_ctx *c, FILE *out)
{
	CKR_TRY(need_quiet(c));
	return measure_profile_table(c->measure, out);
}

/* ---- files ---- */

ckr_status
ckr_load_weights(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_parameters(c));
	return files_load_weights(c->files, path);
}

ckr_status
ckr_init(ckr_ctx *c, const char *path, const struct ckr_init *how)
{
	CKR_TRY(need_parameters(c));
	return files_init(c->files, &path, 1, how);
}

ckr_status
ckr_init_all(ckr_ctx *c, const char *const *path, size_t n,
	     const struct ckr_init *how)
{
	CKR_TRY(need_parameters(c));
	return files_init(c->files, path, n, how);
}

const char *
ckr_missing_weight(const ckr_ctx *c, size_t i)
{
	return c && c->files ? files_missing_weight(c->files, i) : NULL;
}

const char *
ckr_unused_tensors(const ckr_ctx *c)
{
	return c && c->files ? files_unused_tensors(c->files) : "";
}

ckr_status
ckr_save(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_parameters(c));
	return files_save(c->files, path);
}

ckr_status
ckr_save_async(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_parameters(c));
	return files_save_async(c->files, path);
}

ckr_status
ckr_save_reserve(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_parameters(c));
	return files_save_reserve(c->files, path);
}

ckr_status
ckr_save_poll(ckr_ctx *c, bool *done)
{
	CKR_TRY(world_need_ready(&c->world));
	return files_save_poll(c->files, done);
}

ckr_status
ckr_save_wait(ckr_ctx *c)
{
	CKR_TRY(world_need_ready(&c->world));
	return files_save_wait(c->files);
}

ckr_status
ckr_resume(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_parameters(c));
	return files_resume(c->files, path);
}

ckr_status
ckr_save_adapters(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_quiet(c));
	return files_save_adapters(c->files, path);
}

ckr_status
ckr_save_merged(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_quiet(c));
	return files_save_merged(c->files, path);
}

ckr_status
ckr_export_onnx(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_quiet(c));
	return files_export_onnx(c->files, path);
}

ckr_status
ckr_save_outputs(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_quiet(c));
	return files_save_outputs(c->files, path);
}

ckr_status
ckr_save_grads(ckr_ctx *c, const char *path)
{
	CKR_TRY(need_quiet(c));
	return files_save_grads(c->files, path);
}
