/* The graph of another batch size.
 *
 * Pass replicate sees one batch size, which may hide ops that mix samples: with
 * one sample, the mean, the greatest or the first is the sample itself and is
 * folded away, and a reshape to fixed extents may keep samples apart by
 * chance.
 *
 * what    if the file names the batch size, the graph for TIMES as many
 *         samples goes through the first passes, too.  Placement over replicas,
 *         both graphs must reduce over samples in the same places
 * gives   p->result.other_batch, with which pass replicate refuses, and rows of
 *         outputs
 * cost    the first passes once more
 */
#include "passes/explore/other_batch.h"

#include "passes/data_parallel/data_parallel.h"
#include "passes/evaluation/evaluation.h"

#include <string.h>

/* Seldom a divisor of extents that a model fixes. */
enum { TIMES = 13 };

/* Give dims of the samples TIMES their extent; false: some dim follows from it,
 * or is too large. */
static bool
enlarge_batch_dim(Val *v, const Val *first)
{
	for (int i = 0; i < v->shape.rank; i++) {
		const char *dim = v->dim_name[i];
		bool is_batch = holds_samples(v, i, first);

		if ((dim && !is_batch && strstr(dim, first->dim_name[0]))
		    || (is_batch && !mul_ok(v->shape.dim[i], TIMES,
		                            &v->shape.dim[i])))
			return false;
	}
	return true;
}

Graph *
other_batch_graph(const Pass *p, const Graph *of)
{
	const struct options *o = p->opt;
	const Val *first = graph_batch_input(of);
	Graph *g;
	bool ok = true;

	if (!first || !first->dim_name[0] || p->result.other_batch.is_other
	    || !(o->dp || o->grad_accum > 1 || o->eval || of->halves))
		return NULL;
	g = graph_clone(of);
	FOR_VALS (v, g) {
		if (v->def)
			v->shape = (Shape){ .rank = -1 };
		else if (v->kind == V_INPUT)
			ok = ok && enlarge_batch_dim(v, first);
	}
	if (ok)
		return g;
	graph_free(g);
	return NULL;
}

/* The rows that outputs have there. */
static const struct output_rows *
find_output_rows(Pass *trial, Graph *g)
{
	struct output_rows *row;
	int n = 0;

	if (!g || !evaluation_graph(trial, g))
		return NULL;
	row = arena_array(trial->keep, (size_t)g->nval + 1, sizeof *row);
	FOR_VALS (v, g) {
		if (!v->output || val_id(g, v) == g->loss)
			continue;
		row[n] = loss_formula_find_rows(trial, g, val_id(g, v));
		row[n++].name = arena_printf(trial->keep, "%s", v->name);
	}
	return row;
}

void
other_batch_check(Pass *p, const Graph *g, Graph *other_batch)
{
	struct pass_walk w = { .next = pass_that_gives(P_STATIC), .ok = true };
	struct options o = *p->opt;
	Pass trial = { .opt = &o, .target = p->target, .keep = p->keep,
		.watch = p->watch,
		.diag = diag_new("ckc", NULL),
		.result.other_batch = { .is_other = true } };

	if (!mul_ok(o.fold_limit, TIMES, &o.fold_limit))
		o.fold_limit = INT64_MAX;
	/* a file that allows no other size tells nothing */
	if (pass_walk_reach(&w, &trial, other_batch,
	                    pass_that_gives(P_LOSS) + 1)
	    && !diag_errors(trial.diag)) {
		trial.scratch = arena_new();
		trial.result.other_batch.agrees = true;
		p->result.other_batch.agrees = dp_agrees(&trial, g, other_batch,
		                                  &p->result.other_batch.why);
		/* all outputs, as the program that evaluates has */
		o.forward_only = true;
		o.output.n = 0;
		p->result.other_batch.row = find_output_rows(
			&trial, trial.result.forward);
		arena_free(trial.scratch);
	}
	diag_free(trial.diag);
	graph_free(trial.result.forward);
}
