/* What can be wrong with a sharded graph. */
#include "ir/placement.h"
#include "ir/infer/infer.h"
#include "tests/shard/mutations.h"

#include <stdlib.h>

/* ---- tools ---- */

static Node *
node_of(const struct site *s)
{
	return &s->g->node[s->node];
}

static bool
is_between(const Node *n)
{
	return op_info[n->op].flags & F_COMM || n->op == OP_REPLICATE;
}

static Val *
operand(const struct site *s)
{
	return &s->g->val[node_of(s)->in[0]];
}

static Val *
result(const struct site *s)
{
	return &s->g->val[node_of(s)->out[0]];
}

/* What v stands for is said of `to` instead. */
static void
pass_on(Graph *g, ValId v, ValId to)
{
	Val *a = &g->val[v], *b = &g->val[to];

	if (b->kind == V_TEMP && !b->param)
		b->param = a->param;
	if (b->kind == V_TEMP && !b->grad_of)
		b->grad_of = a->grad_of;
	a->param = a->grad_of = 0;
	if (a->output)
		b->output = true;
	a->output = false;
	if (g->loss == v)
		g->loss = to;
}

/* Node `id` vanishes; `last` goes behind node `at`, if not 0. */
static void
reorder(Graph *g, NodeId gone, NodeId last, NodeId at)
{
	NodeId *order = calloc(g->nnode, sizeof *order);
	uint32_t n = 0;

	for (NodeId i = 1; i < g->nnode; i++) {
		if (i != gone && i != last)
			order[n++] = i;
		if (i == at)
			order[n++] = last;
	}
	graph_reorder(g, order, n);
	free(order);
}

static void
read_instead(Graph *g, ValId v, ValId y)
{
	NodeId def = g->val[y].def;

	val_replace(g, v, y, 1, g->nnode);
	for (int k = 0; k < g->node[def].nin; k++)
		if (g->node[def].in[k] == y)
			g->node[def].in[k] = v;
}

/* An op more behind the result of the site's node, for all its readers. */
static bool
insert(struct site *s, Op op, const Attr *attr)
{
	Graph *g = s->g;
	ValId v = node_of(s)->out[0];
	ValId y = emit_op(g, s->quiet, op, 1, &v, attr, s->node);

	if (!y)
		return false;
	g->node[g->nnode - 1].phase = node_of(s)->phase;
	read_instead(g, v, y);
	pass_on(g, v, y);
	reorder(g, 0, g->nnode - 1, s->node);
	return true;
}

/* ---- conversions ---- */

static bool
remove_one(struct site *s, int variant)
{
	Node *n = node_of(s);
	ValId x = n->in[0], y = n->out[0];

	(void)variant;
	if (!is_between(n) || !shape_eq(&operand(s)->shape,
	                                &result(s)->shape))
		return false;
	val_replace(s->g, y, x, 1, s->g->nnode);
	pass_on(s->g, y, x);
	reorder(s->g, s->node, 0, 0);
	return true;
}

static bool
double_one(struct site *s, int variant)
{
	static const Op more[] = { OP_ALL_REDUCE, OP_REPLICATE };
	Node *n = node_of(s);
	Attr a = n->attr;

	if (!is_between(n))
		return false;
	if (variant == 2)
		return shape_eq(&operand(s)->shape, &result(s)->shape)
			&& insert(s, n->op, &a);
	a = attr_default(more[variant]);
	return more[variant] != n->op && insert(s, more[variant], &a);
}

/* Ops of the same shapes in place of each other. */
static bool
exchange(struct site *s, int variant)
{
	static const struct { Op from, to; int64_t side; } way[] = {
		{ OP_ALL_REDUCE, OP_REPLICATE, 0 },
		{ OP_ALL_REDUCE, OP_COPY, 0 },
		{ OP_REPLICATE, OP_ALL_REDUCE, 0 },
		{ OP_REPLICATE, OP_ALL_REDUCE, 1 },
		{ OP_ALL_GATHER, OP_OWN_GRAD, 0 },
		{ OP_OWN_GRAD, OP_ALL_GATHER, 0 },
		{ OP_OWN_GRAD, OP_ALL_GATHER, 1 },
		{ OP_REDUCE_SCATTER, OP_OWN, 0 },
		{ OP_REDUCE_SCATTER, OP_OWN, 1 },
		{ OP_OWN, OP_REDUCE_SCATTER, 0 },
	};
	Node *n = node_of(s);
	Op to = way[variant].to;
	Attr a = attr_default(to);
	int64_t *side;

	if (n->op != way[variant].from)
		return false;
	if (to != OP_ALL_REDUCE && to != OP_REPLICATE && to != OP_COPY) {
		Placement cut = placement_of_attr(n);

		placement_to_attr(&cut, to, &a);
	}
	n->op = to;
	n->attr = a;
	side = attr_int_of(to, &n->attr, to == OP_OWN ? "from" : "side");
	if (side)
		*side = way[variant].side;
	return true;
}

static bool
flip_side(struct site *s, int variant)
{
	Node *n = node_of(s);
	int64_t *side = attr_int_of(n->op, &n->attr, "side");

	if (!is_between(n))
		return false;
	if (variant) {
		if (n->op != OP_ALL_REDUCE)
			return false;
		n->attr.ALL_REDUCE.reduction = 1;
		return true;
	}
	if (!side)
		side = attr_int_of(n->op, &n->attr, "from");
	if (!side)
		return false;
	*side = !*side;
	return true;
}

/* The cut that the op's attributes say. */
static bool
change_cut(struct site *s, int variant)
{
	Node *n = node_of(s);
	Placement cut;
	Attr a;

	if (!(op_info[n->op].flags & F_COMM) || n->op == OP_ALL_REDUCE
	    || n->op == OP_ALL_TO_ALL)
		return false;
	cut = placement_of_attr(n);
	switch (variant) {
	case 0:                         /* the dim before, or the last one */
		cut.axis = cut.axis ? cut.axis - 1
			: operand(s)->shape.rank - 1;
		cut.first_axis = cut.axis;
		break;
	case 1:
		cut.segment[0]++;
		break;
	case 2:                         /* less, of the same piece */
		cut.segment[cut.nsegment - 1]--;
		break;
	case 3:                         /* stretches as one */
		for (int i = 1; i < cut.nsegment; i++)
			cut.segment[0] += cut.segment[i];
		if (cut.nsegment == 1)
			return false;
		cut.nsegment = 1;
		break;
	case 4:                         /* one as two stretches */
		if (cut.nsegment > 1 || cut.segment[0] % (2 * s->g->ranks))
			return false;
		cut.nsegment = 2;
		cut.segment[0] /= 2;
		cut.segment[1] = cut.segment[0];
		break;
	case 5:                         /* with the dim before */
		if (cut.first_axis == 0)
			return false;
		cut.first_axis--;
		break;
	default:
		cut.replication = cut.replication == 1 ? 2 : 1;
		break;
	}
	a = n->attr;
	placement_to_attr(&cut, n->op, &a);
	if (attr_int_of(n->op, &a, "side"))
		a.ALL_GATHER.side = n->attr.ALL_GATHER.side;
	if (n->op == OP_OWN)
		a.OWN.from = n->attr.OWN.from;
	n->attr = a;
	return true;
}

static bool
change_exchange(struct site *s, int variant)
{
	Node *n = node_of(s);
	Attr a = n->attr;

	if (n->op != OP_ALL_TO_ALL)
		return false;
	if (variant == 0)
		n->attr.ALL_TO_ALL.to_segment.v[0]++;
	else if (variant == 1)
		n->attr.ALL_TO_ALL.to_axis = a.ALL_TO_ALL.axis;
	else
		n->attr.ALL_TO_ALL.axis = a.ALL_TO_ALL.to_axis;
	return true;
}

/* An all_reduce moves to where a reader's result is: 0 at every reader of one
 * element-wise operand, 1 at every other. */
static bool
move_behind(struct site *s, int variant)
{
	Graph *g = s->g;
	Node *n = node_of(s), *next = n + 1;
	ValId x, y, in, fresh;
	NodeId at;
	Attr a = n->attr;
	Op op = n->op;

	if (op != OP_ALL_REDUCE && op != OP_REPLICATE)
		return false;
	x = n->in[0];
	y = n->out[0];
	for (; next < g->node + g->nnode; next++)
		for (int k = 0; k < next->nin; k++)
			if (next->in[k] == y)
				goto found;
	return false;
found:
	if (variant != !(op_info[next->op].flags & F_EW))
		return false;
	at = node_id(g, next);
	for (int k = 0; k < next->nin; k++)
		if (next->in[k] == y)
			next->in[k] = x;
	in = next->out[0];
	fresh = emit_op(g, s->quiet, op, 1, &in, &a, at);
	if (!fresh)
		return false;
	g->node[g->nnode - 1].phase = g->node[at].phase;
	read_instead(g, in, fresh);
	pass_on(g, in, fresh);
	reorder(g, 0, g->nnode - 1, at);
	return true;
}

/* A reduction moves before the op that made its operand: to one of its
 * operands instead. */
static bool
move_before(struct site *s, int variant)
{
	Graph *g = s->g;
	Node *n = node_of(s), *def;
	ValId x, y, in, fresh;
	Attr a = n->attr;
	NodeId at;

	if (n->op != OP_ALL_REDUCE)
		return false;
	x = n->in[0];
	y = n->out[0];
	at = g->val[x].def;
	def = &g->node[at];
	if (!at || variant >= def->nin || !def->in[variant])
		return false;
	in = def->in[variant];
	if (dtype_info[g->val[in].dt].cls != 'f')
		return false;
	fresh = emit_op(g, s->quiet, OP_ALL_REDUCE, 1, &in, &a, at);
	if (!fresh)
		return false;
	g->node[g->nnode - 1].phase = g->node[at].phase;
	g->node[at].in[variant] = fresh;
	val_replace(g, y, x, 1, g->nnode);
	pass_on(g, y, x);
	reorder(g, s->node, g->nnode - 1, at - 1);
	return true;
}

/* ---- what else sharding made ---- */

static bool
change_norm(struct site *s, int variant)
{
	Node *n = node_of(s);

	if (n->op != OP_SUM_SQUARES && n->op != OP_GRAD_NORM)
		return false;
	switch (variant) {
	case 0:                         /* the first is left out */
		if (n->nin < 2)
			return false;
		n->in++;
		n->nin--;
		return true;
	case 1:                         /* the last is */
		if (n->nin < 2)
			return false;
		n->nin--;
		if (n->op == OP_GRAD_NORM)
			n->attr.GRAD_NORM.sums = 0;
		return true;
	case 2:                         /* one twice */
		if (n->nin < 2)
			return false;
		n->in[1] = n->in[0];
		return true;
	case 3:
		if (n->op != OP_GRAD_NORM)
			return false;
		n->attr.GRAD_NORM.sums = !n->attr.GRAD_NORM.sums;
		return true;
	default:
		return false;
	}
}

/* Every sum of squares goes in as often as its factor says. */
static bool
change_factor(struct site *s, int variant)
{
	Graph *g = s->g;
	Node *n = node_of(s);
	const Node *def;

	(void)variant;
	if (n->op != OP_DIV || n->phase != PH_UPDATE)
		return false;
	def = &g->node[g->val[n->in[0]].def];
	if (def->op != OP_SUM_SQUARES)
		return false;
	n->in[1] = val_scalar(g, DT_F32, 1);
	return true;
}

static bool
change_part(struct site *s, int variant)
{
	Node *n = node_of(s);
	int64_t *part = attr_int_of(n->op, &n->attr, "whole_extent");

	if (!part || *part <= 0 || is_between(n))
		return false;
	if (variant == 0)
		*part = 0;
	else
		*part += variant == 1 ? 1 : -1;
	return true;
}

/* Stretches of the line of small gradients, heads behind each other ... */
static bool
change_start(struct site *s, int variant)
{
	Node *n = node_of(s);

	if (n->op != OP_SLICE || variant >= n->attr.SLICE.start.n
	    || (n->phase != PH_FORWARD
	        && result(s)->placement.kind != PLACEMENT_SHARD)
	    || operand(s)->placement.kind != PLACEMENT_SHARD
	    || operand(s)->placement.axis != variant
	    || n->attr.SLICE.start.v[variant] == 0)
		return false;
	n->attr.SLICE.start.v[variant]--;
	return true;
}

/* ---- states ---- */

static bool
change_kind(struct site *s, int variant)
{
	Val *v = &s->g->val[s->val];

	if (v->placement.kind == (PlacementKind)variant
	    || ((PlacementKind)variant == PLACEMENT_SHARD && v->shape.rank == 0))
		return false;
	if ((PlacementKind)variant == PLACEMENT_SHARD) {
		int axis = v->shape.rank - 1;

		v->placement = placement_dim(axis, v->shape.dim[axis] * s->g->ranks);
	} else {
		v->placement.kind = (PlacementKind)variant;
	}
	return true;
}

static bool
change_split(struct site *s, int variant)
{
	Val *v = &s->g->val[s->val];
	Placement *p = &v->placement;

	if (p->kind != PLACEMENT_SHARD)
		return false;
	switch (variant) {
	case 0:
		p->axis = p->axis ? p->axis - 1 : v->shape.rank - 1;
		p->first_axis = p->axis;
		return true;
	case 1:
		p->segment[0]++;
		return true;
	case 2:
		if (p->segment[p->nsegment - 1] < 2)
			return false;
		p->segment[p->nsegment - 1]--;
		return true;
	case 3:
		p->replication = p->replication == 1 ? s->g->ranks : 1;
		return true;
	case 4:
		if (p->nsegment > 1 || p->segment[0] % (2 * s->g->ranks))
			return false;
		p->nsegment = 2;
		p->segment[0] /= 2;
		p->segment[1] = p->segment[0];
		return true;
	case 5:
		if (p->nsegment < 2)
			return false;
		for (int i = 1; i < p->nsegment; i++)
			p->segment[0] += p->segment[i];
		p->nsegment = 1;
		return true;
	default:
		return false;
	}
}

/* A rank's piece of extent one, said of another dim of extent one: shapes do
 * not tell. */
static bool
change_unit_dim(struct site *s, int variant)
{
	Val *v = &s->g->val[s->val];
	Placement *p = &v->placement;

	if (p->kind != PLACEMENT_SHARD || v->shape.dim[p->axis] != 1)
		return false;
	for (int i = 0; i < v->shape.rank; i++)
		if (i != p->axis && v->shape.dim[i] == 1 && variant-- == 0) {
			p->first_axis = p->axis = i;
			return true;
		}
	return false;
}

static bool
change_extent(struct site *s, int variant)
{
	Val *v = &s->g->val[s->val];
	int axis = v->placement.axis;

	if (v->placement.kind != PLACEMENT_SHARD || v->shape.dim[axis] < 2)
		return false;
	v->shape.dim[axis] += variant ? -1 : 1;
	return true;
}

/* ---- the list ---- */

const struct mutation_kind mutation_kind[] = {
	{ "removed", remove_one, 1, false, false },
	{ "doubled", double_one, 3, false, false },
	{ "exchanged", exchange, 10, false, false },
	{ "other side", flip_side, 2, false, false },
	{ "cut otherwise", change_cut, 7, false, false },
	{ "exchange", change_exchange, 3, false, false },
	{ "moved behind", move_behind, 2, false, false },
	{ "moved before", move_before, 3, false, false },
	{ "norm", change_norm, 4, false, false },
	{ "norm's factor", change_factor, 1, false, false },
	{ "part of an axis", change_part, 3, false, false },
	{ "start of a slice", change_start, 4, false, false },
	{ "state", change_kind, 4, true, true },
	{ "split", change_split, 6, true, true },
	{ "extent", change_extent, 2, true, true },
	{ "another unit dim", change_unit_dim, 3, true, true },
};
const int mutation_kinds = sizeof mutation_kind / sizeof *mutation_kind;
