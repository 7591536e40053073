# A loop has at most eight outputs.
# run: --passes=fuse
# check-count: 2 = loop
graph @f {
	input %x: f32[4]
	%y0 output = mul %x, %x
	%y1 output = mul %x, %y0
	%y2 output = mul %x, %y1
	%y3 output = mul %x, %y2
	%y4 output = mul %x, %y3
	%y5 output = mul %x, %y4
	%y6 output = mul %x, %y5
	%y7 output = mul %x, %y6
	%y8 output = mul %x, %y7
	%y9 output = mul %x, %y8
}
