/* Shape rules: resampling, at the positions of a grid and along axes;
 * determinants. */
#include "ir/infer/rules.h"

#include <math.h>

#include "ir/window.h"

/* ---- grids ---- */

/* Operand 1, the grid, belongs to values [N, C, ...] of shape x.  The gradient
 * has the same attributes in front. */
static bool
grid_fits(struct infer *c, const Shape *x)
{
	int64_t mode = c->n->attr.GRID_SAMPLE.mode;
	int64_t padding = c->n->attr.GRID_SAMPLE.padding;
	int64_t align = c->n->attr.GRID_SAMPLE.align;
	Shape g = shape_of(c, 1);
	int last = g.rank - 1;
	char grid[INFER_TEXT], data[INFER_TEXT];

	if (mode < 0 || mode > 2 || padding < 0 || padding > 2 || align < 0
	    || align > 1)
		return rule_fail(c, "mode, padding or align is out of range");
	if (!rule_want_class(c, 0, "f", "floats")
	    || !rule_want_class(c, 1, "f", "floats"))
		return false;
	if (mode == 2 && x->rank == 5)
		return rule_fail(c, "cubic sampling of three spatial dims is "
		                 "not supported; try: mode='linear'");
	if (g.rank < 0 || x->rank < 0)
		return true;
	if (x->rank >= 3 && x->rank <= 5 && g.rank == x->rank
	    && (g.dim[last] < 0 || g.dim[last] == x->rank - 2)
	    && (g.dim[0] < 0 || x->dim[0] < 0 || g.dim[0] == x->dim[0]))
		return true;
	return rule_fail(c, "grid %s does not match the input %s",
	                 rule_text(grid, c, 1),
	                 rule_text(data, c, 0));
}

bool
infer_grid_sample(struct infer *c)
{
	Shape s = shape_of(c, 0), g = shape_of(c, 1);

	if (!grid_fits(c, &s))
		return false;
	for (int d = 2; d < s.rank; d++)
		s.dim[d] = g.rank < 0 ? -1 : g.dim[d - 1];
	return rule_shape(c, s);
}

bool
infer_grid_sample_grad(struct infer *c)
{
	const IntList *out = &c->n->attr.GRID_SAMPLE_GRAD.out;
	Shape s = shape_of(c, 0), g = shape_of(c, 1);

	if (!grid_fits(c, &s))
		return false;
	for (int d = 2; d < s.rank && g.rank >= 0; d++)
		if (g.dim[d - 1] >= 0 && s.dim[d] >= 0
		    && g.dim[d - 1] != s.dim[d])
			return rule_fail(c, "grid and gradient differ: %lld "
			                 "and %lld samples",
			                 (long long)g.dim[d - 1],
			                 (long long)s.dim[d]);
	if (s.rank >= 0 && out->n != s.rank - 2)
		return rule_fail(c, "expected %d spatial extents, found %d",
		                 s.rank - 2, out->n);
	for (int d = 2; d < s.rank; d++) {
		if (out->v[d - 2] < 0)
			return rule_fail(c, "extents: %lld is out of range",
			                 (long long)out->v[d - 2]);
		s.dim[d] = out->v[d - 2];
	}
	return rule_want_shape(c, 2, &s, "operand")
	       && rule_shape(c, s)
	       && rule_result(c, 1, in(c, 1)->dt, g);
}

/* ---- resampling ---- */

/* Operand i as numbers, NULL if it is absent or empty.  All have one number
 * per axis, a region of interest has two. */
static const Val *
given_operand(const Graph *g, const Node *n, int i)
{
	const Val *v = i < n->nin ? &g->val[n->in[i]] : NULL;

	return v && n->in[i] && val_nelem(v) != 0 ? v : NULL;
}

/* One scale for all axes, such that no side, or every side, gets larger than
 * wanted. */
static void
keep_aspect(const Shape *x, const int *axis, int n, bool larger,
            struct interpolated_axis *r)
{
	double scale = 0;

	for (int i = 0; i < n; i++) {
		double s = (double)r[axis[i]].to / (double)x->dim[axis[i]];

		if (i == 0 || (larger ? s > scale : s < scale))
			scale = s;
	}
	for (int i = 0; i < n; i++) {
		r[axis[i]].scale = scale;
		r[axis[i]].to = (int64_t)floor(
			scale * (double)x->dim[axis[i]] + 0.5);
	}
}

const char *
interpolate_axes(const Graph *g, const Node *n,
                 struct interpolated_axis r[MAX_RANK])
{
	const IntList *axes = &n->attr.INTERPOLATE.axes;
	const Val *roi = given_operand(g, n, 1);
	const Val *scales = given_operand(g, n, 2);
	const Val *sizes = given_operand(g, n, 3);
	const Val *list = sizes ? sizes : scales;
	const Shape *x = &g->val[n->in[0]].shape;
	int count = axes->n ? axes->n : x->rank, axis[MAX_RANK];

	for (int d = 0; d < x->rank; d++)
		r[d] = (struct interpolated_axis){ x->dim[d], 0, 0, 1 };
	if (!list)
		return "expected scales or sizes";
	if (val_nelem(list) != count || (roi && val_nelem(roi) != 2 * count))
		return "scales, sizes or roi do not match the axes";
	for (int i = 0; i < count; i++) {
		int64_t at = axes->n ? axes->v[i] : i;
		double v = val_float(list, i);

		at += at < 0 ? x->rank : 0;
		if (at < 0 || at >= x->rank)
			return "an axis is out of range";
		axis[i] = (int)at;
		if (!(v > 0) || (!sizes
		                 && !((double)x->dim[at] * v < WINDOW_MAX)))
			return "a scale or size is out of range";
		r[at].scale = sizes ? 0 : v;
		/* as a float: 10 * 0.7 is 7, which 0.7 as a float is below */
		r[at].to = (int64_t)floor(sizes ? v
			: (double)((float)x->dim[at] * (float)v));
		r[at].first = roi ? val_float(roi, i) : 0;
		r[at].last = roi ? val_float(roi, count + i) : 1;
	}
	if (sizes && n->attr.INTERPOLATE.policy)
		keep_aspect(x, axis, count, n->attr.INTERPOLATE.policy == 2,
		            r);
	for (int i = 0; i < count; i++)
		if (r[axis[i]].to < 1 || r[axis[i]].to > WINDOW_MAX
		    || x->dim[axis[i]] < 1)
			return "an axis has no elements";
	return NULL;
}

bool
infer_interpolate(struct infer *c)
{
	struct interpolated_axis r[MAX_RANK];
	Shape s = shape_of(c, 0);
	const char *why;

	if (!rule_want_class(c, 0, "f", "floats"))
		return false;
	if (!shape_known(&s) || rule_operand(c, 1) == COMPUTED
	    || rule_operand(c, 2) == COMPUTED || rule_operand(c, 3) == COMPUTED)
		return rule_shape(c, unknown(s.rank));
	why = interpolate_axes(c->g, c->n, r);
	if (why)
		return rule_fail(c, "%s", why);
	for (int d = 0; d < s.rank; d++)
		s.dim[d] = r[d].to;
	return rule_shape(c, s);
}

bool
infer_resize(struct infer *c)
{
	const Attr *a = &c->n->attr;
	bool bwd = a->RESIZE.bwd;
	int64_t from = bwd ? a->RESIZE.extent_out : a->RESIZE.extent_in;
	int64_t to = bwd ? a->RESIZE.extent_in : a->RESIZE.extent_out;
	Shape s = shape_of(c, 0);
	int axis;

	if (!rule_want_class(c, 0, "f", "floats"))
		return false;
	if (s.rank < 0)
		return rule_shape(c, s);
	if (!rule_axis(c, a->RESIZE.axis, s.rank, &axis))
		return false;
	if (from < 1 || to < 1 || from > WINDOW_MAX || to > WINDOW_MAX
	    || (s.dim[axis] >= 0 && s.dim[axis] != from))
		return rule_fail(c, "axis %d of extent %lld cannot be resized "
		                 "from %lld to %lld",
				 axis, (long long)s.dim[axis],
				 (long long)from, (long long)to);
	s.dim[axis] = to;
	return rule_shape(c, s);
}

bool
infer_col2im(struct infer *c)
{
	struct columns dim[WINDOW_DIMS];
	Shape x = shape_of(c, 0), y = { .rank = 2 };
	int64_t block = 1, windows = 1;
	const char *why;
	int dims;

	if (rule_operand(c, 1) == COMPUTED || rule_operand(c, 2) == COMPUTED)
		return rule_shape(c, unknown(-1));
	dims = col2im_dims(c->g, c->n, dim, &why);
	if (!dims)
		return rule_fail(c, "%s", why);
	if (x.rank >= 0 && x.rank != 3)
		return rule_fail(c, "expected shape [N, C * block, L], found "
		                 "rank %d", x.rank);
	y.dim[0] = x.rank < 0 ? -1 : x.dim[0];
	y.dim[1] = -1;
	for (int d = 0; d < dims; d++) {
		y.dim[y.rank++] = dim[d].image;
		if (!mul_ok(block, dim[d].block, &block)
		    || !mul_ok(windows, dim[d].count, &windows))
			return rule_fail(c, "too many windows");
	}
	if (x.rank == 3 && x.dim[2] >= 0 && x.dim[2] != windows)
		return rule_fail(c, "expected %lld columns, one per window, "
		                 "found %lld", (long long)windows,
		                 (long long)x.dim[2]);
	if (x.rank == 3 && x.dim[1] >= 0 && x.dim[1] % block)
		return rule_fail(c, "%lld rows are not a multiple of the block "
		                 "size %lld", (long long)x.dim[1],
		                 (long long)block);
	if (x.rank == 3 && x.dim[1] >= 0)
		y.dim[1] = x.dim[1] / block;
	return rule_shape(c, y);
}

/* ---- determinants ---- */

/* Operand i holds square matrices; *y: what is in front of them. */
static bool
check_square(struct infer *c, int i, Shape *y)
{
	const int64_t *dim;
	char text[INFER_TEXT];

	*y = shape_of(c, i);
	if (!rule_want_rank(c, i, 2))
		return false;
	if (y->rank < 0)
		return true;
	y->rank -= 2;
	dim = y->dim + y->rank;
	if (dim[0] < 0 || dim[1] < 0 || dim[0] == dim[1])
		return true;
	return rule_fail(c, "expected square matrices, found %s",
	                 rule_text(text, c, i));
}

bool
infer_det(struct infer *c)
{
	Shape y;

	return check_square(c, 0, &y) && rule_shape(c, y);
}

bool
infer_det_grad(struct infer *c)
{
	Shape dy;

	return check_square(c, 1, &dy) && rule_want_shape(c, 0, &dy, "gradient")
	       && rule_result(c, 0, in(c, 1)->dt, shape_of(c, 1));
}
