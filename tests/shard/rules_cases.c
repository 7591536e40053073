/* Graphs of one op that is not element-wise, or is in a way of its own. */
#include "tests/shard/rules.h"

#include <stddef.h>

#define P(name, shape) "param %" name ": f32[" shape "]\n\t"
#define Z(shape) "const %z: f32[" shape "] = splat 0\n\t"
#define IN(name, type) "input %" name ": " type "\n\t"

const struct rule_case rule_case[] = {
	{ "cast", P("a", "4,6,5") "%y: i32[4,6,5] = cast %a {to=i32}", 2 },
	{ "cast", IN("a", "i32[4,6]") "%y: f32[4,6] = cast %a {to=f32}", 9 },
	{ "add", P("a", "4,1,5") P("b", "1,6,5")
	  "%y: f32[4,6,5] = add %a, %b", 2 },
	{ "mul", P("a", "4,6,5") P("b", "1")
	  "%y: f32[4,6,5] = mul %a, %b", 2 },
	{ "where", IN("c", "bool[6,1]") P("a", "5") P("b", "4,6,5")
	  "%y: f32[4,6,5] = where %c, %a, %b", 2 },
	{ "dequantize", "param %a: nf4x64[4,6] frozen\n\t"
	  "%y: f32[4,384] = dequantize %a {to=f32}", 2 },
	{ "matmul", IN("a", "f32[6,128]") "param %b: int8x64[8,2] frozen\n\t"
	  "%y: f32[6,8] = matmul %a, %b {tb=1}", 2 },
	{ "matmul", IN("a", "f32[6,8]") "param %b: nf4x64[8,6] frozen\n\t"
	  IN("c", "f32[384]") "%y: f32[6,384] = matmul %a, %b, %c", 2 },
	{ "shield", IN("a", "f32[4,6,5]") IN("b", "f32[4,6,5]")
	  "%y: f32[4,6,5] = shield %a, %b", 2 },

	{ "reshape", P("a", "2,12,24") "%y: f32[24,24] = reshape %a "
	  "{shape=[24,24]}", 2 },
	{ "reshape", P("a", "24,24") "%y: f32[2,12,4,6] = reshape %a "
	  "{shape=[2,12,4,6]}", 2 },
	{ "reshape", P("a", "5,36") "%y: f32[5,3,12] = reshape %a "
	  "{shape=[5,3,12]}", 2 },
	{ "reshape", P("a", "5,3,12") "%y: f32[5,36] = reshape %a "
	  "{shape=[5,36]}", 2 },
	{ "reshape", P("a", "5,12,3") "%y: f32[5,1,36,1] = reshape %a "
	  "{shape=[5,1,36,1]}", 2 },
	{ "expand", P("a", "4,1,5") "%y: f32[3,4,6,5] = expand %a "
	  "{shape=[3,4,6,5]}", 2 },
	{ "transpose", P("a", "4,6,5,2") "%y: f32[6,5,2,4] = transpose %a "
	  "{perm=[1,2,3,0]}", 2 },
	{ "transpose", P("a", "4,6,5") "%y: f32[5,4,6] = transpose %a "
	  "{perm=[2,0,1]}", 2 },
	{ "slice", P("a", "4,24") "%y: f32[4,12] = slice %a "
	  "{start=[0,12], step=[1,1]}", 2 },
	{ "slice", P("a", "4,36") "%y: f32[4,12] = slice %a "
	  "{start=[0,12], step=[1,1]}", 2 },
	{ "slice", P("a", "6,7,5") "%y: f32[6,3,5] = slice %a "
	  "{start=[0,1,0], step=[1,2,1]}", 2 },
	{ "concat", P("a", "4,6") P("b", "4,12") P("c", "4,5")
	  "%y: f32[4,23] = concat %a, %b, %c {axis=1}", 2 },
	{ "concat", P("a", "4,12,2") P("b", "4,24,2")
	  "%y: f32[4,36,2] = concat %a, %b {axis=1}", 2 },
	{ "pad", P("a", "4,6,5") "%y: f32[4,9,5] = pad %a "
	  "{begin=[0,1,0], end=[0,2,0], mode=0, value=0.5}", 2 },
	{ "pad", P("a", "4,6,5") "%y: f32[4,9,5] = pad %a "
	  "{begin=[0,1,0], end=[0,2,0], mode=1}", 2 },

	{ "gather", P("a", "10,6") IN("i", "i64[4,3]")
	  "%y: f32[4,3,6] = gather %a, %i {axis=0}", 10 },
	{ "gather", P("a", "4,10,6") IN("i", "i64[5]")
	  "%y: f32[4,5,6] = gather %a, %i {axis=1}", 10 },
	{ "gather", P("a", "4,6,12") IN("i", "i64[2,3]")
	  "%y: f32[4,6,2,3] = gather %a, %i {axis=2}", 12 },
	{ "gather_nd", P("a", "4,12,6") IN("i", "i64[5,1]")
	  "%y: f32[5,12,6] = gather_nd %a, %i", 4 },
	{ "gather_nd", P("a", "4,5,6") IN("i", "i64[3,2,2]")
	  "%y: f32[3,2,6] = gather_nd %a, %i", 4 },
	{ "scatter_nd", P("a", "4,12,6") IN("i", "i64[5,1]") P("u", "5,12,6")
	  "%y: f32[4,12,6] = scatter_nd %a, %i, %u {add=1}", 4 },
	{ "gather_nd", P("a", "4,12,6") IN("i", "i64[4,3,1]")
	  "%y: f32[4,3,6] = gather_nd %a, %i {batch=1}", 12 },
	{ "gather_nd", P("a", "2,12,5,6") IN("i", "i64[2,12,3,2]")
	  "%y: f32[2,12,3] = gather_nd %a, %i {batch=2}", 5 },
	{ "gather_nd", P("a", "5,6") IN("i", "i64[4,6,1]")
	  "%y: f32[4,6,6] = gather_nd %a, %i", 5 },
	{ "scatter_nd", Z("5,4") IN("i", "i64[6,12,1]") P("u", "6,12,4")
	  "%y: f32[5,4] = scatter_nd %z, %i, %u {add=1}", 5 },
	{ "gather_elements", P("a", "4,12,6") IN("i", "i64[4,12,5]")
	  "%y: f32[4,12,5] = gather_elements %a, %i {axis=2}", 6 },
	{ "gather_elements", P("a", "6,5,4") IN("i", "i64[6,12,3]")
	  "%y: f32[6,12,3] = gather_elements %a, %i {axis=1}", 5 },
	{ "scatter_elements", P("a", "4,6,12") IN("i", "i64[4,3,12]")
	  P("u", "4,3,12")
	  "%y: f32[4,6,12] = scatter_elements %a, %i, %u {axis=1, add=1}", 6 },
	{ "scatter_elements", Z("8,5") IN("i", "i64[8,12]") P("u", "8,12")
	  "%y: f32[8,5] = scatter_elements %z, %i, %u {axis=1, add=1}", 5 },
	{ "topk", P("a", "4,6,12") "%y: f32[4,6,5], %i: i64[4,6,5] = topk %a "
	  "{k=5, axis=2}", 2 },
	{ "topk", P("a", "12,6,4") "%y: f32[12,2,4], %i: i64[12,2,4] = "
	  "topk %a {k=2, axis=-2, largest=0}", 2 },
	{ "argmax", P("a", "4,6,12") "%y: i64[4,12] = argmax %a "
	  "{axis=1, keepdims=0}", 2 },
	{ "argmax", P("a", "4,6,12") "%y: i64[4,6,1] = argmax %a {axis=-1}",
	  2 },
	{ "trilu", P("a", "4,6,5,7") "%y: f32[4,6,5,7] = trilu %a {k=1}", 2 },
	{ "det", P("a", "4,6,3,3") "%y: f32[4,6] = det %a", 2 },
	{ "cumsum", P("a", "4,6,5") "%y: f32[4,6,5] = cumsum %a {axis=1}", 2 },
	{ "cumsum", P("a", "4,6,5") "%y: f32[4,6,5] = cumsum %a "
	  "{axis=2, product=1}", 2 },

	{ "reduce_sum", P("a", "4,6,5") "%y: f32[4,1,5] = reduce_sum %a "
	  "{axes=[1]}", 2 },
	{ "reduce_sum", P("a", "4,6,5") "%y: f32[6] = reduce_sum %a "
	  "{axes=[0,2], keepdims=0}", 2 },
	{ "reduce_sum", P("a", "4,6,5") "%y: f32[] = reduce_sum %a "
	  "{keepdims=0}", 2 },
	{ "reduce_mean", P("a", "4,6,5") "%y: f32[4,5] = reduce_mean %a "
	  "{axes=[1], keepdims=0}", 2 },
	{ "reduce_max", P("a", "4,6,5") "%y: f32[4,6,1] = reduce_max %a "
	  "{axes=[2]}", 2 },
	{ "reduce_min", P("a", "4,6,12") "%y: f32[12] = reduce_min %a "
	  "{axes=[0,1], keepdims=0}", 2 },
	{ "reduce_prod", P("a", "4,6,4") "%y: f32[6,4] = reduce_prod %a "
	  "{axes=[0], keepdims=0}", 2 },

	{ "expert_matmul", P("a", "12,6") P("w", "4,6,5") IN("i", "i64[12]")
	  "%y: f32[12,5] = expert_matmul %a, %w, %i", 4 },
	{ "expert_matmul", P("a", "5,12") P("w", "4,6,12") IN("i", "i64[5]")
	  "%y: f32[5,6] = expert_matmul %a, %w, %i {tb=1}", 4 },
	{ "take_rows", P("a", "5,12") IN("i", "i64[7]") IN("j", "i64[5]")
	  "%y: f32[7,12] = take_rows %a, %i, %j", 5 },
	{ "expert_dw", IN("a", "f32[12,5]") IN("b", "f32[12,6]")
	  IN("i", "i64[12]") "%y: f32[4,5,6] = expert_dw %a, %b, %i {experts=4}", 4 },

	{ "matmul", P("a", "5,12") P("b", "12,6")
	  "%y: f32[5,6] = matmul %a, %b", 2 },
	{ "matmul", P("a", "5,12") P("b", "36,12") P("c", "36")
	  "%y: f32[5,36] = matmul %a, %b, %c {tb=1}", 2 },
	{ "matmul", P("a", "12,5") P("b", "12,6") P("c", "6")
	  "%y: f32[5,6] = matmul %a, %b, %c {ta=1, alpha=0.5}", 2 },
	{ "matmul", P("a", "2,4,5,7") P("b", "2,4,7,6")
	  "%y: f32[2,4,5,6] = matmul %a, %b", 2 },
	{ "matmul", P("a", "2,4,5,7") P("b", "4,6,7")
	  "%y: f32[2,4,5,6] = matmul %a, %b {tb=1}", 2 },
	{ "matmul", P("a", "4,7,5") P("b", "3,1,7,6")
	  "%y: f32[3,4,5,6] = matmul %a, %b {ta=1}", 2 },
	{ "matmul", P("a", "5,7") P("b", "4,7,6")
	  "%y: f32[4,5,6] = matmul %a, %b", 2 },

	/* a result's rows, without a bias */
	{ "matmul", P("a", "12,12") P("b", "12,12")
	  "%y: f32[12,12] = matmul %a, %b", 2 },

	{ "softmax", P("a", "4,6,5") "%y: f32[4,6,5] = softmax %a {axis=2}",
	  2 },
	{ "softmax", P("a", "4,6,5") "%y: f32[4,6,5] = softmax %a {axis=1}",
	  2 },
	{ "log_softmax", P("a", "4,6,5")
	  "%y: f32[4,6,5] = log_softmax %a {axis=2}", 2 },
	{ "layernorm", P("a", "4,6,5") P("s", "5") P("b", "5")
	  "%y: f32[4,6,5], %m: f32[4,6], %r: f32[4,6] = "
	  "layernorm %a, %s, %b {axis=2}", 2 },
	{ "layernorm", P("a", "4,6,5") P("s", "6,5")
	  "%y: f32[4,6,5], %m: f32[4], %r: f32[4] = "
	  "layernorm %a, %s {axis=1}", 2 },
	{ "layernorm", P("a", "12,5") P("s", "5")
	  "%y: f32[12,5], %m: f32[12], %r: f32[12] = "
	  "layernorm %a, %s {axis=1, eps=0}", 2 },
	{ "rmsnorm", P("a", "4,6,5") P("s", "5")
	  "%y: f32[4,6,5], %r: f32[4,6] = rmsnorm %a, %s {axis=2}", 2 },
	{ "sce", P("a", "6,10") IN("l", "i64[6]")
	  "%y: f32[], %e: f32[6], %d: f32[] = sce %a, %l", 10 },
	{ "sce", P("a", "6,12") IN("l", "i64[6]")
	  "%y: f32[6], %e: f32[6], %d: f32[] = sce %a, %l "
	  "{reduction=0, ignore=3}", 12 },
	{ "sce", P("a", "6,9") IN("l", "i64[6]")
	  "%y: f32[], %e: f32[6], %d: f32[] = sce %a, %l "
	  "{reduction=2, ignore=2}", 5 },

	{ "conv", P("a", "4,6,5,7") P("w", "12,6,3,2") P("b", "12")
	  "%y: f32[4,12,5,3] = conv %a, %w, %b {stride=[1,2], "
	  "begin=[1,0], end=[1,0]}", 2 },
	{ "conv", P("a", "5,12,6") P("w", "4,12,3")
	  "%y: f32[5,4,4] = conv %a, %w", 2 },
	{ "conv", P("a", "2,12,5,4") P("w", "24,1,3,3") P("b", "24")
	  "%y: f32[2,24,5,4] = conv %a, %w, %b {group=12, begin=[1,1], "
	  "end=[1,1]}", 2 },
	{ "conv", P("a", "2,24,4") P("w", "12,6,2")
	  "%y: f32[2,12,3] = conv %a, %w {group=4}", 2 },
	{ "conv_dx", P("a", "4,6,3,3") P("w", "6,12,3,2") P("b", "12")
	  "%y: f32[4,12,5,6] = conv_dx %a, %w, %b {stride=[1,2]}", 2 },
	{ "conv_dx", P("a", "5,12,4") P("w", "12,4,3")
	  "%y: f32[5,4,6] = conv_dx %a, %w", 2 },
	{ "conv_dx", P("a", "2,24,3") P("w", "24,1,2") P("b", "12")
	  "%y: f32[2,12,4] = conv_dx %a, %w, %b {group=12}", 2 },
	{ "batchnorm", P("a", "3,12,5,2") P("s", "12") P("b", "12")
	  "%y: f32[3,12,5,2], %m: f32[12], %v: f32[12] = "
	  "batchnorm %a, %s, %b", 2 },
	{ "batchnorm", P("a", "1,24,5")
	  "%y: f32[1,24,5], %m: f32[24], %v: f32[24] = batchnorm %a", 2 },
	{ "batchnorm", P("a", "4,7") P("s", "7")
	  "%y: f32[4,7], %m: f32[7], %v: f32[7] = "
	  "batchnorm %a, %s {eps=0}", 2 },
	{ "bn_update", "buffer %a: f32[12]\n\t" P("n", "12")
	  "%y: f32[12] = bn_update %a, %n {momentum=0.75}", 2 },
	{ "maxpool", P("a", "4,6,8,7")
	  "%y: f32[4,6,8,4], %i: i32[4,6,8,4] = maxpool %a {kernel=[3,2], "
	  "stride=[1,2], begin=[1,1], end=[1,0]}", 2 },
	{ "avgpool", P("a", "4,6,8,7")
	  "%y: f32[4,6,8,4] = avgpool %a {kernel=[3,2], stride=[1,2], "
	  "begin=[1,1], end=[1,0]}", 2 },
	{ "resize", P("a", "4,6,5,3")
	  "%y: f32[4,6,10,3] = resize %a {axis=2, extent_in=5, "
	  "extent_out=10, mode=1}", 2 },
	{ "resize", P("a", "4,8,3")
	  "%y: f32[4,8,3] = resize %a {axis=1, extent_in=8, "
	  "extent_out=8, scale=1.1, mode=1}", 2 },
	{ "grid_sample", P("a", "4,6,8,7") P("p", "4,8,2,2")
	  "%y: f32[4,6,8,2] = grid_sample %a, %p", 2 },

	{ "attention", P("q", "3,4,5,6") P("k", "3,4,5,6") P("v", "3,4,5,6")
	  "%y: f32[3,4,5,6], %l: f32[3,4,5] = attention %q, %k, %v "
	  "{scale=0.5, causal=1, ratio=0.25, stream=1}", 2 },
	{ "attention", P("q", "4,4,5,6") P("k", "4,2,3,6") P("v", "4,2,3,7")
	  IN("m", "f32[1,4,5,3]")
	  "%y: f32[4,4,5,7], %l: f32[4,4,5] = attention %q, %k, %v, %m", 2 },
	{ "attention", P("q", "2,12,5,6") P("k", "2,1,5,6") P("v", "2,1,5,6")
	  IN("m", "bool[2,1,5,5]")
	  "%y: f32[2,12,5,6], %l: f32[2,12,5] = attention %q, %k, %v, %m",
	  2 },
	{ "attention", P("q", "3,6,5,6") P("k", "3,3,5,6") P("v", "3,3,5,6")
	  IN("m", "f32[6,5,5]")
	  "%y: f32[3,6,5,6], %l: f32[3,6,5] = attention %q, %k, %v, %m", 2 },
	{ NULL, NULL, 0 },
};
