/* The turns of a stage under 1F1B (Narayanan et al. 2021): as many forward
 * turns as stages follow, then forward and backward in turns, then the backward
 * turns that are left.  Backward turns stand in the order of micro-batches, so
 * that gradients are added up in the order in which one rank does it.
 */
#include "passes/pipeline/pipeline.h"

int
turns_slots(int stage, int nstage, int nmicro)
{
	return nstage - stage < nmicro ? nstage - stage : nmicro;
}

struct turn *
turns_1f1b(int stage, int nstage, int nmicro, int *n, Arena *arena)
{
	int slots = turns_slots(stage, nstage, nmicro), ahead = slots - 1;
	struct turn *turn = arena_array(arena, 2 * (size_t)nmicro + 1,
	                                sizeof *turn);

	*n = 0;
	for (int m = 0; m < nmicro + ahead; m++) {
		if (m < nmicro)
			turn[(*n)++] = (struct turn){ TURN_FORWARD,
				(uint16_t)(m % slots), (uint32_t)m };
		if (m >= ahead)
			turn[(*n)++] = (struct turn){ TURN_BACKWARD,
				(uint16_t)((m - ahead) % slots),
				(uint32_t)(m - ahead) };
	}
	turn[(*n)++] = (struct turn){ TURN_UPDATE,
		(uint16_t)((nmicro - 1) % slots), (uint32_t)nmicro - 1 };
	return turn;
}
