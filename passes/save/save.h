/* Room save: what backward reads of forward, kept in 16 bits.
 *
 * in      a planned graph, whose node order is the schedule
 * out     the same with values rounded behind their last reading in forward,
 *         and read in backward from there
 * unaware of budgets: how much is kept so is its caller's choice
 *
 * Words.  half: a value rounded to the type of --save-dtype.  wide: the half
 * in float32 again, for a reader that takes no 16-bit operand.
 */
#ifndef PASSES_SAVE_SAVE_H
#define PASSES_SAVE_SAVE_H

#include "passes/pass.h"

/* which.c: false after saying why nothing of this graph can be kept so. */
bool save_check(const Pass *, const Graph *);
/* By value id, the owners that may be kept so, read off the laid-out
 * graph before copies are in it. */
bool *save_which(const Graph *, DType to, Arena *);

/* Parts in which what is kept may be rounded: all, or the first of them in the
 * order of forward. */
enum { SAVE_PARTS = 4 };

/* decide.c: by value id, owners that this schedule decides by. */
bool *save_fixed(const Graph *, Arena *);

struct save_wish {
	DType to;
	const bool *may;                /* from save_which */
	uint32_t nval;                  /* of the graph it was read off: later
	                                 * values are copies */
	int parts;
};

/* rewrite.c: round those of the values that may be which backward reads.
 * Returns how many that are. */
int save_rewrite(Graph *, const struct save_wish *, const struct target *,
                 Arena *scratch);

#endif
