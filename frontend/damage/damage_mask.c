/* Masks of true and false that an exporter made numbers of.
 *
 * PyTorch's scaled_dot_product_attention gives zeros for a row that may attend
 * to nothing.  Its exporter adds the lowest float to the scores of what is
 * masked, so that all scores of such a row are equal and it attends to all
 * evenly.  A check for NaN behind the softmax, which then never hits, tells
 * this from a module that adds large numbers itself.
 *
 * Only a mask that comes from outside and has rows can have such a row: one
 * that is an input of truth values, or of three axes or more.
 *
 * cost   linear in the nodes, and once more for each mask
 */
#include "frontend/damage/damage_search.h"

#include <math.h>
#include <string.h>

enum { MOST_HOPS = 12, MOST_MASKS = 64 };

/* Operand 0 with other axes, or of another type. */
static bool
is_move(const struct flat_node *n)
{
	static const char *const types[] = { "Cast", "CastLike", "Expand",
		"Identity", "Reshape", "Squeeze", "Unsqueeze", "Not", "Slice" };

	for (size_t i = 0; n && i < sizeof types / sizeof *types; i++)
		if (strcmp(n->type, types[i]) == 0)
			return true;
	return false;
}

/* The node behind v that does more than move its operand. */
static const struct flat_node *
maker(const struct flat *f, int v)
{
	const struct flat_node *n = node_behind(f, v);

	for (int i = 0; i < MOST_HOPS && is_move(n); i++)
		n = node_behind(f, operand(n, 0));
	return n;
}

/* The one number that v is; 0: none. */
static double
number(struct flat *f, int v)
{
	const struct flat_node *n = node_behind(f, v);
	const Onnx__AttributeProto *a;
	const Onnx__TensorProto *p;
	struct onnx_tensor t;

	for (int i = 0; i < MOST_HOPS && is_move(n); i++) {
		v = operand(n, 0);
		n = node_behind(f, v);
	}
	a = is_type(n, "Constant") ? attr_find(n, "value_float") : NULL;
	p = flat_tensor(f, v);
	if (a)
		return (double)a->f;
	if (!p || !onnx_tensor_load(f->file, p, &t) || !t.data || t.nelem != 1
	    || dtype_info[t.dt].cls != 'f')
		return 0;
	return val_float(&(Val){ .kind = V_CONST, .dt = t.dt, .shape = t.shape,
	                         .data = t.data }, 0);
}

/* The lowest number of 16 bits, or of more; with -inf a row can be asked for
 * NaN. */
static bool
is_lowest(double x)
{
	return x <= -65504 && !isinf(x);
}

/* The Where that makes what is added to the scores of a softmax; NULL: none
 * that writes the lowest float. */
static const struct flat_node *
find_where(struct search *s, const struct flat_node *softmax)
{
	const struct flat_node *add = maker(s->f, operand(softmax, 0));

	for (int i = 0; is_type(add, "Add") && i < 2; i++) {
		const struct flat_node *w = maker(s->f, operand(add, i));

		if (is_type(w, "Where")
		    && (is_lowest(number(s->f, operand(w, 1)))
		        || is_lowest(number(s->f, operand(w, 2)))))
			return w;
	}
	return NULL;
}

/* Whether an input has a truth value for each pair of rows and columns, as far
 * as the file says. */
static bool
has_rows(const struct flat_val *v)
{
	const Onnx__TypeProto__Tensor *t = v->info && v->info->type
		? v->info->type->tensor_type : NULL;

	return t && !v->init && (onnx_dtype(t->elem_type) == DT_BOOL
	                         || (t->shape && t->shape->n_dim >= 3));
}

/* Marks what v is made of; whether an input with rows is among it.  What is
 * true where either operand is, and that holds without inputs, is taken for
 * visible. */
static bool
mark_sources(const struct flat *f, int v, bool *from)
{
	bool rows = false;

	from[v] = true;
	for (int i = f->val[v].def; i >= 0; i--) {
		const struct flat_node *n = &f->node[i];
		bool hit = false;

		for (int k = 0; k < n->nout; k++)
			hit |= n->out[k] && from[n->out[k]];
		if (!hit || is_type(n, "Shape") || is_type(n, "Or"))
			continue;
		for (int k = 0; k < n->nin; k++)
			from[n->in[k]] = n->in[k] != 0;
	}
	for (int i = 0; i < f->ninput; i++)
		rows |= from[f->input[i]] && has_rows(&f->val[f->input[i]]);
	return rows;
}

/* Whether the module itself asks which rows see anything: mask.any(-1). */
static bool
is_asked(const struct flat *f, const bool *from)
{
	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *n = &f->node[i];
		int v = operand(n, 0);

		if (!n->needed || strncmp(n->type, "Reduce", 6) != 0)
			continue;
		for (int k = 0; k < MOST_HOPS && !from[v]
		     && is_move(node_behind(f, v)); k++)
			v = operand(node_behind(f, v), 0);
		if (from[v] && v)
			return true;
	}
	return false;
}

static bool
may_be_dead(struct search *s, int mask)
{
	bool *from = arena_array(s->arena, (size_t)s->f->nval, sizeof *from);

	return mark_sources(s->f, mask, from) && !is_asked(s->f, from);
}

void
damage_find_masks(struct search *s)
{
	bool *checked = arena_array(s->arena, (size_t)s->f->nval,
	                            sizeof *checked);
	struct group g = { 0 };
	int last = 0, masks = 0;        /* layers share their mask */
	bool dead = false;

	for (int i = 0; i < s->f->nnode; i++)
		if (is_type(&s->f->node[i], "IsNaN"))
			checked[operand(&s->f->node[i], 0)] = true;
	for (int i = 0; i < s->f->nnode && masks < MOST_MASKS; i++) {
		const struct flat_node *n = &s->f->node[i], *w = NULL;

		if (n->needed && is_type(n, "Softmax") && checked[n->out[0]])
			w = find_where(s, n);
		if (!w || !operand(w, 0))
			continue;
		if (w->in[0] != last) {
			last = w->in[0];
			dead = may_be_dead(s, last);
			masks++;
		}
		if (dead)
			group_name(s, &g, n->name);
	}
	if (g.n)
		say(s, &g, "%s: the exporter made the lowest float of what a "
		    "mask hides: a row that sees nothing attends to all "
		    "evenly, in PyTorch it gives zeros; export with "
		    "opset_version=23, or multiply the attention's output by "
		    "mask.any(-1, keepdim=True)", group_subject(s, &g));
}
