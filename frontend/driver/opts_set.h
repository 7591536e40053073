/* The row type of the option table (opts.c), and the setters of options
 * (opts_set.c). */
#ifndef FRONTEND_DRIVER_OPTS_SET_H
#define FRONTEND_DRIVER_OPTS_SET_H

#include "frontend/driver/opts.h"

enum option_group { G_INPUT, G_TRAIN, G_MEMORY, G_TARGET, G_LOOK, G_OUTPUT,
                    G_COUNT };

struct arg_parser {
	struct cli *c;
	Arena *arena;
	FILE *err;
	const struct option_spec *row;  /* current option */
};

/* Stores the value of an option in its field; arg is NULL for options that
 * take none.  False after a message. */
typedef bool SetOption(struct arg_parser *, const char *arg, void *field);

struct option_spec {
	const char *name, *arg;         /* arg NULL: no argument; "a|b": words
	                                 * for setters such as set_first */
	enum option_group group;
	SetOption *set;
	size_t field;                   /* offset in struct cli */
	unsigned verbs;                 /* verbs with this option: 1 << VERB_ */
	const char *help;
};

/* Plain values: char *; char * that may be given once; char * of a folder;
 * bool; int64_t from 1 to 1000000 or GROUP_MAX; int from 1 to 1024; double from
 * 0; int64_t from 0. */
SetOption set_string, set_once, set_folder, set_true, set_positive, set_dp,
	set_ranks, set_thread_count, set_double, set_seconds, set_capacity;
/* One of two words, as a bool: true for the first, or for the second. */
SetOption set_first, set_second;
SetOption set_optimizer, set_tri, set_dtype, set_grad_dtype, set_state_dtype,
	set_save_dtype;
SetOption set_target, set_machine_option, set_batchnorm, add_precision;
/* Lists and groups of fields of struct options. */
SetOption add_dim_binding, add_shape, add_shard_constraint, add_train,
	add_freeze, add_param, add_nodecay, add_lora, add_output, add_keep,
	add_recompute, set_budget, set_recompute;
/* Lists and groups of fields of struct cli. */
SetOption add_const, set_curve_svg, set_graph_budget;
/* A size with a unit, as int64_t bytes. */
SetOption set_fold_limit;

/* opts_machine.c: write the rows of --target and of the machines' own options,
 * `most` at most, and their defaults; returns how many. */
int machine_rows(struct cli *, struct option_spec *row, int most, Arena *);

/* opts.c: whether --NAME was on the command line. */
bool option_given(const struct cli *, const char *name);

#endif
