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
	const struct stages *s;
	uint32_t n;                     /* bound forward nodes */
	NodeId *node;
	double *before;                 /* seconds of the first i of them, and
	                                 * of what differentiates them */
	double *crosses;                /* bytes that cross behind node i */
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
	const Graph *g = l->s->g;
	Arena *a = l->s->p->scratch;
	double *sec = arena_array(a, g->nnode, sizeof *sec);

	l->node = arena_array(a, g->nnode, sizeof *l->node);
	l->before = arena_array(a, g->nnode + 1, sizeof *l->before);
	FOR_NODES (n, g)
		if (n->place && !n->count_pass)
			sec[n->place] += node_cost(g, n).sec;
	FOR_NODES (n, g)
		if (is_bound_forward(l->s, n)) {
			l->node[l->n++] = node_id(g, n);
			l->before[l->n] = l->before[l->n - 1] + sec[n->place];
		}
}

/* Bytes that cross behind each node. */
static void
find_crossings(struct places *l)
{
	const Graph *g = l->s->g;
	Arena *a = l->s->p->scratch;
	uint32_t *last = arena_array(a, g->nval, sizeof *last);

	l->crosses = arena_array(a, l->n + 2, sizeof *l->crosses);
	for (uint32_t i = 0; i < l->n; i++) {
		const Node *n = &g->node[l->node[i]];

		for (int k = 0; k < n->nin; k++)
			last[n->in[k]] = i;
	}
	for (uint32_t i = 0; i < l->n; i++) {
		const Node *n = &g->node[l->node[i]];

		for (int k = 0; k < n->nout; k++) {
			double bytes = (double)val_data_bytes(
				&g->val[n->out[k]]);

			if (!n->out[k] || last[n->out[k]] <= i)
				continue;
			l->crosses[i + 1] += bytes;
			l->crosses[last[n->out[k]] + 1] -= bytes;
		}
	}
	for (uint32_t i = 1; i <= l->n; i++)
		l->crosses[i] += l->crosses[i - 1];
}

/* Fewer bytes cross than before, and no more than behind the next node. */
static bool
is_narrow(const struct places *l, uint32_t i)
{
	return l->crosses[i] < l->crosses[i - 1]
		&& l->crosses[i] <= l->crosses[i + 1];
}

/* Whether the node makes a product, or is element-wise on one with a
 * parameter. */
static bool
ends_product(const struct places *l, const Node *n)
{
	const Graph *g = l->s->g;

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
	const Node *n = &l->s->g->node[l->node[i - 1]];
	const Node *next = &l->s->g->node[l->node[i]];

	return op_info[next->op].flags & F_EW && ends_product(l, n)
		&& next->nin == 2
		&& (next->in[0] == n->out[0] || next->in[1] == n->out[0]);
}

/* All narrow places or, of many, those whose seconds are evenly spaced. */
static void
list_cuts(struct places *l, bool narrow)
{
	double step = l->before[l->n] / PLACES, next = 0;

	l->ncut = 0;
	l->cut[l->ncut++] = 0;
	for (uint32_t i = 1; i < l->n; i++)
		if ((!narrow || is_narrow(l, i)) && !parts_sum(l, i)
		    && l->before[i] > next) {
			l->cut[l->ncut++] = i;
			next = l->before[i] + step;
		}
	l->cut[l->ncut++] = l->n;
}

/* Bytes go there and their gradients come back. */
static double
transfer_seconds(const struct places *l, uint32_t i)
{
	const Graph *g = l->s->g;
	struct ring ring = group_ring(g, GROUP_RANKS);

	if (i == 0 || i == l->n)
		return 0;
	ring.stride = ring.ranks * (g->replicas > 0 ? g->replicas : 1);
	ring.ranks = l->s->n;
	return 2 * device_ring_seconds(device_of(g), ring, l->crosses[i]);
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
	for (int k = 1; k <= l->s->n; k++)
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
	const Node *n = &l->s->g->node[l->node[i - 1]];

	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			return l->s->g->val[n->out[k]].name;
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
	Arena *a = l->s->p->scratch;
	const char *text = "";
	int n = l->ncut - 2, begin = 1, end = n + 1, step = n / LISTED + 1;
	uint32_t i = 0;

	if (at) {
		while (i < l->n && l->node[i] < at)
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
	const Graph *g = l->s->g;
	NodeId other = 0;

	FOR_VALS (v, g) {
		if (!val_is_named(v, name) || !v->def)
			continue;
		other = other ? other : v->def;
		for (uint32_t i = 0; i < l->n; i++)
			if (l->node[i] == v->def) {
				*place = i + 1;
				if (i + 1 < l->n)
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
	const Graph *g = l->s->g;
	uint32_t *at = arena_array(l->s->p->scratch, (size_t)wish->n + 1,
	                           sizeof *at);
	int stage = 0;

	for (int k = 0; k < wish->n; k++)
		if (!find_wish(l, wish->v[k], &at[k]))
			return false;
	qsort(at, (size_t)wish->n, sizeof *at, by_place);
	for (int k = 0; k < wish->n; k++) {
		if (k > 0 && at[k] == at[k - 1])
			return refuse_place(l, place_name(l, at[k]),
			                    l->node[at[k] - 1], "expected "
			                    "another place for each cut");
		note_cut(l, k, at[k]);
	}
	for (uint32_t i = 0; i < l->n; i++) {
		while (stage < wish->n && i >= at[stage])
			stage++;
		of_place[g->node[l->node[i]].place] = stage;
	}
	return true;
}

/* ---- places for equal stages ---- */

/* Which stage each node is of. */
static void
mark_stages(const struct places *l, const int *from, int *of_place)
{
	const Graph *g = l->s->g;
	int j = l->ncut - 1;

	for (int k = l->s->n; k > 0; k--) {
		int i = from[k * l->ncut + j];

		for (uint32_t m = l->cut[i]; m < l->cut[j]; m++)
			of_place[g->node[l->node[m]].place] = k - 1;
		if (k > 1)
			note_cut(l, k - 2, l->cut[i]);
		j = i;
	}
}

static bool
choose_places(struct places *l, int *of_place)
{
	Arena *a = l->s->p->scratch;
	size_t n = (size_t)l->ncut, size = ((size_t)l->s->n + 1) * n;
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
	mark_stages(l, from, of_place);
	return true;
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

bool
places_choose(const struct stages *s, int *of_place)
{
	struct places l = { .s = s };

	list_places(&l);
	find_crossings(&l);
	l.cut = arena_array(s->p->scratch, l.n + 2, sizeof *l.cut);
	for (uint32_t i = 0; i < s->g->nnode; i++)
		of_place[i] = -1;
	if (s->p->opt->stage.n) {
		list_cuts(&l, true);
		return take_wishes(&l, of_place);
	}
	for (int narrow = 1; narrow >= 0; narrow--) {
		list_cuts(&l, narrow);
		if (choose_places(&l, of_place))
			return true;
	}
	return too_many_stages(s, l.ncut - 1);
}
