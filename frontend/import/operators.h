/* The ONNX operators: one row each, and nowhere else a list of them.
 *
 * ONNX(name, domain, since, least, most, run, fields...)
 *   domain "" is ai.onnx.  `since` is the oldest opset whose form the import
 *   function run_RUN of import_*.c understands; changes after it are that
 *   function's business.  least..most inputs; most -1: no bound.  The fields
 *   of struct onnx_op that are not 0 follow.
 * REFUSED(name, domain, since, least, most, fields...)
 *   Not imported.  A row exists so that parameters are found, and for its
 *   hint.
 *
 * An includer defines one or both, which are undefined afterwards.
 */
#ifndef ONNX
#define ONNX(...)
#endif
#ifndef REFUSED
#define REFUSED(...)
#endif

#define MS "com.microsoft"
#define NORM_SLOTS { { 1, 1, MAX_RANK }, { 2, 1, MAX_RANK } }
#define CONV_SLOTS { { 1, 3, 5 }, { 2, 1, 1 } }
#define RNN_SLOTS { { 1, 3, 3 }, { 2, 3, 3 }, { 3, 2, 2 } }
#define ALL .stop = ALL_INPUTS
#define INT(name, ir) { name, #ir, AT_INT, false }
#define FLAG(name, ir) { name, #ir, AT_INT, true }
#define FLOAT(name, ir) { name, #ir, AT_FLOAT, false }

/* element-wise */
ONNX("Abs", "", 7, 1, 1, same, .ir = OP_ABS, .numbers = 1)
ONNX("Add", "", 7, 2, 2, add, .ir = OP_ADD, .norm = 3)
ONNX("And", "", 7, 2, 2, same, .ir = OP_AND, ALL)
ONNX("Cast", "", 6, 1, 1, cast)
ONNX("CastLike", "", 15, 2, 2, cast_like, .ir = OP_CAST_LIKE, .stop = 2)
ONNX("Ceil", "", 6, 1, 1, same, .ir = OP_CEIL, ALL)
ONNX("Celu", "", 12, 1, 1, celu, .floats = 1)
ONNX("Clip", "", 6, 1, 3, clip, .numbers = 7)
ONNX("Cos", "", 7, 1, 1, same, .ir = OP_COS)
ONNX("Div", "", 7, 2, 2, same, .ir = OP_DIV, .numbers = 3)
ONNX("Dropout", "", 7, 1, 3, dropout, .stop = 6, .dead = 2)
ONNX("Elu", "", 6, 1, 1, elu, .floats = 1)
ONNX("Equal", "", 7, 2, 2, same, .ir = OP_EQ, ALL)
ONNX("Erf", "", 9, 1, 1, same, .ir = OP_ERF)
ONNX("Exp", "", 6, 1, 1, same, .ir = OP_EXP)
ONNX("Floor", "", 6, 1, 1, same, .ir = OP_FLOOR, ALL)
ONNX("Gelu", "", 20, 1, 1, gelu, .floats = 1)
ONNX("Greater", "", 7, 2, 2, same, .ir = OP_GT, ALL)
ONNX("GreaterOrEqual", "", 12, 2, 2, same, .ir = OP_GE, ALL)
ONNX("HardSigmoid", "", 6, 1, 1, hard_sigmoid, .floats = 1)
ONNX("HardSwish", "", 14, 1, 1, hard_swish, .floats = 1)
ONNX("Identity", "", 1, 1, 1, identity)
ONNX("IsInf", "", 10, 1, 1, isinf, .stop = ALL_INPUTS)
ONNX("IsNaN", "", 9, 1, 1, same, .ir = OP_ISNAN, ALL)
ONNX("LeakyRelu", "", 6, 1, 1, leaky_relu, .floats = 1)
ONNX("Less", "", 7, 2, 2, same, .ir = OP_LT, ALL)
ONNX("LessOrEqual", "", 12, 2, 2, same, .ir = OP_LE, ALL)
ONNX("Log", "", 6, 1, 1, same, .ir = OP_LOG)
ONNX("Max", "", 6, 1, -1, fold_left, .ir = OP_MAX)
ONNX("Mean", "", 6, 1, -1, mean, .floats = ALL_INPUTS)
ONNX("Min", "", 6, 1, -1, fold_left, .ir = OP_MIN)
ONNX("Mish", "", 18, 1, 1, mish, .floats = 1)
ONNX("Mod", "", 10, 2, 2, read, .ir = OP_MOD, .numbers = 3,
     .attr = { FLAG("fmod", fmod) })
ONNX("Mul", "", 7, 2, 2, same, .ir = OP_MUL, .norm = 3)
ONNX("Neg", "", 6, 1, 1, same, .ir = OP_NEG, .numbers = 1)
ONNX("Not", "", 1, 1, 1, same, .ir = OP_NOT, ALL)
ONNX("Or", "", 7, 2, 2, same, .ir = OP_OR, ALL)
ONNX("PRelu", "", 7, 2, 2, prelu, .slot = { { 1, 1, MAX_RANK } }, .numbers = 3)
ONNX("Pow", "", 7, 2, 2, pow, .ir = OP_POW, .numbers = 3)
ONNX("Reciprocal", "", 6, 1, 1, same, .ir = OP_RECIP)
ONNX("Relu", "", 6, 1, 1, same, .ir = OP_RELU, .numbers = 1)
ONNX("Round", "", 11, 1, 1, same, .ir = OP_ROUND, ALL)
ONNX("Selu", "", 6, 1, 1, selu, .floats = 1)
ONNX("Sigmoid", "", 6, 1, 1, same, .ir = OP_SIGMOID)
ONNX("Sign", "", 9, 1, 1, same, .ir = OP_SIGN, ALL, .numbers = 1)
ONNX("Sin", "", 7, 1, 1, same, .ir = OP_SIN)
ONNX("Softplus", "", 1, 1, 1, same, .ir = OP_SOFTPLUS)
ONNX("Softsign", "", 1, 1, 1, softsign, .floats = 1)
ONNX("Sqrt", "", 6, 1, 1, same, .ir = OP_SQRT)
ONNX("Sub", "", 7, 2, 2, same, .ir = OP_SUB, .numbers = 3)
ONNX("Sum", "", 6, 1, -1, fold_left, .ir = OP_ADD, .numbers = ALL_INPUTS)
ONNX("Swish", "", 24, 1, 1, swish, .floats = 1)
ONNX("Tan", "", 7, 1, 1, tan, .floats = 1)
ONNX("Tanh", "", 6, 1, 1, same, .ir = OP_TANH)
ONNX("ThresholdedRelu", "", 10, 1, 1, thresholded_relu, .floats = 1)
ONNX("Where", "", 9, 3, 3, same, .ir = OP_WHERE, .stop = 1)
ONNX("Xor", "", 7, 2, 2, same, .ir = OP_XOR, ALL)
ONNX("Acos", "", 7, 1, 1, acos, .floats = 1)
ONNX("Acosh", "", 9, 1, 1, acosh, .floats = 1)
ONNX("Asin", "", 7, 1, 1, asin, .floats = 1)
ONNX("Asinh", "", 9, 1, 1, same, .ir = OP_ASINH)
ONNX("Atan", "", 7, 1, 1, same, .ir = OP_ATAN)
ONNX("Atanh", "", 9, 1, 1, atanh, .floats = 1)
ONNX("BitShift", "", 11, 2, 2, bit_shift, ALL)
ONNX("BitwiseAnd", "", 18, 2, 2, same, .ir = OP_BIT_AND, ALL)
ONNX("BitwiseNot", "", 18, 1, 1, same, .ir = OP_BIT_NOT, ALL)
ONNX("BitwiseOr", "", 18, 2, 2, same, .ir = OP_BIT_OR, ALL)
ONNX("BitwiseXor", "", 18, 2, 2, same, .ir = OP_BIT_XOR, ALL)
ONNX("Cosh", "", 9, 1, 1, sinh, .floats = 1)
ONNX("Shrink", "", 9, 1, 1, shrink, .numbers = 1)
ONNX("Sinh", "", 9, 1, 1, sinh, .floats = 1)

/* moving, selecting, making */
ONNX("BlackmanWindow", "", 17, 1, 1, window, ALL)
ONNX("CenterCropPad", "", 18, 2, 2, center_crop_pad, .stop = 2)
ONNX("Compress", "", 9, 2, 2, compress, .stop = 2)
ONNX("CumProd", "", 26, 2, 2, cumulate, .stop = 2, .numbers = 1,
     .attr = { FLAG("exclusive", exclusive), FLAG("reverse", reverse) })
ONNX("EyeLike", "", 9, 1, 1, eye_like, ALL)
ONNX("HammingWindow", "", 17, 1, 1, window, ALL)
ONNX("HannWindow", "", 17, 1, 1, window, ALL)
ONNX("Hardmax", "", 1, 1, 1, hardmax, ALL)
ONNX("ReverseSequence", "", 10, 2, 2, reverse_sequence, .stop = 2)
ONNX("Scatter", "", 9, 3, 3, scatter, .ir = OP_SCATTER_ELEMENTS, .stop = 2,
     .attr = { INT("axis", axis) })
ONNX("TopK", "", 1, 1, 2, topk, .stop = 2, .dead = 2, .numbers = 1,
     .attr = { INT("axis", axis), FLAG("largest", largest) })
ONNX("ArgMax", "", 1, 1, 1, arg, .ir = OP_ARGMAX, ALL, .numbers = 1,
     .attr = { INT("axis", axis), FLAG("keepdims", keepdims),
              FLAG("select_last_index", last) })
ONNX("ArgMin", "", 1, 1, 1, arg, .ir = OP_NEG, ALL, .numbers = 1,
     .attr = { INT("axis", axis), FLAG("keepdims", keepdims),
              FLAG("select_last_index", last) })
ONNX("Concat", "", 4, 1, -1, concat)
ONNX("ConcatFromSequence", "", 11, 1, 1, concat_from_sequence)
ONNX("Constant", "", 1, 0, 0, constant)
ONNX("ConstantOfShape", "", 9, 1, 1, constant_of_shape, .stop = ALL_INPUTS)
ONNX("CumSum", "", 11, 2, 2, cumulate, .stop = 2, .numbers = 1,
     .attr = { FLAG("exclusive", exclusive), FLAG("reverse", reverse) },
     .hint = "the TorchScript exporter declares the cumulative sum of a mask "
             "as bool; try: mask.long().cumsum(1) in the model, or dynamo=True "
             "in torch.onnx.export")
ONNX("DepthToSpace", "", 1, 1, 1, space_depth, .ir = OP_RESHAPE)
ONNX("Expand", "", 8, 2, 2, same, .ir = OP_EXPAND, .stop = 2)
ONNX("Flatten", "", 1, 1, 1, read, .ir = OP_FLATTEN,
     .attr = { INT("axis", axis) })
ONNX("Gather", "", 1, 2, 2, read, .ir = OP_GATHER, .stop = 2,
     .slot = { { 0, 3, 3 } }, .attr = { INT("axis", axis) })
ONNX("GatherElements", "", 11, 2, 2, read, .ir = OP_GATHER_ELEMENTS, .stop = 2,
     .attr = { INT("axis", axis) })
ONNX("GatherND", "", 11, 2, 2, read, .ir = OP_GATHER_ND, .stop = 2,
     .slot = { { 0, 3, 3 } }, .attr = { INT("batch_dims", batch) })
ONNX("NonZero", "", 9, 1, 1, same, .ir = OP_NONZERO, ALL)
ONNX("OneHot", "", 9, 3, 3, read, .ir = OP_ONE_HOT, ALL,
     .attr = { INT("axis", axis) })
ONNX("Pad", "", 2, 1, 4, pad, .stop = 14)
ONNX("Range", "", 11, 3, 3, range, .ir = OP_RANGE, ALL, .numbers = 7)
ONNX("Reshape", "", 5, 2, 2, read, .ir = OP_RESHAPE, .stop = 2,
     .attr = { FLAG("allowzero", allowzero) })
ONNX("ScatterElements", "", 11, 3, 3, scatter, .ir = OP_SCATTER_ELEMENTS,
     .stop = 2, .attr = { INT("axis", axis) })
ONNX("ScatterND", "", 11, 3, 3, scatter, .ir = OP_SCATTER_ND, .stop = 2)
ONNX("SequenceAt", "", 11, 2, 2, sequence_at, .stop = 2)
ONNX("SequenceConstruct", "", 11, 1, -1, sequence_construct)
ONNX("SequenceEmpty", "", 11, 0, 0, sequence_empty)
ONNX("SequenceErase", "", 11, 1, 2, sequence_erase, .stop = 2)
ONNX("SequenceInsert", "", 11, 2, 3, sequence_insert, .stop = 4)
ONNX("SequenceLength", "", 11, 1, 1, sequence_length, ALL)
ONNX("Shape", "", 1, 1, 1, read, .ir = OP_SHAPE, ALL,
     .attr = { INT("start", start), INT("end", end) })
ONNX("Size", "", 1, 1, 1, same, .ir = OP_SIZE, ALL)
ONNX("Slice", "", 1, 1, 5, slice, .ir = OP_SLICE, .stop = 30)
ONNX("SpaceToDepth", "", 1, 1, 1, space_depth, .ir = OP_TRANSPOSE)
ONNX("Split", "", 2, 1, 2, split, .stop = 2)
ONNX("SplitToSequence", "", 11, 1, 2, split_to_sequence, .stop = 2)
ONNX("Squeeze", "", 1, 1, 2, axes, .ir = OP_SQUEEZE, .stop = 2)
ONNX("Tile", "", 6, 2, 2, same, .ir = OP_TILE, .stop = 2)
ONNX("Transpose", "", 1, 1, 1, transpose)
ONNX("Trilu", "", 14, 1, 2, read, .ir = OP_TRILU, .stop = 2,
     .attr = { FLAG("upper", upper) })
ONNX("Unsqueeze", "", 1, 1, 2, axes, .ir = OP_UNSQUEEZE, .stop = 2)

/* computing */
ONNX("DFT", "", 17, 1, 3, dft, .stop = 6, .floats = 1)
ONNX("Det", "", 11, 1, 1, same, .ir = OP_DET)
ONNX("Einsum", "", 12, 1, -1, einsum, .numbers = ALL_INPUTS)
ONNX("GRU", "", 7, 3, 6, rnn, .stop = 16, .slot = RNN_SLOTS, .floats = 0x2f)
ONNX("LSTM", "", 7, 3, 8, rnn, .stop = 16, .slot = RNN_SLOTS, .floats = 0xef)
ONNX("LpNormalization", "", 1, 1, 1, lp_norm, .floats = 1)
ONNX("MeanVarianceNormalization", "", 9, 1, 1, mean_variance, .floats = 1)
ONNX("RNN", "", 7, 3, 6, rnn, .stop = 16, .slot = RNN_SLOTS, .floats = 0x2f)
ONNX("Attention", "", 23, 3, 7, attention, .stop = 0x40, .floats = 0x37)
ONNX("AveragePool", "", 7, 1, 1, avgpool, .floats = 1,
     .attr = { FLAG("ceil_mode", ceil), FLAG("count_include_pad", include) })
ONNX("BatchNormalization", "", 7, 5, 5, batchnorm, .stop = 0x18, .dead = 0x1e,
     .norm = 6, .slot = NORM_SLOTS, .floats = 0x1f)
ONNX("Col2Im", "", 18, 3, 3, col2im, .stop = 6)
ONNX("Conv", "", 1, 2, 3, conv, .norm = 4, .slot = CONV_SLOTS, .floats = 7)
ONNX("ConvTranspose", "", 1, 2, 3, conv_transpose, .norm = 4,
     .slot = CONV_SLOTS, .floats = 7)
ONNX("Gemm", "", 7, 2, 3, gemm, .norm = 4,
     .slot = { { 0, 2, 2 }, { 1, 2, 2 }, { 2, 1, 2 } }, .numbers = 7,
     .attr = { FLAG("transA", ta), FLAG("transB", tb), FLOAT("alpha", alpha) })
ONNX("GlobalAveragePool", "", 1, 1, 1, global_pool, .ir = OP_REDUCE_MEAN,
     .floats = 1)
ONNX("GlobalMaxPool", "", 1, 1, 1, global_pool, .ir = OP_REDUCE_MAX)
ONNX("GridSample", "", 16, 2, 2, grid_sample,
     .attr = { FLAG("align_corners", align) })
ONNX("GroupNormalization", "", 18, 3, 3, groupnorm, .norm = 6,
     .slot = NORM_SLOTS, .floats = 7)
ONNX("InstanceNormalization", "", 6, 3, 3, instancenorm, .norm = 6,
     .slot = NORM_SLOTS, .floats = 7)
ONNX("LpPool", "", 2, 1, 1, lppool, .floats = 1)
ONNX("LRN", "", 1, 1, 1, lrn, .floats = 1)
ONNX("LayerNormalization", "", 17, 2, 3, layernorm, .dead = 6, .norm = 6,
     .slot = NORM_SLOTS, .floats = 7)
ONNX("LogSoftmax", "", 1, 1, 1, softmax, .ir = OP_LOG_SOFTMAX)
ONNX("MatMul", "", 1, 2, 2, same, .ir = OP_MATMUL,
     .slot = { { 0, 2, 2 }, { 1, 2, 2 } }, .numbers = 3)
ONNX("MaxPool", "", 1, 1, 1, maxpool, .dead = 2, .numbers = 1,
     .attr = { FLAG("ceil_mode", ceil) })
ONNX("MaxUnpool", "", 9, 2, 3, maxunpool, .stop = 6, .floats = 1)
ONNX("NegativeLogLikelihoodLoss", "", 12, 2, 3, nll, .stop = 6, .floats = 5,
     .attr = { INT("ignore_index", ignore) })
ONNX("RMSNormalization", "", 23, 2, 2, rmsnorm, .norm = 2, .slot = NORM_SLOTS,
     .floats = 3)
ONNX("ReduceL1", "", 1, 1, 2, reduce_composed, .stop = 2, .numbers = 1)
ONNX("ReduceL2", "", 1, 1, 2, reduce_composed, .stop = 2, .numbers = 1)
ONNX("ReduceLogSum", "", 1, 1, 2, reduce_composed, .stop = 2, .numbers = 1)
ONNX("ReduceLogSumExp", "", 1, 1, 2, reduce_composed, .stop = 2, .numbers = 1)
ONNX("ReduceMax", "", 1, 1, 2, reduce, .ir = OP_REDUCE_MAX, .stop = 2)
ONNX("ReduceMean", "", 1, 1, 2, reduce, .ir = OP_REDUCE_MEAN, .stop = 2,
     .numbers = 1)
ONNX("ReduceMin", "", 1, 1, 2, reduce, .ir = OP_REDUCE_MIN, .stop = 2)
ONNX("ReduceProd", "", 1, 1, 2, reduce, .ir = OP_REDUCE_PROD, .stop = 2,
     .numbers = 1)
ONNX("ReduceSum", "", 1, 1, 2, reduce, .ir = OP_REDUCE_SUM, .stop = 2,
     .numbers = 1)
ONNX("ReduceSumSquare", "", 1, 1, 2, reduce_composed, .stop = 2, .numbers = 1)
ONNX("Resize", "", 10, 1, 4, resize, .stop = 14,
     .attr = { FLAG("exclude_outside", exclude), FLAG("antialias", antialias),
              FLOAT("cubic_coeff_a", cubic),
              FLOAT("extrapolation_value", fill) })
ONNX("RotaryEmbedding", "", 23, 3, 4, rotary, .stop = 8, .floats = 7)
ONNX("Softmax", "", 1, 1, 1, softmax, .ir = OP_SOFTMAX)
ONNX("SoftmaxCrossEntropyLoss", "", 12, 2, 3, sce, .stop = 4, .floats = 5,
     .attr = { INT("ignore_index", ignore) })
ONNX("Upsample", "", 7, 1, 2, resize, .stop = 2,
     .attr = { FLAG("exclude_outside", exclude), FLAG("antialias", antialias),
              FLOAT("cubic_coeff_a", cubic),
              FLOAT("extrapolation_value", fill) })

/* random numbers */
ONNX("Bernoulli", "", 15, 1, 1, bernoulli, ALL, .floats = 1)
ONNX("Multinomial", "", 7, 1, 1, multinomial, ALL, .floats = 1)
ONNX("RandomNormal", "", 1, 0, 0, random)
ONNX("RandomNormalLike", "", 1, 1, 1, random, ALL)
ONNX("RandomUniform", "", 1, 0, 0, random)
ONNX("RandomUniformLike", "", 1, 1, 1, random, ALL)

/* ONNX Runtime's */
ONNX("BiasGelu", MS, 1, 2, 2, ms_gelu, .norm = 2)
ONNX("FastGelu", MS, 1, 1, 2, ms_gelu, .norm = 2)
ONNX("Gelu", MS, 1, 1, 1, ms_gelu)
ONNX("QuickGelu", MS, 1, 1, 1, quick_gelu)
ONNX("SimplifiedLayerNormalization", "", 1, 2, 2, rmsnorm, .norm = 2, .dead = 2,
     .slot = NORM_SLOTS)
ONNX("SimplifiedSkipLayerNormalization", MS, 1, 3, 4, skip_norm,
     .ir = OP_RMSNORM, .dead = 6, .norm = 12,
     .slot = { { 2, 1, MAX_RANK }, { 3, 1, MAX_RANK } })
ONNX("SkipLayerNormalization", MS, 1, 3, 5, skip_norm, .ir = OP_LAYERNORM,
     .dead = 6, .norm = 28,
     .slot = { { 2, 1, MAX_RANK }, { 3, 1, MAX_RANK }, { 4, 1, MAX_RANK } })

/* not imported */
REFUSED("If", "", 1, 1, 1, .stop = ALL_INPUTS,
     .hint = "the condition must follow from the file and the dimensions set "
             "by --dim")
REFUSED("Loop", "", 1, 2, -1,
     .hint = "the trip count (at most 1024) or the condition must follow from "
             "the file and the dimensions set by --dim")
REFUSED("Scan", "", 8, 1, -1,
     .hint = "it needs opset 9, and a scan axis whose extent (at most 1024) "
             "follows from the file and the dimensions set by --dim")
REFUSED("STFT", "", 17, 2, 4, .stop = 10,
     .hint = "try: torch.fft.rfft(x.unfold(-1, n, hop) * window)")
REFUSED("QuantizeLinear", "", 10, 2, 3, .stop = ALL_INPUTS,
     .hint = "the model is quantized; train the float export")
REFUSED("DequantizeLinear", "", 10, 2, 3, .stop = ALL_INPUTS,
     .hint = "the model is quantized; train the float export")
REFUSED("MatMulNBits", MS, 1, 3, 6, .stop = ALL_INPUTS,
     .hint = "the model is quantized; train the float export")

#undef MS
#undef NORM_SLOTS
#undef CONV_SLOTS
#undef RNN_SLOTS
#undef ALL
#undef INT
#undef FLAG
#undef FLOAT
#undef ONNX
#undef REFUSED
