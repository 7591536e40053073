/* Offload: optimizer states in host memory (ZeRO-Offload, Ren et al. 2021, but
 * the device computes the updates).
 *
 *     m, v in host memory:  fetch m, fetch v, update, offload m', offload v'
 *
 * The states of a large parameter pass in parts, each with its part of the
 * parameter and of the gradient, so that no more than PART bytes of a state
 * need memory at a time.  States of less than SMALL bytes stay: their transfers
 * would cost latencies and free next to nothing.
 *
 * what    Val.host of states; F_HOST nodes around updates
 * method  states are taken from the largest on while --host-memory has room
 * needs   P_FUSED, so that no other pass moves what belongs together
 * cost    linear
 */
#include "passes/offload/offload.h"
#include "runtime/support/number.h"

#include <stdlib.h>

enum { PART = 64 << 20, SMALL = 1 << 16, STATES = 2 };

struct offload {
	Pass *p;
	Graph *g;
	NodeId *order;                  /* the nodes as they shall run */
	uint32_t n;
	size_t cap;
};

/* ---- what is offloaded ---- */

/* States of element-wise updates. */
int
offload_states_of(const Node *n)
{
	return op_info[n->op].flags & F_UPDATE && op_info[n->op].flags & F_COPY
		? op_norm(n->op) - 2 : 0;
}

bool
offload_takes_state(const Graph *g, ValId v)
{
	return val_data_bytes(&g->val[v]) >= SMALL && !g->val[v].host;
}

struct state {
	ValId v;
	int64_t bytes;
};

static int
by_size(const void *a, const void *b)
{
	const struct state *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return (x->v > y->v) - (x->v < y->v);
}

/* From the largest on; false: there is none of SMALL bytes. */
static bool
mark_states(struct offload *o)
{
	Graph *g = o->g;
	struct state *s = arena_array(o->p->scratch, g->nval, sizeof *s);
	struct planned *d = &o->p->planned;
	int64_t room = o->p->opt->host_memory
		? o->p->opt->host_memory : INT64_MAX;
	uint32_t n = 0;

	FOR_NODES (node, g)
		for (int k = 0; k < offload_states_of(node); k++) {
			ValId v = node->in[2 + k];

			if (offload_takes_state(g, v))
				s[n++] = (struct state){ v,
					val_data_bytes(&g->val[v]) };
		}
	qsort(s, n, sizeof *s, by_size);
	for (uint32_t i = 0; i < n; i++) {
		int64_t all = s[i].bytes + o->p->target->align;

		if (all > room)
			continue;
		room -= all;
		g->val[s[i].v].host = true;
		d->nhost_state++;
	}
	d->nstate = n;
	return d->nhost_state > 0;
}

/* ---- transfers ---- */

static void
add_to_order(struct offload *o, NodeId id)
{
	o->order = arena_grow(o->p->scratch, o->order, o->n, &o->cap,
	                      (size_t)o->n + 1, sizeof *o->order);
	o->order[o->n++] = id;
}

/* Emits a node like `like` in its phase; its result, which lies on ranks as
 * `as` does; 0 after a diagnostic. */
static ValId
transfer(struct offload *o, Op op, int nin, const ValId *in, ValId as,
         NodeId like)
{
	Graph *g = o->g;
	ValId y = emit_op(g, o->p->diag, op, nin, in, NULL, like);

	if (!y)
		return 0;
	add_to_order(o, g->val[y].def);
	g->val[y].host = op_info[op].flags & F_OFFLOAD;
	val_rename(g, y, arena_printf(g->arena, "%s.%s", g->val[as].name,
	                              g->val[y].host ? "offloaded"
	                              : "fetched"));
	g->val[y].placement = g->val[as].placement;
	g->val[y].shard = g->val[as].shard;
	return y;
}

static bool
fetch_states(struct offload *o, NodeId like, ValId *in, int nstate)
{
	for (int k = 2; k < 2 + nstate; k++)
		if (o->g->val[in[k]].host) {
			in[k] = transfer(o, OP_FETCH, 1, &in[k], in[k], like);
			if (!in[k])
				return false;
		}
	return true;
}

/* The update's new states over those in host memory. */
static bool
offload_states(struct offload *o, NodeId like, const ValId *host,
               const ValId *out, int nstate)
{
	for (int k = 0; k < nstate; k++) {
		ValId in[2] = { host[2 + k], out[1 + k] };

		if (o->g->val[in[0]].host
		    && !transfer(o, OP_OFFLOAD_INTO, 2, in, in[0], like))
			return false;
	}
	return true;
}

static bool
wrap_update(struct offload *o, NodeId id, int nstate)
{
	Graph *g = o->g;
	ValId host[2 + STATES], *in = g->node[id].in;

	for (int k = 0; k < 2 + nstate; k++)
		host[k] = in[k];
	if (!fetch_states(o, id, in, nstate))
		return false;
	add_to_order(o, id);
	return offload_states(o, id, host, g->node[id].out, nstate);
}

/* ---- parts ---- */

/* Rows of a part; 0: the update stays whole.  What rounds at random takes the
 * element's index in the whole, and so does a shard.  A copy in 16 bits, an
 * update's last result, has no parts either. */
static int64_t
rows_of_part(const struct offload *o, const Node *n, int nstate)
{
	const Graph *g = o->g;
	const Val *p = &g->val[n->in[0]];
	int64_t row, all = val_data_bytes(p);

	if (g->ranks || p->shard || p->shape.rank < 1 || all <= PART
	    || (n->nin == op_info[n->op].max && n->in[n->nin - 1]))
		return 0;
	for (int k = 0; k < 2 + nstate; k++)
		if (g->val[n->in[k]].dt != DT_F32)
			return 0;
	FOR_NODES (reader, g)
		for (int k = 0; k < reader->nin; k++)
			if (reader->in[k] == n->out[0])
				return 0;
	row = all / p->shape.dim[0];
	row = row > PART ? 1 : PART / row;
	return row < p->shape.dim[0] ? row : 0;
}

/* Rows from .. from + n - 1 of v. */
static ValId
cut_rows(struct offload *o, ValId v, int64_t from, int64_t n, NodeId like)
{
	Graph *g = o->g;
	int64_t start[MAX_RANK] = { from };
	Shape s = g->val[v].shape;
	ValId y;

	s.dim[0] = n;
	y = emit_slice(g, o->p->diag, v, start, s.dim, like);
	if (!y)
		return 0;
	val_rename(g, y, arena_printf(g->arena, "%s.from%lld", g->val[v].name,
	                              (long long)from));
	g->val[y].host = g->val[v].host;
	g->node[g->val[y].def].phase = g->node[like].phase;
	add_to_order(o, g->val[y].def);
	return y;
}

/* One update for each part.  All parts are cut before the first is updated:
 * the whole is no value any more from then on. */
static bool
update_parts(struct offload *o, NodeId id, int nstate, int64_t rows)
{
	Graph *g = o->g;
	const int all = 2 + nstate, nin = g->node[id].nin;
	const int nout = op_info[g->node[id].op].nout;
	int64_t extent = g->val[g->node[id].in[0]].shape.dim[0];
	int64_t count = (extent + rows - 1) / rows;
	ValId *part = arena_array(o->p->scratch, (size_t)(count * all),
	                          sizeof *part);

	for (int64_t i = 0; i < count; i++)
		for (int k = 0; k < all; k++) {
			int64_t left = extent - i * rows;
			ValId v = cut_rows(o, g->node[id].in[k], i * rows,
			                     left < rows ? left : rows, id);

			if (!v)
				return false;
			part[i * all + k] = v;
		}
	for (int64_t i = 0; i < count; i++) {
		ValId in[8], *out;
		NodeId made;

		for (int k = 0; k < nin; k++)
			in[k] = k < all ? part[i * all + k]
				: g->node[id].in[k];
		if (!fetch_states(o, id, in, nstate))
			return false;
		made = node_id(g, node_new(g, g->node[id].op, nin, in, nout,
		                           id));
		g->node[made].attr = g->node[id].attr;
		out = g->node[made].out;
		g->val[out[nout - 1]].def = 0;
		out[nout - 1] = 0;      /* a copy in 16 bits */
		if (!shape_infer(g, o->p->diag, &g->node[made]))
			return false;
		add_to_order(o, made);
		if (!offload_states(o, id, &part[i * all], out, nstate))
			return false;
	}
	return true;
}

/* ---- the pass ---- */

static bool
offload_update(struct offload *o, NodeId id)
{
	const Node *n = &o->g->node[id];
	int nstate = offload_states_of(n);
	bool any = false;
	int64_t rows;

	for (int k = 0; k < nstate; k++)
		any |= o->g->val[n->in[2 + k]].host;
	if (!any) {
		add_to_order(o, id);
		return true;
	}
	rows = rows_of_part(o, n, nstate);
	return rows ? update_parts(o, id, nstate, rows)
		: wrap_update(o, id, nstate);
}

bool
pass_offload(Pass *p, Graph *g)
{
	struct offload o = { .p = p, .g = g };
	NodeId end = g->nnode;

	p->planned.nstate = p->planned.nhost_state = 0;
	if (!(p->opt->offload == OFFLOAD_STATE || p->variant.offload_states)
	    || graph_has_op(g, OP_FETCH) || !mark_states(&o))
		return true;
	for (NodeId id = 1; id < end; id++)
		if (!offload_update(&o, id))
			return false;
	graph_reorder(g, o.order, o.n);
	return true;
}
