/* Constant folding of one node. */
#ifndef PASSES_EVAL_H
#define PASSES_EVAL_H

#include "passes/pass.h"

enum eval_status {
	EVAL_DONE,              /* all outputs are V_CONST with contents now */
	EVAL_SKIP,              /* an input is not constant, or no rule */
	EVAL_LARGE,             /* the result exceeds opt->fold_limit */
	EVAL_FAIL,              /* a diagnostic was given */
};

/* Compute the outputs of n from constant inputs.  Static operands must have
 * become attributes (except where the op's row keeps them from index 0 on),
 * and shapes must have been inferred.  Contents go to `mem`; the node itself
 * stays as it is, the caller drops it. */
enum eval_status eval_node(Pass *, Graph *, const Node *n, Arena *mem);

#endif
