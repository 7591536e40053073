/* Context parallelism: turn the graph into that of a part of the positions of
 * its samples, such as the tokens of sequences.
 *
 * what    --cp C replicas side by side have the same samples and a C-th of
 *         their positions each, in order.  Queries of attention are a
 *         replica's own; it gathers keys and values of all (Llama 3, 2024,
 *         section 3.3.2), and the adjoints of these are added up and shared
 *         out again.  Or it exchanges its positions of all heads for all
 *         positions of its heads (cp_heads.c).  Sums over positions are added
 *         up over replicas
 * where   along the replicas, as experts are: no new axis of ranks.  --dp N
 *         --cp C makes N * C replicas, so that sums of gradients, shards of
 *         ZeRO and files are those of that many.  Only the group of C is new
 *         (Graph.context): a zero group would tie ZeRO's shards to it
 * inputs  every replica has them whole, though ids alone are small: shifted
 *         labels, masks and counts of labels need no neighbour then
 * method  one walk over the nodes with the placements of values over the C.
 *         What depends on inputs and constants alone is computed whole, where
 *         it is needed whole, and in parts where those are.  The first node
 *         that reads a parameter and positions begins to compute parts
 * needs   P_CANON; behind pass replicate, whose sums over all replicas add up
 *         parts, too; before pass shard, which keeps nodes between replicas
 * gives   Graph.context, and C times Graph.replicas
 * refuses what runs along the sequence otherwise; numbers of positions that C
 *         does not divide
 * cost    linear in operands
 */
#include "passes/context_parallel/cp_partition.h"

/* ---- which operands may be gathered ---- */

/* Keys and values; and what takes few of many positions. */
static bool
may_gather(const struct cp_partition *c, const Node *n, int k)
{
	const Graph *g = c->g;

	if (n->op == OP_ATTENTION)
		return k == 1 || k == 2;
	if (n->op == OP_MATMUL)
		return k == 1;
	return (n->op == OP_SLICE || (n->op == OP_GATHER && k == 0))
		&& val_nelem(&g->val[n->out[0]]) * c->parts
		   <= val_nelem(&g->val[n->in[k]]);
}

/* Whether operands can have these placements. */
static bool
can_convert(const struct cp_partition *c, const Node *n, const Placement *at)
{
	for (int k = 0; k < n->nin; k++) {
		const Placement *s = &c->placement[n->in[k]];

		if (!n->in[k] || s->kind != PLACEMENT_SHARD
		    || placement_eq(s, &at[k]))
			continue;
		if (at[k].kind == PLACEMENT_SHARD || !may_gather(c, n, k))
			return false;
	}
	return true;
}

static bool
has_parts(const struct cp_partition *c, const Node *n)
{
	for (int k = 0; k < n->nin; k++)
		if (cp_has_kind(c, n->in[k], PLACEMENT_SHARD))
			return true;
	return false;
}

/* ---- placements of a node ---- */

/* From an operand that has a part, or would have one. */
static bool
place_by_operand(const struct cp_partition *c, const Node *n,
                 const Placement *of, Placement *at)
{
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && of[n->in[k]].kind == PLACEMENT_SHARD
		    && cp_follow(c, n, k, &of[n->in[k]], at, true)
		    && can_convert(c, n, at))
			return true;
	return false;
}

static void
place_whole(const Node *n, Placement *at)
{
	for (int k = 0; k < n->nin + n->nout; k++)
		at[k] = cp_whole();
}

/* Of sums and whole values: as they are, or summands beside summands, or all
 * whole. */
static void
place_sums(const struct cp_partition *c, const Node *n, Placement *at)
{
	uint64_t flags = op_info[n->op].flags;
	char why[SHARDING_WHY];
	bool any = false;

	place_whole(n, at);
	for (int k = 0; k < n->nin; k++)
		any |= cp_has_kind(c, n->in[k], PLACEMENT_PARTIAL);
	if (!any)
		return;
	if (sharding_infer(c->g, n, at + n->nin, why)) {
		for (int k = 0; k < n->nin; k++)
			at[k] = n->in[k] ? c->placement[n->in[k]] : cp_whole();
		return;
	}
	place_whole(n, at);
	if (!(flags & F_JOINT) || !(flags & F_EW) || n->op == OP_WHERE
	    || dtype_info[c->g->val[n->out[0]].dt].cls != 'f')
		return;
	for (int k = 0; k < n->nin + n->nout; k++)
		at[k].kind = PLACEMENT_PARTIAL;
}

/* The extent of positions that cannot be shared out; 0: they can. */
static int64_t
uneven_extent(const struct cp_partition *c, const Node *n)
{
	for (int k = 0; k < n->nin; k++) {
		const Placement *s = &c->positions[n->in[k]];

		for (int i = 0; s->kind == PLACEMENT_SHARD && n->in[k]
		     && i < placement_listed(s); i++)
			if (s->segment[i] % c->parts)
				return s->segment[i];
	}
	return 0;
}

static bool
is_trained(const struct cp_partition *c, const Node *n)
{
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && c->trained[n->in[k]])
			return true;
	return false;
}

/* ---- nodes ---- */

static bool
place_and_emit(struct cp_partition *c, NodeId id, const Placement *at)
{
	const Node *n = &c->g->node[id];

	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			cp_place(c, n->out[k], &at[n->nin + k]);
	return cp_emit_node(c, id, at);
}

/* A mean over positions: of a part, a summand times the number of parts. */
static bool
emit_mean(struct cp_partition *c, NodeId id, Placement *at, bool *is)
{
	Node sum = c->g->node[id];
	ValId y;

	*is = false;
	if (sum.op != OP_REDUCE_MEAN)
		return true;
	sum.op = OP_REDUCE_SUM;
	*is = place_by_operand(c, &sum, c->placement, at)
		&& at[1].kind == PLACEMENT_PARTIAL;
	if (!*is)
		return true;
	if (!place_and_emit(c, id, at))
		return false;
	y = cp_scale(c, c->version[sum.out[0]]->v, false, id);
	if (y)
		cp_redefine(c, id, y);
	return y != 0;
}

/* 1 / replicas counts those that share samples, too. */
static bool
emit_replica_share(struct cp_partition *c, NodeId id, const Placement *at)
{
	ValId y;

	if (!place_and_emit(c, id, at))
		return false;
	y = cp_scale(c, c->version[c->g->node[id].out[0]]->v, true, id);
	if (y)
		cp_redefine(c, id, y);
	return y != 0;
}

static bool
emit_parts(struct cp_partition *c, NodeId id, Placement *at)
{
	const Node *n = &c->g->node[id];
	bool is;

	if (!cp_partition_loss(c, id, &is) || is)
		return is && !diag_errors(c->p->diag);
	if (!cp_exchange_heads(c, id, &is) || is)
		return is && !diag_errors(c->p->diag);
	n = &c->g->node[id];
	if (place_by_operand(c, n, c->placement, at))
		return place_and_emit(c, id, at);
	if (!emit_mean(c, id, at, &is) || is)
		return is && !diag_errors(c->p->diag);
	n = &c->g->node[id];
	place_whole(n, at);
	return can_convert(c, n, at) ? place_and_emit(c, id, at)
		: cp_refuse_mixing(c, id);
}

/* Operands are whole or sums; those without parameters may have positions. */
static bool
emit_first_parts(struct cp_partition *c, NodeId id, Placement *at)
{
	const Node *n = &c->g->node[id];
	int64_t uneven;

	if (is_trained(c, n)) {
		if (place_by_operand(c, n, c->positions, at))
			return place_and_emit(c, id, at);
		uneven = uneven_extent(c, n);
		if (uneven)
			return cp_refuse_extent(c, id, uneven);
	} else {
		cp_follow_positions(c, n);
	}
	place_sums(c, n, at);
	return place_and_emit(c, id, at);
}

static bool
share_node(struct cp_partition *c, NodeId id)
{
	const Node *n = &c->g->node[id];
	Placement *at = arena_array(c->p->scratch,
	                            (size_t)(n->nin + n->nout) + 1, sizeof *at);

	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			c->trained[n->out[k]] = is_trained(c, n);
	place_whole(n, at);
	if (n->op == OP_SHARE && !n->attr.SHARE.micro)
		return emit_replica_share(c, id, at);
	if (n->op == OP_ALL_REDUCE && node_group(n) == GROUP_REPLICAS) {
		if (has_parts(c, n))
			return cp_refuse_mixing(c, id);
		at[0].kind = PLACEMENT_PARTIAL;
		return place_and_emit(c, id, at);
	}
	return has_parts(c, n) ? emit_parts(c, id, at)
		: emit_first_parts(c, id, at);
}

/* ---- the ends of the graph ---- */

/* y in v's place, as seen from outside. */
static void
replace_output(Graph *g, ValId v, ValId y)
{
	const char *name = g->val[v].name;
	Val *of = &g->val[v], *to = &g->val[y];

	val_rename(g, v, arena_printf(g->arena, "%s.part", name));
	val_rename(g, y, name);
	to->onnx = of->onnx;
	to->rows = of->rows;
	to->batch = of->batch;
	to->output = true;
	of->onnx = NULL;
	of->output = false;
	of->batch = 0;
	if (g->loss == v)
		g->loss = y;
}

/* The loss is the sum of all replicas' unless pass replicate has made it so. */
static bool
sum_loss(struct cp_partition *c)
{
	Graph *g = c->g;
	ValId v = g->loss, y;
	const Node *n = &g->node[g->val[v].def];
	const Placement sum = { .kind = PLACEMENT_PARTIAL };

	if (n->op == OP_ALL_REDUCE && node_group(n) == GROUP_REPLICAS)
		return true;
	if (cp_has_kind(c, v, PLACEMENT_SHARD))
		return diag_error(c->p->diag, "--cp %lld: loss '%s' has one "
		                  "value per position, expected a sum or mean "
		                  "over positions", (long long)c->parts,
		                  g->val[v].name);
	y = cp_version(c, v, &sum, g->val[v].def);
	y = y ? cp_sum(c, y, g->val[v].def) : 0;
	if (y)
		replace_output(g, v, y);
	return y != 0;
}

/* Other outputs are whole on every replica. */
static bool
make_outputs_whole(struct cp_partition *c)
{
	const Placement whole = cp_whole();

	for (ValId v = 1; v < c->nval; v++) {
		ValId y;

		if (!c->g->val[v].output || v == c->g->loss
		    || !c->g->val[v].def
		    || cp_has_kind(c, v, PLACEMENT_REPLICATE_PARTIAL))
			continue;
		y = cp_version(c, v, &whole, c->g->val[v].def);
		if (!y)
			return false;
		replace_output(c->g, v, y);
	}
	return true;
}

/* Values keep their names and get the shapes of their own placement. */
static void
adopt_versions(struct cp_partition *c)
{
	Graph *g = c->g;
	ValId *old = arena_array(c->p->scratch, g->nval, sizeof *old);

	for (ValId v = 1; v < c->nval; v++) {
		NodeId def = g->val[v].def;
		struct cp_version *m = c->version[v];

		g->val[v].placement.kind = PLACEMENT_REPLICATE;
		if (!def)
			continue;
		while (m && !(placement_eq(&m->placement, &c->placement[v])
		              && m->count_pass == g->node[def].count_pass))
			m = m->next;
		old[m->v] = v;
	}
	for (size_t i = 0; i < c->norder; i++) {
		Node *n = &g->node[c->order[i]];

		for (int k = 0; k < n->nin; k++)
			n->in[k] = old[n->in[k]] ? old[n->in[k]] : n->in[k];
		for (int k = 0; k < n->nout; k++) {
			ValId y = n->out[k], v = old[y];

			if (!v)
				continue;
			n->out[k] = v;
			g->val[v].shape = g->val[y].shape;
			g->val[v].def = c->order[i];
			g->val[v].result_index = k;
			g->val[y].def = 0;
		}
	}
}

static void
open_partition(struct cp_partition *c)
{
	Graph *g = c->g;
	Arena *tmp = c->p->scratch;

	c->placement = arena_array(tmp, g->nval, sizeof *c->placement);
	c->positions = arena_array(tmp, g->nval, sizeof *c->positions);
	c->trained = arena_array(tmp, g->nval, sizeof *c->trained);
	c->version = arena_array(tmp, g->nval, sizeof *c->version);
	FOR_VALS (v, g) {
		ValId id = val_id(g, v);
		struct cp_version *m = arena_alloc(tmp, sizeof *m);

		cp_place(c, id, &(Placement){
			.kind = PLACEMENT_REPLICATE_PARTIAL });
		c->trained[id] = v->kind == V_PARAM || v->kind == V_BUFFER;
		if (v->kind == V_TEMP)
			continue;
		*m = (struct cp_version){ cp_whole(), 0, id, NULL };
		c->version[id] = m;
	}
}

/* Whether each replica's stretches are one from the beginning and one as far
 * from the end, so that causal attention is equal work for all. */
static bool
wants_zigzag(const Graph *g, int64_t parts)
{
	bool any = false;

	FOR_NODES (n, g) {
		if (n->op != OP_ATTENTION || !n->attr.ATTENTION.causal)
			continue;
		if (g->val[n->in[0]].shape.dim[2] % (2 * parts))
			return false;
		any = true;
	}
	return any;
}

static bool
share_graph(Pass *p, Graph *g)
{
	struct cp_partition c = { .p = p, .g = g, .parts = p->opt->cp,
		.nold = g->nnode, .nval = g->nval };

	open_partition(&c);
	g->context = c.parts;
	g->zigzag = wants_zigzag(g, c.parts);
	g->ranks = c.parts;             /* for rules of sums */
	if (!cp_find_positions(&c))
		return false;
	for (NodeId id = 1; id < c.nold; id++)
		if (!share_node(&c, id))
			return false;
	if (!c.any)
		return diag_error(p->diag, "--cp %lld: no node has positions "
		                  "and parameters; leave out --cp",
		                  (long long)c.parts);
	if (p->opt->cp_attention == EXCHANGE_HEADS && !c.heads)
		return diag_error(p->diag, "--cp-attention heads: the model "
		                  "has no fused attention over positions; "
		                  "leave out --cp-attention");
	if ((g->loss && !sum_loss(&c)) || !make_outputs_whole(&c))
		return false;
	adopt_versions(&c);
	g->ranks = 0;
	graph_reorder(g, c.order, (uint32_t)c.norder);
	graph_dce(g);
	return true;
}

bool
pass_context(Pass *p, Graph *g)
{
	if (p->opt->cp < 2 || g->context)
		return true;
	if (g->ranks)
		return diag_error(p->diag, "--cp: the graph declares ranks; "
		                  "expected one that is not sharded");
	g->replicas = (g->replicas ? g->replicas : 1) * p->opt->cp;
	g->exact = true;
	g->zero_group = p->opt->zero ? p->opt->zero_group : 0;
	return share_graph(p, g);
}
