/* The scalar that training minimises, and which outputs survive.
 *
 * Without --loss it is the graph's own: the output named "loss", else the
 * only scalar float output.  "ce:LOGITS" adds softmax cross entropy over the
 * last axis of an output against a new input `labels` (mean over labels other
 * than -100), "mse:OUTPUT" the mean squared difference to a new input
 * `target`.
 *
 * Training keeps the loss and the outputs that --output names; the rest dies,
 * and since rules of canon hold back where a value is an output, they are
 * tried once more.  With forward only, all outputs are kept unless --output
 * names some.
 *
 * needs   P_CANON
 * gives   P_LOSS
 * refuses losses that are no float scalar, choices that are ambiguous
 */
#include "passes/canon/match.h"

#include <string.h>

static bool
is_named(const Val *v, const char *name)
{
	return strcmp(v->name, name) == 0
		|| (v->onnx && strcmp(v->onnx, name) == 0);
}

static bool
is_float(const Val *v)
{
	return dtype_info[v->dt].cls == 'f';
}

static bool
is_scalar_loss(const Val *v)
{
	return is_float(v) && shape_nelem(&v->shape) == 1;
}

static ValId
find_output(const Graph *g, const char *name)
{
	FOR_VALS (v, g)
		if (v->output && is_named(v, name))
			return val_id(g, v);
	return 0;
}

/* The outputs with their shapes, as further lines of an error. */
static void
list_outputs(Pass *p, const Graph *g)
{
	enum { MOST = 20 };
	char text[160];
	int n = 0;

	FOR_VALS (v, g) {
		if (!v->output || n++ >= MOST)
			continue;
		shape_text(text, sizeof text, v->dt, &v->shape);
		diag_more(p->diag, "output '%s': %s", v->name, text);
	}
	if (n > MOST)
		diag_more(p->diag, "and %d more", n - MOST);
}

static ValId
no_output(Pass *p, const Graph *g, const char *name)
{
	diag_error(p->diag, "no output is named '%s'", name);
	list_outputs(p, g);
	return 0;
}

/* ---- the graph's own loss ---- */

static ValId
own_loss(Pass *p, const Graph *g)
{
	ValId found = find_output(g, "loss");
	int n = 0;

	if (found && is_scalar_loss(&g->val[found]))
		return found;
	FOR_VALS (v, g) {
		if (!v->output || !is_scalar_loss(v))
			continue;
		found = val_id(g, v);
		n++;
	}
	if (n == 1)
		return found;
	if (n == 0)
		diag_error(p->diag, "no output is a scalar loss; use --loss "
		           "ce:LOGITS or --loss mse:OUTPUT");
	else
		diag_error(p->diag, "several outputs may be the loss; use "
		           "--loss OUTPUT");
	list_outputs(p, g);
	return 0;
}

static ValId
named_loss(Pass *p, const Graph *g, const char *name)
{
	ValId v = find_output(g, name);
	char text[160];

	if (!v)
		return no_output(p, g, name);
	if (is_scalar_loss(&g->val[v]))
		return v;
	diag_error(p->diag, "output '%s' is %s, expected a float scalar as "
	           "the loss; --loss ce:%s and --loss mse:%s make one", name,
	           shape_text(text, sizeof text, g->val[v].dt,
	                      &g->val[v].shape), name, name);
	return 0;
}

/* ---- losses that are added ---- */

/* The output that ce or mse is about: the one named, else the only float
 * output of at least min_rank, else the one named `usual`. */
static ValId
loss_operand(Pass *p, const Graph *g, const char *kind, const char *name,
             const char *usual, int min_rank)
{
	ValId found = 0;
	int n = 0;

	if (*name) {
		found = find_output(g, name);
		return found ? found : no_output(p, g, name);
	}
	FOR_VALS (v, g) {
		if (!v->output || !is_float(v) || v->shape.rank < min_rank)
			continue;
		found = val_id(g, v);
		n++;
	}
	if (n > 1)
		found = find_output(g, usual);
	if (found)
		return found;
	diag_error(p->diag, "--loss %s: %s; use --loss %s:OUTPUT", kind,
	           n ? "several outputs fit" : "no output fits", kind);
	list_outputs(p, g);
	return 0;
}

static bool
is_read(const Graph *g, ValId v)
{
	FOR_NODES (n, g)
		for (int i = 0; i < n->nin; i++)
			if (n->in[i] == v)
				return true;
	return g->val[v].output;
}

/* The input that the loss compares with: a new one, or one of that name that
 * the graph declares and does not use. */
static ValId
add_input(Pass *p, Graph *g, const char *name, DType dt, const Shape *s)
{
	ValId v = val_find(g, name);
	char have[160], want[160];

	if (!v) {
		p->added = arena_printf(p->keep, "--loss %s adds the input "
			"'%s', %s", p->opt->loss, name,
			shape_text(want, sizeof want, dt, s));
		return val_new(g, V_INPUT, name, dt, *s);
	}
	if (g->val[v].kind != V_INPUT || is_read(g, v)) {
		diag_error(p->diag, "--loss adds an input '%s', but the graph "
		           "uses that name already", name);
		return 0;
	}
	if (shape_eq(&g->val[v].shape, s)
	    && (g->val[v].dt == dt
	        || (dt == DT_I64 && g->val[v].dt == DT_I32)))
		return v;
	diag_error(p->diag, "input '%s' is %s, but the loss needs %s", name,
	           shape_text(have, sizeof have, g->val[v].dt,
	                      &g->val[v].shape),
	           shape_text(want, sizeof want, dt, s));
	return 0;
}

static ValId
reshaped(Pass *p, Graph *g, ValId v, const Shape *s)
{
	Attr a = attr_reshape(s);

	if (shape_eq(&g->val[v].shape, s))
		return v;
	return emit_op(g, p->diag, OP_RESHAPE, 1, &v, &a, g->val[v].def);
}

/* What cross entropy makes of output x of s: nothing where there is one class,
 * whose probability is always 1. */
static bool
check_logits(Pass *p, const Graph *g, ValId x, const Shape *s)
{
	const Val *v = &g->val[x];
	char text[160];

	if (s->rank < 2 || !is_float(v))
		return diag_error(p->diag, "--loss ce: output '%s' is %s, "
		                  "expected float logits of rank 2 or more",
		                  v->name,
		                  shape_text(text, sizeof text, v->dt, s));
	if (s->dim[s->rank - 1] == 1)
		return diag_error(p->diag, "--loss ce: output '%s' is %s, "
		                  "expected two classes or more on the last "
		                  "axis: of one the loss is always 0; use "
		                  "--loss mse, or export with "
		                  "binary_cross_entropy_with_logits inside",
		                  v->name,
		                  shape_text(text, sizeof text, v->dt, s));
	if (v->def && (g->node[v->def].op == OP_SOFTMAX
	               || g->node[v->def].op == OP_SIGMOID))
		diag_warn(p->diag, "--loss ce: output '%s' is a %s, and ce "
		          "applies softmax once more; export the logits",
		          v->name, op_info[g->node[v->def].op].text);
	return true;
}

static ValId
add_ce(Pass *p, Graph *g, const char *name)
{
	ValId x = loss_operand(p, g, "ce", name, "logits", 2), in[2];
	Shape s, flat, vector;
	Attr a = attr_default(OP_SCE);

	if (!x)
		return 0;
	s = g->val[x].shape;
	if (!check_logits(p, g, x, &s))
		return 0;
	flat.rank = 2;
	flat.dim[1] = s.dim[--s.rank];
	flat.dim[0] = shape_nelem(&s);
	vector = SHAPE(flat.dim[0]);
	in[1] = add_input(p, g, "labels", DT_I64, &s);
	if (!in[1])
		return 0;
	in[0] = reshaped(p, g, x, &flat);
	in[1] = in[0] ? reshaped(p, g, in[1], &vector) : 0;
	if (!in[1])
		return 0;
	a.SCE.reduction = 1;
	a.SCE.ignore = -100;
	return emit_op(g, p->diag, OP_SCE, 2, in, &a, g->val[x].def);
}

static ValId
add_mse(Pass *p, Graph *g, const char *name)
{
	ValId x = loss_operand(p, g, "mse", name, "output", 0), t, d;
	char text[160];
	Attr a = attr_default(OP_REDUCE_MEAN);
	NodeId like;

	if (!x)
		return 0;
	like = g->val[x].def;
	if (!is_float(&g->val[x])) {
		diag_error(p->diag, "--loss mse: output '%s' is %s, expected "
		           "floats", g->val[x].name,
		           shape_text(text, sizeof text, g->val[x].dt,
		                      &g->val[x].shape));
		return 0;
	}
	t = add_input(p, g, "target", g->val[x].dt, &g->val[x].shape);
	d = t ? emit_op(g, p->diag, OP_SUB, 2, (ValId[]){ x, t }, NULL, like)
	      : 0;
	d = d ? emit_op(g, p->diag, OP_MUL, 2, (ValId[]){ d, d }, NULL, like)
	      : 0;
	a.REDUCE_MEAN.keepdims = 0;
	for (int i = 0; d && i < g->val[d].shape.rank; i++)
		a.REDUCE_MEAN.axes.v[a.REDUCE_MEAN.axes.n++] = i;
	if (!d || a.REDUCE_MEAN.axes.n == 0)
		return d;
	return emit_op(g, p->diag, OP_REDUCE_MEAN, 1, &d, &a, like);
}

/* "ce" or "ce:NAME": NAME or "". */
static const char *
loss_kind(const char *text, const char *kind)
{
	size_t n = strlen(kind);

	if (strncmp(text, kind, n) != 0 || (text[n] && text[n] != ':'))
		return NULL;
	return text[n] ? text + n + 1 : text + n;
}

static ValId
choose_loss(Pass *p, Graph *g)
{
	const char *text = p->opt->loss, *name;
	ValId v;

	if (!text)
		return own_loss(p, g);
	if ((name = loss_kind(text, "ce")) != NULL && !find_output(g, text))
		v = add_ce(p, g, name);
	else if ((name = loss_kind(text, "mse")) != NULL
	         && !find_output(g, text))
		v = add_mse(p, g, name);
	else
		return named_loss(p, g, text);
	if (v)
		val_rename(g, v, "loss");
	return v;
}

/* ---- outputs ---- */

/* Unmark outputs that are not wanted; every glob must match one. */
static bool
keep_outputs(Pass *p, Graph *g)
{
	const struct options *o = p->opt;
	const char *const *globs = (const char *const *)o->output;
	bool ok = true;

	for (int i = 0; i < o->noutput; i++) {
		bool hit = false;

		FOR_VALS (v, g)
			hit |= v->output
				&& (glob_match(o->output[i], v->name)
				    || (v->onnx && glob_match(o->output[i],
				                              v->onnx)));
		if (hit)
			continue;
		ok = diag_error(p->diag, "--output %s matches no output",
		                o->output[i]);
		list_outputs(p, g);
	}
	if (o->forward_only && o->noutput == 0)
		return ok;
	FOR_VALS (v, g)
		v->output = v->output
			&& (val_id(g, v) == g->loss
			    || glob_any(o->noutput, globs, v->name)
			    || (v->onnx && glob_any(o->noutput, globs,
			                            v->onnx)));
	return ok;
}

bool
pass_loss(Pass *p, Graph *g)
{
	p->changed = true;
	if (!p->opt->forward_only || p->opt->loss) {
		g->loss = choose_loss(p, g);
		if (!g->loss)
			return false;
		g->val[g->loss].output = true;
	}
	if (!keep_outputs(p, g))
		return false;
	return canon_run(p, g);
}
