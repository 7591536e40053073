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
	{ "data", T_DATA, AT(data), "FILE", "training samples or tokens; "
	  "repeat for more files, or quote a pattern" },
	{ "tokens", T_TEXT, AT(tokens), "TYPE", "read --data as raw tokens: "
	  "u16, u32 or bytes (any text)" },
	{ "columns", T_WORDS, AT(columns), "N=LIST", "make array N of columns "
	  "of .csv files: names, numbers from 1, ranges 1-4" },
	{ "normalize", T_TEXT, AT(normalize), "M,S", "scale u8 pixels to (x / "
	  "255 - M) / S; by channel: M/M/M,S/S/S" },
	{ "feed", T_WORDS, AT(feed), "IN=SRC", "source of input IN: an array, "
	  "or a keyword listed below" },
	{ "inputs", T_FILE, AT(inputs), "FILE", "arrays for all inputs by "
	  "name, the same at every step" },
	{ NULL, T_FLAG, 0, NULL, "training" },
	{ "steps", T_COUNT, AT(steps), "N", "total number of steps, with those "
	  "before --resume; 0: only write files" },
	{ "epochs", T_COUNT, AT(epochs), "N", "total number of passes over "
	  "--data, instead of --steps" },
	{ "lr", T_SIZE, AT(hyper.lr), "X", "learning rate (default: 1e-3; lion "
	  "1e-4, adafactor 1e-2)" },
	{ "schedule", T_SCHEDULE, AT(schedule), "NAME", "learning rate "
	  "schedule: constant (default), linear or cosine to --min-lr" },
	{ "warmup", T_COUNT, AT(warmup), "N", "number of steps of linear "
	  "warmup (default: 0)" },
	{ "min-lr", T_SIZE, AT(min_lr), "X", "learning rate at the end of a "
	  "schedule (default: 0)" },
	{ "weight-decay", T_SIZE, AT(hyper.weight_decay), "X", "weight decay; "
	  "decoupled, but part of the gradient for sgd, sgdm and adam "
	  "(default: 0.01; adam 0)" },
	{ "lr-scale", T_WORDS, AT(lr_scale), "GLOB=F", "scale the learning "
	  "rate of parameters GLOB by F (0: frozen); the last match wins" },
	{ "decay", T_WORDS, AT(decay), "GLOB=F", "weight decay of parameters "
	  "GLOB, even with ckc --no-decay" },
	{ "beta1", T_REAL, AT(hyper.beta1), "X", "beta1 of adam, adamw, lion "
	  "(default: 0.9)" },
	{ "beta2", T_REAL, AT(hyper.beta2), "X", "beta2 of adam, adamw "
	  "(default: 0.999), lion (0.99)" },
	{ "eps", T_SIZE, AT(hyper.eps), "X", "epsilon of adam, adamw (default: "
	  "1e-8), adafactor (2^-23)" },
	{ "momentum", T_SIZE, AT(hyper.momentum), "X", "momentum of sgdm "
	  "(default: 0.9)" },
	{ "nesterov", T_FLAG, AT(hyper.nesterov), NULL, "use Nesterov momentum "
	  "(sgdm)" },
	{ "beta2-decay", T_REAL, AT(hyper.beta2_decay), "X", "adafactor: beta2 "
	  "is 1 - t^X at step t (default: -0.8)" },
	{ "clip-threshold", T_SIZE, AT(hyper.clip_threshold), "X", "adafactor: "
	  "maximum root mean square of an update (default: 1)" },
	{ "eps2", T_SIZE, AT(hyper.eps2), "X", "adafactor: minimum scale of a "
	  "parameter (default: 1e-3)" },
	{ "clip", T_SIZE, AT(hyper.clip), "X", "maximum global gradient norm; "
	  "0: no clipping (default: 0)" },
	{ "loss-scale", T_SCALE, AT(hyper.loss_scale), "X", "f16: constant "
	  "loss scale X, or dynamic (default)" },
	{ "seed", T_COUNT, AT(seed), "N", "random seed of dropout and data "
	  "order (default: 0)" },
	{ NULL, T_FLAG, 0, NULL, "evaluation" },
	{ "valid", T_DATA, AT(valid), "FILE", "validation data, as --data: "
	  "loss, accuracy and perplexity at the end" },
	{ "valid-every", T_COUNT, AT(valid_every), "N", "also validate every N "
	  "steps" },
	{ "save-best", T_FILE, AT(save_best), "FILE", "write a checkpoint "
	  "whenever the validation loss is the lowest so far" },
	{ "patience", T_COUNT, AT(patience), "N", "stop when the validation "
	  "loss has not improved N times in a row" },
	{ "out", T_FILE, AT(out), "FILE", "predict: output file, .npy, samples "
	  "in order (short: -o)" },
	{ "name", T_TEXT, AT(name), "NAME", "predict: name of the output, if "
	  "the model has several" },
	{ NULL, T_FLAG, 0, NULL, "files" },
	{ "init", T_FILES, AT(init), "FILE", "initial weights, .safetensors "
	  "(default: beside the model); repeatable, the last file wins" },
	{ "init-map", T_WORDS, AT(init_map), "OLD=NEW", "replace the prefix "
	  "OLD of tensor names of --init by NEW; either may be empty" },
	{ "init-partial", T_FLAG, AT(init_partial), NULL, "keep the compiled "
	  "values of tensors missing from --init, and list them (all: "
	  "--stats)" },
	{ "init-skip", T_WORDS, AT(init_skip), "GLOB", "keep the compiled "
	  "values of parameters GLOB, such as a head of another shape" },
	{ "save", T_FILE, AT(save), "FILE", "write a checkpoint at the end: "
	  "weights and optimizer state (constants, too: --export-onnx)" },
	{ "save-lora", T_FILE, AT(save_lora), "FILE", "ckc --lora: write "
	  "trained tensors under PEFT names, and adapter_config.json" },
	{ "save-merged", T_FILE, AT(save_merged), "FILE", "ckc --lora: write "
	  "the weights with adapters merged" },
	{ "save-every", T_COUNT, AT(save_every), "N", "also write the "
	  "checkpoint every N steps" },
	{ "keep", T_COUNT, AT(keep), "N", "also keep the last N periodic "
	  "checkpoints, as FILE.STEP" },
	{ "resume", T_FILE, AT(resume), "FILE", "resume from a checkpoint" },
	{ "outputs", T_FILE, AT(outputs), "FILE", "write the graph outputs of "
	  "the last step; ckc --grad-accum: the loss of the step, other "
	  "outputs of its last micro-batch" },
	{ "grads", T_FILE, AT(grads), "FILE", "write gradients of the first "
	  "step that is not skipped, before clipping" },
	{ "log", T_FILE, AT(log), "FILE", "write a log of JSON lines, or CSV "
	  "for .csv; grad_norm is before clipping (absent if ckc updates in "
	  "backward)" },
	{ "tensorboard", T_FILE, AT(tensorboard), "DIR", "write the log as "
	  "TensorBoard events: train/loss, valid/loss, ..." },
	{ "export-onnx", T_FILE, AT(onnx), "FILE", "write the ONNX model with "
	  "the trained weights" },
	{ NULL, T_FLAG, 0, NULL, "running" },
	{ "threads", T_COUNT, AT(threads), "N", "number of threads, at most as "
	  "many as the model was compiled for" },
	{ "ranks", T_COUNT, AT(ranks), "N", "ranks to run in one process, a "
	  "multiple of the ranks of a replica (default: one replica)" },
	{ "comm-timeout", T_SIZE, AT(comm_timeout), "S", "maximum wait for "
	  "another process, in seconds (default: 600)" },
	{ "blas", T_TEXT, AT(blas), "NAME", "BLAS library: onednn, openblas or "
	  "own, ckc's kernel (default: the first available); onednn-bf16: "
	  "native bf16 on any CPU; on a GPU cudnn (convolutions) or cublas "
	  "(default: the first available)" },
	{ "check", T_FLAG, AT(check), NULL, "run every step twice, without "
	  "recomputation and with the plan; compare bits" },
	{ "against", T_FILE, AT(against), "B.so", "compare steps (default: 1) "
	  "with another library of the model" },
	{ "rtol", T_SIZE, AT(rtol), "X", "tolerance of --against, relative to "
	  "a tensor's largest value (default: f32 1e-5, f16 2^-8, bf16 2^-5)" },
	{ "on-nan", T_ON_NAN, AT(hyper.on_nan), "WHAT", "if a loss or gradient "
	  "is not finite: stop (default), skip the update, or go: update "
	  "anyway" },
	{ "trace", T_FILE, AT(trace), "FILE", "write a Chrome trace of the "
	  "first steps, with memory" },
	{ "profile", T_FILE, AT(profile), "FILE", "write mean and minimum "
	  "seconds per op; if there are more steps, without the first" },
	{ "stats", T_FLAG, AT(stats), NULL, "print memory use" },
	{ "quiet", T_FLAG, AT(quiet), NULL, "print no progress" },
	{ "help", T_FLAG, AT(help), NULL, "print this help" },
	{ "version", T_FLAG, AT(version), NULL, "print the version" },
};

enum { NROW = sizeof(rows) / sizeof(*rows) };
_Static_assert((int)NROW <= (int)MAX_OPTIONS, "struct options has a place for "
               "each");

/* What dataset.c and pair.c do. */
static const char feeding[] = "\n"
"--data reads .npy, .npz, .safetensors, .csv, .lst and tokens with llm.c's\n"
"header.  A .lst has lines PATH LABEL and gives arrays images and labels.\n"
"Columns of a .csv are arrays of their names; x0 x1 x2 are one array x.\n"
"Files whose arrays have the same names are shards, read in order; other\n"
"files add arrays, and NAME=FILE names an array that has no name:\n"
"--data x=X.npy --data y=Y.npy.\n"
"An epoch visits every row once, in an order that depends on the seed;\n"
"batches continue across the end of an epoch.  Rows of u8 for a float input\n"
"are pixels: --normalize scales them, and transposes images from HWC to CHW\n"
"or back if the input needs it.\n"
"\n"
"The source of an input is its --feed; else the array with its name; else the\n"
"one unused array that fits this input and no other in shape and kind\n"
"(float, integer or bool).  A one-dimensional array of integers that is the\n"
"only array, or is named tokens, is a token stream: ids get adjacent windows\n"
"of it, within a file, labels the same windows shifted by one token, masks\n"
"ones, positions 0 1 2 ..., token types zeros.  Other cases are errors that\n"
"list the choices.\n"
"SRC is the name of an array, or\n"
"  tokens, next          token windows, the same windows shifted by one token\n"
"  rows                  rows of the only array\n"
"  float, int            rows converted from the other kind, not scaled\n"
"  hwc, chw              rows that are images of this layout\n"
"  tokens:A ... chw:A    the same from array A\n"
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
	       "Prints the loss, accuracy and perplexity of a model over all "
	       "samples."
	     : verb == VERB_PREDICT
	     ? "usage: ckrun predict MODEL.so -o FILE.npy [option...]\n"
	       "Writes the output of a model for all samples, in order."
	     : "usage: ckrun MODEL.so [option...]\n"
	       "       ckrun eval MODEL.so [option...]\n"
	       "       ckrun predict MODEL.so -o FILE.npy [option...]\n"
	       "       ckrun report LOG... -o FILE.html\n"
	       "Trains a model compiled by ckc; eval prints its loss, accuracy "
	       "and perplexity,\npredict writes its output for all samples in "
	       "order, report makes a page\nof curves from logs that --log "
	       "wrote.");
	print_rows(verb);
	if (verb == VERB_TRAIN)
		puts(feeding);
	puts("\nexit status: 0 success, 1 failure (message on stderr), 2 usage "
	     "error, 3 another process of the run was lost");
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
		                  "is given too many times; a quoted pattern "
		                  "can name any number of files");
	f->v[f->n++] = value;
	return DONE;
}

static int
add_word(struct option_words *w, const char *name, const char *value)
{
	if (w->n == MAX_FEED)
		return bad_option(name, "is given too many times");
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
				       o->data.n ? "(for more data files, "
				       "repeat --data or quote a "
				       "pattern)" : "");
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
