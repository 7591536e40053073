/* Keep or recompute: a bound from what is in memory at one moment.
 *
 * what    a lower bound on the seconds of recompute within an amount of memory,
 *         for plans of any class
 * method  Take the first run of a node, the moment.  Of every storage j that
 *         was made before let x_j = 1 if it is in memory then, and of its node
 *         n r_n = 1 if it runs again afterwards.  What first runs read later
 *         needs x_j + r_def(j) >= 1, and what runs again needs that of its
 *         operands.  At any price per byte
 *         the least of
 *             sum of sec_n r_n  +  price * sum of bytes_j x_j
 *         is a least cut, and what is above
 *             price * (memory - what lives at the moment anyway)
 *         bounds the seconds from below.  The best price gives the bound of the
 *         linear relaxation (Geoffrion 1974); it is where two cuts' seconds and
 *         bytes say the same, and found by going there again and again.  Of the
 *         fullest moments those are looked at closely that say most at the
 *         price of the first.  Cuts at fixed prices are remembered, so that no
 *         answer depends on what was asked before.
 *         With host memory, what has gone there before the moment is more
 *         memory: at most what a lane carries in the seconds of first runs
 *         before it, and in those of waits and clones.  A second of these
 *         brings the bytes of a second, so that no price above
 *             seconds of a lane per byte
 *         proves anything, and each one up to that proves what it would
 *         without them.
 *         With slots, what lives at the last node of forward is there for all
 *         micro-batches in flight: one more moment, that has its share of the
 *         memory.
 * cost    a flow for each moment and a handful for some, fewer each time
 */
#include "passes/planner/remat_cut.h"
#include "passes/remat_model/remat_host.h"

#include <math.h>
#include <string.h>

enum { MOMENTS = 64, RUNGS = 104, REFINED = 4, REFINE = 6 };

/* From one rung to the next, and the price of the first for all bytes of a
 * moment, in steps: rungs reach from where nothing is worth its seconds to
 * where everything is. */
#define RATIO 1.25
#define CHEAP 1e-6

/* What is not worth another flow, of a step. */
#define CLOSE 1e-5

/* A cut of one moment at one price. */
struct cut {
	double price;                   /* units per byte; 0: not solved yet */
	double units;                   /* of the whole cut */
	double bytes;                   /* kept */
};

struct moment {
	NodeId at;
	int64_t fixed, free;            /* bytes that live in any plan; of what
	                                 * is free and read behind it */
	struct cut rung[RUNGS];         /* by rising price */
	double worth;                   /* units at the price tried last */
};

struct cut_bound {
	struct cut_net *net;
	struct moment moment[MOMENTS];
	int n;
	struct moment *fullest;         /* NULL: there is none */
	int64_t slots;                  /* 1 and more */
	struct moment boundary;         /* at 0: there is none */
	int64_t least;                  /* bytes: the most that a node needs in
	                                 * any plan */
};

/* ---- moments ---- */

/* The last node that reads it; behind the step: nothing ends it. */
static NodeId
last_read(const struct cut_net *c, int32_t s)
{
	if (c->r->store[s].output)
		return c->r->nnode;
	return c->last[s] ? c->last[s] : c->end_forward[s];
}

/* Bytes of storages that are free, or that are not, by node: of those made
 * before it and read behind it. */
static int64_t *
bytes_across(const struct cut_net *c, bool is_free)
{
	const struct remat *r = c->r;
	int64_t *sum = arena_array(c->arena, r->nnode + 1, sizeof *sum);

	for (int32_t s = 0; s < r->nstore; s++) {
		NodeId def = r->store[s].def, to = last_read(c, s);

		if (cut_is_free(c, s) != is_free || to <= def + 1)
			continue;
		sum[def + 1] += r->store[s].size;
		sum[to] -= r->store[s].size;
	}
	for (NodeId i = 1; i < r->nnode; i++)
		sum[i] += sum[i - 1];
	return sum;
}

/* Scratch and operands of node i that are in no other sum. */
static int64_t
operand_bytes(const struct cut_net *c, NodeId i)
{
	const struct remat *r = c->r;
	int64_t bytes = r->node[i].workspace;

	for (int k = 0; k < r->node[i].nread; k++) {
		int32_t s = r->node[i].read[k];
		const struct storage *t = &r->store[s];

		if (cut_is_free(c, s) ? !r->node[t->def].inlinable
		    : last_read(c, s) == i)
			bytes += t->size;
	}
	return bytes;
}

/* The fullest node of each of MOMENTS equal parts of the step. */
static void
find_moments(struct cut_bound *b)
{
	const struct cut_net *c = b->net;
	NodeId nnode = c->r->nnode, i = 1;
	int64_t *fixed = bytes_across(c, false);
	int64_t *free = bytes_across(c, true), most_of_all = INT64_MIN;

	for (int k = 1; k <= MOMENTS; k++) {
		struct moment m = { .at = 0 };
		int64_t most = INT64_MIN;

		for (; (int64_t)i * MOMENTS < (int64_t)nnode * k; i++) {
			int64_t operands = operand_bytes(c, i);
			int64_t bytes = fixed[i] + operands;
			int64_t least = c->r->host ? operands : bytes;

			if (least > b->least)
				b->least = least;
			if (c->r->host)
				bytes -= remat_host_sent(c->r->host, i);
			if (free[i] == 0 || bytes + free[i] <= most)
				continue;
			most = bytes + free[i];
			m.at = i;
			m.fixed = bytes;
			m.free = free[i];
		}
		if (!m.at)
			continue;
		b->moment[b->n++] = m;
		if (most > most_of_all) {
			most_of_all = most;
			b->fullest = &b->moment[b->n - 1];
		}
	}
}

int64_t
cut_bound_slots(const struct cut_bound *b)
{
	return (b->slots - 1) * b->boundary.fixed;
}

/* What lives from before the last node of forward to behind it.  What does so
 * in any plan is in the other slots at all moments. */
static void
find_boundary(struct cut_bound *b)
{
	const struct cut_net *c = b->net;
	NodeId i = c->r->nnode - 1;

	while (i > 0 && c->r->node[i].backward)
		i--;
	b->boundary = (struct moment){ .at = i,
		.fixed = bytes_across(c, false)[i],
		.free = bytes_across(c, true)[i] };
	b->least += cut_bound_slots(b);
	for (int k = 0; k < b->n; k++)
		b->moment[k].fixed += cut_bound_slots(b);
	if (b->boundary.free <= 0)
		b->boundary.at = 0;
}

/* ---- cuts ---- */

static bool
is_read_later(const struct cut_net *c, const struct moment *m, int32_t s)
{
	return cut_is_free(c, s) && c->r->store[s].def < m->at
		&& last_read(c, s) > m->at;
}

/* An operand of the moment's node is there in any case. */
static bool
is_operand(const struct cut_net *c, const struct moment *m, int32_t s)
{
	const struct rnode *n = &c->r->node[m->at];

	for (int k = 0; k < n->nread; k++)
		if (n->read[k] == s)
			return !c->r->node[c->r->store[s].def].inlinable;
	return false;
}

static struct cut
read_cut(const struct cut_net *c, const struct moment *m, double price)
{
	const struct remat *r = c->r;
	struct cut k = { .price = price };

	for (NodeId i = 1; i < r->nnode; i++)
		if (cut_runs_again(c, i))
			k.units += cut_again_units(c, i);
	for (int32_t s = 0; s < r->nstore; s++)
		if (cut_is_free(c, s) && cut_keeps(c, s)
		    && !is_operand(c, m, s)) {
			k.units += floor(price * (double)r->store[s].size);
			k.bytes += (double)r->store[s].size;
		}
	return k;
}

/* Solve at a price; false: the time is over. */
static bool
solve_at(struct cut_bound *b, const struct moment *m, double price,
         struct cut *k)
{
	struct cut_net *c = b->net;

	cut_forget_prices(c);
	for (int32_t s = 0; s < c->r->nstore; s++) {
		if (!cut_is_free(c, s))
			continue;
		if (is_read_later(c, m, s))
			cut_price(c, c->of[s].read, (double)FLOW_UNBOUNDED);
		if (!is_operand(c, m, s))
			cut_price(c, c->of[s].keep,
			          price * (double)c->r->store[s].size);
	}
	if (!cut_solve(c))
		return false;
	*k = read_cut(c, m, price);
	return true;
}

/* A byte costs no more than the seconds in which a lane takes it to host
 * memory. */
static double
highest_price(const struct remat *r)
{
	return r->host ? CUT_UNITS / r->base_sec / r->host->rate : INFINITY;
}

/* The cut of a rung, which is remembered; NULL: the time is over. */
static const struct cut *
rung_of(struct cut_bound *b, struct moment *m, int i)
{
	struct cut *k = &m->rung[i];
	double price = fmin(CHEAP * CUT_UNITS / (double)m->free * pow(RATIO, i),
	                    highest_price(b->net->r));

	return k->price > 0 || solve_at(b, m, price, k) ? k : NULL;
}

/* ---- bound ---- */

static double
units_at(const struct cut *k, double room)
{
	return k->units - k->price * room;
}

static double
room_at(const struct moment *m, int64_t memory)
{
	return (double)(memory - m->fixed);
}

/* Where the lines of two cuts meet. */
static double
price_between(const struct cut *a, const struct cut *b)
{
	double more = (b->units - b->price * b->bytes)
		- (a->units - a->price * a->bytes);

	return more / (a->bytes - b->bytes);
}

/* The first rung that keeps no more than there is room for. */
static int
find_rung(struct cut_bound *b, struct moment *m, double room)
{
	int low = 0, high = RUNGS - 1;

	while (low < high) {
		int middle = (low + high) / 2;
		const struct cut *k = rung_of(b, m, middle);

		if (!k)
			break;
		if (k->bytes > room)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The cut that says most of a moment: between two rungs it is looked for where
 * their cuts meet.  Its price is 0 if there was no time. */
static struct cut
best_cut(struct cut_bound *b, struct moment *m, double room)
{
	int i = find_rung(b, m, room);
	const struct cut *rung = rung_of(b, m, i);
	struct cut x, y = rung ? *rung : (struct cut){ .price = 0 }, best = y;

	rung = i > 0 && rung ? rung_of(b, m, i - 1) : NULL;
	if (!rung || y.bytes > room)
		return best;
	x = *rung;
	for (int k = 0; k <= REFINE; k++) {
		double price = price_between(&x, &y);
		struct cut z;

		if (units_at(&x, room) > units_at(&best, room))
			best = x;
		if (units_at(&y, room) > units_at(&best, room))
			best = y;
		/* what a cut there would say at most */
		if (k == REFINE || price <= x.price || price >= y.price
		    || x.units + (price - x.price) * x.bytes - price * room
			    < units_at(&best, room) + CLOSE * CUT_UNITS
		    || !solve_at(b, m, price, &z))
			break;
		if (z.bytes > room)
			x = z;
		else
			y = z;
	}
	return best;
}

/* What each moment would say at about one price. */
static void
try_price(struct cut_bound *b, int64_t memory, double price)
{
	for (int k = 0; k < b->n; k++) {
		struct moment *m = &b->moment[k];
		double first = CHEAP * CUT_UNITS / (double)m->free;
		double near = round(log(price / first) / log(RATIO));
		const struct cut *x = rung_of(b, m,
			(int)fmin(fmax(near, 0), RUNGS - 1));

		m->worth = x && m != b->fullest
			? units_at(x, room_at(m, memory)) : 0;
	}
}

static struct moment *
best_moment(struct cut_bound *b)
{
	struct moment *best = NULL;

	for (int k = 0; k < b->n; k++)
		if (b->moment[k].worth > (best ? best->worth : 0))
			best = &b->moment[k];
	return best;
}

struct cut_bound *
cut_bound_new(struct cut_net *net)
{
	struct cut_bound *b = arena_alloc(net->arena, sizeof *b);

	b->net = net;
	if (net->r->base_sec > 0)
		find_moments(b);
	b->slots = net->r->slots > 1 ? net->r->slots : 1;
	if (net->r->base_sec > 0 && b->slots > 1)
		find_boundary(b);
	return b;
}

int64_t
cut_bound_least(const struct cut_bound *b)
{
	return b->least;
}

/* What a moment proves, if that is more than p. */
static void
prove_by(struct cut_bound *b, struct moment *m, int64_t memory,
         struct cut_proof *p)
{
	double room = room_at(m, memory), sec;
	struct cut x = best_cut(b, m, room);

	sec = units_at(&x, room) / CUT_UNITS * b->net->r->base_sec;
	if (x.price > 0 && sec > p->sec)
		*p = (struct cut_proof){ sec, m->at, x.price };
	m->worth = 0;
}

struct cut_proof
cut_bound_at(struct cut_bound *b, int64_t memory)
{
	struct cut_proof p = { .sec = 0 };
	int64_t share = memory / b->slots;

	if (!b->fullest)
		return p;
	if (memory < b->least
	    || (b->boundary.at && share < b->boundary.fixed))
		return (struct cut_proof){ .sec = INFINITY };
	if (b->boundary.at) {
		prove_by(b, &b->boundary, share, &p);
		p.price /= (double)b->slots;
	}
	prove_by(b, b->fullest, memory, &p);
	if (p.sec <= 0)
		return p;
	try_price(b, memory, p.price);
	for (int k = 0; k < REFINED && best_moment(b); k++)
		prove_by(b, best_moment(b), memory, &p);
	return p;
}
