/* From a flat model to a graph in dynamic form: shapes of inner values are
 * unknown and operands like the shape of a reshape are inputs.
 *
 * needs   verdicts of classify.c; rows of operators.h
 * gives   values in the order inputs, initializers, nodes' outputs, named as
 *         in the file; verdicts as kinds; nodes in topological order, only
 *         those that an output depends on
 * cost    linear in the nodes
 */
#include "frontend/import/build_graph.h"

#include <string.h>

#include "frontend/import/node_import.h"

/* ---- inputs and initializers ---- */

static bool
read_shape(struct importer *m, const struct flat_val *in, DType *dt,
           Shape *shape)
{
	const Onnx__TypeProto *type = in->info->type;
	const Onnx__TypeProto__Tensor *t = type ? type->tensor_type : NULL;

	if (!t)
		return diag_error(m->diag, "input '%s': only tensors are "
		                  "supported as inputs", in->name);
	*dt = onnx_dtype(t->elem_type);
	if (*dt == DT_NONE)
		return diag_error(m->diag, "input '%s': dtype %s is not "
		                  "supported", in->name,
		                  onnx_dtype_name(t->elem_type));
	shape->rank = -1;
	if (!t->shape)
		return true;
	if (t->shape->n_dim > MAX_RANK)
		return diag_error(m->diag, "input '%s': rank %zu is not "
		                  "supported: expected at most %d", in->name,
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
		return true;            /* unused */
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
		return diag_error(m->diag, "--const %s: expected %s, '%s' "
		                  "holds %s", in->name,
		                  shape_text(a, sizeof a, dt, &want), in->file,
		                  shape_text(b, sizeof b, t.dt, &t.shape));
	in->val = imp_stored(m, V_CONST, in->name, &t);
	return true;
}

/* Buffers that no node writes become constants.  Values that depend on them
 * alone (tables of rotary positions) are then computed once. */
static bool
import_initializer(struct importer *m, struct flat_val *in)
{
	struct onnx_tensor t;
	ValKind kind = in->verdict == VERDICT_PARAM ? V_PARAM
		: in->verdict == VERDICT_BUFFER && in->state_slot ? V_BUFFER
		: V_CONST;

	if (!onnx_tensor_load(m->f->file, in->init, &t))
		return false;
	in->val = imp_stored(m, kind, in->name, &t);
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

/* Whether all inputs exist; silent about those that failed before. */
static bool
check_node_inputs(struct importer *m, bool *skip)
{
	const struct onnx_op *op = m->n->op;

	*skip = false;
	if (m->n->nin < op->nin_min
	    || (op->nin_max >= 0 && m->n->nin > op->nin_max))
		return imp_fail(m, "expected %d%s%d inputs, found %d",
		                op->nin_min, op->nin_max < 0 ? ".." : " to ",
		                op->nin_max < 0 ? 9999 : op->nin_max,
		                m->n->nin);
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

/* Whether ONNX allows the operator for the types of its inputs.  For other
 * types the source language may mean something else than the operator computes:
 * a sum of flags is an integer, not a flag. */
static bool
check_types(struct importer *m)
{
	const struct onnx_op *op = m->n->op;

	for (int i = 0; i < m->n->nin; i++) {
		DType dt = m->g->val[imp_in(m, i)].dt;
		char cls = dt == DT_NONE ? 'f' : dtype_info[dt].cls;
		bool whole = i < 32 && op->floats >> i & 1 && cls != 'f';
		bool flag = i < 32 && op->numbers >> i & 1 && cls == 'b';

		if (!whole && !flag)
			continue;
		imp_fail(m, "input %d '%s': expected %s, found %s", i,
		         m->f->val[m->n->in[i]].name,
		         whole ? "floats" : "numbers", dtype_info[dt].text);
		return diag_more(m->diag, "%s", op->hint ? op->hint
		                 : whole ? "try: x.float() in the model"
		                 : "try: x.long() in the model, or "
		                   "dynamo=True in torch.onnx.export");
	}
	return true;
}

static bool
check_version(struct importer *m)
{
	const struct flat_node *n = m->n;

	/* operators of other domains need no imported version */
	if (*n->domain && n->opset > 1)
		return imp_fail(m, "version %d of domain %s is not supported: "
		                "expected 1", n->opset, n->domain);
	if (*n->domain || n->opset >= n->op->since)
		return true;
	return imp_fail(m, "opset %d is not supported: expected %d or later; "
	                "convert the model with onnx.version_converter",
	                n->opset, n->op->since);
}

static bool
import_node(struct importer *m)
{
	bool skip;

	if (!check_version(m) || !check_node_inputs(m, &skip))
		return false;
	if (skip)
		return true;
	if (!check_types(m))
		return false;
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

static bool
import_outputs(struct importer *m)
{
	for (int i = 0; i < m->f->noutput; i++) {
		struct flat_val *y = &m->f->val[m->f->output[i]];
		ValId v = y->val, id;

		if (!v)
			return diag_error(m->diag, "graph output '%s': only "
			                  "tensors are supported as outputs",
			                  y->name);
		if (m->g->val[v].kind == V_TEMP && !m->g->val[v].output) {
			val_rename(m->g, v, y->name);
			m->g->val[v].onnx = m->g->val[v].name;
			m->g->val[v].output = true;
			continue;
		}
		/* the output takes the name */
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

Graph *
build_known_graph(struct flat *f, const struct import_options *opt,
                  Arena *arena)
{
	struct importer m = { .g = graph_new("model"), .arena = arena,
	                      .diag = f->diag, .opt = opt, .f = f };

	import_values(&m);
	import_nodes(&m);
	return m.g;
}

Graph *
build_graph(struct flat *f, const struct import_options *opt, Arena *arena,
            const char *name)
{
	struct importer m = { .g = graph_new(name), .arena = arena,
	                      .diag = f->diag, .opt = opt, .f = f };
	bool ok = import_values(&m);

	if (import_nodes(&m) && ok && import_outputs(&m))
		return m.g;
	graph_free(m.g);
	return NULL;
}
