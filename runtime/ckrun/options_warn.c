/* Warnings about options of ckrun that have no effect or look like mistakes. */
#include "runtime/ckrun/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void
warn_idle(const struct ckrun_options *o, const char *name, const char *why)
{
	if (options_given(o, name))
		fprintf(stderr, "ckrun: warning: --%s has no effect: %s\n",
		        name, why);
}

/* Options that the library's optimizer does not use; --momentum is refused, not
 * warned of. */
static void
warn_optimizer(const struct ckrun_options *o, const ckr_ctx *m)
{
	static const struct {
		const char *option, *hyper;
	} needs[] = {
		{ "lr", "lr" }, { "lr-scale", "lr" }, { "decay", "lr" },
		{ "schedule", "lr" }, { "schedule-steps", "lr" },
		{ "warmup", "lr" }, { "min-lr", "lr" },
		{ "weight-decay", "weight_decay" }, { "clip", "clip" },
		{ "on-nan", "on_nan" }, { "beta1", "beta1" },
		{ "beta2", "beta2" }, { "eps", "eps" },
		{ "nesterov", "nesterov" }, { "beta2-decay", "beta2_decay" },
		{ "clip-threshold", "clip_threshold" }, { "eps2", "eps2" },
	};
	char why[64];

	if (o->verb == VERB_TRAIN && !o->valid.n && !o->onnx && !o->save_lora
	    && !o->save_merged)
		warn_idle(o, "ema", "nothing is validated or exported");
	if (!ckr_uses_hyper(m, "ema_decay"))
		warn_idle(o, "ema-decay", "the library keeps no averages of "
		          "parameters; compile it with ckc --ema");
	snprintf(why, sizeof(why), "the library's optimizer is %s",
	         ckr_optimizer(m));
	for (size_t i = 0; i < sizeof(needs) / sizeof(*needs); i++)
		if (!ckr_uses_hyper(m, needs[i].hyper))
			warn_idle(o, needs[i].option, why);
}

/* A schedule that ends elsewhere than that of the run that is resumed. */
static void
note_other_end(const struct ckrun_options *o, const ckr_ctx *m, uint64_t end)
{
	uint64_t was = ckr_schedule_steps(m);

	if (!was || end == was || o->quiet)
		return;
	if (!end)
		fprintf(stderr, "ckrun: note: the learning rate of %s was to "
		        "fall until step %" PRIu64 ", now it is that of "
		        "--schedule %s\n", o->resume, was,
		        schedule_name(&o->schedule));
	else
		fprintf(stderr, "ckrun: note: the learning rate's schedule now "
		        "ends at step %" PRIu64 ", that of %s at step %" PRIu64
		        "\n", end, o->resume, was);
	if (was > ckr_step_count(m))
		fprintf(stderr, "  to keep its end: --schedule-steps %" PRIu64
		        "\n", was);
}

/* Options without an effect.  total: steps of the run; 0: none. */
static void
warn_schedule(const struct ckrun_options *o, const ckr_ctx *m, uint64_t total)
{
	uint64_t end = schedule_end(o, total);

	if (!ckr_uses_hyper(m, "lr") || !total)
		return;
	if (o->schedule.kind == CKR_CONSTANT_LR)
		warn_idle(o, "min-lr", "the schedule is constant");
	else if (o->schedule.min_lr > o->hyper.lr)
		fprintf(stderr, "ckrun: warning: --min-lr %g is above --lr %g: "
		        "the learning rate will rise\n", o->schedule.min_lr,
		        o->hyper.lr);
	if (!end)
		warn_idle(o, "schedule-steps", "the schedule has no end");
	if (o->schedule.warmup > total)
		fprintf(stderr, "ckrun: warning: --warmup %" PRIu64 " is "
		        "longer than the run of %" PRIu64 " steps: the "
		        "learning rate never reaches --lr\n",
		        o->schedule.warmup, total);
	if (end && end < total)
		fprintf(stderr, "ckrun: warning: --schedule-steps %" PRIu64 " "
		        "ends before step %" PRIu64 ": the learning rate is %g "
		        "after it\n", end, total, o->schedule.min_lr);
	note_other_end(o, m, end);
}

void
options_warn(const struct ckrun_options *o, const ckr_ctx *m, uint64_t total)
{
	const char *unread = ckr_unused_tensors(m);

	if (*unread && !o->quiet && (o->init.n || o->resume))
		fprintf(stderr, "ckrun: warning: %s\n", unread);
	warn_optimizer(o, m);
	warn_schedule(o, m, total);
}
