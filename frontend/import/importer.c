/* Helpers for the functions that import a node: its inputs and outputs,
 * and building IR nodes in its name. */
#include "frontend/import/importer.h"

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

/* Shapes wait until dims are bound, but some choices depend on the type of
 * output 0. */
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
