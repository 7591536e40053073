graph @t5 {
	input %input_ids: i64[2,12]
	input %labels: i64[2,12]
	param %m.encoder.block.0.layer.0.SelfAttention.q.weight: f32[32,32]
	param %m.encoder.block.0.layer.0.SelfAttention.k.weight: f32[32,32]
	param %m.encoder.block.0.layer.0.SelfAttention.v.weight: f32[32,32]
	param %m.encoder.block.0.layer.0.SelfAttention.o.weight: f32[32,32]
	param %m.encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight: f32[8,4]
	param %m.encoder.block.0.layer.0.layer_norm.weight: f32[32]
	param %m.encoder.block.0.layer.1.DenseReluDense.wi.weight: f32[64,32]
	param %m.encoder.block.0.layer.1.DenseReluDense.wo.weight: f32[32,64]
	param %m.encoder.block.0.layer.1.layer_norm.weight: f32[32]
	param %m.encoder.block.1.layer.0.SelfAttention.q.weight: f32[32,32]
	param %m.encoder.block.1.layer.0.SelfAttention.k.weight: f32[32,32]
	param %m.encoder.block.1.layer.0.SelfAttention.v.weight: f32[32,32]
	param %m.encoder.block.1.layer.0.SelfAttention.o.weight: f32[32,32]
	param %m.encoder.block.1.layer.0.layer_norm.weight: f32[32]
	param %m.encoder.block.1.layer.1.DenseReluDense.wi.weight: f32[64,32]
	param %m.encoder.block.1.layer.1.DenseReluDense.wo.weight: f32[32,64]
	param %m.encoder.block.1.layer.1.layer_norm.weight: f32[32]
	param %m.encoder.final_layer_norm.weight: f32[32]
	param %m.decoder.block.0.layer.0.SelfAttention.q.weight: f32[32,32]
	param %m.decoder.block.0.layer.0.SelfAttention.k.weight: f32[32,32]
	param %m.decoder.block.0.layer.0.SelfAttention.v.weight: f32[32,32]
	param %m.decoder.block.0.layer.0.SelfAttention.o.weight: f32[32,32]
	param %m.decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight: f32[8,4]
	param %m.decoder.block.0.layer.0.layer_norm.weight: f32[32]
	param %m.decoder.block.0.layer.1.EncDecAttention.q.weight: f32[32,32]
	param %m.decoder.block.0.layer.1.EncDecAttention.k.weight: f32[32,32]
	param %m.decoder.block.0.layer.1.EncDecAttention.v.weight: f32[32,32]
	param %m.decoder.block.0.layer.1.EncDecAttention.o.weight: f32[32,32]
	param %m.decoder.block.0.layer.1.layer_norm.weight: f32[32]
	param %m.decoder.block.0.layer.2.DenseReluDense.wi.weight: f32[64,32]
	param %m.decoder.block.0.layer.2.DenseReluDense.wo.weight: f32[32,64]
	param %m.decoder.block.0.layer.2.layer_norm.weight: f32[32]
	param %m.decoder.block.1.layer.0.SelfAttention.q.weight: f32[32,32]
	param %m.decoder.block.1.layer.0.SelfAttention.k.weight: f32[32,32]
	param %m.decoder.block.1.layer.0.SelfAttention.v.weight: f32[32,32]
	param %m.decoder.block.1.layer.0.SelfAttention.o.weight: f32[32,32]
	param %m.decoder.block.1.layer.0.layer_norm.weight: f32[32]
	param %m.decoder.block.1.layer.1.EncDecAttention.q.weight: f32[32,32]
	param %m.decoder.block.1.layer.1.EncDecAttention.k.weight: f32[32,32]
	param %m.decoder.block.1.layer.1.EncDecAttention.v.weight: f32[32,32]
	param %m.decoder.block.1.layer.1.EncDecAttention.o.weight: f32[32,32]
	param %m.decoder.block.1.layer.1.layer_norm.weight: f32[32]
	param %m.decoder.block.1.layer.2.DenseReluDense.wi.weight: f32[64,32]
	param %m.decoder.block.1.layer.2.DenseReluDense.wo.weight: f32[32,64]
	param %m.decoder.block.1.layer.2.layer_norm.weight: f32[32]
	param %m.decoder.final_layer_norm.weight: f32[32]
	param %m.lm_head.weight: f32[96,32]
	const %add_6: i64[12,12] = hex "000000000000000005000000000000000600000000000000060000000000000006000000000000000600000000000000070000000000000007000000000000000700000000000000070000000000000007000000000000000700000000000000010000000000000000000000000000000500000000000000060000000000000006000000000000000600000000000000060000000000000007000000000000000700000000000000070000000000000007000000000000000700000000000000020000000000000001000000000000000000000000000000050000000000000006000000000000000600000000000000060000000000000006000000000000000700000000000000070000000000000007000000000000000700000000000000020000000000000002000000000000000100000000000000000000000000000005000000000000000600000000000000060000000000000006000000000000000600000000000000070000000000000007000000000000000700000000000000020000000000000002000000000000000200000000000000010000000000000000000000000000000500000000000000060000000000000006000000000000000600000000000000060000000000000007000000000000000700000000000000020000000000000002000000000000000200000000000000020000000000000001000000000000000000000000000000050000000000000006000000000000000600000000000000060000000000000006000000000000000700000000000000030000000000000002000000000000000200000000000000020000000000000002000000000000000100000000000000000000000000000005000000000000000600000000000000060000000000000006000000000000000600000000000000030000000000000003000000000000000200000000000000020000000000000002000000000000000200000000000000010000000000000000000000000000000500000000000000060000000000000006000000000000000600000000000000030000000000000003000000000000000300000000000000020000000000000002000000000000000200000000000000020000000000000001000000000000000000000000000000050000000000000006000000000000000600000000000000030000000000000003000000000000000300000000000000030000000000000002000000000000000200000000000000020000000000000002000000000000000100000000000000000000000000000005000000000000000600000000000000030000000000000003000000000000000300000000000000030000000000000003000000000000000200000000000000020000000000000002000000000000000200000000000000010000000000000000000000000000000500000000000000030000000000000003000000000000000300000000000000030000000000000003000000000000000300000000000000020000000000000002000000000000000200000000000000020000000000000001000000000000000000000000000000"
	const %val_143: i64[11,1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	const %val_145: i64[12,2] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	const %val_149: i64[2,1] = {0, 0}
	const %val_150: i64[] = {-100}
	const %val_151: i64[] = {0}
	const %add_26: i64[12,12] = hex "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000020000000000000001000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000030000000000000002000000000000000100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000040000000000000003000000000000000200000000000000010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000040000000000000004000000000000000300000000000000020000000000000001000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000050000000000000004000000000000000400000000000000030000000000000002000000000000000100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000050000000000000005000000000000000400000000000000040000000000000003000000000000000200000000000000010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000060000000000000005000000000000000500000000000000040000000000000004000000000000000300000000000000020000000000000001000000000000000000000000000000000000000000000000000000000000000000000000000000060000000000000006000000000000000500000000000000050000000000000004000000000000000400000000000000030000000000000002000000000000000100000000000000000000000000000000000000000000000000000000000000060000000000000006000000000000000600000000000000050000000000000005000000000000000400000000000000040000000000000003000000000000000200000000000000010000000000000000000000000000000000000000000000060000000000000006000000000000000600000000000000060000000000000005000000000000000500000000000000040000000000000004000000000000000300000000000000020000000000000001000000000000000000000000000000"
	const %val_334: f32[] = {0.176776692}
	const %where_2.2: f32[1,1,12,12] = hex "00000000ffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fff0000000000000000ffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fff000000000000000000000000ffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fff00000000000000000000000000000000ffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fff0000000000000000000000000000000000000000ffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fff000000000000000000000000000000000000000000000000ffff7fffffff7fffffff7fffffff7fffffff7fffffff7fff00000000000000000000000000000000000000000000000000000000ffff7fffffff7fffffff7fffffff7fffffff7fff0000000000000000000000000000000000000000000000000000000000000000ffff7fffffff7fffffff7fffffff7fff000000000000000000000000000000000000000000000000000000000000000000000000ffff7fffffff7fffffff7fff00000000000000000000000000000000000000000000000000000000000000000000000000000000ffff7fffffff7fff0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000ffff7fff000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
	%embedding: f32[2,12,32] = gather %m.lm_head.weight, %input_ids
	%mul_1: f32[2,12,32], %mul_1.rstd: f32[2,12] = rmsnorm %embedding, %m.encoder.block.0.layer.0.layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear.reshape: f32[24,32] = reshape %mul_1 {shape=[24,32]}
	%linear.matmul: f32[24,32] = matmul %linear.reshape, %m.encoder.block.0.layer.0.SelfAttention.q.weight {tb=1}
	%view: f32[2,12,4,8] = reshape %linear.matmul {shape=[2,12,4,8]}
	%transpose: f32[2,4,12,8] = transpose %view {perm=[0,2,1,3]}
	%linear_1.matmul: f32[24,32] = matmul %linear.reshape, %m.encoder.block.0.layer.0.SelfAttention.k.weight {tb=1}
	%view_1: f32[2,12,4,8] = reshape %linear_1.matmul {shape=[2,12,4,8]}
	%linear_2.matmul: f32[24,32] = matmul %linear.reshape, %m.encoder.block.0.layer.0.SelfAttention.v.weight {tb=1}
	%view_2: f32[2,12,4,8] = reshape %linear_2.matmul {shape=[2,12,4,8]}
	%transpose_2: f32[2,4,12,8] = transpose %view_2 {perm=[0,2,1,3]}
	%embedding_1: f32[12,12,4] = gather %m.encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight, %add_6
	%permute: f32[4,12,12] = transpose %embedding_1 {perm=[2,0,1]}
	%unsqueeze_14: f32[1,4,12,12] = reshape %permute {shape=[1,4,12,12]}
	%transpose_3: f32[2,4,8,12] = transpose %view_1 {perm=[0,2,3,1]}
	%matmul: f32[2,4,12,12] = matmul %transpose, %transpose_3
	%add_7: f32[2,4,12,12] = add %matmul, %unsqueeze_14
	%softmax: f32[2,4,12,12] = softmax %add_7 {axis=3}
	%matmul_1: f32[2,4,12,8] = matmul %softmax, %transpose_2
	%transpose_4: f32[2,12,4,8] = transpose %matmul_1 {perm=[0,2,1,3]}
	%linear_3.reshape: f32[24,32] = reshape %transpose_4 {shape=[24,32]}
	%linear_3.matmul: f32[24,32] = matmul %linear_3.reshape, %m.encoder.block.0.layer.0.SelfAttention.o.weight {tb=1}
	%linear_3: f32[2,12,32] = reshape %linear_3.matmul {shape=[2,12,32]}
	%add_9: f32[2,12,32] = add %embedding, %linear_3
	%mul_6: f32[2,12,32], %mul_6.rstd: f32[2,12] = rmsnorm %add_9, %m.encoder.block.0.layer.1.layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_4.reshape: f32[24,32] = reshape %mul_6 {shape=[24,32]}
	%linear_4.matmul: f32[24,64] = matmul %linear_4.reshape, %m.encoder.block.0.layer.1.DenseReluDense.wi.weight {tb=1}
	%linear_4: f32[2,12,64] = reshape %linear_4.matmul {shape=[2,12,64]}
	%relu: f32[2,12,64] = relu %linear_4
	%linear_5.reshape: f32[24,64] = reshape %relu {shape=[24,64]}
	%linear_5.matmul: f32[24,32] = matmul %linear_5.reshape, %m.encoder.block.0.layer.1.DenseReluDense.wo.weight {tb=1}
	%linear_5: f32[2,12,32] = reshape %linear_5.matmul {shape=[2,12,32]}
	%add_11: f32[2,12,32] = add %add_9, %linear_5
	%mul_8: f32[2,12,32], %mul_8.rstd: f32[2,12] = rmsnorm %add_11, %m.encoder.block.1.layer.0.layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_6.reshape: f32[24,32] = reshape %mul_8 {shape=[24,32]}
	%linear_6.matmul: f32[24,32] = matmul %linear_6.reshape, %m.encoder.block.1.layer.0.SelfAttention.q.weight {tb=1}
	%view_4: f32[2,12,4,8] = reshape %linear_6.matmul {shape=[2,12,4,8]}
	%transpose_5: f32[2,4,12,8] = transpose %view_4 {perm=[0,2,1,3]}
	%linear_7.matmul: f32[24,32] = matmul %linear_6.reshape, %m.encoder.block.1.layer.0.SelfAttention.k.weight {tb=1}
	%view_5: f32[2,12,4,8] = reshape %linear_7.matmul {shape=[2,12,4,8]}
	%linear_8.matmul: f32[24,32] = matmul %linear_6.reshape, %m.encoder.block.1.layer.0.SelfAttention.v.weight {tb=1}
	%view_6: f32[2,12,4,8] = reshape %linear_8.matmul {shape=[2,12,4,8]}
	%transpose_7: f32[2,4,12,8] = transpose %view_6 {perm=[0,2,1,3]}
	%transpose_8: f32[2,4,8,12] = transpose %view_5 {perm=[0,2,3,1]}
	%matmul_2: f32[2,4,12,12] = matmul %transpose_5, %transpose_8
	%add_13: f32[2,4,12,12] = add %matmul_2, %unsqueeze_14
	%softmax_1: f32[2,4,12,12] = softmax %add_13 {axis=3}
	%matmul_3: f32[2,4,12,8] = matmul %softmax_1, %transpose_7
	%transpose_9: f32[2,12,4,8] = transpose %matmul_3 {perm=[0,2,1,3]}
	%linear_9.reshape: f32[24,32] = reshape %transpose_9 {shape=[24,32]}
	%linear_9.matmul: f32[24,32] = matmul %linear_9.reshape, %m.encoder.block.1.layer.0.SelfAttention.o.weight {tb=1}
	%linear_9: f32[2,12,32] = reshape %linear_9.matmul {shape=[2,12,32]}
	%add_15: f32[2,12,32] = add %add_11, %linear_9
	%mul_11: f32[2,12,32], %mul_11.rstd: f32[2,12] = rmsnorm %add_15, %m.encoder.block.1.layer.1.layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_10.reshape: f32[24,32] = reshape %mul_11 {shape=[24,32]}
	%linear_10.matmul: f32[24,64] = matmul %linear_10.reshape, %m.encoder.block.1.layer.1.DenseReluDense.wi.weight {tb=1}
	%linear_10: f32[2,12,64] = reshape %linear_10.matmul {shape=[2,12,64]}
	%relu_1: f32[2,12,64] = relu %linear_10
	%linear_11.reshape: f32[24,64] = reshape %relu_1 {shape=[24,64]}
	%linear_11.matmul: f32[24,32] = matmul %linear_11.reshape, %m.encoder.block.1.layer.1.DenseReluDense.wo.weight {tb=1}
	%linear_11: f32[2,12,32] = reshape %linear_11.matmul {shape=[2,12,32]}
	%add_17: f32[2,12,32] = add %add_15, %linear_11
	%mul_13: f32[2,12,32], %mul_13.rstd: f32[2,12] = rmsnorm %add_17, %m.encoder.final_layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%slice_1: i64[2,11] = slice %labels {start=[0,0], step=[1,1]}
	%val_144: i64[11,2] = transpose %slice_1 {perm=[1,0]}
	%val_146: i64[12,2] = scatter_nd %val_145, %val_143, %val_144
	%slice_scatter: i64[2,12] = transpose %val_146 {perm=[1,0]}
	%select_scatter: i64[2,12] = scatter_elements %slice_scatter, %val_149, %val_149 {axis=1}
	%eq: bool[2,12] = eq %select_scatter, %val_150
	%masked_fill: i64[2,12] = where %eq, %val_151, %select_scatter
	%embedding_2: f32[2,12,32] = gather %m.lm_head.weight, %masked_fill
	%mul_15: f32[2,12,32], %mul_15.rstd: f32[2,12] = rmsnorm %embedding_2, %m.decoder.block.0.layer.0.layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_12.reshape: f32[24,32] = reshape %mul_15 {shape=[24,32]}
	%linear_12.matmul: f32[24,32] = matmul %linear_12.reshape, %m.decoder.block.0.layer.0.SelfAttention.q.weight {tb=1}
	%view_8: f32[2,12,4,8] = reshape %linear_12.matmul {shape=[2,12,4,8]}
	%transpose_10: f32[2,4,12,8] = transpose %view_8 {perm=[0,2,1,3]}
	%linear_13.matmul: f32[24,32] = matmul %linear_12.reshape, %m.decoder.block.0.layer.0.SelfAttention.k.weight {tb=1}
	%view_9: f32[2,12,4,8] = reshape %linear_13.matmul {shape=[2,12,4,8]}
	%linear_14.matmul: f32[24,32] = matmul %linear_12.reshape, %m.decoder.block.0.layer.0.SelfAttention.v.weight {tb=1}
	%view_10: f32[2,12,4,8] = reshape %linear_14.matmul {shape=[2,12,4,8]}
	%transpose_12: f32[2,4,12,8] = transpose %view_10 {perm=[0,2,1,3]}
	%embedding_3: f32[12,12,4] = gather %m.decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight, %add_26
	%permute_1: f32[4,12,12] = transpose %embedding_3 {perm=[2,0,1]}
	%unsqueeze_41: f32[1,4,12,12] = reshape %permute_1 {shape=[1,4,12,12]}
	%transpose_13: f32[2,4,8,12] = transpose %view_9 {perm=[0,2,3,1]}
	%matmul_4: f32[2,4,12,12] = matmul %transpose_10, %transpose_13
	%add_27: f32[2,4,12,12] = add %matmul_4, %unsqueeze_41
	%add_28: f32[2,4,12,12] = add %add_27, %where_2.2
	%softmax_2: f32[2,4,12,12] = softmax %add_28 {axis=3}
	%matmul_5: f32[2,4,12,8] = matmul %softmax_2, %transpose_12
	%transpose_14: f32[2,12,4,8] = transpose %matmul_5 {perm=[0,2,1,3]}
	%linear_15.reshape: f32[24,32] = reshape %transpose_14 {shape=[24,32]}
	%linear_15.matmul: f32[24,32] = matmul %linear_15.reshape, %m.decoder.block.0.layer.0.SelfAttention.o.weight {tb=1}
	%linear_15: f32[2,12,32] = reshape %linear_15.matmul {shape=[2,12,32]}
	%add_29: f32[2,12,32] = add %embedding_2, %linear_15
	%mul_19: f32[2,12,32], %mul_19.rstd: f32[2,12] = rmsnorm %add_29, %m.decoder.block.0.layer.1.layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_16.reshape: f32[24,32] = reshape %mul_19 {shape=[24,32]}
	%linear_16.matmul: f32[24,32] = matmul %linear_16.reshape, %m.decoder.block.0.layer.1.EncDecAttention.q.weight {tb=1}
	%view_12: f32[2,12,4,8] = reshape %linear_16.matmul {shape=[2,12,4,8]}
	%transpose_15: f32[2,4,12,8] = transpose %view_12 {perm=[0,2,1,3]}
	%linear_17.reshape: f32[24,32] = reshape %mul_13 {shape=[24,32]}
	%linear_17.matmul: f32[24,32] = matmul %linear_17.reshape, %m.decoder.block.0.layer.1.EncDecAttention.k.weight {tb=1}
	%view_13: f32[2,12,4,8] = reshape %linear_17.matmul {shape=[2,12,4,8]}
	%linear_18.matmul: f32[24,32] = matmul %linear_17.reshape, %m.decoder.block.0.layer.1.EncDecAttention.v.weight {tb=1}
	%view_14: f32[2,12,4,8] = reshape %linear_18.matmul {shape=[2,12,4,8]}
	%transpose_17: f32[2,4,12,8] = transpose %view_14 {perm=[0,2,1,3]}
	%matmul_7.transpose: f32[2,4,12,8] = transpose %view_13 {perm=[0,2,1,3]}
	%matmul_7: f32[2,4,12,8], %matmul_7.lse: f32[2,4,12] = attention %transpose_15, %matmul_7.transpose, %transpose_17
	%transpose_19: f32[2,12,4,8] = transpose %matmul_7 {perm=[0,2,1,3]}
	%linear_19.reshape: f32[24,32] = reshape %transpose_19 {shape=[24,32]}
	%linear_19.matmul: f32[24,32] = matmul %linear_19.reshape, %m.decoder.block.0.layer.1.EncDecAttention.o.weight {tb=1}
	%linear_19: f32[2,12,32] = reshape %linear_19.matmul {shape=[2,12,32]}
	%add_33: f32[2,12,32] = add %add_29, %linear_19
	%mul_22: f32[2,12,32], %mul_22.rstd: f32[2,12] = rmsnorm %add_33, %m.decoder.block.0.layer.2.layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_20.reshape: f32[24,32] = reshape %mul_22 {shape=[24,32]}
	%linear_20.matmul: f32[24,64] = matmul %linear_20.reshape, %m.decoder.block.0.layer.2.DenseReluDense.wi.weight {tb=1}
	%linear_20: f32[2,12,64] = reshape %linear_20.matmul {shape=[2,12,64]}
	%relu_2: f32[2,12,64] = relu %linear_20
	%linear_21.reshape: f32[24,64] = reshape %relu_2 {shape=[24,64]}
	%linear_21.matmul: f32[24,32] = matmul %linear_21.reshape, %m.decoder.block.0.layer.2.DenseReluDense.wo.weight {tb=1}
	%linear_21: f32[2,12,32] = reshape %linear_21.matmul {shape=[2,12,32]}
	%add_35: f32[2,12,32] = add %add_33, %linear_21
	%mul_24: f32[2,12,32], %mul_24.rstd: f32[2,12] = rmsnorm %add_35, %m.decoder.block.1.layer.0.layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_22.reshape: f32[24,32] = reshape %mul_24 {shape=[24,32]}
	%linear_22.matmul: f32[24,32] = matmul %linear_22.reshape, %m.decoder.block.1.layer.0.SelfAttention.q.weight {tb=1}
	%view_16: f32[2,12,4,8] = reshape %linear_22.matmul {shape=[2,12,4,8]}
	%transpose_20: f32[2,4,12,8] = transpose %view_16 {perm=[0,2,1,3]}
	%linear_23.matmul: f32[24,32] = matmul %linear_22.reshape, %m.decoder.block.1.layer.0.SelfAttention.k.weight {tb=1}
	%view_17: f32[2,12,4,8] = reshape %linear_23.matmul {shape=[2,12,4,8]}
	%linear_24.matmul: f32[24,32] = matmul %linear_22.reshape, %m.decoder.block.1.layer.0.SelfAttention.v.weight {tb=1}
	%view_18: f32[2,12,4,8] = reshape %linear_24.matmul {shape=[2,12,4,8]}
	%transpose_22: f32[2,4,12,8] = transpose %view_18 {perm=[0,2,1,3]}
	%transpose_23: f32[2,4,8,12] = transpose %view_17 {perm=[0,2,3,1]}
	%matmul_8: f32[2,4,12,12] = matmul %transpose_20, %transpose_23
	%add_37: f32[2,4,12,12] = add %matmul_8, %unsqueeze_41
	%add_38: f32[2,4,12,12] = add %add_37, %where_2.2
	%softmax_4: f32[2,4,12,12] = softmax %add_38 {axis=3}
	%matmul_9: f32[2,4,12,8] = matmul %softmax_4, %transpose_22
	%transpose_24: f32[2,12,4,8] = transpose %matmul_9 {perm=[0,2,1,3]}
	%linear_25.reshape: f32[24,32] = reshape %transpose_24 {shape=[24,32]}
	%linear_25.matmul: f32[24,32] = matmul %linear_25.reshape, %m.decoder.block.1.layer.0.SelfAttention.o.weight {tb=1}
	%linear_25: f32[2,12,32] = reshape %linear_25.matmul {shape=[2,12,32]}
	%add_39: f32[2,12,32] = add %add_35, %linear_25
	%mul_27: f32[2,12,32], %mul_27.rstd: f32[2,12] = rmsnorm %add_39, %m.decoder.block.1.layer.1.layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_26.reshape: f32[24,32] = reshape %mul_27 {shape=[24,32]}
	%linear_26.matmul: f32[24,32] = matmul %linear_26.reshape, %m.decoder.block.1.layer.1.EncDecAttention.q.weight {tb=1}
	%view_20: f32[2,12,4,8] = reshape %linear_26.matmul {shape=[2,12,4,8]}
	%transpose_25: f32[2,4,12,8] = transpose %view_20 {perm=[0,2,1,3]}
	%linear_27.matmul: f32[24,32] = matmul %linear_17.reshape, %m.decoder.block.1.layer.1.EncDecAttention.k.weight {tb=1}
	%view_21: f32[2,12,4,8] = reshape %linear_27.matmul {shape=[2,12,4,8]}
	%linear_28.matmul: f32[24,32] = matmul %linear_17.reshape, %m.decoder.block.1.layer.1.EncDecAttention.v.weight {tb=1}
	%view_22: f32[2,12,4,8] = reshape %linear_28.matmul {shape=[2,12,4,8]}
	%transpose_27: f32[2,4,12,8] = transpose %view_22 {perm=[0,2,1,3]}
	%matmul_11.transpose: f32[2,4,12,8] = transpose %view_21 {perm=[0,2,1,3]}
	%matmul_11: f32[2,4,12,8], %matmul_11.lse: f32[2,4,12] = attention %transpose_25, %matmul_11.transpose, %transpose_27
	%transpose_29: f32[2,12,4,8] = transpose %matmul_11 {perm=[0,2,1,3]}
	%linear_29.reshape: f32[24,32] = reshape %transpose_29 {shape=[24,32]}
	%linear_29.matmul: f32[24,32] = matmul %linear_29.reshape, %m.decoder.block.1.layer.1.EncDecAttention.o.weight {tb=1}
	%linear_29: f32[2,12,32] = reshape %linear_29.matmul {shape=[2,12,32]}
	%add_43: f32[2,12,32] = add %add_39, %linear_29
	%mul_30: f32[2,12,32], %mul_30.rstd: f32[2,12] = rmsnorm %add_43, %m.decoder.block.1.layer.2.layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%linear_30.reshape: f32[24,32] = reshape %mul_30 {shape=[24,32]}
	%linear_30.matmul: f32[24,64] = matmul %linear_30.reshape, %m.decoder.block.1.layer.2.DenseReluDense.wi.weight {tb=1}
	%linear_30: f32[2,12,64] = reshape %linear_30.matmul {shape=[2,12,64]}
	%relu_3: f32[2,12,64] = relu %linear_30
	%linear_31.reshape: f32[24,64] = reshape %relu_3 {shape=[24,64]}
	%linear_31.matmul: f32[24,32] = matmul %linear_31.reshape, %m.decoder.block.1.layer.2.DenseReluDense.wo.weight {tb=1}
	%linear_31: f32[2,12,32] = reshape %linear_31.matmul {shape=[2,12,32]}
	%add_45: f32[2,12,32] = add %add_43, %linear_31
	%mul_32: f32[2,12,32], %mul_32.rstd: f32[2,12] = rmsnorm %add_45, %m.decoder.final_layer_norm.weight {axis=2, eps=9.9999999747524271e-07}
	%mul_33: f32[2,12,32] = mul %mul_32, %val_334
	%logits.reshape: f32[24,32] = reshape %mul_33 {shape=[24,32]}
	%logits.matmul: f32[24,96] = matmul %logits.reshape, %m.lm_head.weight {tb=1}
	%view_25: i64[24] = reshape %labels {shape=[24]}
	%loss: f32[] output, %loss.lse: f32[24], %loss.denom: f32[] = sce %logits.matmul, %view_25 {ignore=-100}
	loss %loss
}
