/* Packing for a stage of a pipeline: slots of micro-batches, see pack.h.
 *
 * what    K micro-batches each keep S bytes across the boundary.  The one that
 *         runs has A bytes in memory, of which S are its slot.  The least that
 *         can do is (K - 1) S + A, and the bytes of slots with other contents;
 *         with a second boundary the sum of (K - 1) S over the three pools + A
 * method  A slot is a stack: what dies first lies on top.  Forward fills the
 *         stack from below and backward frees it from above, so other buffers
 *         fit on top of it, largest first.  Those that do not fit lie behind
 *         the slots, packed as without slots.  If no buffer needs the slot to
 *         reach the bound, all lie behind.
 *         A buffer fits into a slot only if the micro-batch has it as long as
 *         the buffer lives: those of POOL_FIRST up to the second boundary,
 *         those of POOL_SECOND from the first one on.
 * cost    MOVED * n, and two packings
 */
#include "passes/place/pack.h"

#include <stdlib.h>
#include <string.h>

/* Buffers that are looked at for a place in the slot. */
enum { MOVED = 1000 };

static enum pack_pool
pool_of(const struct buffer *b, const struct pack_slots *slots)
{
	return pack_pool_of(slots, b->lower, b->upper - 1);
}

void
pack_slot_bytes(const struct buffer *b, size_t n, struct pack_slots slots,
                int64_t bytes[POOLS])
{
	memset(bytes, 0, POOLS * sizeof *bytes);
	for (size_t i = 0; i < n; i++) {
		enum pack_pool pool = pool_of(&b[i], &slots);

		if (pool != POOL_NONE)
			bytes[pool] += b[i].size;
	}
}

int64_t
pack_other_slots(const struct pack_slots *slots, const int64_t bytes[POOLS])
{
	int64_t sum = slots->others;

	for (int p = 0; p < POOLS; p++)
		sum += (pack_slots_of(slots, p) - 1) * bytes[p];
	return sum;
}

int64_t
pack_slots_bound(const struct buffer *b, size_t n, struct pack_slots slots,
                 Arena *scratch)
{
	int64_t bytes[POOLS];

	pack_slot_bytes(b, n, slots, bytes);
	return pack_bound(b, n, scratch) + pack_other_slots(&slots, bytes);
}

/* ---- in the slot ---- */

/* What has a place in a slot of a pool, by falling end. */
struct slot {
	struct buffer **in;
	size_t nin;
	int64_t at, bytes;              /* of the first slot */
};

/* The first slot of each pool, and what has no place in any. */
struct slots {
	struct pack_slots of;
	struct slot slot[POOLS];
	struct buffer **out;
	size_t nout;
	int64_t bytes;                  /* of all slots of all pools */
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

/* A stack from `at` on. */
static void
stack_slot(struct slot *s, int64_t at)
{
	s->at = at;
	qsort(s->in, s->nin, sizeof *s->in, by_falling_death);
	for (size_t i = 0; i < s->nin; i++) {
		s->in[i]->offset = at + s->bytes;
		s->bytes += s->in[i]->size;
	}
	for (size_t i = 0; i < s->nin / 2; i++) {
		struct buffer *t = s->in[i];

		s->in[i] = s->in[s->nin - 1 - i];
		s->in[s->nin - 1 - i] = t;
	}
}

static struct slots
slots_new(struct buffer *b, size_t n, struct pack_slots of, Arena *scratch)
{
	struct slots s = { .of = of,
		.out = arena_array(scratch, n + 1, sizeof *s.out) };

	for (int p = 0; p < POOLS; p++)
		s.slot[p].in = arena_array(scratch, n + 1,
		                           sizeof *s.slot[p].in);
	for (size_t i = 0; i < n; i++) {
		enum pack_pool pool = pool_of(&b[i], &of);

		if (pool != POOL_NONE && pack_has_slots(&of, pool))
			s.slot[pool].in[s.slot[pool].nin++] = &b[i];
		else if (b[i].size > 0 && b[i].lower < b[i].upper)
			s.out[s.nout++] = &b[i];
	}
	for (int p = 0; p < POOLS; p++) {
		stack_slot(&s.slot[p], s.bytes);
		s.bytes += pack_slots_of(&of, p) * s.slot[p].bytes
			+ (p == POOL_FIRST ? of.others : 0);
	}
	return s;
}

/* The highest place that is free as long as b lives; -1: there is none. */
static int64_t
find_gap(const struct slot *s, const struct buffer *b)
{
	int64_t top = s->at + s->bytes;

	for (size_t i = 0; i < s->nin && top >= s->at + b->size; i++) {
		const struct buffer *x = s->in[i];

		if (x->lower >= b->upper || b->lower >= x->upper)
			continue;
		if (top - end_of(x) >= b->size)
			break;
		top = x->offset < top ? x->offset : top;
	}
	return top >= s->at + b->size ? top - b->size : -1;
}

/* Whether a micro-batch has its slot of the pool as long as b lives. */
static bool
has_slot(const struct pack_slots *of, int pool, const struct buffer *b)
{
	if (!of->nboth)
		return pool == POOL_FIRST;
	return pool == POOL_BOTH
		|| (pool == POOL_FIRST ? b->upper - 1 <= of->second
		    : b->lower > of->boundary);
}

static void
insert_in_slot(struct slot *s, struct buffer *b)
{
	size_t i = s->nin++;

	for (; i > 0 && end_of(s->in[i - 1]) < end_of(b); i--)
		s->in[i] = s->in[i - 1];
	s->in[i] = b;
}

/* Whether b has found a place in one of the slots. */
static bool
put_in_slots(struct slots *s, struct buffer *b)
{
	for (int p = 0; p < POOLS; p++) {
		int64_t at = has_slot(&s->of, p, b)
			? find_gap(&s->slot[p], b) : -1;

		if (at < 0)
			continue;
		b->offset = at;
		insert_in_slot(&s->slot[p], b);
		return true;
	}
	return false;
}

static void
fill_slots(struct slots *s)
{
	size_t left = 0;

	qsort(s->out, s->nout, sizeof *s->out, by_falling_size);
	for (size_t i = 0; i < s->nout; i++)
		if (i >= MOVED || !put_in_slots(s, s->out[i]))
			s->out[left++] = s->out[i];
	s->nout = left;
}

/* ---- behind the slots ---- */

static struct buffer *
copies(const struct slots *s, Arena *scratch)
{
	struct buffer *b = arena_array(scratch, s->nout + 1, sizeof *b);

	for (size_t i = 0; i < s->nout; i++)
		b[i] = *s->out[i];
	return b;
}

/* Pack what has no place in a slot behind them; the end of that. */
static int64_t
pack_behind(const struct slots *s, struct pack_limit limit, Arena *scratch)
{
	struct buffer *b = copies(s, scratch);
	int64_t height, below = s->bytes;

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
	int64_t bound, height;
	struct slots all, s;

	if (slots.n <= 1 && slots.nboth <= 1 && !slots.others)
		return pack_within(b, n, limit, scratch).height;
	for (size_t i = 0; i < n; i++)
		b[i].offset = 0;
	all = slots_new(b, n, slots, scratch);
	bound = all.bytes + pack_bound(copies(&all, scratch), all.nout,
	                               scratch);
	if (bound == pack_slots_bound(b, n, slots, scratch))
		return pack_behind(&all, *limit, scratch);
	s = slots_new(b, n, slots, scratch);
	fill_slots(&s);
	height = pack_behind(&s, *limit, scratch);
	return height <= bound ? height
		: pack_behind(&all, *limit, scratch);
}
