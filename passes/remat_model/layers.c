/* The inputs of layers.
 *
 * method  A layer input is a value at which a single activation crosses the
 *         forward graph; activations are the values that depend on a
 *         parameter.  Where such values repeat in a pattern of several per
 *         layer (the residual stream is cut twice per transformer layer), one
 *         per period is a layer input.
 */
#include "ir/segments.h"
#include "passes/remat_model/remat_model.h"

#include <string.h>

/* The inputs of equal layers, and the last one's output; 0: there are none. */
static int32_t
find_equal_layers(const struct remat *r, Arena *arena, int32_t *cut)
{
	struct segments s;
	int32_t n = 0;

	segments_find(&s, r->g, arena);
	for (int32_t i = 0; s.nlayer > 1 && i <= s.nlayer; i++) {
		int32_t at = s.first + i * s.period;

		if (at >= s.n || !s.cut[at] || r->of_val[s.cut[at]] < 0)
			continue;
		r->layer_other[n] = s.other[at] ? r->of_val[s.other[at]] : -1;
		cut[n++] = r->of_val[s.cut[at]];
	}
	return n;
}

/* Reduce cuts to one per layer, where layers are not all equal. */
static int32_t
find_similar_layers(const struct remat *r, Arena *arena, int32_t *cut)
{
	NodeId *behind = arena_array(arena, (size_t)r->nnode + 1,
	                             sizeof *behind);
	int32_t n = remat_cuts(r, arena, cut, behind), best = 0, last = n - 1;
	int32_t period = 1, kept = 0;
	int32_t *count = arena_array(arena, (size_t)r->ngroup + 1, 4);
	int32_t *seen = arena_array(arena, (size_t)r->ngroup + 1, 4);

	for (int32_t i = 0; i < n; i++) {
		int32_t group = r->store[cut[i]].group;

		if (group < 0)
			continue;
		count[group]++;
		if (count[group] > 1 && count[group] >= best) {
			best = count[group];
			period = i + 1 - seen[group];
			last = i;
		}
		seen[group] = i + 1;
	}
	for (int32_t i = 0; i < n; i++)
		if (i == 0 || (i <= last && (last - i) % period == 0))
			cut[kept++] = cut[i];
	return kept;
}

void
remat_find_layers(struct remat *r)
{
	Arena *scratch = arena_new();

	r->layer = arena_array(r->arena, (size_t)r->nnode + 1, 4);
	r->layer_other = arena_array(r->arena, (size_t)r->nnode + 1, 4);
	memset(r->layer_other, -1, ((size_t)r->nnode + 1) * 4);
	r->nlayer = find_equal_layers(r, scratch, r->layer);
	if (r->nlayer == 0)
		r->nlayer = find_similar_layers(r, scratch, r->layer);
	arena_free(scratch);
}

int
remat_layer_of(const struct remat *r, Arena *arena, int32_t *layer)
{
	int32_t *of_node = arena_array(arena, (size_t)r->nnode + 1, 4);

	/* by node, the last of the inputs made before it */
	for (int32_t i = 0; i < r->nlayer; i++)
		of_node[r->store[r->layer[i]].def + 1] = i + 1;
	for (NodeId i = 1; i < r->nnode; i++)
		if (of_node[i] < of_node[i - 1])
			of_node[i] = of_node[i - 1];
	for (int32_t s = 0; s < r->nstore; s++)
		layer[s] = of_node[r->store[s].def];
	return r->nlayer;
}
