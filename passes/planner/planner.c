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
#include "passes/planner/choose.h"
#include "passes/planner/low_precision_plan.h"
#include "passes/planner/offload_plan.h"
#include "passes/planner/pareto_front.h"
#include "passes/ilp/ilp.h"
#include "passes/planner/one_percent.h"
#include "passes/planner/planner.h"
#include "passes/planner/set_generators.h"
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

/* Seconds of a step with its transfers overlapped, of this plan, or if it is
 * NULL of the graph, which is planned.  *all: no transfer lacks room in the
 * arena to begin early or end late. */
static double
exposed_seconds(const Pass *p, const Graph *g, struct schedule *w,
                const struct known_plan *plan, bool *all)
{
	Graph *trial = graph_clone(g);
	double sec;

	if (plan) {
		known_eval(w, plan);
		schedule_apply(w, trial);
	}
	sec = overlap_exposed_seconds(p, trial, all);
	graph_free(trial);
	return sec;
}

/* Of the fastest plans for this arena and for somewhat smaller ones, take that
 * whose step is shortest with its transfers overlapped. */
static const struct known_plan *
least_exposed(const Pass *p, const Graph *g, struct schedule *w,
              struct plan_selector *c, const struct known_plan *fastest)
{
	static const double share[] = { 0.98, 0.96, 0.93, 0.9 };
	const double arena = (double)(p->planned.budget - w->r->resident);
	const struct known_plan *best = fastest, *last = fastest;
	bool all;
	double least = exposed_seconds(p, g, w, fastest, &all);

	for (size_t i = 0; i < sizeof share / sizeof *share
	     && !watch_over(p->watch); i++) {
		const struct known_plan *plan =
			selector_best(c, (int64_t)(share[i] * arena));
		double sec;

		if (!plan || plan == last)
			continue;
		last = plan;
		sec = exposed_seconds(p, g, w, plan, &all);
		if (sec < least * (1 - 1e-9)) {
			least = sec;
			best = plan;
		}
	}
	return best;
}

/* Nothing beats a plan that recomputes nothing, and has room for transfers. */
static bool
fits_as_it_is(const Pass *p, const Graph *g, struct schedule *w,
              const struct known_plan *f)
{
	struct remat_cost c = known_eval(w, f);
	bool all = true;

	if (c.sec > 0 || w->r->resident + c.live > p->planned.budget
	    || peak_of(w) > p->planned.budget)
		return false;
	if (overlap_has_transfers(g))
		exposed_seconds(p, g, w, f, &all);
	return all;
}

/* What the plan is beside one of recomputation: rounded->request has no type,
 * and offloaded->sec is 0, if it is not. */
struct beside {
	struct low_precision_plan rounded;
	struct offload_plan offloaded;
};

/* --offload-values. */
static bool
wants_values(const Pass *p)
{
	return offload_takes_values(p) && p->opt->offload_values.n > 0;
}

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
state_bound(Pass *p, const Graph *g, const struct remat *r,
            struct plan_selector *c, const struct known_plan *plan, double sec)
{
	int64_t arena = p->planned.budget - r->resident;
	double all = r->base_sec + plan->sec;
	struct recompute_bound bound;

	arena = offload_arena(p, g, arena, sec > all ? sec : all);
	bound = selector_bound(c, arena, plan);
	p->planned.bound_sec = r->base_sec + bound.sec;
	p->planned.bound_class = bound.class;
}

/* Whether offloading values makes a step faster than `taken`, the fastest plan
 * without; NULL: none fits. */
static bool
choose_offloaded(Pass *p, const Graph *g, struct schedule *w,
                 const uint8_t *constraint, struct plan_selector *c,
                 const struct known_plan *taken, struct offload_plan *best)
{
	int64_t arena = p->planned.budget - w->r->resident;
	double below = INFINITY;
	bool all;

	if (!offload_takes_values(p))
		return false;
	if (taken && !wants_values(p))
		below = overlap_has_transfers(g)
			? exposed_seconds(p, g, w, taken, &all)
			: w->r->base_sec + taken->sec;
	if (!offload_best(p, g, c, constraint, w, arena, taken, below, best))
		return false;
	state_bound(p, g, w->r, c, &best->plan, best->sec);
	return true;
}

/* The plan for the budget, of recomputation alone or with values that are
 * rounded or offloaded. */
static bool
choose_auto(Pass *p, const Graph *g, struct schedule *w,
            const uint8_t *constraint, struct plan_selector *c,
            struct known_plan *plan, struct beside *beside)
{
	struct low_precision_plan *rounded = &beside->rounded;
	const struct remat *r = w->r;
	const struct known_plan *taken;
	int64_t arena;
	bool is_rounded = false, all;

	rounded->least = INT64_MAX;
	remat_keep_all(r, constraint, plan->drop);
	if (wants_values(p) && p->planned.budget < 0)
		beside->offloaded = (struct offload_plan){ *plan,
			{ 0, offload_host_room(p->opt, g),
			  &p->opt->offload_values },
			w->r->base_sec };
	if (p->planned.budget < 0
	    || (!wants_values(p) && fits_as_it_is(p, g, w, plan)))
		return true;
	if (!c)
		c = selector_new(r, constraint, p->opt);
	arena = p->planned.budget - r->resident;
	taken = selector_best(c, arena);
	if (p->opt->save_dtype && !wants_values(p))
		is_rounded = low_precision_best(
			p, g, c, constraint, w, arena,
			taken ? taken->sec : INFINITY, rounded);
	if (!is_rounded && choose_offloaded(p, g, w, constraint, c, taken,
	                                    &beside->offloaded)) {
		*plan = beside->offloaded.plan;
		return !watch_off(p->watch);
	}
	if (watch_off(p->watch))
		return false;
	if (!taken && !is_rounded)
		return refuse_all(p, w, c, rounded->least);
	if (!is_rounded && overlap_has_transfers(g))
		taken = least_exposed(p, g, w, c, taken);
	*plan = is_rounded ? rounded->plan : *taken;
	if (is_rounded)
		return true;
	state_bound(p, g, r, c, taken,
	            offload_takes_values(p) && overlap_has_transfers(g)
	            ? exposed_seconds(p, g, w, taken, &all) : 0);
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

static bool
plan_graph(Pass *p, Graph *g)
{
	double started = now_sec();
	struct remat *r;
	struct schedule *w;
	struct known_plan plan = { .live = -1 };
	struct beside beside = { .rounded = { .sec = 0 } };
	struct plan_selector *c = NULL;
	Graph *own = NULL;
	uint8_t *constraint;
	bool ok;

	p->planned.reference = NULL;
	watch_begin(p->watch, p->opt->plan_sec);
	if (!low_precision_check(p, g) || !set_workspace(p, g))
		return false;
	/* the variant with updates in backward adds budgets, for which the
	 * variant with updates after backward is asked again: pareto_front.c */
	if (p->opt->curve && p->variant.allow_refusal && !p->variant.low_memory
	    && !p->variant.offload_states)
		own = graph_clone(g);
	r = own ? remat_new(own, p->keep) : remat_new(g, p->scratch);
	r->watch = p->watch;
	if (!check_seconds(p, g, r->base_sec)) {
		graph_free(own);
		return false;
	}
	w = schedule_new(r, r->arena);
	/* the baseline is that of the first variant */
	if (!p->variant.low_memory && !p->variant.offload_states)
		p->planned.baseline_peak = baseline_peak(w);
	if (!p->opt->slim) {
		make_reference(p, g);
		number_layers(p, g, r);
	}
	p->planned.budget = budget_of(p);
	p->planned.bound_sec = r->base_sec;
	p->planned.bound_class = "any";
	constraint = new_drop_set(r);
	plan.drop = new_drop_set(r);
	if (!remat_constraints(p, r, constraint)) {
		graph_free(own);
		return false;
	}
	p->planned.nalternative = 0;
	if (p->opt->curve)
		c = selector_new(r, constraint, p->opt);
	ok = p->opt->remat == REMAT_AUTO
		? choose_auto(p, g, w, constraint, c, &plan, &beside)
		: choose_preset(p, w, constraint, &plan);
	if (ok && (p->opt->compare || p->opt->curve))
		list_alternatives(p, w, &plan);
	if (p->opt->curve && (ok || p->planned.refused))
		pareto_front_add(p, r, c, own);
	else
		graph_free(own);
	if (!ok)
		return p->variant.allow_refusal && p->planned.refused;
	if (p->opt->account)
		one_percent_account(p, g, r, constraint);
	p->planned.recompute_sec = known_eval(w, &plan).sec;
	schedule_apply(w, g);
	if (beside.rounded.request.to) {
		p->planned.recompute_sec = beside.rounded.sec;
		low_precision_rewrite(g, &beside.rounded.request, p->target,
		                      p->scratch);
	}
	if (beside.offloaded.sec > 0)
		offload_values(g, &beside.offloaded.request, p->scratch);
	warn_of_values(p, g);
	p->planned.step_sec = r->base_sec + p->planned.recompute_sec;
	p->planned.exposed_sec = !overlap_has_transfers(g)
		? p->planned.step_sec
		: exposed_seconds(p, g, w, NULL, &(bool){ false });
	p->planned.solver_sec = now_sec() - started;
	return true;
}

bool
pass_plan(Pass *p, Graph *g)
{
	bool ok = plan_graph(p, g);

	ilp_end();
	return ok;
}
