#include "passes/explore/trial.h"

#include "passes/data_parallel/data_parallel.h"
#include "passes/explore/variants.h"

void
trial_init(struct trial *t, const Pass *p)
{
	struct options *o = &t->options;

	*t = (struct trial){ .options = *p->opt,
		.watch.stop = p->watch ? p->watch->stop : NULL,
		.pass = { .target = p->target,
		          .result.other_batch = p->result.other_batch } };
	o->slim = o->quiet = true;
	o->account = o->compare = o->curve = o->stats = o->eval = false;
	o->explain = NULL;
}

void
set_budget_bytes(struct options *o, int64_t bytes)
{
	o->budget_pct = 0;
	o->budget_bytes = bytes;
}

void
pin_budget(Pass *p, int64_t bytes)
{
	struct options *o = arena_alloc(p->keep, sizeof *o);

	*o = *p->opt;
	set_budget_bytes(o, bytes);
	p->opt = o;
}

void
trial_begin(struct trial *t, const Graph *of)
{
	t->pass.opt = &t->options;
	t->pass.watch = &t->watch;
	t->pass.diag = diag_new("ckc", NULL);
	t->pass.keep = arena_new();
	t->graph = graph_clone(of);
}

static void
finish_plan(struct trial *t, struct pass_walk w)
{
	plan_variants(&w, &t->pass, t->graph);
	if (!w.ok)
		t->pass.planned.plan = NULL;
}

void
trial_plan(struct trial *t, const Graph *of)
{
	trial_begin(t, of);
	finish_plan(t, (struct pass_walk){
		.next = pass_that_gives(P_LOSS) + 1, .ok = true });
}

bool
trial_shard(struct trial *t, const Graph *of)
{
	struct pass_walk w = { .next = pass_that_gives(P_LOSS) + 1,
	                       .ok = true };

	trial_begin(t, of);
	return pass_walk_reach(&w, &t->pass, t->graph,
	                       pass_that_gives(P_BWD));
}

static void
begin_sharded(struct trial *t, const struct trial *sharded)
{
	trial_begin(t, sharded->graph);
	t->pass.result = sharded->pass.result;
	if (t->graph->replicas > 1)
		t->graph->replicas = t->options.dp;
	dp_set_stage(&t->pass, t->graph);
}

bool
trial_differentiate(struct trial *t, const struct trial *sharded)
{
	struct pass_walk w = { .next = pass_that_gives(P_BWD), .ok = true };

	begin_sharded(t, sharded);
	return pass_walk_reach(&w, &t->pass, t->graph,
	                       pass_that_gives(P_BWD) + 1);
}

void
trial_plan_sharded(struct trial *t, const struct trial *sharded)
{
	begin_sharded(t, sharded);
	finish_plan(t, (struct pass_walk){ .next = pass_that_gives(P_BWD),
	                                   .ok = true });
}

void
trial_close(struct trial *t)
{
	graph_free(t->graph);
	graph_free(t->pass.result.forward);
	arena_free(t->pass.retired);
	arena_free(t->pass.keep);
	diag_free(t->pass.diag);
}
