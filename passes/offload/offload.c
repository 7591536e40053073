/* Offload: optimizer states and float32 master weights in host memory
 * (ZeRO-Offload, Ren et al. 2021, but the device computes the updates).
 *
 *     w, m, v in host memory:  fetch w, m, v; update, which writes the 16-bit
 *                              copy on the device; offload w', m', v'
 *
 * A parameter leaves if its copy in 16 bits is all that other nodes read.
 * Those of a large parameter pass in parts, each with its part of the gradient
 * and of what stays, so that no more than PART bytes of each need memory at a
 * time.  What has less than SMALL bytes stays: its transfers would cost
 * latencies and free next to nothing.
 *
 * In a graph that evaluates, casts of such parameters are their copies, and
 * other nodes fetch them.
 *
 * what    Val.host of states and parameters; F_HOST nodes around updates
 * method  they are taken from the largest on while --host-memory has room,
 *         states before parameters of their size
 * needs   P_FUSED, so that no other pass moves what belongs together
 * cost    linear
 */
#include "passes/offload/offload.h"

#include <stdlib.h>
#include <string.h>

enum { PART = 64 << 20, SMALL = 1 << 16, OPERANDS = 8 };

struct offload {
	Pass *p;
	Graph *g;
	NodeId *order;                  /* the nodes as they shall run */
	uint32_t n;
	size_t cap;
};

/* ---- what is offloaded ---- */

static bool
is_element_wise(const Node *n)
{
	return op_info[n->op].flags & F_UPDATE && op_info[n->op].flags & F_COPY;
}

/* How many states the update has: operands 2 and those after it. */
static int
states_of(const Node *n)
{
	return is_element_wise(n) ? op_norm(n->op) - 2 : 0;
}

/* The operand that holds the parameter's copy in 16 bits; 0: there is none. */
static int
copy_of(const Node *n)
{
	return is_element_wise(n) && n->nin == op_info[n->op].max
	       && n->in[n->nin - 1] ? n->nin - 1 : 0;
}

/* By value: whether nodes read it, but for updates of it. */
static bool *
values_read(const Graph *g, Arena *scratch)
{
	bool *read = arena_array(scratch, g->nval, sizeof *read);

	FOR_NODES (n, g)
		for (int k = is_element_wise(n); k < n->nin; k++)
			read[n->in[k]] |= !k || k != copy_of(n);
	return read;
}

/* The parameter of a node whose copy alone is read; 0: there is none. */
static ValId
master_of(const Graph *g, const Node *n, const bool *read)
{
	ValId v = is_element_wise(n) ? n->in[0] : 0;

	return copy_of(n) && g->val[v].kind == V_PARAM
	       && g->val[v].dt == DT_F32 && !read[v] ? v : 0;
}

static bool
is_large(const Graph *g, ValId v)
{
	return val_data_bytes(&g->val[v]) >= SMALL && !g->val[v].host;
}

/* What the updates alone use, of SMALL bytes or more; how many. */
static uint32_t
list_kept(const Graph *g, const bool *read, ValId *v)
{
	uint32_t count = 0;

	FOR_NODES (n, g) {
		ValId master = master_of(g, n, read);

		for (int k = 0; k < states_of(n); k++)
			if (is_large(g, n->in[2 + k]))
				v[count++] = n->in[2 + k];
		if (master && is_large(g, master))
			v[count++] = master;
	}
	return count;
}

struct kept {
	ValId v;
	int64_t bytes;
	bool state, leaves;
};

static int
by_size(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	if (x->state != y->state)
		return x->state ? -1 : 1;
	return (x->v > y->v) - (x->v < y->v);
}

/* All that may leave, and whether it does within so many bytes of host memory,
 * from the largest on; how many, and *bytes that leave. */
static uint32_t
choose_kept(const Pass *p, const Graph *g, int64_t room, struct kept **kept,
            int64_t *bytes, Arena *scratch)
{
	const bool *read = values_read(g, scratch);
	ValId *v = arena_array(scratch, g->nval, sizeof *v);
	uint32_t n = list_kept(g, read, v);
	struct kept *s = arena_array(scratch, (size_t)n + 1, sizeof *s);

	for (uint32_t i = 0; i < n; i++)
		s[i] = (struct kept){ v[i], val_data_bytes(&g->val[v[i]]),
			              g->val[v[i]].kind == V_STATE, false };
	qsort(s, n, sizeof *s, by_size);
	*bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		int64_t all = s[i].bytes + p->target->align;

		s[i].leaves = all <= room - *bytes;
		if (s[i].leaves)
			*bytes += all;
	}
	*kept = s;
	return n;
}

/* False: nothing leaves. */
static bool
mark_kept(struct offload *o)
{
	const struct options *opt = o->p->opt;
	const int64_t most = opt->host_memory ? opt->host_memory : INT64_MAX;
	const int64_t room = o->p->variant.state_room;
	struct planned *d = &o->p->planned;
	struct kept *s;
	int64_t bytes;

	d->nstate = choose_kept(o->p, o->g, room && room < most ? room : most,
	                        &s, &bytes, o->p->scratch);
	for (uint32_t i = 0; i < d->nstate; i++)
		if (s[i].leaves) {
			o->g->val[s[i].v].host = true;
			d->nhost_state++;
		}
	return d->nhost_state > 0;
}

int64_t
offload_bytes(const Pass *p, const Graph *g, int64_t room, Arena *scratch)
{
	struct kept *s;
	int64_t bytes;

	choose_kept(p, g, room, &s, &bytes, scratch);
	return bytes;
}

/* Whether it rounds to 16 bits and does no more, perhaps as a loop. */
static bool
rounds_to_half(const Graph *g, const Node *n)
{
	Op op = n->body ? n->body->op[0].op : n->op;

	return (!n->body || n->body->nop == 1) && op_info[op].flags & F_EW
	       && n->nin == 1 && n->nout == 1
	       && g->val[n->in[0]].dt == DT_F32
	       && dtype_is_half(g->val[n->out[0]].dt);
}

/* Whether nodes cast the parameter to 16 bits, and none but the update reads
 * it otherwise. */
static bool
is_just_cast(const Graph *g, ValId v)
{
	bool cast = false;

	FOR_NODES (n, g)
		for (int k = is_element_wise(n); k < n->nin; k++) {
			if (n->in[k] != v)
				continue;
			if (!rounds_to_half(g, n))
				return false;
			cast = true;
		}
	return cast;
}

int64_t
offload_would_free(const Graph *g, Arena *scratch)
{
	const bool *read = values_read(g, scratch);
	ValId *v = arena_array(scratch, g->nval, sizeof *v);
	uint32_t n = list_kept(g, read, v);
	int64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += g->val[v[i]].nbytes;
	FOR_NODES (u, g) {
		ValId p = is_element_wise(u) && !copy_of(u) ? u->in[0] : 0;

		if (g->val[p].kind == V_PARAM && is_large(g, p)
		    && g->val[p].dt == DT_F32 && is_just_cast(g, p))
			sum += g->val[p].nbytes / 2;    /* it gets a copy */
	}
	return sum;
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

/* The operand that result k of an update is written over, if that is in host
 * memory; -1: it is not. */
static int
host_operand(const Graph *g, const Node *n, const ValId *in, int k)
{
	int i = op_overwrites(n->op, k);

	return i < n->nin && in[i] && g->val[in[i]].host ? i : -1;
}

/* Operands in[] of the update are fetched; false: after a diagnostic. */
static bool
fetch_kept(struct offload *o, NodeId id, ValId *in)
{
	for (int k = 0; k < o->g->node[id].nout; k++) {
		int i = host_operand(o->g, &o->g->node[id], in, k);

		if (i >= 0) {
			in[i] = transfer(o, OP_FETCH, 1, &in[i], in[i], id);
			if (!in[i])
				return false;
		}
	}
	return true;
}

/* The update's results out[] over operands in[] in host memory. */
static bool
offload_kept(struct offload *o, NodeId id, const ValId *in, const ValId *out)
{
	for (int k = 0; k < o->g->node[id].nout; k++) {
		int i = host_operand(o->g, &o->g->node[id], in, k);
		ValId into[2] = { i < 0 ? 0 : in[i], out[k] };

		if (i >= 0
		    && !transfer(o, OP_OFFLOAD_INTO, 2, into, into[0], id))
			return false;
	}
	return true;
}

static bool
wrap_update(struct offload *o, NodeId id)
{
	Graph *g = o->g;
	ValId host[OPERANDS], *in = g->node[id].in;

	for (int k = 0; k < g->node[id].nin; k++)
		host[k] = in[k];
	if (!fetch_kept(o, id, in))
		return false;
	add_to_order(o, id);
	return offload_kept(o, id, host, g->node[id].out);
}

/* ---- parts ---- */

/* Whether operand k of an update has a part for each part of the parameter. */
static bool
passes_in_parts(const Node *n, int k)
{
	return k < 2 + states_of(n) || (k > 0 && k == copy_of(n));
}

/* Rows of a part; 0: the update stays whole.  What rounds at random takes the
 * element's index in the whole, and so does a shard. */
static int64_t
rows_of_part(const struct offload *o, const Node *n)
{
	const Graph *g = o->g;
	const Val *p = &g->val[n->in[0]];
	int64_t row, all = val_data_bytes(p);

	if (g->ranks || p->shard || p->shape.rank < 1 || all <= PART)
		return 0;
	for (int k = 0; k < 2 + states_of(n); k++)
		if (g->val[n->in[k]].dt != DT_F32 && k != 1)
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
update_parts(struct offload *o, NodeId id, int64_t rows)
{
	Graph *g = o->g;
	const int nin = g->node[id].nin, nout = g->node[id].nout;
	bool copy = copy_of(&g->node[id]);
	int64_t extent = g->val[g->node[id].in[0]].shape.dim[0];
	int64_t count = (extent + rows - 1) / rows;
	ValId *part = arena_array(o->p->scratch, (size_t)(count * nin),
	                          sizeof *part);

	for (int64_t i = 0; i < count; i++)
		for (int k = 0; k < nin; k++) {
			int64_t left = extent - i * rows;
			ValId v = g->node[id].in[k];

			if (v && passes_in_parts(&g->node[id], k)) {
				v = cut_rows(o, v, i * rows,
				             left < rows ? left : rows, id);
				if (!v)
					return false;
			}
			part[i * nin + k] = v;
		}
	for (int64_t i = 0; i < count; i++) {
		ValId in[OPERANDS], *out;
		NodeId made;

		for (int k = 0; k < nin; k++)
			in[k] = part[i * nin + k];
		if (!fetch_kept(o, id, in))
			return false;
		made = node_id(g, node_new(g, g->node[id].op, nin, in, nout,
		                           id));
		g->node[made].attr = g->node[id].attr;
		out = g->node[made].out;
		if (!copy) {
			g->val[out[nout - 1]].def = 0;
			out[nout - 1] = 0;
		}
		if (!shape_infer(g, o->p->diag, &g->node[made]))
			return false;
		add_to_order(o, made);
		if (!offload_kept(o, id, &part[i * nin], out))
			return false;
	}
	return true;
}

/* ---- updates ---- */

/* A copy that nothing reads, since a fused node reads the parameter. */
static void
drop_copy(Graph *g, Node *n, const bool *read)
{
	int k = copy_of(n);
	ValId *out = &n->out[n->nout - 1];

	if (!k || read[n->in[k]])
		return;
	n->nin--;
	g->val[*out].def = 0;
	*out = 0;
}

static bool
offload_update(struct offload *o, NodeId id)
{
	const Node *n = &o->g->node[id];
	bool any = false;
	int64_t rows;

	for (int k = 0; k < n->nout && is_element_wise(n); k++)
		any |= host_operand(o->g, n, n->in, k) >= 0;
	if (!any) {
		add_to_order(o, id);
		return true;
	}
	rows = rows_of_part(o, n);
	return rows ? update_parts(o, id, rows) : wrap_update(o, id);
}

static bool
offload_updates(struct offload *o)
{
	Graph *g = o->g;
	const bool *read = values_read(g, o->p->scratch);
	NodeId end = g->nnode;

	o->p->planned.nstate = o->p->planned.nhost_state = 0;
	if (!pass_offloads_states(o->p) || graph_has_op(g, OP_FETCH))
		return true;
	if (o->p->opt->resident_copies != TRI_ON)
		FOR_NODES (n, g)
			drop_copy(g, n, read);
	if (!mark_kept(o))
		return true;
	for (NodeId id = 1; id < end; id++)
		if (!offload_update(o, id))
			return false;
	graph_reorder(g, o->order, o->n);
	return true;
}

/* ---- evaluation ---- */

/* The value of training that is the parameter's copy in 16 bits; 0: none. */
static ValId
copy_in_training(const Graph *training, ValId param)
{
	FOR_VALS (v, training)
		if (v->kind == V_STATE && v->param == param
		    && !strcmp(v->state, "copy"))
			return val_id(training, v);
	return 0;
}

/* By value: what training has in host memory; whether there is any. */
static bool
find_training(struct offload *o, ValId *same)
{
	const Graph *t = o->p->training;
	bool any = false;

	FOR_VALS (v, o->g) {
		ValId p = v->kind == V_PARAM ? val_find(t, v->name) : 0;

		if (!p || !t->val[p].host)
			continue;
		v->host = any = true;
		same[val_id(o->g, v)] = p;
	}
	return any;
}

/* A cast of a parameter to its copy's type: the copy; 0: it is none. */
static ValId
copy_for_cast(struct offload *o, const Node *n, ValId in_training)
{
	const Graph *t = o->p->training;
	const Val *of = &t->val[copy_in_training(t, in_training)];
	Graph *g = o->g;
	ValId y = n->out[0], v;

	if (!rounds_to_half(g, n) || g->val[y].output || of == t->val
	    || g->val[y].dt != of->dt)
		return 0;
	v = val_find(g, of->name);
	if (v)
		return v;
	v = val_new(g, V_STATE, of->name, of->dt, g->val[y].shape);
	g->val[v].param = n->in[0];
	g->val[v].state = "copy";
	g->val[v].placement = g->val[y].placement;
	g->val[v].shard = g->val[y].shard;
	return v;
}

/* Operands of the node that training has in host memory. */
static bool
fetch_training(struct offload *o, NodeId id, const ValId *same, ValId nval)
{
	ValId *in = o->g->node[id].in;

	for (int k = 0; k < o->g->node[id].nin; k++)
		if (in[k] < nval && same[in[k]]) {
			in[k] = transfer(o, OP_FETCH, 1, &in[k], in[k], id);
			if (!in[k])
				return false;
		}
	return true;
}

/* Training has parameters in host memory. */
static bool
follow_training_memory(struct offload *o)
{
	Graph *g = o->g;
	ValId nval = g->nval;
	ValId *same = arena_array(o->p->scratch, nval, sizeof *same);
	ValId *copy = arena_array(o->p->scratch, nval, sizeof *copy);
	NodeId end = g->nnode;

	if (!find_training(o, same))
		return true;
	for (NodeId id = 1; id < end; id++) {
		ValId *in = g->node[id].in, v;
		int nin = g->node[id].nin;

		for (int k = 0; k < nin; k++)
			if (in[k] < nval && copy[in[k]])
				in[k] = copy[in[k]];
		v = nin == 1 && in[0] < nval && same[in[0]]
			? copy_for_cast(o, &g->node[id], same[in[0]]) : 0;
		if (v) {
			copy[g->node[id].out[0]] = v;
			continue;
		}
		if (!fetch_training(o, id, same, nval))
			return false;
		add_to_order(o, id);
	}
	graph_reorder(g, o->order, o->n);
	return true;
}

bool
pass_offload(Pass *p, Graph *g)
{
	struct offload o = { .p = p, .g = g };

	return p->training ? follow_training_memory(&o) : offload_updates(&o);
}
