/* Options that follow from the table of machines. */
#include "frontend/driver/opts_set.h"

#include <stddef.h>

int
machine_rows(struct cli *c, struct option_spec *row, int most, Arena *a)
{
	const unsigned planned = 1 << VERB_COMPILE | 1 << VERB_INSPECT
		| 1 << VERB_ADVISE;
	const unsigned built = 1 << VERB_COMPILE | 1 << VERB_DOCTOR;
	const char *names = machines->name, *texts = machines->text;
	int n = 1;

	for (int i = 0; machines[i].name && i < MACHINES_MAX; i++) {
		const struct machine *m = &machines[i];

		if (i) {
			names = arena_printf(a, "%s|%s", names, m->name);
			texts = arena_printf(a, "%s or for %s", texts, m->text);
		}
		for (int k = 0; k < MACHINE_OPTIONS && n < most; k++) {
			const struct machine_option *o = &m->option[k];

			c->machine_option[i][k] = o->value;
			if (o->name)
				row[n++] = (struct option_spec){
					.name = o->name, .arg = o->arg,
					.group = G_TARGET,
					.set = set_machine_option,
					.field = offsetof(struct cli,
						machine_option[i][k]),
					.verbs = o->checked ? planned : built,
					.help = o->help };
		}
	}
	row[0] = (struct option_spec){
		.name = "target", .arg = names, .group = G_TARGET,
		.set = set_target, .field = offsetof(struct cli, machine),
		.verbs = planned,
		.help = arena_printf(a, "compile for %s (default: %s)", texts,
		                     machines->name) };
	return n;
}

struct codegen_options
cli_codegen(const struct cli *c, const struct machine *m)
{
	const char *const *option = c->machine_option[m - machines];

	return (struct codegen_options){
		.machine = m, .compiler = option[MACHINE_COMPILER],
		.arch = option[MACHINE_ARCH], .threads = c->opt.threads,
	};
}
