/* The cheapest plan of a small graph, or way through a stretch of a plan: a
 * search over states.
 *
 * what    an optimal sequence, or a lower bound on what any costs
 * method  A* (Hart, Nilsson and Raphael, 1968).  A state is which nodes have
 *         run and which values are in memory.  Nodes that have not run, and
 *         those that must run again for them because a value is gone, give the
 *         lower bound of what is still to be paid.  Values that nobody can read
 *         any more leave at once; others leave only for a node that does not
 *         fit, in each way of which no part would do.
 * cost    exponential, and therefore limited in states; when these are spent,
 *         the least of the bounds of all open states bounds every plan
 */
#include "passes/standalone/standalone.h"

#include <math.h>
#include <string.h>

/* Ways to a state that are tried, for each state that there is room for. */
enum { TRIES = 16 };

struct state {
	uint32_t ran, held;
	double cost;                    /* so far */
	double least;                   /* and with what is certain to come */
	int32_t from;                   /* the state before */
	int8_t node;                    /* that ran */
	bool closed;
};

struct state_search {
	const struct dag_small *g;
	int64_t budget;
	double limit;                   /* plans that cost as much are no use */
	uint32_t all;                   /* nodes */
	uint32_t readers[DAG_STATES_NODES];     /* of each node */
	int32_t by_size[DAG_STATES_NODES];      /* nodes, the largest first */
	struct state *state;
	int32_t n, cap;
	int64_t tries;                  /* that are left: ways to states */
	int32_t *slot, nslot;           /* hash table */
	int32_t *heap, nheap;
};

/* Lowest bit of a set that is not empty. */
static int
first_of(uint32_t set)
{
	return __builtin_ctz(set);
}

static int64_t
set_bytes(const struct state_search *s, uint32_t set)
{
	int64_t sum = 0;

	for (; set; set &= set - 1)
		sum += s->g->ram[first_of(set)];
	return sum;
}

/* What runs in any case from this state on. */
static double
least_after(const struct state_search *s, uint32_t ran, uint32_t held)
{
	uint32_t due = (~ran & s->all) | (s->g->want & ~held);
	double sum = 0;

	for (int32_t v = s->g->n; v-- > 0;)
		if (due >> v & 1) {
			due |= s->g->read[v] & ~held;
			sum += s->g->cpu[v];
		}
	return sum;
}

/* Values that some node may still read, or that are wanted in the end. */
static uint32_t
useful(const struct state_search *s, uint32_t ran)
{
	uint32_t may_run = ~ran, use = 0;

	for (int32_t v = s->g->n; v-- > 0;)
		if (s->readers[v] & may_run || s->g->want >> v & 1) {
			use |= (uint32_t)1 << v;
			may_run |= (uint32_t)1 << v;
		}
	return use;
}

/* ---- open states, the least bound first, of equals the dearest ---- */

static bool
goes_first(const struct state_search *s, int32_t a, int32_t b)
{
	const struct state *x = &s->state[a], *y = &s->state[b];

	if (x->least != y->least)
		return x->least < y->least;
	return x->cost != y->cost ? x->cost > y->cost : a > b;
}

static void
heap_add(struct state_search *s, int32_t x)
{
	int32_t k = s->nheap++;

	for (; k > 0 && goes_first(s, x, s->heap[(k - 1) / 2]);
	     k = (k - 1) / 2)
		s->heap[k] = s->heap[(k - 1) / 2];
	s->heap[k] = x;
}

static int32_t
heap_take(struct state_search *s)
{
	int32_t top = s->heap[0], x = s->heap[--s->nheap], k = 0;

	for (int32_t c = 1; c < s->nheap; c = 2 * k + 1) {
		c += c + 1 < s->nheap
			&& goes_first(s, s->heap[c + 1], s->heap[c]);
		if (!goes_first(s, s->heap[c], x))
			break;
		s->heap[k] = s->heap[c];
		k = c;
	}
	s->heap[k] = x;
	return top;
}

/* ---- states ---- */

static int32_t *
find_slot(const struct state_search *s, uint32_t ran, uint32_t held)
{
	uint64_t h = ((uint64_t)ran << 32 | held) * 0x9e3779b97f4a7c15u;
	int32_t k = (int32_t)(h >> 33) & (s->nslot - 1);

	while (s->slot[k] >= 0 && (s->state[s->slot[k]].ran != ran
	                           || s->state[s->slot[k]].held != held))
		k = (k + 1) & (s->nslot - 1);
	return &s->slot[k];
}

/* A way to a state; cheaper ones replace dearer ones, as the bound never falls
 * along a way.  False: there is no room for it. */
static bool
reach_state(struct state_search *s, struct state x)
{
	int32_t *at;

	if (s->tries-- == 0)
		return false;
	x.least = x.cost + least_after(s, x.ran, x.held);
	if (x.least >= s->limit)
		return true;
	at = find_slot(s, x.ran, x.held);
	if (*at >= 0 && s->state[*at].cost <= x.cost)
		return true;
	if (s->n == s->cap)
		return false;
	if (*at >= 0)
		s->state[*at].closed = true;
	*at = s->n;
	s->state[s->n] = x;
	heap_add(s, s->n++);
	return true;
}

/* A run for which values have to leave. */
struct state_run {
	struct state to;                /* with all values still in memory */
	uint32_t may_leave;
};

/* After what leaves for it: `over` bytes at least.  Next is the k-th of all
 * nodes by size, and from there on `bytes` may leave; the last to leave is the
 * smallest, so each way that is tried needs all its parts. */
static bool
make_room(struct state_search *s, const struct state_run *r, uint32_t gone,
          int64_t over, int32_t k, int64_t bytes)
{
	struct state to = r->to;

	to.held &= ~gone;
	if (over <= 0)
		return reach_state(s, to);
	for (; bytes >= over; k++) {
		int32_t v = s->by_size[k];

		if (!(r->may_leave >> v & 1))
			continue;
		bytes -= s->g->ram[v];
		if (!make_room(s, r, gone | (uint32_t)1 << v,
		               over - s->g->ram[v], k + 1, bytes))
			return false;
	}
	return true;
}

static bool
expand_state(struct state_search *s, int32_t from)
{
	const struct state x = s->state[from];
	uint32_t use = useful(s, x.ran);
	int64_t room = s->budget - set_bytes(s, x.held);

	for (int32_t v = 0; v < s->g->n; v++) {
		uint32_t bit = (uint32_t)1 << v, ran = x.ran | bit;
		struct state_run r = { .may_leave = x.held & ~s->g->read[v] };

		if (x.held & bit || s->g->read[v] & ~x.held
		    || (x.ran & bit && !(use & bit)) || isinf(s->g->cpu[v]))
			continue;
		r.to = (struct state){ ran, (x.held | bit) & useful(s, ran),
			x.cost + s->g->cpu[v], 0, from, (int8_t)v, false };
		if (!make_room(s, &r, 0, s->g->ram[v] - room, 0,
		               set_bytes(s, r.may_leave)))
			return false;
	}
	return true;
}

/* ---- entry ---- */

struct dag_small
dag_whole(const struct dag *g)
{
	struct dag_small s = { .n = g->n };

	for (int32_t v = 0; v < g->n; v++) {
		s.ram[v] = g->ram[v];
		s.cpu[v] = g->cpu[v];
		for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++)
			s.read[v] |= (uint32_t)1 << g->pred[k];
	}
	return s;
}

static void
prepare_search(struct state_search *s, int32_t states, Arena *a)
{
	const struct dag_small *g = s->g;

	s->all = (uint32_t)((UINT64_C(1) << g->n) - 1);
	for (int32_t v = 0; v < g->n; v++)
		for (uint32_t left = g->read[v]; left; left &= left - 1)
			s->readers[first_of(left)] |= (uint32_t)1 << v;
	for (int32_t v = 0, k; v < g->n; s->by_size[k] = v++)
		for (k = v; k > 0 && g->ram[s->by_size[k - 1]] < g->ram[v]; k--)
			s->by_size[k] = s->by_size[k - 1];
	s->cap = states;
	s->tries = (int64_t)TRIES * states;
	for (s->nslot = 1; s->nslot < 2 * states;)
		s->nslot *= 2;
	s->state = arena_array(a, (size_t)states, sizeof *s->state);
	s->heap = arena_array(a, (size_t)states, sizeof *s->heap);
	s->slot = arena_array(a, (size_t)s->nslot, sizeof *s->slot);
	memset(s->slot, 0xff, (size_t)s->nslot * sizeof *s->slot);
}

/* The nodes that ran on the way to a state. */
static void
write_way(const struct state_search *s, int32_t to, struct dag_way *way,
          Arena *a)
{
	int32_t t;

	way->len = 0;
	for (int32_t k = to; k > 0; k = s->state[k].from)
		way->len++;
	way->node = arena_array(a, (size_t)way->len + 1, sizeof *way->node);
	t = way->len;
	for (int32_t k = to; k > 0; k = s->state[k].from)
		way->node[--t] = s->state[k].node;
	way->found = true;
}

double
dag_states(const struct dag_small *g, int64_t budget, double limit,
           int32_t states, struct watch *watch, struct dag_way *way, Arena *to)
{
	struct state_search s = { .g = g, .budget = budget, .limit = limit };
	Arena *a = arena_new();
	double least = limit;
	bool room = true;

	way->found = false;
	prepare_search(&s, states, a);
	reach_state(&s, (struct state){ .ran = g->ran, .held = g->held,
	                                .from = -1 });
	while (s.nheap > 0) {
		int32_t k = heap_take(&s);

		if (s.state[k].closed)
			continue;
		least = s.state[k].least;
		if (s.state[k].ran == s.all && !(g->want & ~s.state[k].held)) {
			write_way(&s, k, way, to);
			break;
		}
		room = room && expand_state(&s, k);
		if (!room || watch_over(watch))
			break;
		least = limit;
	}
	arena_free(a);
	return least;
}
