/* Plan a standalone graph of costs.
 *
 * what    the cheapest plan found within a budget
 * method  a grid of budgets, from the peak of the unmodified order down to
 *         the largest working set, searched in sweeps; each budget starts from
 *         the plan of its neighbour, and each plan found is offered to every
 *         other.  Tightening step by step finds better plans than a search at
 *         one budget with the same work.
 *         Of training graphs each budget's bound comes first, with a plan that
 *         often costs no more; such a budget is settled.
 *         What is done does not depend on the budget asked for, which only
 *         picks from what was found: so a larger budget never gives a slower
 *         plan, also from one call to another.  Small graphs are the
 *         exception: the best plan for the budget is looked for first, and
 *         nothing else is done where that is found.
 * cost    counted work, scaled with the graph; only a time limit given by the
 *         user makes results depend on the machine
 */
#include "passes/standalone/standalone.h"

#include <math.h>

enum { GRID_MAX = 128, EVEN = 4, FAILED_MAX = 3, PROBES = 16 };

/* Temperature of a search for the least budget, and its last step as a part
 * of what is open. */
#define LEAST_HOT 20.0
#define LEAST_PART 0.004

/* Nodes of a training graph up to which each budget's bound is found. */
enum { BOUND_MAX = 700 };

/* Of a search for the best plan of a small graph. */
enum { STATES = 400000 };

/* Of a search through the stretches of a plan. */
enum { WINDOW_STATES = 10000000 };

/* Nodes beyond which searches get less and less work. */
#define LARGE INT64_C(20000)

/* Under a time limit the whole search is preceded by ones with this part of its
 * work and four times as much again and again: more time goes on from what less
 * time finds, and never ends with less. */
enum { FIRST_PART = 256, BOUND_PART = 4 };

/* Below EVEN tenths of the peak, budgets shrink by this. */
#define RATIO 0.8

static void
print_progress(const struct dag_best *b, const char *what)
{
	const struct dag_budget *r = &b->asked;

	if (!b->o->progress)
		return;
	if (r->best.len)
		fprintf(b->o->progress, "\r%-20s %5.1f %%  +%.3f %%   ", what,
		        100 * (double)b->grid[b->at].budget
		        / (double)b->g->peak,
		        100 * (r->best.cost / b->g->cost - 1));
	else
		fprintf(b->o->progress, "\r%-20s %5.1f %%  none yet   ", what,
		        100 * (double)b->grid[b->at].budget
		        / (double)b->g->peak);
	fflush(b->o->progress);
}

/* Within the gap of what no plan can do without, or without any plan. */
static bool
is_done(const struct dag_best *b)
{
	if (dag_stopped(b) || b->o->all)
		return dag_stopped(b);
	return isinf(b->bound) || (b->asked.best.len && b->asked.best.cost
		<= b->bound + b->o->gap * b->g->cost);
}

/* Budgets for each tenth of the peak; small training graphs' are cheap. */
static int
points_per_tenth(const struct dag *g)
{
	return g->training && g->n < 100 ? 10 : 4;
}

static void
make_grid(struct dag_best *b)
{
	const struct dag *g = b->g;
	int even = EVEN * points_per_tenth(g), k = 10 * points_per_tenth(g);
	double part = 1, all = k;

	b->grid = arena_array(b->arena, GRID_MAX + 1, sizeof *b->grid);
	while (b->ngrid < GRID_MAX - 1) {
		int64_t r = (int64_t)ceil(part * (double)g->peak);

		if (b->ngrid && r <= g->working_set)
			break;
		b->grid[b->ngrid++] = (struct dag_budget){ r, g->cost, { 0 } };
		part = --k >= even ? k / all : part * RATIO;
	}
	if (g->working_set < g->peak)
		b->grid[b->ngrid++] = (struct dag_budget){ g->working_set,
			g->cost, { 0 } };
}

/* Budgets in tenths of the peak get more. */
static int
grid_weight(const struct dag_best *b, int k)
{
	int tenth = points_per_tenth(b->g);

	return k % tenth == 0 && k <= (10 - EVEN) * tenth ? 2 : 1;
}

/* Of the work for a sweep over budgets 1..last. */
static int64_t
sweep_share(const struct dag_best *b, int last, int64_t work)
{
	int all = 0;

	for (int k = 1; k <= last; k++)
		all += grid_weight(b, k);
	return work / all * grid_weight(b, b->at);
}

/* The last budget worth a search: some beyond those with a plan, or all while
 * there are hardly any. */
static int
tightest(const struct dag_best *b)
{
	int last = 0;

	for (int k = 1; k < b->ngrid; k++)
		last = b->grid[k].best.len ? k : last;
	last = b->swept ? last + FAILED_MAX : b->ngrid - 1;
	return last < b->ngrid ? last : b->ngrid - 1;
}

/* The budget being searched has a plan that none can beat. */
static bool
is_settled(const struct dag_best *b)
{
	const struct dag_budget *r = &b->grid[b->at];

	return r->best.len && r->best.cost <= r->bound;
}

/* Anneal budget after budget, each from its looser neighbour's plan, or upwards
 * from its tighter one's. */
static void
anneal_grid(struct dag_best *b, bool down, double hot, int64_t work)
{
	int failed = 0, last = tightest(b);

	for (int k = 1; k <= last && failed < FAILED_MAX && !is_done(b); k++) {
		const struct dag_seq *own, *from;

		b->at = down ? k : last + 1 - k;
		own = &b->grid[b->at].best;
		from = down ? &b->grid[b->at - 1].best
			: k > 1 ? &b->grid[b->at + 1].best : own;
		if (is_settled(b) || (!own->len && !down))
			continue;
		if (!from->len)
			from = own->len ? own : &b->grid[0].best;
		dag_anneal(b, from, sweep_share(b, last, work), hot);
		print_progress(b, "sequences");
		failed = own->len ? 0 : failed + 1;
	}
	b->swept = true;
}

/* What each budget costs at least, and plans that often cost just that. */
static void
bound_grid(struct dag_best *b, int64_t work)
{
	b->bounded = true;
	for (b->at = 1; b->at < b->ngrid && !is_done(b); b->at++) {
		struct dag_budget *r = &b->grid[b->at];
		struct dag_seq start;

		if (is_settled(b))
			continue;
		r->bound = dag_bound(b, r->budget, &start);
		if (start.len == 0)
			continue;
		dag_offer(b, start.node, start.len);
		if (!is_settled(b))
			dag_anneal(b, &start,
			           sweep_share(b, b->ngrid - 1, work), 0.1);
		print_progress(b, "bounds");
	}
}

/* Where little is kept, plans to start from. */
static void
evict_grid(struct dag_best *b, int64_t work)
{
	int even = (10 - EVEN) * points_per_tenth(b->g);

	for (b->at = even; b->at < b->ngrid && !is_done(b); b->at++) {
		if (is_settled(b))
			continue;
		dag_evict(b, work);
		print_progress(b, "eviction");
	}
}

/* How little will do?  A budget of its own goes from the least that is known to
 * be enough towards what is proven to be too little: all the way at first,
 * then half as far as long as that fails, twice as far where it worked.  Cost
 * is of little account then, so half the walks are hot. */
static void
find_least(struct dag_best *b, int64_t work)
{
	int64_t lo = b->g->working_set;
	struct dag_budget *probe = &b->grid[b->ngrid];
	double part = 1;

	b->at = b->ngrid;
	for (int k = 0; k < PROBES && part > LEAST_PART && !is_done(b); k++) {
		struct dag_seq from = b->least;
		int64_t step = (int64_t)ceil(part * (double)(from.peak - lo));

		if (step <= 0)
			break;
		*probe = (struct dag_budget){ from.peak - step, b->g->cost,
			{ 0 } };
		dag_evict(b, work / PROBES / 2);
		if (b->least.peak > probe->budget && part < 0.2)
			dag_anneal(b, &from, work / PROBES,
			           k % 2 ? LEAST_HOT : 1);
		if (b->least.peak > probe->budget)
			part /= 2;
		else if (part < 1)
			part *= 2;
		print_progress(b, "least budget");
	}
}

/* Of eviction at one budget.  Of graphs beyond LARGE nodes little is changed in
 * the time that there is, and a budget alone takes longer. */
static int64_t
evict_work(int64_t n)
{
	return n < 4000 ? 15000 * n : n < LARGE ? 60000000
		: 60000000 * LARGE / n * LARGE / n;
}

/* What no single change of a sequence finds, looked for in stretches of it. */
static void
window_grid(struct dag_best *b, int64_t part)
{
	int last = tightest(b);

	for (b->at = 1; b->at <= last && !is_done(b); b->at++) {
		if (!is_settled(b))
			dag_windows(b, WINDOW_STATES / part);
		print_progress(b, "windows");
	}
}

static void
plan_training(struct dag_best *b, int64_t part)
{
	int64_t n = b->g->n, evict = evict_work(n) / part;
	int64_t work = n < 200 ? 400000 * n : n < LARGE ? 40000000
		: 40000000 * LARGE / n * LARGE / n;

	work /= part;
	if (n <= BOUND_MAX && part <= BOUND_PART && !b->bounded)
		bound_grid(b, work);
	evict_grid(b, evict);
	anneal_grid(b, true, 0.4, work);
	anneal_grid(b, false, 0.2, work);
	anneal_grid(b, true, 0.1, work);
	window_grid(b, part);
	find_least(b, work / 2);
}

/* Of one sweep over a graph of n nodes. */
static int64_t
sweep_work(int64_t n)
{
	return n < 140 ? 1200000 * n : n < 250 ? 168000000
		: n < 500 ? 168000000 + 668000 * (n - 250)
		: n < 1000 ? (int64_t)(1.5e7 * sqrt((double)n))
		: n < LARGE ? 470000000 : 470000000 * LARGE / n * LARGE / n;
}

/* Small graphs have many a dead end: what there is to do is done twice. */
static void
plan_general(struct dag_best *b, int64_t part)
{
	double n = b->g->n;
	int rounds = n < 200 ? 2 : 1;
	int64_t evict = evict_work(b->g->n) / part;
	int64_t work = sweep_work(b->g->n) / rounds / part;
	double hot = n < 120 ? 0.5 : n < 1000 ? 60 / n : 0.06;

	evict_grid(b, evict);
	for (int k = 0; k < rounds; k++) {
		anneal_grid(b, true, 2 * hot, work);
		find_least(b, work);
		anneal_grid(b, false, hot, work);
		anneal_grid(b, true, hot, work);
		anneal_grid(b, false, 0.4 * hot, work);
		anneal_grid(b, true, 0.4 * hot, work);
		find_least(b, work);
	}
	window_grid(b, part);
}

static double
best_way(struct dag_best *b, int64_t budget, double limit, int32_t states)
{
	struct dag_small small = dag_whole(b->g);
	struct dag_way way;
	double least;

	least = dag_states(&small, budget, limit, states, b->o->watch, &way,
	                   b->arena);
	if (way.found)
		dag_offer(b, way.node, way.len);
	return least;
}

/* Small graphs: the best plan, or else the least budget, if few states will
 * do. */
static void
search_states(struct dag_best *b)
{
	const struct dag_seq *found = &b->asked.best;
	int64_t lo = b->g->working_set;

	b->bound = fmax(b->bound, best_way(b, b->asked.budget,
		found->len ? found->cost : INFINITY, STATES));
	if (!isinf(b->bound))
		return;
	lo = b->asked.budget + 1 > lo ? b->asked.budget + 1 : lo;
	while (lo < b->least.peak && !dag_stopped(b)) {
		int64_t mid = lo + (b->least.peak - lo) / 2;
		double least = best_way(b, mid, INFINITY, STATES / 4);

		if (isinf(least))
			lo = mid + 1;
		else if (b->least.peak > mid)
			return;
	}
}

struct dag_answer
dag_plan(const struct dag *g, const struct dag_options *o, Arena *arena)
{
	struct dag_best b = { .g = g, .o = o, .arena = arena, .random = 1,
	                      .problem = dag_problem(g, o->watch, arena),
	                      .asked = { .budget = o->budget } };
	struct dag_answer r = { .bound_class = "any" };
	int32_t *order = arena_array(arena, (size_t)g->n, sizeof *order);

	watch_begin(o->watch, o->sec);
	for (int32_t i = 0; i < g->n; i++)
		order[i] = i;
	make_grid(&b);
	dag_offer(&b, order, g->n);
	b.bound = dag_bound(&b, o->budget, NULL);
	if (g->n <= DAG_STATES_NODES)
		search_states(&b);
	for (int64_t part = o->sec > 0 ? FIRST_PART : 1; part && !is_done(&b);
	     part /= 4)
		(g->training ? plan_training : plan_general)(&b, part);
	/* once more: below the cost of what was found states suffice longer */
	if (g->n <= DAG_STATES_NODES && b.asked.best.len && !is_done(&b))
		search_states(&b);
	/* whatever the time; last, as searches from there find no more */
	if (dag_stopped(&b) || !is_done(&b))
		dag_checkpoints(&b);
	if (o->progress)
		fputs("\r\x1b[K", o->progress);
	r.found = b.asked.best.len > 0;
	r.seq = r.found ? b.asked.best : b.least;
	r.bound = b.bound;
	r.grid = b.grid;
	r.ngrid = b.ngrid;
	return r;
}
