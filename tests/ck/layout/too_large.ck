# Each tensor has a size, but none that a process could hold.
# run: --passes=bind,fold,canon,fuse,layout
# error: value 'x': f32[1073741824,1073741824] takes 4194304.0 TiB; a process can address 128 TiB
graph @z {
	input %x: f32[1073741824,1073741824]
	input %z: f32[1073741824,1073741824]
	%y: f32[1073741824,1073741824] = add %x, %z
	%w: f32[1073741824,1073741824] = exp %y
	%v: f32[1073741824,1073741824] output = mul %w, %y
}
