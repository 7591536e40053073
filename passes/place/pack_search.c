/* The search of exact packing: is there a placement within the capacity?
 *
 * what    depth-first search over canonical packings, as MiniMalloc does
 *         (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
 *         Hardware-Accelerated Machine Learning", ASPLOS 2023)
 * method  Take the packing with the least sum of size * weight * offset,
 *         where weights fall with the rank of a buffer.  Every buffer in it
 *         lies at 0 or on top of one that it meets, and none could move down
 *         while the others stay.  It is built upwards: at the lowest place
 *         that is left, take a section (a time between two changes) and try
 *         every buffer that could fill it there, then none of them.  The
 *         section with the fewest candidates, or with the least room to
 *         spare, comes first, which is what keeps the tree small.
 *         A node is given up when
 *         - some buffer would fit whole beneath the lowest place;
 *         - in a section the lowest place left plus all that is not placed
 *           there exceeds the capacity.  A buffer that does not take its own
 *           place must still be lifted by one that it meets: that raises the
 *           lowest place that it can take;
 *         - an identical buffer with a better rank is not placed yet, or two
 *           buffers on top of each other had better trade places.
 *         Where no buffer crosses a moment any more the problem falls into
 *         parts, and a part without a packing ends the whole node.
 * cost    a node: sections crossed by what is not placed
 */
#include "passes/place/pack_search.h"

/* Lowest place that t can still take; INT64_MAX: none. */
static int64_t
lowest_place(const struct pack_search *s, const struct unplaced *p,
             const struct search_item *t)
{
	int64_t low = INT64_MAX;

	if (t->at >= p->floor && t->at != t->barred)
		return t->at;
	for (int32_t k = 0; k < t->nmeet; k++) {
		const struct search_item *u = &s->item[t->meet[k]];
		int64_t at = u->at > p->floor ? u->at : p->floor;

		if (!u->placed && at + u->size < low)
			low = at + u->size;
	}
	return low;
}

/* What is left of a section without room shall be placed earlier. */
static void
put_blame(struct pack_search *s, const struct unplaced *p, int32_t section)
{
	for (int32_t j = 0; j < p->n; j++) {
		struct search_item *t = &s->item[p->list[j]];

		if (t->from <= section && section < t->to)
			t->blame++;
	}
}

/* Whether each section has room for what is left of it. */
static bool
has_room(struct pack_search *s, const struct unplaced *p, int32_t first,
         int32_t last)
{
	for (int32_t k = first; k < last; k++)
		s->low[k] = INT64_MAX;
	for (int32_t j = 0; j < p->n; j++) {
		struct search_item *t = &s->item[p->list[j]];
		int64_t at = lowest_place(s, p, t);

		t->lowest = at;
		if (at > s->capacity - t->size)
			return false;
		for (int32_t k = t->from; k < t->to; k++)
			s->low[k] = at < s->low[k] ? at : s->low[k];
		s->work -= t->to - t->from + 4;
	}
	s->work -= last - first;
	for (int32_t k = first; k < last; k++)
		if (s->rest[k] && s->low[k] + s->rest[k] > s->capacity) {
			put_blame(s, p, k);
			return false;
		}
	return true;
}

static void
place_item(struct pack_search *s, struct search_item *t, int64_t *keep)
{
	int64_t top = t->at + t->size;

	t->offset = t->at;
	t->placed = true;
	for (int32_t k = t->from; k < t->to; k++) {
		s->rest[k] -= t->size;
		s->cross[k] -= k + 1 < t->to;
	}
	for (int32_t k = 0; k < t->nmeet; k++) {
		struct search_item *u = &s->item[t->meet[k]];

		keep[k] = u->at;
		if (!u->placed && u->at < top)
			u->at = top;
	}
	s->work -= t->to - t->from + t->nmeet;
}

static void
take_back(struct pack_search *s, struct search_item *t, const int64_t *keep)
{
	t->placed = false;
	for (int32_t k = t->from; k < t->to; k++) {
		s->rest[k] += t->size;
		s->cross[k] += k + 1 < t->to;
	}
	for (int32_t k = 0; k < t->nmeet; k++)
		s->item[t->meet[k]].at = keep[k];
}

/* Whether t, placed on top of some buffer within its own life, should trade
 * places with it: the better rank belongs below. */
static bool
may_swap(const struct pack_search *s, const struct search_item *t)
{
	const struct search_item *below = NULL;
	int64_t top = 0;

	for (int32_t k = 0; k < t->nmeet; k++) {
		const struct search_item *u = &s->item[t->meet[k]];

		if (!u->placed)
			continue;
		if (u->offset + u->size == t->at && !below) {
			below = u;
			continue;
		}
		if (u->offset + u->size > top)
			top = u->offset + u->size;
	}
	return below && below > t && below->from >= t->from
		&& below->to <= t->to && top <= below->offset;
}

/* The section to fill next, among those with the lowest place: the one with
 * the least room to spare, and then the fewest that could fill it, or the
 * other way round. */
static int32_t
find_section(struct pack_search *s, const struct unplaced *p, int32_t first,
             int32_t last, int64_t level)
{
	int64_t least = INT64_MAX;
	int32_t best = -1, fewest = INT32_MAX;

	for (int32_t k = first; k < last; k++)
		s->count[k] = 0;
	for (int32_t j = 0; j < p->n; j++) {
		const struct search_item *t = &s->item[p->list[j]];

		if (t->lowest != level)
			continue;
		for (int32_t k = t->from; k < t->to; k++)
			s->count[k]++;
		s->work -= t->to - t->from;
	}
	for (int32_t k = first; k < last; k++) {
		int64_t room = s->capacity - s->rest[k];
		int32_t n = s->count[k];
		bool better;

		if (!n)
			continue;
		better = s->few_first
			? n < fewest || (n == fewest && room < least)
			: room < least || (room == least && n < fewest);
		if (better) {
			best = k;
			least = room;
			fewest = n;
		}
	}
	s->work -= last - first;
	return best;
}

/* Leave room below in a section: none of these takes the place. */
static bool
search_gap(struct pack_search *s, struct unplaced p, const int32_t *next,
           int32_t n)
{
	bool found;

	for (int32_t j = 0; j < n; j++) {
		struct search_item *t = &s->item[next[j]];

		p.keep[j] = t->barred;
		t->barred = t->at;
	}
	p.keep += n;
	found = pack_search(s, p);
	for (int32_t j = 0; j < n; j++)
		s->item[next[j]].barred = p.keep[j - n];
	return found;
}

static void
find_span(const struct pack_search *s, const struct unplaced *p, int32_t *first,
          int32_t *last)
{
	*first = INT32_MAX;
	*last = 0;
	for (int32_t j = 0; j < p->n; j++) {
		const struct search_item *t = &s->item[p->list[j]];

		*first = t->from < *first ? t->from : *first;
		*last = t->to > *last ? t->to : *last;
	}
}

/* One part that does not fall into smaller ones. */
static bool
search_part(struct pack_search *s, struct unplaced p)
{
	int64_t level = INT64_MAX, limit = INT64_MAX;
	int32_t *next = p.stack, n = 0, first, last, k;

	s->work -= 4 * p.n;
	if (s->work < 0 || s->stack_end - p.stack < 3 * s->n
	    || s->keep_end - p.keep < 3 * s->n) {
		s->cut = true;
		return false;
	}
	find_span(s, &p, &first, &last);
	if (!has_room(s, &p, first, last))
		return false;
	for (int32_t j = 0; j < p.n; j++) {
		const struct search_item *t = &s->item[p.list[j]];

		level = t->lowest < level ? t->lowest : level;
		limit = t->at + t->size < limit ? t->at + t->size : limit;
	}
	if (limit <= level)
		return false;
	k = find_section(s, &p, first, last, level);
	for (int32_t j = 0; j < p.n; j++) {
		const struct search_item *t = &s->item[p.list[j]];

		if (t->from <= k && k < t->to && t->lowest == level)
			next[n++] = p.list[j];
	}
	p.stack += n;
	for (int32_t c = 0; c < n && !s->cut; c++) {
		struct search_item *t = &s->item[next[c]];
		struct unplaced q = { p.stack, 0, p.stack + p.n,
		                      p.keep + t->nmeet, level };

		if (t->at != level || (t->twin >= 0
		    && !s->item[t->twin].placed) || may_swap(s, t))
			continue;
		for (int32_t j = 0; j < p.n; j++)
			if (p.list[j] != next[c])
				q.list[q.n++] = p.list[j];
		place_item(s, t, p.keep);
		if (pack_search(s, q))
			return true;
		take_back(s, t, p.keep);
		/* nothing left that it could have helped or hindered */
		if (q.n == 0)
			return false;
	}
	p.floor = level;
	return !s->cut && level + s->rest[k] < s->capacity
		&& search_gap(s, p, next, n);
}

/* What lies in sections from..to-1, in order of rank. */
static struct unplaced
cut_out(const struct pack_search *s, struct unplaced p, int32_t from,
        int32_t to)
{
	int32_t n = 0;

	for (int32_t j = 0; j < p.n; j++) {
		int32_t i = p.list[j];

		if (s->item[i].from >= from && s->item[i].to <= to)
			p.stack[n++] = i;
	}
	p.list = p.stack;
	p.stack += n;
	p.n = n;
	return p;
}

/* Take back a part whose packing was found before another part failed. */
static void
undo_part(struct pack_search *s, const struct unplaced *q, const int64_t *at)
{
	for (int32_t j = 0; j < q->n; j++) {
		struct search_item *t = &s->item[q->list[j]];

		t->placed = false;
		t->at = at[j];
		for (int32_t k = t->from; k < t->to; k++) {
			s->rest[k] += t->size;
			s->cross[k] += k + 1 < t->to;
		}
	}
}

/* Search the part of what is left that ends with the first section, from
 * `begin` on, which nothing crosses; then the others. */
static bool
search_split(struct pack_search *s, struct unplaced p, int32_t begin,
             int32_t last)
{
	struct unplaced q;
	int32_t end = begin;

	do {
		while (end + 1 < last && s->cross[end])
			end++;
		end++;
		q = cut_out(s, p, begin, end);
		begin = end;
	} while (q.n == 0 && end < last);
	if (q.n == 0)
		return true;
	for (int32_t j = 0; j < q.n; j++)
		p.keep[j] = s->item[q.list[j]].at;
	q.keep = p.keep + q.n;
	if (!search_part(s, q))
		return false;
	p.stack = q.stack;
	p.keep = q.keep;
	if (end >= last || search_split(s, p, end, last))
		return true;
	undo_part(s, &q, q.keep - q.n);
	return false;
}

/* Falls into parts, then searches each. */
bool
pack_search(struct pack_search *s, struct unplaced p)
{
	int32_t first, last, nsplit = 0;

	if (p.n == 0)
		return true;
	find_span(s, &p, &first, &last);
	for (int32_t k = first; k + 1 < last; k++)
		nsplit += !s->cross[k];
	if (nsplit == 0)
		return search_part(s, p);
	return search_split(s, p, first, last);
}

