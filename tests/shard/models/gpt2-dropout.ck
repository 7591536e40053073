graph @gpt2-dropout {
	streams 7
	input %input_ids: i64[2,12]
	input %labels: i64[2,12]
	param %m.transformer.wte.weight: f32[96,32]
	param %m.transformer.wpe.weight: f32[32,32]
	param %m.transformer.h.0.ln_1.weight: f32[32]
	param %m.transformer.h.0.ln_1.bias: f32[32]
	param %m.transformer.h.0.attn.c_attn.weight: f32[32,96]
	param %m.transformer.h.0.attn.c_attn.bias: f32[96]
	param %m.transformer.h.0.attn.c_proj.weight: f32[32,32]
	param %m.transformer.h.0.attn.c_proj.bias: f32[32]
	param %m.transformer.h.0.ln_2.weight: f32[32]
	param %m.transformer.h.0.ln_2.bias: f32[32]
	param %m.transformer.h.0.mlp.c_fc.weight: f32[32,128]
	param %m.transformer.h.0.mlp.c_fc.bias: f32[128]
	param %m.transformer.h.0.mlp.c_proj.weight: f32[128,32]
	param %m.transformer.h.0.mlp.c_proj.bias: f32[32]
	param %m.transformer.h.1.ln_1.weight: f32[32]
	param %m.transformer.h.1.ln_1.bias: f32[32]
	param %m.transformer.h.1.attn.c_attn.weight: f32[32,96]
	param %m.transformer.h.1.attn.c_attn.bias: f32[96]
	param %m.transformer.h.1.attn.c_proj.weight: f32[32,32]
	param %m.transformer.h.1.attn.c_proj.bias: f32[32]
	param %m.transformer.h.1.ln_2.weight: f32[32]
	param %m.transformer.h.1.ln_2.bias: f32[32]
	param %m.transformer.h.1.mlp.c_fc.weight: f32[32,128]
	param %m.transformer.h.1.mlp.c_fc.bias: f32[128]
	param %m.transformer.h.1.mlp.c_proj.weight: f32[128,32]
	param %m.transformer.h.1.mlp.c_proj.bias: f32[32]
	param %m.transformer.ln_f.weight: f32[32]
	param %m.transformer.ln_f.bias: f32[32]
	%t0_gather: f32[2,12,32] = gather %m.transformer.wte.weight, %input_ids
	%t488: f32[12,32] = slice %m.transformer.wpe.weight {start=[0,0], step=[1,1]}
	%t1_gather: f32[1,12,32] = reshape %t488 {shape=[1,12,32]}
	%t2_add: f32[2,12,32] = add %t0_gather, %t1_gather
	%t3_dropout: f32[2,12,32] = dropout %t2_add {ratio=0.10000000149011612, stream=1}
	%t4_layernormalization: f32[2,12,32], %t5_layernormalization.mean: f32[2,12], %t6_layernormalization.rstd: f32[2,12] = layernorm %t3_dropout, %m.transformer.h.0.ln_1.weight, %m.transformer.h.0.ln_1.bias {axis=2, eps=9.9999997473787516e-06}
	%t7_reshape: f32[24,32] = reshape %t4_layernormalization {shape=[24,32]}
	%t8_gemm: f32[24,96] = matmul %t7_reshape, %m.transformer.h.0.attn.c_attn.weight, %m.transformer.h.0.attn.c_attn.bias
	%t9_reshape: f32[2,12,96] = reshape %t8_gemm {shape=[2,12,96]}
	%t10_split: f32[2,12,32] = slice %t9_reshape {start=[0,0,0], step=[1,1,1]}
	%t11_split: f32[2,12,32] = slice %t9_reshape {start=[0,0,32], step=[1,1,1]}
	%t12_split: f32[2,12,32] = slice %t9_reshape {start=[0,0,64], step=[1,1,1]}
	%t13_reshape: f32[2,12,4,8] = reshape %t11_split {shape=[2,12,4,8]}
	%t14_reshape: f32[2,12,4,8] = reshape %t12_split {shape=[2,12,4,8]}
	%t15_transpose: f32[2,4,12,8] = transpose %t14_reshape {perm=[0,2,1,3]}
	%t16_reshape: f32[2,12,4,8] = reshape %t10_split {shape=[2,12,4,8]}
	%t17_transpose: f32[2,4,12,8] = transpose %t16_reshape {perm=[0,2,1,3]}
	%t18_matmul.transpose: f32[2,4,12,8] = transpose %t13_reshape {perm=[0,2,1,3]}
	%t19_matmul: f32[2,4,12,8], %t20_matmul.lse: f32[2,4,12] = attention %t17_transpose, %t18_matmul.transpose, %t15_transpose {scale=0.35355338454246521, causal=1, ratio=0.10000000149011612, stream=2}
	%t21_transpose: f32[2,12,4,8] = transpose %t19_matmul {perm=[0,2,1,3]}
	%t22_reshape: f32[24,32] = reshape %t21_transpose {shape=[24,32]}
	%t23_gemm: f32[24,32] = matmul %t22_reshape, %m.transformer.h.0.attn.c_proj.weight, %m.transformer.h.0.attn.c_proj.bias
	%t24_reshape: f32[2,12,32] = reshape %t23_gemm {shape=[2,12,32]}
	%t25_dropout: f32[2,12,32] = dropout %t24_reshape {ratio=0.10000000149011612, stream=3}
	%t26_add: f32[2,12,32] = add %t25_dropout, %t3_dropout
	%t27_layernormalization: f32[2,12,32], %t28_layernormalization.mean: f32[2,12], %t29_layernormalization.rstd: f32[2,12] = layernorm %t26_add, %m.transformer.h.0.ln_2.weight, %m.transformer.h.0.ln_2.bias {axis=2, eps=9.9999997473787516e-06}
	%t30_reshape: f32[24,32] = reshape %t27_layernormalization {shape=[24,32]}
	%t31_gemm: f32[24,128] = matmul %t30_reshape, %m.transformer.h.0.mlp.c_fc.weight, %m.transformer.h.0.mlp.c_fc.bias
	%t32_reshape: f32[2,12,128] = reshape %t31_gemm {shape=[2,12,128]}
	%t33_mul: f32[2,12,128] = gelu %t32_reshape {tanh=1}
	%t34_reshape: f32[24,128] = reshape %t33_mul {shape=[24,128]}
	%t35_gemm: f32[24,32] = matmul %t34_reshape, %m.transformer.h.0.mlp.c_proj.weight, %m.transformer.h.0.mlp.c_proj.bias
	%t36_reshape: f32[2,12,32] = reshape %t35_gemm {shape=[2,12,32]}
	%t37_dropout: f32[2,12,32] = dropout %t36_reshape {ratio=0.10000000149011612, stream=4}
	%t38_add: f32[2,12,32] = add %t26_add, %t37_dropout
	%t39_layernormalization: f32[2,12,32], %t40_layernormalization.mean: f32[2,12], %t41_layernormalization.rstd: f32[2,12] = layernorm %t38_add, %m.transformer.h.1.ln_1.weight, %m.transformer.h.1.ln_1.bias {axis=2, eps=9.9999997473787516e-06}
	%t42_reshape: f32[24,32] = reshape %t39_layernormalization {shape=[24,32]}
	%t43_gemm: f32[24,96] = matmul %t42_reshape, %m.transformer.h.1.attn.c_attn.weight, %m.transformer.h.1.attn.c_attn.bias
	%t44_reshape: f32[2,12,96] = reshape %t43_gemm {shape=[2,12,96]}
	%t45_split: f32[2,12,32] = slice %t44_reshape {start=[0,0,0], step=[1,1,1]}
	%t46_split: f32[2,12,32] = slice %t44_reshape {start=[0,0,32], step=[1,1,1]}
	%t47_split: f32[2,12,32] = slice %t44_reshape {start=[0,0,64], step=[1,1,1]}
	%t48_reshape: f32[2,12,4,8] = reshape %t46_split {shape=[2,12,4,8]}
	%t49_reshape: f32[2,12,4,8] = reshape %t47_split {shape=[2,12,4,8]}
	%t50_transpose: f32[2,4,12,8] = transpose %t49_reshape {perm=[0,2,1,3]}
	%t51_reshape: f32[2,12,4,8] = reshape %t45_split {shape=[2,12,4,8]}
	%t52_transpose: f32[2,4,12,8] = transpose %t51_reshape {perm=[0,2,1,3]}
	%t53_matmul.transpose: f32[2,4,12,8] = transpose %t48_reshape {perm=[0,2,1,3]}
	%t54_matmul: f32[2,4,12,8], %t55_matmul.lse: f32[2,4,12] = attention %t52_transpose, %t53_matmul.transpose, %t50_transpose {scale=0.35355338454246521, causal=1, ratio=0.10000000149011612, stream=5}
	%t56_transpose: f32[2,12,4,8] = transpose %t54_matmul {perm=[0,2,1,3]}
	%t57_reshape: f32[24,32] = reshape %t56_transpose {shape=[24,32]}
	%t58_gemm: f32[24,32] = matmul %t57_reshape, %m.transformer.h.1.attn.c_proj.weight, %m.transformer.h.1.attn.c_proj.bias
	%t59_reshape: f32[2,12,32] = reshape %t58_gemm {shape=[2,12,32]}
	%t60_dropout: f32[2,12,32] = dropout %t59_reshape {ratio=0.10000000149011612, stream=6}
	%t61_add: f32[2,12,32] = add %t60_dropout, %t38_add
	%t62_layernormalization: f32[2,12,32], %t63_layernormalization.mean: f32[2,12], %t64_layernormalization.rstd: f32[2,12] = layernorm %t61_add, %m.transformer.h.1.ln_2.weight, %m.transformer.h.1.ln_2.bias {axis=2, eps=9.9999997473787516e-06}
	%t65_reshape: f32[24,32] = reshape %t62_layernormalization {shape=[24,32]}
	%t66_gemm: f32[24,128] = matmul %t65_reshape, %m.transformer.h.1.mlp.c_fc.weight, %m.transformer.h.1.mlp.c_fc.bias
	%t67_reshape: f32[2,12,128] = reshape %t66_gemm {shape=[2,12,128]}
	%t68_mul: f32[2,12,128] = gelu %t67_reshape {tanh=1}
	%t69_reshape: f32[24,128] = reshape %t68_mul {shape=[24,128]}
	%t70_gemm: f32[24,32] = matmul %t69_reshape, %m.transformer.h.1.mlp.c_proj.weight, %m.transformer.h.1.mlp.c_proj.bias
	%t71_reshape: f32[2,12,32] = reshape %t70_gemm {shape=[2,12,32]}
	%t72_dropout: f32[2,12,32] = dropout %t71_reshape {ratio=0.10000000149011612, stream=7}
	%t73_add: f32[2,12,32] = add %t61_add, %t72_dropout
	%t74_layernormalization: f32[2,12,32], %t75_layernormalization.mean: f32[2,12], %t76_layernormalization.rstd: f32[2,12] = layernorm %t73_add, %m.transformer.ln_f.weight, %m.transformer.ln_f.bias {axis=2, eps=9.9999997473787516e-06}
	%logits.reshape: f32[24,32] = reshape %t74_layernormalization {shape=[24,32]}
	%logits.matmul: f32[24,96] = matmul %logits.reshape, %m.transformer.wte.weight {tb=1}
	%t77_pad: i64[2,13] = pad %labels {begin=[0,0], end=[0,1], value=-100}
	%t78_slice: i64[2,12] = slice %t77_pad {start=[0,1], step=[1,1]}
	%t79_reshape: i64[24] = reshape %t78_slice {shape=[24]}
	%loss: f32[] output, %loss.lse: f32[24], %loss.denom: f32[] = sce %logits.matmul, %t79_reshape {ignore=-100}
	loss %loss
}
