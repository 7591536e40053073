/* Rule for EmbeddingBag: exporters write it as a loop over the bags, which
 * unrolls into
 *
 *	concat(reduce(slice(x, 0, L)), reduce(slice(x, L, 2 L)), ...)
 *
 * or the same with reduce(gather(w, slice(x, ..))).  Where equal slices are
 * all of x it becomes one reduction of x [N, L, ..]: N times fewer nodes, and
 * bags that can be split over replicas.  Rows that are looked up bag by bag are
 * joined for replicas alone, because together they take N times the memory.
 */
#include "passes/canon/match.h"

#include <string.h>

struct bag {
	Op reduce;
	NodeId gather;                  /* 0: none */
	ValId x;                        /* value that all bags slice */
	int64_t begin, length;          /* along dim 0 of x */
};

/* Axes of a reduction that bags may use; NULL: another op. */
static const IntList *
bag_axes(Op op, const Attr *a)
{
	return op == OP_REDUCE_SUM ? &a->REDUCE_SUM.axes
	       : op == OP_REDUCE_MEAN ? &a->REDUCE_MEAN.axes
	       : op == OP_REDUCE_MAX ? &a->REDUCE_MAX.axes : NULL;
}

/* The attributes of a reduction over dim 1, which it drops. */
static Attr
over_bag(Op op)
{
	Attr a = attr_default(op);

	*attr_list_of(op, &a, "axes") = (IntList){ 1, { 1 } };
	*attr_int_of(op, &a, "keepdims") = 0;
	return a;
}

/* Match slice(x) along dim 0 alone, with step 1. */
static bool
read_slice(const struct rewrite *w, ValId v, struct bag *b)
{
	NodeId n = rw_is(w, v, OP_SLICE);
	const Shape *out = rw_shape(w, v), *in;
	const IntList *start, *step;

	if (!n || w->g->node[n].nin != 1)
		return false;
	b->x = rw_in(w, n, 0);
	in = rw_shape(w, b->x);
	start = &w->g->node[n].attr.SLICE.start;
	step = &w->g->node[n].attr.SLICE.step;
	for (int i = 0; i < in->rank; i++)
		if (step->v[i] != 1 || (i && out->dim[i] != in->dim[i]))
			return false;
	b->begin = start->v[0];
	b->length = out->dim[0];
	return true;
}

static bool
read_bag(const struct rewrite *w, ValId v, struct bag *b)
{
	const Shape row = *rw_shape(w, v);
	NodeId n = rw_is(w, v, OP_RESHAPE);
	double scale = 1;
	const Shape *in;
	const IntList *axes;

	v = rw_scaled(w, n ? rw_in(w, n, 0) : v, &scale, true);
	n = rw_def(w, v);
	if (!n || !rw_single(w, v) || w->g->node[n].nin != 1)
		return false;
	b->reduce = w->g->node[n].op;
	axes = bag_axes(b->reduce, &w->g->node[n].attr);
	if (!axes || axes->n != 1 || axes->v[0] != 0)
		return false;
	v = rw_in(w, n, 0);
	in = rw_shape(w, v);
	/* a mean in two steps */
	if (scale != 1) {
		if (b->reduce != OP_REDUCE_SUM
		    || !near_to(scale * (double)in->dim[0], 1, 1e-6))
			return false;
		b->reduce = OP_REDUCE_MEAN;
	}
	if (row.rank != in->rank || in->rank == MAX_RANK || row.dim[0] != 1
	    || memcmp(row.dim + 1, in->dim + 1,
	              (size_t)(in->rank - 1) * sizeof *in->dim) != 0)
		return false;
	b->gather = rw_is(w, v, OP_GATHER);
	if (b->gather) {
		if (w->g->node[b->gather].attr.GATHER.axis != 0)
			return false;
		v = rw_in(w, b->gather, 1);
		if (rw_shape(w, v)->rank != 1)
			return false;
	}
	return read_slice(w, v, b);
}

/* Whether b follows the first i bags and is like them. */
static bool
is_next_bag(const struct rewrite *w, const struct bag *first,
            const struct bag *b, int i)
{
	return b->x == first->x && b->length == first->length
		&& b->begin == i * first->length && b->reduce == first->reduce
		&& !first->gather == !b->gather
		&& (!b->gather || rw_in(w, first->gather, 0)
		    == rw_in(w, b->gather, 0));
}

bool
match_bags(struct rewrite *w, NodeId root)
{
	struct bag first, b;
	int n = w->g->node[root].nin;
	Shape s;
	Attr a;
	ValId v;

	if (n < 2 || w->g->node[root].attr.CONCAT.axis != 0
	    || !read_bag(w, rw_in(w, root, 0), &first))
		return false;
	if (first.gather && !w->p->opt->dp)
		return false;
	for (int i = 1; i < n; i++)
		if (!read_bag(w, rw_in(w, root, i), &b)
		    || !is_next_bag(w, &first, &b, i))
			return false;
	s = *rw_shape(w, first.x);
	if (s.dim[0] != n * first.length)
		return false;
	memmove(s.dim + 2, s.dim + 1, (size_t)(s.rank - 1) * sizeof *s.dim);
	s.rank++;
	s.dim[0] = n;
	s.dim[1] = first.length;
	v = rw_reshape(w, first.x, &s);
	if (first.gather) {
		const ValId in[2] = { rw_in(w, first.gather, 0), v };

		a = w->g->node[first.gather].attr;
		v = v ? rw_emit(w, OP_GATHER, 2, in, &a) : 0;
	}
	a = over_bag(first.reduce);
	v = v ? rw_emit(w, first.reduce, 1, &v, &a) : 0;
	return rw_replace(w, root, v);
}
