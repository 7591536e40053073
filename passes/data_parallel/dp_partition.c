/* Data parallelism: turn the graph into that of one replica, which sees its
 * own samples of a batch.
 *
 * what    the loss and all that depends on more than a sample become those of
 *         the whole batch: sums over the samples are added up over replicas
 *         where something else than a sum is made of them.  What a mean
 *         divides by is known at run time only, as is how many replicas there
 *         are: 1 / replicas is a value (op share)
 * method  one walk over the nodes with the placements of values over replicas.
 *         An operand whose placement the op cannot take is converted: a
 *         summand by an all_reduce, a whole to a summand by the share.
 *         Autodiff then makes the other half; gradients of parameters are
 *         summands, which pass optim adds up
 * needs   P_CANON; before pass shard, which keeps nodes between replicas
 * gives   Graph.replicas, Val.batch of inputs and outputs
 * refuses what mixes samples otherwise than by sums
 */
#include "passes/data_parallel/dp_partition.h"

#include <string.h>

/* Add values of all replicas to a total over micro-batches. */
static bool
partition_total(struct dp_partition *d, NodeId id)
{
	ValId v = d->g->node[id].in[1];

	v = dp_has_kind(d, v, PLACEMENT_PARTIAL) ? dp_all_reduce(d, v, id) : v;
	d->g->node[id].in[1] = v;
	return v && dp_visit_node(d, id);
}

static bool
partition_node(struct dp_partition *d, NodeId id)
{
	switch (d->g->node[id].op) {
	case OP_SCE: case OP_NLL:
		return dp_partition_labels(d, id);
	case OP_BATCHNORM:
		return dp_partition_batchnorm(d, id);
	case OP_ACCUMULATE:
		return partition_total(d, id);
	case OP_EXTENT:
		return dp_partition_extent(d, id);
	default:
		return dp_visit_node(d, id);
	}
}

/* ---- the ends of the graph ---- */

/* Inputs of as many rows as the first one that has several hold samples. */
static bool
partition_input(struct dp_partition *d, Val *v, const Val **first)
{
	int64_t n = v->shape.rank > 0 ? v->shape.dim[0] : 1;

	if (v->shape.rank < 1 || (*first && n == 1 && d->samples != 1))
		return true;
	if (*first && n != d->samples)
		return diag_error(d->p->diag, "cannot split the batch %s: "
		                  "input '%s': expected %lld samples along "
		                  "the first dim, as in '%s', found %lld%s",
		                  dp_parts(d), v->name,
		                  (long long)d->samples,
		                  (*first)->name, (long long)n, dp_remedy(d));
	*first = *first ? *first : v;
	d->samples = n;
	v->placement = placement_dim(0, DP_RANKS * n);
	v->batch = 1;
	return true;
}

static bool
partition_inputs(struct dp_partition *d)
{
	const Val *first = NULL;

	FOR_VALS (v, d->g) {
		v->placement =
			(Placement){ .kind = PLACEMENT_REPLICATE_PARTIAL };
		if (v->kind == V_INPUT && !partition_input(d, v, &first))
			return false;
	}
	return first || diag_error(d->p->diag, "cannot split the batch %s: no "
	                           "input has a batch dim%s", dp_parts(d),
	                           dp_remedy(d));
}

static bool
reduce_loss(struct dp_partition *d)
{
	ValId v = d->g->loss, y = v;

	if (dp_has_kind(d, v, PLACEMENT_SHARD))
		return diag_error(d->p->diag, "loss '%s' has one value per "
		                  "sample, expected a sum or mean over samples",
		                  d->g->val[v].name);
	if (dp_has_kind(d, v, PLACEMENT_REPLICATE_PARTIAL))
		y = dp_scale_by_share(d, v, d->g->val[v].def);
	y = y ? dp_emit_all_reduce(d, y, 0, PLACEMENT_REPLICATE_PARTIAL,
	                        d->g->val[v].def) : 0;
	if (y)
		dp_replace_output(d->g, v, y);
	return y != 0;
}

const struct output_rows *
dp_other_batch_rows(const Pass *p, const Val *output)
{
	const struct output_rows *row = p->result.other_batch.row;

	while (row && row->name && strcmp(row->name, output->name) != 0)
		row++;
	return row && row->name ? row : NULL;
}

/* Whether another batch size moves the output's samples to another dim. */
static bool
moves_samples(const struct dp_partition *d, ValId output)
{
	const struct output_rows *row = dp_other_batch_rows(d->p,
	                                          &d->g->val[output]);
	const Placement *s = dp_placement(d, output);

	return row && s->kind == PLACEMENT_SHARD && row->batch != s->axis + 1;
}

static bool
partition_outputs(struct dp_partition *d)
{
	Graph *g = d->g;

	for (ValId v = 1; v < g->nval; v++) {
		const Placement *s = &g->val[v].placement;
		ValId y;

		if (!g->val[v].output || v == g->loss)
			continue;
		if (dp_has_sample_index(d, v))
			return diag_error(d->p->diag, "output '%s' holds "
			                  "sample indices, which each part of "
			                  "the batch counts from 0; exclude it "
			                  "with --output",
			                  g->val[v].name);
		if (s->kind == PLACEMENT_PARTIAL) {
			y = dp_all_reduce(d, v, g->val[v].def);
			if (!y)
				return false;
			dp_replace_output(g, v, y);
		} else if (s->kind == PLACEMENT_SHARD && s->nsegment > 1) {
			return diag_error(d->p->diag, "output '%s' has the "
			                  "samples of one part of the batch in "
			                  "several segments; exclude it with "
			                  "--output",
			                  g->val[v].name);
		} else if (moves_samples(d, v)) {
			return diag_error(d->p->diag, "output '%s' has its "
			                  "samples in other places at other "
			                  "batch sizes; exclude it with "
			                  "--output",
			                  g->val[v].name);
		} else if (s->kind == PLACEMENT_SHARD) {
			g->val[v].batch = s->first_axis + 1;
		}
	}
	return true;
}

/* Placements of this pass mean nothing to others. */
static void
clear_placements(Graph *g)
{
	FOR_VALS (v, g)
		v->placement = (Placement){ .kind = PLACEMENT_REPLICATE };
	g->ranks = 0;
}

/* Turn the graph of the whole batch into that of one replica, with placements.
 * With DP_MICRO the replicas are the micro-batches of a step: each has its own
 * statistics of batch normalisation, and values that depend on parameters are
 * added up as late as possible.  *assumed: the first node with assumed
 * placements, or NULL. */
static bool
partition_graph(Pass *p, Graph *g, const char **assumed)
{
	struct dp_partition d = { .p = p, .g = g, .nold = g->nnode };
	ValId loss = g->loss;

	d.uses = graph_uses(g, p->scratch);
	d.nold_val = g->nval;
	d.repeats = arena_array(p->scratch, g->nval, sizeof *d.repeats);
	if (dp_is_micro(&d))
		d.grad = sharding_requires_grad(g, p->scratch);
	g->ranks = DP_RANKS;
	if (!partition_inputs(&d))
		return false;
	if (p->result.other_batch.why)
		return diag_error(p->diag, "%s%s", p->result.other_batch.why,
		                  dp_remedy(&d));
	for (NodeId id = 1; id < d.nold; id++)
		if (!partition_node(&d, id))
			return false;
	if ((loss && !reduce_loss(&d)) || !partition_outputs(&d))
		return false;
	graph_reorder(g, d.order, (uint32_t)d.norder);
	*assumed = d.assumed;
	return true;
}

/* ---- the graph ---- */

static bool
partition_batch(Pass *p, Graph *g)
{
	const char *assumed;

	if (!partition_graph(p, g, &assumed)
	    || (g->halves == HALVES_ONE && !halves_expand(p, g)))
		return false;
	g->halves = g->halves ? HALVES_BOTH : HALVES_NONE;
	clear_placements(g);
	return true;
}

/* Whether a copy can be partitioned; says why not. */
static bool
can_partition_batch(Pass *p, const Graph *g)
{
	Graph *trial = graph_clone(g);
	bool ok;

	diag_soften(p->diag, "compiled for one replica only");
	ok = partition_batch(p, trial);
	diag_soften(p->diag, NULL);
	graph_free(trial);
	return ok;
}

void
dp_set_stage(const Pass *p, Graph *g)
{
	const struct options *o = p->opt;

	g->exact = o->zero > 0 || o->ep > 1;
	g->zero_group = o->zero > 0 ? o->zero_group : 0;
	g->expert_group = o->ep > 1 && o->ep < o->dp * (o->cp > 1 ? o->cp : 1)
		? o->ep : 0;
}

static void
set_replicas(const Pass *p, Graph *g)
{
	int64_t dp = p->opt->dp;

	g->replicas = dp == DP_TRY ? 1 : dp == DP_ANY ? DP_RANKS : dp;
	dp_set_stage(p, g);
}

/* The text of a graph may say what options do, too. */
static bool
check_declared(const Pass *p, const Graph *g)
{
	const struct options *o = p->opt;
	int64_t replicas = g->context ? g->replicas / g->context : g->replicas;

	if (o->dp <= 0 || !g->replicas
	    || (o->dp == replicas
	        && (!o->zero_group || o->zero_group == g->zero_group)
	        && (o->ep < 2 || o->ep == o->dp || o->ep == g->expert_group)))
		return true;
	return diag_error(p->diag, "--dp %lld --zero-group %lld --ep %lld: the "
	                  "graph declares replicas %lld, zero_group %lld and "
	                  "expert_group %lld; change the declarations in the "
	                  "graph", (long long)o->dp, (long long)o->zero_group,
	                  (long long)o->ep, (long long)g->replicas,
	                  (long long)g->zero_group, (long long)g->expert_group);
}

static bool
replicate_graph(Pass *p, Graph *g)
{
	int64_t dp = p->opt->dp;

	if (!check_declared(p, g))
		return false;
	if (g->halves != HALVES_ONE
	    && (!dp || g->replicas
	        || (dp == DP_TRY && !can_partition_batch(p, g))))
		return true;
	if (!partition_batch(p, g))
		return false;
	set_replicas(p, g);
	return true;
}

bool
pass_replicate(Pass *p, Graph *g)
{
	return replicate_graph(p, g) && dp_fold_extents(p, g);
}

/* ---- a copy ---- */

Graph *
dp_partition_copy(Pass *p, const Graph *of, ValId root, int64_t dp,
                  const char **why)
{
	Pass trial = *p;
	struct options o = *trial.opt;
	Graph *g = graph_clone(of);
	bool ok;

	FOR_VALS (v, g)
		v->output = val_id(g, v) == root;
	g->loss = root == g->loss ? root : 0;
	graph_dce(g);
	g->halves = HALVES_NONE;
	o.dp = dp;
	trial.opt = &o;
	trial.diag = diag_new("ckc", NULL);
	/* those of micro-batches are said here alone; with --dp, pass replicate
	 * says them, unless it only tries */
	if (!p->opt->dp || p->opt->dp == DP_TRY)
		diag_pass_notes(trial.diag, p->diag);
	ok = partition_graph(&trial, g, why);
	if (!ok)
		*why = arena_printf(p->keep, "%s", diag_reason(trial.diag));
	diag_free(trial.diag);
	if (ok)
		return g;
	graph_free(g);
	return NULL;
}
