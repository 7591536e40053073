/* Shape inference.  Every op needs a case; most have one that fails. */
#include "tests/unit/unit.h"
#include "ir/infer/infer.h"

#include <stdlib.h>
#include <string.h>

/* in: types of operands a, b, c...; `=` and contents make a constant.
 * want: the types of the outputs, _ without one, or ! and a piece of the
 * message. */
struct infer_case {
	Op op;
	const char *in, *attr, *want;
};

#define BINARY(op) \
	{ op, "f32[2,3] f32[3]", "", "f32[2,3]" }, \
	{ op, "f32[2,3] f32[2]", "", "!do not broadcast" }, \
	{ op, "f32[2] i64[2]", "", "!f32 and i64" }
#define COMPARE(op) \
	{ op, "f32[2,1] f32[3]", "", "bool[2,3]" }, \
	{ op, "f32[2] i64[2]", "", "!f32 and i64" }
#define LOGIC(op) \
	{ op, "bool[2,1] bool[3]", "", "bool[2,3]" }, \
	{ op, "f32[2] f32[2]", "", "!expected bool" }
#define FLOAT_UNARY(op) \
	{ op, "f16[2,3]", "", "f16[2,3]" }, \
	{ op, "i64[2,3]", "", "!expected floats, found i64" }
#define REDUCE(op) \
	{ op, "f32[2,3,4]", "{axes=[1]}", "f32[2,1,4]" }, \
	{ op, "f32[2,3,4]", "{axes=[-1,0], keepdims=0}", "f32[3]" }, \
	{ op, "f32[2,3]", "{keepdims=0}", "f32[]" }, \
	{ op, "f32[2,3]", "{noop=1}", "f32[2,3]" }, \
	{ op, "f32[2,3,4] i64[2]={0,2}", "", "f32[1,3,1]" }, \
	{ op, "f32[2,3,4] i64[2]", "{keepdims=0}", "f32[?]" }, \
	{ op, "f32[2,3]", "{axes=[2]}", "!axis 2 is out of range" }, \
	{ op, "f32[2,3]", "{axes=[0,-2]}", "!duplicate axis 0" }

static const struct infer_case cases[] = {
	{ OP_NEG, "i32[2]", "", "i32[2]" }, { OP_ABS, "f32[]", "", "f32[]" },
	{ OP_SIGN, "f32[2]", "", "f32[2]" }, FLOAT_UNARY(OP_EXP),
	FLOAT_UNARY(OP_LOG), FLOAT_UNARY(OP_SQRT), FLOAT_UNARY(OP_RECIP),
	FLOAT_UNARY(OP_SIN), FLOAT_UNARY(OP_COS), FLOAT_UNARY(OP_TANH),
	FLOAT_UNARY(OP_ATAN), FLOAT_UNARY(OP_ASINH),
	{ OP_DET, "f32[?,3,3]", "", "f32[?]" },
	{ OP_DET, "f32[2,3]", "", "!expected square matrices" },
	{ OP_DET_GRAD, "f32[2] f32[2,3,3]", "", "f32[2,3,3]" },
	FLOAT_UNARY(OP_SIGMOID), FLOAT_UNARY(OP_ERF),
	{ OP_RELU, "f32[2,?]", "", "f32[2,?]" }, FLOAT_UNARY(OP_SOFTPLUS),
	{ OP_FLOOR, "f32[*]", "", "f32[*]" }, { OP_CEIL, "f32[2]", "", "f32[2]" },
	{ OP_ROUND, "f32[2]", "", "f32[2]" }, FLOAT_UNARY(OP_GELU),
	FLOAT_UNARY(OP_SILU),
	{ OP_GELU_GRAD, "f32[2,3] f32[2,3]", "", "f32[2,3]" },
	{ OP_GELU_GRAD, "f32[2,3] f32[]", "", "f32[2,3]" },
	{ OP_SILU_GRAD, "f32[2,3] f32[2]", "", "!do not broadcast" },
	{ OP_SILU_GRAD, "f32[2,3] f32[2,3]", "", "f32[2,3]" },
	{ OP_SHIELD, "f32[2,3] f32[2]", "", "!do not broadcast" },
	{ OP_SHIELD, "f32[2,3] f32[2,3]", "", "f32[2,3]" },
	{ OP_NOT, "bool[2]", "", "bool[2]" },
	{ OP_NOT, "i64[2]", "", "!expected bool" },
	{ OP_ISNAN, "f32[2]", "", "bool[2]" },
	{ OP_CAST, "f32[2]", "{to=i64}", "i64[2]" },
	{ OP_CAST, "f32[2]", "", "!missing dtype of the cast" },
	{ OP_CAST_LIKE, "f32[2] bf16[3]", "", "bf16[2]" },
	{ OP_DEQUANTIZE, "nf4x64[5,3]", "{to=bf16}", "bf16[5,192]" },
	{ OP_DEQUANTIZE, "int8x64[2]", "{to=f32}", "f32[128]" },
	{ OP_DEQUANTIZE, "int8x64[2]", "{to=f64}", "!at most 32 bits" },
	{ OP_DEQUANTIZE, "f32[2]", "{to=f32}", "!expected blocks" },
	{ OP_MATMUL, "f32[3,128] nf4x64[5,2]", "{tb=1}", "f32[3,5]" },
	{ OP_MATMUL, "bf16[3,5] int8x64[5,2]", "", "bf16[3,128]" },
	{ OP_MATMUL, "i64[3,5] int8x64[5,2]", "", "!expected floats" },
	{ OP_MATMUL, "nf4x64[5,2] f32[128,3]", "", "!does not read" },
	{ OP_ADD, "nf4x64[5,2] nf4x64[5,2]", "", "!does not read" },
	BINARY(OP_ADD), BINARY(OP_SUB), BINARY(OP_MUL), BINARY(OP_DIV),
	{ OP_POW, "f32[2,3] i64[]", "", "f32[2,3]" },
	BINARY(OP_MOD), BINARY(OP_MAX), BINARY(OP_MIN),
	COMPARE(OP_EQ), COMPARE(OP_LT), COMPARE(OP_LE), COMPARE(OP_GT),
	COMPARE(OP_GE), LOGIC(OP_AND), LOGIC(OP_OR), LOGIC(OP_XOR),
	{ OP_WHERE, "bool[2,1] f32[3] f32[]", "", "f32[2,3]" },
	{ OP_WHERE, "f32[2] f32[2] f32[2]", "", "!expected bool" },
	{ OP_DROPOUT, "f32[2,3]", "{ratio=0.1}", "f32[2,3]" },
	{ OP_DROPOUT, "f32[2,3] f32[]={0.1} bool[]={1}", "", "f32[2,3]" },
	{ OP_BERNOULLI, "f64[2,3]", "", "f64[2,3]" },
	{ OP_RANDOM, "", "{shape=[2,3], dt=f16}", "f16[2,3]" },
	{ OP_LOOP, "f32[2,1] f32[3]",
	  "[t0 = add a0, a1; t1 = gt t0, a1; give t0, t1]",
	  "f32[2,3] bool[2,3]" },
	{ OP_LOOP, "f32[2] f32[3]", "[t0 = add a0, a1; give t0]",
	  "!do not broadcast" },
	{ OP_LOOP, "f32[2]", "[t0 = neg a1; give t0]", "!does not exist" },
	{ OP_LOOP, "f32[2]", "[t0 = neg t0; give t0]", "!does not exist" },
	{ OP_LOOP, "f32[2]", "[t0 = softmax a0; give t0]",
	  "!not an element-wise op" },
	{ OP_LOOP, "f32[2]", "[t0: bool = neg a0; give t0]",
	  "!expected f32, found bool" },
	{ OP_LOOP, "f32[2]", "[t0 = neg a0; give t1]", "!scalar op 1 does not exist" },

	{ OP_IDENTITY, "f32[2]", "", "f32[2]" },
	{ OP_RESHAPE, "f32[2,6]", "{shape=[3,4]}", "f32[3,4]" },
	{ OP_RESHAPE, "f32[2,6]", "{shape=[0,-1,2]}", "f32[2,3,2]" },
	{ OP_RESHAPE, "f32[?,6]", "{shape=[0,-1,2]}", "f32[?,?,2]" },
	{ OP_RESHAPE, "f32[1]", "", "f32[]" },
	{ OP_RESHAPE, "f32[2,6] i64[1]={-1}", "", "f32[12]" },
	{ OP_RESHAPE, "f32[2,6] i64[3]", "", "f32[?,?,?]" },
	{ OP_RESHAPE, "f32[2,6] i64[?]", "", "f32[*]" },
	{ OP_RESHAPE, "f32[2,0]", "{shape=[0,-1], allowzero=1}", "f32[0,0]" },
	{ OP_RESHAPE, "f32[2,6]", "{shape=[5]}", "!cannot be reshaped" },
	{ OP_RESHAPE, "f32[2,6]", "{shape=[5,-1]}", "!cannot be reshaped" },
	{ OP_RESHAPE, "f32[2,6]", "{shape=[-1,-1]}", "!more than one -1" },
	{ OP_RESHAPE, "f32[2]", "{shape=[2,0]}", "!no such dim" },
	{ OP_SQUEEZE, "f32[1,2,1]", "", "f32[2]" },
	{ OP_SQUEEZE, "f32[1,2,1] i64[1]={-1}", "", "f32[1,2]" },
	{ OP_SQUEEZE, "f32[1,2]", "{axes=[1]}", "!expected one" },
	{ OP_UNSQUEEZE, "f32[2,3]", "{axes=[0,-1]}", "f32[1,2,3,1]" },
	{ OP_UNSQUEEZE, "f32[2,3] i64[1]", "", "f32[?,?,?]" },
	{ OP_UNSQUEEZE, "f32[2]", "{axes=[3]}", "!out of range" },
	{ OP_FLATTEN, "f32[2,3,4]", "", "f32[2,12]" },
	{ OP_FLATTEN, "f32[2,3,4]", "{axis=-1}", "f32[6,4]" },
	{ OP_FLATTEN, "f32[2,3]", "{axis=3}", "!out of range" },
	{ OP_EXPAND, "f32[3,1]", "{shape=[2,1,4]}", "f32[2,3,4]" },
	{ OP_EXPAND, "f32[3,1] i64[3]", "", "f32[?,3,?]" },
	{ OP_EXPAND, "f32[3]", "{shape=[2]}", "!cannot be expanded" },
	{ OP_TRANSPOSE, "f32[2,3,4]", "", "f32[4,3,2]" },
	{ OP_TRANSPOSE, "f32[2,3,4]", "{perm=[1,0,2]}", "f32[3,2,4]" },
	{ OP_TRANSPOSE, "f32[2,3]", "{perm=[0,0]}", "!not a permutation" },
	{ OP_TRANSPOSE, "f32[2,3]", "{perm=[0,1,2]}", "!expected a permutation of 2" },
	{ OP_SLICE, "f32[10,4] i64[1]={2} i64[1]={7} i64[1]={0} i64[1]={2}",
	  "", "f32[3,4]" },
	{ OP_SLICE, "f32[10] i64[1]={-1} i64[1]={-9223372036854775808} "
	  "i64[1]={0} i64[1]={-1}", "", "f32[10]" },
	{ OP_SLICE, "f32[10] i64[1]={-3} i64[1]={9223372036854775807}", "",
	  "f32[3]" },
	{ OP_SLICE, "f32[10] i64[1]={8} i64[1]={2}", "", "f32[0]" },
	{ OP_SLICE, "f32[10] i64[1]={9} i64[1]={0} i64[1]={0} "
	  "i64[1]={-9223372036854775808}", "", "f32[1]" },
	{ OP_SLICE, "f32[10,3] i64[1] i64[1]={2}", "", "f32[?,?]" },
	{ OP_SLICE, "f32[10,3]", "{start=[1,0], step=[2,1]}", "f32[?,?]" },
	{ OP_SLICE, "f32[10,3]", "{start=[1], step=[2]}", "!for rank 2" },
	{ OP_SLICE, "f32[10] i64[1]={0} i64[1]={2} i64[1]={0} i64[1]={0}",
	  "", "!step must not be 0" },
	{ OP_SLICE, "f32[10] i64[1]={0} i64[2]={2,3}", "", "!different lengths" },
	{ OP_SPLIT, "f32[2,6]", "{axis=1, index=2, count=3}", "f32[2,2]" },
	{ OP_SPLIT, "f32[2,7]", "{axis=1, index=2, count=3}", "f32[2,1]" },
	{ OP_SPLIT, "f32[2,7]", "{axis=1, index=1, chunk=4}", "f32[2,3]" },
	{ OP_SPLIT, "f32[2,7] i64[2]={3,4}", "{axis=1, index=1}", "f32[2,4]" },
	{ OP_SPLIT, "f32[2,7] i64[]={3}", "{axis=-1, index=2}", "f32[2,1]" },
	{ OP_SPLIT, "f32[2,7]", "{axis=0, index=1, keepdims=0}", "f32[7]" },
	{ OP_SPLIT, "f32[2,7] i64[2]={3,5}", "{axis=1}", "!found 8" },
	{ OP_SPLIT, "f32[2,7] i64[2]={3,4}", "{axis=1, index=2}", "!does not exist" },
	{ OP_CONCAT, "f32[2,3] f32[2,4] f32[2,1]", "{axis=-1}", "f32[2,8]" },
	{ OP_CONCAT, "f32[2,3] f32[?,4]", "{axis=1}", "f32[2,7]" },
	{ OP_CONCAT, "f32[2,3] f32[?,?]", "{axis=1}", "f32[2,?]" },
	{ OP_CONCAT, "f32[2,3] f32[3,3]", "{axis=1}", "!cannot concatenate" },
	{ OP_CONCAT, "f32[2] i64[2]", "", "!f32 and i64" },
	{ OP_PAD, "f32[2,3]", "{begin=[0,1], end=[2,3]}", "f32[4,7]" },
	{ OP_PAD, "f32[2,3] i64[2]={1,2} _ i64[1]={-1}", "", "f32[2,6]" },
	{ OP_PAD, "f32[2,3] i64[4]", "", "f32[?,?]" },
	{ OP_PAD, "f32[2,3] i64[4]={0,0,0,-4}", "", "!after padding" },
	{ OP_PAD, "f32[2,3] i64[3]={0,0,0}", "", "!found 3 pad widths for 2 axes" },
	{ OP_TILE, "f32[2,3] i64[2]={2,1}", "", "f32[4,3]" },
	{ OP_TILE, "f32[2,3]", "{repeats=[3]}", "!expected 2 repeats, found 1" },
	{ OP_TRILU, "f32[3,4]", "", "f32[3,4]" },
	{ OP_TRILU, "f32[3]", "", "!expected rank 2" },
	{ OP_COPY, "f32[3,4]", "", "f32[3,4]" },

	{ OP_GATHER, "f32[5,4] i64[2,3]", "", "f32[2,3,4]" },
	{ OP_GATHER, "f32[5,4] i64[]", "{axis=-1}", "f32[5]" },
	{ OP_GATHER, "f32[5,4] f32[2]", "", "!expected integers" },
	{ OP_GATHER, "f32[5,4] i64[2]", "{axis=2}", "!out of range" },
	{ OP_GATHER, "f32[5,4] i64[2,3]", "{part=18}", "f32[2,3,4]" },
	{ OP_GATHER_ELEMENTS, "f32[5,4] i64[2,4]", "", "f32[2,4]" },
	{ OP_GATHER_ELEMENTS, "f32[5,4] i64[2]", "", "!rank 1" },
	{ OP_SCATTER_ELEMENTS, "f32[5,4] i64[2,4] f32[2,4]", "", "f32[5,4]" },
	{ OP_SCATTER_ELEMENTS, "f32[5,4] i64[2,4] f32[2,3]", "", "!updates" },
	{ OP_GATHER_ND, "f32[5,4,3] i64[7,2]", "", "f32[7,3]" },
	{ OP_GATHER_ND, "f32[5,4,3] i64[5,1]", "{batch=1}", "f32[5,3]" },
	{ OP_GATHER_ND, "f32[5,4] i64[7,3]", "", "!exceed rank 2" },
	{ OP_SCATTER_ELEMENTS, "f32[5,4] i64[2,4] f32[2,4]", "{add=4}",
	  "f32[5,4]" },
	{ OP_SCATTER_ELEMENTS, "f32[5,4] i64[2,4] f32[2,4]", "{add=5}",
	  "!expected 0 to 4, found 5" },
	{ OP_SCATTER_ND, "f32[5,4] i64[2,1] f32[2,4]", "{add=-1}",
	  "!expected 0 to 4, found -1" },
	{ OP_SCATTER_ND, "f32[5,4] i64[2,1] f32[2,4]", "", "f32[5,4]" },
	{ OP_SCATTER_ND, "f32[5,4] i64[2,1] f32[2,3]", "", "!updates" },
	{ OP_SCATTER_ADD, "i64[2,3] f32[2,3,4]", "{shape=[5,4]}", "f32[5,4]" },
	{ OP_SCATTER_ADD, "i64[3] f32[4,3] f32[4,5]", "{axis=1, shape=[4,5]}",
	  "f32[4,5]" },
	{ OP_SCATTER_ADD, "i64[3] f32[4,3] f32[4,4]", "{axis=1, shape=[4,5]}",
	  "!accumulator" },
	{ OP_SCATTER_ADD, "i64[2] f32[3,4]", "{shape=[5,4]}", "!updates" },
	{ OP_SCATTER_ADD, "i64[2] f32[2,4]", "{shape=[5,4], part=18}",
	  "f32[5,4]" },
	{ OP_ONE_HOT, "i64[2] i64[]={5} f32[2]={0,1}", "", "f32[2,5]" },
	{ OP_ONE_HOT, "i64[2] i64[]={5} f32[2]={0,1}", "{axis=0}", "f32[5,2]" },
	{ OP_ONE_HOT, "i64[2] i64[]={-5} f32[2]={0,1}", "", "!depth" },

	{ OP_SHAPE, "f32[2,?,4]", "", "i64[3]" },
	{ OP_SHAPE, "f32[2,3,4]", "{start=-2}", "i64[2]" },
	{ OP_SHAPE, "f32[2,3,4]", "{start=1, end=-1}", "i64[1]" },
	{ OP_SIZE, "f32[2]", "", "i64[]" },
	{ OP_RANGE, "i64[]={2} i64[]={9} i64[]={3}", "", "i64[3]" },
	{ OP_RANGE, "i64[]={9} i64[]={2} i64[]={-3}", "", "i64[3]" },
	{ OP_RANGE, "i64[]={9} i64[]={2} i64[]={3}", "", "i64[0]" },
	{ OP_RANGE, "f32[]={0} f32[]={1} f32[]={0.3}", "", "f32[4]" },
	{ OP_RANGE, "i64[] i64[]={2} i64[]={3}", "", "i64[?]" },
	{ OP_RANGE, "i64[]={0} i64[]={2} i64[]={0}", "", "!does not end" },
	{ OP_RANGE, "f32[]={0} f32[]={2} f32[]={0}", "", "!does not end" },
	{ OP_CONSTANT_OF_SHAPE, "i64[2]={2,3}", "{dt=i64}", "i64[2,3]" },
	{ OP_CONSTANT_OF_SHAPE, "i64[0]={}", "", "f32[]" },
	{ OP_CONSTANT_OF_SHAPE, "i64[3]", "", "f32[?,?,?]" },
	{ OP_CONSTANT_OF_SHAPE, "i64[1]={-2}", "", "!extent -2" },
	{ OP_NONZERO, "f32[2,2]={1,0,3,0}", "", "i64[2,2]" },
	{ OP_NONZERO, "f32[2,2]", "", "i64[2,?]" },
	{ OP_RANDOM, "i64[2]", "{dt=f32}", "f32[?,?]" },
	{ OP_RANDOM, "", "{shape=[2], dt=i64}", "!expected a float dtype" },
	{ OP_EXTENT, "", "{dt=i64, shape=[1,1], value=8}", "i64[1,1]" },
	{ OP_EXTENT, "", "{dt=f32, value=8}", "f32[]" },
	{ OP_EXTENT, "", "{dt=f32, shape=[2]}", "!extent 2" },
	{ OP_EXTENT, "", "{value=8}", "!missing dtype" },
	{ OP_SELECTED, "bool[2,3,4]", "", "i64[3,24] i64[]" },
	{ OP_SELECTED, "f32[]", "", "!found a scalar" },
	{ OP_CUMSUM, "f32[2,3]", "{axis=1}", "f32[2,3]" },
	{ OP_CUMSUM, "f32[2,3]", "{axis=2}", "!out of range" },
	{ OP_ARGMAX, "f32[2,3]", "{axis=1, keepdims=0}", "i64[2]" },
	{ OP_ARGMAX, "f32[2,3]", "{axis=2}", "!out of range" },
	REDUCE(OP_REDUCE_SUM), REDUCE(OP_REDUCE_MEAN), REDUCE(OP_REDUCE_MAX),
	REDUCE(OP_REDUCE_MIN), REDUCE(OP_REDUCE_PROD),

	{ OP_MATMUL, "f32[2,3] f32[3,4]", "", "f32[2,4]" },
	{ OP_MATMUL, "f32[3,2] f32[4,3]", "{ta=1, tb=1}", "f32[2,4]" },
	{ OP_MATMUL, "f32[5,1,2,3] f32[6,3,4]", "", "f32[5,6,2,4]" },
	{ OP_MATMUL, "f32[?,2,3] f32[3,4]", "", "f32[?,2,4]" },
	{ OP_MATMUL, "f32[3] f32[3]", "", "f32[]" },
	{ OP_MATMUL, "f32[3] f32[5,3,4]", "", "f32[5,4]" },
	{ OP_MATMUL, "f32[5,2,3] f32[3]", "", "f32[5,2]" },
	{ OP_MATMUL, "f32[2,3] f32[3,4] f32[4]", "", "f32[2,4]" },
	{ OP_MATMUL, "f32[2,3] f32[3,4] _ f32[2,4]", "", "f32[2,4]" },
	{ OP_MATMUL, "f32[2,3] f32[4,4]", "", "!inner dims 3 and 4" },
	{ OP_MATMUL, "f32[2,3] f32[4,3] f32[3]", "{tb=1}", "!bias" },
	{ OP_MATMUL, "f32[2,3] f32[3,4] _ f32[4]", "", "!accumulator" },
	{ OP_MATMUL, "f32[2,2,3] f32[3,3,4]", "", "!batch dims" },
	{ OP_MATMUL, "f32[] f32[3,3,4]", "", "!expected rank 1" },
	{ OP_EXPERT_MATMUL, "f32[6,3] f32[4,3,2] i64[6]", "", "f32[6,2]" },
	{ OP_EXPERT_MATMUL, "bf16[6,3] bf16[4,2,3] i32[6]", "{tb=1}",
	  "bf16[6,2]" },
	{ OP_EXPERT_MATMUL, "f32[?,3] f32[4,3,2] i64[6]", "", "f32[?,2]" },
	{ OP_EXPERT_MATMUL, "f32[6,3] f32[4,2,3] i64[6]", "",
	  "!inner dims 3 and 2" },
	{ OP_EXPERT_MATMUL, "f32[6,3] f32[3,2] i64[6]", "", "!rank 2" },
	{ OP_EXPERT_MATMUL, "f32[6,3] f32[4,3,2] i64[5]", "",
	  "!5 indices for 6 rows" },
	{ OP_EXPERT_MATMUL, "f32[6,3] f32[4,3,2] i64[6,1]", "",
	  "!list of indices" },
	{ OP_EXPERT_MATMUL, "f32[6,3] f32[4,3,2] f32[6]", "",
	  "!expected integers" },
	{ OP_EXPERT_MATMUL, "f32[6,3] f16[4,3,2] i64[6]", "",
	  "!f32 and f16" },
	{ OP_EXPERT_MATMUL, "f32[6,3] f32[4,3,2] i64[6]", "{all=8}",
	  "f32[6,2]" },
	{ OP_EXPERT_MATMUL, "f32[6,3] f32[4,3,2] i64[6]", "{all=3}",
	  "!at least 4 experts, found 3" },
	{ OP_EXPERT_DW, "f32[6,3] f32[6,2] i64[6]", "{experts=4, all=-1}",
	  "!at least 4 experts, found -1" },
	{ OP_EXPERT_SLOTS, "i32[6]", "{all=4, replicas=2, room=5}",
	  "i64[6] i64[10] i32[10]" },
	{ OP_EXPERT_SLOTS, "i64[6]", "{all=5, replicas=2, room=5}",
	  "!expected experts of 2 replicas" },
	{ OP_EXPERT_SLOTS, "i64[6,1]", "{all=4, replicas=2, room=5}",
	  "!a list of indices" },
	{ OP_TAKE_ROWS, "bf16[6,3] i64[4] i64[6]", "", "bf16[4,3]" },
	{ OP_TAKE_ROWS, "f32[6,3] i64[4] i64[5]", "", "!one for each row" },
	{ OP_TAKE_ROWS, "f32[6,3] f32[4] i64[6]", "", "!integers" },
	{ OP_EXPERT_DW, "f32[6,3] f32[6,2] i64[6]", "{experts=4}",
	  "f32[4,3,2]" },
	{ OP_EXPERT_DW, "f32[6,3] f32[5,2] i64[6]", "{experts=4}",
	  "!6 indices for 5 rows" },
	{ OP_EXPERT_DW, "f32[6,3] f32[6,2] i64[6]", "{experts=-1}",
	  "!experts" },
	{ OP_MATMUL, "f32[2,3] f16[3,4]", "", "!f32 and f16" },
	{ OP_MATMUL_END, "bf16[2,3] bf16[3,4]", "", "bf16[2,4] bf16[2]" },
	{ OP_MATMUL_END, "f16[3,2] f16[3,4] f16[2,4]", "{ta=1, end=2}",
	  "f16[2,4] f16[4]" },
	{ OP_MATMUL_END, "bf16[2,3] bf16[4,3] _ bf16[2,4]", "{tb=1, end=3}",
	  "bf16[2,4] bf16[4]" },
	{ OP_MATMUL_END, "bf16[5,2,3] bf16[3,4]", "", "!expected matrices" },
	{ OP_MATMUL_END, "bf16[2,3] bf16[4,4]", "", "!inner dims" },
	{ OP_MATMUL_END, "bf16[2,3] bf16[3,4]", "{end=3}", "!without x" },
	{ OP_MATMUL_END, "bf16[2,3] bf16[3,4] _ bf16[2,4]", "{end=1}",
	  "!with x" },
	{ OP_MATMUL_END, "bf16[2,3] bf16[3,4]", "{end=4}", "!end 4" },
	{ OP_MATMUL_END, "bf16[2,3] bf16[3,4] _ bf16[2,3]", "{end=3}", "!x" },
	{ OP_MATMUL_END, "bf16[2,3] bf16[3,4] bf16[4]", "", "!accumulator" },
	{ OP_MATMUL_END, "i32[2,3] i32[3,4]", "", "!float" },

	{ OP_SOFTMAX, "f32[2,3]", "", "f32[2,3]" },
	{ OP_SOFTMAX, "f32[2,3]", "{axis=-3}", "!out of range" },
	{ OP_LOG_SOFTMAX, "f32[2,3]", "{axis=1}", "f32[2,3]" },
	{ OP_SOFTMAX_GRAD, "f32[2,3] f32[2,3]", "", "f32[2,3]" },
	{ OP_SOFTMAX_GRAD, "f32[2,3] f32[3]", "", "!second operand" },
	{ OP_LOG_SOFTMAX_GRAD, "f32[2,3] f32[2,3]", "", "f32[2,3]" },
	{ OP_LAYERNORM, "f16[2,3,4] f16[4] f16[4]", "",
	  "f16[2,3,4] f32[2,3] f32[2,3]" },
	{ OP_LAYERNORM, "f32[2,3,4] f32[3,4]", "{axis=1}",
	  "f32[2,3,4] f32[2] f32[2]" },
	{ OP_LAYERNORM, "f32[2,3,4] f32[3]", "", "!scale: expected f32[4]" },
	{ OP_LAYERNORM_GRAD, "f32[2,4] f32[2,4] f32[4] f32[2] f32[2]", "",
	  "f32[2,4] f32[4] f32[4]" },
	{ OP_LAYERNORM_GRAD, "f32[2,4] f32[2,4] f32[4] f32[2] f32[4]", "",
	  "!rstd" },
	{ OP_LAYERNORM_GRAD, "f32[2,4] f32[2,4] f32[4] f32[2] f32[2] f32[4]",
	  "", "!accumulator" },
	{ OP_RMSNORM, "f32[2,3,4] f32[4]", "", "f32[2,3,4] f32[2,3]" },
	{ OP_RMSNORM, "f32[] f32[4]", "", "!found a scalar" },
	{ OP_RMSNORM_GRAD, "f32[2,4] f32[2,4] f32[4] f32[2]", "",
	  "f32[2,4] f32[4]" },
	{ OP_RMSNORM_GRAD, "f32[2,4] f32[2,3] f32[3] f32[2]", "", "!adjoint" },
	{ OP_SCE, "f32[6,10] i64[6]", "", "f32[] f32[6] f32[]" },
	{ OP_SCE, "f32[6,10,2] i64[6,2] f32[10]", "{reduction=0}",
	  "f32[6,2] f32[6,2] f32[]" },
	{ OP_SCE, "f32[6,10] i64[10]", "", "!labels: expected i64[6]" },
	{ OP_SCE, "f32[6,10] i64[6] f32[6]", "", "!weights" },
	{ OP_SCE, "f32[6,10] i64[6] _ f32[4,6,3]", "{part=38}",
	  "f32[] f32[6] f32[]" },
	{ OP_SCE, "f32[6,10] i64[6] _ f32[3,6,3]", "{part=38}", "!stats" },
	{ OP_SCE, "f32[6,10] i64[6] _ f32[4,6,3]", "", "!a shard of" },
	{ OP_SCE, "f32[6,10] i64[6]", "{part=38}", "!a shard of" },
	{ OP_SCE, "f32[6,10] i64[6] f32[10] f32[4,6,3]", "{part=38}",
	  "!no class weights" },
	{ OP_SCE_GRAD, "f32[] f32[6,10] i64[6] f32[6] f32[]", "{part=38}",
	  "f32[6,10]" },
	{ OP_VOCAB_STATS, "f16[6,10] i64[6]", "{part=38}", "f32[1,6,3]" },
	{ OP_VOCAB_STATS, "f32[6,10,2] i64[6,2]", "{part=38}", "!rank 2" },
	{ OP_VOCAB_STATS, "f32[6,10] i64[10]", "{part=38}", "!labels" },
	{ OP_SCE_GRAD, "f32[] f32[6,10] i64[6] f32[6] f32[]", "", "f32[6,10]" },
	{ OP_SCE_GRAD, "f32[6] f32[6,10] i64[6] f32[6] f32[]", "",
	  "!gradient of the loss" },
	{ OP_NLL, "f32[6,10] i64[6]", "{reduction=2}", "f32[] f32[]" },
	{ OP_NLL, "f32[6,10] f32[6]", "", "!expected integers" },
	{ OP_NLL_GRAD, "f32[] i64[6] f32[]", "{shape=[6,10]}", "f32[6,10]" },
	{ OP_NLL_GRAD, "f32[] i64[6] f32[]", "{shape=[5,10]}", "!labels" },
	{ OP_CLASSIFIER, "f32[6,4] f32[10,4] i64[6] f32[10]", "",
	  "f32[] f32[6,4] f32[10,4] f32[10]" },
	{ OP_CLASSIFIER, "f32[6,4] f32[4,10] i64[6]", "{tb=0}",
	  "f32[] f32[6,4] f32[4,10]" },
	{ OP_CLASSIFIER, "f32[6,4] f32[4,10] i64[6]", "", "!weights" },
	{ OP_CLASSIFIER, "f32[6,4] f32[10,4] i64[6] f32[10] f32[]", "",
	  "f32[] f32[6,4] f32[10,4] f32[10]" },
	{ OP_CLASSIFIER, "f32[6,4] f32[10,4] i64[6] f32[10] f32[6]", "",
	  "!gradient of the loss" },

	{ OP_ATTENTION, "f32[2,4,6,8] f32[2,4,6,8] f32[2,4,6,8]", "",
	  "f32[2,4,6,8] f32[2,4,6]" },
	{ OP_ATTENTION, "f32[2,4,6,8] f32[2,2,5,8] f32[2,2,5,3] bool[6,5]", "",
	  "f32[2,4,6,3] f32[2,4,6]" },
	{ OP_ATTENTION, "f32[2,4,6,8] f32[2,3,5,8] f32[2,3,5,8]", "",
	  "!do not match" },
	{ OP_ATTENTION, "f32[2,4,6,8] f32[2,4,5,8] f32[2,4,5,8] f32[6,6]", "",
	  "!mask" },
	{ OP_ATTENTION, "f32[4,6,8] f32[4,6,8] f32[4,6,8]", "", "!query" },
	{ OP_ATTENTION_GRAD, "f32[2,4,6,8] f32[2,4,6,8] f32[2,2,5,8] "
	  "f32[2,2,5,8] f32[2,4,6,8] f32[2,4,6]", "",
	  "f32[2,4,6,8] f32[2,2,5,8] f32[2,2,5,8]" },
	{ OP_ATTENTION_GRAD, "f32[2,4,6,8] f32[2,4,6,8] f32[2,2,6,8] "
	  "f32[2,2,6,8] f32[2,4,6,8] f32[2,4,6]", "{packed=1}",
	  "f32[2,6,64]" },
	{ OP_ATTENTION_GRAD, "f32[2,4,6,8] f32[2,4,6,8] f32[2,2,5,8] "
	  "f32[2,2,5,8] f32[2,4,6,8] f32[2,4,6]", "{packed=1}",
	  "!the same shape" },

	{ OP_CONV, "f32[2,3,8,9] f32[4,3,3,3] f32[4]", "",
	  "f32[2,4,6,7]" },
	{ OP_CONV, "f32[2,6,8] f32[4,3,3]",
	  "{stride=[2], dilation=[2], begin=[1], end=[3], group=2}",
	  "f32[2,4,4]" },
	{ OP_CONV, "f32[2,3,8,9] f32[4,3,3,2]", "{stride=[3,2], same=1}",
	  "f32[2,4,3,5]" },
	{ OP_CONV, "f32[?,3,?,9] f32[4,3,3,3]", "", "f32[?,4,?,7]" },
	{ OP_CONV, "f32[2,3,8,9] f32[4,2,3,3]", "", "!found 3" },
	{ OP_CONV, "f32[2,3,8,9] f32[4,3,9,3]", "", "!exceeds" },
	{ OP_CONV, "f32[2,3,8,9] f32[4,3,3,3] f32[3]", "", "!bias" },
	{ OP_CONV, "f32[2,3,8,9] f32[4,3,3,3]", "{stride=[0,1]}",
	  "!strides: 0" },
	{ OP_CONV, "f32[2,3,8,9] f32[4,3,3,3]", "{stride=[1]}",
	  "!expected 2, found 1" },
	{ OP_CONV, "f32[2,3] f32[4,3]", "", "!rank 2" },
	{ OP_CONV, "f32[2,3,8,9] f32[4,3,0,3]", "", "!empty" },
	{ OP_CONV_DX, "f32[2,4,6,7] f32[4,3,3,3] f32[3]", "",
	  "f32[2,3,8,9]" },
	{ OP_CONV_DX, "f32[2,4,6,7] f32[4,3,3,3]",
	  "{stride=[2,2], extra=[1,0], begin=[1,1], group=2}",
	  "f32[2,6,13,14]" },
	{ OP_CONV_DX, "f32[2,4,6] f32[4,3,3]", "{same=2, stride=[2]}",
	  "f32[2,3,12]" },
	{ OP_CONV_DX, "f32[2,4,6] f32[4,3,3]", "{out=[20]}", "f32[2,3,20]" },
	{ OP_CONV_DX, "f32[2,5,6] f32[4,3,3]", "", "!found 5" },
	{ OP_CONV_DW, "f32[2,3,8,9] f32[2,4,6,7]", "{kernel=[3,3]}",
	  "f32[4,3,3,3]" },
	{ OP_CONV_DW, "f32[2,3,8,9] f32[2,4,6,7]", "{kernel=[3]}",
	  "!found 1" },
	{ OP_CONV_DW, "f32[2,3,8,9] f32[1,4,6,7]", "{kernel=[3,3]}",
	  "!2 images and" },
	{ OP_BATCHNORM, "f16[2,3,4,5] f16[3] f16[3]", "",
	  "f16[2,3,4,5] f32[3] f32[3]" },
	{ OP_BATCHNORM, "f32[2,3]", "", "f32[2,3] f32[3] f32[3]" },
	{ OP_BATCHNORM, "f32[2,3] f32[2]", "", "!scale" },
	{ OP_BATCHNORM_GRAD, "f32[2,3,4] f32[2,3,4] f32[3] f32[3] f32[3]",
	  "", "f32[2,3,4] f32[3] f32[3]" },
	{ OP_BATCHNORM_GRAD, "f32[2,3,4] f32[2,3,4] f32[3] f32[4]", "",
	  "!variance" },
	{ OP_BN_UPDATE, "f32[3] f32[3]", "", "f32[3]" },
	{ OP_BN_UPDATE, "f32[3] f32[4]", "", "!second operand" },
	{ OP_MAXPOOL, "f32[2,3,8,9]", "{kernel=[3,2], stride=[2,2]}",
	  "f32[2,3,3,4] i32[2,3,3,4]" },
	{ OP_MAXPOOL, "f32[2,3,8]", "{kernel=[3], stride=[2], ceil=1}",
	  "f32[2,3,4] i32[2,3,4]" },
	{ OP_MAXPOOL, "f32[2,3,8]",
	  "{kernel=[2], stride=[4], ceil=1}",
	  "f32[2,3,2] i32[2,3,2]" },
	{ OP_MAXPOOL, "f32[2,3,8]", "{kernel=[3,3]}", "!found 2" },
	{ OP_MAXPOOL_GRAD, "f32[2,3,4] i32[2,3,4]", "{out=[8]}",
	  "f32[2,3,8]" },
	{ OP_MAXPOOL_GRAD, "f32[2,3,4] i32[2,3,3]", "{out=[8]}",
	  "!positions" },
	{ OP_AVGPOOL, "f32[2,3,8]", "{kernel=[3], same=2, stride=[3]}",
	  "f32[2,3,3]" },
	{ OP_AVGPOOL, "f32[2,3,2]", "{kernel=[3]}", "!exceeds" },
	{ OP_AVGPOOL_GRAD, "f32[2,3,4]", "{kernel=[3], out=[8]}",
	  "f32[2,3,8]" },
	{ OP_AVGPOOL_GRAD, "f32[2,3,4]", "{kernel=[3], out=[8,8]}",
	  "!found 2" },
	{ OP_INTERPOLATE, "f32[1,2,3,5] _ f32[4]={1,1,2,2.5}", "",
	  "f32[1,2,6,12]" },
	{ OP_INTERPOLATE, "f32[1,2,3,5] _ _ i64[2]={6,7}", "{axes=[-2,-1]}",
	  "f32[1,2,6,7]" },
	{ OP_INTERPOLATE, "f32[1,2,3,5] _ _ i64[2]={6,20}",
	  "{axes=[2,3], policy=1}", "f32[1,2,6,10]" },
	{ OP_INTERPOLATE, "f32[1,2,3,5] _ f32[3]={1,1,2}", "", "!do not match" },
	{ OP_INTERPOLATE, "f32[1,2,3,5] _ f32[4]={1,1,2,0}", "",
	  "!out of range" },
	{ OP_RESIZE, "f32[2,3]", "{axis=1, extent_in=3, extent_out=7}",
	  "f32[2,7]" },
	{ OP_RESIZE, "f32[2,7]", "{axis=-1, extent_in=3, extent_out=7, bwd=1}",
	  "f32[2,3]" },
	{ OP_RESIZE, "f32[2,3]", "{axis=1, extent_in=4, extent_out=7}",
	  "!extent 3" },
	{ OP_COL2IM, "f32[2,12,20] i64[2]={5,6} i64[2]={2,2}", "",
	  "f32[2,3,5,6]" },
	{ OP_COL2IM, "f32[2,?,?] i64[2]={5,6} i64[2]={2,2}", "",
	  "f32[2,?,5,6]" },
	{ OP_COL2IM, "f32[2,9,4] i64[1]={7} i64[1]={3}",
	  "{stride=[2], begin=[1], end=[1]}", "f32[2,3,7]" },
	{ OP_COL2IM, "f32[2,12,21] i64[2]={5,6} i64[2]={2,2}", "", "!one per window" },
	{ OP_COL2IM, "f32[2,10,20] i64[2]={5,6} i64[2]={2,2}", "",
	  "!multiple" },
	{ OP_COL2IM, "f32[2,12] i64[2]={5,6} i64[2]={2,2}", "", "!rank" },
	{ OP_COL2IM, "f32[2,12,20] i64[2]={5,6} i64[1]={2}", "", "!image and block" },
	{ OP_COL2IM, "f32[2,12,20] i64[2]={5,6} i64[2]={2,7}", "",
	  "!larger than" },
	{ OP_COL2IM, "f32[2,12,20] i64[2]={5,0} i64[2]={2,2}", "",
	  "!out of range" },
	{ OP_COL2IM, "f32[2,12,20] i64[2]={5,6} i64[2]={2,2}",
	  "{stride=[1]}", "!per dim" },
	{ OP_GRID_SAMPLE, "f32[2,3,4,5] f32[2,6,7,2]", "", "f32[2,3,6,7]" },
	{ OP_GRID_SAMPLE, "f32[2,3,4,5,6] f32[2,7,8,9,3]", "{mode=0}",
	  "f32[2,3,7,8,9]" },
	{ OP_GRID_SAMPLE, "f32[2,3,?,?] f32[?,?,7,2]", "", "f32[2,3,?,7]" },
	{ OP_GRID_SAMPLE, "f32[2,3,4,5] f32[1,6,7,2]", "", "!does not match" },
	{ OP_GRID_SAMPLE, "f32[2,3,4,5] f32[2,6,7,3]", "", "!does not match" },
	{ OP_GRID_SAMPLE, "f32[2,3,4,5] f32[2,6,2]", "", "!does not match" },
	{ OP_GRID_SAMPLE, "f32[2,3] f32[2,0]", "", "!does not match" },
	{ OP_GRID_SAMPLE, "f32[2,3,4,5] i32[2,6,7,2]", "", "!floats" },
	{ OP_GRID_SAMPLE, "f32[2,3,4,5] f32[2,6,7,2]", "{mode=2}",
	  "f32[2,3,6,7]" },
	{ OP_GRID_SAMPLE, "f32[2,3,4,5] f32[2,6,7,2]", "{mode=3}", "!mode" },
	{ OP_GRID_SAMPLE, "f32[2,3,4,5,6] f32[2,7,8,9,3]", "{mode=2}",
	  "!cubic" },
	{ OP_GRID_SAMPLE_GRAD, "f32[2,3,6,7] f32[2,6,7,2] f32[2,3,4,5]",
	  "{out=[4,5]}", "f32[2,3,4,5] f32[2,6,7,2]" },
	{ OP_GRID_SAMPLE_GRAD, "f32[2,3,6,7] f32[2,6,7,2] f32[2,3,4,6]",
	  "{out=[4,5]}", "!operand" },
	{ OP_GRID_SAMPLE_GRAD, "f32[2,3,6,8] f32[2,6,7,2] f32[2,3,4,5]",
	  "{out=[4,5]}", "!differ" },
	{ OP_GRID_SAMPLE_GRAD, "f32[2,3,6,7] f32[2,6,7,2]", "{out=[4,5]}",
	  "f32[2,3,4,5] f32[2,6,7,2]" },
	{ OP_GRID_SAMPLE_GRAD, "f32[2,3,6,7] f32[2,6,7,2] f32[2,3,4,5]",
	  "{out=[4]}", "!found 1" },

	{ OP_BIT_NOT, "i32[2,3]", "", "i32[2,3]" },
	{ OP_BIT_AND, "u8[2,1] u8[3]", "", "u8[2,3]" },
	{ OP_BIT_OR, "i64[2] i64[3]", "", "!3" },
	{ OP_BIT_OR, "i64[2] i64[1]", "", "i64[2]" },
	{ OP_BIT_XOR, "u16[] u16[4]", "", "u16[4]" },
	{ OP_SHL, "u32[2,3] u32[3]", "", "u32[2,3]" },
	{ OP_SHR, "u64[2] u64[2]", "", "u64[2]" },
	{ OP_TOPK, "f32[2,7]", "{k=3}", "f32[2,3] i64[2,3]" },
	{ OP_TOPK, "f32[2,7]", "{k=2, axis=0}", "f32[2,7] i64[2,7]" },
	{ OP_TOPK, "f32[2,7]", "{k=8}", "!k is 8" },
	{ OP_RNN, "f32[5,2,3] f32[4,3] f32[4,4]", "",
	  "f32[5,2,4] f32[2,4] f32[2,4]" },
	{ OP_RNN, "f32[5,2,3] f32[16,3] f32[16,4] f32[32]", "{kind=2}",
	  "f32[5,2,4] f32[2,4] f32[2,4]" },
	{ OP_RNN, "f32[5,2,3] f32[12,3] f32[16,4]", "{kind=1}", "!weights" },

	{ OP_ALL_REDUCE, "bf16[2,3]", "{side=1}", "bf16[2,3]" },
	{ OP_REPLICATE, "f32[2,3]", "", "f32[2,3]" },
	{ OP_ALL_GATHER, "f32[2,3]", "{axis=1, lead=1, part=[11]}",
	  "f32[2,11]" },
	{ OP_ALL_GATHER, "f32[1,3,5]", "{axis=1, part=[10]}", "f32[1,10,5]" },
	{ OP_ALL_GATHER, "f32[2,3]", "{axis=1, lead=1, shared=2,"
	  " part=[2,4]}", "f32[2,6]" },
	{ OP_ALL_GATHER, "f32[2,3]", "{axis=1, lead=1, part=[8]}",
	  "!shard of a rank" },
	{ OP_ALL_GATHER, "f32[2,3]", "{axis=2, part=[12]}",
	  "!invalid shard axis 2 for rank 2" },
	{ OP_OWN_GRAD, "f32[2,3]", "{axis=1, lead=1, part=[11]}",
	  "f32[2,11]" },
	{ OP_OWN_GRAD, "f32[2,3]", "{axis=1, lead=1, part=[8]}",
	  "!shard of a rank" },
	{ OP_OWN, "f32[2,5,6]", "{axis=1, part=[10]}", "f32[1,3,6]" },
	{ OP_OWN, "f32[2,24]", "{axis=1, lead=1, part=[8,16]}", "f32[2,6]" },
	{ OP_OWN, "f32[2,24]", "{axis=1, lead=1, shared=2, part=[24]}",
	  "f32[2,12]" },
	{ OP_OWN, "f32[2,24]", "{axis=1, lead=1, part=[18,6]}",
	  "!cannot be sharded in this way over 4 ranks" },
	{ OP_OWN, "f32[2,24]", "{axis=1, lead=1, part=[8]}",
	  "!cannot be sharded in this way" },
	{ OP_OWN, "f32[2,24]", "{axis=1, lead=1, shared=3, part=[24]}",
	  "!cannot be sharded in this way" },
	{ OP_REDUCE_SCATTER, "f32[10,6]", "{part=[10]}", "f32[3,6]" },
	{ OP_REDUCE_SCATTER, "f32[10,6]", "{axis=2, lead=2, part=[6]}",
	  "!cannot be sharded in this way" },
	{ OP_REDUCE_SCATTER, "f32[5,3]", "{axis=1, part=[15], group=1}",
	  "f32[1,5]" },
	{ OP_OWN, "f32[2,5]", "{axis=1, part=[10], group=1}", "f32[1,4]" },
	{ OP_GATHER_INTO, "f32[2,5] f32[1,4]", "{axis=1, part=[10]}",
	  "f32[2,5]" },
	{ OP_GATHER_INTO, "f32[2,5] f32[1,3]", "{axis=1, part=[10]}",
	  "!shard of a replica" },
	{ OP_GATHER_INTO, "f32[2,5] f32[1,4]", "{axis=1, part=[11]}",
	  "!cannot be sharded in this way over 3 ranks" },
	{ OP_GATHER_PIECES, "bf16[1,4]", "{axis=1, part=[10], shape=[2,5]}",
	  "bf16[2,5]" },
	{ OP_GATHER_PIECES, "bf16[1,5]", "{axis=1, part=[10], shape=[2,5]}",
	  "!shard of a replica" },
	{ OP_GATHER_ROWS, "i64[2,5]", "", "i64[6,5]" },
	{ OP_GATHER_ROWS, "f32[?,5]", "", "f32[?,5]" },
	{ OP_GATHER_ROWS, "f32[]", "", "!expected rows" },
	{ OP_SUM_ROWS, "bf16[6,5]", "", "bf16[2,5]" },
	{ OP_SEND, "bf16[6,5]", "{peer=1, tag=2}", "_" },
	{ OP_RECEIVE, "", "{peer=1, tag=2, dt=f32, shape=[2,3]}",
	  "f32[2,3]" },
	{ OP_RECEIVE, "", "{dt=f32, shape=[-2]}", "!extent -2" },
	{ OP_EXCHANGE_ROWS, "f32[1,3,2,5]", "", "f32[3,1,2,5]" },
	{ OP_EXCHANGE_ROWS, "f32[3,1,2]", "", "f32[1,3,2]" },
	{ OP_EXCHANGE_ROWS, "f32[1,4,2]", "", "!blocks of replicas" },
	{ OP_SUM_ROWS, "f32[7,5]", "", "!cannot be those of 3 replicas" },
	{ OP_ALL_TO_ALL, "f32[3,7]", "{part=[10], to_axis=1, to_lead=1,"
	  " to_part=[7]}", "f32[10,2]" },
	{ OP_ALL_TO_ALL, "f32[3,7]", "{part=[10], to_axis=1, to_lead=0,"
	  " to_part=[70]}", "!axes 0 and 1" },
	{ OP_ALL_TO_ALL, "f32[3,7]", "{part=[16], to_axis=1, to_lead=1,"
	  " to_part=[7]}", "!shard of a rank" },
	{ OP_SUM_SQUARES, "f32[2] bf16[3,4] f32[]", "", "f32[]" },

	{ OP_FETCH, "bf16[2,3]", "", "bf16[2,3]" },
	{ OP_OFFLOAD, "f32[]", "", "f32[]" },
	{ OP_OFFLOAD_INTO, "f32[2,3] f32[2,3]", "", "f32[2,3]" },
	{ OP_OFFLOAD_INTO, "f32[2,3] f32[3,2]", "", "!gradient or state" },

	{ OP_FILL, "", "{shape=[2,3], value=1}", "f32[2,3]" },
	{ OP_FILL, "", "{shape=[-2]}", "!extent -2" },
	{ OP_LOSS_SCALE, "", "{value=0.5}", "f32[]" },
	{ OP_SHARE, "", "", "f32[]" },
	{ OP_SHARE, "", "{micro=1}", "f32[]" },
	{ OP_BATCH_TOTAL, "f32[2,3] f32[2,3]", "", "f32[2,3]" },
	{ OP_GRAD_NORM, "f32[2] f32[3,4]", "", "f32[]" },
	{ OP_ACCUMULATE, "f32[2] f32[2]", "", "f32[2]" },
	{ OP_ACCUMULATE, "f32[2] bf16[2]", "", "f32[2]" },
	{ OP_ACCUMULATE, "f32[2] f32[3]", "", "!gradient or state" },
	{ OP_EMA, "f32[2] bf16[2]", "", "f32[2]" },
	{ OP_EMA, "f32[2] f32[3]", "", "!gradient or state" },
	{ OP_SGD, "f32[2] f32[2] f32[]", "", "f32[2] ?[*]" },
	{ OP_SGD, "f32[2] f32[3]", "", "!gradient or state" },
	{ OP_ADAMW, "f32[2] f32[2] f32[2] f32[2]", "",
	  "f32[2] f32[2] f32[2] ?[*]" },
	{ OP_ADAMW, "f32[2] f32[2] f32[2] f32[2] f32[2]", "", "!norm" },
	{ OP_SGD, "f32[2] f32[2] f32[] bf16[2]", "", "f32[2] bf16[2]" },
	{ OP_SGD, "f32[2] f32[2] f32[] bf16[3]", "", "!copy" },
	{ OP_SGDM, "f32[2] f32[2] f32[2]", "", "f32[2] f32[2] ?[*]" },
	{ OP_SGDM, "bf16[2] bf16[2] f32[2] f32[]", "",
	  "bf16[2] f32[2] ?[*]" },
	{ OP_SGDM, "f32[2] f32[2] f32[3]", "", "!gradient or state" },
	{ OP_LION, "f32[2] f32[2] f32[2] f32[]", "",
	  "f32[2] f32[2] ?[*]" },
	{ OP_LION, "f32[2] f32[2] f32[2] f32[2]", "", "!norm" },
	{ OP_ADAFACTOR, "f32[5,2,3] f32[5,2,3] f32[5,2] f32[5,3]", "",
	  "f32[5,2,3] f32[5,2] f32[5,3]" },
	{ OP_ADAFACTOR, "f32[2,3] f32[2,3] f32[2] f32[3] f32[2] f32[3] f32[2] "
	  "f32[]", "", "f32[2,3] f32[2] f32[3]" },
	{ OP_ADAFACTOR, "f32[2,3] f32[2,3] f32[2] f32[3] f32[2]", "",
	  "!or neither" },
	{ OP_ADAFACTOR, "f32[2,3] f32[2,3] f32[2] f32[3] f32[3] f32[3]", "",
	  "!new row means" },
	{ OP_ADAFACTOR, "f32[2,3] f32[2,3] f32[2] f32[3] f32[2] f32[3] f32[]",
	  "", "!two mean squares" },
	{ OP_ADAFACTOR_MEANS, "bf16[5,2,3] f32[]", "", "f32[5,2] f32[5,3]" },
	{ OP_ADAFACTOR_MEANS, "f32[3]", "", "!rank" },
	{ OP_ADAFACTOR_MEANS, "f32[2,3] f32[2]", "", "!norm" },
	{ OP_ADAFACTOR_SQUARES, "f32[2,3] f32[2,3] f32[2] f32[3] f32[2] f32[3] "
	  "f32[]", "", "f32[2]" },
	{ OP_ADAFACTOR_SQUARES, "f32[3] bf16[3] f32[3]", "", "f32[2]" },
	{ OP_ADAFACTOR_SQUARES, "f32[2,3] f32[2,3] f32[3]", "",
	  "!rank 2 needs column means" },
	{ OP_ADAFACTOR, "f32[2,3] f32[2,3] f32[3] f32[2]", "",
	  "!row means" },
	{ OP_ADAFACTOR, "f32[2,3] f32[2,3] f32[2]", "",
	  "!rank 2 needs column means" },
	{ OP_ADAFACTOR, "f32[3] f32[3] f32[3] f32[3]", "", "!no column means" },
};

/* The graph of a case: operands %a, %b..., outputs %y0, %y1... */
static char *
case_text(const struct infer_case *t, int nout)
{
	char *text = NULL, *in = strdup(t->in), *save;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	char operands[64] = "", name = 'a';

	fputs("graph @g {\nranks 4\nreplicas 3 exactly\n", f);
	for (char *s = strtok_r(in, " ", &save); s;
	     s = strtok_r(NULL, " ", &save)) {
		size_t at = strlen(operands);

		snprintf(operands + at, sizeof operands - at, "%s%s%c",
		         at ? ", " : "", *s == '_' ? "" : "%",
		         *s == '_' ? '_' : name);
		if (*s != '_')
			fprintf(f, "%s %%%c: %s\n",
			        strchr(s, '=') ? "const" : "input", name, s);
		name++;
	}
	for (int i = 0; i < nout; i++)
		fprintf(f, *t->want == '_' ? "_" : "%s%%y%d", i ? ", " : "", i);
	fprintf(f, " = %s %s %s\n}\n", op_info[t->op].text, operands, t->attr);
	fclose(f);
	free(in);
	return text;
}

static int
words(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += *s == ' ' || !s[1];
	return n;
}

static void
check_outputs(const struct infer_case *t, const Graph *g)
{
	char found[512] = "";

	for (int i = 0; i < g->node[1].nout; i++) {
		const Val *v = &g->val[g->node[1].out[i]];
		char one[128];

		strcat(found, i ? " " : "");
		if (!g->node[1].out[i]) {
			strcat(found, "_");
			continue;
		}
		strcat(found, shape_text(one, sizeof one, v->dt, &v->shape));
	}
	if (strcmp(found, t->want) != 0)
		fail_msg("%s %s %s: expected %s, found %s",
		         op_info[t->op].text, t->in, t->attr, t->want, found);
}

static void
check_case(const struct infer_case *t)
{
	bool wrong = *t->want == '!';
	int nout = op_info[t->op].nout;
	struct sink s;
	Graph *g;
	char *text;

	if (nout == VARIADIC)
		nout = t->op == OP_ATTENTION_GRAD
			? (strstr(t->attr, "packed") ? 1 : 3)
			: t->op == OP_CLASSIFIER ? 3 + (words(t->in) > 3)
			: wrong ? 1 : words(t->want);
	text = case_text(t, nout);
	sink_open(&s);
	g = parse(&s, text);
	if (!g != wrong)
		fail_msg("%s: %s", text, g ? "no fault" : sink_text(&s));
	if (wrong && !strstr(sink_text(&s), t->want + 1))
		fail_msg("%s: expected '%s', found: %s", text, t->want + 1,
		         sink_text(&s));
	if (!wrong) {
		check_outputs(t, g);
		/* a second time nothing changes, and nothing contradicts */
		assert_true(shape_infer(g, s.diag, &g->node[1]));
		check_outputs(t, g);
	}
	graph_free(g);
	sink_close(&s);
	free(text);
}

static void
rules(void **state)
{
	bool seen[OP_COUNT] = { false };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		check_case(&cases[i]);
		seen[cases[i].op] |= *cases[i].want != '!';
	}
	for (int i = OP_NONE + 1; i < OP_COUNT; i++)
		if (!seen[i])
			fail_msg("no case for %s", op_info[i].text);
}

static void
contradictions(void **state)
{
	static const struct {
		const char *text, *want;
	} t[] = {
		{ "input %x: f32[2,3]\n%y: f32[2,4] = neg %x",
		  "x.ck:3: node 'y' (neg): output 0 'y': expected f32[2,3], "
		  "found f32[2,4]" },
		{ "input %x: f32[2,3]\n%y: i64[2,3] = neg %x from \"N\" Neg",
		  "x.ck:3: node 'N' (Neg): output 0 'y': expected f32" },
		{ "input %x: f32[10]\n"
		  "%y: f32[4] = slice %x {start=[1], step=[3]}",
		  "axis 0: slice of 4 elements from 1 with step 3 leaves the "
		  "range 0..9" },
		{ "input %x: f32[8]\n%y = own %x {part=[8]}",
		  "the graph does not declare its number of ranks" },
		{ "input %x: f32[10]\n%y = add %x", "expected 2 operands, found 1" },
		{ "input %x: f32[10]\n%y = add %x, _", "operand 1 is missing" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct sink s;
		char text[512];

		sink_open(&s);
		snprintf(text, sizeof text, "graph @g {\n%s\n}\n", t[i].text);
		assert_null(parse(&s, text));
		if (!strstr(sink_text(&s), t[i].want))
			fail_msg("expected %s\nfound %s", t[i].want,
			         sink_text(&s));
		sink_close(&s);
	}
}

/* What is known of an output is kept, what is not is filled in. */
static void
known_outputs(void **state)
{
	struct sink s;
	Graph *g;
	char text[64];
	const Val *v;

	(void)state;
	sink_open(&s);
	g = parse(&s, "graph @g {\ninput %x: f32[?,3]\n"
	              "%y: ?[4,?] = neg %x\n"
	              "%z: f32[2,4,3] = loop %y [t0 = neg a0; give t0]\n}\n");
	assert_non_null(g);
	v = &g->val[val_find(g, "y")];
	assert_string_equal(shape_text(text, sizeof text, v->dt, &v->shape),
	                    "f32[4,3]");
	v = &g->val[val_find(g, "z")];
	assert_string_equal(shape_text(text, sizeof text, v->dt, &v->shape),
	                    "f32[2,4,3]");
	graph_free(g);
	sink_close(&s);
}

int
test_infer(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules), cmocka_unit_test(contradictions),
		cmocka_unit_test(known_outputs),
	};

	return cmocka_run_group_tests_name("infer", tests, NULL, NULL);
}
