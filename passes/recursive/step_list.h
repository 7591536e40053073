/* A sequence under construction: first runs, and clones but those of views. */
#ifndef PASSES_RECURSIVE_STEP_LIST_H
#define PASSES_RECURSIVE_STEP_LIST_H

#include "passes/remat_model/remat_model.h"

struct step_list {
	Arena *arena;
	struct rstep *step;
	int32_t n, cap, limit;          /* limit: longer ones are given up */
};

/* False when the sequence is too long. */
bool steps_add(struct step_list *, NodeId, bool clone, uint32_t makes);

#endif
