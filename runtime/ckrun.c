/* ckrun: train or run a compiled model from the command line. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ckr.h"
#include "runtime/clash.h"
#include "runtime/data.h"
#include "runtime/json.h"

enum { DONE, FAILED, USAGE };

/* ---- options ---- */

enum { MAX_FEED = 64 };

struct options {
	const char *model;
	const char *data, *tokens, *inputs;
	const char *feed[MAX_FEED];
	size_t nfeed;
	uint64_t steps;
	double lr, min_lr, weight_decay, beta1, beta2, eps, clip, momentum;
	const char *schedule;
	uint64_t warmup, seed, threads, save_every;
	const char *init, *save, *resume, *outputs, *grads, *log, *onnx;
	const char *trace, *profile, *blas;
	bool check, quiet, stats, help, version;
	bool stop_on_nan;
	bool has_steps, has_seed, has_threads;
};

/* T_SIZE: a number that is not negative */
enum type { T_TEXT, T_COUNT, T_REAL, T_SIZE, T_FLAG, T_FEED };

struct option_row {
	const char *name;
	enum type type;
	size_t offset;
	const char *arg, *help;
};

#define AT(field) offsetof(struct options, field)

/* The one list of options: parsing and --help come from it.  Rows without a
 * name are headings. */
static const struct option_row rows[] = {
	{ NULL, T_FLAG, 0, NULL, "data" },
	{ "data", T_TEXT, AT(data), "FILE", "samples (.npy, .npz, "
	  ".safetensors) or a stream of tokens" },
	{ "tokens", T_TEXT, AT(tokens), "TYPE", "FILE is raw tokens: u16, u32 "
	  "or bytes (any text)" },
	{ "feed", T_FEED, AT(feed), "IN=SRC", "input IN gets SRC: tokens, "
	  "next, positions, zeros, ones or an array" },
	{ "inputs", T_TEXT, AT(inputs), "FILE", "all inputs by name from FILE, "
	  "the same at every step" },
	{ NULL, T_FLAG, 0, NULL, "training" },
	{ "steps", T_COUNT, AT(steps), "N", "train until N steps are done, "
	  "resumed ones included" },
	{ "lr", T_SIZE, AT(lr), "X", "learning rate (1e-3)" },
	{ "schedule", T_TEXT, AT(schedule), "NAME", "constant (default), "
	  "linear or cosine, down to --min-lr" },
	{ "warmup", T_COUNT, AT(warmup), "N", "steps over which the rate rises "
	  "(0)" },
	{ "min-lr", T_SIZE, AT(min_lr), "X", "learning rate at the end (0)" },
	{ "weight-decay", T_SIZE, AT(weight_decay), "X", "decoupled decay "
	  "(0.01)" },
	{ "beta1", T_REAL, AT(beta1), "X", "AdamW (0.9)" },
	{ "beta2", T_REAL, AT(beta2), "X", "AdamW (0.999)" },
	{ "eps", T_SIZE, AT(eps), "X", "AdamW (1e-8)" },
	{ "momentum", T_SIZE, AT(momentum), "X", "SGD (0)" },
	{ "clip", T_SIZE, AT(clip), "X", "largest norm of all gradients; 0: "
	  "off (0)" },
	{ "seed", T_COUNT, AT(seed), "N", "for dropout and the order of data "
	  "(0)" },
	{ NULL, T_FLAG, 0, NULL, "files" },
	{ "init", T_TEXT, AT(init), "FILE", "initial weights (.safetensors; "
	  "default: beside the model)" },
	{ "save", T_TEXT, AT(save), "FILE", "write a checkpoint at the end" },
	{ "save-every", T_COUNT, AT(save_every), "N", "and every N steps" },
	{ "resume", T_TEXT, AT(resume), "FILE", "go on from a checkpoint" },
	{ "outputs", T_TEXT, AT(outputs), "FILE", "the graph's outputs at the "
	  "last step" },
	{ "grads", T_TEXT, AT(grads), "FILE", "gradients of the first step, "
	  "before clipping" },
	{ "log", T_TEXT, AT(log), "FILE", "one JSON object per step" },
	{ "export-onnx", T_TEXT, AT(onnx), "FILE", "the ONNX model with the "
	  "trained weights" },
	{ NULL, T_FLAG, 0, NULL, "running" },
	{ "threads", T_COUNT, AT(threads), "N", "at most as many as the model "
	  "was compiled for" },
	{ "blas", T_TEXT, AT(blas), "NAME", "onednn, openblas or own (default: "
	  "the first there is)" },
	{ "check", T_FLAG, AT(check), NULL, "do every step twice, keeping "
	  "everything and by the plan; compare bits" },
	{ "stop-on-nan", T_FLAG, AT(stop_on_nan), NULL, "fail, and save "
	  "nothing more, when the loss is not finite" },
	{ "trace", T_TEXT, AT(trace), "FILE", "chrome-trace JSON of the first "
	  "steps, with memory" },
	{ "profile", T_TEXT, AT(profile), "FILE", "measured seconds per op" },
	{ "stats", T_FLAG, AT(stats), NULL, "tell where memory went" },
	{ "quiet", T_FLAG, AT(quiet), NULL, "no progress" },
	{ "help", T_FLAG, AT(help), NULL, "this text" },
	{ "version", T_FLAG, AT(version), NULL, "which version this is" },
};

static void
print_help(void)
{
	puts("usage: ckrun MODEL.so [option...]\n"
	     "Trains, or runs, a model compiled by ckc.");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char left[40];

		if (!rows[i].name) {
			printf("\n%s\n", rows[i].help);
			continue;
		}
		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name,
		         rows[i].arg ? " " : "",
		         rows[i].arg ? rows[i].arg : "");
		printf("  %-21s %s\n", left, rows[i].help);
	}
	puts("\nexit status: 0 done, 1 something failed (message on stderr), "
	     "2 usage");
}

static int
usage(const char *what, const char *name, const char *why)
{
	char text[NAME_TEXT];

	fprintf(stderr, "ckrun: %s%s%s%s; see ckrun --help\n", what,
	        err_name(text, sizeof(text), name), *why ? " " : "", why);
	return USAGE;
}

static bool
parse_count(const char *s, uint64_t *x)
{
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	*x = strtoull(s, &end, 10);
	return !*end && !errno;
}

static bool
parse_real(const char *s, double *x)
{
	char *end;

	if (!*s || isspace((unsigned char)*s))
		return false;
	*x = strtod(s, &end);
	return !*end && isfinite(*x);
}

static int
set_option(struct options *o, const struct option_row *r, const char *value)
{
	void *at = (char *)o + r->offset;

	switch (r->type) {
	case T_FLAG:
		*(bool *)at = true;
		return DONE;
	case T_TEXT:
		*(const char **)at = value;
		return DONE;
	case T_FEED:
		if (o->nfeed == MAX_FEED)
			return usage("--", r->name, "is given too often");
		o->feed[o->nfeed++] = value;
		return DONE;
	case T_COUNT:
		if (!parse_count(value, at))
			return usage("--", r->name, "needs a whole number");
		o->has_steps |= at == (void *)&o->steps;
		o->has_seed |= at == (void *)&o->seed;
		o->has_threads |= at == (void *)&o->threads;
		return DONE;
	default:
		if (!parse_real(value, at))
			return usage("--", r->name, "needs a number");
		if (r->type == T_SIZE && *(double *)at < 0)
			return usage("--", r->name, "cannot be negative");
		return DONE;
	}
}

static const struct option_row *
find_row(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].name && strlen(rows[i].name) == n
		    && !memcmp(rows[i].name, name, n))
			return &rows[i];
	return NULL;
}

static int
parse(struct options *o, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *eq = strchr(a, '='), *value = NULL;
		const struct option_row *r;
		int status;

		if (!strcmp(a, "-h"))
			a = "--help";
		if (a[0] != '-') {
			if (o->model)
				return usage("a second model: ", a, "");
			o->model = a;
			continue;
		}
		r = a[1] == '-' ? find_row(a + 2, eq ? (size_t)(eq - a - 2)
		                           : strlen(a + 2)) : NULL;
		if (!r)
			return usage("unknown option ", a, "");
		if (r->type == T_FLAG ? eq != NULL : false)
			return usage("--", r->name, "takes no value");
		if (r->type != T_FLAG) {
			value = eq ? eq + 1 : ++i < argc ? argv[i] : NULL;
			if (!value)
				return usage("--", r->name, "needs a value");
		}
		status = set_option(o, r, value);
		if (status)
			return status;
	}
	return DONE;
}

static int
check_options(const struct options *o)
{
	if (!o->model) {
		fputs("ckrun: no model given; see ckrun --help\n", stderr);
		return USAGE;
	}
	if (o->data && o->inputs)
		return usage("--", "inputs", "cannot stand beside --data");
	if (o->tokens && !o->data)
		return usage("--", "tokens", "needs --data");
	if (o->save_every && !o->save)
		return usage("--", "save-every", "needs --save");
	if (o->threads > 65536)
		return usage("--", "threads", "is too large");
	if (o->has_threads && !o->threads)
		return usage("--", "threads", "needs at least 1");
	if (o->init && o->resume)
		return usage("--", "init", "cannot stand beside --resume");
	if (o->schedule && strcmp(o->schedule, "constant")
	    && strcmp(o->schedule, "linear") && strcmp(o->schedule, "cosine"))
		return usage("--schedule ", o->schedule,
		             "is not constant, linear or cosine");
	return DONE;
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
		{ "--data", o->data, false },
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
	char text[NAME_TEXT];
	bool clash = clash_find(f, sizeof(f) / sizeof(*f), &a, &b);

	if (clash)
		fprintf(stderr, "ckrun: '%s' is both %s and %s; write to "
		        "another file\n",
		        err_name(text, sizeof(text), f[b].path), f[a].role,
		        f[b].role);
	free(weights);
	return clash ? FAILED : DONE;
}

/* What is allowed, but hardly meant. */
static void
warn(const struct options *o)
{
	bool falls = o->schedule && strcmp(o->schedule, "constant") != 0;

	if (falls && o->min_lr > o->lr)
		fprintf(stderr, "ckrun: warning: --min-lr %g is above --lr %g: "
		        "the rate will rise\n", o->min_lr, o->lr);
	if (o->has_steps && o->warmup > o->steps)
		fprintf(stderr, "ckrun: warning: --warmup %llu is longer than "
		        "--steps %llu: the rate never reaches --lr\n",
		        (unsigned long long)o->warmup,
		        (unsigned long long)o->steps);
}

/* ---- a run ---- */

struct run {
	const struct options *o;
	ckr_ctx *m;
	struct data data;
	FILE *log;
	uint64_t steps;                 /* total */
	bool has_loss, exact;           /* exact: the loss is one f32 */
	bool tty, open_line, told_nan;
	uint64_t compared;
};

/* Ctrl-C ends the run after the step; a handler can reach nothing else. */
static volatile sig_atomic_t stop;

static void
on_signal(int sig)
{
	stop = sig;
}

static int
fail(struct run *r)
{
	if (r->open_line)
		fputc('\n', stdout);
	fflush(stdout);
	fprintf(stderr, "ckrun: %s\n", ckr_error(r->m));
	return FAILED;
}

static enum ckr_schedule
schedule(const struct options *o)
{
	if (!o->schedule || !strcmp(o->schedule, "constant"))
		return CKR_CONSTANT_LR;
	return !strcmp(o->schedule, "linear") ? CKR_LINEAR_LR : CKR_COSINE_LR;
}

static struct ckr_hyper
hyper(const struct run *r, uint64_t step)
{
	const struct options *o = r->o;

	return (struct ckr_hyper){
		.lr = ckr_schedule_lr(schedule(o), o->lr, o->min_lr, step,
		                      o->warmup, r->steps),
		.beta1 = o->beta1, .beta2 = o->beta2, .eps = o->eps,
		.weight_decay = o->weight_decay, .momentum = o->momentum,
		.clip = o->clip,
	};
}

/* Losses read back exactly. */
static const char *
loss_text(const struct run *r, char *buf, size_t size, double loss)
{
	snprintf(buf, size, r->exact ? "%.9g" : "%.17g", loss);
	return buf;
}

/* High-water mark so far; ckr_memory would ask the system each time. */
static uint64_t
peak_bytes(const struct run *r)
{
	return r->m->lib->program[0].resident_bytes + r->m->bound;
}

static void
log_step(const struct run *r, uint64_t step, double loss, double lr,
         double sec)
{
	char text[40];

	if (!r->log)
		return;
	fprintf(r->log, "{\"step\":%llu", (unsigned long long)step);
	if (r->has_loss)
		fprintf(r->log, ",\"loss\":%s",
		        isfinite(loss) ? loss_text(r, text, sizeof(text), loss)
		        : "null");
	fprintf(r->log, ",\"lr\":%.9g,\"seconds\":%.9g,\"%s\":%llu,"
	        "\"peak_bytes\":%llu}\n", lr, sec,
	        r->data.unit_tokens ? "tokens" : "samples",
	        (unsigned long long)r->data.units,
	        (unsigned long long)peak_bytes(r));
	fflush(r->log);
}

static void
print_step(struct run *r, uint64_t step, double loss, double sec)
{
	char text[40], line[200];

	if (r->o->quiet)
		return;
	if (r->has_loss)
		snprintf(line, sizeof(line), "step %llu/%llu  loss %s",
		         (unsigned long long)step, (unsigned long long)r->steps,
		         loss_text(r, text, sizeof(text), loss));
	else
		snprintf(line, sizeof(line), "step %llu/%llu",
		         (unsigned long long)step,
		         (unsigned long long)r->steps);
	printf("%s%s  %.6g %s/s  peak %.1f MiB%s", r->tty ? "\r\033[K" : "",
	       line, (double)r->data.units / (sec > 0 ? sec : 1e-9),
	       r->data.unit_tokens ? "tokens" : "samples",
	       (double)peak_bytes(r) / 1048576, r->tty ? "" : "\n");
	r->open_line = r->tty;
	fflush(stdout);
}

static ckr_status
one_step(struct run *r, double *loss, double *lr)
{
	struct ckr_hyper h = hyper(r, ckr_step_count(r->m));
	uint64_t n = 0;
	ckr_status s;

	*lr = h.lr;
	if (!r->o->check)
		return ckr_step(r->m, &h, loss);
	s = ckr_check(r->m, &h, loss, &n);
	r->compared += n;
	return s;
}

/* Say once that training has come apart; whether to go on. */
static int
look_at_loss(struct run *r, uint64_t step, double loss)
{
	if (!r->has_loss || isfinite(loss) || r->told_nan)
		return DONE;
	r->told_nan = true;
	if (r->open_line)
		fputc('\n', stdout);
	r->open_line = false;
	fflush(stdout);
	fprintf(stderr, "ckrun: %sloss is not finite at step %llu\n",
	        r->o->stop_on_nan ? "" : "warning: ",
	        (unsigned long long)step);
	return r->o->stop_on_nan ? FAILED : DONE;
}

static int
train(struct run *r)
{
	const struct options *o = r->o;

	while (ckr_step_count(r->m) < r->steps && !stop) {
		double from = now_sec(), loss, lr, sec;
		uint64_t step;

		if (one_step(r, &loss, &lr) != CKR_OK)
			return fail(r);
		sec = now_sec() - from;
		step = ckr_step_count(r->m);
		log_step(r, step, loss, lr, sec);
		print_step(r, step, loss, sec);
		if (look_at_loss(r, step, loss))
			return FAILED;
		if (o->save_every && step % o->save_every == 0
		    && step < r->steps && ckr_save(r->m, o->save) != CKR_OK)
			return fail(r);
	}
	if (r->open_line)
		fputc('\n', stdout);
	r->open_line = false;
	return DONE;
}

/* ---- before and after ---- */

static void
look_at_outputs(struct run *r)
{
	struct ckr_info info;

	r->exact = ckr_micro_batches(r->m) == 1;
	for (size_t i = 0; ckr_tensor(r->m, i, &info) == CKR_OK; i++)
		if (info.loss) {
			r->has_loss = true;
			r->exact &= strcmp(info.dtype, "f64") != 0;
		}
}

/* Whether path could be written, before hours are spent. */
static ckr_status
try_write(struct run *r, const char *path)
{
	struct new_file f;

	if (!path)
		return CKR_OK;
	CKR_TRY(new_file_open(&f, path, &r->m->err));
	new_file_abort(&f);
	return CKR_OK;
}

static ckr_status
open_log(struct run *r)
{
	if (!r->o->log)
		return CKR_OK;
	r->log = fopen(r->o->log, r->o->resume ? "a" : "w");
	if (!r->log)
		return err_set(&r->m->err, CKR_EIO, "%s: cannot write: %m",
		               r->o->log);
	return CKR_OK;
}

static ckr_status
open_all(struct run *r)
{
	const struct options *o = r->o;
	struct ckr_options co = { .weights = o->resume ? "" : o->init,
		.blas = o->blas, .threads = (int)o->threads, .seed = o->seed };
	struct data_options data = { o->data, o->tokens, o->inputs, o->feed,
	                             o->nfeed };

	CKR_TRY(ckr_open(&r->m, o->model, &co));
	if (o->resume) {
		CKR_TRY(ckr_resume(r->m, o->resume));
		if (o->has_seed)
			r->m->env.seed = o->seed;
	}
	CKR_TRY(data_open(&r->data, r->m, &data));
	CKR_TRY(ckr_set_feed(r->m, data_feed, &r->data));
	CKR_TRY(try_write(r, o->save));
	CKR_TRY(try_write(r, o->outputs));
	CKR_TRY(try_write(r, o->onnx));
	CKR_TRY(try_write(r, o->profile));
	if (o->grads)
		CKR_TRY(ckr_save_grads(r->m, o->grads));
	if (o->trace)
		CKR_TRY(ckr_trace(r->m, o->trace));
	if (o->profile)
		CKR_TRY(ckr_profile(r->m, NULL));
	look_at_outputs(r);
	return open_log(r);
}

static ckr_status
write_all(struct run *r)
{
	const struct options *o = r->o;

	if (o->save)
		CKR_TRY(ckr_save(r->m, o->save));
	if (o->outputs)
		CKR_TRY(ckr_save_outputs(r->m, o->outputs));
	if (o->onnx)
		CKR_TRY(ckr_export_onnx(r->m, o->onnx));
	if (o->profile)
		CKR_TRY(ckr_profile(r->m, o->profile));
	if (r->m->trace)
		CKR_TRY(trace_close(r->m));
	if (r->log && (ferror(r->log) || fflush(r->log)))
		return err_set(&r->m->err, CKR_EIO, "%s: cannot write: %m",
		               o->log);
	return CKR_OK;
}

static void
print_head(const struct run *r)
{
	char text[1024];

	if (r->o->threads > (uint64_t)ckr_threads(r->m))
		fprintf(stderr, "ckrun: warning: the model was compiled for "
		        "%d thread%s, not for %llu\n", ckr_threads(r->m),
		        ckr_threads(r->m) == 1 ? "" : "s",
		        (unsigned long long)r->o->threads);
	if (r->o->quiet)
		return;
	printf("%s: optimizer %s, %d thread%s, matrix products by %s\n",
	       ckr_model_name(r->m), ckr_optimizer(r->m), ckr_threads(r->m),
	       ckr_threads(r->m) == 1 ? "" : "s", ckr_blas(r->m));
	data_text(&r->data, text, sizeof(text));
	if (*text)
		printf("%s\n", text);
}

static void
print_tail(const struct run *r)
{
	struct ckr_memory m;

	if (r->o->quiet && !r->o->stats)
		return;
	ckr_memory(r->m, &m);
	printf("peak %llu bytes, planned %llu; the process grew by %llu\n",
	       (unsigned long long)m.peak_bytes,
	       (unsigned long long)m.planned_bytes,
	       (unsigned long long)m.grown_bytes);
	if (r->o->stats)
		printf("resident %llu, arena %llu, touched %llu, budget %llu\n",
		       (unsigned long long)m.resident_bytes,
		       (unsigned long long)m.arena_bytes,
		       (unsigned long long)m.touched_bytes,
		       (unsigned long long)m.budget_bytes);
	if (r->o->check)
		printf("check: %llu tensors compared, all bits equal\n",
		       (unsigned long long)r->compared);
	if (r->o->save)
		printf("saved %s\n", r->o->save);
}

/* How many steps, if nobody said: once, for what does not train. */
static int
count_steps(struct run *r)
{
	const struct options *o = r->o;

	r->steps = o->steps;
	if (o->has_steps)
		return DONE;
	if (strcmp(ckr_optimizer(r->m), "none") && !o->check)
		return usage("--", "steps", "is needed to train");
	r->steps = ckr_step_count(r->m) + 1;
	return DONE;
}

static int
run_model(struct run *r)
{
	int status;

	if (open_all(r) != CKR_OK)
		return fail(r);
	status = count_steps(r);
	if (status)
		return status;
	print_head(r);
	if (ckr_step_count(r->m) >= r->steps && !r->o->quiet)
		printf("nothing to do: %llu steps are done already, and "
		       "--steps counts them\n",
		       (unsigned long long)ckr_step_count(r->m));
	status = train(r);
	if (status)
		return status;
	if (write_all(r) != CKR_OK)
		return fail(r);
	print_tail(r);
	if (!stop)
		return DONE;
	fprintf(stderr, "ckrun: stopped after step %llu\n",
	        (unsigned long long)ckr_step_count(r->m));
	return FAILED;
}

static void
catch_signals(void)
{
	struct sigaction a = { .sa_handler = on_signal,
	                       .sa_flags = (int)SA_RESETHAND };

	sigemptyset(&a.sa_mask);
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

int
main(int argc, char **argv)
{
	struct options o = { .lr = 1e-3, .weight_decay = 0.01, .beta1 = 0.9,
	                     .beta2 = 0.999, .eps = 1e-8 };
	struct run r = { .o = &o, .tty = isatty(STDOUT_FILENO) };
	int status = parse(&o, argc, argv);

	r.data.file.fd = -1;
	if (status)
		return status;
	if (o.help)
		print_help();
	else if (o.version)
		puts("ckrun " CKC_VERSION);
	if (o.help || o.version)
		return fflush(stdout) || ferror(stdout) ? FAILED : DONE;
	status = check_options(&o);
	if (!status)
		status = check_files(&o);
	if (status)
		return status;
	warn(&o);
	catch_signals();
	status = run_model(&r);
	if (r.log)
		fclose(r.log);
	data_close(&r.data);
	ckr_close(r.m);
	if (fflush(stdout) || ferror(stdout))
		status = status ? status : FAILED;
	return status;
}
