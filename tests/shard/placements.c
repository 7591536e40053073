/* Many placements of one value: each keeps a number of its own.
 *
 *     shard_placements
 */
#include <stdio.h>

#include "ir/placement.h"
#include "passes/tensor_parallel/strategy_ilp.h"

enum { MANY = 200 };

static Placement
segments(int i)
{
	Placement s = placement_dim(0, i + 1);

	s.segment[s.nsegment++] = MANY - i;
	return s;
}

int
main(void)
{
	Arena *arena = arena_new();
	struct placement_list list = { .n = 0 };
	int faults = 0;

	for (int turn = 0; turn < 2; turn++)
		for (int i = 0; i < MANY; i++) {
			Placement s = segments(i);
			int k = placement_list_index(&list, &s, arena);

			if (k != i) {
				printf("FAIL placement %d has number %d\n", i,
				       k);
				faults++;
			}
		}
	printf("%d placements, %d faults\n", list.n, faults);
	faults += list.n != MANY;
	arena_free(arena);
	return faults > 0;
}
