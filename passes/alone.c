/* A batch of one sample.
 *
 * Dims of 1 hide what mixes samples: their mean, greatest or first one is the
 * sample itself, and is folded before pass deal looks.
 *
 * what    where the file has a name for the size of the batch, the graph is
 *         taken through the first passes with two samples, too.  Dealt, both
 *         must add up over samples in the same places
 * gives   p->agrees, or p->alone, with which pass deal refuses
 * cost    the first passes once more, for batches of one alone
 */
#include "passes/alone.h"

#include "passes/offer.h"
#include "passes/shard/shard.h"

#include <string.h>

/* The first input that may hold samples, as pass deal has it. */
static const Val *
first_input(const Graph *g)
{
	FOR_VALS (v, g)
		if (v->kind == V_INPUT && v->shape.rank > 0)
			return v;
	return NULL;
}

Graph *
alone_twice(const Pass *p, const Graph *of)
{
	const struct options *o = p->opt;
	const Val *first = first_input(of);
	const char *name = first ? first->dim_name[0] : NULL;
	Graph *g;

	if (!name || first->shape.dim[0] != 1
	    || !(o->dp || o->grad_accum > 1 || o->eval))
		return NULL;
	g = graph_clone(of);
	FOR_VALS (v, g) {
		if (v->def)
			v->shape = (Shape){ .rank = -1 };
		if (v->kind == V_INPUT && v->shape.rank > 0 && v->dim_name[0]
		    && !strcmp(v->dim_name[0], name))
			v->shape.dim[0] = 2;
	}
	return g;
}

void
alone_check(Pass *p, const Graph *g, Graph *twice,
            const struct pass_info *fold)
{
	const struct dump_request none = { NULL, NULL };
	struct options o = *p->opt;
	Pass trial = { .opt = &o, .target = p->target, .keep = p->keep,
		.baseline_peak = -1, .minimum_peak = -1, .watch = p->watch,
		.diag = diag_new("ckc", NULL) };

	/* a file that allows no other size tells nothing */
	if (run_from(&trial, twice, fold, 0, "loss", &none)
	    && !diag_errors(trial.diag)) {
		trial.scratch = arena_new();
		trial.agrees = true;
		p->agrees = deal_agrees(&trial, g, twice, &p->alone);
		arena_free(trial.scratch);
	}
	diag_free(trial.diag);
	graph_free(trial.forward);
}
