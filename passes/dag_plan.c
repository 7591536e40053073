/* Plan a bare graph of costs: several sources, the best of all.
 *
 * what    small graphs exactly; training graphs by eviction, by annealing
 *         over what is kept and then over sequences; others by annealing over
 *         sequences.  Every candidate is measured anew before it counts.
 * cost    counted work, scaled with the graph; only a time limit given by the
 *         user makes results depend on the machine
 */
#include "passes/dag.h"

#include <math.h>

static void
note(const struct dag_best *b, const char *what)
{
	if (!b->o->progress)
		return;
	if (b->best.len)
		fprintf(b->o->progress, "\r%-24s +%.3f %%   ", what,
		        100 * (b->best.cost / b->g->cost - 1));
	else
		fprintf(b->o->progress, "\r%-24s none yet   ", what);
	fflush(b->o->progress);
}

/* Within the gap of what no plan can do without. */
static bool
done(const struct dag_best *b)
{
	return dag_stopped(b) || (b->best.len
		&& b->best.cost <= b->g->cost * (1 + b->o->gap));
}

static void
plan_training(struct dag_best *b)
{
	int64_t n = b->g->n, keep = 600000 * n;

	if (keep > 200000000)
		keep = 200000000;
	dag_evict(b, 500000000);
	note(b, "eviction");
	for (int k = 0; k < 2 && !done(b); k++) {
		dag_keep(b, keep);
		note(b, "keep or recompute");
	}
	for (int k = 0; k < 2 && !done(b); k++) {
		dag_anneal(b, keep / 5, k ? 0.5 : 0.2);
		note(b, "sequences");
	}
}

static void
plan_general(struct dag_best *b)
{
	static const double hot[] = { 4, 16, 4, 4, 1 };
	int64_t work = 2000000 * (int64_t)b->g->n;
	int rounds = b->g->n < 300 ? 5 : 3;

	if (work > 1200000000)
		work = 1200000000;
	dag_evict(b, work / 4);
	note(b, "eviction");
	/* away from what eviction found first, then from the best */
	for (int k = 5 - rounds; k < 5 && !done(b); k++) {
		dag_anneal(b, work, hot[k]);
		note(b, "sequences");
	}
}

/* Nothing fits: what is the least budget that does? */
static void
find_least(struct dag_best *b)
{
	struct dag_options o = *b->o;
	const struct dag_options *keep = b->o;
	struct dag_seq least;
	int64_t lo = b->g->working_set > o.budget ? b->g->working_set
		: o.budget + 1, hi = b->g->peak;

	if (b->least.len && b->least.peak < hi)
		hi = b->least.peak;
	b->o = &o;
	for (int k = 0; k < 8 && lo < hi && !dag_stopped(b); k++) {
		o.budget = k ? lo + (hi - lo) / 2 : lo;
		b->best.len = 0;
		if (b->g->n <= DAG_EXACT)
			dag_exact(b);
		else
			dag_evict(b, 50000000);
		if (!b->best.len && !b->g->training && b->g->n > DAG_EXACT)
			dag_anneal(b, 50000000, 4);
		if (b->best.len)
			hi = b->best.peak;
		else
			lo = o.budget + 1;
		note(b, "least budget");
	}
	least = b->least;
	b->best = (struct dag_seq){ .len = 0 };
	b->least = least;
	b->o = keep;
}

struct dag_answer
dag_plan(const struct dag *g, const struct dag_options *o, Arena *arena)
{
	struct dag_best b = { .g = g, .o = o, .arena = arena,
	                      .scratch = arena, .random = 1 };
	struct dag_answer r = { .bound = g->cost, .bound_class = "any" };
	int32_t *order = arena_array(arena, (size_t)g->n, sizeof *order);

	if (o->sec > 0)
		b.end = dag_clock() + o->sec;
	for (int32_t i = 0; i < g->n; i++)
		order[i] = i;
	dag_offer(&b, order, g->n);
	if (!b.best.len && o->budget >= g->working_set) {
		if (g->n <= DAG_EXACT)
			dag_exact(&b);
		else if (g->training)
			plan_training(&b);
		else
			plan_general(&b);
	}
	if (!b.best.len)
		find_least(&b);
	if (o->progress)
		fputs("\r\x1b[K", o->progress);
	r.found = b.best.len > 0;
	r.seq = r.found ? b.best : b.least;
	if (g->n <= DAG_EXACT && r.found)
		r.bound = r.seq.cost;
	return r;
}
