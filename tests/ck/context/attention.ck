# A replica has a part of the queries and gathers keys and values.  Tables, masks and labels are
# taken from the whole; ids are shifted before.
# run: --passes=context --cp 2 --cp-dim ids=1
graph @f {
	input %ids: i64[3,9]
	input %seen: bool[3,8]
	param %w: f32[7,4]
	param %q: f32[4,4]
	param %u: f32[4,7]
	const %pos: f32[1,8,1] = {0,1,2,3,4,5,6,7}
	%x: i64[3,8] = slice %ids {start=[0,0], step=[1,1]}
	%y: i64[3,8] = slice %ids {start=[0,1], step=[1,1]}
	%e = gather %w, %x
	%s = sin %pos
	%a = add %e, %s
	%r = reshape %a {shape=[24,4]}
	%p = matmul %r, %q
	%h = reshape %p {shape=[3,8,2,2]}
	%t = transpose %h {perm=[0,2,1,3]}
	%m = reshape %seen {shape=[3,1,1,8]}
	%o, _ = attention %t, %t, %t, %m {causal=1}
	%b = transpose %o {perm=[0,2,1,3]}
	%c = reshape %b {shape=[24,4]}
	%z = matmul %c, %u
	%l = reshape %y {shape=[24]}
	%loss: f32[] output, _, _ = sce %z, %l {reduction=1, ignore=-100}
	loss %loss
}
# expect:
# graph @f {
# 	replicas 2 exactly
# 	context 2 zigzag
# 	input %ids: i64[3,9]
# 	input %seen: bool[3,8]
# 	param %w: f32[7,4]
# 	param %q: f32[4,4]
# 	param %u: f32[4,7]
# 	const %pos: f32[1,8,1] = {0, 1, 2, 3, 4, 5, 6, 7}
# 	const %t43: i64[] = {-100}
# 	%x: i64[3,8] = slice %ids {start=[0,0], step=[1,1]}
# 	%y: i64[3,8] = slice %ids {start=[0,1], step=[1,1]}
# 	%t25: i64[3,4] = own %x {axis=1, first_axis=1, segment=[4,4], mirror=1, from=1, group=7}
# 	%e: f32[3,4,4] = gather %w, %t25
# 	%t28: f32[1,4,1] = own %pos {axis=1, first_axis=1, segment=[4,4], mirror=1, from=1, group=7}
# 	%t29: f32[1,4,1] = sin %t28
# 	%a: f32[3,4,4] = add %e, %t29
# 	%r: f32[12,4] = reshape %a {shape=[12,4]}
# 	%p: f32[12,4] = matmul %r, %q
# 	%h: f32[3,4,2,2] = reshape %p {shape=[3,4,2,2]}
# 	%t: f32[3,2,4,2] = transpose %h {perm=[0,2,1,3]}
# 	%m: bool[3,1,1,8] = reshape %seen {shape=[3,1,1,8]}
# 	%t36: f32[3,2,8,2] = all_gather %t {axis=2, first_axis=2, segment=[4,4], mirror=1, side=1, group=7}
# 	%o: f32[3,2,4,2] = attention %t, %t36, %t36, %m {causal=1, context=2}
# 	%b: f32[3,4,2,2] = transpose %o {perm=[0,2,1,3]}
# 	%c: f32[12,4] = reshape %b {shape=[12,4]}
# 	%z: f32[12,7] = matmul %c, %u
# 	%l: i64[24] = reshape %y {shape=[24]}
# 	%t44: bool[24] = eq %l, %t43
# 	%t45: bool[24] = not %t44
# 	%t46: f32[24] = cast %t45 {to=f32}
# 	%t47: f32[] = reduce_sum %t46 {keepdims=0}
# 	%t48: i64[3,4] = own %y {axis=1, first_axis=1, segment=[4,4], mirror=1, from=1, group=7}
# 	%t49: i64[12] = reshape %t48 {shape=[12]}
# 	%t50: f32[] = sce %z, %t49 {reduction=2, ignore=-100}
# 	%loss.part: f32[] = div %t50, %t47
# 	%loss: f32[] output = all_reduce %loss.part {group=1}
# 	loss %loss
# }
