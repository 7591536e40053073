/* Forward cut into parts.
 *
 * what    parts of some nodes each, which of them are equal, and what can be
 *         chosen in a part
 * method  Forward is cut where at most one activation crosses.  A piece that
 *         is too large for its choices to be listed is cut again as if the
 *         activation that lives longest in it were not there: such ones are
 *         skip connections, what an encoder gives to every layer of a decoder,
 *         and the like; they stay kept.  Pieces that repeat with a period are
 *         joined, a period a part; several periods if they hold little.
 *         Parts are of a class if their nodes, storages and uses are equal.
 * ranges  Backward is at part i from the first node that reads what only i
 *         reads, to where it is at i - 1: then all that is kept of the parts
 *         before is still in memory.
 * cost    linear in nodes and operands; pieces times the longest period
 */
#include "passes/remat_model/intern.h"
#include "passes/pareto/partition.h"

#include <string.h>

enum {
	DECISIONS_MAX = 14, JOINED = 7, PERIOD_MAX = 24, AGAIN = 64,
	FORCED_SHARE = 20000
};

struct cut_piece {
	int32_t begin, end;             /* forward nodes, by place */
	int32_t ndecision;
	uint64_t key;
};

struct cutter {
	struct partition *y;
	NodeId *order;                  /* forward nodes */
	int32_t *place;                 /* by node */
	int32_t n;
	bool *active;                   /* by storage: depends on parameters */
	bool *ignored;                  /* by storage */
	int32_t *ncrossing;             /* by place: activations across */
	struct cut_piece *piece;
	int32_t npiece;
};

static void
find_part_uses(struct partition *y)
{
	const struct remat *r = y->r;

	for (NodeId i = 1; i < r->nnode; i++)
		for (int k = 0; k < r->node[i].nread; k++) {
			int32_t s = r->node[i].read[k];

			if (!r->node[i].backward) {
				y->end_forward[s] = i;
				continue;
			}
			if (!y->first[s])
				y->first[s] = i;
			y->last[s] = i;
		}
}

/* ---- cutting ---- */

static void
find_active(struct cutter *c)
{
	const struct remat *r = c->y->r;
	const Graph *g = r->g;

	FOR_NODES (n, g) {
		const struct rnode *rn = &r->node[node_id(g, n)];
		bool any = false;

		if (n->phase != PH_FORWARD)
			continue;
		c->place[node_id(g, n)] = c->n;
		c->order[c->n++] = node_id(g, n);
		for (int i = 0; i < n->nin; i++)
			any |= n->in[i] && g->val[val_owner(g, n->in[i])].kind
				== V_PARAM;
		for (int i = 0; i < rn->nread; i++)
			any |= c->active[rn->read[i]];
		for (int i = 0; i < rn->nwrite; i++)
			c->active[rn->write[i]] = any;
	}
}

static void
count_crossing(struct cutter *c)
{
	const struct partition *y = c->y;
	int32_t sum = 0;

	memset(c->ncrossing, 0, ((size_t)c->n + 1) * sizeof *c->ncrossing);
	for (int32_t s = 0; s < y->r->nstore; s++) {
		NodeId def = y->r->store[s].def;

		if (!c->active[s] || c->ignored[s] || y->r->node[def].backward
		    || y->end_forward[s] <= def)
			continue;
		c->ncrossing[c->place[def]]++;
		c->ncrossing[c->place[y->end_forward[s]]]--;
	}
	for (int32_t i = 0; i < c->n; i++)
		c->ncrossing[i] = sum += c->ncrossing[i];
}

/* What a node looks like without regard to its surroundings. */
static uint64_t
hash_part_node(const struct remat *r, NodeId i, uint64_t h)
{
	const struct rnode *n = &r->node[i];

	h = mix64(mix64(h, r->g->node[i].op), bits_of_double(n->sec));
	for (int k = 0; k < n->nwrite; k++)
		h = mix64(h, (uint64_t)r->store[n->write[k]].size);
	return h;
}

static void
make_pieces(struct cutter *c)
{
	const struct partition *y = c->y;
	struct cut_piece *p = c->piece;

	count_crossing(c);
	c->npiece = 0;
	*p = (struct cut_piece){ 0 };
	for (int32_t i = 0; i < c->n; i++) {
		const struct rnode *n = &y->r->node[c->order[i]];
		int32_t ndecision = 0;

		for (int k = 0; k < n->nwrite; k++)
			ndecision += part_droppable(y, n->write[k])
				&& y->first[n->write[k]] != 0;
		p->ndecision += ndecision > 0;
		p->key = hash_part_node(y->r, c->order[i], p->key);
		p->end = i + 1;
		if (c->ncrossing[i] > 1 && i + 1 < c->n)
			continue;
		p = &c->piece[++c->npiece];
		*p = (struct cut_piece){ i + 1, i + 1, 0, 0 };
	}
}

/* The storage that lives longest in the piece, for over a third of it. */
static int32_t
longest_in(const struct cutter *c, const struct cut_piece *p)
{
	const struct partition *y = c->y;
	int32_t best = -1, most = (p->end - p->begin) / 3;

	for (int32_t s = 0; s < y->r->nstore; s++) {
		NodeId def = y->r->store[s].def;
		int32_t from, to;

		if (!c->active[s] || c->ignored[s] || y->r->node[def].backward
		    || y->end_forward[s] <= def)
			continue;
		from = c->place[def];
		to = c->place[y->end_forward[s]];
		if (from < p->begin)
			from = p->begin;
		if (to > p->end)
			to = p->end;
		if (to - from > most) {
			most = to - from;
			best = s;
		}
	}
	return best;
}

static void
cut_forward(struct cutter *c)
{
	make_pieces(c);
	for (int k = 0; k < AGAIN; k++) {
		const struct cut_piece *big = &c->piece[0];
		int32_t s;

		for (int32_t i = 1; i < c->npiece; i++)
			if (c->piece[i].ndecision > big->ndecision)
				big = &c->piece[i];
		if (big->ndecision <= DECISIONS_MAX
		    || (s = longest_in(c, big)) < 0)
			return;
		c->ignored[s] = true;
		make_pieces(c);
	}
}

/* ---- joining ---- */

struct periodic_run {
	int32_t start, period, times;
};

static int32_t
decisions_of(const struct cutter *c, int32_t begin, int32_t end)
{
	int32_t n = 0;

	while (begin < end)
		n += c->piece[begin++].ndecision;
	return n;
}

/* The run of equal periods in pieces [lo, hi) that covers most. */
static struct periodic_run
best_run(const struct cutter *c, int32_t lo, int32_t hi)
{
	struct periodic_run best = { 0, 0, 0 };

	for (int32_t p = 1; p <= PERIOD_MAX && lo + 2 * p <= hi; p++) {
		int32_t run = 0;

		for (int32_t i = lo; i + p < hi; i++) {
			struct periodic_run r;

			run = c->piece[i].key == c->piece[i + p].key
				? run + 1 : 0;
			r = (struct periodic_run){ i - run + 1, p,
				(run + p) / p };
			if (run >= p && r.times * p > best.times * best.period
			    && decisions_of(c, r.start, r.start + p)
			    <= DECISIONS_MAX
			    && decisions_of(c, r.start, r.start + p) > 0)
				best = r;
		}
	}
	return best;
}

static void
add_part(struct cutter *c, int32_t begin, int32_t end)
{
	struct partition *y = c->y;
	struct curve_part *p = &y->part[y->n++];

	p->node = c->order + c->piece[begin].begin;
	p->nnode = c->piece[end - 1].end - c->piece[begin].begin;
}

static void
join_pieces(struct cutter *c, int32_t lo, int32_t hi)
{
	struct periodic_run r = best_run(c, lo, hi);
	int32_t times = 1, have = 0, from = lo;

	if (r.times >= 2) {
		int32_t ndecision =
			decisions_of(c, r.start, r.start + r.period);

		if (ndecision < JOINED)
			times = JOINED / ndecision;
		join_pieces(c, lo, r.start);
		for (int32_t i = 0; i < r.times; i += times) {
			int32_t to = i + times < r.times ? i + times : r.times;

			add_part(c, r.start + i * r.period,
			         r.start + to * r.period);
		}
		join_pieces(c, r.start + r.times * r.period, hi);
		return;
	}
	for (int32_t i = lo; i < hi; i++) {
		if (have > 0 && have + c->piece[i].ndecision > JOINED) {
			add_part(c, from, i);
			from = i;
			have = 0;
		}
		have += c->piece[i].ndecision;
	}
	if (from < hi)
		add_part(c, from, hi);
}

/* ---- what parts hold ---- */

static void
fill_parts(struct partition *y)
{
	const struct remat *r = y->r;

	for (int32_t at = 0; at < y->n; at++) {
		struct curve_part *p = &y->part[at];
		size_t writes = 0;

		for (int32_t i = 0; i < p->nnode; i++)
			writes += (size_t)r->node[p->node[i]].nwrite;
		p->store = arena_array(y->arena, writes + 1, 4);
		for (int32_t i = 0; i < p->nnode; i++) {
			const struct rnode *n = &r->node[p->node[i]];

			y->node_part[p->node[i]] = at;
			for (int k = 0; k < n->nwrite; k++) {
				y->part_of[n->write[k]] = at;
				y->local[n->write[k]] = p->nstore;
				p->store[p->nstore++] = n->write[k];
			}
		}
	}
	for (NodeId i = 1; i < r->nnode; i++)
		for (int k = 0; k < r->node[i].nread; k++) {
			int32_t s = r->node[i].read[k];

			if (!r->node[i].backward && y->part_of[s] >= 0)
				y->crosses[s] |= y->part_of[s]
					!= y->node_part[i];
		}
}

/* Where backward is at which part. */
static void
find_part_ranges(struct partition *y)
{
	const struct remat *r = y->r;
	NodeId end = r->nnode, i = 1;
	int32_t at = y->n - 1;

	for (int32_t k = 0; k < y->n; k++)
		y->part[k].lo = y->part[k].begin = end;
	for (int32_t s = 0; s < r->nstore; s++) {
		struct curve_part *p;

		if (y->part_of[s] < 0 || !y->first[s])
			continue;
		p = &y->part[y->part_of[s]];
		if (!y->crosses[s] && y->first[s] < p->lo)
			p->lo = y->first[s];
		if (y->first[s] < p->begin)
			p->begin = y->first[s];
	}
	for (int32_t k = 1; k < y->n; k++) {
		if (y->part[k].lo > y->part[k - 1].lo)
			y->part[k].lo = y->part[k - 1].lo;
		if (y->part[k].begin > y->part[k - 1].begin)
			y->part[k].begin = y->part[k - 1].begin;
	}
	for (; i < end && !r->node[i].backward; i++)
		;
	y->part[at].lo = i;
	for (; i < end; i++) {
		while (at > 0 && i >= y->part[at - 1].lo)
			at--;
		y->node_part[i] = at;
	}
}

/* Kept without a choice: what is too small to matter, what more than the next
 * part reads, what is read early, and outputs that only clones would read. */
static void
find_forced(struct cutter *c)
{
	struct partition *y = c->y;
	const struct remat *r = y->r;

	for (int32_t at = 0; at < y->n; at++) {
		const struct curve_part *p = &y->part[at];
		int64_t sum = 0;

		for (int32_t i = 0; i < p->nstore; i++)
			sum += r->store[p->store[i]].size;
		for (int32_t i = 0; i < p->nstore; i++) {
			int32_t s = p->store[i];
			bool far = y->crosses[s] && (c->ignored[s]
				|| !y->first[s]
				|| y->node_part[y->end_forward[s]] > at + 1
				|| (at + 2 < y->n
				    && y->first[s] < y->part[at + 1].lo));

			if (!part_droppable(y, s) || y->constraint[s] == 'r')
				continue;
			y->forced[s] = far || (y->first[s]
				&& r->store[s].size <= sum / FORCED_SHARE);
		}
	}
}

/* ---- decisions and classes ---- */

struct partition *
partition_new(const struct remat *r, const uint8_t *constraint)
{
	struct partition *y = arena_alloc(r->arena, sizeof *y);
	size_t n = (size_t)r->nstore + 1, nodes = r->nnode;
	struct cutter c = { .y = y };

	y->r = r;
	y->constraint = constraint;
	y->arena = r->arena;
	y->part_of = arena_array(r->arena, n, 4);
	memset(y->part_of, -1, n * 4);
	y->local = arena_array(r->arena, n, 4);
	y->node_part = arena_array(r->arena, nodes, 4);
	y->crosses = arena_array(r->arena, n, 1);
	y->forced = arena_array(r->arena, n, 1);
	y->end_forward = arena_array(r->arena, n, sizeof(NodeId));
	y->first = arena_array(r->arena, n, sizeof(NodeId));
	y->last = arena_array(r->arena, n, sizeof(NodeId));
	c.order = arena_array(r->arena, nodes, sizeof *c.order);
	c.place = arena_array(r->arena, nodes, 4);
	c.active = arena_array(r->arena, n, 1);
	c.ignored = arena_array(r->arena, n, 1);
	c.ncrossing = arena_array(r->arena, nodes + 1, 4);
	c.piece = arena_array(r->arena, nodes + 1, sizeof *c.piece);
	find_part_uses(y);
	find_active(&c);
	if (c.n == 0)
		return NULL;
	cut_forward(&c);
	y->part = arena_array(r->arena, (size_t)c.npiece, sizeof *y->part);
	join_pieces(&c, 0, c.npiece);
	fill_parts(y);
	find_part_ranges(y);
	find_forced(&c);
	return partition_classify(y) ? y : NULL;
}
