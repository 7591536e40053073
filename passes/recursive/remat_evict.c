/* Keep or recompute: walk the order with a full arena.
 *
 * what    a plan for an amount of memory, however tight; a value may be made
 *         again many times.  For graphs of any shape.
 * method  as caches that know the future: before a step runs, storages are
 *         evicted until it fits, those first that cost little to make again
 *         for their bytes and that are next read far ahead; what is missing is
 *         made again with all that it misses itself.  The cost of making a
 *         storage again counts the evicted ones around it, as dynamic
 *         rematerialization does (Kirisame et al., ICLR 2021), so that on a
 *         chain what is left spreads out.  An output may take the bytes of an
 *         operand that dies, or that is evicted for it.
 * cost    an eviction looks at everything in memory and a part of what is
 *         around it; work is counted and limited
 */
#include "passes/recursive/rerun.h"
#include "passes/recursive/sequence_generators.h"

#include <math.h>
#include <string.h>

enum { AROUND_MIN = 16, AROUND_MAX = 2048, LOOK = 20000 };

struct eviction {
	const struct remat *r;
	const uint8_t *constraint;
	struct evict_weights weights;
	int64_t budget, mem, work;
	struct step_list *out;
	NodeId now;                     /* first run that is due */
	bool cloning;                   /* and not yet begun */
	struct readers use;
	bool *here, *born, *dying;
	int32_t *pin, *list, *pos, nlist;
	int32_t *mark, *queue, epoch;   /* by storage */
	int32_t *wanted, *chosen;       /* epochs, by storage and by node */
	NodeId *need;
};

static int32_t
next_use(const struct eviction *w, int32_t s)
{
	int32_t lo = w->use.at[s], hi = w->use.at[s + 1];
	NodeId from = w->now + !w->cloning;

	while (lo < hi) {
		int32_t mid = lo + (hi - lo) / 2;

		if (w->use.node[mid] < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < w->use.at[s + 1] ? (int32_t)w->use.node[lo] : -1;
}

static bool
may_evict(const struct eviction *w, int32_t s)
{
	return w->r->store[s].candidate && w->constraint[s] != 'k';
}

static void
add_storage(struct eviction *w, int32_t s)
{
	w->here[s] = w->born[s] = true;
	w->pos[s] = w->nlist;
	w->list[w->nlist++] = s;
	w->mem += w->r->store[s].size;
}

static void
remove_storage(struct eviction *w, int32_t s)
{
	int32_t last = w->list[--w->nlist];

	w->list[w->pos[s]] = last;
	w->pos[last] = w->pos[s];
	w->here[s] = false;
	w->mem -= w->r->store[s].size;
}

/* ---- what to evict ---- */

/* Missing storages from which s is made, at most limit. */
static double
cost_above(struct eviction *w, int32_t s, int32_t limit)
{
	const struct remat *r = w->r;
	int32_t head = 0, tail = 0;
	double sum = r->node[r->store[s].def].sec;

	w->mark[s] = ++w->epoch;
	w->queue[tail++] = s;
	while (head < tail && tail < limit) {
		const struct rnode *n = &r->node[r->store[w->queue[head++]]
			.def];

		for (int i = 0; i < n->nread && tail < limit; i++) {
			int32_t t = n->read[i];

			w->work--;
			if (w->mark[t] == w->epoch || w->here[t])
				continue;
			w->mark[t] = w->epoch;
			w->queue[tail++] = t;
			sum += r->node[r->store[t].def].sec;
		}
	}
	return sum;
}

/* Evicted storages that are made from s. */
static double
cost_below(struct eviction *w, int32_t s, int32_t limit)
{
	const struct remat *r = w->r;
	int32_t head = 0, tail = 0;
	double sum = 0;

	w->mark[s] = ++w->epoch;
	w->queue[tail++] = s;
	while (head < tail && tail < limit) {
		int32_t t = w->queue[head++];

		for (int32_t k = w->use.at[t]; k < w->use.at[t + 1]
		     && tail < limit; k++) {
			const struct rnode *n = &r->node[w->use.node[k]];

			if (n->backward)
				continue;
			w->work--;
			for (int i = 0; i < n->nwrite && tail < limit; i++) {
				int32_t y = n->write[i];

				if (w->mark[y] == w->epoch || w->here[y]
				    || !w->born[y])
					continue;
				w->mark[y] = w->epoch;
				w->queue[tail++] = y;
				sum += n->sec;
			}
		}
	}
	return sum;
}

static double
eviction_score(struct eviction *w, int32_t s, int32_t limit)
{
	int32_t use = next_use(w, s);
	double cost = w->r->base_sec * 1e-9, dist;

	dist = use < 0 ? 4.0 * w->r->nnode : use - (double)w->now + 1;
	cost += cost_above(w, s, limit);
	if (w->weights.around > 0)
		cost += w->weights.around * cost_below(w, s, limit);
	w->work -= 8;
	return cost / (pow(dist, w->weights.far)
	               * pow((double)w->r->store[s].size + 1, w->weights.big));
}

/* Bytes that a step adds to what is in memory; operands that are evicted at
 * this very step, or die there, lend their bytes to outputs. */
static int64_t
added_bytes(struct eviction *w, const struct rnode *n, uint32_t makes)
{
	int64_t sum = n->workspace;
	uint32_t placed = 0;
	int32_t lent[REMAT_WRITES];
	int nlent = 0;

	for (int i = 0; i < n->nwrite && i < REMAT_WRITES; i++)
		if (makes >> i & 1)
			sum += w->r->store[n->write[i]].size;
	for (int i = REMAT_WRITES; i < n->nwrite; i++)
		sum += w->r->store[n->write[i]].size;
	if (n->always >= 0 && n->always < REMAT_WRITES
	    && !(makes >> n->always & 1))
		sum += w->r->store[n->write[n->always]].size;
	for (int p = 0; p < n->npair; p++) {
		int32_t y = n->pair[2 * p], x = n->pair[2 * p + 1], at = 0;
		bool taken = nlent == REMAT_WRITES || !w->dying[x];

		for (int j = 0; j < nlent; j++)
			taken |= lent[j] == x;
		while (at < n->nwrite && n->write[at] != y)
			at++;
		if (taken || at >= REMAT_WRITES || at >= n->nwrite
		    || !(makes >> at & 1) || placed >> at & 1)
			continue;
		placed |= 1u << at;
		lent[nlent++] = x;
		sum -= w->r->store[y].size;
	}
	return sum;
}

/* An operand in whose bytes an output may lie. */
static bool
lends_bytes(const struct rnode *n, int32_t s)
{
	for (int p = 0; p < n->npair; p++)
		if (n->pair[2 * p + 1] == s)
			return true;
	return false;
}

/* Whether an operand that goes at this step makes it smaller. */
static bool
reduces_step(struct eviction *w, const struct rnode *n, uint32_t makes,
             int32_t s)
{
	int64_t before = added_bytes(w, n, makes);
	bool less;

	w->dying[s] = true;
	less = added_bytes(w, n, makes) < before;
	w->dying[s] = false;
	return less;
}

static int32_t
choose_victim(struct eviction *w, const struct rnode *n, uint32_t makes)
{
	int32_t victim = -1, limit = LOOK / (w->nlist + 1);
	double least = INFINITY;

	limit = limit < AROUND_MIN ? AROUND_MIN : limit > AROUND_MAX
		? AROUND_MAX : limit;
	for (int32_t k = 0; k < w->nlist; k++) {
		int32_t s = w->list[k];
		double x;

		if (!may_evict(w, s) || w->r->store[s].size == 0 || w->dying[s]
		    || w->pin[s] > 1 || (w->pin[s] == 1
		                         && !reduces_step(w, n, makes, s)))
			continue;
		x = eviction_score(w, s, limit);
		if (x < least || (x <= least && s < victim)) {
			least = x;
			victim = s;
		}
	}
	return victim;
}

/* ---- running ---- */

/* Operands that no first run reads later and nobody else waits for. */
static void
mark_dying(struct eviction *w, const struct rnode *n)
{
	for (int i = 0; i < n->nread; i++) {
		int32_t s = n->read[i];

		w->dying[s] = w->pin[s] == 1 && next_use(w, s) < 0
			&& !w->r->store[s].output
			&& (w->r->node[w->r->store[s].def].backward
			    || (may_evict(w, s) && lends_bytes(n, s)));
	}
}

static bool
run_in_budget(struct eviction *w, const struct rnode *n, bool clone,
              uint32_t makes)
{
	mark_dying(w, n);
	while (w->mem + added_bytes(w, n, makes) > w->budget) {
		int32_t victim = choose_victim(w, n, makes);

		if (victim < 0 || w->work < 0 || watch_over(w->r->watch))
			return false;
		if (w->pin[victim])     /* gives its bytes to an output */
			w->dying[victim] = true;
		else
			remove_storage(w, victim);
	}
	for (int i = 0; i < n->nread; i++)
		if (w->dying[n->read[i]]) {
			w->dying[n->read[i]] = false;
			remove_storage(w, n->read[i]);
		}
	for (int i = 0; i < n->nwrite; i++)
		if (i >= REMAT_WRITES || makes >> i & 1) {
			int32_t s = n->write[i];

			if (w->here[s])
				remove_storage(w, s);
			add_storage(w, s);
		}
	return steps_add(w->out, n->node, clone, makes);
}

/* Collect what must run before n can; pins the operands of all of it. */
static int32_t
collect_needed(struct eviction *w, const struct rnode *n, int32_t stamp)
{
	const struct remat *r = w->r;
	int32_t count = 0, head = 0;

	for (;;) {
		for (int i = 0; i < n->nread; i++) {
			int32_t s = n->read[i];
			NodeId d = r->store[s].def;

			w->pin[s]++;
			if (w->here[s] || w->wanted[s] == stamp)
				continue;
			w->wanted[s] = stamp;
			if (w->chosen[d] == stamp)
				continue;
			w->chosen[d] = stamp;
			w->need[count++] = d;
		}
		if (head == count)
			break;
		n = &r->node[w->need[head++]];
	}
	nodes_sort(w->need, count);
	return count;
}

static void
unpin_operands(struct eviction *w, const struct rnode *n)
{
	for (int i = 0; i < n->nread; i++)
		w->pin[n->read[i]]--;
}

/* What a clone writes: what is wanted now, and what is missing and read later
 * if there is room for it anyway. */
static uint32_t
outputs_to_write(struct eviction *w, const struct rnode *n, int32_t stamp)
{
	uint32_t makes = 0;

	for (int i = 0; i < n->nwrite; i++)
		if (w->wanted[n->write[i]] == stamp)
			makes |= 1u << i;
	for (int i = 0; i < n->nwrite; i++)
		if (!(makes >> i & 1) && !w->here[n->write[i]]
		    && next_use(w, n->write[i]) >= 0
		    && w->mem + added_bytes(w, n, makes | 1u << i) <= w->budget)
			makes |= 1u << i;
	return makes;
}

/* First run of a node, after all that it misses. */
static bool
run_first(struct eviction *w, const struct rnode *n)
{
	int32_t stamp = (int32_t)n->node;
	int32_t count = collect_needed(w, n, stamp);
	bool ok = true;

	w->cloning = true;
	for (int32_t k = 0; k < count; k++) {
		const struct rnode *m = &w->r->node[w->need[k]];

		ok = ok && m->clonable && run_in_budget(w, m, true,
			outputs_to_write(w, m, stamp));
		unpin_operands(w, m);
	}
	w->cloning = false;
	ok = ok && run_in_budget(w, n, false, remat_all_writes(n));
	unpin_operands(w, n);
	/* gradients die here; activations stay as long as there is room */
	for (int i = 0; ok && i < n->nread + n->nwrite; i++) {
		int32_t s = i < n->nread ? n->read[i]
			: n->write[i - n->nread];

		if (w->here[s] && w->r->node[w->r->store[s].def].backward
		    && !w->r->store[s].output && next_use(w, s) < 0)
			remove_storage(w, s);
	}
	return ok;
}

static void
evict_constrained(struct eviction *w)
{
	for (int32_t s = 0; s < w->r->nstore; s++)
		if (w->constraint[s] == 'r' && w->here[s])
			remove_storage(w, s);
}

bool
remat_evict(const struct remat *r, const uint8_t *constraint, int64_t budget,
            const struct evict_weights *weights, int64_t *work,
            struct step_list *out)
{
	Arena *a = arena_new();
	size_t n = (size_t)r->nstore + 1;
	bool ok = true, begun = false;
	struct eviction w = {
		.r = r,
		.constraint = constraint,
		.budget = budget,
		.weights = *weights,
		.work = *work,
		.out = out,
		.here = arena_array(a, n, 1),
		.born = arena_array(a, n, 1),
		.dying = arena_array(a, n, 1),
		.pin = arena_array(a, n, 4),
		.list = arena_array(a, n, 4),
		.pos = arena_array(a, n, 4),
		.mark = arena_array(a, n, 4),
		.queue = arena_array(a, n, 4),
		.wanted = arena_array(a, n, 4),
		.chosen = arena_array(a, r->nnode, 4),
		.need = arena_array(a, (size_t)r->nnode, sizeof *w.need),
	};

	w.use = remat_readers(r, a);
	out->n = 0;
	for (NodeId i = 1; ok && i < r->nnode; i++) {
		ok = !watch_over(r->watch);
		w.now = i;
		if (r->node[i].backward && !begun) {
			begun = true;
			evict_constrained(&w);
		}
		ok = ok && run_first(&w, &r->node[i]);
	}
	*work = w.work;
	arena_free(a);
	return ok;
}
