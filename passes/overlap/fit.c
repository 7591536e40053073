/* Which transfers run beside computation, if not all of them fit the budget.
 *
 * method  With all of them, some nodes have more live bytes than the budget has
 *         room for.  At each of these nodes those in flight are left out that
 *         save least, until what is left has room; this repeats, as the others
 *         then stand elsewhere.  What was left out is tried again, by halves,
 *         first those that save most
 * cost    a trial: the graph, arranged and measured; placed if its live bytes
 *         fit
 */
#include "passes/overlap/moves.h"
#include "passes/place/place.h"

#include <stdlib.h>

struct saving {
	ValId of;
	double sec;
};

struct fitting {
	const Pass *pass;
	const Graph *g;
	const struct overlap_choice *choice;
	double *sec;                    /* by value: what its transfer saves */
	struct overlap_effort left;
};

int64_t
overlap_excess(const Pass *p, Graph *g, int *placements, Arena *a)
{
	bool place = placements && *placements > 0;
	int64_t room, bytes;

	inplace_graph(g, a);
	room = p->planned.budget - graph_resident_bytes(g, a);
	bytes = place_within(g, room, place, p->watch, a);
	if (bytes <= room && placements && !place)
		return 1;               /* none may be tried */
	if (bytes > room && place)      /* which takes longest */
		--*placements;
	return bytes - room;
}

/* ---- what is left out ---- */

/* A transfer on its way. */
struct flight {
	ValId of;
	NodeId end;
	int64_t bytes;
	double sec;                     /* that it saves */
};

/* Those on their way at a node, those that save least at the end. */
struct flights {
	struct flight *v;
	uint32_t n;
};

static void
add_flight(struct flights *l, struct flight f)
{
	uint32_t at = l->n++;

	for (; at > 0 && l->v[at - 1].sec < f.sec; at--)
		l->v[at] = l->v[at - 1];
	l->v[at] = f;
}

static void
end_flights(struct flights *l, NodeId at)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n; i++)
		if (l->v[i].end >= at)
			l->v[n++] = l->v[i];
	l->n = n;
}

static struct flight
flight_of(const struct fitting *f, const Graph *t, const Node *n)
{
	ValId x = val_owner(t, node_sent(n)), y = val_owner(t, n->out[0]);
	int64_t bytes = t->val[x].nbytes + t->val[y].nbytes;

	return (struct flight){ n->out[0], n->wait, bytes,
		f->sec[n->out[0]] };
}

/* Leaves out transfers of the trial graph t, in flight at nodes that have more
 * live bytes than all but the `excess` last ones; how many. */
static uint32_t
leave_out(struct fitting *f, const Graph *t, int64_t excess, Arena *a)
{
	int64_t *live = place_live_bytes(t, a), most = 0;
	int64_t *less = arena_array(a, (size_t)t->nnode + 2, sizeof *less);
	struct flights l = { arena_array(a, t->nnode, sizeof *l.v), 0 };
	uint32_t count = 0;

	for (NodeId id = 1; id < t->nnode; id++)
		most = live[id] > most ? live[id] : most;
	for (NodeId id = 1; id < t->nnode; id++) {
		const Node *n = &t->node[id];

		less[id] += less[id - 1];
		end_flights(&l, id);
		if (n->wait && n->out[0] && f->choice->chosen[n->out[0]])
			add_flight(&l, flight_of(f, t, n));
		while (l.n > 0 && live[id] - less[id] > most - excess) {
			const struct flight *x = &l.v[--l.n];

			f->choice->chosen[x->of] = false;
			less[id] += x->bytes;
			less[x->end + 1] -= x->bytes;
			count++;
		}
	}
	return count;
}

/* Tries what is chosen; true if it fits.  `drop`: else leaves transfers out. */
static bool
fits_budget(struct fitting *f, bool drop, uint32_t *dropped)
{
	Graph *trial = graph_trial(f->g);
	Arena *a = arena_new();
	int64_t excess;

	f->left.trials--;
	overlap_apply(trial, f->choice, drop ? f->sec : NULL, a);
	excess = overlap_excess(f->pass, trial, &f->left.placements, a);
	if (excess > 0 && drop)
		*dropped = leave_out(f, trial, excess, a);
	arena_free(a);
	graph_free(trial);
	return excess <= 0;
}

/* ---- by halves ---- */

static int
by_saving(const void *a, const void *b)
{
	const struct saving *x = a, *y = b;

	if (x->sec != y->sec)
		return x->sec < y->sec ? 1 : -1;
	return (x->of > y->of) - (x->of < y->of);
}

static void
set_chosen(struct fitting *f, const struct saving *s, uint32_t n, bool yes)
{
	for (uint32_t i = 0; i < n; i++)
		f->choice->chosen[s[i].of] = yes;
}

/* Chooses those of s[0..n-1] that fit beside what is chosen, by halves: one
 * that does not fit is left out alone.  `known`: together they do not fit.
 * True if all were chosen. */
static bool
add_fitting(struct fitting *f, const struct saving *s, uint32_t n, bool known)
{
	uint32_t half = n / 2;
	bool all;

	if (n == 0 || f->left.trials <= 0 || watch_over(f->pass->watch))
		return false;
	if (!known) {
		set_chosen(f, s, n, true);
		if (fits_budget(f, false, NULL))
			return true;
		set_chosen(f, s, n, false);
	}
	if (n == 1)
		return false;
	all = add_fitting(f, s, half, false);
	add_fitting(f, s + half, n - half, all);
	return false;
}

/* Those that are not chosen, of all. */
static uint32_t
list_left_out(const struct fitting *f, const bool *all, const double *sec,
              struct saving *s)
{
	uint32_t n = 0;

	for (ValId v = 1; v < f->g->nval; v++)
		if (all[v] && !f->choice->chosen[v])
			s[n++] = (struct saving){ v, sec[v] };
	qsort(s, n, sizeof *s, by_saving);
	return n;
}

void
overlap_choose_fitting(const Pass *p, const Graph *g,
                       const struct overlap_choice *c,
                       struct overlap_effort effort, Arena *a)
{
	struct fitting f = { p, g, c, arena_array(a, g->nval, sizeof *f.sec),
		effort };
	bool *all = arena_copy(a, c->chosen, g->nval * sizeof *all);
	struct saving *s = arena_array(a, g->nval, sizeof *s);
	double *sec = NULL;
	uint32_t n, dropped = 1;
	bool fits = false;

	while (!fits && dropped > 0 && f.left.trials > effort.trials / 2
	       && !watch_over(p->watch)) {
		fits = fits_budget(&f, true, &dropped);
		if (!sec)               /* those with all */
			sec = arena_copy(a, f.sec, g->nval * sizeof *sec);
	}
	if (!fits)
		for (ValId v = 1; v < g->nval; v++)
			c->chosen[v] = false;
	n = sec ? list_left_out(&f, all, sec, s) : 0;
	add_fitting(&f, s, n, true);
}
