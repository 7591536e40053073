/* Plan the evaluation program of a library. */
#include "passes/explore/evaluation_program.h"

#include <inttypes.h>
#include <string.h>

#include "ir/element.h"
#include "ir/verify/verify.h"
#include "passes/evaluation/evaluation.h"
#include "passes/explore/plan_stages.h"
#include "passes/pipeline/pipeline.h"

enum { WHY = 300 };

/* Whether training has the value. */
static bool
is_in_training(const Graph *g, const Graph *forward, ValId v)
{
	return g->stages || forward->val[v].kind == V_STATE
		? val_counterpart(g, forward, v) != 0
		: element_same(g, forward, v);
}

/* Bytes of the arena that the plan takes, with what training has not got; -1
 * if it needs what cannot lie there, which is *missing. */
static int64_t
room(const Graph *g, const Graph *forward, const Plan *plan,
     const Val **missing)
{
	int64_t bytes = plan->sum.arena;

	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];
		const Val *v = &forward->val[t->val];

		if (!t->val || !t->resident || t->alias_of >= 0
		    || is_in_training(g, forward, t->val))
			continue;
		if (v->kind != V_CONST) {
			*missing = v;
			return -1;
		}
		bytes += t->bytes;
	}
	return bytes;
}

/* Bytes that its arena may have: what a budget leaves beside what is resident,
 * which is as much as training takes or more. */
static int64_t
most_room(const struct planned *training)
{
	return training->budget > 0
		? training->budget - training->plan->sum.resident : INT64_MAX;
}

static void
note_room(const Pass *p, const struct plan_summary *s, int64_t bytes)
{
	if (bytes > s->arena && !p->opt->quiet)
		diag_note(p->diag, "evaluation needs more memory than "
		          "training: its peak is %" PRId64 " B",
		          s->resident + bytes);
}

static struct options
without_training(const struct options *o)
{
	struct options f = *o;

	f.forward_only = true;
	f.dropout = false;
	f.eval = f.curve = f.compare = f.account = f.stats = false;
	f.slim = true;
	f.budget_bytes = -1;
	f.budget_pct = 0;
	f.remat = REMAT_NONE;
	f.keep.n = f.recompute.n = 0;
	f.save_dtype = DT_NONE;
	f.explain = NULL;
	f.nshard = 0;                   /* parameters lie as in training */
	return f;
}

static void
find_rows(Pass *p, Graph *g)
{
	FOR_VALS (v, g)
		if (v->output && val_id(g, v) != g->loss)
			v->rows =
				loss_formula_find_rows(p, g, val_id(g, v)).rows;
}

/* The form that evaluates, and what of it data sets are told by. */
static bool
form(Pass *p, Graph *g)
{
	bool ok;

	p->scratch = arena_new();
	ok = evaluation_graph(p, g);
	if (ok)
		find_rows(p, g);
	ok = ok && loss_formula_find(p, g, &p->result.loss_formula);
	arena_free(p->scratch);
	p->scratch = NULL;
	return ok;
}

/* Random numbers that no Dropout node draws. */
static int
count_drawn(const Graph *g)
{
	int n = 0;

	FOR_NODES (x, g)
		n += x->op == OP_RANDOM || x->op == OP_BERNOULLI;
	return n;
}

/* From canon's form to a plan; *drawn: ops that draw random numbers. */
static bool
run(Pass *p, Graph *g, int *drawn)
{
	struct pass_walk w = { .next = pass_that_gives(P_LOSS) + 1,
	                       .ok = true };
	bool ok = form(p, g);

	*drawn = count_drawn(g);
	g->props |= P_LOSS;
	if (!ok || !graph_verify(g, p->diag))
		return false;
	if (!p->stages)
		return pass_walk_finish(&w, p, g) && p->planned.plan;
	plan_stages(&w, p, g);
	return w.ok;
}

/* Whether plans fit beside what is resident in training; why not.  Bytes of the
 * arena in *bytes. */
static bool
fits_arena(const struct planned *training, const Graph *g,
           const Graph *forward, const Plan *plan, int64_t *bytes,
           char why[WHY])
{
	const Val *v = NULL;

	*bytes = room(g, forward, plan, &v);
	if (v)
		snprintf(why, WHY, "evaluation needs '%.200s', which training "
		         "does not have", v->name);
	else if (*bytes > most_room(training))
		snprintf(why, WHY, "evaluation needs %" PRId64 " bytes, but "
		         "the memory budget leaves %" PRId64, *bytes,
		         most_room(training));
	return *bytes >= 0 && *bytes <= most_room(training);
}

/* The same of all stages. */
static bool
stages_have_room(const Pass *p, const struct pipeline *forward, char why[WHY])
{
	const struct pipeline *l = p->planned.pipeline;
	bool ok = true;

	for (int k = 0; k < l->nstage && ok; k++) {
		const struct pipeline_stage *s = &l->stage[k];
		const struct pipeline_stage *f = &forward->stage[k];
		int64_t bytes;

		ok = fits_arena(&s->planned, s->graph, f->graph,
		                f->planned.plan, &bytes, why);
		if (ok)
			note_room(p, &s->planned.plan->sum, bytes);
	}
	return ok;
}

static void
warn_of_random_numbers(const Pass *p, int drawn)
{
	if (drawn && !watch_off(p->watch))
		diag_warn(p->diag, "evaluation draws random numbers in %d "
		          "op%s, as training does; if the module draws them "
		          "only in training (Dropout2d, stochastic depth, "
		          "noise), export it in evaluation mode for ckrun eval "
		          "and predict", drawn, drawn > 1 ? "s" : "");
}

/* Plan g, a copy of p->result.forward: the plan, or p's pipeline gets stages
 * that evaluate; false: why. */
static bool
try_plan(Pass *p, const Graph *training, Graph *g, const struct options *o,
         bool no_overlap, Plan **plan, char why[WHY])
{
	/* a time limit is one of the search for training's plan */
	struct watch watch = { .stop = p->watch ? p->watch->stop : NULL };
	struct pipeline *l = p->planned.pipeline;
	Pass trial = { .opt = o, .target = p->target, .keep = p->keep,
	               .watch = &watch, .training = training, .stages = l,
	               .no_overlap = no_overlap, .retired = p->retired,
	               .result.other_batch = p->result.other_batch };
	int64_t bytes = 0;
	int drawn = 0;
	bool ok;

	trial.diag = diag_new("ckc", NULL);
	ok = run(&trial, g, &drawn) && !diag_errors(trial.diag);
	p->retired = trial.retired;
	if (!ok)
		snprintf(why, WHY, "%s", diag_reason(trial.diag));
	diag_free(trial.diag);
	ok = ok && (l ? stages_have_room(p, trial.planned.pipeline, why)
	            : fits_arena(&p->planned, training, g, trial.planned.plan,
	                         &bytes, why));
	if (!ok) {
		pipeline_free(trial.planned.pipeline);
		return false;
	}
	if (l)
		l->evaluation = trial.planned.pipeline;
	else
		note_room(p, &p->planned.plan->sum, bytes);
	p->result.loss_formula = trial.result.loss_formula;
	warn_of_random_numbers(p, drawn);
	*plan = trial.planned.plan;
	return true;
}

/* What data sets are told by where steps alone say what the loss is. */
static void
total_of_steps(Pass *p, const struct options *o)
{
	Pass trial = { .opt = o, .target = p->target, .keep = p->keep,
	               .watch = p->watch,
	               .result.other_batch = p->result.other_batch,
	               .diag = diag_new("ckc", NULL) };

	if (!form(&trial, p->result.forward)) {
		trial.result.loss_formula.n = 0;
		trial.result.loss_formula.by_batch =
			"the model cannot be evaluated";
	}
	loss_formula_of_loss_alone(&trial.result.loss_formula);
	p->result.loss_formula = trial.result.loss_formula;
	diag_free(trial.diag);
}

/* g has outputs of the evaluating form, too. */
static void
take_rows(Graph *g, const Graph *forward)
{
	FOR_VALS (v, forward) {
		ValId same = v->output ? val_find(g, v->name) : 0;

		if (same)
			g->val[same].rows = v->rows;
	}
}

static void
no_plan(Pass *p, Graph *g, const struct options *o, const char *why, bool said)
{
	total_of_steps(p, o);
	take_rows(g, p->result.forward);
	p->result.loss_formula.no_program = arena_printf(p->keep, "%s", why);
	graph_free(p->result.forward);
	p->result.forward = NULL;
	if (!said && !p->opt->quiet && !watch_off(p->watch))
		diag_note(p->diag, "the library cannot evaluate: %s", why);
}

/* Plan a copy of the graph, which takes the place of p->result.forward then.
 * Transfers that begin early need memory: without that, if it is too much. */
static bool
take_plan(Pass *p, const Graph *training, const Graph *of,
          const struct options *o, Plan **plan, char why[WHY])
{
	bool sends = training->ranks || training->replicas;
	Graph *g = graph_clone(of);
	bool ok = try_plan(p, training, g, o, false, plan, why);

	if (!ok && sends) {
		graph_free(g);
		g = graph_clone(of);
		ok = try_plan(p, training, g, o, true, plan, why);
	}
	graph_free(ok ? p->result.forward : g);
	p->result.forward = ok ? g : p->result.forward;
	return ok;
}

Plan *
forward_plan(Pass *p, Graph *g)
{
	struct options o = without_training(p->opt);
	Plan *plan = NULL;
	Graph *first;
	char all[WHY], why[WHY];
	bool ok;

	if (!p->opt->evaluator) {
		no_plan(p, g, &o, p->opt->forward_only
		        ? "it was compiled with --forward-only"
		        : "it was compiled with --eval off", true);
		return NULL;
	}
	if (take_plan(p, g, p->result.forward, &o, &plan, all))
		return plan;
	first = graph_clone(p->result.forward);
	FOR_VALS (v, first)
		v->output = val_id(first, v) == first->loss;
	o.output.n = 0;
	ok = take_plan(p, g, first, &o, &plan, why);
	graph_free(first);
	if (!ok)
		no_plan(p, g, &o, why, false);
	if (!ok || p->opt->quiet)
		return plan;
	if (p->planned.budget > 0)
		diag_note(p->diag, "the library evaluates only the loss: the "
		          "other outputs do not fit in the memory budget; use "
		          "--output NAME to keep only outputs that matter");
	else
		diag_note(p->diag, "the library evaluates only the loss, not "
		          "the other outputs: %s", all);
	return plan;
}
