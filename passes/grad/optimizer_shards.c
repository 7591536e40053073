/* Shards of parameters, of their gradients and of optimizer states: one for
 * every replica.
 *
 * The smallest parameters stay whole on all replicas, as long as they are less
 * than 1 / WHOLE of all elements and messages of their own would take longer to
 * begin than to send: their gradients share collectives.
 */
#include "passes/grad/optimizer_shards.h"
#include "ir/placement.h"
#include "passes/cost/cost.h"

#include <stdlib.h>

enum { WHOLE = 64 };

/* ---- which ---- */

struct size {
	int64_t n;
	ValId param;
};

static int
by_elements(const void *a, const void *b)
{
	const struct size *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return x->param < y->param ? -1 : 1;
}

/* Gathering it would take less than twice what empty messages do. */
static bool
is_mostly_latency(const Graph *g, ValId param)
{
	const struct device_profile *d = device_of(g);
	const struct ring ring = group_ring(g, graph_shard_group(g, false));
	double sent = (double)val_data_bytes(&g->val[param])
		* (double)(ring.ranks - 1) / (double)ring.ranks;

	return device_ring_seconds(d, ring, sent)
		< 2 * device_ring_seconds(d, ring, 0);
}

/* By value: parameters that other stages have as well, whose gradients they
 * exchange. */
static bool *
tied_params(const Graph *g, Arena *scratch)
{
	bool *tied = arena_array(scratch, g->nval, sizeof *tied);

	FOR_NODES (n, g)
		if (n->phase == PH_UPDATE && node_is_message(n))
			tied[g->val[n->nin ? n->in[0] : n->out[0]].param] =
				true;
	return tied;
}

/* cut: by value; set for those of n parameters that are sharded; sorts them.
 * Stages agree on those that they share. */
static void
choose_sharded(const Graph *g, struct size *size, uint32_t n, const bool *tied,
               bool *cut)
{
	int64_t all = 0, whole = 0;

	for (uint32_t i = 0; i < n; i++)
		all += size[i].n;
	qsort(size, n, sizeof *size, by_elements);
	for (uint32_t i = 0; i < n; i++) {
		ValId p = size[i].param;

		whole += size[i].n;
		cut[p] = g->val[p].shape.rank > 0
			&& (whole > all / WHOLE || tied[p]
			    || !is_mostly_latency(g, p));
	}
}

/* Of the parameters that are updated, and of `frozen` ones. */
static void
choose_params(const Graph *g, Arena *scratch, struct update *u, uint32_t n,
              bool frozen, bool *cut)
{
	struct size *size = arena_array(scratch, (size_t)n + g->nval,
	                                sizeof *size);
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!u[i].cut)
			size[count++] = (struct size){
				val_nelem(&g->val[u[i].param]), u[i].param
			};
	FOR_VALS (v, g)
		if (frozen && v->kind == V_PARAM && v->frozen && !v->shard)
			size[count++] = (struct size){ val_nelem(v),
			                               val_id(g, v) };
	choose_sharded(g, size, count, tied_params(g, scratch), cut);
	for (uint32_t i = 0; i < n; i++)
		u[i].cut |= cut[u[i].param];
}

/* ---- pieces ---- */

static const struct replica_shard *
shard_form(Graph *g, ValId param)
{
	const Val *p = &g->val[param];
	struct replica_shard *of;

	if (p->shard)
		return p->shard;
	of = arena_alloc(g->arena, sizeof *of);
	*of = (struct replica_shard){ .shape = p->shape };
	if (p->placement.kind == PLACEMENT_SHARD)
		of->placement = p->placement;
	return of;
}

/* Attributes of what stands between it and its pieces. */
static Attr
shard_attr(Graph *g, ValId param, Op op)
{
	Placement cut = placement_over_replicas(&shard_form(g, param)->shape);
	Attr a;

	placement_to_attr(&cut, op, &a);
	*attr_int_of(op, &a, "group") = graph_shard_group(g, false);
	return a;
}

void
optimizer_shard_mark(Graph *g, ValId param, ValId v)
{
	const struct replica_shard *of = shard_form(g, param);
	Placement cut = shard_over_replicas(of);
	Val *x = &g->val[v];

	x->shard = of;
	if (of->rows)
		return;
	placement_local(&cut, graph_group_size(g, graph_shard_group(g, false)),
	                &of->shape, &x->shape);
	x->placement = placement_of_shard(&of->placement, g->ranks, &x->shape);
}

/* ---- masters ---- */

static bool
is_rounding(const Graph *g, const Node *n)
{
	return op_info[n->op].flags & F_EW && n->nin == 1
		&& dtype_is_half(g->val[n->out[0]].dt)
		&& !dtype_is_half(g->val[n->in[0]].dt);
}

/* By value: the cast to 16 bits that alone reads it; 0: there is none. */
static NodeId *
only_casts(const Graph *g, Arena *scratch)
{
	NodeId *cast = arena_array(scratch, g->nval, sizeof *cast);
	int *reads = arena_array(scratch, g->nval, sizeof *reads);

	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++) {
			if (is_rounding(g, n))
				cast[n->in[k]] = node_id(g, n);
			reads[n->in[k]]++;
		}
	FOR_VALS (v, g)
		if (reads[val_id(g, v)] > 1 || v->output)
			cast[val_id(g, v)] = 0;
	return cast;
}

/* The whole of a piece with the parameter's placement; appended. */
static Node *
new_gather(Graph *g, ValId param, ValId piece, const Shape *s, NodeId like)
{
	Node *n = node_new(g, OP_GATHER_PIECES, 1, &piece, 1, like);

	n->attr = shard_attr(g, param, OP_GATHER_PIECES);
	n->attr.GATHER_PIECES.shape.n = s->rank;
	for (int i = 0; i < s->rank; i++)
		n->attr.GATHER_PIECES.shape.v[i] = s->dim[i];
	return n;
}

/* v is a piece of the parameter now; adjoints stay what they were. */
static void
mark_piece(Graph *g, ValId param, ValId v)
{
	PlacementKind kind = g->val[param].placement.kind;

	optimizer_shard_mark(g, param, v);
	if (kind == PLACEMENT_REPLICATE_PARTIAL)
		g->val[v].placement.kind = kind;
}

/* A master, and what the cast makes of it, are pieces now; behind the cast the
 * whole is put together again. */
static void
cut_master(Graph *g, ValId param, NodeId cast)
{
	ValId whole = g->node[cast].out[0], piece;
	Node *n = new_gather(g, param, 0, &g->val[whole].shape, cast);

	piece = n->in[0] = n->out[0];
	n->out[0] = whole;
	g->node[cast].out[0] = piece;
	g->val[whole].def = node_id(g, n);
	g->val[piece].def = cast;
	g->val[piece].dt = g->val[whole].dt;
	val_rename(g, piece, arena_printf(g->arena, "%s.piece",
	                                  g->val[whole].name));
	mark_piece(g, param, piece);
	mark_piece(g, param, param);
}

/* ---- parameters ---- */

static ValId
gather_param(Graph *g, ValId param, NodeId reader)
{
	Shape shape = g->val[param].shape;
	ValId y = new_gather(g, param, param, &shape, reader)->out[0];

	g->val[y].dt = g->val[param].dt;
	g->val[y].shape = shape;
	g->val[y].placement = g->val[param].placement;
	val_rename(g, y, arena_printf(g->arena, "%s.whole",
	                              g->val[param].name));
	return y;
}

/* Nodes read the parameters of cut[nval] from what is gathered before the first
 * of them, once in each count pass and in the step. */
static uint32_t
gather_params(Graph *g, Arena *scratch, const bool *cut, ValId nval,
              NodeId *behind)
{
	NodeId end = g->nnode;
	ValId *whole = arena_array(scratch, nval, sizeof *whole);
	uint32_t count = 0;

	for (NodeId id = 1; id < end; id++)
		for (int k = 0; k < g->node[id].nin; k++) {
			ValId p = g->node[id].in[k], y;

			if (p >= nval || !cut[p])
				continue;
			y = whole[p];
			if (!y || g->node[g->val[y].def].count_pass
			          != g->node[id].count_pass) {
				y = whole[p] = gather_param(g, p, id);
				behind[count++] = id - 1;
			}
			g->node[id].in[k] = y;
		}
	for (ValId p = 1; p < nval; p++)
		if (cut[p])
			mark_piece(g, p, p);
	return count;
}

/* Make pieces of those of cut[] that a cast alone reads, and if `all` of the
 * others; as optimizer_shards_choose. */
static uint32_t
cut_params(Graph *g, Arena *scratch, bool *cut, bool all, const NodeId **where)
{
	NodeId *cast = only_casts(g, scratch), *behind;
	const bool *tied = tied_params(g, scratch);
	ValId nval = g->nval;
	uint32_t count = 0, reads = 0;

	FOR_NODES (n, g)
		reads += (uint32_t)n->nin;
	*where = behind = arena_array(scratch, (size_t)reads + 1,
	                              sizeof *behind);
	for (ValId p = 1; p < nval; p++) {
		cut[p] &= !g->val[p].output;
		/* other stages may read a tied one in float32 */
		if (!cut[p] || !cast[p] || tied[p] || g->val[p].dt != DT_F32)
			continue;
		cut_master(g, p, cast[p]);
		behind[count++] = cast[p];
		cut[p] = false;
	}
	if (all)
		count += gather_params(g, scratch, cut, nval, behind + count);
	return count;
}

void
optimizer_shards_of_rows(Graph *g, struct update *u, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		u[i].cut = g->val[u[i].param].shard != NULL;
		if (u[i].cut)
			optimizer_shard_mark(g, u[i].param, u[i].grad);
	}
}

uint32_t
optimizer_shards_choose(Graph *g, Arena *scratch, struct update *u, uint32_t n,
                        bool params, const NodeId **behind)
{
	bool *cut = arena_array(scratch, g->nval, sizeof *cut);

	choose_params(g, scratch, u, n, params, cut);
	return cut_params(g, scratch, cut, params, behind);
}

uint32_t
optimizer_shards_follow(Graph *g, Arena *scratch, const Graph *training,
                        const NodeId **behind)
{
	bool *cut = arena_array(scratch, g->nval, sizeof *cut);

	FOR_VALS (v, g)
		cut[val_id(g, v)] = v->kind == V_PARAM && !v->shard
			&& training->val[val_find(training, v->name)].shard;
	return cut_params(g, scratch, cut, true, behind);
}

/* ---- updates ---- */

static ValId
emit_shard_op(Graph *g, Diag *d, const struct update *u, Op op, int nin,
              const ValId *in, Phase phase)
{
	Attr a = shard_attr(g, u->param, op);
	ValId y = emit_op(g, d, op, nin, in, &a, u->after);

	if (y)
		g->node[g->nnode - 1].phase = phase;
	return y;
}

ValId
optimizer_shard_scatter(Graph *g, Diag *d, const struct update *u, Phase phase)
{
	ValId y = emit_shard_op(g, d, u, OP_REDUCE_SCATTER, 1, &u->grad, phase);

	if (y)
		optimizer_shard_mark(g, u->param, y);
	return y;
}

ValId
optimizer_shard_own(Graph *g, Diag *d, const struct update *u)
{
	ValId y;

	if (g->val[u->param].shard)
		return u->param;
	y = emit_shard_op(g, d, u, OP_OWN, 1, &u->param, PH_UPDATE);
	if (y) {
		optimizer_shard_mark(g, u->param, y);
		val_rename(g, y, arena_printf(g->arena, "%s.own",
		                              g->val[u->param].name));
	}
	return y;
}

bool
optimizer_shard_gather(Graph *g, Diag *d, const struct update *u, ValId piece)
{
	ValId in[2] = { u->param, piece }, y;

	if (g->val[u->param].shard)
		return true;
	y = emit_shard_op(g, d, u, OP_GATHER_INTO, 2, in, PH_UPDATE);
	if (!y)
		return false;
	val_rename(g, y, arena_printf(g->arena, "%s.next",
	                              g->val[u->param].name));
	g->val[y].placement = g->val[u->param].placement;
	return true;
}
