graph @llama {
	input %input_ids: i64[2,12]
	input %labels: i64[2,12]
	param %m.model.embed_tokens.weight: f32[96,32]
	param %m.model.layers.0.self_attn.q_proj.weight: f32[32,32]
	param %m.model.layers.0.self_attn.k_proj.weight: f32[16,32]
	param %m.model.layers.0.self_attn.v_proj.weight: f32[16,32]
	param %m.model.layers.0.self_attn.o_proj.weight: f32[32,32]
	param %m.model.layers.0.mlp.gate_proj.weight: f32[64,32]
	param %m.model.layers.0.mlp.up_proj.weight: f32[64,32]
	param %m.model.layers.0.mlp.down_proj.weight: f32[32,64]
	param %m.model.layers.0.input_layernorm.weight: f32[32]
	param %m.model.layers.0.post_attention_layernorm.weight: f32[32]
	param %m.model.layers.1.self_attn.q_proj.weight: f32[32,32]
	param %m.model.layers.1.self_attn.k_proj.weight: f32[16,32]
	param %m.model.layers.1.self_attn.v_proj.weight: f32[16,32]
	param %m.model.layers.1.self_attn.o_proj.weight: f32[32,32]
	param %m.model.layers.1.mlp.gate_proj.weight: f32[64,32]
	param %m.model.layers.1.mlp.up_proj.weight: f32[64,32]
	param %m.model.layers.1.mlp.down_proj.weight: f32[32,64]
	param %m.model.layers.1.input_layernorm.weight: f32[32]
	param %m.model.layers.1.post_attention_layernorm.weight: f32[32]
	param %m.model.norm.weight: f32[32]
	param %m.lm_head.weight: f32[96,32]
	const %unsqueeze_14: f32[1,1,12,8] = hex "0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f40510a3f98b87e3fb9fc7f3ff8ff7f3f40510a3f98b87e3fb9fc7f3ff8ff7f3f3311d5bea5e57a3fe5f27f3fdeff7f3f3311d5bea5e57a3fe5f27f3fdeff7f3f26707dbfef90743f83e27f3fb5ff7f3f26707dbfef90743f83e27f3fb5ff7f3f305527bfa7ca6b3f94cb7f3f7aff7f3f305527bfa7ca6b3f94cb7f3f7aff7f3f2c3c913e40a9603f19ae7f3f2eff7f3f2c3c913e40a9603f19ae7f3f2eff7f3fb8cd753f3249533f128a7f3fd2fe7f3fb8cd753f3249533f128a7f3fd2fe7f3fbdff403fb3cc433f815f7f3f65fe7f3fbdff403fb3cc433f815f7f3f65fe7f3ff6fd14be5f5b323f662e7f3fe7fd7f3ff6fd14be5f5b323f662e7f3fe7fd7f3fd53f69bfd4211f3fc2f67e3f59fd7f3fd53f69bfd4211f3fc2f67e3f59fd7f3f64cd56bf40510a3f98b87e3fb9fc7f3f64cd56bf40510a3f98b87e3fb9fc7f3f7205913bbf3de83ee8737e3f09fc7f3f7205913bbf3de83ee8737e3f09fc7f3f"
	const %unsqueeze_15: f32[1,1,12,8] = hex "0000000000000000000000000000000000000000000000000000000000000000a46a573f7775cc3d57d6233c6e12833aa46a573f7775cc3d57d6233c6e12833ab7c7683ff96f4b3e3ed4a33c6912033bb7c7683ff96f4b3e3ed4a33c6912033bc381103e6d4e973e1fb9f53c939b443bc381103e6d4e973e1fb9f53c939b443bcfbd41bfd761c73edbcb233d5812833bcfbd41bfd761c73edbcb233d5812833b107c75bf4477f53ef4b64c3dded6a33b107c75bf4477f53ef4b64c3dded6a33b8c0f8fbe698c103fd19c753d599bc43b8c0f8fbe698c103fd19c753d599bc43b4630283f73eb243f323e8f3dc75fe53b4630283f73eb243f323e8f3dc75fe53b95467d3fa6a4373f50aaa33d1312033c95467d3fa6a4373f50aaa33d1312033c3201d33e1d88483f3e12b83d3b74133c3201d33e1d88483f3e12b83d3b74133cf8440bbfa46a573f7675cc3d58d6233cf8440bbfa46a573f7675cc3d58d6233c5cff7fbf2b26643f72d3e03d6b38343c5cff7fbf2b26643f72d3e03d6b38343c"
	%embedding: f32[2,12,32] = gather %m.model.embed_tokens.weight, %input_ids
	%mul_4: f32[2,12,32], %mul_4.rstd: f32[2,12] = rmsnorm %embedding, %m.model.layers.0.input_layernorm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear.reshape: f32[24,32] = reshape %mul_4 {shape=[24,32]}
	%linear.matmul: f32[24,32] = matmul %linear.reshape, %m.model.layers.0.self_attn.q_proj.weight {tb=1}
	%view: f32[2,12,4,8] = reshape %linear.matmul {shape=[2,12,4,8]}
	%transpose: f32[2,4,12,8] = transpose %view {perm=[0,2,1,3]}
	%linear_1.matmul: f32[24,16] = matmul %linear.reshape, %m.model.layers.0.self_attn.k_proj.weight {tb=1}
	%view_1: f32[2,12,2,8] = reshape %linear_1.matmul {shape=[2,12,2,8]}
	%transpose_1: f32[2,2,12,8] = transpose %view_1 {perm=[0,2,1,3]}
	%linear_2.matmul: f32[24,16] = matmul %linear.reshape, %m.model.layers.0.self_attn.v_proj.weight {tb=1}
	%view_2: f32[2,12,2,8] = reshape %linear_2.matmul {shape=[2,12,2,8]}
	%transpose_2: f32[2,2,12,8] = transpose %view_2 {perm=[0,2,1,3]}
	%mul_5: f32[2,4,12,8] = mul %transpose, %unsqueeze_14
	%slice_4: f32[2,4,12,4] = slice %transpose {start=[0,0,0,0], step=[1,1,1,1]}
	%slice_5: f32[2,4,12,4] = slice %transpose {start=[0,0,0,4], step=[1,1,1,1]}
	%neg: f32[2,4,12,4] = neg %slice_5
	%cat_2: f32[2,4,12,8] = concat %neg, %slice_4 {axis=3}
	%mul_6: f32[2,4,12,8] = mul %cat_2, %unsqueeze_15
	%add_4: f32[2,4,12,8] = add %mul_5, %mul_6
	%mul_7: f32[2,2,12,8] = mul %transpose_1, %unsqueeze_14
	%slice_6: f32[2,2,12,4] = slice %transpose_1 {start=[0,0,0,0], step=[1,1,1,1]}
	%slice_7: f32[2,2,12,4] = slice %transpose_1 {start=[0,0,0,4], step=[1,1,1,1]}
	%neg_1: f32[2,2,12,4] = neg %slice_7
	%cat_3: f32[2,2,12,8] = concat %neg_1, %slice_6 {axis=3}
	%mul_8: f32[2,2,12,8] = mul %cat_3, %unsqueeze_15
	%add_5: f32[2,2,12,8] = add %mul_7, %mul_8
	%matmul_1: f32[2,4,12,8], %matmul_1.lse: f32[2,4,12] = attention %add_4, %add_5, %transpose_2 {scale=0.35355338454246521, causal=1}
	%transpose_4: f32[2,12,4,8] = transpose %matmul_1 {perm=[0,2,1,3]}
	%linear_3.reshape: f32[24,32] = reshape %transpose_4 {shape=[24,32]}
	%linear_3.matmul: f32[24,32] = matmul %linear_3.reshape, %m.model.layers.0.self_attn.o_proj.weight {tb=1}
	%linear_3: f32[2,12,32] = reshape %linear_3.matmul {shape=[2,12,32]}
	%add_7: f32[2,12,32] = add %embedding, %linear_3
	%mul_11: f32[2,12,32], %mul_11.rstd: f32[2,12] = rmsnorm %add_7, %m.model.layers.0.post_attention_layernorm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_4.reshape: f32[24,32] = reshape %mul_11 {shape=[24,32]}
	%linear_4.matmul: f32[24,64] = matmul %linear_4.reshape, %m.model.layers.0.mlp.gate_proj.weight {tb=1}
	%linear_4: f32[2,12,64] = reshape %linear_4.matmul {shape=[2,12,64]}
	%silu: f32[2,12,64] = silu %linear_4
	%linear_5.matmul: f32[24,64] = matmul %linear_4.reshape, %m.model.layers.0.mlp.up_proj.weight {tb=1}
	%linear_5: f32[2,12,64] = reshape %linear_5.matmul {shape=[2,12,64]}
	%mul_12: f32[2,12,64] = mul %silu, %linear_5
	%linear_6.reshape: f32[24,64] = reshape %mul_12 {shape=[24,64]}
	%linear_6.matmul: f32[24,32] = matmul %linear_6.reshape, %m.model.layers.0.mlp.down_proj.weight {tb=1}
	%linear_6: f32[2,12,32] = reshape %linear_6.matmul {shape=[2,12,32]}
	%add_9: f32[2,12,32] = add %add_7, %linear_6
	%mul_14: f32[2,12,32], %mul_14.rstd: f32[2,12] = rmsnorm %add_9, %m.model.layers.1.input_layernorm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_7.reshape: f32[24,32] = reshape %mul_14 {shape=[24,32]}
	%linear_7.matmul: f32[24,32] = matmul %linear_7.reshape, %m.model.layers.1.self_attn.q_proj.weight {tb=1}
	%view_4: f32[2,12,4,8] = reshape %linear_7.matmul {shape=[2,12,4,8]}
	%transpose_5: f32[2,4,12,8] = transpose %view_4 {perm=[0,2,1,3]}
	%linear_8.matmul: f32[24,16] = matmul %linear_7.reshape, %m.model.layers.1.self_attn.k_proj.weight {tb=1}
	%view_5: f32[2,12,2,8] = reshape %linear_8.matmul {shape=[2,12,2,8]}
	%transpose_6: f32[2,2,12,8] = transpose %view_5 {perm=[0,2,1,3]}
	%linear_9.matmul: f32[24,16] = matmul %linear_7.reshape, %m.model.layers.1.self_attn.v_proj.weight {tb=1}
	%view_6: f32[2,12,2,8] = reshape %linear_9.matmul {shape=[2,12,2,8]}
	%transpose_7: f32[2,2,12,8] = transpose %view_6 {perm=[0,2,1,3]}
	%mul_15: f32[2,4,12,8] = mul %transpose_5, %unsqueeze_14
	%slice_8: f32[2,4,12,4] = slice %transpose_5 {start=[0,0,0,0], step=[1,1,1,1]}
	%slice_9: f32[2,4,12,4] = slice %transpose_5 {start=[0,0,0,4], step=[1,1,1,1]}
	%neg_2: f32[2,4,12,4] = neg %slice_9
	%cat_4: f32[2,4,12,8] = concat %neg_2, %slice_8 {axis=3}
	%mul_16: f32[2,4,12,8] = mul %cat_4, %unsqueeze_15
	%add_11: f32[2,4,12,8] = add %mul_15, %mul_16
	%mul_17: f32[2,2,12,8] = mul %transpose_6, %unsqueeze_14
	%slice_10: f32[2,2,12,4] = slice %transpose_6 {start=[0,0,0,0], step=[1,1,1,1]}
	%slice_11: f32[2,2,12,4] = slice %transpose_6 {start=[0,0,0,4], step=[1,1,1,1]}
	%neg_3: f32[2,2,12,4] = neg %slice_11
	%cat_5: f32[2,2,12,8] = concat %neg_3, %slice_10 {axis=3}
	%mul_18: f32[2,2,12,8] = mul %cat_5, %unsqueeze_15
	%add_12: f32[2,2,12,8] = add %mul_17, %mul_18
	%matmul_3: f32[2,4,12,8], %matmul_3.lse: f32[2,4,12] = attention %add_11, %add_12, %transpose_7 {scale=0.35355338454246521, causal=1}
	%transpose_9: f32[2,12,4,8] = transpose %matmul_3 {perm=[0,2,1,3]}
	%linear_10.reshape: f32[24,32] = reshape %transpose_9 {shape=[24,32]}
	%linear_10.matmul: f32[24,32] = matmul %linear_10.reshape, %m.model.layers.1.self_attn.o_proj.weight {tb=1}
	%linear_10: f32[2,12,32] = reshape %linear_10.matmul {shape=[2,12,32]}
	%add_14: f32[2,12,32] = add %add_9, %linear_10
	%mul_21: f32[2,12,32], %mul_21.rstd: f32[2,12] = rmsnorm %add_14, %m.model.layers.1.post_attention_layernorm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_11.reshape: f32[24,32] = reshape %mul_21 {shape=[24,32]}
	%linear_11.matmul: f32[24,64] = matmul %linear_11.reshape, %m.model.layers.1.mlp.gate_proj.weight {tb=1}
	%linear_11: f32[2,12,64] = reshape %linear_11.matmul {shape=[2,12,64]}
	%silu_1: f32[2,12,64] = silu %linear_11
	%linear_12.matmul: f32[24,64] = matmul %linear_11.reshape, %m.model.layers.1.mlp.up_proj.weight {tb=1}
	%linear_12: f32[2,12,64] = reshape %linear_12.matmul {shape=[2,12,64]}
	%mul_22: f32[2,12,64] = mul %silu_1, %linear_12
	%linear_13.reshape: f32[24,64] = reshape %mul_22 {shape=[24,64]}
	%linear_13.matmul: f32[24,32] = matmul %linear_13.reshape, %m.model.layers.1.mlp.down_proj.weight {tb=1}
	%linear_13: f32[2,12,32] = reshape %linear_13.matmul {shape=[2,12,32]}
	%add_16: f32[2,12,32] = add %add_14, %linear_13
	%mul_24: f32[2,12,32], %mul_24.rstd: f32[2,12] = rmsnorm %add_16, %m.model.norm.weight {axis=2, eps=9.9999999747524271e-07}
	%logits.reshape: f32[24,32] = reshape %mul_24 {shape=[24,32]}
	%logits.matmul: f32[24,96] = matmul %logits.reshape, %m.lm_head.weight {tb=1}
	%pad: i64[2,13] = pad %labels {begin=[0,0], end=[0,1], value=-100}
	%slice_12: i64[2,12] = slice %pad {start=[0,1], step=[1,1]}
	%view_9: i64[24] = reshape %slice_12 {shape=[24]}
	%loss: f32[] output, %loss.lse: f32[24], %loss.denom: f32[] = sce %logits.matmul, %view_9 {ignore=-100}
	loss %loss
}
