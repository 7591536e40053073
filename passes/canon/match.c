/* The rewriting engine of canon's rules; see match.h. */
#include "passes/canon/match.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* CONST_EXPR_STEPS: for all constant expressions together, about a second. */
enum { MAX_SWEEP = 32, CONST_EXPR_STEPS = 1 << 25 };

void
rw_grow(struct rewrite *w)
{
	Graph *g = w->g;

	w->fwd = arena_grow(w->mem, w->fwd, w->nval, &w->fwd_cap, g->nval,
	                    sizeof *w->fwd);
	w->core = arena_grow(w->mem, w->core, w->nval, &w->core_cap, g->nval,
	                     sizeof *w->core);
	w->mask = arena_grow(w->mem, w->mask, w->nval, &w->mask_cap, g->nval,
	                     sizeof *w->mask);
	w->trained = arena_grow(w->mem, w->trained, w->nval, &w->trained_cap,
	                        g->nval, sizeof *w->trained);
	w->const_expr = arena_grow(w->mem, w->const_expr, w->nval,
	                           &w->const_expr_cap, g->nval,
	                           sizeof *w->const_expr);
	w->nuse = arena_grow(w->mem, w->nuse, w->nval, &w->nuse_cap, g->nval,
	                     sizeof *w->nuse);
	w->dead = arena_grow(w->mem, w->dead, w->nnode, &w->dead_cap,
	                     g->nnode, sizeof *w->dead);
	for (; w->nval < g->nval; w->nval++) {
		w->fwd[w->nval] = 0;
		w->core[w->nval] = 0;
		w->mask[w->nval] = 0;
		w->trained[w->nval] = false;
		w->const_expr[w->nval] = false;
		w->nuse[w->nval] = 0;
	}
	for (; w->nnode < g->nnode; w->nnode++)
		w->dead[w->nnode] = false;
}

void
rw_init(struct rewrite *w, Pass *p, Graph *g)
{
	memset(w, 0, sizeof *w);
	w->p = p;
	w->g = g;
	w->mem = p->scratch;
	w->steps = CONST_EXPR_STEPS;
	rw_grow(w);
}

/* ---- changes ---- */

/* Mark n's outputs that depend differentiably on a trained parameter, and those
 * computed from constants. */
static void
propagate_flags(struct rewrite *w, const Node *n)
{
	bool any = false, constant = n->nout == 1 && is_const_expr_op(n->op);

	for (int i = 0; i < n->nin; i++) {
		ValId x = n->in[i] ? rw_now(w, n->in[i]) : 0;

		any |= x && w->trained[x];
		constant &= x && (w->const_expr[x]
		                  || val_is_const(&w->g->val[x]));
	}
	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			w->trained[n->out[i]] = any && rw_float(w, n->out[i]);
			w->const_expr[n->out[i]] = constant;
		}
}

/* Name a new value after the root that it helps to replace. */
static void
name_after_root(struct rewrite *w, ValId v)
{
	Graph *g = w->g;
	ValId root = g->node[w->at].out[0];

	if (root)
		val_rename(g, v, arena_printf(g->arena, "%s.%s",
			g->val[root].name,
			op_info[g->node[g->val[v].def].op].text));
}

ValId
rw_emit(struct rewrite *w, Op op, int nin, const ValId *in, const Attr *attr)
{
	ValId v;

	for (int i = 0; i < nin && i < op_info[op].min; i++)
		if (!in[i])
			return 0;
	v = emit_op(w->g, w->p->diag, op, nin, in, attr, w->at);
	rw_grow(w);
	if (!v) {
		w->failed = true;
		return 0;
	}
	for (int i = 0; i < nin; i++)
		if (in[i])
			w->nuse[in[i]]++;
	propagate_flags(w, &w->g->node[w->g->nnode - 1]);
	name_after_root(w, v);
	return v;
}

ValId
rw_slice(struct rewrite *w, ValId v, const IntList *start,
         const IntList *step, const Shape *out)
{
	Node *n;
	ValId y;

	if (!v)
		return 0;
	n = node_new(w->g, OP_SLICE, 1, &v, 1, w->at);
	y = n->out[0];
	n->attr.SLICE.start = *start;
	n->attr.SLICE.step = *step;
	w->g->val[y].shape = *out;
	w->g->val[y].dt = w->g->val[v].dt;
	rw_grow(w);
	w->nuse[v]++;
	w->trained[y] = w->trained[v];
	name_after_root(w, y);
	return y;
}

ValId
rw_reshape(struct rewrite *w, ValId v, const Shape *s)
{
	Attr a = attr_reshape(s);

	if (!v || shape_eq(rw_shape(w, v), s))
		return v;
	return rw_emit(w, OP_RESHAPE, 1, &v, &a);
}

ValId
rw_rank4(struct rewrite *w, ValId v)
{
	const Shape *have = rw_shape(w, v);
	int lead = 4 - have->rank;
	Shape s = { .rank = 4 };

	for (int i = 0; i < 4; i++)
		s.dim[i] = i < lead ? 1 : have->dim[i - lead];
	return rw_reshape(w, v, &s);
}

ValId
rw_expand(struct rewrite *w, ValId v, const Shape *s)
{
	Attr a = attr_expand(s);

	if (!v || shape_eq(rw_shape(w, v), s))
		return v;
	return rw_emit(w, OP_EXPAND, 1, &v, &a);
}

ValId
rw_transpose(struct rewrite *w, ValId v, const int *perm)
{
	Attr a = attr_default(OP_TRANSPOSE);
	int rank = rw_shape(w, v)->rank;
	bool moved = false;

	a.TRANSPOSE.perm.n = rank;
	for (int i = 0; i < rank; i++) {
		a.TRANSPOSE.perm.v[i] = perm[i];
		moved |= perm[i] != i;
	}
	return moved ? rw_emit(w, OP_TRANSPOSE, 1, &v, &a) : v;
}

ValId
rw_unary(struct rewrite *w, Op op, ValId v)
{
	return rw_emit(w, op, 1, &v, NULL);
}

ValId
rw_binary(struct rewrite *w, Op op, ValId a, ValId b)
{
	return rw_emit(w, op, 2, (ValId[]){ a, b }, NULL);
}

ValId
rw_const_like(struct rewrite *w, ValId like, double x)
{
	ValId v = val_scalar(w->g, rw_dt(w, like), x);

	rw_grow(w);
	return v;
}

ValId
rw_const(struct rewrite *w, DType dt, Shape s, const void *data)
{
	ValId v = val_const(w->g, NULL, dt, s, data);

	rw_grow(w);
	return v;
}

/* Remove unused nodes; their replacement inherits their origins.  A stack
 * instead of recursion, because chains may be long. */
static void
remove_dead_nodes(struct rewrite *w, NodeId first)
{
	Graph *g = w->g;
	size_t cap = 0;
	uint32_t n = 1;
	NodeId dest = w->origin_node, *stack;

	if (!dest && w->first_new < g->nnode)
		dest = g->nnode - 1;
	stack = arena_grow(w->mem, NULL, 0, &cap, 16, sizeof *stack);
	stack[0] = first;
	while (n > 0) {
		NodeId m = stack[--n];
		Node *node = &g->node[m];
		bool used = w->dead[m];

		for (int i = 0; i < node->nout; i++)
			used |= node->out[i] && w->nuse[node->out[i]] > 0;
		if (used)
			continue;
		w->dead[m] = true;
		if (dest && dest != m)
			node_add_origin(g, &g->node[dest], node->origin,
			                node->norigin);
		stack = arena_grow(w->mem, stack, n, &cap,
		                   n + (size_t)node->nin, sizeof *stack);
		for (int i = 0; i < node->nin; i++) {
			ValId x = rw_in(w, m, i);

			if (!x)
				continue;
			assert(w->nuse[x] > 0);
			if (--w->nuse[x] == 0 && g->val[x].def)
				stack[n++] = g->val[x].def;
		}
	}
}

void
rw_set_in(struct rewrite *w, NodeId n, int i, ValId v)
{
	ValId old = rw_in(w, n, i);

	if (old == v)
		return;
	w->g->node[n].in[i] = v;
	w->nuse[v]++;
	if (old && --w->nuse[old] == 0 && w->g->val[old].def)
		remove_dead_nodes(w, w->g->val[old].def);
}

/* Make the node that writes `from` write `to` instead. */
static void
move_name(struct rewrite *w, ValId from, ValId to)
{
	Graph *g = w->g;
	NodeId n = g->val[from].def, old = g->val[to].def;
	int slot = g->val[from].result_index;

	g->node[old].out[g->val[to].result_index] = 0;
	g->node[n].out[slot] = to;
	g->val[to].def = n;
	g->val[to].result_index = slot;
	g->val[from].def = 0;
}

bool
rw_replace(struct rewrite *w, NodeId root, ValId v)
{
	Graph *g = w->g;
	ValId old = g->node[root].out[0];
	NodeId def = g->val[v].def;

	if (!v)
		return false;
	assert(shape_eq(&g->val[old].shape, &g->val[v].shape));
	assert(g->val[old].dt == g->val[v].dt);
	if (def && def >= w->first_new && w->nuse[v] == 0) {
		/* a new value: the old one keeps its name */
		move_name(w, v, old);
	} else if (!g->val[old].output && old != g->loss) {
		w->fwd[old] = v;
		w->nuse[v] += w->nuse[old];
		w->nuse[old] = 0;
	} else {
		if (g->val[v].kind != V_TEMP || g->val[v].output
		    || g->val[v].param)
			return false;
		/* `old` survives, because its name is an output */
		w->fwd[v] = old;
		w->nuse[old] += w->nuse[v];
		w->nuse[v] = 0;
		move_name(w, v, old);
	}
	remove_dead_nodes(w, root);
	return true;
}

/* ---- sweeps ---- */

static void
count_uses(struct rewrite *w)
{
	w->nnode = 1;
	rw_grow(w);
	memset(w->fwd, 0, w->nval * sizeof *w->fwd);
	memset(w->dead, 0, w->nnode * sizeof *w->dead);
	FOR_VALS (v, w->g) {
		w->nuse[val_id(w->g, v)] = v->output
			|| val_id(w->g, v) == w->g->loss;
		w->trained[val_id(w->g, v)] = v->kind == V_PARAM && !v->frozen;
		w->const_expr[val_id(w->g, v)] = false;
	}
	FOR_NODES (n, w->g) {
		for (int i = 0; i < n->nin; i++)
			if (n->in[i])
				w->nuse[n->in[i]]++;
		propagate_flags(w, n);
	}
}

/* Put the graph in order: live nodes only, replaced values looked up. */
static void
apply_order(struct rewrite *w, const NodeId *order, uint32_t n)
{
	NodeId *live = arena_array(w->mem, (size_t)n + 1, sizeof *live);
	uint32_t nlive = 0;

	for (uint32_t i = 0; i < n; i++) {
		Node *node = &w->g->node[order[i]];

		if (w->dead[order[i]])
			continue;
		for (int k = 0; k < node->nin; k++)
			node->in[k] = rw_now(w, node->in[k]);
		live[nlive++] = order[i];
	}
	graph_reorder(w->g, live, nlive);
}

static bool
try_rules(struct rewrite *w, const struct rule *rules, NodeId n)
{
	bool changed = false;

	for (const struct rule *r = rules; r->fn; r++) {
		if (w->dead[n] || w->failed)
			break;
		if (r->op != OP_NONE && r->op != w->g->node[n].op)
			continue;
		w->at = n;
		w->first_new = w->g->nnode;
		w->origin_node = 0;
		changed |= r->fn(w, n);
	}
	return changed;
}

static bool
sweep_nodes(struct rewrite *w, const struct rule *rules)
{
	Graph *g = w->g;
	NodeId last, *order = NULL;
	size_t cap = 0;
	uint32_t norder = 0;
	bool changed = false;

	graph_dce(g);
	count_uses(w);
	last = g->nnode;
	w->cse = (struct table){ 0 };
	for (NodeId n = 1; n < last; n++) {
		NodeId fresh = g->nnode;

		if (!w->dead[n])
			changed |= try_rules(w, rules, n);
		order = arena_grow(w->mem, order, norder, &cap,
		                   norder + 1 + (g->nnode - fresh),
		                   sizeof *order);
		for (NodeId f = fresh; f < g->nnode; f++)
			order[norder++] = f;
		order[norder++] = n;
	}
	apply_order(w, order, norder);
	return changed;
}

bool
rw_run(struct rewrite *w, const struct rule *rules)
{
	for (int i = 0; i < MAX_SWEEP && sweep_nodes(w, rules); i++) {
		if (w->failed)
			return false;
	}
	return !w->failed;
}
