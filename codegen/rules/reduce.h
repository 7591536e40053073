/* A reduction in the form that kernels take. */
#ifndef CODEGEN_RULES_REDUCE_H
#define CODEGEN_RULES_REDUCE_H

#include "codegen/rules/emit.h"

/* A reduction of floats [lead, outer, n, inner] over lead and n, where lead or
 * inner is 1.  fits: the node has this form; otherwise the extents are not
 * set. */
struct reduced {
	bool fits;
	int64_t lead, outer, n, inner;
};

struct reduced reduce_extents(const Graph *, const Node *);
/* The op in names of kernels. */
const char *reduce_kernel(Op);

#endif
