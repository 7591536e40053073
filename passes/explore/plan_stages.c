/* Plan each stage of a pipeline as a graph of its own.
 *
 * budget  A stage that has a rank alone gets the rank's budget.  Under an
 *         interleaved schedule the stages of a rank share it: they are planned
 *         without one; if they need more, then again, each within a part of it.
 *         Every budget works that is at least the sum of their least bytes.
 */
#include "passes/explore/plan_stages.h"

#include "passes/explore/second_plan.h"
#include "passes/explore/trial.h"
#include "passes/explore/variants.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/support/number.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* With that many stages, one may take the plan of an equal one that has at most
 * so many times its slots: it needs no more memory.  The slowest stage decides
 * on the step's time, and is one with many slots.  A message names the cuts of
 * LISTED stages. */
enum { MANY_STAGES = 16, LISTED = 8 };
#define LIKE_SLOTS 1.15

static uint64_t
mix_word(uint64_t h, uint64_t x)
{
	h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
	return h ^ h >> 29;
}

/* Of ops, operands, phases, types and shapes; equal graphs have the same, names
 * apart. */
static uint64_t
hash_graph(const Graph *g)
{
	uint64_t h = mix_word(g->nval, g->nnode);

	FOR_VALS (v, g) {
		h = mix_word(mix_word(h, v->kind), v->dt);
		for (int i = 0; i < v->shape.rank; i++)
			h = mix_word(h, (uint64_t)v->shape.dim[i]);
	}
	FOR_NODES (n, g) {
		h = mix_word(mix_word(h, n->op), n->phase);
		for (int k = 0; k < n->nin; k++)
			h = mix_word(h, n->in[k]);
		for (int k = 0; k < n->nout; k++)
			h = mix_word(h, n->out[k]);
	}
	return h;
}

/* The last stage before k that is equal and was planned for not many more
 * slots; NULL: there is none, or there are few stages. */
static const struct planned *
find_like(const struct pipeline *l, const uint64_t *hash, int k)
{
	for (int i = k; l->nstage > MANY_STAGES && i-- > 0; )
		if (hash[i] == hash[k] && !l->stage[i].planned.like
		    && l->stage[i].slots <= LIKE_SLOTS * l->stage[k].slots)
			return &l->stage[i].planned;
	return NULL;
}

static bool
plan_one_stage(const struct pass_walk *w, Pass *p, struct pipeline_stage *s,
               int nmicro)
{
	struct pass_walk walk = *w;
	Graph *before = plan_has_budget(p->opt) && s->slots > 1
		? graph_clone(s->graph) : NULL;
	Pass stage = *p;

	stage.planned = (struct planned){ 0 };
	plan_variants(&walk, &stage, s->graph);
	s->planned = stage.planned;
	if (stage.planned.plan)
		s->slot_bytes = stage.planned.plan->slot_bytes;
	p->retired = stage.retired;
	p->planned.refused |= stage.planned.refused;
	if (before && walk.ok && stage.planned.plan)
		second_plan_try(w, p, s, nmicro, before);
	else
		graph_free(before);
	return walk.ok;
}

/* ---- budgets that a stage cannot meet ---- */

/* Least bytes of a stage that is refused, in percent of its peak, too, if they
 * are more than these. */
static void
add_refused(const struct pass_walk *w, Pass *p, Graph *g, int64_t *bytes,
            double *percent)
{
	struct pass_walk walk = *w;
	struct options o = *p->opt;
	Pass t = *p;
	int64_t least;

	walk.dump = NULL;
	o.slim = o.quiet = true;
	o.account = o.compare = o.stats = false;
	t.opt = &o;
	t.least_behind = NULL;
	t.planned = (struct planned){ 0 };
	t.diag = diag_new("ckc", NULL);
	plan_variants(&walk, &t, g);
	diag_free(t.diag);
	p->retired = t.retired;
	if (!t.planned.refused)
		return;
	least = t.planned.minimum_peak;
	*bytes = least > *bytes ? least : *bytes;
	*percent = fmax(*percent, planned_percent(&t.planned, least));
}

/* Where stage k may end earlier or begin later; false: nowhere. */
static bool
find_shorter(const struct pipeline *l, int k, int *moved, const char **to)
{
	bool last = k == l->nstage - 1;

	*moved = last ? k - 1 : k;
	*to = last ? l->cut[*moved].later : l->cut[*moved].earlier;
	return *to && !(*moved > 0
	                && !strcmp(*to, l->cut[*moved - 1].after));
}

/* All options, unless they are too many for a line. */
static void
suggest_cuts(Pass *p, const struct pipeline *l, int k)
{
	const char *to, *line = "";
	int moved;

	if (!find_shorter(l, k, &moved, &to))
		return;
	for (int i = 0; i < l->nstage - 1; i++)
		line = arena_printf(p->keep, "%s%s--stage '%s'", line,
		                    i ? " " : "",
		                    i == moved ? to : l->cut[i].after);
	if (l->nstage > LISTED)
		diag_more(p->diag, "  fewer nodes on stage %d: a --stage for "
		          "each place of --dump=plan, but '%s' for '%s'", k,
		          to, l->cut[moved].after);
	else
		diag_more(p->diag, "  fewer nodes on stage %d; try: %s", k,
		          line);
}

/* Of parameters, and what is kept of each. */
static int64_t
parameter_bytes(const Graph *g)
{
	int64_t sum = 0;

	FOR_VALS (v, g)
		if ((v->kind == V_PARAM || v->kind == V_STATE) && !v->base
		    && !v->host)
			sum += v->nbytes;
	return sum;
}

/* Stages that are not planned yet. */
struct stages_left {
	const struct pass_walk *w;
	const struct pipeline *l;
	int first;
};

static void
least_behind(Pass *p, int64_t *bytes, double *percent)
{
	const struct stages_left *s = p->least_of;

	*bytes = 0;
	*percent = 0;
	for (int k = s->first; k < s->l->nstage && !watch_over(p->watch); k++)
		add_refused(s->w, p, s->l->stage[k].graph, bytes, percent);
}

/* Beside what is reported of stage k: what pipelines can do. */
static void
explain_refusal(Pass *p, struct pipeline *l, int k)
{
	int64_t half = parameter_bytes(l->stage[k].graph) / 2;

	suggest_cuts(p, l, k);
	if (2 * l->nstage <= GROUP_MAX)
		diag_more(p->diag, "  about %" PRId64 " B less: half as many "
		          "parameters on a stage; try: --pp %d", half,
		          2 * l->nstage);
}

/* ---- a budget for several stages ---- */

static int64_t
sum_peaks(const struct pipeline *l, int rank)
{
	int64_t all = 0;

	for (int k = rank; k < l->nstage; k += l->nrank)
		all += stage_peak(&l->stage[k]);
	return all;
}

/* Least bytes of a stage, about which nothing is said. */
static int64_t
least_bytes(const struct pass_walk *w, Pass *p, const Graph *g)
{
	struct pass_walk walk = *w;
	struct trial t;
	int64_t bytes;

	trial_init(&t, p);
	set_budget_bytes(&t.options, 1);
	trial_begin(&t, g);
	t.pass.result = p->result;
	walk.dump = NULL;
	plan_variants(&walk, &t.pass, t.graph);
	bytes = t.pass.planned.refused ? t.pass.planned.minimum_peak
		: t.pass.planned.plan ? t.pass.planned.plan->sum.peak : 0;
	t.pass.result.forward = NULL;
	trial_close(&t);
	return bytes;
}

static int64_t
budget_of_rank(const Pass *p, const struct pipeline *l, int rank)
{
	return p->opt->budget_bytes > 0 ? p->opt->budget_bytes
		: (int64_t)(p->opt->budget_pct / 100
		            * (double)sum_peaks(l, rank));
}

/* Share a budget that the stages of a rank exceed: each gets its least bytes,
 * and of what is left a part in proportion to what it needed beside them.
 * Returns the sum of the least bytes; 0: they do not exceed it. */
static int64_t
share_budget(const struct pass_walk *w, Pass *p, const struct pipeline *l,
             int rank, Graph *const *copy, int64_t *share)
{
	int64_t all = sum_peaks(l, rank), budget = budget_of_rank(p, l, rank);
	int64_t least = 0;

	if (all <= budget)
		return 0;
	for (int k = rank; k < l->nstage; k += l->nrank)
		least += share[k] = least_bytes(w, p, copy[k]);
	for (int k = rank; k < l->nstage; k += l->nrank) {
		int64_t peak = stage_peak(&l->stage[k]);
		double part = (double)(peak - share[k]) / (double)(all - least);

		if (least < budget)
			share[k] += (int64_t)((double)(budget - least) * part);
	}
	return least;
}

/* share: by stage, its part of a budget; 0: it is not planned again.  The
 * least budget of all ranks is that of the one that lacks most. */
static bool
share_budgets(const struct pass_walk *w, Pass *p, const struct pipeline *l,
              Graph *const *copy, int64_t *share)
{
	char budget[24], works[24];
	int64_t most = 0;
	int rank = -1;

	for (int r = 0; r < l->nrank; r++) {
		int64_t least = share_budget(w, p, l, r, copy, share);

		if (least > budget_of_rank(p, l, r) && least > most) {
			most = least;
			rank = r;
		}
	}
	if (rank < 0)
		return true;
	p->planned.refused = true;
	return diag_error(p->diag, "memory budget %s is too small for rank %d "
	                  "of the pipeline, which has %d stages; try: "
	                  "--memory-budget %lldB (%s)", number_bytes(budget,
		(double)budget_of_rank(p, l, rank)), rank, l->nchunk,
	                  (long long)most, number_bytes(works, (double)most));
}

/* A copy of a stage's graph, to be planned again. */
static Graph *
copy_graph(const Pass *p, const struct pipeline *l, int k)
{
	return plan_has_budget(p->opt) && l->nchunk > 1
		? graph_clone(l->stage[k].graph) : NULL;
}

/* copy: by stage, graphs before they were planned. */
static bool
plan_again(struct pass_walk *w, Pass *p, struct pipeline *l, Graph **copy)
{
	int64_t *share = arena_array(p->keep, (size_t)l->nstage,
	                             sizeof *share);

	w->ok = share_budgets(w, p, l, copy, share);
	for (int k = 0; k < l->nstage && w->ok; k++) {
		struct options *o = arena_alloc(p->keep, sizeof *o);
		const struct options *was = p->opt;
		struct pipeline_stage *s = &l->stage[k];

		if (!share[k])
			continue;
		*o = *was;
		set_budget_bytes(o, share[k]);
		graph_free(s->planned.reference);
		graph_free(s->graph);
		s->graph = copy[k];
		copy[k] = NULL;
		p->opt = o;
		w->ok = plan_one_stage(w, p, s, l->nmicro);
		p->opt = was;
	}
	return w->ok;
}

/* Stages of a rank share its budget. */
static bool
plan_chunks(struct pass_walk *w, Pass *p, struct pipeline *l)
{
	const struct options *was = p->opt;
	struct options *free_plan = arena_alloc(p->keep, sizeof *free_plan);
	Graph **copy = arena_array(p->keep, (size_t)l->nstage, sizeof *copy);

	*free_plan = *was;
	set_budget_bytes(free_plan, -1);
	for (int k = 0; k < l->nstage && w->ok; k++) {
		copy[k] = copy_graph(p, l, k);
		p->opt = free_plan;
		w->ok = plan_one_stage(w, p, &l->stage[k], l->nmicro);
		p->opt = was;
	}
	if (w->ok && plan_has_budget(was))
		plan_again(w, p, l, copy);
	for (int k = 0; k < l->nstage; k++)
		graph_free(copy[k]);
	return w->ok;
}

/* A stage has its rank alone; equal ones are planned once. */
static bool
plan_ranks(struct pass_walk *w, Pass *p, struct pipeline *l)
{
	uint64_t *hash = arena_array(p->keep, (size_t)l->nstage, sizeof *hash);

	for (int k = 0; k < l->nstage; k++)
		hash[k] = hash_graph(l->stage[k].graph);
	for (int k = 0; k < l->nstage && w->ok; k++) {
		struct pipeline_stage *s = &l->stage[k];
		struct stages_left left = { w, l, k + 1 };

		p->like = find_like(l, hash, k);
		p->least_behind = p->opt->candidate ? NULL : least_behind;
		p->least_of = &left;
		if (!plan_one_stage(w, p, s, l->nmicro)) {
			if (s->planned.refused && !p->opt->candidate)
				explain_refusal(p, l, k);
			w->ok = false;
		}
		s->planned.like = p->like != NULL;
	}
	p->like = NULL;
	p->least_behind = NULL;
	return w->ok;
}

void
plan_stages(struct pass_walk *w, Pass *p, Graph *g)
{
	const struct pass_info *optim = pass_that_gives(P_UPD);
	struct pipeline *l;

	if (!pass_walk_reach(w, p, g, optim) || w->stopped)
		return;
	l = p->planned.pipeline;
	p->whole = g;
	w->ok = (l->nchunk > 1 ? plan_chunks(w, p, l) : plan_ranks(w, p, l))
		&& pipeline_check(l, p->diag);
	p->whole = NULL;
}
