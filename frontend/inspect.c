/* `ckc inspect`: whether a file can be trained, what it would train and why,
 * and what its exporter damaged.
 *
 * Everything is found first and written last, as a page or as JSON.  Weights
 * are looked at only where they lie in the model file itself.
 */
#include "frontend/importer.h"
#include "ir/utf8.h"

#include <stdarg.h>
#include <string.h>

/* Gradient rule and way of emission per IR op, as the table names them. */
static const char *const grad_rule[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, cost, grad, shard) #grad
#include "ir/ops.h"
};
static const char *const emit_rule[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = emit,
#define EMIT(cpu) #cpu
#include "ir/ops.h"
};

enum support { MISSING, FORWARD, GRADIENT, NOT_NEEDED };

struct coverage {
	const char *domain, *type, *hint, *first;
	int count;
	enum support support;
};

struct dim_use {
	const char *flag, *where;
};

struct findings {
	struct flat *f;
	Graph *g;
	Arena *arena;
	const struct import_options *opt;
	int *target, ntarget;
	struct coverage *op;
	int nop;
	struct dim_use *dim;
	int ndim;
	const char **warning;
	int nwarning;
	size_t op_cap, dim_cap, warning_cap;
	bool *depends;                  /* flat values that depend on a
	                                 * parameter */
	int64_t param_bytes, buffer_bytes, nparam, nbuffer, nelem;
	bool trainable;
};

static void warn(struct findings *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void
warn(struct findings *x, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	x->warning = arena_grow(x->arena, x->warning, (size_t)x->nwarning,
	                        &x->warning_cap, (size_t)x->nwarning + 1,
	                        sizeof *x->warning);
	x->warning[x->nwarning++] = arena_str(x->arena, text);
}

/* ---- findings: dims, operators ---- */

static void
add_dim(struct findings *x, const char *flag, const char *where)
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
find_dims(struct findings *x)
{
	FOR_VALS (v, x->g) {
		if (v->kind != V_INPUT)
			continue;
		if (v->shape.rank < 0)
			add_dim(x, arena_printf(x->arena, "--shape %s=AxBx...",
			                        v->name), v->name);
		for (int i = 0; i < v->shape.rank; i++) {
			const char *where = arena_printf(x->arena, "%s.%d",
			                                 v->name, i);

			if (v->shape.dim[i] >= 0)
				continue;
			add_dim(x,
			        arena_printf(x->arena, "--dim %s=N",
			                     v->dim_name[i] ? v->dim_name[i]
			                                    : where),
			        where);
		}
	}
}

/* Forward from the parameters: what a gradient has to go back through. */
static void
find_depends(struct findings *x)
{
	struct flat *f = x->f;

	x->depends = arena_alloc(x->arena, (size_t)f->nval + 1);
	for (int i = 1; i < f->nval; i++)
		x->depends[i] = f->val[i].verdict == VERDICT_PARAM
			&& !f->val[i].frozen;
	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *n = &f->node[i];
		bool live = false;

		for (int k = 0; k < n->nin; k++)
			live |= n->in[k] && x->depends[n->in[k]];
		for (int k = 0; live && k < n->nout; k++)
			x->depends[n->out[k]] = true;
	}
	x->depends[0] = false;
}

static bool
on_gradient_path(const struct findings *x, const struct flat_node *n)
{
	bool in = false, out = false;

	for (int k = 0; k < n->nin; k++)
		in |= n->in[k] && x->depends[n->in[k]]
			&& x->f->val[n->in[k]].reached;
	for (int k = 0; k < n->nout; k++)
		out |= n->out[k] && x->f->val[n->out[k]].reached;
	return in && out;
}

/* Whether one of the IR nodes made of ONNX node `name` has no gradient.  Ops
 * that codegen never sees are rewritten before gradients are made. */
static bool
lacks_gradient(const struct findings *x, const char *name)
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
find_coverage(struct findings *x, const struct flat_node *n)
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
find_ops(struct findings *x)
{
	for (int i = 0; i < x->f->nnode; i++) {
		const struct flat_node *n = &x->f->node[i];
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
		/* the first node of its kind on the path is looked at; an
		 * operator is always imported the same way */
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

/* ---- findings: damage ---- */

static int64_t
tensor_bytes(const struct flat_val *v, int64_t *nelem)
{
	DType dt = onnx_dtype(v->init->data_type);
	int64_t n = 1;

	for (size_t i = 0; i < v->init->n_dims; i++)
		if (v->init->dims[i] < 0 || !mul_ok(n, v->init->dims[i], &n))
			return 0;
	*nelem = n;
	if (!mul_ok(n, dtype_info[dt].nbytes, &n))
		return 0;
	return n;
}

static bool
is_module_path(const char *s)
{
	return strchr(s, '.') && *s != '/' && *s != '_'
		&& strncmp(s, "onnx::", 6) != 0 && strncmp(s, "val_", 4) != 0;
}

/* Whether b is a transposed; both are float matrices of the file. */
static bool
transposed(struct findings *x, const struct flat_val *a,
           const struct flat_val *b)
{
	struct onnx_tensor s, t;
	int64_t rows, cols;
	size_t size;

	if (a->init->n_dims != 2 || b->init->n_dims != 2
	    || a->init->data_type != b->init->data_type
	    || a->init->dims[0] != b->init->dims[1]
	    || a->init->dims[1] != b->init->dims[0]
	    || !onnx_tensor_load(x->f->file, a->init, &s)
	    || !onnx_tensor_load(x->f->file, b->init, &t)
	    || !s.data || !t.data || s.nelem == 0)
		return false;
	rows = s.shape.dim[0];
	cols = s.shape.dim[1];
	size = (size_t)dtype_info[s.dt].nbytes;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; k < cols; k++)
			if (memcmp((const char *)s.data
			           + (size_t)(i * cols + k) * size,
			           (const char *)t.data
			           + (size_t)(k * rows + i) * size, size) != 0)
				return false;
	return true;
}

static void
find_renamed(struct findings *x)
{
	struct flat *f = x->f;
	int renamed = 0, first = 0;

	for (int i = 1; i < f->nval; i++) {
		const struct flat_val *v = &f->val[i];

		if (v->verdict != VERDICT_PARAM || !v->init
		    || is_module_path(v->name) || !v->nuse
		    || strcmp(v->reason, "in the place of a weight") != 0)
			continue;
		first = renamed++ ? first : i;
		for (int k = 1; k < f->nval; k++)
			if (k != i && f->val[k].init && f->val[k].nuse
			    && f->val[k].verdict == VERDICT_PARAM
			    && is_module_path(f->val[k].name)
			    && transposed(x, v, &f->val[k]))
				warn(x,
				     "'%s' is '%s' transposed: the exporter "
				     "split a tied weight in two, each is "
				     "trained on its own; export with "
				     "optimize=False (dynamo) or "
				     "do_constant_folding=False (TorchScript)",
				     v->name, f->val[k].name);
	}
	if (renamed)
		warn(x, "%d parameter%s lost %s name%s (the first is '%s'): "
		     "checkpoints will use what the exporter made up; export "
		     "with optimize=False (dynamo) or training=TRAINING, "
		     "do_constant_folding=False (TorchScript)", renamed,
		     renamed > 1 ? "s" : "", renamed > 1 ? "their" : "its",
		     renamed > 1 ? "s" : "", f->val[first].name);
}

/* Masks add huge negative numbers; no parameter looks like that. */
static bool
is_mask(struct findings *x, const struct flat_val *v)
{
	struct onnx_tensor t;
	Val val = { .kind = V_CONST };

	if (!onnx_tensor_load(x->f->file, v->init, &t) || !t.data)
		return false;
	val.dt = t.dt;
	val.shape = t.shape;
	val.data = t.data;
	for (int64_t i = 0; i < t.nelem; i++)
		if (val_float(&val, i) < -1e4)
			return true;
	return false;
}

/* A matrix with several readers is tied in earnest and stands for at least one
 * other name. */
static int
tied_names(const struct flat *f)
{
	int n = 0;

	for (int i = 1; i < f->nval; i++)
		n += f->val[i].verdict == VERDICT_PARAM && f->val[i].init
			&& f->val[i].init->n_dims > 1 && f->val[i].nuse > 1;
	return n;
}

static void
find_frozen(struct findings *x)
{
	struct flat *f = x->f;
	int lost;

	for (int i = 1; i < f->nval; i++) {
		const struct flat_val *v = &f->val[i];
		int64_t n = 0;

		if (!v->init || !v->nuse || v->verdict != VERDICT_CONST
		    || !v->reason || v->frozen
		    || strcmp(v->reason, "neither named nor placed like a "
		              "weight") != 0)
			continue;
		tensor_bytes(v, &n);
		if (v->init->n_dims >= 1 && n > 1 && !is_mask(x, v))
			warn(x, "'%s' would get a gradient but is not trained: "
			     "it may be part of a folded or cut parameter (a "
			     "position table, a bias); --train '%s' trains it, "
			     "optimize=False (dynamo) or "
			     "do_constant_folding=False (TorchScript) exports "
			     "the parameter itself", v->name, v->name);
	}
	lost = f->nlost - tied_names(f);
	if (lost > 0)
		warn(x, "%d parameter%s of the module %s not in the file under "
		     "%s: the exporter folded, merged or cut %s; export with "
		     "optimize=False", lost, lost > 1 ? "s" : "",
		     lost > 1 ? "are" : "is",
		     lost > 1 ? "their names" : "its name",
		     lost > 1 ? "them" : "it");
}

static void
find_ties(struct findings *x)
{
	for (int i = 0; i < x->f->ntie; i++)
		warn(x, "'%s' stands for %d norms or biases that the exporter "
		     "merged because they were equal; %s; export in training "
		     "mode (TorchScript) or with optimize=False (dynamo)",
		     x->f->val[x->f->tie[i].val].name, x->f->tie[i].n,
		     x->opt->untie ? "each is trained on its own"
		     : "they are trained together as --untie=off says");
}

/* Whether a Dropout is off although its ratio is not 0. */
static bool
is_inactive_dropout(struct findings *x, const struct flat_node *n)
{
	const Onnx__TensorProto *p;
	struct onnx_tensor t;
	double ratio = 0.5;

	if (strcmp(n->type, "Dropout") != 0 || *n->domain)
		return false;
	if (n->nin > 1 && n->in[1] && (p = flat_tensor(x->f, n->in[1]))
	    && onnx_tensor_load(x->f->file, p, &t) && t.data && t.nelem == 1) {
		Val v = { .kind = V_CONST, .dt = t.dt, .shape = t.shape,
		          .data = t.data };

		ratio = val_float(&v, 0);
	}
	if (ratio == 0)
		return false;
	if (n->opset < 12 || n->nin < 3 || !n->in[2])
		return true;
	p = flat_tensor(x->f, n->in[2]);
	return p && onnx_tensor_load(x->f->file, p, &t) && t.data
		&& t.nelem == 1 && !*(const char *)t.data;
}

static void
find_modes(struct findings *x)
{
	int off = 0, bn = 0;

	for (int i = 0; i < x->f->nnode; i++) {
		const struct flat_node *n = &x->f->node[i];
		const Onnx__AttributeProto *a;

		if (!n->needed)
			continue;
		off += is_inactive_dropout(x, n);
		if (strcmp(n->type, "BatchNormalization") == 0) {
			a = attr_find(n, "training_mode");
			bn += !a || !a->i;
		}
	}
	if (off)
		warn(x, "%d Dropout node%s inactive (no training_mode, or "
		     "false): trained without; attention by "
		     "scaled_dot_product_attention exports so, an eager "
		     "attention and training=TRAINING keep them", off,
		     off > 1 ? "s are" : " is");
	if (bn)
		warn(x,
		     "%d BatchNormalization node%s in inference form: running "
		     "statistics are used and never updated; export with "
		     "training=TRAINING (TorchScript) or a custom translation "
		     "(dynamo)",
		     bn, bn > 1 ? "s are" : " is");
	if (x->f->file->wire.training_info)
		warn(x,
		     "training_info of the file is ignored: ckc makes its own "
		     "gradients");
	if (x->f->file->wire.nunknown)
		warn(x, "%zu fields are not known to ONNX 1.23 and ignored",
		     x->f->file->wire.nunknown);
}

/* Parameters that reach no loss although they are called so. */
static void
find_idle(struct findings *x)
{
	int idle = 0;
	const char *first = "";

	for (int i = 1; i < x->f->nval; i++) {
		const struct flat_val *v = &x->f->val[i];

		if (!v->init || v->verdict != VERDICT_CONST || v->reached
		    || v->state_slot || !is_module_path(v->name)
		    || onnx_dtype(v->init->data_type) == DT_NONE
		    || dtype_info[onnx_dtype(v->init->data_type)].cls != 'f')
			continue;
		first = idle++ ? first : v->name;
	}
	if (idle)
		warn(x, "%d tensor%s named like a parameter %s no gradient and "
		     "%s not trained (the first is '%s')", idle,
		     idle > 1 ? "s" : "", idle > 1 ? "get" : "gets",
		     idle > 1 ? "are" : "is", first);
}

static void
count_bytes(struct findings *x)
{
	for (int i = 1; i < x->f->nval; i++) {
		const struct flat_val *v = &x->f->val[i];
		int64_t n = 0, bytes;

		if (!v->init || (!v->nuse && !v->output))
			continue;
		bytes = tensor_bytes(v, &n);
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

/* ---- the page ---- */

static void
put_name(FILE *out, const char *name)
{
	diag_escape(out, name);
}

static const char *
init_text(const struct flat_val *v, char *buf, size_t n)
{
	Shape s = { .rank = (int)v->init->n_dims };

	if (v->init->n_dims > MAX_RANK) {
		snprintf(buf, n, "rank %zu", v->init->n_dims);
		return buf;
	}
	for (int i = 0; i < s.rank; i++)
		s.dim[i] = v->init->dims[i];
	if (onnx_dtype(v->init->data_type) == DT_NONE) {
		snprintf(buf, n, "%s", onnx_dtype_name(v->init->data_type));
		return buf;
	}
	return shape_text(buf, n, onnx_dtype(v->init->data_type), &s);
}

static void
print_inits(struct findings *x, FILE *out, enum verdict verdict)
{
	char buf[160];
	int other = 0;

	for (int i = 1; i < x->f->nval; i++) {
		const struct flat_val *v = &x->f->val[i];
		DType dt;

		if (!v->init || v->verdict != verdict)
			continue;
		dt = onnx_dtype(v->init->data_type);
		if (verdict == VERDICT_CONST && !v->frozen
		    && (dt == DT_NONE || dtype_info[dt].cls != 'f'
		        || !v->reached)) {
			other++;
			continue;
		}
		fputs("  ", out);
		put_name(out, v->name);
		fprintf(out, "  %s%s  %s\n", init_text(v, buf, sizeof buf),
		        v->frozen ? "  frozen" : "", v->reason);
	}
	if (other)
		fprintf(out, "  %d more that no gradient reaches\n", other);
}

static void
print_size(FILE *out, int64_t n)
{
	if (n >= (int64_t)1 << 30)
		fprintf(out, "%.2f GiB", (double)n / (1 << 30));
	else if (n >= 1 << 20)
		fprintf(out, "%.2f MiB", (double)n / (1 << 20));
	else
		fprintf(out, "%.1f KiB", (double)n / 1024);
}

static void
print_values(struct findings *x, FILE *out)
{
	const Onnx__ModelProto *m = x->f->file->model;
	char buf[512];

	fprintf(out, "IR version %jd, opset %d", (intmax_t)m->ir_version,
	        x->f->opset);
	for (size_t i = 0; i < m->n_opset_import; i++)
		if (m->opset_import[i]->domain && *m->opset_import[i]->domain
		    && strcmp(m->opset_import[i]->domain, "ai.onnx") != 0) {
			fputs(", ", out);
			put_name(out, m->opset_import[i]->domain);
			fprintf(out, " %jd",
			        (intmax_t)m->opset_import[i]->version);
		}
	fputs(", written by ", out);
	put_name(out, m->producer_name ? m->producer_name : "unknown");
	fputc(' ', out);
	put_name(out, m->producer_version ? m->producer_version : "");
	fprintf(out, "\n%d nodes", x->f->nnode);
	if (x->f->ninlined)
		fprintf(out, " (%d calls of functions inlined)",
		        x->f->ninlined);
	fputs("\n\ninputs\n", out);
	FOR_VALS (v, x->g) {
		if (v->kind != V_INPUT)
			continue;
		fputs("  ", out);
		put_name(out, v->name);
		fprintf(out, "  %s\n", shape_text(buf, sizeof buf, v->dt,
		                                  &v->shape));
	}
	fputs("outputs\n", out);
	for (int i = 0; i < x->f->noutput; i++) {
		fputs("  ", out);
		put_name(out, x->f->val[x->f->output[i]].name);
		fputs(x->ntarget == 1 && x->target[0] == x->f->output[i]
		      ? "  trained on\n" : "\n", out);
	}
	if (x->ndim) {
		fputs("dims to bind\n", out);
		for (int i = 0; i < x->ndim; i++) {
			fputs("  ", out);
			put_name(out, x->dim[i].flag);
			fputs("  (", out);
			put_name(out, x->dim[i].where);
			fputs(")\n", out);
		}
	}
}

static void
print_ops(struct findings *x, FILE *out)
{
	static const char *const text[] = {
		"NOT SUPPORTED", "forward, NO GRADIENT", "forward, gradient",
		"forward; no gradient needed"
	};

	fputs("operators\n", out);
	for (int i = 0; i < x->nop; i++) {
		const struct coverage *c = &x->op[i];

		fputs("  ", out);
		if (*c->domain) {
			put_name(out, c->domain);
			fputc('.', out);
		}
		put_name(out, c->type);
		fprintf(out, "  %d  %s", c->count, text[c->support]);
		if (c->support == MISSING) {
			fputs(" (first '", out);
			put_name(out, c->first);
			fprintf(out, "'%s%s)", c->hint ? "; " : "",
			        c->hint ? c->hint : "");
		}
		fputc('\n', out);
	}
}

static void
print_page(struct findings *x, FILE *out)
{
	print_values(x, out);
	fprintf(out, "\nparameters: %jd, %jd elements, ", (intmax_t)x->nparam,
	        (intmax_t)x->nelem);
	print_size(out, x->param_bytes);
	fputc('\n', out);
	print_inits(x, out, VERDICT_PARAM);
	if (x->nbuffer) {
		fprintf(out, "buffers: %jd, ", (intmax_t)x->nbuffer);
		print_size(out, x->buffer_bytes);
		fputc('\n', out);
		print_inits(x, out, VERDICT_BUFFER);
	}
	fputs("constants\n", out);
	print_inits(x, out, VERDICT_CONST);
	fputc('\n', out);
	print_ops(x, out);
	if (x->nwarning)
		fputs("\nwarnings\n", out);
	for (int i = 0; i < x->nwarning; i++) {
		fputs("  ", out);
		put_name(out, x->warning[i]);
		fputc('\n', out);
	}
	fputs("\nbytes with AdamW: parameters ", out);
	print_size(out, x->param_bytes);
	fputs(", gradients ", out);
	print_size(out, x->param_bytes);
	fputs(", optimizer ", out);
	print_size(out, 2 * x->param_bytes);
	fputs(", and activations (--plan-only tells)\n", out);
	fputs(x->trainable ? "can be trained\n" : "cannot be trained yet: see "
	      "the operators above\n", out);
}

/* ---- the same as JSON ---- */

static void
json_inits(struct findings *x, FILE *out)
{
	static const char *const text[] = { "none", "parameter", "buffer",
	                                    "constant" };
	bool first = true;

	fputs(",\n\"initializers\": [", out);
	for (int i = 1; i < x->f->nval; i++) {
		const struct flat_val *v = &x->f->val[i];
		int64_t n = 0;

		if (!v->init)
			continue;
		fputs(first ? "\n  {\"name\": " : ",\n  {\"name\": ", out);
		first = false;
		utf8_json(out, v->name);
		fprintf(out, ", \"verdict\": \"%s\", \"frozen\": %s, \"used\": "
		        "%s, \"bytes\": %jd, \"dtype\": \"%s\", "
		        "\"shape\": [", text[v->verdict],
		        v->frozen ? "true" : "false",
		        v->nuse || v->output ? "true" : "false",
		        (intmax_t)tensor_bytes(v, &n),
		        dtype_info[onnx_dtype(v->init->data_type)].text);
		for (size_t k = 0; k < v->init->n_dims; k++)
			fprintf(out, "%s%jd", k ? ", " : "",
			        (intmax_t)v->init->dims[k]);
		fputs("], \"reason\": ", out);
		utf8_json(out, v->reason ? v->reason : "");
		fputc('}', out);
	}
	fputs("\n]", out);
}

static void
json_ops(struct findings *x, FILE *out)
{
	fputs(",\n\"operators\": [", out);
	for (int i = 0; i < x->nop; i++) {
		const struct coverage *c = &x->op[i];

		fputs(i ? ",\n  {\"op\": " : "\n  {\"op\": ", out);
		utf8_json(out, c->type);
		fputs(", \"domain\": ", out);
		utf8_json(out, c->domain);
		fprintf(out, ", \"nodes\": %d, \"forward\": %s, \"gradient\": "
		        "%s}", c->count,
		        c->support == MISSING ? "false" : "true",
		        c->support == NOT_NEEDED ? "null"
		        : c->support == GRADIENT ? "true" : "false");
	}
	fputs("\n]", out);
}

static void
print_json(struct findings *x, FILE *out)
{
	const Onnx__ModelProto *m = x->f->file->model;
	bool first = true;

	fputs("{\n\"model\": ", out);
	utf8_json(out, x->f->file->path);
	fprintf(out, ",\n\"ir_version\": %jd,\n\"opset\": %d,\n\"producer\": ",
	        (intmax_t)m->ir_version, x->f->opset);
	utf8_json(out, m->producer_name ? m->producer_name : "");
	fputs(",\n\"inputs\": [", out);
	FOR_VALS (v, x->g) {
		if (v->kind != V_INPUT)
			continue;
		fputs(first ? "" : ", ", out);
		first = false;
		utf8_json(out, v->name);
	}
	fputs("],\n\"outputs\": [", out);
	for (int i = 0; i < x->f->noutput; i++) {
		fputs(i ? ", " : "", out);
		utf8_json(out, x->f->val[x->f->output[i]].name);
	}
	fputs("],\n\"dims\": [", out);
	for (int i = 0; i < x->ndim; i++) {
		fputs(i ? ", {\"flag\": " : "{\"flag\": ", out);
		utf8_json(out, x->dim[i].flag);
		fputs(", \"where\": ", out);
		utf8_json(out, x->dim[i].where);
		fputc('}', out);
	}
	fputc(']', out);
	json_inits(x, out);
	json_ops(x, out);
	fputs(",\n\"warnings\": [", out);
	for (int i = 0; i < x->nwarning; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		utf8_json(out, x->warning[i]);
	}
	fprintf(out, "\n],\n\"parameter_bytes\": %jd,\n\"buffer_bytes\": %jd,\n"
	        "\"trainable\": %s\n}\n", (intmax_t)x->param_bytes,
	        (intmax_t)x->buffer_bytes, x->trainable ? "true" : "false");
}

static bool
find_all(struct findings *x)
{
	if (!classify_targets(x->f, x->opt, &x->target, &x->ntarget))
		return false;
	x->g = import_known(x->f, x->opt, x->arena);
	find_dims(x);
	find_depends(x);
	find_ops(x);
	count_bytes(x);
	find_ties(x);
	find_renamed(x);
	find_frozen(x);
	find_idle(x);
	find_modes(x);
	x->trainable = x->nparam > 0;
	for (int i = 0; i < x->nop; i++)
		x->trainable &= x->op[i].support != MISSING
			&& x->op[i].support != FORWARD;
	return true;
}

bool
onnx_inspect(const char *path, const struct import_options *opt, FILE *out,
             Diag *diag)
{
	struct findings x = { .opt = opt, .arena = arena_new() };
	struct onnx_file *file;
	int before = diag_errors(diag);
	bool ok;

	diag_file(diag, path);
	file = onnx_open(path, opt->no_weights, diag);
	x.f = file ? flat_resolve(file, opt, diag, x.arena) : NULL;
	ok = x.f && classify(x.f, opt);
	if (ok)
		import_drop_outputs(x.f, opt);
	ok = ok && find_all(&x);
	if (ok && opt->json)
		print_json(&x, out);
	else if (ok)
		print_page(&x, out);
	graph_free(x.g);
	onnx_close(file);
	arena_free(x.arena);
	return ok && diag_errors(diag) == before;
}
