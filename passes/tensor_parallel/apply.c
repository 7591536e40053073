/* Rewrite the graph as one rank's graph by the chosen strategies.
 *
 * Every value gets its placement and the shape of one rank's shard, and
 * attributes that hold extents follow.  A conversion is inserted where a reader
 * requires another placement: one per value, placement and count pass, right
 * after the value, so that all readers share it and its adjoints are added
 * before they are sent.
 */
#include "passes/tensor_parallel/strategies.h"

#include <string.h>

struct conversion {                     /* an inserted conversion */
	Placement to;
	int count_pass;
	ValId v;
	struct conversion *next;
};

struct apply {
	struct shard *s;
	Graph *g;
	uint32_t nold, nval;            /* original nodes and values */
	Placement *placement;           /* by value: chosen placement */
	Shape *whole;                   /* by value: unsharded shape */
	struct conversion **conversion; /* by value */
	NodeId *after;                  /* by new node: the old one before */
	size_t nafter, after_cap;
	int count_pass;                 /* count pass of the current node */
	bool failed;
};

/* ---- conversions ---- */

/* Place the node added last after this one. */
static void
schedule_after(struct apply *a, NodeId after)
{
	a->after = arena_grow(a->s->tmp, a->after, a->nafter, &a->after_cap,
	                      a->nafter + 1, sizeof *a->after);
	a->after[a->nafter++] = after;
}

static ValId
emit_conversion(struct apply *a, Op op, ValId x, const Attr *attr, NodeId after)
{
	Graph *g = a->g;
	NodeId def = g->val[x].def;
	ValId y = emit_op(g, a->s->pass->diag, op, 1, &x, attr, def);

	if (!y) {
		a->failed = true;
		return 0;
	}
	g->node[g->val[y].def].count_pass = a->count_pass;
	schedule_after(a, after);
	val_rename(g, y, arena_printf(g->arena, "%s.%s", g->val[x].name,
	                              op_info[op].text));
	return y;
}

static ValId
emit_all_gather(struct apply *a, ValId v, ValId x, PlacementKind to,
                NodeId after)
{
	Placement from = placement_unmerged(a->placement[v]);
	const Shape *whole = &a->whole[v];
	Attr attr;
	ValId y;

	placement_to_attr(&from, OP_ALL_GATHER, &attr);
	attr.ALL_GATHER.side = to == PLACEMENT_REPLICATE_PARTIAL;
	y = emit_conversion(a, OP_ALL_GATHER, x, &attr, after);
	if (!y)
		return 0;
	a->g->val[y].placement.kind = to;
	if (shape_eq(&a->g->val[y].shape, whole))
		return y;
	attr = attr_reshape(whole);
	y = emit_conversion(a, OP_RESHAPE, y, &attr, after);
	a->g->val[y].placement.kind = to;
	return y;
}

static ValId
emit_own_shard(struct apply *a, ValId x, const Placement *to,
               PlacementKind from, NodeId after)
{
	Attr attr;
	ValId y;

	placement_to_attr(to, OP_OWN, &attr);
	attr.OWN.from = from == PLACEMENT_REPLICATE_PARTIAL;
	y = emit_conversion(a, OP_OWN, x, &attr, after);
	a->g->val[y].placement = placement_unmerged(*to);
	return y;
}

static ValId
emit_partial_reduction(struct apply *a, ValId x, const Placement *to,
                       NodeId after)
{
	Op op = to->kind == PLACEMENT_SHARD ? OP_REDUCE_SCATTER : OP_ALL_REDUCE;
	Attr attr = attr_default(op);
	ValId y;

	if (to->kind == PLACEMENT_SHARD)
		placement_to_attr(to, op, &attr);
	else
		attr.ALL_REDUCE.side = to->kind == PLACEMENT_REPLICATE_PARTIAL;
	y = emit_conversion(a, op, x, &attr, after);
	a->g->val[y].placement = placement_unmerged(*to);
	return y;
}

static ValId
emit_all_to_all(struct apply *a, ValId x, const Placement *from,
                const Placement *to, NodeId after)
{
	Attr attr;
	ValId y;

	placement_to_exchange(from, to, &attr);
	y = emit_conversion(a, OP_ALL_TO_ALL, x, &attr, after);
	a->g->val[y].placement = *to;
	return y;
}

static ValId convert_value(struct apply *, ValId, const Placement *,
                           NodeId reader);

static ValId
convert_sharded(struct apply *a, ValId v, const Placement *to, NodeId after,
                NodeId reader)
{
	const Placement *from = &a->placement[v];
	Placement whole = { .kind = a->s->grad[v] ? PLACEMENT_REPLICATE_PARTIAL
	                : PLACEMENT_REPLICATE };

	if (to->kind != PLACEMENT_SHARD)
		return emit_all_gather(a, v, v, to->kind, after);
	if (from->first_axis == from->axis && to->first_axis == to->axis
	    && to->replication == 1)
		return emit_all_to_all(a, v, from, to, after);
	return emit_own_shard(a, convert_value(a, v, &whole, reader), to,
	                      whole.kind, after);
}

static ValId
convert_replicated(struct apply *a, ValId v, const Placement *to, NodeId after,
                   NodeId reader)
{
	Placement r = { .kind = PLACEMENT_REPLICATE_PARTIAL };

	if (to->kind == PLACEMENT_REPLICATE_PARTIAL) {
		ValId y = emit_conversion(a, OP_REPLICATE, v, NULL, after);

		a->g->val[y].placement.kind = PLACEMENT_REPLICATE_PARTIAL;
		return y;
	}
	/* each rank that shares a shard has a summand of its adjoint */
	if (to->replication > 1 && a->s->grad[v]
	    && a->placement[v].kind == PLACEMENT_REPLICATE)
		return emit_own_shard(a, convert_value(a, v, &r, reader), to,
		                      PLACEMENT_REPLICATE_PARTIAL, after);
	return emit_own_shard(a, v, to, a->placement[v].kind, after);
}

/* v in placement `to`; `reader` is the first that requires it. */
static ValId
convert_value(struct apply *a, ValId v, const Placement *to, NodeId reader)
{
	const Placement *from = &a->placement[v];
	NodeId def = v < a->nval ? a->g->val[v].def : 0;
	NodeId after = def ? def : reader - 1;
	struct conversion *m;
	ValId y;

	if (placement_eq(from, to)
	    || (!a->s->grad[v] && from->kind <= PLACEMENT_REPLICATE_PARTIAL
	        && to->kind <= PLACEMENT_REPLICATE_PARTIAL))
		return v;
	for (m = a->conversion[v]; m; m = m->next)
		if (placement_eq(&m->to, to) && m->count_pass == a->count_pass)
			return m->v;
	if (from->kind == PLACEMENT_PARTIAL)
		y = emit_partial_reduction(a, v, to, after);
	else if (from->kind == PLACEMENT_SHARD)
		y = convert_sharded(a, v, to, after, reader);
	else
		y = convert_replicated(a, v, to, after, reader);
	m = arena_alloc(a->s->tmp, sizeof *m);
	*m = (struct conversion){ *to, a->count_pass, y, a->conversion[v] };
	a->conversion[v] = m;
	return y;
}

/* ---- attributes that hold extents ---- */

/* Position of element `start` of the whole dim in a rank's shard: slices end
 * where segments do. */
static int64_t
local_start(const struct apply *a, const Placement *s, int64_t start)
{
	int64_t at = 0, local = 0, pieces = a->s->ranks / s->replication;

	for (int i = 0; i < s->nsegment && at < start; i++) {
		at += s->segment[i];
		local += s->segment[i] / pieces;
	}
	return local;
}

/* Replicas exchange the heads of a rank: one side has all of them. */
static void
localise_exchange(const Graph *g, Attr *a, const Shape *y)
{
	IntList *from = &a->ALL_TO_ALL.segment, *to = &a->ALL_TO_ALL.to_segment;

	if (from->n == 1)
		from->v[0] = y->dim[a->ALL_TO_ALL.axis];
	if (to->n == 1)
		to->v[0] = y->dim[a->ALL_TO_ALL.to_axis] * g->context;
}

static void
localise_attributes(struct apply *a, NodeId id, const struct strategy *w)
{
	Node *n = &a->g->node[id];
	const Placement *x = n->nin ? &w->at[0] : NULL;
	const Shape *y = &a->g->val[n->out[0]].shape;
	int64_t *all = attr_int_of(n->op, &n->attr, "whole_extent");
	int64_t *group = all ? attr_int_of(n->op, &n->attr, "group") : NULL;
	IntList *shape = attr_list_of(n->op, &n->attr, "shape");

	if (shape)                      /* the result's */
		*shape = shape_list(y);
	/* several groups: channels are sharded by groups */
	if (group && *group > 1 && x->kind == PLACEMENT_SHARD && x->axis == 1) {
		*all = *group;
		*group /= a->s->ranks;
	}
	switch (n->op) {
	case OP_ALL_TO_ALL:
		localise_exchange(a->g, &n->attr, y);
		break;
	case OP_SLICE:
		if (x->kind == PLACEMENT_SHARD)
			n->attr.SLICE.start.v[x->axis] = local_start(a, x,
				n->attr.SLICE.start.v[x->axis]);
		break;
	case OP_GATHER:
		if (x->kind == PLACEMENT_SHARD
		    && x->axis == n->attr.GATHER.axis)
			n->attr.GATHER.whole_extent = x->segment[0];
		break;
	default:
		break;
	}
}

/* ---- the loss over sharded classes ---- */

/* Each rank reduces its columns; a gather of three numbers a row combines them
 * to the loss. */
static void
insert_vocab_stats(struct apply *a, NodeId id, const struct strategy *w)
{
	Graph *g = a->g;
	Node *n = &g->node[id];
	Attr attr = attr_default(OP_VOCAB_STATS);
	Placement rows = placement_dim(0, a->s->ranks);
	ValId in[4] = { n->in[0], n->in[1] }, stats;
	int64_t classes = w->at[0].segment[0];

	attr.VOCAB_STATS.whole_extent = classes;
	stats = emit_op(g, a->s->pass->diag, OP_VOCAB_STATS, 2, in, &attr, id);
	if (!stats) {
		a->failed = true;
		return;
	}
	schedule_after(a, id - 1);
	g->val[stats].placement = rows;
	placement_to_attr(&rows, OP_ALL_GATHER, &attr);
	in[3] = emit_conversion(a, OP_ALL_GATHER, stats, &attr, id - 1);
	n = &g->node[id];
	n->in = arena_copy(g->arena, in, sizeof in);
	n->nin = 4;
	n->attr.SCE.whole_extent = classes;
}

/* ---- biases ---- */

/* What broadcasts as v does over dim 1 of a value of that rank, with no dims
 * after it; 0: nothing. */
static ValId
flat_bias(const Graph *g, ValId v, int rank)
{
	const Node *n = &g->node[g->val[v].def];

	if (rank > 2 && (n->op != OP_RESHAPE
	                 || g->val[v].shape.rank != rank - 1
	                 || g->val[n->in[0]].shape.dim[0]
	                    != g->val[v].shape.dim[0]))
		return 0;
	if (rank > 2)
		v = n->in[0];
	return g->val[v].shape.rank == 1 ? v : 0;
}

/* Join a product and a bias that its only reader adds, if no reduction came
 * between them; 0: not joined. */
static ValId
mergeable_bias(const struct apply *a, NodeId id)
{
	const Graph *g = a->g;
	const Node *n = &g->node[id], *m;
	ValId x = n->nin == 2 ? n->in[0] : 0, bias;
	const Shape *s = &g->val[x].shape;

	if (n->op != OP_ADD || !g->val[x].def || g->val[x].output)
		return 0;
	m = &g->node[g->val[x].def];
	if (!(op_info[m->op].flags & F_BIAS2) || m->nin != 2
	    || g->val[x].def >= a->nold
	    || a->s->uses.first[x + 1] - a->s->uses.first[x] != 1
	    || (s->rank > 2 && op_accumulator(m->op)))
		return 0;
	bias = flat_bias(g, n->in[1], s->rank);
	return s->dim[1] == g->val[bias].shape.dim[0] ? bias : 0;
}

static void
merge_bias(struct apply *a, NodeId id, ValId bias)
{
	Graph *g = a->g;
	Node *n = &g->node[id];
	ValId x = n->in[0], y = n->out[0];
	Node *m = &g->node[g->val[x].def];
	ValId in[3] = { m->in[0], m->in[1], bias };

	if (g->val[in[2]].def > g->val[x].def)
		return;         /* its conversion comes later */
	m->in = arena_copy(g->arena, in, sizeof in);
	m->nin = 3;
	m->out[0] = y;
	g->val[y].def = g->val[x].def;
	g->val[y].result_index = 0;
	g->val[x].def = 0;
	n->nout = 0;            /* left out of the order */
}

/* ---- the graph ---- */

static void
set_placements(struct apply *a)
{
	Graph *g = a->g;

	for (ValId v = 1; v < g->nval; v++) {
		Val *x = &g->val[v];

		a->whole[v] = x->shape;
		if (x->kind == V_TEMP && !x->def)
			continue;
		a->placement[v] = *shard_placement(a->s, v);
		placement_local(&a->placement[v], a->s->ranks, &a->whole[v],
		                &x->shape);
		x->placement = placement_unmerged(a->placement[v]);
	}
}

static void
rewrite_node(struct apply *a, NodeId id)
{
	Graph *g = a->g;
	const struct strategy_set *c = &a->s->node[id];
	const struct strategy *w = &c->strategy[c->chosen];
	ValId bias;

	a->count_pass = g->node[id].count_pass;
	localise_attributes(a, id, w);
	for (int k = 0; k < g->node[id].nin && !a->failed; k++) {
		ValId v = g->node[id].in[k];

		if (v) {
			ValId y = convert_value(a, v, &w->at[k], id);

			g->node[id].in[k] = y;
		}
	}
	if (a->failed)
		return;
	if (g->node[id].op == OP_SCE && w->at[0].kind == PLACEMENT_SHARD)
		insert_vocab_stats(a, id, w);
	else if ((bias = mergeable_bias(a, id)))
		merge_bias(a, id, bias);
}

/* Old nodes in their order, new ones after those that they follow. */
static void
order_nodes(struct apply *a)
{
	Graph *g = a->g;
	Arena *tmp = a->s->tmp;
	NodeId *order = arena_array(tmp, g->nnode, sizeof *order);
	NodeId *first = arena_array(tmp, a->nold, sizeof *first);
	NodeId *next = arena_array(tmp, a->nafter + 1, sizeof *next);
	uint32_t n = 0;

	for (size_t i = a->nafter; i-- > 0; ) {
		next[i] = first[a->after[i]];
		first[a->after[i]] = a->nold + (NodeId)i;
	}
	for (NodeId i = 0; i < a->nold; i++) {
		if (i && g->node[i].nout)
			order[n++] = i;
		for (NodeId j = first[i]; j; j = next[j - a->nold])
			order[n++] = j;
	}
	graph_reorder(g, order, n);
}

bool
shard_apply(struct shard *s)
{
	Graph *g = s->g;
	struct apply a = { .s = s, .g = g, .nold = g->nnode, .nval = g->nval };

	a.placement = arena_array(s->tmp, g->nval, sizeof *a.placement);
	a.whole = arena_array(s->tmp, g->nval, sizeof *a.whole);
	a.conversion = arena_array(s->tmp, g->nval, sizeof *a.conversion);
	g->ranks = s->ranks;
	set_placements(&a);
	for (NodeId id = 1; id < a.nold && !a.failed; id++)
		rewrite_node(&a, id);
	if (a.failed)
		return false;
	order_nodes(&a);
	return true;
}
