# Reshapes around a transposition of whole axes go, with one batch and with two; others stay.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[1,4,12,8]
# 	input %z: f32[2,4,12,8]
# 	input %u: f32[4,6]
# 	%a: f32[1,4,8,12] output = transpose %x {perm=[0,1,3,2]}
# 	%b: f32[2,4,8,12] output = transpose %z {perm=[0,1,3,2]}
# 	%ua: f32[8,3] = reshape %u {shape=[8,3]}
# 	%ub: f32[3,8] = transpose %ua {perm=[1,0]}
# 	%c: f32[6,4] output = reshape %ub {shape=[6,4]}
# }
graph @f {
	input %x: f32[1,4,12,8]
	input %z: f32[2,4,12,8]
	input %u: f32[4,6]
	%xa = reshape %x {shape=[4,12,8]}
	%xb = transpose %xa {perm=[0,2,1]}
	%a output = reshape %xb {shape=[1,4,8,12]}
	%za = reshape %z {shape=[8,12,8]}
	%zb = transpose %za {perm=[0,2,1]}
	%b output = reshape %zb {shape=[2,4,8,12]}
	%ua = reshape %u {shape=[8,3]}
	%ub = transpose %ua {perm=[1,0]}
	%c output = reshape %ub {shape=[6,4]}
}
