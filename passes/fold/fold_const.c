/* Pass fold: constants after the walk.
 *
 * Cut axes along which constants repeat if their user broadcasts anyway (a mask
 * expanded over the batch), and merge equal constants.
 *
 * cost   bytes of the constants that are operands
 */
#include "passes/fold/fold_rules.h"
#include "runtime/support/hash.h"

#include <string.h>

/* Whether v is constant along axis d. */
static bool
repeats_along(const Val *v, int d)
{
	int64_t inner = dtype_info[v->dt].nbytes, outer = 1;
	const char *data = v->data;

	for (int i = 0; i < d; i++)
		outer *= v->shape.dim[i];
	for (int i = d + 1; i < v->shape.rank; i++)
		inner *= v->shape.dim[i];
	for (int64_t o = 0; o < outer; o++, data += inner * v->shape.dim[d])
		if (memcmp(data, data + inner,
		           (size_t)(inner * (v->shape.dim[d] - 1))) != 0)
			return false;
	return true;
}

/* The constant with axis d cut to its first element. */
static ValId
cut_axis(struct fold *f, ValId id, int d)
{
	Val v = f->g->val[id];
	int64_t inner = dtype_info[v.dt].nbytes, outer = 1;
	Shape s = v.shape;

	for (int i = 0; i < d; i++)
		outer *= s.dim[i];
	for (int i = d + 1; i < s.rank; i++)
		inner *= s.dim[i];
	s.dim[d] = 1;
	char *data = arena_alloc(f->mem, (size_t)(outer * inner) + 1);
	for (int64_t o = 0; o < outer; o++)
		memcpy(data + o * inner,
		       (const char *)v.data + o * inner * v.shape.dim[d],
		       (size_t)inner);
	ValId y = val_new(f->g, V_CONST, v.name, v.dt, s);
	f->g->val[y].data = data;
	f->g->val[y].onnx = v.onnx;
	fold_facts(f, y)->folded = true;
	return y;
}

/* Whether the output of n keeps its shape with extent 1 at operand k's axis d,
 * counted from the end. */
static bool
others_span(const Graph *g, const Node *n, int k, int from_end)
{
	const Shape *x = &g->val[n->in[k]].shape;

	if (n->op == OP_ATTENTION)
		return true;
	for (int i = 0; i < n->nin; i++) {
		const Shape *s = &g->val[n->in[i]].shape;
		if (i != k && n->in[i] && s->rank >= from_end
		    && s->dim[s->rank - from_end] == x->dim[x->rank - from_end])
			return true;
	}
	return false;
}

static void
shrink_operand(struct fold *f, Node *n, int k)
{
	Graph *g = f->g;

	for (int d = 0; d < g->val[n->in[k]].shape.rank; d++) {
		const Val *v = &g->val[n->in[k]];
		if (v->shape.dim[d] > 1 && repeats_along(v, d)
		    && others_span(g, n, k, v->shape.rank - d))
			n->in[k] = cut_axis(f, n->in[k], d);
	}
	/* leading axes of 1 are left to the other operands */
	const Val *v = &g->val[n->in[k]];
	if (n->op == OP_ATTENTION || v->shape.rank == 0 || val_nelem(v) != 1)
		return;
	for (int i = 0; i < n->nin; i++)
		if (i != k && n->in[i]
		    && g->val[n->in[i]].shape.rank >= v->shape.rank) {
			Val was = *v;
			ValId y = val_new(g, V_CONST, was.name, was.dt,
			                  shape_scalar());
			g->val[y].data = was.data;
			g->val[y].onnx = was.onnx;
			fold_facts(f, y)->folded = true;
			n->in[k] = y;
			return;
		}
}

void
fold_shrink_constants(struct fold *f)
{
	Graph *g = f->g;

	FOR_NODES (n, g) {
		bool ew = op_info[n->op].flags & F_EW && n->op != OP_LOOP;
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && val_is_const(&g->val[n->in[k]])
			    && val_nelem(&g->val[n->in[k]]) > 0
			    && ((ew && n->nin > 1 && op_info[n->op].nstat > k)
			        || (n->op == OP_ATTENTION && k == 3)))
				shrink_operand(f, n, k);
	}
}

static bool
same_constant(const Val *a, const Val *b)
{
	return a->dt == b->dt && shape_eq(&a->shape, &b->shape)
	       && memcmp(a->data, b->data, (size_t)val_data_bytes(a)) == 0;
}

/* The first constant seen that equals v. */
static ValId
first_equal(struct fold *f, struct table *seen, ValId v)
{
	const Val *x = &f->g->val[v];
	uint64_t hash = hash_block(x->data, (size_t)val_data_bytes(x));
	ValId first;

	for (size_t at = 0; (first = table_next(seen, hash, &at));)
		if (same_constant(x, &f->g->val[first]))
			return first;
	table_add(seen, f->p->scratch, hash, v);
	return v;
}

void
fold_merge_constants(struct fold *f)
{
	Graph *g = f->g;
	struct table seen = { 0 };
	ValId *now = arena_array(f->p->scratch, g->nval, sizeof *now);
	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++) {
			ValId v = n->in[k];
			const Val *x = &g->val[v];
			if (!v || !val_is_const(x) || x->output
			    || val_data_bytes(x) < 0)
				continue;
			if (!now[v])
				now[v] = first_equal(f, &seen, v);
			n->in[k] = now[v];
		}
}

void
fold_keep_contents(struct fold *f)
{
	FOR_VALS (v, f->g)
		if (fold_facts(f, val_id(f->g, v))->folded && v->data)
			v->data = arena_copy(f->g->arena, v->data,
			                     (size_t)val_data_bytes(v));
}

void
fold_copy_constant_outputs(struct fold *f)
{
	Graph *g = f->g;

	for (ValId v = 1, end = g->nval; v < end; v++) {
		ValId c;
		Node *n;

		if (!g->val[v].output || g->val[v].kind != V_CONST
		    || (v == g->loss && !f->p->opt->forward_only))
			continue;
		c = val_new(g, V_CONST, NULL, g->val[v].dt, g->val[v].shape);
		g->val[c].data = g->val[v].data;
		fold_facts(f, c)->folded = fold_facts(f, v)->folded;
		fold_facts(f, v)->folded = false;
		val_replace(g, v, c, 1, g->nnode);
		n = node_new(g, OP_COPY, 1, &c, 0, 0);
		g->val[n->out[0]].def = 0;
		n->out[0] = v;
		g->val[v].kind = V_TEMP;
		g->val[v].data = NULL;
		g->val[v].def = node_id(g, n);
		g->val[v].result_index = 0;
	}
}
