#include "frontend/driver/plan_options.h"

#include <stdio.h>

#include "frontend/driver/load.h"
#include "passes/explore/explore.h"
#include "passes/pipeline/pipeline.h"
#include "passes/report/report.h"
#include "passes/report/step_report.h"

/* Tokens of a sample, if the first input is one of ids. */
static int64_t
tokens_of(const Graph *g)
{
	const Val *v = graph_batch_input(g);

	return v && dtype_info[v->dt].cls == 'i' && v->shape.rank == 2
		? v->shape.dim[1] : 0;
}

static void
count_flops(const Pass *p, struct auto_plan *to)
{
	const struct memory_report none = { 0 };
	const Plan *plan = p->planned.plan;

	to->flops = flop_report(p, plan, &none).model;
	to->peak_flops = step_use(p, plan).peak;
	to->tokens = tokens_of(p->planned.reference);
}

static bool
all_planned(const struct pipeline *l)
{
	for (int k = 0; k < l->nstage; k++)
		if (!l->stage[k].planned.plan)
			return false;
	return true;
}

static void
measure_stage(const Pass *p, const struct pipeline_stage *s,
              struct auto_plan *to)
{
	const int64_t accum = p->opt->grad_accum;
	struct auto_plan second = { 0 };

	auto_measure(s->planned.plan, accum, to, p->keep);
	if (!s->second.graph)
		return;
	auto_measure(s->second.planned.plan, accum, &second, p->keep);
	auto_mix_plans(to, &second, stage_second_share(s, (int)accum), accum);
}

static void
measure_stages(const Pass *p, const struct pipeline *l, struct auto_plan *to)
{
	struct auto_plan *s = arena_array(p->keep, (size_t)l->nstage,
	                                  sizeof *s);

	for (int k = 0; k < l->nstage; k++)
		measure_stage(p, &l->stage[k], &s[k]);
	auto_join_stages(s, l->nstage, l->nrank, p->opt->grad_accum,
	                 l->nchunk > 1 || l->zero_bubble
	                 ? pipeline_seconds(l, NULL) : 0, to);
}

/* The smallest budget of the stage that does not fit. */
static int64_t
least_of_stages(const struct pipeline *l)
{
	int64_t least = 0;

	for (int k = 0; k < l->nstage; k++)
		if (l->stage[k].planned.refused
		    && l->stage[k].planned.minimum_peak > least)
			least = l->stage[k].planned.minimum_peak;
	return least;
}

void
measure_plan(const Pass *p, bool flops, struct auto_plan *to)
{
	const Plan *plan = p->planned.plan;
	const struct pipeline *l = p->planned.pipeline;

	if (l && all_planned(l) && !diag_errors(p->diag)) {
		measure_stages(p, l, to);
		return;
	}
	if (plan && !diag_errors(p->diag)) {
		auto_measure(plan, p->opt->grad_accum, to, p->keep);
		if (flops)
			count_flops(p, to);
		return;
	}
	snprintf(to->why, AUTO_WHY, "%s", diag_reason(p->diag));
	to->least = !p->planned.refused ? 0 : l ? least_of_stages(l)
		: p->planned.minimum_peak;
	to->at_least = to->least > 0 && l;
}

void
plan_options(struct cli *c, const struct device_profile *device, bool flops,
             const volatile sig_atomic_t *stop, struct auto_plan *to)
{
	struct watch watch = { .stop = stop };
	Diag *diag = diag_new("ckc", NULL);
	Arena *arena = arena_new();
	struct model_load load = { c, arena, diag, &watch };
	struct onnx_file *file = NULL;
	Pass p = { .diag = diag, .opt = &c->opt, .target = c->machine->target,
	           .keep = arena, .watch = &watch };
	Graph *g;

	*to = (struct auto_plan){ 0 };
	c->plan_only = true;
	c->opt.quiet = c->opt.candidate = true;
	c->opt.slim = !flops;
	g = load_model(&load, &file);
	if (g)
		g->device = device;
	if (g && !explore(&p, g, NULL, NULL))
		p.planned.plan = NULL;
	measure_plan(&p, flops, to);
}
