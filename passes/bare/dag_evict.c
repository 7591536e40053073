/* Walk the order with a full memory: evict when short, make again when missed.
 *
 * what    a plan for any budget that the walk can live with, however tight;
 *         a value may be made again many times
 * method  as caches that know the future: before a step runs, values are
 *         evicted until it fits, those first that cost little to make again
 *         for their bytes and that are next read far ahead.  What is missing
 *         is made again with all that it misses itself.  The cost of making a
 *         value again counts the evicted values around it, as dynamic
 *         rematerialization does (Kirisame et al., ICLR 2021), so that on a
 *         chain what is left spreads out.  Several exponents are tried.
 * cost    an eviction looks at everything alive and a part of what is around
 *         it
 */
#include "passes/bare/dag.h"

#include <math.h>
#include <string.h>

struct evict {
	struct dag_best *b;
	const struct dag *g;
	int32_t *use_at, *use;          /* steps that read a value, by value */
	int32_t *seq, len, cap;
	bool *alive;
	int32_t *pin;
	int32_t *alive_list, *alive_pos, nalive;
	int32_t *mark, *need, *queue, epoch;
	int64_t mem;
	int32_t now;
	double far, big, around;        /* exponents; weight of readers */
	int64_t work;
};

static int32_t
next_use(const struct evict *s, int32_t v)
{
	int32_t lo = s->use_at[v], hi = s->use_at[v + 1];

	while (lo < hi) {
		int32_t mid = lo + (hi - lo) / 2;

		if (s->use[mid] < s->now)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->use_at[v + 1] ? s->use[lo] : -1;
}

/* Cost of the dead values around v, upwards or downwards, at most limit. */
static double
neighbours(struct evict *s, int32_t v, bool up, int32_t limit)
{
	const struct dag *g = s->g;
	const int32_t *at = up ? g->pred_at : g->succ_at;
	const int32_t *list = up ? g->pred : g->succ;
	int32_t head = 0, tail = 0;
	double sum = 0;

	s->epoch++;
	s->queue[tail++] = v;
	s->mark[v] = s->epoch;
	while (head < tail && tail < limit) {
		int32_t u = s->queue[head++];

		for (int32_t k = at[u]; k < at[u + 1] && tail < limit; k++) {
			int32_t p = list[k];

			s->work--;
			/* readers count if they ran and went */
			if (s->mark[p] == s->epoch || s->alive[p]
			    || (!up && s->pin[p] < 0))
				continue;
			s->mark[p] = s->epoch;
			s->queue[tail++] = p;
			sum += g->cpu[p];
		}
	}
	return sum;
}

static double
score(struct evict *s, int32_t v, int32_t limit)
{
	const struct dag *g = s->g;
	int32_t use = next_use(s, v);
	double cost = g->cpu[v] + g->cost * 1e-9, dist;

	dist = use < 0 ? 4.0 * g->n : use - s->now + 1;
	cost += neighbours(s, v, true, limit);
	if (s->around > 0)
		cost += s->around * neighbours(s, v, false, limit);
	s->work -= 8;
	return cost / (pow(dist, s->far)
	               * pow((double)g->ram[v] + 1, s->big));
}

static void
remove_alive(struct evict *s, int32_t v)
{
	int32_t at = s->alive_pos[v], last = s->alive_list[--s->nalive];

	s->alive_list[at] = last;
	s->alive_pos[last] = at;
	s->alive[v] = false;
	s->mem -= s->g->ram[v];
}

/* Evict until bytes more fit. */
static bool
make_room(struct evict *s, int64_t bytes)
{
	while (s->mem + bytes > s->b->rung[s->b->at].budget) {
		int32_t victim = -1, limit = 20000 / (s->nalive + 1);
		double least = INFINITY;

		limit = limit < 16 ? 16 : limit > 2048 ? 2048 : limit;
		for (int32_t k = 0; k < s->nalive; k++) {
			int32_t v = s->alive_list[k];
			double x;

			if (s->pin[v] > 0 || s->g->ram[v] == 0)
				continue;
			x = score(s, v, limit);
			if (x < least || (x == least && v < victim)) {
				least = x;
				victim = v;
			}
		}
		if (victim < 0 || dag_stopped(s->b))
			return false;
		remove_alive(s, victim);
		if (s->work < 0)
			return false;
	}
	return true;
}

static bool
run(struct evict *s, int32_t v)
{
	if (s->len >= s->cap || !make_room(s, s->g->ram[v]))
		return false;
	s->seq[s->len++] = v;
	s->alive[v] = true;
	s->alive_pos[v] = s->nalive;
	s->alive_list[s->nalive++] = v;
	s->mem += s->g->ram[v];
	return true;
}

static void
sort_ids(int32_t *v, int32_t n)
{
	/* heap sort: the list may be long */
	for (int32_t end = n, start = n / 2; end > 1;) {
		int32_t root, x;

		if (start > 0) {
			x = v[--start];
		} else {
			x = v[--end];
			v[end] = v[0];
		}
		root = start;
		while (2 * root + 1 < end) {
			int32_t kid = 2 * root + 1;

			if (kid + 1 < end && v[kid + 1] > v[kid])
				kid++;
			if (v[kid] <= x)
				break;
			v[root] = v[kid];
			root = kid;
		}
		v[root] = x;
	}
}

/* Make v and all that it misses. */
static bool
make_again(struct evict *s, int32_t v)
{
	const struct dag *g = s->g;
	int32_t n = 0;
	bool ok = true;
	int32_t *need;

	s->epoch++;
	s->need[n++] = v;
	s->mark[v] = s->epoch;
	for (int32_t head = 0; head < n; head++) {
		int32_t u = s->need[head];

		for (int32_t k = g->pred_at[u]; k < g->pred_at[u + 1]; k++) {
			int32_t p = g->pred[k];

			s->pin[p]++;
			if (s->alive[p] || s->mark[p] == s->epoch)
				continue;
			s->mark[p] = s->epoch;
			s->need[n++] = p;
		}
	}
	need = arena_copy(s->b->scratch, s->need, (size_t)n * sizeof *need);
	sort_ids(need, n);
	for (int32_t i = 0; i < n; i++) {
		int32_t u = need[i];

		ok = ok && run(s, u);
		for (int32_t k = g->pred_at[u]; k < g->pred_at[u + 1]; k++)
			s->pin[g->pred[k]]--;
	}
	return ok;
}

static bool
walk(struct evict *s)
{
	const struct dag *g = s->g;

	s->len = s->nalive = 0;
	s->mem = 0;
	for (int32_t v = 0; v < g->n; v++) {
		s->alive[v] = false;
		s->pin[v] = -1;         /* did not run yet */
	}
	for (int32_t v = 0; v < g->n; v++) {
		bool ok = !dag_stopped(s->b);

		s->now = v;
		for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++)
			s->pin[g->pred[k]]++;
		for (int32_t k = g->pred_at[v]; ok && k < g->pred_at[v + 1];
		     k++)
			if (!s->alive[g->pred[k]])
				ok = make_again(s, g->pred[k]);
		s->pin[v] = 0;
		ok = ok && run(s, v);
		for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++)
			s->pin[g->pred[k]]--;
		if (!ok || s->work < 0)
			return false;
	}
	return true;
}

static void
find_uses(struct evict *s)
{
	/* ids are positions: lists of readers are sorted already */
	s->use_at = s->g->succ_at;
	s->use = s->g->succ;
}

void
dag_evict(struct dag_best *b, int64_t work)
{
	/* far, big, around; the best ones first */
	static const double row[][3] = {
		{ 1, 1, 1 }, { 2, 1, 1 }, { 1, 0.5, 1 }, { 2, 0.5, 1 },
		{ 1, 1, 0 }, { 2, 1, 0 }, { 0.5, 1, 1 }, { 0.5, 0.5, 0 },
		{ 2, 0.5, 0 }, { 1, 0.5, 0 }, { 0.5, 1, 0 }, { 0.5, 0.5, 1 },
	};
	const struct dag *g = b->g;
	struct evict s = { .b = b, .g = g, .work = work };
	Arena *keep = b->scratch;
	size_t n = (size_t)g->n + 1;

	b->scratch = arena_new();
	s.cap = 64 * g->n + 1000;
	s.seq = arena_array(b->scratch, (size_t)s.cap + 1, sizeof *s.seq);
	s.alive = arena_array(b->scratch, n, sizeof *s.alive);
	s.pin = arena_array(b->scratch, n, sizeof *s.pin);
	s.alive_list = arena_array(b->scratch, n, sizeof *s.alive_list);
	s.alive_pos = arena_array(b->scratch, n, sizeof *s.alive_pos);
	s.mark = arena_array(b->scratch, n, sizeof *s.mark);
	s.need = arena_array(b->scratch, n, sizeof *s.need);
	s.queue = arena_array(b->scratch, n, sizeof *s.queue);
	find_uses(&s);
	for (size_t k = 0; k < sizeof row / sizeof *row && s.work > 0
	     && !dag_stopped(b); k++) {
		s.far = row[k][0];
		s.big = row[k][1];
		s.around = row[k][2];
		if (walk(&s))
			dag_offer(b, s.seq, s.len);
	}
	arena_free(b->scratch);
	b->scratch = keep;
}
