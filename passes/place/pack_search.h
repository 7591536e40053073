/* The state of exact packing: see pack_search.c. */
#ifndef PASSES_PLACE_PACK_SEARCH_H
#define PASSES_PLACE_PACK_SEARCH_H

#include "passes/place/pack_part.h"

struct search_item {
	int32_t from, to;               /* sections from..to-1 */
	int64_t size;
	int32_t index;                  /* in the part */
	int32_t twin;                   /* identical, one rank lower; -1 */
	int32_t nmeet;
	int32_t *meet;                  /* those that share a section */
	int64_t total;                  /* most bytes in any of its sections */
	double key[3];                  /* rank: larger ones first */
	int64_t at;                     /* top of what is placed beneath it */
	int64_t barred;                 /* a place that it does not take; -1 */
	int64_t lowest;                 /* place that it can still take */
	int64_t offset;                 /* where it was placed */
	double blame;                   /* for nodes given up; fades */
	bool placed;
};

struct pack_search {
	struct search_item *item;       /* by rank */
	int32_t n, nsection;
	int64_t capacity;
	int64_t *rest;                  /* bytes not placed, by section */
	int32_t *cross;                 /* not placed, alive at the end of the
	                                 * section and into the next */
	int64_t *low;                   /* lowest place left, by section */
	int32_t *count;                 /* that could take it, by section */
	int32_t *stack_end;
	int64_t *keep_end;
	bool few_first;
	int64_t work;
	bool cut;
	int32_t *meet;
};

struct unplaced {
	int32_t *list;                  /* not placed, by rank */
	int32_t n;
	int32_t *stack;                 /* free room for lists below */
	int64_t *keep;                  /* free room for old places */
	int64_t floor;                  /* offset of the last one placed */
};

/* A packing of what is left; false: there is none, or the search was cut. */
bool pack_search(struct pack_search *, struct unplaced);

#endif
