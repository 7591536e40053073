# A product that something else reads does not become a sum.
# run: --passes=fuse
# check: = matmul %x, %z
# check: = loop
graph @f {
	input %x: f32[4,4]
	input %z: f32[4,4]
	%n = neg %x
	%a output = matmul %x, %z
	%y output = add %a, %n
}
