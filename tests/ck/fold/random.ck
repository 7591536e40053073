# A drawn value takes the extents of another and its own stream.
# run: --passes=bind,fold,canon --dim n=4
# check: %u: f32[4,8] = random {shape=[4,8], dt=f32, stream=1}
# check: %z: f32[4,8] = random {shape=[4,8], dt=f32, kind=1, a=2, b=3, stream=2}
# check: %k: f32[4,8] = bernoulli %u {stream=3}
graph @random {
	input %x: f32[n,8]
	%s = shape %x
	%u = random %s {dt=f32}
	%z = random %s {dt=f32, kind=1, a=2, b=3}
	%k = bernoulli %u
	%p = mul %k, %z
	%y: f32[?,8] output = mul %p, %x
}
