/* Helpers for functions that import a node: read its inputs, build IR nodes,
 * set its outputs. */
#include "frontend/import/node_import.h"

#include <string.h>

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
imp_is_used(const struct importer *m, int i)
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

/* Shapes are inferred after dims are bound, but some choices depend on the type
 * of output 0. */
static DType
out_dtype(const struct importer *m, const Node *n)
{
	DType from[3] = { DT_NONE, DT_NONE, DT_NONE };

	for (int i = 0; i < n->nin && i < 3; i++)
		from[i] = m->g->val[n->in[i]].dt;
	return op_type(n->op, &n->attr, from);
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
	m->g->val[n->out[0]].dt = out_dtype(m, n);
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
imp_one(struct importer *m, int64_t x)
{
	return imp_ints(m, 1, &x);
}

ValId
imp_scalar(struct importer *m, int64_t x)
{
	return val_const(m->g, NULL, DT_I64, shape_scalar(), &x);
}

ValId
imp_extent(struct importer *m, ValId x, int64_t axis)
{
	return binary(m, OP_GATHER, unary(m, OP_SHAPE, x), imp_one(m, axis));
}

ValId
imp_scalar_of(struct importer *m, ValId one)
{
	Attr a = attr_default(OP_SQUEEZE);

	a.SQUEEZE.axes = (IntList){ 1, { 0 } };
	return EMIT_NODE(m, OP_SQUEEZE, &a, one);
}

ValId
imp_cast(struct importer *m, ValId x, DType dt)
{
	Attr a = attr_cast(dt);

	return EMIT_NODE(m, OP_CAST, &a, x);
}

ValId
imp_range(struct importer *m, ValId n)
{
	return EMIT_NODE(m, OP_RANGE, NULL, imp_scalar(m, 0), n,
	                 imp_scalar(m, 1));
}

ValId
imp_count(struct importer *m, ValId n)
{
	return EMIT_NODE(m, OP_RANGE, NULL, imp_scalar(m, 0),
	                 imp_scalar_of(m, n), imp_scalar(m, 1));
}

ValId
imp_ones(struct importer *m, ValId shape, DType dt)
{
	Attr a = attr_default(OP_CONSTANT_OF_SHAPE);

	a.CONSTANT_OF_SHAPE.dt = dt;
	a.CONSTANT_OF_SHAPE.value = 1;
	return EMIT_NODE(m, OP_CONSTANT_OF_SHAPE, &a, shape);
}

ValId
imp_reshape(struct importer *m, ValId x, int n, const ValId *extent)
{
	return binary(m, OP_RESHAPE, x, imp_concat(m, 0, n, extent));
}

ValId
imp_reshape_along(struct importer *m, ValId x, int at, int rank)
{
	int64_t shape[MAX_RANK];

	for (int i = 0; i < rank; i++)
		shape[i] = i == at ? -1 : 1;
	return binary(m, OP_RESHAPE, x, imp_ints(m, rank, shape));
}

ValId
imp_reduce(struct importer *m, Op op, ValId x, ValId axes, const IntList *list,
           bool keepdims, bool noop)
{
	Attr a = attr_default(op);

	*attr_list_of(op, &a, "axes") = *list;
	*attr_int_of(op, &a, "keepdims") = keepdims;
	*attr_int_of(op, &a, "noop") = noop;
	return EMIT_NODE(m, op, &a, x, axes);
}

ValId
imp_concat(struct importer *m, int64_t axis, int n, const ValId *x)
{
	Attr a = attr_default(OP_CONCAT);

	a.CONCAT.axis = axis;
	return imp_node(m, OP_CONCAT, &a, n, x);
}

ValId
imp_transpose(struct importer *m, ValId x, IntList perm)
{
	Attr a = attr_default(OP_TRANSPOSE);

	a.TRANSPOSE.perm = perm;
	return EMIT_NODE(m, OP_TRANSPOSE, &a, x);
}

ValId
imp_unsqueeze(struct importer *m, ValId x, int64_t axis)
{
	Attr a = attr_default(OP_UNSQUEEZE);

	a.UNSQUEEZE.axes = (IntList){ 1, { axis } };
	return EMIT_NODE(m, OP_UNSQUEEZE, &a, x);
}

bool
imp_same(struct importer *m, Op op, const Attr *attr)
{
	int n = m->n->nin;
	ValId *in = arena_array(m->arena, (size_t)n + 1, sizeof *in);

	for (int i = 0; i < n; i++)
		in[i] = imp_in(m, i);
	return set_output(m, imp_node(m, op, attr, n, in));
}

Attr
imp_attrs(struct importer *m, Op op)
{
	const struct onnx_attr *from = m->n->op->attr;
	Attr a = attr_default(op);

	for (int i = 0; i < ONNX_ATTRS && from[i].name; i++) {
		if (from[i].type == AT_FLOAT) {
			double *x = attr_float_of(op, &a, from[i].ir);

			*x = attr_float(&m->r, from[i].name, *x);
		} else {
			int64_t *x = attr_int_of(op, &a, from[i].ir);

			*x = attr_int(&m->r, from[i].name, *x);
			*x = from[i].flag ? *x != 0 : *x;
		}
	}
	return a;
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
	const struct flat_known *k = imp_has(m, i)
		? flat_find(m->f, m->n->in[i]) : NULL;

	if (v && dtype_info[v->dt].cls != 'f')
		*x = val_int(v, 0);
	else if (k && k->is_number)
		*x = k->number;
	else
		return false;
	return true;
}

bool
imp_const_float(const struct importer *m, int i, double *x)
{
	const Val *v = const_in(m, i);

	if (v)
		*x = val_float(v, 0);
	return v != NULL;
}

Shape
imp_shape(struct importer *m, int i)
{
	const struct flat_known *k = flat_find(m->f, m->n->in[i]);
	const Shape *s = &m->g->val[imp_in(m, i)].shape;

	return k && !shape_known(s) ? k->shape : *s;
}

bool
imp_rank(struct importer *m, int i, int *rank)
{
	*rank = imp_shape(m, i).rank;
	return *rank >= 0;
}

int64_t
imp_dim(const struct importer *m, ValId v, int axis)
{
	const Shape *s = &m->g->val[v].shape;

	if (s->rank < 0)
		return -1;
	axis += axis < 0 ? s->rank : 0;
	return axis < 0 || axis >= s->rank ? -1 : s->dim[axis];
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

/* False if a list of n elements is too long. */
static bool
read_int_list(struct importer *m, const char *name, IntList *l, int *n)
{
	struct attr_ints a;

	attr_ints(&m->r, name, &a);
	*n = a.n;
	l->n = a.n > MAX_RANK ? 0 : a.n;
	memcpy(l->v, a.v, (size_t)l->n * sizeof a.v[0]);
	return l->n == a.n;
}

bool
imp_list(struct importer *m, const char *name, IntList *l)
{
	int n;

	return read_int_list(m, name, l, &n)
	       || imp_fail(m, "attribute '%s' has too many elements: %d", name,
	                   n);
}

bool
imp_axis_list(struct importer *m, const char *name, IntList *l)
{
	int n;

	return read_int_list(m, name, l, &n)
	       || imp_fail(m, "expected at most %d axes, found %d",
	                   MAX_RANK, n);
}

ValId
imp_axes(struct importer *m, int i, int since, const char *name,
         IntList *list)
{
	list->n = 0;
	if (m->n->opset >= since)
		return imp_in(m, i);
	if (!imp_axis_list(m, name, list))
		m->r.failed = true;
	return 0;
}

ValId
imp_stored(struct importer *m, ValKind kind, const char *name,
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

	if (!onnx_tensor_load(m->f->file, p, &t))
		return 0;
	return imp_stored(m, V_CONST, name, &t);
}
