/* What parts need beside what is kept of the parts before them, in any plan.
 *
 * what    of every part and configuration the bytes that any plan of class
 *         "once" needs, reckoned from uses: see parts_least
 * cost    linear in nodes; configurations of every kind
 */
#include "passes/curve/parts.h"

#include <stdlib.h>
#include <string.h>

/* What lives at every node of backward beside what is kept of earlier parts
 * and what is tied, see parts_least: a pick from its first to its last use,
 * other things always.  Less what has been used up of the parts before. */
static int64_t *
fixed_bytes(const struct parts *y)
{
	const struct remat *r = y->r;
	size_t n = r->nnode;
	int64_t *live = arena_array(y->arena, n + 2, sizeof *live), sum = 0;
	bool *over = arena_array(y->arena, (size_t)r->nstore + 1, 1);

	/* a loop that takes in others may also lie in the bytes of theirs */
	for (NodeId i = 1; i < n; i++)
		for (int k = 0; k < r->node[i].nwrite; k++)
			over[r->node[i].write[k]] = r->node[i].npair > 0
				|| r->g->node[i].op == OP_LOOP;
	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *t = &r->store[s];
		NodeId from = t->def + over[s], to = y->last[s];

		if (to < y->end_forward[s])
			to = y->end_forward[s];
		if (t->output)
			to = (NodeId)n - 1;
		if (y->tied[s])
			continue;
		if (y->part_of[s] >= 0 && t->candidate
		    && y->must[s] != 'k') {
			NodeId lo = y->part[y->part_of[s]].lo;

			/* where a copy needs no memory, see find_stretches */
			from = r->node[t->def].inlinable ? 0 : y->first[s];
			if (from && from < lo)
				from = lo;
			if (y->first[s] && to < lo) {
				live[to + 1] -= t->size;
				live[lo] += t->size;
			}
		}
		if (from == 0 || from > to)
			continue;
		live[from] += t->size;
		live[to + 1] -= t->size;
	}
	for (NodeId i = 0; i < n; i++) {
		sum += live[i];
		live[i] = sum + r->node[i].workspace;
	}
	return live;
}

/* A stretch of backward in which the same picks are in memory. */
struct stretch {
	int64_t most;                   /* fixed bytes */
	uint64_t kept;                  /* picks that are there if kept */
};

enum { STRETCHES = 2 * PART_PICKS + 4 };

/* Those of a part.  The first stands for the most of all and of what its
 * forward needs. */
static int32_t
find_stretches(const struct parts *y, int32_t at, const int64_t *fixed,
               struct stretch *out)
{
	const struct part *p = &y->part[at];
	const struct kind *k = &y->kind[p->kind];
	NodeId hi = at > 0 ? y->part[at - 1].lo : y->r->nnode, i = p->lo;
	int32_t n = 1;

	out[0] = (struct stretch){ 0, 0 };
	for (int32_t j = 0; j < p->nnode; j++)
		if (fixed[p->node[j]] > out[0].most)
			out[0].most = fixed[p->node[j]];
	while (i < hi) {
		struct stretch *t = &out[n++];
		NodeId to = hi;

		*t = (struct stretch){ 0, 0 };
		for (int32_t j = 0; j < k->npick; j++) {
			const struct pick *x = &k->pick[j];
			int32_t s = p->store[x->store[0]];
			NodeId f = x->direct ? y->first[s] : 0, end;

			if (f == 0 || (f <= i && !x->inlinable))
				continue;
			/* the others are fixed while they are in use */
			end = f > i ? f : y->last[s] + 1;
			if (end <= i)
				continue;
			t->kept |= (uint64_t)1 << j;
			if (end < to)
				to = end;
		}
		for (; i < to; i++)
			if (fixed[i] > t->most)
				t->most = fixed[i];
		if (t->most > out[0].most)
			out[0].most = t->most;
	}
	return n;
}

/* The same but for a constant. */
static bool
alike(const struct stretch *a, int32_t na, const struct stretch *b, int32_t nb)
{
	bool same = na == nb;

	for (int32_t i = 0; same && i < na; i++)
		same = a[i].kept == b[i].kept
			&& a[i].most - a[0].most == b[i].most - b[0].most;
	return same;
}

struct needs *
needs_new(struct parts *y, const struct kind *k, struct needs **list,
          int32_t *n)
{
	struct needs *x;

	if (!*list)
		*list = arena_array(y->arena, (size_t)k->count, sizeof *x);
	x = &(*list)[(*n)++];
	x->of = arena_array(y->arena, (size_t)k->nconfig + 1, sizeof *x->of);
	return x;
}

/* ---- what configurations know nothing of ---- */

static int
by_price(const void *a, const void *b)
{
	double x = ((const struct loose *)a)->price;
	double y = ((const struct loose *)b)->price;

	return (x > y) - (x < y);
}

/* Bytes that go by repeating this node alone, which no configuration asks for:
 * what it makes that is tied and crosses, and outputs of its pick but the
 * first. */
static struct loose
loose_of(const struct parts *y, NodeId id)
{
	const struct rnode *n = &y->r->node[id];
	const struct part *p = &y->part[y->node_part[id]];
	const struct kind *k = &y->kind[p->kind];
	struct loose l = { 0, 0 };
	bool crosses = false, pick = false;

	for (int i = 0; i < n->nwrite; i++) {
		int32_t s = n->write[i];

		if (y->r->store[s].candidate && y->must[s] != 'k'
		    && y->tied[s] && y->crosses[s]) {
			l.bytes += y->r->store[s].size;
			crosses = true;
		}
	}
	for (int32_t i = 0; i < k->npick; i++)
		if (p->node[k->pick[i].node] == id) {
			l.bytes += k->pick[i].lead - k->pick[i].first;
			pick = true;
		}
	/* a configuration may have paid for the node already */
	if (l.bytes > 0 && !(crosses && pick))
		l.price = n->least_sec / (double)l.bytes;
	return l;
}

static void
find_loose(struct parts *y)
{
	int32_t n = 0;

	y->loose = arena_array(y->arena, y->r->nnode, sizeof *y->loose);
	for (NodeId i = 1; i < y->r->nnode; i++)
		if (!y->r->node[i].backward) {
			y->loose[n] = loose_of(y, i);
			n += y->loose[n].bytes > 0;
		}
	qsort(y->loose, (size_t)n, sizeof *y->loose, by_price);
	for (int32_t i = 0; i < n; i++) {
		struct loose *last = &y->loose[y->nloose - 1];

		if (y->nloose > 0 && last->price >= y->loose[i].price)
			last->bytes += y->loose[i].bytes;
		else
			y->loose[y->nloose++] = y->loose[i];
	}
}

/* A lower bound on the arena of plans of class "once".
 *
 * Claim.  Take any plan of that class that keeps what is tied and, of each
 * node with a single pick, keeps or drops all outputs of the pick.  Let K(q)
 * be what it keeps of part q and needs, a configuration.  Then for every part
 * i the arena is no smaller than
 *     sum over q < i of firm(K(q))  +  least(i)[K(i)]
 * and copies take no less than the sum of the configurations' `least`.
 *
 * Seconds.  A dropped pick that backward reads, or that a repeated node
 * reads, is made again, at the price of its node or, where a loop can do its
 * work, of that.  Configurations count each such node once and none that only
 * copies of other parts ask for.
 *
 * Bytes.  First runs keep their order, so a node of backward finds in memory
 *   - what cannot be dropped, from its definition to its last use; where it
 *     may be written over a dying operand, which is of its size, from the
 *     step behind (`over`);
 *   - a pick between first and last use: it was kept or a copy is there, since
 *     a copy is made before the first use and held.  Not so if the reader may
 *     do its work, so then it counts only if kept;
 *   - a kept pick before its first use (find_stretches);
 *   - of parts q < i what backward reads itself and is kept, up to its last
 *     use, and that is at or behind part q but for picks that cross, which
 *     fixed_bytes takes away again from their last use on;
 *   - of parts q < i what only copies read and is kept.  A copy of a node of
 *     part q is asked for by backward at q, or through something dropped that
 *     crosses.  If there is none nothing of it goes before backward is at q.
 *     Else it is all there, or a copy of what crosses has been made, which is
 *     there up to its last use, as are all copies that were made for it and
 *     that backward reads.  The smaller of both counts (config.firm).
 * Parts are ordered: backward is at q only behind all of i > q (find_ranges).
 *
 * Other plans.  Put what is tied and crosses, and outputs that went alone, back
 * into memory: copies get fewer by their nodes, and the arena grows by their
 * bytes at most.  So the claim holds for memory M of such a plan with M more
 * by these bytes, and seconds less by those nodes: see parts.loose.  What is
 * tied and does not cross is read at its part alone, where its copies are made
 * as well, and counts nowhere. */
void
parts_least(struct parts *y)
{
	int64_t *fixed = fixed_bytes(y);
	struct stretch (*model)[STRETCHES] = arena_array(y->arena,
		(size_t)y->nkind, sizeof *model);
	int32_t *count = arena_array(y->arena, (size_t)y->nkind, 4);

	find_loose(y);
	for (int32_t i = 0; i < y->n; i++) {
		struct part *p = &y->part[i];
		struct kind *k = &y->kind[p->kind];
		struct stretch t[STRETCHES];
		int32_t n = find_stretches(y, i, fixed, t);

		p->least_more = t[0].most;
		if (k->nleast > 0 && alike(t, n, model[p->kind],
		                           count[p->kind])) {
			p->least = &k->least[k->nleast - 1];
			continue;
		}
		memcpy(model[p->kind], t, sizeof t);
		count[p->kind] = n;
		p->least = needs_new(y, k, &k->least, &k->nleast);
		for (int32_t c = 0; c < k->nconfig
		     && !watch_over(y->r->watch); c++) {
			int64_t *most = &p->least->of[c];

			for (int32_t j = 1; j < n; j++) {
				/* thinned: it stands for others too */
				int64_t b = t[j].most - t[0].most
					+ (k->thinned ? 0 : picks_lead(k,
					t[j].kept & k->config[c].keep));

				*most = b > *most ? b : *most;
			}
		}
	}
}

