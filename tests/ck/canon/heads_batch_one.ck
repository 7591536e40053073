# With a batch of 1 the view in the middle merges nothing; it goes all the same.
# run: --passes=canon
graph @f {
	input %x: f32[1,256,4,8]
	%k = transpose %x {perm=[0,2,1,3]}
	%a = reshape %k {shape=[4,256,8]}
	%b = transpose %a {perm=[0,2,1]}
	%y output = reshape %b {shape=[1,4,8,256]}
}
# expect:
# graph @f {
# 	input %x: f32[1,256,4,8]
# 	%y: f32[1,4,8,256] output = transpose %x {perm=[0,2,3,1]}
# }
