/* Packing: greedy orders, repair, exact search.
 *
 * what    offsets for buffers with fixed lifetimes, as low as possible
 * method  1. first fit in several orders: size, area, lifetime, start, end,
 *            the same with the buffers of the fullest moments first, and all
 *            of these with a part of the buffers hanging from the top;
 *         2. repair: buffers that stick out above the bound move to the front
 *            of the order and first fit runs again ("squeaky wheel");
 *         3. the best order so far with single buffers moved at random, kept
 *            when that is no worse;
 *         Above LARGE buffers only a few orders are tried, the first of them
 *         made for training steps: what lives to the end hangs from the top
 *         by birth, what lives long is stacked from the bottom by death, the
 *         rest fills the gap between the two by size;
 *         4. exact search (pack_exact.c) at the bound, then at heights that
 *            halve the way from there to the best.
 * cost    an order takes O(n^2); the search is limited by its work counter
 */
#include "passes/pack.h"

#include <stdlib.h>
#include <string.h>

enum {
	ORDERS = 12, REPAIRS = 200, IDLE = 12, SHUFFLES = 100, EXACT_TRIES = 8,
	LARGE = 1500, LARGE_REPAIRS = 2
};

struct spot {                           /* a placed buffer */
	int64_t lower, upper, low, top;
};

struct packer {
	const struct buffer *b;         /* in canonical order */
	size_t n;
	Arena *arena;
	int64_t bound, best;
	int64_t *offset, *best_offset;  /* being tried; of the best packing */
	int32_t *order, *sorted;
	int64_t *key;
	struct spot *spot;              /* by low */
	int64_t *reach;
	int64_t *load;                  /* most bytes alive during its life */
	int32_t *best_order, *trial;
	bool *down, *best_down;         /* hangs from the bound */
	int64_t end, full;              /* last moment; the fullest one */
};

struct item {
	struct buffer b;
	int32_t index;
};

static int
by_time(const void *p, const void *q)
{
	const struct item *a = p, *b = q;

	if (a->b.lower != b->b.lower)
		return a->b.lower < b->b.lower ? -1 : 1;
	if (a->b.upper != b->b.upper)
		return a->b.upper < b->b.upper ? -1 : 1;
	if (a->b.size != b->b.size)
		return a->b.size > b->b.size ? -1 : 1;
	return a->index < b->index ? -1 : 1;
}

struct event {
	int64_t time, delta;
};

static int
by_event(const void *p, const void *q)
{
	const struct event *a = p, *b = q;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return (a->delta > b->delta) - (a->delta < b->delta);
}

int64_t
pack_bound(const struct buffer *b, size_t n, Arena *scratch)
{
	struct event *e = arena_array(scratch, 2 * n + 1, sizeof *e);
	size_t ne = 0;
	int64_t live = 0, most = 0;

	for (size_t i = 0; i < n; i++) {
		if (b[i].lower >= b[i].upper || b[i].size <= 0)
			continue;
		e[ne++] = (struct event){ b[i].lower, b[i].size };
		e[ne++] = (struct event){ b[i].upper, -b[i].size };
	}
	qsort(e, ne, sizeof *e, by_event);
	for (size_t i = 0; i < ne; i++) {
		live += e[i].delta;
		if (live > most)
			most = live;
	}
	return most;
}

/* Lowest gap that holds b among the first n of those placed. */
static int64_t
lowest_gap(const struct packer *s, const struct buffer *b, size_t n)
{
	int64_t at = 0;

	for (size_t j = 0; j < n; j++) {
		const struct spot *y = &s->spot[j];

		if (b->lower >= y->upper || y->lower >= b->upper)
			continue;
		if (y->low - at >= b->size)
			break;
		if (y->top > at)
			at = y->top;
	}
	return at;
}

/* Highest gap below the bound, or -1. */
static int64_t
highest_gap(struct packer *s, const struct buffer *b, size_t n)
{
	int64_t top = s->bound, below = 0;

	/* those placed may overlap each other at other times: how far up the
	 * ones that begin lower reach */
	for (size_t j = 0; j < n; j++) {
		const struct spot *y = &s->spot[j];

		s->reach[j] = below;
		if (b->lower < y->upper && y->lower < b->upper
		    && y->top > below)
			below = y->top;
	}
	if (top - below >= b->size)
		return top - b->size;
	for (size_t j = n; j-- > 0;) {
		const struct spot *y = &s->spot[j];

		if (b->lower >= y->upper || y->lower >= b->upper)
			continue;
		if (y->low < top)
			top = y->low;
		if (top - s->reach[j] >= b->size)
			return top - b->size;
	}
	return -1;
}

/* Where a spot at this offset belongs: behind all that begin no higher. */
static size_t
place_of(const struct packer *s, size_t n, int64_t at)
{
	size_t lo = 0;

	while (lo < n) {
		size_t mid = lo + (n - lo) / 2;

		if (s->spot[mid].low > at)
			n = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* First fit: each buffer of the order goes to the lowest gap that holds it,
 * or to the highest one below the bound. */
static int64_t
first_fit(struct packer *s)
{
	int64_t height = 0;

	for (size_t i = 0; i < s->n; i++) {
		int32_t x = s->order[i];
		const struct buffer *b = &s->b[x];
		int64_t at = s->down[x] ? highest_gap(s, b, i) : -1;
		size_t j;

		if (at < 0)
			at = lowest_gap(s, b, i);
		s->offset[x] = at;
		j = place_of(s, i, at);
		memmove(&s->spot[j + 1], &s->spot[j],
		        (i - j) * sizeof *s->spot);
		s->spot[j] = (struct spot){ b->lower, b->upper, at,
		                            at + b->size };
		if (at + b->size > height)
			height = at + b->size;
	}
	if (height < s->best) {
		s->best = height;
		memcpy(s->best_offset, s->offset,
		       s->n * sizeof *s->offset);
		memcpy(s->best_order, s->order, s->n * sizeof *s->order);
		memcpy(s->best_down, s->down, s->n * sizeof *s->down);
	}
	return height;
}

static int64_t
order_key(const struct packer *s, int32_t x, int how)
{
	const struct buffer *b = &s->b[x];
	int64_t life = b->upper - b->lower, k;

	switch (how) {
	case 0:
		return b->size;
	case 1:
		return __builtin_mul_overflow(b->size, life, &k)
			? INT64_MAX : k;
	case 2:
		return life;
	case 3:
		return -b->lower;
	case 4:
		return b->upper;
	default:
		return __builtin_mul_overflow(b->size, b->size, &k)
			|| __builtin_mul_overflow(k / 4096, life, &k)
			? INT64_MAX : k;
	}
}

/* The most that is alive at one time within each buffer's life. */
static void
find_loads(struct packer *s)
{
	struct event *e = arena_array(s->arena, 2 * s->n + 1, sizeof *e);
	size_t ne = 0, first = 0;
	int64_t live = 0;

	s->load = arena_array(s->arena, s->n + 1, sizeof *s->load);
	for (size_t i = 0; i < s->n; i++) {
		e[ne++] = (struct event){ s->b[i].lower, s->b[i].size };
		e[ne++] = (struct event){ s->b[i].upper, -s->b[i].size };
		if (s->b[i].upper > s->end)
			s->end = s->b[i].upper;
	}
	qsort(e, ne, sizeof *e, by_event);
	for (size_t k = 0; k < ne; k++) {
		live += e[k].delta;
		if (k + 1 < ne && e[k + 1].time == e[k].time)
			continue;
		if (live == s->bound)
			s->full = e[k].time;
		if (s->n > LARGE)       /* nobody asks */
			continue;
		/* buffers are sorted by lower */
		while (first < s->n && s->b[first].upper <= e[k].time)
			first++;
		for (size_t i = first; i < s->n && s->b[i].lower <= e[k].time;
		     i++)
			if (s->b[i].upper > e[k].time && live > s->load[i])
				s->load[i] = live;
	}
}

/* Stable merge sort of the order by descending key. */
static void
sort_order(struct packer *s)
{
	int32_t *from = s->order, *to = s->sorted;

	for (size_t w = 1; w < s->n; w *= 2) {
		for (size_t lo = 0; lo < s->n; lo += 2 * w) {
			size_t mid = lo + w < s->n ? lo + w : s->n;
			size_t hi = mid + w < s->n ? mid + w : s->n;
			size_t i = lo, j = mid;

			for (size_t k = lo; k < hi; k++)
				to[k] = i < mid && (j == hi
					|| s->key[from[i]] >= s->key[from[j]])
					? from[i++] : from[j++];
		}
		memcpy(from, to, s->n * sizeof *from);
	}
}

/* Move what sticks out above the bound to the front of the order, as often as
 * that helps and the number of buffers allows. */
static void
repair(struct packer *s)
{
	int64_t rounds = 3000000 / ((int64_t)s->n * (int64_t)s->n + 1);
	int64_t least = INT64_MAX;
	int idle = 0;

	rounds = rounds < 4 ? 4 : rounds > REPAIRS ? REPAIRS : rounds;
	if (s->n > LARGE)
		rounds = LARGE_REPAIRS;
	while (rounds-- > 0 && idle < IDLE && s->best > s->bound) {
		size_t front = 0;
		int64_t height;

		for (size_t i = 0; i < s->n; i++) {
			int32_t x = s->order[i];

			if (s->offset[x] + s->b[x].size > s->bound) {
				memmove(&s->order[front + 1],
				        &s->order[front],
				        (i - front) * sizeof *s->order);
				s->order[front++] = x;
			}
		}
		height = first_fit(s);
		idle = height < least ? 0 : idle + 1;
		if (height < least)
			least = height;
	}
}

/* Which buffers hang from the bound: none; those that live to the end, which
 * gradients do while activations go; those made after the fullest moment. */
static void
choose_down(struct packer *s, int mode)
{
	for (size_t i = 0; i < s->n; i++)
		s->down[i] = mode == 1 ? s->b[i].upper == s->end
			: mode == 2 && s->b[i].lower > s->full;
}

static void
greedy(struct packer *s)
{
	for (int how = 0; how < 3 * ORDERS && s->best > s->bound; how++) {
		choose_down(s, how / ORDERS);
		for (size_t i = 0; i < s->n; i++) {
			s->order[i] = (int32_t)i;
			s->key[i] = order_key(s, (int32_t)i, 0);
		}
		sort_order(s);          /* ties of the main key by size */
		for (size_t i = 0; i < s->n; i++)
			s->key[i] = order_key(s, (int32_t)i, how % 6);
		sort_order(s);
		for (size_t i = 0; i < s->n; i++)
			s->key[i] = s->load[i] / (s->bound / 16 + 1);
		if (how % ORDERS >= 6)
			sort_order(s);
		first_fit(s);
		repair(s);
	}
}

/* Two stacks that grow towards each other, and the short-lived between them. */
static void
two_stacks(struct packer *s)
{
	int64_t last = s->end / 16;

	for (size_t i = 0; i < s->n; i++) {
		const struct buffer *b = &s->b[i];

		s->order[i] = (int32_t)i;
		s->down[i] = b->upper == s->end;
		s->key[i] = s->down[i] ? INT64_MAX - b->lower
			: b->upper - b->lower > last ? b->upper : 0;
	}
	for (size_t i = 0; i < s->n; i++)
		if (s->key[i] == 0)     /* negative: behind all stacked ones */
			s->key[i] = s->b[i].size - INT64_MAX;
	sort_order(s);
	first_fit(s);
	repair(s);
}

static void
greedy_large(struct packer *s)
{
	static const int order[] = { 4, 28, 10, 34 };

	two_stacks(s);
	for (int k = 0; k < 4 && s->best > s->bound; k++) {
		choose_down(s, order[k] / ORDERS);
		for (size_t i = 0; i < s->n; i++) {
			s->order[i] = (int32_t)i;
			s->key[i] = s->b[i].size;
		}
		sort_order(s);
		for (size_t i = 0; i < s->n; i++)
			s->key[i] = order_key(s, (int32_t)i, order[k] % 6);
		sort_order(s);
		first_fit(s);
		repair(s);
	}
}

/* Small random changes of the best order. */
static void
shuffle(struct packer *s)
{
	uint64_t seed = 0x9e3779b97f4a7c15u;
	int32_t *now = arena_array(s->arena, s->n + 1, sizeof *now);
	int64_t height = s->best;

	if (s->n < 3)
		return;
	memcpy(now, s->best_order, s->n * sizeof *now);
	memcpy(s->down, s->best_down, s->n * sizeof *s->down);
	for (int k = 0; k < SHUFFLES && s->best > s->bound; k++) {
		memcpy(s->order, now, s->n * sizeof *now);
		for (int moves = 1 + k % 3; moves > 0; moves--) {
			size_t from, to;
			int32_t x;

			seed = seed * 6364136223846793005u
				+ 1442695040888963407u;
			from = (seed >> 33) % s->n;
			seed = seed * 6364136223846793005u
				+ 1442695040888963407u;
			to = (seed >> 33) % s->n;
			x = s->order[from];
			if (from < to)
				memmove(&s->order[from], &s->order[from + 1],
				        (to - from) * sizeof x);
			else
				memmove(&s->order[to + 1], &s->order[to],
				        (from - to) * sizeof x);
			s->order[to] = x;
		}
		memcpy(s->trial, s->order, s->n * sizeof *now);
		int64_t h = first_fit(s);

		if (h <= height) {
			height = h;
			memcpy(now, s->trial, s->n * sizeof *now);
		}
	}
}

/* Look for lower packings by exact search; true if the best is proven to be
 * as low as any. */
static bool
exact(struct packer *p, int64_t work)
{
	struct buffer *b = arena_array(p->arena, p->n + 1, sizeof *b);
	int64_t low = p->bound, target = p->bound;

	memcpy(b, p->b, p->n * sizeof *b);
	for (int k = 0; k < EXACT_TRIES && low < p->best; k++) {
		int64_t height = 0;

		switch (pack_exact(b, p->n, target, work / EXACT_TRIES,
		                   p->arena)) {
		case PACK_FOUND:
			for (size_t i = 0; i < p->n; i++) {
				p->best_offset[i] = b[i].offset;
				if (b[i].offset + b[i].size > height)
					height = b[i].offset + b[i].size;
			}
			p->best = height;
			break;
		case PACK_NONE:
			low = target + 1;
			break;
		case PACK_CUT:
			/* what lies lower is no easier */
			if (target >= p->best - 1)
				return false;
			break;
		}
		target += (p->best - target) / 2;
		if (target < low)
			target = low;
		if (target >= p->best)
			target = p->best - 1;
	}
	return low >= p->best;
}

struct pack_result
pack(struct buffer *b, size_t n, int64_t work, Arena *scratch)
{
	struct item *item = arena_array(scratch, n + 1, sizeof *item);
	struct buffer *sorted = arena_array(scratch, n + 1, sizeof *sorted);
	struct packer p = { .b = sorted, .arena = scratch, .best = INT64_MAX };
	struct pack_result r;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		b[i].offset = 0;
		if (b[i].size > 0 && b[i].lower < b[i].upper)
			item[kept++] = (struct item){ b[i], (int32_t)i };
	}
	qsort(item, kept, sizeof *item, by_time);
	for (size_t i = 0; i < kept; i++)
		sorted[i] = item[i].b;
	p.n = kept;
	p.bound = pack_bound(b, n, scratch);
	p.offset = arena_array(scratch, kept + 1, sizeof *p.offset);
	p.best_offset = arena_array(scratch, kept + 1, sizeof *p.offset);
	p.order = arena_array(scratch, kept + 1, sizeof *p.order);
	p.sorted = arena_array(scratch, kept + 1, sizeof *p.sorted);
	p.best_order = arena_array(scratch, kept + 1, sizeof *p.order);
	p.spot = arena_array(scratch, kept + 1, sizeof *p.spot);
	p.reach = arena_array(scratch, kept + 1, sizeof *p.reach);
	p.down = arena_array(scratch, kept + 1, sizeof *p.down);
	p.best_down = arena_array(scratch, kept + 1, sizeof *p.down);
	p.trial = arena_array(scratch, kept + 1, sizeof *p.order);
	p.key = arena_array(scratch, kept + 1, sizeof *p.key);
	find_loads(&p);
	if (kept == 0)
		p.best = 0;
	if (kept > LARGE) {
		greedy_large(&p);
	} else {
		greedy(&p);
		shuffle(&p);
	}
	r.optimal = p.best == p.bound;
	if (!r.optimal && work > 0 && kept <= LARGE)
		r.optimal = exact(&p, work);
	for (size_t i = 0; i < kept; i++)
		b[item[i].index].offset = p.best_offset[i];
	r.height = p.best;
	r.bound = p.bound;
	return r;
}
