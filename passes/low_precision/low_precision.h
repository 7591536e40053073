/* Room low_precision: values saved for backward, kept in 16 bits.
 *
 * in      a planned graph, whose node order is the schedule
 * out     the same with values rounded behind their last reading in forward,
 *         and read in backward from there
 * must not know budgets: how much is kept so is its caller's choice
 *
 * Words.  reduced-precision value: one rounded to the target type, that of
 * --save-dtype.  upcast: the same in float32 again, for a reader that takes no
 * 16-bit operand.
 */
#ifndef PASSES_LOW_PRECISION_LOW_PRECISION_H
#define PASSES_LOW_PRECISION_LOW_PRECISION_H

#include "passes/pass.h"

/* eligible.c: false after a diagnostic: nothing of this graph can be kept
 * so. */
bool low_precision_check(const Pass *, const Graph *);
/* By value id, the owners that may be kept so, read off the laid-out
 * graph before copies are in it. */
bool *low_precision_eligible(const Graph *, DType to, Arena *);

/* Parts in which what is kept may be rounded: all, or the first of them in the
 * order of forward. */
enum { LOW_PRECISION_PARTS = 4 };

/* exact.c: by value id, owners that must keep their precision because this
 * schedule decides by them. */
bool *low_precision_exact(const Graph *, Arena *);

struct low_precision_request {
	DType to;                       /* the target type */
	const bool *eligible;           /* from low_precision_eligible */
	uint32_t nval;                  /* of the graph it was read off: later
	                                 * values are copies */
	int parts;
};

/* rewrite.c: round those eligible values that backward reads.  Returns their
 * number. */
int low_precision_rewrite(Graph *, const struct low_precision_request *,
                          const struct target *, Arena *scratch);

#endif
