/* A batch of one sample.
 *
 * Dims of 1 hide what mixes samples: their mean, greatest or first one is the
 * sample itself, and is folded before pass deal looks.
 *
 * what    where the file has a name for the size of the batch, the graph is
 *         taken through the first passes with two samples, too.  Dealt, both
 *         must add up over samples in the same places
 * gives   p->alone, with which pass deal refuses, and the rows of outputs
 * cost    the first passes once more, for batches of one alone
 */
#include "passes/alone.h"

#include "passes/canon/canon.h"
#include "passes/offer.h"
#include "passes/shard/shard.h"

#include <string.h>

Graph *
alone_twice(const Pass *p, const Graph *of)
{
	const struct options *o = p->opt;
	const Val *first = graph_batch_input(of);
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

/* The rows that outputs have there. */
static const struct output_rows *
rows_of(Pass *trial, Graph *two)
{
	struct output_rows *row;
	int n = 0;

	if (!two || !canon_evaluate(trial, two))
		return NULL;
	row = arena_array(trial->keep, (size_t)two->nval + 1, sizeof *row);
	total_find_rows(trial, two);
	FOR_VALS (v, two)
		if (v->output)
			row[n++] = (struct output_rows){
				arena_printf(trial->keep, "%s", v->name),
				v->rows };
	return row;
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
		trial.alone.agrees = true;
		p->alone.agrees = deal_agrees(&trial, g, twice, &p->alone.why);
		p->alone.row = rows_of(&trial, trial.forward);
		arena_free(trial.scratch);
	}
	diag_free(trial.diag);
	graph_free(trial.forward);
}
