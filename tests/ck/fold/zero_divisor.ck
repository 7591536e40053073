# An integer division by zero is told by the node.
# run: --passes=fold
# error: node '/shape/Div' (Div): division by zero while folding a constant
graph @f {
	const %a: i64[2] = {1,2}
	const %b: i64[2] = {1,0}
	%y output = div %a, %b from "/shape/Div" Div
}
