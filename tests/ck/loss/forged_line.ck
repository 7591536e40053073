# Line breaks in names are escaped: no name can forge a line of a message.
# run: --loss=none
# error: no output and no kind of loss is named 'none'
# stderr: output 'a\x0a  output 'loss': f32[]': f32[3]
graph @f {
	input %x: f32[3]
	%"a\x0a  output 'loss': f32[]": f32[3] output = exp %x
}
