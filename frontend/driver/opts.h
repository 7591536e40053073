/* Room driver: the commands of ckc.
 *
 * in      the command line, files that it names
 * out     libraries, pages, JSON; the exit status
 * must not know how a pass, an importer or an emitter works
 *
 * This header: the options; one table gives parsing, --help and the checks.
 */
#ifndef FRONTEND_DRIVER_OPTS_H
#define FRONTEND_DRIVER_OPTS_H

#include <stdio.h>

#include "codegen/codegen.h"
#include "frontend/import/import.h"
#include "passes/passes.h"

enum ckc_verb { VERB_COMPILE, VERB_INSPECT, VERB_ADVISE, VERB_PLAN, VERB_PACK,
                VERB_DOCTOR };

enum { OPTIONS_MAX = 96, MACHINES_MAX = 8 };

struct cli {
	enum ckc_verb verb;
	const char *model;              /* input file */
	struct options opt;
	int nconst;
	struct import_const *constant;
	int nbatchnorm;
	const struct glob_wish *batchnorm;
	const char *out;                /* -o; NULL: named after the model */
	const char *emit_dir;
	const struct machine *machine;
	/* of all machines, in the order of their table */
	const char *machine_option[MACHINES_MAX][MACHINE_OPTIONS];
	const struct option_spec *row;  /* the options there are */
	size_t nrow;
	const char *dump, *dump_dir, *json, *passes, *stop_after;
	const char *curve_svg, *page;
	bool curve, plan_only, debug;
	bool automatic;                 /* --auto */
	int64_t devices, global_batch;  /* 0: not given */
	bool eval;                      /* add an evaluation program */
	/* plan: a fraction up to 1, or bytes; pack: -1 if not given */
	double budget;
	int64_t budget_bytes, capacity;
	int64_t memory;                 /* advise: bytes of the device; 0 */
	bool place;
	int nflag;                      /* arguments to record in the plan */
	const char *const *flag;
	bool given[OPTIONS_MAX];        /* option was given, by table row */
};

/* Result of the parse: go on; other values are the exit status. */
enum { CLI_GO = -1 };

/* Fill *c from the arguments, which it borrows.  Returns CLI_GO, 0 after --help
 * or --version, or 2 after a message on err. */
int cli_parse(struct cli *c, int argc, char **argv, Arena *, FILE *out,
              FILE *err);
/* How the options want code for a machine: the compiler, the architecture and
 * the threads. */
struct codegen_options cli_codegen(const struct cli *, const struct machine *);
/* The options given that decide what is trained, but for sizes, in one order:
 * "--dtype bf16 --loss ce:logits". */
const char *cli_training_options(const struct cli *, Arena *);
/* Whether --dump names this report or pass. */
bool cli_dumps(const struct cli *, const char *what);
/* Warn of options that have no effect with the other options given, and say
 * how to enable each. */
void cli_warn(const struct cli *, Diag *);

#endif
