/* Plan each stage of a pipeline as a graph of its own, for the same budget. */
#include "passes/explore/plan_stages.h"

#include "passes/explore/variants.h"
#include "passes/pipeline/pipeline.h"

static bool
plan_one_stage(const struct pass_walk *w, Pass *p, struct pipeline_stage *s)
{
	struct pass_walk walk = *w;
	Pass stage = *p;

	stage.planned = (struct planned){ 0 };
	plan_variants(&walk, &stage, s->graph);
	s->planned = stage.planned;
	if (stage.planned.plan)
		s->slot_bytes = stage.planned.plan->slot_bytes;
	p->retired = stage.retired;
	p->planned.refused |= stage.planned.refused;
	return walk.ok;
}

void
plan_stages(struct pass_walk *w, Pass *p, Graph *g)
{
	const struct pass_info *optim = pass_that_gives(P_UPD);
	struct pipeline *l;

	if (!pass_walk_reach(w, p, g, optim) || w->stopped)
		return;
	l = p->planned.pipeline;
	for (int k = 0; k < l->nstage && w->ok; k++)
		w->ok = plan_one_stage(w, p, &l->stage[k]);
	w->ok = w->ok && pipeline_check(l, p->diag);
}
