# Rows in two dims: the packed gradient is reshaped.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %qkv: f32[2,3,12]
# 	input %o: f32[2,2,3,2]
# 	input %lse: f32[2,2,3]
# 	input %do: f32[2,2,3,2]
# 	input %q: f32[2,2,3,2]
# 	%t16: f32[2,3,12] = attention_grad %do, %q, %q, %q, %o, %lse {packed=1} @backward
# 	%y: f32[6,12] output = reshape %t16 {shape=[6,12]} @backward
# }
graph @f {
	input %qkv: f32[2,3,12]
	input %o: f32[2,2,3,2]
	input %lse: f32[2,2,3]
	input %do: f32[2,2,3,2]
	input %q: f32[2,2,3,2]
	%dq, %dk, %dv = attention_grad %do, %q, %q, %q, %o, %lse @backward
	%tq = transpose %dq {perm=[0,2,1,3]} @backward
	%rq = reshape %tq {shape=[6,4]} @backward
	%tk = transpose %dk {perm=[0,2,1,3]} @backward
	%rk = reshape %tk {shape=[6,4]} @backward
	%tv = transpose %dv {perm=[0,2,1,3]} @backward
	%rv = reshape %tv {shape=[6,4]} @backward
	%y output = concat %rq, %rk, %rv {axis=1} @backward
}
