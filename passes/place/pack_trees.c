/* Trees of the skyline.
 *
 * what    which box not placed comes first in an order among those that fit
 *         between two walls; how many bytes a section still lacks
 * method  a k-d tree over (from, to) whose nodes know the first in the order
 *         below them; a tree of maxima over sections
 * cost    O(sqrt n) at worst for a query of the first, O(log n) of the second
 */
#include "passes/place/pack_skyline.h"

#include <string.h>

enum { NONE = INT32_MAX };

struct query {
	int32_t min_from, max_from, min_to, max_to;
	int32_t first;                  /* least rank found */
};

/* ---- the tree of boxes ---- */

static void
swap_boxes(struct box_node *k, int32_t i, int32_t j)
{
	int32_t t = k[i].box;

	k[i].box = k[j].box;
	k[j].box = t;
}

static int64_t
box_coordinate(const struct skyline *s, int32_t x, bool by_to)
{
	int32_t a = from_of(s, x), b = to_of(s, x);

	/* ties by the other one and the box make all different */
	return by_to ? ((int64_t)b << 32) + x : ((int64_t)a << 32) + x;
}

/* Bring the median of lo..hi-1 to its middle. */
static void
split_at_median(struct skyline *s, int32_t lo, int32_t hi, bool by_to)
{
	struct box_node *k = s->node;
	int32_t mid = lo + (hi - lo) / 2;

	hi--;
	while (lo < hi) {
		int32_t i = lo, j = hi;
		int64_t pivot = box_coordinate(s, k[lo + (hi - lo) / 2].box,
		                               by_to);

		while (i <= j) {
			while (box_coordinate(s, k[i].box, by_to) < pivot)
				i++;
			while (box_coordinate(s, k[j].box, by_to) > pivot)
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
extend_bounds(struct box_node *k, const struct box_node *sub)
{
	k->min_from = min32(k->min_from, sub->min_from);
	k->max_from = max32(k->max_from, sub->max_from);
	k->min_to = min32(k->min_to, sub->min_to);
	k->max_to = max32(k->max_to, sub->max_to);
}

static void
build_tree(struct skyline *s, int32_t lo, int32_t hi, bool by_to)
{
	int32_t mid = lo + (hi - lo) / 2, x;
	struct box_node *k = &s->node[mid];

	if (lo >= hi)
		return;
	split_at_median(s, lo, hi, by_to);
	build_tree(s, lo, mid, !by_to);
	build_tree(s, mid + 1, hi, !by_to);
	x = k->box;
	s->node_of[x] = mid;
	k->min_from = k->max_from = from_of(s, x);
	k->min_to = k->max_to = to_of(s, x);
	if (lo < mid)
		extend_bounds(k, &s->node[lo + (mid - lo) / 2]);
	if (mid + 1 < hi)
		extend_bounds(k, &s->node[mid + 1 + (hi - mid - 1) / 2]);
}

/* First of what is left below the node in the middle of lo..hi-1. */
static int32_t
first_below(const struct skyline *s, int32_t lo, int32_t hi)
{
	return lo < hi ? s->node[lo + (hi - lo) / 2].first : NONE;
}

static void
renew_node(struct skyline *s, int32_t lo, int32_t hi)
{
	int32_t mid = lo + (hi - lo) / 2;
	struct box_node *k = &s->node[mid];

	k->first = s->placed[k->box] ? NONE : s->rank[k->box];
	k->first = min32(k->first, min32(first_below(s, lo, mid),
	                                 first_below(s, mid + 1, hi)));
}

static void
renew_all(struct skyline *s, int32_t lo, int32_t hi)
{
	int32_t mid = lo + (hi - lo) / 2;

	if (lo >= hi)
		return;
	renew_all(s, lo, mid);
	renew_all(s, mid + 1, hi);
	renew_node(s, lo, hi);
}

/* Renew the nodes above the one at `at`, and itself. */
static void
renew_path(struct skyline *s, int32_t lo, int32_t hi, int32_t at)
{
	int32_t mid = lo + (hi - lo) / 2;

	if (at < mid)
		renew_path(s, lo, mid, at);
	else if (at > mid)
		renew_path(s, mid + 1, hi, at);
	renew_node(s, lo, hi);
	s->work--;
}

static void
find_first_box(struct skyline *s, int32_t lo, int32_t hi, struct query *q)
{
	int32_t mid = lo + (hi - lo) / 2, x;
	const struct box_node *k = &s->node[mid];

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
	find_first_box(s, lo, mid, q);
	find_first_box(s, mid + 1, hi, q);
}

int32_t
skyline_fitting(struct skyline *s, int32_t from, int32_t to)
{
	struct query q = { from, NONE, 0, to, NONE };

	if (s->walls) {                 /* touching both */
		q.max_from = from;
		q.min_to = to;
		find_first_box(s, 0, s->p->n, &q);
	}
	if (s->walls && q.first == NONE) {      /* the left, or the right */
		q.min_to = 0;
		find_first_box(s, 0, s->p->n, &q);
		q.max_from = NONE;
		q.min_to = to;
		find_first_box(s, 0, s->p->n, &q);
		q.min_to = 0;
	}
	if (q.first == NONE)
		find_first_box(s, 0, s->p->n, &q);
	return q.first == NONE ? -1 : s->order[q.first];
}

/* ---- the tree of sections ---- */

/* Add to sections from..to-1 of those below node i, which are lo..hi-1. */
static void
add_bytes(struct skyline *s, int32_t i, int32_t lo, int32_t hi, int32_t from,
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
most_bytes(const struct skyline *s, int32_t i, int32_t lo, int32_t hi,
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

/* ---- for the skyline ---- */

void
skyline_build(struct skyline *s)
{
	for (int32_t i = 0; i < s->p->n; i++)
		s->node[i].box = i;
	build_tree(s, 0, s->p->n, false);
}

void
skyline_renew(struct skyline *s)
{
	renew_all(s, 0, s->p->n);
}

void
skyline_mark_placed(struct skyline *s, int32_t x)
{
	s->placed[x] = true;
	renew_path(s, 0, s->p->n, s->node_of[x]);
	add_bytes(s, 1, 0, s->leaves, from_of(s, x), to_of(s, x),
	          -s->p->box[x].size);
}

void
skyline_count(struct skyline *s)
{
	memset(s->most, 0, 2 * (size_t)s->leaves * sizeof *s->most);
	memset(s->add, 0, 2 * (size_t)s->leaves * sizeof *s->add);
	for (int32_t x = 0; x < s->p->n; x++)
		add_bytes(s, 1, 0, s->leaves, from_of(s, x), to_of(s, x),
		          s->p->box[x].size);
}

int64_t
skyline_most(const struct skyline *s, int32_t from, int32_t to)
{
	return most_bytes(s, 1, 0, s->leaves, from, to);
}
