/* Shape inference: element types and shapes of a node's outputs, one rule per
 * name in the shape column of ops.h.
 *
 * Static operands (shape of a reshape, axes of a reduction) are read where
 * they are constants; where they are absent the attributes hold the same, as
 * pass `fold` leaves them; where they are computed, extents are unknown.
 * Unknown ranks and extents give unknown ones; a contradiction is reported
 * with both sides.
 */
#include "ir/ir.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = 160 };                    /* bytes for a shape in a message */

struct infer {
	Graph *g;
	Diag *d;
	Node *n;
};

typedef bool ShapeRule(struct infer *);

#define OP(id, text, sig, attr, rules, emit) rules
#define RULES(shape, eval, cost, grad, shard) static ShapeRule infer_##shape;
#include "ir/ops.h"

static ShapeRule *const rule_of[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, cost, grad, shard) infer_##shape
#include "ir/ops.h"
};

/* ---- what the rules are written with ---- */

static bool
fail(struct infer *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool
fail(struct infer *c, const char *fmt, ...)
{
	const Node *n = c->n;
	const char *name = NULL, *op = op_info[n->op].text;
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n->norigin) {
		name = c->g->origin[n->origin[0]].name;
		op = c->g->origin[n->origin[0]].op;
	}
	for (int i = 0; i < n->nout && !name; i++)
		if (n->out[i])
			name = c->g->val[n->out[i]].name;
	return diag_at(c->d, name, op, "%s", text);
}

static bool
has(const struct infer *c, int i)
{
	return i < c->n->nin && c->n->in[i];
}

static const Val *
in(const struct infer *c, int i)
{
	return &c->g->val[c->n->in[i]];
}

/* A copy: rules go on to change it. */
static Shape
shape_of(const struct infer *c, int i)
{
	return in(c, i)->shape;
}

static Shape
unknown(int rank)
{
	Shape s = { .rank = rank > MAX_RANK ? -1 : rank };

	for (int i = 0; i < s.rank; i++)
		s.dim[i] = -1;
	return s;
}

static const char *
text_of(char buf[TEXT], const struct infer *c, int i)
{
	return shape_text(buf, TEXT, in(c, i)->dt, &in(c, i)->shape);
}

static char
class_of(const struct infer *c, int i)
{
	return dtype_info[in(c, i)->dt].cls;
}

static bool
same_type(struct infer *c, int i, int j)
{
	DType a = in(c, i)->dt, b = in(c, j)->dt;

	if (a == b || a == DT_NONE || b == DT_NONE)
		return true;
	return fail(c, "operands differ in type: %s and %s",
	            dtype_info[a].text, dtype_info[b].text);
}

/* cls: the classes allowed, e.g. "iu". */
static bool
want_class(struct infer *c, int i, const char *cls, const char *what)
{
	if (in(c, i)->dt == DT_NONE || strchr(cls, class_of(c, i)))
		return true;
	return fail(c, "operand %d: expected %s, found %s", i, what,
	            dtype_info[in(c, i)->dt].text);
}

static bool
dims_fit(const Shape *a, const Shape *b)
{
	if (a->rank < 0 || b->rank < 0)
		return true;
	if (a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->dim[i] >= 0 && b->dim[i] >= 0
		    && a->dim[i] != b->dim[i])
			return false;
	return true;
}

/* Operand i must have shape s as far as both are known. */
static bool
want_shape(struct infer *c, int i, const Shape *s, const char *what)
{
	char want[TEXT], found[TEXT];

	if (dims_fit(s, &in(c, i)->shape))
		return true;
	return fail(c, "%s: expected %s, found %s", what,
	            shape_text(want, TEXT, in(c, i)->dt, s),
	            text_of(found, c, i));
}

static bool
want_rank(struct infer *c, int i, int min)
{
	char text[TEXT];

	if (in(c, i)->shape.rank < 0 || in(c, i)->shape.rank >= min)
		return true;
	return fail(c, "operand %d: expected rank %d or more, found %s", i,
	            min, text_of(text, c, i));
}

/* A negative axis counts from the end; -1 < rank here.  A scalar passes for a
 * vector of one element, as ONNX has it. */
static bool
fix_axis(struct infer *c, int64_t axis, int rank, int *out)
{
	int r = rank ? rank : 1;

	if (axis < -r || axis >= r)
		return fail(c, "axis %lld is out of range for rank %d",
		            (long long)axis, rank);
	*out = (int)(axis < 0 ? axis + r : axis);
	return true;
}

/* Output k has type dt and shape s.  What is known already is checked, what
 * is not is filled in. */
static bool
give(struct infer *c, int k, DType dt, Shape s)
{
	char want[TEXT], found[TEXT];
	Val *v;

	if (k >= c->n->nout || !c->n->out[k])
		return true;
	v = &c->g->val[c->n->out[k]];
	if ((dt != DT_NONE && v->dt != DT_NONE && v->dt != dt)
	    || !dims_fit(&s, &v->shape))
		return fail(c, "output %d '%s': expected %s, found %s", k,
		            v->name,
		            shape_text(want, TEXT, dt ? dt : v->dt, &s),
		            shape_text(found, TEXT, v->dt, &v->shape));
	if (v->dt == DT_NONE)
		v->dt = dt;
	if (v->shape.rank < 0)
		v->shape = s;
	for (int i = 0; i < s.rank; i++)
		if (v->shape.dim[i] < 0)
			v->shape.dim[i] = s.dim[i];
	return true;
}

/* Whether operand i gives a list of integers, and how much of it is known. */
enum found { ABSENT, COMPUTED, KNOWN };

static enum found
look(const struct infer *c, int i)
{
	if (!has(c, i))
		return ABSENT;
	return val_is_const(in(c, i)) ? KNOWN : COMPUTED;
}

/* Length of operand i as a list; -1 if unknown.  A scalar is a list of one. */
static int64_t
length(const struct infer *c, int i)
{
	return val_nelem(in(c, i));
}

/* Operand i, a constant, as a list. */
static bool
read_list(struct infer *c, int i, IntList *l)
{
	int64_t n = length(c, i);

	if (n < 0 || n > MAX_RANK)
		return fail(c, "operand %d: expected at most %d numbers, "
		            "found %lld", i, MAX_RANK, (long long)n);
	l->n = (int)n;
	for (int k = 0; k < l->n; k++)
		l->v[k] = val_int(in(c, i), k);
	return true;
}

/* Axes of operand i or, where it is absent, of *l, made non-negative and
 * marked in set.  COMPUTED leaves set alone. */
static bool
read_axes(struct infer *c, int i, IntList *l, int rank, bool set[MAX_RANK])
{
	memset(set, 0, MAX_RANK * sizeof *set);
	if (look(c, i) == KNOWN && !read_list(c, i, l))
		return false;
	for (int k = 0; k < l->n; k++) {
		int axis;

		if (!fix_axis(c, l->v[k], rank, &axis))
			return false;
		if (set[axis])
			return fail(c, "axis %d occurs twice", axis);
		set[axis] = true;
	}
	return true;
}

/* ---- element-wise ---- */

/* Broadcast of operands first..last-1. */
static bool
broadcast(struct infer *c, int first, int last, Shape *s)
{
	*s = shape_scalar();
	for (int i = first; i < last; i++) {
		char a[TEXT], b[TEXT];

		if (!has(c, i))
			continue;
		if (!shape_broadcast(s, &in(c, i)->shape))
			return fail(c, "shapes do not broadcast: %s and %s",
			            shape_text(a, TEXT, in(c, first)->dt, s),
			            text_of(b, c, i));
	}
	return true;
}

static bool
infer_bcast(struct infer *c)
{
	Shape s;

	return same_type(c, 0, 1) && broadcast(c, 0, 2, &s)
	       && give(c, 0, in(c, 0)->dt ? in(c, 0)->dt : in(c, 1)->dt, s);
}

static bool
infer_pow(struct infer *c)
{
	Shape s;

	return broadcast(c, 0, 2, &s) && give(c, 0, in(c, 0)->dt, s);
}

static bool
infer_pred(struct infer *c)
{
	Op op = c->n->op;
	bool logic = op == OP_AND || op == OP_OR || op == OP_XOR
	             || op == OP_NOT;
	Shape s;

	for (int i = 0; i < c->n->nin; i++)
		if (logic && !want_class(c, i, "b", "bool"))
			return false;
	return (c->n->nin < 2 || same_type(c, 0, 1))
	       && broadcast(c, 0, c->n->nin, &s) && give(c, 0, DT_BOOL, s);
}

static bool
infer_where(struct infer *c)
{
	Shape s;

	return want_class(c, 0, "b", "bool") && same_type(c, 1, 2)
	       && broadcast(c, 0, 3, &s)
	       && give(c, 0, in(c, 1)->dt ? in(c, 1)->dt : in(c, 2)->dt, s);
}

static bool
infer_cast(struct infer *c)
{
	int64_t to = c->n->attr.CAST.to;

	if (to <= DT_NONE || to >= DT_COUNT)
		return fail(c, "cast to no type");
	return give(c, 0, (DType)to, shape_of(c, 0));
}

static bool
infer_cast_like(struct infer *c)
{
	return give(c, 0, in(c, 1)->dt, shape_of(c, 0));
}

static bool
needs_float(Op op)
{
	switch (op) {
	case OP_EXP: case OP_LOG: case OP_SQRT: case OP_RECIP: case OP_SIN:
	case OP_COS: case OP_TANH: case OP_SIGMOID: case OP_ERF:
	case OP_SOFTPLUS: case OP_GELU: case OP_SILU: case OP_GELU_GRAD:
	case OP_SILU_GRAD: case OP_DROPOUT: case OP_SOFTMAX:
	case OP_LOG_SOFTMAX:
		return true;
	default:
		return false;
	}
}

/* scatter_elements, scatter_nd: what x, idx and upd owe each other. */
static bool
check_scatter(struct infer *c)
{
	Shape x = shape_of(c, 0), idx = shape_of(c, 1), want = idx;
	int axis;

	if (!want_class(c, 1, "iu", "integers") || !same_type(c, 0, 2))
		return false;
	if (c->n->op == OP_SCATTER_ELEMENTS) {
		if (x.rank >= 0 && !fix_axis(c, c->n->attr.SCATTER_ELEMENTS
		                             .axis, x.rank, &axis))
			return false;
		if (x.rank >= 0 && idx.rank >= 0 && x.rank != idx.rank)
			return fail(c, "indices of rank %d for data of rank "
			            "%d", idx.rank, x.rank);
		return want_shape(c, 2, &want, "updates");
	}
	if (x.rank < 0 || idx.rank < 0)
		return true;
	if (idx.rank == 0 || idx.dim[idx.rank - 1] > x.rank)
		return fail(c, "indices do not fit data of rank %d", x.rank);
	if (idx.dim[idx.rank - 1] < 0)
		return true;
	want.rank = idx.rank - 1;
	for (int i = (int)idx.dim[idx.rank - 1]; i < x.rank; i++) {
		if (want.rank == MAX_RANK)
			return fail(c, "rank above %d is not supported",
			            MAX_RANK);
		want.dim[want.rank++] = x.dim[i];
	}
	return want_shape(c, 2, &want, "updates");
}

static bool
check_axis(struct infer *c, int64_t axis)
{
	int fixed, rank = in(c, 0)->shape.rank;

	return rank < 0 || fix_axis(c, axis, rank, &fixed);
}

/* Output like operand 0; an element-wise op broadcasts all that are not
 * static. */
static bool
infer_same(struct infer *c)
{
	Op op = c->n->op;
	Shape s = shape_of(c, 0);
	int nfull = c->n->nin;

	if (nfull > op_info[op].nstat)
		nfull = op_info[op].nstat;
	if (needs_float(op) && !want_class(c, 0, "f", "floats"))
		return false;
	switch (op) {
	case OP_SCATTER_ELEMENTS:
	case OP_SCATTER_ND:
		if (!check_scatter(c))
			return false;
		break;
	case OP_SOFTMAX:
	case OP_LOG_SOFTMAX:
		if (!check_axis(c, c->n->attr.SOFTMAX.axis))
			return false;
		break;
	case OP_CUMSUM:
		if (look(c, 1) == ABSENT
		    && !check_axis(c, c->n->attr.CUMSUM.axis))
			return false;
		break;
	case OP_TRILU:
		if (!want_rank(c, 0, 2))
			return false;
		break;
	default:
		for (int i = 1; i < nfull; i++) {
			bool fits = op_info[op].flags & F_EW
				? broadcast(c, 0, i + 1, &s)
				: want_shape(c, i, &s, "second operand");

			if (!fits || !same_type(c, 0, i))
				return false;
		}
	}
	return give(c, 0, in(c, 0)->dt, s);
}

/* Type of micro i's result, from its arguments'. */
static DType
micro_type(const struct infer *c, const struct body *b, int i)
{
	const struct micro *m = &b->micro[i];
	DType arg[3] = { DT_NONE, DT_NONE, DT_NONE };

	for (int k = 0; k < m->narg; k++)
		arg[k] = m->arg[k] < 0 ? b->micro[~m->arg[k]].dt
		                       : in(c, m->arg[k])->dt;
	if (m->op == OP_CAST)
		return (DType)m->attr.CAST.to;
	if (m->op == OP_WHERE)
		return arg[1];
	return rule_of[m->op] == infer_pred ? DT_BOOL : arg[0];
}

static bool
check_body(struct infer *c)
{
	const struct body *b = c->n->body;

	if (!b)
		return fail(c, "loop without a body");
	for (int i = 0; i < b->nmicro; i++) {
		const struct micro *m = &b->micro[i];

		if (m->op <= OP_NONE || m->op >= OP_COUNT || m->op == OP_LOOP
		    || !(op_info[m->op].flags & F_EW))
			return fail(c, "micro %d: not an element-wise op", i);
		if (m->narg < 1 || m->narg > 3 || m->narg < op_info[m->op].min
		    || m->narg > op_info[m->op].max
		    || (op_info[m->op].nstat != NOSTAT
		        && m->narg > op_info[m->op].nstat))
			return fail(c, "micro %d (%s): %d operands", i,
			            op_info[m->op].text, m->narg);
		for (int k = 0; k < m->narg; k++)
			if (m->arg[k] < 0 ? ~m->arg[k] >= i
			                  : !has(c, m->arg[k]))
				return fail(c, "micro %d (%s): operand %d "
				            "does not exist", i,
				            op_info[m->op].text, k);
		if (m->op == OP_CAST && (m->attr.CAST.to <= DT_NONE
		                         || m->attr.CAST.to >= DT_COUNT))
			return fail(c, "micro %d: cast to no type", i);
	}
	for (int i = 0; i < c->n->nout; i++)
		if (b->result[i] < 0 || b->result[i] >= b->nmicro)
			return fail(c, "output %d: no micro %d", i,
			            b->result[i]);
	return true;
}

/* The shape known of an output may exceed that of the inputs: a loop writes
 * the broadcast of what it reads to what its consumers want. */
static bool
infer_loop(struct infer *c)
{
	const struct body *b = c->n->body;
	Shape s;

	if (!check_body(c) || !broadcast(c, 0, c->n->nin, &s))
		return false;
	for (int i = 0; i < b->nmicro; i++) {
		DType dt = micro_type(c, b, i);

		if (b->micro[i].dt == DT_NONE)
			b->micro[i].dt = dt;
		else if (dt != DT_NONE && b->micro[i].dt != dt)
			return fail(c, "micro %d (%s): expected %s, found %s",
			            i, op_info[b->micro[i].op].text,
			            dtype_info[dt].text,
			            dtype_info[b->micro[i].dt].text);
	}
	for (int k = 0; k < c->n->nout; k++) {
		const Val *y = &c->g->val[c->n->out[k]];
		Shape wide = s;

		if (c->n->out[k] && y->shape.rank >= 0
		    && shape_broadcast(&wide, &y->shape))
			s = wide;
	}
	for (int k = 0; k < c->n->nout; k++)
		if (!give(c, k, b->micro[b->result[k]].dt, s))
			return false;
	return true;
}

/* ---- layout ---- */

/* Replace -1 in *want by what is left of `total` elements. */
static bool
fill_extent(struct infer *c, Shape *want, int hole, int64_t total)
{
	int64_t rest = 1;
	char from[TEXT], to[TEXT];

	for (int i = 0; i < want->rank; i++)
		if (i != hole && (want->dim[i] < 0
		                  || !mul_ok(rest, want->dim[i], &rest)))
			return true;
	if (hole < 0 && (total < 0 || rest == total))
		return true;
	if (hole >= 0 && total < 0)
		return true;
	if (hole >= 0 && rest > 0 && total % rest == 0) {
		want->dim[hole] = total / rest;
		return true;
	}
	if (hole >= 0 && rest == 0 && total == 0) {
		want->dim[hole] = 0;
		return true;
	}
	return fail(c, "%s cannot be reshaped to %s", text_of(from, c, 0),
	            shape_text(to, TEXT, DT_NONE, want));
}

static bool
infer_reshape(struct infer *c)
{
	IntList l = c->n->attr.RESHAPE.shape;
	const Shape *x = &in(c, 0)->shape;
	Shape s = { .rank = 0 };
	int hole = -1;

	if (look(c, 1) == COMPUTED) {
		int64_t n = length(c, 1);

		if (n > MAX_RANK)
			return fail(c, "rank %lld is not supported",
			            (long long)n);
		return give(c, 0, in(c, 0)->dt, unknown((int)n));
	}
	if (look(c, 1) == KNOWN && !read_list(c, 1, &l))
		return false;
	s.rank = l.n;
	for (int i = 0; i < l.n; i++) {
		s.dim[i] = l.v[i];
		if (l.v[i] == 0 && !c->n->attr.RESHAPE.allowzero) {
			if (x->rank >= 0 && i >= x->rank)
				return fail(c, "extent %d of the new shape "
				            "copies none of the old", i);
			s.dim[i] = x->rank >= 0 ? x->dim[i] : -1;
		} else if (l.v[i] == -1) {
			if (hole >= 0)
				return fail(c, "more than one -1 in the new "
				            "shape");
			hole = i;
		} else if (l.v[i] < 0) {
			return fail(c, "extent %lld in the new shape",
			            (long long)l.v[i]);
		}
	}
	return fill_extent(c, &s, hole, shape_nelem(x))
	       && give(c, 0, in(c, 0)->dt, s);
}

static bool
infer_squeeze(struct infer *c)
{
	IntList l = c->n->attr.SQUEEZE.axes;
	Shape x = shape_of(c, 0), s = { .rank = 0 };
	DType dt = in(c, 0)->dt;
	bool set[MAX_RANK], all;
	char text[TEXT];

	if (x.rank < 0)
		return give(c, 0, dt, x);
	if (look(c, 1) == COMPUTED) {
		int64_t n = length(c, 1);

		return give(c, 0, dt, unknown(n < 0 || n > x.rank ? -1
		                              : x.rank - (int)n));
	}
	if (!read_axes(c, 1, &l, x.rank, set))
		return false;
	all = l.n == 0 && look(c, 1) == ABSENT;
	for (int i = 0; i < x.rank; i++) {
		if (all && x.dim[i] < 0)
			return give(c, 0, dt, unknown(-1));
		if (set[i] && x.dim[i] > 1)
			return fail(c, "axis %d of %s has more than one "
			            "element", i, text_of(text, c, 0));
		if (!set[i] && !(all && x.dim[i] == 1))
			s.dim[s.rank++] = x.dim[i];
	}
	return give(c, 0, dt, s);
}

static bool
infer_unsqueeze(struct infer *c)
{
	IntList l = c->n->attr.UNSQUEEZE.axes;
	Shape x = shape_of(c, 0), s;
	int64_t n = look(c, 1) == ABSENT ? l.n : length(c, 1);
	bool set[MAX_RANK];

	if (x.rank < 0 || n < 0)
		return give(c, 0, in(c, 0)->dt, unknown(-1));
	if (n + x.rank > MAX_RANK)
		return fail(c, "rank above %d is not supported", MAX_RANK);
	s = unknown(x.rank + (int)n);
	if (look(c, 1) == COMPUTED)
		return give(c, 0, in(c, 0)->dt, s);
	if (!read_axes(c, 1, &l, s.rank, set))
		return false;
	for (int i = 0, k = 0; i < s.rank; i++)
		s.dim[i] = set[i] ? 1 : x.dim[k++];
	return give(c, 0, in(c, 0)->dt, s);
}

static int64_t
extent_product(const Shape *s, int first, int last)
{
	Shape part = { .rank = last - first };

	for (int i = 0; i < part.rank; i++)
		part.dim[i] = s->dim[first + i];
	return shape_nelem(&part);
}

static bool
infer_flatten(struct infer *c)
{
	int64_t axis = c->n->attr.FLATTEN.axis;
	Shape x = shape_of(c, 0), s = unknown(2);

	if (x.rank >= 0) {
		if (axis < -x.rank || axis > x.rank)
			return fail(c, "axis %lld is out of range for rank "
			            "%d", (long long)axis, x.rank);
		axis += axis < 0 ? x.rank : 0;
		s.dim[0] = extent_product(&x, 0, (int)axis);
		s.dim[1] = extent_product(&x, (int)axis, x.rank);
	}
	return give(c, 0, in(c, 0)->dt, s);
}

static bool
infer_expand(struct infer *c)
{
	IntList l = c->n->attr.EXPAND.shape;
	Shape s = shape_of(c, 0), to;
	char from[TEXT], want[TEXT];

	if (look(c, 1) == COMPUTED) {
		int64_t n = length(c, 1);

		to = unknown(n < 0 || n > MAX_RANK ? -1 : (int)n);
		/* an unknown extent here may be 1, and then x decides */
		if (!shape_broadcast(&s, &to))
			return fail(c, "shape does not broadcast");
		for (int i = 0; i < s.rank; i++)
			if (s.dim[i] == 1)
				s.dim[i] = -1;
		return give(c, 0, in(c, 0)->dt, s);
	}
	if (look(c, 1) == KNOWN && !read_list(c, 1, &l))
		return false;
	for (int i = 0; i < l.n; i++)
		if (l.v[i] < 0)
			return fail(c, "extent %lld in the new shape",
			            (long long)l.v[i]);
	to = shape_make(l.n, l.v);
	if (!shape_broadcast(&s, &to))
		return fail(c, "%s cannot be expanded to %s",
		            text_of(from, c, 0),
		            shape_text(want, TEXT, DT_NONE, &to));
	return give(c, 0, in(c, 0)->dt, s);
}

static bool
infer_transpose(struct infer *c)
{
	const IntList *perm = &c->n->attr.TRANSPOSE.perm;
	Shape x = shape_of(c, 0), s = x;
	bool seen[MAX_RANK] = { false };

	if (x.rank < 0)
		return give(c, 0, in(c, 0)->dt,
		            unknown(perm->n ? perm->n : -1));
	if (perm->n && perm->n != x.rank)
		return fail(c, "permutation of %d axes for rank %d", perm->n,
		            x.rank);
	for (int i = 0; i < x.rank; i++) {
		int64_t from = perm->n ? perm->v[i] : x.rank - 1 - i;

		if (from < 0 || from >= x.rank || seen[from])
			return fail(c, "perm is not a permutation");
		seen[from] = true;
		s.dim[i] = x.dim[from];
	}
	return give(c, 0, in(c, 0)->dt, s);
}

/* Extent of x[start:end:step], clamped as ONNX and numpy do. */
static int64_t
slice_extent(int64_t dim, int64_t start, int64_t end, int64_t step)
{
	int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;

	start += start < 0 ? dim : 0;
	end += end < 0 ? dim : 0;
	start = start < low ? low : start > high ? high : start;
	end = end < low ? low : end > high ? high : end;
	if (step > 0)
		return end > start ? (end - start - 1) / step + 1 : 0;
	/* -step would overflow for INT64_MIN, step + 1 does not */
	return start > end ? (start - end - 1) / -(step + (step == INT64_MIN))
	                     + 1 : 0;
}

/* Slice with its static operands still there. */
static bool
slice_operands(struct infer *c, Shape *s)
{
	IntList start, end, axes = { .n = 0 }, step;
	Shape x = shape_of(c, 0);

	*s = unknown(x.rank);
	for (int i = 1; i < c->n->nin; i++)
		if (look(c, i) == COMPUTED || x.rank < 0)
			return true;
	if (!has(c, 1) || !has(c, 2))
		return fail(c, "starts and ends belong together");
	if (!read_list(c, 1, &start) || !read_list(c, 2, &end)
	    || (has(c, 3) && !read_list(c, 3, &axes))
	    || (has(c, 4) && !read_list(c, 4, &step)))
		return false;
	if (start.n != end.n || (has(c, 3) && axes.n != start.n)
	    || (has(c, 4) && step.n != start.n) || start.n > x.rank)
		return fail(c, "starts, ends, axes and steps differ in "
		            "length or exceed the rank");
	*s = x;
	for (int i = 0; i < start.n; i++) {
		int axis;

		if (!fix_axis(c, has(c, 3) ? axes.v[i] : i, x.rank, &axis))
			return false;
		if (has(c, 4) && step.v[i] == 0)
			return fail(c, "step 0");
		if (x.dim[axis] >= 0)
			s->dim[axis] = slice_extent(x.dim[axis], start.v[i],
			                            end.v[i],
			                            has(c, 4) ? step.v[i] : 1);
	}
	return true;
}

/* With attributes alone the extents are the output's own; they must stay
 * within x. */
static bool
slice_dense(struct infer *c, Shape *s)
{
	const IntList *start = &c->n->attr.SLICE.start;
	const IntList *step = &c->n->attr.SLICE.step;
	Shape x = shape_of(c, 0);
	const Shape *y = &c->g->val[c->n->out[0]].shape;

	*s = unknown(x.rank);
	if (x.rank < 0)
		return true;
	if (start->n != x.rank || step->n != x.rank)
		return fail(c, "%d starts and %d steps for rank %d", start->n,
		            step->n, x.rank);
	for (int i = 0; i < x.rank && c->n->out[0]; i++) {
		int64_t last, n = y->rank == x.rank ? y->dim[i] : -1;

		if (n <= 0 || x.dim[i] < 0)
			continue;
		if (!mul_ok(n - 1, step->v[i], &last)
		    || !add_ok(last, start->v[i], &last)
		    || start->v[i] < 0 || start->v[i] >= x.dim[i]
		    || last < 0 || last >= x.dim[i])
			return fail(c, "axis %d: %lld elements from %lld by "
			            "%lld leave 0..%lld", i, (long long)n,
			            (long long)start->v[i],
			            (long long)step->v[i],
			            (long long)x.dim[i] - 1);
	}
	return true;
}

static bool
infer_slice(struct infer *c)
{
	Shape s;

	return (c->n->nin > 1 ? slice_operands(c, &s) : slice_dense(c, &s))
	       && give(c, 0, in(c, 0)->dt, s);
}

/* Extent of piece `index` when `dim` is cut into chunks. */
static bool
chunk_extent(struct infer *c, int64_t dim, int64_t chunk, int64_t *n)
{
	int64_t index = c->n->attr.PART.index, at;

	if (chunk <= 0)
		return fail(c, "pieces of %lld elements", (long long)chunk);
	if (!mul_ok(index, chunk, &at) || at > dim)
		return fail(c, "no piece %lld in %lld elements by %lld",
		            (long long)index, (long long)dim,
		            (long long)chunk);
	*n = dim - at < chunk ? dim - at : chunk;
	return true;
}

static bool
part_extent(struct infer *c, int64_t dim, int64_t *n)
{
	int64_t index = c->n->attr.PART.index, count = c->n->attr.PART.count;
	int64_t sum = 0, chunk = c->n->attr.PART.chunk;
	const Val *sizes = has(c, 1) ? in(c, 1) : NULL;

	if (index < 0)
		return fail(c, "piece %lld", (long long)index);
	if (look(c, 1) == COMPUTED || (dim < 0 && !sizes))
		return true;
	if (sizes && sizes->shape.rank == 0)
		chunk = val_int(sizes, 0);
	else if (sizes) {
		if (index >= val_nelem(sizes))
			return fail(c, "no piece %lld in %lld",
			            (long long)index,
			            (long long)val_nelem(sizes));
		for (int64_t i = 0; i < val_nelem(sizes); i++)
			if (val_int(sizes, i) < 0
			    || !add_ok(sum, val_int(sizes, i), &sum))
				return fail(c, "bad size of piece %lld",
				            (long long)i);
		if (dim >= 0 && sum != dim)
			return fail(c, "pieces of %lld elements in all for "
			            "an extent of %lld", (long long)sum,
			            (long long)dim);
		*n = val_int(sizes, index);
		return true;
	}
	if (dim < 0)
		return true;
	if (!chunk && count > 0)
		chunk = dim / count + (dim % count != 0);
	return chunk_extent(c, dim, chunk ? chunk : 1, n);
}

static bool
infer_part(struct infer *c)
{
	Shape x = shape_of(c, 0);
	int axis;

	if (x.rank < 0)
		return give(c, 0, in(c, 0)->dt, x);
	if (x.rank == 0)
		return fail(c, "a scalar has no pieces");
	if (!fix_axis(c, c->n->attr.PART.axis, x.rank, &axis))
		return false;
	int64_t n = -1;

	if (!part_extent(c, x.dim[axis], &n))
		return false;
	x.dim[axis] = n;
	if (!c->n->attr.PART.keepdims) {
		if (n > 1)
			return fail(c, "a piece of %lld elements keeps its "
			            "axis", (long long)n);
		x.rank--;
		for (int i = axis; i < x.rank; i++)
			x.dim[i] = x.dim[i + 1];
	}
	return give(c, 0, in(c, 0)->dt, x);
}

static bool
infer_concat(struct infer *c)
{
	Shape s = shape_of(c, 0);
	int axis = 0;
	char a[TEXT], b[TEXT];

	for (int i = 1; i < c->n->nin; i++)
		if (s.rank < 0)
			s = unknown(shape_of(c, i).rank);
	if (s.rank < 0)
		return give(c, 0, in(c, 0)->dt, s);
	if (s.rank == 0)
		return fail(c, "scalars cannot be joined");
	if (!fix_axis(c, c->n->attr.CONCAT.axis, s.rank, &axis))
		return false;
	s.dim[axis] = 0;
	for (int i = 0; i < c->n->nin; i++) {
		Shape x = shape_of(c, i);
		int64_t n = x.rank < 0 ? -1 : x.dim[axis];

		if (!same_type(c, 0, i))
			return false;
		if (s.dim[axis] < 0 || n < 0)
			s.dim[axis] = -1;
		else if (!add_ok(s.dim[axis], n, &s.dim[axis]))
			return fail(c, "extent overflows");
		if (x.rank < 0)
			continue;
		x.dim[axis] = s.dim[axis];
		if (!dims_fit(&s, &x))
			return fail(c, "cannot be joined on axis %d: %s and "
			            "%s", axis, text_of(a, c, 0),
			            text_of(b, c, i));
		for (int k = 0; k < s.rank; k++)
			if (k != axis && s.dim[k] < 0)
				s.dim[k] = x.dim[k];
	}
	return give(c, 0, in(c, 0)->dt, s);
}

/* What pad adds on each axis, from operands or attributes. */
static bool
pad_widths(struct infer *c, int rank, int64_t width[MAX_RANK])
{
	const IntList *begin = &c->n->attr.PAD.begin, *end = &c->n->attr.PAD.end;
	IntList axes = { .n = rank };
	bool set[MAX_RANK];

	memset(width, 0, MAX_RANK * sizeof *width);
	if (look(c, 1) == ABSENT) {
		if (begin->n != rank || end->n != rank)
			return fail(c, "%d and %d widths for rank %d",
			            begin->n, end->n, rank);
		for (int i = 0; i < rank; i++)
			if (!add_ok(begin->v[i], end->v[i], &width[i]))
				return fail(c, "extent overflows");
		return true;
	}
	for (int i = 0; i < rank; i++)
		axes.v[i] = i;
	if (!read_axes(c, 3, &axes, rank, set))
		return false;
	if (length(c, 1) != 2 * axes.n)
		return fail(c, "%lld widths for %d axes",
		            (long long)length(c, 1), axes.n);
	for (int i = 0; i < axes.n; i++) {
		int64_t axis = axes.v[i] + (axes.v[i] < 0 ? rank : 0);

		if (!add_ok(val_int(in(c, 1), i),
		            val_int(in(c, 1), axes.n + i), &width[axis]))
			return fail(c, "extent overflows");
	}
	return true;
}

static bool
infer_pad(struct infer *c)
{
	Shape s = shape_of(c, 0);
	int64_t width[MAX_RANK];

	if (s.rank < 0 || look(c, 1) == COMPUTED || look(c, 3) == COMPUTED)
		return give(c, 0, in(c, 0)->dt, unknown(s.rank));
	if (!pad_widths(c, s.rank, width))
		return false;
	for (int i = 0; i < s.rank; i++)
		if (s.dim[i] >= 0 && (!add_ok(s.dim[i], width[i], &s.dim[i])
		                      || s.dim[i] < 0))
			return fail(c, "axis %d: extent %lld after padding",
			            i, (long long)s.dim[i]);
	return give(c, 0, in(c, 0)->dt, s);
}

static bool
infer_tile(struct infer *c)
{
	IntList l = c->n->attr.TILE.repeats;
	Shape s = shape_of(c, 0);

	if (s.rank < 0 || look(c, 1) == COMPUTED)
		return give(c, 0, in(c, 0)->dt, unknown(s.rank));
	if (look(c, 1) == KNOWN && !read_list(c, 1, &l))
		return false;
	if (l.n != s.rank)
		return fail(c, "%d repeats for rank %d", l.n, s.rank);
	for (int i = 0; i < s.rank; i++)
		if (l.v[i] < 0 || (s.dim[i] >= 0
		    && !mul_ok(s.dim[i], l.v[i], &s.dim[i])))
			return fail(c, "%lld repeats of axis %d",
			            (long long)l.v[i], i);
	return give(c, 0, in(c, 0)->dt, s);
}

/* ---- indexing ---- */

/* Append extents first..last-1 of x to *s. */
static bool
append(struct infer *c, Shape *s, const Shape *x, int first, int last)
{
	for (int i = first; i < last; i++) {
		if (s->rank == MAX_RANK)
			return fail(c, "rank above %d is not supported",
			            MAX_RANK);
		s->dim[s->rank++] = x->dim[i];
	}
	return true;
}

static bool
infer_gather(struct infer *c)
{
	Shape x = shape_of(c, 0), idx = shape_of(c, 1), s = { .rank = 0 };
	int axis;

	if (!want_class(c, 1, "iu", "integers"))
		return false;
	if (x.rank < 0 || idx.rank < 0)
		return give(c, 0, in(c, 0)->dt, unknown(-1));
	if (!want_rank(c, 0, 1)
	    || !fix_axis(c, c->n->attr.GATHER.axis, x.rank, &axis))
		return false;
	return append(c, &s, &x, 0, axis) && append(c, &s, &idx, 0, idx.rank)
	       && append(c, &s, &x, axis + 1, x.rank)
	       && give(c, 0, in(c, 0)->dt, s);
}

static bool
infer_gather_elements(struct infer *c)
{
	Shape x = shape_of(c, 0), idx = shape_of(c, 1);
	int axis;

	if (!want_class(c, 1, "iu", "integers"))
		return false;
	if (x.rank >= 0 && !fix_axis(c, c->n->attr.GATHER_ELEMENTS.axis,
	                             x.rank, &axis))
		return false;
	if (x.rank >= 0 && idx.rank >= 0 && x.rank != idx.rank)
		return fail(c, "indices of rank %d for data of rank %d",
		            idx.rank, x.rank);
	return give(c, 0, in(c, 0)->dt, idx);
}

static bool
infer_gather_nd(struct infer *c)
{
	Shape x = shape_of(c, 0), idx = shape_of(c, 1), s = { .rank = 0 };
	int64_t batch = c->n->attr.GATHER_ND.batch, k;

	if (!want_class(c, 1, "iu", "integers"))
		return false;
	if (x.rank < 0 || idx.rank < 0)
		return give(c, 0, in(c, 0)->dt, unknown(-1));
	if (batch < 0 || batch >= idx.rank || batch >= x.rank)
		return fail(c, "%lld batch dims for ranks %d and %d",
		            (long long)batch, x.rank, idx.rank);
	k = idx.dim[idx.rank - 1];
	if (k < 0)
		return give(c, 0, in(c, 0)->dt, unknown(-1));
	if (k > x.rank - batch)
		return fail(c, "indices of %lld numbers for rank %d",
		            (long long)k, x.rank);
	return append(c, &s, &idx, 0, idx.rank - 1)
	       && append(c, &s, &x, (int)(batch + k), x.rank)
	       && give(c, 0, in(c, 0)->dt, s);
}

static bool
infer_scatter_add(struct infer *c)
{
	const IntList *l = &c->n->attr.SCATTER_ADD.shape;
	Shape idx = shape_of(c, 0), want = { .rank = 0 }, s;
	int axis;

	s = shape_make(l->n, l->v);
	if (!want_class(c, 0, "iu", "integers")
	    || !fix_axis(c, c->n->attr.SCATTER_ADD.axis, s.rank, &axis))
		return false;
	if (s.rank == 0)
		return fail(c, "a scalar has no rows");
	if (idx.rank >= 0 && (!append(c, &want, &s, 0, axis)
	                      || !append(c, &want, &idx, 0, idx.rank)
	                      || !append(c, &want, &s, axis + 1, s.rank)
	                      || !want_shape(c, 1, &want, "updates")))
		return false;
	if (has(c, 2) && (!want_shape(c, 2, &s, "accumulator")
	                  || !same_type(c, 1, 2)))
		return false;
	return give(c, 0, in(c, 1)->dt, s);
}

static bool
infer_one_hot(struct infer *c)
{
	Shape idx = shape_of(c, 0), s = { .rank = 0 }, depth = unknown(1);
	int axis;

	if (idx.rank < 0)
		return give(c, 0, in(c, 2)->dt, unknown(-1));
	if (look(c, 1) == KNOWN) {
		if (length(c, 1) != 1 || val_int(in(c, 1), 0) < 0)
			return fail(c, "depth is not one positive number");
		depth.dim[0] = val_int(in(c, 1), 0);
	}
	if (!fix_axis(c, c->n->attr.ONE_HOT.axis, idx.rank + 1, &axis))
		return false;
	return append(c, &s, &idx, 0, axis) && append(c, &s, &depth, 0, 1)
	       && append(c, &s, &idx, axis, idx.rank)
	       && give(c, 0, in(c, 2)->dt, s);
}

/* ---- shapes and sequences of numbers ---- */

static bool
infer_shape(struct infer *c)
{
	int64_t r = in(c, 0)->shape.rank, n;

	if (r < 0)
		return give(c, 0, DT_I64, unknown(1));
	n = slice_extent(r, c->n->attr.SHAPE.start, c->n->attr.SHAPE.end, 1);
	return give(c, 0, DT_I64, SHAPE(n));
}

static bool
infer_size(struct infer *c)
{
	return give(c, 0, DT_I64, shape_scalar());
}

static bool
infer_range(struct infer *c)
{
	Shape s = unknown(1);

	if (!same_type(c, 0, 1) || !same_type(c, 0, 2))
		return false;
	for (int i = 0; i < 3; i++) {
		if (look(c, i) != KNOWN)
			return give(c, 0, in(c, 0)->dt, s);
		if (length(c, i) != 1)
			return fail(c, "operand %d is not a scalar", i);
	}
	if (class_of(c, 0) == 'f') {
		double a = val_float(in(c, 0), 0), step = val_float(in(c, 2), 0);
		double n = (val_float(in(c, 1), 0) - a) / step;

		/* also refuses NaN */
		if (!(n < 0x1p60))
			return fail(c, "range without an end");
		s.dim[0] = n > 0 ? (int64_t)n + (n > (double)(int64_t)n) : 0;
		return give(c, 0, in(c, 0)->dt, s);
	}
	int64_t a = val_int(in(c, 0), 0), b = val_int(in(c, 1), 0);
	int64_t step = val_int(in(c, 2), 0), span;

	if (step == 0 || step == INT64_MIN
	    || __builtin_sub_overflow(b, a, &span) || span == INT64_MIN)
		return fail(c, "range without an end");
	if (step < 0) {
		step = -step;
		span = -span;
	}
	s.dim[0] = span > 0 ? (span - 1) / step + 1 : 0;
	return give(c, 0, in(c, 0)->dt, s);
}

static bool
infer_constant_of_shape(struct infer *c)
{
	int64_t to = c->n->attr.CONSTANT_OF_SHAPE.dt;
	DType dt = to > DT_NONE && to < DT_COUNT ? (DType)to : DT_F32;
	IntList l;

	if (look(c, 0) == COMPUTED) {
		int64_t n = length(c, 0);

		return give(c, 0, dt, unknown(n < 0 || n > MAX_RANK ? -1
		                              : (int)n));
	}
	if (!read_list(c, 0, &l))
		return false;
	for (int i = 0; i < l.n; i++)
		if (l.v[i] < 0)
			return fail(c, "extent %lld", (long long)l.v[i]);
	return give(c, 0, dt, shape_make(l.n, l.v));
}

static bool
infer_nonzero(struct infer *c)
{
	const Val *x = in(c, 0);
	Shape s = unknown(2);

	if (x->shape.rank >= 0)
		s.dim[0] = x->shape.rank ? x->shape.rank : 1;
	if (val_is_const(x)) {
		s.dim[1] = 0;
		for (int64_t i = 0; i < val_nelem(x); i++)
			s.dim[1] += val_float(x, i) != 0;
	}
	return give(c, 0, DT_I64, s);
}

/* ---- reductions ---- */

static Shape
reduced(const Shape *x, const bool set[MAX_RANK], bool keepdims)
{
	Shape s = { .rank = 0 };

	for (int i = 0; i < x->rank; i++)
		if (!set[i] || keepdims)
			s.dim[s.rank++] = set[i] ? 1 : x->dim[i];
	return s;
}

static bool
infer_arg(struct infer *c)
{
	Shape x = shape_of(c, 0);
	bool set[MAX_RANK] = { false };
	int axis;

	if (x.rank < 0)
		return give(c, 0, DT_I64, x);
	if (!fix_axis(c, c->n->attr.ARGMAX.axis, x.rank, &axis))
		return false;
	set[axis] = true;
	return give(c, 0, DT_I64,
	            reduced(&x, set, c->n->attr.ARGMAX.keepdims != 0));
}

/* All five reduce ops have the same attributes in the same order. */
static bool
infer_reduce(struct infer *c)
{
	IntList l = c->n->attr.REDUCE_SUM.axes;
	bool keepdims = c->n->attr.REDUCE_SUM.keepdims != 0;
	Shape x = shape_of(c, 0);
	bool set[MAX_RANK];

	if (x.rank < 0)
		return give(c, 0, in(c, 0)->dt, x);
	if (look(c, 1) == COMPUTED) {
		int64_t n = keepdims ? 0 : length(c, 1);

		return give(c, 0, in(c, 0)->dt,
		            unknown(n < 0 || n > x.rank ? -1
		                    : x.rank - (int)n));
	}
	if (!read_axes(c, 1, &l, x.rank, set))
		return false;
	if (l.n == 0 && !c->n->attr.REDUCE_SUM.noop)
		for (int i = 0; i < x.rank; i++)
			set[i] = true;
	return give(c, 0, in(c, 0)->dt, reduced(&x, set, keepdims));
}

/* ---- products ---- */

/* Rows and columns of operand i after its transposition; a vector is a row on
 * the left and a column on the right. */
static void
matrix_of(const struct infer *c, int i, bool trans, int64_t *rows,
          int64_t *cols)
{
	const Shape *s = &in(c, i)->shape;
	int64_t last = s->dim[s->rank - 1];

	if (s->rank == 1) {
		*rows = i == 0 ? 1 : last;
		*cols = i == 0 ? last : 1;
		return;
	}
	*rows = trans ? last : s->dim[s->rank - 2];
	*cols = trans ? s->dim[s->rank - 2] : last;
}

static bool
matmul_shape(struct infer *c, Shape *s)
{
	Shape a = shape_of(c, 0), b = shape_of(c, 1);
	int64_t m, k, k2, n;
	char at[TEXT], bt[TEXT];
	int ra = a.rank, rb = b.rank;

	matrix_of(c, 0, c->n->attr.MATMUL.ta != 0, &m, &k);
	matrix_of(c, 1, c->n->attr.MATMUL.tb != 0, &k2, &n);
	if (k >= 0 && k2 >= 0 && k != k2)
		return fail(c, "inner extents %lld and %lld differ: %s%s and "
		            "%s%s", (long long)k, (long long)k2,
		            text_of(at, c, 0),
		            c->n->attr.MATMUL.ta ? " transposed" : "",
		            text_of(bt, c, 1),
		            c->n->attr.MATMUL.tb ? " transposed" : "");
	a.rank = ra > 2 ? ra - 2 : 0;
	b.rank = rb > 2 ? rb - 2 : 0;
	if (!shape_broadcast(&a, &b))
		return fail(c, "leading extents do not broadcast: %s and %s",
		            text_of(at, c, 0), text_of(bt, c, 1));
	*s = a;
	if (ra > 1)
		s->dim[s->rank++] = m;
	if (rb > 1)
		s->dim[s->rank++] = n;
	return true;
}

static bool
infer_matmul(struct infer *c)
{
	Shape s = unknown(-1), row;

	if (!want_rank(c, 0, 1) || !want_rank(c, 1, 1) || !same_type(c, 0, 1)
	    || !want_class(c, 0, "fiu", "numbers"))
		return false;
	if (in(c, 0)->shape.rank < 0 || in(c, 1)->shape.rank < 0)
		return give(c, 0, in(c, 0)->dt, s);
	if (!matmul_shape(c, &s))
		return false;
	row = SHAPE(s.rank ? s.dim[s.rank - 1] : 1);
	if (has(c, 2) && (!want_shape(c, 2, &row, "bias")
	                  || !same_type(c, 0, 2)))
		return false;
	if (has(c, 3) && (!want_shape(c, 3, &s, "accumulator")
	                  || !same_type(c, 0, 3)))
		return false;
	return give(c, 0, in(c, 0)->dt, s);
}

/* ---- normalisation ---- */

/* Splits x's shape at the axis: statistics in front, a row behind. */
static bool
split_rows(struct infer *c, int x, int64_t axis, Shape *lead, Shape *row)
{
	Shape s = shape_of(c, x);
	int at;

	*lead = *row = unknown(-1);
	if (s.rank < 0)
		return true;
	if (s.rank == 0)
		return fail(c, "a scalar has no rows");
	if (!fix_axis(c, axis, s.rank, &at))
		return false;
	lead->rank = row->rank = 0;
	return append(c, lead, &s, 0, at) && append(c, row, &s, at, s.rank);
}

static bool
infer_layernorm(struct infer *c)
{
	Shape lead, row;

	if (!split_rows(c, 0, c->n->attr.LAYERNORM.axis, &lead, &row)
	    || !want_class(c, 0, "f", "floats")
	    || !want_shape(c, 1, &row, "scale")
	    || (has(c, 2) && !want_shape(c, 2, &row, "bias")))
		return false;
	return give(c, 0, in(c, 0)->dt, shape_of(c, 0))
	       && give(c, 1, DT_F32, lead) && give(c, 2, DT_F32, lead);
}

static bool
infer_layernorm_grad(struct infer *c)
{
	Shape lead, row, x = shape_of(c, 1);

	return split_rows(c, 1, c->n->attr.LAYERNORM_GRAD.axis, &lead, &row)
	       && want_shape(c, 0, &x, "adjoint")
	       && want_shape(c, 2, &row, "scale")
	       && want_shape(c, 3, &lead, "mean")
	       && want_shape(c, 4, &lead, "rstd")
	       && give(c, 0, in(c, 1)->dt, x)
	       && give(c, 1, in(c, 2)->dt, row)
	       && give(c, 2, in(c, 2)->dt, row);
}

static bool
infer_rmsnorm(struct infer *c)
{
	Shape lead, row;

	return split_rows(c, 0, c->n->attr.RMSNORM.axis, &lead, &row)
	       && want_class(c, 0, "f", "floats")
	       && want_shape(c, 1, &row, "scale")
	       && give(c, 0, in(c, 0)->dt, shape_of(c, 0))
	       && give(c, 1, DT_F32, lead);
}

static bool
infer_rmsnorm_grad(struct infer *c)
{
	Shape lead, row, x = shape_of(c, 1);

	return split_rows(c, 1, c->n->attr.RMSNORM_GRAD.axis, &lead, &row)
	       && want_shape(c, 0, &x, "adjoint")
	       && want_shape(c, 2, &row, "scale")
	       && want_shape(c, 3, &lead, "rstd")
	       && give(c, 0, in(c, 1)->dt, x)
	       && give(c, 1, in(c, 2)->dt, row);
}

/* ---- losses ---- */

/* Labels must be scores' shape without axis 1; returns that in *want. */
static bool
check_labels(struct infer *c, int scores, int labels, int weights,
             Shape *want)
{
	Shape x = shape_of(c, scores), classes;

	*want = shape_of(c, labels);
	if (!want_class(c, scores, "f", "floats")
	    || !want_class(c, labels, "iu", "integers"))
		return false;
	if (x.rank < 0)
		return true;
	if (!want_rank(c, scores, 2))
		return false;
	want->rank = 1;
	want->dim[0] = x.dim[0];
	classes = SHAPE(x.dim[1]);
	return append(c, want, &x, 2, x.rank)
	       && want_shape(c, labels, want, "labels")
	       && (!has(c, weights)
	           || want_shape(c, weights, &classes, "weights"));
}

/* sce and nll have `reduction` at the same place. */
static Shape
loss_shape(const struct infer *c, const Shape *labels)
{
	return c->n->attr.SCE.reduction == 0 ? *labels : shape_scalar();
}

static bool
infer_sce(struct infer *c)
{
	Shape rows;

	return check_labels(c, 0, 1, 2, &rows)
	       && give(c, 0, in(c, 0)->dt, loss_shape(c, &rows))
	       && give(c, 1, DT_F32, rows)
	       && give(c, 2, DT_F32, shape_scalar());
}

static bool
infer_sce_grad(struct infer *c)
{
	Shape rows, loss, one = shape_scalar();

	if (!check_labels(c, 1, 2, 5, &rows))
		return false;
	loss = loss_shape(c, &rows);
	return want_shape(c, 0, &loss, "adjoint of the loss")
	       && want_shape(c, 3, &rows, "log-sum-exp")
	       && want_shape(c, 4, &one, "divisor")
	       && give(c, 0, in(c, 1)->dt, shape_of(c, 1));
}

static bool
infer_nll(struct infer *c)
{
	Shape rows;

	return check_labels(c, 0, 1, 2, &rows)
	       && give(c, 0, in(c, 0)->dt, loss_shape(c, &rows))
	       && give(c, 1, DT_F32, shape_scalar());
}

static bool
infer_nll_grad(struct infer *c)
{
	const IntList *l = &c->n->attr.NLL_GRAD.shape;
	Shape s = shape_make(l->n, l->v), rows = { .rank = 1 }, loss, classes;

	if (s.rank < 2)
		return fail(c, "expected rank 2 or more in attribute shape");
	rows.dim[0] = s.dim[0];
	classes = SHAPE(s.dim[1]);
	if (!append(c, &rows, &s, 2, s.rank)
	    || !want_class(c, 1, "iu", "integers")
	    || !want_shape(c, 1, &rows, "labels")
	    || (has(c, 3) && !want_shape(c, 3, &classes, "weights")))
		return false;
	loss = loss_shape(c, &rows);
	return want_shape(c, 0, &loss, "adjoint of the loss")
	       && give(c, 0, in(c, 0)->dt, s);
}

static bool
infer_classifier(struct infer *c)
{
	Shape x = shape_of(c, 0), w = shape_of(c, 1), rows, bias;
	int tb = c->n->attr.CLASSIFIER.tb != 0;
	Shape want = unknown(2);

	if (c->n->nout < 3 || c->n->nout > 4)
		return fail(c, "%d outputs", c->n->nout);
	if (c->n->attr.CLASSIFIER.reduction == 0)
		return fail(c, "a classifier needs a scalar loss");
	if (!want_shape(c, 0, &want, "rows") || !want_class(c, 0, "f", "floats")
	    || !want_class(c, 2, "iu", "integers") || !same_type(c, 0, 1))
		return false;
	if (x.rank == 2)
		want.dim[tb] = x.dim[1];
	if (!want_shape(c, 1, &want, "weights"))
		return false;
	rows = SHAPE(x.rank == 2 ? x.dim[0] : -1);
	bias = SHAPE(w.rank == 2 ? w.dim[!tb] : -1);
	if (!want_shape(c, 2, &rows, "labels")
	    || (has(c, 3) && !want_shape(c, 3, &bias, "bias")))
		return false;
	return give(c, 0, DT_F32, shape_scalar())
	       && give(c, 1, in(c, 0)->dt, x)
	       && give(c, 2, in(c, 1)->dt, w)
	       && give(c, 3, in(c, 0)->dt, bias);
}

/* ---- attention ---- */

struct heads {
	int64_t b, h, g, t, s, d, e;
};

static bool
unify(int64_t *a, int64_t b)
{
	if (*a < 0)
		*a = b;
	return *a < 0 || b < 0 || *a == b;
}

/* Extents of the operands q, k, v that start at i; unknown ones are -1. */
static bool
read_heads(struct infer *c, int i, struct heads *h)
{
	char q[TEXT], k[TEXT], v[TEXT];
	Shape s[3];
	Shape four = unknown(4);

	for (int j = 0; j < 3; j++) {
		if (!want_shape(c, i + j, &four, "query, key or value")
		    || !want_class(c, i + j, "f", "floats")
		    || !same_type(c, i, i + j))
			return false;
		s[j] = shape_of(c, i + j);
		if (s[j].rank < 0)
			s[j] = four;
	}
	*h = (struct heads){ s[0].dim[0], s[0].dim[1], s[1].dim[1],
	                     s[0].dim[2], s[1].dim[2], s[0].dim[3],
	                     s[2].dim[3] };
	if (!unify(&h->b, s[1].dim[0]) || !unify(&h->b, s[2].dim[0])
	    || !unify(&h->g, s[2].dim[1]) || !unify(&h->s, s[2].dim[2])
	    || !unify(&h->d, s[1].dim[3])
	    || (h->g == 0 && h->h != 0)
	    || (h->g > 0 && h->h >= 0 && h->h % h->g != 0))
		return fail(c, "query, key and value do not fit: %s, %s, %s",
		            text_of(q, c, i), text_of(k, c, i + 1),
		            text_of(v, c, i + 2));
	return true;
}

static bool
check_mask(struct infer *c, int i, const struct heads *h)
{
	Shape scores = SHAPE(h->b, h->h, h->t, h->s), both = scores;
	char want[TEXT], found[TEXT];

	if (!has(c, i))
		return true;
	if (!want_class(c, i, "fb", "floats or bool"))
		return false;
	if (in(c, i)->shape.rank <= 4
	    && shape_broadcast(&both, &in(c, i)->shape)
	    && dims_fit(&both, &scores))
		return true;
	return fail(c, "mask %s does not broadcast to %s", text_of(found, c, i),
	            shape_text(want, TEXT, DT_NONE, &scores));
}

static bool
infer_attention(struct infer *c)
{
	struct heads h;

	return read_heads(c, 0, &h) && check_mask(c, 3, &h)
	       && give(c, 0, in(c, 0)->dt, SHAPE(h.b, h.h, h.t, h.e))
	       && give(c, 1, DT_F32, SHAPE(h.b, h.h, h.t));
}

static bool
infer_attention_grad(struct infer *c)
{
	struct heads h;
	Shape o, lse, packed;
	int64_t width = -1;

	if (!read_heads(c, 1, &h) || !check_mask(c, 6, &h))
		return false;
	o = SHAPE(h.b, h.h, h.t, h.e);
	lse = SHAPE(h.b, h.h, h.t);
	if (!want_shape(c, 0, &o, "adjoint") || !want_shape(c, 4, &o, "output")
	    || !want_shape(c, 5, &lse, "log-sum-exp"))
		return false;
	if (!c->n->attr.ATTENTION_GRAD.packed) {
		if (c->n->nout != 3)
			return fail(c, "expected 3 outputs, found %d",
			            c->n->nout);
		return give(c, 0, in(c, 1)->dt, shape_of(c, 1))
		       && give(c, 1, in(c, 2)->dt, shape_of(c, 2))
		       && give(c, 2, in(c, 3)->dt, shape_of(c, 3));
	}
	if (c->n->nout != 1)
		return fail(c, "expected 1 output, found %d", c->n->nout);
	if (!unify(&h.d, h.e) || !unify(&h.t, h.s))
		return fail(c, "only equal extents can be packed");
	if (h.h >= 0 && h.g >= 0 && h.d >= 0
	    && !mul_ok(h.h + 2 * h.g, h.d, &width))
		return fail(c, "extent overflows");
	packed = SHAPE(h.b, h.t, width);
	return give(c, 0, in(c, 1)->dt, packed);
}

/* ---- update ---- */

static bool
infer_fill(struct infer *c)
{
	const IntList *l = &c->n->attr.FILL.shape;

	for (int i = 0; i < l->n; i++)
		if (l->v[i] < 0)
			return fail(c, "extent %lld", (long long)l->v[i]);
	return give(c, 0, DT_F32, shape_make(l->n, l->v));
}

static bool
infer_scalar(struct infer *c)
{
	return give(c, 0, DT_F32, shape_scalar());
}

/* sgd(p, g, norm?), adamw(p, g, m, v, norm?): all but the norm look alike,
 * and output k is operand 0, 2, 3. */
static bool
infer_update(struct infer *c)
{
	int full = c->n->op == OP_ADAMW ? 4 : 2;
	Shape p = shape_of(c, 0), one = shape_scalar();

	for (int i = 1; i < full; i++)
		if (!want_shape(c, i, &p, "gradient or state"))
			return false;
	if (has(c, full) && !want_shape(c, full, &one, "norm"))
		return false;
	for (int k = 0; k < c->n->nout; k++)
		if (!give(c, k, in(c, k ? k + 1 : 0)->dt, p))
			return false;
	return true;
}

/* ---- entry ---- */

bool
shape_infer(Graph *g, Diag *d, Node *n)
{
	struct infer c = { g, d, n };
	const struct op_info *info = &op_info[n->op];

	if (n->nin < info->min || (info->max != VARIADIC && n->nin > info->max))
		return fail(&c, "%d operands, expected %d%s", n->nin,
		            info->min, info->max > info->min ? " or more" : "");
	for (int i = 0; i < info->min; i++)
		if (!n->in[i])
			return fail(&c, "operand %d is absent", i);
	for (int i = info->min; i < n->nin && n->op != OP_MATMUL; i++)
		if (!n->in[i] && info->max == VARIADIC)
			return fail(&c, "operand %d is absent", i);
	return rule_of[n->op](&c);
}
