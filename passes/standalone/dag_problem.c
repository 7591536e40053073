/* A standalone graph as the planner's problem: walks through it, and a bound.
 *
 * what    node i of the graph is node i + 1 of the problem and writes storage
 *         i; nothing is a view, nothing is overwritten in place, every value
 *         may go and every node run again
 * method  see checkpoints.c, remat_evict.c, of which several ways are tried,
 *         and stages.c
 */
#include "passes/standalone/standalone.h"
#include "passes/recursive/checkpoints.h"
#include "passes/recursive/sequence_generators.h"
#include "passes/recursive/stages.h"
#include "passes/ilp/ilp.h"

const struct remat *
dag_problem(const struct dag *g, struct watch *watch, Arena *arena)
{
	struct remat *r = arena_alloc(arena, sizeof *r);
	size_t n = (size_t)g->n;
	int32_t *id = arena_array(arena, n + 1, sizeof *id);

	r->arena = arena;
	r->watch = watch;
	r->nnode = (NodeId)g->n + 1;
	r->nstore = r->ncand = g->n;
	r->node = arena_array(arena, n + 1, sizeof *r->node);
	r->store = arena_array(arena, n + 1, sizeof *r->store);
	r->base_sec = g->cost;
	for (int32_t i = 0; i < g->n; i++) {
		NodeId at = (NodeId)i + 1;

		id[i] = i;
		r->store[i] = (struct storage){
			.size = g->ram[i], .candidate = true, .def = at,
			.group = -1,
		};
		r->node[at] = (struct rnode){
			.node = at, .read = g->pred + g->pred_at[i],
			.nread = g->pred_at[i + 1] - g->pred_at[i],
			.write = &id[i], .nwrite = 1, .sec = g->cpu[i],
			.always = -1, .clonable = true,
			.least_sec = g->cpu[i],
		};
	}
	return r;
}

static struct dag_seq
sequence(const struct step_list *s, Arena *arena)
{
	struct dag_seq q = { .len = s->n };

	q.node = arena_array(arena, (size_t)s->n + 1, sizeof *q.node);
	for (int32_t i = 0; i < s->n; i++)
		q.node[i] = (int32_t)s->step[i].node - 1;
	return q;
}

void
dag_evict(struct dag_best *b, int64_t work)
{
	/* the best ones first */
	static const struct evict_weights way[] = {
		{ 1, 1, 1 }, { 2, 1, 1 }, { 1, 0.5, 1 }, { 2, 0.5, 1 },
		{ 1, 1, 0 }, { 2, 1, 0 }, { 0.5, 1, 1 }, { 0.5, 0.5, 0 },
		{ 2, 0.5, 0 }, { 1, 0.5, 0 }, { 0.5, 1, 0 }, { 0.5, 0.5, 1 },
	};
	int32_t n = b->g->n;
	Arena *scratch = arena_new();
	uint8_t *constraint = arena_array(scratch, (size_t)n + 1, 1);
	struct step_list out = { .arena = scratch, .limit = 64 * n + 1000 };

	for (size_t k = 0; k < sizeof way / sizeof *way && work > 0
	     && !dag_stopped(b); k++) {
		struct dag_seq q;

		if (!remat_evict(b->problem, constraint,
		                 b->grid[b->at].budget, &way[k], &work, &out))
			continue;
		q = sequence(&out, scratch);
		dag_offer(b, q.node, q.len);
	}
	arena_free(scratch);
}

/* Steps of all checkpointing plans together. */
#define CHECKPOINT_WORK INT64_C(30000000)

struct offering {
	struct dag_best *b;
	struct step_list *out;
};

static void
offer_sequence(void *data)
{
	const struct offering *o = data;
	Arena *scratch = arena_new();
	struct dag_seq q = sequence(o->out, scratch);

	dag_offer(o->b, q.node, q.len);
	arena_free(scratch);
}

void
dag_checkpoints(struct dag_best *b)
{
	int32_t n = b->g->n;
	Arena *scratch = arena_new();
	uint8_t *constraint = arena_array(scratch, (size_t)n + 1, 1);
	struct step_list out = { .arena = scratch, .limit = 64 * n + 1000 };
	struct offering o = { b, &out };

	checkpoints_all(b->problem, constraint, (NodeId)b->g->turn + 1, &out,
	                CHECKPOINT_WORK, offer_sequence, &o);
	arena_free(scratch);
}

/* Nodes of branch and bound times nodes and stages; and nodes of a graph
 * beyond which nothing is tried. */
enum { NODES = 40000, NODES_MAX = 4096, SIZE = 1500 };

double
dag_bound(const struct dag_best *b, int64_t budget, struct dag_seq *start)
{
	const struct dag *g = b->g;
	int most = SIZE / g->n;
	Arena *scratch = arena_new();
	struct step_list plan = { .arena = scratch, .limit = INT32_MAX };
	struct stage_bound job = {
		.r = b->problem, .memory = budget, .any_order = true,
		.nodes = NODES, .plan = &plan,
		.most = most < STAGES_MAX ? most : STAGES_MAX,
	};
	double bound = 0;

	if (start)
		*start = (struct dag_seq){ .len = 0 };
	if (g->n <= NODES_MAX && budget < g->peak) {
		bound = stages_bound(&job);
		ilp_end();
	}
	if (start && plan.n) {
		*start = sequence(&plan, b->arena);
		start->peak = job.cost.live;
		start->cost = g->cost + job.cost.sec;
	}
	arena_free(scratch);
	return g->cost + bound;
}
