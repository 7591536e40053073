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
	if (l)
		pipeline_free(l->evaluation);
	for (int k = 0; l && k < l->nstage; k++) {
		graph_free(l->stage[k].planned.reference);
		graph_free(l->stage[k].graph);
		graph_free(l->stage[k].second.graph);
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

/* By value: the stage of the bound node that makes it. */
static int *
stages_of_values(const struct stages *s)
{
	int *of = arena_array(s->p->keep, s->g->nval, sizeof *of);

	FOR_VALS (v, s->g)
		of[val_id(s->g, v)] = v->def ? s->of_node[v->def] : -1;
	return of;
}

static struct pipeline *
new_pipeline(const struct stages *s)
{
	Pass *p = s->p;
	struct pipeline *l = arena_alloc(p->keep, sizeof *l);

	/* evaluation takes no turns: each stage is on its own */
	l->nchunk = p->stages || !p->opt->chunks ? 1 : (int)p->opt->chunks;
	l->nrank = s->n / l->nchunk;
	l->zero_bubble = !p->stages && p->opt->zero_bubble;
	l->nstage = s->n;
	l->nmicro = s->nmicro;
	l->cut = s->cut;
	l->first_tag = s->first_tag;
	l->of_val = stages_of_values(s);
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
	if (!p->stages && !has_places(g))
		return diag_error(p->diag, "--pp: expected a graph before pass "
		                  "autodiff, with a loss");
	if (!(p->stages ? stages_assign_like(&s, p, g)
	      : stages_assign(&s, p, g)))
		return false;
	p->planned.pipeline = new_pipeline(&s);
	return stages_cut(&s, p->planned.pipeline)
		&& pipeline_check(p->planned.pipeline, p->diag);
}
