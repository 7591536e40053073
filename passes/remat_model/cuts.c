/* Cuts: where a single activation crosses the forward graph, as storages. */
#include "passes/remat_model/remat_model.h"
#include "ir/segments.h"

int32_t
remat_cuts(const struct remat *r, Arena *arena, int32_t *cut, NodeId *behind)
{
	const Graph *g = r->g;
	bool *active = segments_active(g, arena);
	NodeId *end = arena_array(arena, (size_t)r->nstore + 1, sizeof *end);
	struct crossing c = { 0 };
	uint32_t *only;
	int32_t n = 0;

	c.begin = arena_array(arena, (size_t)r->nstore + 1, sizeof *c.begin);
	c.end = end;
	c.id = arena_array(arena, (size_t)r->nstore + 1, sizeof *c.id);
	c.n = (uint32_t)r->nstore;

	for (NodeId i = 1; i < g->nnode && !r->node[i].backward; i++)
		for (int k = 0; k < r->node[i].nread; k++)
			end[r->node[i].read[k]] = i;
	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *st = &r->store[s];

		/* crosses the gaps after nodes def .. end - 1 */
		c.begin[s] = st->def;
		c.id[s] = (uint32_t)s + 1;
		if (r->node[st->def].backward || !active[st->owner])
			c.end[s] = 0;
	}
	only = segments_crossing(&c, g->nnode, arena);
	for (NodeId i = 1; i < g->nnode; i++)
		if (only[i] && (n == 0 || cut[n - 1] + 1 != (int32_t)only[i])) {
			behind[n] = i;
			cut[n++] = (int32_t)only[i] - 1;
		}
	return n;
}
