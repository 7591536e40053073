/* Room eval: the results of one node on constants.
 *
 * in      a node whose operands have contents
 * out     the contents of its outputs
 * must not know the walk over the graph, and what is worth computing
 */
#ifndef PASSES_EVAL_EVAL_H
#define PASSES_EVAL_EVAL_H

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

/* Bytes that a result of that op may have: opt->fold_limit, and 64 times as
 * much where nothing but folding carries out the op. */
int64_t eval_limit(const Pass *, Op);
/* Elements that computing the node looks at or writes; 0 where contents are
 * given on, -1 where there are too many to count. */
int64_t eval_steps(const Graph *, const Node *);
/* Whether constants of that op can be computed at all. */
bool eval_knows(Op);

#endif
