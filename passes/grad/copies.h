/* 16-bit copies of parameters that updates write. */
#ifndef PASSES_GRAD_COPIES_H
#define PASSES_GRAD_COPIES_H

#include "passes/grad/grad_reduce.h"

/* Whether there is a cast that one could take the place of. */
bool copies_fit(const Graph *);
/* Make them, for the parameters of these updates, and let nodes read them.  By
 * parameter: its copy; 0: none. */
ValId *copies_make(Graph *, Arena *, const struct update *, uint32_t n);

#endif
