/* The command line of ckrun: one table gives parsing and --help. */
#include "runtime/ckrun/ckrun_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/err.h"
#include "runtime/support/number.h"

/* T_FILE: two of them are a misunderstanding, where of other values the last
 * counts.  T_SIZE: a number that is not negative. */
enum type {
	T_FILE, T_TEXT, T_COUNT, T_REAL, T_SIZE, T_FLAG, T_WORDS, T_FILES,
	T_DATA,
	T_SCHEDULE, T_ON_NAN, T_SCALE
};

struct ckrun_option {
	const char *name;
	enum type type;
	size_t offset;
	const char *arg, *help;
};

#define AT(field) offsetof(struct ckrun_options, field)

/* The one list of options: parsing and --help come from it.  Rows without a
 * name are headings. */
static const struct ckrun_option rows[] = {
	{ NULL, T_FLAG, 0, NULL, "data" },
	{ "data", T_DATA, AT(data), "FILE", "samples or a stream of tokens; "
	  "once for each file, or a pattern in quotes" },
	{ "tokens", T_TEXT, AT(tokens), "TYPE", "they are raw tokens: u16, u32 "
	  "or bytes (any text)" },
	{ "columns", T_WORDS, AT(columns), "N=LIST", "array N of columns of "
	  ".csv files: names, numbers from 1, ranges 1-4" },
	{ "normalize", T_TEXT, AT(normalize), "M,S", "u8 rows go in as (x / "
	  "255 - M) / S; by channel: M/M/M,S/S/S" },
	{ "feed", T_WORDS, AT(feed), "IN=SRC", "input IN gets SRC: an array, "
	  "or a word of those below" },
	{ "inputs", T_FILE, AT(inputs), "FILE", "all inputs by name from FILE, "
	  "the same at every step" },
	{ NULL, T_FLAG, 0, NULL, "training" },
	{ "steps", T_COUNT, AT(steps), "N", "train until N steps are done, "
	  "resumed ones included; 0: files alone" },
	{ "epochs", T_COUNT, AT(epochs), "N", "or until every sample of --data "
	  "was taken N times" },
	{ "lr", T_SIZE, AT(hyper.lr), "X", "learning rate (1e-3; lion 1e-4, "
	  "adafactor 1e-2)" },
	{ "schedule", T_SCHEDULE, AT(schedule), "NAME", "constant (default), "
	  "linear or cosine, down to --min-lr" },
	{ "warmup", T_COUNT, AT(warmup), "N", "steps over which the rate rises "
	  "(0)" },
	{ "min-lr", T_SIZE, AT(min_lr), "X", "learning rate at the end (0)" },
	{ "weight-decay", T_SIZE, AT(hyper.weight_decay), "X", "decoupled "
	  "decay; sgd, sgdm and adam add it to the gradient (0.01; adam 0)" },
	{ "lr-scale", T_WORDS, AT(lr_scale), "GLOB=F", "parameters GLOB learn "
	  "at F times the rate (0: stay as they are); the last that matches "
	  "counts" },
	{ "decay", T_WORDS, AT(decay), "GLOB=F", "and have this weight decay, "
	  "ckc --no-decay or not" },
	{ "beta1", T_REAL, AT(hyper.beta1), "X", "adam, adamw, lion (0.9)" },
	{ "beta2", T_REAL, AT(hyper.beta2), "X", "adam, adamw (0.999), lion "
	  "(0.99)" },
	{ "eps", T_SIZE, AT(hyper.eps), "X", "adam, adamw (1e-8), adafactor "
	  "(2^-23)" },
	{ "momentum", T_SIZE, AT(hyper.momentum), "X", "sgdm (0.9)" },
	{ "nesterov", T_FLAG, AT(hyper.nesterov), NULL, "sgdm: Nesterov's "
	  "momentum" },
	{ "beta2-decay", T_REAL, AT(hyper.beta2_decay), "X", "adafactor: step "
	  "t takes t^X of the new (-0.8)" },
	{ "clip-threshold", T_SIZE, AT(hyper.clip_threshold), "X", "adafactor: "
	  "largest root mean square of an update (1)" },
	{ "eps2", T_SIZE, AT(hyper.eps2), "X", "adafactor: least scale of a "
	  "parameter (1e-3)" },
	{ "clip", T_SIZE, AT(hyper.clip), "X", "largest norm of all gradients; "
	  "0: off (0)" },
	{ "loss-scale", T_SCALE, AT(hyper.loss_scale), "X", "f16: the loss is "
	  "multiplied by X; dynamic (default): by what gradients bear" },
	{ "seed", T_COUNT, AT(seed), "N", "for dropout and the order of data "
	  "(0)" },
	{ NULL, T_FLAG, 0, NULL, "evaluation" },
	{ "valid", T_DATA, AT(valid), "FILE", "as --data, but not trained on: "
	  "its loss, accuracy and perplexity at the end" },
	{ "valid-every", T_COUNT, AT(valid_every), "N", "and every N steps" },
	{ "save-best", T_FILE, AT(save_best), "FILE", "a checkpoint whenever "
	  "the loss of --valid is the lowest so far" },
	{ "patience", T_COUNT, AT(patience), "N", "stop when it has not been "
	  "lower N times in a row" },
	{ "out", T_FILE, AT(out), "FILE", "predict: the output, .npy, samples "
	  "in their order; -o" },
	{ "name", T_TEXT, AT(name), "NAME", "predict: which output, if there "
	  "are several" },
	{ NULL, T_FLAG, 0, NULL, "files" },
	{ "init", T_FILES, AT(init), "FILE", "initial weights (.safetensors; "
	  "default: beside the model); of several files the last counts" },
	{ "init-map", T_WORDS, AT(init_map), "OLD=NEW", "its names that begin "
	  "with OLD begin with NEW; either may be empty" },
	{ "init-partial", T_FLAG, AT(init_partial), NULL, "what it lacks "
	  "starts as it was compiled, and is listed (all: --stats)" },
	{ "init-skip", T_WORDS, AT(init_skip), "GLOB", "parameters that start "
	  "so whatever it holds, as a head of another shape" },
	{ "save", T_FILE, AT(save), "FILE", "write a checkpoint at the end: "
	  "what steps use (all parameters: --export-onnx)" },
	{ "save-lora", T_FILE, AT(save_lora), "FILE", "ckc --lora: what is "
	  "trained, by PEFT's names, and adapter_config.json beside it" },
	{ "save-merged", T_FILE, AT(save_merged), "FILE", "ckc --lora: the "
	  "weights with adapters merged into them" },
	{ "save-every", T_COUNT, AT(save_every), "N", "and every N steps" },
	{ "keep", T_COUNT, AT(keep), "N", "... the last N of them as "
	  "FILE.STEP, too" },
	{ "resume", T_FILE, AT(resume), "FILE", "go on from a checkpoint" },
	{ "outputs", T_FILE, AT(outputs), "FILE", "the graph's outputs at the "
	  "last step; ckc --grad-accum: of its last micro-batch" },
	{ "grads", T_FILE, AT(grads), "FILE", "gradients of the first step "
	  "not skipped, before clipping" },
	{ "log", T_FILE, AT(log), "FILE", "one JSON object per step, or .csv; "
	  "grad_norm: before clipping (none if ckc updates in backward)" },
	{ "tensorboard", T_FILE, AT(tensorboard), "DIR", "the same as events "
	  "of TensorBoard: train/loss, valid/loss, ..." },
	{ "export-onnx", T_FILE, AT(onnx), "FILE", "the ONNX model with the "
	  "trained weights" },
	{ NULL, T_FLAG, 0, NULL, "running" },
	{ "threads", T_COUNT, AT(threads), "N", "at most as many as the model "
	  "was compiled for" },
	{ "ranks", T_COUNT, AT(ranks), "N", "virtual ranks: as many replicas "
	  "as that makes (default: one; ckc --dp)" },
	{ "comm-timeout", T_SIZE, AT(comm_timeout), "S", "processes: longest "
	  "wait for another, in seconds (600)" },
	{ "blas", T_TEXT, AT(blas), "NAME", "onednn, openblas or own (default: "
	  "the first there is); onednn-bf16: bf16 as such on any processor; on "
	  "a GPU cudnn (convolutions) or cublas (default: the first)" },
	{ "check", T_FLAG, AT(check), NULL, "do every step twice, keeping "
	  "everything and by the plan; compare bits" },
	{ "against", T_FILE, AT(against), "B.so", "take the same steps (1) "
	  "with another library of the model: what differs" },
	{ "rtol", T_SIZE, AT(rtol), "X", "... status 1 above this share of a "
	  "tensor's largest (f32 1e-5, f16 2^-8, bf16 2^-5)" },
	{ "on-nan", T_ON_NAN, AT(hyper.on_nan), "WHAT", "when a loss or "
	  "gradient is not finite: stop (default), skip (that update) or go" },
	{ "trace", T_FILE, AT(trace), "FILE", "chrome-trace JSON of the first "
	  "steps, with memory" },
	{ "profile", T_FILE, AT(profile), "FILE", "mean and least seconds "
	  "per op; the first step is left out if there are more" },
	{ "stats", T_FLAG, AT(stats), NULL, "tell where memory went" },
	{ "quiet", T_FLAG, AT(quiet), NULL, "no progress" },
	{ "help", T_FLAG, AT(help), NULL, "this text" },
	{ "version", T_FLAG, AT(version), NULL, "which version this is" },
};

enum { NROW = sizeof(rows) / sizeof(*rows) };
_Static_assert((int)NROW <= (int)MAX_OPTIONS, "struct options has a place for "
               "each");

/* What dataset.c and pair.c do. */
static const char feeding[] = "\n"
"--data takes .npy, .npz, .safetensors, .csv, .lst and tokens with llm.c's\n"
"header.  A .lst has lines PATH LABEL, which are arrays images and labels.\n"
"Columns of a .csv are arrays of their names, x0 x1 x2 are one array x.\n"
"Files whose arrays have the same names are shards, one behind the other;\n"
"others go beside each other, and NAME=FILE names what has no name:\n"
"--data x=X.npy --data y=Y.npy.\n"
"Each epoch has every row once, in an order that follows from the\n"
"seed and the sample's number; batches go on over its end.\n"
"Rows of u8 for a float input are pixels: --normalize scales them, and turns\n"
"images from HWC to CHW, or back, where the model takes them so.\n"
"\n"
"What an input gets of it: what --feed says; else rows of the array of its\n"
"name; else of the one array left over that fits no other input in shape and\n"
"kind (float, integer or bool).  A list of integers that is alone or called\n"
"tokens is a stream of tokens: ids get windows of it, side by side and within\n"
"a file, labels the same windows one on, masks ones, positions 0 1 2 ...,\n"
"token types zeros.  The rest is refused, with the lines to choose from.\n"
"SRC is the name of an array, or\n"
"  tokens, next          windows of the stream, the same windows one on\n"
"  rows                  rows of the only array there is\n"
"  float, int            the same, converted from the other kind, not scaled\n"
"  hwc, chw              the same, images that lie so\n"
"  tokens:A ... chw:A    the same of array A\n"
"  ones, zeros, positions";

static bool
is_verb_option(enum ckrun_verb verb, const struct ckrun_option *r)
{
	return verb == VERB_TRAIN || options_of_verb(verb, r->name);
}

static void
print_row(const struct ckrun_option *r)
{
	char left[40];

	snprintf(left, sizeof(left), "--%s%s%s", r->name, r->arg ? " " : "",
	         r->arg ? r->arg : "");
	printf("  %-21s %s\n", left, r->help);
}

/* Under a heading what is shown of it; without any neither is the heading. */
static void
print_rows(enum ckrun_verb verb)
{
	const char *heading = NULL;

	for (size_t i = 0; i < NROW; i++) {
		if (!rows[i].name) {
			heading = rows[i].help;
			continue;
		}
		if (!is_verb_option(verb, &rows[i]))
			continue;
		if (heading)
			printf("\n%s\n", heading);
		heading = NULL;
		print_row(&rows[i]);
	}
}

void
options_help(enum ckrun_verb verb)
{
	puts(verb == VERB_EVAL
	     ? "usage: ckrun eval MODEL.so [option...]\n"
	       "Tells the model's loss, accuracy and perplexity of all samples."
	     : verb == VERB_PREDICT
	     ? "usage: ckrun predict MODEL.so -o FILE.npy [option...]\n"
	       "Writes the model's output of all samples, in their order."
	     : "usage: ckrun MODEL.so [option...]\n"
	       "       ckrun eval MODEL.so [option...]\n"
	       "       ckrun predict MODEL.so -o FILE.npy [option...]\n"
	       "       ckrun report LOG... -o FILE.html\n"
	       "Trains a model compiled by ckc; eval tells its loss, accuracy "
	       "and perplexity,\npredict writes its output, of all samples in "
	       "their order, report makes a\npage of what --log has written.");
	print_rows(verb);
	if (verb == VERB_TRAIN)
		puts(feeding);
	puts("\nexit status: 0 done, 1 something failed (message on stderr), "
	     "2 usage, 3 another process of the run is gone");
}

void
options_default(struct ckrun_options *o, const struct ckr_hyper *hyper)
{
	const size_t from = AT(hyper), to = from + sizeof(*hyper);

	for (size_t i = 0; i < NROW; i++)
		if (rows[i].offset >= from && rows[i].offset < to
		    && (rows[i].type == T_REAL || rows[i].type == T_SIZE)
		    && !o->given[i])
			memcpy((char *)o + rows[i].offset,
			       (const char *)hyper + rows[i].offset - from,
			       sizeof(double));
}

int
options_usage(const char *what, const char *name, const char *why)
{
	char text[NAME_TEXT];

	fprintf(stderr, "ckrun: %s%s%s%s; see ckrun --help\n", what,
	        err_name(text, sizeof(text), name), *why ? " " : "", why);
	return USAGE;
}

static int
bad_option(const char *name, const char *why)
{
	return options_usage("--", name, why);
}

/* One of three words, as its number. */
static int
set_word(enum type type, const char *value, unsigned *at)
{
	static const char *const words[2][3] = {
		{ "constant", "linear", "cosine" }, { "stop", "skip", "go" },
	};
	bool lr = type == T_SCHEDULE;

	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(value, words[!lr][i])) {
			*at = i;
			return DONE;
		}
	return options_usage(lr ? "--schedule " : "--on-nan ", value,
	                     lr ? "is not constant, linear or cosine"
	                     : "is not stop, skip or go");
}

/* 0: dynamic. */
static int
set_scale(const char *value, double *at)
{
	*at = 0;
	return !strcmp(value, "dynamic")
	       || (number_real(value, at) && *at > 0) ? DONE
	       : bad_option("loss-scale", "needs a number above 0, or dynamic");
}

static int
add_file(struct option_files *f, const char *name, const char *value)
{
	if (f->n == MAX_DATA)
		return bad_option(name,
		                  "is given too often; a pattern in quotes "
		                  "names any number of files");
	f->v[f->n++] = value;
	return DONE;
}

static int
add_word(struct option_words *w, const char *name, const char *value)
{
	if (w->n == MAX_FEED)
		return bad_option(name, "is given too often");
	w->v[w->n++] = value;
	return DONE;
}

/* Of equal words the last counts. */
static void
drop_word(struct option_words *w, const char *value)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->v[i], value))
			w->v[n++] = w->v[i];
	w->n = n;
}

static int
set_option(struct ckrun_options *o, const struct ckrun_option *r,
           const char *value)
{
	void *at = (char *)o + r->offset;

	o->given[r - rows] = true;
	switch (r->type) {
	case T_FLAG:
		*(bool *)at = true;
		return DONE;
	case T_FILE:
		if (*(const char **)at && strcmp(*(const char **)at, value))
			return bad_option(r->name,
			                  "is given twice, but takes one "
			                  "file");
		/* fall through */
	case T_TEXT:
		*(const char **)at = value;
		return DONE;
	case T_SCHEDULE:
	case T_ON_NAN:
		return set_word(r->type, value, at);
	case T_SCALE:
		return set_scale(value, at);
	case T_FILES:
		drop_word(at, value);
		/* fall through */
	case T_WORDS:
		return add_word(at, r->name, value);
	case T_DATA:
		return add_file(at, r->name, value);
	case T_COUNT:
		if (!number_whole(value, r->offset == AT(ranks) ? UINT32_MAX
		                  : UINT64_MAX, at))
			return bad_option(r->name, "needs a whole number");
		return DONE;
	default:
		if (!number_real(value, at))
			return bad_option(r->name, "needs a number");
		if (r->type == T_SIZE && *(double *)at < 0)
			return bad_option(r->name, "cannot be negative");
		return DONE;
	}
}

static const struct ckrun_option *
find_option_row(const char *name, size_t n)
{
	for (size_t i = 0; i < NROW; i++)
		if (rows[i].name && strlen(rows[i].name) == n
		    && !memcmp(rows[i].name, name, n))
			return &rows[i];
	return NULL;
}

bool
options_given(const struct ckrun_options *o, const char *name)
{
	const struct ckrun_option *r = find_option_row(name, strlen(name));

	return r && o->given[r - rows];
}

const char *
options_next(const struct ckrun_options *o, size_t *i)
{
	while (*i < NROW && !(rows[*i].name && o->given[*i]))
		++*i;
	return *i < NROW ? rows[(*i)++].name : NULL;
}

static enum ckrun_verb
find_verb(const char *word)
{
	return !strcmp(word, "eval") ? VERB_EVAL
	       : !strcmp(word, "predict") ? VERB_PREDICT : VERB_TRAIN;
}

int
options_parse(struct ckrun_options *o, int argc, char **argv)
{
	o->verb = find_verb(argc > 1 ? argv[1] : "");
	for (int i = o->verb ? 2 : 1; i < argc; i++) {
		const char *a = argv[i], *eq = strchr(a, '='), *value = NULL;
		const struct ckrun_option *r;
		int status;

		if (!strcmp(a, "-h"))
			a = "--help";
		if (!strcmp(a, "-o"))
			a = "--out";
		if (a[0] != '-') {
			if (o->model)
				return options_usage("a second model: ", a,
				       o->data.n ? "(for another file of data: "
				       "--data once more, or a pattern in "
				       "quotes)" : "");
			o->model = a;
			continue;
		}
		r = a[1] == '-' ? find_option_row(a + 2,
		                                  eq ? (size_t)(eq - a - 2)
		                                  : strlen(a + 2)) : NULL;
		if (!r)
			return options_usage("unknown option ", a, "");
		if (r->type == T_FLAG ? eq != NULL : false)
			return bad_option(r->name, "takes no value");
		if (r->type != T_FLAG) {
			value = eq ? eq + 1 : ++i < argc ? argv[i] : NULL;
			if (!value)
				return bad_option(r->name, "needs a value");
		}
		status = set_option(o, r, value);
		if (status)
			return status;
	}
	return DONE;
}
