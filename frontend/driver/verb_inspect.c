/* ckc inspect: the importer's findings, the verdict of a compile with the same
 * options, the memory of a step, and extents that the exporter baked in.
 *
 * The verdict comes from a compile without the C compiler, whose messages are
 * kept.  If only extents are unbound, some values are tried.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "codegen/codegen.h"
#include "frontend/driver/host.h"
#include "frontend/driver/outputs.h"
#include "frontend/driver/stop.h"
#include "frontend/driver/verbs.h"
#include "ir/base/outfile.h"
#include "passes/explore/explore.h"
#include "passes/passes.h"
#include "frontend/inspect/inspect.h"

struct probe {
	const struct cli *c;
	struct import_options import;
	const volatile sig_atomic_t *stop;      /* not 0: interrupted */
	Arena *arena;
	const char **dim;               /* unbound names, for --dim */
	int ndim;
	size_t cap;
	const char *shapeless;          /* input that needs a --shape */
	bool whole;                     /* no name is an expression */
	bool overwrites;                /* the report's path is external data */
};

/* Outcome of a trial compile. */
enum reach { AT_IMPORT, AT_BINDING, AT_FOLDING, AT_LATER, DONE };

struct compile_trial {
	enum reach reach;
	struct step_bytes step;
	const char *messages;
};

/* ---- extents ---- */

/* The options with all missing extents bound to `every`, that of number `but`
 * to one more, and no budget, which would refer to unknown extents. */
static struct options
with_extents(const struct probe *p, int64_t every, int but)
{
	struct options o = p->c->opt;
	size_t n = (size_t)(o.ndim + p->ndim);
	struct dim_binding *dim = arena_array(p->arena, n + 1, sizeof *dim);

	for (int i = 0; i < o.ndim; i++)
		dim[i] = o.dim[i];
	for (int i = 0; i < p->ndim; i++)
		dim[o.ndim + i] = (struct dim_binding){
			.name = p->dim[i], .size = every + (i == but)
		};
	o.dim = dim;
	o.ndim += p->ndim;
	o.budget_bytes = -1;
	o.budget_pct = 0;
	return o;
}

/* Whether the options bind the name.  Binding reports a bad name once and
 * leaves that extent open, even if it binds the name elsewhere. */
static bool
is_dim_bound(const struct probe *p, const Graph *g, const char *name)
{
	bool there = false, open = false;

	for (int i = 0; i < p->c->opt.ndim; i++)
		if (!strcmp(p->c->opt.dim[i].name, name))
			return true;
	FOR_VALS (v, g)
		for (int i = 0; i < v->shape.rank; i++)
			if (v->dim_name[i] && !strcmp(v->dim_name[i], name)) {
				there = true;
				open |= v->shape.dim[i] < 0;
			}
	return there && !open;
}

static void
add_free_dim(struct probe *p, const Graph *g, const char *name)
{
	if (is_dim_bound(p, g, name))
		return;
	for (int i = 0; i < p->ndim; i++)
		if (!strcmp(p->dim[i], name))
			return;
	p->dim = arena_grow(p->arena, p->dim, (size_t)p->ndim, &p->cap,
	                    (size_t)p->ndim + 1, sizeof *p->dim);
	p->dim[p->ndim++] = name;
}

/* Collect the names in a dim's name, which may be an expression. */
static void
add_names(struct probe *p, const Graph *g, const char *text)
{
	static const char operators[] = "+-*/() ";

	if (p->whole || !text[strspn(text, operators)])
		add_free_dim(p, g, arena_str(p->arena, text));
	else
		while (*(text += strspn(text, operators))) {
			size_t n = strcspn(text, operators);

			if (!isdigit((unsigned char)*text))
				add_free_dim(p, g, arena_printf(p->arena,
					"%.*s", (int)n, text));
			text += n;
		}
}

/* Collect the extents that binding left open. */
static void
find_missing(struct probe *p, const Graph *g)
{
	FOR_VALS (v, g) {
		const char *name = v->onnx ? v->onnx : v->name;

		if (v->kind != V_INPUT && v->kind != V_PARAM)
			continue;
		if (v->shape.rank < 0)
			p->shapeless = arena_str(p->arena, name);
		for (int i = 0; i < v->shape.rank; i++)
			if (v->shape.dim[i] < 0 && v->dim_name[i])
				add_names(p, g, v->dim_name[i]);
			else if (v->shape.dim[i] < 0)
				add_free_dim(p, g, arena_printf(p->arena,
					"%s.%d", name, i));
	}
}

/* The options that would bind the open extents. */
static const char *
list_missing(const struct probe *p)
{
	const char *text = p->shapeless
		? arena_printf(p->arena, "--shape %s=AxBx...", p->shapeless)
		: "";

	for (int i = 0; i < p->ndim; i++) {
		const char *quote = strchr(p->dim[i], ' ') ? "'" : "";

		text = arena_printf(p->arena, "%s%s--dim %s%s=N%s", text,
		                    *text ? " " : "", quote, p->dim[i], quote);
	}
	return text;
}

/* ---- trials ---- */

static bool
has_code(const struct probe *p, const Graph *g, const Pass *pass, Diag *diag)
{
	const struct cli *c = p->c;
	struct codegen_options o = cli_codegen(c, c->machine);

	o.grad_accum = c->opt.grad_accum;
	return p->import.shapes_do
		|| codegen_check(&(struct codegen_schedules){ .g = g,
			.plan = pass->planned.plan,
			.reference = pass->planned.reference,
			.reference_plan = pass->planned.reference_plan
		}, &o, diag);
}

static const char *
rule_name(const struct options *o)
{
	static const char *const name[] = {
		[OPT_NONE] = "none",
#define OPTIMIZER(id, name, op, coupled, state0, state1, uses, defaults) \
		[OPT_##id] = name,
#include "runtime/support/optimizers.h"
	};

	return o->forward_only ? NULL : name[o->optimizer];
}

/* Sum bytes of the compiled graph.  A parameter has one gradient, however many
 * values it passes through. */
static struct step_bytes
find_step_bytes(const struct probe *p, const Graph *g, const Pass *pass,
                const struct options *o)
{
	bool *met = arena_array(p->arena, g->nval, sizeof *met);
	struct step_bytes b = {
		.rule = rule_name(o),
		.early = (pass->planned.updates_in_backward
		          || o->update_in_backward == TRI_ON)
			&& o->grad_accum == 1,
	};

	FOR_VALS (v, g) {
		if (v->kind == V_STATE && v->param
		    && strcmp(v->state, "grad") != 0) {
			b.state += val_nelem(v) * dtype_info[v->dt].nbytes;
		} else if (v->param && !met[v->param]) {
			met[v->param] = true;
			b.grad += val_nelem(v) * dtype_info[v->dt].nbytes;
		}
	}
	if (pass->planned.plan) {
		b.all = pass->planned.plan->sum.peak;
		b.recomputes = pass->planned.plan->sum.recompute_sec > 0;
	}
	return b;
}

/* Compile with the given options, up to the named passes (NULL: to code).  With
 * the user's own options, records the extents left open. */
static struct compile_trial
try_compile(struct probe *p, const struct options *opt, const char *passes,
            FILE *messages)
{
	const struct dump_request none = { 0 };
	struct compile_trial t = { .step = { .grad = -1, .state = -1 } };
	struct onnx_file *file = NULL;
	struct watch watch = { .stop = p->stop };
	Diag *diag = diag_new("ckc", messages);
	Pass pass = { .diag = diag, .opt = opt, .keep = p->arena,
	              .target = p->c->machine->target,
	              .watch = &watch };
	Graph *g = onnx_import(p->c->model, &p->import, diag, &file);

	p->overwrites |= g && p->c->json && onnx_reads(file, p->c->json);
	if (g && device_set(p->c, g, &watch, p->arena, diag)) {
		bool ok = passes ? pass_run(&pass, g, passes, NULL, &none)
			: explore(&pass, g, NULL, &none)
			&& has_code(p, g, &pass, diag);

		if (!ok)
			advise_more(p->c, &pass);
		t.reach = ok ? DONE : g->props & P_STATIC ? AT_LATER
			: g->props & P_BOUND ? AT_FOLDING : AT_BINDING;
		if (ok && pass.planned.plan)
			t.step = find_step_bytes(p, g, &pass, opt);
		if (t.reach == AT_BINDING && opt == &p->c->opt)
			find_missing(p, g);
	}
	diag_flush(diag);
	diag_free(diag);
	graph_free(pass.planned.reference);
	arena_free(pass.retired);
	graph_free(g);
	onnx_close(file);
	return t;
}

static struct compile_trial
try_with(struct probe *p, const struct options *opt, const char *passes)
{
	char *text = NULL;
	size_t n;
	FILE *messages = open_memstream(&text, &n);
	struct compile_trial t = { .messages = "out of memory\n" };

	if (!messages)
		return t;
	t = try_compile(p, opt, passes, messages);
	fclose(messages);
	t.messages = arena_str(p->arena, text);
	free(text);
	return t;
}

static enum reach
reach_of(struct probe *p, int64_t every, int but)
{
	struct options o = with_extents(p, every, but);

	return try_with(p, &o, "bind,fold").reach;
}

/* A number that fits every missing extent, or 0; *most: the best outcome. */
static int64_t
find_base(struct probe *p, enum reach *most)
{
	static const int64_t some[] = { 3, 1, 2, 4, 6, 7, 8, 12, 16, 32, 64 };

	*most = AT_IMPORT;
	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		enum reach r = reach_of(p, some[i], -1);

		*most = r > *most ? r : *most;
		if (r == DONE)
			return some[i];
	}
	return 0;
}

/* Find symbolic extents that only one number fits: the exporter took it from
 * its example.  Tries some numbers; without a fit the result is unknown. */
static const char *
find_baked(struct probe *p, int64_t base)
{
	const char *names = "";
	int fixed = 0;

	if (!base || (base == 3 && reach_of(p, 5, -1) == DONE))
		return NULL;
	for (int i = 0; i < p->ndim; i++)
		if (reach_of(p, base, i) != DONE)
			names = arena_printf(p->arena, "%s%s'%s'", names,
			                     fixed++ ? ", " : "", p->dim[i]);
	if (!fixed)
		return NULL;
	return arena_printf(p->arena, "%s symbolic in the inputs, but the "
		"graph works with size %jd and not with %jd: the exporter "
		"baked in the example's size; export with dynamic_shapes "
		"(dynamo) or dynamic_axes (TorchScript) and take sizes from "
		"x.shape, not from Python numbers; or bind that size",
		arena_printf(p->arena, fixed > 1 ? "%s are" : "%s is", names),
		(intmax_t)base, (intmax_t)base + 1);
}

/* Extents are unbound: find the outcome for some bound values. */
static void
find_open_outcome(struct probe *p, struct import_options *o, const char **baked)
{
	enum reach most;
	int64_t base;
	struct options opt;
	struct compile_trial t;

	if (p->shapeless) {
		o->unbound = list_missing(p);
		o->outcome = OUTCOME_UNBOUND;
		return;
	}
	base = find_base(p, &most);
	if (most <= AT_BINDING) {
		p->whole = true;
		p->ndim = 0;
		try_with(p, &p->c->opt, "bind");
		base = find_base(p, &most);
	}
	o->unbound = list_missing(p);
	if (most <= AT_BINDING)
		return;                 /* there are other errors */
	*baked = find_baked(p, base);
	o->outcome = OUTCOME_UNBOUND;
	if (!base)
		return;
	opt = with_extents(p, base, -1);
	t = try_with(p, &opt, NULL);
	if (t.reach != DONE) {
		o->outcome = OUTCOME_REFUSED;
		o->refusal = t.messages;
	}
	o->step = t.step;
	o->step.all = 0;                /* only for example extents */
}

static void
find_outcome(struct probe *p, struct import_options *o, const char **baked)
{
	struct compile_trial t = try_with(p, &p->c->opt, NULL);

	o->outcome = OUTCOME_REFUSED;
	o->refusal = t.messages;
	if (t.reach == AT_IMPORT) {
		/* if only weights are missing, shapes still tell more */
		p->import.shapes_do = true;
		t = try_with(p, &p->c->opt, NULL);
		o->step = t.step;
	} else if (t.reach == DONE) {
		o->outcome = OUTCOME_ACCEPTED;
		o->step = t.step;
	} else if (t.reach == AT_BINDING && (p->ndim || p->shapeless)) {
		find_open_outcome(p, o, baked);
	}
	if (o->outcome != OUTCOME_REFUSED)
		o->refusal = NULL;
}

/* ---- the report ---- */

static bool
write_report(const struct cli *c, const struct import_options *o, FILE *page,
             Diag *about_model, Diag *diag)
{
	struct outfile json;
	bool ok;

	if (!c->json)
		return onnx_inspect(c->model, o, page, about_model);
	if (!outfile_open(&json, c->json, diag))
		return false;
	ok = onnx_inspect(c->model, o, json.f, about_model);
	return outfile_close(&json, ok) && ok;
}

/* Whether both streams lead to the same terminal, pipe or file. */
static bool
is_same_file(FILE *a, FILE *b)
{
	struct stat x, y;

	return fstat(fileno(a), &x) == 0 && fstat(fileno(b), &y) == 0
		&& x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The report includes the errors of the compile.  They also go to standard
 * error unless it leads to the same place.  Faults that the report itself finds
 * are not repeated. */
static bool
write_refusal(const struct cli *c, const struct import_options *o, Diag *diag)
{
	char *page = NULL, *again = NULL;
	size_t npage, nagain;
	FILE *report = open_memstream(&page, &npage);
	FILE *messages = open_memstream(&again, &nagain);
	bool ok = report && messages;

	if (ok) {
		Diag *quiet = diag_new("ckc", messages);

		write_report(c, o, report, quiet, diag);
		diag_free(quiet);
	}
	if (report)
		fclose(report);
	if (messages)
		fclose(messages);
	if (ok) {
		fwrite(page, 1, npage, stdout);
		fflush(stdout);                 /* the report comes first */
		if (npage == 0 || !is_same_file(stdout, stderr))
			fputs(o->refusal, stderr);
	}
	free(page);
	free(again);
	return ok ? false : diag_error(diag, "out of memory");
}

bool
verb_inspect(const struct cli *c, const struct import_options *import,
             Arena *arena, Diag *diag)
{
	struct probe p = { .c = c, .import = *import, .arena = arena,
	                   .stop = stop_on_signals() };
	struct import_options o = *import;
	const char *baked = NULL;

	diag_file(diag, c->model);
	if (!outputs_check_report(c->json, c->model, diag))
		return false;
	p.import.quiet = true;
	o.step.grad = o.step.state = -1;
	find_outcome(&p, &o, &baked);
	if (*p.stop)
		return diag_error(diag, "interrupted");
	if (p.overwrites)
		return diag_error(diag, "'%s' is an input and would be "
		                  "overwritten; choose another output name",
		                  c->json);
	o.note = &baked;
	o.nnote = baked != NULL;
	o.json = c->json != NULL;
	o.shapes_do = true;
	return o.outcome == OUTCOME_REFUSED
		? write_refusal(c, &o, diag)
		: write_report(c, &o, stdout, diag, diag);
}
