# A parameter has one final gradient, of its own shape; frozen ones have none.
# run: --passes=none
# error: value 5 (b): second gradient of w after a
# error: value 6 (c): gradient of the frozen parameter f
# error: value 7 (d): differs in shape from its parameter v
graph @f {
	param %w: f32[2]
	param %f: f32[2] frozen
	param %v: f32[3]
	%a param %w = neg %w @backward
	%b param %w = neg %w @backward
	%c param %f = neg %w @backward
	%d param %v = neg %w @backward
}
