/* Rules for views: chains of reshapes, transposes and expands become one,
 * or nothing.
 */
#include "passes/canon/match.h"

#include <string.h>

/* ---- reshape and transpose ---- */

/* Whether extents other than 1 keep their order, so that no data moves. */
static bool
moves_nothing(const Shape *in, const IntList *perm)
{
	int64_t last = -1;

	for (int i = 0; i < perm->n; i++) {
		if (in->dim[perm->v[i]] == 1)
			continue;
		if (perm->v[i] < last)
			return false;
		last = perm->v[i];
	}
	return true;
}

bool
match_transpose(struct rewrite *w, NodeId root)
{
	ValId x = rw_in(w, root, 0);
	const IntList perm = w->g->node[root].attr.TRANSPOSE.perm;
	NodeId inner;
	int both[MAX_RANK];

	if (perm.n != rw_shape(w, x)->rank)
		return false;
	if (moves_nothing(rw_shape(w, x), &perm)) {
		const Shape to = *rw_shape(w, rw_out(w, root));

		return rw_replace(w, root, rw_reshape(w, x, &to));
	}
	inner = rw_is(w, x, OP_TRANSPOSE);
	if (!inner)
		return false;
	for (int i = 0; i < perm.n; i++)
		both[i] = (int)w->g->node[inner].attr.TRANSPOSE
			.perm.v[perm.v[i]];
	return rw_replace(w, root, rw_transpose(w, rw_in(w, inner, 0), both));
}

/* Cut a and b, two shapes of the same elements, where both have a boundary,
 * and return in atom[] the extents of their common refinement; 0 if the
 * boundaries do not nest (as in [4,6] and [6,4]).  group[k] is the dim of b
 * that atom k belongs to. */
static int
refine_shapes(const Shape *a, const Shape *b, int64_t atom[], int group[])
{
	int64_t ra = 1, rb = 1;         /* rest of the current dims */
	int i = 0, j = 0, n = 0;

	for (;;) {
		while (ra == 1 && i < a->rank)
			ra = a->dim[i++];
		while (rb == 1 && j < b->rank)
			rb = b->dim[j++];
		if (ra == 1 && rb == 1)
			return n;
		if (ra <= 1 || rb <= 1 || n == MAX_RANK)
			return 0;
		if (ra % rb && rb % ra)
			return 0;
		atom[n] = ra < rb ? ra : rb;
		group[n] = j - 1;
		ra /= atom[n];
		rb /= atom[n];
		n++;
	}
}

/* Whether the extents of s other than 1 are the n given ones. */
static bool
is_made_of(const Shape *s, const int64_t extent[], int n)
{
	int k = 0;

	for (int i = 0; i < s->rank; i++) {
		if (s->dim[i] == 1)
			continue;
		if (k == n || s->dim[i] != extent[k++])
			return false;
	}
	return k == n;
}

/* Permute extents of x other than 1 by perm to shape `out`: one transpose,
 * which moves extents of 1 too.  0 if their numbers of those differ. */
static ValId
transpose_whole(struct rewrite *w, ValId x, const int perm[], const Shape *out)
{
	const Shape s = *rw_shape(w, x);
	int wide[MAX_RANK], one[MAX_RANK], whole[MAX_RANK];
	int nwide = 0, none = 0, i1 = 0, k = 0;

	if (s.rank != out->rank)
		return 0;
	for (int i = 0; i < s.rank; i++)
		if (s.dim[i] == 1)
			one[none++] = i;
		else
			wide[nwide++] = i;
	for (int i = 0; i < s.rank; i++)
		whole[i] = out->dim[i] == 1 ? one[i1++] : wide[perm[k++]];
	return rw_transpose(w, x, whole);
}

/* reshape(transpose(reshape(x))) that only splits and permutes dims of x, as
 *   [B,H,T,D] -> [B*H,T,D] -> [B*H,D,T] -> [B,H,D,T]
 *   [T,B,H*D] -> [T,B*H,D] -> [B*H,T,D] -> [B,H,T,D]
 * The merge in the middle goes: dims with strides of their own cannot always
 * be merged without a copy.  Extents of 1 are left out of the comparison and
 * put back at the end. */
static bool
transpose_between(struct rewrite *w, NodeId root)
{
	NodeId t = rw_is(w, rw_in(w, root, 0), OP_TRANSPOSE);
	NodeId r = t ? rw_is(w, rw_in(w, t, 0), OP_RESHAPE) : 0;
	const Shape out = *rw_shape(w, rw_out(w, root));
	Shape atom = { .rank = 0 }, mid;
	int64_t permuted[MAX_RANK];
	int group[MAX_RANK], perm[MAX_RANK], n = 0;
	const IntList *p;
	ValId x, v;

	if (!r)
		return false;
	p = &w->g->node[t].attr.TRANSPOSE.perm;
	mid = *rw_shape(w, rw_out(w, r));
	x = rw_in(w, r, 0);
	atom.rank = refine_shapes(rw_shape(w, x), &mid, atom.dim, group);
	if (atom.rank == 0)
		return false;
	for (int i = 0; i < p->n; i++)
		for (int j = 0; j < atom.rank; j++)
			if (group[j] == p->v[i]) {
				permuted[n] = atom.dim[j];
				perm[n++] = j;
			}
	if (n != atom.rank || !is_made_of(&out, permuted, n))
		return false;
	v = is_made_of(rw_shape(w, x), atom.dim, n)
		? transpose_whole(w, x, perm, &out) : 0;
	if (!v && is_made_of(&mid, atom.dim, n))
		return false;
	if (!v) {
		v = rw_reshape(w, x, &atom);
		v = rw_transpose(w, v, perm);
		v = rw_reshape(w, v, &out);
	}
	return rw_replace(w, root, v);
}

bool
match_reshape(struct rewrite *w, NodeId root)
{
	ValId x = rw_in(w, root, 0);
	const Shape to = *rw_shape(w, rw_out(w, root));
	NodeId inner = rw_is(w, x, OP_RESHAPE);

	if (shape_eq(rw_shape(w, x), &to))
		return rw_replace(w, root, x);
	if (!inner)
		return transpose_between(w, root);
	return rw_replace(w, root, rw_reshape(w, rw_in(w, inner, 0), &to));
}

/* ---- expand ---- */

/* A constant's shape with extent 1 for each axis along which it repeats. */
static Shape
constant_core(const Val *v)
{
	Shape s = v->shape;
	size_t esize = (size_t)dtype_info[v->dt].nbytes;
	const char *data = v->data;

	for (int axis = 0; axis < s.rank; axis++) {
		int64_t outer = 1, inner = (int64_t)esize;
		bool same = true;

		for (int i = 0; i < axis; i++)
			outer *= v->shape.dim[i];
		for (int i = axis + 1; i < s.rank; i++)
			inner *= v->shape.dim[i];
		for (int64_t o = 0; o < outer && same; o++)
			for (int64_t j = 1; j < s.dim[axis] && same; j++)
				same = !memcmp(data + o * s.dim[axis] * inner,
				               data + (o * s.dim[axis] + j)
				               * inner, (size_t)inner);
		if (same)
			s.dim[axis] = 1;
	}
	return s;
}

/* The constant of shape s from one that repeats. */
static ValId
shrink_constant(struct rewrite *w, ValId v, const Shape *s)
{
	const Val *c = &w->g->val[v];
	size_t esize = (size_t)dtype_info[c->dt].nbytes;
	int64_t n = shape_nelem(s), stride[MAX_RANK];
	char *data = arena_array(w->mem, (size_t)n, esize);
	int64_t at[MAX_RANK] = { 0 };

	shape_strides(&c->shape, stride);
	for (int64_t i = 0; i < n; i++) {
		int64_t from = 0;

		for (int k = 0; k < s->rank; k++)
			from += at[k] * stride[k];
		memcpy(data + (size_t)i * esize,
		       (const char *)c->data + (size_t)from * esize, esize);
		for (int k = s->rank - 1; k >= 0; k--) {
			if (++at[k] < s->dim[k])
				break;
			at[k] = 0;
		}
	}
	return rw_const(w, c->dt, *s, data);
}

/* v shrunk, or v itself. */
static ValId
constant_cut(struct rewrite *w, ValId v)
{
	int64_t nelem = val_nelem(&w->g->val[v]);
	Shape s;
	double x;

	if (nelem <= 1 || rw_shape(w, v)->rank == 0)
		return v;
	if (rw_float(w, v) && val_splat(w->g, v, &x))
		/* copy the bits, not through a double */
		return rw_const(w, rw_dt(w, v), shape_scalar(),
		                w->g->val[v].data);
	s = constant_core(&w->g->val[v]);
	return shape_nelem(&s) == nelem ? v : shrink_constant(w, v, &s);
}

ValId
rw_unexpanded(struct rewrite *w, ValId v)
{
	NodeId n;

	while ((n = rw_is(w, v, OP_EXPAND)) != 0)
		v = rw_in(w, n, 0);
	if (!val_is_const(&w->g->val[v]))
		return v;
	if (!w->core[v]) {
		ValId cut = constant_cut(w, v);

		w->core[v] = w->core[cut] = cut;
	}
	return w->core[v];
}

/* An element-wise op broadcasts by itself.  If every operand without its
 * expands is smaller than the result, apply the op to the small shape and
 * expand the result. */
bool
match_expand(struct rewrite *w, NodeId root)
{
	const Node *node = &w->g->node[root];
	unsigned flags = op_info[node->op].flags;
	const Shape out = *rw_shape(w, rw_out(w, root));
	Shape small = shape_scalar();
	ValId in[3], v;
	int nin = node->nin;
	bool changed = false;
	Attr attr = node->attr;

	if (!op_fuses(node->op) || flags & F_RNG || nin > 3 || nin < 1)
		return false;
	for (int i = 0; i < nin; i++) {
		ValId old = rw_in(w, root, i);

		in[i] = rw_unexpanded(w, old);
		changed |= in[i] != old;
		if (!shape_broadcast(&small, rw_shape(w, in[i])))
			return false;
	}
	if (!changed)
		return false;
	if (shape_eq(&small, &out)) {
		w->origin_node = root;
		for (int i = 0; i < nin; i++)
			rw_set_in(w, root, i, in[i]);
		return true;
	}
	v = rw_emit(w, w->g->node[root].op, nin, in, &attr);
	w->origin_node = rw_def(w, v);
	return rw_replace(w, root, rw_expand(w, v, &out));
}

/* ---- gather ---- */

/* Constant indices i0, i0 + step, ...: step 1 or more, all in range. */
static bool
is_range(const Val *idx, int64_t extent, int64_t *start, int64_t *step)
{
	int64_t n = val_nelem(idx), last = 0;

	if (!val_is_const(idx) || n < 1)
		return false;
	*step = 1;
	for (int64_t i = 0; i < n; i++) {
		int64_t k = val_int(idx, i);

		k += k < 0 ? extent : 0;
		if (k < 0 || k >= extent)
			return false;
		if (i == 0)
			*start = k;
		if (i == 1)
			*step = k - last;
		if (i > 0 && (*step < 1 || k - last != *step))
			return false;
		last = k;
	}
	return true;
}

/* A gather of evenly spaced constant indices is a slice, a view: rows of a
 * position table, the parts of a stacked projection. */
bool
match_gather(struct rewrite *w, NodeId root)
{
	ValId x = rw_in(w, root, 0), idx = rw_in(w, root, 1), v;
	const Shape out = *rw_shape(w, rw_out(w, root));
	int axis = (int)w->g->node[root].attr.GATHER.axis;
	Shape s = *rw_shape(w, x);
	IntList start = { .n = s.rank }, step = { .n = s.rank };

	if (axis < 0 || axis >= s.rank)
		return false;
	for (int i = 0; i < s.rank; i++)
		step.v[i] = 1;
	if (!is_range(&w->g->val[idx], s.dim[axis], &start.v[axis],
	              &step.v[axis]))
		return false;
	s.dim[axis] = val_nelem(&w->g->val[idx]);
	v = shape_eq(&s, rw_shape(w, x)) ? x
		: rw_slice(w, x, &start, &step, &s);
	return rw_replace(w, root, rw_reshape(w, v, &out));
}
