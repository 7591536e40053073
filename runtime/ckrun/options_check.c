/* Whether options go together, with each other and with the library. */
#include "runtime/ckrun/ckrun_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/err.h"
#include "runtime/data/dataset.h"
#include "runtime/file/file.h"

static int
bad(const char *name, const char *why)
{
	return options_usage("--", name, why);
}

/* Two libraries are compared, and nothing is kept of either. */
static int
check_against(const struct options *o)
{
	static const char *const idle[] = {
		"save", "save-every", "outputs", "grads", "log",
		"export-onnx", "check", "trace", "profile", "stats", "epochs",
	};

	for (size_t i = 0; i < sizeof(idle) / sizeof(*idle); i++)
		if (o->against && options_given(o, idle[i]))
			return bad(idle[i], "cannot stand beside --against");
	if (options_given(o, "rtol") && !o->against)
		return bad("rtol", "needs --against");
	return DONE;
}

static int
check_values(const struct options *o)
{
	if (!o->model) {
		fputs("ckrun: no model given; see ckrun --help\n", stderr);
		return USAGE;
	}
	if (o->ndata && o->inputs)
		return bad("inputs", "cannot stand beside --data");
	if (o->tokens && !o->ndata)
		return bad("tokens", "needs --data");
	if (o->ncolumns && !o->ndata)
		return bad("columns", "needs --data");
	if (o->normalize && !o->ndata)
		return bad("normalize", "needs --data");
	if (options_given(o, "epochs") && !o->ndata)
		return bad("epochs", "needs --data");
	if (options_given(o, "epochs") && options_given(o, "steps"))
		return bad("epochs", "cannot stand beside --steps");
	if (o->save_every && !o->save)
		return bad("save-every", "needs --save");
	if (o->threads > 65536)
		return bad("threads", "is too large");
	if (options_given(o, "threads") && !o->threads)
		return bad("threads", "needs at least 1");
	if (o->init && o->resume)
		return bad("init", "cannot stand beside --resume");
	return check_against(o);
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

/* f: all other files. */
static int
check_data(const struct options *o, const struct named_file *f, size_t n)
{
	struct data_list list;
	struct named_file *all;
	struct err e;
	int status = DONE;

	if (data_list_make(&list, o->data, o->ndata, &e) != CKR_OK) {
		fprintf(stderr, "ckrun: %s\n", e.text);
		return FAILED;
	}
	all = calloc(n + list.n, sizeof(*all));
	for (size_t i = 0; all && i < list.n; i++)
		all[i] = (struct named_file){ "--data", list.v[i].path, false };
	if (all) {
		memcpy(all + list.n, f, n * sizeof(*f));
		status = say_clash(all, list.n + n);
	}
	free(all);
	data_list_free(&list);
	return status;
}

/* Files beside the model belong to it. */
static int
check_files(const struct options *o)
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
		{ "--init", o->init, false },
		{ "--resume", o->resume, false },
		{ "--save", again ? NULL : o->save, true },
		{ "--outputs", o->outputs, true },
		{ "--grads", o->grads, true },
		{ "--log", o->log, true },
		{ "--export-onnx", o->onnx, true },
		{ "--trace", o->trace, true },
		{ "--profile", o->profile, true },
	};
	int status = say_clash(f, sizeof(f) / sizeof(*f));

	if (!status)
		status = check_data(o, f, sizeof(f) / sizeof(*f));
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
check_outputs(const struct options *o)
{
	const struct {
		const char *option, *path;
	} out[] = {
		/* in safetensors */
		{ "save", o->save }, { "outputs", o->outputs },
		{ "grads", o->grads },
		{ "log", o->log },
		{ "export-onnx", o->onnx }, { "trace", o->trace },
		{ "profile", o->profile },
	};

	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
		if (out[i].path && !strcmp(out[i].path, "-"))
			return bad(out[i].option, "needs the name of a file, "
			           "not '-'; standard output is /dev/stdout");
	for (size_t i = 0; i < 3; i++)
		if (is_numpy(out[i].path))
			return bad(out[i].option, "writes safetensors, not "
			           "NumPy's formats: name it "
			           "NAME.safetensors");
	return DONE;
}

int
options_check(const struct options *o)
{
	int status = check_values(o);

	if (!status)
		status = check_outputs(o);
	return status ? status : check_files(o);
}

static void
warn_idle(const struct options *o, const char *name, const char *why)
{
	if (options_given(o, name))
		fprintf(stderr, "ckrun: warning: --%s does nothing: %s\n",
		        name, why);
}

/* Whether a word stands between the spaces of a list. */
static bool
listed(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *s = list; (s = strstr(s, word)); s += n)
		if ((s == list || s[-1] == ' ') && (!s[n] || s[n] == ' '))
			return true;
	return false;
}

/* Options of another optimizer than the library's; --momentum is refused, not
 * warned of. */
static void
warn_optimizer(const struct options *o, const char *optimizer)
{
	static const char all[] = "sgd sgdm adam adamw lion adafactor";
	static const struct {
		const char *option, *of;
	} knows[] = {
		{ "lr", all }, { "schedule", all }, { "warmup", all },
		{ "min-lr", all }, { "weight-decay", all }, { "clip", all },
		{ "on-nan", all },
		{ "beta1", "adam adamw lion" }, { "beta2", "adam adamw lion" },
		{ "eps", "adam adamw adafactor" }, { "nesterov", "sgdm" },
		{ "beta2-decay", "adafactor" },
		{ "clip-threshold", "adafactor" }, { "eps2", "adafactor" },
	};
	char why[64];

	snprintf(why, sizeof(why), "the library's optimizer is %s", optimizer);
	for (size_t i = 0; i < sizeof(knows) / sizeof(*knows); i++)
		if (!listed(knows[i].of, optimizer))
			warn_idle(o, knows[i].option, why);
}

void
options_warn(const struct options *o, const char *optimizer,
             const char *unread)
{
	bool falls = o->schedule != CKR_CONSTANT_LR;

	if (*unread && !o->quiet && (o->init || o->resume))
		fprintf(stderr, "ckrun: warning: %s (ckc --param NAME makes a "
		        "weight of it)\n", unread);
	warn_optimizer(o, optimizer);
	if (!falls)
		warn_idle(o, "min-lr", "--schedule linear or cosine goes down "
		          "to it");
	if (falls && o->min_lr > o->hyper.lr)
		fprintf(stderr, "ckrun: warning: --min-lr %g is above --lr %g: "
		        "the rate will rise\n", o->min_lr, o->hyper.lr);
	if (options_given(o, "steps") && o->warmup > o->steps)
		fprintf(stderr, "ckrun: warning: --warmup %llu is longer than "
		        "--steps %llu: the rate never reaches --lr\n",
		        (unsigned long long)o->warmup,
		        (unsigned long long)o->steps);
}
