/* Checks that options are compatible with each other, and that files are
 * distinct. */
#include "runtime/ckrun/ckrun_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/err.h"
#include "runtime/ckrun/start.h"
#include "runtime/data/dataset.h"
#include "runtime/file/file.h"
#include "runtime/support/path.h"

static int
refuse_option(const char *name, const char *why)
{
	return options_usage("--", name, why);
}

/* Of options in words, "a b", each that was given needs another one, or cannot
 * be used with it. */
struct option_rule {
	const char *options;
	enum { NEEDS, EXCLUDES } kind;
	const char *other;
};

static const struct option_rule rules[] = {
	{ "inputs", EXCLUDES, "data" },
	{ "columns normalize augment epochs", NEEDS, "data" },
	{ "epochs", EXCLUDES, "steps" },
	{ "init", EXCLUDES, "resume" },
	{ "init-map init-partial init-skip", NEEDS, "init" },
	/* two libraries are compared, and nothing is kept of either */
	{ "save save-every save-async save-lora save-merged outputs grads log "
	  "tensorboard export-onnx check trace profile stats epochs valid ema",
	  EXCLUDES, "against" },
	{ "rtol", NEEDS, "against" },
};

static const struct option_rule rules_of_data[] = {
	{ "tokens", NEEDS, "data" },
	{ "valid-every save-best patience", NEEDS, "valid" },
	{ "patience", NEEDS, "valid-every" },
	{ "keep", NEEDS, "save-every" },
};

static int
check_rule(const struct ckrun_options *o, const struct option_rule *r)
{
	char name[32], why[64];
	int n = 0;

	for (const char *s = r->options; sscanf(s, "%31s%n", name, &n) == 1;
	     s += n) {
		if (!options_given(o, name)
		    || options_given(o, r->other) == (r->kind == NEEDS))
			continue;
		snprintf(why, sizeof(why), r->kind == NEEDS ? "needs --%s"
		         : "cannot be used with --%s", r->other);
		return refuse_option(name, why);
	}
	return DONE;
}

/* What does not train knows few options, and training not theirs. */
static int
check_verb(const struct ckrun_options *o)
{
	enum ckrun_verb of;
	const char *name = options_misplaced(o, &of);
	char why[64];

	if (name) {
		snprintf(why, sizeof(why), of == VERBS
		         ? "is not an option of %s" : "is only valid for %s",
		         options_verb(of == VERBS ? o->verb : of));
		return refuse_option(name, why);
	}
	if (o->verb != VERB_TRAIN && o->ema && !o->resume && !o->init.n)
		return refuse_option("ema", "needs --resume or --init with a "
		                     "checkpoint of a library of ckc --ema");
	if (o->verb == VERB_PREDICT && !o->out)
		return refuse_option("out",
		                     "is required by ckrun predict; try: -o "
		                     "FILE.npy");
	for (size_t i = 0; o->verb != VERB_SAMPLE && i < sizeof(rules_of_data)
	     / sizeof(*rules_of_data); i++)
		if (check_rule(o, &rules_of_data[i]))
			return USAGE;
	return DONE;
}

/* What N of something can mean nothing by 0. */
static int
check_counts(const struct ckrun_options *o)
{
	const struct {
		const char *option;
		uint64_t n;
	} counts[] = {
		{ "threads", o->threads }, { "epochs", o->epochs },
		{ "valid-every", o->valid_every }, { "patience", o->patience },
		{ "save-every", o->save_every }, { "keep", o->keep },
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (options_given(o, counts[i].option) && !counts[i].n)
			return refuse_option(counts[i].option,
			                     "must be at least 1; omit the "
			                     "option for none");
	return DONE;
}

static int
check_groups(const struct option_words *w, const char *name)
{
	size_t n;
	double x;

	for (size_t i = 0; i < w->n; i++)
		if (!groups_split(w->v[i], &n, &x))
			return refuse_option(name, "needs GLOB=F, where F is a "
			                     "number of 0 or more");
	return DONE;
}

static int
check_values(const struct ckrun_options *o)
{
	if (!o->model) {
		fputs("ckrun: no model given; see ckrun --help\n", stderr);
		return USAGE;
	}
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (check_rule(o, &rules[i]))
			return USAGE;
	if (o->tokens && dataset_token_type(o->tokens) == CKR_NONE)
		return refuse_option("tokens", "must be u16, u32 or bytes");
	if (o->save_every && !o->save)
		return refuse_option("save-every", "needs --save");
	if (o->save_async && !o->save_every && !o->save_best)
		return refuse_option("save-async",
		                     "needs --save-every or --save-best");
	if (o->schedule.total && o->schedule.total <= o->schedule.warmup)
		return refuse_option("schedule-steps",
		                     "must be more than --warmup");
	if (o->threads > 65536)
		return refuse_option("threads", "is too large");
	for (size_t i = 0; i < o->init_map.n; i++)
		if (!strchr(o->init_map.v[i], '='))
			return refuse_option("init-map",
			                     "needs OLD=NEW; either part may "
			                     "be empty");
	if (check_groups(&o->lr_scale, "lr-scale")
	    || check_groups(&o->decay, "decay"))
		return USAGE;
	return DONE;
}

static int
say_clash(const struct named_file *f, size_t n)
{
	char text[NAME_TEXT];
	size_t a, b;

	if (!clash_find(f, n, &a, &b))
		return DONE;
	fprintf(stderr, "ckrun: '%s' is both %s and %s; write to another "
	        "file\n", err_name(text, sizeof(text), f[b].path), f[a].role,
	        f[b].role);
	return FAILED;
}

/* d: of this role; f: all other files. */
static int
check_data(const struct option_files *d, const char *role,
           const struct named_file *f, size_t n)
{
	struct data_list list;
	struct named_file *all;
	struct err e;
	int status = DONE;

	if (data_list_make(&list, d->v, d->n, &e) != CKR_OK) {
		fprintf(stderr, "ckrun: %s\n", e.text);
		return FAILED;
	}
	all = calloc(n + list.n, sizeof(*all));
	for (size_t i = 0; all && i < list.n; i++)
		all[i] = (struct named_file){ role, list.v[i].path, false };
	if (all) {
		memcpy(all + list.n, f, n * sizeof(*f));
		status = say_clash(all, list.n + n);
	}
	free(all);
	data_list_free(&list);
	return status;
}

/* File i of --init beside all other files. */
static int
check_init(const struct ckrun_options *o, size_t i, const struct named_file *f,
           size_t n)
{
	struct named_file both[2] = { { "--init", o->init.v[i], false } };
	int status = DONE;

	for (size_t k = 0; k < n && !status; k++) {
		both[1] = f[k];
		status = f[k].path ? say_clash(both, 2) : DONE;
	}
	return status;
}

/* Files beside the model belong to it. */
static int
check_files(const struct ckrun_options *o)
{
	/* a run may go on in the checkpoint that it came from */
	const struct named_file again_in[] = {
		{ "--resume", o->resume, false },
		{ "--save", o->save, true },
	};
	size_t a, b;
	bool again = clash_find(again_in, 2, &a, &b);
	char *weights = file_beside(o->model, ".safetensors");
	const struct named_file f[] = {
		{ "the model", o->model, false },
		{ "the model's weights", weights, false },
		{ "--against", o->against, false },
		{ "--inputs", o->inputs, false },
		{ "--resume", o->resume, false },
		{ "--save", again ? NULL : o->save, true },
		{ "--save-best", o->save_best, true },
		{ "--save-lora", o->save_lora, true },
		{ "--save-merged", o->save_merged, true },
		{ "--out", o->out, true },
		{ "--outputs", o->outputs, true },
		{ "--grads", o->grads, true },
		{ "--log", o->log, true },
		{ "--export-onnx", o->onnx, true },
		{ "--trace", o->trace, true },
		{ "--profile", o->profile, true },
	};
	size_t n = sizeof(f) / sizeof(*f);
	int status = say_clash(f, n);

	for (size_t i = 0; i < o->init.n && !status; i++)
		status = check_init(o, i, f, n);
	if (!status)
		status = check_data(&o->data, "--data", f, n);
	if (!status)
		status = check_data(&o->valid, "--valid", f, n);
	free(weights);
	return status;
}

static bool
is_numpy(const char *path)
{
	const char *dot = path ? strrchr(path, '.') : NULL;

	return dot && (!strcmp(dot, ".npz") || !strcmp(dot, ".npy"));
}

/* Standard output carries progress, and a name says what is in a file. */
static int
check_output_files(const struct ckrun_options *o)
{
	const struct {
		const char *option, *path;
	} out[] = {
		/* in safetensors */
		{ "save", o->save }, { "outputs", o->outputs },
		{ "grads", o->grads }, { "save-best", o->save_best },
		{ "save-lora", o->save_lora },
		{ "save-merged", o->save_merged },
		{ "log", o->log },
		{ "export-onnx", o->onnx }, { "trace", o->trace },
		{ "profile", o->profile },
	};

	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
		if (out[i].path && !strcmp(out[i].path, "-"))
			return refuse_option(out[i].option,
			                     "needs a file name, not '-'; for "
			                     "standard output use /dev/stdout");
	for (size_t i = 0; i < 6; i++)
		if (is_numpy(out[i].path))
			return refuse_option(out[i].option,
			                     "writes safetensors, not NumPy "
			                     "files; try: NAME.safetensors");
	return DONE;
}

int
options_check(const struct ckrun_options *o)
{
	int status = check_values(o);

	if (!status)
		status = check_counts(o);
	if (!status)
		status = check_verb(o);
	if (!status)
		status = check_output_files(o);
	return status ? status : check_files(o);
}
