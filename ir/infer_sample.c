/* Shape rules: sampling at the positions of a grid. */
#include "ir/infer.h"

/* Operand 1, the grid, belongs to values [N, C, ...] of shape x. */
static bool
grid_fits(struct infer *c, const Shape *x)
{
	Shape g = shape_of(c, 1);
	int last = g.rank - 1;
	char grid[INFER_TEXT], data[INFER_TEXT];

	if (!rule_want_class(c, 0, "f", "floats")
	    || !rule_want_class(c, 1, "f", "floats"))
		return false;
	if (g.rank < 0 || x->rank < 0)
		return true;
	if (x->rank >= 3 && x->rank <= 5 && g.rank == x->rank
	    && (g.dim[last] < 0 || g.dim[last] == x->rank - 2)
	    && (g.dim[0] < 0 || x->dim[0] < 0 || g.dim[0] == x->dim[0]))
		return true;
	return rule_fail(c, "grid %s does not fit %s", rule_text(grid, c, 1),
	                 rule_text(data, c, 0));
}

static bool
words(struct infer *c, int64_t mode, int64_t padding, int64_t align)
{
	if (mode >= 0 && mode <= 1 && padding >= 0 && padding <= 2
	    && align >= 0 && align <= 1)
		return true;
	return rule_fail(c, "mode, padding or align is out of range");
}

bool
infer_grid_sample(struct infer *c)
{
	Shape s = shape_of(c, 0), g = shape_of(c, 1);

	if (!words(c, c->n->attr.GRID_SAMPLE.mode,
	           c->n->attr.GRID_SAMPLE.padding,
	           c->n->attr.GRID_SAMPLE.align) || !grid_fits(c, &s))
		return false;
	for (int d = 2; d < s.rank; d++)
		s.dim[d] = g.rank < 0 ? -1 : g.dim[d - 1];
	return rule_give(c, 0, in(c, 0)->dt, s);
}

bool
infer_grid_sample_grad(struct infer *c)
{
	const IntList *out = &c->n->attr.GRID_SAMPLE_GRAD.out;
	Shape s = shape_of(c, 0), g = shape_of(c, 1);

	if (!words(c, c->n->attr.GRID_SAMPLE_GRAD.mode,
	           c->n->attr.GRID_SAMPLE_GRAD.padding,
	           c->n->attr.GRID_SAMPLE_GRAD.align) || !grid_fits(c, &s))
		return false;
	for (int d = 2; d < s.rank && g.rank >= 0; d++)
		if (g.dim[d - 1] >= 0 && s.dim[d] >= 0
		    && g.dim[d - 1] != s.dim[d])
			return rule_fail(c, "grid does not fit the adjoint: "
			                 "%lld and %lld samples",
			                 (long long)g.dim[d - 1],
			                 (long long)s.dim[d]);
	if (s.rank >= 0 && out->n != s.rank - 2)
		return rule_fail(c, "%d extents for %d spatial dims", out->n,
		                 s.rank - 2);
	for (int d = 2; d < s.rank; d++) {
		if (out->v[d - 2] < 0)
			return rule_fail(c, "extents: %lld is out of range",
			                 (long long)out->v[d - 2]);
		s.dim[d] = out->v[d - 2];
	}
	return (!has(c, 2) || rule_want_shape(c, 2, &s, "operand"))
	       && rule_give(c, 0, in(c, 0)->dt, s)
	       && rule_give(c, 1, in(c, 1)->dt, g);
}

/* ---- determinants ---- */

static bool
want_square(struct infer *c, int i)
{
	const Shape *x = &in(c, i)->shape;
	char text[INFER_TEXT];

	if (!rule_want_rank(c, i, 2))
		return false;
	if (x->rank < 0 || x->dim[x->rank - 1] < 0 || x->dim[x->rank - 2] < 0
	    || x->dim[x->rank - 1] == x->dim[x->rank - 2])
		return true;
	return rule_fail(c, "expected square matrices, found %s",
			 rule_text(text, c, i));
}

bool
infer_det(struct infer *c)
{
	Shape y = shape_of(c, 0);

	if (!want_square(c, 0))
		return false;
	y.rank -= y.rank < 0 ? 0 : 2;
	return rule_give(c, 0, in(c, 0)->dt, y);
}

bool
infer_det_grad(struct infer *c)
{
	Shape dy = shape_of(c, 1);

	if (!want_square(c, 1))
		return false;
	dy.rank -= dy.rank < 0 ? 0 : 2;
	return rule_want_shape(c, 0, &dy, "gradient")
	       && rule_give(c, 0, in(c, 1)->dt, shape_of(c, 1));
}
