/* What is placed and what is not, for the skyline: see pack_skyline.c. */
#ifndef PASSES_PACK_SKY_H
#define PASSES_PACK_SKY_H

#include "passes/place/pack_part.h"

/* A node of the tree of boxes. */
struct knot {
	int32_t box;
	int32_t min_from, max_from, min_to, max_to;     /* of the subtree */
	int32_t first;                  /* least rank not placed in it */
};

/* Neighbouring sections whose tops are equal. */
struct stretch {
	int64_t top;
	int32_t from;
};

struct sky {
	struct part *p;
	struct knot *knot;              /* middle of a range: its root */
	int32_t *knot_of;               /* by box */
	int32_t *order, *rank;          /* box by rank; rank by box */
	bool walls;                     /* what touches walls comes first */
	bool mirror;                    /* time runs backwards */
	/* stretches by their first section; -1: none begins there */
	int32_t *to, *begin;            /* begin: by the last section + 1 */
	int64_t *top;
	struct stretch *heap;           /* lowest first; may hold stale ones */
	int32_t nheap;
	/* by section, as a tree of maxima: bytes not placed */
	int64_t *most, *add;
	int32_t leaves;
	bool *placed;
	int64_t *at;
	int64_t *key;
	int32_t *spare;
	uint64_t seed;
	int64_t work;
};

/* Sections of box x, as time runs. */
static inline int32_t
from_of(const struct sky *s, int32_t x)
{
	return s->mirror ? s->p->nsection - s->p->box[x].to
		: s->p->box[x].from;
}

static inline int32_t
to_of(const struct sky *s, int32_t x)
{
	return s->mirror ? s->p->nsection - s->p->box[x].from
		: s->p->box[x].to;
}

/* pack_trees.c: over all boxes, in the order of ->from and ->to; ranks and
 * what is placed come with sky_renew. */
void sky_build(struct sky *);
void sky_renew(struct sky *);
/* The first box of the order between two walls; -1: none is left. */
int32_t sky_fitting(struct sky *, int32_t from, int32_t to);
/* Box x was placed. */
void sky_placed(struct sky *, int32_t x);
/* Bytes not placed: all of them; the most in one of sections from..to-1. */
void sky_count(struct sky *);
int64_t sky_most(const struct sky *, int32_t from, int32_t to);

#endif
