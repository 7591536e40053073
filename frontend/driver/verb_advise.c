/* ckc advise: options under which a model trains in a given memory.
 *
 * Each remedy is a command line of its own, planned by a child process with the
 * options that are printed; what does not fit is listed with the bytes that it
 * needs.  Of remedies that differ in a number (micro-batches, ranks) the least
 * number that fits is printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/driver/auto_request.h"
#include "frontend/driver/host.h"
#include "frontend/driver/load.h"
#include "frontend/driver/opts_set.h"
#include "frontend/driver/outputs.h"
#include "frontend/driver/plan_options.h"
#include "frontend/driver/verbs.h"
#include "frontend/driver/workers.h"
#include "runtime/support/number.h"

/* What a remedy costs, beside time. */
enum cost_kind { COST_NONE, COST_ROUNDING, COST_DEVICES, COST_TRAINING,
                 COST_KINDS };

static const char *const kind_text[COST_KINDS] = {
	[COST_NONE] = "the same training on one device",
	[COST_ROUNDING] = "values rounded to 16 bits",
	[COST_DEVICES] = "more devices",
	[COST_TRAINING] = "another training",
};

enum { WORDS = 8, MOST_PARTS = 64, MOST_RANKS = 8 };

struct remedy {
	enum cost_kind kind;
	int family;                     /* of one family the first that fits is
	                                 * printed */
	int64_t parts;                  /* micro-batches instead of one */
	int64_t devices;
	const char *word[WORDS];        /* options that it adds; ends with
	                                 * NULL */
	const char **line;              /* the command line, from argv[1] on */
	int nline;
	int64_t samples;                /* of a step */
	struct auto_plan plan;
};

struct advice {
	struct cli *cli;
	struct watch *watch;
	Arena *arena;
	Diag *diag;
	const struct device_profile *device;
	const char *device_name;
	const char *batch_name;         /* name that --dim gives the batch;
	                                 * NULL: none does */
	int64_t batch;                  /* -1: unknown */
	struct remedy *v;
	int n;
	size_t cap;
};

/* ---- remedies ---- */

static struct remedy *
add_remedy(struct advice *d, enum cost_kind kind, int family, const char *a,
           const char *b)
{
	struct remedy *r;

	d->v = arena_grow(d->arena, d->v, (size_t)d->n, &d->cap,
	                  (size_t)d->n + 1, sizeof *d->v);
	r = &d->v[d->n++];
	*r = (struct remedy){ .kind = kind, .family = family, .parts = 1,
		.devices = 1, .word = { a, b } };
	return r;
}

static void
append_words(struct remedy *r, const char *a, const char *b)
{
	int n = 0;

	while (r->word[n])
		n++;
	r->word[n] = a;
	r->word[n + 1] = b;
}

static const char *
number(const struct advice *d, int64_t n)
{
	return arena_printf(d->arena, "%lld", (long long)n);
}

/* Without and with host memory. */
static void
add_parts(struct advice *d, int family)
{
	bool host = !option_given(d->cli, "offload");

	for (int offload = 0; offload <= host; offload++)
		for (int64_t n = 2; d->batch_name && n <= d->batch
		     && n <= MOST_PARTS; n++)
			if (d->batch % n == 0)
				add_remedy(d, COST_NONE, family + offload,
				           offload ? "--offload" : NULL,
				           offload ? "auto" : NULL)->parts = n;
}

static void
add_ranks(struct advice *d, int family)
{
	const struct cli *c = d->cli;

	if (option_given(c, "tp") || option_given(c, "dp"))
		return;
	for (int64_t n = 2; n <= MOST_RANKS; n *= 2) {
		struct remedy *r = add_remedy(d, COST_DEVICES, family, "--tp",
		                              number(d, n));

		append_words(r, "--sp", NULL);
		r->devices = n;
	}
	for (int64_t n = 2; n <= MOST_RANKS; n *= 2)
		for (int stage = 1; stage <= 3; stage++) {
			struct remedy *r = add_remedy(d, COST_DEVICES,
				family + 1, "--dp", number(d, n));

			append_words(r, "--zero", number(d, stage));
			r->devices = n;
		}
}

static int
list_remedies(struct advice *d)
{
	static const struct {
		enum cost_kind kind;
		const char *option, *value;
	} single[] = {
		{ COST_NONE, "offload", "state" },
		{ COST_NONE, "offload", "auto" },
		{ COST_ROUNDING, "save-dtype", "bf16" },
		{ COST_ROUNDING, "state-dtype", "bf16" },
		{ COST_ROUNDING, "dtype", "bf16" },
		{ COST_TRAINING, "optimizer", "adafactor" },
		{ COST_TRAINING, "optimizer", "sgd" },
	};
	int family = 1;

	add_remedy(d, COST_NONE, 0, NULL, NULL);        /* recomputation */
	for (size_t i = 0; i < sizeof single / sizeof *single; i++)
		if (!option_given(d->cli, single[i].option))
			add_remedy(d, single[i].kind, family++,
			           arena_printf(d->arena, "--%s",
			                        single[i].option),
			           single[i].value);
	add_parts(d, family);
	add_ranks(d, family + 2);
	return family + 4;
}

/* Several at once, for when no single one fits. */
static void
list_combinations(struct advice *d, int family)
{
	const struct cli *c = d->cli;
	int64_t parts = d->batch_name && d->batch <= MOST_PARTS ? d->batch : 1;
	bool ranks = !option_given(c, "tp") && !option_given(c, "dp");
	bool host = !option_given(c, "offload");
	struct remedy *r;

	if (!option_given(c, "state-dtype")) {
		r = add_remedy(d, COST_ROUNDING, family++, "--state-dtype",
		               "bf16");
		r->parts = parts;
		if (host)
			append_words(r, "--offload", "auto");
	}
	for (int64_t n = 2; ranks && n <= MOST_RANKS; n *= 2) {
		r = add_remedy(d, COST_DEVICES, family, "--tp", number(d, n));
		append_words(r, "--sp", NULL);
		r->parts = parts;
		r->devices = n;
		r = add_remedy(d, COST_DEVICES, family + 1, "--dp",
		               number(d, n));
		append_words(r, "--zero", "3");
		if (host)
			append_words(r, "--offload", "auto");
		r->parts = parts;
		r->devices = n;
	}
	if (!option_given(c, "optimizer"))
		add_remedy(d, COST_TRAINING, family + 2, "--optimizer",
		           "sgd")->parts = parts;
}

/* ---- command lines ---- */

/* Whether an option of the user gives way to the remedy. */
static bool
is_replaced(const struct advice *d, const struct remedy *r, const char *name,
            const char *value)
{
	size_t n = d->batch_name ? strlen(d->batch_name) : 0;

	if (!strcmp(name, "memory") || !strcmp(name, "json"))
		return true;
	return r->parts > 1 && (!strcmp(name, "grad-accum")
		|| (!strcmp(name, "dim") && !strncmp(value, d->batch_name, n)
		    && value[n] == '='));
}

static const char *
library_of(const struct advice *d)
{
	return outputs_name(d->cli->model, NULL, d->arena).so;
}

static void
write_line(const struct advice *d, struct remedy *r)
{
	const struct cli *c = d->cli;
	const char **w = arena_array(d->arena, (size_t)c->nflag + WORDS + 10,
	                             sizeof *w);
	char **flag = arena_copy(d->arena, c->flag, ((size_t)c->nflag + 1)
	                                            * sizeof *flag);
	int n = 0;

	w[n++] = c->model;
	for (int i = 1; i < c->nflag; i++) {    /* behind the verb */
		const struct option_spec *row = option_find(c->row, c->nrow,
		                                            flag[i]);
		int first = i;
		const char *value = row && row->arg
			? option_value(c->nflag, flag, &i) : NULL;

		if (!row || is_replaced(d, r, row->name, value))
			continue;
		for (int k = first; k <= i; k++)
			w[n++] = flag[k];
	}
	if (r->parts > 1) {
		w[n++] = "--dim";
		w[n++] = arena_printf(d->arena, "%s=%lld", d->batch_name,
		                      (long long)(d->batch / r->parts));
		w[n++] = "--grad-accum";
		w[n++] = number(d, r->parts * c->opt.grad_accum);
	}
	for (int i = 0; r->word[i]; i++)
		w[n++] = r->word[i];
	w[n++] = "--memory-budget";
	w[n++] = auto_size(c->memory, d->arena);
	w[n++] = "-o";
	w[n++] = library_of(d);
	r->line = w;
	r->nline = n;
	r->samples = d->batch > 0 ? d->batch * c->opt.grad_accum
		* (r->word[0] && !strcmp(r->word[0], "--dp") ? r->devices : 1)
		: 0;
}

/* In a child: what is typed is planned. */
static void
plan_remedy(void *of, int i, void *result)
{
	const struct advice *d = of;
	const struct remedy *r = &d->v[i];
	struct remedy *to = result;
	char **argv = arena_array(d->arena, (size_t)r->nline + 2, sizeof *argv);
	struct cli c;
	FILE *none = fopen("/dev/null", "w");

	argv[0] = arena_str(d->arena, "ckc");
	for (int k = 0; k < r->nline; k++)
		argv[k + 1] = arena_str(d->arena, r->line[k]);
	if (!none || cli_parse(&c, r->nline + 1, argv, d->arena, none, none)
	             != CLI_GO)
		snprintf(to->plan.why, AUTO_WHY, "the options contradict those "
		         "given");
	else
		plan_options(&c, d->device, false, d->watch->stop, &to->plan);
}

static void
lose_remedy(void *of, int i, const char *why)
{
	struct remedy *r = &((struct advice *)of)->v[i];

	r->plan = (struct auto_plan){ .ok = false };
	snprintf(r->plan.why, AUTO_WHY, "%s", why);
}

/* ---- the report ---- */

static double
seconds_per_sample(const struct remedy *r)
{
	double samples = r->samples > 0 ? (double)r->samples : 1;

	return r->plan.sec / samples;
}

static int
by_cost(const void *a, const void *b)
{
	const struct remedy *p = *(struct remedy *const *)a;
	const struct remedy *q = *(struct remedy *const *)b;
	double x = seconds_per_sample(p), y = seconds_per_sample(q);

	if (p->kind != q->kind)
		return p->kind < q->kind ? -1 : 1;
	if (p->devices != q->devices)
		return p->devices < q->devices ? -1 : 1;
	if (x < y || x > y)
		return x < y ? -1 : 1;
	return p < q ? -1 : p > q;
}

/* Whether q makes r needless, of one family: it fits with less, or with as much
 * and is faster, or comes first. */
static bool
is_beaten(const struct remedy *r, const struct remedy *q)
{
	if (q == r || q->family != r->family || !q->plan.ok)
		return false;
	if (q->devices != r->devices || q->parts != r->parts)
		return q->devices <= r->devices && q->parts <= r->parts;
	return q->plan.sec < r->plan.sec
		|| (q->plan.sec <= r->plan.sec && q < r);
}

/* Host memory that would not be used is no remedy, and neither are types that
 * help no more than recomputation, the first one, alone. */
static bool
is_shown(const struct advice *d, const struct remedy *r)
{
	bool host = r->word[0] && !strcmp(r->word[0], "--offload");

	if (!r->plan.ok || (host && r->plan.host == 0))
		return false;
	if (r->kind == COST_ROUNDING && d->v->plan.ok
	    && r->plan.sec >= d->v->plan.sec)
		return false;
	for (const struct remedy *q = d->v; q < d->v + d->n; q++)
		if (is_beaten(r, q))
			return false;
	return true;
}

static void
print_remedy(const struct advice *d, const struct remedy *r)
{
	char peak[24], host[24];

	printf("  %.4g ms a step, %s", 1e3 * r->plan.sec,
	       number_bytes(peak, (double)r->plan.peak));
	if (r->samples > 0)
		printf(", %.4g samples/s", (double)r->samples / r->plan.sec);
	if (r->plan.recompute > 0)
		printf(", recomputation %.1f %%",
		       100 * r->plan.recompute / r->plan.sec);
	if (r->plan.host > 0)
		printf(", %s in host memory",
		       number_bytes(host, (double)r->plan.host));
	printf("\n    ckc %s\n", auto_line(r->line, r->nline, d->arena));
}

static int
print_fitting(const struct advice *d)
{
	struct remedy **v = arena_array(d->arena, (size_t)d->n + 1, sizeof *v);
	int n = 0;

	for (int i = 0; i < d->n; i++)
		if (is_shown(d, &d->v[i]))
			v[n++] = &d->v[i];
	qsort(v, (size_t)n, sizeof *v, by_cost);
	for (int i = 0; i < n; i++) {
		if (i == 0 || v[i]->kind != v[i - 1]->kind)
			printf("%s:\n", kind_text[v[i]->kind]);
		print_remedy(d, v[i]);
	}
	return n;
}

/* What a remedy changes. */
static const char *
describe(const struct advice *d, const struct remedy *r)
{
	const char *text = r->parts > 1
		? arena_printf(d->arena, "--grad-accum %lld",
		               (long long)(r->parts * d->cli->opt.grad_accum))
		: "";

	for (int i = 0; r->word[i]; i++)
		text = arena_printf(d->arena, "%s%s%s", text, *text ? " " : "",
		                    r->word[i]);
	return *text ? text : "recomputation alone";
}

/* Whether none of the remedy's family fits, and it is the last of them. */
static bool
is_hopeless(const struct advice *d, const struct remedy *r)
{
	for (const struct remedy *q = d->v; q < d->v + d->n; q++)
		if (q->family == r->family && (q->plan.ok || q > r))
			return false;
	return true;
}

static void
print_others(const struct advice *d)
{
	bool any = false;

	for (int i = 0; i < d->n; i++) {
		const struct remedy *r = &d->v[i];

		if (!is_hopeless(d, r))
			continue;
		printf("%s  %s: ", any ? "" : "does not help enough:\n",
		       describe(d, r));
		any = true;
		if (r->plan.least > 0)
			printf("needs %lld B\n", (long long)r->plan.least);
		else
			printf("%s\n", r->plan.why);
	}
}

/* ---- the verb ---- */

/* For the model and the options of a compile. */
static const char *
advise_line(const struct cli *c, int64_t memory, Arena *a)
{
	const char **w = arena_array(a, (size_t)c->nflag + 8, sizeof *w);
	char **flag = arena_copy(a, c->flag, ((size_t)c->nflag + 1)
	                                     * sizeof *flag);
	int n = 0;

	w[n++] = "ckc";
	w[n++] = "advise";
	w[n++] = c->model;
	for (int i = 0; i < c->nflag; i++) {
		const struct option_spec *row = option_find(c->row, c->nrow,
		                                            flag[i]);
		int first = i;

		if (row && row->arg)
			option_value(c->nflag, flag, &i);
		if (row && row->verbs >> VERB_ADVISE & 1)
			for (int k = first; k <= i; k++)
				w[n++] = flag[k];
	}
	w[n++] = "--memory";
	w[n++] = auto_size(memory, a);
	return auto_line(w, n, a);
}

void
advise_more(const struct cli *c, const Pass *p)
{
	if (p->planned.refused && p->planned.budget > 0)
		diag_more(p->diag, "  plans that fit, with the time that each "
		          "takes; try: %s",
		          advise_line(c, p->planned.budget, p->keep));
}

/* The model as imported: its device, its batch. */
static bool
look_at_model(struct advice *d)
{
	struct cli *c = d->cli;
	struct model_load load = { c, d->arena, d->diag, d->watch };
	struct onnx_file *file = NULL;
	Graph *g;
	bool ok;

	c->plan_only = true;
	g = load_model(&load, &file);
	ok = g && device_set(c, g, d->watch, d->arena, d->diag);
	if (ok) {
		d->device = g->device;
		d->device_name = device_of(g)->name;
		d->batch = auto_batch(&c->opt, g, &d->batch_name, d->arena);
	}
	graph_free(g);
	onnx_close(file);
	return ok;
}

static bool
plan_all(struct advice *d)
{
	const struct workers w = { .work = plan_remedy, .lost = lose_remedy,
		.of = d, .result = d->v, .size = sizeof *d->v,
		.stop = d->watch->stop };

	return workers_run(&w, d->n) || diag_error(d->diag, "interrupted");
}

/* The step as it is, without a budget; false after a diagnostic. */
static bool
plan_as_given(struct advice *d, struct remedy *r)
{
	struct advice one = *d;

	*r = (struct remedy){ .parts = 1, .devices = 1 };
	write_line(d, r);
	r->nline -= 4;                  /* no budget, no library */
	one.v = r;
	one.n = 1;
	return plan_all(&one)
		&& (r->plan.ok || diag_error(d->diag, "%s", r->plan.why));
}

/* Plan those from number `first` on. */
static bool
plan_from(struct advice *d, int first)
{
	struct advice part = *d;

	part.v += first;
	part.n -= first;
	for (int i = 0; i < part.n; i++)
		write_line(d, &part.v[i]);
	return plan_all(&part);
}

static bool
plan_remedies(struct advice *d)
{
	int family = list_remedies(d), n = d->n;

	if (!plan_from(d, 0))
		return false;
	for (int i = 0; i < n; i++)
		if (is_shown(d, &d->v[i]))
			return true;
	list_combinations(d, family);
	return plan_from(d, n);
}

bool
verb_advise(struct cli *c, struct watch *watch, Arena *arena, Diag *diag)
{
	struct advice d = { .cli = c, .watch = watch, .arena = arena,
	                    .diag = diag };
	struct remedy as_given;
	char peak[24];

	diag_file(diag, c->model);
	if (!look_at_model(&d) || !plan_as_given(&d, &as_given))
		return false;
	printf("%s on %s: a step takes %s (%lld B) without a budget, %.4g ms; "
	       "limit %s\n", c->model, d.device_name,
	       number_bytes(peak, (double)as_given.plan.peak),
	       (long long)as_given.plan.peak, 1e3 * as_given.plan.sec,
	       auto_size(c->memory, arena));
	if (as_given.plan.peak <= c->memory) {
		printf("it fits as it is\n");
		return true;
	}
	if (!plan_remedies(&d))
		return false;
	if (!print_fitting(&d)) {
		print_others(&d);
		return diag_error(diag, "nothing that was tried fits into %s; "
		                  "try: more --memory, or a smaller model",
		                  auto_size(c->memory, arena));
	}
	print_others(&d);
	return true;
}
