/* Rules for rows: decomposed layer and RMS normalisation, log-softmax, and
 * cross entropy as log-softmax and negative log likelihood.
 *
 * A norm is recognised at its division, with a scale of ones.  The product with
 * the weight and the sum with the bias are absorbed afterwards, so the various
 * orders of exporters need no rules of their own.
 */
#include "passes/canon/match.h"

#include <string.h>

/* v = reduce_mean over the trailing axes from *axis on, dims kept. */
static ValId
mean_of(const struct rewrite *w, ValId v, int *axis)
{
	NodeId n = rw_is(w, v, OP_REDUCE_MEAN);
	const Node *node = &w->g->node[n];
	const IntList *axes = &node->attr.REDUCE_MEAN.axes;
	int rank;
	unsigned set = 0;

	if (!n || !node->attr.REDUCE_MEAN.keepdims)
		return 0;
	rank = rw_shape(w, rw_in(w, n, 0))->rank;
	if (axes->n == 0 || axes->n > rank)
		return 0;
	for (int i = 0; i < axes->n; i++)
		set |= 1u << axes->v[i];
	*axis = rank - axes->n;
	if (set != ((1u << rank) - 1u) >> *axis << *axis)
		return 0;
	return rw_in(w, n, 0);
}

/* The denominator of a norm's root: a in x / a or in x * (1 / a). */
static bool
match_quotient(const struct rewrite *w, NodeId root, ValId *num, ValId *den)
{
	if (w->g->node[root].op == OP_DIV) {
		*num = rw_in(w, root, 0);
		*den = rw_in(w, root, 1);
		return true;
	}
	for (int i = 0; i < 2; i++) {
		NodeId r = rw_is(w, rw_in(w, root, i), OP_RECIP);

		if (r && rw_is(w, rw_in(w, r, 0), OP_SQRT)) {
			*num = rw_in(w, root, 1 - i);
			*den = rw_in(w, r, 0);
			return true;
		}
	}
	return false;
}

/* den = sqrt(mean(x * x) + eps): x. */
static ValId
root_mean_square(const struct rewrite *w, ValId den, double *eps, int *axis)
{
	NodeId s = rw_is(w, den, OP_SQRT), a, m;
	ValId square, x;
	int i;

	a = s ? rw_is(w, rw_in(w, s, 0), OP_ADD) : 0;
	if (!a)
		return 0;
	i = rw_scalar(w, rw_in(w, a, 1), eps) ? 0 : 1;
	if (i == 1 && !rw_scalar(w, rw_in(w, a, 0), eps))
		return 0;
	square = mean_of(w, rw_in(w, a, i), axis);
	m = square ? rw_is(w, square, OP_MUL) : 0;
	if (!m || *eps < 0)
		return 0;
	x = rw_in(w, m, 0);
	return x == rw_in(w, m, 1) ? x : 0;
}

/* A scale of ones for a norm of x over dims axis.. */
static ValId
ones_for(struct rewrite *w, ValId x, int axis)
{
	const Val *v = &w->g->val[x];
	Shape s = { .rank = v->shape.rank - axis };
	int64_t n = 1;
	DType dt = v->dt;
	size_t esize = (size_t)dtype_info[dt].nbytes;
	const Val *one;
	ValId c;
	char *data;

	for (int i = 0; i < s.rank; i++) {
		s.dim[i] = v->shape.dim[axis + i];
		n *= s.dim[i];
	}
	c = rw_const_like(w, x, 1);     /* moves the array of values */
	one = &w->g->val[c];
	data = arena_array(w->mem, (size_t)n, esize);
	for (int64_t i = 0; i < n; i++)
		memcpy(data + (size_t)i * esize, one->data, esize);
	return rw_const(w, dt, s, data);
}

bool
match_norm(struct rewrite *w, NodeId root)
{
	ValId num, den, x, v, in[2];
	double eps;
	int axis, mean_axis;
	Attr a;
	NodeId sub;
	bool layer = false;

	if (!match_quotient(w, root, &num, &den) || !rw_float(w, num))
		return false;
	if (root_mean_square(w, den, &eps, &axis) != num)
		return false;
	x = num;
	sub = rw_is(w, num, OP_SUB);
	if (sub && mean_of(w, rw_in(w, sub, 1), &mean_axis)
	    == rw_in(w, sub, 0) && mean_axis == axis) {
		x = rw_in(w, sub, 0);
		layer = true;
	}
	in[0] = x;
	in[1] = ones_for(w, x, axis);
	a = attr_default(layer ? OP_LAYERNORM : OP_RMSNORM);
	if (layer) {
		a.LAYERNORM.axis = axis;
		a.LAYERNORM.eps = eps;
	} else {
		a.RMSNORM.axis = axis;
		a.RMSNORM.eps = eps;
	}
	v = rw_emit(w, layer ? OP_LAYERNORM : OP_RMSNORM, 2, in, &a);
	return rw_replace(w, root, v);
}

/* v as the norm's weight, which has only the last dims of the norm's input.
 * Drops leading extents of 1. */
static ValId
as_weight(struct rewrite *w, ValId v, NodeId norm)
{
	const Shape want = *rw_shape(w, rw_in(w, norm, 1));
	const Shape *s = rw_shape(w, v);
	int lead = s->rank - want.rank;

	if (lead < 0 || rw_dt(w, v) != rw_dt(w, rw_in(w, norm, 1)))
		return 0;
	for (int i = 0; i < s->rank; i++)
		if (s->dim[i] != (i < lead ? 1 : want.dim[i - lead]))
			return 0;
	return rw_reshape(w, v, &want);
}

/* Whether input i of root is a norm without bias and without other readers. */
static NodeId
bare_norm(const struct rewrite *w, NodeId root, int i)
{
	ValId v = rw_in(w, root, i);
	NodeId n = rw_is(w, v, OP_LAYERNORM);

	if (!n)
		n = rw_is(w, v, OP_RMSNORM);
	if (!n || !rw_single(w, v)
	    || !shape_eq(rw_shape(w, v), rw_shape(w, rw_out(w, root))))
		return 0;
	return w->g->node[n].op == OP_LAYERNORM && rw_in(w, n, 2) ? 0 : n;
}

/* Absorb the root's other operand as operand k of a bare norm: its scale, so
 * far ones, or its missing bias. */
static bool
absorb_weight(struct rewrite *w, NodeId root, int k)
{
	for (int i = 0; i < 2; i++) {
		NodeId n = bare_norm(w, root, i);
		Op op = w->g->node[n].op;
		Attr a = w->g->node[n].attr;
		ValId in[3] = { rw_in(w, n, 0), rw_in(w, n, 1) };
		double x;

		if (!n || (k == 1 ? !rw_scalar(w, in[1], &x) || x != 1
		                  : op != OP_LAYERNORM))
			continue;
		in[k] = as_weight(w, rw_in(w, root, 1 - i), n);
		if (in[k])
			return rw_replace(w, root,
			                  rw_emit(w, op, k + 1, in, &a));
	}
	return false;
}

bool
match_norm_scale(struct rewrite *w, NodeId root)
{
	return absorb_weight(w, root, 1);
}

bool
match_norm_bias(struct rewrite *w, NodeId root)
{
	return absorb_weight(w, root, 2);
}

/* ---- softmax and loss ---- */

bool
match_log_softmax(struct rewrite *w, NodeId root)
{
	ValId y = rw_in(w, root, 0), x;
	NodeId s = rw_is(w, y, OP_SOFTMAX);
	Attr a = attr_default(OP_LOG_SOFTMAX);

	if (!s || !rw_single(w, y))
		return false;
	a.LOG_SOFTMAX.axis = w->g->node[s].attr.SOFTMAX.axis;
	x = rw_in(w, s, 0);
	return rw_replace(w, root, rw_emit(w, OP_LOG_SOFTMAX, 1, &x, &a));
}

/* nll(log_softmax(x, axis 1)) is sce(x), which keeps one number per row for
 * the gradient instead of all log-probabilities. */
bool
match_nll(struct rewrite *w, NodeId root)
{
	const Node *nll = &w->g->node[root];
	ValId logp = rw_in(w, root, 0), in[3];
	NodeId s = rw_is(w, logp, OP_LOG_SOFTMAX);
	Attr a = attr_default(OP_SCE);

	if (!s || !rw_single(w, logp)
	    || w->g->node[s].attr.LOG_SOFTMAX.axis != 1)
		return false;
	if (nll->nout > 1 && nll->out[1] && w->nuse[nll->out[1]])
		return false;
	a.SCE.reduction = nll->attr.NLL.reduction;
	a.SCE.ignore = nll->attr.NLL.ignore;
	in[0] = rw_in(w, s, 0);
	in[1] = rw_in(w, root, 1);
	in[2] = rw_in(w, root, 2);
	return rw_replace(w, root, rw_emit(w, OP_SCE, in[2] ? 3 : 2, in, &a));
}
