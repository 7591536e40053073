/* Join the adjoints of slices that together cover one axis. */
#include "passes/grad/slice_adjoints.h"

int
slice_adjoint_axis(const Graph *g, const Node *n)
{
	const Shape *x = &g->val[n->in[0]].shape;
	const Shape *y = &g->val[n->out[0]].shape;
	int axis = -1;

	for (int i = 0; i < x->rank; i++) {
		if (x->dim[i] == y->dim[i] && n->attr.SLICE.step.v[i] == 1)
			continue;
		if (axis >= 0 || (n->attr.SLICE.step.v[i] != 1
		                  && y->dim[i] != 1))
			return -1;
		axis = i;
	}
	return axis;
}

static int64_t
slice_start(const Graph *g, const struct slice_adjoint *p, int axis)
{
	return g->node[p->node].attr.SLICE.start.v[axis];
}

static int64_t
slice_extent(const Graph *g, const struct slice_adjoint *p, int axis)
{
	return g->val[g->node[p->node].out[0]].shape.dim[axis];
}

/* Sort by start along axis; stable, and the lists are short. */
static struct slice_adjoint *
sort_slices(const Graph *g, struct slice_adjoint *list, int axis)
{
	struct slice_adjoint *sorted = NULL;

	while (list != NULL) {
		struct slice_adjoint *p = list, **at = &sorted;

		list = p->next;
		while (*at && slice_start(g, *at, axis)
		              < slice_start(g, p, axis))
			at = &(*at)->next;
		p->next = *at;
		*at = p;
	}
	return sorted;
}

/* Number of operands that a concat of the sorted pieces has, gaps included;
 * 0 if they overlap or there is nothing to join. */
static int
count_parts(const Graph *g, const struct slice_adjoint *list, int axis,
            int64_t n)
{
	int64_t at = 0;
	int parts = 0, pieces = 0;

	for (const struct slice_adjoint *p = list; p != NULL; p = p->next) {
		int64_t start = slice_start(g, p, axis);

		if (start < at)
			return 0;
		parts += 1 + (start > at);
		at = start + slice_extent(g, p, axis);
		pieces++;
	}
	return pieces > 1 ? parts + (at < n) : 0;
}

/* Zeros that take no memory, for a part that no slice covers. */
static ValId
zero_gap(struct grad *c, DType dt, Shape s, int axis, int64_t extent)
{
	s.dim[axis] = extent;
	return adj_expand(c, adj_scalar(c, dt, 0), &s);
}

/* The axis that all pieces cut, or -1. */
static int
common_axis(const Graph *g, const struct slice_adjoint *list)
{
	int axis = slice_adjoint_axis(g, &g->node[list->node]);

	for (const struct slice_adjoint *p = list; p != NULL; p = p->next)
		if (slice_adjoint_axis(g, &g->node[p->node]) != axis)
			return -1;
	return axis;
}

int
slice_adjoints_sort(const Graph *g, struct slice_adjoint **list)
{
	int axis = common_axis(g, *list);

	if (axis < 0)
		return 0;
	*list = sort_slices(g, *list, axis);
	return count_parts(g, *list, axis, g->val[g->node[(*list)->node].in[0]]
	                                   .shape.dim[axis]);
}

ValId
slice_adjoints_join(struct grad *c, const struct slice_adjoint *list,
                    int nparts, Arena *scratch)
{
	const Graph *g = c->g;
	const Node *slice = &g->node[list->node];
	Shape s = g->val[slice->in[0]].shape;
	DType dt = g->val[slice->in[0]].dt;
	ValId *part = arena_array(scratch, (size_t)nparts, sizeof *part);
	int axis = slice_adjoint_axis(g, slice), k = 0;
	int64_t at = 0;
	Attr a = attr_default(OP_CONCAT);

	for (const struct slice_adjoint *p = list; p != NULL; p = p->next) {
		int64_t start = slice_start(g, p, axis);

		if (start > at)
			part[k++] = zero_gap(c, dt, s, axis, start - at);
		part[k++] = p->dy;
		at = start + slice_extent(g, p, axis);
	}
	if (at < s.dim[axis])
		part[k++] = zero_gap(c, dt, s, axis, s.dim[axis] - at);
	a.CONCAT.axis = axis;
	return adj_op(c, OP_CONCAT, nparts, part, &a);
}
