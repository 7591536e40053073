/* Plan each stage of a pipeline as a graph of its own, for the same budget. */
#include "passes/explore/plan_stages.h"

#include "passes/explore/variants.h"
#include "passes/pipeline/pipeline.h"

/* With that many stages, one may take the plan of an equal one that has at most
 * so many times its slots: it needs no more memory.  The slowest stage decides
 * on the step's time, and is one with many slots. */
enum { MANY_STAGES = 16 };
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
	for (int k = 0; k < l->nstage; k++)
		hash[k] = hash_graph(l->stage[k].graph);
	for (int k = 0; k < l->nstage && w->ok; k++) {
		p->like = find_like(l, hash, k);
		w->ok = plan_one_stage(w, p, &l->stage[k]);
		l->stage[k].planned.like = p->like != NULL;
	}
	p->like = NULL;
	w->ok = w->ok && pipeline_check(l, p->diag);
}
