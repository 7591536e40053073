/* The command line of ckrun: one table gives parsing and --help. */
#include "runtime/ckrun/ckrun_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/err.h"
#include "runtime/ckrun/schedule.h"
#include "runtime/support/number.h"
#include "runtime/support/options.h"

#define AT(f) .field = offsetof(struct ckrun_options, f)

enum { G_DATA, G_TRAIN, G_EVAL, G_FILES, G_RUN, G_COUNT };

static const char *const group_title[G_COUNT] = {
	"\ndata\n", "\ntraining\n", "\nevaluation\n", "\nfiles\n",
	"\nrunning\n",
};

/* Verbs with an option: training, predict, sample, those with data, all. */
enum {
	T = 1 << VERB_TRAIN, P = 1 << VERB_PREDICT, S = 1 << VERB_SAMPLE,
	D = T | P | 1 << VERB_EVAL, A = D | S
};

static SetOption add_word, add_init, add_data, set_scale, set_schedule;

/* The one list of options: parsing and --help come from it. */
static const struct option_spec rows[] = {
	{ "data", "FILE", G_DATA, add_data, AT(data), D,
	  "training samples or tokens; repeat for more files, or quote a "
	  "pattern" },
	{ "tokens", "TYPE", G_DATA, set_string, AT(tokens), A,
	  "read --data as raw tokens: u16, u32 or bytes (any text)" },
	{ "columns", "N=LIST", G_DATA, add_word, AT(columns), D,
	  "make array N of columns of .csv files: names, numbers from 1, "
	  "ranges 1-4" },
	{ "normalize", "M,S", G_DATA, set_string, AT(normalize), D,
	  "scale u8 pixels to (x / 255 - M) / S; by channel: M/M/M,S/S/S" },
	{ "augment", "LIST", G_DATA, set_string, AT(augment), T,
	  "move u8 images at random in training: flip (left to right), crop=N "
	  "(by at most N pixels), or both: flip,crop=4" },
	{ "feed", "IN=SRC", G_DATA, add_word, AT(feed), D,
	  "source of input IN: an array, or a keyword listed below" },
	{ "inputs", "FILE", G_DATA, set_once, AT(inputs), D,
	  "arrays for all inputs by name, the same at every step" },

	{ "steps", "N", G_TRAIN, set_whole, AT(steps), T,
	  "total number of steps, with those before --resume; 0: only write "
	  "files" },
	{ "epochs", "N", G_TRAIN, set_whole, AT(epochs), T,
	  "total number of passes over --data, instead of --steps" },
	{ "lr", "X", G_TRAIN, set_real, AT(hyper.lr), T,
	  "learning rate (default: 1e-3; lion 1e-4, adafactor 1e-2)" },
	{ "schedule", "NAME[:N[,F]]", G_TRAIN, set_schedule, AT(schedule), T,
	  "learning rate after warmup: constant (default); linear or cosine, "
	  "falls to --min-lr; wsd, falls over the last N steps (a fifth); "
	  "step, times F (0.1) every N steps; restarts, a cosine over N steps, "
	  "then over F (1) times as many" },
	{ "schedule-steps", "N", G_TRAIN, set_whole, AT(schedule.total), T,
	  "step at which linear, cosine and wsd reach --min-lr (default: the "
	  "last)", .least = 1 },
	{ "warmup", "N", G_TRAIN, set_whole, AT(schedule.warmup), T,
	  "number of steps of linear warmup (default: 0)" },
	{ "min-lr", "X", G_TRAIN, set_real, AT(schedule.min_lr), T,
	  "lowest learning rate of a schedule (default: 0)" },
	{ "weight-decay", "X", G_TRAIN, set_real, AT(hyper.weight_decay), T,
	  "weight decay; decoupled, but part of the gradient for sgd, sgdm and "
	  "adam (default: 0.01; adam 0)" },
	{ "lr-scale", "GLOB=F", G_TRAIN, add_word, AT(lr_scale), T,
	  "scale the learning rate of parameters GLOB by F (0: frozen); the "
	  "last match wins" },
	{ "decay", "GLOB=F", G_TRAIN, add_word, AT(decay), T,
	  "weight decay of parameters GLOB, even with ckc --no-decay" },
	{ "beta1", "X", G_TRAIN, set_real, AT(hyper.beta1), T,
	  "beta1 of adam, adamw, lion (default: 0.9)", .least = -INFINITY },
	{ "beta2", "X", G_TRAIN, set_real, AT(hyper.beta2), T,
	  "beta2 of adam, adamw (default: 0.999), lion (0.99)",
	  .least = -INFINITY },
	{ "eps", "X", G_TRAIN, set_real, AT(hyper.eps), T,
	  "epsilon of adam, adamw (default: 1e-8), adafactor (2^-23)" },
	{ "momentum", "X", G_TRAIN, set_real, AT(hyper.momentum), T,
	  "momentum of sgdm (default: 0.9)" },
	{ "nesterov", NULL, G_TRAIN, set_true, AT(hyper.nesterov), T,
	  "use Nesterov momentum (sgdm)" },
	{ "beta2-decay", "X", G_TRAIN, set_real, AT(hyper.beta2_decay), T,
	  "adafactor: beta2 is 1 - t^X at step t (default: -0.8)",
	  .least = -INFINITY },
	{ "clip-threshold", "X", G_TRAIN, set_real, AT(hyper.clip_threshold), T,
	  "adafactor: maximum root mean square of an update (default: 1)" },
	{ "eps2", "X", G_TRAIN, set_real, AT(hyper.eps2), T,
	  "adafactor: minimum scale of a parameter (default: 1e-3)" },
	{ "ema-decay", "X", G_TRAIN, set_real, AT(hyper.ema_decay), T,
	  "ckc --ema: decay of the moving averages of parameters (default: "
	  "0.999)", .least = -INFINITY },
	{ "clip", "X", G_TRAIN, set_real, AT(hyper.clip), T,
	  "maximum global gradient norm; 0: no clipping (default: 0)" },
	{ "loss-scale", "X", G_TRAIN, set_scale, AT(hyper.loss_scale), T,
	  "f16: constant loss scale X, or dynamic (default)" },
	{ "seed", "N", G_TRAIN, set_whole, AT(seed), T | S,
	  "random seed of dropout, data order and ckrun sample (default: 0)" },

	{ "valid", "FILE", G_EVAL, add_data, AT(valid), T,
	  "validation data, as --data: loss, accuracy and perplexity at the "
	  "end" },
	{ "valid-every", "N", G_EVAL, set_whole, AT(valid_every), T,
	  "also validate every N steps" },
	{ "save-best", "FILE", G_EVAL, set_once, AT(save_best), T,
	  "write a checkpoint whenever the validation loss is the lowest so "
	  "far" },
	{ "patience", "N", G_EVAL, set_whole, AT(patience), T,
	  "stop when the validation loss has not improved N times in a row" },
	{ "ema", NULL, G_EVAL, set_true, AT(ema), A,
	  "use the moving averages of ckc --ema in place of the parameters: in "
	  "validation, evaluation and exported files; --save writes both" },
	{ "out", "FILE", G_EVAL, set_once, AT(out), P,
	  "predict: output file, .npy, samples in order (short: -o)" },
	{ "name", "NAME", G_EVAL, set_string, AT(name), P | S,
	  "predict, sample: name of the output, if the model has several" },
	{ "prompt", "TEXT", G_EVAL, set_string, AT(prompt), S,
	  "sample: text to continue; with --tokens u16 or u32, numbers of "
	  "tokens: 15,7,9" },
	{ "length", "N", G_EVAL, set_whole, AT(length), S,
	  "sample: number of tokens to write (default: 200)",
	  .most = 1 << 24 },
	{ "temperature", "X", G_EVAL, set_real, AT(temperature), S,
	  "sample: divide logits by X; 0: take the most likely token "
	  "(default: 1)" },
	{ "top-k", "K", G_EVAL, set_whole, AT(top_k), S,
	  "sample: choose among the K most likely tokens (default: all)" },

	{ "init", "FILE", G_FILES, add_init, AT(init), A,
	  "initial weights, .safetensors (default: beside the model); "
	  "repeatable, the last file wins" },
	{ "init-map", "OLD=NEW", G_FILES, add_word, AT(init_map), A,
	  "replace the prefix OLD of tensor names of --init by NEW; either may "
	  "be empty" },
	{ "init-partial", NULL, G_FILES, set_true, AT(init_partial), A,
	  "keep the compiled values of tensors missing from --init, and list "
	  "them (all: --stats)" },
	{ "init-skip", "GLOB", G_FILES, add_word, AT(init_skip), A,
	  "keep the compiled values of parameters GLOB, such as a head of "
	  "another shape" },
	{ "save", "FILE", G_FILES, set_once, AT(save), T,
	  "write a checkpoint at the end: weights and optimizer state "
	  "(constants, too: --export-onnx); DIR/: a file for each process in "
	  "this folder" },
	{ "save-lora", "FILE", G_FILES, set_once, AT(save_lora), T,
	  "ckc --lora: write trained tensors under PEFT names, and "
	  "adapter_config.json" },
	{ "save-merged", "FILE", G_FILES, set_once, AT(save_merged), T,
	  "ckc --lora: write the weights with adapters merged" },
	{ "save-every", "N", G_FILES, set_whole, AT(save_every), T,
	  "also write the checkpoint every N steps" },
	{ "keep", "N", G_FILES, set_whole, AT(keep), T,
	  "also keep the last N periodic checkpoints, as FILE.STEP" },
	{ "save-async", NULL, G_FILES, set_true, AT(save_async), T,
	  "write the checkpoints of --save-every and --save-best while "
	  "training goes on, in 1 % of a core's time and 10 minutes at most; "
	  "needs host memory for a copy of them" },
	{ "resume", "FILE", G_FILES, set_once, AT(resume), A,
	  "resume from a checkpoint" },
	{ "outputs", "FILE", G_FILES, set_once, AT(outputs), T,
	  "write the graph outputs of the last step; ckc --grad-accum: the "
	  "loss of the step, other outputs of its last micro-batch" },
	{ "grads", "FILE", G_FILES, set_once, AT(grads), T,
	  "write gradients of the first step that is not skipped, before "
	  "clipping" },
	{ "log", "FILE", G_FILES, set_once, AT(log), D,
	  "write a log of JSON lines, or CSV for .csv; grad_norm is before "
	  "clipping (absent if ckc updates in backward)" },
	{ "tensorboard", "DIR", G_FILES, set_once, AT(tensorboard), T,
	  "write the log as TensorBoard events: train/loss, valid/loss, ..." },
	{ "export-onnx", "FILE", G_FILES, set_once, AT(onnx), T,
	  "write the ONNX model with the trained weights" },

	{ "threads", "N", G_RUN, set_whole, AT(threads), A,
	  "number of threads, at most as many as the model was compiled for" },
	{ "ranks", "N", G_RUN, set_whole, AT(ranks), A,
	  "ranks to run in one process, a multiple of the ranks of a replica "
	  "(default: one replica)", .most = UINT32_MAX },
	{ "offload-dir", "DIR", G_RUN, set_string, AT(offload_dir), A,
	  "folder on a disk for what ckc --offload keeps in a file, which has "
	  "no name there (default: /var/tmp)" },
	{ "comm-timeout", "S", G_RUN, set_real, AT(comm_timeout), A,
	  "maximum wait for another process, in seconds (default: 600)" },
	{ "blas", "NAME", G_RUN, set_string, AT(blas), A,
	  "BLAS library: onednn, openblas or own, ckc's kernel (default: own "
	  "if all products are small, else the first available); "
	  "onednn-bf16: native bf16 on any CPU; on a GPU cudnn "
	  "(convolutions) or cublas (default: the first available)" },
	{ "check", NULL, G_RUN, set_true, AT(check), T,
	  "run every step twice, without recomputation and with the plan; "
	  "compare bits" },
	{ "against", "B.so", G_RUN, set_once, AT(against), T,
	  "compare steps (default: 1) with another library of the model" },
	{ "rtol", "X", G_RUN, set_real, AT(rtol), T,
	  "tolerance of --against, relative to a tensor's largest value "
	  "(default: f32 1e-5, f16 2^-8, bf16 2^-5)" },
	{ "on-nan", "WHAT", G_RUN, set_word, AT(hyper.on_nan), T,
	  "if a loss or gradient is not finite: stop (default), skip the "
	  "update, or go: update anyway",
	  .words = "stop|skip|go", .expected = "stop, skip or go" },
	{ "trace", "FILE", G_RUN, set_once, AT(trace), T,
	  "write a Chrome trace of the first steps, with memory" },
	{ "profile", "FILE", G_RUN, set_once, AT(profile), T,
	  "write mean and minimum seconds per op; if there are more steps, "
	  "without the first" },
	{ "stats", NULL, G_RUN, set_true, AT(stats), A,
	  "print memory use" },
	{ "quiet", NULL, G_RUN, set_true, AT(quiet), A,
	  "print no progress" },
	{ "help", NULL, G_RUN, set_true, AT(help), A,
	  "print this help" },
	{ "version", NULL, G_RUN, set_true, AT(version), A,
	  "print the version" },
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
	     : verb == VERB_SAMPLE
	     ? "usage: ckrun sample MODEL.so [option...]\n"
	       "Writes text by a causal model of tokens: bytes, or numbers "
	       "with --tokens u16."
	     : "usage: ckrun MODEL.so [option...]\n"
	       "       ckrun eval MODEL.so [option...]\n"
	       "       ckrun predict MODEL.so -o FILE.npy [option...]\n"
	       "       ckrun sample MODEL.so [option...]\n"
	       "       ckrun report LOG... -o FILE.html\n"
	       "       ckrun merge DIR -o FILE\n"
	       "Trains a model compiled by ckc; eval prints its loss, accuracy "
	       "and perplexity,\npredict writes its output for all samples in "
	       "order, sample writes text,\nreport makes a page of curves "
	       "from logs that --log wrote, merge joins a checkpoint\nof "
	       "several files into one.");
	for (int g = 0; g < G_COUNT; g++)
		option_help(rows, NROW, g, verb == VERB_TRAIN ? A : 1u << verb,
		            group_title[g], 24, stdout);
	if (verb == VERB_TRAIN)
		puts(feeding);
	puts("\nexit status: 0 success, 1 failure (message on stderr), 2 usage "
	     "error, 3 another process of the run was lost");
}

void
options_default(struct ckrun_options *o, const struct ckr_hyper *hyper)
{
	const size_t from = offsetof(struct ckrun_options, hyper);

	for (size_t i = 0; i < NROW; i++)
		if (rows[i].set == set_real && !o->given[i]
		    && rows[i].field - from < sizeof(*hyper))
			memcpy((char *)o + rows[i].field,
			       (const char *)hyper + rows[i].field - from,
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

static bool
reject_value(struct arg_parser *p, enum option_fault fault, const char *arg,
             const char *expected)
{
	const struct option_spec *r = p->row;
	char what[40], why[120];

	if (r->set == set_word || r->set == set_schedule) {
		snprintf(what, sizeof(what), "--%s ", r->name);
		snprintf(why, sizeof(why), "is not %s", expected);
		options_usage(what, arg, why);
		return false;
	}
	bad_option(r->name, fault == OPTION_TWICE
	           ? "is given twice, but takes one file"
	           : fault == OPTION_RANGE ? "cannot be negative"
	           : r->set == set_whole ? "needs a whole number"
	           : "needs a number");
	return false;
}

static bool
set_schedule(struct arg_parser *p, const char *value, void *field)
{
	return schedule_parse(value, field)
		|| p->reject(p, OPTION_BAD, value, SCHEDULES);
}

/* 0: dynamic. */
static bool
set_scale(struct arg_parser *p, const char *value, void *field)
{
	double *at = field;

	*at = 0;
	return !strcmp(value, "dynamic") || (number_real(value, at) && *at > 0)
	       || !bad_option(p->row->name,
	                      "needs a number above 0, or dynamic");
}

static bool
add_data(struct arg_parser *p, const char *value, void *field)
{
	struct option_files *f = field;

	if (f->n == MAX_DATA)
		return !bad_option(p->row->name,
		                   "is given too many times; a quoted pattern "
		                   "can name any number of files");
	f->v[f->n++] = value;
	return true;
}

static bool
add_word(struct arg_parser *p, const char *value, void *field)
{
	struct option_words *w = field;

	if (w->n == MAX_FEED)
		return !bad_option(p->row->name, "is given too many times");
	w->v[w->n++] = value;
	return true;
}

/* Of equal words the last counts. */
static bool
add_init(struct arg_parser *p, const char *value, void *field)
{
	struct option_words *w = field;
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->v[i], value))
			w->v[n++] = w->v[i];
	w->n = n;
	return add_word(p, value, field);
}

bool
options_given(const struct ckrun_options *o, const char *name)
{
	for (size_t i = 0; i < NROW; i++)
		if (o->given[i] && !strcmp(rows[i].name, name))
			return true;
	return false;
}

const char *
options_misplaced(const struct ckrun_options *o, enum ckrun_verb *of)
{
	for (size_t i = 0; i < NROW; i++)
		if (o->given[i] && !(rows[i].verbs >> o->verb & 1)) {
			*of = VERB_TRAIN;
			while (*of < VERBS && rows[i].verbs != 1u << *of)
				++*of;
			return rows[i].name;
		}
	return NULL;
}

static const char *const verb_text[VERBS] = {
	"training", "ckrun eval", "ckrun predict", "ckrun sample",
};

const char *
options_verb(enum ckrun_verb verb)
{
	return verb_text[verb];
}

static enum ckrun_verb
find_verb(const char *word)
{
	for (enum ckrun_verb v = VERB_TRAIN + 1; v < VERBS; v++)
		if (!strcmp(word, verb_text[v] + strlen("ckrun ")))
			return v;
	return VERB_TRAIN;
}

int
options_parse(struct ckrun_options *o, int argc, char **argv)
{
	struct arg_parser p = { .object = o, .empty = true,
		                .reject = reject_value };

	o->verb = find_verb(argc > 1 ? argv[1] : "");
	o->length = 200;
	o->temperature = 1;
	for (int i = o->verb ? 2 : 1; i < argc; i++) {
		const char *a = argv[i], *value = NULL;
		const struct option_spec *r;

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
		r = option_find(rows, NROW, a);
		if (!r)
			return options_usage("unknown option ", a, "");
		if (!r->arg && strchr(a, '='))
			return bad_option(r->name, "takes no value");
		if (r->arg && !(value = option_value(argc, argv, &i)))
			return bad_option(r->name, "needs a value");
		p.row = r;
		o->given[r - rows] = true;
		if (!r->set(&p, value, (char *)o + r->field))
			return USAGE;
	}
	return DONE;
}
