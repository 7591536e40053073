/* The form that evaluates: what training does by the batch is done by what it
 * has left behind.
 *
 * A batch norm that keeps running statistics goes by them, and keeps them no
 * more; one that keeps none goes by the batch's, as in training.  Dropout and
 * the updates of statistics vanish in the rules of canon, as these are told
 * that there is no training.
 */
#include "passes/canon/canon.h"
#include "passes/canon/loss.h"
#include "passes/canon/match.h"

/* v, or what it is a multiple of: PyTorch's variances are of n - 1 values. */
static ValId
multiple_of(const struct rewrite *w, ValId v)
{
	NodeId mul = rw_is(w, v, OP_MUL);
	double x;

	for (int i = 0; mul && i < 2; i++)
		if (rw_scalar(w, rw_in(w, mul, i), &x))
			return rw_in(w, mul, 1 - i);
	return v;
}

/* The running statistic that this one of the batch goes into; 0: none.  That
 * of a module which is called twice is updated twice. */
static ValId
running(const struct rewrite *w, ValId new)
{
	NodeId update = 0;
	ValId stat;

	for (NodeId n = 1; n < w->g->nnode && !update; n++)
		if (w->g->node[n].op == OP_BN_UPDATE && !w->dead[n]
		    && multiple_of(w, rw_in(w, n, 1)) == new)
			update = n;
	if (!update)
		return 0;
	stat = rw_in(w, update, 0);
	while ((update = rw_is(w, stat, OP_BN_UPDATE)))
		stat = rw_in(w, update, 0);
	return w->g->val[stat].kind == V_BUFFER ? stat : 0;
}

static ValId
cast(struct rewrite *w, ValId v, DType to)
{
	Attr a = attr_default(OP_CAST);

	a.CAST.to = to;
	return !v || rw_dt(w, v) == to ? v : rw_emit(w, OP_CAST, 1, &v, &a);
}

/* One element per channel, in float32, to broadcast against x. */
static ValId
per_channel(struct rewrite *w, ValId v, ValId x)
{
	Shape s = *rw_shape(w, x);

	for (int i = 0; i < s.rank; i++)
		s.dim[i] = i == 1 ? s.dim[1] : 1;
	return rw_reshape(w, cast(w, v, DT_F32), &s);
}

/* (x - mean) * (scale / sqrt(var + eps)) + bias, of ONNX's
 * BatchNormalization. */
static bool
by_running(struct rewrite *w, NodeId root)
{
	const Node *n = &w->g->node[root];
	ValId mean = running(w, n->out[1]), var = running(w, n->out[2]);
	ValId x = rw_in(w, root, 0), scale = rw_in(w, root, 1);
	ValId bias = rw_in(w, root, 2), k, y;
	double eps = n->attr.BATCHNORM.eps;

	if (!mean || !var || !w->nuse[rw_out(w, root)])
		return false;
	k = cast(w, var, DT_F32);
	k = rw_binary(w, OP_ADD, k, rw_const_like(w, k, eps));
	k = rw_unary(w, OP_RECIP, rw_unary(w, OP_SQRT, k));
	if (scale)
		k = rw_binary(w, OP_MUL, cast(w, scale, DT_F32), k);
	y = rw_binary(w, OP_SUB, cast(w, x, DT_F32), per_channel(w, mean, x));
	y = rw_binary(w, OP_MUL, y, per_channel(w, k, x));
	if (bias)
		y = rw_binary(w, OP_ADD, y, per_channel(w, bias, x));
	return rw_replace(w, root, cast(w, y, rw_dt(w, x)));
}

static const struct rule rules[] = {
	{ OP_BATCHNORM, by_running }, { OP_NONE, NULL }
};

bool
canon_evaluate(Pass *p, Graph *g)
{
	struct rewrite w;

	if (!loss_keep_outputs(p, g))
		return false;
	FOR_NODES (n, g)
		if (n->op == OP_BN_UPDATE)
			g->val[n->out[0]].output = false;
	rw_init(&w, p, g);
	return rw_run(&w, rules) && canon_run(p, g);
}
