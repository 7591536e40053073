graph @gpt2-one-norm {
	input %input_ids: i64[2,12]
	input %labels: i64[2,12]
	param %m.transformer.wte.weight: f32[96,32]
	param %m.transformer.wpe.weight: f32[32,32]
	param %m.transformer.h.0.ln_1.weight: f32[32]
	param %m.transformer.h.0.ln_1.bias: f32[32]
	param %m.transformer.h.0.attn.c_attn.weight: f32[32,96]
	param %m.transformer.h.0.attn.c_attn.bias: f32[96]
	param %m.transformer.h.0.attn.c_proj.weight: f32[32,32]
	param %m.transformer.h.0.mlp.c_fc.weight: f32[32,128]
	param %m.transformer.h.0.mlp.c_fc.bias: f32[128]
	param %m.transformer.h.0.mlp.c_proj.weight: f32[128,32]
	param %m.transformer.h.1.attn.c_attn.weight: f32[32,96]
	param %m.transformer.h.1.attn.c_proj.weight: f32[32,32]
	param %m.transformer.h.1.mlp.c_fc.weight: f32[32,128]
	param %m.transformer.h.1.mlp.c_proj.weight: f32[128,32]
	param %"onnx::MatMul_624": f32[32,96]
	%t0_gather: f32[2,12,32] = gather %m.transformer.wte.weight, %input_ids
	%t258: f32[12,32] = slice %m.transformer.wpe.weight {start=[0,0], step=[1,1]}
	%t1_gather: f32[1,12,32] = reshape %t258 {shape=[1,12,32]}
	%t2_add: f32[2,12,32] = add %t0_gather, %t1_gather
	%t3_add: f32[2,12,32], %t4_add.mean: f32[2,12], %t5_add.rstd: f32[2,12] = layernorm %t2_add, %m.transformer.h.0.ln_1.weight, %m.transformer.h.0.ln_1.bias {axis=2, eps=9.9999997473787516e-06}
	%t6_reshape: f32[24,32] = reshape %t3_add {shape=[24,32]}
	%t7_gemm: f32[24,96] = matmul %t6_reshape, %m.transformer.h.0.attn.c_attn.weight, %m.transformer.h.0.attn.c_attn.bias
	%t8_reshape: f32[2,12,96] = reshape %t7_gemm {shape=[2,12,96]}
	%t9_split: f32[2,12,32] = slice %t8_reshape {start=[0,0,0], step=[1,1,1]}
	%t10_split: f32[2,12,32] = slice %t8_reshape {start=[0,0,32], step=[1,1,1]}
	%t11_split: f32[2,12,32] = slice %t8_reshape {start=[0,0,64], step=[1,1,1]}
	%t12_reshape: f32[2,12,4,8] = reshape %t10_split {shape=[2,12,4,8]}
	%t13_reshape: f32[2,12,4,8] = reshape %t11_split {shape=[2,12,4,8]}
	%t14_transpose: f32[2,4,12,8] = transpose %t13_reshape {perm=[0,2,1,3]}
	%t15_reshape: f32[2,12,4,8] = reshape %t9_split {shape=[2,12,4,8]}
	%t16_transpose: f32[2,4,12,8] = transpose %t15_reshape {perm=[0,2,1,3]}
	%t17_matmul.transpose: f32[2,4,12,8] = transpose %t12_reshape {perm=[0,2,1,3]}
	%t18_matmul: f32[2,4,12,8], %t19_matmul.lse: f32[2,4,12] = attention %t16_transpose, %t17_matmul.transpose, %t14_transpose {scale=0.35355338454246521, causal=1}
	%t20_transpose: f32[2,12,4,8] = transpose %t18_matmul {perm=[0,2,1,3]}
	%t21_reshape: f32[24,32] = reshape %t20_transpose {shape=[24,32]}
	%t22_gemm: f32[24,32] = matmul %t21_reshape, %m.transformer.h.0.attn.c_proj.weight, %m.transformer.h.0.ln_1.bias
	%t23_reshape: f32[2,12,32] = reshape %t22_gemm {shape=[2,12,32]}
	%t24_add: f32[2,12,32] = add %t23_reshape, %t2_add
	%t25_add: f32[2,12,32], %t26_add.mean: f32[2,12], %t27_add.rstd: f32[2,12] = layernorm %t24_add, %m.transformer.h.0.ln_1.weight, %m.transformer.h.0.ln_1.bias {axis=2, eps=9.9999997473787516e-06}
	%t28_reshape: f32[24,32] = reshape %t25_add {shape=[24,32]}
	%t29_gemm: f32[24,128] = matmul %t28_reshape, %m.transformer.h.0.mlp.c_fc.weight, %m.transformer.h.0.mlp.c_fc.bias
	%t30_reshape: f32[2,12,128] = reshape %t29_gemm {shape=[2,12,128]}
	%t31_mul: f32[2,12,128] = gelu %t30_reshape {tanh=1}
	%t32_reshape: f32[24,128] = reshape %t31_mul {shape=[24,128]}
	%t33_gemm: f32[24,32] = matmul %t32_reshape, %m.transformer.h.0.mlp.c_proj.weight, %m.transformer.h.0.ln_1.bias
	%t34_reshape: f32[2,12,32] = reshape %t33_gemm {shape=[2,12,32]}
	%t35_add: f32[2,12,32] = add %t24_add, %t34_reshape
	%t36_add: f32[2,12,32], %t37_add.mean: f32[2,12], %t38_add.rstd: f32[2,12] = layernorm %t35_add, %m.transformer.h.0.ln_1.weight, %m.transformer.h.0.ln_1.bias {axis=2, eps=9.9999997473787516e-06}
	%t39_reshape: f32[24,32] = reshape %t36_add {shape=[24,32]}
	%t40_gemm: f32[24,96] = matmul %t39_reshape, %m.transformer.h.1.attn.c_attn.weight, %m.transformer.h.0.attn.c_attn.bias
	%t41_reshape: f32[2,12,96] = reshape %t40_gemm {shape=[2,12,96]}
	%t42_split: f32[2,12,32] = slice %t41_reshape {start=[0,0,0], step=[1,1,1]}
	%t43_split: f32[2,12,32] = slice %t41_reshape {start=[0,0,32], step=[1,1,1]}
	%t44_split: f32[2,12,32] = slice %t41_reshape {start=[0,0,64], step=[1,1,1]}
	%t45_reshape: f32[2,12,4,8] = reshape %t43_split {shape=[2,12,4,8]}
	%t46_reshape: f32[2,12,4,8] = reshape %t44_split {shape=[2,12,4,8]}
	%t47_transpose: f32[2,4,12,8] = transpose %t46_reshape {perm=[0,2,1,3]}
	%t48_reshape: f32[2,12,4,8] = reshape %t42_split {shape=[2,12,4,8]}
	%t49_transpose: f32[2,4,12,8] = transpose %t48_reshape {perm=[0,2,1,3]}
	%t50_matmul.transpose: f32[2,4,12,8] = transpose %t45_reshape {perm=[0,2,1,3]}
	%t51_matmul: f32[2,4,12,8], %t52_matmul.lse: f32[2,4,12] = attention %t49_transpose, %t50_matmul.transpose, %t47_transpose {scale=0.35355338454246521, causal=1}
	%t53_transpose: f32[2,12,4,8] = transpose %t51_matmul {perm=[0,2,1,3]}
	%t54_reshape: f32[24,32] = reshape %t53_transpose {shape=[24,32]}
	%t55_gemm: f32[24,32] = matmul %t54_reshape, %m.transformer.h.1.attn.c_proj.weight, %m.transformer.h.0.ln_1.bias
	%t56_reshape: f32[2,12,32] = reshape %t55_gemm {shape=[2,12,32]}
	%t57_add: f32[2,12,32] = add %t56_reshape, %t35_add
	%t58_add: f32[2,12,32], %t59_add.mean: f32[2,12], %t60_add.rstd: f32[2,12] = layernorm %t57_add, %m.transformer.h.0.ln_1.weight, %m.transformer.h.0.ln_1.bias {axis=2, eps=9.9999997473787516e-06}
	%t61_reshape: f32[24,32] = reshape %t58_add {shape=[24,32]}
	%t62_gemm: f32[24,128] = matmul %t61_reshape, %m.transformer.h.1.mlp.c_fc.weight, %m.transformer.h.0.mlp.c_fc.bias
	%t63_reshape: f32[2,12,128] = reshape %t62_gemm {shape=[2,12,128]}
	%t64_mul: f32[2,12,128] = gelu %t63_reshape {tanh=1}
	%t65_reshape: f32[24,128] = reshape %t64_mul {shape=[24,128]}
	%t66_gemm: f32[24,32] = matmul %t65_reshape, %m.transformer.h.1.mlp.c_proj.weight, %m.transformer.h.0.ln_1.bias
	%t67_reshape: f32[2,12,32] = reshape %t66_gemm {shape=[2,12,32]}
	%t68_add: f32[2,12,32] = add %t57_add, %t67_reshape
	%t69_add: f32[2,12,32], %t70_add.mean: f32[2,12], %t71_add.rstd: f32[2,12] = layernorm %t68_add, %m.transformer.h.0.ln_1.weight, %m.transformer.h.0.ln_1.bias {axis=2, eps=9.9999997473787516e-06}
	%logits.reshape: f32[24,32] = reshape %t69_add {shape=[24,32]}
	%logits.matmul: f32[24,96] = matmul %logits.reshape, %"onnx::MatMul_624"
	%t72_pad: i64[2,13] = pad %labels {begin=[0,0], end=[0,1], value=-100}
	%t73_slice: i64[2,12] = slice %t72_pad {start=[0,1], step=[1,1]}
	%t74_reshape: i64[24] = reshape %t73_slice {shape=[24]}
	%loss: f32[] output, %loss.lse: f32[24], %loss.denom: f32[] = sce %logits.matmul, %t74_reshape {ignore=-100}
	loss %loss
}
