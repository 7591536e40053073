/* Warnings about options that have no effect with the other options given,
 * with the reason. */
#include "frontend/driver/opts_set.h"

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

static bool
no_tp(const struct cli *c)
{
	return !c->opt.tp;
}

static bool
no_pp(const struct cli *c)
{
	return !c->opt.pp;
}

static bool
no_account(const struct cli *c)
{
	return !c->json && !cli_dumps(c, "memory");
}

static bool
no_pass_dump(const struct cli *c)
{
	const char *s = c->dump ? c->dump : "";

	for (size_t n; *s; s += n + (s[n] == ',')) {
		n = strcspn(s, ",");
		if ((n != 4 || strncmp(s, "plan", n) != 0)
		    && (n != 6 || strncmp(s, "memory", n) != 0))
			return false;
	}
	return true;
}

static bool
no_code(const struct cli *c)
{
	return c->plan_only || c->passes || c->stop_after;
}

static bool
no_training(const struct cli *c)
{
	return c->opt.forward_only;
}

static bool
has_no_update(const struct cli *c)
{
	return c->opt.optimizer == OPT_NONE;
}

static bool
has_no_dropout(const struct cli *c)
{
	return !c->opt.dropout;
}

static bool
no_budget(const struct cli *c)
{
	return c->opt.budget_bytes < 0 && c->opt.budget_pct <= 0
		&& !c->opt.curve;
}

static bool
no_choice(const struct cli *c)
{
	return c->opt.remat != REMAT_AUTO && !c->opt.curve;
}

static bool
uses_zero(const struct cli *c)
{
	return c->opt.zero;
}

static bool
no_import(const struct cli *c)
{
	size_t n = strlen(c->model);

	return n > 3 && !strcmp(c->model + n - 3, ".ck");
}

/* With adapters, --train unfreezes parameters of graphs in text form too. */
static bool
no_import_nor_lora(const struct cli *c)
{
	return no_import(c) && !c->opt.nlora;
}

static const char
	account[] = "without --dump=memory or --json",
	code[] = "when no code is generated (--plan-only, --passes, "
	         "--stop-after, --curve without -o)",
	training[] = "with --forward-only: nothing is trained",
	update[] = "with --optimizer none: nothing is updated",
	budget[] = "without --memory-budget or --curve: nothing is recomputed",
	choice[] = "with a --recompute other than auto: there is no search",
	zero[] = "with --zero 1: the copies are gathered from shards",
	import[] = "for a .ck file; change the declarations in the graph";

static const struct {
	const char *option;
	bool (*idle)(const struct cli *);
	const char *why;
} idle[] = {
	{ "sp", no_tp, "without --tp T" },
	{ "shard", no_tp, "without --tp T" },
	{ "interleave", no_pp, "without --pp P" },
	{ "microbatches", no_pp, "without --pp P" },
	{ "pp", no_account, account },
	{ "step-time", no_account, account },
	{ "dump-dir", no_pass_dump, "without --dump=PASS or --dump=all" },
	{ "save-dtype", no_budget, budget },
	{ "save-dtype", no_choice, choice },
	{ "emit-c", no_code, code },
	{ "optimizer", no_training, training },
	{ "lora", no_training, training },
	{ "no-decay", no_training, training },
	{ "no-decay", has_no_update, update },
	{ "eval", no_training, training },
	{ "eval", no_code, code },
	{ "grad-accum", no_training, training },
	{ "zero", no_training, training },
	{ "zero", has_no_update, update },
	{ "resident-copies", uses_zero, zero },
	{ "update-in-backward", no_training, training },
	{ "update-in-backward", has_no_update, update },
	{ "dropout-mask", no_training, training },
	{ "dropout-mask", has_no_dropout, "with --dropout off" },
	{ "recompute", no_training, training },
	{ "gap", no_training, training },
	{ "gap", no_choice, choice },
	{ "gap", no_budget, budget },
	{ "plan-time", no_training, training },
	{ "plan-time", no_choice, choice },
	{ "plan-time", no_budget, budget },
	{ "const", no_import, import },
	{ "train", no_import_nor_lora, import },
	{ "freeze", no_import, import },
	{ "param", no_import, import },
	{ "untie", no_import, import },
	{ "batchnorm", no_import, import },
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

	if (c->verb != VERB_COMPILE)
		return;
	if (c->out && no_code(c))
		diag_warn(diag, "-o does nothing %s", code);
	warn_of_machines(c, diag);
	for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
		if (strcmp(last, idle[i].option) != 0
		    && option_given(c, idle[i].option) && idle[i].idle(c)) {
			last = idle[i].option;
			diag_warn(diag, "--%s does nothing %s", last,
			          idle[i].why);
		}
}
