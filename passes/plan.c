/* Plan: choose what is kept for backward and what is computed again.
 *
 * what    the keep-everything step as reference; a candidate from a preset,
 *         or the fastest known one within the budget; copies inserted
 * needs   P_LAYOUT
 * gives   P_PLANNED; p->reference (placed), p->budget, p->baseline_peak,
 *         p->minimum_peak, p->bound_sec, p->alternative
 * refuses budgets below the smallest arena that is known, naming it;
 *         scratch memory whose size overflows
 *
 * Where updates run, after backward or in it, is settled before: run.c plans
 * both forms of the graph and keeps the better one.
 */
#include "passes/choose.h"
#include "passes/ilp.h"
#include "ir/tile.h"

#include <inttypes.h>
#include <string.h>

static bool
set_workspace(Pass *p, Graph *g)
{
	int threads = p->opt->threads > 0 ? p->opt->threads : 1;
	int64_t total = 0;

	FOR_NODES (n, g) {
		n->workspace = node_workspace(g, n, threads);
		if (n->workspace < 0
		    || !add_ok(total, n->workspace, &total)
		    || total > GRAPH_BYTES_MAX)
			return diag_error(p->diag, "node %u (%s) needs too "
			                  "much scratch memory",
			                  node_id(g, n), op_info[n->op].text);
	}
	return true;
}

static void
make_reference(Pass *p, const Graph *g, const struct remat *r)
{
	int64_t peak;

	p->reference = graph_clone(g);
	inplace_graph(p->reference, p->scratch);
	peak = r->resident + place_graph(p->reference, p->scratch);
	/* a second form of the graph is measured by the first one */
	if (!p->early)
		p->baseline_peak = peak;
	p->reference->props = g->props | P_PLANNED | P_PLACED;
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
	p->layer = layer;
}

static int64_t
budget_of(const Pass *p)
{
	double bytes = (double)p->baseline_peak * p->opt->budget_pct / 100;

	if (p->opt->budget_pct > 0)
		return bytes < 9e18 ? (int64_t)bytes : -1;
	return p->opt->budget_bytes > 0 ? p->opt->budget_bytes : -1;
}

/* ---- presets beside the choice ---- */

static void
add_alternative(Pass *p, struct remat *r, const char *name,
                const uint8_t *drop)
{
	struct alternative *a = &p->alternative[p->nalternative++];
	Arena *scratch = arena_new();

	a->name = name;
	a->recompute_sec = remat_eval(r, drop).sec;
	a->step_sec = r->base_sec + a->recompute_sec;
	a->peak = r->resident + remat_placed(r, drop, scratch);
	arena_free(scratch);
}

static void
list_alternatives(Pass *p, struct remat *r, const uint8_t *chosen)
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
	uint8_t *drop = arena_array(p->scratch, (size_t)r->nstore + 1, 1);
	uint8_t *free = arena_array(p->scratch, (size_t)r->nstore + 1, 1);

	p->alternative = arena_array(p->keep, n + 1, sizeof *p->alternative);
	for (size_t i = 0; i < n; i++) {
		remat_preset(r, free, preset[i].mode, preset[i].every, drop);
		add_alternative(p, r, preset[i].name, drop);
	}
	add_alternative(p, r, p->opt->remat == REMAT_AUTO ? "auto" : "chosen",
	                chosen);
}

/* ---- the choice ---- */

/* Nothing beats a plan that recomputes nothing. */
static bool
fits_as_it_is(const Pass *p, struct remat *r, const uint8_t *drop)
{
	Arena *scratch = arena_new();
	int64_t arena = remat_placed(r, drop, scratch);

	arena_free(scratch);
	return remat_eval(r, drop).sec <= 0 && r->resident + arena <= p->budget;
}

static bool
choose_auto(Pass *p, struct remat *r, const uint8_t *must, uint8_t *drop)
{
	struct choice *c;
	const uint8_t *taken;
	int64_t arena;

	remat_keep_all(r, must, drop);
	if (p->budget < 0 || fits_as_it_is(p, r, drop))
		return true;
	c = choice_new(r, must, p->opt);
	p->minimum_peak = r->resident + choice_least(c);
	if (p->budget < p->minimum_peak)
		return remat_refuse(p, r, choice_smallest(c));
	arena = p->budget - r->resident;
	taken = choice_take(c, arena);
	if (!taken)
		return remat_refuse(p, r, choice_smallest(c));
	memcpy(drop, taken, (size_t)r->nstore);
	p->bound_sec = r->base_sec + choice_bound(c, arena,
		remat_eval(r, drop).sec);
	p->bound_class = p->bound_sec > r->base_sec ? "once" : "any";
	return true;
}

static bool
choose_preset(Pass *p, struct remat *r, const uint8_t *must, uint8_t *drop)
{
	Arena *scratch = arena_new();
	int64_t peak;

	remat_preset(r, must, p->opt->remat, p->opt->remat_every, drop);
	peak = r->resident + remat_placed(r, drop, scratch);
	arena_free(scratch);
	if (p->budget < 0 || peak <= p->budget)
		return true;
	p->minimum_peak = peak;
	return remat_refuse(p, r, drop);
}

static bool
plan_graph(Pass *p, Graph *g)
{
	double started = pass_seconds();
	struct remat *r;
	uint8_t *must, *drop;
	bool ok;

	if (!set_workspace(p, g))
		return false;
	r = remat_new(g, p->scratch);
	make_reference(p, g, r);
	number_layers(p, g, r);
	p->budget = budget_of(p);
	p->bound_sec = r->base_sec;
	p->bound_class = "any";
	must = arena_array(p->scratch, (size_t)r->nstore + 1, 1);
	drop = arena_array(p->scratch, (size_t)r->nstore + 1, 1);
	if (!remat_wishes(p, r, must))
		return false;
	ok = p->opt->remat == REMAT_AUTO ? choose_auto(p, r, must, drop)
		: choose_preset(p, r, must, drop);
	if (!ok)
		return p->lenient && p->refused;
	p->recompute_sec = remat_eval(r, drop).sec;
	list_alternatives(p, r, drop);
	remat_apply(r, drop, g);
	p->solver_sec = pass_seconds() - started;
	p->changed = true;
	return true;
}

bool
pass_plan(Pass *p, Graph *g)
{
	bool ok = plan_graph(p, g);

	ilp_end();
	return ok;
}
