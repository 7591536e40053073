/* ONNX operators that move, select or make numbers. */
#include "frontend/import/importer.h"

#include <string.h>

/* ---- shapes of views ---- */

static bool
to_list(struct importer *m, const struct attr_ints *a, IntList *list)
{
	if (a->n > MAX_RANK)
		return imp_fail(m, "%d axes, %d are the most", a->n, MAX_RANK);
	list->n = a->n;
	memcpy(list->v, a->v, (size_t)a->n * sizeof a->v[0]);
	return true;
}

bool
run_reshape(struct importer *m)
{
	Attr a = attr_default(OP_RESHAPE);

	a.RESHAPE.allowzero = attr_int(&m->r, "allowzero", 0) != 0;
	imp_out(m, 0, EMIT_NODE(m, OP_RESHAPE, &a, imp_in(m, 0),
	                        imp_in(m, 1)));
	return true;
}

bool
run_flatten(struct importer *m)
{
	Attr a = attr_default(OP_FLATTEN);

	a.FLATTEN.axis = attr_int(&m->r, "axis", 1);
	imp_out(m, 0, EMIT_NODE(m, OP_FLATTEN, &a, imp_in(m, 0)));
	return true;
}

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
	imp_out(m, 0, EMIT_NODE(m, op, &a, imp_in(m, 0), axes));
	return true;
}

bool
run_transpose(struct importer *m)
{
	Attr a = attr_default(OP_TRANSPOSE);
	struct attr_ints perm;

	attr_ints(&m->r, "perm", &perm);
	if (!to_list(m, &perm, &a.TRANSPOSE.perm))
		return false;
	imp_out(m, 0, EMIT_NODE(m, OP_TRANSPOSE, &a, imp_in(m, 0)));
	return true;
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
		return imp_fail(m, "%d starts and %d ends", starts.n, ends.n);
	s = imp_ints(m, starts.n, starts.v);
	e = imp_ints(m, ends.n, ends.v);
	if (attr_ints(&m->r, "axes", &axes))
		x = imp_ints(m, axes.n, axes.v);
	imp_out(m, 0, EMIT_NODE(m, OP_SLICE, NULL, imp_in(m, 0), s, e, x));
	return true;
}

/* One part per output. */
bool
run_split(struct importer *m)
{
	Attr a = attr_default(OP_PART);
	struct attr_ints split;
	ValId sizes = imp_in(m, 1);
	int64_t count = attr_int(&m->r, "num_outputs", m->n->nout);

	a.PART.axis = attr_int(&m->r, "axis", 0);
	if (m->n->opset < 13 && attr_ints(&m->r, "split", &split))
		sizes = imp_ints(m, split.n, split.v);
	if (count != m->n->nout)
		return imp_fail(m, "num_outputs is %jd, there are %d outputs",
		                (intmax_t)count, m->n->nout);
	a.PART.count = m->n->nout;
	for (int i = 0; i < m->n->nout; i++) {
		if (!imp_wants(m, i))
			continue;
		a.PART.index = i;
		imp_out(m, i, EMIT_NODE(m, OP_PART, &a, imp_in(m, 0), sizes));
	}
	return true;
}

bool
run_concat(struct importer *m)
{
	Attr a = attr_default(OP_CONCAT);
	ValId *in = arena_array(m->arena, (size_t)m->n->nin + 1, sizeof *in);

	if (!attr_has(&m->r, "axis"))
		return imp_fail(m, "attribute 'axis' is missing");
	a.CONCAT.axis = attr_int(&m->r, "axis", 0);
	for (int i = 0; i < m->n->nin; i++)
		in[i] = imp_in(m, i);
	imp_out(m, 0, imp_node(m, OP_CONCAT, &a, m->n->nin, in));
	return true;
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
	if (m->n->opset >= 11) {
		imp_out(m, 0, EMIT_NODE(m, OP_PAD, &a, imp_in(m, 0),
		                        imp_in(m, 1), imp_in(m, 2),
		                        imp_in(m, 3)));
		return true;
	}
	a.PAD.value = attr_float(&m->r, "value", 0);
	attr_ints(&m->r, "pads", &pads);
	n = pads.n / 2;
	a.PAD.begin.n = a.PAD.end.n = n;
	for (int i = 0; i < n; i++) {
		a.PAD.begin.v[i] = pads.v[i];
		a.PAD.end.v[i] = pads.v[n + i];
	}
	imp_out(m, 0, EMIT_NODE(m, OP_PAD, &a, imp_in(m, 0)));
	return true;
}

bool
run_trilu(struct importer *m)
{
	Attr a = attr_default(OP_TRILU);

	a.TRILU.upper = attr_int(&m->r, "upper", 1) != 0;
	imp_out(m, 0, EMIT_NODE(m, OP_TRILU, &a, imp_in(m, 0), imp_in(m, 1)));
	return true;
}

/* DepthToSpace and SpaceToDepth in both orders of channels: one reshape,
 * transpose, reshape.  Extents that are not known yet are computed in the
 * graph. */
bool
run_space_depth(struct importer *m)
{
	static const char *const words[] = { "DCR", "CRD" };
	int64_t b = attr_int(&m->r, "blocksize", 0);
	bool to_space = m->n->op->ir == OP_RESHAPE;
	bool crd = attr_word(&m->r, "mode", 0, words, 2) != 0;
	ValId x = imp_in(m, 0), dim[4], bb, six, y;
	ValId shape = EMIT_NODE(m, OP_SHAPE, NULL, x), one[6];
	Attr a = attr_default(OP_TRANSPOSE), cat = attr_default(OP_CONCAT);
	static const int64_t perm[2][2][6] = {
		{ { 0, 3, 5, 1, 2, 4 }, { 0, 1, 3, 5, 2, 4 } },
		{ { 0, 3, 4, 1, 5, 2 }, { 0, 1, 4, 2, 5, 3 } }
	};

	if (b < 1 || b > 1 << 20)
		return imp_fail(m, "blocksize %jd", (intmax_t)b);
	for (int i = 0; i < 4; i++) {
		int64_t at = i;

		dim[i] = EMIT_NODE(m, OP_GATHER, NULL, shape,
		                   imp_ints(m, 1, &at));
	}
	bb = imp_ints(m, 1, &b);
	if (to_space) {
		ValId c = EMIT_NODE(m, OP_DIV, NULL, dim[1],
		                    EMIT_NODE(m, OP_MUL, NULL, bb, bb));
		ValId dcr[6] = { dim[0], bb, bb, c, dim[2], dim[3] };
		ValId other[6] = { dim[0], c, bb, bb, dim[2], dim[3] };

		memcpy(one, crd ? other : dcr, sizeof one);
		dim[1] = c;
		dim[2] = EMIT_NODE(m, OP_MUL, NULL, dim[2], bb);
		dim[3] = EMIT_NODE(m, OP_MUL, NULL, dim[3], bb);
	} else {
		ValId h = EMIT_NODE(m, OP_DIV, NULL, dim[2], bb);
		ValId w = EMIT_NODE(m, OP_DIV, NULL, dim[3], bb);
		ValId split[6] = { dim[0], dim[1], h, bb, w, bb };

		memcpy(one, split, sizeof one);
		dim[1] = EMIT_NODE(m, OP_MUL, NULL, dim[1],
		                   EMIT_NODE(m, OP_MUL, NULL, bb, bb));
		dim[2] = h;
		dim[3] = w;
	}
	six = imp_node(m, OP_CONCAT, &cat, 6, one);
	y = EMIT_NODE(m, OP_RESHAPE, NULL, x, six);
	a.TRANSPOSE.perm.n = 6;
	memcpy(a.TRANSPOSE.perm.v, perm[to_space][crd], sizeof perm[0][0]);
	y = EMIT_NODE(m, OP_TRANSPOSE, &a, y);
	imp_out(m, 0, EMIT_NODE(m, OP_RESHAPE, NULL, y,
	                        imp_node(m, OP_CONCAT, &cat, 4, dim)));
	return true;
}

/* ---- sequences ---- */

static struct sequence *
new_sequence(struct importer *m)
{
	struct sequence *s = arena_alloc(m->arena, sizeof *s);

	m->f->val[m->n->out[0]].seq = s;
	return s;
}

static struct sequence *
in_sequence(struct importer *m)
{
	struct sequence *s = m->f->val[m->n->in[0]].seq;

	if (!s)
		imp_fail(m, "sequences are supported only between "
		            "SplitToSequence or SequenceConstruct and their "
		            "readers");
	return s;
}

bool
run_split_to_sequence(struct importer *m)
{
	struct sequence *s = new_sequence(m);
	const Val *sizes;
	int64_t keepdims = attr_int(&m->r, "keepdims", 1), chunk;

	s->split = true;
	s->x = imp_in(m, 0);
	s->sizes = imp_in(m, 1);
	s->part = attr_default(OP_PART);
	s->part.PART.axis = attr_int(&m->r, "axis", 0);
	if (!s->sizes) {
		s->part.PART.chunk = 1;
		s->part.PART.keepdims = keepdims != 0;
		return true;
	}
	sizes = &m->g->val[s->sizes];
	if (sizes->shape.rank == 0 && imp_const(m, 1, &chunk)) {
		s->part.PART.chunk = chunk;
		s->sizes = 0;
	} else if (sizes->shape.rank == 1 && sizes->shape.dim[0] > 0) {
		s->part.PART.count = sizes->shape.dim[0];
	}
	return true;
}

bool
run_sequence_construct(struct importer *m)
{
	struct sequence *s = new_sequence(m);

	s->n = m->n->nin;
	s->elem = arena_array(m->arena, (size_t)s->n + 1, sizeof *s->elem);
	for (int i = 0; i < s->n; i++)
		s->elem[i] = imp_in(m, i);
	return true;
}

bool
run_sequence_empty(struct importer *m)
{
	attr_int(&m->r, "dtype", 1);
	new_sequence(m);
	return true;
}

/* One element more or one less: the list with a piece replaced. */
static bool
edit_sequence(struct importer *m, int position, bool insert)
{
	const struct sequence *s = in_sequence(m);
	struct sequence *y;
	int64_t at;

	if (!s)
		return false;
	if (s->split)
		return imp_fail(m, "not supported on the result of "
		                "SplitToSequence");
	at = insert ? s->n : s->n - 1;
	if (imp_has(m, position)) {
		if (!imp_const(m, position, &at))
			return imp_fail(m, "the position is not a constant");
		at += at < 0 ? s->n : 0;
	}
	if (at < 0 || at >= s->n + insert)
		return imp_fail(m, "position %jd in a sequence of %d",
		                (intmax_t)at, s->n);
	y = new_sequence(m);
	y->n = insert ? s->n + 1 : s->n - 1;
	y->elem = arena_array(m->arena, (size_t)y->n + 1, sizeof *y->elem);
	for (int i = 0; i < y->n; i++)
		y->elem[i] = i < at ? s->elem[i]
			: !insert ? s->elem[i + 1]
			: i > at ? s->elem[i - 1] : imp_in(m, 1);
	return true;
}

bool
run_sequence_insert(struct importer *m)
{
	return edit_sequence(m, 2, true);
}

bool
run_sequence_erase(struct importer *m)
{
	return edit_sequence(m, 1, false);
}

bool
run_sequence_at(struct importer *m)
{
	const struct sequence *s = in_sequence(m);
	int64_t at, n;
	Attr a;

	if (!s)
		return false;
	if (!imp_const(m, 1, &at))
		return imp_fail(m, "the position is not a constant");
	n = s->split ? s->part.PART.count : s->n;
	if (at < 0 && n > 0)
		at += n;
	if (at < 0 || (n > 0 && at >= n))
		return imp_fail(m, "position %jd in a sequence of %jd",
		                (intmax_t)at, (intmax_t)n);
	if (!s->split) {
		imp_out(m, 0, s->elem[at]);
		return true;
	}
	a = s->part;
	a.PART.index = at;
	imp_out(m, 0, EMIT_NODE(m, OP_PART, &a, s->x, s->sizes));
	return true;
}

bool
run_concat_from_sequence(struct importer *m)
{
	const struct sequence *s = in_sequence(m);
	Attr a = attr_default(OP_CONCAT), u = attr_default(OP_UNSQUEEZE);
	bool fresh = attr_int(&m->r, "new_axis", 0) != 0;
	ValId *in;

	if (!s)
		return false;
	a.CONCAT.axis = attr_int(&m->r, "axis", 0);
	if (!s->split && s->n == 0)
		return imp_fail(m, "the sequence is empty");
	if (s->split)
		return imp_fail(m, "not supported on the result of "
		                "SplitToSequence");
	u.UNSQUEEZE.axes = (IntList){ 1, { a.CONCAT.axis } };
	in = arena_array(m->arena, (size_t)s->n + 1, sizeof *in);
	for (int i = 0; i < s->n; i++)
		in[i] = fresh ? EMIT_NODE(m, OP_UNSQUEEZE, &u, s->elem[i])
		              : s->elem[i];
	imp_out(m, 0, imp_node(m, OP_CONCAT, &a, s->n, in));
	return true;
}

bool
run_sequence_length(struct importer *m)
{
	const struct sequence *s = in_sequence(m);

	if (!s)
		return false;
	if (s->split && s->part.PART.count == 0)
		return imp_fail(m, "the length of the sequence is not known");
	imp_out(m, 0, imp_scalar(m, s->split ? s->part.PART.count : s->n));
	return true;
}

/* ---- indexing ---- */

/* Gather and GatherElements. */
bool
run_gather(struct importer *m)
{
	Op op = m->n->op->ir;
	Attr a = attr_default(op);

	if (op == OP_GATHER)
		a.GATHER.axis = attr_int(&m->r, "axis", 0);
	else
		a.GATHER_ELEMENTS.axis = attr_int(&m->r, "axis", 0);
	imp_out(m, 0, EMIT_NODE(m, op, &a, imp_in(m, 0), imp_in(m, 1)));
	return true;
}

bool
run_gather_nd(struct importer *m)
{
	Attr a = attr_default(OP_GATHER_ND);

	a.GATHER_ND.batch = attr_int(&m->r, "batch_dims", 0);
	imp_out(m, 0, EMIT_NODE(m, OP_GATHER_ND, &a, imp_in(m, 0),
	                        imp_in(m, 1)));
	return true;
}

static const char *const scatter_words[] = { "none", "add", "mul", "max",
                                             "min" };

bool
run_scatter_elements(struct importer *m)
{
	Attr a = attr_default(OP_SCATTER_ELEMENTS);

	a.SCATTER_ELEMENTS.axis = attr_int(&m->r, "axis", 0);
	a.SCATTER_ELEMENTS.add = attr_word(&m->r, "reduction", 0,
	                                   scatter_words, 5);
	imp_out(m, 0, EMIT_NODE(m, OP_SCATTER_ELEMENTS, &a, imp_in(m, 0),
	                        imp_in(m, 1), imp_in(m, 2)));
	return true;
}

bool
run_scatter_nd(struct importer *m)
{
	Attr a = attr_default(OP_SCATTER_ND);

	a.SCATTER_ND.add = attr_word(&m->r, "reduction", 0, scatter_words, 5);
	imp_out(m, 0, EMIT_NODE(m, OP_SCATTER_ND, &a, imp_in(m, 0),
	                        imp_in(m, 1), imp_in(m, 2)));
	return true;
}

bool
run_one_hot(struct importer *m)
{
	Attr a = attr_default(OP_ONE_HOT);

	a.ONE_HOT.axis = attr_int(&m->r, "axis", -1);
	imp_out(m, 0, EMIT_NODE(m, OP_ONE_HOT, &a, imp_in(m, 0), imp_in(m, 1),
	                        imp_in(m, 2)));
	return true;
}

/* ---- numbers from nothing ---- */

bool
run_shape(struct importer *m)
{
	Attr a = attr_default(OP_SHAPE);

	a.SHAPE.start = attr_int(&m->r, "start", a.SHAPE.start);
	a.SHAPE.end = attr_int(&m->r, "end", a.SHAPE.end);
	imp_out(m, 0, EMIT_NODE(m, OP_SHAPE, &a, imp_in(m, 0)));
	return true;
}

bool
run_constant(struct importer *m)
{
	const Onnx__AttributeProto *a;
	Shape s = { .rank = 1 };
	const char *name = m->f->val[m->n->out[0]].name;
	ValId v = 0;

	if ((a = attr_get(&m->r, "value", 4))) {
		if (!a->t)
			return imp_fail(m, "attribute 'value' is empty");
		v = imp_tensor(m, a->t, name);
	} else if ((a = attr_get(&m->r, "value_float", 1))) {
		v = val_const(m->g, name, DT_F32, shape_scalar(), &a->f);
	} else if ((a = attr_get(&m->r, "value_int", 2))) {
		v = val_const(m->g, name, DT_I64, shape_scalar(), &a->i);
	} else if ((a = attr_get(&m->r, "value_floats", 6))) {
		s.dim[0] = (int64_t)a->n_floats;
		v = val_const(m->g, name, DT_F32, s, a->floats);
	} else if ((a = attr_get(&m->r, "value_ints", 7))) {
		s.dim[0] = (int64_t)a->n_ints;
		v = val_const(m->g, name, DT_I64, s, a->ints);
	} else if ((a = attr_get(&m->r, "sparse_value", 11))
	           && a->sparse_tensor) {
		const Onnx__TensorProto *t = sparse_dense(m->f,
		                                          a->sparse_tensor);

		v = t ? imp_tensor(m, t, name) : 0;
	} else {
		return imp_fail(m, "constants of strings are not supported");
	}
	if (!v)
		return false;
	m->g->val[v].onnx = m->g->val[v].name;
	imp_out(m, 0, v);
	return true;
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
			return imp_fail(m, "the value has %jd elements",
			                (intmax_t)t.nelem);
		v.dt = t.dt;
		v.shape = t.shape;
		v.data = t.data;
		a.CONSTANT_OF_SHAPE.dt = t.dt;
		a.CONSTANT_OF_SHAPE.value = val_float(&v, 0);
	}
	imp_out(m, 0, EMIT_NODE(m, OP_CONSTANT_OF_SHAPE, &a, imp_in(m, 0)));
	return true;
}

bool
run_cumsum(struct importer *m)
{
	Attr a = attr_default(OP_CUMSUM);

	a.CUMSUM.exclusive = attr_int(&m->r, "exclusive", 0) != 0;
	a.CUMSUM.product = m->n->type[3] == 'P';
	a.CUMSUM.reverse = attr_int(&m->r, "reverse", 0) != 0;
	imp_out(m, 0, EMIT_NODE(m, OP_CUMSUM, &a, imp_in(m, 0),
	                        imp_in(m, 1)));
	return true;
}

/* ArgMax, and ArgMin as the ArgMax of the negative. */
bool
run_arg(struct importer *m)
{
	Attr a = attr_default(OP_ARGMAX);
	ValId x = imp_in(m, 0);

	a.ARGMAX.axis = attr_int(&m->r, "axis", 0);
	a.ARGMAX.keepdims = attr_int(&m->r, "keepdims", 1) != 0;
	a.ARGMAX.last = attr_int(&m->r, "select_last_index", 0) != 0;
	if (m->n->op->ir == OP_NEG)
		x = EMIT_NODE(m, OP_NEG, NULL, x);
	imp_out(m, 0, EMIT_NODE(m, OP_ARGMAX, &a, x));
	return true;
}
