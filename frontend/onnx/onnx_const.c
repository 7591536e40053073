/* Contents of --const files: a TensorProto or a .npy file. */
#include "frontend/onnx/onnx_file.h"
#include "runtime/support/npy.h"

#include <string.h>

static bool
load_npy(struct onnx_file *f, const unsigned char *p, size_t n,
         struct onnx_tensor *t)
{
	size_t start, head, left;
	struct npy x;
	char *text;

	if (n < NPY_HEAD || !npy_place(p, &start, &head)
	    || head > n - start || head > NPY_TEXT_MAX)
		return diag_error(f->diag, "the .npy file is truncated or "
		                  "invalid");
	left = n - start - head;
	text = arena_alloc(f->arena, head + 1);
	memcpy(text, p + start, head);
	if (!npy_parse(&x, text, head))
		return diag_error(f->diag, "%s", x.fault);
	t->dt = (DType)x.dtype;
	t->shape.rank = x.rank;
	t->nelem = 1;
	for (int i = 0; i < x.rank; i++) {
		t->shape.dim[i] = x.dim[i];
		if (!mul_ok(t->nelem, x.dim[i], &t->nelem))
			return diag_error(f->diag, "the shape is too large");
	}
	if (!mul_ok(t->nelem, dtype_info[t->dt].nbytes, &t->nbytes)
	    || (uint64_t)t->nbytes != left)
		return diag_error(f->diag, "the .npy file has %zu bytes of "
		                  "data, but its shape needs %jd", left,
		                  (intmax_t)t->nbytes);
	t->data = p + start + head;
	return true;
}

static bool
load_const(struct onnx_file *f, const unsigned char *p, size_t n,
           struct onnx_tensor *t)
{
	struct wire_summary w;
	Onnx__TensorProto *proto;

	if (n >= 6 && memcmp(p, "\x93NUMPY", 6) == 0)
		return load_npy(f, p, n, t);
	if (!wire_strip(f->arena, f->diag, WIRE_TENSOR, p, n, &w))
		return false;
	proto = onnx_unpack(f, &onnx__tensor_proto__descriptor, &w);
	if (!proto || !onnx_tensor_load_from(f, &w, p, proto, t))
		return false;
	if (t->external)
		return diag_error(f->diag, "external data is not supported in "
		                  "a --const file");
	return true;
}

bool
onnx_const_file(struct onnx_file *f, const char *path, struct onnx_tensor *t)
{
	struct onnx_map *m;
	bool ok;

	*t = (struct onnx_tensor){ .name = path };
	diag_file(f->diag, path);
	ok = onnx_map_path(f, path, "the file", &m)
		&& load_const(f, m->data, m->n, t);
	diag_file(f->diag, f->path);
	return ok;
}
