/* Rules for linear layers: products with a 2-D right side work on rows.
 *
 *     y[.., n] = x[.., k] @ w + b   ->   reshape(x) [m, k] @ w + b, reshape
 *
 * Transposes of operands become flags, biases operands; a slice of a
 * product's rows becomes a product of sliced rows.
 */
#include "passes/canon/match.h"

/* Whether the node transposes the last two dims only. */
static bool
swaps_last(const IntList *perm)
{
	int n = perm->n;

	if (n < 2 || perm->v[n - 1] != n - 2 || perm->v[n - 2] != n - 1)
		return false;
	for (int i = 0; i < n - 2; i++)
		if (perm->v[i] != i)
			return false;
	return true;
}

bool
match_matmul_transpose(struct rewrite *w, NodeId root)
{
	bool changed = false;

	for (int i = 0; i < 2; i++) {
		NodeId t = rw_is(w, rw_in(w, root, i), OP_TRANSPOSE);
		Attr *a = &w->g->node[root].attr;

		if (!t || !swaps_last(&w->g->node[t].attr.TRANSPOSE.perm))
			continue;
		if (i == 0)
			a->MATMUL.ta = !a->MATMUL.ta;
		else
			a->MATMUL.tb = !a->MATMUL.tb;
		w->origin_node = root;
		rw_set_in(w, root, i, rw_in(w, t, 0));
		changed = true;
	}
	return changed;
}

static Shape
leading_rows(const Shape *s)
{
	int64_t last = s->dim[s->rank - 1], rows = 1;

	for (int i = 0; i < s->rank - 1; i++)
		rows *= s->dim[i];
	return SHAPE(rows, last);
}

bool
match_linear_2d(struct rewrite *w, NodeId root)
{
	Attr a = w->g->node[root].attr;
	ValId in[3] = { rw_in(w, root, 0), rw_in(w, root, 1),
	                rw_in(w, root, 2) }, v;
	const Shape out = *rw_shape(w, rw_out(w, root));
	Shape rows;

	if (rw_shape(w, in[0])->rank <= 2 || rw_shape(w, in[1])->rank != 2
	    || a.MATMUL.ta || rw_in(w, root, 3))
		return false;
	rows = leading_rows(rw_shape(w, in[0]));
	in[0] = rw_reshape(w, in[0], &rows);
	v = rw_emit(w, OP_MATMUL, in[2] ? 3 : 2, in, &a);
	w->origin_node = rw_def(w, v);
	return rw_replace(w, root, rw_reshape(w, v, &out));
}

/* The 2-D product that v is, perhaps reshaped with its last dim kept, without
 * other readers. */
static NodeId
product_under(const struct rewrite *w, ValId v)
{
	NodeId n, r = rw_is(w, v, OP_RESHAPE);
	ValId y = r ? rw_in(w, r, 0) : v;
	const Shape *s = rw_shape(w, v);
	const Shape *t = rw_shape(w, y);

	n = rw_is(w, y, OP_MATMUL);
	if (!n || !rw_single(w, v) || !rw_single(w, y) || t->rank != 2
	    || s->rank < 2 || s->dim[s->rank - 1] != t->dim[1])
		return 0;
	return n;
}

/* b as a vector of n, leading extents of 1 dropped; 0 if it is none. */
static ValId
as_vector(struct rewrite *w, ValId b, int64_t n)
{
	const Shape *s = rw_shape(w, b);
	const Shape vector = SHAPE(n);

	if (s->rank == 0 || shape_nelem(s) != n || s->dim[s->rank - 1] != n)
		return 0;
	return rw_reshape(w, b, &vector);
}

/* An operand with the product's own shape is a residual, even with a single
 * row: the row is a sample. */
bool
match_linear_bias(struct rewrite *w, NodeId root)
{
	const Shape out = *rw_shape(w, rw_out(w, root));

	for (int i = 0; i < 2; i++) {
		ValId y = rw_in(w, root, i), in[3], v;
		NodeId n = product_under(w, y);
		Attr a = w->g->node[n].attr;

		if (!n || rw_in(w, n, 2) || rw_in(w, n, 3)
		    || !shape_eq(rw_shape(w, y), &out)
		    || shape_eq(rw_shape(w, rw_in(w, root, 1 - i)), &out))
			continue;
		in[2] = as_vector(w, rw_in(w, root, 1 - i),
		                  out.dim[out.rank - 1]);
		if (!in[2])
			continue;
		in[0] = rw_in(w, n, 0);
		in[1] = rw_in(w, n, 1);
		v = rw_emit(w, OP_MATMUL, 3, in, &a);
		w->origin_node = rw_def(w, v);
		return rw_replace(w, root, rw_reshape(w, v, &out));
	}
	return w->failed;
}

/* slice(product) over rows only -> product of sliced rows. */
bool
match_linear_rows(struct rewrite *w, NodeId root)
{
	IntList start = w->g->node[root].attr.SLICE.start;
	IntList step = w->g->node[root].attr.SLICE.step;
	const Shape out = *rw_shape(w, rw_out(w, root));
	ValId y = rw_in(w, root, 0), in[3], x;
	NodeId n = product_under(w, y);
	Shape full, part, rows;
	int last = out.rank - 1;
	Attr a;

	if (!n || w->g->node[n].attr.MATMUL.ta || rw_in(w, n, 3)
	    || start.n != out.rank || step.n != out.rank
	    || out.dim[last] != rw_shape(w, y)->dim[last]
	    || start.v[last] != 0 || step.v[last] != 1)
		return false;
	a = w->g->node[n].attr;
	in[0] = rw_in(w, n, 0);
	in[1] = rw_in(w, n, 1);
	in[2] = rw_in(w, n, 2);
	full = *rw_shape(w, y);
	part = out;
	full.dim[last] = part.dim[last] = rw_shape(w, in[0])->dim[1];
	rows = leading_rows(&part);
	x = rw_reshape(w, in[0], &full);
	x = rw_slice(w, x, &start, &step, &part);
	in[0] = rw_reshape(w, x, &rows);
	x = rw_emit(w, OP_MATMUL, in[2] ? 3 : 2, in, &a);
	w->origin_node = rw_def(w, x);
	return rw_replace(w, root, rw_reshape(w, x, &out));
}
