/* Where a single activation crosses the forward graph, or one of each half of
 * the batch. */
#ifndef IR_SEGMENTS_H
#define IR_SEGMENTS_H

#include "ir/ir.h"

/* The forward graph cut where one activation crosses it.  Segments first,
 * first + 1, ... repeat with a period; `period` of them are a layer. */
struct segments {
	int32_t n;
	int32_t *of_node;               /* by node of the reference: its
	                                 * segment; -1 */
	bool *attention;                /* by segment: holds a softmax */
	NodeId *product;                /* by segment: its first product; 0 */
	ValId *cut;                     /* by segment: the activation before it;
	                                 * 0: none */
	ValId *other;                   /* ... that of the second half of the
	                                 * batch, with --halves; else 0 */
	int32_t first, period, nlayer;
};

/* Values alive after each of the nodes begin .. end - 1. */
struct crossing {
	NodeId *begin, *end;
	uint32_t *id;                   /* numbers of the values, > 0 */
	uint32_t n;
};

/* By node: the only value alive after it; 0: none, or several.  Time is linear
 * in nodes and values. */
uint32_t *segments_crossing(const struct crossing *, NodeId nnode, Arena *);
void segments_find(struct segments *, const Graph *, Arena *);
/* By value: whether it depends on a parameter. */
bool *segments_active(const Graph *, Arena *);

#endif
