# Random numbers depend on the place of an element, and a value that others read stays as it is.
# run: --passes=fuse
# check-count: 2 = transpose
# check: = transpose %d
# check: = transpose %e
graph @f {
	input %x: f32[2,4,3,8]
	%d = dropout %x {ratio=0.5, stream=1}
	%t = transpose %d {perm=[0,2,1,3]}
	%y output = reshape %t {shape=[6,32]}
	%e = exp %x
	%s output = softmax %e
	%u = transpose %e {perm=[0,2,1,3]}
	%z output = reshape %u {shape=[6,32]}
}
