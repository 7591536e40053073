/* All-reduce the gradients of replicated parameters whose readers are sharded.
 *
 * Once per step, behind accumulation: sums over micro-batches and over ranks
 * may change places.  Small gradients go together, because a message costs as
 * much time as many bytes do: flat, one behind the other, they are one
 * operand, and the results are views of its sum (DDP's buckets, Li et al.
 * 2020).
 *
 * Decisions follow from the placements of parameters, because those of
 * gradients may not be known yet.
 */
#include "passes/grad/optimizer_shards.h"

/* Gradients below SMALL_BYTES share a collective: at 1 MiB a link of 10 GB/s
 * takes 100 us, far more than a message's start.  What one line takes is memory
 * beside the gradients, so that it has a limit. */
enum { SMALL_BYTES = 1 << 20, LINE_BYTES = 8 << 20 };

/* ---- what is refused ---- */

static bool
check_update(const Graph *g, Diag *d, const struct update *u)
{
	const Val *p = &g->val[u->param];
	PlacementKind grad = g->val[u->grad].placement.kind;
	bool cut = p->placement.kind == PLACEMENT_SHARD;

	if (p->placement.kind == PLACEMENT_PARTIAL)
		return diag_error(d, "trained parameter '%s': expected "
		                  "replicated or sharded, found partial sums "
		                  "on each rank",
		                  p->name);
	if (grad == PLACEMENT_PARTIAL
	    && p->placement.kind != PLACEMENT_REPLICATE_PARTIAL)
		return diag_error(d, "trained parameter '%s': its gradient is "
		                  "a partial sum on each rank, and no op adds "
		                  "them up", p->name);
	if (cut ? grad == PLACEMENT_REPLICATE_PARTIAL : grad == PLACEMENT_SHARD)
		return diag_error(d, "trained parameter '%s' is %s, but its "
		                  "gradient is %s", p->name,
		                  cut ? "sharded" : "replicated",
		                  cut ? "replicated" : "sharded");
	return true;
}

bool
grad_reduce_check(const Graph *g, Diag *d, const struct update *u, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!check_update(g, d, &u[i]))
			return false;
	return true;
}

/* ---- sums over ranks ---- */

/* Each rank of a replica has done a part. */
static bool
is_part_of_sum(const Graph *g, const struct update *u)
{
	return g->ranks > 0
		&& g->val[u->param].placement.kind
		   == PLACEMENT_REPLICATE_PARTIAL;
}

bool
grad_reduce_wanted(const Graph *g, const struct update *u,
                   enum reduce_group group)
{
	const struct replica_shard *shard = g->val[u->grad].shard;

	if (shard && (group == REDUCE_DP || !shard->rows))
		return false;           /* of all ranks' sum */
	if (group == REDUCE_TP && u->ranks_summed)
		return false;
	return group == REDUCE_DP ? g->replicas > 0 : is_part_of_sum(g, u);
}

static enum rank_group
ranks_of_group(enum reduce_group group)
{
	return group == REDUCE_DP ? GROUP_REPLICAS : GROUP_RANKS;
}

enum rank_group
grad_reduce_shards(const Graph *g, const struct update *u)
{
	const struct replica_shard *shard = g->val[u->grad].shard;

	return graph_shard_group(g, shard && shard->rows);
}

static ValId
sum_ranks(Graph *g, Diag *d, ValId x, enum rank_group group, NodeId like,
          Phase phase)
{
	Attr a = attr_default(OP_ALL_REDUCE);
	ValId y;

	a.ALL_REDUCE.group = group;
	y = emit_op(g, d, OP_ALL_REDUCE, 1, &x, &a, like);
	if (y)
		g->node[g->nnode - 1].phase = phase;
	return y;
}

/* The complete gradient is `sum`. */
static bool
set_gradient_sum(Graph *g, struct update *u, ValId sum)
{
	const struct replica_shard *shard = g->val[u->grad].shard;

	if (!sum)
		return false;
	if (shard && shard->rows)
		g->val[sum].shard = shard;
	val_rename(g, sum, arena_printf(g->arena, "%s.sum",
	                                g->val[u->grad].name));
	g->val[sum].param = u->param;
	g->val[sum].grad_of = g->val[u->grad].grad_of;
	g->val[u->grad].param = 0;
	u->grad = sum;
	return true;
}

/* What is added up over replicas may be whole already on the ranks of each,
 * where an adjoint is a summand. */
static void
forget_adjoint(Graph *g, const struct update *u, ValId part,
               enum reduce_group group)
{
	if (group == REDUCE_DP && is_part_of_sum(g, u))
		g->val[part].grad_of = 0;
}

static bool
reduce_one(Graph *g, Diag *d, struct update *u, enum reduce_group group,
           Phase phase)
{
	ValId part = u->grad, sum;

	sum = u->cut && group == REDUCE_DP
		? optimizer_shard_scatter(g, d, u, phase)
		: sum_ranks(g, d, part, ranks_of_group(group), u->after,
		            phase);
	if (!set_gradient_sum(g, u, sum))
		return false;
	u->ranks_summed |= group == REDUCE_TP;
	forget_adjoint(g, u, part, group);
	return true;
}

bool
grad_reduce_copies(Graph *g, Diag *d, struct update *u, Phase phase)
{
	enum rank_group shards = grad_reduce_shards(g, u);
	ValId part = u->grad, sum;

	if (shards == GROUP_REPLICAS || !g->val[part].shard)
		return true;
	sum = sum_ranks(g, d, part, shards == GROUP_EXPERTS
	                ? GROUP_EXPERT_COPIES : GROUP_COPIES, u->after, phase);
	if (!set_gradient_sum(g, u, sum))
		return false;
	g->val[part].grad_of = 0;
	optimizer_shard_mark(g, u->param, sum);
	return true;
}

bool
grad_reduce_alone(Graph *g, Diag *d, struct update *u, Phase phase)
{
	for (int k = REDUCE_TP; k <= REDUCE_DP; k++)
		if (grad_reduce_wanted(g, u, k)
		    && !reduce_one(g, d, u, (enum reduce_group)k, phase))
			return false;
	return true;
}

static ValId
reshape_update(Graph *g, Diag *d, ValId x, const Shape *to, PlacementKind kind)
{
	Attr a = attr_reshape(to);
	ValId y;

	if (x == 0 || shape_eq(&g->val[x].shape, to))
		return x;
	y = emit_op(g, d, OP_RESHAPE, 1, &x, &a, 0);
	if (y) {
		g->node[g->nnode - 1].phase = PH_UPDATE;
		g->val[y].placement.kind = kind;
	}
	return y;
}

/* n elements of a line from `start` on. */
static ValId
slice_line(Graph *g, Diag *d, ValId line, int64_t start, int64_t n)
{
	ValId v = emit_slice(g, d, line, &start, &n, 0);

	if (v)
		g->node[g->val[v].def].phase = PH_UPDATE;
	return v;
}

/* Those n values, of one type, one behind the other. */
static ValId
join_line(Graph *g, Diag *d, Arena *scratch, const ValId *v, int n,
          PlacementKind kind, const char *name)
{
	ValId *in = arena_array(scratch, (size_t)n, sizeof *in), line;

	for (int i = 0; i < n; i++) {
		Shape flat = SHAPE(val_nelem(&g->val[v[i]]));

		in[i] = reshape_update(g, d, v[i], &flat, kind);
		if (!in[i])
			return 0;
	}
	line = emit_op(g, d, OP_CONCAT, n, in, NULL, 0);
	if (!line)
		return 0;
	val_rename(g, line, name);
	g->val[line].placement.kind = kind;
	g->node[g->nnode - 1].phase = PH_UPDATE;
	return line;
}

/* Those n values, of one type, in one collective; each becomes its sum. */
static bool
sum_line(Graph *g, Diag *d, Arena *scratch, ValId *v, int n,
         enum rank_group group, const char *name)
{
	PlacementKind kind = group == GROUP_RANKS ? PLACEMENT_PARTIAL
						: PLACEMENT_REPLICATE;
	ValId line = join_line(g, d, scratch, v, n, kind, name);
	int64_t start = 0;

	line = line ? sum_ranks(g, d, line, group, 0, PH_UPDATE) : 0;
	if (!line)
		return false;
	val_rename(g, line, arena_printf(g->arena, "%s.sum", name));
	for (int i = 0; i < n; i++) {
		Shape shape = g->val[v[i]].shape;
		int64_t extent = shape_nelem(&shape);

		v[i] = reshape_update(g, d,
		                      slice_line(g, d, line, start, extent),
		                      &shape, PLACEMENT_REPLICATE);
		if (!v[i])
			return false;
		start += extent;
	}
	return true;
}

/* v: their gradients, which become sums. */
static bool
reduce_line(Graph *g, Diag *d, Arena *scratch, struct update *const *u,
            ValId *v, int n, enum reduce_group group)
{
	if (!sum_line(g, d, scratch, v, n, ranks_of_group(group), "grads"))
		return false;
	for (int i = 0; i < n; i++) {
		ValId part = u[i]->grad;

		if (!set_gradient_sum(g, u[i], v[i]))
			return false;
		forget_adjoint(g, u[i], part, group);
	}
	return true;
}

/* A piece has no state as a part of a line. */
static bool
is_small(const Graph *g, const struct update *u, enum reduce_group group)
{
	return val_data_bytes(&g->val[u->grad]) < SMALL_BYTES
		&& g->val[u->param].placement.kind != PLACEMENT_SHARD
		&& !(u->cut && group == REDUCE_DP);
}

/* How many of n values go into one line; at least one. */
static int
line_length(const Graph *g, const ValId *v, int n)
{
	int64_t bytes = 0;
	int i = 0;

	while (i < n && bytes + val_data_bytes(&g->val[v[i]]) <= LINE_BYTES)
		bytes += val_data_bytes(&g->val[v[i++]]);
	return i;
}

/* Small ones of type dt. */
static bool
reduce_type(Graph *g, Diag *d, Arena *scratch, DType dt, struct update *u,
            uint32_t n, enum reduce_group group)
{
	struct update **small = arena_array(scratch, n + 1, sizeof *small);
	ValId *v = arena_array(scratch, n + 1, sizeof *v);
	int nsmall = 0, length;
	bool ok = true;

	for (uint32_t i = 0; i < n; i++)
		if (grad_reduce_wanted(g, &u[i], group)
		    && g->val[u[i].grad].dt == dt
		    && is_small(g, &u[i], group)) {
			small[nsmall] = &u[i];
			v[nsmall++] = u[i].grad;
		}
	for (int i = 0; ok && i < nsmall; i += length) {
		length = line_length(g, v + i, nsmall - i);
		ok = length > 1
			? reduce_line(g, d, scratch, small + i, v + i, length,
			              group)
			: reduce_one(g, d, small[i], group, PH_UPDATE);
	}
	return ok;
}

static bool
reduce_group(Graph *g, Diag *d, Arena *scratch, struct update *u, uint32_t n,
             enum reduce_group group)
{
	for (int dt = DT_NONE + 1; dt < DT_COUNT; dt++)
		if (!reduce_type(g, d, scratch, (DType)dt, u, n, group))
			return false;
	for (uint32_t i = 0; i < n; i++)
		if (grad_reduce_wanted(g, &u[i], group)
		    && !is_small(g, &u[i], group)
		    && !reduce_one(g, d, &u[i], group, PH_UPDATE))
			return false;
	return true;
}

bool
grad_reduce_all(Graph *g, Diag *d, Arena *scratch, struct update *u, uint32_t n)
{
	return reduce_group(g, d, scratch, u, n, REDUCE_TP)
		&& reduce_group(g, d, scratch, u, n, REDUCE_DP);
}

/* ---- other numbers ---- */

static ValId
sum_value(Graph *g, Diag *d, ValId v, enum rank_group group)
{
	ValId sum = sum_ranks(g, d, v, group, 0, PH_UPDATE);

	if (sum)
		val_rename(g, sum, arena_printf(g->arena, "%s.sum",
		                                g->val[v].name));
	return sum;
}

bool
grad_reduce_values(Graph *g, Diag *d, Arena *scratch, ValId *const *v, int n,
              enum rank_group group)
{
	ValId *small = arena_array(scratch, (size_t)n + 1, sizeof *small);
	int *at = arena_array(scratch, (size_t)n + 1, sizeof *at);
	int nsmall = 0, length;

	for (int i = 0; i < n; i++) {
		const Val *x = &g->val[*v[i]];

		if (val_data_bytes(x) < SMALL_BYTES
		    && x->placement.kind != PLACEMENT_SHARD) {
			at[nsmall] = i;
			small[nsmall++] = *v[i];
			continue;
		}
		*v[i] = sum_value(g, d, *v[i], group);
		if (!*v[i])
			return false;
	}
	for (int i = 0; i < nsmall; i += length) {
		length = line_length(g, small + i, nsmall - i);
		if (length > 1 && !sum_line(g, d, scratch, small + i, length,
		                            group, "means"))
			return false;
		if (length == 1)
			small[i] = sum_value(g, d, small[i], group);
		if (!small[i])
			return false;
	}
	for (int i = 0; i < nsmall; i++)
		*v[at[i]] = small[i];
	return true;
}

/* ---- the norm ---- */

static bool
is_sharded_over_ranks(const Graph *g, const struct update *u)
{
	return g->val[u->param].placement.kind == PLACEMENT_SHARD;
}

/* GROUP_RANKS: over no replicas. */
static enum rank_group
sharded_over(const Graph *g, const struct update *u)
{
	return g->val[u->grad].shard ? grad_reduce_shards(g, u) : GROUP_RANKS;
}

/* The squares of all that are sharded over that group (as sharded_over), and
 * over ranks or not, summed over both; 0: there are none, or *ok is false. */
static ValId
cut_squares(Graph *g, Diag *d, Arena *scratch, const struct update *u,
            uint32_t n, enum rank_group group, bool ranks, bool *ok)
{
	ValId *in = arena_array(scratch, (size_t)n + 1, sizeof *in), y;
	int m = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!u[i].received
		    && is_sharded_over_ranks(g, &u[i]) == ranks
		    && sharded_over(g, &u[i]) == group)
			in[m++] = u[i].grad;
	if (m == 0)
		return 0;
	y = emit_op(g, d, OP_SUM_SQUARES, m, in, NULL, 0);
	if (y) {
		g->node[g->nnode - 1].phase = PH_UPDATE;
		if (ranks)
			g->val[y].placement.kind = PLACEMENT_PARTIAL;
	}
	if (y && ranks)
		y = sum_ranks(g, d, y, GROUP_RANKS, 0, PH_UPDATE);
	if (y && group != GROUP_RANKS)
		y = sum_ranks(g, d, y, group, 0, PH_UPDATE);
	*ok &= y != 0;
	return y;
}

/* The squares of in, whose last nsum values are sums of squares, over all
 * stages, in place of them; each stage takes part, even without gradients of
 * its own. */
static bool
sum_stages(Graph *g, Diag *d, ValId *in, int *nin, int64_t *nsum)
{
	int whole = *nin - (int)*nsum;
	Attr zero = attr_default(OP_FILL);
	ValId sum = whole > 0 || !*nsum ? 0 : in[whole++], pair[2];

	if (!sum)
		sum = whole > 0
			? emit_op(g, d, OP_SUM_SQUARES, whole, in, NULL, 0)
			: emit_op(g, d, OP_FILL, 0, NULL, &zero, 0);
	for (int k = whole; sum && k < *nin; k++) {
		g->node[g->nnode - 1].phase = PH_UPDATE;
		pair[0] = sum;
		pair[1] = in[k];
		sum = emit_op(g, d, OP_ADD, 2, pair, NULL, 0);
	}
	if (!sum)
		return false;
	g->node[g->val[sum].def].phase = PH_UPDATE;
	in[0] = sum_ranks(g, d, sum, GROUP_STAGES, 0, PH_UPDATE);
	*nin = 1;
	*nsum = 1;
	return in[0] != 0;
}

ValId
grad_reduce_norm(Graph *g, Diag *d, Arena *scratch, const struct update *u,
            uint32_t n)
{
	const enum rank_group zero = graph_shard_group(g, false);
	const enum rank_group experts = graph_shard_group(g, true);
	const struct {
		enum rank_group group;
		bool ranks;
	} cut[] = { { GROUP_RANKS, true }, { zero, false }, { zero, true },
		    { experts, false }, { experts, true } };
	ValId *in = arena_array(scratch, (size_t)n + 5, sizeof *in), sum;
	Attr a = attr_default(OP_GRAD_NORM);
	bool ok = true;
	int nin = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!u[i].received && !is_sharded_over_ranks(g, &u[i])
		    && sharded_over(g, &u[i]) == GROUP_RANKS)
			in[nin++] = u[i].grad;
	for (int k = 0; k < (experts == zero ? 3 : 5) && ok; k++) {
		sum = cut_squares(g, d, scratch, u, n, cut[k].group,
		                  cut[k].ranks, &ok);
		if (!sum)
			continue;
		in[nin++] = sum;
		a.GRAD_NORM.sums++;
	}
	if (!ok || (g->stages
	            && !sum_stages(g, d, in, &nin, &a.GRAD_NORM.sums)))
		return 0;
	sum = emit_op(g, d, OP_GRAD_NORM, nin, in, &a, 0);
	if (sum) {
		val_rename(g, sum, "grad_norm");
		g->node[g->nnode - 1].phase = PH_UPDATE;
	}
	return sum;
}
