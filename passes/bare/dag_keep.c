/* Annealing over what is kept, for a fixed order of first runs.
 *
 * what    A value is read at some steps of the order.  For each gap between
 *         two of them, one bit says whether the value is held over the gap or
 *         dropped and computed again when it is next needed.  Computing it
 *         again needs its own inputs, which may have to be computed again in
 *         turn, so that one bit moves a whole chain.  A second bit, per
 *         value, says whether a value that came back for the sake of another
 *         stays until its own next reader.
 * method  from a plan that does not fit, first drop what costs least for the
 *         bytes that it frees.  Then simulated annealing: flip a bit, build
 *         the sequence, measure it; cost plus a weight times the bytes above
 *         the budget, summed over steps.  The weight follows: up while over
 *         budget, down while under.
 *         At last, single bits and pairs of bits for as long as one helps.
 *         Compared with moves on the sequence itself a flip is dear (all of
 *         it is built anew) but never leaves a chain half done.
 * cost    a flip takes time in the length of the sequence and its reads
 */
#include "passes/bare/dag.h"

#include <math.h>
#include <string.h>

/* Temperature at the start of a walk over that at its end. */
#define COOLING 30.0

/* Gaps looked at to choose one. */
enum { TRIES = 2 };

struct gap {
	int32_t value;
	int32_t from, to;               /* positions in the order */
};

struct keep {
	struct dag_best *b;
	const struct dag *g;
	const int32_t *order;           /* node by position, n of them */
	struct gap *gap;
	int32_t ngap, nbit;
	int32_t *bit_of;                /* by read (as g->pred): gap before */
	int32_t *next_of;               /* by read: gap after, or -1 */
	int32_t *first_gap;             /* by node: gap after it is made */
	bool *drop;                     /* by gap, then by node: goes at once */
	int32_t *dropped, *dropped_at;  /* gaps with the bit set, for drawing */
	int32_t ndropped;
	double own;                     /* cost of the best one found here */
	/* of the sequence being built */
	int32_t *seq, *last, *made, *stack;
	bool *alive;
	int64_t *change;
	int32_t len, cap;
	double cost;
	int64_t budget, peak;
	double over;                    /* bytes above, summed over steps, and
	                                 * once more at the fullest */
	int64_t work;
};

/* ---- gaps ---- */

static void
find_gaps(struct keep *s)
{
	const struct dag *g = s->g;
	size_t nread = (size_t)g->pred_at[g->n];
	Arena *a = s->b->scratch;
	int32_t *last_read = arena_array(a, (size_t)g->n + 1,
	                                 sizeof *last_read);
	int32_t *last_at = arena_array(a, (size_t)g->n + 1, sizeof *last_at);

	s->gap = arena_array(a, nread + 1, sizeof *s->gap);
	s->bit_of = arena_array(a, nread + 1, sizeof *s->bit_of);
	s->next_of = arena_array(a, nread + 1, sizeof *s->next_of);
	s->first_gap = arena_array(a, (size_t)g->n + 1, sizeof *s->first_gap);
	for (int32_t t = 0; t < g->n; t++) {
		int32_t v = s->order[t];

		s->first_gap[v] = -1;
		last_read[v] = -1;
		last_at[v] = t;
		for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++) {
			int32_t p = g->pred[k], id = -1;

			if (t - last_at[p] > 1) {
				id = s->ngap++;
				s->gap[id] = (struct gap){ p, last_at[p], t };
			}
			s->bit_of[k] = id;
			s->next_of[k] = -1;
			if (last_read[p] < 0)
				s->first_gap[p] = id;
			else
				s->next_of[last_read[p]] = id;
			last_read[p] = k;
			last_at[p] = t;
		}
	}
	s->nbit = s->ngap + g->n;
	s->drop = arena_array(a, (size_t)s->nbit + 1, sizeof *s->drop);
	s->dropped = arena_array(a, (size_t)s->ngap + 1, sizeof *s->dropped);
	s->dropped_at = arena_array(a, (size_t)s->ngap + 1,
	                            sizeof *s->dropped_at);
}

/* ---- building and measuring a sequence ---- */

static bool
emit(struct keep *s, int32_t v)
{
	const struct dag *g = s->g;

	if (s->len >= s->cap)
		return false;
	for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++)
		s->last[s->made[g->pred[k]]] = s->len;
	s->made[v] = s->last[s->len] = s->len;
	s->seq[s->len++] = v;
	s->alive[v] = true;
	return true;
}

/* Make v alive, and before it what it reads; iterative, as chains are long. */
static bool
bring_back(struct keep *s, int32_t v)
{
	const struct dag *g = s->g;
	int32_t top = 0, done = s->len;

	s->stack[top++] = v;
	while (top > 0) {
		int32_t u = s->stack[top - 1];
		bool ready = true;

		if (s->alive[u]) {
			top--;
			continue;
		}
		for (int32_t k = g->pred_at[u]; k < g->pred_at[u + 1]; k++)
			if (!s->alive[g->pred[k]]) {
				/* a value is on the stack once at most: links
				 * lead forwards and alive ones are popped */
				if (top >= 2 * g->pred_at[g->n] + 2)
					return false;
				s->stack[top++] = g->pred[k];
				ready = false;
			}
		if (!ready)
			continue;
		top--;
		if (!emit(s, u))
			return false;
	}
	/* all but v came for the sake of others */
	for (int32_t t = done; t < s->len; t++)
		if (s->seq[t] != v && s->drop[s->ngap + s->seq[t]])
			s->alive[s->seq[t]] = false;
	return true;
}

static bool
build(struct keep *s)
{
	const struct dag *g = s->g;

	s->len = 0;
	memset(s->alive, 0, (size_t)g->n);
	for (int32_t t = 0; t < g->n; t++) {
		int32_t v = s->order[t], id;

		for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++)
			if (!s->alive[g->pred[k]] && !bring_back(s, g->pred[k]))
				return false;
		/* a later chain may have sent away what an earlier one made */
		for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++)
			s->alive[g->pred[k]] = true;
		if (!emit(s, v))
			return false;
		id = s->first_gap[v];
		if (id >= 0 && s->drop[id])
			s->alive[v] = false;
		for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++) {
			id = s->next_of[k];
			if (id >= 0 && s->drop[id])
				s->alive[g->pred[k]] = false;
		}
	}
	return true;
}

static bool
evaluate(struct keep *s)
{
	const struct dag *g = s->g;
	int64_t live = 0;

	if (!build(s))
		return false;
	memset(s->change, 0, ((size_t)s->len + 1) * sizeof *s->change);
	s->cost = 0;
	for (int32_t t = 0; t < s->len; t++) {
		int32_t v = s->seq[t];

		s->cost += g->cpu[v];
		s->change[t] += g->ram[v];
		s->change[s->last[t] + 1] -= g->ram[v];
	}
	s->peak = 0;
	s->over = 0;
	for (int32_t t = 0; t < s->len; t++) {
		live += s->change[t];
		if (live > s->peak)
			s->peak = live;
		if (live > s->budget)
			s->over += (double)(live - s->budget);
	}
	if (s->peak > s->budget)
		s->over += (double)(s->peak - s->budget);
	s->work -= 4 * s->len;
	return true;
}

/* ---- the search ---- */

static double
energy(const struct keep *s, double weight)
{
	return s->cost + weight * s->over;
}

static void
flip(struct keep *s, int32_t bit)
{
	s->drop[bit] = !s->drop[bit];
	if (bit >= s->ngap)
		return;
	if (s->drop[bit]) {
		s->dropped_at[bit] = s->ndropped;
		s->dropped[s->ndropped++] = bit;
	} else {
		int32_t last = s->dropped[--s->ndropped];

		s->dropped[s->dropped_at[bit]] = last;
		s->dropped_at[last] = s->dropped_at[bit];
	}
}

/* The sequence just measured, if it is better than those before it. */
static bool
improves(struct keep *s)
{
	if (s->peak > s->budget || s->cost >= s->own)
		return false;
	s->own = s->cost;
	dag_offer(s->b, s->seq, s->len);
	return true;
}

/* To be asked between any two measurements: each is as long as the graph. */
static bool
spent(const struct keep *s)
{
	return s->work < 0 || dag_stopped(s->b);
}

/* Single bits while one helps. */
static void
climb(struct keep *s, int64_t work)
{
	int32_t idle = 0, k = 0;

	s->work = work;
	while (idle < s->nbit && !spent(s)) {
		flip(s, k);
		if (evaluate(s) && improves(s)) {
			idle = 0;
		} else {
			flip(s, k);
			idle++;
		}
		k = (k + 1) % s->nbit;
	}
}

/* Drop what costs least for the bytes above the budget that go with it, until
 * the sequence fits or none does. */
static void
repair(struct keep *s, int64_t work)
{
	s->work = work;
	while (evaluate(s) && s->over > 0) {
		double cost = s->cost, over = s->over, least = INFINITY;
		int32_t best = -1;

		for (int32_t k = 0; k < s->ngap && !spent(s); k++) {
			double x;

			if (s->drop[k])
				continue;
			flip(s, k);
			if (evaluate(s) && s->over < over) {
				x = (s->cost - cost) / (over - s->over);
				if (x < least) {
					least = x;
					best = k;
				}
			}
			flip(s, k);
		}
		if (best < 0 || spent(s))
			break;
		flip(s, best);
	}
	if (evaluate(s))
		improves(s);
}

struct walk {
	double now, weight, heat;
	bool *best;
};

/* A gap by chance, rather one with many bytes for its cost. */
static int32_t
pick_gap(struct keep *s)
{
	const struct dag *g = s->g;
	uint64_t *rnd = &s->b->random;
	int32_t a = (int32_t)(dag_draw(rnd) % (uint64_t)s->ngap);

	for (int k = 0; k < TRIES; k++) {
		int32_t b = (int32_t)(dag_draw(rnd) % (uint64_t)s->ngap);
		int32_t v = s->gap[a].value, w = s->gap[b].value;

		if (dag_draw(rnd) % 4 && g->cpu[w] * (double)g->ram[v]
		    < g->cpu[v] * (double)g->ram[w])
			a = b;
	}
	return a;
}

/* Bits to flip: a gap, a dropped gap for another one, or a value's bit. */
static int32_t
choose(struct keep *s, int32_t *bit)
{
	uint64_t *rnd = &s->b->random;
	uint64_t kind = dag_draw(rnd) % 16;
	int32_t n = 0;

	if (kind == 0 || !s->ngap) {
		bit[n++] = s->ngap
			+ (int32_t)(dag_draw(rnd) % (uint64_t)s->g->n);
		return n;
	}
	if (kind < 9 && s->ndropped) {
		bit[n++] = s->dropped[dag_draw(rnd) % (uint64_t)s->ndropped];
		if (kind < 3)
			return n;
	}
	bit[n++] = pick_gap(s);
	if (n == 2 && bit[0] == bit[1])
		n = 1;
	return n;
}

static void
step(struct keep *s, struct walk *w)
{
	uint64_t *rnd = &s->b->random;
	int32_t bit[2], nbit = choose(s, bit);

	for (int32_t k = 0; k < nbit; k++)
		flip(s, bit[k]);
	if (evaluate(s)) {
		double u = (double)(dag_draw(rnd) >> 11) * 0x1p-53;
		double e = energy(s, w->weight);

		if (e <= w->now || u < exp((w->now - e) / w->heat)) {
			w->now = e;
			if (improves(s))
				memcpy(w->best, s->drop, (size_t)s->nbit);
			return;
		}
	}
	for (int32_t k = nbit; k-- > 0;)
		flip(s, bit[k]);
}

static void
anneal(struct keep *s, int64_t work, double hot)
{
	struct walk w = { .weight = 0 };
	int64_t all = work;

	w.best = arena_array(s->b->scratch, (size_t)s->nbit + 1,
	                     sizeof *w.best);
	memcpy(w.best, s->drop, (size_t)s->nbit);
	w.weight = s->g->cost / ((double)s->budget + 1);
	s->work = work;
	for (int32_t k = 0; s->work > 0; k++) {
		double part = 1 - (double)s->work / (double)all;

		if (k % 64 == 0) {
			/* read the weight off the present state */
			evaluate(s);
			w.weight *= s->over > 0 ? 1.05 : 0.97;
			w.now = energy(s, w.weight);
			w.heat = hot * pow(COOLING, -part);
			if (dag_stopped(s->b))
				break;
		}
		step(s, &w);
	}
	for (int32_t k = 0; k < s->nbit; k++)
		if (s->drop[k] != w.best[k])
			flip(s, k);
}

/* Order of first runs, and bits: a gap is dropped where two readers in turn
 * take different evaluations. */
static void
take_plan(struct keep *s, const struct dag_seq *q, int32_t *order)
{
	const struct dag *g = s->g;
	Arena *a = s->b->scratch;
	size_t n = (size_t)g->n + 1;
	int32_t *made = arena_array(a, n, sizeof *made), len = 0;
	int32_t *last = arena_array(a, n, sizeof *last);

	memset(made, 0xff, n * sizeof *made);
	for (int32_t t = 0; t < q->len; t++) {
		if (made[q->node[t]] < 0)
			order[len++] = q->node[t];
		made[q->node[t]] = t;
	}
	s->order = order;
	find_gaps(s);
	memset(made, 0xff, n * sizeof *made);
	for (int32_t t = 0; t < q->len; t++) {
		int32_t v = q->node[t];

		for (int32_t k = g->pred_at[v]; made[v] < 0
		     && k < g->pred_at[v + 1]; k++) {
			int32_t p = g->pred[k];

			if (s->bit_of[k] >= 0 && made[p] != last[p]
			    && !s->drop[s->bit_of[k]])
				flip(s, s->bit_of[k]);
			last[p] = made[p];
		}
		if (made[v] < 0)
			last[v] = t;
		made[v] = t;
	}
}

void
dag_keep(struct dag_best *b, const struct dag_seq *q, int64_t work,
         double hot)
{
	const struct dag *g = b->g;
	struct keep s = { .b = b, .g = g, .budget = b->rung[b->at].budget };
	Arena *keep = b->scratch;
	size_t cap;

	b->scratch = arena_new();
	take_plan(&s, q, arena_array(b->scratch, (size_t)g->n + 1,
	                             sizeof(int32_t)));
	cap = 8 * (size_t)g->n + 64;
	s.cap = (int32_t)cap;
	s.seq = arena_array(b->scratch, cap + 1, sizeof *s.seq);
	s.last = arena_array(b->scratch, cap + 1, sizeof *s.last);
	s.made = arena_array(b->scratch, (size_t)g->n + 1, sizeof *s.made);
	s.alive = arena_array(b->scratch, (size_t)g->n + 1, sizeof *s.alive);
	s.change = arena_array(b->scratch, cap + 2, sizeof *s.change);
	s.stack = arena_array(b->scratch, 2 * (size_t)g->pred_at[g->n] + 4,
	                      sizeof *s.stack);
	s.own = b->rung[b->at].best.len ? b->rung[b->at].best.cost : INFINITY;
	if (evaluate(&s)) {
		repair(&s, work / 2);
		anneal(&s, work, hot * g->cost / g->n);
		climb(&s, work / 4);
	}
	arena_free(b->scratch);
	b->scratch = keep;
}
