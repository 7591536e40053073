/* Building and rewriting graphs. */
#include "ir/base/table.h"
#include "ir/element.h"
#include "ir/ir.h"
#include "runtime/support/glob.h"
#include "runtime/support/hash.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

/* A value that was renamed stays in the table under its old names, too, to
 * which nothing compares equal. */
ValId
val_find(const Graph *g, const char *name)
{
	ValId v;

	for (size_t at = 0;
	     (v = table_next(g->names, hash_str(HASH_START, name), &at));)
		if (strcmp(g->val[v].name, name) == 0)
			break;
	return v;
}

ValId
val_counterpart(const Graph *of, const Graph *g, ValId v)
{
	ValId same = val_find(of, g->val[v].name);

	return same && element_equal(&of->val[same], &g->val[v]) ? same : 0;
}

static void
name_add(Graph *g, ValId v)
{
	table_add(g->names, g->arena, hash_str(HASH_START, g->val[v].name), v);
}

/* ---- graphs and values ---- */

Graph *
graph_new(const char *name)
{
	Arena *arena = arena_new();
	Graph *g = arena_alloc(arena, sizeof *g);

	g->arena = arena;
	g->name = arena_str(arena, name);
	g->names = arena_alloc(arena, sizeof(struct table));
	g->nval = g->nnode = g->norigin = 1;
	g->val = arena_grow(arena, NULL, 0, &g->val_cap, 64, sizeof *g->val);
	g->node = arena_grow(arena, NULL, 0, &g->node_cap, 64,
	                     sizeof *g->node);
	g->origin = arena_grow(arena, NULL, 0, &g->origin_cap, 64,
	                       sizeof *g->origin);
	g->origin[0] = (struct origin){ "", "" };
	return g;
}

void
graph_free(Graph *g)
{
	if (g)
		arena_free(g->arena);
}

const Val *
graph_batch_input(const Graph *g)
{
	FOR_VALS (v, g)
		if (v->kind == V_INPUT && v->shape.rank > 0)
			return v;
	return NULL;
}

bool
holds_samples(const Val *v, int i, const Val *first)
{
	const char *name = first->dim_name[0], *own = v->dim_name[i];

	return (name && own && strcmp(own, name) == 0)
		|| (i == 0 && !name == !own
		    && v->shape.dim[0] == first->shape.dim[0]);
}

/* A free name: `name` itself or NAME.2, NAME.3, ...  The value that has the
 * name knows how far they are taken.  self may have the name already. */
static const char *
free_name(Graph *g, const char *name, ValId self)
{
	ValId taken = val_find(g, name);
	const char *fresh;

	if (!taken || taken == self)
		return arena_str(g->arena, name);
	do {
		uint32_t *n = &g->val[taken].nsuffix;

		*n = *n ? *n + 1 : 2;
		fresh = arena_printf(g->arena, "%s.%u", name, *n);
	} while (val_find(g, fresh) && val_find(g, fresh) != self);
	return fresh;
}

ValId
val_new(Graph *g, ValKind kind, const char *name, DType dt, Shape shape)
{
	ValId id = g->nval;
	Val *v;

	g->val = arena_grow(g->arena, g->val, g->nval, &g->val_cap,
	                    g->nval + 1, sizeof *g->val);
	v = &g->val[g->nval];
	memset(v, 0, sizeof *v);
	v->kind = kind;
	v->dt = dt;
	v->shape = shape;
	v->offset = -1;
	if (!name || !*name)
		name = arena_printf(g->arena, "t%u", id);
	v->name = free_name(g, name, 0);
	g->nval++;
	name_add(g, id);
	return id;
}

void
val_rename(Graph *g, ValId v, const char *name)
{
	const char *fresh = free_name(g, name, v);

	if (val_find(g, fresh) == v)
		return;
	g->val[v].name = fresh;
	g->val[v].nsuffix = 0;
	name_add(g, v);
}

ValId
val_const(Graph *g, const char *name, DType dt, Shape shape,
          const void *data)
{
	ValId id = val_new(g, V_CONST, name, dt, shape);

	g->val[id].data = arena_copy(g->arena, data,
	                             (size_t)val_data_bytes(&g->val[id]));
	return id;
}

ValId
val_scalar(Graph *g, DType dt, double x)
{
	char bits[8];

	assert(dt != DT_NONE);
	element_set_float(dt, bits, 0, x);
	return val_const(g, NULL, dt, shape_scalar(), bits);
}

/* ---- nodes ---- */

uint32_t
origin_new(Graph *g, const char *name, const char *op)
{
	g->origin = arena_grow(g->arena, g->origin, g->norigin,
	                       &g->origin_cap, g->norigin + 1,
	                       sizeof *g->origin);
	g->origin[g->norigin] = (struct origin){
		name && *name ? arena_str(g->arena, name)
		              : arena_printf(g->arena, "#%u", g->norigin),
		arena_str(g->arena, op),
	};
	return g->norigin++;
}

void
node_add_origin(Graph *g, Node *n, const uint32_t *origin, int count)
{
	uint32_t *merged = arena_array(g->arena,
	                               (size_t)(n->norigin + count) + 1,
	                               sizeof *merged);
	int i = 0, j = 0, k = 0;

	while (i < n->norigin || j < count) {
		uint32_t next = j == count || (i < n->norigin
			&& n->origin[i] <= origin[j])
			? n->origin[i++] : origin[j++];

		if (k == 0 || merged[k - 1] != next)
			merged[k++] = next;
	}
	n->origin = merged;
	n->norigin = k;
}

Node *
node_new(Graph *g, Op op, int nin, const ValId *in, int nout, NodeId like)
{
	Node *n;

	assert(op > OP_NONE && op < OP_COUNT && like < g->nnode);
	if (nout == 0)
		nout = op_info[op].nout;
	assert(nout != VARIADIC);
	g->node = arena_grow(g->arena, g->node, g->nnode, &g->node_cap,
	                     g->nnode + 1, sizeof *g->node);
	n = &g->node[g->nnode];
	memset(n, 0, sizeof *n);
	n->op = op;
	n->workspace_at = -1;
	n->attr = attr_default(op);
	n->nin = nin;
	n->in = arena_array(g->arena, (size_t)nin + 1, sizeof *n->in);
	for (int i = 0; i < nin; i++)
		n->in[i] = in[i];
	n->nout = nout;
	n->out = arena_array(g->arena, (size_t)nout + 1, sizeof *n->out);
	if (like) {
		n->phase = g->node[like].phase;
		n->count_pass = g->node[like].count_pass;
		n->place = g->node[like].place;
		n->origin = g->node[like].origin;
		n->norigin = g->node[like].norigin;
	}
	g->nnode++;
	for (int i = 0; i < nout; i++) {
		ValId v = val_new(g, V_TEMP, NULL, DT_NONE,
		                  (Shape){ .rank = -1 });

		n->out[i] = v;
		g->val[v].def = node_id(g, n);
		g->val[v].result_index = i;
	}
	return n;
}

const char *
node_label(const Graph *g, const Node *n)
{
	if (n->norigin > 0)
		return g->origin[n->origin[0]].name;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			return g->val[n->out[i]].name;
	return NULL;
}

const char *
node_type(const Graph *g, const Node *n)
{
	return n->norigin > 0 ? g->origin[n->origin[0]].op
		: op_info[n->op].text;
}

bool
node_error(const Graph *g, Diag *d, const Node *n, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return diag_at(d, node_label(g, n), node_type(g, n), "%s", text);
}

bool
val_is_named(const Val *v, const char *name)
{
	return !strcmp(v->name, name) || (v->onnx && !strcmp(v->onnx, name));
}

bool
val_matches(const Val *v, const char *glob)
{
	return glob_match(glob, v->name)
		|| (v->onnx && glob_match(glob, v->onnx));
}

ValId
val_owner(const Graph *g, ValId v)
{
	return g->val[v].base ? g->val[v].base : v;
}

/* Whether it does nothing but move elements of operand 0, round them, put
 * replicas' pieces together, or fetch them from host memory. */
static bool
moves_one(const Graph *g, const Node *n)
{
	if (n->body) {
		for (int i = 0; i < n->body->nop; i++)
			if (n->body->op[i].op != OP_CAST)
				return false;
		return n->nin == 1;
	}
	if (op_info[n->op].flags & F_COMM)
		return g->val[n->in[0]].shard;
	return op_info[n->op].flags & (F_VIEW | F_FETCH) || n->op == OP_CAST
		|| n->op == OP_DEQUANTIZE || n->op == OP_GATHER_ND;
}

ValId
val_param_of(const Graph *g, ValId v)
{
	while (g->val[v].def && moves_one(g, &g->node[g->val[v].def]))
		v = g->node[g->val[v].def].in[0];
	if (g->val[v].kind == V_STATE && g->val[v].state
	    && !strcmp(g->val[v].state, "copy"))
		return g->val[v].param;
	return g->val[v].kind == V_PARAM ? v : 0;
}

NodeId
graph_boundary(const Graph *g)
{
	NodeId id = g->nnode - 1;

	while (id > 0 && g->node[id].phase != PH_FORWARD)
		id--;
	return id;
}

NodeId
graph_weight_boundary(const Graph *g)
{
	NodeId id = g->weight_slots ? g->nnode - 1 : 0;

	while (id > 0 && g->node[id].phase != PH_FORWARD
	       && g->node[id].phase != PH_BACKWARD)
		id--;
	return id;
}

bool
graph_has_op(const Graph *g, Op op)
{
	FOR_NODES (n, g)
		if (n->op == op)
			return true;
	return false;
}

/* ---- rewriting ---- */

void
val_replace(Graph *g, ValId from, ValId to, NodeId first, NodeId last)
{
	for (NodeId i = first; i < last; i++)
		for (int k = 0; k < g->node[i].nin; k++)
			if (g->node[i].in[k] == from)
				g->node[i].in[k] = to;
}

static bool
is_in_order(const Graph *g, const NodeId *order, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && order[i] == i + 1)
		i++;
	return i == n && n + 1 == g->nnode;
}

void
graph_reorder(Graph *g, const NodeId *order, uint32_t n)
{
	size_t cap = g->spare_cap;
	Node *old = g->node;
	Arena *scratch;
	NodeId *renamed;

	if (is_in_order(g, order, n))
		return;
	scratch = arena_new();
	renamed = arena_array(scratch, g->nnode, sizeof *renamed);
	/* two arrays that take turns */
	g->node = arena_grow(g->arena, g->spare, 0, &cap, (size_t)n + 1,
	                     sizeof *g->node);
	g->spare = old;
	g->spare_cap = g->node_cap;
	g->node_cap = cap;
	memset(&g->node[0], 0, sizeof g->node[0]);
	FOR_VALS (v, g)
		v->def = 0;
	for (uint32_t i = 0; i < n; i++) {
		Node *node = &g->node[i + 1];

		assert(order[i] && order[i] < g->nnode && !renamed[order[i]]);
		renamed[order[i]] = i + 1;
		*node = old[order[i]];
		for (int k = 0; k < node->nout; k++)
			if (node->out[k])
				g->val[node->out[k]].def = i + 1;
	}
	g->nnode = n + 1;
	FOR_NODES (node, g) {
		node->of = renamed[node->of];
		node->wait = renamed[node->wait];
		for (int k = 0; k < node->ninlined; k++)
			node->inlined[k] = renamed[node->inlined[k]];
	}
	arena_free(scratch);
}

/* Other stages wait for it. */
static bool
serves_stages(const Node *n)
{
	return op_info[n->op].flags & F_COMM && n->nin > 0
		&& node_group(n) == GROUP_STAGES;
}

void
graph_dce(Graph *g)
{
	bool *live = arena_array(g->arena, g->nval, sizeof *live);
	NodeId *order = arena_array(g->arena, g->nnode, sizeof *order);
	uint32_t n = 0;

	FOR_VALS (v, g)
		live[val_id(g, v)] = v->output
			|| (v->kind == V_TEMP && v->param);
	if (g->loss)
		live[g->loss] = true;
	for (NodeId i = g->nnode - 1; i > 0; i--) {
		Node *node = &g->node[i];
		bool keep = op_info[node->op].flags & F_WRITES
			|| serves_stages(node);

		for (int k = 0; k < node->nout; k++)
			keep |= node->out[k] && live[node->out[k]];
		if (!keep)
			continue;
		order[n++] = i;
		for (int k = 0; k < node->nin; k++)
			live[node->in[k]] = true;
	}
	FOR_VALS (v, g)
		if (v->kind == V_CONST && !live[val_id(g, v)])
			v->data = NULL;
	if (n + 1 == g->nnode)
		return;
	for (uint32_t i = 0; i < n / 2; i++) {
		NodeId t = order[i];

		order[i] = order[n - 1 - i];
		order[n - 1 - i] = t;
	}
	graph_reorder(g, order, n);
}

static struct body *
body_clone(Arena *a, const struct body *b, int nout)
{
	struct body *c;

	if (!b)
		return NULL;
	c = arena_copy(a, b, sizeof *b);
	c->op = arena_copy(a, b->op,
	                      (size_t)b->nop * sizeof *b->op);
	c->result = arena_copy(a, b->result, (size_t)nout * sizeof *b->result);
	return c;
}

Node *
node_copy(Graph *g, const Node *from, const ValId *map)
{
	Arena *a = g->arena;
	Node *n;

	g->node = arena_grow(a, g->node, g->nnode, &g->node_cap, g->nnode + 1,
	                     sizeof *g->node);
	n = &g->node[g->nnode++];
	*n = *from;
	n->in = arena_array(a, (size_t)n->nin + 1, sizeof *n->in);
	n->out = arena_array(a, (size_t)n->nout + 1, sizeof *n->out);
	n->origin = arena_copy(a, from->origin,
	                       (size_t)n->norigin * sizeof *n->origin);
	n->body = body_clone(a, from->body, n->nout);
	for (int k = 0; k < n->nin; k++)
		n->in[k] = map[from->in[k]];
	for (int k = 0; k < n->nout; k++) {
		n->out[k] = map[from->out[k]];
		if (!n->out[k])
			continue;
		g->val[n->out[k]].def = node_id(g, n);
		g->val[n->out[k]].result_index = k;
	}
	return n;
}

/* Arrays of the copy's own, whose texts are g's. */
static Graph *
copy_arrays(const Graph *g)
{
	Arena *a = arena_new();
	Graph *c = arena_copy(a, g, sizeof *g);

	c->arena = a;
	c->names = arena_alloc(a, sizeof(struct table));
	c->spare = NULL;
	c->spare_cap = 0;
	c->val = arena_copy(a, g->val, g->nval * sizeof *g->val);
	c->val_cap = g->nval;
	c->node = arena_copy(a, g->node, g->nnode * sizeof *g->node);
	c->node_cap = g->nnode;
	FOR_NODES (n, c) {
		n->in = arena_copy(a, n->in, (size_t)n->nin * sizeof *n->in);
		n->out = arena_copy(a, n->out,
		                    (size_t)n->nout * sizeof *n->out);
		n->inlined = arena_copy(a, n->inlined, (size_t)n->ninlined
		                        * sizeof *n->inlined);
	}
	return c;
}

Graph *
graph_trial(const Graph *g)
{
	return copy_arrays(g);
}

Graph *
graph_clone(const Graph *g)
{
	Graph *c = copy_arrays(g);
	Arena *a = c->arena;

	c->name = arena_str(a, g->name);
	c->origin = arena_copy(a, g->origin, g->norigin * sizeof *g->origin);
	c->origin_cap = g->norigin;
	for (uint32_t i = 1; i < g->norigin; i++) {
		c->origin[i].name = arena_str(a, g->origin[i].name);
		c->origin[i].op = arena_str(a, g->origin[i].op);
	}
	FOR_VALS (v, c) {
		v->name = arena_str(a, v->name);
		v->onnx = v->onnx ? arena_str(a, v->onnx) : NULL;
		v->state = v->state ? arena_str(a, v->state) : NULL;
		for (int k = 0; k < MAX_RANK; k++)
			if (v->dim_name[k])
				v->dim_name[k] = arena_str(a, v->dim_name[k]);
		name_add(c, val_id(c, v));
	}
	FOR_NODES (n, c) {
		n->origin = arena_copy(a, n->origin, (size_t)n->norigin
		                       * sizeof *n->origin);
		n->body = body_clone(a, n->body, n->nout);
	}
	return c;
}

int64_t
graph_group_size(const Graph *g, int64_t group)
{
	int64_t replicas = g->exact ? g->replicas : 0;
	int64_t size = group < GROUP_EXPERTS ? g->zero_group : g->expert_group;

	switch (group) {
	case GROUP_RANKS: return g->ranks;
	case GROUP_REPLICAS: return replicas;
	case GROUP_SHARDS: case GROUP_EXPERTS: return size;
	case GROUP_COPIES: case GROUP_EXPERT_COPIES:
		return size ? replicas / size : 0;
	case GROUP_STAGES: return g->stages;
	case GROUP_CONTEXT: return g->context;
	default: return 0;
	}
}

int64_t
node_group(const Node *n)
{
	Attr a = n->attr;
	const int64_t *group = attr_int_of(n->op, &a, "group");

	if (op_info[n->op].flags & F_STAGES)
		return GROUP_STAGES;
	return group ? *group : GROUP_RANKS;
}

struct node_message
node_message(const Node *n)
{
	Attr a = n->attr;

	return (struct node_message){ *attr_int_of(n->op, &a, "peer"),
		*attr_int_of(n->op, &a, "tag"), n->nin > 0 };
}

ValId
node_sent(const Node *n)
{
	return n->in[op_info[n->op].flags & F_WRITES ? 1 : 0];
}

bool
nodes_may_join(const Node *a, const Node *b)
{
	return op_info[a->op].flags & F_JOINS && a->op == b->op
		&& node_group(a) == node_group(b)
		&& a->count_pass == b->count_pass
		&& (a->phase == PH_UPDATE) == (b->phase == PH_UPDATE);
}

bool
node_joins(const Graph *g, NodeId id)
{
	const Node *n = &g->node[id], *before = n - 1;

	return id < g->nnode && before->wait >= id && nodes_may_join(before, n);
}

NodeId
message_last(const Graph *g, NodeId id)
{
	while (node_joins(g, id + 1))
		id++;
	return id;
}

enum rank_group
graph_shard_group(const Graph *g, bool rows)
{
	if (rows)
		return g->expert_group ? GROUP_EXPERTS : GROUP_REPLICAS;
	return g->zero_group ? GROUP_SHARDS : GROUP_REPLICAS;
}

int
graph_half_of(const Graph *g, const Node *n)
{
	Attr a = n->attr;
	const IntList *start = attr_list_of(n->op, &a, "start");

	if (g->halves != HALVES_BOTH || !start
	    || g->val[n->in[0]].kind != V_INPUT)
		return 0;
	return start->v[0] > 0 ? 2 : 1;
}

struct uses
graph_uses(const Graph *g, Arena *a)
{
	struct uses u;
	uint32_t total = 0;

	u.first = arena_array(a, (size_t)g->nval + 1, sizeof *u.first);
	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++)
			if (n->in[k])
				u.first[n->in[k]]++;
	for (ValId v = 0; v <= g->nval; v++) {
		uint32_t count = v < g->nval ? u.first[v] : 0;

		u.first[v] = total;
		total += count;
	}
	u.node = arena_array(a, (size_t)total + 1, sizeof *u.node);
	/* fill by advancing first[], then shift it back */
	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++)
			if (n->in[k])
				u.node[u.first[n->in[k]]++] = node_id(g, n);
	for (ValId v = g->nval; v > 0; v--)
		u.first[v] = u.first[v - 1];
	u.first[0] = 0;
	return u;
}
