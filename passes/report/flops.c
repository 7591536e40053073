/* FLOPs of a step: what the model asks for, what the schedule runs, and what
 * the usual formulas say.
 *
 * model     the products of forward and their gradients, each once; masks
 *           hide nothing (the usual definition), scores are not made twice
 * hardware  the products that the schedule runs
 * formulas  for L equal layers of a GPT: 72 B L s h^2 (1 + s/6h + v/12hL).
 *           With attention's core recomputed, (1 + s/3h + ...) counts the
 *           replay as often as forward and backward together, (1 + 2s/9h +
 *           ...) once; Korthikanti et al. 2023 use both.
 */
#include "passes/report/memory.h"
#include "passes/cost/cost.h"

/* FLOPs of a node of the reference as the mathematics has it. */
static double
model_flops(const Graph *g, const Node *n, bool causal)
{
	double f = node_cost(g, n).product;
	bool grad = n->op == OP_ATTENTION_GRAD;

	if (n->op != OP_ATTENTION && !grad)
		return f;
	if (!causal && (grad ? n->attr.ATTENTION_GRAD.causal
	                : n->attr.ATTENTION.causal))
		f *= 2;
	/* four products of five: the scores come from forward */
	return grad ? f * 4 / 5 : f;
}

struct flop_report
flop_report(const Pass *p, const Plan *plan, const struct memory_report *r)
{
	struct flop_report f = { .all = plan->sum.step_flops };
	double b = (double)r->batch, s = (double)r->seq, h = (double)r->hidden;
	double v = (double)r->vocab, n = (double)r->seg.nlayer, base, end;

	FOR_NODES (node, p->reference) {
		f.model += model_flops(p->reference, node, false);
		f.causal += model_flops(p->reference, node, true);
	}
	for (int64_t i = 0; i < plan->nstep; i++)
		f.hardware += plan->step[i].product;
	if (!r->seq || !r->hidden || !r->vocab || !r->seg.nlayer)
		return f;
	base = 72 * b * n * s * h * h;
	end = v / (12 * h * n);
	f.paper_model = base * (1 + s / (6 * h) + end);
	f.paper_third = base * (1 + s / (3 * h) + end);
	f.paper_ninth = base * (1 + 2 * s / (9 * h) + end);
	return f;
}
