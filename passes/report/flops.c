/* FLOPs of a step: of the model, of the schedule, and by the usual formulas.
 *
 * model     the products of forward and their gradients, each once; masks
 *           hide nothing (the usual definition), scores are not made twice
 * hardware  the products that the schedule runs
 * formulas  for L equal layers of a GPT: 72 B L s h^2 (1 + s/6h + v/12hL).
 *           With attention's core recomputed, (1 + s/3h + ...) counts the
 *           replay as often as forward and backward together, (1 + 2s/9h +
 *           ...) once; Korthikanti et al. 2023 use both.
 * ranks     with --tp of all ranks that share the layers
 * stages    with --pp a step has (n + (p - 1) / m) turns of a stage, for n
 *           micro-batches, p stages and m parts: Narayanan et al. 2021
 */
#include "passes/report/step_report.h"
#include "passes/cost/cost.h"

/* FLOPs of a node of the reference as the mathematics has it. */
static double
model_flops(const Graph *g, const Node *n, bool causal)
{
	double f = node_cost(g, n).product;
	bool grad = n->op == OP_ATTENTION_GRAD;

	if (n->op != OP_ATTENTION && !grad)
		return f;
	if (grad ? n->attr.ATTENTION_GRAD.causal : n->attr.ATTENTION.causal)
		f *= (causal ? 0.5 : 1) / causal_share(g, n);
	/* four products of five: the scores come from forward */
	return grad ? f * 4 / 5 : f;
}

/* How many ranks have a part of their own of the node; what is whole all of
 * them do alike. */
static double
count_own_parts(const Graph *g, const Node *n)
{
	int64_t most = 1;

	for (int k = 0; k < n->nin + n->nout; k++) {
		ValId v = k < n->nin ? n->in[k] : n->out[k - n->nin];
		const Placement *s = &g->val[v].placement;

		if (v && s->kind == PLACEMENT_SHARD
		    && g->ranks / s->replication > most)
			most = g->ranks / s->replication;
	}
	return (double)most;
}

struct flop_report
flop_report(const Pass *p, const Plan *plan, const struct memory_report *r)
{
	double ranks = plan->ranks ? (double)plan->ranks : 1;
	struct flop_report f = { .all = ranks * plan->sum.step_flops };
	double b = (double)r->batch, s = (double)r->seq, h = (double)r->hidden;
	double v = (double)r->vocab, l = (double)r->seg.nlayer, base, end;

	FOR_NODES (node, p->planned.reference) {
		double n = count_own_parts(p->planned.reference, node);

		f.model += n * model_flops(p->planned.reference, node, false);
		f.causal += n * model_flops(p->planned.reference, node, true);
	}
	for (int64_t i = 0; i < plan->nstep; i++)
		f.hardware += ranks * plan->step[i].product;
	if (!r->seq || !r->hidden || !r->vocab || !r->seg.nlayer)
		return f;
	base = 72 * b * l * s * h * h;
	end = v / (12 * h * l);
	f.paper_model = base * (1 + s / (6 * h) + end);
	f.paper_third = base * (1 + s / (3 * h) + end);
	f.paper_ninth = base * (1 + 2 * s / (9 * h) + end);
	return f;
}

/* FLOP/s of a device in the type that most products are in. */
static double
device_peak(const Pass *p)
{
	const Graph *g = p->planned.reference;
	const struct device_profile *d = device_of(g);
	double half = 0, all = 0;

	FOR_NODES (n, g) {
		double f = node_cost(g, n).product;
		DType dt = f > 0 ? g->val[n->in[0]].dt : DT_F32;

		all += f;
		half += dt == DT_BF16 || dt == DT_F16 ? f : 0;
	}
	return half > all / 2 ? d->product_flops16 : d->product_flops;
}

struct step_use
step_use(const Pass *p, const Plan *plan)
{
	const struct options *opt = p->opt;
	const struct plan_summary *sum = &plan->sum;
	double stages = opt->pp ? (double)opt->pp : 1;
	double split = opt->interleave ? (double)opt->interleave : 1;
	struct step_use u = { .batches = stages };
	double waits, layers = sum->step_sec - sum->update_sec;

	if (opt->pp && opt->microbatches)
		u.batches = (double)opt->microbatches;
	u.devices = stages * (plan->ranks ? (double)plan->ranks : 1);
	u.peak = u.devices * device_peak(p);
	waits = opt->pp ? (stages - 1) / split : 0;
	u.sec = (layers * (u.batches + waits) + sum->update_sec) / stages;
	u.idle = u.sec > 0 ? layers * waits / stages / u.sec : 0;
	if (opt->step_time > 0) {
		u.sec = opt->step_time;
		u.idle = 0;
	}
	return u;
}
