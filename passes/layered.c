/* Keep or recompute in graphs of many equal layers.
 *
 * what    plans for every amount of memory, and a lower bound on the seconds
 *         of recompute, at a cost that hardly grows with the layers
 * method  Forward is cut where one activation crosses it.  The layers found
 *         that way, what precedes and what follows them are parts; parts with
 *         equal nodes and storages form a class, and a class is solved once:
 *             minimise  sum of sec_n z_n + price * sum of size_j y_j
 *             first use:  y_j + z_def(j) >= 1   if backward itself reads j
 *             operands:   z_n <= y_j + z_def(j)  for operands in the part
 *         y: kept across the end of forward, z: repeated at least once.  The
 *         prices are those at which the answer changes, so the answers are
 *         the corners of the lower convex hull over (bytes, seconds): the
 *         configurations of the class.
 *         Plans go from the fastest to the leanest corner, the cheapest
 *         exchange first, one layer at a time and the first layers first,
 *         as what is dropped there is computed again when the memory of the
 *         later ones is free.  Behind the leanest corner layer inputs are
 *         dropped too, all but every K-th.
 * bound   At a point of backward before a part is entered, all that its
 *         configuration keeps is alive: the sum of the hulls of the parts
 *         that are still to come, at the memory that the point leaves, is
 *         below what any plan spends, however often it repeats a node.
 *         Operands of other parts count as given, for nothing.
 * cost    some dozens of small 0-1 programs per class; SWEEP evaluations
 */
#include "passes/ilp.h"
#include "passes/layered.h"
#include "passes/memory.h"

#include <math.h>
#include <string.h>

enum { CORNERS = 24, SWEEP = 1200, EVERY_MAX = 24, SOLVE_NODES = 400 };

/* A corner of a hull. */
struct config {
	double sec, bytes;
	uint8_t *keep;                  /* by storage of the part */
};

struct hull {
	int n;
	bool exact;                     /* every program was solved */
	struct config at[CORNERS];
};

/* A class of equal parts. */
struct kind {
	int32_t model;                  /* the part that stands for it */
	int32_t count;
	struct hull free;               /* relaxation, for the bound */
	struct hull closed;             /* what other parts read is kept */
};

struct part {
	NodeId *node;                   /* forward nodes in order */
	int32_t nnode;
	int32_t *store;                 /* defined here */
	int32_t nstore;
	int32_t kind;
	uint64_t key;
	NodeId begin;                   /* first backward node reading it */
};

struct layered {
	struct remat *r;
	const uint8_t *must;
	struct part *part;
	int32_t npart;
	int32_t *part_of;               /* by storage; -1 */
	int32_t *local;                 /* by storage: index in its part */
	bool *crosses;                  /* by storage: another part reads it */
	NodeId *end_forward, *first, *last;     /* by storage */
	struct kind *kind;
	int32_t nkind;
	double unit_sec, unit_bytes;
};

/* ---- parts ---- */

static void
find_uses(struct layered *y)
{
	const struct remat *r = y->r;
	const Graph *g = r->g;

	for (NodeId i = 1; i < g->nnode; i++)
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

static int32_t
part_of_node(const struct segments *s, NodeId i)
{
	int32_t at = s->of_node[i] - s->first;

	if (at < 0)
		return 0;
	at /= s->period;
	return at < s->nlayer ? at + 1 : s->nlayer + 1;
}

static void
fill_parts(struct layered *y, const struct segments *s)
{
	const struct remat *r = y->r;

	for (NodeId i = 1; i < r->g->nnode; i++) {
		struct part *p;

		if (r->node[i].backward)
			continue;
		p = &y->part[part_of_node(s, i)];
		p->node[p->nnode++] = i;
		for (int k = 0; k < r->node[i].nwrite; k++) {
			int32_t t = r->node[i].write[k];

			y->part_of[t] = (int32_t)(p - y->part);
			y->local[t] = p->nstore;
			p->store[p->nstore++] = t;
		}
	}
}

static void
make_parts(struct layered *y, const struct segments *s)
{
	const struct remat *r = y->r;
	int32_t *count = arena_array(r->arena, (size_t)y->npart + 1, 4);
	int32_t *writes = arena_array(r->arena, (size_t)y->npart + 1, 4);

	for (NodeId i = 1; i < r->g->nnode; i++)
		if (!r->node[i].backward) {
			count[part_of_node(s, i)]++;
			writes[part_of_node(s, i)] += r->node[i].nwrite;
		}
	for (int32_t i = 0; i < y->npart; i++) {
		struct part *p = &y->part[i];

		p->node = arena_array(r->arena, (size_t)count[i] + 1,
		                      sizeof *p->node);
		p->store = arena_array(r->arena, (size_t)writes[i] + 1, 4);
		p->begin = r->g->nnode;
	}
	fill_parts(y, s);
	for (NodeId i = 1; i < r->g->nnode; i++)
		for (int k = 0; k < r->node[i].nread; k++) {
			int32_t t = r->node[i].read[k];
			struct part *p;

			if (y->part_of[t] < 0)
				continue;
			p = &y->part[y->part_of[t]];
			if (!r->node[i].backward)
				y->crosses[t] |= part_of_node(s, i)
					!= y->part_of[t];
			else if (i < p->begin)
				p->begin = i;
		}
}

static uint64_t
mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint64_t
bits_of(double x)
{
	uint64_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

/* Everything that the program of a part depends on. */
static uint64_t
key_of(const struct layered *y, int32_t at)
{
	const struct remat *r = y->r;
	const struct part *p = &y->part[at];
	uint64_t h = mix((uint64_t)p->nnode, (uint64_t)p->nstore);

	for (int32_t i = 0; i < p->nnode; i++) {
		const struct rnode *n = &r->node[p->node[i]];

		h = mix(mix(h, bits_of(n->sec)), (uint64_t)n->nwrite);
		h = mix(h, n->clonable);
		for (int k = 0; k < n->nread; k++)
			if (y->part_of[n->read[k]] == at)
				h = mix(h, (uint64_t)y->local[n->read[k]]);
	}
	for (int32_t i = 0; i < p->nstore; i++) {
		int32_t s = p->store[i];
		const struct storage *t = &r->store[s];

		h = mix(mix(h, (uint64_t)t->size), t->candidate);
		h = mix(h, y->first[s] != 0);
		h = mix(mix(h, y->crosses[s]), y->must[s]);
	}
	return h;
}

static void
find_kinds(struct layered *y)
{
	for (int32_t i = 0; i < y->npart; i++) {
		struct part *p = &y->part[i];
		int32_t k = 0;

		p->key = key_of(y, i);
		while (k < y->nkind
		       && y->part[y->kind[k].model].key != p->key)
			k++;
		if (k == y->nkind)
			y->kind[y->nkind++].model = i;
		p->kind = k;
		y->kind[k].count++;
	}
}

struct layered *
layered_new(struct remat *r, const uint8_t *must)
{
	struct layered *y = arena_alloc(r->arena, sizeof *y);
	size_t n = (size_t)r->nstore + 1;
	struct segments s;

	segments_find(&s, r->g, r->arena);
	if (s.nlayer < LAYERED_MIN)
		return NULL;
	y->r = r;
	y->must = must;
	y->npart = s.nlayer + 2;
	y->part = arena_array(r->arena, (size_t)y->npart, sizeof *y->part);
	y->kind = arena_array(r->arena, (size_t)y->npart, sizeof *y->kind);
	y->part_of = arena_array(r->arena, n, 4);
	memset(y->part_of, -1, n * 4);
	y->local = arena_array(r->arena, n, 4);
	y->crosses = arena_array(r->arena, n, 1);
	y->end_forward = arena_array(r->arena, n, sizeof(NodeId));
	y->first = arena_array(r->arena, n, sizeof(NodeId));
	y->last = arena_array(r->arena, n, sizeof(NodeId));
	y->unit_sec = r->base_sec > 0 ? r->base_sec / 1000 : 1;
	y->unit_bytes = 1 << 20;
	find_uses(y);
	make_parts(y, &s);
	find_kinds(y);
	return y;
}

/* ---- one class ---- */

struct program {
	const struct layered *y;
	const struct part *p;
	int32_t at;                     /* of the part */
	bool closed;
	double price;                   /* per byte in units */
	Arena *arena;
	Ilp *ilp;
	int *col_y, *col_z;             /* by storage and by node of it; -1 */
	int *z_of;                      /* by storage: column of its node */
	int ncol;
};

/* Storages that have a choice; the others are there, or are not worth it. */
static bool
open_choice(const struct layered *y, int32_t s)
{
	return y->r->store[s].candidate && y->must[s] != 'k';
}

static void
make_columns(struct program *q)
{
	const struct layered *y = q->y;
	const struct remat *r = y->r;

	for (int32_t i = 0; i < q->p->nstore; i++)
		q->col_y[i] = q->z_of[i] = -1;
	for (int32_t i = 0; i < q->p->nnode; i++) {
		const struct rnode *n = &r->node[q->p->node[i]];

		q->col_z[i] = -1;
		for (int k = 0; k < n->nwrite; k++) {
			int32_t s = n->write[k];
			bool hold = q->closed && y->crosses[s];
			double size = (double)r->store[s].size / y->unit_bytes;

			if (!open_choice(y, s))
				continue;
			q->ncol++;
			q->col_y[y->local[s]] = ilp_col(q->ilp, hold ? 1 : 0,
				y->must[s] == 'r' && !hold ? 0 : 1,
				q->price * size, true);
		}
	}
	for (int32_t i = 0; i < q->p->nnode; i++) {
		const struct rnode *n = &r->node[q->p->node[i]];
		bool any = false;

		for (int k = 0; k < n->nwrite; k++)
			any |= q->col_y[y->local[n->write[k]]] >= 0;
		if (!any)
			continue;
		q->ncol++;
		q->col_z[i] = ilp_col(q->ilp, 0, 1, n->sec / y->unit_sec,
		                      true);
		for (int k = 0; k < n->nwrite; k++)
			q->z_of[y->local[n->write[k]]] = q->col_z[i];
	}
}

static void
make_rows(struct program *q)
{
	const struct layered *y = q->y;
	static const double coef[3] = { 1, 1, -1 };

	for (int32_t i = 0; i < q->p->nstore; i++)
		if (q->col_y[i] >= 0 && y->first[q->p->store[i]]) {
			int col[2] = { q->col_y[i], q->z_of[i] };

			ilp_row(q->ilp, 1, INFINITY, 2, col, coef);
		}
	for (int32_t i = 0; i < q->p->nnode; i++) {
		const struct rnode *n = &y->r->node[q->p->node[i]];

		for (int k = 0; k < n->nread && q->col_z[i] >= 0; k++) {
			int32_t s = n->read[k];
			int col[3];

			if (y->part_of[s] != q->at
			    || q->col_y[y->local[s]] < 0)
				continue;
			col[0] = q->col_y[y->local[s]];
			col[1] = q->z_of[y->local[s]];
			col[2] = q->col_z[i];
			ilp_row(q->ilp, 0, INFINITY, 3, col, coef);
		}
	}
}

/* Best configuration at a price; false if the program was not solved. */
static bool
solve(const struct layered *y, const struct kind *k, bool closed, double price,
      struct config *c)
{
	Arena *arena = arena_new();
	const struct part *p = &y->part[k->model];
	struct program q = { .y = y, .p = p, .at = k->model, .closed = closed,
	                     .price = price, .arena = arena };
	struct ilp_limit limit = { .nodes = SOLVE_NODES };
	struct ilp_answer a;

	q.ilp = ilp_new(arena);
	q.col_y = arena_array(arena, (size_t)p->nstore + 1, sizeof(int));
	q.z_of = arena_array(arena, (size_t)p->nstore + 1, sizeof(int));
	q.col_z = arena_array(arena, (size_t)p->nnode + 1, sizeof(int));
	make_columns(&q);
	make_rows(&q);
	*c = (struct config){ 0, 0, NULL };
	c->keep = arena_array(y->r->arena, (size_t)p->nstore + 1, 1);
	if (q.ncol == 0) {
		ilp_free(q.ilp);
		arena_free(arena);
		return true;
	}
	a = ilp_solve(q.ilp, &limit, arena);
	for (int32_t i = 0; a.x && i < p->nstore; i++)
		if (q.col_y[i] >= 0 && a.x[q.col_y[i]] > 0.5) {
			c->keep[i] = 1;
			c->bytes += (double)y->r->store[p->store[i]].size;
		}
	for (int32_t i = 0; a.x && i < p->nnode; i++)
		if (q.col_z[i] >= 0 && a.x[q.col_z[i]] > 0.5)
			c->sec += y->r->node[p->node[i]].sec;
	ilp_free(q.ilp);
	arena_free(arena);
	return a.status == ILP_OPTIMAL && a.x;
}

/* Corners strictly between a and b, in order of falling bytes. */
static void
between(const struct layered *y, const struct kind *k, bool closed,
        struct hull *h, struct config a, struct config b)
{
	double slope, gain;
	struct config c;

	if (h->n >= CORNERS - 1 || !(a.bytes - b.bytes > 0.5)
	    || !(b.sec > a.sec))
		return;
	slope = (b.sec - a.sec) / (a.bytes - b.bytes);
	if (!solve(y, k, closed, slope / y->unit_sec * y->unit_bytes, &c)) {
		h->exact = false;
		return;
	}
	gain = a.sec + slope * a.bytes - c.sec - slope * c.bytes;
	if (gain <= 1e-7 * y->unit_sec || c.bytes >= a.bytes
	    || c.bytes <= b.bytes)
		return;
	between(y, k, closed, h, a, c);
	h->at[h->n++] = c;
	between(y, k, closed, h, c, b);
}

static void
make_hull(const struct layered *y, const struct kind *k, bool closed,
          struct hull *h)
{
	double unit = y->unit_sec > 0 ? y->r->base_sec / y->unit_sec : 1;
	struct config fast, lean;

	h->n = 0;
	/* prices beyond any exchange that exists */
	h->exact = solve(y, k, closed, 1e-6, &fast)
		&& solve(y, k, closed, 100 * unit, &lean);
	if (!h->exact) {
		h->n = 0;
		return;
	}
	h->at[h->n++] = fast;
	between(y, k, closed, h, fast, lean);
	if (lean.bytes < h->at[h->n - 1].bytes)
		h->at[h->n++] = lean;
}

/* ---- plans ---- */

struct sweep {
	struct layered *y;
	struct archive *a;
	uint8_t *drop;
	int *corner;                    /* by kind: where its parts go */
	int64_t todo, stride;
};

static void
set_part(struct sweep *w, const struct part *p, const struct config *c)
{
	for (int32_t i = 0; i < p->nstore; i++) {
		int32_t s = p->store[i];

		if (w->y->r->store[s].candidate && !w->y->must[s])
			w->drop[s] = !c->keep[i];
	}
}

static double
slope_behind(const struct hull *h, int at)
{
	double bytes;

	if (at + 1 >= h->n)
		return INFINITY;
	bytes = h->at[at].bytes - h->at[at + 1].bytes;
	return bytes > 0 ? (h->at[at + 1].sec - h->at[at].sec) / bytes
		: INFINITY;
}

/* The kind whose next corner is the cheapest exchange; -1: none is left. */
static int32_t
cheapest(const struct layered *y, const int *corner, bool closed)
{
	int32_t best = -1;
	double least = INFINITY;

	for (int32_t k = 0; k < y->nkind; k++) {
		double x = slope_behind(closed ? &y->kind[k].closed
			: &y->kind[k].free, corner[k]);

		if (x < least) {
			least = x;
			best = k;
		}
	}
	return best;
}

static void
sweep_hulls(struct sweep *w, bool closed)
{
	struct layered *y = w->y;
	int64_t total = 0, done = 0;

	memset(w->corner, 0, (size_t)y->nkind * sizeof *w->corner);
	remat_keep_all(y->r, y->must, w->drop);
	for (int32_t i = 0; i < y->npart; i++) {
		const struct kind *k = &y->kind[y->part[i].kind];
		const struct hull *h = closed ? &k->closed : &k->free;

		if (h->n)
			set_part(w, &y->part[i], &h->at[0]);
		total += h->n;
	}
	archive_try(w->a, w->drop);
	for (int32_t k; (k = cheapest(y, w->corner, closed)) >= 0;) {
		const struct hull *h = closed ? &y->kind[k].closed
			: &y->kind[k].free;

		w->corner[k]++;
		for (int32_t i = 0; i < y->npart; i++) {
			if (y->part[i].kind != k)
				continue;
			set_part(w, &y->part[i], &h->at[w->corner[k]]);
			if (done++ % (1 + total / SWEEP) == 0)
				archive_try(w->a, w->drop);
		}
		archive_try(w->a, w->drop);
	}
}

/* Leanest layers, and of their inputs only every K-th kept, in the first
 * layers first. */
static void
sweep_inputs(struct sweep *w, int32_t every)
{
	struct layered *y = w->y;
	const struct remat *r = y->r;
	int32_t stride = 1 + y->npart / every / 24;

	for (int32_t i = 0; i < y->npart; i++) {
		const struct kind *k = &y->kind[y->part[i].kind];

		if (k->closed.n)
			set_part(w, &y->part[i],
			         &k->closed.at[k->closed.n - 1]);
	}
	for (int32_t i = 0; i + 1 < y->npart; i++) {
		const struct part *p = &y->part[i];

		for (int32_t j = 0; j < p->nstore; j++)
			if (y->crosses[p->store[j]] && i % every
			    && i > 0 && i + 2 < y->npart
			    && r->store[p->store[j]].candidate
			    && !y->must[p->store[j]])
				w->drop[p->store[j]] = 1;
		if (i % every == every - 1 && i / every % stride == 0)
			archive_try(w->a, w->drop);
	}
	archive_try(w->a, w->drop);
}

void
layered_search(struct layered *y, struct archive *a)
{
	struct sweep w = { .y = y, .a = a };

	for (int32_t k = 0; k < y->nkind; k++) {
		make_hull(y, &y->kind[k], true, &y->kind[k].closed);
		make_hull(y, &y->kind[k], false, &y->kind[k].free);
	}
	w.drop = arena_array(y->r->arena, (size_t)y->r->nstore + 1, 1);
	w.corner = arena_array(y->r->arena, (size_t)y->nkind + 1, sizeof(int));
	sweep_hulls(&w, true);
	for (int32_t k = 2; k <= EVERY_MAX && k < y->npart; k++)
		sweep_inputs(&w, k);
}

/* ---- bound ---- */

/* What lives at every node of backward in any plan; parts still to come count
 * only what has no choice. */
static int64_t *
fixed_bytes(const struct layered *y)
{
	const struct remat *r = y->r;
	size_t n = r->g->nnode;
	int64_t *live = arena_array(r->arena, n + 2, sizeof *live);
	bool *over = arena_array(r->arena, (size_t)r->nstore + 1, 1);
	int64_t sum = 0;

	for (NodeId i = 1; i < n; i++)
		for (int k = 0; k < r->node[i].npair; k++)
			over[r->node[i].pair[2 * k]] = true;
	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *t = &r->store[s];
		NodeId from = t->def + over[s], to = y->last[s];

		if (to < y->end_forward[s])
			to = y->end_forward[s];
		if (t->output)
			to = (NodeId)n - 1;
		if (y->part_of[s] >= 0 && open_choice(y, s)) {
			from = y->first[s];
			to = y->last[s];
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

/* Least seconds of so many parts per kind within `room` bytes. */
static double
least_sec(const struct layered *y, const int32_t *count, double room)
{
	int *corner = arena_array(y->r->arena, (size_t)y->nkind + 1,
	                          sizeof *corner);
	double sec = 0, bytes = 0;

	for (int32_t k = 0; k < y->nkind; k++)
		if (y->kind[k].free.n) {
			bytes += count[k] * y->kind[k].free.at[0].bytes;
			sec += count[k] * y->kind[k].free.at[0].sec;
		}
	while (bytes > room) {
		int32_t k = cheapest(y, corner, false);
		double slope, step;

		if (k < 0)
			return INFINITY;
		slope = slope_behind(&y->kind[k].free, corner[k]);
		step = count[k] * (y->kind[k].free.at[corner[k]].bytes
			- y->kind[k].free.at[corner[k] + 1].bytes);
		corner[k]++;
		if (step > bytes - room)
			step = bytes - room;
		bytes -= step;
		sec += step * slope;
	}
	return sec;
}

double
layered_bound(struct layered *y, int64_t memory)
{
	const struct remat *r = y->r;
	int64_t *fixed = fixed_bytes(y);
	int32_t *count = arena_array(r->arena, (size_t)y->nkind + 1, 4);
	int64_t worst = 0;
	double best = 0;
	NodeId i = 1;

	for (int32_t k = 0; k < y->nkind; k++)
		if (!y->kind[k].free.exact)
			return 0;
	for (; i < r->g->nnode && !r->node[i].backward; i++)
		;
	while (i < r->g->nnode) {
		NodeId next = r->g->nnode;
		double sec;

		memset(count, 0, (size_t)y->nkind * 4);
		for (int32_t p = 0; p < y->npart; p++)
			if (y->part[p].begin > i) {
				count[y->part[p].kind]++;
				if (y->part[p].begin < next)
					next = y->part[p].begin;
			}
		for (worst = 0; i < next; i++)
			if (fixed[i] > worst)
				worst = fixed[i];
		sec = least_sec(y, count, (double)memory - (double)worst);
		if (sec > best)
			best = sec;
	}
	return best;
}
