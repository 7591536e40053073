/* Lower bounds on the memory of parts in any plan, beyond the values kept of
 * earlier parts.
 *
 * what    of every part and point the bytes that any plan of class
 *         "once" needs, reckoned from uses: see partition_least
 * cost    linear in nodes; points of every class
 */
#include "passes/pareto/partition.h"

#include <stdlib.h>
#include <string.h>

/* What lives at every node of backward beside what is kept of earlier parts
 * and what is forced, see partition_least: a decision from its first to its
 * last use, other things always.  Less what has been used up of the parts
 * before. */
static int64_t *
fixed_bytes_by_node(const struct partition *y)
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
		if (y->forced[s])
			continue;
		if (y->part_of[s] >= 0 && t->candidate
		    && y->constraint[s] != 'k') {
			NodeId lo = y->part[y->part_of[s]].lo;

			/* where a clone needs no memory, see find_intervals */
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

/* A stretch of backward in which the same decisions are in memory. */
struct live_interval {
	int64_t most;                   /* fixed bytes */
	uint64_t kept;                  /* decisions that are there if kept */
};

enum { INTERVALS = 2 * PART_DECISIONS + 4 };

/* Those of a part.  The first stands for the most of all and of what its
 * forward needs. */
static int32_t
find_intervals(const struct partition *y, int32_t at, const int64_t *fixed,
               struct live_interval *out)
{
	const struct curve_part *p = &y->part[at];
	const struct part_class *k = &y->class[p->class];
	NodeId hi = at > 0 ? y->part[at - 1].lo : y->r->nnode, i = p->lo;
	int32_t n = 1;

	out[0] = (struct live_interval){ 0, 0 };
	for (int32_t j = 0; j < p->nnode; j++)
		if (fixed[p->node[j]] > out[0].most)
			out[0].most = fixed[p->node[j]];
	while (i < hi) {
		struct live_interval *t = &out[n++];
		NodeId to = hi;

		*t = (struct live_interval){ 0, 0 };
		for (int32_t j = 0; j < k->ndecision; j++) {
			const struct decision *x = &k->decision[j];
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
same_intervals(const struct live_interval *a, int32_t na,
               const struct live_interval *b, int32_t nb)
{
	bool same = na == nb;

	for (int32_t i = 0; same && i < na; i++)
		same = a[i].kept == b[i].kept
			&& a[i].most - a[0].most == b[i].most - b[0].most;
	return same;
}

struct needs *
needs_new(struct partition *y, const struct part_class *k, struct needs **list,
          int32_t *n)
{
	struct needs *x;

	if (!*list)
		*list = arena_array(y->arena, (size_t)k->count, sizeof *x);
	x = &(*list)[(*n)++];
	x->of = arena_array(y->arena, (size_t)k->npoint + 1, sizeof *x->of);
	return x;
}

/* ---- what points know nothing of ---- */

static int
by_price(const void *a, const void *b)
{
	double x = ((const struct freeable *)a)->price;
	double y = ((const struct freeable *)b)->price;

	return (x > y) - (x < y);
}

/* Bytes that go by repeating this node alone, which no point asks for:
 * what it makes that is forced and crosses, and outputs of its decision but the
 * first. */
static struct freeable
freeable_of(const struct partition *y, NodeId id)
{
	const struct rnode *n = &y->r->node[id];
	const struct curve_part *p = &y->part[y->node_part[id]];
	const struct part_class *k = &y->class[p->class];
	struct freeable l = { 0, 0 };
	bool crosses = false, decides = false;

	for (int i = 0; i < n->nwrite; i++) {
		int32_t s = n->write[i];

		if (y->r->store[s].candidate && y->constraint[s] != 'k'
		    && y->forced[s] && y->crosses[s]) {
			l.bytes += y->r->store[s].size;
			crosses = true;
		}
	}
	for (int32_t i = 0; i < k->ndecision; i++)
		if (p->node[k->decision[i].node] == id) {
			l.bytes +=
				k->decision[i].min_bytes - k->decision[i].first;
			decides = true;
		}
	/* a point may have paid for the node already */
	if (l.bytes > 0 && !(crosses && decides))
		l.price = n->least_sec / (double)l.bytes;
	return l;
}

static void
find_freeable(struct partition *y)
{
	int32_t n = 0;

	y->freeable = arena_array(y->arena, y->r->nnode, sizeof *y->freeable);
	for (NodeId i = 1; i < y->r->nnode; i++)
		if (!y->r->node[i].backward) {
			y->freeable[n] = freeable_of(y, i);
			n += y->freeable[n].bytes > 0;
		}
	qsort(y->freeable, (size_t)n, sizeof *y->freeable, by_price);
	for (int32_t i = 0; i < n; i++) {
		struct freeable *last = &y->freeable[y->nfreeable - 1];

		if (y->nfreeable > 0 && last->price >= y->freeable[i].price)
			last->bytes += y->freeable[i].bytes;
		else
			y->freeable[y->nfreeable++] = y->freeable[i];
	}
}

/* What any plan has at the boundary beside decisions. */
static void
find_least_kept(struct partition *y)
{
	const struct remat *r = y->r;

	for (int32_t s = 0; s < r->nstore; s++)
		if (!r->node[r->store[s].def].backward && !part_droppable(y, s)
		    && (y->last[s] || r->store[s].output))
			y->least_kept += r->store[s].size;
}

/* A lower bound on the arena of plans of class "once".
 *
 * Claim.  Take any plan of that class that keeps what is forced and, of each
 * node with a single decision, keeps or drops all outputs of the decision.  Let
 * K(q) be what it keeps of part q and needs, a point.  Then for every part
 * i the arena is no smaller than
 *     sum over q < i of min_later_bytes(K(q))  +  least(i)[K(i)]
 * and clones take no less than the sum of the points' `least`.  What a slot has
 * is no less than the sum over all q of min_later_bytes(K(q)): backward reads
 * it, or clones that it asks for do.
 *
 * Seconds.  A dropped decision that backward reads, or that a repeated node
 * reads, is made again, at the price of its node or, where a loop can do its
 * work, of that.  Points count each such node once and none that only
 * clones of other parts ask for.
 *
 * Bytes.  First runs keep their order, so a node of backward finds in memory
 *   - what cannot be dropped, from its definition to its last use; where it
 *     may be written over a dying operand, which is of its size, from the
 *     step after (`over`);
 *   - a decision between first and last use: it was kept, or a clone is in
 *     memory, since a clone is made before the first use and held.  If the
 *     reader may do its work instead, it counts only if kept;
 *   - a kept decision before its first use (find_intervals);
 *   - of parts q < i what backward reads itself and is kept, up to its last
 *     use, and that is at or after part q but for decisions that cross, which
 *     fixed_bytes_by_node takes away again from their last use on;
 *   - of parts q < i what only clones read and is kept.  A clone of a node of
 *     part q is asked for by backward at q, or through something dropped that
 *     crosses.  If there is none nothing of it goes before backward is at q.
 *     Else it is all there, or a clone of what crosses has been made, which is
 *     there up to its last use, as are all clones that were made for it and
 *     that backward reads.  The smaller of both counts
 *     (part_point.min_later_bytes).
 * Parts are ordered: backward is at q only after all of i > q
 * (find_part_ranges).
 *
 * Other plans.  Put what is forced and crosses, and outputs that went alone,
 * back into memory: clones get fewer by their nodes, and the arena grows by
 * their bytes at most.  So the claim holds for memory M of such a plan with M
 * more by these bytes, and seconds less by those nodes: see partition.freeable.
 * What is forced and does not cross is read at its part alone, where its clones
 * are made as well, and counts nowhere. */
void
partition_least(struct partition *y)
{
	int64_t *fixed = fixed_bytes_by_node(y);
	struct live_interval (*model)[INTERVALS] = arena_array(y->arena,
		(size_t)y->nclass, sizeof *model);
	int32_t *count = arena_array(y->arena, (size_t)y->nclass, 4);

	find_freeable(y);
	find_least_kept(y);
	y->before = fixed[y->part[y->n - 1].lo - 1];
	for (int32_t i = 0; i < y->n; i++) {
		struct curve_part *p = &y->part[i];
		struct part_class *k = &y->class[p->class];
		struct live_interval t[INTERVALS];
		int32_t n = find_intervals(y, i, fixed, t);

		p->least_more = t[0].most;
		if (k->nleast > 0 && same_intervals(t, n, model[p->class],
		                                    count[p->class])) {
			p->least = &k->least[k->nleast - 1];
			continue;
		}
		memcpy(model[p->class], t, sizeof t);
		count[p->class] = n;
		p->least = needs_new(y, k, &k->least, &k->nleast);
		for (int32_t c = 0; c < k->npoint
		     && !watch_over(y->r->watch); c++) {
			int64_t *most = &p->least->of[c];

			for (int32_t j = 1; j < n; j++) {
				/* thinned: it stands for others too */
				int64_t b = t[j].most - t[0].most
					+ (k->thinned ? 0
					   : decisions_min_bytes(k, t[j].kept
						& k->point[c].keep));

				*most = b > *most ? b : *most;
			}
		}
	}
}

