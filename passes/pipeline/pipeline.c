/* The pass: a graph for each stage, and turns.
 *
 * needs   P_BWD, and Node.place of pass autodiff
 * gives   p->planned.pipeline
 * cost    linear in operands times the number of stages
 * refuses what cannot be cut; see places.c, stages.c
 */
#include "passes/pipeline/stages.h"

void
pipeline_free(struct pipeline *l)
{
	for (int k = 0; l && k < l->nstage; k++) {
		graph_free(l->stage[k].planned.reference);
		graph_free(l->stage[k].graph);
	}
}

static bool
has_places(const Graph *g)
{
	FOR_NODES (n, g)
		if (n->place)
			return true;
	return false;
}

bool
pipeline_check(const struct pipeline *l, Diag *d)
{
	if (stages_verify(l, d))
		return true;
	diag_internal(d, "the stages do not fit each other");
	return false;
}

static struct pipeline *
new_pipeline(Pass *p)
{
	struct pipeline *l = arena_alloc(p->keep, sizeof *l);

	l->nrank = (int)p->opt->pp;
	l->nchunk = p->opt->chunks ? (int)p->opt->chunks : 1;
	l->nstage = l->nrank * l->nchunk;
	l->nmicro = (int)p->opt->grad_accum;
	l->stage = arena_array(p->keep, (size_t)l->nstage, sizeof *l->stage);
	turns_schedule(l, p->keep);
	return l;
}

bool
pass_pipeline(Pass *p, Graph *g)
{
	struct stages s;

	if (!p->opt->stages)
		return true;
	if (!has_places(g))
		return diag_error(p->diag, "--pp: expected a graph before pass "
		                  "autodiff, with a loss");
	p->planned.pipeline = new_pipeline(p);
	if (!stages_assign(&s, p, g, p->planned.pipeline->nstage))
		return false;
	p->planned.pipeline->cut = s.cut;
	return stages_cut(&s, p->planned.pipeline)
		&& pipeline_check(p->planned.pipeline, p->diag);
}
