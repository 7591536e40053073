/* Keep or recompute: small graphs, exactly.
 *
 * what    for falling amounts of memory the fastest sequence that needs no
 *         more, nodes being repeated as often as it takes, until none exists
 * method  Dijkstra over states (first runs so far, droppable storages in
 *         memory).  Moves: the next first run, a copy of a node that ran, to
 *         forget a storage; a step may write over operands that it forgets.
 *         Costs of first runs do not count.  The next amount is one byte less
 *         than the plan found needs.
 * cost    nodes * 2^storages states for each plan; larger graphs are left to
 *         others, and so are those in which forward writes into memory that
 *         it did not make
 */
#include "passes/deep/deep_known.h"

#include <math.h>
#include <string.h>

enum { STORES = 12, STATES = 120000, PLANS = 80, SET = 32 };

struct exact {
	struct deep *d;
	const struct remat *r;
	int32_t cand[STORES], ncand;
	int32_t *bit;                   /* by storage; -1 */
	NodeId *last;                   /* by storage: last first run to read */
	int64_t *others;                /* by node: bytes without choice that
	                                 * are alive before it runs */
	int64_t size[1 << STORES];      /* of a set */
	uint32_t *reads;                /* sets, by node */
	int64_t room;
	uint32_t nstate;
	double *sec;                    /* by state: node << ncand | set */
	uint32_t *from;
	struct rstep *how;              /* node 0: something was forgotten */
	uint32_t *heap, *at, nheap;     /* at: from 1; 0: not there */
};

/* ---- heap ---- */

static bool
before(const struct exact *e, uint32_t i, uint32_t j)
{
	uint32_t a = e->heap[i], b = e->heap[j];

	return e->sec[a] < e->sec[b] || (e->sec[a] <= e->sec[b] && a > b);
}

static void
swap(struct exact *e, uint32_t i, uint32_t j)
{
	uint32_t x = e->heap[i];

	e->heap[i] = e->heap[j];
	e->heap[j] = x;
	e->at[e->heap[i]] = i;
	e->at[e->heap[j]] = j;
}

static void
rise(struct exact *e, uint32_t i)
{
	for (; i > 1 && before(e, i, i / 2); i /= 2)
		swap(e, i, i / 2);
}

static uint32_t
pop(struct exact *e)
{
	uint32_t top = e->heap[1], i = 1;

	swap(e, 1, e->nheap--);
	e->at[top] = 0;
	for (;;) {
		uint32_t kid = 2 * i;

		if (kid > e->nheap)
			return top;
		if (kid < e->nheap && before(e, kid + 1, kid))
			kid++;
		if (!before(e, kid, i))
			return top;
		swap(e, i, kid);
		i = kid;
	}
}

static void
reach(struct exact *e, uint32_t to, uint32_t from, double sec,
      struct rstep how)
{
	if (!(sec < e->sec[to]))
		return;
	e->sec[to] = sec;
	e->from[to] = from;
	e->how[to] = how;
	if (!e->at[to]) {
		e->heap[++e->nheap] = to;
		e->at[to] = e->nheap;
	}
	rise(e, e->at[to]);
}

/* ---- moves ---- */

/* Storages that may be written over when they go at this step. */
static uint32_t
lenders(const struct exact *e, const struct rnode *n)
{
	uint32_t set = 0;

	for (int p = 0; p < n->npair; p++)
		if (e->bit[n->pair[2 * p + 1]] >= 0)
			set |= 1u << e->bit[n->pair[2 * p + 1]];
	return set;
}

/* Whether write[i] is made.  What has more of them is never repeated, and a
 * first run makes all. */
static bool
made(uint32_t makes, int i)
{
	return i >= REMAT_WRITES || makes >> i & 1;
}

/* Bytes that a step adds, the set `gone` going at it.  What lies in a place
 * beyond the set lends nothing, which is on the safe side. */
static int64_t
added(const struct exact *e, const struct rnode *n, bool clone,
      uint32_t makes, uint32_t gone)
{
	int64_t sum = n->workspace;
	uint32_t placed = 0, lent = 0;

	for (int i = 0; i < n->nwrite; i++)
		if (made(makes, i))
			sum += e->r->store[n->write[i]].size;
	if (n->always >= 0 && !made(makes, n->always))
		sum += e->r->store[n->write[n->always]].size;
	for (int p = 0; p < n->npair; p++) {
		int32_t y = n->pair[2 * p], x = n->pair[2 * p + 1];
		int at = 0, in = 0;
		bool goes = e->bit[x] >= 0 ? gone >> e->bit[x] & 1
			: !clone && e->last[x] == n->node
			  && !e->r->store[x].output;

		while (at < n->nwrite && n->write[at] != y)
			at++;
		while (in < n->nread && n->read[in] != x)
			in++;
		if (!goes || in == n->nread || at == n->nwrite
		    || in >= SET || at >= SET || lent >> in & 1
		    || !made(makes, at) || placed >> at & 1)
			continue;
		placed |= 1u << at;
		lent |= 1u << in;
		sum -= e->r->store[y].size;
	}
	return sum;
}

/* All ways to run a node in a state. */
static void
try_run(struct exact *e, uint32_t state, const struct rnode *n, bool clone,
        uint32_t makes)
{
	uint32_t full = (1u << e->ncand) - 1, set = state & full;
	uint32_t now = state >> e->ncand, lend = lenders(e, n) & set;
	uint32_t new = 0;
	int64_t room = e->room - e->others[now] - e->size[set];

	if (e->reads[n->node] & ~set)
		return;
	for (int i = 0; i < n->nwrite; i++)
		if (made(makes, i) && e->bit[n->write[i]] >= 0)
			new |= 1u << e->bit[n->write[i]];
	for (uint32_t gone = lend;; gone = (gone - 1) & lend) {
		if (added(e, n, clone, makes, gone) <= room)
			reach(e, (now + !clone) << e->ncand
			      | ((set & ~gone) | new), state,
			      e->sec[state] + (clone ? n->sec : 0),
			      (struct rstep){ .node = n->node, .clone = clone,
			                      .makes = clone ? makes : 0 });
		if (gone == 0)
			return;
	}
}

static void
try_copies(struct exact *e, uint32_t state)
{
	uint32_t set = state & ((1u << e->ncand) - 1);
	NodeId now = state >> e->ncand;

	for (int32_t k = 0; k < e->ncand; k++) {
		const struct rnode *n = &e->r->node[e->r->store[e->cand[k]]
			.def];
		uint32_t missing = 0;

		if (n->node >= now || (e->cand[k] != n->write[0] && n->nwrite
		    > 1 && e->bit[n->write[0]] >= 0))
			continue;       /* once for each node */
		for (int i = 0; i < n->nwrite; i++)
			if (e->bit[n->write[i]] >= 0
			    && !(set >> e->bit[n->write[i]] & 1))
				missing |= 1u << i;
		for (uint32_t m = missing; m; m = (m - 1) & missing)
			try_run(e, state, n, true, m);
	}
}

/* The fastest sequence for e->room; false: there is none. */
static bool
search(struct exact *e)
{
	uint32_t full = (1u << e->ncand) - 1, state = 1u << e->ncand;
	NodeId end = e->r->nnode;

	for (uint32_t i = 0; i < e->nstate; i++)
		e->sec[i] = INFINITY;
	memset(e->at, 0, e->nstate * sizeof *e->at);
	e->nheap = 0;
	reach(e, state, 0, 0, (struct rstep){ .node = 0 });
	while (e->nheap) {
		state = pop(e);
		NodeId now = state >> e->ncand;
		const struct rnode *n = &e->r->node[now];

		if (now == end)
			break;
		for (int32_t k = 0; k < e->ncand; k++)
			if (state >> k & 1)
				reach(e, state & ~(1u << k), state,
				      e->sec[state],
				      (struct rstep){ .node = 0 });
		try_run(e, state, n, false, UINT32_MAX);
		try_copies(e, state);
	}
	if (state >> e->ncand != end)
		return false;
	/* read off backwards, then turn round */
	e->d->steps.n = 0;
	for (; state != full + 1; state = e->from[state]) {
		struct rstep *t = &e->how[state];

		if (t->node && !steps_add(&e->d->steps, t->node, t->clone,
		                          t->makes))
			return false;
	}
	for (int32_t i = 0, j = e->d->steps.n - 1; i < j; i++, j--) {
		struct rstep t = e->d->steps.step[i];

		e->d->steps.step[i] = e->d->steps.step[j];
		e->d->steps.step[j] = t;
	}
	return true;
}

/* ---- the problem ---- */

static bool
find_choices(struct exact *e)
{
	const struct remat *r = e->r;

	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *t = &r->store[s];

		e->bit[s] = -1;
		if (e->d->must[s])
			return false;
		if (r->node[t->def].backward || t->output)
			continue;
		if (!t->candidate || e->ncand == STORES)
			return false;
		e->bit[s] = e->ncand;
		e->cand[e->ncand++] = s;
	}
	return e->ncand > 0 && ((int64_t)r->nnode + 1) << e->ncand
		<= STATES;
}

static void
find_sets(struct exact *e)
{
	const struct remat *r = e->r;

	for (NodeId i = 1; i < r->nnode; i++)
		for (int k = 0; k < r->node[i].nread; k++) {
			int32_t s = r->node[i].read[k];

			e->last[s] = i;
			if (e->bit[s] >= 0)
				e->reads[i] |= 1u << e->bit[s];
		}
	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *t = &r->store[s];
		NodeId end = t->output ? r->nnode : e->last[s];

		for (NodeId i = t->def + 1; e->bit[s] < 0 && i <= end; i++)
			e->others[i] += t->size;
	}
	for (uint32_t set = 0; set < 1u << e->ncand; set++)
		for (int32_t k = 0; k < e->ncand; k++)
			if (set >> k & 1)
				e->size[set] += r->store[e->cand[k]].size;
}

bool
remat_exact(struct deep *d)
{
	Arena *a = arena_new();
	struct exact *e = arena_alloc(a, sizeof *e);
	size_t n = d->r->nnode;
	bool ok;

	e->d = d;
	e->r = d->r;
	e->room = d->top - 1;
	e->bit = arena_array(a, (size_t)d->r->nstore + 1, sizeof *e->bit);
	ok = find_choices(e);
	if (ok) {
		e->last = arena_array(a, (size_t)d->r->nstore + 1,
		                      sizeof *e->last);
		e->others = arena_array(a, n + 1, sizeof *e->others);
		e->reads = arena_array(a, n + 1, sizeof *e->reads);
		find_sets(e);
		e->nstate = (uint32_t)(n + 1) << e->ncand;
		e->sec = arena_array(a, e->nstate, sizeof *e->sec);
		e->from = arena_array(a, e->nstate, sizeof *e->from);
		e->how = arena_array(a, e->nstate, sizeof *e->how);
		e->heap = arena_array(a, (size_t)e->nstate + 2,
		                      sizeof *e->heap);
		e->at = arena_array(a, e->nstate, sizeof *e->at);
	}
	for (int k = 0; ok && k < PLANS && !watch_over(d->r->watch)
	     && search(e); k++) {
		struct remat_cost c = deep_try(d);

		e->room = (c.live < e->room ? c.live : e->room) - 1;
	}
	arena_free(a);
	return ok;
}
