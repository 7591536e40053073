# A copy of attention for its statistics alone leaves out its rows.
# run: --passes=layout,plan,inplace,place,account,replay --recompute-values l --keep o --optimizer none
graph @f {
	props bound static canon loss bwd upd fused
	input %q: f32[1,2,16,8]
	param %k: f32[1,2,16,8]
	param %v: f32[1,2,16,8]
	%o, %l = attention %q, %k, %v {causal=1}
	%loss output = reduce_sum %o {axes=[0,1,2,3], keepdims=0}
	%do: f32[1,2,16,8] = fill {shape=[1,2,16,8], value=1} @backward
	%dq, %dk output param %k, %dv output param %v = attention_grad %do, %q, %k, %v, %o, %l {causal=1} @backward
	loss %loss
}
# check: _, %l.again: f32[1,2,16] of %l bytes 128
# check: attention_grad %do, %q, %k, %v, %o, %l.again {causal=1}
