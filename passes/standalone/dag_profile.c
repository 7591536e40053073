/* The bytes in memory over each slot of an annealing.
 *
 * method  An array with the most of each block, instead of a tree of maxima:
 *         that gives the sum of bytes above the budget, which is what leads
 *         out of plans with several tight places, and adding to a range of
 *         some hundred slots costs no more than a walk down and up a tree.
 * cost    of a change: the length of the lifetimes that change, in blocks
 */
#include "passes/standalone/dag_walk.h"

enum { BLOCK = WALK_BLOCK };

/* What delta in a range of slots of one block adds above the budget. */
static int32_t
over_part(const int32_t *mem, int32_t n, int32_t budget, int32_t delta)
{
	int32_t over = 0;

	for (int32_t k = 0; k < n; k++) {
		int32_t old = mem[k] - budget, now = old + delta;

		over += (now > 0 ? now : 0) - (old > 0 ? old : 0);
	}
	return over;
}

/* The same for any range.  Blocks have a fixed length, which compilers turn
 * into vector code; most have nothing above the budget. */
static int64_t
over_by(struct dag_walk *s, int32_t lo, int32_t hi, int32_t delta)
{
	int32_t budget = s->budget, low = budget - (delta > 0 ? delta : 0);
	int64_t over = 0;

	s->work -= 4;
	while (lo < hi) {
		int32_t b = lo / BLOCK, end = (b + 1) * BLOCK;

		end = end < hi ? end : hi;
		s->work--;
		if (s->top[b] > low) {
			over += end - lo == BLOCK
				? over_part(s->mem + lo, BLOCK, budget, delta)
				: over_part(s->mem + lo, end - lo, budget,
				            delta);
			s->work -= 3;
		}
		lo = end;
	}
	return over;
}

int32_t
walk_top(const int32_t *mem)
{
	int32_t top = mem[0];

	for (int32_t k = 1; k < BLOCK; k++)
		top = mem[k] > top ? mem[k] : top;
	return top;
}

static void
add_range(struct dag_walk *s, int32_t lo, int32_t hi, int32_t delta)
{
	while (lo < hi) {
		int32_t b = lo / BLOCK, end = (b + 1) * BLOCK;

		if (end - lo == BLOCK && end <= hi) {
			for (int32_t k = 0; k < BLOCK; k++)
				s->mem[lo + k] += delta;
			s->top[b] += delta;
		} else {
			end = end < hi ? end : hi;
			for (int32_t k = lo; k < end; k++)
				s->mem[k] += delta;
			s->top[b] = walk_top(s->mem + b * BLOCK);
		}
		lo = end;
	}
}

static void
sort_events(struct walk_event *e, int32_t n)
{
	for (int32_t gap = n > 32 ? n / 3 + 1 : 1; ; gap = gap / 3 + 1) {
		for (int32_t i = gap; i < n; i++) {
			struct walk_event x = e[i];
			int32_t j = i;

			for (; j >= gap && e[j - gap].slot > x.slot; j -= gap)
				e[j] = e[j - gap];
			e[j] = x;
		}
		if (gap == 1)
			return;
	}
}

int64_t
walk_gather(struct dag_walk *s)
{
	struct walk_event *e = s->event;
	int32_t net = 0, n = 0;
	int64_t over = 0;

	sort_events(e, s->nevent);
	for (int32_t i = 0; i < s->nevent;) {
		int32_t at = e[i].slot, old = net;

		for (; i < s->nevent && e[i].slot == at; i++)
			net += e[i].delta;
		if (net == old)
			continue;
		if (old)
			over += over_by(s, e[n - 1].slot, at, old);
		e[n++] = (struct walk_event){ at, net };
	}
	s->nevent = n;
	return over;
}

void
walk_apply(struct dag_walk *s)
{
	const struct walk_event *e = s->event;

	for (int32_t i = 0; i + 1 < s->nevent; i++)
		if (e[i].delta)
			add_range(s, e[i].slot, e[i + 1].slot, e[i].delta);
}

