/* Packing for a stage of a pipeline: slots of micro-batches, see pack.h.
 *
 * what    K micro-batches each keep S bytes across the boundary.  The one that
 *         runs has A bytes in memory, of which S are its slot.  The least that
 *         can do is (K - 1) S + A, and the bytes of slots with other contents
 * method  A slot is a stack: what dies first lies on top.  Forward fills the
 *         stack from below and backward frees it from above, so other buffers
 *         fit on top of it, largest first.  Those that do not fit lie behind
 *         the slots, packed as without slots.  If no buffer needs the slot to
 *         reach the bound, all lie behind.
 * cost    MOVED * n, and two packings
 */
#include "passes/place/pack.h"

#include <stdlib.h>
#include <string.h>

/* Buffers that are looked at for a place in the slot. */
enum { MOVED = 1000 };

static bool
crosses(const struct buffer *b, int64_t boundary)
{
	return b->lower <= boundary && b->upper > boundary + 1;
}

int64_t
pack_slot_bytes(const struct buffer *b, size_t n, int64_t boundary)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += crosses(&b[i], boundary) ? b[i].size : 0;
	return sum;
}

int64_t
pack_slots_bound(const struct buffer *b, size_t n, struct pack_slots slots,
                 Arena *scratch)
{
	int64_t others = slots.n > 1 ? slots.n - 1 : 0;

	return pack_bound(b, n, scratch) + slots.others
		+ others * pack_slot_bytes(b, n, slots.boundary);
}

/* ---- in the slot ---- */

/* What has a place in the slot, by falling end; and what has none. */
struct slot {
	struct buffer **in, **out;
	size_t nin, nout;
	int64_t bytes;
};

/* Of equal ones by begin and size: places do not depend on the order in which
 * buffers are given. */
static int
by_begin(const struct buffer *a, const struct buffer *b)
{
	if (a->lower != b->lower)
		return a->lower < b->lower ? -1 : 1;
	if (a->upper != b->upper)
		return a->upper < b->upper ? -1 : 1;
	return (a->size < b->size) - (a->size > b->size);
}

static int
by_falling_death(const void *p, const void *q)
{
	const struct buffer *a = *(struct buffer *const *)p;
	const struct buffer *b = *(struct buffer *const *)q;

	if (a->upper != b->upper)
		return a->upper > b->upper ? -1 : 1;
	return by_begin(a, b);
}

static int
by_falling_size(const void *p, const void *q)
{
	const struct buffer *a = *(struct buffer *const *)p;
	const struct buffer *b = *(struct buffer *const *)q;

	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return by_begin(a, b);
}

static int64_t
end_of(const struct buffer *b)
{
	return b->offset + b->size;
}

static struct slot
slot_new(struct buffer *b, size_t n, int64_t boundary, Arena *scratch)
{
	struct slot s = { .in = arena_array(scratch, n + 1, sizeof *s.in),
		.out = arena_array(scratch, n + 1, sizeof *s.out) };

	for (size_t i = 0; i < n; i++)
		if (crosses(&b[i], boundary))
			s.in[s.nin++] = &b[i];
		else if (b[i].size > 0 && b[i].lower < b[i].upper)
			s.out[s.nout++] = &b[i];
	qsort(s.in, s.nin, sizeof *s.in, by_falling_death);
	for (size_t i = 0; i < s.nin; i++) {
		s.in[i]->offset = s.bytes;
		s.bytes += s.in[i]->size;
	}
	for (size_t i = 0; i < s.nin / 2; i++) {
		struct buffer *t = s.in[i];

		s.in[i] = s.in[s.nin - 1 - i];
		s.in[s.nin - 1 - i] = t;
	}
	return s;
}

/* The highest place that is free as long as b lives; -1: there is none. */
static int64_t
find_gap(const struct slot *s, const struct buffer *b)
{
	int64_t top = s->bytes;

	for (size_t i = 0; i < s->nin && top >= b->size; i++) {
		const struct buffer *x = s->in[i];

		if (x->lower >= b->upper || b->lower >= x->upper)
			continue;
		if (top - end_of(x) >= b->size)
			break;
		top = x->offset < top ? x->offset : top;
	}
	return top >= b->size ? top - b->size : -1;
}

static void
insert_in_slot(struct slot *s, struct buffer *b)
{
	size_t i = s->nin++;

	for (; i > 0 && end_of(s->in[i - 1]) < end_of(b); i--)
		s->in[i] = s->in[i - 1];
	s->in[i] = b;
}

static void
fill_slot(struct slot *s)
{
	size_t left = 0;

	qsort(s->out, s->nout, sizeof *s->out, by_falling_size);
	for (size_t i = 0; i < s->nout; i++) {
		struct buffer *b = s->out[i];
		int64_t at = i < MOVED ? find_gap(s, b) : -1;

		if (at < 0) {
			s->out[left++] = b;
			continue;
		}
		b->offset = at;
		insert_in_slot(s, b);
	}
	s->nout = left;
}

/* ---- behind the slots ---- */

static struct buffer *
copies(const struct slot *s, Arena *scratch)
{
	struct buffer *b = arena_array(scratch, s->nout + 1, sizeof *b);

	for (size_t i = 0; i < s->nout; i++)
		b[i] = *s->out[i];
	return b;
}

/* Pack what has no place in the slot, from `below` on; the end of that. */
static int64_t
pack_behind(const struct slot *s, int64_t below, struct pack_limit limit,
            Arena *scratch)
{
	struct buffer *b = copies(s, scratch);
	int64_t height;

	limit.enough = limit.enough > below ? limit.enough - below : 0;
	if (limit.most > 0)
		limit.most = limit.most > below ? limit.most - below : 1;
	height = pack_within(b, s->nout, &limit, scratch).height;
	for (size_t i = 0; i < s->nout; i++)
		s->out[i]->offset = b[i].offset + below;
	return below + height;
}

int64_t
pack_with_slots(struct buffer *b, size_t n, struct pack_slots slots,
                const struct pack_limit *limit, Arena *scratch)
{
	int64_t below, bound, height;
	struct slot all, s;

	if (slots.n <= 1 && !slots.others)
		return pack_within(b, n, limit, scratch).height;
	slots.n = slots.n > 1 ? slots.n : 1;
	for (size_t i = 0; i < n; i++)
		b[i].offset = 0;
	all = slot_new(b, n, slots.boundary, scratch);
	below = all.bytes * slots.n + slots.others;
	bound = below + pack_bound(copies(&all, scratch), all.nout, scratch);
	if (bound == pack_slots_bound(b, n, slots, scratch))
		return pack_behind(&all, below, *limit, scratch);
	s = slot_new(b, n, slots.boundary, scratch);
	fill_slot(&s);
	height = pack_behind(&s, below, *limit, scratch);
	return height <= bound ? height
		: pack_behind(&all, below, *limit, scratch);
}
