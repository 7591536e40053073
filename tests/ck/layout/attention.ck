# Attention writes its heads inside the rows that the next product reads.
# run: --passes=layout
# expect:
# graph @f {
# 	input %qkv: f32[2,3,12] bytes 320
# 	param %w: f32[4,4] bytes 64 = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
# 	%q: f32[2,3,4] strides [36,12,1] in %qkv = slice %qkv {start=[0,0,0], step=[1,1,1]}
# 	%qr: f32[2,3,2,2] strides [36,12,2,1] in %qkv = reshape %q {shape=[2,3,2,2]}
# 	%qt: f32[2,2,3,2] strides [36,2,12,1] in %qkv = transpose %qr {perm=[0,2,1,3]}
# 	%o: f32[2,2,3,2] strides [12,2,4,1] bytes 128, %lse: f32[2,2,3] bytes 64 = attention %qt, %qt, %qt
# 	%ot: f32[2,3,2,2] in %o = transpose %o {perm=[0,2,1,3]}
# 	%rows: f32[6,4] in %o = reshape %ot {shape=[6,4]}
# 	%y: f32[6,4] output bytes 128 = matmul %rows, %w
# }
graph @f {
	input %qkv: f32[2,3,12]
	param %w: f32[4,4] = splat 1
	%q: f32[2,3,4] = slice %qkv {start=[0,0,0], step=[1,1,1]}
	%qr = reshape %q {shape=[2,3,2,2]}
	%qt = transpose %qr {perm=[0,2,1,3]}
	%o, %lse = attention %qt, %qt, %qt
	%ot = transpose %o {perm=[0,2,1,3]}
	%rows = reshape %ot {shape=[6,4]}
	%y output = matmul %rows, %w
}
