/* The graph of half a batch. */
#include "passes/explore/halves.h"

#include "passes/explore/trial.h"
#include "passes/passes.h"

static void
halve_samples(Graph *g)
{
	const Val first = *graph_batch_input(g);

	FOR_VALS (v, g) {
		if (v->def)
			v->shape = (Shape){ .rank = -1 };
		for (int i = 0; v->kind == V_INPUT && i < v->shape.rank; i++)
			if (holds_samples(v, i, &first))
				v->shape.dim[i] /= 2;
	}
	g->halves = HALVES_ONE;
}

static bool
refuse_halves(Pass *p, const char *why)
{
	return diag_error(p->diag, "--halves on: cannot run the batch as two "
	                  "halves: %s; try: --halves off", why);
}

/* Inputs have their samples along the first dim, and no other input looks as if
 * it had half of them. */
static bool
check_inputs(Pass *p, const Graph *g)
{
	const Val *first = graph_batch_input(g);
	int64_t half = first->shape.dim[0] / 2;

	FOR_VALS (v, g) {
		if (v->kind != V_INPUT || v->shape.rank < 1)
			continue;
		for (int i = 1; i < v->shape.rank; i++)
			if (holds_samples(v, i, first))
				return refuse_halves(p, arena_printf(
					p->keep, "input '%s' has the batch as "
					"dim %d, expected dim 0", v->name, i));
		if (!holds_samples(v, 0, first) && v->shape.dim[0] == half)
			return refuse_halves(p, arena_printf(
				p->keep, "input '%s' has %lld rows, as half "
				"the batch has; use a larger batch", v->name,
				(long long)half));
	}
	return true;
}

/* Why the graph cannot have a loss, with half the samples or with all; NULL: it
 * can. */
static const char *
why_no_loss(Pass *p, const Graph *g, bool half)
{
	struct trial t;
	struct pass_walk w = { .next = pass_that_gives(P_STATIC), .ok = true };
	const char *why = NULL;

	trial_init(&t, p);
	trial_begin(&t, g);
	if (half)
		halve_samples(t.graph);
	if (!pass_walk_reach(&w, &t.pass, t.graph, pass_that_gives(P_LOSS) + 1)
	    || diag_errors(t.pass.diag))
		why = arena_printf(p->keep, "%s", diag_reason(t.pass.diag));
	trial_close(&t);
	return why;
}

bool
halve_batch(Pass *p, Graph *g)
{
	const Val *first = graph_batch_input(g);
	int64_t n = first ? first->shape.dim[0] : 0;
	const char *why;

	if (n < 2 || n % 2)
		return refuse_halves(p, arena_printf(
			p->keep, "expected an even number of samples along the "
			"first dim of an input, found %lld", (long long)n));
	if (!check_inputs(p, g))
		return false;
	why = why_no_loss(p, g, true);
	if (why && why_no_loss(p, g, false))
		return true;            /* the passes will say why */
	if (why)
		return refuse_halves(p, arena_printf(
			p->keep, "the file allows %lld samples and not %lld: "
			"%s; export it with a dynamic batch size",
			(long long)n, (long long)n / 2, why));
	halve_samples(g);
	return true;
}
