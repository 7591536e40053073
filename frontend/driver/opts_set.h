/* Groups of the option table (opts.c), and setters of options (opts_set.c). */
#ifndef FRONTEND_DRIVER_OPTS_SET_H
#define FRONTEND_DRIVER_OPTS_SET_H

#include <string.h>

#include "frontend/driver/opts.h"
#include "runtime/support/options.h"

enum option_group { G_INPUT, G_TRAIN, G_MEMORY, G_TARGET, G_LOOK, G_OUTPUT,
                    G_COUNT };

/* The message of ckc about a value that is not as expected. */
bool reject_option(struct arg_parser *, enum option_fault, const char *arg,
                   const char *expected);
/* char * of a folder; int64_t; int; the machine; char * of a machine; int64_t
 * of chunks. */
SetOption set_folder, set_dp, set_zero, set_thread_count, set_target,
	set_machine_option, set_schedule;
/* One more name of a struct name_list. */
SetOption add_name;
/* Lists and groups of fields of struct options. */
SetOption add_dim_binding, add_shape, add_shard_constraint, add_train,
	add_freeze, add_lora, set_budget, set_recompute;
/* Lists and groups of fields of struct cli. */
SetOption add_batchnorm, add_const, add_frozen_dtype, add_precision,
	set_cp_dim, set_curve_svg, set_graph_budget;
/* A size with a unit, as int64_t bytes. */
SetOption set_size;

/* opts_machine.c: write the rows of --target and of the machines' own options,
 * `most` at most, and their defaults; returns how many. */
int machine_rows(struct cli *, struct option_spec *row, int most, Arena *);

/* auto_request.c: check the options beside --auto; CLI_GO, or 2 after a
 * message. */
int check_auto(const struct cli *, FILE *err);

/* Whether --NAME was on the command line. */
static inline bool
option_given(const struct cli *c, const char *name)
{
	for (size_t i = 0; i < c->nrow; i++)
		if (c->given[i] && !strcmp(c->row[i].name, name))
			return true;
	return false;
}

#endif
