/* ONNX operators that move, select or create elements. */
#include "frontend/import/node_import.h"

#include <string.h>

/* ---- shapes of views ---- */

/* Squeeze and Unsqueeze: axes are an input since version 13. */
bool
run_axes(struct importer *m)
{
	Op op = m->n->op->ir;
	Attr a = attr_default(op);
	IntList list = { 0 };
	ValId axes = imp_axes(m, 1, 13, "axes", &list);

	if (op == OP_SQUEEZE)
		a.SQUEEZE.axes = list;
	else
		a.UNSQUEEZE.axes = list;
	return set_output(m, EMIT_NODE(m, op, &a, imp_in(m, 0), axes));
}

bool
run_transpose(struct importer *m)
{
	Attr a = attr_default(OP_TRANSPOSE);

	return imp_axis_list(m, "perm", &a.TRANSPOSE.perm)
	       && imp_same(m, OP_TRANSPOSE, &a);
}

bool
run_slice(struct importer *m)
{
	struct attr_ints starts, ends, axes;
	ValId s, e, x = 0;

	if (m->n->opset >= 10)
		return run_same(m);
	attr_ints(&m->r, "starts", &starts);
	attr_ints(&m->r, "ends", &ends);
	if (starts.n != ends.n)
		return imp_fail(m, "starts and ends have different lengths: %d "
		                "and %d", starts.n, ends.n);
	s = imp_ints(m, starts.n, starts.v);
	e = imp_ints(m, ends.n, ends.v);
	if (attr_ints(&m->r, "axes", &axes))
		x = imp_ints(m, axes.n, axes.v);
	return set_output(m, EMIT_NODE(m, OP_SLICE, NULL, imp_in(m, 0), s, e,
	                               x));
}

/* One part per output. */
bool
run_split(struct importer *m)
{
	Attr a = attr_default(OP_SPLIT);
	struct attr_ints split;
	ValId sizes = imp_in(m, 1);
	int64_t count = attr_int(&m->r, "num_outputs", m->n->nout);

	a.SPLIT.axis = attr_int(&m->r, "axis", 0);
	if (m->n->opset < 13 && attr_ints(&m->r, "split", &split))
		sizes = imp_ints(m, split.n, split.v);
	if (count != m->n->nout)
		return imp_fail(m, "num_outputs is %jd, but the node has %d "
		                "outputs", (intmax_t)count, m->n->nout);
	a.SPLIT.count = m->n->nout;
	for (int i = 0; i < m->n->nout; i++) {
		if (!imp_is_used(m, i))
			continue;
		a.SPLIT.index = i;
		imp_out(m, i, EMIT_NODE(m, OP_SPLIT, &a, imp_in(m, 0), sizes));
	}
	return true;
}

bool
run_concat(struct importer *m)
{
	Attr a = attr_default(OP_CONCAT);

	if (!attr_has(&m->r, "axis"))
		return imp_fail(m, "missing attribute 'axis'");
	a.CONCAT.axis = attr_int(&m->r, "axis", 0);
	return imp_same(m, OP_CONCAT, &a);
}

bool
run_pad(struct importer *m)
{
	static const char *const words[] = { "constant", "reflect", "edge",
	                                     "wrap" };
	Attr a = attr_default(OP_PAD);
	struct attr_ints pads;
	int n;

	a.PAD.mode = attr_word(&m->r, "mode", 0, words, 4);
	if (m->n->opset >= 11)
		return imp_same(m, OP_PAD, &a);
	a.PAD.value = attr_float(&m->r, "value", 0);
	attr_ints(&m->r, "pads", &pads);
	n = pads.n / 2;
	a.PAD.begin.n = a.PAD.end.n = n;
	for (int i = 0; i < n; i++) {
		a.PAD.begin.v[i] = pads.v[i];
		a.PAD.end.v[i] = pads.v[n + i];
	}
	return set_output(m, EMIT_NODE(m, OP_PAD, &a, imp_in(m, 0)));
}

/* DepthToSpace and SpaceToDepth in both orders of channels: reshape, transpose,
 * reshape.  The graph computes unknown extents. */
bool
run_space_depth(struct importer *m)
{
	static const char *const words[] = { "DCR", "CRD" };
	int64_t b = attr_int(&m->r, "blocksize", 0);
	bool to_space = m->n->op->ir == OP_RESHAPE;
	bool crd = attr_word(&m->r, "mode", 0, words, 2) != 0;
	ValId x = imp_in(m, 0), dim[4], bb, y;
	ValId shape = unary(m, OP_SHAPE, x), one[6];
	static const IntList perm[2][2] = {
		{ { 6, { 0, 3, 5, 1, 2, 4 } }, { 6, { 0, 1, 3, 5, 2, 4 } } },
		{ { 6, { 0, 3, 4, 1, 5, 2 } }, { 6, { 0, 1, 4, 2, 5, 3 } } }
	};

	if (b < 1 || b > 1 << 20)
		return imp_fail(m, "blocksize %jd is out of range",
		                (intmax_t)b);
	for (int i = 0; i < 4; i++)
		dim[i] = binary(m, OP_GATHER, shape, imp_one(m, i));
	bb = imp_one(m, b);
	if (to_space) {
		ValId c = EMIT_NODE(m, OP_DIV, NULL, dim[1],
		                    binary(m, OP_MUL, bb, bb));
		ValId dcr[6] = { dim[0], bb, bb, c, dim[2], dim[3] };
		ValId other[6] = { dim[0], c, bb, bb, dim[2], dim[3] };

		memcpy(one, crd ? other : dcr, sizeof one);
		dim[1] = c;
		dim[2] = binary(m, OP_MUL, dim[2], bb);
		dim[3] = binary(m, OP_MUL, dim[3], bb);
	} else {
		ValId h = binary(m, OP_DIV, dim[2], bb);
		ValId w = binary(m, OP_DIV, dim[3], bb);
		ValId split[6] = { dim[0], dim[1], h, bb, w, bb };

		memcpy(one, split, sizeof one);
		dim[1] = EMIT_NODE(m, OP_MUL, NULL, dim[1],
		                   binary(m, OP_MUL, bb, bb));
		dim[2] = h;
		dim[3] = w;
	}
	y = imp_reshape(m, x, 6, one);
	y = imp_transpose(m, y, perm[to_space][crd]);
	return set_output(m, imp_reshape(m, y, 4, dim));
}

/* ScatterElements and ScatterND. */
bool
run_scatter(struct importer *m)
{
	static const char *const words[] = { "none", "add", "mul", "max",
	                                     "min" };
	Op op = m->n->op->ir;
	Attr a = imp_attrs(m, op);

	*attr_int_of(op, &a, "add") = attr_word(&m->r, "reduction", 0, words,
	                                        5);
	return imp_same(m, op, &a);
}

/* ---- constants ---- */

bool
run_constant(struct importer *m)
{
	const char *name = m->f->val[m->n->out[0]].name;
	ValId v;

	m->r.seen = UINT64_MAX;         /* flat_constant has checked them */
	if (!m->n->constant)
		return imp_fail(m, "string constants are not supported");
	v = imp_tensor(m, m->n->constant, name);
	return v && set_output(m, v);
}

bool
run_constant_of_shape(struct importer *m)
{
	Attr a = attr_default(OP_CONSTANT_OF_SHAPE);
	const Onnx__AttributeProto *p = attr_get(&m->r, "value", 4);
	struct onnx_tensor t;

	a.CONSTANT_OF_SHAPE.dt = DT_F32;
	if (p && p->t) {
		Val v = { .name = "", .kind = V_CONST };

		if (!onnx_tensor_load(m->f->file, p->t, &t))
			return false;
		if (!t.data || t.nelem != 1)
			return imp_fail(m, "value: expected 1 element, found "
			                "%jd", (intmax_t)t.nelem);
		v.dt = t.dt;
		v.shape = t.shape;
		v.data = t.data;
		a.CONSTANT_OF_SHAPE.dt = t.dt;
		a.CONSTANT_OF_SHAPE.value = val_float(&v, 0);
	}
	return imp_same(m, OP_CONSTANT_OF_SHAPE, &a);
}

bool
run_cumulate(struct importer *m)
{
	Attr a = imp_attrs(m, OP_CUMSUM);

	a.CUMSUM.product = m->n->type[3] == 'P';
	return imp_same(m, OP_CUMSUM, &a);
}

/* ArgMax, and ArgMin as ArgMax of -x, or of ~x for integers, where -x may
 * overflow. */
bool
run_arg(struct importer *m)
{
	Attr a = imp_attrs(m, OP_ARGMAX);
	ValId x = imp_in(m, 0);
	char of = dtype_info[m->g->val[x].dt].cls;

	if (m->n->op->ir == OP_NEG)
		x = unary(m, of == 'i' || of == 'u' ? OP_BIT_NOT : OP_NEG, x);
	return set_output(m, EMIT_NODE(m, OP_ARGMAX, &a, x));
}
