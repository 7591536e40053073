/* The op table: one row per op, and nowhere else a list of ops.
 *
 * OP(id, text, sig, attr, rules, emit)
 *
 *   SIG(min, max, nout, nstat, flags)
 *     min..max inputs (VARIADIC: no bound), nout outputs (VARIADIC: any),
 *     inputs from index nstat on are static operands: they must be constants
 *     once dims are bound, and pass `fold` turns them into attributes and
 *     drops them.  NOSTAT: none.
 *   ATTR(...)  attributes without commas: I(name, default), F(name, default),
 *              L(name) list of at most MAX_RANK integers.
 *              In C: n->attr.<ID>.<attribute>.
 *   RULES(shape, eval, dynamic, cost, grad, shard)
 *     infer_X  ir/infer*.c        shapes and dtypes of the outputs
 *     eval_X   passes/eval/eval*.c     constant folding (`none`: never folded)
 *     dynamic_X  passes/selection/dynamic*.c  how the op treats a dim of
 *                                 data-dependent size (`none`: refused)
 *     cost_X   passes/cost/cost.c      FLOPs and bytes moved
 *     grad_X   passes/grad/grad_*.c    gradient (`none`: not differentiable,
 *                                 `zero`: gradient is zero everywhere)
 *     shard_X  ir/sharding/sharding_*.c  how the op may be sharded (factor
 *                                 rules)
 *   EMIT(rule)
 *     emit_X   codegen/rules      for all machines; `fail`: none, as F_FOLDED
 *                                 says; `own`: each machine has a rule of its
 *                                 own, if any
 *
 * An includer defines OP and the one group it wants (the others default to
 * nothing), includes this file, and gets prototypes or a table from it; see
 * ir/op.c.  A rule that does not exist is then a compile or link error
 * that names the row's rule.
 *
 * Semantics.  Arrays are row-major.  "broadcast" is numpy's rule.  An axis
 * attribute may be negative until `fold` has run and is not afterwards.
 */
#ifndef OP
#error "define OP before including ops.h"
#endif
#ifndef SIG
#define SIG(min, max, nout, nstat, flags)
#endif
#ifndef ATTR
#define ATTR(...)
#endif
#ifndef RULES
#define RULES(shape, eval, dynamic, cost, grad, shard)
#endif
#ifndef EMIT
#define EMIT(rule)
#endif

/* ---- element-wise: outputs have the broadcast shape of the inputs -------
 * All of these may stand in the body of a `loop`.  relu at 0 has gradient 0,
 * max/min ties split the gradient evenly as PyTorch does for binary max, but
 * at a bound that is one number it is 0, as PyTorch's clamp has it.
 * cast truncates towards zero; float to bool is x != 0; `to` is a DType.
 * div and mod of integers truncate (C); mod with fmod=0 takes the divisor's
 * sign (Python), fmod=1 the dividend's (C).
 * dequantize(q) -> y: the weights of q, whose elements are blocks of 64 along
 *   the last dim; `to`: a float type.  No loop takes it.
 * gelu: tanh=0 exact (erf), tanh=1 the tanh approximation.
 * gelu_grad(x, dy) and silu_grad(x, dy) are dy * f'(x).
 * where(c, a, b): c bool.
 * shield(dy, d): d where dy is not 0, else 0 (passes/grad/shield.h).  Of summands
 *   dy and d = dy * f, whose sums are meant, it makes those of dy's sum.
 * bit_*, shl, shr: integers; a shift by the width or more gives 0.
 * dropout(x, ratio?, training?): y = keep ? x / (1 - ratio) : 0, keep from
 *   Philox at (seed, step, stream, linear index of the element in the
 *   output's shape); a dropout node with the same stream repeats the mask, so
 *   the gradient of dropout is dropout of dy with the same stream and no mask
 *   is stored.  ratio 0 is folded away.  stream 0: not numbered yet.
 *   bwd=1 marks the gradient's use, which prints as such.  batch_segments > 0,
 *   here and wherever words are drawn: the elements, in row-major order, are
 *   so many equal segments of samples.  In the whole batch the first segments
 *   of all replicas come before all second segments.  half=1, half=2: those
 *   of the first or second half of a replica's samples.  position_segments >
 *   0: so many equal segments of positions, which alternate likewise with those
 *   of the other replicas that have the same samples, with Graph.zigzag in every
 *   second turn from the last replica to the first; batch_segments are then
 *   those of all these replicas.
 * bernoulli(x): 1 with probability x, else 0; words as dropout's, but drawn
 *   outside training too. */
OP(NEG,      "neg",      SIG(1, 1, 1, NOSTAT, F_EW | F_LIN0 | F_ZERO), ATTR(), RULES(same, neg, ew, ew, neg, ew), EMIT(ew))
OP(ABS,      "abs",      SIG(1, 1, 1, NOSTAT, F_EW | F_ZERO), ATTR(), RULES(same, abs, ew, ew, abs, ew), EMIT(ew))
OP(SIGN,     "sign",     SIG(1, 1, 1, NOSTAT, F_EW | F_ZERO), ATTR(), RULES(same, sign, ew, ew, zero, ew), EMIT(ew))
OP(EXP,      "exp",      SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(15) | F_STEEP | F_ENDS), ATTR(), RULES(same, exp, ew, ew, exp, ew), EMIT(ew))
OP(LOG,      "log",      SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(15) | F_POLES | F_STEEP | F_LOG), ATTR(), RULES(same, log, ew, ew, log, ew), EMIT(ew))
OP(SQRT,     "sqrt",     SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | F_POLES | F_STEEP), ATTR(), RULES(same, sqrt, ew, ew, sqrt, ew), EMIT(ew))
OP(RECIP,    "recip",    SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | F_POLES | F_STEEP), ATTR(), RULES(same, recip, ew, ew, recip, ew), EMIT(ew))
OP(SIN,      "sin",      SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(15) | F_ZERO), ATTR(), RULES(same, sin, ew, ew, sin, ew), EMIT(ew))
OP(COS,      "cos",      SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(15)), ATTR(), RULES(same, cos, ew, ew, cos, ew), EMIT(ew))
OP(ATAN,     "atan",     SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(25) | F_POLES | F_ZERO), ATTR(), RULES(same, atan, ew, ew, atan, ew), EMIT(ew))
OP(ASINH,    "asinh",    SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(25) | F_POLES | F_ZERO), ATTR(), RULES(same, asinh, ew, ew, asinh, ew), EMIT(ew))
OP(TANH,     "tanh",     SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(25) | F_ZERO | F_ENDS), ATTR(), RULES(same, tanh, ew, ew, tanh, ew), EMIT(ew))
OP(SIGMOID,  "sigmoid",  SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(15) | F_ENDS), ATTR(), RULES(same, sigmoid, ew, ew, sigmoid, ew), EMIT(ew))
OP(ERF,      "erf",      SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(25) | F_ZERO | F_ENDS), ATTR(), RULES(same, erf, ew, ew, erf, ew), EMIT(ew))
OP(RELU,     "relu",     SIG(1, 1, 1, NOSTAT, F_EW | F_ZERO), ATTR(), RULES(same, relu, ew, ew, relu, ew), EMIT(ew))
OP(SOFTPLUS, "softplus", SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(25)), ATTR(), RULES(same, softplus, ew, ew, softplus, ew), EMIT(ew))
OP(FLOOR,    "floor",    SIG(1, 1, 1, NOSTAT, F_EW | F_ZERO), ATTR(), RULES(same, floor, ew, ew, zero, ew), EMIT(ew))
OP(CEIL,     "ceil",     SIG(1, 1, 1, NOSTAT, F_EW | F_ZERO), ATTR(), RULES(same, ceil, ew, ew, zero, ew), EMIT(ew))
OP(ROUND,    "round",    SIG(1, 1, 1, NOSTAT, F_EW | F_ZERO), ATTR(), RULES(same, round, ew, ew, zero, ew), EMIT(ew))
OP(GELU,     "gelu",     SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(25) | F_ZERO), ATTR(I(tanh, 0)), RULES(same, gelu, ew, ew, gelu, ew), EMIT(ew))
OP(SILU,     "silu",     SIG(1, 1, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(15) | F_ZERO), ATTR(), RULES(same, silu, ew, ew, silu, ew), EMIT(ew))
OP(GELU_GRAD,"gelu_grad",SIG(2, 2, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(35) | F_LIN1), ATTR(I(tanh, 0)), RULES(same, none, ew, ew, none, ew), EMIT(ew))
OP(SILU_GRAD,"silu_grad",SIG(2, 2, 1, NOSTAT, F_EW | F_FLOATS | FLOPS(35) | F_LIN1), ATTR(), RULES(same, none, ew, ew, none, ew), EMIT(ew))
OP(SHIELD,   "shield",   SIG(2, 2, 1, NOSTAT, F_EW | F_FLOATS | F_LIN0 | F_LIN1 | F_JOINT), ATTR(), RULES(same, none, ew, ew, none, ew), EMIT(ew))
OP(NOT,      "not",      SIG(1, 1, 1, NOSTAT, F_EW | F_BOOLS | F_TO_BOOL), ATTR(), RULES(pred, not, ew, ew, zero, ew), EMIT(ew))
OP(BIT_NOT,  "bit_not",  SIG(1, 1, 1, NOSTAT, F_EW | F_INTS), ATTR(), RULES(same, bit_not, ew, ew, zero, ew), EMIT(ew))
OP(ISNAN,    "isnan",    SIG(1, 1, 1, NOSTAT, F_EW | F_TO_BOOL), ATTR(), RULES(pred, isnan, ew, ew, zero, ew), EMIT(ew))
OP(CAST,     "cast",     SIG(1, 1, 1, NOSTAT, F_EW | F_TO_ATTR | F_LIN0 | F_ZERO), ATTR(I(to, 0)), RULES(cast, cast, move, ew, cast, ew), EMIT(ew))
OP(DEQUANTIZE, "dequantize", SIG(1, 1, 1, NOSTAT, F_TO_ATTR | F_BLOCKS_0), ATTR(I(to, 0)), RULES(dequantize, none, none, ew, none, dequantize), EMIT(dequantize))
OP(CAST_LIKE,"cast_like",SIG(2, 2, 1, NOSTAT, F_OF_1 | F_FOLDED), ATTR(), RULES(cast_like, none, ew, none, none, none), EMIT(fail))
OP(ADD,      "add",      SIG(2, 2, 1, NOSTAT, F_EW | F_LIN0 | F_LIN1 | F_JOINT | F_ZERO), ATTR(), RULES(bcast, add, ew, ew, add, ew), EMIT(ew))
OP(SUB,      "sub",      SIG(2, 2, 1, NOSTAT, F_EW | F_LIN0 | F_LIN1 | F_JOINT | F_ZERO), ATTR(), RULES(bcast, sub, ew, ew, sub, ew), EMIT(ew))
OP(MUL,      "mul",      SIG(2, 2, 1, NOSTAT, F_EW | F_LIN0 | F_LIN1), ATTR(), RULES(bcast, mul, ew, ew, mul, ew), EMIT(ew))
OP(DIV,      "div",      SIG(2, 2, 1, NOSTAT, F_EW | F_LIN0 | F_POLES | F_STEEP), ATTR(), RULES(bcast, div, ew, ew, div, ew), EMIT(ew))
OP(POW,      "pow",      SIG(2, 2, 1, NOSTAT, F_EW | FLOPS(25) | F_POLES | F_STEEP), ATTR(), RULES(pow, pow, ew, ew, pow, ew), EMIT(ew))
OP(MOD,      "mod",      SIG(2, 2, 1, NOSTAT, F_EW | F_POLES | F_STEEP), ATTR(I(fmod, 0)), RULES(bcast, mod, ew, ew, mod, ew), EMIT(ew))
OP(MAX,      "max",      SIG(2, 2, 1, NOSTAT, F_EW), ATTR(), RULES(bcast, max, ew, ew, max, ew), EMIT(ew))
OP(MIN,      "min",      SIG(2, 2, 1, NOSTAT, F_EW), ATTR(), RULES(bcast, min, ew, ew, min, ew), EMIT(ew))
OP(EQ,       "eq",       SIG(2, 2, 1, NOSTAT, F_EW | F_TO_BOOL), ATTR(), RULES(pred, eq, ew, ew, zero, ew), EMIT(ew))
OP(LT,       "lt",       SIG(2, 2, 1, NOSTAT, F_EW | F_TO_BOOL), ATTR(), RULES(pred, lt, ew, ew, zero, ew), EMIT(ew))
OP(LE,       "le",       SIG(2, 2, 1, NOSTAT, F_EW | F_TO_BOOL), ATTR(), RULES(pred, le, ew, ew, zero, ew), EMIT(ew))
OP(GT,       "gt",       SIG(2, 2, 1, NOSTAT, F_EW | F_TO_BOOL), ATTR(), RULES(pred, gt, ew, ew, zero, ew), EMIT(ew))
OP(GE,       "ge",       SIG(2, 2, 1, NOSTAT, F_EW | F_TO_BOOL), ATTR(), RULES(pred, ge, ew, ew, zero, ew), EMIT(ew))
OP(AND,      "and",      SIG(2, 2, 1, NOSTAT, F_EW | F_BOOLS | F_TO_BOOL), ATTR(), RULES(pred, and, ew, ew, zero, ew), EMIT(ew))
OP(OR,       "or",       SIG(2, 2, 1, NOSTAT, F_EW | F_BOOLS | F_TO_BOOL), ATTR(), RULES(pred, or, ew, ew, zero, ew), EMIT(ew))
OP(XOR,      "xor",      SIG(2, 2, 1, NOSTAT, F_EW | F_BOOLS | F_TO_BOOL), ATTR(), RULES(pred, xor, ew, ew, zero, ew), EMIT(ew))
OP(BIT_AND,  "bit_and",  SIG(2, 2, 1, NOSTAT, F_EW | F_INTS), ATTR(), RULES(bcast, bit_and, ew, ew, zero, ew), EMIT(ew))
OP(BIT_OR,   "bit_or",   SIG(2, 2, 1, NOSTAT, F_EW | F_INTS), ATTR(), RULES(bcast, bit_or, ew, ew, zero, ew), EMIT(ew))
OP(BIT_XOR,  "bit_xor",  SIG(2, 2, 1, NOSTAT, F_EW | F_INTS), ATTR(), RULES(bcast, bit_xor, ew, ew, zero, ew), EMIT(ew))
OP(SHL,      "shl",      SIG(2, 2, 1, NOSTAT, F_EW | F_INTS), ATTR(), RULES(bcast, shl, ew, ew, zero, ew), EMIT(ew))
OP(SHR,      "shr",      SIG(2, 2, 1, NOSTAT, F_EW | F_INTS), ATTR(), RULES(bcast, shr, ew, ew, zero, ew), EMIT(ew))
OP(WHERE,    "where",    SIG(3, 3, 1, NOSTAT, F_EW | F_OF_1 | F_LIN1 | F_LIN2 | F_JOINT), ATTR(), RULES(where, where, where, ew, where, ew), EMIT(ew))
OP(DROPOUT,  "dropout",  SIG(1, 3, 1, 1, F_EW | F_RNG | F_FLOATS | FLOPS(25) | F_LIN0 | F_ZERO), ATTR(F(ratio, 0.5) I(stream, 0) I(bwd, 0) I(batch_segments, 0) I(half, 0) I(position_segments, 0)), RULES(same, none, ew, ew, dropout, ew), EMIT(ew))
OP(BERNOULLI,"bernoulli",SIG(1, 1, 1, NOSTAT, F_EW | F_RNG | F_FLOATS | FLOPS(25)), ATTR(I(stream, 0) I(batch_segments, 0) I(half, 0) I(position_segments, 0)), RULES(same, none, ew, ew, zero, ew), EMIT(ew))
/* A fused group of the ops above: one pass over the output's shape; the body
 * (struct body) lists the ops, every output is a result of the body. */
OP(LOOP,     "loop",     SIG(0, VARIADIC, VARIADIC, NOSTAT, F_EW | F_STRIDES | F_ALONE), ATTR(), RULES(loop, none, ew, loop, none, ew), EMIT(loop))

/* ---- layout: no arithmetic ------------------------------------------------
 * reshape(x, shape?): 0 copies the input's extent unless allowzero, one -1.
 * expand(x, shape?): broadcast of both shapes.
 * squeeze, unsqueeze, flatten, split, tile, identity, cast_like exist up to
 *   `fold`, which rewrites them with the ops around them.
 * split(x, sizes?): piece `index` of `count` along axis (ONNX Split and
 *   SequenceAt of SplitToSequence, one output each; keepdims 0 drops the
 *   axis).  Sizes as ONNX has them: a list, or one chunk size (`chunk`, a
 *   scalar as SplitToSequence allows), or even.
 * slice(x, starts?, ends?, axes?, steps?): after `fold` the attributes hold
 *   one start and one step per axis and the output's shape holds the extents.
 * pad(x, pads?, value?, axes?): mode 0 constant, 1 reflect, 2 edge, 3 wrap.
 * concat(x...): along axis.   trilu(x, k?): upper 1 keeps j >= i + k.
 * copy(x): same value in a new, contiguous place. */
OP(IDENTITY, "identity", SIG(1, 1, 1, NOSTAT, F_FOLDED), ATTR(), RULES(same, copy, move, none, none, none), EMIT(fail))
OP(RESHAPE,  "reshape",  SIG(1, 2, 1, 1, F_VIEW | F_LIN0 | F_ZERO), ATTR(L(shape) I(allowzero, 0)), RULES(reshape, copy, reshape, view, reshape, reshape), EMIT(view))
OP(SQUEEZE,  "squeeze",  SIG(1, 2, 1, 1, F_FOLDED), ATTR(L(axes)), RULES(squeeze, copy, flatten, none, none, none), EMIT(fail))
OP(UNSQUEEZE,"unsqueeze",SIG(1, 2, 1, 1, F_FOLDED), ATTR(L(axes)), RULES(unsqueeze, copy, flatten, none, none, none), EMIT(fail))
OP(FLATTEN,  "flatten",  SIG(1, 1, 1, NOSTAT, F_FOLDED), ATTR(I(axis, 1)), RULES(flatten, copy, flatten, none, none, none), EMIT(fail))
OP(EXPAND,   "expand",   SIG(1, 2, 1, 1, F_VIEW | F_LIN0), ATTR(L(shape)), RULES(expand, expand, expand, view, expand, ew), EMIT(view))
OP(TRANSPOSE,"transpose",SIG(1, 1, 1, NOSTAT, F_VIEW | F_LIN0), ATTR(L(perm)), RULES(transpose, transpose, transpose, view, transpose, transpose), EMIT(view))
OP(SLICE,    "slice",    SIG(1, 5, 1, 1, F_VIEW | F_LIN0), ATTR(L(start) L(step)), RULES(slice, slice, slice, view, slice, slice), EMIT(view))
OP(SPLIT,    "split",    SIG(1, 2, 1, 1, F_FOLDED), ATTR(I(axis, 0) I(index, 0) I(count, 0) I(chunk, 0) I(keepdims, 1)), RULES(split, none, split, none, none, none), EMIT(fail))
OP(CONCAT,   "concat",   SIG(1, VARIADIC, 1, NOSTAT, F_STRIDES | F_LIN0 | F_LIN1 | F_JOINT), ATTR(I(axis, 0)), RULES(concat, concat, concat, copy, concat, concat), EMIT(concat))
OP(PAD,      "pad",      SIG(1, 4, 1, 1, F_LIN0), ATTR(L(begin) L(end) I(mode, 0) F(value, 0)), RULES(pad, pad, pad, copy, pad, pad), EMIT(pad))
OP(TILE,     "tile",     SIG(1, 2, 1, 1, F_FOLDED), ATTR(L(repeats)), RULES(tile, tile, tile, none, none, none), EMIT(fail))
OP(TRILU,    "trilu",    SIG(1, 2, 1, 1, F_LIN0), ATTR(I(upper, 1) I(k, 0)), RULES(trilu, trilu, none, copy, trilu, matrices), EMIT(trilu))
OP(COPY,     "copy",     SIG(1, 1, 1, NOSTAT, F_EW | F_STRIDES | F_ALONE | F_LIN0 | F_ZERO), ATTR(), RULES(same, copy, ew, ew, copy, ew), EMIT(ew))

/* ---- indexing ---------------------------------------------------------------
 * gather(x, idx): along axis; negative indices count from the end.
 *   whole_extent > 0: x is a rank's shard of an axis of that extent; rows that
 *   other ranks hold are 0.  all > 0: x has the rows of this replica's experts,
 *   of so many, as expert_matmul's matrices; those of other replicas are 0.
 * gather_elements(x, idx), scatter_elements(x, idx, upd): along axis,
 *   add 0 replaces, 1 adds, 2 multiplies, 3 and 4 keep the larger and the
 *   smaller.
 * gather_nd(x, idx), scatter_nd(x, idx, upd): batch leading dims in common.
 * scatter_add(idx, upd, acc?): the gradient of gather: zeros of attr shape,
 *   or acc (overwritten in place when it dies here), plus upd's rows at idx
 *   along axis, added in index order by one thread per target row or column:
 *   same bits whatever the thread count.  Indices out of range are an error
 *   of the step, never a stray write.  whole_extent > 0: the target is a
 *   rank's shard of an axis of that extent; rows of other ranks are skipped.
 *   all > 0: likewise those of other replicas' experts.
 * one_hot(idx, depth, values): static operands from 1.
 * topk(x, k?) -> values, indices: the k largest (largest 0: smallest) along
 *   axis, sorted; of equal ones the first come first; NaN is the largest. */
OP(GATHER,          "gather",           SIG(2, 2, 1, NOSTAT, F_LIN0), ATTR(I(axis, 0) I(whole_extent, 0) I(all, 0)), RULES(gather, gather, gather, copy, gather, gather), EMIT(gather))
OP(GATHER_ELEMENTS, "gather_elements",  SIG(2, 2, 1, NOSTAT, F_LIN0), ATTR(I(axis, 0)), RULES(gather_elements, gather_elements, gather_elements, copy, gather_elements, gather_elements), EMIT(gather_elements))
OP(SCATTER_ELEMENTS,"scatter_elements", SIG(3, 3, 1, NOSTAT, F_LIN0 | F_LIN2 | F_JOINT), ATTR(I(axis, 0) I(add, 0)), RULES(scatter, scatter_elements, scatter, copy, scatter_elements, scatter_elements), EMIT(scatter_elements))
OP(GATHER_ND,       "gather_nd",        SIG(2, 2, 1, NOSTAT, F_LIN0), ATTR(I(batch, 0)), RULES(gather_nd, gather_nd, gather_nd, copy, gather_nd, gather_nd), EMIT(gather_nd))
OP(SCATTER_ND,      "scatter_nd",       SIG(3, 3, 1, NOSTAT, F_LIN0 | F_LIN2 | F_JOINT), ATTR(I(add, 0)), RULES(scatter, scatter_nd, scatter, copy, scatter_nd, scatter_nd), EMIT(scatter_nd))
OP(SCATTER_ADD,     "scatter_add",      SIG(2, 3, 1, NOSTAT, F_ACC(2) | F_STAGED | F_LIN1), ATTR(I(axis, 0) L(shape) I(whole_extent, 0) I(all, 0)), RULES(scatter_add, none, none, scatter_add, scatter_add, scatter), EMIT(scatter_add))
OP(ONE_HOT,         "one_hot",          SIG(3, 3, 1, NOSTAT, F_OF_2 | F_FOLDED), ATTR(I(axis, -1)), RULES(one_hot, one_hot, one_hot, none, zero, none), EMIT(fail))
OP(TOPK,            "topk",             SIG(1, 2, 2, 1, FLOPS(8)), ATTR(I(k, 0) I(axis, -1) I(largest, 1)), RULES(topk, none, axis_kept, ew, topk, topk), EMIT(topk))

/* ---- shapes and sequences of numbers: most fold away once dims are bound ---
 * constant_of_shape(shape): filled with `value` of dtype `dt`.
 * selected(x) -> idx, count: i64[rank, elements of x] and i64[]: where x is
 *   not 0, in row-major order, and how often.  compact 1: these are the first
 *   columns of idx; 0: each is the column of its element.  The others repeat
 *   the first of them, or are 0 if count is.  What becomes of nonzero when x
 *   is computed at run time.
 * random(shape?) -> y of attr shape and dtype `dt`: kind 0 uniform in
 *   a <= y < b, 1 normal of mean a and deviation b; words as bernoulli's.
 * extent() -> y of attr shape, of one element, and dtype `dt`: a number that
 *   the file computes from the size of the batch, in proportion to it; `value`
 *   is that of the batch at hand, of which a replica's or a micro-batch's is
 *   its part.  known 0: how it follows from the batch is not known.  Exists
 *   from `fold` to `replicate`, which makes it a constant.
 * cumsum(x, axis?): product 1 multiplies.  argmax(x).  nonzero(x): constant input only. */
OP(SHAPE,    "shape",    SIG(1, 1, 1, NOSTAT, F_TO_I64 | F_FOLDED), ATTR(I(start, 0) I(end, INT64_MAX)), RULES(shape, shape, shape, none, zero, none), EMIT(fail))
OP(SIZE,     "size",     SIG(1, 1, 1, NOSTAT, F_TO_I64 | F_FOLDED), ATTR(), RULES(size, size, shape, none, zero, none), EMIT(fail))
OP(EXTENT,   "extent",   SIG(0, 0, 1, NOSTAT, F_TO_ATTR | F_FOLDED), ATTR(I(dt, 0) L(shape) F(value, 0) I(known, 1)), RULES(extent, none, none, none, zero, none), EMIT(fail))
OP(RANGE,    "range",    SIG(3, 3, 1, 0, F_FOLDED), ATTR(), RULES(range, range, range, none, zero, none), EMIT(fail))
OP(CONSTANT_OF_SHAPE, "constant_of_shape", SIG(1, 1, 1, 0, F_TO_ATTR | F_FOLDED), ATTR(I(dt, 0) F(value, 0)), RULES(constant_of_shape, constant_of_shape, of_shape, none, zero, none), EMIT(fail))
OP(RANDOM,   "random",   SIG(0, 1, 1, 0, F_RNG | F_TO_ATTR | FLOPS(25)), ATTR(L(shape) I(dt, 0) I(kind, 0) F(a, 0) F(b, 1) I(stream, 0) I(batch_segments, 0) I(half, 0) I(position_segments, 0)), RULES(random, none, of_shape, ew, zero, none), EMIT(ew))
OP(NONZERO,  "nonzero",  SIG(1, 1, 1, NOSTAT, F_TO_I64 | F_FOLDED), ATTR(), RULES(nonzero, nonzero, none, none, zero, none), EMIT(fail))
OP(SELECTED, "selected", SIG(1, 1, 2, NOSTAT, 0), ATTR(I(compact, 1)), RULES(selected, none, none, copy, zero, none), EMIT(selected))
OP(CUMSUM,   "cumsum",   SIG(1, 2, 1, 1, F_LIN0 | F_POLES | F_FULL), ATTR(I(axis, 0) I(exclusive, 0) I(reverse, 0) I(product, 0)), RULES(cumsum, cumsum, axis_kept, copy, cumsum, axis), EMIT(cumsum))
OP(ARGMAX,   "argmax",   SIG(1, 1, 1, NOSTAT, F_TO_I64), ATTR(I(axis, 0) I(keepdims, 1) I(last, 0)), RULES(arg, argmax, argmax, reduce, zero, argmax), EMIT(argmax))

/* ---- reductions ---------------------------------------------------------------
 * reduce_*(x, axes?): axes empty means all, unless noop 1.  The sum of a long
 * axis has a fixed tree shape, independent of the number of threads.
 * reduce_max and reduce_min split the gradient evenly among ties. */
OP(REDUCE_SUM,  "reduce_sum",  SIG(1, 2, 1, 1, F_REDUCE | F_LIN0 | F_FULL), ATTR(L(axes) I(keepdims, 1) I(noop, 0)), RULES(reduce, reduce, reduce, reduce, reduce_sum, sum), EMIT(reduce))
OP(REDUCE_MEAN, "reduce_mean", SIG(1, 2, 1, 1, F_REDUCE | F_LIN0 | F_FULL), ATTR(L(axes) I(keepdims, 1) I(noop, 0)), RULES(reduce, reduce, reduce, reduce, reduce_mean, reduce), EMIT(reduce))
OP(REDUCE_MAX,  "reduce_max",  SIG(1, 2, 1, 1, F_REDUCE | F_POLES | F_FULL), ATTR(L(axes) I(keepdims, 1) I(noop, 0)), RULES(reduce, reduce, reduce, reduce, reduce_max, reduce), EMIT(reduce))
OP(REDUCE_MIN,  "reduce_min",  SIG(1, 2, 1, 1, F_REDUCE | F_POLES | F_FULL), ATTR(L(axes) I(keepdims, 1) I(noop, 0)), RULES(reduce, reduce, reduce, reduce, reduce_max, reduce), EMIT(reduce))
OP(REDUCE_PROD, "reduce_prod", SIG(1, 2, 1, 1, F_REDUCE | F_POLES | F_FULL), ATTR(L(axes) I(keepdims, 1) I(noop, 0)), RULES(reduce, reduce, reduce, reduce, reduce_prod, reduce), EMIT(reduce))

/* ---- products --------------------------------------------------------------
 * matmul(a, b, bias?, acc?): alpha * op(a) @ op(b) [+ bias] [+ acc].
 *   ta/tb: the last two dims are transposed.  Leading dims broadcast.  bias:
 *   1-D of the last extent; acc: full shape of the result (dies in place).
 *   b may be a frozen parameter of 16 bits, beside a of float32, or of blocks
 *   of quantised weights: the product is that of the weights in a's type.
 *   1-D operands are reshaped by `fold` as numpy's matmul prescribes; `canon`
 *   makes every product with a 2-D right side 2-D.
 * matmul_end(a, b, acc?, x?) -> y, sums?: of matrices, and what a library does
 *   with results that it has at hand.  end 1: y as matmul's, and the sums of
 *   op(a)'s rows; end 2: and the sums of op(b)'s columns: the gradient of a
 *   weight with its bias's.  end 3: y = gelu_grad(x, op(a) @ op(b)) of GELU's
 *   tanh form, and the sums of y's columns.  Made by `fuse`.
 * expert_matmul(x, w, idx) -> y: row i of x [n,K] times matrix idx[i] of w: of
 *   w [e,K,N], or with tb 1 of w [e,N,K] transposed.  Negative indices count
 *   from the end.  Rows of one expert are one product: no matrix is copied.
 * expert_dw(a, b, idx) -> dw of `experts` matrices: the sum of outer products
 *   of the rows of a and b whose index is e, in their order.
 *   all > 0, of both: the matrices are those of this replica, of so many; all
 *   replicas of an expert group have equal numbers, in their order.  Rows of y
 *   with the matrix of another replica are zeros, and no dw counts them.
 *   sent 1: such rows are empty slots (expert_slots).
 * expert_slots(idx [n]) -> slot i64[n], row i64[s], expert [s]: rows wait for
 *   the replicas that have their matrices, of `all`, in s = replicas * room
 *   slots, `room` for each replica, in their order.  slot[i]: of row i; s: it
 *   has none.  row[j]: the row in slot j; n: none.  expert[j]: its index, or that
 *   of another replica's matrix.  A row without a slot is a fault of the step;
 *   drop 1: it is not.
 * take_rows(x, at, back) -> y: row at[i] of x, or zeros for the number behind
 *   the last one.  back: the rows of y in x, likewise.
 * det(x): determinants of the matrices in the last two dims.
 * det_grad(dy, x): dy times the cofactors of x. */
OP(MATMUL,   "matmul",   SIG(2, 4, 1, NOSTAT, F_CONTRACT | F_ACC(3) | F_LIN0 | F_LIN1 | F_BIAS2 | F_HALF | F_MATRICES | F_BLOCKS_1), ATTR(I(ta, 0) I(tb, 0) F(alpha, 1)), RULES(matmul, matmul, matmul, matmul, matmul, matmul), EMIT(matmul))
OP(MATMUL_END, "matmul_end", SIG(2, 4, 2, NOSTAT, F_CONTRACT | F_ACC(2) | F_MATRICES), ATTR(I(ta, 0) I(tb, 0) F(alpha, 1) I(end, 1)), RULES(matmul_end, none, none, matmul, none, matmul_end), EMIT(own))
OP(EXPERT_MATMUL, "expert_matmul", SIG(3, 3, 1, NOSTAT, F_CONTRACT | F_LIN0 | F_LIN1 | F_HALF), ATTR(I(tb, 0) I(all, 0) I(sent, 0)), RULES(expert_matmul, none, none, expert_matmul, expert_matmul, expert_matmul), EMIT(own))
OP(EXPERT_DW, "expert_dw", SIG(3, 3, 1, NOSTAT, F_CONTRACT | F_LIN0 | F_LIN1), ATTR(I(experts, 0) I(all, 0) I(sent, 0)), RULES(expert_dw, none, none, expert_dw, none, expert_dw), EMIT(own))
OP(EXPERT_SLOTS, "expert_slots", SIG(1, 1, 3, NOSTAT, F_INTS), ATTR(I(all, 1) I(replicas, 1) I(room, 1) I(drop, 0)), RULES(expert_slots, none, none, ew, zero, none), EMIT(own))
OP(TAKE_ROWS, "take_rows", SIG(3, 3, 1, NOSTAT, F_LIN0), ATTR(), RULES(take_rows, none, none, copy, take_rows, take_rows), EMIT(take_rows))
OP(DET,      "det",      SIG(1, 1, 1, NOSTAT, F_FLOATS | F_STAGED | FLOPS(20) | F_FULL), ATTR(), RULES(det, none, none, ew, det, matrices), EMIT(det))
OP(DET_GRAD, "det_grad", SIG(2, 2, 1, NOSTAT, F_FLOATS | F_STAGED | FLOPS(40) | F_LIN0), ATTR(), RULES(det_grad, none, none, ew, none, matrices), EMIT(det_grad))

/* ---- rows: normalisation, softmax, loss -------------------------------------
 * softmax(x): along axis; of a line that is -inf everywhere it is zeros.
 *   log_softmax is its logarithm.
 * softmax_grad(dy, y): y * (dy - sum(dy * y)).
 * log_softmax_grad(dy, y): dy - exp(y) * sum(dy).
 * layernorm(x, scale, bias?) -> y, mean, rstd: over dims axis.. ; statistics
 *   have the leading dims' shape, f32.
 * layernorm_grad(dy, x, scale, mean, rstd, acc?) -> dx, dscale, dbias.
 * rmsnorm(x, scale) -> y, rstd;
 *   rmsnorm_grad(dy, x, scale, rstd, acc?) -> dx, dscale.
 *   acc: added to dx, as matmul's is.
 * sce(logits, labels, weights?, stats?) -> loss, lse, denom: softmax cross
 *   entropy.
 *   logits [N, C, d...] as ONNX has them, labels [N, d...]; labels equal to
 *   `ignore` are skipped; reduction 0 none, 1 mean over the rest (0/0 = NaN),
 *   2 sum.  lse: log-sum-exp per row; denom: scalar divisor (1 unless mean).
 *   whole_extent > 0: the logits [N, c] are a rank's shard of that many
 *   classes, and stats [ranks, N, 3] are the vocab_stats of all ranks.
 * sce_grad(dloss, logits, labels, lse, denom, weights?) -> dlogits;
 *   whole_extent as above; zeros in columns that pad the last shard.
 * nll(logp, labels, weights?) -> loss, denom: negative log likelihood.
 * nll_grad(dloss, labels, denom, weights?) -> dlogp of attr shape.
 * classifier(x, w, labels, bias?, dloss?) -> loss, dx, dw, dbias?: the last
 *   linear, softmax cross entropy and both their gradients, in chunks of
 *   `chunk` rows so that logits of the whole batch never exist; dloss is a
 *   scalar, `seed` if it is not given.
 *   x [N, K], w [V, K] (tb 1) or [K, V] (tb 0), labels [N].  Made by `fuse`
 *   from matmul + sce and their gradients; runs in phase backward. */
OP(SOFTMAX,      "softmax",      SIG(1, 1, 1, NOSTAT, F_ROWS | F_FLOATS | FLOPS(20) | F_STAGED | F_IMAGES | F_ENDS), ATTR(I(axis, -1)), RULES(softmax, softmax, softmax, ew, softmax, axis), EMIT(softmax))
OP(LOG_SOFTMAX,  "log_softmax",  SIG(1, 1, 1, NOSTAT, F_ROWS | F_FLOATS | FLOPS(20) | F_STAGED | F_IMAGES | F_FULL), ATTR(I(axis, -1)), RULES(softmax, softmax, softmax, ew, log_softmax, axis), EMIT(softmax))
OP(SOFTMAX_GRAD, "softmax_grad", SIG(2, 2, 1, NOSTAT, F_ROWS | FLOPS(8) | F_STAGED | F_IMAGES | F_LIN0), ATTR(I(axis, -1)), RULES(same, none, none, ew, none, axis), EMIT(softmax_grad))
OP(LOG_SOFTMAX_GRAD, "log_softmax_grad", SIG(2, 2, 1, NOSTAT, F_ROWS | FLOPS(20) | F_STAGED | F_IMAGES | F_LIN0), ATTR(I(axis, -1)), RULES(same, none, none, ew, none, axis), EMIT(softmax_grad))
OP(LAYERNORM,    "layernorm",    SIG(2, 3, 3, NOSTAT, F_ROWS | FLOPS(8) | F_HALF_0), ATTR(I(axis, -1) F(eps, 1e-5)), RULES(norm, none, norm, ew, layernorm, norm), EMIT(layernorm))
OP(LAYERNORM_GRAD,"layernorm_grad", SIG(5, 6, 3, NOSTAT, F_ROWS | F_ACC(5) | FLOPS(8) | F_LIN0), ATTR(I(axis, -1)), RULES(norm_grad, none, none, ew, none, norm_grad), EMIT(layernorm_grad))
OP(RMSNORM,      "rmsnorm",      SIG(2, 2, 2, NOSTAT, F_ROWS | FLOPS(8) | F_HALF_0), ATTR(I(axis, -1) F(eps, 1e-5)), RULES(norm, none, norm, ew, rmsnorm, norm), EMIT(rmsnorm))
OP(RMSNORM_GRAD, "rmsnorm_grad", SIG(4, 5, 2, NOSTAT, F_ROWS | F_ACC(4) | FLOPS(8) | F_LIN0), ATTR(I(axis, -1)), RULES(norm_grad, none, none, ew, none, norm_grad), EMIT(rmsnorm_grad))
OP(SCE,          "sce",          SIG(2, 4, 3, NOSTAT, F_ROWS | FLOPS(20) | F_STAGED | F_WIDE_0 | F_LABELS_1), ATTR(I(reduction, 1) I(ignore, INT64_MIN) I(whole_extent, 0)), RULES(sce, none, cross_entropy, ew, sce, sce), EMIT(sce))
OP(SCE_GRAD,     "sce_grad",     SIG(5, 6, 1, NOSTAT, F_ROWS | FLOPS(20) | F_STAGED | F_LIN0), ATTR(I(reduction, 1) I(ignore, INT64_MIN) I(whole_extent, 0)), RULES(sce_grad, none, none, ew, none, sce_grad), EMIT(sce_grad))
OP(NLL,          "nll",          SIG(2, 3, 2, NOSTAT, F_ROWS | FLOPS(8) | F_STAGED | F_WIDE_0 | F_LABELS_1), ATTR(I(reduction, 1) I(ignore, INT64_MIN)), RULES(nll, none, cross_entropy, ew, nll, none), EMIT(nll))
OP(NLL_GRAD,     "nll_grad",     SIG(3, 4, 1, NOSTAT, F_ROWS | FLOPS(8) | F_STAGED | F_LIN0), ATTR(I(reduction, 1) I(ignore, INT64_MIN) L(shape)), RULES(nll_grad, none, none, ew, none, none), EMIT(nll_grad))
OP(CLASSIFIER,   "classifier",   SIG(3, 5, VARIADIC, NOSTAT, F_CONTRACT | F_LABELS_2), ATTR(I(tb, 1) I(reduction, 1) I(ignore, INT64_MIN) I(chunk, 0) F(seed, 1)), RULES(classifier, none, none, classifier, none, none), EMIT(own))

/* ---- sliding windows: convolution, pooling, resampling -----------------------
 * Values are [N, C, d...] with one to three spatial dims.  Lists have one
 * element per spatial dim once shapes are known (empty: ones or zeros); `same`
 * 1 or 2 (SAME_UPPER, SAME_LOWER) stands for pads that follow from the
 * extents, and inference resolves it.
 * conv(x, w, bias?): w [O, C / group, k...], begin and end pad with zeros.
 * conv_dx(dy, w, bias?): its gradient in x, of the spatial extents `out`
 *   (empty: the smallest that fit, plus `extra`); ConvTranspose is this.
 * conv_dw(x, dy): its gradient in w, of spatial extents `kernel`.
 *   whole_extent > 0: in all three, the groups are a rank's shard of that
 *   many groups.  patches > 0: where windows are unfolded into patches, so
 *   many bytes of them at a time, if that is enough for a few (tests cut small
 *   images by it).
 * batchnorm(x, scale?, bias?) -> y, mean, var: statistics over all dims but 1,
 *   the population's variance, f32.
 * batchnorm_grad(dy, x, mean, var, scale?) -> dx, dscale, dbias.
 * bn_update(stat, new): momentum * stat + (1 - momentum) * new in place, once
 *   per forward pass; nothing outside training.  Without any training,
 *   `canon` writes it out, beside stat.
 * maxpool(x) -> y, idx: idx i32 is the position within its plane of the first
 *   maximum in row-major order; a NaN wins.
 * maxpool_grad(dy, idx): of spatial extents `out`.
 * avgpool(x): `include` 1 counts padding; `ceil` as ONNX has it: a window must
 *   begin within the data or the padding before it.
 * avgpool_grad(dy): of spatial extents `out`.
 * interpolate(x, roi?, scales?, sizes?): ONNX's Resize of `axes` (empty: all);
 *   policy 1 not_larger, 2 not_smaller; `fold` makes resize of it.
 * col2im(x, image, block): [N, C, image...] of x [N, C * block, L], whose
 *   columns are the L windows of extents `block` that slide over the image:
 *   each is added where it lies (ONNX's Col2Im, PyTorch's Fold).  `fold` makes
 *   a scatter_add for each dim of it.
 * resize(x): linear map of one axis from `extent_in` to `extent_out`.
 *   scale 0: their quotient.  mode 0 nearest, 1 linear, 2 cubic; coord 0
 *   half_pixel, 1 pytorch_half_pixel, 2 align_corners, 3 asymmetric,
 *   4 tf_crop_and_resize (within first..last), 5 half_pixel_symmetric,
 *   6 tf_half_pixel_for_nn; round 0 prefer floor, 1 prefer ceil, 2 floor,
 *   3 ceil.  bwd 1: its transpose, from `extent_out` to `extent_in`.
 * grid_sample(x, grid): [N, C, o...] of x [N, C, d...] at the positions of
 *   grid [N, o..., D], one number per spatial dim, the last dim's first; -1
 *   and 1 are the centres (align 1) or outer edges (align 0) of the first and
 *   last element.  mode 0 nearest (ties to even), 1 linear, 2 cubic (a = -0.75,
 *   at most two dims); padding: elements outside are 0 zeros, 1 those of the
 *   border, 2 reflected.
 * grid_sample_grad(dy, grid, x?) -> dx, dgrid: x of spatial extents `out`; it
 *   is needed for dgrid alone, which mode 0 does not have. */
OP(CONV,       "conv",       SIG(2, 3, 1, NOSTAT, F_CONTRACT | F_STAGED | F_IMAGES | F_LIN0 | F_LIN1 | F_BIAS2 | F_HALF), ATTR(L(stride) L(dilation) L(begin) L(end) I(same, 0) I(group, 1) I(whole_extent, 0) I(patches, 0)), RULES(conv, none, none, conv, conv, conv), EMIT(own))
OP(CONV_DX,    "conv_dx",    SIG(2, 3, 1, NOSTAT, F_CONTRACT | F_STAGED | F_IMAGES | F_LIN0 | F_LIN1 | F_BIAS2 | F_HALF), ATTR(L(stride) L(dilation) L(begin) L(end) I(same, 0) I(group, 1) I(whole_extent, 0) I(patches, 0) L(out) L(extra)), RULES(conv_dx, none, none, conv, conv_dx, conv), EMIT(own))
OP(CONV_DW,    "conv_dw",    SIG(2, 2, 1, NOSTAT, F_CONTRACT | F_STAGED | F_IMAGES | F_LIN0 | F_LIN1), ATTR(L(stride) L(dilation) L(begin) L(end) I(same, 0) I(group, 1) I(whole_extent, 0) I(patches, 0) L(kernel)), RULES(conv_dw, none, none, conv, none, conv), EMIT(own))
OP(BATCHNORM,  "batchnorm",  SIG(1, 3, 3, NOSTAT, FLOPS(8) | F_HALF_0), ATTR(F(eps, 1e-5)), RULES(batchnorm, none, none, ew, batchnorm, batchnorm), EMIT(batchnorm))
OP(BATCHNORM_GRAD, "batchnorm_grad", SIG(4, 5, 3, NOSTAT, FLOPS(8) | F_LIN0), ATTR(F(eps, 1e-5)), RULES(batchnorm_grad, none, none, ew, none, batchnorm), EMIT(batchnorm_grad))
OP(BN_UPDATE,  "bn_update",  SIG(2, 2, 1, NOSTAT, F_WRITES | F_STAGED), ATTR(F(momentum, 0.9)), RULES(same, none, none, ew, zero, ew), EMIT(bn_update))
OP(MAXPOOL,    "maxpool",    SIG(1, 1, 2, NOSTAT, F_STAGED | F_IMAGES), ATTR(L(stride) L(dilation) L(begin) L(end) I(same, 0) L(kernel) I(ceil, 0)), RULES(maxpool, none, none, pool, maxpool, planes), EMIT(maxpool))
OP(MAXPOOL_GRAD, "maxpool_grad", SIG(2, 2, 1, NOSTAT, F_STAGED | F_IMAGES | F_LIN0), ATTR(L(out)), RULES(maxpool_grad, none, none, ew, none, planes), EMIT(maxpool_grad))
OP(AVGPOOL,    "avgpool",    SIG(1, 1, 1, NOSTAT, F_STAGED | F_IMAGES | F_LIN0), ATTR(L(stride) L(dilation) L(begin) L(end) I(same, 0) L(kernel) I(ceil, 0) I(include, 0)), RULES(avgpool, none, none, pool, avgpool, planes), EMIT(avgpool))
OP(AVGPOOL_GRAD, "avgpool_grad", SIG(1, 1, 1, NOSTAT, F_STAGED | F_IMAGES | F_LIN0), ATTR(L(stride) L(dilation) L(begin) L(end) I(same, 0) L(kernel) I(ceil, 0) I(include, 0) L(out)), RULES(avgpool_grad, none, none, pool, none, planes), EMIT(avgpool_grad))
OP(INTERPOLATE, "interpolate", SIG(1, 4, 1, 1, F_FOLDED), ATTR(L(axes) I(policy, 0) I(mode, 0) I(coord, 0) I(round, 0) F(cubic, -0.75) I(exclude, 0) I(antialias, 0) F(fill, 0)), RULES(interpolate, none, none, none, none, none), EMIT(fail))
OP(COL2IM,     "col2im",     SIG(3, 3, 1, 1, F_FOLDED), ATTR(L(stride) L(dilation) L(begin) L(end)), RULES(col2im, none, none, none, none, none), EMIT(fail))
OP(RESIZE,     "resize",     SIG(1, 1, 1, NOSTAT, F_STAGED | F_IMAGES | F_LIN0), ATTR(I(axis, 0) I(extent_in, -1) I(extent_out, -1) F(scale, 0) I(mode, 0) I(coord, 0) I(round, 0) F(cubic, -0.75) I(exclude, 0) I(antialias, 0) F(fill, 0) F(first, 0) F(last, 1) I(bwd, 0)), RULES(resize, none, none, copy, resize, axis), EMIT(resize))
OP(GRID_SAMPLE, "grid_sample", SIG(2, 2, 1, NOSTAT, F_STAGED | F_FULL), ATTR(I(mode, 1) I(padding, 0) I(align, 0)), RULES(grid_sample, none, none, grid_sample, grid_sample, grid_sample), EMIT(grid_sample))
OP(GRID_SAMPLE_GRAD, "grid_sample_grad", SIG(2, 3, 2, NOSTAT, F_STAGED | F_LIN0), ATTR(I(mode, 1) I(padding, 0) I(align, 0) L(out)), RULES(grid_sample_grad, none, none, grid_sample_grad, none, grid_sample), EMIT(grid_sample_grad))

/* ---- recurrence: unrolled by `fold` -----------------------------------------
 * rnn(x, w, r, bias?, lens?, h?, c?, peep?) -> y, h', c': one direction of
 *   ONNX's RNN (kind 0), GRU (1) or LSTM (2).  x [T,B,I], w [G*H,I], r
 *   [G*H,H], bias [2*G*H], lens [B], h and c [B,H], peep [3*H]; y [T,B,H].
 *   Gates are in ONNX's order; act: activations (0 sigmoid, 1 tanh, 2 relu,
 *   3 softsign, 4 softplus); reset_after: linear_before_reset; coupled:
 *   input_forget. */
OP(RNN,          "rnn",          SIG(3, 8, 3, NOSTAT, F_FOLDED), ATTR(I(kind, 0) I(reverse, 0) I(reset_after, 0) I(coupled, 0) L(act) F(clip, 0)), RULES(rnn, none, none, none, none, none), EMIT(fail))

/* ---- attention ---------------------------------------------------------------
 * attention(q, k, v, mask?) -> o, lse.  q [B,H,T,D], k [B,G,S,D], v [B,G,S,E],
 *   H a multiple of G (grouped queries share a key head), o [B,H,T,E],
 *   lse [B,H,T] f32 (log-sum-exp of a row of scores; recomputes the softmax).
 *   p = softmax(scale * q k^T + mask), then dropout(ratio, stream) with index
 *   over [B,H,T,S], then o = p v.  causal 1: key j is visible to query i iff
 *   j <= i + S - T  (S = T for training).  mask broadcasts to [B,H,T,S]: f32
 *   is added, bool keeps where true.  A row that sees no key gives zeros.
 *   context > 0: T are this replica's queries, in their order, of those that so
 *   many replicas have together: a stretch of them, or with Graph.zigzag two.
 *   share_heads 1: T are all queries, and H and G this replica's part of the
 *   heads, in the order of replicas (of a rank's heads, if they are sharded).
 * attention_grad(do, q, k, v, o, lse, mask?) -> dq, dk, dv; with packed 1 one
 *   output [B,T,(H+2G)*D] that holds q|k|v parts side by side in a row, as
 *   the gradient of a fused qkv projection wants it. */
OP(ATTENTION,      "attention",      SIG(3, 4, 2, NOSTAT, F_CONTRACT | F_RNG | F_WIDE_3 | F_HALF), ATTR(F(scale, 1) I(causal, 0) F(ratio, 0) I(stream, 0) I(batch_segments, 0) I(half, 0) I(context, 0) I(share_heads, 0)), RULES(attention, none, none, attention, attention, heads), EMIT(attention))
OP(ATTENTION_GRAD, "attention_grad", SIG(6, 7, VARIADIC, NOSTAT, F_CONTRACT | F_RNG | F_LIN0), ATTR(F(scale, 1) I(causal, 0) F(ratio, 0) I(stream, 0) I(packed, 0) I(batch_segments, 0) I(half, 0) I(context, 0) I(share_heads, 0)), RULES(attention_grad, none, none, attention_grad, none, heads_grad), EMIT(attention_grad))

/* ---- update: run in phase update (or backward, see --update-in-backward) ----
 * fill() -> y: constant `value` of attr shape, f32 (the seed dloss).
 * loss_scale() -> y: scalar f32, `value` times what the run time scales losses
 *   with (the seed dloss where gradients pass through f16); gradients stay
 *   scaled up to what reads them here.
 * share() -> y: scalar f32, 1 / the number of replicas, micro 1: of a step's
 *   micro-batches.
 * batch_total(x, total) -> y: total, the sum of x over all micro-batches.  The
 *   adjoint of x is that of y: every micro-batch has an equal share of what
 *   reads y.  Exists until autodiff.
 * grad_norm(g...) -> scalar f32 2-norm over all, not scaled; does nothing at
 *   run time unless clipping is on.  The last `sums` operands are sums of
 *   squares of scaled ones.
 * accumulate(acc, g) -> acc': in place; the first micro-batch of a step
 *   overwrites instead of adding.
 * sgd(p, g, norm?, copy?) -> p', copy';
 *   sgdm(p, g, m, norm?, copy?) -> p', m', copy';
 *   adamw(p, g, m, v, norm?, copy?) -> p', m', v', copy';
 *   lion(p, g, m, norm?, copy?) -> p', m', copy';
 *   adafactor(p, g, row, col?, row_mean?, col_mean?, squares?, norm?)
 *   -> p', row', col': in place.
 *   copy: p in 16 bits, which is not read; copy' is p' rounded to nearest.
 *   Hyper-parameters come from the run time's environment; the gradient has
 *   the loss scale taken out, and is brought down to `clip` if the norm is
 *   above it.  decay 0, which is the
 *   first attribute of each, exempts the parameter from weight decay.
 *   coupled 1: weight decay is part of the gradient, which makes AdamW Adam;
 *   it is for sgd, where that is the same, and sgdm, where it is not, and
 *   apart from the gradient otherwise.
 *   row and col are averages over the last and the last but one dim, which
 *   they do not have; a parameter of less than two dims has one of its own
 *   shape in row and no col.
 * ema(average, p') -> average': in place, the exponential moving average of
 *   a parameter after its updates; the first update of a run makes it p'.
 * adafactor_means(g, norm?) -> row_mean, col_mean: the squares of g, of at
 *   least two dims, summed over the last and over the last but one dim and
 *   divided by the extents that those have in the whole parameter.
 * adafactor_squares(p, g, row, col?, row_mean?, col_mean?, norm?) -> f32[2]:
 *   squares of p and of adafactor's update of it, summed and divided by the
 *   number of elements of the whole parameter.
 *   Of a rank's or replica's piece both give its share of the whole parameter's
 *   means, and adafactor takes the sums of all shares instead of its own
 *   means.  row and col are those of all that p or g is a replica's piece
 *   of. */
OP(FILL,       "fill",       SIG(0, 0, 1, NOSTAT, 0), ATTR(L(shape) F(value, 0)), RULES(fill, fill, none, ew, zero, none), EMIT(fill))
OP(LOSS_SCALE, "loss_scale", SIG(0, 0, 1, NOSTAT, 0), ATTR(F(value, 1)), RULES(scalar, none, none, ew, zero, none), EMIT(loss_scale))
OP(SHARE,      "share",      SIG(0, 0, 1, NOSTAT, 0), ATTR(I(micro, 0)), RULES(scalar, none, none, ew, zero, none), EMIT(share))
OP(BATCH_TOTAL, "batch_total", SIG(2, 2, 1, NOSTAT, 0), ATTR(), RULES(same, none, none, none, batch_total, none), EMIT(comm))
OP(GRAD_NORM,  "grad_norm",  SIG(1, VARIADIC, 1, NOSTAT, F_REDUCE), ATTR(I(sums, 0)), RULES(scalar, none, none, none, none, none), EMIT(grad_norm))
OP(ACCUMULATE, "accumulate", SIG(2, 2, 1, NOSTAT, F_WRITES | F_LIN0 | F_LIN1 | F_JOINT), ATTR(), RULES(update, none, none, ew, none, ew), EMIT(accumulate))
OP(EMA,        "ema",        SIG(2, 2, 1, NOSTAT, F_WRITES | FLOPS(3)), ATTR(), RULES(update, none, none, ew, none, update), EMIT(accumulate))
/* Element by element: all have the operands, attributes and rules of one. */
#define UPDATE(id, text, states, flops) OP(id, text, SIG(2 + states, 4 + states, 2 + states, NOSTAT, F_WRITES | F_UPDATE | F_COPY | FLOPS(flops)), ATTR(I(decay, 1) I(coupled, 0)), RULES(update, none, none, ew, none, update), EMIT(update))
#include "runtime/support/optimizers.h"
OP(ADAFACTOR,  "adafactor",  SIG(3, 8, 3, NOSTAT, F_WRITES | F_UPDATE | FLOPS(20)), ATTR(I(decay, 1)), RULES(adafactor, none, none, adafactor, none, adafactor), EMIT(adafactor))
OP(ADAFACTOR_MEANS, "adafactor_means", SIG(1, 2, 2, NOSTAT, FLOPS(4)), ATTR(), RULES(adafactor_means, none, none, adafactor_means, none, adafactor_means), EMIT(adafactor_means))
OP(ADAFACTOR_SQUARES, "adafactor_squares", SIG(3, 7, 1, NOSTAT, FLOPS(10)), ATTR(), RULES(adafactor_squares, none, none, ew, none, adafactor_squares), EMIT(adafactor_squares))

/* ---- ranks: a graph that is sharded (Graph.ranks, Val.placement) -------------
 * Collectives that convert a value from one placement to another.  Operands
 * and results are a rank's local values; all ranks run the same node at the
 * same time.  The placements: Replicate, ReplicatePartial (the adjoint is Partial),
 * Shard and Partial.  That of the adjoint is the dual one: Replicate and Shard
 * are their own duals, ReplicatePartial and Partial are each other's.
 * all_reduce(x: Partial) -> y: the sum over all ranks, or for reduction 1 the
 *   largest, in rank order.  16-bit floats are added in f32 and rounded once.
 *   side 0: y is Replicate, side 1: ReplicatePartial.  group: enum rank_group;
 *   1, over all replicas instead of the ranks of one; 2, over those of a zero
 *   group; 3, over zero groups; 4 and 5, likewise, expert groups; 6, over stages;
 *   7, over the replicas that have the same samples (Graph.context); placements do
 *   not refer to replicas and stages.
 * all_gather(x: Shard) -> y: Replicate or ReplicatePartial, by side as above.
 * reduce_scatter(x: Partial) -> y: Shard, the rank's shard of the sum.
 * all_to_all(x: Shard) -> y: Shard by to_axis, to_first_axis, to_replication and
 *   to_segment; mirror is of both sides.  With group 7 one of the axes is that
 *   of positions and the lesser one that of heads.
 * replicate(x: Replicate) -> y: ReplicatePartial.  Moves nothing.
 * own(x) -> y: Shard, the rank's shard of x.  from 0: x is Replicate, from 1:
 *   ReplicatePartial.
 * With group 4 all_gather, reduce_scatter, own and own_grad are between those
 *   replicas: axis is that of positions, of which each has a part.
 * With group 1 or 2 the result of reduce_scatter and own is a replica's shard
 *   (struct replica_shard) of x, which may be sharded over ranks as well.
 * gather_into(x, shard) -> x: the shards of all replicas, over x.
 * gather_pieces(shard) -> y: the same, of that shape, sharded over ranks as
 *   before.
 * gather_rows(x) -> y: the rows, along dim 0, of all replicas of an expert
 *   group, one replica's behind the other's.
 * sum_rows(x) -> y: this replica's rows of the sum over an expert group.  Each is
 *   the other's adjoint; placements do not refer to replicas.
 * exchange_rows(x) -> y: of x [1,replicas,..] its blocks, one for each replica of
 *   an expert group, in y [replicas,1,..] those that are for this one; the other
 *   way round the same.
 * send(x): to the same rank of stage `peer` of the pipeline, where the receive
 *   with this tag has it.  Its output is absent.
 * receive() -> y: of type dt and that shape; ranks hold it as they do x.
 *   adjoint: one goes back.
 * own_grad(dy: Shard) -> dx: Partial, zeros outside the rank's shard.  Ranks that hold
 *   the same shard all add it.
 * axis, first_axis, replication, segment, mirror: of the sharded side, see
 *   Placement.
 * vocab_stats(logits, labels) -> [1, n, 3] f32: of each row of a rank's
 *   columns, a shard of `whole_extent` columns: their maximum, the sum of
 *   exp(x - maximum), and the logit of the label, 0 if it is another rank's.
 * sum_squares(x...) -> scalar f32. */
#define SHARDED I(axis, 0) I(first_axis, 0) I(replication, 1) L(segment) I(mirror, 0)
OP(ALL_REDUCE,     "all_reduce",     SIG(1, 1, 1, NOSTAT, F_COMM | F_LIN0 | F_OVER | F_SENDS), ATTR(I(reduction, 0) I(side, 0) I(group, 0)), RULES(same, none, none, two_rings, all_reduce, comm), EMIT(comm))
OP(ALL_GATHER,     "all_gather",     SIG(1, 1, 1, NOSTAT, F_COMM | F_LIN0 | F_SENDS | F_JOINS | F_BLOCKS_0), ATTR(SHARDED I(side, 0) I(group, 0)), RULES(gathered, none, none, ring, all_gather, comm), EMIT(comm))
OP(REDUCE_SCATTER, "reduce_scatter", SIG(1, 1, 1, NOSTAT, F_COMM | F_LIN0 | F_SENDS | F_JOINS), ATTR(SHARDED I(group, 0)), RULES(own, none, none, ring, reduce_scatter, comm), EMIT(comm))
OP(ALL_TO_ALL,     "all_to_all",     SIG(1, 1, 1, NOSTAT, F_COMM | F_SENDS | F_BLOCKS_0), ATTR(SHARDED I(to_axis, 0) I(to_first_axis, 0) I(to_replication, 1) L(to_segment) I(group, 0)), RULES(all_to_all, none, none, exchange, all_to_all, comm), EMIT(comm))
OP(REPLICATE,      "replicate",      SIG(1, 1, 1, NOSTAT, F_VIEW | F_BLOCKS_0), ATTR(), RULES(same, none, none, view, replicate, comm), EMIT(view))
OP(OWN,            "own",            SIG(1, 1, 1, NOSTAT, F_COMM | F_LIN0 | F_BLOCKS_0), ATTR(SHARDED I(from, 0) I(group, 0)), RULES(own, none, none, copy, own, comm), EMIT(comm))
OP(GATHER_INTO,    "gather_into",    SIG(2, 2, 1, NOSTAT, F_COMM | F_WRITES | F_BLOCKS_0 | F_BLOCKS_1), ATTR(SHARDED I(group, 1)), RULES(gather_into, none, none, ring, none, comm), EMIT(comm))
OP(GATHER_PIECES,  "gather_pieces",  SIG(1, 1, 1, NOSTAT, F_COMM | F_SENDS | F_JOINS | F_BLOCKS_0), ATTR(SHARDED I(group, 1) L(shape)), RULES(gather_shape, none, none, ring, none, none), EMIT(comm))
OP(GATHER_ROWS,    "gather_rows",    SIG(1, 1, 1, NOSTAT, F_COMM | F_LIN0 | F_SENDS), ATTR(I(group, 1)), RULES(gather_rows, none, none, ring, gather_rows, replica_rows), EMIT(comm))
OP(SUM_ROWS,       "sum_rows",       SIG(1, 1, 1, NOSTAT, F_COMM | F_LIN0 | F_SENDS), ATTR(I(group, 1)), RULES(sum_rows, none, none, ring, sum_rows, replica_rows), EMIT(comm))
OP(EXCHANGE_ROWS,  "exchange_rows",  SIG(1, 1, 1, NOSTAT, F_COMM | F_LIN0 | F_SENDS), ATTR(I(group, 1)), RULES(exchange_rows, none, none, exchange, exchange_rows, replica_blocks), EMIT(comm))
OP(SEND,           "send",           SIG(1, 1, 1, NOSTAT, F_COMM | F_SENDS | F_STAGES), ATTR(I(peer, 0) I(tag, 0)), RULES(send, none, none, send, none, stages), EMIT(comm))
OP(RECEIVE,        "receive",        SIG(0, 0, 1, NOSTAT, F_COMM | F_SENDS | F_STAGES), ATTR(I(peer, 0) I(tag, 0) I(dt, 0) L(shape) I(adjoint, 0)), RULES(receive, none, none, receive, none, stages), EMIT(comm))
OP(OWN_GRAD,       "own_grad",       SIG(1, 1, 1, NOSTAT, F_COMM | F_LIN0), ATTR(SHARDED I(group, 0)), RULES(gathered, none, none, copy, none, comm), EMIT(comm))
OP(VOCAB_STATS,    "vocab_stats",    SIG(2, 2, 1, NOSTAT, F_ROWS | FLOPS(20) | F_STAGED), ATTR(I(whole_extent, 0)), RULES(vocab_stats, none, none, ew, zero, vocab_stats), EMIT(vocab_stats))
OP(SUM_SQUARES,    "sum_squares",    SIG(1, VARIADIC, 1, NOSTAT, F_REDUCE), ATTR(), RULES(scalar, none, none, none, none, squares), EMIT(sum_squares))
#undef SHARDED

/* ---- host memory ---------------------------------------------------------------
 * fetch(h) -> y: a copy in device memory of what lies in host memory.
 * offload(x) -> h: a copy in host memory.
 * offload_into(h, x) -> h: x, over h. */
OP(FETCH,        "fetch",        SIG(1, 1, 1, NOSTAT, F_FETCH | F_SENDS | F_LIN0), ATTR(), RULES(same, none, none, host, none, ew), EMIT(comm))
OP(OFFLOAD,      "offload",      SIG(1, 1, 1, NOSTAT, F_OFFLOAD | F_SENDS | F_LIN0), ATTR(), RULES(same, none, none, host, none, ew), EMIT(comm))
OP(OFFLOAD_INTO, "offload_into", SIG(2, 2, 1, NOSTAT, F_OFFLOAD | F_SENDS | F_WRITES), ATTR(), RULES(update, none, none, host, none, update), EMIT(comm))

#undef OP
#undef SIG
#undef ATTR
#undef RULES
#undef EMIT
