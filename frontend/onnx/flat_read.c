/* Reads graphs, which nest: from named and nested to numbered and flat.
 *
 * needs  an unpacked model
 * gives  nodes in the file's order: calls of local functions replaced by their
 *        bodies, If with a constant condition by the branch taken, loops by
 *        their trips (flat_loop.c)
 * cost   linear in the nodes, functions counted once per call
 * refuses  names written twice or never, functions that call themselves, more
 *        than a million nodes
 */
#include "frontend/onnx/flat_read.h"

#include <string.h>

enum { MAX_INLINED = 1 << 17, MAX_NODES = 1 << 20 };

static FlatReader read_onnx_graph;
static bool read_nodes(struct flat *, struct context *, Onnx__NodeProto **,
                       size_t n);

/* ---- local functions ---- */

/* Key of a function in a table of names. */
static const char *
function_key(struct flat *f, const char *domain, const char *name,
             const char *overload)
{
	domain = flat_text(domain);
	return arena_printf(f->arena, "%s\n%s\n%s",
	                    flat_is_onnx(domain) ? "" : domain, flat_text(name),
	                    flat_text(overload));
}

static bool
index_functions(struct flat *f)
{
	const Onnx__ModelProto *m = f->file->model;

	if (m->n_functions == 0)
		return true;
	f->functions = arena_alloc(f->arena, sizeof(struct name_scope));
	for (size_t i = 0; i < m->n_functions; i++) {
		const Onnx__FunctionProto *fn = m->functions[i];
		const char *key = function_key(f, fn->domain, fn->name,
		                               fn->overload);

		if (flat_name_here(f->functions, key))
			return diag_error(f->diag, "function '%s' is defined "
			                  "twice", flat_text(fn->name));
		flat_name_set(f, f->functions, key, (int)i + 1);
	}
	return true;
}

static const Onnx__FunctionProto *
find_function(struct flat *f, const Onnx__NodeProto *p)
{
	int i;

	if (!f->functions)
		return NULL;
	i = flat_name_here(f->functions,
	                   function_key(f, p->domain, p->op_type, p->overload));
	return i ? f->file->model->functions[i - 1] : NULL;
}

static bool
may_call(struct flat *f, const struct context *c,
         const Onnx__FunctionProto *fn, int depth)
{
	for (const struct call *up = c->call; up; up = up->up)
		if (up->function == fn)
			return diag_error(f->diag, "function '%s' calls itself",
			                  flat_text(fn->name));
	if (f->ninlined >= MAX_INLINED)
		return diag_error(f->diag, "more than %d function calls",
		                  MAX_INLINED);
	if (depth > MAX_CALLS)
		return diag_error(f->diag, "function '%s': calls are nested "
		                  "deeper than %d", flat_text(fn->name),
		                  MAX_CALLS);
	return true;
}

static bool
inline_call(struct flat *f, const struct context *c,
            const Onnx__FunctionProto *fn, const struct flat_node *n)
{
	struct call call = { c->call, fn, c->call ? c->call->depth + 1 : 1 };
	struct attr_scope *attrs = arena_alloc(f->arena, sizeof *attrs);
	struct context inner = { .call = &call, .attrs = attrs,
	                         .opset = fn->opset_import,
	                         .nopset = fn->n_opset_import };
	int nin = n->nin, nout = n->nout, *in = n->in, *out = n->out;

	if (!may_call(f, c, fn, call.depth)) {
		f->stop = true;         /* report once, not for every call */
		return false;
	}
	if ((size_t)nin > fn->n_input || (size_t)nout > fn->n_output)
		return diag_at(f->diag, n->name, n->type, "found %d inputs and "
		               "%d outputs, but the function has %zu and %zu",
		               nin,
		               nout, fn->n_input, fn->n_output);
	if (!opset_check(f, &inner)) {
		f->stop = true;
		return false;
	}
	*attrs = (struct attr_scope){ c->attrs, n->p->attribute,
	                              fn->attribute_proto, n->p->n_attribute,
	                              fn->n_attribute_proto };
	if (inner.nopset == 0) {
		inner.opset = c->opset;
		inner.nopset = c->nopset;
	}
	inner.prefix = arena_printf(f->arena, "%s/", n->name);
	f->ninlined++;
	f->nnode--;                     /* the call itself */
	for (int i = 0; i < nin; i++)
		if (in[i])
			flat_name_set(f, &inner.names, fn->input[i], in[i]);
	/* outputs are bound before the body is read, so that it writes them
	 * directly; an output that is an input needs a copy */
	for (int i = 0; i < nout; i++)
		if (out[i] && !flat_name_here(&inner.names, fn->output[i]))
			flat_name_set(f, &inner.names, fn->output[i], out[i]);
	if (!read_nodes(f, &inner, fn->node, fn->n_node))
		return false;
	for (int i = 0; i < nout; i++) {
		int v = flat_name_here(&inner.names, fn->output[i]);

		if (out[i] && v && v != out[i])
			flat_add_identity(f, v, out[i]);
		else if (out[i] && f->val[out[i]].def < 0)
			return diag_error(f->diag, "function '%s' does not "
			                  "write its output '%s'",
			                  flat_text(fn->name), fn->output[i]);
	}
	return true;
}

/* ---- If with a constant condition ---- */

/* True if the node was such an If; *ok: no diagnostic was given. */
static bool
inline_if(struct flat *f, const struct context *c, const struct flat_node *n,
          bool *ok)
{
	const Onnx__AttributeProto *a;
	int64_t yes;
	struct call call = { c->call, NULL, c->call ? c->call->depth + 1 : 1 };
	struct context inner = *c;
	int nout = n->nout, *out = n->out;

	if (n->nin != 1 || !n->in[0] || call.depth > MAX_CALLS
	    || !flat_number(f, n->in[0], &yes))
		return false;
	a = attr_find(n, yes ? "then_branch" : "else_branch");
	if (!a || !a->g || a->g->n_output != (size_t)nout)
		return false;
	inner.names = (struct name_scope){
		.up = (struct name_scope *)&c->names,
	};
	inner.prefix = arena_printf(f->arena, "%s/", n->name);
	inner.call = &call;
	inner.top = inner.bound = false;
	f->nnode--;
	*ok = read_onnx_graph(f, &inner, a->g);
	for (int i = 0; *ok && i < nout; i++) {
		const char *name = flat_text(a->g->output[i]->name);
		int v = flat_name_get(&inner.names, name);

		if (!v)
			*ok = diag_error(f->diag, "value '%s' is never written",
			                 name);
		else if (out[i])
			flat_add_identity(f, v, out[i]);
	}
	return true;
}

/* ---- reading ---- */

/* Exporters rename inputs on request, even to a name already taken. */
static bool
is_graph_input(const struct flat *f, const struct context *c, int v)
{
	return c->top && f->val[v].def == -1 && !f->val[v].init;
}

static bool
define_outputs(struct flat *f, struct context *c, const Onnx__NodeProto *p)
{
	for (size_t i = 0; i < p->n_output; i++) {
		int v;

		if (!*p->output[i])
			continue;
		v = flat_name_here(&c->names, p->output[i]);
		/* a function's output is bound already, once */
		if (v && (c->top || f->val[v].def != -1
		          || f->val[v].init || f->val[v].info))
			return diag_error(f->diag, "value '%s' is written "
			                  "twice%s", p->output[i],
			                  is_graph_input(f, c, v)
			                  ? ": as an input "
			                  "of the graph and by a node; export "
			                  "with another name in input_names"
			                  : "");
		if (!v) {
			v = flat_add_val(f, c, p->output[i]);
			flat_name_set(f, &c->names, p->output[i], v);
		}
		f->val[v].def = -2;             /* to be written by the node */
	}
	return true;
}

static const char *
node_name(struct flat *f, const struct context *c, const Onnx__NodeProto *p,
          int index)
{
	if (!p->name || !*p->name)
		return arena_printf(f->arena, "%s#%d", c->prefix, index);
	return *c->prefix ? arena_printf(f->arena, "%s%s", c->prefix, p->name)
	                  : p->name;
}

/* Whether the body of a function being inlined knows name as an input. */
static bool
is_formal(const struct context *c, const char *name)
{
	const Onnx__FunctionProto *fn = c->call ? c->call->function : NULL;

	for (size_t i = 0; fn && i < fn->n_input; i++)
		if (strcmp(fn->input[i], name) == 0)
			return true;
	return false;
}

static bool
read_onnx_node(struct flat *f, struct context *c, const Onnx__NodeProto *p,
               int index)
{
	const Onnx__FunctionProto *fn = find_function(f, p);
	int at = f->nnode;
	struct flat_node *n = flat_add_node(f), copy;
	bool ok = true;

	if (f->nnode > MAX_NODES)
		return diag_error(f->diag, "more than %d nodes", MAX_NODES);
	n->p = p;
	n->index = c->top ? index : -1;
	n->type = flat_text(p->op_type);
	n->domain = flat_is_onnx(flat_text(p->domain)) ? "" : p->domain;
	n->name = node_name(f, c, p, index);
	n->scope = c->attrs;
	n->opset = opset_of(c, n->domain);
	n->nin = (int)p->n_input;
	n->nout = (int)p->n_output;
	n->in = arena_array(f->arena, p->n_input + p->n_output + 1,
	                    sizeof *n->in);
	n->out = n->in + n->nin;
	for (int i = 0; i < n->nin; i++) {
		if (!*p->input[i])
			continue;
		n->in[i] = flat_name_get(&c->names, p->input[i]);
		/* an absent optional input of a function is absent here */
		if (!n->in[i] && !is_formal(c, p->input[i]))
			ok = diag_at(f->diag, n->name, n->type, "input %d, "
			             "'%s', is never written", i, p->input[i]);
	}
	for (int i = 0; i < n->nout; i++)
		if (*p->output[i]) {
			n->out[i] = flat_name_here(&c->names, p->output[i]);
			f->val[n->out[i]].def = at;
			f->val[n->out[i]].slot = i;
		}
	if (!ok)
		return false;
	if (!fn && !*n->domain && n->opset == 0) {
		f->stop = true;         /* report once, not for every node */
		return diag_at(f->diag, n->name, n->type, "the model does not "
		               "declare the opset of its nodes; set "
		               "opset_import");
	}
	copy = *n;                      /* the list may move */
	if (fn) {
		for (int i = 0; i < copy.nout; i++)
			if (copy.out[i])
				f->val[copy.out[i]].def = -1;
		return inline_call(f, c, fn, &copy);
	}
	if (*copy.domain)
		return true;
	if (strcmp(copy.type, "If") == 0 ? inline_if(f, c, &copy, &ok)
	    : (strcmp(copy.type, "Loop") == 0 || strcmp(copy.type, "Scan") == 0)
	      && flat_unroll(f, c, &copy, read_onnx_graph, &ok))
		return ok;
	if (strcmp(copy.type, "Constant") == 0)
		return flat_constant(f, &f->node[at]);
	flat_request_inputs(f, &copy);
	return true;
}

static bool
read_nodes(struct flat *f, struct context *c, Onnx__NodeProto **p, size_t n)
{
	bool ok = true;

	for (size_t i = 0; i < n; i++)
		if (!define_outputs(f, c, p[i]))
			return false;
	for (size_t i = 0; i < n && f->nnode <= MAX_NODES && !f->stop; i++)
		ok &= read_onnx_node(f, c, p[i], (int)i);
	return ok;
}

static int
new_initializer(struct flat *f, struct context *c, const Onnx__TensorProto *t)
{
	int v = flat_add_val(f, c, t->name);

	f->val[v].init = t;
	return v;
}

/* The value of `stored`, a message of the file.  A loop's body is read once per
 * trip, and its weights are the same in all trips. */
static int
nested_initializer(struct flat *f, struct context *c, const void *stored,
                   const Onnx__TensorProto *t)
{
	const char *key = arena_printf(f->arena, "%p", stored);
	int v = flat_name_here(f->nested, key);

	if (!v) {
		v = new_initializer(f, c, t);
		flat_name_set(f, f->nested, key, v);
	}
	return v;
}

/* stored: the message of the file from which t was made. */
static bool
add_initializer(struct flat *f, struct context *c, const void *stored,
                const Onnx__TensorProto *t)
{
	const char *name = flat_text(t->name);
	int v;

	if (!*name)
		return diag_error(f->diag, "an initializer has no name");
	if (flat_name_here(&c->names, name))
		return diag_error(f->diag, "initializer '%s' occurs twice",
		                  name);
	v = c->top ? new_initializer(f, c, t)
		: nested_initializer(f, c, stored, t);
	flat_name_set(f, &c->names, name, v);
	return true;
}

static bool
read_onnx_graph(struct flat *f, struct context *c, const Onnx__GraphProto *g)
{
	for (size_t i = 0; i < g->n_initializer; i++)
		if (!add_initializer(f, c, g->initializer[i],
		                     g->initializer[i]))
			return false;
	for (size_t i = 0; i < g->n_sparse_initializer; i++) {
		const Onnx__TensorProto *t =
			sparse_dense(f, g->sparse_initializer[i]);

		if (!t || !add_initializer(f, c, g->sparse_initializer[i], t))
			return false;
	}
	for (size_t i = 0; !c->bound && i < g->n_input; i++) {
		const char *name = flat_text(g->input[i]->name);
		int v = flat_name_here(&c->names, name);

		if (!*name)
			return diag_error(f->diag, "input %zu has no name", i);
		if (v && f->val[v].info)
			return diag_error(f->diag, "input '%s' occurs twice",
			                  name);
		if (!v) {
			v = flat_add_val(f, c, name);
			flat_name_set(f, &c->names, name, v);
		}
		f->val[v].info = g->input[i];
		if (c->top)
			f->input[f->ninput++] = v;
	}
	return read_nodes(f, c, g->node, g->n_node);
}

bool
flat_read_model(struct flat *f, struct context *c)
{
	return index_functions(f)
	       && read_onnx_graph(f, c, f->file->model->graph);
}
