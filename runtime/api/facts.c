/* Facts about a model, its run and its process. */
#include "runtime/api/context.h"
#include "runtime/base/dtype.h"

#include <stdarg.h>
#include <unistd.h>

/* ---- the model ---- */

const char *
ckr_model_name(const ckr_ctx *c)
{
	return c->library.lib ? c->library.lib->name : "";
}

uint32_t
ckr_micro_batches(const ckr_ctx *c)
{
	return library_micro_batches(c->library.lib);
}

const char *
ckr_optimizer(const ckr_ctx *c)
{
	return library_optimizer(c->library.lib);
}

bool
ckr_uses_hyper(const ckr_ctx *c, const char *name)
{
	return hyper_is_used(c->library.lib, name);
}

const char *
ckr_float_type(const ckr_ctx *c)
{
	const struct ckr_library *lib = c->library.lib;
	uint8_t least = CKR_F32;

	for (uint32_t t = 0; lib && t < lib->program[0].ntensor; t++) {
		uint8_t dt = lib->program[0].tensor[t].dtype;

		if (dt == CKR_BF16 || (dt == CKR_F16 && least != CKR_BF16))
			least = dt;
	}
	return dtype_row[least].text;
}

const char *
ckr_why_no_eval(const ckr_ctx *c)
{
	return c->steps ? stepping_why_no_eval(c->steps) : NULL;
}

bool
ckr_exports_training_form(const ckr_ctx *c)
{
	return c->library.lib && c->library.lib->onnx_trains;
}

/* ---- the run ---- */

static const struct progress *
progress_of(const ckr_ctx *c)
{
	static const struct progress none;

	return c->steps ? stepping_progress(c->steps) : &none;
}

uint64_t
ckr_step_count(const ckr_ctx *c)
{
	return progress_of(c)->step;
}

uint64_t
ckr_skipped_count(const ckr_ctx *c)
{
	return progress_of(c)->skipped;
}

uint64_t
ckr_sample_count(const ckr_ctx *c)
{
	return progress_of(c)->samples;
}

ckr_status
ckr_set_samples(ckr_ctx *c, uint64_t per_step)
{
	struct progress *p = stepping_progress(c->steps);

	p->per_step = per_step;
	if (p->uncounted)
		p->samples = p->step * per_step;
	p->uncounted = false;
	return CKR_OK;
}

uint64_t
ckr_seed(const ckr_ctx *c)
{
	return progress_of(c)->seed;
}

void
ckr_set_seed(ckr_ctx *c, uint64_t seed)
{
	stepping_progress(c->steps)->seed = seed;
}

uint64_t
ckr_schedule_steps(const ckr_ctx *c)
{
	return progress_of(c)->schedule_steps;
}

void
ckr_set_schedule_steps(ckr_ctx *c, uint64_t total)
{
	stepping_progress(c->steps)->schedule_steps = total;
}

double
ckr_loss_scale(const ckr_ctx *c)
{
	return c->library.lib && c->library.lib->loss_scaled
	       ? progress_of(c)->scale : 0;
}

ckr_status
ckr_record_validation(ckr_ctx *c, double loss, bool *best)
{
	struct progress *p;

	CKR_TRY(world_need_ready(&c->world));
	p = stepping_progress(c->steps);
	*best = loss < p->best;
	p->worse = *best ? 0 : p->worse + 1;
	p->best = *best ? loss : p->best;
	return CKR_OK;
}

double
ckr_best_loss(const ckr_ctx *c, uint64_t *worse)
{
	if (worse)
		*worse = progress_of(c)->worse;
	return progress_of(c)->best;
}

/* ---- memory and processors ---- */

ckr_status
ckr_memory(ckr_ctx *c, struct ckr_memory *m)
{
	const struct world *w = &c->world;

	CKR_TRY(world_need_ready(&c->world));
	*m = (struct ckr_memory){
		.planned_bytes = stepping_planned_bytes(c->steps),
		.budget_bytes = w->lib->budget_bytes,
		.resident_bytes = w->lib->program[0].resident_bytes,
		.arena_bytes = w->plan.p->arena_bytes,
		.peak_bytes = ckr_peak_bytes(c),
		.held_bytes = stepping_held_bytes(c->steps),
		.transfer_bytes = world_transfer_bytes(w),
		.staging_bytes = files_staging_bytes(c->files),
		.grown_bytes = world_grown_bytes(w),
	};
	return CKR_OK;
}

uint64_t
ckr_peak_bytes(const ckr_ctx *c)
{
	if (!world_is_ready(&c->world))
		return 0;
	c->world.device->call->enter(c->world.device);
	return stepping_peak_bytes(c->steps);
}

const char *
ckr_blas(const ckr_ctx *c)
{
	return c->world.device ? c->world.device->libraries : "";
}

uint64_t
ckr_host_bytes(const ckr_ctx *c)
{
	return world_is_ready(&c->world) ? world_host_bytes(&c->world) : 0;
}

const char *
ckr_offload_dir(const ckr_ctx *c)
{
	return world_is_ready(&c->world) ? world_offload_dir(&c->world) : NULL;
}

int
ckr_threads(const ckr_ctx *c)
{
	return c->world.threads;
}

uint32_t
ckr_ranks(const ckr_ctx *c)
{
	return c->world.tp * c->world.dp;
}

uint32_t
ckr_replicas(const ckr_ctx *c)
{
	return c->world.dp;
}

/* ---- processes ---- */

uint32_t
ckr_rank(const ckr_ctx *c)
{
	return c->world.team ? c->world.team->rank : 0;
}

uint32_t
ckr_processes(const ckr_ctx *c)
{
	return c->world.team ? c->world.team->size : 1;
}

ckr_status
ckr_agree(ckr_ctx *c, ckr_status s)
{
	return c ? world_agree(&c->world, s, "agreement") : s;
}

ckr_status
ckr_agree_any(ckr_ctx *c, bool here, bool *any)
{
	return world_any(&c->world, here, progress_of(c)->step, any);
}

bool
ckr_is_reporter(const ckr_ctx *c)
{
	return !c || !c->err.mute;
}

void
ckr_abort(ckr_ctx *c, ckr_status s)
{
	/* who speaks is to be heard first */
	enum { SOON = 2 };

	if (!c || !c->world.team || s == CKR_OK)
		return;
	if (c->err.known && s != CKR_ERANK) {
		/* all are here, and can still complete the last checkpoint */
		if (c->files)
			files_save_wait(c->files);
		return;
	}
	if (c->err.mute)
		sleep(SOON);
	pg_abort(c->world.team, s == CKR_ERANK ? 3 : 1);
}

/* ---- errors ---- */

const char *
ckr_error(const ckr_ctx *c)
{
	return c ? c->err.text : "out of memory";
}

ckr_status
ckr_fail(ckr_ctx *c, ckr_status status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->err.text, sizeof(c->err.text), fmt, ap);
	va_end(ap);
	c->err.known = c->err.mute = false;
	return status;
}
