/* Contents for tests of sharding. */
#include "tests/shard/fill.h"

#include <math.h>

static double
number(uint32_t *state, char cls, int64_t below, double low, double high)
{
	double u;

	*state = *state * 1664525u + 1013904223u;
	u = (double)(*state >> 8) / (1 << 24);
	if (cls == 'b')
		return u < 0.5;
	if (cls != 'f' && cls != 'q')
		return 1 + floor(u * (double)(below - 1));
	return low + u * (high - low);
}

void
shard_fill(struct run *r, int64_t below, double low, double high)
{
	FOR_VALS (v, r->g) {
		ValId id = val_id(r->g, v);
		Val held = interp_held(v);
		Shape s = spmd_shape(&held.placement, &held.shape);
		int64_t n = shape_nelem(&s);
		uint32_t state = 2166136261u;
		double *x;

		if (v->kind != V_INPUT && v->kind != V_PARAM
		    && v->kind != V_BUFFER)
			continue;
		x = arena_array(r->arena, (size_t)n + 1, sizeof *x);
		for (const char *c = v->name; *c; c++)
			state = (state ^ (unsigned char)*c) * 16777619u;
		for (int64_t i = 0; i < n; i++)
			x[i] = number(&state, dtype_info[v->dt].cls, below,
			              low, high);
		spmd_set(r->s, id, x);
	}
}
