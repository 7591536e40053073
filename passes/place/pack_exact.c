/* Exact packing: is there a placement no higher than a given capacity?
 *
 * what    turns of the search of pack_search.c
 * method  Several ranks, with growing disorder, take turns with growing
 *         limits of work: times to an answer have a heavy tail.  Buffers of
 *         sections that had no room in one turn rank higher in the next.
 * cost    counted steps of the search
 */
#include "passes/place/pack_search.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_LIMIT = 400000, RANKS = 5 };

#define FADE 0.25

/* ---- preparation ---- */

static void
find_totals(struct pack_search *s)
{
	for (int32_t i = 0; i < s->n; i++) {
		struct search_item *t = &s->item[i];

		for (int32_t k = t->from; k < t->to; k++) {
			s->rest[k] += t->size;
			s->cross[k] += k + 1 < t->to;
		}
	}
	for (int32_t i = 0; i < s->n; i++) {
		struct search_item *t = &s->item[i];

		for (int32_t k = t->from; k < t->to; k++)
			if (s->rest[k] > t->total)
				t->total = s->rest[k];
	}
}

/* A number in [0, 1) that is the same for equal buffers. */
static double
noise(const struct search_item *t, uint64_t salt)
{
	uint64_t x = salt * 0x9e3779b97f4a7c15u;

	x ^= (uint64_t)t->from << 40 ^ (uint64_t)t->to << 20
		^ (uint64_t)t->size * 0xbf58476d1ce4e5b9u;
	for (int k = 0; k < 2; k++) {
		x ^= x >> 31;
		x *= 0x94d049bb133111ebu;
	}
	return (double)(x >> 11) * 0x1p-53;
}

/* Five ways to rank; after the first round with growing disorder. */
static void
set_keys(struct search_item *t, int turn)
{
	double width = t->to - t->from, size = (double)t->size;
	double total = (double)t->total, area = width * size;
	double key[RANKS][3] = {
		{ total, area, width }, { width, area, total },
		{ total, width, area }, { area, width, total },
		{ size, width, total },
	};
	int round = turn / RANKS;

	memcpy(t->key, key[turn % RANKS], sizeof t->key);
	for (int k = 0; k < 3 && round > 0; k++)
		t->key[k] *= 1 + (0.1 + 0.1 * (round % 8))
			* noise(t, (uint64_t)(turn * 3 + k));
}

static int
compare_keys(double x, double y)
{
	return x > y ? -1 : x < y;
}

/* Equal buffers have equal keys and so come to lie side by side. */
static int
by_rank(const void *p, const void *q)
{
	const struct search_item *a = p, *b = q;
	int c = 0;

	for (int k = 0; k < 3 && !c; k++)
		c = compare_keys(a->key[k], b->key[k]);
	if (!c)
		c = compare_keys((double)a->size, (double)b->size);
	if (!c)
		c = compare_keys(b->from, a->from);
	if (!c)
		c = compare_keys(a->to, b->to);
	return c ? c : compare_keys(b->index, a->index);
}

static void
find_meets(struct pack_search *s)
{
	int32_t *list = s->meet;

	for (int32_t i = 0; i < s->n; i++, list += s->n) {
		struct search_item *a = &s->item[i];
		int32_t n = 0;

		for (int32_t j = 0; j < s->n; j++)
			if (j != i && s->item[j].from < a->to
			    && a->from < s->item[j].to)
				list[n++] = j;
		a->nmeet = n;
		a->meet = list;
		a->twin = -1;
		if (i > 0 && a[-1].from == a->from && a[-1].to == a->to
		    && a[-1].size == a->size)
			a->twin = i - 1;
	}
}

/* ---- turns ---- */

/* Room for the lists of one path; a path that needs more is cut. */
static size_t
path_room(const struct pack_search *s)
{
	size_t n = (size_t)s->n;

	return 8 * n * n + 64 * n + 64;
}

static bool
search_round(struct pack_search *s, int how, int64_t limit, int32_t *stack,
             int64_t *keep)
{
	struct unplaced p = { .floor = 0, .list = stack, .n = s->n,
	                      .stack = stack + s->n, .keep = keep };
	double blame = 0;

	for (int32_t i = 0; i < s->n; i++)
		blame += s->item[i].blame / s->n;
	for (int32_t i = 0; i < s->n; i++) {
		struct search_item *t = &s->item[i];

		set_keys(t, how);
		for (int k = 0; k < 3 && blame > 0; k++)
			t->key[k] *= 1 + t->blame / blame;
		t->blame *= FADE;
	}
	qsort(s->item, (size_t)s->n, sizeof *s->item, by_rank);
	find_meets(s);
	for (int32_t i = 0; i < s->n; i++) {
		s->item[i].at = 0;
		s->item[i].barred = -1;
		stack[i] = i;
	}
	s->few_first = how % 2 == 1;
	s->work = limit;
	s->cut = false;
	return pack_search(s, p);
}

static void
allocate_search(struct pack_search *s, const struct pack_part *p)
{
	size_t n = (size_t)p->n, ns = (size_t)p->nsection + 1;
	Arena *a = p->arena;

	s->item = arena_array(a, n + 1, sizeof *s->item);
	s->meet = arena_array(a, n * n + 1, sizeof *s->meet);
	s->rest = arena_array(a, ns, sizeof *s->rest);
	s->low = arena_array(a, ns, sizeof *s->low);
	s->count = arena_array(a, ns, sizeof *s->count);
	s->cross = arena_array(a, ns, sizeof *s->cross);
}

/* Turns until one ends, or the work does: PACK_FOUND with every item's offset
 * or another answer. */
static enum pack_answer
take_turns(struct pack_search *s, const struct pack_part *p, int64_t *work)
{
	size_t room = path_room(s);
	int32_t *stack = arena_array(p->arena, room, sizeof *stack);
	int64_t *keep = arena_array(p->arena, room, sizeof *keep);
	int64_t limit = FIRST_LIMIT;

	s->stack_end = stack + room;
	s->keep_end = keep + room;
	for (int k = 0; *work > 0; k++) {
		if (watch_off(p->stop))
			break;
		if (limit > *work)
			limit = *work;
		if (search_round(s, k, limit, stack, keep)) {
			*work -= limit;
			return PACK_FOUND;
		}
		/* what was placed when the work ran out was taken back */
		*work -= limit;
		if (!s->cut)
			return PACK_NONE;
		if (k % (3 * RANKS) == 3 * RANKS - 1)
			limit *= 2;
	}
	return PACK_CUT;
}

enum pack_answer
pack_exact(struct pack_part *p, int64_t capacity, int64_t *work)
{
	struct pack_search s = { .capacity = capacity, .n = p->n,
	                         .nsection = p->nsection };
	enum pack_answer answer;

	if (p->bound > capacity)
		return PACK_NONE;
	if (p->n > PACK_EXACT_MAX)
		return PACK_CUT;
	allocate_search(&s, p);
	for (int32_t i = 0; i < s.n; i++)
		s.item[i] = (struct search_item){ .from = p->box[i].from,
			.to = p->box[i].to, .size = p->box[i].size,
			.index = i };
	find_totals(&s);
	answer = take_turns(&s, p, work);
	if (answer != PACK_FOUND)
		return answer;
	p->best = 0;
	for (int32_t i = 0; i < s.n; i++) {
		const struct search_item *t = &s.item[i];

		p->at[t->index] = t->offset;
		if (t->offset + t->size > p->best)
			p->best = t->offset + t->size;
	}
	return PACK_FOUND;
}
