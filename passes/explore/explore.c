/* The whole pipeline with its searches. */
#include "passes/explore/explore.h"

#include "passes/explore/choose_zero.h"
#include "passes/explore/low_memory.h"
#include "passes/explore/other_batch.h"
#include "passes/explore/suggest_tp.h"

bool
explore(Pass *p, Graph *g, const char *stop_after,
        const struct dump_request *dump)
{
	struct pass_walk w = pass_walk_begin(p, g, stop_after, dump);
	Graph *other_batch = NULL, *whole = NULL;

	if (pass_walk_reach(&w, p, g, pass_that_gives(P_STATIC)))
		other_batch = other_batch_graph(p, g);
	if (pass_walk_reach(&w, p, g, pass_that_gives(P_LOSS) + 1)) {
		if (other_batch)
			other_batch_check(p, g, other_batch);
		if (p->opt->zero == ZERO_AUTO && !p->opt->forward_only)
			choose_zero(p, g);
		if (may_suggest_tp(p, g))
			whole = graph_clone(g);
	}
	plan_variants(&w, p, g);
	if (!w.ok && p->planned.refused && whole)
		suggest_tp(p, whole);
	graph_free(whole);
	graph_free(other_batch);
	return w.ok;
}
