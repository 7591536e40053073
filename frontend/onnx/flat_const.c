/* Contents of Constant nodes, from any of their attributes. */
#include "frontend/onnx/flat_read.h"

#include <string.h>

enum { TYPE_FLOAT = 1, TYPE_INT64 = 7 };

/* Wrap a list or a number in a tensor, without a copy. */
static Onnx__TensorProto *
wrap(struct flat *f, int type, bool list, size_t n)
{
	Onnx__TensorProto *t = arena_alloc(f->arena, sizeof *t);

	*t = (Onnx__TensorProto)ONNX__TENSOR_PROTO__INIT;
	t->name = arena_str(f->arena, "");
	t->has_data_type = 1;
	t->data_type = type;
	t->n_dims = list;
	t->dims = arena_array(f->arena, 1, sizeof *t->dims);
	t->dims[0] = (int64_t)n;
	t->n_float_data = type == TYPE_FLOAT ? n : 0;
	t->n_int64_data = type == TYPE_INT64 ? n : 0;
	return t;
}

static const Onnx__TensorProto *
wrap_floats(struct flat *f, bool list, size_t n, const float *x)
{
	Onnx__TensorProto *t = wrap(f, TYPE_FLOAT, list, n);

	t->float_data = (float *)x;
	return t;
}

static const Onnx__TensorProto *
wrap_ints(struct flat *f, bool list, size_t n, const int64_t *x)
{
	Onnx__TensorProto *t = wrap(f, TYPE_INT64, list, n);

	t->int64_data = (int64_t *)x;
	return t;
}

const Onnx__TensorProto *
constant_tensor(struct flat *f, const struct flat_node *n, bool *ok)
{
	struct attr_reader r;
	const Onnx__AttributeProto *a;
	const Onnx__TensorProto *t = NULL;
	bool failed = false;

	attr_begin(&r, f, n);
	if ((a = attr_get(&r, "value", 4)))
		t = a->t;
	else if ((a = attr_get(&r, "value_float", 1)))
		t = wrap_floats(f, false, 1, &a->f);
	else if ((a = attr_get(&r, "value_int", 2)))
		t = wrap_ints(f, false, 1, &a->i);
	else if ((a = attr_get(&r, "value_floats", 6)))
		t = wrap_floats(f, true, a->n_floats, a->floats);
	else if ((a = attr_get(&r, "value_ints", 7)))
		t = wrap_ints(f, true, a->n_ints, a->ints);
	else if ((a = attr_get(&r, "sparse_value", 11)) && a->sparse_tensor)
		failed = !(t = sparse_dense(f, a->sparse_tensor));
	/* strings are refused if a needed node reads them */
	attr_has(&r, "value_string");
	attr_has(&r, "value_strings");
	*ok = attr_end(&r) && !failed
		&& (t || !a || diag_at(f->diag, n->name, n->type,
		                       "attribute '%s' is empty: expected a "
		                       "tensor", flat_text(a->name)));
	return *ok ? t : NULL;
}

bool
flat_constant(struct flat *f, struct flat_node *n)
{
	bool ok;

	n->constant = constant_tensor(f, n, &ok);
	return ok;
}

const Onnx__TensorProto *
flat_tensor(const struct flat *f, int v)
{
	for (int hops = 0; v && hops < 64; hops++) {
		const struct flat_node *n;

		if (f->val[v].init)
			return f->val[v].init;
		if (f->val[v].def < 0)
			return NULL;
		n = &f->node[f->val[v].def];
		if (n->constant || *n->domain
		    || strcmp(n->type, "Identity") != 0 || n->nin != 1)
			return n->constant;
		v = n->in[0];
	}
	return NULL;
}

int64_t
flat_load(const struct flat *f, const Onnx__TensorProto *p, Val *v)
{
	struct onnx_tensor t;

	if (!p || !onnx_tensor_load(f->file, p, &t) || !t.data)
		return -1;
	*v = (Val){ .kind = V_CONST, .dt = t.dt, .shape = t.shape,
	            .data = t.data };
	return t.nelem;
}
