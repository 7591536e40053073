/* A second plan for some micro-batches of a stage (Korthikanti et al. 2023,
 * appendix C).
 *
 * what    The pair was chosen by the planner's sums.  Both plans go through the
 *         later passes, each beside the bytes of the other one's slots.  They
 *         are taken if both meet the budget, what they keep is as expected, and
 *         a micro-batch takes less time on average, transfers included
 * slots   The micro-batches of each plan are spread evenly.  The last one has
 *         the first plan, so that the update finds what it reads in that one's
 *         memory
 */
#include "passes/explore/second_plan.h"

#include <string.h>

#include "passes/explore/trial.h"
#include "passes/explore/variants.h"
#include "passes/pipeline/pipeline.h"
#include "passes/replay/replay.h"

/* One of the two plans. */
struct half {
	Graph *graph;
	struct planned planned;
	bool ok;
};

static struct half
plan_half(const struct pass_walk *w, Pass *p, const struct planned *one,
          Graph *g, int i)
{
	const struct slot_pair *pair = one->pair;
	const int n[2] = { pair->slots, (int)g->slots - pair->slots };
	const struct planned like = { .drop = pair->drop[i],
		                      .ndrop = one->ndrop };
	struct options *o = arena_alloc(p->keep, sizeof *o);
	struct pass_walk walk = *w;
	struct half h = { .graph = g };
	Pass stage = *p;

	*o = *p->opt;
	set_budget_bytes(o, one->budget);
	o->slim = o->quiet = true;
	o->account = o->compare = false;
	walk.dump = NULL;
	g->slots = n[i];
	g->other_slots = n[1 - i] * pair->slot_bytes[1 - i];
	stage.opt = o;
	stage.least_behind = NULL;
	stage.like = &like;
	stage.variant.low_memory = one->low_memory;
	stage.planned = (struct planned){ 0 };
	stage.diag = diag_new("ckc", NULL);
	h.ok = pass_walk_reach(&walk, &stage, g, pass_that_gives(P_UPD))
		&& pass_walk_finish(&walk, &stage, g) && stage.planned.plan
		&& !diag_errors(stage.diag);
	diag_free(stage.diag);
	p->retired = stage.retired;
	h.planned = stage.planned;
	h.planned.drop = one->drop;
	h.planned.ndrop = one->ndrop;
	h.planned.pair = pair;
	h.planned.minimum_peak = one->minimum_peak;
	h.planned.baseline_peak = one->baseline_peak;
	if (h.ok && h.planned.plan->sum.baseline_peak >= 0)
		h.planned.plan->sum.baseline_peak = one->baseline_peak;
	return h;
}

static double
mean_seconds(const struct half h[2])
{
	double n[2] = { (double)h[0].graph->slots, (double)h[1].graph->slots };

	return (n[0] * h[0].planned.exposed_sec
	        + n[1] * h[1].planned.exposed_sec) / (n[0] + n[1]);
}

static bool
is_gain(const struct half h[2], const struct planned *one)
{
	return h[0].ok && h[1].ok
		&& mean_seconds(h) < one->exposed_sec * (1 - 1e-9)
		&& plans_share_arena(h[0].planned.plan, h[1].planned.plan)
		&& stages_have_same_messages(h[0].graph, h[1].graph);
}

/* By slot: whether it has the second plan. */
static const bool *
spread_slots(const Pass *p, int slots, int first, int nmicro)
{
	bool *second = arena_array(p->keep, (size_t)slots, sizeof *second);
	int last = (nmicro - 1) % slots;

	for (int k = 0; k < slots; k++) {
		int at = (k - last - 1 + slots) % slots;

		second[k] = (at + 1) * first / slots == at * first / slots;
	}
	return second;
}

static void
take_both(const Pass *p, struct pipeline_stage *s, struct half h[2],
          int nmicro)
{
	graph_free(s->planned.reference);
	graph_free(s->graph);
	s->graph = h[0].graph;
	s->planned = h[0].planned;
	s->slot_bytes = s->planned.plan->slot_bytes;
	s->second = (struct second_plan){
		.graph = h[1].graph, .planned = h[1].planned,
		.slots = (int)h[1].graph->slots,
		.slot_bytes = h[1].planned.plan->slot_bytes,
		.has = spread_slots(p, s->slots, (int)h[0].graph->slots,
		                    nmicro) };
}

void
second_plan_try(const struct pass_walk *w, Pass *p, struct pipeline_stage *s,
                int nmicro, Graph *of)
{
	const struct planned *one = &s->planned;
	struct half h[2];

	if (!one->pair || watch_off(p->watch)) {
		graph_free(of);
		return;
	}
	h[0] = plan_half(w, p, one, graph_clone(of), 0);
	h[1] = plan_half(w, p, one, of, 1);
	if (is_gain(h, one)) {
		take_both(p, s, h, nmicro);
		return;
	}
	graph_free(h[0].graph);
	graph_free(h[1].graph);
}
