/* `ckc inspect`: whether a file can be trained, its parameters with reasons,
 * and what was lost in its export.
 *
 * All findings are collected, then written as a page or as JSON.  The verdict
 * is that of a compile, see verb_inspect.c.
 */
#include "frontend/inspect/findings.h"
#include "frontend/inspect/inspect.h"

#include <string.h>

#include "frontend/import/load_flat.h"
#include "frontend/import/build_graph.h"
#include "frontend/import/optable.h"

/* Gradient rule and emit rule of each IR op, as named in ir/ops.h. */
static const char *const grad_rule[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, dynamic, cost, grad, shard) #grad
#include "ir/ops.h"
};
static const char *const emit_rule[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = emit,
#define EMIT(rule) #rule
#include "ir/ops.h"
};

/* ---- findings: dims, operators ---- */

static void
add_dim_use(struct inspect_report *x, const char *flag, const char *where)
{
	for (int i = 0; i < x->ndim; i++)
		if (strcmp(x->dim[i].flag, flag) == 0) {
			x->dim[i].where = arena_printf(x->arena, "%s, %s",
			                               x->dim[i].where, where);
			return;
		}
	x->dim = arena_grow(x->arena, x->dim, (size_t)x->ndim, &x->dim_cap,
	                    (size_t)x->ndim + 1, sizeof *x->dim);
	x->dim[x->ndim++] = (struct dim_use){ flag, where };
}

static void
find_dims(struct inspect_report *x)
{
	FOR_VALS (v, x->g) {
		if (v->kind != V_INPUT)
			continue;
		if (v->shape.rank < 0)
			add_dim_use(x, arena_printf(x->arena,
				"--shape %s=AxBx...", v->name), v->name);
		for (int i = 0; i < v->shape.rank; i++) {
			const char *where = arena_printf(x->arena, "%s.%d",
			                                 v->name, i);

			if (v->shape.dim[i] >= 0)
				continue;
			add_dim_use(x, arena_printf(x->arena, "--dim %s=N",
				v->dim_name[i] ? v->dim_name[i] : where),
				where);
		}
	}
}

/* Mark values that depend on a parameter: gradients pass back through them. */
static void
find_depends(struct inspect_report *x)
{
	struct flat *f = x->f;

	x->depends = arena_alloc(x->arena, (size_t)f->nval + 1);
	for (int i = 1; i < f->nval; i++)
		x->depends[i] = f->val[i].verdict == VERDICT_PARAM
			&& !f->val[i].frozen;
	FOR_FLAT_NODES (n, f) {
		bool live = false;

		for (int k = 0; k < n->nin; k++)
			live |= n->in[k] && x->depends[n->in[k]];
		for (int k = 0; live && k < n->nout; k++)
			x->depends[n->out[k]] = true;
	}
	x->depends[0] = false;
}

static bool
on_gradient_path(const struct inspect_report *x, const struct flat_node *n)
{
	bool in = false, out = false;

	for (int k = 0; k < n->nin; k++)
		in |= n->in[k] && x->depends[n->in[k]]
			&& x->f->val[n->in[k]].reached;
	for (int k = 0; k < n->nout; k++)
		out |= n->out[k] && x->f->val[n->out[k]].reached;
	return in && out;
}

/* Whether an IR node made from ONNX node `name` has no gradient.  Ops that
 * never reach codegen are rewritten before autodiff. */
static bool
lacks_gradient(const struct inspect_report *x, const char *name)
{
	FOR_NODES (n, x->g)
		if (n->norigin == 1
		    && strcmp(x->g->origin[n->origin[0]].name, name) == 0
		    && strcmp(grad_rule[n->op], "none") == 0
		    && strcmp(emit_rule[n->op], "fail") != 0)
			return true;
	return false;
}

static struct coverage *
find_coverage(struct inspect_report *x, const struct flat_node *n)
{
	int i;

	for (i = 0; i < x->nop; i++)
		if (strcmp(x->op[i].type, n->type) == 0
		    && strcmp(x->op[i].domain, n->domain) == 0)
			return &x->op[i];
	x->op = arena_grow(x->arena, x->op, (size_t)x->nop, &x->op_cap,
	                   (size_t)x->nop + 1, sizeof *x->op);
	x->op[x->nop] = (struct coverage){
		.domain = n->domain, .type = n->type, .first = n->name,
		.hint = n->op ? n->op->hint : NULL,
		.support = NOT_NEEDED,
	};
	return &x->op[x->nop++];
}

static void
find_ops(struct inspect_report *x)
{
	FOR_FLAT_NODES (n, x->f) {
		struct coverage *c;

		if (!n->needed)
			continue;
		c = find_coverage(x, n);
		c->count++;
		if (!onnx_op_can(x->f, n)) {
			c->first = c->support == MISSING ? c->first : n->name;
			c->support = MISSING;
		}
		if (c->support == MISSING || c->support == FORWARD
		    || !on_gradient_path(x, n))
			continue;
		/* checks the first node of its kind on the path: an operator
		 * is always imported the same way */
		if (c->support == NOT_NEEDED)
			c->support = lacks_gradient(x, n->name) ? FORWARD
			                                        : GRADIENT;
	}
	for (int i = 0; i < x->nop; i++)
		for (int k = i; k > 0 && strcmp(x->op[k].type,
		                                x->op[k - 1].type) < 0; k--) {
			struct coverage t = x->op[k];

			x->op[k] = x->op[k - 1];
			x->op[k - 1] = t;
		}
}

static void
count_bytes(struct inspect_report *x)
{
	FOR_FLAT_VALS (v, x->f) {
		int64_t n = 0, bytes;

		if (!v->init || (!v->nuse && !v->output))
			continue;
		bytes = onnx_tensor_bytes(v->init, &n);
		if (v->verdict == VERDICT_PARAM) {
			if (!add_ok(x->param_bytes, bytes, &x->param_bytes)
			    || !add_ok(x->nelem, n, &x->nelem)
			    || x->param_bytes > INT64_MAX / 4)
				x->param_bytes = x->nelem = 0;
			x->nparam++;
		} else if (v->verdict == VERDICT_BUFFER) {
			if (!add_ok(x->buffer_bytes, bytes, &x->buffer_bytes))
				x->buffer_bytes = 0;
			x->nbuffer++;
		}
	}
}

static void
find_all(struct inspect_report *x)
{
	flat_targets(x->f, x->opt, &x->target, &x->ntarget);
	x->g = build_known_graph(x->f, x->opt, x->arena);
	find_dims(x);
	find_depends(x);
	find_ops(x);
	count_bytes(x);
	x->lint = lint_run(x->f, x->opt, x->arena);
}

bool
onnx_inspect(const char *path, const struct import_options *opt, FILE *out,
             Diag *diag)
{
	struct inspect_report x = { .opt = opt, .arena = arena_new() };
	struct onnx_file *file;
	int before = diag_errors(diag);
	bool ok;

	x.f = load_flat(path, opt, diag, x.arena, &file);
	ok = x.f != NULL;
	if (ok) {
		find_all(&x);
		(opt->json ? inspect_json : inspect_page)(&x, out);
	}
	graph_free(x.g);
	onnx_close(file);
	arena_free(x.arena);
	return ok && diag_errors(diag) == before;
}
