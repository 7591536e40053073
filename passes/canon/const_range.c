/* Ranges of constant expressions: values that depend only on constants, but
 * are not computed.
 *
 * A mask of 8192 x 8192 is too large to compute, but the comparison of two
 * ranges that makes it is not.  This file bounds the elements of such a value
 * in a box of indices by interval arithmetic (Moore 1966): exact for a box of
 * one element, and never too narrow.
 *
 * cost   nodes of the expression, and elements of its constants in the box; at
 *        most w->steps in all, after which results are unknown
 */
#include "passes/canon/match.h"
#include "ir/element.h"

#include <math.h>

/* Whole numbers up to here are exact as doubles. */
#define WHOLE 9007199254740992.0

enum { STRIP = 256, DEPTH = 64 };

struct bounds {
	double lo, hi;
};

static bool bounds_of(struct rewrite *, ValId, const struct box *,
                      struct bounds *, int depth);

static bool
is_int(const struct rewrite *w, ValId v)
{
	return dtype_info[rw_dt(w, v)].cls != 'f';
}

/* Round x to type dt; false for integers that dt cannot hold. */
static bool
round_to_dtype(DType dt, double *x)
{
	double e[1];
	bool whole = dtype_info[dt].cls != 'f';

	if (isnan(*x) || (whole && fabs(*x) > WHOLE))
		return false;
	element_set_floats(dt, e, 0, 1, x);
	if (whole && dt != DT_BOOL) {
		double was = *x;

		element_get_floats(dt, e, 0, 1, x);
		return *x == was;
	}
	element_get_floats(dt, e, 0, 1, x);
	return true;
}

/* ---- boxes ---- */

static struct box
box_cast(const struct box *b, const Shape *big, const Shape *small)
{
	struct box r = { .lo = { 0 } };

	for (int d = 0; d < small->rank; d++) {
		int k = d + big->rank - small->rank;
		bool spread = small->dim[d] == 1;

		r.lo[d] = spread ? 0 : b->lo[k];
		r.hi[d] = spread ? 1 : b->hi[k];
	}
	return r;
}

/* Map a box through a reshape that adds or drops extents of 1; others fail. */
static bool
box_reshape(const struct box *b, const Shape *y, const Shape *x,
            struct box *r)
{
	int k = 0;

	for (int d = 0; d < x->rank; d++) {
		if (x->dim[d] == 1) {
			r->lo[d] = 0;
			r->hi[d] = 1;
			continue;
		}
		while (k < y->rank && y->dim[k] == 1)
			k++;
		if (k == y->rank || y->dim[k] != x->dim[d])
			return false;
		r->lo[d] = b->lo[k];
		r->hi[d] = b->hi[k++];
	}
	return true;
}

static void
union_bounds(struct bounds *a, const struct bounds *b)
{
	a->lo = b->lo < a->lo ? b->lo : a->lo;
	a->hi = b->hi > a->hi ? b->hi : a->hi;
}

static bool
spend_steps(struct rewrite *w, int64_t n)
{
	if (n < 0 || n > w->steps)
		return false;
	w->steps -= n;
	return true;
}

static bool
bounds_of_constant(struct rewrite *w, ValId id, const struct box *b,
                   struct bounds *r)
{
	const Val *v = &w->g->val[id];
	int last = v->shape.rank - 1;
	int64_t stride[MAX_RANK], at[MAX_RANK], len = 1, rows = 1;
	double x[STRIP];

	shape_strides(&v->shape, stride);
	for (int d = 0; d <= last; d++) {
		at[d] = b->lo[d];
		rows *= d < last ? b->hi[d] - b->lo[d] : 1;
	}
	if (last >= 0)
		len = b->hi[last] - b->lo[last];
	if (!spend_steps(w, rows * len / 16 + 1))
		return false;
	*r = (struct bounds){ INFINITY, -INFINITY };
	for (int64_t row = 0; row < rows; row++) {
		int64_t from = 0;

		for (int d = 0; d <= last; d++)
			from += at[d] * stride[d];
		for (int64_t i = 0; i < len; i += STRIP) {
			int n = (int)(len - i < STRIP ? len - i : STRIP);

			element_get_floats(v->dt, v->data, from + i, n, x);
			for (int k = 0; k < n; k++) {
				if (isnan(x[k]))
					return false;
				r->lo = x[k] < r->lo ? x[k] : r->lo;
				r->hi = x[k] > r->hi ? x[k] : r->hi;
			}
		}
		for (int d = last; d-- > 0; at[d] = b->lo[d])
			if (++at[d] < b->hi[d])
				break;
	}
	return !is_int(w, id) || (r->lo >= -WHOLE && r->hi <= WHOLE);
}

/* ---- ops ---- */

static bool
is_true(struct bounds x)
{
	return x.lo > 0 || x.hi < 0;
}

static bool
is_false(struct bounds x)
{
	return x.lo == 0 && x.hi == 0;
}

typedef struct bounds Pair(struct bounds, struct bounds);

#define PAIR(name, low, high) \
	static struct bounds \
	pair_##name(struct bounds a, struct bounds b) \
	{ \
		return (struct bounds){ low, high }; \
	}
#define TRUTH(name, always, never) PAIR(name, always, !(never))

PAIR(max, fmax(a.lo, b.lo), fmax(a.hi, b.hi))
PAIR(min, fmin(a.lo, b.lo), fmin(a.hi, b.hi))
TRUTH(eq, a.lo == a.hi && b.lo == b.hi && a.lo == b.lo,
      a.hi < b.lo || b.hi < a.lo)
TRUTH(lt, a.hi < b.lo, a.lo >= b.hi)
TRUTH(le, a.hi <= b.lo, a.lo > b.hi)
TRUTH(gt, a.lo > b.hi, a.hi <= b.lo)
TRUTH(ge, a.lo >= b.hi, a.hi < b.lo)
TRUTH(and, is_true(a) && is_true(b), is_false(a) || is_false(b))
TRUTH(or, is_true(a) || is_true(b), is_false(a) && is_false(b))
TRUTH(xor, (is_true(a) && is_false(b)) || (is_false(a) && is_true(b)),
      (is_true(a) && is_true(b)) || (is_false(a) && is_false(b)))

static const struct bounds unknown = { NAN, NAN };

/* Whether opposite infinities may meet, whose sum is NaN. */
static struct bounds
pair_add(struct bounds a, struct bounds b)
{
	if ((a.lo == -INFINITY && b.hi == INFINITY)
	    || (a.hi == INFINITY && b.lo == -INFINITY))
		return unknown;
	return (struct bounds){ a.lo + b.lo, a.hi + b.hi };
}

static struct bounds
pair_sub(struct bounds a, struct bounds b)
{
	return pair_add(a, (struct bounds){ -b.hi, -b.lo });
}

/* Whether a zero of a may meet an infinity of b. */
static bool
zero_meets(struct bounds a, struct bounds b)
{
	return a.lo <= 0 && a.hi >= 0 && (isinf(b.lo) || isinf(b.hi));
}

/* The smallest and the largest product of two corners. */
static struct bounds
pair_mul(struct bounds a, struct bounds b)
{
	double c[4] = { a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi };
	struct bounds r = { c[0], c[0] };

	if (zero_meets(a, b) || zero_meets(b, a))
		return unknown;
	for (int i = 0; i < 4; i++)
		union_bounds(&r, &(struct bounds){ c[i], c[i] });
	return r;
}

static Pair *const pair[OP_COUNT] = {
	[OP_ADD] = pair_add, [OP_SUB] = pair_sub, [OP_MUL] = pair_mul,
	[OP_MAX] = pair_max, [OP_MIN] = pair_min, [OP_EQ] = pair_eq,
	[OP_LT] = pair_lt, [OP_LE] = pair_le, [OP_GT] = pair_gt,
	[OP_GE] = pair_ge, [OP_AND] = pair_and, [OP_OR] = pair_or,
	[OP_XOR] = pair_xor,
};

/* One op: bounds of output 0 in a box. */
typedef bool Of(struct rewrite *, NodeId, const struct box *, struct bounds *,
                int depth);

/* Range of operand i in the box that it contributes to the result's box. */
static bool
bounds_of_operand(struct rewrite *w, NodeId id, int i, const struct box *b,
                  struct bounds *r, int depth)
{
	ValId in = rw_in(w, id, i);
	struct box s = box_cast(b, rw_shape(w, rw_out(w, id)),
	                        rw_shape(w, in));

	return bounds_of(w, in, &s, r, depth);
}

static bool
round_bounds(DType dt, struct bounds *r)
{
	return round_to_dtype(dt, &r->lo) && round_to_dtype(dt, &r->hi);
}

static bool
bounds_of_pair(struct rewrite *w, NodeId id, const struct box *b,
               struct bounds *r, int depth)
{
	const Node *n = &w->g->node[id];
	struct bounds x, y;

	if (n->nin != 2 || !bounds_of_operand(w, id, 0, b, &x, depth)
	    || !bounds_of_operand(w, id, 1, b, &y, depth))
		return false;
	*r = pair[n->op](x, y);
	return round_bounds(rw_dt(w, n->out[0]), r);
}

static bool
bounds_of_not(struct rewrite *w, NodeId id, const struct box *b,
              struct bounds *r, int depth)
{
	struct bounds x;

	if (!bounds_of_operand(w, id, 0, b, &x, depth))
		return false;
	*r = (struct bounds){ is_false(x), !is_true(x) };
	return true;
}

static bool
bounds_of_neg(struct rewrite *w, NodeId id, const struct box *b,
              struct bounds *r, int depth)
{
	struct bounds x;

	if (!bounds_of_operand(w, id, 0, b, &x, depth))
		return false;
	*r = (struct bounds){ -x.hi, -x.lo };
	return round_bounds(rw_dt(w, rw_out(w, id)), r);
}

static bool
bounds_of_cast(struct rewrite *w, NodeId id, const struct box *b,
               struct bounds *r, int depth)
{
	DType dt = rw_dt(w, rw_out(w, id));

	if (!bounds_of_operand(w, id, 0, b, r, depth))
		return false;
	if (dt == DT_BOOL)
		*r = (struct bounds){ is_true(*r), !is_false(*r) };
	else if (dtype_info[dt].cls != 'f')
		*r = (struct bounds){ trunc(r->lo), trunc(r->hi) };
	return round_bounds(dt, r);
}

/* Range of a `where`. */
static bool
bounds_of_where(struct rewrite *w, NodeId id, const struct box *b,
                struct bounds *r, int depth)
{
	struct bounds c, x;

	if (!bounds_of_operand(w, id, 0, b, &c, depth))
		return false;
	*r = (struct bounds){ INFINITY, -INFINITY };
	for (int i = 1; i <= 2; i++) {
		if (i == 1 ? is_false(c) : is_true(c))
			continue;
		if (!bounds_of_operand(w, id, i, b, &x, depth))
			return false;
		union_bounds(r, &x);
	}
	return true;
}

static bool
bounds_of_expand(struct rewrite *w, NodeId id, const struct box *b,
                 struct bounds *r, int depth)
{
	return bounds_of_operand(w, id, 0, b, r, depth);
}

static bool
bounds_of_reshape(struct rewrite *w, NodeId id, const struct box *b,
                  struct bounds *r, int depth)
{
	ValId in = rw_in(w, id, 0);
	struct box s = { .lo = { 0 } };

	return box_reshape(b, rw_shape(w, rw_out(w, id)), rw_shape(w, in), &s)
		&& bounds_of(w, in, &s, r, depth);
}

static bool
bounds_of_transpose(struct rewrite *w, NodeId id, const struct box *b,
                    struct bounds *r, int depth)
{
	const IntList *perm = &w->g->node[id].attr.TRANSPOSE.perm;
	struct box s = { .lo = { 0 } };

	for (int d = 0; d < perm->n; d++) {
		s.lo[perm->v[d]] = b->lo[d];
		s.hi[perm->v[d]] = b->hi[d];
	}
	return bounds_of(w, rw_in(w, id, 0), &s, r, depth);
}

static bool
bounds_of_trilu(struct rewrite *w, NodeId id, const struct box *b,
                struct bounds *r, int depth)
{
	const Node *n = &w->g->node[id];
	ValId in = rw_in(w, id, 0);
	int rank = rw_shape(w, in)->rank;
	int64_t first = b->lo[rank - 1] - (b->hi[rank - 2] - 1);
	int64_t last = b->hi[rank - 1] - 1 - b->lo[rank - 2];
	int64_t k = n->attr.TRILU.k;
	bool upper = n->attr.TRILU.upper;
	bool all = upper ? first >= k : last <= k;
	bool none = upper ? last < k : first > k;

	*r = (struct bounds){ 0, 0 };
	if (none)
		return true;
	if (!bounds_of(w, in, b, r, depth))
		return false;
	if (!all)
		union_bounds(r, &(struct bounds){ 0, 0 });
	return true;
}

static bool
bounds_of_slice(struct rewrite *w, NodeId id, const struct box *b,
                struct bounds *r, int depth)
{
	const Node *n = &w->g->node[id];
	ValId in = rw_in(w, id, 0);
	struct box s = *b;

	for (int d = 0; d < rw_shape(w, in)->rank; d++) {
		int64_t step = n->attr.SLICE.step.v[d];
		int64_t p = n->attr.SLICE.start.v[d] + b->lo[d] * step;
		int64_t q = n->attr.SLICE.start.v[d] + (b->hi[d] - 1) * step;

		s.lo[d] = p < q ? p : q;
		s.hi[d] = (p < q ? q : p) + 1;
	}
	return bounds_of(w, in, &s, r, depth);
}

static bool
bounds_of_concat(struct rewrite *w, NodeId id, const struct box *b,
                 struct bounds *r, int depth)
{
	const Node *n = &w->g->node[id];
	int axis = (int)n->attr.CONCAT.axis;
	int64_t at = 0;

	*r = (struct bounds){ INFINITY, -INFINITY };
	for (int i = 0; i < n->nin; i++) {
		ValId in = rw_in(w, id, i);
		int64_t next = at + rw_shape(w, in)->dim[axis];
		struct box s = *b;
		struct bounds x;

		s.lo[axis] = (b->lo[axis] > at ? b->lo[axis] : at) - at;
		s.hi[axis] = (b->hi[axis] < next ? b->hi[axis] : next) - at;
		at = next;
		if (s.lo[axis] >= s.hi[axis])
			continue;
		if (!bounds_of(w, in, &s, &x, depth))
			return false;
		union_bounds(r, &x);
	}
	return true;
}

static Of *const rule[OP_COUNT] = {
	[OP_ADD] = bounds_of_pair, [OP_SUB] = bounds_of_pair,
	[OP_MUL] = bounds_of_pair, [OP_MAX] = bounds_of_pair,
	[OP_MIN] = bounds_of_pair, [OP_EQ] = bounds_of_pair,
	[OP_LT] = bounds_of_pair, [OP_LE] = bounds_of_pair,
	[OP_GT] = bounds_of_pair, [OP_GE] = bounds_of_pair,
	[OP_AND] = bounds_of_pair, [OP_OR] = bounds_of_pair,
	[OP_XOR] = bounds_of_pair, [OP_NOT] = bounds_of_not,
	[OP_NEG] = bounds_of_neg, [OP_CAST] = bounds_of_cast,
	[OP_WHERE] = bounds_of_where, [OP_EXPAND] = bounds_of_expand,
	[OP_RESHAPE] = bounds_of_reshape,
	[OP_TRANSPOSE] = bounds_of_transpose,
	[OP_SLICE] = bounds_of_slice, [OP_TRILU] = bounds_of_trilu,
	[OP_CONCAT] = bounds_of_concat,
};

static bool
bounds_of(struct rewrite *w, ValId v, const struct box *b,
          struct bounds *r, int depth)
{
	NodeId id;

	if (depth == 0 || !spend_steps(w, 1))
		return false;
	if (val_is_const(&w->g->val[v]))
		return bounds_of_constant(w, v, b, r);
	id = w->g->val[v].def;
	return w->const_expr[v] && rule[w->g->node[id].op]
		&& rule[w->g->node[id].op](w, id, b, r, depth - 1);
}

/* ---- for masks ---- */

bool
is_const_expr_op(Op op)
{
	return rule[op] != NULL;
}

bool
const_expr_range(struct rewrite *w, ValId v, const struct box *b, double *lo,
                 double *hi)
{
	struct bounds r;

	if (!bounds_of(w, v, b, &r, DEPTH))
		return false;
	*lo = r.lo;
	*hi = r.hi;
	return true;
}
