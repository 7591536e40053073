/* Warnings about options of ckrun that have no effect or look like mistakes. */
#include "runtime/ckrun/ckrun_options.h"

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
		{ "schedule", "lr" }, { "warmup", "lr" }, { "min-lr", "lr" },
		{ "weight-decay", "weight_decay" }, { "clip", "clip" },
		{ "on-nan", "on_nan" }, { "beta1", "beta1" },
		{ "beta2", "beta2" }, { "eps", "eps" },
		{ "nesterov", "nesterov" }, { "beta2-decay", "beta2_decay" },
		{ "clip-threshold", "clip_threshold" }, { "eps2", "eps2" },
	};
	char why[64];

	snprintf(why, sizeof(why), "the library's optimizer is %s",
	         ckr_optimizer(m));
	for (size_t i = 0; i < sizeof(needs) / sizeof(*needs); i++)
		if (!ckr_uses_hyper(m, needs[i].hyper))
			warn_idle(o, needs[i].option, why);
}

void
options_warn(const struct ckrun_options *o, const ckr_ctx *m)
{
	const char *unread = ckr_unused_tensors(m);
	bool falls = o->schedule != CKR_CONSTANT_LR;

	if (*unread && !o->quiet && (o->init.n || o->resume))
		fprintf(stderr, "ckrun: warning: %s\n", unread);
	warn_optimizer(o, m);
	if (!falls)
		warn_idle(o, "min-lr", "only --schedule linear and cosine use "
		          "it");
	if (falls && o->min_lr > o->hyper.lr)
		fprintf(stderr, "ckrun: warning: --min-lr %g is above --lr %g: "
		        "the learning rate will rise\n", o->min_lr,
		        o->hyper.lr);
	if (options_given(o, "steps") && o->warmup > o->steps)
		fprintf(stderr, "ckrun: warning: --warmup %llu is longer than "
		        "--steps %llu: the learning rate never reaches --lr\n",
		        (unsigned long long)o->warmup,
		        (unsigned long long)o->steps);
}
