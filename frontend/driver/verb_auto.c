/* --auto: each configuration is planned by a child, which does all that ckc
 * does with the options of the line that is printed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "frontend/driver/auto_request.h"
#include "frontend/driver/host.h"
#include "frontend/driver/load.h"
#include "frontend/driver/outputs.h"
#include "frontend/driver/plan_options.h"
#include "frontend/driver/shortened.h"
#include "frontend/driver/verbs.h"
#include "frontend/driver/workers.h"
#include "runtime/support/now.h"
#include "ir/base/outfile.h"

struct auto_driver {
	struct cli *cli;
	struct watch *watch;
	Arena *arena;
	Diag *diag;
	const struct device_profile *device;    /* NULL: the default */
	const char *device_name;
	struct auto_request request;
	struct auto_job *job;           /* those of this call, */
	struct shortened **from;        /* the model that predicts each; NULL:
	                                 * it is planned */
	struct shortened **model;       /* those loaded */
	int nmodel;
	size_t model_cap;
	double end;                     /* of the search, by now_sec; 0: none */
};

/* In a child: from the whole model, of which stages are parts. */
static void
predict_job(struct auto_driver *d, struct shortened *from, struct auto_job *job)
{
	struct auto_config whole = job->config;
	struct options o;

	whole.pp = 1;
	o = auto_configured(d->cli, &d->request, &whole, job->budget, d->arena);
	if (!shard_layers(from, &o, job))
		return;
	if (job->excess > 0) {
		predict_point(from, &o, job->excess, &job->plan, &job->point);
		return;
	}
	if (job->config.pp > 1)
		predict_pipeline(from, &o, &d->request, &job->config,
		                 &job->plan);
	else
		predict_plan(from, &o, job->flops, &job->plan);
}

/* Whether the graphs of both are equal up to pass loss. */
static bool
has_same_model(const struct auto_config *a, const struct auto_config *b)
{
	return a->batch == b->batch && a->halves == b->halves
		&& (a->dp > 1) == (b->dp > 1)
		&& (a->accum > 1) == (b->accum > 1);
}

/* ... up to autodiff, but for the number of replicas. */
static bool
has_same_shards(const struct auto_config *a, const struct auto_config *b)
{
	return has_same_model(a, b) && a->tp == b->tp && a->sp == b->sp;
}

static struct shortened *
add_model(struct auto_driver *d)
{
	d->model = arena_grow(d->arena, d->model, (size_t)d->nmodel,
	                      &d->model_cap, (size_t)d->nmodel + 1,
	                      sizeof *d->model);
	d->model[d->nmodel] = arena_array(d->arena, 1, sizeof **d->model);
	return d->model[d->nmodel++];
}

/* The model for the job's micro-batch on its ranks. */
static struct shortened *
find_model(struct auto_driver *d, const struct auto_job *job,
           const struct options *o)
{
	const struct shortened *like = NULL;
	struct shortened *s;
	struct cli c = *d->cli;

	for (int i = 0; i < d->nmodel; i++) {
		if (has_same_shards(&d->model[i]->like, &job->config))
			return d->model[i];
		if (has_same_model(&d->model[i]->like, &job->config))
			like = d->model[i];
	}
	s = add_model(d);
	c.opt = *o;
	if (like)
		*s = *like;
	else
		shorten_model(s, &c, d->device, d->watch->stop);
	s->like = job->config;
	s->shared = like;
	s->failed = false;
	for (int i = 0; i <= LAYERS_MOST; i++)
		s->sharded[i] = NULL;
	return s;
}

/* Whether other configurations have the same shards: then this process makes
 * them, else the child of the job. */
static bool
is_shared(const struct auto_config *c)
{
	return c->dp > 1 || c->accum > 1;
}

/* The model that predicts the job's plan; NULL: it cannot be shortened. */
static struct shortened *
model_of(struct auto_driver *d, const struct auto_job *job)
{
	struct auto_config whole = job->config;
	struct options o;
	struct shortened *s;

	whole.pp = 1;
	if (job->exact || job->config.ep > 1 || !may_shorten(d->cli))
		return NULL;
	o = auto_configured(d->cli, &d->request, &whole, false, d->arena);
	s = find_model(d, job, &o);
	if (s->layers.n > 0 && !is_shared(&job->config))
		return s;
	return s->layers.n > 0 && shard_layers(s, &o, job) ? s : NULL;
}

/* Whether a plan of little effort predicts that of the job: with host memory
 * for all of them, plans of small graphs take seconds each. */
static bool
is_estimated(const struct auto_driver *d, const struct auto_job *job)
{
	return job->budget && !job->exact
		&& (d->cli->opt.offload == OFFLOAD_AUTO || job->config.offload);
}

/* In a child. */
static void
plan_job(void *of, int i, void *result)
{
	struct auto_driver *d = of;
	struct auto_job *job = result;
	struct cli c = *d->cli;

	job->late = false;
	if (job->flops)
		d->from[i] = model_of(d, job);
	if (d->from[i])
		predict_job(d, d->from[i], job);
	/* few layers may be refused for what many are not */
	if (d->from[i] && (job->plan.ok || job->point.bytes > 0))
		return;
	c.opt = auto_configured(d->cli, &d->request, &job->config, job->budget,
	                        d->arena);
	c.opt.brief = is_estimated(d, job);
	plan_options(&c, d->device, job->flops, d->watch->stop, &job->plan);
	job->plan.predicted = c.opt.brief;
	if (!c.opt.brief || job->plan.ok)
		return;
	/* what takes longer finds plans of less memory */
	c.opt.brief = false;
	plan_options(&c, d->device, job->flops, d->watch->stop, &job->plan);
}

/* Many batches are only asked for that are too large: their children load the
 * model. */
static void
prepare_job(void *of, int i)
{
	struct auto_driver *d = of;

	d->from[i] = d->job[i].flops ? NULL : model_of(d, &d->job[i]);
}

static void
lose_job(void *of, int i, const char *why)
{
	struct auto_job *job = &((struct auto_driver *)of)->job[i];

	job->late = false;
	job->plan = (struct auto_plan){ .ok = false };
	snprintf(job->plan.why, AUTO_WHY, "%s", why);
}

/* When children are ended, by now_sec; 0: never. */
static double
end_of(const struct auto_driver *d, const struct auto_job *job)
{
	return job->proof && d->end <= 0
		? now_sec() + d->request.exact_sec : d->end;
}

static bool
plan_jobs(void *of, struct auto_job *job, int n)
{
	struct auto_driver *d = of;
	const struct workers w = { .work = plan_job, .lost = lose_job,
		.of = d, .result = job, .size = sizeof *job,
		.stop = d->watch->stop, .end = end_of(d, job),
		.prepare = prepare_job };

	d->job = job;
	d->from = arena_array(d->arena, (size_t)n + 1, sizeof *d->from);
	for (int i = 0; i < n; i++)
		job[i].late = true;
	return workers_run(&w, n);
}

/* Matrices of experts are parameters of three dims. */
static bool
may_have_experts(const Graph *g)
{
	FOR_VALS (v, g)
		if (v->kind == V_PARAM && v->shape.rank == 3)
			return true;
	return false;
}

/* Experts are found by passes, which one batch is as good for as another. */
static void
find_experts(struct auto_driver *d)
{
	const struct auto_request *r = &d->request;
	struct auto_config one = r->fixed;
	struct cli c = *d->cli;
	struct shortened s = { 0 };

	one.tp = one.dp = one.pp = one.ep = one.accum = 1;
	one.sp = one.halves = one.offload = false;
	one.zero = one.zero_group = 0;
	one.batch = r->may.batch ? r->samples : one.batch;
	c.opt = auto_configured(d->cli, r, &one, false, d->arena);
	shorten_model(&s, &c, d->device, d->watch->stop);
	if (s.graph)
		auto_take_experts(d->cli, s.graph, &d->request);
	shortened_close(&s);
}

static const char *
output_of(const struct auto_driver *d)
{
	return outputs_name(d->cli->model, d->cli->out, d->arena).so;
}

static void
write_lines(const struct auto_driver *d, const struct auto_found *f,
            struct auto_lines *l, const char **word, int n)
{
	const struct auto_config *c = &f->candidate[f->order[0]].config;
	long long ranks = auto_ranks(c);

	l->compile = arena_printf(d->arena, "ckc %s",
	                          auto_line(word, n, d->arena));
	l->run = arena_printf(d->arena, "ckrun %s", auto_line(
		&(const char *){ output_of(d) }, 1, d->arena));
	if (ranks > 1)
		l->run = arena_printf(d->arena, "%s --ranks %lld", l->run,
		                      ranks);
}

/* Without a plan: the reasons are all that there is to report. */
static bool
refuse(const struct auto_driver *d, const struct auto_found *f)
{
	const struct auto_candidate *least = NULL, *c = f->candidate;

	if (f->stopped)
		return diag_error(d->diag, "--auto: no configuration was "
			"planned within --plan-time %g; try: a longer one",
			f->request.seconds);
	for (int64_t i = 0; i < f->n; i++)
		if (c[i].plan.least > 0 && !c[i].plan.at_least
		    && (!least || c[i].plan.least < least->plan.least))
			least = &c[i];
	if (least)
		return diag_error(d->diag, "--auto: no configuration fits into "
			"%lld B a device; the least that works%s: %lld B, with "
			"%s; try: --memory-budget %lldB",
			(long long)f->request.budget,
			f->request.may.pp ? " without --pp" : "",
			(long long)least->plan.least,
			auto_options(&f->request, &least->config, d->arena),
			(long long)least->plan.least);
	if (f->n == 0)
		return diag_error(d->diag, "--auto: no configuration has the "
			"options given: expected a micro-batch that divides "
			"--global-batch %lld, found none",
			(long long)f->request.samples);
	return diag_error(d->diag, "--auto: no configuration can be planned; "
	                  "%s: %s", auto_options(&f->request, &c->config,
	                                         d->arena), c->plan.why);
}

static bool
write_json(const struct auto_driver *d, const struct auto_found *f,
           const struct auto_lines *l)
{
	struct outfile o;

	if (!d->cli->json)
		return true;
	if (!outfile_open(&o, d->cli->json, d->diag))
		return false;
	auto_write_json(f, l, o.f, d->arena);
	return outfile_close(&o, true);
}

/* The model as imported, from which the request follows. */
static bool
ask(struct auto_driver *d)
{
	struct model_load load = { d->cli, d->arena, d->diag, d->watch };
	struct onnx_file *file = NULL;
	bool shapes = d->cli->plan_only, ok;
	Graph *g;

	d->cli->plan_only = true;
	g = load_model(&load, &file);
	d->cli->plan_only = shapes;
	ok = g && device_set(d->cli, g, d->watch, d->arena, d->diag)
		&& auto_request(d->cli, g, &d->request, d->arena, d->diag);
	if (ok) {
		d->device = g->device;
		d->device_name = device_of(g)->name;
		if (d->request.devices > 1 && may_have_experts(g))
			find_experts(d);
	}
	graph_free(g);
	onnx_close(file);
	return ok;
}

bool
verb_auto(struct cli *c, struct watch *watch, Arena *arena, Diag *diag,
          const char ***next, int *n)
{
	struct auto_driver d = { .cli = c, .watch = watch, .arena = arena,
	                         .diag = diag };
	struct auto_found found;
	struct auto_lines lines = { .model = c->model };
	FILE *out = c->json && outfile_is_stdout(c->json) ? stderr : stdout;
	struct outputs files = { 0 };
	bool ok;

	if (c->out)
		files = outputs_name(c->model, c->out, arena);
	files.json = c->json;
	diag_file(diag, c->model);
	if (!outputs_check(&files, c->model, NULL, diag) || !ask(&d))
		return false;
	lines.device = d.device_name;
	d.end = c->opt.plan_sec > 0 ? now_sec() + c->opt.plan_sec : 0;
	ok = auto_search(&d.request, plan_jobs, &d, &found,
	                 c->opt.quiet || !isatty(2) ? NULL : stderr, arena);
	while (d.nmodel > 0)
		shortened_close(d.model[--d.nmodel]);
	if (!ok)
		return diag_error(diag, "interrupted");
	if (found.nplanned == 0)
		return write_json(&d, &found, &lines) && refuse(&d, &found);
	*n = auto_arguments(c, &d.request,
	                    &found.candidate[found.order[0]].config,
	                    output_of(&d), next, arena);
	write_lines(&d, &found, &lines, *next, *n);
	auto_print(&found, &lines, out, arena);
	return write_json(&d, &found, &lines);
}
