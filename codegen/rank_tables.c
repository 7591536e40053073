/* The tables of a sharded graph: placements of tensors, and the transfers of
 * steps.
 */
#include "codegen/rank_tables.h"
#include "ir/placement.h"

#include <inttypes.h>

/* ---- placements ---- */

static int
find_placement(const struct rank_tables *r, const Placement *s)
{
	for (size_t i = 0; i < r->nplacement; i++)
		if (placement_eq(&r->placement[i], s))
			return (int)i;
	return -1;
}

static void
add_placement(struct rank_tables *r, Arena *a, const Placement *s)
{
	if ((s->kind != PLACEMENT_SHARD && s->kind != PLACEMENT_PARTIAL)
	    || find_placement(r, s) >= 0)
		return;
	r->placement = arena_grow(a, r->placement, r->nplacement, &r->cap,
	                          r->nplacement + 1, sizeof *r->placement);
	r->placement[r->nplacement++] = *s;
}

/* The placement of v on a replica's ranks, or that of the value that v is a
 * shard of. */
static const Placement *
val_placement(const Val *v)
{
	return v->shard ? &v->shard->placement : &v->placement;
}

static int
find_rank_shape(const struct rank_tables *r, const Shape *s)
{
	for (size_t i = 0; i < r->nshape; i++)
		if (shape_eq(&r->shape[i], s))
			return (int)i;
	return -1;
}

static void
add_val_placement(struct rank_tables *r, Arena *a, const Val *v)
{
	add_placement(r, a, val_placement(v));
	if (!v->shard || find_rank_shape(r, &v->shard->shape) >= 0)
		return;
	r->shape = arena_grow(a, r->shape, r->nshape, &r->shape_cap,
	                      r->nshape + 1, sizeof *r->shape);
	r->shape[r->nshape++] = v->shard->shape;
}

static bool
is_transfer_node(const Node *n)
{
	return op_info[n->op].flags & (F_COMM | F_HOST);
}

/* One block of all replicas', or one for each of them. */
static Placement
placement_of_blocks(const Graph *g, ValId v)
{
	const Shape *s = &g->val[v].shape;
	int axis = s->dim[0] == 1 ? 0 : 1;

	return placement_dim(axis, s->dim[1 - axis]);
}

/* The placement of the sharded side of a collective; without one, a placement
 * that has no row. */
static Placement
collective_placement(const Graph *g, const Node *n)
{
	if (n->op == OP_GATHER_ROWS)
		return placement_dim(0, g->val[n->out[0]].shape.dim[0]);
	if (n->op == OP_SUM_ROWS)
		return placement_dim(0, g->val[n->in[0]].shape.dim[0]);
	if (n->op == OP_EXCHANGE_ROWS)
		return placement_of_blocks(g, n->in[0]);
	return n->op == OP_ALL_REDUCE
		|| op_info[n->op].flags & (F_HOST | F_STAGES)
		? (Placement){ .kind = PLACEMENT_REPLICATE }
		: placement_of_attr(n);
}

static Placement
result_placement(const Graph *g, const Node *n)
{
	if (n->op == OP_EXCHANGE_ROWS)
		return placement_of_blocks(g, n->out[0]);
	return n->op == OP_ALL_TO_ALL ? placement_after_exchange(n)
	     : (Placement){ .kind = PLACEMENT_REPLICATE };
}

static const Node *
step_node(const struct emitted_program *p, int64_t i)
{
	return &p->g->node[p->plan->step[i].gnode];
}

void
rank_tables_collect(struct rank_tables *r, Arena *a,
                    const struct emitted_program *p)
{
	for (int64_t i = 0; i < p->ntensor; i++)
		if (p->val[i])
			add_val_placement(r, a, &p->g->val[p->val[i]]);
	for (int64_t i = 0; i < p->plan->nstep; i++) {
		const Node *n = step_node(p, i);
		Placement from, to;

		if (!is_transfer_node(n))
			continue;
		from = collective_placement(p->g, n);
		to = result_placement(p->g, n);
		add_placement(r, a, &from);
		add_placement(r, a, &to);
	}
}

static const char *
name_placement(const struct rank_tables *r, Arena *a, const Placement *s)
{
	int i = find_placement(r, s);

	return i < 0 ? "NULL" : arena_printf(a, "&placement[%d]", i);
}

const char *
rank_tables_placement(const struct rank_tables *r, Arena *a, const Val *v)
{
	return name_placement(r, a, val_placement(v));
}

const char *
rank_tables_shard(const struct rank_tables *r, Arena *a, const Val *v)
{
	return v->shard ? arena_printf(a, "shard_of[%d]", find_rank_shape(r,
	                               &v->shard->shape)) : "NULL";
}

static void
emit_placement(struct out *o, const Placement *s)
{
	if (s->kind == PLACEMENT_PARTIAL) {
		out_put(o, "\t{ CKR_PARTIAL, 0, 0, 0, 1, {0}, 0 },\n");
		return;
	}
	out_put(o, "\t{ CKR_SHARD, %d, %d, %d, %" PRId64 ", {", s->axis,
	        s->first_axis, s->nsegment, s->replication);
	for (int k = 0; k < s->nsegment; k++)
		out_put(o, "%s%" PRId64, k ? ", " : " ", s->segment[k]);
	out_put(o, " }, %d },\n", s->mirror);
}

static void
emit_shard_shapes(struct out *o, const struct rank_tables *r)
{
	out_put(o, "\nstatic const int64_t shard_of[][CKR_MAX_DIMS] = {\n");
	for (size_t i = 0; i < r->nshape; i++) {
		out_put(o, "\t{");
		for (int k = 0; k < r->shape[i].rank; k++)
			out_put(o, "%s%" PRId64, k ? ", " : " ",
			        r->shape[i].dim[k]);
		out_put(o, " },\n");
	}
	out_put(o, "};\n");
}

void
rank_tables_emit(struct out *o, const struct rank_tables *r)
{
	if (r->nplacement) {
		out_put(o, "\nstatic const struct ckr_placement placement[] "
		        "= {\n");
		for (size_t i = 0; i < r->nplacement; i++)
			emit_placement(o, &r->placement[i]);
		out_put(o, "};\n");
	}
	if (r->nshape)
		emit_shard_shapes(o, r);
}

/* ---- collectives ---- */

static const char *
collective_text(Op op)
{
	static const char *const text[OP_COUNT] = {
		[OP_ALL_REDUCE] = "CKR_ALL_REDUCE",
		[OP_ALL_GATHER] = "CKR_ALL_GATHER",
		[OP_REDUCE_SCATTER] = "CKR_REDUCE_SCATTER",
		[OP_ALL_TO_ALL] = "CKR_ALL_TO_ALL",
		[OP_OWN] = "CKR_LOCAL_SHARD",
		[OP_OWN_GRAD] = "CKR_LOCAL_SHARD_GRAD",
		[OP_GATHER_INTO] = "CKR_ALL_GATHER",
		[OP_GATHER_PIECES] = "CKR_ALL_GATHER",
		[OP_GATHER_ROWS] = "CKR_ALL_GATHER",
		[OP_SUM_ROWS] = "CKR_REDUCE_SCATTER",
		[OP_EXCHANGE_ROWS] = "CKR_ALL_TO_ALL",
		[OP_FETCH] = "CKR_FETCH",
		[OP_OFFLOAD] = "CKR_OFFLOAD",
		[OP_OFFLOAD_INTO] = "CKR_OFFLOAD",
	};

	return text[op];
}

/* The transfer of step i, with that of the next step, to one message. */
static bool
joins_next(const struct emitted_program *p, int64_t i)
{
	return i + 1 < p->plan->nstep
		&& node_joins(p->g, p->plan->step[i + 1].gnode);
}

static const char *
kind_text(const Node *n)
{
	if (!node_is_message(n))
		return collective_text(n->op);
	return node_message(n).sends ? "CKR_SEND" : "CKR_RECEIVE";
}

static void
emit_comm(struct out *o, const struct rank_tables *r,
          const struct emitted_program *p, int64_t i)
{
	static const char *const axis[GROUP_COUNT] = {
		[GROUP_RANKS] = "CKR_TP", [GROUP_REPLICAS] = "CKR_DP",
		[GROUP_SHARDS] = "CKR_SHARDS", [GROUP_COPIES] = "CKR_COPIES",
		[GROUP_EXPERTS] = "CKR_EXPERTS",
		[GROUP_EXPERT_COPIES] = "CKR_EXPERT_COPIES",
		[GROUP_STAGES] = "CKR_STAGES",
		[GROUP_CONTEXT] = "CKR_CONTEXT",
	};
	const Node *node = step_node(p, i);
	Placement from = collective_placement(p->g, node);
	Placement to = result_placement(p->g, node);
	struct node_message message = { 0, 0, false };

	if (node_is_message(node))
		message = node_message(node);
	out_put(o, "\t{ %s, %s, %d, %s, %s, %" PRId64 ", %d, %" PRId64 ", %"
	        PRId64 " },\n",
	        kind_text(node), axis[node_group(node)],
	        node->op == OP_ALL_REDUCE
	                && node->attr.ALL_REDUCE.reduction != 0,
	        name_placement(r, o->arena, &from),
	        name_placement(r, o->arena, &to),
	        emitted_instr(p, plan_end(p->plan, i)), joins_next(p, i),
	        message.peer, message.tag);
}

void
rank_tables_emit_comm(struct out *o, const struct rank_tables *r,
                      const struct emitted_part *part, int nparts, int which)
{
	int64_t n = 0;

	for (int k = 0; k < nparts; k++)
		for (int64_t i = part[k].first; i < part[k].end; i++) {
			if (!rank_tables_has_transfer(part[k].p, i))
				continue;
			if (!n++)
				out_put(o, "\nstatic const struct ckr_comm "
				        "comm%d[] = {\n", which);
			emit_comm(o, r, part[k].p, i);
		}
	if (n)
		out_put(o, "};\n");
}

bool
rank_tables_has_transfer(const struct emitted_program *p, int64_t i)
{
	return is_transfer_node(step_node(p, i));
}

/* ---- what the run time cannot do ---- */

bool
rank_tables_check(const Graph *g, Diag *d)
{
	FOR_VALS (v, g)
		if (v->kind == V_INPUT
		    && v->placement.kind != PLACEMENT_REPLICATE
		    && v->placement.kind != PLACEMENT_REPLICATE_PARTIAL)
			return diag_error(d, "input '%s' is sharded; inputs "
			                  "must be replicated on every rank",
			                  v->name);
	return true;
}
