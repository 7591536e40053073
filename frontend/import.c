/* From an ONNX file to a graph in dynamic form: shapes of inner values are
 * unknown and operands like the shape of a reshape are inputs.
 *
 * needs   a readable file; operators of optable.c
 * gives   values in the order inputs, initializers, nodes' outputs, named as
 *         in the file; verdicts of classify.c as kinds; nodes in topological
 *         order, only those that an output depends on
 * cost    linear in the nodes
 * refuses what optable.c does not know: all of it at once, grouped
 */
#include "frontend/importer.h"

#include <string.h>

/* ---- helpers for the functions that import a node ---- */

bool
imp_has(const struct importer *m, int i)
{
	return i < m->n->nin && m->n->in[i];
}

ValId
imp_in(struct importer *m, int i)
{
	return imp_has(m, i) ? m->f->val[m->n->in[i]].val : 0;
}

bool
imp_wants(const struct importer *m, int i)
{
	int v = i < m->n->nout ? m->n->out[i] : 0;

	return v && (m->f->val[v].nuse || m->f->val[v].output);
}

void
imp_out(struct importer *m, int i, ValId v)
{
	struct flat_val *y;
	Val *val;

	if (i >= m->n->nout || !m->n->out[i] || !v)
		return;
	y = &m->f->val[m->n->out[i]];
	y->val = v;
	val = &m->g->val[v];
	if (val->kind != V_TEMP || val->onnx)
		return;
	val_rename(m->g, v, y->name);
	m->g->val[v].onnx = arena_str(m->g->arena, y->name);
}

/* The element type of output 0 where it is plain; shapes wait until dims are
 * bound, but some choices below depend on the type. */
static DType
out_dtype(const struct importer *m, Op op, const Attr *a, int nin,
          const ValId *in)
{
	static const char *const shape_rule[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, cost, grad, shard) #shape
#include "ir/ops.h"
	};
	const char *rule = shape_rule[op];

	if (strcmp(rule, "pred") == 0)
		return DT_BOOL;
	if (op == OP_SHAPE || op == OP_SIZE || op == OP_NONZERO
	    || op == OP_ARGMAX)
		return DT_I64;
	if (op == OP_CAST)
		return (DType)a->CAST.to;
	if (op == OP_CONSTANT_OF_SHAPE)
		return (DType)a->CONSTANT_OF_SHAPE.dt;
	if (op == OP_WHERE || op == OP_CAST_LIKE)
		return m->g->val[in[1]].dt;
	return nin > 0 && op != OP_ONE_HOT ? m->g->val[in[0]].dt : DT_NONE;
}

ValId
imp_node(struct importer *m, Op op, const Attr *attr, int nin,
         const ValId *in)
{
	Node *n;

	while (nin > op_info[op].min && !in[nin - 1])
		nin--;
	n = node_new(m->g, op, nin, in, 0, 0);
	if (attr)
		n->attr = *attr;
	node_add_origin(m->g, n, &m->origin, 1);
	m->g->val[n->out[0]].dt = out_dtype(m, op, &n->attr, nin, n->in);
	return n->out[0];
}

ValId
imp_output(const struct importer *m, ValId v, int k)
{
	return m->g->node[m->g->val[v].def].out[k];
}

ValId
imp_like(struct importer *m, ValId x, double value)
{
	DType dt = m->g->val[x].dt;

	if (dt != DT_NONE)
		return val_scalar(m->g, dt, value);
	return EMIT_NODE(m, OP_CAST_LIKE, NULL,
	                 val_scalar(m->g, DT_F32, value), x);
}

ValId
imp_ints(struct importer *m, int n, const int64_t *v)
{
	return val_const(m->g, NULL, DT_I64, SHAPE(n), v);
}

ValId
imp_scalar(struct importer *m, int64_t x)
{
	return val_const(m->g, NULL, DT_I64, shape_scalar(), &x);
}

static const Val *
const_in(const struct importer *m, int i)
{
	const Val *v;

	if (!imp_has(m, i))
		return NULL;
	v = &m->g->val[m->f->val[m->n->in[i]].val];
	return val_is_const(v) && val_nelem(v) == 1 ? v : NULL;
}

bool
imp_const(const struct importer *m, int i, int64_t *x)
{
	const Val *v = const_in(m, i);

	if (v && dtype_info[v->dt].cls != 'f')
		*x = val_int(v, 0);
	return v && dtype_info[v->dt].cls != 'f';
}

bool
imp_const_float(const struct importer *m, int i, double *x)
{
	const Val *v = const_in(m, i);

	if (v)
		*x = val_float(v, 0);
	return v != NULL;
}

int64_t
imp_dim(const struct importer *m, ValId v, int axis)
{
	const Shape *s = &m->g->val[v].shape;

	if (axis < 0)
		axis += s->rank;
	return s->rank < 0 || axis < 0 || axis >= s->rank ? -1 : s->dim[axis];
}

bool
imp_fail(struct importer *m, const char *fmt, ...)
{
	va_list ap;
	char text[512];

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return diag_at(m->diag, m->n->name, m->n->type, "%s", text);
}

ValId
imp_axes(struct importer *m, int i, int since, const char *name,
         IntList *list)
{
	struct attr_ints a;

	list->n = 0;
	if (m->n->opset >= since)
		return imp_in(m, i);
	if (attr_ints(&m->r, name, &a)) {
		if (a.n > MAX_RANK) {
			imp_fail(m, "%d axes, %d are the most", a.n, MAX_RANK);
			m->r.failed = true;
			return 0;
		}
		list->n = a.n;
		memcpy(list->v, a.v, (size_t)a.n * sizeof a.v[0]);
	}
	return 0;
}

/* A constant, parameter or buffer with the contents of t. */
static ValId
new_stored(struct importer *m, ValKind kind, const char *name,
           const struct onnx_tensor *t)
{
	ValId v = val_new(m->g, kind, name, t->dt, t->shape);

	m->g->val[v].data = t->data;
	m->g->val[v].onnx = arena_str(m->g->arena, name);
	return v;
}

ValId
imp_tensor(struct importer *m, const Onnx__TensorProto *p, const char *name)
{
	struct onnx_tensor t;

	if (!onnx_tensor_load_const(m->f->file, p, &t))
		return 0;
	return new_stored(m, V_CONST, name, &t);
}

/* ---- inputs and initializers ---- */

static bool
read_shape(struct importer *m, const struct flat_val *in, DType *dt,
           Shape *shape)
{
	const Onnx__TypeProto *type = in->info->type;
	const Onnx__TypeProto__Tensor *t = type ? type->tensor_type : NULL;

	if (!t)
		return diag_error(m->diag, "input '%s' is not a tensor: not "
		                  "supported", in->name);
	*dt = onnx_dtype(t->elem_type);
	if (*dt == DT_NONE)
		return diag_error(m->diag, "input '%s': element type %s is not "
		                  "supported", in->name,
		                  onnx_dtype_name(t->elem_type));
	shape->rank = -1;
	if (!t->shape)
		return true;
	if (t->shape->n_dim > MAX_RANK)
		return diag_error(m->diag, "input '%s': rank %zu is not "
		                  "supported, %d is the most", in->name,
		                  t->shape->n_dim, MAX_RANK);
	shape->rank = (int)t->shape->n_dim;
	for (int i = 0; i < shape->rank; i++) {
		const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[i];

		/* negative extents mean unknown, by convention */
		shape->dim[i] = d->value_case
			== ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
			&& d->dim_value >= 0 ? d->dim_value : -1;
	}
	return true;
}

static bool
import_input(struct importer *m, struct flat_val *in)
{
	const Onnx__TensorShapeProto *s;
	Shape shape;
	DType dt;
	Val *v;

	if (in->verdict == VERDICT_NONE && !in->nuse && !in->output
	    && (!in->info->type || !in->info->type->tensor_type
	        || onnx_dtype(in->info->type->tensor_type->elem_type)
	           == DT_NONE))
		return true;            /* nobody reads it */
	if (!read_shape(m, in, &dt, &shape))
		return false;
	in->val = val_new(m->g, in->verdict == VERDICT_PARAM ? V_PARAM
	                  : V_INPUT, in->name, dt, shape);
	v = &m->g->val[in->val];
	v->onnx = v->name;
	s = in->info->type->tensor_type->shape;
	for (int i = 0; i < shape.rank; i++)
		if (s->dim[i]->value_case
		    == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
		    && *s->dim[i]->dim_param)
			v->dim_name[i] = arena_str(m->g->arena,
			                           s->dim[i]->dim_param);
	return true;
}

static bool
import_const(struct importer *m, struct flat_val *in)
{
	struct onnx_tensor t;
	Shape want;
	DType dt;
	char a[128], b[128];

	if (!onnx_const_file(m->f->file, in->file, &t)
	    || !read_shape(m, in, &dt, &want))
		return false;
	for (int i = 0; want.rank == t.shape.rank && i < want.rank; i++)
		if (want.dim[i] == t.shape.dim[i] || want.dim[i] < 0)
			want.dim[i] = t.shape.dim[i];
	if (dt != t.dt || (want.rank >= 0 && !shape_eq(&want, &t.shape)))
		return diag_error(m->diag,
		                  "--const %s: expected %s, '%s' holds %s",
		                  in->name, shape_text(a, sizeof a, dt, &want),
		                  in->file,
		                  shape_text(b, sizeof b, t.dt, &t.shape));
	in->val = new_stored(m, V_CONST, in->name, &t);
	return true;
}

/* Buffers that nothing in the graph writes are constants: what depends on
 * them alone (tables of rotary positions) is then computed once. */
static bool
import_initializer(struct importer *m, struct flat_val *in)
{
	struct onnx_tensor t;
	ValKind kind = in->verdict == VERDICT_PARAM ? V_PARAM
		: in->verdict == VERDICT_BUFFER && in->state_slot ? V_BUFFER
		: V_CONST;

	if (!(kind == V_CONST ? onnx_tensor_load_const : onnx_tensor_load)(
		    m->f->file, in->init, &t))
		return false;
	in->val = new_stored(m, kind, in->name, &t);
	m->g->val[in->val].frozen = in->frozen;
	return true;
}

static bool
import_values(struct importer *m)
{
	struct flat *f = m->f;
	bool ok = true;

	for (int i = 0; i < f->ninput; i++) {
		struct flat_val *in = &f->val[f->input[i]];

		if (in->file)
			ok &= import_const(m, in);
		else if (!in->init)
			ok &= import_input(m, in);
	}
	for (int i = 1; i < f->nval; i++) {
		struct flat_val *in = &f->val[i];

		if (in->init && (in->nuse || in->output))
			ok &= import_initializer(m, in);
	}
	return ok;
}

/* ---- nodes ---- */

/* Outputs beside the one that is trained on are dropped if they need what
 * ckc does not have: metrics, decoded ids. */
void
import_drop_outputs(struct flat *f, const struct import_options *opt)
{
	bool *bad = arena_array(f->arena, (size_t)f->nval + 1, sizeof *bad);
	int *target, n, kept = 0;

	if (!classify_targets(f, opt, &target, &n) || n != 1
	    || f->noutput == 1)
		return;
	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *node = &f->node[i];
		bool lost = node->needed && !onnx_op_can(f, node);

		for (int k = 0; k < node->nin; k++)
			lost |= bad[node->in[k]];
		for (int k = 0; lost && k < node->nout; k++)
			bad[node->out[k]] = node->out[k] != 0;
	}
	if (bad[target[0]])
		return;                 /* refused as a whole */
	for (int i = 0; i < f->noutput; i++) {
		struct flat_val *y = &f->val[f->output[i]];

		if (!bad[f->output[i]]) {
			f->output[kept++] = f->output[i];
			continue;
		}
		y->output = false;
		diag_warn(f->diag, "output '%s' is left out: it needs "
		          "operators that are not supported", y->name);
	}
	f->noutput = kept;
	flat_mark_needed(f);
}

/* All operators that stop the import, grouped. */
static bool
check_support(const struct flat *f)
{
	bool *said = arena_array(f->arena, (size_t)f->nnode + 1, sizeof *said);
	bool ok = true;

	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *n = &f->node[i];
		char first[160];
		int count = 0, len = 0;

		if (!n->needed || said[i] || onnx_op_can(f, n))
			continue;
		for (int k = i; k < f->nnode; k++) {
			const struct flat_node *o = &f->node[k];

			if (!o->needed || strcmp(o->type, n->type) != 0
			    || strcmp(o->domain, n->domain) != 0
			    || onnx_op_can(f, o))
				continue;
			said[k] = true;
			if (count++ < 3 && len < (int)sizeof first)
				len += snprintf(first + len,
				                sizeof first - (size_t)len,
				                "%s'%.40s'",
				                count > 1 ? ", " : "", o->name);
		}
		ok = diag_error(f->diag,
		                "op %s%s%s is not supported: %d node%s, "
		                "%s%s%s%s",
		                n->domain, *n->domain ? "." : "", n->type,
		                count, count > 1 ? "s" : "", first,
		                count > 3 ? ", ..." : "",
		                n->op && n->op->hint ? "; " : "",
		                n->op && n->op->hint ? n->op->hint : "");
	}
	return ok;
}

/* Whether all inputs are there; silent about those that failed before. */
static bool
check_inputs(struct importer *m, bool *skip)
{
	const struct onnx_op *op = m->n->op;

	*skip = false;
	if (m->n->nin < op->nin_min
	    || (op->nin_max >= 0 && m->n->nin > op->nin_max))
		return imp_fail(m, "%d inputs, %d%s%d expected", m->n->nin,
		                op->nin_min, op->nin_max < 0 ? ".." : " to ",
		                op->nin_max < 0 ? 9999 : op->nin_max);
	if (m->n->nout < 1 || !m->n->out)
		return imp_fail(m, "no outputs");
	for (int i = 0; i < m->n->nin; i++) {
		const struct flat_val *v = &m->f->val[m->n->in[i]];

		if (!m->n->in[i]) {
			if (i < op->nin_min || op->nin_max < 0)
				return imp_fail(m, "input %d is missing", i);
		} else if (!v->val && !v->seq) {
			*skip = true;
		} else if (!v->val && strncmp(op->name, "Sequence", 8) != 0
		           && strcmp(op->name, "ConcatFromSequence") != 0
		           && op->run != run_identity) {
			return imp_fail(m, "input %d is a sequence", i);
		}
	}
	return true;
}

static bool
check_version(struct importer *m)
{
	const struct flat_node *n = m->n;
	const char *of = *n->domain ? n->domain : "the default domain";

	if (n->opset >= n->op->since)
		return true;
	if (n->opset == 0 && *n->domain)
		return true;            /* others' operators have one version */
	if (n->opset == 0)
		return imp_fail(m,
		                "the model does not say which opset of %s it "
		                "uses",
		                of);
	return imp_fail(m,
	                "opset %d is not supported, %d is the oldest; convert "
	                "the model with onnx.version_converter",
	                n->opset, n->op->since);
}

static bool
import_node(struct importer *m)
{
	bool skip;

	if (!check_version(m) || !check_inputs(m, &skip))
		return false;
	if (skip)
		return true;
	attr_begin(&m->r, m->f, m->n);
	if (m->n->op->run != run_constant)
		m->origin = origin_new(m->g, m->n->name, m->n->type);
	return m->n->op->run(m) && attr_end(&m->r);
}

static bool
import_nodes(struct importer *m)
{
	bool ok = true;

	for (int i = 0; i < m->f->nnode && diag_errors(m->diag) < 20; i++) {
		m->n = &m->f->node[i];
		if (m->n->needed && onnx_op_can(m->f, m->n))
			ok &= import_node(m);
	}
	return ok;
}

Graph *
import_known(struct flat *f, const struct import_options *opt, Arena *arena)
{
	struct importer m = { .arena = arena, .diag = f->diag, .opt = opt,
	                      .f = f };

	m.g = graph_new("model");
	import_values(&m);
	import_nodes(&m);
	return m.g;
}

static bool
import_outputs(struct importer *m)
{
	for (int i = 0; i < m->f->noutput; i++) {
		struct flat_val *y = &m->f->val[m->f->output[i]];
		ValId v = y->val, id;

		if (!v)
			return diag_error(m->diag, "graph output '%s' is not a "
			                  "tensor: not supported", y->name);
		if (m->g->val[v].kind == V_TEMP && !m->g->val[v].output) {
			val_rename(m->g, v, y->name);
			m->g->val[v].onnx = m->g->val[v].name;
			m->g->val[v].output = true;
			continue;
		}
		/* the name belongs to the output */
		if (m->g->val[v].kind == V_CONST)
			val_rename(m->g, v, arena_printf(m->arena, "%s.const",
			                                 m->g->val[v].name));
		id = node_new(m->g, OP_IDENTITY, 1, &v, 0, 0)->out[0];
		val_rename(m->g, id, y->name);
		m->g->val[id].dt = m->g->val[v].dt;
		m->g->val[id].onnx = arena_str(m->g->arena, y->name);
		m->g->val[id].output = true;
	}
	return true;
}

/* ---- all of it ---- */

static void
warn_ties(const struct flat *f, bool untie)
{
	for (int i = 0; i < f->ntie; i++)
		diag_warn(f->diag,
		          "'%s' stands for %d norms or biases that the "
		          "exporter merged because they were equal; %s",
		          f->val[f->tie[i].val].name, f->tie[i].n,
		          untie ? "each is trained on its own (--untie=off: "
		                  "together)"
		                : "they are trained together as --untie=off "
		                  "says");
}

static void
warn_idle(const struct flat *f)
{
	int n = 0, first = 0;

	for (int i = f->nval; --i > 0;)
		if (f->val[i].idle) {
			first = i;
			n++;
		}
	if (n)
		diag_warn(f->diag, "%d parameter%s of the source get%s no "
		          "gradient from the loss and stay%s as %s (the first "
		          "is '%s'); --freeze says that this is meant", n,
		          n > 1 ? "s" : "", n > 1 ? "" : "s",
		          n > 1 ? "" : "s", n > 1 ? "they are" : "it is",
		          f->val[first].name);
}

static const char *
stem(Arena *a, const char *path)
{
	const char *slash = strrchr(path, '/'),
		   *name = slash ? slash + 1 : path;
	size_t n = strlen(name);

	if (n > 5 && strcmp(name + n - 5, ".onnx") == 0)
		n -= 5;
	return arena_printf(a, "%.*s", (int)n, name);
}

Graph *
onnx_import(const char *path, const struct import_options *opt, Diag *diag,
            struct onnx_file **keep)
{
	Arena *arena = arena_new();
	struct importer m = { .arena = arena, .diag = diag, .opt = opt };
	int before = diag_errors(diag);
	bool ok;

	diag_file(diag, path);
	*keep = onnx_open(path, opt->no_weights, diag);
	m.f = *keep ? flat_resolve(*keep, opt, diag, arena) : NULL;
	ok = m.f && classify(m.f, opt);
	if (ok)
		import_drop_outputs(m.f, opt);
	ok = ok && check_support(m.f);
	if (ok) {
		warn_ties(m.f, opt->untie);
		if (!opt->all_outputs)
			warn_idle(m.f);
		m.g = graph_new(stem(arena, path));
		ok = import_values(&m);
		ok = import_nodes(&m) && ok && import_outputs(&m);
	}
	if (ok && !opt->no_weights)
		template_build(*keep, m.f);
	else if (ok)
		(*keep)->why_no_template = "weights were not read";
	arena_free(arena);
	if (ok && diag_errors(diag) == before)
		return m.g;
	graph_free(m.g);
	onnx_close(*keep);
	*keep = NULL;
	return NULL;
}
