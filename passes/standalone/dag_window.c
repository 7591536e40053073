/* Stretches of a plan, each made anew.
 *
 * what    a cheaper plan for the same budget
 * method  Some steps in a row begin with what the plan then has in memory and
 *         end with what it still reads afterwards; everything else in memory
 *         stays.  A search over states (dag_states.c) finds the cheapest way
 *         from the one to the other, in any order and with any evaluations.
 *         Stretches overlap by half; one that became cheaper is looked at
 *         again.
 * cost    limited in states
 */
#include "passes/standalone/standalone.h"

#include <math.h>
#include <string.h>

/* States of one stretch, and nodes that run in it. */
enum { STATES = 50000, RUNS = 24 };

struct stretch {
	const struct dag *g;
	const struct dag_seq *seq;
	const int32_t *last;            /* by step: dag_lasts */
	const int32_t *runs;            /* by node: in the whole plan */
	int32_t from, to;               /* steps: from .. to - 1 */
	int32_t node[DAG_STATES_NODES]; /* in order */
	int8_t *at;                     /* by node: its number; -1: not here */
	int64_t stays;                  /* bytes of what is not here */
	double cost;                    /* of these steps */
	struct dag_small small;
};

static void
add_node(struct stretch *w, int32_t node)
{
	int32_t k = w->small.n;

	if (w->at[node] >= 0)
		return;
	for (; k > 0 && w->node[k - 1] > node; k--)
		w->node[k] = w->node[k - 1];
	w->node[k] = node;
	w->at[node] = 0;
	w->small.n++;
}

/* How many nodes a run of v and its operands would add. */
static int32_t
count_new(const struct stretch *w, int32_t v)
{
	const struct dag *g = w->g;
	int32_t n = w->at[v] < 0;

	for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++)
		n += w->at[g->pred[k]] < 0;
	return n;
}

/* As many steps as there is room for. */
static void
find_nodes(struct stretch *w)
{
	const struct dag *g = w->g;

	for (w->to = w->from; w->to < w->seq->len; w->to++) {
		int32_t v = w->seq->node[w->to];

		if (w->to - w->from == RUNS
		    || w->small.n + count_new(w, v) > DAG_STATES_NODES)
			break;
		add_node(w, v);
		for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++)
			add_node(w, g->pred[k]);
		w->cost += g->cpu[v];
	}
	for (int32_t i = 0; i < w->small.n; i++)
		w->at[w->node[i]] = (int8_t)i;
}

/* What is in memory when the stretch begins, and must be when it ends. */
static void
find_ends(struct stretch *w)
{
	int32_t here[DAG_STATES_NODES] = { 0 };

	for (int32_t t = 0; t < w->to; t++) {
		int32_t v = w->seq->node[t], at = w->at[v];
		bool held = t < w->from && w->last[t] >= w->from;

		if (at < 0) {
			w->stays += held ? w->g->ram[v] : 0;
			continue;
		}
		if (held)
			w->small.held |= (uint32_t)1 << at;
		if (w->last[t] >= w->to)
			w->small.want |= (uint32_t)1 << at;
		here[at] += t >= w->from;
	}
	for (int32_t i = 0; i < w->small.n; i++)
		if (here[i] < w->runs[w->node[i]])
			w->small.ran |= (uint32_t)1 << i;
}

static void
find_costs(struct stretch *w)
{
	const struct dag *g = w->g;
	struct dag_small *s = &w->small;

	for (int32_t i = 0; i < s->n; i++) {
		int32_t v = w->node[i];

		s->ram[i] = g->ram[v];
		s->cpu[i] = g->cpu[v];
		for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++)
			if (w->at[g->pred[k]] < 0)
				s->cpu[i] = INFINITY;
			else
				s->read[i] |= (uint32_t)1 << w->at[g->pred[k]];
	}
}

/* The plan with the way in place of the stretch. */
static bool
offer_way(struct dag_best *b, const struct stretch *w,
          const struct dag_way *way, Arena *a)
{
	const struct dag_seq *q = w->seq;
	int32_t rest = q->len - w->to, len = w->from + way->len + rest;
	int32_t *node = arena_array(a, (size_t)len + 1, sizeof *node);

	memcpy(node, q->node, (size_t)w->from * sizeof *node);
	for (int32_t t = 0; t < way->len; t++)
		node[w->from + t] = w->node[way->node[t]];
	memcpy(node + w->from + way->len, q->node + w->to,
	       (size_t)rest * sizeof *node);
	return dag_offer(b, node, len);
}

/* True: it became cheaper.  Lowers *states by those that it took at most. */
static bool
improve_stretch(struct dag_best *b, struct stretch *w, int64_t *states,
                Arena *a)
{
	struct dag_way way;

	memset(w->at, 0xff, (size_t)w->g->n * sizeof *w->at);
	find_nodes(w);
	find_ends(w);
	find_costs(w);
	*states -= STATES;
	dag_states(&w->small, b->grid[b->at].budget - w->stays,
	           w->cost * (1 - 1e-9), STATES, b->o->watch, &way, a);
	return way.found && offer_way(b, w, &way, a);
}

void
dag_windows(struct dag_best *b, int64_t states)
{
	const struct dag *g = b->g;
	const struct dag_seq *own = &b->grid[b->at].best;
	Arena *a = arena_new();
	int32_t *runs = arena_array(a, (size_t)g->n + 1, sizeof *runs);
	int8_t *at = arena_alloc(a, (size_t)g->n);

	for (int32_t from = 0; from < own->len;) {
		int32_t *last = arena_array(a, (size_t)own->len + 1,
			sizeof *last);
		bool better = false;

		dag_lasts(g, own, last, runs);
		memset(runs, 0, (size_t)g->n * sizeof *runs);
		for (int32_t t = 0; t < own->len; t++)
			runs[own->node[t]]++;
		while (from < own->len && !better) {
			struct stretch w = { .g = g, .seq = own, .last = last,
				.runs = runs, .from = from, .at = at };

			if (states <= 0 || dag_stopped(b))
				goto end;
			better = improve_stretch(b, &w, &states, a);
			from += better ? 0 : (w.to - from) / 2 + 1;
		}
	}
end:
	arena_free(a);
}
