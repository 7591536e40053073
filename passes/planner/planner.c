/* Plan: choose what is kept for backward and what is computed again.
 *
 * what    the keep-everything step as reference; a candidate from a preset,
 *         or the fastest known one within the budget; clones inserted
 * needs   P_LAYOUT
 * gives   P_PLANNED; p->planned: reference (placed), budget, baseline_peak,
 *         minimum_peak, bound_sec, alternative
 * refuses budgets below the smallest arena that is known, naming it;
 *         scratch memory whose size overflows
 *
 * Where updates run, after backward or in it, is settled before: variants.c
 * plans both variants of the graph and keeps the better one.
 */
#include "passes/cost/cost.h"
#include "passes/planner/exposed.h"
#include "passes/planner/low_precision_plan.h"
#include "passes/planner/offload_plan.h"
#include "passes/planner/pareto_front.h"
#include "passes/ilp/ilp.h"
#include "passes/planner/one_percent.h"
#include "passes/planner/planner.h"
#include "passes/planner/set_generators.h"
#include "passes/planner/slot_plans.h"
#include "passes/overlap/overlap.h"
#include "passes/place/place.h"
#include "runtime/support/now.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool
set_workspace(Pass *p, Graph *g)
{
	int threads = p->opt->threads > 0 ? p->opt->threads : 1;
	int64_t total = 0;

	FOR_NODES (n, g) {
		n->workspace = p->target->workspace(g, n, threads);
		if (n->workspace < 0
		    || !add_ok(total, n->workspace, &total)
		    || total > GRAPH_BYTES_MAX)
			return diag_error(p->diag, "node %u (%s) needs too "
			                  "much workspace",
			                  node_id(g, n), op_info[n->op].text);
	}
	return true;
}

static bool
check_seconds(Pass *p, const Graph *g, double sec)
{
	return sec <= COST_MAX || diag_error(p->diag, "device '%s': the "
	                                     "estimated step time is %.3g s, "
	                                     "expected at most %g s",
		device_of(g)->name, sec, COST_MAX);
}

static void
make_reference(Pass *p, const Graph *g)
{
	p->planned.reference = graph_clone(g);
	inplace_graph(p->planned.reference, p->scratch);
	place_graph(p->planned.reference, 0, p->watch, p->scratch);
	p->planned.reference->props = g->props | P_PLANNED | P_PLACED;
}

/* Layers are for reports only. */
static void
number_layers(Pass *p, const Graph *g, const struct remat *r)
{
	int32_t *of_store = arena_array(p->scratch, (size_t)r->nstore + 1, 4);
	int32_t *layer = arena_array(p->keep, g->nval, sizeof *layer);
	int n = remat_layer_of(r, p->scratch, of_store);

	FOR_VALS (v, g) {
		int32_t s = r->of_val[val_id(g, v)];

		layer[val_id(g, v)] = n < 2 || s < 0
			|| r->node[r->store[s].def].backward ? -1
			: of_store[s];
	}
	p->planned.layer = layer;
}

static int64_t
budget_of(const Pass *p)
{
	double bytes = (double)p->planned.baseline_peak * p->opt->budget_pct
		/ 100;

	if (p->opt->budget_pct > 0)
		return bytes < 9e18 ? (int64_t)bytes : -1;
	return p->opt->budget_bytes > 0 ? p->opt->budget_bytes : -1;
}

/* ---- presets beside the choice ---- */

/* Peak bytes once placed. */
static int64_t
peak_of(const struct schedule *w)
{
	Arena *scratch = arena_new();
	int64_t peak = w->r->resident + schedule_packed(w, scratch);

	arena_free(scratch);
	return peak;
}

static void
add_alternative(Pass *p, struct schedule *w, const char *name,
                const struct known_plan *f)
{
	struct alternative *a =
		&p->planned.alternative[p->planned.nalternative++];

	a->name = name;
	a->recompute_sec = known_eval(w, f).sec;
	a->step_sec = w->r->base_sec + a->recompute_sec;
	a->peak = peak_of(w);
}

static uint8_t *
new_drop_set(const struct remat *r)
{
	return arena_array(r->arena, (size_t)r->nstore + 1, 1);
}

static void
list_alternatives(Pass *p, struct schedule *w, const struct known_plan *chosen)
{
	static const struct {
		const char *name;
		enum remat_mode mode;
		int64_t every;
	} preset[] = {
		{ "none", REMAT_NONE, 1 },
		{ "selective", REMAT_SELECTIVE, 1 },
		{ "full", REMAT_FULL, 1 },
		{ "every=2", REMAT_EVERY, 2 },
		{ "every=4", REMAT_EVERY, 4 },
	};
	size_t n = sizeof preset / sizeof preset[0];
	struct known_plan f = { .drop = new_drop_set(w->r) };
	uint8_t *free = new_drop_set(w->r);

	p->planned.alternative = arena_array(p->keep, n + 1,
	                                     sizeof *p->planned.alternative);
	for (size_t i = 0; i < n && !watch_off(p->watch); i++) {
		remat_preset(w->r, free, preset[i].mode, preset[i].every,
		             f.drop);
		add_alternative(p, w, preset[i].name, &f);
	}
	add_alternative(p, w, p->opt->remat == REMAT_AUTO ? "auto" : "chosen",
	                chosen);
}

/* ---- the choice ---- */

static bool
refuse_all(Pass *p, struct schedule *w, struct plan_selector *c, int64_t least)
{
	known_eval(w, selector_smallest(c));

	if (selector_least(c) < least)
		least = selector_least(c);
	p->planned.minimum_peak = w->r->resident + least;
	return remat_refuse(p, w);
}

/* Nothing beats a plan that recomputes nothing, and has room for transfers. */
static bool
fits_as_it_is(const Pass *p, const struct plan_source *s,
              const struct known_plan *f, struct transfers_found *to)
{
	struct schedule *w = s->w;
	struct remat_cost c = known_eval(w, f);
	bool all = true;

	if (c.sec > 0 || w->r->resident + c.live > p->planned.budget
	    || peak_of(w) > p->planned.budget)
		return false;
	if (overlap_has_transfers(s->g)) {
		to->sec = exposed_seconds(p, s, f, INFINITY, &all, &to->choice);
		to->known = all;
	}
	return all;
}

/* What the plan is beside one of recomputation: rounded->request has no type,
 * and offloaded->sec is 0, if it is not. */
struct beside {
	struct low_precision_plan rounded;
	struct offload_plan offloaded;
	struct transfers_found transfers;
};

/* Names of --offload-values for which nothing is in host memory. */
static void
warn_of_values(const Pass *p, const Graph *g)
{
	const struct name_list *l = &p->opt->offload_values;

	for (int i = 0; i < l->n && offload_takes_values(p); i++) {
		bool any = false;

		FOR_VALS (v, g)
			any |= v->host && v->of
				&& val_matches(&g->val[v->of], l->v[i]);
		if (!any)
			diag_warn(p->diag, "--offload-values '%s': no value of "
			          "that name is offloaded: none is unused for "
			          "a while, in memory of its own",
			          l->v[i]);
	}
}

/* The bound for a plan whose step takes `sec` seconds. */
static void
state_bound(Pass *p, const struct plan_source *s,
            const struct known_plan *plan, double sec)
{
	struct recompute_bound bound = offload_bound(p, s, plan, sec);

	p->planned.bound_sec = s->w->r->base_sec + bound.sec;
	p->planned.bound_class = bound.class;
}

/* Take the set that was chosen for an equal graph, if it fits here. */
static bool
takes_like(Pass *p, struct plan_source *s, struct known_plan *plan)
{
	const struct planned *like = p->like;
	int32_t n = s->w->r->nstore;

	if (!like || !like->drop || like->ndrop != n)
		return false;
	memcpy(plan->drop, like->drop, (size_t)n);
	known_eval(s->w, plan);
	if (peak_of(s->w) <= p->planned.budget)
		return true;
	remat_keep_all(s->w->r, s->constraint, plan->drop);
	return false;
}

/* The plan for the budget, of recomputation alone or with values that are
 * rounded or offloaded. */
static bool
choose_auto(Pass *p, struct plan_source *s, struct known_plan *plan,
            struct beside *beside)
{
	struct low_precision_plan *rounded = &beside->rounded;
	const struct remat *r = s->w->r;
	bool named = offload_names_values(p), all;
	const struct known_plan *taken;
	int64_t arena;

	rounded->least = INT64_MAX;
	remat_keep_all(r, s->constraint, plan->drop);
	if (named && p->planned.budget < 0)
		beside->offloaded = (struct offload_plan){ .plan = *plan,
			.request = { 0, offload_host_room(p->opt, s->g),
			             &p->opt->offload_values },
			.sec = r->base_sec };
	/* of two plans of a stage: what more would fit is the other one's */
	if (s->g->other_slots && takes_like(p, s, plan))
		return true;
	if (p->planned.budget < 0
	    || (!named && fits_as_it_is(p, s, plan, &beside->transfers)))
		return true;
	if (takes_like(p, s, plan))
		return true;
	if (!s->c)
		s->c = selector_new(r, s->constraint, p->opt);
	arena = p->planned.budget - r->resident;
	taken = selector_best(s->c, arena);
	if (p->opt->save_dtype && !named
	    && low_precision_best(p, s, arena, taken ? taken->sec : INFINITY,
	                          rounded)) {
		*plan = rounded->plan;
		return !watch_off(p->watch);
	}
	if (offload_best(p, s, taken, &beside->offloaded)) {
		*plan = beside->offloaded.plan;
		state_bound(p, s, plan, beside->offloaded.sec);
		return !watch_off(p->watch);
	}
	if (watch_off(p->watch))
		return false;
	if (!taken)
		return refuse_all(p, s->w, s->c, rounded->least);
	if (overlap_has_transfers(s->g))
		taken = least_exposed(p, s, taken, &beside->transfers);
	*plan = *taken;
	state_bound(p, s, plan,
	            offload_takes_values(p) && overlap_has_transfers(s->g)
	            ? exposed_seconds(p, s, plan, INFINITY, &all, NULL) : 0);
	return true;
}

static bool
choose_preset(Pass *p, struct schedule *w, const uint8_t *constraint,
              struct known_plan *plan)
{
	int64_t peak;

	remat_preset(w->r, constraint, p->opt->remat, p->opt->remat_every,
	             plan->drop);
	known_eval(w, plan);
	peak = peak_of(w);
	if (p->planned.budget < 0 || peak <= p->planned.budget)
		return true;
	p->planned.minimum_peak = peak;
	return remat_refuse(p, w);
}

static int64_t
baseline_peak(struct schedule *w)
{
	schedule_set(w, new_drop_set(w->r));
	return peak_of(w);
}

/* What plans are made from.  For the curve, the variant that is planned first
 * is asked again for budgets of the second one (pareto_front.c), so it needs a
 * graph of its own. */
static struct plan_source
plan_source_new(Pass *p, Graph *g)
{
	bool again = p->opt->curve && p->variant.allow_refusal
		&& is_first_variant(p);
	struct plan_source s = { .own = again ? graph_clone(g) : NULL };
	struct remat *r;

	s.g = again ? s.own : g;
	r = remat_new(s.g, again ? p->keep : p->scratch);
	r->watch = p->watch;
	s.w = schedule_new(r, r->arena);
	return s;
}

/* Choose a plan, and what is beside it; false: refused, or an error. */
static bool
choose_plan(Pass *p, struct plan_source *s, struct known_plan *plan,
            struct beside *beside)
{
	uint8_t *constraint = new_drop_set(s->w->r);
	bool ok;

	s->constraint = constraint;
	if (!remat_constraints(p, s->w->r, constraint))
		return false;
	p->planned.nalternative = 0;
	if (p->opt->curve)
		s->c = selector_new(s->w->r, constraint, p->opt);
	ok = p->opt->remat == REMAT_AUTO ? choose_auto(p, s, plan, beside)
		: choose_preset(p, s->w, constraint, plan);
	if (ok && (p->opt->compare || p->opt->curve))
		list_alternatives(p, s->w, plan);
	if (p->opt->curve && (ok || p->planned.refused))
		pareto_front_add(p, s);
	if (ok)
		slot_plans_find(p, s, plan);
	if (ok && p->opt->account)
		one_percent_account(p, s->g, s->w->r, constraint);
	return ok;
}

/* When the graph's transfers run; found: what is known of it, if it is. */
static void
apply_transfers(Pass *p, const Graph *g, const struct transfers_found *found)
{
	struct overlap_choice *choice = arena_alloc(p->keep, sizeof *choice);

	p->planned.exposed_sec = p->planned.step_sec;
	p->planned.transfers = NULL;
	if (!overlap_has_transfers(g))
		return;
	*choice = found->choice;
	p->planned.exposed_sec = found->known ? found->sec
		: exposed_seconds(p, &(struct plan_source){ .g = g }, NULL,
		                  INFINITY, &(bool){ false }, choice);
	p->planned.transfers = choice;
}

/* The graph as it is planned. */
static void
apply_plan(Pass *p, Graph *g, struct schedule *w, const struct known_plan *plan,
           const struct beside *beside)
{
	p->planned.recompute_sec = known_eval(w, plan).sec;
	p->planned.ndrop = w->r->nstore;
	p->planned.drop = plan->step ? NULL : arena_copy(p->keep, plan->drop,
		(size_t)w->r->nstore + 1);
	schedule_apply(w, g);
	if (beside->rounded.request.to) {
		p->planned.recompute_sec = beside->rounded.sec;
		low_precision_rewrite(g, &beside->rounded.request, p->target,
		                      p->scratch);
	}
	if (beside->offloaded.sec > 0)
		offload_values(g, &beside->offloaded.request, p->scratch);
	warn_of_values(p, g);
	p->planned.step_sec = w->r->base_sec + p->planned.recompute_sec;
	apply_transfers(p, g, &beside->transfers);
}

static bool
plan_graph(Pass *p, Graph *g)
{
	double started = now_sec();
	struct plan_source s;
	struct known_plan plan = { .live = -1 };
	struct beside beside = { .rounded = { .sec = 0 } };
	bool ok;

	p->planned.reference = NULL;
	p->planned.pair = NULL;
	p->planned.low_memory = p->variant.low_memory;
	p->planned.state_parts = p->variant.state_room > 0;
	watch_begin(p->watch, p->opt->plan_sec);
	if (!low_precision_check(p, g) || !set_workspace(p, g))
		return false;
	s = plan_source_new(p, g);
	ok = check_seconds(p, g, s.w->r->base_sec);
	/* the baseline is that of the first variant */
	if (ok && is_first_variant(p))
		p->planned.baseline_peak = baseline_peak(s.w);
	if (ok && !p->opt->slim) {
		make_reference(p, g);
		number_layers(p, g, s.w->r);
	}
	p->planned.budget = budget_of(p);
	p->planned.bound_sec = s.w->r->base_sec;
	p->planned.bound_class = "any";
	plan.drop = new_drop_set(s.w->r);
	ok = ok && choose_plan(p, &s, &plan, &beside);
	if (ok)
		apply_plan(p, g, s.w, &plan, &beside);
	graph_free(s.own);
	p->planned.solver_sec = now_sec() - started;
	return ok || (p->variant.allow_refusal && p->planned.refused);
}

bool
pass_plan(Pass *p, Graph *g)
{
	bool ok = plan_graph(p, g);

	ilp_end();
	return ok;
}
