/* Where the forward order is cut: stages of about equal seconds, or where the
 * user says (--stage).
 *
 * what    bound forward nodes in their order; a place to cut is behind a node
 *         where fewest bytes cross among its neighbours
 * method  T(i, j) is the seconds of forward and backward between two places,
 *         with the transfers at both ends.  Dynamic programs find the least
 *         largest T, then the least sum of T under it: for many micro-batches
 *         the step takes sum T + (N - 1) max T (Zheng et al., Alpa, 2022)
 * cost    O(places^2 stages)
 * refuses more stages than places allow; values that no bound node makes
 */
#include "passes/cost/cost.h"
#include "passes/pipeline/stages.h"

#include <math.h>
#include <stdlib.h>

/* Places to choose from; values that a message names. */
enum { PLACES = 1000, NEARBY = 2, LISTED = 6 };

struct places {
	const struct stages *s;         /* NULL: forward_line_cut */
	const Graph *g;
	Arena *arena;
	int stages;
	struct forward_line line;
	double *before;                 /* seconds of the first i nodes */
	uint32_t *cut;                  /* places: numbers of nodes in front;
	                                 * the first is 0, the last n */
	int ncut;
};

static bool
is_bound_forward(const struct stages *s, const Node *n)
{
	return n->phase == PH_FORWARD && !n->count_pass
		&& stage_kind_of(s, n) == KIND_BOUND;
}

static void
list_places(struct places *l)
{
	const Graph *g = l->g;
	Arena *a = l->arena;
	double *sec = arena_array(a, g->nnode, sizeof *sec);

	l->line.node = arena_array(a, g->nnode, sizeof *l->line.node);
	l->line.sec = arena_array(a, g->nnode, sizeof *l->line.sec);
	FOR_NODES (n, g)
		if (n->place && !n->count_pass)
			sec[n->place] += node_cost(g, n).sec;
	FOR_NODES (n, g)
		if (is_bound_forward(l->s, n)) {
			l->line.sec[l->line.n] = sec[n->place];
			l->line.node[l->line.n++] = node_id(g, n);
		}
}

/* Bytes that cross behind each node. */
static void
find_crossings(struct places *l)
{
	const Graph *g = l->g;
	Arena *a = l->arena;
	uint32_t *last = arena_array(a, g->nval, sizeof *last);

	l->line.crosses = arena_array(a, l->line.n + 2,
	                              sizeof *l->line.crosses);
	for (uint32_t i = 0; i < l->line.n; i++) {
		const Node *n = &g->node[l->line.node[i]];

		for (int k = 0; k < n->nin; k++)
			last[n->in[k]] = i;
	}
	for (uint32_t i = 0; i < l->line.n; i++) {
		const Node *n = &g->node[l->line.node[i]];

		for (int k = 0; k < n->nout; k++) {
			double bytes = (double)val_data_bytes(
				&g->val[n->out[k]]);

			if (!n->out[k] || last[n->out[k]] <= i)
				continue;
			l->line.crosses[i + 1] += bytes;
			l->line.crosses[last[n->out[k]] + 1] -= bytes;
		}
	}
	for (uint32_t i = 1; i <= l->line.n; i++)
		l->line.crosses[i] += l->line.crosses[i - 1];
}

/* Fewer bytes cross than before, and no more than behind the next node. */
static bool
is_narrow(const struct places *l, uint32_t i)
{
	return l->line.crosses[i] < l->line.crosses[i - 1]
		&& l->line.crosses[i] <= l->line.crosses[i + 1];
}

/* Whether the node makes a product, or is element-wise on one with a
 * parameter. */
static bool
ends_product(const struct places *l, const Node *n)
{
	const Graph *g = l->g;

	if (op_info[n->op].flags & F_CONTRACT)
		return true;
	for (int k = 0; op_info[n->op].flags & F_EW && n->nin == 2 && k < 2;
	     k++) {
		NodeId def = g->val[n->in[k]].def;

		if (def && op_info[g->node[def].op].flags & F_CONTRACT
		    && l->s->kind[n->in[1 - k]] == KIND_PARAM)
			return true;
	}
	return false;
}

/* Whether a product ends in front and what is added to it may come next: one
 * kernel does both, and rounds once (passes/fuse). */
static bool
parts_sum(const struct places *l, uint32_t i)
{
	const Node *n = &l->g->node[l->line.node[i - 1]];
	const Node *next = &l->g->node[l->line.node[i]];

	return op_info[next->op].flags & F_EW && ends_product(l, n)
		&& next->nin == 2
		&& (next->in[0] == n->out[0] || next->in[1] == n->out[0]);
}

/* By place: whether it parts a sum. */
static void
find_sums(struct places *l)
{
	l->line.parts = arena_array(l->arena, l->line.n + 1,
	                            sizeof *l->line.parts);
	for (uint32_t i = 1; i < l->line.n; i++)
		l->line.parts[i] = parts_sum(l, i);
}

/* Seconds in front of each place. */
static void
sum_seconds(struct places *l)
{
	l->before = arena_array(l->arena, l->line.n + 1, sizeof *l->before);
	for (uint32_t i = 0; i < l->line.n; i++)
		l->before[i + 1] = l->before[i] + l->line.sec[i];
}

/* All narrow places or, of many, those whose seconds are evenly spaced. */
static void
list_cuts(struct places *l, bool narrow)
{
	double step = l->before[l->line.n] / PLACES, next = 0;

	l->ncut = 0;
	l->cut[l->ncut++] = 0;
	for (uint32_t i = 1; i < l->line.n; i++)
		if ((!narrow || is_narrow(l, i)) && !l->line.parts[i]
		    && l->before[i] > next) {
			l->cut[l->ncut++] = i;
			next = l->before[i] + step;
		}
	l->cut[l->ncut++] = l->line.n;
}

/* Bytes go there and their gradients come back. */
static double
transfer_seconds(const struct places *l, uint32_t i)
{
	const Graph *g = l->g;
	struct ring ring = group_ring(g, GROUP_RANKS);

	if (i == 0 || i == l->line.n)
		return 0;
	ring.stride = ring.ranks * (g->replicas > 0 ? g->replicas : 1);
	ring.ranks = l->stages;
	return 2 * device_ring_seconds(device_of(g), ring, l->line.crosses[i]);
}

/* Seconds of a stage between cuts i and j. */
static double
stage_seconds(const struct places *l, const double *transfer, int i, int j)
{
	return l->before[l->cut[j]] - l->before[l->cut[i]]
		+ transfer[i] + transfer[j];
}

/* best[k][j]: of the first j cuts in k stages the least largest stage, or under
 * `most` the least sum; from: where the last of these stages begins. */
static void
cut_between(const struct places *l, const double *transfer, double most,
         double *best, int *from)
{
	int n = l->ncut;

	for (int j = 0; j < n; j++)
		best[j] = j ? INFINITY : 0;
	for (int k = 1; k <= l->stages; k++)
		for (int j = 0; j < n; j++) {
			best[k * n + j] = INFINITY;
			for (int i = j; i-- > 0; ) {
				double t = stage_seconds(l, transfer, i, j);
				double x = best[(k - 1) * n + i];

				if (t > most)
					continue;
				x = isinf(most) ? fmax(x, t) : x + t;
				if (x < best[k * n + j]) {
					best[k * n + j] = x;
					from[k * n + j] = i;
				}
			}
		}
}

/* ---- names of places ---- */

/* The value of the node in front of place i, of those that are cut there. */
static const char *
place_name(const struct places *l, uint32_t i)
{
	const Node *n = &l->g->node[l->line.node[i - 1]];

	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			return l->g->val[n->out[k]].name;
	return "?";
}

/* The first of l->cut, which are places inside the graph, from `at` on. */
static int
find_cut(const struct places *l, uint32_t at)
{
	int k = 1;

	while (k < l->ncut - 1 && l->cut[k] < at)
		k++;
	return k;
}

/* Stage k ends at place i. */
static void
note_cut(const struct places *l, int k, uint32_t i)
{
	int j = find_cut(l, i);
	int next = j < l->ncut - 1 && l->cut[j] == i ? j + 1 : j;

	l->s->cut[k] = (struct stage_cut){ place_name(l, i),
		j > 1 ? place_name(l, l->cut[j - 1]) : NULL,
		next < l->ncut - 1 ? place_name(l, l->cut[next]) : NULL };
}

/* Places near node `at`, or some of all if it is 0. */
static const char *
list_nearby(const struct places *l, NodeId at)
{
	Arena *a = l->arena;
	const char *text = "";
	int n = l->ncut - 2, begin = 1, end = n + 1, step = n / LISTED + 1;
	uint32_t i = 0;

	if (at) {
		while (i < l->line.n && l->line.node[i] < at)
			i++;
		begin = find_cut(l, i) - NEARBY;
		begin = begin < 1 ? 1 : begin;
		end = begin + 2 * NEARBY < end ? begin + 2 * NEARBY : end;
		step = 1;
	}
	for (int k = begin; k < end; k += step)
		text = arena_printf(a, "%s%s'%s'", text, *text ? ", " : "",
		                    place_name(l, l->cut[k]));
	return text;
}

/* ---- places that the user wants ---- */

static bool
refuse_place(const struct places *l, const char *name, NodeId at,
            const char *why)
{
	diag_error(l->s->p->diag, "--stage '%s': %s", name, why);
	diag_more(l->s->p->diag, "places to cut%s: %s", at ? " nearby" : "",
	          list_nearby(l, at));
	return false;
}

/* The place behind the node that makes a value of this name. */
static bool
find_wish(const struct places *l, const char *name, uint32_t *place)
{
	const Graph *g = l->g;
	NodeId other = 0;

	FOR_VALS (v, g) {
		if (!val_is_named(v, name) || !v->def)
			continue;
		other = other ? other : v->def;
		for (uint32_t i = 0; i < l->line.n; i++)
			if (l->line.node[i] == v->def) {
				*place = i + 1;
				if (i + 1 < l->line.n)
					return true;
				return refuse_place(l, name, v->def, "nothing "
				                    "is left for the next "
				                    "stage");
			}
	}
	if (!other || g->node[other].phase != PH_FORWARD)
		return refuse_place(l, name, 0, "no node of forward computes a "
		                    "value of this name");
	return refuse_place(l, name, other, "expected a value that depends on "
	                    "inputs and parameters; each stage computes its "
	                    "own copy of this one");
}

static int
by_place(const void *p, const void *q)
{
	const uint32_t *a = p, *b = q;

	return (*a > *b) - (*a < *b);
}

static bool
take_wishes(const struct places *l, int *of_place)
{
	const struct name_list *wish = &l->s->p->opt->stage;
	const Graph *g = l->g;
	uint32_t *at = arena_array(l->arena, (size_t)wish->n + 1,
	                           sizeof *at);
	int stage = 0;

	for (int k = 0; k < wish->n; k++)
		if (!find_wish(l, wish->v[k], &at[k]))
			return false;
	qsort(at, (size_t)wish->n, sizeof *at, by_place);
	for (int k = 0; k < wish->n; k++) {
		if (k > 0 && at[k] == at[k - 1])
			return refuse_place(l, place_name(l, at[k]),
			                    l->line.node[at[k] - 1], "expected "
			                    "another place for each cut");
		note_cut(l, k, at[k]);
	}
	for (uint32_t i = 0; i < l->line.n; i++) {
		while (stage < wish->n && i >= at[stage])
			stage++;
		of_place[g->node[l->line.node[i]].place] = stage;
	}
	return true;
}

/* ---- places for equal stages ---- */

/* Which stage each node is of; at: where stages begin. */
static void
mark_stages(const struct places *l, const uint32_t *at, int *of_place)
{
	const Graph *g = l->g;

	for (int k = 0; k < l->stages; k++) {
		for (uint32_t m = at[k]; m < at[k + 1]; m++)
			of_place[g->node[l->line.node[m]].place] = k;
		if (k > 0)
			note_cut(l, k - 1, at[k]);
	}
}

/* at[0..stages]: where stages begin, and the end. */
static bool
choose_places(struct places *l, uint32_t *at)
{
	Arena *a = l->arena;
	size_t n = (size_t)l->ncut, size = ((size_t)l->stages + 1) * n;
	double *best = arena_array(a, size, sizeof *best);
	double *transfer = arena_array(a, n, sizeof *transfer), most;
	int *from = arena_array(a, size, sizeof *from);

	for (size_t i = 0; i < n; i++)
		transfer[i] = transfer_seconds(l, l->cut[i]);
	cut_between(l, transfer, INFINITY, best, from);
	most = best[size - 1];
	if (isinf(most))
		return false;
	cut_between(l, transfer, most * (1 + 1e-9), best, from);
	for (int k = l->stages, j = l->ncut - 1; k >= 0; k--) {
		at[k] = l->cut[j];
		j = k ? from[k * l->ncut + j] : 0;
	}
	return true;
}

static bool
cut_line(struct places *l, uint32_t *at)
{
	l->cut = arena_array(l->arena, l->line.n + 2, sizeof *l->cut);
	for (int narrow = 1; narrow >= 0; narrow--) {
		list_cuts(l, narrow);
		if (choose_places(l, at))
			return true;
	}
	return false;
}

static bool
too_many_stages(const struct stages *s, int most)
{
	const struct options *o = s->p->opt;
	int64_t fit = o->chunks ? most / o->pp : 0;

	if (!o->chunks)
		return diag_error(s->p->diag, "--pp %d: the graph can be cut "
		                  "into at most %d stages; try: --pp %d", s->n,
		                  most, most);
	return diag_error(s->p->diag, "--pp %lld --schedule interleaved=%lld: "
	                  "the graph can be cut into at most %d stages, not "
	                  "%d; try: --schedule %s", (long long)o->pp,
	                  (long long)o->chunks, most, s->n, fit < 2 ? "1f1b"
	                  : arena_printf(s->p->scratch, "interleaved=%lld",
	                                 (long long)fit));
}

static void
list_line(struct places *l)
{
	list_places(l);
	find_crossings(l);
	find_sums(l);
	sum_seconds(l);
}

bool
places_choose(const struct stages *s, int *of_place)
{
	struct places l = { .s = s, .g = s->g, .arena = s->p->scratch,
	                    .stages = s->n };
	uint32_t *at = arena_array(l.arena, (size_t)s->n + 1, sizeof *at);

	list_line(&l);
	for (uint32_t i = 0; i < s->g->nnode; i++)
		of_place[i] = -1;
	if (s->p->opt->stage.n) {
		l.cut = arena_array(l.arena, l.line.n + 2, sizeof *l.cut);
		list_cuts(&l, true);
		return take_wishes(&l, of_place);
	}
	if (!cut_line(&l, at))
		return too_many_stages(s, l.ncut - 1);
	mark_stages(&l, at, of_place);
	return true;
}

void
places_list(const struct stages *s, struct forward_line *to)
{
	struct places l = { .s = s, .g = s->g, .arena = s->p->scratch };

	list_line(&l);
	*to = l.line;
}

bool
forward_line_cut(const struct forward_line *line, const Graph *g, int stages,
                 uint32_t *at, Arena *arena)
{
	struct places l = { .g = g, .arena = arena, .stages = stages,
	                    .line = *line };

	sum_seconds(&l);
	return cut_line(&l, at);
}
