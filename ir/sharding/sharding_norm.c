/* The norm by which gradients are clipped, of a sharded graph: every gradient
 * that is applied counts once.  Placements cannot show this: a sum that
 * omits or repeats a gradient is just as linear.
 */
#include "ir/sharding/sharding.h"

struct norm_check {
	const Graph *g;
	int *times;                     /* by value: its squares are in the
	                                 * norm */
	bool readable;
};

/* The squares that v, a sum over ranks, is made of. */
static void
count_squares(struct norm_check *c, ValId v)
{
	const Graph *g = c->g;
	const Node *n = &g->node[g->val[v].def];

	if (n->op != OP_SUM_SQUARES) {
		/* sums over ranks, replicas, stages; of several; none */
		c->readable &= op_info[n->op].flags & (F_COMM | F_JOINT)
			|| sharding_is_zero(g, v);
		for (int k = 0; k < n->nin; k++)
			count_squares(c, n->in[k]);
		return;
	}
	for (int k = 0; k < n->nin; k++)
		c->times[n->in[k]]++;
}

static int
report_count(Diag *d, const Val *norm, const Val *v, int times)
{
	diag_error(d, "value %s: the norm %s includes it %d times, expected "
	           "once per update that uses it", v->name, norm->name, times);
	return 1;
}

/* Whether another stage counts it. */
static bool
is_received(const Graph *g, ValId v)
{
	const Node *n = &g->node[g->val[v].def];

	while (op_info[n->op].flags & F_COMM && n->nin > 0)
		n = &g->node[g->val[n->in[0]].def];
	return op_info[n->op].flags & F_STAGES;
}

static int
check_norm(struct norm_check *c, Diag *d, const Node *norm)
{
	const Graph *g = c->g;
	ValId y = norm->out[0];
	int nsum = (int)norm->attr.GRAD_NORM.sums, faults = 0;

	for (int k = 0; k < norm->nin; k++)
		if (k < norm->nin - nsum)
			c->times[norm->in[k]]++;
		else
			count_squares(c, norm->in[k]);
	if (!c->readable)
		return !diag_error(d, "value %s: not a sum of squares",
		                   g->val[y].name);
	FOR_NODES (n, g) {
		if (!(op_info[n->op].flags & F_UPDATE)
		    || n->nin <= op_norm(n->op) || n->in[op_norm(n->op)] != y)
			continue;
		if (c->times[n->in[1]] != !is_received(g, n->in[1]))
			faults += report_count(d, &g->val[y], &g->val[n->in[1]],
			                       c->times[n->in[1]]);
		c->times[n->in[1]] = 0;
	}
	for (ValId v = 1; v < g->nval; v++)
		if (c->times[v] != 0)
			faults += report_count(d, &g->val[y], &g->val[v],
			                       c->times[v]);
	return faults;
}

int
sharding_check_norm(const Graph *g, Diag *d, Arena *tmp)
{
	int faults = 0;

	if (g->props & P_FUSED)
		return 0;       /* in loops */
	FOR_NODES (n, g)
		if (n->op == OP_GRAD_NORM) {
			struct norm_check c = { g, arena_array(tmp, g->nval,
				sizeof *c.times), true };

			faults += check_norm(&c, d, n);
		}
	return faults;
}
