/* ckc plan: plans a standalone graph of costs. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "ir/base/input_file.h"
#include "ir/base/outfile.h"
#include "frontend/driver/outputs.h"
#include "frontend/driver/stop.h"
#include "frontend/driver/verbs.h"
#include "passes/standalone/standalone.h"
#include "passes/replay/replay.h"
#include "runtime/support/now.h"

/* SHOWN: values listed in a refusal. */
enum { FILE_MAX_BYTES = 1 << 30, SHOWN = 8 };

static bool
read_dag(const struct cli *c, struct dag *g, Arena *arena, Diag *diag)
{
	size_t n;
	char *text = input_file_read(c->model, FILE_MAX_BYTES, &n, arena, diag);

	if (!text)
		return false;
	return dag_read(text, n, g, arena, diag);
}

/* ---- the verb ---- */

/* Values alive at the peak step, largest first. */
static void
report_alive(const struct dag *g, const struct dag_seq *s, Diag *diag,
             Arena *arena)
{
	int32_t alive[SHOWN], step;
	int32_t n = dag_alive(g, s, SHOWN, alive, &step, arena);

	diag_more(diag, "at the least budget, step %d (%s) has %d live values:",
	          (int)step,
	          g->name[s->node[step]], (int)n);
	for (int32_t k = 0; k < n && k < SHOWN; k++)
		diag_more(diag, "%" PRId64 " B  %s", g->ram[alive[k]],
		          g->name[alive[k]]);
	if (n > SHOWN)
		diag_more(diag, "and %d smaller ones", (int)n - SHOWN);
}

static bool
report_infeasible(const struct dag *g, const struct dag_answer *r,
                  int64_t budget, Diag *diag, Arena *arena)
{
	int64_t least = r->seq.peak;

	if (r->found)
		return diag_error(diag, "budget %" PRId64 " B: plans fit, but "
			"no memory layout for them was found", budget);
	diag_error(diag, "budget %" PRId64 " B (%.4f of the peak %"
		PRId64 "): no plan %s; least budget %s%" PRId64
		" B (%.4f); the largest working set of a node needs %" PRId64
		" B (%.4f)", budget, (double)budget / (double)g->peak, g->peak,
		budget < g->working_set || isinf(r->bound) ? "exists"
		: "was found",
		least <= g->working_set ? "" : "found ", least,
		(double)least / (double)g->peak,
		g->working_set, (double)g->working_set / (double)g->peak);
	report_alive(g, &r->seq, diag, arena);
	return false;
}

static void
print_summary(const struct plan_summary *s, int64_t nstep, int32_t n,
              FILE *out)
{
	fprintf(out, "%d nodes, %" PRId64 " steps, cost %.10g, overhead %.3f "
	        "%%, bound %.10g (%s), gap %.3f %%\npeak %" PRId64 " B (%.4f "
	        "of %" PRId64 " B)\n", (int)n, nstep, s->step_sec,
	        100 * s->overhead, s->bound_sec, s->bound_class, 100 * s->gap,
	        s->peak, s->baseline_peak ? (double)s->peak
	        / (double)s->baseline_peak : 0, s->baseline_peak);
}

bool
verb_plan(const struct cli *c, Arena *arena, Diag *diag)
{
	struct dag g;
	struct watch watch = { .stop = stop_on_signals() };
	struct dag_options o = { .budget = c->budget_bytes, .sec =
		c->opt.plan_sec, .gap = c->opt.gap_pct / 100, .watch = &watch };
	struct dag_answer r;
	bool ok;
	Plan p = { .from_graph = true };
	struct report_source of = { c->model, c->nflag, c->flag };
	bool to_stdout = c->json && outfile_is_stdout(c->json);
	double began = now_sec();

	diag_file(diag, c->model);
	if (!outputs_check_report(to_stdout ? NULL : c->json, c->model,
	                          diag)
	    || !read_dag(c, &g, arena, diag))
		return false;
	if (c->budget >= 0)
		o.budget = (int64_t)ceil(c->budget * (double)g.peak);
	o.progress = !c->opt.quiet && isatty(2) ? stderr : NULL;
	r = dag_plan(&g, &o, arena);
	ok = dag_account(&g, &r, &o, c->place, &p, diag, arena);
	if (!ok && r.found && !watch_over(&watch)) {
		o.all = true;
		r = dag_plan(&g, &o, arena);
		ok = dag_account(&g, &r, &o, c->place, &p, diag, arena);
	}
	if (watch_off(&watch))
		return diag_error(diag, "interrupted");
	if (!ok)
		return report_infeasible(&g, &r, o.budget, diag, arena);
	if (!plan_replay(&p, diag))
		return false;
	if (c->opt.stats)
		p.sum.solver_sec = now_sec() - began;
	if (!outputs_write_plan(c->json, NULL, &p, &of, diag))
		return false;
	if (!c->opt.quiet)
		print_summary(&p.sum, p.nstep, g.n, to_stdout ? stderr
		              : stdout);
	return true;
}
