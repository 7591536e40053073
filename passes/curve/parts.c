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
 *         Parts are of a kind if their nodes, storages and uses are equal.
 * ranges  Backward is at part i from the first node that reads what only i
 *         reads, to where it is at i - 1: then all that is kept of the parts
 *         before is still in memory.
 * cost    linear in nodes and operands; pieces times the longest period
 */
#include "passes/problem/numbers.h"
#include "passes/curve/parts.h"

#include <string.h>

enum { PICKS = 14, JOINED = 7, PERIOD_MAX = 24, AGAIN = 64, TIED = 20000 };

struct piece {
	int32_t begin, end;             /* forward nodes, by place */
	int32_t picks;
	uint64_t key;
};

struct cutter {
	struct parts *y;
	NodeId *order;                  /* forward nodes */
	int32_t *place;                 /* by node */
	int32_t n;
	bool *active;                   /* by storage: depends on parameters */
	bool *ignored;                  /* by storage */
	int32_t *open;                  /* by place: activations across */
	struct piece *piece;
	int32_t npiece;
};

static void
find_uses(struct parts *y)
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

static bool
droppable(const struct parts *y, int32_t s)
{
	return y->r->store[s].candidate && y->must[s] != 'k';
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
find_open(struct cutter *c)
{
	const struct parts *y = c->y;
	int32_t sum = 0;

	memset(c->open, 0, ((size_t)c->n + 1) * sizeof *c->open);
	for (int32_t s = 0; s < y->r->nstore; s++) {
		NodeId def = y->r->store[s].def;

		if (!c->active[s] || c->ignored[s] || y->r->node[def].backward
		    || y->end_forward[s] <= def)
			continue;
		c->open[c->place[def]]++;
		c->open[c->place[y->end_forward[s]]]--;
	}
	for (int32_t i = 0; i < c->n; i++)
		c->open[i] = sum += c->open[i];
}

static uint64_t
bits_of(double x)
{
	uint64_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

/* What a node looks like without regard to its surroundings. */
static uint64_t
looks(const struct remat *r, NodeId i, uint64_t h)
{
	const struct rnode *n = &r->node[i];

	h = mix64(mix64(h, r->g->node[i].op), bits_of(n->sec));
	for (int k = 0; k < n->nwrite; k++)
		h = mix64(h, (uint64_t)r->store[n->write[k]].size);
	return h;
}

static void
make_pieces(struct cutter *c)
{
	const struct parts *y = c->y;
	struct piece *p = c->piece;

	find_open(c);
	c->npiece = 0;
	*p = (struct piece){ 0 };
	for (int32_t i = 0; i < c->n; i++) {
		const struct rnode *n = &y->r->node[c->order[i]];
		int32_t picks = 0;

		for (int k = 0; k < n->nwrite; k++)
			picks += droppable(y, n->write[k])
				&& y->first[n->write[k]] != 0;
		p->picks += picks > 0;
		p->key = looks(y->r, c->order[i], p->key);
		p->end = i + 1;
		if (c->open[i] > 1 && i + 1 < c->n)
			continue;
		p = &c->piece[++c->npiece];
		*p = (struct piece){ i + 1, i + 1, 0, 0 };
	}
}

/* The storage that lives longest in the piece, for over a third of it. */
static int32_t
longest_in(const struct cutter *c, const struct piece *p)
{
	const struct parts *y = c->y;
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
cut(struct cutter *c)
{
	make_pieces(c);
	for (int k = 0; k < AGAIN; k++) {
		const struct piece *big = &c->piece[0];
		int32_t s;

		for (int32_t i = 1; i < c->npiece; i++)
			if (c->piece[i].picks > big->picks)
				big = &c->piece[i];
		if (big->picks <= PICKS || (s = longest_in(c, big)) < 0)
			return;
		c->ignored[s] = true;
		make_pieces(c);
	}
}

/* ---- joining ---- */

struct run {
	int32_t start, period, times;
};

static int32_t
picks_of(const struct cutter *c, int32_t begin, int32_t end)
{
	int32_t n = 0;

	while (begin < end)
		n += c->piece[begin++].picks;
	return n;
}

/* The run of equal periods in pieces [lo, hi) that covers most. */
static struct run
best_run(const struct cutter *c, int32_t lo, int32_t hi)
{
	struct run best = { 0, 0, 0 };

	for (int32_t p = 1; p <= PERIOD_MAX && lo + 2 * p <= hi; p++) {
		int32_t run = 0;

		for (int32_t i = lo; i + p < hi; i++) {
			struct run r;

			run = c->piece[i].key == c->piece[i + p].key
				? run + 1 : 0;
			r = (struct run){ i - run + 1, p, (run + p) / p };
			if (run >= p && r.times * p > best.times * best.period
			    && picks_of(c, r.start, r.start + p) <= PICKS
			    && picks_of(c, r.start, r.start + p) > 0)
				best = r;
		}
	}
	return best;
}

static void
add_part(struct cutter *c, int32_t begin, int32_t end)
{
	struct parts *y = c->y;
	struct part *p = &y->part[y->n++];

	p->node = c->order + c->piece[begin].begin;
	p->nnode = c->piece[end - 1].end - c->piece[begin].begin;
}

static void
join(struct cutter *c, int32_t lo, int32_t hi)
{
	struct run r = best_run(c, lo, hi);
	int32_t times = 1, have = 0, from = lo;

	if (r.times >= 2) {
		int32_t picks = picks_of(c, r.start, r.start + r.period);

		if (picks < JOINED)
			times = JOINED / picks;
		join(c, lo, r.start);
		for (int32_t i = 0; i < r.times; i += times) {
			int32_t to = i + times < r.times ? i + times : r.times;

			add_part(c, r.start + i * r.period,
			         r.start + to * r.period);
		}
		join(c, r.start + r.times * r.period, hi);
		return;
	}
	for (int32_t i = lo; i < hi; i++) {
		if (have > 0 && have + c->piece[i].picks > JOINED) {
			add_part(c, from, i);
			from = i;
			have = 0;
		}
		have += c->piece[i].picks;
	}
	if (from < hi)
		add_part(c, from, hi);
}

/* ---- what parts hold ---- */

static void
fill_parts(struct parts *y)
{
	const struct remat *r = y->r;

	for (int32_t at = 0; at < y->n; at++) {
		struct part *p = &y->part[at];
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
find_ranges(struct parts *y)
{
	const struct remat *r = y->r;
	NodeId end = r->nnode, i = 1;
	int32_t at = y->n - 1;

	for (int32_t k = 0; k < y->n; k++)
		y->part[k].lo = y->part[k].begin = end;
	for (int32_t s = 0; s < r->nstore; s++) {
		struct part *p;

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
 * part reads, what is read early, and outputs that only copies would read. */
static void
find_tied(struct cutter *c)
{
	struct parts *y = c->y;
	const struct remat *r = y->r;

	for (int32_t at = 0; at < y->n; at++) {
		const struct part *p = &y->part[at];
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

			if (!droppable(y, s) || y->must[s] == 'r')
				continue;
			y->tied[s] = far || (y->first[s]
				&& r->store[s].size <= sum / TIED);
		}
	}
}

/* ---- picks and kinds ---- */

/* An output that goes along with a larger one of its node for nothing: no
 * other node reads it, and backward not before the other. */
static bool
follows(const struct parts *y, const struct pick *k, const struct part *p,
        int32_t s)
{
	int32_t t = p->store[k->store[0]];

	return k->direct && y->first[s] >= y->first[t] && y->first[t]
		&& !y->end_forward[s] && y->must[s] == y->must[t]
		&& y->r->store[s].size <= y->r->store[t].size;
}

static void
add_pick(struct parts *y, struct kind *k, int32_t node, int32_t s)
{
	const struct part *p = &y->part[k->model];
	struct pick *last = &k->pick[k->npick - 1];

	if (k->npick > 0 && last->node == node && follows(y, last, p, s)) {
		last->store[last->nstore++] = y->local[s];
		last->bytes += y->r->store[s].size;
		return;
	}
	last = &k->pick[k->npick++];
	last->node = node;
	last->store = arena_array(y->arena,
		(size_t)y->r->node[p->node[node]].nwrite, 4);
	last->store[last->nstore++] = y->local[s];
	last->bytes = y->r->store[s].size;
	last->direct = y->first[s] != 0;
	last->crosses = y->crosses[s];
	last->dropped = y->must[s] == 'r';
	last->inlinable = y->r->node[p->node[node]].inlinable;
}

/* What bounds may count on: all outputs, if nothing else of the node can be
 * dropped, which would bring back the others for nothing. */
static void
find_leads(const struct parts *y, struct kind *k)
{
	const struct part *p = &y->part[k->model];

	for (int32_t i = 0; i < k->npick; i++) {
		struct pick *x = &k->pick[i];
		bool one = (i == 0 || x[-1].node != x->node)
			&& (i + 1 == k->npick || x[1].node != x->node);

		x->first = y->r->store[p->store[x->store[0]]].size;
		x->lead = one && !x->inlinable ? x->bytes : x->first;
	}
}

static bool
make_picks(struct parts *y, struct kind *k)
{
	const struct remat *r = y->r;
	const struct part *p = &y->part[k->model];
	int32_t *pick = arena_array(y->arena, (size_t)p->nstore + 1, 4);

	k->pick = arena_array(y->arena, (size_t)p->nstore + 1,
	                      sizeof *k->pick);
	for (int32_t i = 0; i < p->nstore; i++) {
		int32_t s = p->store[i], node = 0;

		while (p->node[node] != r->store[s].def)
			node++;
		if (droppable(y, s) && !y->tied[s])
			add_pick(y, k, node, s);
	}
	if (k->npick > PART_PICKS)
		return false;
	find_leads(y, k);
	memset(pick, -1, (size_t)p->nstore * sizeof *pick);
	for (int32_t i = 0; i < k->npick; i++)
		for (int j = 0; j < k->pick[i].nstore; j++)
			pick[k->pick[i].store[j]] = i;
	for (int32_t i = 0; i < k->npick; i++) {
		const struct rnode *n = &r->node[p->node[k->pick[i].node]];

		for (int j = 0; j < n->nread; j++) {
			int32_t s = n->read[j];

			if (y->part_of[s] == k->model
			    && pick[y->local[s]] >= 0)
				k->pick[i].needs |= (uint64_t)1
					<< pick[y->local[s]];
		}
	}
	return true;
}

/* Everything that choices in a part depend on, as words; returns how many.
 * NULL: none are written. */
static size_t
describe(const struct parts *y, int32_t at, uint64_t *word)
{
	const struct remat *r = y->r;
	const struct part *p = &y->part[at];
	uint64_t none[7];
	size_t len = 0;

	for (int32_t i = 0; i < p->nnode; i++) {
		const struct rnode *n = &r->node[p->node[i]];
		uint64_t *w = word ? word + len : none;

		w[0] = bits_of(n->sec);
		w[1] = bits_of(n->least_sec);
		w[2] = (uint64_t)n->workspace;
		w[3] = (uint64_t)n->nwrite;
		w[4] = (uint64_t)n->inlinable << 1 | n->clonable;
		len += 5;
		for (int k = 0; k < n->nread; k++)
			if (y->part_of[n->read[k]] == at) {
				if (word)
					word[len] = (uint64_t)
						y->local[n->read[k]];
				len++;
			}
		if (word)
			word[len] = UINT64_MAX; /* ends the operands */
		len++;
	}
	for (int32_t i = 0; i < p->nstore; i++, len += 7) {
		int32_t s = p->store[i];
		const struct storage *t = &r->store[s];
		uint64_t *w = word ? word + len : none;

		w[0] = (uint64_t)t->size;
		w[1] = t->candidate;
		w[2] = y->first[s] != 0;
		w[3] = y->end_forward[s] != 0;
		w[4] = y->crosses[s];
		w[5] = y->must[s];
		w[6] = y->tied[s];
	}
	return len;
}

static int32_t
kind_of(const struct parts *y, int32_t at, struct numbers *t)
{
	Arena *a = arena_new();
	size_t n = describe(y, at, NULL);
	uint64_t *word = arena_array(a, n + 1, sizeof *word);
	int32_t kind;

	describe(y, at, word);
	kind = numbers_of(t, word, n);
	arena_free(a);
	return kind;
}

static bool
find_kinds(struct parts *y)
{
	struct numbers t = numbers_new((size_t)y->n, y->arena);

	y->kind = arena_array(y->arena, (size_t)y->n, sizeof *y->kind);
	for (int32_t i = 0; i < y->n; i++) {
		int32_t k = kind_of(y, i, &t);

		if (k == y->nkind) {
			y->kind[y->nkind++].model = i;
			if (!make_picks(y, &y->kind[k]))
				return false;
		}
		y->part[i].kind = k;
		y->kind[k].count++;
	}
	return true;
}

struct parts *
parts_new(struct remat *r, const uint8_t *must)
{
	struct parts *y = arena_alloc(r->arena, sizeof *y);
	size_t n = (size_t)r->nstore + 1, nodes = r->nnode;
	struct cutter c = { .y = y };

	y->r = r;
	y->must = must;
	y->arena = r->arena;
	y->part_of = arena_array(r->arena, n, 4);
	memset(y->part_of, -1, n * 4);
	y->local = arena_array(r->arena, n, 4);
	y->node_part = arena_array(r->arena, nodes, 4);
	y->crosses = arena_array(r->arena, n, 1);
	y->tied = arena_array(r->arena, n, 1);
	y->end_forward = arena_array(r->arena, n, sizeof(NodeId));
	y->first = arena_array(r->arena, n, sizeof(NodeId));
	y->last = arena_array(r->arena, n, sizeof(NodeId));
	c.order = arena_array(r->arena, nodes, sizeof *c.order);
	c.place = arena_array(r->arena, nodes, 4);
	c.active = arena_array(r->arena, n, 1);
	c.ignored = arena_array(r->arena, n, 1);
	c.open = arena_array(r->arena, nodes + 1, 4);
	c.piece = arena_array(r->arena, nodes + 1, sizeof *c.piece);
	find_uses(y);
	find_active(&c);
	if (c.n == 0)
		return NULL;
	cut(&c);
	y->part = arena_array(r->arena, (size_t)c.npiece, sizeof *y->part);
	join(&c, 0, c.npiece);
	fill_parts(y);
	find_ranges(y);
	find_tied(&c);
	return find_kinds(y) ? y : NULL;
}
