/* Keep or recompute: a bound for any number of clones.
 *
 * what    seconds of clones below which no plan gets within an amount of
 *         memory, and a plan that often needs no more
 * method  A stage program, an own formulation.  A stage begins with the first
 *         run of a node w.  What must come before w has run then, and nothing
 *         that must come after: in a graph whose order is given that is what
 *         stands before and after w, in one whose order is free what w is made
 *         from and what is made from w.  Nodes w_1, w_2, ... in that order cut
 *         any plan into stages; stage i begins with the run of w_i, stage 0
 *         comes before.  Let
 *           x_i,s = 1: storage s is in memory while w_i runs
 *           y_i,n = 1: node n runs in stage i
 *         Invariant: each plan gives a point of the 0-1 program
 *           every node runs in some stage
 *           w_i reads s, or writes it:     x_i,s = 1
 *           others of stage i read s:      y_i,n <= x_i,s + y_i,def(s)
 *           from stage to stage:           x_i+1,s <= x_i,s + y_i,def(s)
 *           memory:   sum of size_s x_i,s <= M - what no plan can be without
 *         that costs no more than the plan, so its minimum is a bound; with
 *         one stage it is a knapsack over the values that cross its start.  A
 *         clone that w_i takes in stores nothing: it reads like the others.
 *         Without integrality one byte that is kept would stand for a share
 *         of a clone in each stage; z_n <= sum of y_i,n over i >= 1 mends
 *         that: what is read after w_1 was there or is made again.  Where the
 *         order is free these rows were found to slow branch and bound down.
 *         Where the order is free the first stage begins with the node that
 *         asks for most alone.  The point says what to hold where stages begin,
 *         which makes a plan in the order of nodes; where that is fullest, if
 *         it does not fit, the next stage begins.  A plan that fits and costs
 *         what the program does proves both.
 * cost    programs in (nodes + links) times stages; pivots and nodes of branch
 *         and bound are counted
 */
#include "passes/recursive/stage_program.h"

#include <math.h>
#include <stdlib.h>

enum { PIVOTS = 20000 };

/* ---- choosing stages ---- */

struct knapsack_item {
	int64_t bytes;
	double sec;
};

static int
by_density(const void *a, const void *b)
{
	const struct knapsack_item *i = a, *j = b;
	double x = i->sec * (double)j->bytes, y = j->sec * (double)i->bytes;

	return (x < y) - (x > y);
}

/* What is read from storage s must have run after w. */
static bool
is_read_after(const struct stage_program *p, int32_t s, NodeId w)
{
	for (int32_t k = p->readers.at[s]; k < p->readers.at[s + 1]; k++)
		if (is_before(p, w, p->readers.node[k]))
			return true;
	return false;
}

/* What must be paid again at least for a stage that w begins: what crosses it,
 * the dearest for their bytes kept first. */
static double
knapsack(const struct stage_program *p, NodeId w, struct knapsack_item *item)
{
	const struct remat *r = p->r;
	const struct rnode *n = &r->node[w];
	int64_t free_bytes = p->job->memory - n->workspace, bytes = 0;
	size_t count = 0;
	double sum = 0;

	for (int k = 0; k < n->nread; k++)
		free_bytes -= r->store[n->read[k]].size;
	for (int k = 0; k < n->nwrite; k++)
		free_bytes -= r->store[n->write[k]].size;
	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *st = &r->store[s];

		if (!is_before(p, st->def, w) || node_reads(n, s)
		    || !is_read_after(p, s, w))
			continue;
		item[count++] = (struct knapsack_item){ st->size,
			r->node[st->def].least_sec };
		bytes += st->size;
	}
	if (bytes <= free_bytes)
		return 0;
	qsort(item, count, sizeof *item, by_density);
	for (size_t i = 0; i < count; i++) {
		if (item[i].bytes <= free_bytes) {
			free_bytes -= item[i].bytes;
			continue;
		}
		sum += item[i].sec
			* (1 - (double)(free_bytes > 0 ? free_bytes : 0)
			       / (double)item[i].bytes);
		free_bytes = 0;
	}
	return sum;
}

/* The one that asks for most alone, if any asks for something. */
static void
choose_heaviest_stage(struct stage_program *p)
{
	struct knapsack_item *item =
		arena_array(p->arena, (size_t)p->r->nstore + 1, sizeof *item);
	double most = 0;

	for (NodeId w = 1; w < p->r->nnode && !watch_over(p->r->watch); w++) {
		double sec = knapsack(p, w, item);

		if (sec > most) {
			most = sec;
			p->w[0] = w;
			p->n = 1;
		}
	}
}

/* Reads of storages that may be dropped by first runs of backward. */
static int
count_droppable_reads(const struct remat *r, NodeId id)
{
	int n = 0;

	for (int k = 0; r->node[id].backward && k < r->node[id].nread; k++)
		n += r->store[r->node[id].read[k]].candidate;
	return n;
}

/* Spread over what backward reads; the first node of backward is one. */
static void
spread_stages(struct stage_program *p)
{
	const struct remat *r = p->r;
	int64_t all = 0, sum = 0, most = p->job->most;

	for (NodeId i = 1; i < r->nnode; i++)
		all += count_droppable_reads(r, i);
	for (NodeId i = 1; i < r->nnode && p->n < most; i++) {
		if (!r->node[i].backward)
			continue;
		if (p->n == 0 || (count_droppable_reads(r, i)
		                  && sum * most >= all * p->n))
			p->w[p->n++] = i;
		sum += count_droppable_reads(r, i);
	}
}

/* Its place among the stages is certain. */
static bool
fits_in(const struct stage_program *p, NodeId w)
{
	for (int j = 0; j < p->n; j++)
		if (p->w[j] == w || !(p->w[j] < w ? is_before(p, p->w[j], w)
		                      : is_before(p, w, p->w[j])))
			return false;
	return true;
}

/* Where the plan is fullest, or the next first run that fits in; false: there
 * is none. */
static bool
add_fullest(struct stage_program *p)
{
	const struct schedule *w = p->trial;
	NodeId at = 0;
	int j = p->n;

	for (int32_t k = w->cost.tight; k < w->nstep && !at; k++)
		if (!w->step[k].clone && fits_in(p, w->step[k].node))
			at = w->step[k].node;
	if (!at)
		return false;
	for (; j > 0 && p->w[j - 1] > at; j--)
		p->w[j] = p->w[j - 1];
	p->w[j] = at;
	p->n++;
	return true;
}

/* ---- a plan from a point ---- */

static bool
are_all_in_memory(const struct rnode *n, const bool *here)
{
	for (int k = 0; k < n->nwrite; k++)
		if (!here[n->write[k]])
			return false;
	return true;
}

/* Node v runs, after what it misses has run again. */
static bool
run_with_inputs(struct stage_program *p, NodeId v, bool *here, NodeId *stack)
{
	const struct remat *r = p->r;
	size_t top = 0;
	bool ok = true;

	stack[top++] = v;
	while (top > 0 && ok) {
		NodeId u = stack[top - 1];
		const struct rnode *n = &r->node[u];
		size_t before = top;

		if (u != v && are_all_in_memory(n, here)) {
			top--;          /* made for the sake of another */
			continue;
		}
		for (int k = 0; k < n->nread; k++)
			if (!here[n->read[k]])
				stack[top++] = r->store[n->read[k]].def;
		if (top > before)
			continue;
		top--;
		for (int k = 0; k < n->nwrite; k++)
			here[n->write[k]] = true;
		ok = (u == v || n->clonable)
			&& steps_add(&p->plan, u, u != v,
			             remat_all_writes(n));
	}
	return ok;
}

/* The order of the nodes; each stage lets go of what the point does not
 * hold. */
static bool
follow_point(struct stage_program *p, const double *point)
{
	const struct remat *r = p->r;
	Arena *scratch = arena_new();
	bool *here = arena_array(scratch, (size_t)r->nstore + 1, 1);
	size_t links = 0;
	NodeId *stack;
	bool ok = true;
	int i = 0;

	for (NodeId v = 1; v < r->nnode; v++)
		links += (size_t)r->node[v].nread;
	stack = arena_array(scratch, r->nnode + links, sizeof *stack);
	p->plan.n = 0;
	for (NodeId v = 1; v < r->nnode && ok; v++) {
		ok = run_with_inputs(p, v, here, stack);
		if (i == p->n || p->w[i] != v)
			continue;
		for (int32_t s = 0; s < r->nstore; s++) {
			int x = p->x[i][s];

			here[s] &= !r->store[s].candidate || x == ONE
				|| (x >= 0 && point[x] > 0.5);
		}
		i++;
	}
	arena_free(scratch);
	return ok;
}

/* The plan of a point: the next stage is read off it, and the job's plan
 * becomes it if that is an improvement. */
static void
adopt_plan(struct stage_program *p, const double *point)
{
	struct stage_bound *job = p->job;
	struct step_list *own = job->plan;
	struct remat_cost c;
	bool fits;

	if (!own || !follow_point(p, point))
		return;
	c = schedule_steps(p->trial, p->plan.step, p->plan.n);
	fits = c.live <= job->memory;
	if (own->n && job->cost.live <= job->memory
	    && (!fits || c.sec >= job->cost.sec))
		return;
	own->n = 0;
	for (int32_t k = 0; k < p->plan.n; k++)
		steps_add(own, p->plan.step[k].node, p->plan.step[k].clone,
		          p->plan.step[k].makes);
	job->cost = c;
}

/* ---- all of it ---- */

/* Less what the solver's tolerance may have added; whole seconds make whole
 * sums. */
static double
round_bound(const struct remat *r, double x)
{
	bool whole = true;

	for (NodeId v = 1; v < r->nnode; v++)
		whole &= r->node[v].sec == floor(r->node[v].sec);
	x -= 1e-7 * (x + r->base_sec);
	return whole && x < 0x1p52 ? ceil(x) : x;
}

/* The bound of the present stages, and a plan; false: no answer, or none
 * that more stages could follow. */
static bool
bound_at_stages(struct stage_program *p, double *bound)
{
	struct stage_bound *job = p->job;
	int64_t size = (int64_t)p->r->nnode * p->n;
	struct ilp_limit limit = {
		.pivots = PIVOTS, .nodes = job->nodes / size + 1,
		.watch = p->r->watch, .for_bound = !job->plan,
	};
	struct ilp_answer a;
	double sec;

	p->lp = ilp_new(p->arena);
	stages_fill(p);
	a = job->nodes ? ilp_solve(p->lp, &limit, p->arena)
		: ilp_relax(p->lp, &limit, p->arena);
	ilp_free(p->lp);
	sec = p->sure - p->r->base_sec + a.bound * p->unit_sec;
	if (isfinite(a.bound))
		*bound = fmax(*bound, round_bound(p->r, sec));
	if (a.x)
		adopt_plan(p, a.x);
	return a.status == ILP_OPTIMAL;
}

double
stages_bound(struct stage_bound *job)
{
	const struct remat *r = job->r;
	struct stage_program p = {
		.job = job, .r = r, .arena = arena_new(),
		/* whole seconds stay whole, which branch and bound likes */
		.unit_sec = job->any_order ? 1 : r->base_sec / 100,
		.unit_bytes = (double)job->memory + 1,
	};
	double bound = 0;

	p.plan = (struct step_list){ .arena = p.arena,
		.limit = (STAGES_MAX + 1) * (int32_t)r->nnode };
	p.trial = schedule_new(r, p.arena);
	stages_index(&p);
	if (r->base_sec > 0 && job->any_order)
		choose_heaviest_stage(&p);
	else if (r->base_sec > 0)
		spread_stages(&p);
	while (p.n > 0 && !watch_over(r->watch) && bound_at_stages(&p, &bound)
	       && p.n < job->most && job->plan
	       && p.trial->cost.live > job->memory && add_fullest(&p))
		;
	arena_free(p.arena);
	return bound;
}
