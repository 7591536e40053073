/* Sets of decisions of a part: their requirements, their bytes, and the plan
 * that they describe.
 */
#include "passes/pareto/partition.h"

uint64_t
decisions_needed(const struct part_class *k, uint64_t asked, uint64_t keep)
{
	for (int32_t i = k->ndecision - 1; i >= 0; i--)
		if ((asked & ~keep) >> i & 1)
			asked |= k->decision[i].needs;
	return asked;
}

int64_t
decisions_bytes(const struct part_class *k, uint64_t set)
{
	int64_t sum = 0;

	for (int32_t i = 0; set; i++, set >>= 1)
		sum += set & 1 ? k->decision[i].bytes : 0;
	return sum;
}

int64_t
decisions_min_bytes(const struct part_class *k, uint64_t set)
{
	int64_t sum = 0;

	for (int32_t i = 0; set; i++, set >>= 1)
		sum += set & 1 ? k->decision[i].min_bytes : 0;
	return sum;
}

void
part_set(const struct partition *y, const struct curve_part *p,
         const struct part_point *c, uint8_t *drop)
{
	const struct part_class *k = &y->class[p->class];

	for (int32_t i = 0; i < k->ndecision; i++)
		for (int j = 0; j < k->decision[i].nstore; j++)
			drop[p->store[k->decision[i].store[j]]] =
				!(c->keep >> i & 1);
}
