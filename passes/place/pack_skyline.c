/* Packing: best fit on a skyline.
 *
 * what    near-optimal packings of training steps in near-linear time
 * method  What is placed so far has one top in every section, the skyline.
 *         Take its lowest stretch, the first of several; of all boxes that
 *         fit between its two walls place the one that comes first in an
 *         order; if none fits, lift the stretch to the lower of its walls
 *         (Burke, Kendall, Whitwell, "A New Placement Heuristic for the
 *         Orthogonal Stock-Cutting Problem", Operations Research 2004; for
 *         memory: Sekiyama et al., "Profile-guided memory optimization for
 *         deep neural networks", 2018).  With the longest life first, nested
 *         lives, as those of activations from forward to backward, lie
 *         without any waste.
 *         An attempt ends as soon as a section has too little room above the
 *         skyline for what it still lacks.  The boxes that were missing there
 *         then move up in the order, and it is tried again ("squeaky wheel").
 *         A box is found in a k-d tree over (from, to) whose nodes know the
 *         first in the order below them.
 * cost    an attempt: O(n log n) for the skyline, O(sqrt n) at worst for a
 *         query of the tree; attempts are limited by a count of their steps
 */
#include "passes/place/pack_part.h"

#include <string.h>

enum { NONE = INT32_MAX };

/* Steps that all attempts together may take, and attempts in a row that may
 * bring nothing. */
enum { WORK = 4000000, IDLE = 24 };

/* ---- boxes not placed ---- */

struct knot {
	int32_t box;
	int32_t min_from, max_from, min_to, max_to;     /* of the subtree */
	int32_t first;                  /* least rank not placed in it */
};

struct query {
	int32_t min_from, max_from, min_to, max_to;
	int32_t first;                  /* least rank found */
};

/* ---- tops of what is placed ---- */

struct stretch {
	int64_t top;
	int32_t from;
};

struct sky {
	struct part *p;
	struct knot *knot;              /* middle of a range: its root */
	int32_t *knot_of;               /* by box */
	int32_t *order, *rank;          /* box by rank; rank by box */
	bool walls;                     /* what touches walls comes first */
	bool mirror;                    /* time runs backwards */
	/* stretches by their first section; -1: none begins there */
	int32_t *to, *begin;            /* begin: by the last section + 1 */
	int64_t *top;
	struct stretch *heap;           /* lowest first; may hold stale ones */
	int32_t nheap;
	/* by section, as a tree of maxima: bytes not placed */
	int64_t *most, *add;
	int32_t leaves;
	bool *placed;
	int64_t *at;
	int64_t *key;
	int32_t *spare;
	uint64_t seed;
	int64_t work;
};

static int32_t
from_of(const struct sky *s, int32_t x)
{
	return s->mirror ? s->p->nsection - s->p->box[x].to
		: s->p->box[x].from;
}

static int32_t
to_of(const struct sky *s, int32_t x)
{
	return s->mirror ? s->p->nsection - s->p->box[x].from
		: s->p->box[x].to;
}

/* ---- the tree of boxes ---- */

static void
swap_boxes(struct knot *k, int32_t i, int32_t j)
{
	int32_t t = k[i].box;

	k[i].box = k[j].box;
	k[j].box = t;
}

static int64_t
coordinate(const struct sky *s, int32_t x, bool by_to)
{
	int32_t a = from_of(s, x), b = to_of(s, x);

	/* ties by the other one and the box make all different */
	return by_to ? ((int64_t)b << 32) + x : ((int64_t)a << 32) + x;
}

/* Bring the median of lo..hi-1 to its middle. */
static void
split_at_median(struct sky *s, int32_t lo, int32_t hi, bool by_to)
{
	struct knot *k = s->knot;
	int32_t mid = lo + (hi - lo) / 2;

	hi--;
	while (lo < hi) {
		int32_t i = lo, j = hi;
		int64_t pivot = coordinate(s, k[lo + (hi - lo) / 2].box, by_to);

		while (i <= j) {
			while (coordinate(s, k[i].box, by_to) < pivot)
				i++;
			while (coordinate(s, k[j].box, by_to) > pivot)
				j--;
			if (i <= j)
				swap_boxes(k, i++, j--);
		}
		if (mid <= j)
			hi = j;
		else if (mid >= i)
			lo = i;
		else
			break;
	}
}

static int32_t
min32(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

static int32_t
max32(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

static void
join(struct knot *k, const struct knot *sub)
{
	k->min_from = min32(k->min_from, sub->min_from);
	k->max_from = max32(k->max_from, sub->max_from);
	k->min_to = min32(k->min_to, sub->min_to);
	k->max_to = max32(k->max_to, sub->max_to);
}

static void
build_tree(struct sky *s, int32_t lo, int32_t hi, bool by_to)
{
	int32_t mid = lo + (hi - lo) / 2, x;
	struct knot *k = &s->knot[mid];

	if (lo >= hi)
		return;
	split_at_median(s, lo, hi, by_to);
	build_tree(s, lo, mid, !by_to);
	build_tree(s, mid + 1, hi, !by_to);
	x = k->box;
	s->knot_of[x] = mid;
	k->min_from = k->max_from = from_of(s, x);
	k->min_to = k->max_to = to_of(s, x);
	if (lo < mid)
		join(k, &s->knot[lo + (mid - lo) / 2]);
	if (mid + 1 < hi)
		join(k, &s->knot[mid + 1 + (hi - mid - 1) / 2]);
}

/* First of what is left below the knot in the middle of lo..hi-1. */
static int32_t
first_below(const struct sky *s, int32_t lo, int32_t hi)
{
	return lo < hi ? s->knot[lo + (hi - lo) / 2].first : NONE;
}

static void
renew(struct sky *s, int32_t lo, int32_t hi)
{
	int32_t mid = lo + (hi - lo) / 2;
	struct knot *k = &s->knot[mid];

	k->first = s->placed[k->box] ? NONE : s->rank[k->box];
	k->first = min32(k->first, min32(first_below(s, lo, mid),
	                                 first_below(s, mid + 1, hi)));
}

static void
renew_all(struct sky *s, int32_t lo, int32_t hi)
{
	int32_t mid = lo + (hi - lo) / 2;

	if (lo >= hi)
		return;
	renew_all(s, lo, mid);
	renew_all(s, mid + 1, hi);
	renew(s, lo, hi);
}

/* Renew the knots above the one at `at`, and itself. */
static void
renew_path(struct sky *s, int32_t lo, int32_t hi, int32_t at)
{
	int32_t mid = lo + (hi - lo) / 2;

	if (at < mid)
		renew_path(s, lo, mid, at);
	else if (at > mid)
		renew_path(s, mid + 1, hi, at);
	renew(s, lo, hi);
	s->work--;
}

static void
find(struct sky *s, int32_t lo, int32_t hi, struct query *q)
{
	int32_t mid = lo + (hi - lo) / 2, x;
	const struct knot *k = &s->knot[mid];

	if (lo >= hi || k->first >= q->first || k->max_from < q->min_from
	    || k->min_from > q->max_from || k->max_to < q->min_to
	    || k->min_to > q->max_to)
		return;
	s->work--;
	if (k->min_from >= q->min_from && k->max_from <= q->max_from
	    && k->min_to >= q->min_to && k->max_to <= q->max_to) {
		q->first = k->first;
		return;
	}
	x = k->box;
	if (!s->placed[x] && s->rank[x] < q->first
	    && from_of(s, x) >= q->min_from && from_of(s, x) <= q->max_from
	    && to_of(s, x) >= q->min_to && to_of(s, x) <= q->max_to)
		q->first = s->rank[x];
	find(s, lo, mid, q);
	find(s, mid + 1, hi, q);
}

/* The first box of the order between two walls; -1: none is left. */
static int32_t
fitting(struct sky *s, int32_t from, int32_t to)
{
	struct query q = { from, NONE, 0, to, NONE };

	if (s->walls) {
		q.max_from = from;
		q.min_to = to;
		find(s, 0, s->p->n, &q);
		if (q.first != NONE)
			return s->order[q.first];
		q.min_to = 0;
		find(s, 0, s->p->n, &q);
		q.max_from = NONE;
		q.min_to = to;
		find(s, 0, s->p->n, &q);
		if (q.first != NONE)
			return s->order[q.first];
		q.min_to = 0;
	}
	find(s, 0, s->p->n, &q);
	return q.first == NONE ? -1 : s->order[q.first];
}

/* ---- the tree of sections ---- */

/* Add to sections from..to-1 of those below knot i, which are lo..hi-1. */
static void
add_bytes(struct sky *s, int32_t i, int32_t lo, int32_t hi, int32_t from,
          int32_t to, int64_t bytes)
{
	int32_t mid = lo + (hi - lo) / 2;

	if (from >= hi || to <= lo)
		return;
	if (from <= lo && hi <= to) {
		s->most[i] += bytes;
		s->add[i] += bytes;
		return;
	}
	s->work--;
	add_bytes(s, 2 * i, lo, mid, from, to, bytes);
	add_bytes(s, 2 * i + 1, mid, hi, from, to, bytes);
	s->most[i] = s->add[i] + (s->most[2 * i] > s->most[2 * i + 1]
	                          ? s->most[2 * i] : s->most[2 * i + 1]);
}

/* Most bytes in one of sections from..to-1. */
static int64_t
most_bytes(const struct sky *s, int32_t i, int32_t lo, int32_t hi,
           int32_t from, int32_t to)
{
	int32_t mid = lo + (hi - lo) / 2;
	int64_t a, b;

	if (from >= hi || to <= lo)
		return INT64_MIN / 2;
	if (from <= lo && hi <= to)
		return s->most[i];
	a = most_bytes(s, 2 * i, lo, mid, from, to);
	b = most_bytes(s, 2 * i + 1, mid, hi, from, to);
	return s->add[i] + (a > b ? a : b);
}

/* ---- the skyline ---- */

static bool
below(const struct stretch *a, const struct stretch *b)
{
	return a->top != b->top ? a->top < b->top : a->from < b->from;
}

static void
push(struct sky *s, int32_t from, int32_t to, int64_t top)
{
	struct stretch x = { top, from };
	int32_t i = s->nheap++;

	s->to[from] = to;
	s->begin[to] = from;
	s->top[from] = top;
	while (i > 0 && below(&x, &s->heap[(i - 1) / 2])) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = x;
}

static void
pop(struct sky *s)
{
	struct stretch x = s->heap[--s->nheap];
	int32_t i = 0, c;

	while ((c = 2 * i + 1) < s->nheap) {
		if (c + 1 < s->nheap && below(&s->heap[c + 1], &s->heap[c]))
			c++;
		if (!below(&s->heap[c], &x))
			break;
		s->heap[i] = s->heap[c];
		i = c;
	}
	s->heap[i] = x;
}

/* The lowest stretch. */
static int32_t
lowest(struct sky *s)
{
	while (s->to[s->heap[0].from] < 0
	       || s->top[s->heap[0].from] != s->heap[0].top)
		pop(s);
	return s->heap[0].from;
}

/* A stretch at this height, joined with neighbours of the same height. */
static void
set_stretch(struct sky *s, int32_t from, int32_t to, int64_t top)
{
	int32_t left = from > 0 ? s->begin[from] : -1;

	if (to < s->p->nsection && s->to[to] >= 0 && s->top[to] == top) {
		int32_t end = s->to[to];

		s->to[to] = -1;
		to = end;
	}
	s->to[from] = -1;
	if (left >= 0 && s->to[left] == from && s->top[left] == top) {
		s->to[left] = to;
		s->begin[to] = left;
		return;
	}
	push(s, from, to, top);
}

static void
put(struct sky *s, int32_t x, int32_t from, int32_t to)
{
	int32_t a = from_of(s, x), b = to_of(s, x);
	int64_t low = s->top[from], size = s->p->box[x].size;

	s->placed[x] = true;
	s->at[x] = low;
	renew_path(s, 0, s->p->n, s->knot_of[x]);
	add_bytes(s, 1, 0, s->leaves, a, b, -size);
	/* what stays of the stretch first, so that it is not joined */
	s->to[from] = -1;
	if (b < to)
		push(s, b, to, low);
	if (from < a)
		push(s, from, a, low);
	set_stretch(s, a, b, low + size);
}

/* Lift a stretch that nothing fits on; false if a section then has too little
 * room below `limit`, that section in *tight. */
static bool
lift(struct sky *s, int32_t from, int64_t limit, int32_t *tight)
{
	int32_t to = s->to[from];
	int64_t low = INT64_MAX;

	if (from > 0)
		low = s->top[s->begin[from]];
	if (to < s->p->nsection && s->top[to] < low)
		low = s->top[to];
	if (low + most_bytes(s, 1, 0, s->leaves, from, to) > limit) {
		while (to - from > 1) {
			int32_t mid = from + (to - from) / 2;

			if (low + most_bytes(s, 1, 0, s->leaves, from, mid)
			    > limit)
				to = mid;
			else
				from = mid;
		}
		*tight = from;
		return false;
	}
	set_stretch(s, from, to, low);
	return true;
}

static void
start(struct sky *s)
{
	const struct part *p = s->p;

	for (int32_t i = 0; i < p->n; i++)
		s->rank[s->order[i]] = i;
	memset(s->placed, 0, (size_t)p->n * sizeof *s->placed);
	renew_all(s, 0, p->n);
	memset(s->most, 0, 2 * (size_t)s->leaves * sizeof *s->most);
	memset(s->add, 0, 2 * (size_t)s->leaves * sizeof *s->add);
	for (int32_t x = 0; x < p->n; x++)
		add_bytes(s, 1, 0, s->leaves, from_of(s, x), to_of(s, x),
		          p->box[x].size);
	memset(s->to, -1, ((size_t)p->nsection + 1) * sizeof *s->to);
	s->nheap = 0;
	push(s, 0, p->nsection, 0);
	s->work -= p->n;
}

/* One attempt at a packing below the best; the section that stood in the way,
 * or -1 if it is the best now, or was interrupted. */
static int32_t
attempt(struct sky *s)
{
	struct part *p = s->p;
	int64_t limit = p->best - 1, height = 0;
	int32_t left = p->n, tight = -1;

	start(s);
	while (left > 0) {
		int32_t from = lowest(s), to = s->to[from];
		int32_t x = fitting(s, from, to);

		if (watch_off(p->stop))
			return -1;
		if (x < 0) {
			if (!lift(s, from, limit, &tight))
				return tight;
			continue;
		}
		put(s, x, from, to);
		if (s->at[x] + p->box[x].size > height)
			height = s->at[x] + p->box[x].size;
		left--;
	}
	p->best = height;
	memcpy(p->at, s->at, (size_t)p->n * sizeof *p->at);
	return -1;
}

/* ---- orders ---- */

static int64_t
key_of(const struct box *b, int how)
{
	int64_t life = b->to - b->from, k;

	switch (how) {
	case 0:
		return life;
	case 1:
		return __builtin_mul_overflow(b->size, life, &k) ? INT64_MAX
			: k;
	default:
		return b->size;
	}
}

/* Order by descending keys; ties stay as they were. */
static void
sort(struct sky *s)
{
	int32_t n = s->p->n, *order = s->order;
	const int64_t *key = s->key;

	for (int64_t w = 1; w < n; w *= 2) {
		for (int64_t lo = 0; lo < n; lo += 2 * w) {
			int64_t mid = lo + w < n ? lo + w : n;
			int64_t hi = mid + w < n ? mid + w : n;
			int64_t i = lo, j = mid;

			for (int64_t k = lo; k < hi; k++)
				s->spare[k] = i < mid && (j == hi
					|| key[order[i]] >= key[order[j]])
					? order[i++] : order[j++];
		}
		memcpy(order, s->spare, (size_t)n * sizeof *order);
	}
}

static void
make_order(struct sky *s, int how)
{
	const struct part *p = s->p;

	for (int32_t i = 0; i < p->n; i++) {
		s->order[i] = i;
		s->key[i] = p->box[i].size;
	}
	sort(s);
	for (int32_t i = 0; i < p->n; i++)
		s->key[i] = key_of(&p->box[i], how);
	sort(s);
}

/* What is missing in the section moves to the front of the order; not all of
 * it once that leads round in a circle. */
static void
move_up(struct sky *s, int32_t section, bool all)
{
	int32_t front = 0, n = 0;

	for (int32_t i = 0; i < s->p->n; i++) {
		int32_t x = s->order[i];

		s->seed = s->seed * 6364136223846793005u
			+ 1442695040888963407u;
		if (!s->placed[x] && from_of(s, x) <= section
		    && section < to_of(s, x) && (all || s->seed >> 62))
			s->order[front++] = x;
		else
			s->spare[n++] = x;
	}
	memcpy(s->order + front, s->spare, (size_t)n * sizeof *s->spare);
}

static void
turn(struct sky *s, int how)
{
	int idle = 0;
	int32_t section;

	make_order(s, how);
	while (idle < IDLE && s->work > 0 && !part_done(s->p)) {
		section = attempt(s);
		idle = section < 0 ? 0 : idle + 1;
		if (section >= 0)
			move_up(s, section, idle < IDLE / 2);
	}
}

void
pack_skyline(struct part *p)
{
	size_t n = (size_t)p->n + 1, ns = (size_t)p->nsection + 1;
	struct sky s = { .p = p, .leaves = 1, .work = WORK,
	                 .seed = 1 };
	Arena *a = p->arena;

	while (s.leaves < p->nsection)
		s.leaves *= 2;
	s.knot = arena_array(a, n, sizeof *s.knot);
	s.knot_of = arena_array(a, n, sizeof *s.knot_of);
	s.order = arena_array(a, n, sizeof *s.order);
	s.rank = arena_array(a, n, sizeof *s.rank);
	s.spare = arena_array(a, n, sizeof *s.spare);
	s.key = arena_array(a, n, sizeof *s.key);
	s.placed = arena_array(a, n, sizeof *s.placed);
	s.at = arena_array(a, n, sizeof *s.at);
	s.to = arena_array(a, ns, sizeof *s.to);
	s.begin = arena_array(a, ns, sizeof *s.begin);
	s.top = arena_array(a, ns, sizeof *s.top);
	/* a box adds three stretches, a lift takes one away and adds one */
	s.heap = arena_array(a, 5 * n + ns, sizeof *s.heap);
	s.most = arena_array(a, 2 * (size_t)s.leaves, sizeof *s.most);
	s.add = arena_array(a, 2 * (size_t)s.leaves, sizeof *s.add);
	for (int turns = 0; turns < 12 && !part_done(p); turns++) {
		if (turns % 6 == 0) {
			s.mirror = turns >= 6;
			for (int32_t i = 0; i < p->n; i++)
				s.knot[i].box = i;
			build_tree(&s, 0, p->n, false);
		}
		s.walls = turns % 2;
		turn(&s, turns % 6 / 2);
		if (s.work <= 0)
			break;
	}
}
