/* Packing: map times to sections, split into parts, run the solvers in turn.
 *
 * what    offsets for buffers with fixed lifetimes, as low as possible
 * method  1. A section is a time at which some buffer begins and before the
 *            next of which some buffer ends: no other time sees more buffers
 *            at once.  Lifetimes become ranges of sections.
 *         2. Where no buffer lives on from one section to the next the
 *            problem falls into parts.  None needs to be lower than the live
 *            bound of all, or than the highest part before it.
 *         3. Each part: best fit on a skyline (pack_skyline.c), and, where
 *            that leaves a gap, exact search (pack_exact.c).
 * cost    O(n log n), and what is spent on gaps, which counted work limits
 */
#include "passes/place/pack_part.h"

#include <stdlib.h>
#include <string.h>

/* Steps of the first exact search, and heights to aim at in one round; steps of
 * attempts on the skyline, and of those for a height that is given. */
enum {
	FIRST_EFFORT = 6000000, GOALS = 4,
	SKYLINE_WORK = 4000000, TRIAL_WORK = 1500000
};

/* ---- sections ---- */

struct pack_item {
	struct pack_box box;
	int64_t lower, upper;
	size_t index;                   /* of the caller's */
};

struct problem {
	struct pack_item *item;         /* by from, to, size */
	int32_t n, nsection;
	int64_t bound;
	Arena *arena;
};

static int
by_time(const void *p, const void *q)
{
	const int64_t *a = p, *b = q;

	return (*a > *b) - (*a < *b);
}

static int
by_box(const void *p, const void *q)
{
	const struct pack_item *a = p, *b = q;

	if (a->box.from != b->box.from)
		return a->box.from < b->box.from ? -1 : 1;
	if (a->box.to != b->box.to)
		return a->box.to < b->box.to ? -1 : 1;
	if (a->box.size != b->box.size)
		return a->box.size > b->box.size ? -1 : 1;
	return a->index < b->index ? -1 : 1;
}

/* How many of the sorted numbers are below x. */
static int32_t
time_index(const int64_t *v, int32_t n, int64_t x)
{
	int32_t lo = 0;

	while (lo < n) {
		int32_t mid = lo + (n - lo) / 2;

		if (v[mid] < x)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

/* Begins of sections to begin[]; returns how many there are. */
static int32_t
find_sections(int64_t *begin, int64_t *end, int32_t n)
{
	int32_t ns = 0, e = 0;

	qsort(begin, (size_t)n, sizeof *begin, by_time);
	qsort(end, (size_t)n, sizeof *end, by_time);
	for (int32_t i = 0; i < n; i++) {
		while (e < n && end[e] <= begin[i])
			e++;
		if (i + 1 == n || end[e] <= begin[i + 1])
			begin[ns++] = begin[i];
	}
	return ns;
}

static void
read_problem(struct problem *p, const struct buffer *b, size_t n)
{
	int64_t *begin = arena_array(p->arena, n + 1, sizeof *begin);
	int64_t *end = arena_array(p->arena, n + 1, sizeof *end);
	int64_t *delta, live = 0;

	p->item = arena_array(p->arena, n + 1, sizeof *p->item);
	for (size_t i = 0; i < n; i++) {
		if (b[i].size <= 0 || b[i].lower >= b[i].upper)
			continue;
		begin[p->n] = b[i].lower;
		end[p->n] = b[i].upper;
		p->item[p->n++] = (struct pack_item){ .lower = b[i].lower,
			.upper = b[i].upper, .index = i,
			.box.size = b[i].size };
	}
	p->nsection = find_sections(begin, end, p->n);
	delta = arena_array(p->arena, (size_t)p->nsection + 1, sizeof *delta);
	for (int32_t i = 0; i < p->n; i++) {
		struct pack_item *t = &p->item[i];

		t->box.from = time_index(begin, p->nsection, t->lower);
		t->box.to = time_index(begin, p->nsection, t->upper);
		delta[t->box.from] += t->box.size;
		delta[t->box.to] -= t->box.size;
	}
	for (int32_t k = 0; k < p->nsection; k++) {
		live += delta[k];
		if (live > p->bound)
			p->bound = live;
	}
	if (p->n)
		qsort(p->item, (size_t)p->n, sizeof *p->item, by_box);
}

int64_t
pack_bound(const struct buffer *b, size_t n, Arena *scratch)
{
	struct problem p = { .arena = scratch };

	read_problem(&p, b, n);
	return p.bound;
}

/* ---- parts ---- */

/* Boxes from item i on that hang together; returns the item behind them. */
static int32_t
cut_part(const struct problem *p, int32_t i, struct pack_part *part)
{
	int32_t first = p->item[i].box.from, end = first, j = i;
	struct pack_box *box;
	int64_t *sum, live = 0;

	for (; j < p->n && (j == i || p->item[j].box.from < end); j++)
		if (p->item[j].box.to > end)
			end = p->item[j].box.to;
	*part = (struct pack_part){ .n = j - i, .nsection = end - first,
	                            .best = PACK_NO_HEIGHT, .arena = p->arena };
	box = arena_array(p->arena, (size_t)part->n, sizeof *box);
	sum = arena_array(p->arena, (size_t)part->nsection + 1, sizeof *sum);
	part->at = arena_array(p->arena, (size_t)part->n, sizeof *part->at);
	for (int32_t k = 0; k < part->n; k++) {
		box[k] = p->item[i + k].box;
		box[k].from -= first;
		box[k].to -= first;
		sum[box[k].from] += box[k].size;
		sum[box[k].to] -= box[k].size;
	}
	part->box = box;
	for (int32_t k = 0; k < part->nsection; k++) {
		live += sum[k];
		if (live > part->bound)
			part->bound = live;
	}
	return j;
}

/* Look for lower packings by exact search; what is proven not to be beaten.
 * Rounds with growing effort, each from the target upwards, halving the way to
 * the best. */
static int64_t
search_exactly(struct pack_part *p, int64_t *work)
{
	int64_t proven = p->bound, low = p->target, effort = FIRST_EFFORT;

	if (p->n > PACK_EXACT_MAX)
		return proven;
	for (; *work > 0 && !part_done(p); effort *= 4) {
		int64_t goal = low;

		for (int k = 0; k < p->goals && *work > 0; k++) {
			int64_t share = effort < *work ? effort : *work;
			enum pack_answer a;

			*work -= share;
			a = pack_exact(p, goal, &share);
			*work += share;
			if (a == PACK_NONE)
				proven = low = goal + 1;
			if (low >= p->best || part_done(p))
				return proven;
			goal = goal < low ? low : goal + (p->best - goal) / 2;
			if (goal >= p->best)
				goal = p->best - 1;
		}
	}
	return proven;
}

/* As low as can be found; returns what is proven not to be beaten. */
static int64_t
pack_one_part(struct pack_part *p, int64_t *work)
{
	pack_skyline(p);
	if (part_done(p) || *work <= 0)
		return p->bound;
	return search_exactly(p, work);
}

struct pack_result
pack_within(struct buffer *b, size_t n, const struct pack_limit *limit,
            Arena *scratch)
{
	struct problem p = { .arena = scratch };
	struct pack_result r = { 0 };
	int64_t work = limit->work;

	for (size_t i = 0; i < n; i++) {
		b[i].offset = 0;
		if (b[i].lower >= b[i].upper && b[i].size > r.height)
			r.height = b[i].size;
	}
	read_problem(&p, b, n);
	r.bound = p.bound;
	r.least = p.bound > r.height ? p.bound : r.height;
	if (limit->most > 0 && r.least > limit->most) {
		r.height = r.least;
		return r;
	}
	for (int32_t i = 0, j; i < p.n; i = j) {
		struct pack_part part;
		int64_t least;

		j = cut_part(&p, i, &part);
		part.target = r.height > p.bound ? r.height : p.bound;
		part.goals = GOALS;
		part.work = limit->most > 0 ? TRIAL_WORK : SKYLINE_WORK;
		if (part.target < limit->enough) {
			part.target = limit->enough;
			part.goals = 1;
		}
		part.stop = limit->stop;
		least = pack_one_part(&part, &work);
		if (least > r.least)
			r.least = least;
		if (part.best > r.height)
			r.height = part.best;
		for (int32_t k = i; k < j; k++)
			b[p.item[k].index].offset = part.at[k - i];
	}
	r.optimal = r.height == r.least;
	return r;
}

struct pack_result
pack_buffers(struct buffer *b, size_t n, int64_t work, Arena *scratch)
{
	struct pack_limit limit = { .work = work };

	return pack_within(b, n, &limit, scratch);
}
