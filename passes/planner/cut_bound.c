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
 *         price of the first.  Every cut bounds the seconds at any memory, and
 *         is remembered.
 * cost    a flow for each moment and a handful for some, fewer each time
 */
#include "passes/planner/remat_cut.h"

#include <math.h>
#include <string.h>

enum { MOMENTS = 64, CUTS = 64, REFINED = 4 };

/* Prices in so small a ratio say much the same. */
#define NEAR 1.25

/* What is not worth another flow, of a step. */
#define CLOSE 1e-5

/* A cut of one moment at one price. */
struct cut {
	double price;                   /* units per byte */
	double units;                   /* of the whole cut */
	double bytes;                   /* kept */
};

struct moment {
	NodeId at;
	int64_t fixed;                  /* bytes that live in any plan */
	struct cut cut[CUTS];           /* by rising price */
	int ncut;
	bool open;                      /* a cut keeps everything, and one
	                                 * nothing */
	int64_t refined;                /* for so much memory last */
};

struct cut_bound {
	struct cut_net *net;
	struct moment moment[MOMENTS];
	int n;
	struct moment *fullest;         /* NULL: there is none */
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
	int64_t *free = bytes_across(c, true), most_of_all = 0;

	for (int k = 1; k <= MOMENTS; k++) {
		struct moment m = { .refined = -1 };
		int64_t most = 0;

		for (; (int64_t)i * MOMENTS < (int64_t)nnode * k; i++) {
			int64_t bytes = fixed[i] + operand_bytes(c, i);

			if (free[i] == 0 || bytes + free[i] <= most)
				continue;
			most = bytes + free[i];
			m.at = i;
			m.fixed = bytes;
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
			k.units += floor(r->node[i].least_sec / r->base_sec
			                 * CUT_UNITS);
	for (int32_t s = 0; s < r->nstore; s++)
		if (cut_is_free(c, s) && cut_keeps(c, s)
		    && !is_operand(c, m, s)) {
			k.units += floor(price * (double)r->store[s].size);
			k.bytes += (double)r->store[s].size;
		}
	return k;
}

/* Solve at a price and remember the cut; false: the time is over. */
static bool
add_cut(struct cut_bound *b, struct moment *m, double price)
{
	struct cut_net *c = b->net;
	int at = 0;

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
	while (at < m->ncut && m->cut[at].price < price)
		at++;
	memmove(m->cut + at + 1, m->cut + at,
	        (size_t)(m->ncut++ - at) * sizeof *m->cut);
	m->cut[at] = read_cut(c, m, price);
	return true;
}

/* From where nothing is worth its seconds to where everything is. */
static bool
open_moment(struct cut_bound *b, struct moment *m)
{
	const struct remat *r = b->net->r;
	double bytes = 1;

	for (int32_t s = 0; s < r->nstore; s++)
		if (is_read_later(b->net, m, s))
			bytes += (double)r->store[s].size;
	m->open = add_cut(b, m, 1e-6 * CUT_UNITS / bytes)
		&& add_cut(b, m, 1e4 * CUT_UNITS / bytes);
	return m->open;
}

/* ---- bound ---- */

static double
units_at(const struct cut *k, double room)
{
	return k->units - k->price * room;
}

/* Where the lines of two cuts meet. */
static double
price_between(const struct cut *a, const struct cut *b)
{
	double more = (b->units - b->price * b->bytes)
		- (a->units - a->price * a->bytes);

	return more / (a->bytes - b->bytes);
}

/* The cut that says most of a moment; NULL: there is none yet. */
static const struct cut *
best_cut(const struct moment *m, double room)
{
	const struct cut *best = NULL;

	for (int i = 0; i < m->ncut; i++)
		if (!best || units_at(&m->cut[i], room) > units_at(best, room))
			best = &m->cut[i];
	return best;
}

/* Solve where the cuts on either side of the room meet, until that says hardly
 * more than they do. */
static void
refine(struct cut_bound *b, struct moment *m, double room)
{
	if (!m->open && !open_moment(b, m))
		return;
	while (m->ncut < CUTS) {
		double best = units_at(best_cut(m, room), room), price;
		const struct cut *x, *y;
		int i = 0;

		while (i < m->ncut && m->cut[i].bytes > room)
			i++;
		if (i == 0 || i == m->ncut)
			return;
		x = &m->cut[i - 1];
		y = &m->cut[i];
		price = price_between(x, y);
		if (price <= x->price || price >= y->price
		    || x->units + (price - x->price) * x->bytes - price * room
			    < best + CLOSE * CUT_UNITS
		    || !add_cut(b, m, price))
			return;
	}
}

/* One cut of about that price, to see whether the moment deserves more. */
static void
try_price(struct cut_bound *b, struct moment *m, double price)
{
	for (int i = 0; i < m->ncut; i++)
		if (m->cut[i].price > price / NEAR
		    && m->cut[i].price < price * NEAR)
			return;
	if (m->ncut < CUTS && price > 0)
		add_cut(b, m, price);
}

static double
room_at(const struct moment *m, int64_t memory)
{
	return (double)(memory - m->fixed);
}

/* The moment that says most of those not refined yet; NULL: none says
 * anything. */
static struct moment *
best_moment(struct cut_bound *b, int64_t memory)
{
	struct moment *best = NULL;
	double most = 0;

	for (int k = 0; k < b->n; k++) {
		struct moment *m = &b->moment[k];
		double room = room_at(m, memory);
		const struct cut *x = best_cut(m, room);

		if (m->refined != memory && x && units_at(x, room) > most) {
			most = units_at(x, room);
			best = m;
		}
	}
	return best;
}

struct cut_bound *
cut_bound_new(struct cut_net *net)
{
	struct cut_bound *b = arena_alloc(net->arena, sizeof *b);

	b->net = net;
	if (net->r->base_sec > 0)
		find_moments(b);
	return b;
}

static double
units_seconds(const struct cut_bound *b, double units)
{
	return units / CUT_UNITS * b->net->r->base_sec;
}

struct cut_proof
cut_bound_at(struct cut_bound *b, int64_t memory)
{
	struct cut_proof p = { .sec = 0 };
	struct moment *m = b->fullest;

	for (int i = 0; i <= REFINED && m; i++) {
		double room = room_at(m, memory), sec;
		const struct cut *x;

		refine(b, m, room);
		m->refined = memory;
		x = best_cut(m, room);
		sec = x ? units_seconds(b, units_at(x, room)) : 0;
		if (sec > p.sec)
			p = (struct cut_proof){ sec, m->at, x->price };
		for (int k = 0; i == 0 && k < b->n; k++)
			try_price(b, &b->moment[k], p.price);
		m = best_moment(b, memory);
	}
	return p;
}
