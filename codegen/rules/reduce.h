/* A reduction in the form that kernels take. */
#ifndef CODEGEN_RULES_REDUCE_H
#define CODEGEN_RULES_REDUCE_H

#include "codegen/rules/emit.h"

/* Floats [lead, outer, n, inner], over lead and n; fits: they are these, else
 * nothing below is set.  Of lead and inner one is 1. */
struct reduced {
	bool fits;
	int64_t lead, outer, n, inner;
};

struct reduced reduce_extents(const Graph *, const Node *);
/* What kernels call the op. */
const char *reduce_kernel(Op);
/* Any shape and type: a work item per result. */
void reduce_slow(struct emit *, const Node *);

#endif
