/* Room ckrun: the runner.  This header: its command line.
 *
 * in      a compiled model by ckr.h, the command line, files of data
 * out     a trained model, its files, logs and messages
 * must not know the ABI and libckr's internals
 */
#ifndef RUNTIME_CKRUN_CKRUN_OPTIONS_H
#define RUNTIME_CKRUN_CKRUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/ckr.h"

/* Exit status. */
enum { DONE, FAILED, USAGE, GONE };

enum { MAX_FEED = 64, MAX_DATA = 1024, MAX_OPTIONS = 80 };

/* The mode of a run, which the first word selects. */
enum ckrun_verb { VERB_TRAIN, VERB_EVAL, VERB_PREDICT, VERB_SAMPLE, VERBS };

struct option_files {
	const char *v[MAX_DATA];
	size_t n;
};

/* Values of an option that may be repeated. */
struct option_words {
	const char *v[MAX_FEED];
	size_t n;
};

struct ckrun_options {
	enum ckrun_verb verb;
	const char *model;
	struct option_files data, valid;
	const char *tokens, *normalize, *augment, *inputs;
	struct option_words feed, columns, init, init_map, init_skip;
	struct option_words lr_scale, decay;
	uint64_t steps, epochs;
	struct ckr_hyper hyper;
	double comm_timeout;
	struct ckr_schedule schedule;   /* lr: hyper.lr; total, wsd's period:
	                                 * 0 if not given */
	uint64_t seed, threads, ranks, save_every;
	const char *save, *resume, *outputs, *grads, *log, *onnx;
	const char *trace, *profile, *blas, *against, *offload_dir;
	const char *save_lora, *save_merged;
	const char *save_best, *out, *name, *tensorboard;
	const char *prompt;
	uint64_t valid_every, patience, keep, length, top_k;
	double rtol, temperature;
	bool save_async, ema, init_partial, check, quiet, stats, help, version;
	bool given[MAX_OPTIONS];        /* by row of the table of options */
};

/* Fill *o from the arguments, which it keeps pointers to.  DONE, or another
 * exit status after a message. */
int options_parse(struct ckrun_options *o, int argc, char **argv);
/* Whether --NAME was given. */
bool options_given(const struct ckrun_options *o, const char *name);
/* The first option given that the verb does not have; *of: the only verb that
 * has it, VERBS if several do.  NULL: none. */
const char *options_misplaced(const struct ckrun_options *,
                              enum ckrun_verb *of);
/* "training", "ckrun eval", ... */
const char *options_verb(enum ckrun_verb);
/* Take settings that were not given from *hyper. */
void options_default(struct ckrun_options *, const struct ckr_hyper *hyper);
/* Print the help of one verb; VERB_TRAIN: of all. */
void options_help(enum ckrun_verb);
/* Check that the options are consistent and that no file is named twice;
 * returns as options_parse. */
int options_check(const struct ckrun_options *o);
/* Warn about options without an effect on the model, about tensors of its
 * files that the model does not use, and about a schedule that is not that of
 * the run that is resumed.  total: steps of the run; 0: none. */
void options_warn(const struct ckrun_options *o, const ckr_ctx *m,
                  uint64_t total);
/* A usage message "WHATNAME WHY"; returns USAGE. */
int options_usage(const char *what, const char *name, const char *why);

#endif
