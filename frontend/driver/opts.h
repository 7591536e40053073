/* The command line of ckc: one table gives parsing, --help and the checks. */
#ifndef FRONTEND_DRIVER_OPTS_H
#define FRONTEND_DRIVER_OPTS_H

#include <stdio.h>

#include "frontend/import/import.h"
#include "passes/passes.h"

enum ckc_verb { VERB_COMPILE, VERB_INSPECT, VERB_PLAN, VERB_PACK,
                VERB_DOCTOR };

enum { OPTIONS_MAX = 96 };

struct cli {
	enum ckc_verb verb;
	const char *model;              /* the file to compile or to inspect */
	struct options opt;
	int nconst;
	struct import_const *constant;
	enum batchnorm batchnorm;
	const char *out;                /* -o; NULL: after the model */
	const char *emit_dir, *cc, *march;
	bool cuda;                      /* --target cuda: nvcc and arch */
	const char *nvcc, *arch;
	const char *dump, *dump_dir, *json, *passes, *stop_after;
	const char *curve_svg, *page;
	bool curve, plan_only, debug;
	bool eval;                      /* a program that evaluates, too */
	/* ckc plan: a fraction up to 1, else bytes; pack: -1 if not given */
	double budget;
	int64_t budget_bytes, capacity;
	bool place;
	int nflag;                      /* arguments as given, for the plan */
	const char *const *flag;
	bool given[OPTIONS_MAX];        /* by row of the table of options */
};

/* Status of the parse: go on, or end with this exit status. */
enum { CLI_GO = -1 };

/* Fill *c from the arguments (borrowed; the rest lives in the arena).  Returns
 * CLI_GO, 0 after --help or --version, or 2 after a message on err. */
int cli_parse(struct cli *c, int argc, char **argv, Arena *, FILE *out,
              FILE *err);
/* Whether --dump names this report or pass. */
bool cli_dumps(const struct cli *, const char *what);
/* Warn of options that do nothing beside the others, each with what would
 * make it work. */
void cli_warn(const struct cli *, Diag *);

#endif
