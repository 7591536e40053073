/* Room precision: in which float type each value of the step is.
 *
 * in      a canonical forward graph with its loss
 * out     the same with casts; stored dropout masks
 * must not know gradients, memory and machines
 *
 * Words.  target: the type of --dtype.  full: float32.  weak: float32 that no
 * op requires, so that it takes the type of the other operands: parameters,
 * constants, inputs, and what is computed from these alone.
 */
#ifndef PASSES_PRECISION_PRECISION_H
#define PASSES_PRECISION_PRECISION_H

#include "passes/pass.h"

PassFn pass_precision;

/* Why a value has its type. */
enum why {
	WHY_NONE,                       /* no float, or nobody has looked */
	WHY_INPUT, WHY_CONST, WHY_BUFFER, WHY_MASTER,
	WHY_PARAM,                      /* without a master */
	WHY_WEAK, WHY_OF_TARGET, WHY_OF_FULL,   /* so are all operands */
	WHY_EACH,                       /* target and full meet, each with an
	                                 * element for each of the result's */
	WHY_SPREAD,                     /* ... one of them is spread */
	WHY_LOSS_SIDE,                  /* ... behind the last product */
	WHY_HALF, WHY_FULL,             /* its op's row says so */
	WHY_LOG,                        /* a logarithm, or what one is of */
	WHY_DIFFERENCE,                 /* exp(u) - 1 */
	WHY_POSITION,                   /* a product of integers */
	WHY_TERM,                       /* a product that is summed */
	WHY_WISH_TARGET, WHY_WISH_FULL, /* the user does */
	WHY_COPY,                       /* a cast for an op that takes it */
	WHY_OVERRULED,                  /* a cast of the file */
	WHY_MASK,                       /* of a stored dropout mask */
	WHY_COUNT
};

struct reason {
	enum why why;
	DType before;                   /* DT_NONE: the value is new */
	ValId of;                       /* what a copy is of, or what stands
	                                 * for the value now; 0: nothing */
	Op op;                          /* that takes a copy */
	const struct precision_wish *wish;      /* NULL: none */
};

/* table.c: what became of each value of the graph and why, as comments. */
void precision_table(const Graph *, DType target, const struct reason *,
                     FILE *);

/* logs.c: by node, whether it is a logarithm, or what lies between a saturating
 * op and one, either included. */
bool *precision_logs(const Graph *, Arena *);

/* logs.c: by node, whether it is exp(u) less a number, or that exponential. */
bool *precision_differences(const Graph *, Arena *);

/* positions.c: by node, whether it is a product of what is computed of integers
 * and constants alone. */
bool *precision_positions(const Graph *, Arena *);
/* terms.c: by node, whether it is a product that reductions alone read. */
bool *precision_terms(const Graph *, Arena *);
/* sentinels.c: by value, whether it masks with numbers beyond the target's; the
 * largest magnitude that such numbers keep. */
bool *precision_sentinels(const Graph *, Arena *, DType target);
double precision_sentinel(DType target);
/* loss_side.c: by node, whether the loss reads it and no product does. */
bool *precision_loss_side(const Graph *, Arena *);

/* mask.c: the node's dropout as where(mask, x / keep, 0) with a mask that is a
 * value, appended; each new node is told to `placed`.  0 after a
 * diagnostic. */
ValId precision_mask(Graph *, Diag *, NodeId, void (*placed)(void *, NodeId),
                     void *of);

#endif
