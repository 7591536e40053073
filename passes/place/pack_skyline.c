/* Packing: best fit on a skyline.
 *
 * what    near-optimal packings of training steps in near-linear time
 * method  What is placed so far has one top in every section, the skyline.
 *         Take its lowest segment, the first of several; of all boxes that
 *         fit between its two walls place the one that comes first in an
 *         order; if none fits, lift the segment to the lower of its walls
 *         (Burke, Kendall, Whitwell, "A New Placement Heuristic for the
 *         Orthogonal Stock-Cutting Problem", Operations Research 2004; for
 *         memory: Sekiyama et al., "Profile-guided memory optimization for
 *         deep neural networks", 2018).  With the longest life first, nested
 *         lives, as those of activations from forward to backward, lie
 *         without any waste.
 *         An attempt ends as soon as a section has too little room above the
 *         skyline for what it still lacks.  The boxes that were missing there
 *         then move up in the order, and it is tried again ("squeaky wheel").
 * cost    an attempt: O(n log n) for the skyline, queries of pack_trees.c;
 *         attempts are limited by a count of their steps
 */
#include "passes/place/pack_skyline.h"

#include <string.h>

/* Attempts in a row that may bring nothing. */
enum { IDLE = 24 };

/* ---- the skyline ---- */

static bool
is_lower(const struct skyline_segment *a, const struct skyline_segment *b)
{
	return a->top != b->top ? a->top < b->top : a->from < b->from;
}

static void
push_segment(struct skyline *s, int32_t from, int32_t to, int64_t top)
{
	struct skyline_segment x = { top, from };
	int32_t i = s->nheap++;

	s->to[from] = to;
	s->begin[to] = from;
	s->top[from] = top;
	while (i > 0 && is_lower(&x, &s->heap[(i - 1) / 2])) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = x;
}

static void
pop_segment(struct skyline *s)
{
	struct skyline_segment x = s->heap[--s->nheap];
	int32_t i = 0, c;

	while ((c = 2 * i + 1) < s->nheap) {
		if (c + 1 < s->nheap && is_lower(&s->heap[c + 1], &s->heap[c]))
			c++;
		if (!is_lower(&s->heap[c], &x))
			break;
		s->heap[i] = s->heap[c];
		i = c;
	}
	s->heap[i] = x;
}

/* The lowest segment. */
static int32_t
lowest_segment(struct skyline *s)
{
	while (s->to[s->heap[0].from] < 0
	       || s->top[s->heap[0].from] != s->heap[0].top)
		pop_segment(s);
	return s->heap[0].from;
}

/* A segment at this height, joined with neighbours of the same height. */
static void
set_segment(struct skyline *s, int32_t from, int32_t to, int64_t top)
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
	push_segment(s, from, to, top);
}

static void
place_box(struct skyline *s, int32_t x, int32_t from, int32_t to)
{
	int32_t a = from_of(s, x), b = to_of(s, x);
	int64_t low = s->top[from], size = s->p->box[x].size;

	s->at[x] = low;
	skyline_mark_placed(s, x);
	/* what stays of the segment first, so that it is not joined */
	s->to[from] = -1;
	if (b < to)
		push_segment(s, b, to, low);
	if (from < a)
		push_segment(s, from, a, low);
	set_segment(s, a, b, low + size);
}

/* Lift a segment that nothing fits on; false if a section then has too little
 * room below `limit`, that section in *tight. */
static bool
lift_segment(struct skyline *s, int32_t from, int64_t limit, int32_t *tight)
{
	int32_t to = s->to[from];
	int64_t low = INT64_MAX;

	if (from > 0)
		low = s->top[s->begin[from]];
	if (to < s->p->nsection && s->top[to] < low)
		low = s->top[to];
	if (low + skyline_most(s, from, to) > limit) {
		while (to - from > 1) {
			int32_t mid = from + (to - from) / 2;

			if (low + skyline_most(s, from, mid) > limit)
				to = mid;
			else
				from = mid;
		}
		*tight = from;
		return false;
	}
	set_segment(s, from, to, low);
	return true;
}

static void
reset_skyline(struct skyline *s)
{
	const struct pack_part *p = s->p;

	for (int32_t i = 0; i < p->n; i++)
		s->rank[s->order[i]] = i;
	memset(s->placed, 0, (size_t)p->n * sizeof *s->placed);
	skyline_renew(s);
	skyline_count(s);
	memset(s->to, -1, ((size_t)p->nsection + 1) * sizeof *s->to);
	s->nheap = 0;
	push_segment(s, 0, p->nsection, 0);
	s->work -= p->n;
}

/* One attempt at a packing below the best; the section that stood in the way,
 * or -1 if it is the best now, or was interrupted. */
static int32_t
attempt_packing(struct skyline *s)
{
	struct pack_part *p = s->p;
	int64_t limit = p->best - 1, height = 0;
	int32_t left = p->n, tight = -1;

	reset_skyline(s);
	while (left > 0) {
		int32_t from = lowest_segment(s), to = s->to[from];
		int32_t x = skyline_fitting(s, from, to);

		if (watch_off(p->stop))
			return -1;
		if (x < 0) {
			if (!lift_segment(s, from, limit, &tight))
				return tight;
			continue;
		}
		place_box(s, x, from, to);
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
order_key(const struct pack_box *b, int how)
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
sort_boxes(struct skyline *s)
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
make_order(struct skyline *s, int how)
{
	const struct pack_part *p = s->p;

	for (int32_t i = 0; i < p->n; i++) {
		s->order[i] = i;
		s->key[i] = p->box[i].size;
	}
	sort_boxes(s);
	for (int32_t i = 0; i < p->n; i++)
		s->key[i] = order_key(&p->box[i], how);
	sort_boxes(s);
}

/* What is missing in the section moves to the front of the order; not all of
 * it once that leads round in a circle. */
static void
promote_missing(struct skyline *s, int32_t section, bool all)
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
try_order(struct skyline *s, int how)
{
	int idle = 0;
	int32_t section;

	make_order(s, how);
	while (idle < IDLE && s->work > 0 && !part_done(s->p)) {
		section = attempt_packing(s);
		idle = section < 0 ? 0 : idle + 1;
		if (section >= 0)
			promote_missing(s, section, idle < IDLE / 2);
	}
}

void
pack_skyline(struct pack_part *p)
{
	size_t n = (size_t)p->n + 1, ns = (size_t)p->nsection + 1;
	struct skyline s = { .p = p, .leaves = 1, .work = p->work,
	                     .seed = 1 };
	Arena *a = p->arena;

	while (s.leaves < p->nsection)
		s.leaves *= 2;
	s.node = arena_array(a, n, sizeof *s.node);
	s.node_of = arena_array(a, n, sizeof *s.node_of);
	s.order = arena_array(a, n, sizeof *s.order);
	s.rank = arena_array(a, n, sizeof *s.rank);
	s.spare = arena_array(a, n, sizeof *s.spare);
	s.key = arena_array(a, n, sizeof *s.key);
	s.placed = arena_array(a, n, sizeof *s.placed);
	s.at = arena_array(a, n, sizeof *s.at);
	s.to = arena_array(a, ns, sizeof *s.to);
	s.begin = arena_array(a, ns, sizeof *s.begin);
	s.top = arena_array(a, ns, sizeof *s.top);
	/* a box adds three segments, a lift takes one away and adds one */
	s.heap = arena_array(a, 5 * n + ns, sizeof *s.heap);
	s.most = arena_array(a, 2 * (size_t)s.leaves, sizeof *s.most);
	s.add = arena_array(a, 2 * (size_t)s.leaves, sizeof *s.add);
	for (int turns = 0; turns < 12 && !part_done(p); turns++) {
		if (turns % 6 == 0) {
			s.mirror = turns >= 6;
			skyline_build(&s);
		}
		s.walls = turns % 2;
		try_order(&s, turns % 6 / 2);
		if (s.work <= 0)
			break;
	}
}
