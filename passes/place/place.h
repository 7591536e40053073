/* Room place: offsets in one arena.
 *
 * in      an ordered graph whose values know their bytes
 * out     results that lie over operands that die; an offset for every owner
 * must not know why a value is kept
 */
#ifndef PASSES_PLACE_PLACE_H
#define PASSES_PLACE_PLACE_H

#include "passes/pass.h"

PassFn pass_inplace, pass_place;

/* Output `out` of a node may lie in the bytes of input `in`, should that die
 * there. */
struct inplace_pair {
	int out, in;
};

/* inplace.c */
int inplace_pairs(const Graph *, const Node *, struct inplace_pair *, int max);
void inplace_graph(Graph *, Arena *scratch);

/* What packing one graph may cost, see pack.h. */
enum { PACK_WORK = 20000000, PACK_TRIAL_WORK = 1000000 };

/* place.c: offsets for everything in the arena; returns its size, which need
 * not be below `enough`.  With several slots (Graph.slots) owners that live
 * across the boundary lie in the first slot, see pack.h. */
int64_t place_graph(Graph *, int64_t enough, const struct watch *stop,
                    Arena *scratch);
/* Bytes of the arena, if they are to be `room` at most: as far as live bytes
 * tell, if they are more or the graph is not to be packed, else after a short
 * search.  Offsets stay as they are. */
int64_t place_within(const Graph *, int64_t room, bool pack,
                     const struct watch *stop, Arena *scratch);
/* Most bytes of the arena alive at one step, below which nothing fits. */
int64_t place_live_bound(const Graph *, Arena *scratch);
/* Bytes of the arena alive at each node, by node. */
int64_t *place_live_bytes(const Graph *, Arena *scratch);
/* Bytes of a slot of each pool of a placed graph, see pack.h: where there is
 * one alone, of what lives across the boundary. */
void place_slot_bytes(const Graph *, int64_t bytes[3], Arena *scratch);
/* Bytes of all owners outside the arena. */
int64_t graph_resident_bytes(const Graph *, Arena *scratch);

#endif
