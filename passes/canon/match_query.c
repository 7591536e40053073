/* What rules ask of a graph that is being rewritten; see match.h. */
#include "passes/canon/match.h"

#include <math.h>

ValId
rw_now(const struct rewrite *w, ValId v)
{
	while (w->fwd[v])
		v = w->fwd[v];
	return v;
}

ValId
rw_in(const struct rewrite *w, NodeId n, int i)
{
	const Node *node = &w->g->node[n];

	return i < node->nin ? rw_now(w, node->in[i]) : 0;
}

NodeId
rw_def(const struct rewrite *w, ValId v)
{
	return w->g->val[v].def;
}

NodeId
rw_is(const struct rewrite *w, ValId v, Op op)
{
	NodeId n = w->g->val[v].def;

	return n && w->g->node[n].op == op && w->g->val[v].result_index == 0
		? n : 0;
}

bool
rw_single(const struct rewrite *w, ValId v)
{
	return w->nuse[v] == 1 && !w->g->val[v].output;
}

bool
rw_float(const struct rewrite *w, ValId v)
{
	return dtype_info[w->g->val[v].dt].cls == 'f';
}

bool
rw_scalar(const struct rewrite *w, ValId v, double *x)
{
	return v && val_is_const(&w->g->val[v]) && val_splat(w->g, v, x);
}

bool
near_to(double a, double b, double tol)
{
	return fabs(a - b) <= tol * fabs(b);
}

ValId
rw_scaled(const struct rewrite *w, ValId v, double *coef, bool single)
{
	for (;;) {
		NodeId n;
		ValId x;
		double c;

		if (single && !rw_single(w, v))
			return v;
		if ((n = rw_is(w, v, OP_MUL)) != 0) {
			int i = rw_scalar(w, rw_in(w, n, 1), &c) ? 0 : 1;

			if (i == 1 && !rw_scalar(w, rw_in(w, n, 0), &c))
				return v;
			x = rw_in(w, n, i);
		} else if ((n = rw_is(w, v, OP_DIV)) != 0
		           && rw_scalar(w, rw_in(w, n, 1), &c) && c != 0) {
			x = rw_in(w, n, 0);
			c = 1 / c;
		} else {
			return v;
		}
		if (!rw_float(w, v)
		    || !shape_eq(rw_shape(w, x), rw_shape(w, v)))
			return v;
		*coef *= c;
		v = x;
	}
}
