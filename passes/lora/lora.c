/* Low-rank adapters: Hu et al., "LoRA: low-rank adaptation of large language
 * models", 2021; names, shapes and first values as PEFT has them.
 *
 *     y = x W + b    becomes    y = x W + b + (alpha / rank) (x A^T) B^T
 *
 * for every product by a weight that --lora names.  A [rank, in] is drawn from
 * +-1 / sqrt(in) (Kaiming's uniform with a = sqrt(5)), by a stream that follows
 * from the weight's name; B [out, rank] is zero, so that the first loss is that
 * of the model without adapters.  All other parameters are frozen, unless
 * --train names them.
 *
 * A weight that something else than products reads has no adapter: merged, it
 * would change that, too.  Nor has one that is read both as it lies and
 * transposed.
 *
 * needs   P_STATIC, P_CANON
 * cost    linear in operands
 * refuses a --lora that names no weight of a product; weights that are not
 *         float32
 */
#include "passes/lora/lora.h"

#include "runtime/support/hash.h"

#include <math.h>
#include <string.h>

struct lora {
	Pass *p;
	Graph *g;
	ValId *adapter;                 /* [nval]: A of the weight; B is next;
	                                 * 0: none yet */
	bool *barred;                   /* [nval]: read by others, too */
	bool *adapts;                   /* [nval]: a weight that gets one */
	unsigned char *ways;            /* [nval]: 1 as it lies, 2 transposed */
	const struct lora_wish **wish;  /* [nval]: for a weight; NULL: none */
	NodeId *order;
	uint32_t n;
};

/* ---- what is adapted ---- */

/* The module's name with another end. */
static const char *
adapter_name(struct lora *l, const char *weight, const char *end)
{
	size_t n = strlen(weight), tail = strlen(".weight");

	if (n > tail && !strcmp(weight + n - tail, ".weight"))
		n -= tail;
	return arena_printf(l->g->arena, "%.*s.%s.weight", (int)n, weight, end);
}

static bool
is_matrix_param(const Val *v)
{
	return v->kind == V_PARAM && v->shape.rank == 2;
}

/* What a product multiplies with; 0: it is none. */
static ValId
matmul_weight(const Node *n)
{
	return n->op == OP_MATMUL ? n->in[1] : 0;
}

/* Of several wishes that match a name the last counts. */
static void
find_wishes(struct lora *l)
{
	const struct options *o = l->p->opt;

	FOR_VALS (v, l->g)
		for (int i = 0; i < o->nlora && is_matrix_param(v); i++)
			if (glob_match(o->lora[i].glob, v->name))
				l->wish[val_id(l->g, v)] = &o->lora[i];
	FOR_NODES (n, l->g) {
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && !(k == 1 && matmul_weight(n)))
				l->barred[n->in[k]] = true;
		if (matmul_weight(n))
			l->ways[matmul_weight(n)] |= n->attr.MATMUL.tb ? 2 : 1;
	}
	for (ValId v = 1; v < l->g->nval; v++)
		l->barred[v] |= l->ways[v] == 3;
}

static bool
check_wish(struct lora *l, const struct lora_wish *w, const bool *read)
{
	bool hit = false;

	FOR_VALS (v, l->g) {
		ValId id = val_id(l->g, v);

		hit |= l->wish[id] && read[id] && !l->barred[id]
			&& glob_match(w->glob, v->name);
	}
	return hit || diag_error(l->p->diag, "--lora '%s' matches no weight "
	                         "that only matrix products use, in one "
	                         "orientation; --dump=canon shows the products "
	                         "and their weights", w->glob);
}

/* The other weight whose adapter has the same name: `w` of `w.weight`, and the
 * other way round. */
static ValId
adapter_namesake(struct lora *l, const char *name)
{
	size_t n = strlen(name), tail = strlen(".weight");
	bool whole = n > tail && !strcmp(name + n - tail, ".weight");

	return val_find(l->g, whole ? arena_printf(l->g->arena, "%.*s",
	                                           (int)(n - tail), name)
	                : arena_printf(l->g->arena, "%s.weight", name));
}

static bool
check_name(struct lora *l, ValId id)
{
	const char *name = l->g->val[id].name,
		   *a = adapter_name(l, name, "lora_A");
	ValId twin = adapter_namesake(l, name), taken = val_find(l->g, a);

	taken = taken ? taken : val_find(l->g, adapter_name(l, name, "lora_B"));
	twin = twin && l->adapts[twin] ? twin : 0;
	return !(twin || taken)
	       || diag_error(l->p->diag, "--lora: the adapter of '%s' would be "
	                     "named '%s', like %s '%s'", name, a,
	                     twin ? "that of" : "the value",
	                     l->g->val[twin ? twin : taken].name);
}

static bool
check_lora_wishes(struct lora *l)
{
	const struct options *o = l->p->opt;
	bool *read = arena_array(l->p->scratch, l->g->nval, sizeof *read);
	bool ok = true;

	FOR_NODES (n, l->g)
		read[matmul_weight(n)] = true;
	for (int i = 0; i < o->nlora; i++)
		ok &= check_wish(l, &o->lora[i], read);
	FOR_VALS (v, l->g) {
		ValId id = val_id(l->g, v);

		if (!l->wish[id] || !read[id])
			continue;
		if (l->barred[id])
			diag_warn(l->p->diag, "--lora: no adapter is added to "
			          "'%s': %s", v->name, l->ways[id] == 3
			          ? "matmuls use it both as it is and "
			            "transposed"
			          : "ops other than matmul use it, too");
		else if (v->dt != DT_F32)
			ok = diag_error(l->p->diag, "--lora: expected '%s' in "
			                "f32, found %s", v->name,
			                dtype_info[v->dt].text);
		l->adapts[id] = !l->barred[id];
	}
	for (ValId id = 1; id < l->g->nval && ok; id++)
		ok = !l->adapts[id] || check_name(l, id);
	return ok;
}

/* ---- weights ---- */

/* Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
 * 2014: SplitMix64; 24 bits of it, from 0 to 1. */
static double
draw_uniform(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 40) * 0x1p-24;
}

/* A, or, bound 0, B. */
static ValId
new_weight(struct lora *l, const char *weight, const char *end, Shape shape,
           double bound)
{
	Graph *g = l->g;
	const char *name = adapter_name(l, weight, end);
	ValId v = val_new(g, V_PARAM, name, DT_F32, shape);
	int64_t n = val_nelem(&g->val[v]);
	float *x = arena_array(g->arena, (size_t)n + 1, sizeof *x);
	uint64_t state = hash_str(HASH_START, name);

	for (int64_t i = 0; bound > 0 && i < n; i++)
		x[i] = (float)(bound * (2 * draw_uniform(&state) - 1));
	g->val[v].data = x;
	return v;
}

/* A of the weight, which B follows. */
static ValId
adapter_of(struct lora *l, ValId weight, bool turned)
{
	Graph *g = l->g;
	const struct lora_wish *w = l->wish[weight];
	const char *name = g->val[weight].name;
	int64_t in = g->val[weight].shape.dim[turned], a, b;
	int64_t out = g->val[weight].shape.dim[!turned];

	if (l->adapter[weight])
		return l->adapter[weight];
	a = new_weight(l, name, "lora_A", SHAPE(w->rank, in),
	               1 / sqrt((double)in));
	b = new_weight(l, name, "lora_B", SHAPE(out, w->rank), 0);
	l->p->result.adapter[l->p->result.nadapter++] = (struct adapter){
		weight, (ValId)a, (ValId)b, w->alpha / (double)w->rank, !turned
	};
	return l->adapter[weight] = (ValId)a;
}

/* ---- products ---- */

static void
schedule_lora_node(struct lora *l, NodeId id)
{
	l->order[l->n++] = id;
}

/* x A^T B^T scaled, added to the product's result; 0 after a diagnostic. */
static ValId
add_products(struct lora *l, NodeId id)
{
	Graph *g = l->g;
	Diag *d = l->p->diag;
	Node n = g->node[id];
	const struct lora_wish *w = l->wish[n.in[1]];
	ValId a = adapter_of(l, n.in[1], n.attr.MATMUL.tb != 0), low, up;
	Attr down = attr_default(OP_MATMUL), rise = down;

	down.MATMUL.ta = n.attr.MATMUL.ta;
	down.MATMUL.tb = rise.MATMUL.tb = 1;
	rise.MATMUL.alpha = w->alpha / (double)w->rank * n.attr.MATMUL.alpha;
	low = emit_op(g, d, OP_MATMUL, 2, (ValId[]){ n.in[0], a }, &down, id);
	up = low ? emit_op(g, d, OP_MATMUL, 2, (ValId[]){ low, a + 1 }, &rise,
	                   id) : 0;
	return up ? emit_op(g, d, OP_ADD, 2, (ValId[]){ n.out[0], up }, NULL,
	                    id) : 0;
}

/* What read the product's result reads the sum. */
static bool
adapt(struct lora *l, NodeId id, uint32_t nnode)
{
	Graph *g = l->g;
	NodeId first = g->nnode;
	ValId y = g->node[id].out[0], sum = add_products(l, id);

	if (!sum)
		return false;
	val_replace(g, y, sum, id + 1, nnode);
	g->val[sum].output = g->val[y].output;
	g->val[sum].onnx = g->val[y].onnx;
	g->val[y].output = false;
	g->val[y].onnx = NULL;
	for (NodeId i = first; i < g->nnode; i++)
		schedule_lora_node(l, i);
	return true;
}

static void
freeze_base(struct lora *l, uint32_t nval)
{
	const struct options *o = l->p->opt;

	for (ValId v = 1; v < nval; v++) {
		const struct glob_wish *w = glob_last(o->nwish, o->wish,
		                                      l->g->val[v].name);

		if (l->g->val[v].kind == V_PARAM && !(w && w->wanted))
			l->g->val[v].frozen = true;
	}
}

bool
pass_lora(Pass *p, Graph *g)
{
	struct lora l = { .p = p, .g = g };
	uint32_t nnode = g->nnode, nval = g->nval;

	if (!p->opt->nlora)
		return true;
	if (g->props & P_BWD)
		return diag_error(p->diag, "--lora must be applied before "
		                  "differentiation, but the graph already has "
		                  "a backward pass");
	l.adapter = arena_array(p->scratch, nval, sizeof *l.adapter);
	l.barred = arena_array(p->scratch, nval, sizeof *l.barred);
	l.adapts = arena_array(p->scratch, nval, sizeof *l.adapts);
	l.ways = arena_array(p->scratch, nval, sizeof *l.ways);
	l.wish = arena_array(p->scratch, nval, sizeof *l.wish);
	l.order = arena_array(p->scratch, 4 * (size_t)nnode, sizeof *l.order);
	p->result.adapter = arena_array(p->keep, nval,
	                                sizeof *p->result.adapter);
	p->result.nadapter = 0;
	find_wishes(&l);
	if (!check_lora_wishes(&l))
		return false;
	freeze_base(&l, nval);
	for (NodeId id = 1; id < nnode; id++) {
		ValId w = matmul_weight(&g->node[id]);

		schedule_lora_node(&l, id);
		if (w && l.wish[w] && !l.barred[w] && !adapt(&l, id, nnode))
			return false;
	}
	graph_reorder(g, l.order, l.n);
	return true;
}
