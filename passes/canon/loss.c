/* The scalar that training minimises, and which outputs survive.
 *
 * Without --loss it is the output named "loss", else the only scalar float
 * output.  A kind of loss such as "ce:LOGITS" adds one to the graph
 * (loss_added.c).
 *
 * Training keeps the loss and the outputs that --output names; other outputs
 * are removed.  The rules of canon run again, because they do not rewrite
 * outputs.  With forward only, all outputs are kept unless --output names
 * some.  The same holds for the evaluation graph, which starts as a copy of
 * this one.
 *
 * needs   P_CANON
 * gives   P_LOSS; p->result.forward
 * refuses losses that are no float scalar, choices that are ambiguous
 */
#include "passes/canon/canon.h"
#include "passes/canon/loss.h"
#include "passes/canon/match.h"

#include <string.h>

static bool
is_scalar_loss(const Val *v)
{
	return dtype_info[v->dt].cls == 'f' && shape_nelem(&v->shape) == 1;
}

static const struct loss_kind *
find_kind(const char *text)
{
	size_t n = strcspn(text, ":,");

	for (size_t i = 0; i < loss_nkind; i++)
		if (strlen(loss_kinds[i].name) == n
		    && !strncmp(loss_kinds[i].name, text, n))
			return &loss_kinds[i];
	return NULL;
}

const char *
loss_kind(size_t i)
{
	return i < loss_nkind ? loss_kinds[i].name : NULL;
}

/* Kinds of loss from number i on, the last one behind `last`. */
static const char *
kinds_from(Pass *p, size_t i, const char *last)
{
	const char *list = loss_kind(i);

	while (loss_kind(++i))
		list = arena_printf(p->scratch, "%s%s%s", list,
		                    loss_kind(i + 1) ? ", " : last,
		                    loss_kind(i));
	return list;
}

static ValId
no_output(Pass *p, const Graph *g, const char *name)
{
	diag_error(p->diag, "no output and no kind of loss is named '%s'; "
	           "kinds are %s", name, kinds_from(p, 0, " and "));
	loss_list_outputs(p, g);
	return 0;
}

/* ---- the graph's own loss ---- */

static ValId
own_loss(Pass *p, const Graph *g)
{
	ValId found = loss_find_output(g, "loss");
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
		           "%s:LOGITS, or %s:OUTPUT", loss_kind(0),
		           kinds_from(p, 1, " or "));
	else
		diag_error(p->diag, "several outputs are scalars; use --loss "
		           "OUTPUT");
	loss_list_outputs(p, g);
	return 0;
}

static ValId
named_loss(Pass *p, const Graph *g, const char *name)
{
	ValId v = loss_find_output(g, name);
	char text[160];

	if (!v)
		return no_output(p, g, name);
	if (is_scalar_loss(&g->val[v]))
		return v;
	diag_error(p->diag, "output '%s' cannot be the loss: expected a float "
	           "scalar, found %s%s%s", name,
	           shape_text(text, sizeof text, g->val[v].dt,
	                      &g->val[v].shape),
	           dtype_info[g->val[v].dt].cls != 'f' ? ""
	           : g->val[v].shape.rank > 1 ? "; try: --loss ce:"
	           : "; try: --loss mse:",
	           dtype_info[g->val[v].dt].cls == 'f' ? name : "");
	return 0;
}

/* ---- a loss to add ---- */

static bool
is_float(const Val *v)
{
	return dtype_info[v->dt].cls == 'f';
}

/* The named output, else the only float output of at least that rank, else the
 * one with the default name. */
static ValId
find_operand(const struct loss_builder *m)
{
	const struct loss_kind *f = m->kind;
	Graph *g = m->g;
	ValId found = 0;
	int n = 0;

	if (*m->spec.output) {
		found = loss_find_output(g, m->spec.output);
		return found ? found : no_output(m->p, g, m->spec.output);
	}
	FOR_VALS (v, g) {
		if (!v->output || !is_float(v) || v->shape.rank < f->min_rank)
			continue;
		found = val_id(g, v);
		n++;
	}
	if (n > 1)
		found = loss_find_output(g, f->default_output);
	if (found)
		return found;
	diag_error(m->p->diag, "--loss %s: %s; use --loss %s:OUTPUT", f->name,
	           n ? "several outputs match" : "no output matches", f->name);
	loss_list_outputs(m->p, g);
	return 0;
}

static bool
check_operand(const struct loss_builder *m)
{
	const struct loss_kind *f = m->kind;
	const Val *v = &m->g->val[m->x];
	const char *op = v->def ? op_info[m->g->node[v->def].op].text : "";
	char text[160];

	shape_text(text, sizeof text, v->dt, &v->shape);
	if (!is_float(v) || v->shape.rank < f->min_rank)
		return diag_error(m->p->diag, f->min_rank
		                  ? "--loss %s: output '%s' is %s, expected "
		                    "float logits of rank 2 or more"
		                  : "--loss %s: output '%s' is %s, expected "
		                    "floats", f->name, v->name, text);
	if (f->applied && (!strcmp(op, "softmax") || !strcmp(op, "sigmoid")))
		diag_warn(m->p->diag, "--loss %s: output '%s' is a %s, but %s "
		          "applies %s again; export the logits instead",
		          f->name,
		          v->name, op, f->name, f->applied);
	return true;
}

static ValId
add_loss(Pass *p, Graph *g, const struct loss_kind *kind, const char *text)
{
	struct loss_builder m = { .p = p, .g = g, .kind = kind };

	if (!loss_parse_spec(p, g, kind->name, kind->keys, text, &m.spec))
		return 0;
	m.x = find_operand(&m);
	if (!m.x || !check_operand(&m))
		return 0;
	m.like = g->val[m.x].def;
	return kind->make(&m);
}

static ValId
choose_loss(Pass *p, Graph *g)
{
	const char *text = p->opt->loss;
	const struct loss_kind *kind = text ? find_kind(text) : NULL;
	ValId v;

	if (!text)
		return own_loss(p, g);
	if (loss_find_output(g, text) || !kind)
		return named_loss(p, g, text);
	v = add_loss(p, g, kind, text);
	if (v)
		val_rename(g, v, "loss");
	return v;
}

/* ---- outputs ---- */

/* The only cross-entropy's class scores; 0: there is none, or several. */
static ValId
only_logits(const Graph *g)
{
	ValId found = 0;
	int n = 0;

	FOR_NODES (node, g)
		if (node->op == OP_SCE) {
			found = node->in[0];
			n++;
		}
	return n == 1 && g->val[found].kind == V_TEMP ? found : 0;
}

/* --output logits, where no output is called so: evaluation gives the class
 * scores that the loss reads. */
static bool
is_logits_wish(const Graph *g, const char *glob)
{
	return strcmp(glob, "logits") == 0 && !loss_find_output(g, glob)
		&& only_logits(g);
}

static void
keep_logits(const struct options *o, Graph *forward)
{
	ValId v = only_logits(forward);

	for (int i = 0; i < o->output.n; i++)
		if (is_logits_wish(forward, o->output.v[i])) {
			if (!forward->val[v].output)
				val_rename(forward, v, "logits");
			forward->val[v].output = true;
			return;
		}
}

bool
loss_keep_outputs(Pass *p, Graph *g)
{
	const struct options *o = p->opt;
	const struct name_list *globs = &o->output;
	bool ok = true;

	for (int i = 0; i < globs->n; i++) {
		bool hit = false;

		FOR_VALS (v, g)
			hit |= v->output && val_matches(v, globs->v[i]);
		if (hit || (o->evaluator && is_logits_wish(g, globs->v[i])))
			continue;
		ok = diag_error(p->diag, "--output %s matches no output",
		                globs->v[i]);
		loss_list_outputs(p, g);
	}
	if (o->forward_only && globs->n == 0)
		return ok;
	FOR_VALS (v, g)
		v->output = v->output
			&& (val_id(g, v) == g->loss
			    || glob_any(globs->n, globs->v, v->name)
			    || (v->onnx && glob_any(globs->n, globs->v,
			                            v->onnx)));
	return ok;
}

bool
pass_loss(Pass *p, Graph *g)
{
	if (!p->opt->forward_only || p->opt->loss) {
		g->loss = choose_loss(p, g);
		if (!g->loss)
			return false;
		g->val[g->loss].output = true;
	}
	if (p->opt->forward_only)
		keep_logits(p->opt, g);
	if (p->opt->eval && g->loss) {
		p->result.forward = graph_clone(g);
		keep_logits(p->opt, p->result.forward);
	}
	if (!loss_keep_outputs(p, g))
		return false;
	return canon_run(p, g);
}
