/* Optimal plans for small graphs.
 *
 * what    the cheapest sequence within a budget, in any order and with any
 *         number of evaluations
 * method  Dijkstra over states (nodes that ran, values in memory): run a node
 *         whose inputs are there, or forget a value
 * cost    at most 3^n states, as only what ran can be in memory
 */
#include "passes/bare/dag.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A state's number: per node 0 did not run, 1 ran and went, 2 in memory. */
struct exact {
	const struct dag *g;
	int64_t budget;
	uint32_t pow3[DAG_EXACT + 1], nstate;
	double *dist;
	uint32_t *from;
	int8_t *how;                    /* node that ran; -1: forgot one */
	uint32_t *heap, nheap;
	uint32_t *at;                   /* in the heap, from 1; 0: not */
};

static void
swap(struct exact *s, uint32_t i, uint32_t j)
{
	uint32_t x = s->heap[i];

	s->heap[i] = s->heap[j];
	s->heap[j] = x;
	s->at[s->heap[i]] = i;
	s->at[s->heap[j]] = j;
}

/* Ties by number, so that equal graphs give equal plans. */
static bool
before(const struct exact *s, uint32_t i, uint32_t j)
{
	uint32_t a = s->heap[i], b = s->heap[j];

	return s->dist[a] < s->dist[b] || (s->dist[a] == s->dist[b] && a < b);
}

static void
relax(struct exact *s, uint32_t to, uint32_t from, double dist, int how)
{
	if (dist >= s->dist[to])
		return;
	s->dist[to] = dist;
	s->from[to] = from;
	s->how[to] = (int8_t)how;
	if (!s->at[to]) {
		s->heap[++s->nheap] = to;
		s->at[to] = s->nheap;
	}
	for (uint32_t i = s->at[to]; i > 1 && before(s, i, i / 2); i /= 2)
		swap(s, i, i / 2);
}

static uint32_t
pop(struct exact *s)
{
	uint32_t top = s->heap[1];

	swap(s, 1, s->nheap--);
	s->at[top] = 0;
	for (uint32_t i = 1; 2 * i <= s->nheap;) {
		uint32_t k = 2 * i;

		if (k < s->nheap && before(s, k + 1, k))
			k++;
		if (!before(s, k, i))
			break;
		swap(s, i, k);
		i = k;
	}
	return top;
}

static void
expand(struct exact *s, uint32_t state)
{
	const struct dag *g = s->g;
	int digit[DAG_EXACT];
	int64_t mem = 0;

	for (int i = 0; i < g->n; i++) {
		digit[i] = (int)(state / s->pow3[i] % 3);
		if (digit[i] == 2)
			mem += g->ram[i];
	}
	for (int i = 0; i < g->n; i++) {
		bool ready = digit[i] != 2 && mem + g->ram[i] <= s->budget;

		if (digit[i] == 2)
			relax(s, state - s->pow3[i], state, s->dist[state],
			      -1);
		for (int32_t k = g->pred_at[i]; k < g->pred_at[i + 1]; k++)
			ready &= digit[g->pred[k]] == 2;
		if (ready)
			relax(s, state + (uint32_t)(2 - digit[i]) * s->pow3[i],
			      state, s->dist[state] + g->cpu[i], i);
	}
}

static bool
is_goal(const struct exact *s, uint32_t state)
{
	for (int i = 0; i < s->g->n; i++)
		if (state / s->pow3[i] % 3 == 0)
			return false;
	return true;
}

static void
trace(const struct exact *s, uint32_t state, struct dag_best *b)
{
	int32_t n = 0, *seq;

	for (uint32_t x = state; x; x = s->from[x])
		n += s->how[x] >= 0;
	seq = arena_array(b->scratch, (size_t)n + 1, sizeof *seq);
	for (uint32_t x = state, k = (uint32_t)n; x; x = s->from[x])
		if (s->how[x] >= 0)
			seq[--k] = s->how[x];
	dag_offer(b, seq, n);
}

bool
dag_exact(struct dag_best *b, int64_t budget)
{
	struct exact s = { .g = b->g, .budget = budget };
	Arena *keep = b->scratch, *a = arena_new();
	bool found = false;

	b->scratch = a;
	s.nstate = 1;
	for (int i = 0; i < b->g->n; i++) {
		s.pow3[i] = s.nstate;
		s.nstate *= 3;
	}
	s.dist = arena_array(a, s.nstate, sizeof *s.dist);
	s.from = arena_array(a, s.nstate, sizeof *s.from);
	s.how = arena_array(a, s.nstate, sizeof *s.how);
	s.heap = arena_array(a, s.nstate + 2, sizeof *s.heap);
	s.at = arena_array(a, s.nstate, sizeof *s.at);
	for (uint32_t i = 0; i < s.nstate; i++)
		s.dist[i] = INFINITY;
	relax(&s, 0, 0, 0, -1);
	while (s.nheap && !found) {
		uint32_t state = pop(&s);

		found = is_goal(&s, state);
		if (found)
			trace(&s, state, b);
		else
			expand(&s, state);
	}
	arena_free(a);
	b->scratch = keep;
	return found;
}
