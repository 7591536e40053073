# Tiles of more axes than fit are refused.
# run: --passes=fold
# error: node '/T' (Tile): too many repeated axes
graph @f {
	input %x: f32[2,2,2,2,2]
	const %r: i64[5] = {2,2,2,2,2}
	%y output = tile %x, %r from "/T" Tile
}
