# Rows in front of batches, as modules without batch_first have them, are written as they are read.
# run: --passes=layout
# expect:
# graph @f {
# 	input %q: f32[2,2,3,2] bytes 128
# 	param %w: f32[4,4] bytes 64 = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
# 	%o: f32[2,2,3,2] strides [4,2,8,1] bytes 128, %lse: f32[2,2,3] bytes 64 = attention %q, %q, %q
# 	%ot: f32[3,2,2,2] in %o = transpose %o {perm=[2,0,1,3]}
# 	%rows: f32[6,4] in %o = reshape %ot {shape=[6,4]}
# 	%y: f32[6,4] output bytes 128 = matmul %rows, %w
# }
graph @f {
	input %q: f32[2,2,3,2]
	param %w: f32[4,4] = splat 1
	%o, %lse = attention %q, %q, %q
	%ot = transpose %o {perm=[2,0,1,3]}
	%rows = reshape %ot {shape=[6,4]}
	%y output = matmul %rows, %w
}
