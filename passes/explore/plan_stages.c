/* Plan each stage of a pipeline as a graph of its own, for the same budget. */
#include "passes/explore/plan_stages.h"

#include <inttypes.h>
#include <string.h>

#include "passes/explore/variants.h"
#include "passes/pipeline/pipeline.h"

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
plan_one_stage(const struct pass_walk *w, Pass *p, struct pipeline_stage *s)
{
	struct pass_walk walk = *w;
	Pass stage = *p;

	stage.planned = (struct planned){ 0 };
	plan_variants(&walk, &stage, s->graph);
	s->planned = stage.planned;
	if (stage.planned.plan)
		s->slot_bytes = stage.planned.plan->slot_bytes;
	p->retired = stage.retired;
	p->planned.refused |= stage.planned.refused;
	return walk.ok;
}

/* ---- budgets that a stage cannot meet ---- */

/* Least bytes of a stage that is refused; 0: it is not. */
static int64_t
refused_bytes(const struct pass_walk *w, Pass *p, Graph *g)
{
	struct pass_walk walk = *w;
	struct options o = *p->opt;
	Pass t = *p;

	walk.dump = NULL;
	o.slim = o.quiet = true;
	o.account = o.compare = o.stats = false;
	t.opt = &o;
	t.planned = (struct planned){ 0 };
	t.diag = diag_new("ckc", NULL);
	plan_variants(&walk, &t, g);
	diag_free(t.diag);
	p->retired = t.retired;
	return t.planned.refused ? t.planned.minimum_peak : 0;
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

/* Beside what is reported of stage k: what pipelines can do, and what the other
 * stages need. */
static void
explain_refusal(const struct pass_walk *w, Pass *p, struct pipeline *l, int k,
                int64_t least)
{
	int64_t half = parameter_bytes(l->stage[k].graph) / 2, most = least;

	suggest_cuts(p, l, k);
	if (2 * l->nstage <= GROUP_MAX)
		diag_more(p->diag, "  about %" PRId64 " B less: half as many "
		          "parameters on a stage; try: --pp %d", half,
		          2 * l->nstage);
	while (++k < l->nstage && !watch_over(p->watch)) {
		int64_t bytes = refused_bytes(w, p, l->stage[k].graph);

		most = bytes > most ? bytes : most;
	}
	if (most > least && p->opt->budget_pct <= 0)
		diag_more(p->diag, "smallest budget that works for all stages: "
		          "%" PRId64 " B", most);
}

/* ---- all stages ---- */

void
plan_stages(struct pass_walk *w, Pass *p, Graph *g)
{
	const struct pass_info *optim = pass_that_gives(P_UPD);
	struct pipeline *l;
	uint64_t *hash;

	if (!pass_walk_reach(w, p, g, optim) || w->stopped)
		return;
	l = p->planned.pipeline;
	hash = arena_array(p->keep, (size_t)l->nstage, sizeof *hash);
	p->whole = g;
	for (int k = 0; k < l->nstage; k++)
		hash[k] = hash_graph(l->stage[k].graph);
	for (int k = 0; k < l->nstage && w->ok; k++) {
		p->like = find_like(l, hash, k);
		struct pipeline_stage *s = &l->stage[k];

		if (!plan_one_stage(w, p, s)) {
			if (s->planned.refused && !p->opt->candidate)
				explain_refusal(w, p, l, k,
				                s->planned.minimum_peak);
			w->ok = false;
		}
		s->planned.like = p->like != NULL;
	}
	p->like = NULL;
	p->whole = NULL;
	w->ok = w->ok && pipeline_check(l, p->diag);
}
