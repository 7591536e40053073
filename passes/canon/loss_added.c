/* Losses that --loss adds to a graph that has none: the table of kinds, and the
 * graph of each.
 *
 *   ce     softmax cross entropy of logits to class numbers
 *   bce    of logits to probabilities of yes, element by element
 *   kl     Kullback-Leibler divergence of softmax from probabilities of classes
 *   mse, l1, huber   by the difference to a target
 *
 * by the formulas of PyTorch's CrossEntropyLoss, BCEWithLogitsLoss, KLDivLoss
 * (over rows), MSELoss, L1Loss and HuberLoss.  The target of the comparison is
 * a new input: `labels`, class numbers, or `target`, of the output's shape and
 * type.  16-bit outputs are converted to float32 first; for ce, only with
 * weights.
 */
#include "passes/canon/canon.h"
#include "passes/canon/loss.h"

#include <float.h>
#include <string.h>

/* ---- building ---- */

static ValId
loss_op(struct loss_builder *m, Op op, int nin, const ValId *in,
        const Attr *attr)
{
	for (int i = 0; i < nin; i++)
		if (!in[i])
			return 0;
	return emit_op(m->g, m->p->diag, op, nin, in, attr, m->like);
}

static ValId
loss_unary(struct loss_builder *m, Op op, ValId a)
{
	return loss_op(m, op, 1, &a, NULL);
}

static ValId
loss_binary(struct loss_builder *m, Op op, ValId a, ValId b)
{
	return loss_op(m, op, 2, (ValId[]){ a, b }, NULL);
}

/* A scalar constant of v's type. */
static ValId
scalar_like(struct loss_builder *m, ValId v, double x)
{
	return v ? val_scalar(m->g, m->g->val[v].dt, x) : 0;
}

static ValId
scale_value(struct loss_builder *m, ValId v, double x)
{
	return x == 1 ? v : loss_binary(m, OP_MUL, v, scalar_like(m, v, x));
}

static ValId
loss_cast(struct loss_builder *m, ValId v, DType to)
{
	Attr a = attr_cast(to);

	return !v || m->g->val[v].dt == to ? v
	       : loss_op(m, OP_CAST, 1, &v, &a);
}

static ValId
upcast_half(struct loss_builder *m, ValId v)
{
	return v && dtype_is_half(m->g->val[v].dt) ? loss_cast(m, v, DT_F32)
		: v;
}

static ValId
reshape_value(struct loss_builder *m, ValId v, const Shape *s)
{
	Attr a = attr_reshape(s);

	return !v || shape_eq(&m->g->val[v].shape, s) ? v
	       : loss_op(m, OP_RESHAPE, 1, &v, &a);
}

/* The sum over one axis, which is dropped. */
static ValId
sum_along(struct loss_builder *m, ValId v, int axis)
{
	Attr a = attr_default(OP_REDUCE_SUM);

	a.REDUCE_SUM.keepdims = 0;
	a.REDUCE_SUM.axes.v[a.REDUCE_SUM.axes.n++] = axis;
	return loss_op(m, OP_REDUCE_SUM, 1, &v, &a);
}

/* The sum, or the mean, of all elements. */
static ValId
reduce_elements(struct loss_builder *m, ValId v, bool sum)
{
	Attr a = attr_default(sum ? OP_REDUCE_SUM : OP_REDUCE_MEAN);
	IntList *axes = sum ? &a.REDUCE_SUM.axes : &a.REDUCE_MEAN.axes;

	*(sum ? &a.REDUCE_SUM.keepdims : &a.REDUCE_MEAN.keepdims) = 0;
	for (int i = 0; v && i < m->g->val[v].shape.rank; i++)
		axes->v[axes->n++] = i;
	if (!v || axes->n == 0)
		return v;
	return loss_op(m, sum ? OP_REDUCE_SUM : OP_REDUCE_MEAN, 1, &v, &a);
}

/* The weights, of v's type. */
static ValId
weights_const(struct loss_builder *m, ValId v)
{
	ValId w = val_const(m->g, "loss.weights", DT_F32,
	                    SHAPE(m->spec.nweight), m->spec.weight);

	return v ? loss_cast(m, w, m->g->val[v].dt) : 0;
}

/* ---- target of the comparison ---- */

static bool
has_reader(const Graph *g, ValId v)
{
	FOR_NODES (n, g)
		for (int i = 0; i < n->nin; i++)
			if (n->in[i] == v)
				return true;
	return g->val[v].output;
}

/* A new input, or one of that name that the graph declares and does not
 * use. */
static ValId
add_input(struct loss_builder *m, const char *name, DType dt, const Shape *s)
{
	Pass *p = m->p;
	Graph *g = m->g;
	ValId v = val_find(g, name);
	char have[160], want[160];
	Shape whole = *s;

	if (!v) {
		if (g->halves && whole.rank > 0)
			whole.dim[0] *= 2;
		p->result.added = arena_printf(p->keep, "--loss %s adds the "
			"input '%s', %s", p->opt->loss, name,
			shape_text(want, sizeof want, dt, &whole));
		return val_new(g, V_INPUT, name, dt, *s);
	}
	if (g->val[v].kind != V_INPUT || has_reader(g, v)) {
		diag_error(p->diag, "--loss adds an input '%s', but the graph "
		           "already uses that name", name);
		return 0;
	}
	if (shape_eq(&g->val[v].shape, s)
	    && (g->val[v].dt == dt
	        || (dt == DT_I64 && g->val[v].dt == DT_I32)))
		return v;
	diag_error(p->diag, "input '%s' is %s, but the loss expects %s", name,
	           shape_text(have, sizeof have, g->val[v].dt,
	                      &g->val[v].shape),
	           shape_text(want, sizeof want, dt, s));
	return 0;
}

static ValId
add_target(struct loss_builder *m)
{
	const Val *x = &m->g->val[m->x];
	Shape s = x->shape;

	return upcast_half(m, add_input(m, "target", x->dt, &s));
}

/* ---- classes ---- */

/* The axis of classes, from 0; -1 after a diagnostic. */
static int
class_axis(struct loss_builder *m)
{
	const Val *x = &m->g->val[m->x];
	double at = m->spec.number[LOSS_AXIS];
	int rank = x->shape.rank, axis = (int)(at < 0 ? at + rank : at);
	char text[160];

	shape_text(text, sizeof text, x->dt, &x->shape);
	if (axis < 0 || axis >= rank) {
		diag_error(m->p->diag, "--loss %s: output '%s' is %s, which "
		           "has no axis %g", m->kind->name, x->name, text,
		           at);
		return -1;
	}
	if (x->shape.dim[axis] != 1)
		return axis;
	diag_error(m->p->diag, "--loss %s: output '%s' is %s, expected two or "
	           "more classes on %s axis: with one class the loss is always "
	           "0; use --loss bce, or mse", m->kind->name, x->name, text,
	           axis == rank - 1 ? "the last" : "that");
	return -1;
}

/* v, shaped like the output, as rows of classes. */
static ValId
class_rows(struct loss_builder *m, ValId v, int axis)
{
	Attr a = attr_default(OP_TRANSPOSE);
	IntList *perm = &a.TRANSPOSE.perm;
	Shape s = m->g->val[m->x].shape;
	int64_t classes = s.dim[axis];

	if (axis < s.rank - 1) {
		for (int i = 0; i < s.rank; i++)
			if (i != axis)
				perm->v[perm->n++] = i;
		perm->v[perm->n++] = axis;
		v = loss_op(m, OP_TRANSPOSE, 1, &v, &a);
	}
	s.dim[axis] = 1;
	s = SHAPE(shape_nelem(&s), classes);
	return reshape_value(m, v, &s);
}

static ValId
emit_log_softmax(struct loss_builder *m, ValId x)
{
	Attr a = attr_default(OP_LOG_SOFTMAX);

	a.LOG_SOFTMAX.axis = 1;
	return loss_op(m, OP_LOG_SOFTMAX, 1, &x, &a);
}

/* 1 for labels that count, else 0; of the type of `like`. */
static ValId
label_mask(struct loss_builder *m, ValId labels, ValId like, ValId *ignored)
{
	DType dt = m->g->val[labels].dt;

	*ignored = loss_binary(m, OP_EQ, labels, val_scalar(m->g, dt,
	                       m->spec.number[LOSS_IGNORE]));
	return like ? loss_cast(m, loss_unary(m, OP_NOT, *ignored),
	                        m->g->val[like].dt) : 0;
}

/* Label smoothing: the mean over all classes of the loss with each as the
 * label, with the divisor of the main part. */
static ValId
smoothing_term(struct loss_builder *m, ValId x, ValId labels, int64_t classes)
{
	ValId each = emit_log_softmax(m, upcast_half(m, x));
	ValId ignored, sum, in[3];
	ValId count = label_mask(m, labels, each, &ignored);
	ValId weight = m->spec.weight ? weights_const(m, each) : 0;

	each = weight ? loss_binary(m, OP_MUL, each, weight) : each;
	each = each ? sum_along(m, each, 1) : 0;
	sum = reduce_elements(m, loss_binary(m, OP_MUL, each, count), true);
	if (weight) {
		in[0] = ignored;
		in[1] = val_scalar(m->g, m->g->val[labels].dt, 0);
		in[2] = labels;
		in[2] = loss_op(m, OP_WHERE, 3, in, NULL);
		count = loss_binary(m, OP_MUL, count,
		                    loss_binary(m, OP_GATHER, weight, in[2]));
	}
	if (!m->spec.sum)
		sum = loss_binary(m, OP_DIV, sum,
		                  reduce_elements(m, count, true));
	return scale_value(m, sum,
	                   -m->spec.number[LOSS_SMOOTHING] / (double)classes);
}

static ValId
make_ce(struct loss_builder *m)
{
	Shape s = m->g->val[m->x].shape;
	double part = m->spec.number[LOSS_SMOOTHING];
	int axis = class_axis(m);
	int64_t classes = axis < 0 ? 0 : s.dim[axis];
	Attr a = attr_default(OP_SCE);
	ValId in[3] = { 0 }, y, more;

	if (axis < 0)
		return 0;
	if (m->spec.weight && m->spec.nweight != classes) {
		diag_error(m->p->diag, "--loss ce: expected %lld weights, one "
		           "per class, found %d", (long long)classes,
		           m->spec.nweight);
		return 0;
	}
	s.rank--;
	memmove(s.dim + axis, s.dim + axis + 1,
	        (size_t)(s.rank - axis) * sizeof *s.dim);
	in[1] = add_input(m, "labels", DT_I64, &s);
	in[0] = in[1] ? class_rows(m, m->spec.weight ? upcast_half(m, m->x)
	                                             : m->x, axis) : 0;
	s = SHAPE(shape_nelem(&s));
	in[1] = in[0] ? reshape_value(m, in[1], &s) : 0;
	if (m->spec.weight)
		in[2] = weights_const(m, in[0]);
	a.SCE.reduction = m->spec.sum ? 2 : 1;
	a.SCE.ignore = (int64_t)m->spec.number[LOSS_IGNORE];
	y = loss_op(m, OP_SCE, m->spec.weight ? 3 : 2, in, &a);
	if (!y || part == 0)
		return y;
	more = smoothing_term(m, in[0], in[1], classes);
	y = scale_value(m, upcast_half(m, y), 1 - part);
	return loss_binary(m, OP_ADD, y, more);
}

/* sum of t (log t - log softmax x), where 0 log 0 is 0; the mean is over
 * rows. */
static ValId
make_kl(struct loss_builder *m)
{
	int axis = class_axis(m);
	ValId t = axis < 0 ? 0 : add_target(m), x, d;

	if (!t)
		return 0;
	t = class_rows(m, t, axis);
	x = emit_log_softmax(m, class_rows(m, upcast_half(m, m->x), axis));
	d = loss_binary(m, OP_MAX, t, scalar_like(m, t, FLT_MIN));
	d = loss_binary(m, OP_SUB, loss_unary(m, OP_LOG, d), x);
	d = loss_binary(m, OP_MUL, t, d);
	return d ? reduce_elements(m, sum_along(m, d, 1), m->spec.sum) : 0;
}

/* ---- element by element ---- */

/* t softplus(-x) w + (1 - t) softplus(x): neither is a small difference of
 * large numbers. */
static ValId
make_bce(struct loss_builder *m)
{
	const Shape *s = &m->g->val[m->x].shape;
	ValId t, x, yes, no;

	if (m->spec.nweight > 1
	    && (s->rank < 1 || s->dim[s->rank - 1] != m->spec.nweight)) {
		diag_error(m->p->diag, "--loss bce: expected one pos_weight, "
		           "or one per element of the last axis of '%s', found "
		           "%d", m->g->val[m->x].name, m->spec.nweight);
		return 0;
	}
	t = add_target(m);
	x = upcast_half(m, m->x);
	yes = loss_unary(m, OP_SOFTPLUS, loss_unary(m, OP_NEG, x));
	yes = loss_binary(m, OP_MUL, t, yes);
	if (m->spec.nweight == 1)
		yes = scale_value(m, yes, m->spec.weight[0]);
	else if (m->spec.weight)
		yes = loss_binary(m, OP_MUL, yes, weights_const(m, yes));
	no = loss_binary(m, OP_SUB, scalar_like(m, t, 1), t);
	no = loss_binary(m, OP_MUL, no, loss_unary(m, OP_SOFTPLUS, x));
	return reduce_elements(m, loss_binary(m, OP_ADD, yes, no), m->spec.sum);
}

static ValId
target_difference(struct loss_builder *m)
{
	ValId t = add_target(m);

	return loss_binary(m, OP_SUB, upcast_half(m, m->x), t);
}

static ValId
make_mse(struct loss_builder *m)
{
	ValId d = target_difference(m);

	return reduce_elements(m, loss_binary(m, OP_MUL, d, d), m->spec.sum);
}

static ValId
make_l1(struct loss_builder *m)
{
	return reduce_elements(m, loss_unary(m, OP_ABS, target_difference(m)),
	                       m->spec.sum);
}

/* q (|d| - q / 2), where q is the smaller of |d| and delta. */
static ValId
make_huber(struct loss_builder *m)
{
	ValId a = loss_unary(m, OP_ABS, target_difference(m));
	ValId delta = scalar_like(m, a, m->spec.number[LOSS_DELTA]);
	ValId q = loss_binary(m, OP_MIN, a, delta);
	ValId rest = loss_binary(m, OP_SUB, a, scale_value(m, q, 0.5));

	return reduce_elements(m, loss_binary(m, OP_MUL, q, rest), m->spec.sum);
}

#define K(key) (1u << LOSS_##key)

const struct loss_kind loss_kinds[] = {
	{ "ce", "logits", 2, K(AXIS) | K(IGNORE) | K(SMOOTHING) | K(WEIGHTS)
	  | K(REDUCTION), "softmax", make_ce },
	{ "bce", "logits", 0, K(POS_WEIGHT) | K(REDUCTION), "sigmoid",
	  make_bce },
	{ "kl", "logits", 2, K(AXIS) | K(REDUCTION), "softmax", make_kl },
	{ "mse", "output", 0, K(REDUCTION), NULL, make_mse },
	{ "l1", "output", 0, K(REDUCTION), NULL, make_l1 },
	{ "huber", "output", 0, K(DELTA) | K(REDUCTION), NULL, make_huber },
};
const size_t loss_nkind = sizeof loss_kinds / sizeof *loss_kinds;
