/* The table of ONNX operators: what is read, how, and where gradients stop.
 *
 * Versions: `since` is the oldest opset whose form the run function
 * understands; changes after it are the run function's business.
 */
#include "frontend/importer.h"

#include <string.h>

#define MS "com.microsoft"
#define NORM_SLOTS { { 1, 1, MAX_RANK }, { 2, 1, MAX_RANK } }
#define CONV_SLOTS { { 1, 3, 5 }, { 2, 1, 1 } }
#define RNN_SLOTS { { 1, 3, 3 }, { 2, 3, 3 }, { 3, 2, 2 } }
#define ALL .stop = ALL_INPUTS
#define N(text, of, version, lo, hi, function) \
	.name = text, .domain = of, .since = version, .nin_min = lo, \
	.nin_max = hi, .run = function

static const struct onnx_op table[] = {
	/* element-wise */
	{ N("Abs", "", 7, 1, 1, run_same), .ir = OP_ABS },
	{ N("Add", "", 7, 2, 2, run_same), .ir = OP_ADD, .norm = 3 },
	{ N("And", "", 7, 2, 2, run_same), .ir = OP_AND, ALL },
	{ N("Cast", "", 6, 1, 1, run_cast) },
	{ N("CastLike", "", 15, 2, 2, run_same),
	  .ir = OP_CAST_LIKE, .stop = 2 },
	{ N("Ceil", "", 6, 1, 1, run_same), .ir = OP_CEIL, ALL },
	{ N("Celu", "", 12, 1, 1, run_celu) },
	{ N("Clip", "", 6, 1, 3, run_clip), .stop = 6 },
	{ N("Cos", "", 7, 1, 1, run_same), .ir = OP_COS },
	{ N("Div", "", 7, 2, 2, run_same), .ir = OP_DIV },
	{ N("Dropout", "", 7, 1, 3, run_dropout), .stop = 6, .dead = 2 },
	{ N("Elu", "", 6, 1, 1, run_elu) },
	{ N("Equal", "", 7, 2, 2, run_same), .ir = OP_EQ, ALL },
	{ N("Erf", "", 9, 1, 1, run_same), .ir = OP_ERF },
	{ N("Exp", "", 6, 1, 1, run_same), .ir = OP_EXP },
	{ N("Floor", "", 6, 1, 1, run_same), .ir = OP_FLOOR, ALL },
	{ N("Gelu", "", 20, 1, 1, run_gelu) },
	{ N("Greater", "", 7, 2, 2, run_same), .ir = OP_GT, ALL },
	{ N("GreaterOrEqual", "", 12, 2, 2, run_same), .ir = OP_GE, ALL },
	{ N("HardSigmoid", "", 6, 1, 1, run_hard_sigmoid) },
	{ N("HardSwish", "", 14, 1, 1, run_hard_swish) },
	{ N("Identity", "", 1, 1, 1, run_identity) },
	{ N("IsInf", "", 10, 1, 1, run_isinf), .stop = ALL_INPUTS },
	{ N("IsNaN", "", 9, 1, 1, run_same), .ir = OP_ISNAN, ALL },
	{ N("LeakyRelu", "", 6, 1, 1, run_leaky_relu) },
	{ N("Less", "", 7, 2, 2, run_same), .ir = OP_LT, ALL },
	{ N("LessOrEqual", "", 12, 2, 2, run_same), .ir = OP_LE, ALL },
	{ N("Log", "", 6, 1, 1, run_same), .ir = OP_LOG },
	{ N("Max", "", 6, 1, -1, run_fold_left), .ir = OP_MAX },
	{ N("Mean", "", 6, 1, -1, run_mean) },
	{ N("Min", "", 6, 1, -1, run_fold_left), .ir = OP_MIN },
	{ N("Mish", "", 18, 1, 1, run_mish) },
	{ N("Mod", "", 10, 2, 2, run_mod), .stop = ALL_INPUTS },
	{ N("Mul", "", 7, 2, 2, run_same), .ir = OP_MUL, .norm = 3 },
	{ N("Neg", "", 6, 1, 1, run_same), .ir = OP_NEG },
	{ N("Not", "", 1, 1, 1, run_same), .ir = OP_NOT, ALL },
	{ N("Or", "", 7, 2, 2, run_same), .ir = OP_OR, ALL },
	{ N("PRelu", "", 7, 2, 2, run_prelu), .slot = { { 1, 1, MAX_RANK } } },
	{ N("Pow", "", 7, 2, 2, run_same), .ir = OP_POW },
	{ N("Reciprocal", "", 6, 1, 1, run_same), .ir = OP_RECIP },
	{ N("Relu", "", 6, 1, 1, run_same), .ir = OP_RELU },
	{ N("Round", "", 11, 1, 1, run_same), .ir = OP_ROUND, ALL },
	{ N("Selu", "", 6, 1, 1, run_selu) },
	{ N("Sigmoid", "", 6, 1, 1, run_same), .ir = OP_SIGMOID },
	{ N("Sign", "", 9, 1, 1, run_same), .ir = OP_SIGN, ALL },
	{ N("Sin", "", 7, 1, 1, run_same), .ir = OP_SIN },
	{ N("Softplus", "", 1, 1, 1, run_same), .ir = OP_SOFTPLUS },
	{ N("Softsign", "", 1, 1, 1, run_softsign) },
	{ N("Sqrt", "", 6, 1, 1, run_same), .ir = OP_SQRT },
	{ N("Sub", "", 7, 2, 2, run_same), .ir = OP_SUB },
	{ N("Sum", "", 6, 1, -1, run_fold_left), .ir = OP_ADD },
	{ N("Swish", "", 24, 1, 1, run_swish) },
	{ N("Tan", "", 7, 1, 1, run_tan) },
	{ N("Tanh", "", 6, 1, 1, run_same), .ir = OP_TANH },
	{ N("ThresholdedRelu", "", 10, 1, 1, run_thresholded_relu) },
	{ N("Where", "", 9, 3, 3, run_same), .ir = OP_WHERE, .stop = 1 },
	{ N("Xor", "", 7, 2, 2, run_same), .ir = OP_XOR, ALL },

	/* moving, selecting, making */
	{ N("ArgMax", "", 1, 1, 1, run_arg), .ir = OP_ARGMAX, ALL },
	{ N("ArgMin", "", 1, 1, 1, run_arg), .ir = OP_NEG, ALL },
	{ N("Concat", "", 4, 1, -1, run_concat) },
	{ N("ConcatFromSequence", "", 11, 1, 1, run_concat_from_sequence) },
	{ N("Constant", "", 1, 0, 0, run_constant) },
	{ N("ConstantOfShape", "", 9, 1, 1, run_constant_of_shape),
	  .stop = ALL_INPUTS },
	{ N("CumSum", "", 11, 2, 2, run_cumsum), .stop = 2 },
	{ N("DepthToSpace", "", 1, 1, 1, run_space_depth), .ir = OP_RESHAPE },
	{ N("Expand", "", 8, 2, 2, run_same), .ir = OP_EXPAND, .stop = 2 },
	{ N("Flatten", "", 1, 1, 1, run_flatten) },
	{ N("Gather", "", 1, 2, 2, run_gather), .ir = OP_GATHER, .stop = 2,
	  .slot = { { 0, 3, 3 } } },
	{ N("GatherElements", "", 11, 2, 2, run_gather),
	  .ir = OP_GATHER_ELEMENTS,
	  .stop = 2 },
	{ N("GatherND", "", 11, 2, 2, run_gather_nd), .stop = 2,
	  .slot = { { 0, 3, 3 } } },
	{ N("NonZero", "", 9, 1, 1, run_same), .ir = OP_NONZERO, ALL },
	{ N("OneHot", "", 9, 3, 3, run_one_hot), .stop = ALL_INPUTS },
	{ N("Pad", "", 2, 1, 4, run_pad), .stop = 14 },
	{ N("Range", "", 11, 3, 3, run_same), .ir = OP_RANGE, ALL },
	{ N("Reshape", "", 5, 2, 2, run_reshape), .stop = 2 },
	{ N("ScatterElements", "", 11, 3, 3, run_scatter_elements), .stop = 2 },
	{ N("ScatterND", "", 11, 3, 3, run_scatter_nd), .stop = 2 },
	{ N("SequenceAt", "", 11, 2, 2, run_sequence_at), .stop = 2 },
	{ N("SequenceConstruct", "", 11, 1, -1, run_sequence_construct) },
	{ N("SequenceLength", "", 11, 1, 1, run_sequence_length), ALL },
	{ N("Shape", "", 1, 1, 1, run_shape), .stop = ALL_INPUTS },
	{ N("Size", "", 1, 1, 1, run_same), .ir = OP_SIZE, ALL },
	{ N("Slice", "", 1, 1, 5, run_slice), .ir = OP_SLICE, .stop = 30 },
	{ N("SpaceToDepth", "", 1, 1, 1, run_space_depth), .ir = OP_TRANSPOSE },
	{ N("Split", "", 2, 1, 2, run_split), .stop = 2 },
	{ N("SplitToSequence", "", 11, 1, 2, run_split_to_sequence),
	  .stop = 2 },
	{ N("Squeeze", "", 1, 1, 2, run_axes), .ir = OP_SQUEEZE, .stop = 2 },
	{ N("Tile", "", 6, 2, 2, run_same), .ir = OP_TILE, .stop = 2 },
	{ N("Transpose", "", 1, 1, 1, run_transpose) },
	{ N("Trilu", "", 14, 1, 2, run_trilu), .stop = 2 },
	{ N("Unsqueeze", "", 1, 1, 2, run_axes),
	  .ir = OP_UNSQUEEZE, .stop = 2 },

	/* computing */
	{ N("Attention", "", 23, 3, 7, run_attention), .stop = 0x48 },
	{ N("AveragePool", "", 7, 1, 1, run_avgpool) },
	{ N("BatchNormalization", "", 7, 5, 5, run_batchnorm),
	  .stop = 0x18, .dead = 0x1e,
	  .norm = 6, .slot = NORM_SLOTS },
	{ N("Conv", "", 1, 2, 3, run_conv), .norm = 4, .slot = CONV_SLOTS },
	{ N("ConvTranspose", "", 1, 2, 3, run_conv_transpose),
	  .norm = 4, .slot = CONV_SLOTS },
	{ N("Gemm", "", 7, 2, 3, run_gemm), .norm = 4,
	  .slot = { { 0, 2, 2 }, { 1, 2, 2 }, { 2, 1, 2 } } },
	{ N("GlobalAveragePool", "", 1, 1, 1, run_global_pool),
	  .ir = OP_REDUCE_MEAN },
	{ N("GlobalMaxPool", "", 1, 1, 1, run_global_pool),
	  .ir = OP_REDUCE_MAX },
	{ N("GroupNormalization", "", 18, 3, 3, run_groupnorm), .norm = 6,
	  .slot = NORM_SLOTS },
	{ N("InstanceNormalization", "", 6, 3, 3, run_instancenorm),
	  .norm = 6, .slot = NORM_SLOTS },
	{ N("LRN", "", 1, 1, 1, run_lrn) },
	{ N("LayerNormalization", "", 17, 2, 3, run_layernorm), .dead = 6,
	  .norm = 6, .slot = NORM_SLOTS },
	{ N("LogSoftmax", "", 1, 1, 1, run_softmax), .ir = OP_LOG_SOFTMAX },
	{ N("MatMul", "", 1, 2, 2, run_matmul),
	  .slot = { { 0, 2, 2 }, { 1, 2, 2 } } },
	{ N("MaxPool", "", 1, 1, 1, run_maxpool), .dead = 2 },
	{ N("NegativeLogLikelihoodLoss", "", 12, 2, 3, run_nll), .stop = 6 },
	{ N("RMSNormalization", "", 23, 2, 2, run_rmsnorm), .norm = 2,
	  .slot = NORM_SLOTS },
	{ N("ReduceL1", "", 1, 1, 2, run_reduce_composed), .stop = 2 },
	{ N("ReduceL2", "", 1, 1, 2, run_reduce_composed), .stop = 2 },
	{ N("ReduceLogSum", "", 1, 1, 2, run_reduce_composed), .stop = 2 },
	{ N("ReduceLogSumExp", "", 1, 1, 2, run_reduce_composed), .stop = 2 },
	{ N("ReduceMax", "", 1, 1, 2, run_reduce), .ir = OP_REDUCE_MAX,
	  .stop = 2 },
	{ N("ReduceMean", "", 1, 1, 2, run_reduce), .ir = OP_REDUCE_MEAN,
	  .stop = 2 },
	{ N("ReduceMin", "", 1, 1, 2, run_reduce), .ir = OP_REDUCE_MIN,
	  .stop = 2 },
	{ N("ReduceProd", "", 1, 1, 2, run_reduce), .ir = OP_REDUCE_PROD,
	  .stop = 2 },
	{ N("ReduceSum", "", 1, 1, 2, run_reduce), .ir = OP_REDUCE_SUM,
	  .stop = 2 },
	{ N("ReduceSumSquare", "", 1, 1, 2, run_reduce_composed), .stop = 2 },
	{ N("Resize", "", 10, 1, 4, run_resize), .stop = 14 },
	{ N("RotaryEmbedding", "", 23, 3, 4, run_rotary), .stop = 8 },
	{ N("Softmax", "", 1, 1, 1, run_softmax), .ir = OP_SOFTMAX },
	{ N("SoftmaxCrossEntropyLoss", "", 12, 2, 3, run_sce), .stop = 6 },
	{ N("Upsample", "", 7, 1, 2, run_resize), .stop = 2 },

	/* ONNX Runtime's */
	{ N("BiasGelu", MS, 1, 2, 2, run_ms_gelu), .norm = 2 },
	{ N("FastGelu", MS, 1, 1, 2, run_ms_gelu), .norm = 2 },
	{ N("Gelu", MS, 1, 1, 1, run_ms_gelu) },
	{ N("QuickGelu", MS, 1, 1, 1, run_quick_gelu) },
	{ N("SimplifiedLayerNormalization", "", 1, 2, 2, run_rmsnorm),
	  .norm = 2, .dead = 2, .slot = NORM_SLOTS },
	{ N("SimplifiedSkipLayerNormalization", MS, 1, 3, 4, run_skip_norm),
	  .ir = OP_RMSNORM, .dead = 6, .norm = 12,
	  .slot = { { 2, 1, MAX_RANK }, { 3, 1, MAX_RANK } } },
	{ N("SkipLayerNormalization", MS, 1, 3, 5, run_skip_norm),
	  .ir = OP_LAYERNORM, .dead = 6, .norm = 28,
	  .slot = { { 2, 1, MAX_RANK }, { 3, 1, MAX_RANK },
	            { 4, 1, MAX_RANK } } },

	/* known, so that parameters are found, but not imported */
	{ N("Bernoulli", "", 15, 1, 1, NULL), .stop = ALL_INPUTS },
	{ N("Einsum", "", 12, 1, -1, NULL) },
	{ N("EyeLike", "", 9, 1, 1, NULL), .stop = ALL_INPUTS },
	{ N("GRU", "", 7, 3, 6, NULL), .stop = 16, .slot = RNN_SLOTS },
	{ N("If", "", 1, 1, 1, NULL), .stop = ALL_INPUTS,
	  .hint = "its condition is not a constant of the file" },
	{ N("LSTM", "", 7, 3, 8, NULL), .stop = 16, .slot = RNN_SLOTS },
	{ N("Loop", "", 1, 2, -1, NULL) },
	{ N("Multinomial", "", 7, 1, 1, NULL), .stop = ALL_INPUTS },
	{ N("RNN", "", 7, 3, 6, NULL), .stop = 16, .slot = RNN_SLOTS },
	{ N("RandomNormal", "", 1, 0, 0, NULL) },
	{ N("RandomNormalLike", "", 1, 1, 1, NULL), .stop = ALL_INPUTS },
	{ N("RandomUniform", "", 1, 0, 0, NULL) },
	{ N("RandomUniformLike", "", 1, 1, 1, NULL), .stop = ALL_INPUTS },
	{ N("Scan", "", 8, 1, -1, NULL) },
	{ N("TopK", "", 1, 1, 2, NULL), .stop = 2, .dead = 2 },
	{ N("QuantizeLinear", "", 10, 2, 3, NULL), .stop = ALL_INPUTS,
	  .hint = "quantized; train the float export" },
	{ N("DequantizeLinear", "", 10, 2, 3, NULL), .stop = ALL_INPUTS,
	  .hint = "quantized; train the float export" },
	{ N("MatMulNBits", MS, 1, 3, 6, NULL), .stop = ALL_INPUTS,
	  .hint = "quantized; train the float export" },
};

const struct onnx_op *
onnx_op_find(const char *domain, const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (strcmp(table[i].name, name) == 0
		    && strcmp(table[i].domain, domain) == 0)
			return &table[i];
	return NULL;
}

bool
onnx_op_can(const struct flat *f, const struct flat_node *n)
{
	return n->op && n->op->run && (!n->op->can || n->op->can(f, n));
}
