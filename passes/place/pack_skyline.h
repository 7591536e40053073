/* Placed and unplaced boxes of the skyline: see pack_skyline.c. */
#ifndef PASSES_PLACE_PACK_SKYLINE_H
#define PASSES_PLACE_PACK_SKYLINE_H

#include "passes/place/pack_part.h"

/* A node of the tree of boxes. */
struct box_node {
	int32_t box;
	int32_t min_from, max_from, min_to, max_to;     /* of the subtree */
	int32_t first;                  /* least rank not placed in it */
};

/* Neighbouring sections whose tops are equal. */
struct skyline_segment {
	int64_t top;
	int32_t from;
};

struct skyline {
	struct pack_part *p;
	struct box_node *node;          /* middle of a range: its root */
	int32_t *node_of;               /* by box */
	int32_t *order, *rank;          /* box by rank; rank by box */
	bool walls;                     /* what touches walls comes first */
	bool mirror;                    /* time runs backwards */
	/* segments by their first section; -1: none begins there */
	int32_t *to, *begin;            /* begin: by the last section + 1 */
	int64_t *top;
	struct skyline_segment *heap;   /* lowest first; may hold stale ones */
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
from_of(const struct skyline *s, int32_t x)
{
	return s->mirror ? s->p->nsection - s->p->box[x].to
		: s->p->box[x].from;
}

static inline int32_t
to_of(const struct skyline *s, int32_t x)
{
	return s->mirror ? s->p->nsection - s->p->box[x].from
		: s->p->box[x].to;
}

/* pack_trees.c: over all boxes, in the order of ->from and ->to; ranks and
 * what is placed come with skyline_renew. */
void skyline_build(struct skyline *);
void skyline_renew(struct skyline *);
/* The first box of the order between two walls; -1: none is left. */
int32_t skyline_fitting(struct skyline *, int32_t from, int32_t to);
/* Box x was placed. */
void skyline_mark_placed(struct skyline *, int32_t x);
/* Bytes not placed: all of them; the most in one of sections from..to-1. */
void skyline_count(struct skyline *);
int64_t skyline_most(const struct skyline *, int32_t from, int32_t to);

#endif
