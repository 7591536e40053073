# A constant that is too large to be written out and repeats is the expand of a
# small one: what is made of it is made of the small one, for indices, too.
# run: --passes=fold --fold-limit=200
graph @f {
	input %mask: bool[4,8]
	input %x: f32[10,3]
	const %zero: i64[] = {0}
	const %one: i64[] = {1}
	const %b: i64[] = {4}
	const %s: i64[] = {8}
	const %axes: i64[1] = {-1}
	const %at: i64[2] = {0,1}
	const %shape: i64[3] = {4,5,8}
	%i = range %zero, %b, %one
	%bi = reshape %i {shape=[4,1,1]}
	%j = range %zero, %s, %one
	%be = expand %bi, %shape
	%je = expand %j, %shape
	%b1 = unsqueeze %be, %axes
	%j1 = unsqueeze %je, %axes
	%pairs = concat %b1, %j1 {axis=3}
	%seen output = gather_nd %mask, %pairs
	%later = add %je, %one
	%rows output = gather %x, %later
	%sum = mul %be, %later
	%turned = transpose %later {perm=[2,0,1]}
	%u = transpose %turned {perm=[1,2,0]}
	%twice output = add %sum, %u
}
# expect:
# graph @f {
# 	input %mask: bool[4,8]
# 	input %x: f32[10,3]
# 	const %bi: i64[4,1,1] = {0, 1, 2, 3}
# 	const %t28: i64[8] = {1, 2, 3, 4, 5, 6, 7, 8}
# 	const %t34: i64[1,1,8] = {1, 2, 3, 4, 5, 6, 7, 8}
# 	%t27: bool[4,1,8] = reshape %mask {shape=[4,1,8]}
# 	%seen: bool[4,5,8] output = expand %t27 {shape=[4,5,8]}
# 	%t29: f32[8,3] = slice %x {start=[1,0], step=[1,1]}
# 	%t30: f32[1,1,8,3] = reshape %t29 {shape=[1,1,8,3]}
# 	%rows: f32[4,5,8,3] output = expand %t30 {shape=[4,5,8,3]}
# 	%t31: i64[4,1,8] = mul %bi, %t28
# 	%sum: i64[4,5,8] = expand %t31 {shape=[4,5,8]}
# 	%u: i64[4,5,8] = expand %t34 {shape=[4,5,8]}
# 	%twice: i64[4,5,8] output = add %sum, %u
# }
