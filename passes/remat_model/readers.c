/* The readers of each storage, by a counting sort. */
#include "passes/remat_model/remat_model.h"

struct readers
remat_readers(const struct remat *r, Arena *arena)
{
	size_t n = (size_t)r->nstore + 1;
	struct readers u = { arena_array(arena, n, sizeof *u.at), NULL };
	int32_t *next = arena_array(arena, n, sizeof *next);

	for (NodeId i = 1; i < r->nnode; i++)
		for (int k = 0; k < r->node[i].nread; k++)
			u.at[r->node[i].read[k] + 1]++;
	for (int32_t s = 0; s < r->nstore; s++)
		next[s + 1] = u.at[s + 1] += u.at[s];
	u.node = arena_array(arena, (size_t)u.at[r->nstore] + 1,
	                     sizeof *u.node);
	for (NodeId i = 1; i < r->nnode; i++)
		for (int k = 0; k < r->node[i].nread; k++)
			u.node[next[r->node[i].read[k]]++] = i;
	return u;
}
