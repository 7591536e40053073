# A product takes in transpositions, however many there are.
# run: --passes=canon
# check-count: 1 tb=1
# check-not: ta=1
graph @f {
	input %x: f32[3,5]
	input %y: f32[5,5]
	const %z: f32[5,5] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}
	%t = transpose %y {perm=[1,0]}
	%a output = matmul %x, %t
	%b output = matmul %x, %t {tb=1}
	%u = transpose %t {perm=[1,0]}
	%c output = matmul %x, %u
}
