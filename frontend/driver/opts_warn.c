/* Warnings about options that have no effect with the other options given,
 * with the reason. */
#include "frontend/driver/opts_set.h"
#include "runtime/support/glob.h"

#include <string.h>

bool
cli_dumps(const struct cli *c, const char *what)
{
	size_t n = strlen(what);

	for (const char *s = c->dump; s; s = strchr(s, ','), s = s ? s + 1 : s)
		if (!strncmp(s, what, n) && (!s[n] || s[n] == ','))
			return true;
	return false;
}

/* What makes options idle. */
enum {
	NO_TP = 1 << 0, NO_PP = 1 << 1, NO_ACCOUNT = 1 << 2,
	NO_PASS_DUMP = 1 << 3, NO_STAGES = 1 << 4, NO_CODE = 1 << 6,
	NO_TRAINING = 1 << 7, NO_UPDATE = 1 << 8, NO_DROPOUT = 1 << 9,
	NO_BUDGET = 1 << 10, NO_CHOICE = 1 << 11, ZERO = 1 << 12,
	NO_IMPORT = 1 << 13, ONE_REPLICA = 1 << 15, NO_ZERO = 1 << 16,
	NO_HALF = 1 << 17, NO_OFFLOAD = 1 << 18, NO_STATE = 1 << 19,
	NO_VALUES = 1 << 20, NO_AUTO = 1 << 21, NO_CAPACITY = 1 << 22,
	NO_IMPORT_NOR_LORA = 1 << 14    /* with adapters, --train unfreezes
	                                 * parameters of graphs in text form */
};

/* Whether --dump names reports alone. */
static bool
no_pass_dump(const char *dump)
{
	for (size_t n; dump && *dump; dump += n + (dump[n] == ',')) {
		n = strcspn(dump, ",");
		if ((n != 4 || strncmp(dump, "plan", n) != 0)
		    && (n != 6 || strncmp(dump, "memory", n) != 0))
			return false;
	}
	return true;
}

static bool
no_code(const struct cli *c)
{
	return c->plan_only || c->passes || c->stop_after;
}

/* Element-wise optimizers with states, or with float32 parameters of which 16
 * bits alone are read; Adafactor's states are small. */
static bool
has_offloadable_state(const struct options *o)
{
	bool masters = dtype_is_half(o->dtype) && o->masters
		&& o->resident_copies != TRI_OFF;

	return o->optimizer != OPT_NONE && o->optimizer != OPT_ADAFACTOR
		&& (o->optimizer != OPT_SGD || masters);
}

static unsigned
find_reasons(const struct cli *c)
{
	const struct options *o = &c->opt;
	bool text = glob_match("?*.ck", c->model);
	bool reckons = c->json || cli_dumps(c, "memory");
	/* one stage is an account of memory alone */
	bool stages = o->pp > 1 || (o->pp && reckons);

	return (o->tp ? 0 : NO_TP)
		| (stages ? 0 : NO_PP)
		| (stages || c->automatic ? 0 : NO_STAGES)
		| (reckons ? 0 : NO_ACCOUNT)
		| (no_pass_dump(c->dump) ? NO_PASS_DUMP : 0)
		| (no_code(c) ? NO_CODE : 0)
		| (o->forward_only ? NO_TRAINING : 0)
		| (o->optimizer == OPT_NONE ? NO_UPDATE : 0)
		| (o->dropout ? 0 : NO_DROPOUT)
		| (o->budget_bytes < 0 && o->budget_pct <= 0 && !o->curve
		   ? NO_BUDGET : 0)
		| (o->remat != REMAT_AUTO && !o->curve ? NO_CHOICE : 0)
		| (o->dp == 1 ? ONE_REPLICA : 0)
		| (dtype_is_half(o->dtype) ? 0 : NO_HALF)
		| (o->offload == OFFLOAD_OFF ? NO_OFFLOAD : 0)
		| (o->offload == OFFLOAD_AUTO ? 0 : NO_VALUES)
		| (o->offload != OFFLOAD_STATE
		   || has_offloadable_state(o) ? 0 : NO_STATE)
		| (c->automatic ? 0 : NO_AUTO)
		| (o->zero > 0 && o->offload == OFFLOAD_OFF ? ZERO : 0)
		| (o->zero ? 0 : NO_ZERO)
		| (o->expert_capacity > 0 ? 0 : NO_CAPACITY)
		| (text ? NO_IMPORT : 0)
		| (text && !o->nlora ? NO_IMPORT_NOR_LORA : 0);
}

static const char
	account[] = "without --dump=memory or --json",
	code[] = "when no code is generated (--plan-only, --passes, "
	         "--stop-after, --curve or --dump without -o)",
	training[] = "with --forward-only: nothing is trained",
	update[] = "with --optimizer none: nothing is updated",
	budget[] = "without --memory-budget or --curve: nothing is recomputed",
	choice[] = "with a --recompute other than auto: there is no search",
	half[] = "without --dtype bf16 or f16",
	zero[] = "with --zero: the copies are gathered from shards",
	import[] = "for a .ck file; change the declarations in the graph";

static const struct {
	const char *option;
	unsigned reason;
	const char *why;
} idle[] = {
	{ "sp", NO_TP, "without --tp T" },
	{ "shard", NO_TP, "without --tp T" },
	{ "devices", NO_AUTO, "without --auto" },
	{ "global-batch", NO_AUTO, "without --auto" },
	{ "interleave", NO_PP, "without --pp P" },
	{ "schedule", NO_STAGES, "without --pp P" },
	{ "interleave", NO_ACCOUNT, account },
	{ "microbatches", NO_PP, "without --pp P" },
	{ "stage", NO_PP, "without --pp P" },
	{ "step-time", NO_ACCOUNT, account },
	{ "dump-dir", NO_PASS_DUMP, "without --dump=PASS or --dump=all" },
	{ "save-dtype", NO_CHOICE, choice },
	{ "save-dtype", NO_BUDGET, budget },
	{ "emit-c", NO_CODE, code },
	{ "optimizer", NO_TRAINING, training },
	{ "lora", NO_TRAINING, training },
	{ "no-decay", NO_TRAINING, training },
	{ "no-decay", NO_UPDATE, update },
	{ "ema", NO_TRAINING, training },
	{ "ema", NO_UPDATE, update },
	{ "eval", NO_TRAINING, training },
	{ "eval", NO_CODE, code },
	{ "grad-accum", NO_TRAINING, training },
	{ "zero", NO_TRAINING, training },
	{ "zero", NO_UPDATE, update },
	{ "zero", ONE_REPLICA, "with --dp 1: there is one replica" },
	{ "zero-group", NO_ZERO, "without --zero" },
	{ "expert-overflow", NO_CAPACITY, "without --expert-capacity" },
	{ "offload", NO_TRAINING, training },
	{ "offload", NO_STATE, "with --optimizer sgd, adafactor or none: there "
	  "is no large state to offload" },
	{ "offload-values", NO_VALUES, "without --offload auto" },
	{ "offload-values", NO_TRAINING, training },
	{ "offload-values", NO_CHOICE, choice },
	{ "host-memory", NO_OFFLOAD, "without --offload" },
	{ "resident-copies", ZERO, zero },
	{ "resident-copies", NO_HALF, half },
	{ "master-weights", NO_HALF, half },
	{ "update-in-backward", NO_TRAINING, training },
	{ "update-in-backward", NO_UPDATE, update },
	{ "dropout-mask", NO_TRAINING, training },
	{ "dropout-mask", NO_DROPOUT, "with --dropout off" },
	{ "recompute", NO_TRAINING, training },
	{ "gap", NO_TRAINING, training },
	{ "gap", NO_CHOICE, choice },
	{ "gap", NO_BUDGET, budget },
	{ "plan-time", NO_TRAINING, training },
	{ "plan-time", NO_CHOICE, choice },
	{ "plan-time", NO_BUDGET, budget },
	{ "const", NO_IMPORT, import },
	{ "train", NO_IMPORT_NOR_LORA, import },
	{ "freeze", NO_IMPORT, import },
	{ "param", NO_IMPORT, import },
	{ "untie", NO_IMPORT, import },
	{ "batchnorm", NO_IMPORT, import },
};

/* Options of machines: of others than --target's, or without code. */
static void
warn_of_machines(const struct cli *c, Diag *diag)
{
	for (const struct machine *m = machines; m->name; m++)
		for (int k = 0; k < MACHINE_OPTIONS; k++) {
			const struct machine_option *o = &m->option[k];

			if (!o->name || !option_given(c, o->name))
				continue;
			if (no_code(c) && !o->checked)
				diag_warn(diag, "--%s does nothing %s",
				          o->name, code);
			else if (m != c->machine)
				diag_warn(diag, "--%s does nothing %s --target "
				          "%s", o->name, m == machines ? "with"
				          : "without", m == machines
				          ? c->machine->name : m->name);
		}
}

void
cli_warn(const struct cli *c, Diag *diag)
{
	const char *last = "";
	unsigned reasons;

	if (c->verb != VERB_COMPILE)
		return;
	reasons = find_reasons(c);
	if (c->out && no_code(c))
		diag_warn(diag, "-o does nothing %s", code);
	warn_of_machines(c, diag);
	for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
		if (strcmp(last, idle[i].option) != 0
		    && option_given(c, idle[i].option)
		    && reasons & idle[i].reason) {
			last = idle[i].option;
			diag_warn(diag, "--%s does nothing %s", last,
			          idle[i].why);
		}
}
