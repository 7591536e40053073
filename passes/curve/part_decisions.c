/* Sets of a part's picks: what they need, their bytes, and the plan that they
 * stand for.
 */
#include "passes/curve/parts.h"

uint64_t
picks_needed(const struct kind *k, uint64_t asked, uint64_t keep)
{
	for (int32_t i = k->npick - 1; i >= 0; i--)
		if ((asked & ~keep) >> i & 1)
			asked |= k->pick[i].needs;
	return asked;
}

int64_t
picks_bytes(const struct kind *k, uint64_t picks)
{
	int64_t sum = 0;

	for (int32_t i = 0; picks; i++, picks >>= 1)
		sum += picks & 1 ? k->pick[i].bytes : 0;
	return sum;
}

int64_t
picks_lead(const struct kind *k, uint64_t picks)
{
	int64_t sum = 0;

	for (int32_t i = 0; picks; i++, picks >>= 1)
		sum += picks & 1 ? k->pick[i].lead : 0;
	return sum;
}

void
part_set(const struct parts *y, const struct part *p, const struct config *c,
         uint8_t *drop)
{
	const struct kind *k = &y->kind[p->kind];

	for (int32_t i = 0; i < k->npick; i++)
		for (int j = 0; j < k->pick[i].nstore; j++)
			drop[p->store[k->pick[i].store[j]]] =
				!(c->keep >> i & 1);
}
