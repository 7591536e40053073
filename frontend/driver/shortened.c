/* Plans of the model with fewer layers.  Without a budget: with LAYERS_LEAST of
 * them and with one more.  Within one: with slots (Graph.slots) for what all
 * layers keep for backward, so that it takes as many bytes as theirs does when
 * backward begins, but for what is resident. */
#include "frontend/driver/shortened.h"

#include <math.h>

#include "frontend/driver/load.h"
#include "frontend/driver/plan_options.h"
#include "passes/auto/stages.h"
#include "passes/explore/explore.h"

bool
may_shorten(const struct cli *c)
{
	const struct options *o = &c->opt;

	return o->ep <= 1 && !o->keep.n && !o->recompute.n && !o->nshard
		&& !o->nprecision && !o->nfrozen_dtype && !o->offload_values.n
		&& !o->strategy_seed && o->remat != REMAT_EVERY
		&& !o->host_memory;
}

/* Whether nothing else reads what layers give that are left out. */
static bool
may_leave_out(const struct shortened *s)
{
	Graph *g = graph_clone(s->graph);
	bool ok = layers_shorten(g, &s->layers, LAYERS_LEAST);

	graph_free(g);
	return ok;
}

void
shorten_model(struct shortened *s, const struct cli *c,
              const struct device_profile *device,
              const volatile sig_atomic_t *stop)
{
	Arena *arena = arena_new();
	struct model_load load;

	s->cli = *c;
	s->cli.plan_only = true;
	s->cli.opt.quiet = s->cli.opt.candidate = s->cli.opt.slim = true;
	s->watch = (struct watch){ .stop = stop };
	load = (struct model_load){ &s->cli, arena, diag_new("ckc", NULL),
	                            &s->watch };
	s->pass = (Pass){ .diag = load.diag, .opt = &s->cli.opt,
		.target = c->machine->target, .keep = arena,
		.watch = &s->watch };
	s->graph = load_model(&load, &s->file);
	if (!s->graph)
		return;
	s->graph->device = device;
	if (!explore_to_loss(&s->pass, s->graph) || diag_errors(load.diag))
		return;
	layers_find(&s->layers, s->graph, arena);
	if (s->layers.n > 0 && !may_leave_out(s))
		s->layers.n = 0;
}

void
shortened_close(struct shortened *s)
{
	for (int i = 0; i <= LAYERS_MOST; i++)
		if (s->sharded[i])
			trial_close(s->sharded[i]);
	if (s->shared)
		return;
	graph_free(s->graph);
	onnx_close(s->file);
	diag_free(s->pass.diag);
	arena_free(s->pass.keep);
}

static bool
shard_one(struct shortened *s, const struct options *o, int32_t keep)
{
	Graph *g = graph_clone(s->graph);
	struct trial *t = arena_array(s->pass.keep, 1, sizeof *t);
	bool ok;

	layers_shorten(g, &s->layers, keep);
	trial_init(t, &s->pass);
	t->options = *o;
	t->options.quiet = t->options.candidate = t->options.slim = true;
	ok = trial_shard(t, g);
	graph_free(g);
	s->sharded[keep] = t;
	return ok;
}

static int32_t
budgeted_layers(const struct shortened *s, const struct options *o)
{
	int32_t most = o->offload == OFFLOAD_AUTO ? WITH_HOST : BUDGETED;

	return s->layers.n < most ? s->layers.n : most;
}

bool
shard_layers(struct shortened *s, const struct options *o,
             const struct auto_job *job)
{
	int32_t first = job->excess > 0 ? budgeted_layers(s, o) : FEW;
	int32_t last = job->excess > 0 ? first : MORE;

	for (int32_t k = first; k <= last && !s->failed; k++)
		if (!s->sharded[k])
			s->failed = !shard_one(s, o, k);
	return !s->failed;
}

/* budget: in bytes; -1: none. */
static void
open_plan(const struct shortened *s, const struct options *o, bool flops,
          int32_t keep, int64_t budget, int64_t slots, struct trial *t,
          struct auto_plan *to)
{
	*to = (struct auto_plan){ 0 };
	trial_init(t, &s->pass);
	t->options = *o;
	t->options.budget_bytes = budget;
	t->options.quiet = t->options.candidate = true;
	t->options.slim = !flops;
	t->options.brief = true;        /* the whole model is large */
	s->sharded[keep]->graph->slots = slots;
	trial_plan_sharded(t, s->sharded[keep]);
	measure_plan(&t->pass, flops, to);
	if (to->ok)
		auto_measure_layers(t->pass.planned.plan, t->graph,
			layers_of_origins(s->graph, &s->layers, keep,
			                  s->pass.keep),
			keep, to, s->pass.keep);
}

static void
plan_layers(const struct shortened *s, const struct options *o, bool flops,
            int32_t keep, int64_t budget, int64_t slots, struct auto_plan *to)
{
	struct trial t;

	open_plan(s, o, flops, keep, budget, slots, &t, to);
	graph_free(t.pass.planned.reference);
	trial_close(&t);
}

void
predict_plan(const struct shortened *s, const struct options *o, bool flops,
             struct auto_plan *to)
{
	struct auto_plan few, more;

	plan_layers(s, o, flops, FEW, -1, 1, &few);
	*to = few;
	if (!few.ok)
		return;
	plan_layers(s, o, flops, MORE, -1, 1, &more);
	*to = more;
	if (more.ok)
		auto_extend(&few, &more, s->layers.n - FEW, to);
	to->predicted = true;
}

/* The forward order of the model with so many layers. */
static bool
list_line(const struct shortened *s, const struct options *o,
          const struct auto_config *c, int32_t keep, struct few_layers *f)
{
	struct trial *t = arena_array(s->pass.keep, 1, sizeof *t);

	trial_init(t, &s->pass);
	t->options = *o;
	t->options.pp = c->pp;
	t->options.stages = true;
	t->options.quiet = t->options.candidate = t->options.slim = true;
	if (!trial_differentiate(t, s->sharded[keep]))
		return false;
	t->pass.scratch = s->pass.keep;
	forward_line_list(&f->line, &t->pass, t->graph);
	f->differentiated = t->graph;
	return true;
}

void
predict_pipeline(const struct shortened *s, const struct options *o,
                 const struct auto_request *r, const struct auto_config *c,
                 struct auto_plan *to)
{
	struct few_layers f = { .few = MORE, .layers = s->layers.n };
	struct auto_plan few, more;
	struct trial t;

	plan_layers(s, o, false, FEW, -1, 1, &few);
	*to = few;
	if (!few.ok)
		return;
	open_plan(s, o, false, MORE, -1, 1, &t, &more);
	*to = more;
	if (!more.ok)
		return;
	auto_extend(&few, &more, s->layers.n - FEW, to);
	to->predicted = true;
	f.plan = t.pass.planned.plan;
	f.g = t.graph;
	f.layer = layers_of_origins(s->graph, &s->layers, MORE, s->pass.keep);
	to->ok = list_line(s, o, c, MORE, &f)
		&& auto_pipeline(r, c, &f, to, s->pass.keep);
}

/* Bytes of all layers' plan, from that of a few with as many slots. */
static double
peak_of_all(const struct auto_plan *p, int64_t few, int64_t layers,
            int64_t slots)
{
	double saved = p->layer_bytes - p->layer_resident;

	return (double)p->peak + (double)(layers - few) * p->layer_resident
		+ (double)(layers - few * slots) * saved
		- (double)(slots - 1) * p->ends_saved;
}

void
predict_point(const struct shortened *s, const struct options *o,
              int64_t excess, struct auto_plan *refusal, struct auto_point *to)
{
	const int32_t few = budgeted_layers(s, o), n = s->layers.n;
	const int64_t slots = n / few;
	struct auto_plan whole, less;
	double peak, budget, rest;

	plan_layers(s, o, false, few, -1, 1, &whole);
	*refusal = whole;
	if (!whole.ok)
		return;
	peak = peak_of_all(&whole, few, n, 1);
	budget = peak - (double)excess
		- (n - few) * whole.layer_resident;
	/* of layers that fill no slot: at most what is not resident */
	rest = (double)(n - few * slots) / n;
	budget -= rest * fmax(budget - (double)whole.resident, 0);
	plan_layers(s, o, false, few, (int64_t)budget, slots, &less);
	*refusal = less;
	if (less.ok) {
		auto_gain(&whole, &less, few, n, (double)o->grad_accum, to);
		to->bytes = peak - peak_of_all(&less, few, n, slots);
	} else if (less.least > 0) {
		to->bytes = (double)excess + budget - (double)less.least;
	}
	refusal->ok = false;
}
