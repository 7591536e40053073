/* ckc plan: a graph of costs in, a plan out. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "ir/base/infile.h"
#include "ir/base/outfile.h"
#include "frontend/driver/outputs.h"
#include "frontend/driver/stop.h"
#include "frontend/driver/verbs.h"
#include "passes/bare/dag.h"
#include "passes/place/pack.h"
#include "passes/passes.h"
#include "passes/report/report.h"
#include "passes/replay/replay.h"

/* SHOWN: values listed in a refusal. */
enum { FILE_MAX_BYTES = 1 << 30, SHOWN = 8 };

#define PLACE_WORK INT64_C(1000000000)

static bool
read_graph(const struct cli *c, struct dag *g, Arena *arena, Diag *diag)
{
	size_t n;
	char *text = infile_read(c->model, FILE_MAX_BYTES, &n, arena, diag);

	if (!text)
		return false;
	return dag_read(text, n, g, arena, diag);
}

/* ---- the plan file ---- */

static void
put_tensor(const struct dag *g, struct plan_tensor *t, int32_t v, int64_t at)
{
	*t = (struct plan_tensor){
		.name = g->name[v], .node = v, .kind = K_ACTIVATION,
		.dt = DT_NONE, .bytes = g->ram[v], .offset = -1, .of = -1,
		.alias_of = -1, .first = at, .last = at,
	};
}

/* Steps and tensors have equal numbers: each step writes one. */
static void
put_step(const struct dag *g, struct plan_step *s, int32_t v, int64_t at,
         int64_t *made, Arena *arena)
{
	int n = g->pred_at[v + 1] - g->pred_at[v];

	*s = (struct plan_step){
		.op = g->backward[v] ? "backward" : "forward", .node = v,
		.phase = g->backward[v] ? PH_BACKWARD : PH_FORWARD,
		.of = -1, .nread = n, .nwrite = 1, .seconds = g->cpu[v],
	};
	s->read = arena_array(arena, (size_t)n + 1, sizeof *s->read);
	s->write = arena_array(arena, 1, sizeof *s->write);
	for (int k = 0; k < n; k++)
		s->read[k] = made[g->pred[g->pred_at[v] + k]];
	s->write[0] = at;
}

static void
find_lives(Plan *p, int64_t *boundary)
{
	*boundary = -1;
	for (int64_t t = 0; t < p->nstep; t++) {
		const struct plan_step *s = &p->step[t];

		for (int k = 0; k < s->nread; k++)
			p->tensor[s->read[k]].last = t;
		if (s->phase == PH_FORWARD)
			*boundary = t;
	}
}

static void
decide(Plan *p, int64_t boundary)
{
	for (int64_t i = 0; i < p->ntensor; i++) {
		struct plan_tensor *t = &p->tensor[i];

		t->saved = t->first <= boundary && boundary < t->last;
		if (t->saved)
			p->sum.saved += t->bytes;
		if (t->of >= 0)
			p->tensor[t->of].decision = D_RECOMPUTE;
		else
			t->decision = t->saved ? D_KEEP : D_FREE;
	}
}

static void
add_up(const struct dag *g, const struct dag_answer *r, Plan *p)
{
	struct plan_summary *s = &p->sum;
	double base;

	for (int64_t t = 0; t < p->nstep; t++) {
		const struct plan_step *x = &p->step[t];

		*(x->phase == PH_FORWARD ? &s->forward_sec
		  : x->phase == PH_BACKWARD ? &s->backward_sec
		  : &s->recompute_sec) += x->seconds;
	}
	s->step_sec = s->forward_sec + s->backward_sec + s->recompute_sec;
	base = s->step_sec - s->recompute_sec;
	s->bound_sec = r->bound < s->step_sec ? r->bound : s->step_sec;
	s->bound_class = r->bound_class;
	s->overhead = base > 0 ? s->recompute_sec / base : 0;
	s->gap = base > 0 ? (s->step_sec - s->bound_sec) / base : 0;
	s->baseline_peak = g->peak;
	s->alignment = 1;
	s->live_bound = s->arena = s->peak = r->seq.peak;
}

static void
fill(const struct dag *g, const struct dag_answer *r, Plan *p, Arena *arena)
{
	int64_t *made = arena_array(arena, (size_t)g->n, sizeof *made);
	int64_t *first = arena_array(arena, (size_t)g->n, sizeof *first);
	int64_t boundary;

	p->from_graph = true;
	p->nstep = p->ntensor = r->seq.len;
	p->tensor = arena_array(arena, (size_t)p->ntensor, sizeof *p->tensor);
	p->step = arena_array(arena, (size_t)p->nstep, sizeof *p->step);
	for (int32_t i = 0; i < g->n; i++)
		made[i] = first[i] = -1;
	for (int64_t t = 0; t < p->nstep; t++) {
		int32_t v = r->seq.node[t];

		put_tensor(g, &p->tensor[t], v, t);
		put_step(g, &p->step[t], v, t, made, arena);
		if (first[v] >= 0) {
			p->tensor[t].kind = K_RECOMPUTED;
			p->tensor[t].of = first[v];
			p->step[t].of = first[v];
			p->step[t].phase = PH_RECOMPUTE;
		} else {
			first[v] = t;
		}
		made[v] = t;
	}
	find_lives(p, &boundary);
	decide(p, boundary);
	add_up(g, r, p);
}

/* Offsets; false if the arena exceeds the budget. */
static bool
place(Plan *p, int64_t budget, const struct watch *stop, Arena *arena)
{
	size_t n = (size_t)p->ntensor;
	struct buffer *b = arena_array(arena, n + 1, sizeof *b);
	struct pack_limit limit = { .work = PLACE_WORK, .enough = budget,
	                            .stop = stop };

	for (size_t i = 0; i < n; i++)
		b[i] = (struct buffer){ p->tensor[i].first,
			p->tensor[i].last + 1, p->tensor[i].bytes, 0 };
	if (pack_within(b, n, &limit, arena).height > budget)
		return false;
	p->sum.arena = 0;
	for (size_t i = 0; i < n; i++) {
		p->tensor[i].offset = b[i].offset;
		if (b[i].offset + b[i].size > p->sum.arena)
			p->sum.arena = b[i].offset + b[i].size;
	}
	p->sum.peak = p->sum.arena;
	return true;
}

/* ---- the verb ---- */

/* The cheapest plan, or the cheapest one that can be placed. */
static bool
search(const struct cli *c, const struct dag *g, const struct dag_answer *r,
       const struct dag_options *o, Plan *p, Arena *arena)
{
	int64_t tried = INT64_MAX, budget = o->budget;

	for (int32_t k = -1; k < r->nrung && r->found; k++) {
		struct dag_answer one = *r;

		if (k >= 0)
			one.seq = r->rung[k].best;
		if (!one.seq.len || one.seq.peak > budget
		    || one.seq.peak >= tried)
			continue;
		tried = one.seq.peak;
		memset(&p->sum, 0, sizeof p->sum);
		fill(g, &one, p, arena);
		p->sum.budget = budget;
		if (!c->place || place(p, budget, o->watch, arena))
			return true;
		if (watch_off(o->watch))
			break;
	}
	return false;
}

/* Values alive at the fullest step, largest first. */
static void
say_alive(const struct dag *g, const struct dag_seq *s, Diag *diag,
          Arena *arena)
{
	int32_t alive[SHOWN], step;
	int32_t n = dag_alive(g, s, SHOWN, alive, &step, arena);

	diag_more(diag, "there, step %d (%s) has %d values alive:", (int)step,
	          g->name[s->node[step]], (int)n);
	for (int32_t k = 0; k < n && k < SHOWN; k++)
		diag_more(diag, "%" PRId64 " B  %s", g->ram[alive[k]],
		          g->name[alive[k]]);
	if (n > SHOWN)
		diag_more(diag, "and %d smaller ones", (int)n - SHOWN);
}

static bool
refuse(const struct dag *g, const struct dag_answer *r, int64_t budget,
       Diag *diag, Arena *arena)
{
	int64_t least = r->seq.peak;

	if (r->found)
		return diag_error(diag, "budget %" PRId64 " B: plans fit, but "
			"no placement of one was found", budget);
	diag_error(diag, "budget %" PRId64 " B (%.4f of the peak %"
		PRId64 "): no plan %s; least budget %s%" PRId64
		" B (%.4f); the largest working set of a node needs %" PRId64
		" B (%.4f)", budget, (double)budget / (double)g->peak, g->peak,
		budget < g->working_set ? "exists" : "was found",
		least <= g->working_set ? "" : "found ", least,
		(double)least / (double)g->peak,
		g->working_set, (double)g->working_set / (double)g->peak);
	say_alive(g, &r->seq, diag, arena);
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

static bool
to_stdout(const struct cli *c)
{
	return c->json && !strcmp(c->json, "-");
}

static bool
write_plan(const struct cli *c, const Plan *p, Arena *arena, Diag *diag)
{
	struct outfile o;
	bool ok;

	if (!c->json)
		return true;
	if (!outfile_open(&o, c->json, arena, diag))
		return false;
	ok = plan_write_json(p, o.f)
		|| diag_internal(diag, "the plan was not replayed");
	return outfile_close(&o, ok);
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
	Plan p = { .model = c->model, .nflag = c->nflag, .flag = c->flag };
	double began = watch_clock();

	diag_file(diag, c->model);
	if (!outputs_check_report(to_stdout(c) ? NULL : c->json, c->model,
	                          arena, diag)
	    || !read_graph(c, &g, arena, diag))
		return false;
	if (c->budget >= 0)
		o.budget = (int64_t)ceil(c->budget * (double)g.peak);
	o.progress = !c->quiet && isatty(2) ? stderr : NULL;
	r = dag_plan(&g, &o, arena);
	ok = search(c, &g, &r, &o, &p, arena);
	if (watch_off(&watch))
		return diag_error(diag, "interrupted");
	if (!ok)
		return refuse(&g, &r, o.budget, diag, arena);
	if (!plan_replay(&p, diag))
		return false;
	if (c->opt.stats)
		p.sum.solver_sec = watch_clock() - began;
	if (!write_plan(c, &p, arena, diag))
		return false;
	if (!c->quiet)
		print_summary(&p.sum, p.nstep, g.n, to_stdout(c) ? stderr
		              : stdout);
	return true;
}
