/* Plan: choose what is kept for backward and what is computed again.
 *
 * needs   P_LAYOUT
 * gives   P_PLANNED; p->reference (the keep-everything schedule, placed),
 *         p->budget, p->baseline_peak
 */
#include "passes/remat.h"

static void
set_workspace(Pass *p, Graph *g)
{
	int threads = p->opt->threads > 0 ? p->opt->threads : 1;

	FOR_NODES (n, g)
		n->workspace = node_workspace(g, n, threads);
}

bool
pass_plan(Pass *p, Graph *g)
{
	struct remat *r;
	uint8_t *drop;

	set_workspace(p, g);
	r = remat_new(g, p->scratch);
	p->reference = graph_clone(g);
	inplace_graph(p->reference, p->scratch);
	p->baseline_peak = r->resident + place_graph(p->reference, p->scratch);
	p->reference->props = g->props | P_PLANNED | P_PLACED;
	p->budget = p->opt->budget_bytes;
	drop = arena_array(p->scratch, (size_t)r->nstore + 1, 1);
	remat_apply(r, drop, g);
	p->bound_sec = r->base_sec;
	p->bound_class = "any";
	return true;
}
