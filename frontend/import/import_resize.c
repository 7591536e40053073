/* Resampling: along axes, and at the positions of a grid. */
#include "frontend/import/node_import.h"

#include <string.h>

/* Upsample (7 has scales as an attribute), Resize 10 and Resize since 11. */
static bool
resize_lists(struct importer *m, bool upsample, ValId in[4])
{
	const Onnx__AttributeProto *a;
	float list[MAX_RANK];

	in[0] = imp_in(m, 0);
	in[1] = in[2] = in[3] = 0;
	if (upsample && m->n->opset < 9) {
		a = attr_get(&m->r, "scales", 0);
		if (!a || a->n_floats < 1 || a->n_floats > MAX_RANK)
			return imp_fail(m, "attribute 'scales' is missing or "
			                "has too many elements");
		memcpy(list, a->floats, a->n_floats * sizeof *list);
		in[2] = val_const(m->g, NULL, DT_F32,
		                  SHAPE((int64_t)a->n_floats), list);
	} else if (m->n->opset < 11 || upsample) {
		in[2] = imp_in(m, 1);
	} else {
		for (int i = 1; i < 4; i++)
			in[i] = imp_in(m, i);
	}
	return true;
}

bool
run_resize(struct importer *m)
{
	static const char *const modes[] = { "nearest", "linear", "cubic" };
	static const char *const coords[] = {
		"half_pixel", "pytorch_half_pixel", "align_corners",
		"asymmetric", "tf_crop_and_resize", "half_pixel_symmetric",
		"tf_half_pixel_for_nn"
	};
	static const char *const rounds[] = {
		"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"
	};
	static const char *const policies[] = { "stretch", "not_larger",
		                                "not_smaller" };
	bool upsample = strcmp(m->n->type, "Upsample") == 0;
	bool old = upsample || m->n->opset < 11;
	Attr a = imp_attrs(m, OP_INTERPOLATE);
	ValId in[4];

	a.INTERPOLATE.mode = attr_word(&m->r, "mode", 0, modes, 3);
	a.INTERPOLATE.coord = attr_word(&m->r,
		"coordinate_transformation_mode", old ? 3 : 0, coords, 7);
	a.INTERPOLATE.round = attr_word(&m->r, "nearest_mode", old ? 2 : 0,
	                                rounds, 4);
	a.INTERPOLATE.policy = attr_word(&m->r, "keep_aspect_ratio_policy", 0,
	                                 policies, 3);
	if (!imp_list(m, "axes", &a.INTERPOLATE.axes)
	    || !resize_lists(m, upsample, in))
		return false;
	return set_output(m, imp_node(m, OP_INTERPOLATE, &a, 4, in));
}

/* Linear and cubic are called bilinear and bicubic before opset 20. */
bool
run_grid_sample(struct importer *m)
{
	static const char *const modes[] = { "nearest", "linear", "cubic",
		                              "bilinear", "bicubic" };
	static const char *const paddings[] = { "zeros", "border",
		                                "reflection" };
	Attr a = imp_attrs(m, OP_GRID_SAMPLE);
	int mode = attr_word(&m->r, "mode", 1, modes, 5);

	a.GRID_SAMPLE.mode = mode > 2 ? mode - 2 : mode;
	a.GRID_SAMPLE.padding = attr_word(&m->r, "padding_mode", 0, paddings,
	                                  3);
	return imp_same(m, OP_GRID_SAMPLE, &a);
}
