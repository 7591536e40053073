/* The graph of half a batch. */
#include "passes/explore/halves.h"

#include "passes/explore/trial.h"
#include "passes/passes.h"

#include <string.h>

/* Whether dim i of an input is that of the samples, which `first` has as its
 * first one. */
static bool
is_sample_dim(const Val *v, int i, const Val *first)
{
	const char *name = first->dim_name[0];

	if (!name)
		return i == 0 && v->shape.dim[0] == first->shape.dim[0];
	return v->dim_name[i] && strcmp(v->dim_name[i], name) == 0;
}

static void
halve_samples(Graph *g)
{
	const Val first = *graph_batch_input(g);

	FOR_VALS (v, g) {
		if (v->def)
			v->shape = (Shape){ .rank = -1 };
		for (int i = 0; v->kind == V_INPUT && i < v->shape.rank; i++)
			if (is_sample_dim(v, i, &first))
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
			if (is_sample_dim(v, i, first))
				return refuse_halves(p, arena_printf(
					p->keep, "input '%s' has the batch as "
					"dim %d, expected dim 0", v->name, i));
		if (!is_sample_dim(v, 0, first) && v->shape.dim[0] == half)
			return refuse_halves(p, arena_printf(
				p->keep, "input '%s' has %lld rows, as half "
				"the batch has; use a larger batch", v->name,
				(long long)half));
	}
	return true;
}

/* Whether the file allows half as many samples. */
static bool
allows_half(Pass *p, const Graph *g)
{
	struct trial t;
	struct pass_walk w = { .next = pass_that_gives(P_STATIC), .ok = true };
	bool ok;

	trial_init(&t, p);
	trial_begin(&t, g);
	halve_samples(t.graph);
	ok = pass_walk_reach(&w, &t.pass, t.graph, pass_that_gives(P_LOSS) + 1)
		&& !diag_errors(t.pass.diag);
	trial_close(&t);
	return ok;
}

bool
halve_batch(Pass *p, Graph *g)
{
	const Val *first = graph_batch_input(g);
	int64_t n = first ? first->shape.dim[0] : 0;

	if (n < 2 || n % 2)
		return refuse_halves(p, arena_printf(
			p->keep, "expected an even number of samples along the "
			"first dim of an input, found %lld", (long long)n));
	if (!check_inputs(p, g))
		return false;
	if (!allows_half(p, g))
		return refuse_halves(p, arena_printf(
			p->keep, "the file allows %lld samples and not %lld; "
			"export it with a dynamic batch size",
			(long long)n, (long long)n / 2));
	halve_samples(g);
	return true;
}
