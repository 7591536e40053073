# A library of one product of 16-bit floats brings along what it needs.
# run: --forward-only -o m.so
# stderr: m.so, peak
graph @f {
	input %a: bf16[3,5]
	input %b: bf16[5,2]
	%y output = matmul %a, %b
}
