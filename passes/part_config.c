/* Configurations: what to keep of a part.
 *
 * what    for every kind of part the ways to keep some of its values and to
 *         repeat the nodes that the others need, none worse than another in
 *         bytes, seconds and memory at once
 * method  From the last pick to the first: one that is needed, by backward or
 *         by a node repeated, is kept, or its node is repeated and needs what
 *         it reads.  What nobody needs is neither.  Where that makes too many
 *         partial answers, those that need the same of what is to come are
 *         thinned to the ones that are best in bytes and seconds.
 *         How much memory a part needs with a configuration is measured:
 *         all parts take their k-th one, and remat_eval says what is alive
 *         where backward is at the part, beyond what is kept of earlier ones.
 * cost    configurations of the richest kind times an evaluation
 */
#include "passes/parts.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED = 4096, MEASURED = 160 };

/* Some picks decided, from the last on. */
struct partial {
	uint64_t needed, keep;
	int64_t bytes;
	double sec;
	bool open;
};

struct list {
	struct partial *at;
	int32_t n, cap;
	Arena *arena;
};

static void
append(struct list *l, const struct partial *p)
{
	if (l->n == l->cap) {
		struct partial *more = arena_array(l->arena,
			(size_t)l->cap * 2 + 16, sizeof *more);

		if (l->n)
			memcpy(more, l->at, (size_t)l->n * sizeof *more);
		l->at = more;
		l->cap = l->cap * 2 + 16;
	}
	l->at[l->n++] = *p;
}

/* Decide picks [from, to), all of one node. */
static void
decide(const struct kind *k, int32_t from, int32_t to, double sec,
       const struct partial *p, struct list *out)
{
	uint64_t mine = 0, wish = 0, drop = 0;

	for (int32_t i = from; i < to; i++) {
		mine |= (uint64_t)1 << i;
		wish |= (uint64_t)k->pick[i].dropped << i;
	}
	mine &= p->needed;
	wish &= mine;
	do {
		struct partial q = *p;

		for (int32_t i = from; i < to; i++) {
			const struct pick *x = &k->pick[i];

			if (drop >> i & 1)
				q.open |= x->crosses && !x->dropped;
			else if (mine >> i & 1)
				q.bytes += x->bytes;
		}
		q.keep |= mine & ~drop;
		if (drop) {
			q.sec += sec;
			q.needed |= k->pick[from].needs;
		}
		if ((drop & wish) == wish)
			append(out, &q);
		drop = (drop - mine) & mine;    /* next subset */
	} while (drop);
}

/* Those that are equal for what is to come together, the leaner first. */
static int
by_need(const void *a, const void *b)
{
	const struct partial *x = a, *y = b;

	if (x->needed != y->needed)
		return x->needed < y->needed ? -1 : 1;
	if (x->open != y->open)
		return x->open ? 1 : -1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	if (x->sec < y->sec || x->sec > y->sec)
		return x->sec < y->sec ? -1 : 1;
	return x->keep < y->keep ? -1 : x->keep > y->keep;
}

/* Drop partial answers that another beats in bytes and seconds. */
static void
thin(struct list *l, uint64_t to_come)
{
	int32_t n = 0;

	for (int32_t i = 0; i < l->n; i++)
		l->at[i].needed &= to_come;
	qsort(l->at, (size_t)l->n, sizeof *l->at, by_need);
	for (int32_t i = 0; i < l->n; i++) {
		const struct partial *last = &l->at[n - 1], *x = &l->at[i];

		if (n > 0 && last->needed == x->needed
		    && last->open == x->open && last->sec <= x->sec)
			continue;
		l->at[n++] = *x;
	}
	l->n = n;
}

/* By falling bytes, the faster first. */
static int
by_bytes(const void *a, const void *b)
{
	const struct config *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->least < y->least || x->least > y->least)
		return x->least < y->least ? -1 : 1;
	return x->keep < y->keep ? -1 : x->keep > y->keep;
}

static int64_t
lead_of(const struct kind *k, uint64_t picks)
{
	int64_t sum = 0;

	for (int32_t i = 0; picks; i++, picks >>= 1)
		if (picks & 1)
			sum += k->pick[i].lead;
	return sum;
}

/* All configurations of a kind; false: there are too many. */
static bool
list_configs(struct parts *y, struct kind *k)
{
	const struct part *p = &y->part[k->model];
	struct partial none = { 0 };
	struct list now = { .arena = arena_new() }, next;
	Arena *scratch = now.arena;

	for (int32_t i = 0; i < k->npick; i++)
		none.needed |= (uint64_t)k->pick[i].direct << i;
	append(&now, &none);
	for (int32_t to = k->npick, from; to > 0; to = from) {
		int32_t node = k->pick[to - 1].node;
		double sec = y->r->node[p->node[node]].least_sec;

		for (from = to - 1; from > 0
		     && k->pick[from - 1].node == node; from--)
			;
		next = (struct list){ .arena = scratch };
		for (int32_t i = 0; i < now.n; i++)
			decide(k, from, to, sec, &now.at[i], &next);
		now = next;
		if (now.n > LISTED) {
			thin(&now, ((uint64_t)1 << from) - 1);
			k->thinned = true;
		}
		if (now.n > 4 * LISTED)
			break;
	}
	if (now.n <= 4 * LISTED) {
		k->nconfig = now.n;
		k->config = arena_array(y->arena, (size_t)now.n + 1,
		                        sizeof *k->config);
		for (int32_t i = 0; i < now.n; i++)
			k->config[i] = (struct config){
				.keep = now.at[i].keep,
				.bytes = now.at[i].bytes,
				.lead = lead_of(k, now.at[i].keep),
				.least = now.at[i].sec,
				.sec = now.at[i].sec,
				.open = now.at[i].open };
		qsort(k->config, (size_t)k->nconfig, sizeof *k->config,
		      by_bytes);
	}
	arena_free(scratch);
	return k->nconfig > 0;
}

/* ---- memory that any plan needs ---- */

/* What lives at every node of backward beside what is kept of earlier parts
 * and what is tied: a pick from its first to its last use, other things
 * always.  Less what has been used up of the part before. */
static int64_t *
fixed_bytes(const struct parts *y)
{
	const struct remat *r = y->r;
	size_t n = r->g->nnode;
	int64_t *live = arena_array(y->arena, n + 2, sizeof *live), sum = 0;
	bool *over = arena_array(y->arena, (size_t)r->nstore + 1, 1);

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
		if (y->tied[s])
			continue;
		if (y->part_of[s] >= 0 && t->candidate
		    && y->must[s] != 'k') {
			NodeId lo = y->part[y->part_of[s]].lo;

			/* where a copy needs no memory, see find_least */
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

static void
raise(struct need *n, bool before, int64_t bytes)
{
	if (before && bytes > n->before)
		n->before = bytes;
	if (bytes > n->all)
		n->all = bytes;
}

/* First use of a pick in backward, at one part; 0. */
static NodeId
first_of(const struct parts *y, const struct part *p, const struct pick *x)
{
	return x->direct ? y->first[p->store[x->store[0]]] : 0;
}

/* The stretches of backward in which the same picks are in memory. */
struct stretch {
	int64_t most;                   /* fixed bytes */
	uint64_t kept;                  /* picks that are there if kept */
	bool before;                    /* the part before is not touched */
};

static int32_t
find_stretches(const struct parts *y, int32_t at, const int64_t *fixed,
               struct stretch *out)
{
	const struct part *p = &y->part[at];
	const struct kind *k = &y->kind[p->kind];
	NodeId hi = at > 0 ? y->part[at - 1].lo : y->r->g->nnode, i = p->lo;
	NodeId begin = at > 0 ? y->part[at - 1].begin : hi;
	int32_t n = 0;

	while (i < hi) {
		struct stretch *t = &out[n++];
		NodeId to = i < begin && begin < hi ? begin : hi;

		*t = (struct stretch){ 0, 0, i < begin };
		for (int32_t j = 0; j < k->npick; j++) {
			const struct pick *x = &k->pick[j];
			NodeId f = first_of(y, p, x), end;

			if (f == 0 || (f <= i && !x->inlinable))
				continue;
			/* the others are fixed while they are in use */
			end = f > i ? f : y->last[p->store[x->store[0]]] + 1;
			if (end <= i)
				continue;
			t->kept |= (uint64_t)1 << j;
			if (end < to)
				to = end;
		}
		for (; i < to; i++)
			if (fixed[i] > t->most)
				t->most = fixed[i];
	}
	return n;
}

static void
find_least(struct parts *y, int32_t at, const int64_t *fixed)
{
	struct part *p = &y->part[at];
	const struct kind *k = &y->kind[p->kind];
	struct stretch t[2 * PART_PICKS + 4];
	int32_t n = find_stretches(y, at, fixed, t);

	p->least = arena_array(y->arena, (size_t)k->nconfig + 1,
	                       sizeof *p->least);
	for (int32_t c = 0; c < k->nconfig; c++)
		for (int32_t i = 0; i < n; i++)
			raise(&p->least[c], t[i].before, t[i].most
			      + (k->thinned ? 0 : lead_of(k, t[i].kept
			                        & k->config[c].keep)));
	for (int32_t i = 0; i < p->nnode; i++)
		for (int32_t c = 0; c < k->nconfig; c++)
			raise(&p->least[c], true, fixed[p->node[i]]);
}

/* ---- memory that a configuration needs ---- */

/* Which to measure: closed ones that none beats in bytes and seconds, then
 * those that only these beat, and so on.  By order of bytes. */
static void
choose_measured(struct kind *k)
{
	int32_t n = 0;

	for (int round = 0; n < MEASURED && round < 8; round++) {
		double best = -1;

		for (int32_t i = k->nconfig - 1; i >= 0 && n < MEASURED;
		     i--) {
			struct config *c = &k->config[i];

			if (c->open || c->measured
			    || (best >= 0 && c->least >= best))
				continue;
			best = c->least;
			c->measured = true;
			n++;
		}
	}
	k->nmeasured = n;
}

/* The t-th measured configuration of a kind. */
static int32_t
measured(const struct kind *k, int32_t t)
{
	int32_t i = 0;

	t %= k->nmeasured;
	for (; !k->config[i].measured || t-- > 0; i++)
		;
	return i;
}

/* Neighbours may differ between measurements: a plan counts on the most, a
 * bound on the least. */
static void
add_measured(struct part *p, int32_t c, const struct need *now)
{
	raise(&p->need[c], true, now->before);
	raise(&p->need[c], false, now->all);
	if (p->seen[c].all == 0 || now->before < p->seen[c].before)
		p->seen[c].before = now->before;
	if (p->seen[c].all == 0 || now->all < p->seen[c].all)
		p->seen[c].all = now->all;
}

/* Read the last evaluation. */
static void
note_needs(struct parts *y, const int32_t *taken, int64_t *below,
           struct need *now)
{
	const struct remat *r = y->r;
	int64_t worst = 0;

	memset(now, 0, (size_t)y->n * sizeof *now);
	for (int32_t i = 0; i < y->n; i++)
		below[i + 1] = below[i]
			+ y->kind[y->part[i].kind].config[taken[i]].bytes;
	for (int32_t i = 0; i < y->n; i++)
		y->kind[y->part[i].kind].config[taken[i]].sec = 0;
	for (int32_t k = 0; k < r->nstep; k++) {
		NodeId node = r->step[k].node;
		int32_t at = y->node_part[node];
		struct kind *kind = &y->kind[y->part[at].kind];

		if (r->live[k] > worst)
			worst = r->live[k];
		if (r->step[k].clone) { /* on behalf of what follows */
			if (kind->model == at)
				kind->config[taken[at]].sec +=
					r->step[k].inlined
					? r->node[node].least_sec
					: r->node[node].sec;
			continue;
		}
		raise(&now[at], at == 0
		      || node < y->part[at - 1].begin, worst - below[at]);
		worst = 0;
	}
	for (int32_t i = 0; i < y->n; i++)
		add_measured(&y->part[i], taken[i], &now[i]);
}

static void
measure(struct parts *y)
{
	size_t n = (size_t)y->n;
	int64_t *below = arena_array(y->arena, n + 1, sizeof *below);
	struct need *now = arena_array(y->arena, n, sizeof *now);
	int32_t *taken = arena_array(y->arena, n, sizeof *taken);
	uint8_t *drop = arena_array(y->arena, (size_t)y->r->nstore + 1, 1);
	int32_t times = 0;

	for (int32_t i = 0; i < y->nkind; i++)
		if (y->kind[i].nmeasured > times)
			times = y->kind[i].nmeasured;
	remat_keep_all(y->r, y->must, drop);
	for (int32_t i = 0; i < y->r->nstore; i++)
		if (y->tied[i])
			drop[i] = 0;
	for (int32_t t = 0; t < times; t++) {
		for (int32_t i = 0; i < y->n; i++) {
			const struct part *p = &y->part[i];

			taken[i] = measured(&y->kind[p->kind], t);
			part_set(y, p, &y->kind[p->kind].config[taken[i]],
			         drop);
		}
		remat_eval(y->r, drop);
		note_needs(y, taken, below, now);
	}
}

/* ---- dominated ones ---- */

/* No use beside d: at no part is it better in anything. */
static bool
beaten(const struct parts *y, int32_t kind, int32_t c, int32_t d, bool low)
{
	const struct config *x = &y->kind[kind].config[c];
	const struct config *z = &y->kind[kind].config[d];

	if (low ? z->lead > x->lead || z->least > x->least
	    : z->bytes > x->bytes || z->sec > x->sec)
		return false;
	for (int32_t i = y->kind[kind].model; i < y->n; i++) {
		const struct part *p = &y->part[i];
		const struct need *n = low ? p->least : p->need;

		if (p->kind == kind && (n[d].all > n[c].all
		                        || n[d].before > n[c].before))
			return false;
	}
	return true;
}

static int32_t *
undominated(struct parts *y, int32_t kind, bool low, int32_t *count)
{
	const struct kind *k = &y->kind[kind];
	int32_t *list = arena_array(y->arena, (size_t)k->nconfig + 1, 4);
	int32_t n = 0;

	/* the lean ones first, and equal ones by seconds */
	for (int32_t c = k->nconfig - 1; c >= 0; c--) {
		bool out = !low && !k->config[c].measured;

		for (int32_t i = 0; !out && i < n; i++)
			out = (!low || k->config[list[i]].open
			       >= k->config[c].open)
				&& beaten(y, kind, c, list[i], low);
		if (!out)
			list[n++] = c;
	}
	*count = n;
	return list;
}

/* What was measured is needed in any plan, but for what is tied, and for
 * outputs kept along with another one of their node.  Not so where
 * values of later parts are still used: that depends on their configurations
 * too. */
static void
raise_least(struct parts *y)
{
	bool *late = arena_array(y->arena, (size_t)y->n, sizeof *late);

	for (int32_t s = 0; s < y->r->nstore; s++)
		for (int32_t i = y->part_of[s] - 1; i >= 0
		     && y->last[s] >= y->part[i].lo; i--)
			late[i] = true;
	for (int32_t i = 0; i < y->n; i++) {
		struct part *p = &y->part[i];
		const struct kind *k = &y->kind[p->kind];

		/* thinned: a configuration stands for others too */
		if (late[i] || k->thinned)
			continue;
		for (int32_t c = 0; c < k->nconfig; c++)
			if (k->config[c].measured) {
				int64_t less = y->tied_bytes
					+ k->config[c].bytes
					- k->config[c].lead;

				raise(&p->least[c], true,
				      p->seen[c].before - less);
				raise(&p->least[c], false,
				      p->seen[c].all - less);
			}
	}
}

bool
parts_solve(struct parts *y)
{
	int64_t *fixed = fixed_bytes(y);

	for (int32_t k = 0; k < y->nkind; k++) {
		if (!list_configs(y, &y->kind[k]))
			return false;
		choose_measured(&y->kind[k]);
		if (!y->kind[k].nmeasured)
			return false;
	}
	for (int32_t i = 0; i < y->n; i++) {
		struct part *p = &y->part[i];

		p->need = arena_array(y->arena,
			(size_t)y->kind[p->kind].nconfig + 1, sizeof *p->need);
		p->seen = arena_array(y->arena,
			(size_t)y->kind[p->kind].nconfig + 1, sizeof *p->seen);
		find_least(y, i, fixed);
	}
	measure(y);
	for (int32_t k = 0; k < y->nkind; k++)
		y->kind[k].plan = undominated(y, k, false, &y->kind[k].nplan);
	parts_open(y);
	raise_least(y);
	for (int32_t k = 0; k < y->nkind; k++)
		y->kind[k].low = undominated(y, k, true, &y->kind[k].nlow);
	return true;
}

void
part_set(const struct parts *y, const struct part *p, const struct config *c,
         uint8_t *drop)
{
	const struct kind *k = &y->kind[p->kind];

	for (int32_t i = 0; i < k->npick; i++)
		for (int j = 0; j < k->pick[i].nstore; j++)
			drop[p->store[k->pick[i].store[j]]] =
				!(c->keep >> i & 1);
}
