/* Memory of each stage of a pipeline: arithmetic only, no schedule is made.
 *
 * source  1F1B and interleaved schedules as in Narayanan et al. 2021; the
 *         first stage holds p micro-batches of L/p layers, times
 *         1 + (p - 1)/(p m) with m parts per stage.  Micro-batches that can
 *         keep everything beside others that recompute: Korthikanti et al.
 *         2023, appendix C.  With --tp a stage is several ranks, and the
 *         figures are those of one.
 */
#include "passes/cost/cost.h"
#include "passes/report/step_report.h"

#include <math.h>

struct bytes {
	double before, layer, after;    /* layer: one of them */
};

/* By place in the model: before the layers, in them, behind them. */
static struct bytes
split_saved(const struct memory_report *r)
{
	struct bytes b = { 0, 0, 0 };

	for (int64_t i = 0; i < r->nsaved; i++) {
		const struct saved *s = &r->saved[i];

		if (s->layer >= 0 && s->block == B_STATS)
			b.layer += (double)s->bytes;
		else if (s->layer < 0 && s->segment < r->seg.first)
			b.before += (double)s->bytes;
		else if (s->layer < 0)
			b.after += (double)s->bytes;
	}
	for (int32_t i = 0; i < r->seg.nlayer; i++)
		b.layer += (double)r->layer[i];
	b.layer /= (double)r->seg.nlayer;
	return b;
}

/* A parameter, its states and its gradient.  16-bit gradients of several
 * micro-batches are summed in float32.  A tied parameter behind the layers has
 * no sum: it gets that of its other place. */
static double
weight_bytes(const Val *v, double states, bool sums, bool tied)
{
	double size = (double)v->nbytes, grad = size;

	if (sums)
		grad = tied ? 0 : dtype_is_half(v->dt) ? 2 * size : size;
	return size * (1 + states) + grad;
}

enum reads { BEFORE, INSIDE, BEHIND, NOWHERE };

/* Where node n reads parameters, as seen from the layers.  The product behind
 * them may stand in backward, in parts that also make its gradient. */
static enum reads
reads_of(const struct memory_report *r, const Graph *g, const Node *n)
{
	const struct segments *s = &r->seg;
	int32_t at = s->of_node[node_id(g, n)];

	if (at >= 0)
		return at < s->first ? BEFORE
			: at < s->first + s->period * s->nlayer ? INSIDE
			: BEHIND;
	return n->op == OP_CLASSIFIER || n->phase == PH_BACKWARD ? BEHIND
		: NOWHERE;
}

/* A parameter lies where forward reads it; a tied one lies in two places.  What
 * layers share lies in each of them; they read theirs in backward, too. */
static struct bytes
split_params(const struct memory_report *r, const Graph *g, double states,
             bool sums, Arena *arena)
{
	struct bytes b = { 0, 0, 0 };
	double *sum[] = { &b.before, &b.layer, &b.after };
	bool *seen[NOWHERE];

	for (int i = 0; i < NOWHERE; i++)
		seen[i] = arena_array(arena, g->nval, sizeof *seen[i]);
	FOR_NODES (n, g) {
		enum reads at = reads_of(r, g, n);

		for (int i = 0; i < n->nin && at != NOWHERE; i++) {
			ValId v = val_owner(g, n->in[i]);

			if (g->val[v].kind != V_PARAM
			    || (at != INSIDE && seen[at][v])
			    || (at == BEHIND && seen[INSIDE][v]))
				continue;
			seen[at][v] = true;
			*sum[at] += weight_bytes(&g->val[v], states, sums,
				at == BEHIND && seen[BEFORE][v]);
		}
	}
	b.layer /= (double)r->seg.nlayer;
	return b;
}

static double
in_flight(int64_t p, int64_t m, int64_t n, int64_t r)
{
	double parts = m > 1 ? (double)(2 * (p - r - 1) + (m - 1) * p + 1)
		: (double)(p - r);

	return fmin(parts / (double)m, (double)n);
}

struct pipeline_estimate
pipeline_report(const Pass *p, const Plan *plan, const struct memory_report *r,
                Arena *arena)
{
	struct pipeline_estimate l = { .n = p->opt->pp };
	const struct plan_summary *sum = &plan->sum;
	struct memory_report *all = p->planned.reference_plan
		? memory_report_new(p, p->planned.reference_plan, arena) : NULL;
	struct bytes saved, keep, param;
	double states = sum->param > 0
		? (double)sum->optimizer / (double)sum->param : 0;

	if (!l.n || !r->seg.nlayer || !all) {
		l.n = 0;
		return l;
	}
	l.interleave = p->opt->interleave ? p->opt->interleave : 1;
	l.microbatches = p->opt->microbatches ? p->opt->microbatches : l.n;
	l.memory = p->planned.budget > 0 ? (double)p->planned.budget
		: device_of(p->planned.reference)->memory;
	l.stage = arena_array(arena, (size_t)l.n, sizeof *l.stage);
	saved = split_saved(r);
	keep = split_saved(all);
	param = split_params(r, p->planned.reference, states,
	                     l.microbatches > 1, arena);
	for (int64_t i = 0; i < l.n; i++) {
		struct stage_estimate *s = &l.stage[i];
		double more, ends = i == 0 ? param.before : 0, room;

		ends += i == l.n - 1 ? param.after : 0;
		s->layers = (double)r->seg.nlayer / (double)l.n;
		s->in_flight = in_flight(l.n, l.interleave, l.microbatches, i);
		s->saved = s->in_flight * s->layers * saved.layer;
		if (i == 0)
			s->saved += saved.before
				* fmin((double)l.n, (double)l.microbatches);
		if (i == l.n - 1)
			s->saved += saved.after;
		s->weights = s->layers * param.layer + ends;
		more = s->layers * (keep.layer - saved.layer);
		room = l.memory - s->weights - s->saved;
		s->keep_all = l.memory <= 0 ? -1 : more <= 0
			? (room >= 0 ? s->in_flight : 0)
			: fmin(fmax(floor(room / more), 0), s->in_flight);
	}
	return l;
}
