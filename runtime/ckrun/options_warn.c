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

bool
options_listed(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *s = list; (s = strstr(s, word)); s += n)
		if ((s == list || s[-1] == ' ') && (!s[n] || s[n] == ' '))
			return true;
	return false;
}

/* Options of another optimizer than the library's; --momentum is refused, not
 * warned of. */
static void
warn_optimizer(const struct ckrun_options *o, const char *optimizer)
{
	static const char all[] = "sgd sgdm adam adamw lion adafactor";
	static const struct {
		const char *option, *of;
	} knows[] = {
		{ "lr", all }, { "lr-scale", all }, { "decay", all },
		{ "schedule", all }, { "warmup", all },
		{ "min-lr", all }, { "weight-decay", all }, { "clip", all },
		{ "on-nan", all },
		{ "beta1", "adam adamw lion" }, { "beta2", "adam adamw lion" },
		{ "eps", "adam adamw adafactor" }, { "nesterov", "sgdm" },
		{ "beta2-decay", "adafactor" },
		{ "clip-threshold", "adafactor" }, { "eps2", "adafactor" },
	};
	char why[64];

	snprintf(why, sizeof(why), "the library's optimizer is %s", optimizer);
	for (size_t i = 0; i < sizeof(knows) / sizeof(*knows); i++)
		if (!options_listed(knows[i].of, optimizer))
			warn_idle(o, knows[i].option, why);
}

void
options_warn(const struct ckrun_options *o, const char *optimizer,
             const char *unread)
{
	bool falls = o->schedule != CKR_CONSTANT_LR;

	if (*unread && !o->quiet && (o->init.n || o->resume))
		fprintf(stderr, "ckrun: warning: %s\n", unread);
	warn_optimizer(o, optimizer);
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
