/* Keep or recompute where layers repeat. */
#ifndef PASSES_LAYERED_H
#define PASSES_LAYERED_H

#include "passes/remat.h"

/* Fewer equal layers are left to the program of the whole graph. */
enum { LAYERED_MIN = 4 };

struct layered;

/* NULL: the graph has no layers that repeat. */
struct layered *layered_new(struct remat *, const uint8_t *must);
/* Plans for every amount of memory into the archive. */
void layered_search(struct layered *, struct archive *);
/* No plan within so many bytes of the arena spends fewer seconds on copies;
 * INFINITY: there is none.  After layered_search. */
double layered_bound(struct layered *, int64_t memory);

#endif
