/* Nodes that exchange rows, and those between them. */
#include "passes/expert_parallel/exchange.h"
#include "ir/placement.h"

#include <math.h>

void
exchange_append(struct exchange *e, NodeId id)
{
	e->order = arena_grow(e->p->scratch, e->order, e->norder, &e->cap,
	                      e->norder + 1, sizeof *e->order);
	e->order[e->norder++] = id;
}

/* n with other operands, whose results have rows of the group, as v has of one
 * replica. */
ValId
exchange_emit_rows(struct exchange *e, Op op, int nin, const ValId *in,
                   const Attr *attr, ValId v, NodeId like)
{
	Graph *g = e->g;
	Node *n = node_new(g, op, nin, in, 1, like);
	ValId y = n->out[0];
	Val *to = &g->val[y], *from = &g->val[v];
	IntList *shape;

	n->attr = *attr;
	to->shape = from->shape;
	to->dt = from->dt;
	to->placement = from->placement;
	e->failed |= !mul_ok(exchange_has_capacity(e) ? e->slots[e->at].room
	                     : from->shape.dim[0], e->count,
	                     &to->shape.dim[0]);
	if (e->failed) {
		node_error(g, e->p->diag, n, "--ep: too many rows");
		return 0;
	}
	if (exchange_shards_rows(g, v))
		to->placement.segment[0] *= e->count;
	shape = attr_list_of(op, &n->attr, "shape");
	if (shape)
		shape->v[0] = to->shape.dim[0];
	e->failed = !shape_infer(g, e->p->diag, n);
	if (e->failed)
		return 0;
	val_rename(g, y, arena_printf(g->arena, "%s.rows", g->val[v].name));
	exchange_append(e, g->nnode - 1);
	return y;
}

/* The attributes of an op between replicas. */
static Attr
group_attr(const Graph *g, Op op)
{
	Attr a = attr_default(op);

	*attr_int_of(op, &a, "group") = graph_shard_group(g, true);
	return a;
}

static ValId
emit_all_rows(struct exchange *e, ValId v, NodeId like)
{
	Attr a = group_attr(e->g, OP_GATHER_ROWS);

	return exchange_emit_rows(e, OP_GATHER_ROWS, 1, &v, &a, v, like);
}

/* This replica's rows: node n, the last one, takes the place of what computed
 * them alone. */
static void
replace_result(struct exchange *e, Node *n, ValId v)
{
	Graph *g = e->g;
	ValId fresh = n->out[0];

	n->out[0] = v;
	g->val[fresh].def = 0;
	g->val[v].def = node_id(g, n);
	g->val[v].result_index = 0;
	exchange_append(e, node_id(g, n));
}

static void
emit_row_sum(struct exchange *e, ValId v)
{
	Node *n = node_new(e->g, OP_SUM_ROWS, 1, &e->rows[v].v, 1,
	                   e->g->val[v].def);

	n->attr = group_attr(e->g, OP_SUM_ROWS);
	replace_result(e, n, v);
}

/* ---- by slots ---- */

/* The next node of a chain of moves, which does not change the placement of
 * what each row has; `before`: so many dims stand before those. */
static ValId
emit_move(struct exchange *e, Op op, int nin, const ValId *in,
          const Attr *attr, ValId like, int before)
{
	Graph *g = e->g;
	ValId y = e->failed ? 0 : emit_op(g, e->p->diag, op, nin, in, attr,
	                                  g->val[like].def);

	e->failed |= y == 0;
	if (e->failed)
		return 0;
	g->val[y].placement = g->val[like].placement;
	if (g->val[y].placement.kind == PLACEMENT_SHARD) {
		g->val[y].placement.axis += before;
		g->val[y].placement.first_axis += before;
	}
	exchange_append(e, g->val[y].def);
	return y;
}

/* Rows in slots, v's after they went to their replicas or, `back`, before. */
static ValId
emit_exchange(struct exchange *e, ValId x, ValId like, bool back)
{
	Graph *g = e->g;
	Attr a = group_attr(g, OP_EXCHANGE_ROWS), to;
	Shape rows = g->val[x].shape, blocks = { rows.rank + 2, {
		back ? e->count : 1, back ? 1 : e->count,
		e->slots[e->at].room } };
	ValId y;

	for (int i = 1; i < rows.rank; i++)
		blocks.dim[i + 2] = rows.dim[i];
	to = attr_reshape(&blocks);
	y = emit_move(e, OP_RESHAPE, 1, &x, &to, like, 2);
	y = emit_move(e, OP_EXCHANGE_ROWS, 1, &y, &a, like, 2);
	to = attr_reshape(&rows);
	return emit_move(e, OP_RESHAPE, 1, &y, &to, like, 0);
}

/* v of the rows that this replica's experts get. */
static ValId
emit_dispatch(struct exchange *e, ValId v)
{
	const struct slots *s = &e->slots[e->at];
	ValId in[3] = { v, s->row, s->slot }, y = s->expert;

	if (v != s->idx)
		y = emit_move(e, OP_TAKE_ROWS, 3, in, NULL, v, 0);
	y = emit_exchange(e, y, v, false);
	if (y)
		val_rename(e->g, y, arena_printf(e->g->arena, "%s.rows",
		                                 e->g->val[v].name));
	return y;
}

static void
emit_collect(struct exchange *e, ValId v)
{
	const struct slots *s;
	ValId in[3];

	e->at = e->rows[v].slots;
	s = &e->slots[e->at];
	in[0] = emit_exchange(e, e->rows[v].v, v, true);
	in[1] = s->slot;
	in[2] = s->row;
	if (!e->failed)
		replace_result(e, node_new(e->g, OP_TAKE_ROWS, 3, in, 1,
		                           e->g->val[v].def), v);
}

ValId
exchange_emit_gather(struct exchange *e, ValId v, NodeId like)
{
	return exchange_has_capacity(e) ? emit_dispatch(e, v)
		: emit_all_rows(e, v, like);
}

void
exchange_emit_own(struct exchange *e, ValId v)
{
	if (exchange_has_capacity(e))
		emit_collect(e, v);
	else
		emit_row_sum(e, v);
}

/* Slots for as many rows as --expert-capacity says, of those that idx has. */
static bool
emit_slots(struct exchange *e, const Node *reader, NodeId id)
{
	Graph *g = e->g;
	Attr a = attr_default(OP_EXPERT_SLOTS);
	ValId idx = exchange_choice(reader), y;
	int64_t n = g->val[idx].shape.dim[0];
	double room = ceil(e->p->opt->expert_capacity * (double)n
	                   / (double)e->count);
	struct slots *s = &e->slots[e->nslots];

	a.EXPERT_SLOTS.all = exchange_experts(reader);
	a.EXPERT_SLOTS.replicas = e->count;
	a.EXPERT_SLOTS.room = room < (double)n ? (int64_t)room : n;
	a.EXPERT_SLOTS.drop = e->p->opt->expert_drop;
	y = emit_op(g, e->p->diag, OP_EXPERT_SLOTS, 1, &idx, &a, id);
	if (!y)
		return false;
	*s = (struct slots){ idx, y, g->node[g->nnode - 1].out[1],
		g->node[g->nnode - 1].out[2], a.EXPERT_SLOTS.all,
		a.EXPERT_SLOTS.room };
	e->at = e->nslots++;
	exchange_append(e, g->nnode - 1);
	return true;
}

bool
exchange_find_slots(struct exchange *e, NodeId id)
{
	const Node n = e->g->node[id];

	for (e->at = 1; e->at < e->nslots; e->at++)
		if (e->slots[e->at].idx == exchange_choice(&n)
		    && e->slots[e->at].all == exchange_experts(&n))
			return true;
	return emit_slots(e, &n, id);
}
