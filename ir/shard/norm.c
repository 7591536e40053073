/* The norm by which gradients are clipped, of a sharded graph: every gradient
 * that is applied counts once.  States do not tell, since to leave a gradient
 * out of a sum, or to have it there twice, is as linear as anything.
 */
#include "ir/shard/shard.h"

#include <math.h>

struct norm {
	const Graph *g;
	double *weight;                 /* by value: how often its squares are
	                                 * in the norm */
	bool readable;
};

/* `times` of the sum of squares that v is.  Optim makes them of few ops. */
static void
count_squares(struct norm *c, ValId v, double times, int depth)
{
	const Graph *g = c->g;
	const Node *n = &g->node[g->val[v].def];
	double x;

	if (!g->val[v].def || depth > 100) {
		c->readable = false;
		return;
	}
	switch (n->op) {
	case OP_ALL_REDUCE:
		count_squares(c, n->in[0], times, depth + 1);
		break;
	case OP_ADD:
		count_squares(c, n->in[0], times, depth + 1);
		count_squares(c, n->in[1], times, depth + 1);
		break;
	case OP_MUL:
		c->readable &= val_splat(g, n->in[1], &x);
		if (c->readable)
			count_squares(c, n->in[0], times * x, depth + 1);
		break;
	case OP_SUM_SQUARES:
		/* of each of the ranks that share a piece */
		for (int k = 0; k < n->nin; k++)
			c->weight[n->in[k]] += times * (double)
				g->val[n->in[k]].split.shared;
		break;
	default:
		c->readable = false;
	}
}

static int
fault(Diag *d, const Val *norm, const Val *v, double weight)
{
	diag_error(d, "value %s: it is in %s %g times, expected as often as "
	           "it is applied", v->name, norm->name, weight);
	return 1;
}

static int
check_one(struct norm *c, Diag *d, const Node *norm)
{
	const Graph *g = c->g;
	ValId y = norm->out[0];
	int nsum = (int)norm->attr.GRAD_NORM.sums, faults = 0;

	for (int k = 0; k < norm->nin; k++)
		if (k < norm->nin - nsum)
			c->weight[norm->in[k]]++;
		else
			count_squares(c, norm->in[k], 1, 0);
	if (!c->readable)
		return !diag_error(d, "value %s: not a sum of squares",
		                   g->val[y].name);
	FOR_NODES (n, g) {
		if (!(op_info[n->op].flags & F_UPDATE)
		    || n->in[n->nin - 1] != y)
			continue;
		if (fabs(c->weight[n->in[1]] - 1) > 1e-6)
			faults += fault(d, &g->val[y], &g->val[n->in[1]],
			                c->weight[n->in[1]]);
		c->weight[n->in[1]] = 0;
	}
	for (ValId v = 1; v < g->nval; v++)
		if (c->weight[v] != 0)
			faults += fault(d, &g->val[y], &g->val[v],
			                c->weight[v]);
	return faults;
}

int
shard_check_norm(const Graph *g, Diag *d, Arena *tmp)
{
	int faults = 0;

	if (g->props & P_FUSED)
		return 0;       /* in loops */
	FOR_NODES (n, g)
		if (n->op == OP_GRAD_NORM) {
			struct norm c = { g, arena_array(tmp, g->nval,
				sizeof *c.weight), true };

			faults += check_one(&c, d, n);
		}
	return faults;
}
