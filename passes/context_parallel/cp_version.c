/* Versions of values: whole, a part, a summand; and the nodes that make them.
 *
 * A part of what is whole is computed from parts of operands where the op's
 * rule says how, so that masks never exist whole; else it is taken (own).
 */
#include "passes/context_parallel/cp_partition.h"

/* ---- nodes ---- */

static void
append_node(struct cp_partition *c, NodeId id)
{
	c->order = arena_grow(c->p->scratch, c->order, c->norder,
	                      &c->order_cap, c->norder + 1, sizeof *c->order);
	c->order[c->norder++] = id;
}

ValId
cp_emit(struct cp_partition *c, Op op, int nin, const ValId *in,
        const Attr *attr, NodeId like)
{
	ValId y;

	for (int k = 0; k < nin; k++)
		if (!in[k])
			return 0;
	y = emit_op(c->g, c->p->diag, op, nin, in, attr, like);
	if (y)
		append_node(c, c->g->val[y].def);
	return y;
}

ValId
cp_sum(struct cp_partition *c, ValId v, NodeId like)
{
	Attr a = attr_default(OP_ALL_REDUCE);

	a.ALL_REDUCE.group = GROUP_REPLICAS;
	return cp_emit(c, OP_ALL_REDUCE, 1, &v, &a, like);
}

static ValId
emit_type(struct cp_partition *c, ValId v, DType to, NodeId like)
{
	Attr a = attr_cast(to);

	return !v || c->g->val[v].dt == to ? v
	       : cp_emit(c, OP_CAST, 1, &v, &a, like);
}

/* 1 / parts, from 1 / replicas. */
static ValId
emit_part_share(struct cp_partition *c, NodeId like)
{
	double others = (double)(c->g->replicas / c->parts);
	ValId in[2] = { cp_emit(c, OP_SHARE, 0, NULL, NULL, like) };

	if (others == 1)
		return in[0];
	in[1] = val_scalar(c->g, DT_F32, others);
	return cp_emit(c, OP_MUL, 2, in, NULL, like);
}

ValId
cp_scale(struct cp_partition *c, ValId v, bool up, NodeId like)
{
	DType dt = c->g->val[v].dt, wide = dtype_is_half(dt) ? DT_F32 : dt;
	ValId in[2] = { emit_type(c, v, wide, like),
		up ? val_scalar(c->g, wide, (double)c->parts)
		: emit_type(c, emit_part_share(c, like), wide, like) };

	return emit_type(c, cp_emit(c, OP_MUL, 2, in, NULL, like), dt, like);
}

/* ---- versions ---- */

static void
add_version(struct cp_partition *c, ValId v, const Placement *s, ValId y)
{
	struct cp_version *m = arena_alloc(c->p->scratch, sizeof *m);
	NodeId def = c->g->val[y].def;

	*m = (struct cp_version){ *s, c->g->node[def].count_pass, y,
		                  c->version[v] };
	c->version[v] = m;
}

/* Readers of v itself, such as a total over micro-batches, may be in another
 * pass; conversions are not. */
static struct cp_version *
find_version(const struct cp_partition *c, ValId v, const Placement *s,
             int count_pass)
{
	for (struct cp_version *m = c->version[v]; m; m = m->next)
		if (placement_eq(&m->placement, s)
		    && (m->count_pass == count_pass
		        || placement_eq(s, &c->placement[v])))
			return m;
	return NULL;
}

void
cp_redefine(struct cp_partition *c, NodeId id, ValId by)
{
	ValId v = c->g->node[id].out[0];

	find_version(c, v, &c->placement[v], c->g->node[id].count_pass)->v = by;
}

/* A collective of those with the same samples. */
static ValId
emit_between(struct cp_partition *c, Op op, ValId x, Attr *a, NodeId like,
             int count_pass)
{
	ValId y;

	*attr_int_of(op, a, "mirror") = c->g->zigzag;
	*attr_int_of(op, a, "group") = GROUP_CONTEXT;
	y = cp_emit(c, op, 1, &x, a, like);
	if (y)
		c->g->node[c->g->val[y].def].count_pass = count_pass;
	return y;
}

/* ... from or to a part. */
static ValId
emit_collective(struct cp_partition *c, Op op, ValId x, const Placement *s,
              NodeId like, int count_pass)
{
	Attr a;

	placement_to_attr(s, op, &a);
	if (op == OP_OWN)
		a.OWN.from = 1;
	if (op == OP_ALL_GATHER)
		a.ALL_GATHER.side = 1;
	return emit_between(c, op, x, &a, like, count_pass);
}

static void
set_segments(Node *n, const Shape *whole, const Placement *s)
{
	int64_t *segments = attr_int_of(n->op, &n->attr, "position_segments");

	if (segments && s->kind == PLACEMENT_SHARD)
		*segments = shape_span(whole, 0, s->first_axis) * s->nsegment;
}

/* Attributes that hold extents become those of a part. */
static void
localise(const struct cp_partition *c, NodeId of, Node *n, const Placement *at)
{
	const Node *old = &c->g->node[of];
	const Placement *y = &at[old->nin], *x = at;
	IntList *shape = attr_list_of(n->op, &n->attr, "shape");

	if (shape && n->nout)
		*shape = shape_list(&c->g->val[n->out[0]].shape);
	if (n->op == OP_SLICE && x->kind == PLACEMENT_SHARD)
		n->attr.SLICE.start.v[x->axis] /= c->parts;
	if (n->op == OP_ATTENTION && y->kind == PLACEMENT_SHARD) {
		n->attr.ATTENTION.context = c->parts;
		n->attr.ATTENTION.share_heads = y->axis == 1;
	}
	set_segments(n, &c->g->val[old->out[0]].shape, y);
}

bool
cp_emit_node(struct cp_partition *c, NodeId id, const Placement *at)
{
	Graph *g = c->g;
	int nin = g->node[id].nin, nout = g->node[id].nout;
	ValId *in = arena_array(c->p->scratch, (size_t)nin + 1, sizeof *in);
	Node *n;

	for (int k = 0; k < nin; k++) {
		ValId v = g->node[id].in[k];

		in[k] = v ? cp_version(c, v, &at[k], id) : 0;
		if (v && !in[k])
			return false;
	}
	n = node_new(g, g->node[id].op, nin, in, nout, id);
	n->attr = g->node[id].attr;
	for (int k = 0; k < nout; k++) {
		ValId old = g->node[id].out[k];
		Val *y = &g->val[n->out[k]];

		if (!old) {
			y->def = 0;
			n->out[k] = 0;
			continue;
		}
		y->dt = g->val[old].dt;
		placement_local(&at[nin + k], c->parts, &g->val[old].shape,
		                &y->shape);
		add_version(c, old, &at[nin + k], n->out[k]);
		c->any |= at[nin + k].kind == PLACEMENT_SHARD;
	}
	localise(c, id, n, at);
	append_node(c, node_id(g, n));
	return true;
}

/* ---- conversions ---- */

/* A part of what v's node computes, from parts of its operands; false: its
 * rule does not say how. */
static bool
compute_part(struct cp_partition *c, ValId v, const Placement *to)
{
	const Val *x = &c->g->val[v];
	const Node *n = &c->g->node[x->def];
	Placement *at;

	if (!x->def)
		return false;
	at = arena_array(c->p->scratch, (size_t)(n->nin + n->nout) + 1,
	                 sizeof *at);
	return cp_follow(c, n, n->nin + x->result_index, to, at, true)
		&& placement_eq(&at[n->nin + x->result_index], to)
		&& cp_emit_node(c, x->def, at);
}

static ValId
take_part(struct cp_partition *c, ValId v, const Placement *to, NodeId reader)
{
	const Placement whole = cp_whole();
	NodeId like = c->g->val[v].def ? c->g->val[v].def : reader;
	int pass = c->g->node[reader].count_pass;
	struct cp_version *m;

	if (compute_part(c, v, to)) {
		m = find_version(c, v, to, pass);
		if (m)
			return m->v;
	}
	if (to->nsegment > MAX_RANK || diag_errors(c->p->diag)) {
		cp_refuse(c, reader, arena_printf(
			c->p->scratch, "expected at most %d samples with "
			"their positions in one dim", c->g->zigzag
			? MAX_RANK / 2 : MAX_RANK));
		return 0;
	}
	return emit_collective(c, OP_OWN, cp_version(c, v, &whole, reader), to,
	                     like, pass);
}

static ValId
gather_parts(struct cp_partition *c, ValId v, NodeId reader)
{
	const Placement *from = &c->placement[v];
	ValId y;

	if (from->nsegment > MAX_RANK || from->first_axis != from->axis) {
		cp_refuse_mixing(c, reader);
		return 0;
	}
	y = find_version(c, v, from, c->g->node[reader].count_pass)->v;
	return emit_collective(c, OP_ALL_GATHER, y, from, c->g->val[v].def,
	                     c->g->node[reader].count_pass);
}

/* From positions to heads, or back. */
static ValId
exchange_parts(struct cp_partition *c, ValId v, const Placement *to,
               NodeId reader)
{
	const Placement *from = &c->placement[v];
	int pass = c->g->node[reader].count_pass;
	Attr a;

	placement_to_exchange(from, to, &a);
	return emit_between(c, OP_ALL_TO_ALL, find_version(c, v, from, pass)->v,
	                    &a, c->g->val[v].def, pass);
}

static ValId
add_summands(struct cp_partition *c, ValId v, NodeId reader)
{
	const Placement *from = &c->placement[v];
	Attr a = attr_default(OP_ALL_REDUCE);
	ValId x = find_version(c, v, from, c->g->node[reader].count_pass)->v;

	a.ALL_REDUCE.group = GROUP_CONTEXT;
	a.ALL_REDUCE.side = 1;
	x = cp_emit(c, OP_ALL_REDUCE, 1, &x, &a, c->g->val[v].def);
	if (x)
		c->g->node[c->g->val[x].def].count_pass
			= c->g->node[reader].count_pass;
	return x;
}

static ValId
make_version(struct cp_partition *c, ValId v, const Placement *to,
             NodeId reader)
{
	const Placement *from = &c->placement[v];
	const Placement whole = cp_whole();
	ValId x;

	if (to->kind == PLACEMENT_SHARD)
		return from->kind == PLACEMENT_SHARD
			? exchange_parts(c, v, to, reader)
			: take_part(c, v, to, reader);
	if (to->kind == PLACEMENT_PARTIAL
	    && from->kind == PLACEMENT_REPLICATE_PARTIAL) {
		x = cp_version(c, v, &whole, reader);
		return x ? cp_scale(c, x, false, reader) : 0;
	}
	if (to->kind == PLACEMENT_REPLICATE_PARTIAL
	    && from->kind == PLACEMENT_SHARD)
		return gather_parts(c, v, reader);
	if (to->kind == PLACEMENT_REPLICATE_PARTIAL
	    && from->kind == PLACEMENT_PARTIAL)
		return add_summands(c, v, reader);
	cp_refuse_mixing(c, reader);
	return 0;
}

ValId
cp_version(struct cp_partition *c, ValId v, const Placement *to, NodeId reader)
{
	int pass = c->g->node[reader].count_pass;
	struct cp_version *m = find_version(c, v, to, pass);
	ValId y;

	if (m)
		return m->v;
	y = make_version(c, v, to, reader);
	if (y && !find_version(c, v, to, pass))
		add_version(c, v, to, y);
	return y;
}
