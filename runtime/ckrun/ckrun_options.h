/* The command line of ckrun. */
#ifndef RUNTIME_CKRUN_OPTIONS_H
#define RUNTIME_CKRUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/ckr.h"

/* Exit status. */
enum { DONE, FAILED, USAGE, GONE };

enum { MAX_FEED = 64, MAX_OPTIONS = 80 };

/* What the first word asks for. */
enum verb { VERB_TRAIN, VERB_EVAL, VERB_PREDICT };

struct options {
	enum verb verb;
	const char *model;
	const char *data, *tokens, *inputs;
	const char *feed[MAX_FEED];
	size_t nfeed;
	uint64_t steps;
	struct ckr_hyper hyper;
	double min_lr, comm_timeout;
	enum ckr_schedule schedule;
	uint64_t warmup, seed, threads, ranks, save_every;
	const char *init, *save, *resume, *outputs, *grads, *log, *onnx;
	const char *trace, *profile, *blas, *against;
	const char *valid, *save_best, *out, *name;
	uint64_t valid_every, patience, keep;
	double rtol;
	bool check, quiet, stats, help, version;
	bool given[MAX_OPTIONS];        /* by row of the table */
};

/* Fill *o from the arguments, borrowed: DONE, or another exit status after a
 * message. */
int options_parse(struct options *o, int argc, char **argv);
/* Whether --NAME was among them. */
bool options_given(const struct options *o, const char *name);
/* Settings that were not given are as in *hyper. */
void options_default(struct options *, const struct ckr_hyper *hyper);
void options_help(void);
/* That they go together, and that no file is named twice; as options_parse. */
int options_check(const struct options *o);
/* Warn of what is allowed, but hardly meant, under the library's optimizer;
 * unread: what of the weights it has no place for. */
void options_warn(const struct options *o, const char *optimizer,
                  const char *unread);
/* A usage message "WHATNAME WHY"; returns USAGE. */
int options_usage(const char *what, const char *name, const char *why);

#endif
