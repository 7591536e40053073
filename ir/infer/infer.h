/* Room infer: types and shapes of the results of nodes.
 *
 * in      a node with its attributes; types and shapes of its operands
 * out     those of its results, or what contradicts what
 * must not know which pass asks, and what is computed
 */
#ifndef IR_INFER_INFER_H
#define IR_INFER_INFER_H

#include "ir/ir.h"

/* Infer dtype and shape of all outputs of n from its inputs, attributes and
 * static constant operands; false after a diagnostic that names the node.
 * `unknown` dims propagate.  Known output shapes are checked, not replaced. */
bool shape_infer(Graph *, Diag *, Node *n);

/* Append a node and infer its shapes; returns output 0, or 0 after a
 * diagnostic.  attr NULL: defaults. */
ValId emit_op(Graph *, Diag *, Op, int nin, const ValId *in, const Attr *attr,
              NodeId like);
/* The same: the elements from start on, extent of them, of each dim. */
ValId emit_slice(Graph *, Diag *, ValId v, const int64_t *start,
                 const int64_t *extent, NodeId like);
/* v in that type: v itself, a cast of it, or 0 if v is 0. */
ValId emit_cast(Graph *, Diag *, ValId v, DType, NodeId like);

#endif
