/* Shards of parameters, of their gradients and of optimizer states: one for
 * every replica.
 *
 * The smallest parameters stay whole on all replicas, as long as they are less
 * than 1 / WHOLE of all elements: their gradients share collectives, and for
 * that many biases and scales a message each, twice a step, would cost more
 * time than their states cost memory.
 */
#include "passes/grad/optimizer_shards.h"
#include "ir/placement.h"

#include <stdlib.h>

enum { WHOLE = 64 };

/* ---- which ---- */

struct size {
	int64_t n;
	uint32_t at;                    /* of the updates */
};

static int
by_elements(const void *a, const void *b)
{
	const struct size *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

static void
choose_sharded(const Graph *g, Arena *scratch, struct update *u, uint32_t n)
{
	struct size *size = arena_array(scratch, (size_t)n + 1, sizeof *size);
	int64_t all = 0, whole = 0;

	for (uint32_t i = 0; i < n; i++) {
		size[i] = (struct size){ val_nelem(&g->val[u[i].param]), i };
		all += size[i].n;
	}
	qsort(size, n, sizeof *size, by_elements);
	for (uint32_t i = 0; i < n; i++) {
		struct update *of = &u[size[i].at];

		whole += size[i].n;
		of->cut = whole > all / WHOLE
			&& g->val[of->param].shape.rank > 0;
	}
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
	*attr_int_of(op, &a, "group") = 1;
	return a;
}

void
optimizer_shard_mark(Graph *g, ValId param, ValId v)
{
	const struct replica_shard *of = shard_form(g, param);
	Placement cut = placement_over_replicas(&of->shape);
	Val *x = &g->val[v];

	x->shard = of;
	placement_local(&cut, g->replicas, &of->shape, &x->shape);
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

/* What the cast makes is a piece now, behind which the whole is put together
 * again. */
static void
gather_copy(Graph *g, ValId param, NodeId cast)
{
	ValId whole = g->node[cast].out[0], none = 0, piece;
	Node *n = node_new(g, OP_GATHER_PIECES, 1, &none, 1, cast);
	const Shape *s = &g->val[whole].shape;

	piece = n->in[0] = n->out[0];
	n->attr = shard_attr(g, param, OP_GATHER_PIECES);
	n->attr.GATHER_PIECES.shape.n = s->rank;
	for (int i = 0; i < s->rank; i++)
		n->attr.GATHER_PIECES.shape.v[i] = s->dim[i];
	n->out[0] = whole;
	g->node[cast].out[0] = piece;
	g->val[whole].def = node_id(g, n);
	g->val[piece].def = cast;
	g->val[piece].dt = g->val[whole].dt;
	val_rename(g, piece, arena_printf(g->arena, "%s.piece",
	                                  g->val[whole].name));
	optimizer_shard_mark(g, param, piece);
}

/* Its adjoint stays what it was. */
static void
cut_master(Graph *g, ValId param, NodeId cast)
{
	PlacementKind kind = g->val[param].placement.kind;

	gather_copy(g, param, cast);
	optimizer_shard_mark(g, param, param);
	if (kind == PLACEMENT_REPLICATE_PARTIAL) {
		g->val[param].placement.kind = kind;
		g->val[g->node[cast].out[0]].placement.kind = kind;
	}
}

uint32_t
optimizer_shards_choose(Graph *g, Arena *scratch, struct update *u, uint32_t n,
           NodeId *behind)
{
	NodeId *cast = only_casts(g, scratch);
	uint32_t count = 0;

	choose_sharded(g, scratch, u, n);
	for (uint32_t i = 0; i < n; i++) {
		ValId p = u[i].param;

		if (!u[i].cut || !cast[p] || g->val[p].dt != DT_F32)
			continue;
		cut_master(g, p, cast[p]);
		behind[count++] = cast[p];
	}
	return count;
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
