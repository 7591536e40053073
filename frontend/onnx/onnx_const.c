/* Contents of --const files: a TensorProto or a .npy file. */
#include "frontend/onnx/onnx_file.h"

#include <string.h>

/* The header of an .npy file is a Python dictionary; NULL if key is not in
 * it, else the text after the colon. */
static const char *
npy_key(const char *header, const char *key)
{
	const char *s = strstr(header, key);

	if (!s || !(s = strchr(s, ':')))
		return NULL;
	return s + 1 + strspn(s + 1, " ");
}

static bool
load_npy(struct onnx_file *f, const unsigned char *p, size_t n,
         struct onnx_tensor *t)
{
	static const struct { const char *text; DType dt; } types[] = {
		{ "'<f4'", DT_F32 }, { "'<f8'", DT_F64 }, { "'<f2'", DT_F16 },
		{ "'<i8'", DT_I64 }, { "'<i4'", DT_I32 }, { "'<i2'", DT_I16 },
		{ "'|i1'", DT_I8 }, { "'<u8'", DT_U64 }, { "'<u4'", DT_U32 },
		{ "'<u2'", DT_U16 }, { "'|u1'", DT_U8 }, { "'|b1'", DT_BOOL },
	};
	size_t head, start = n >= 12 && p[6] >= 2 ? 12 : 10;
	const char *text, *s;

	if (n < 12)
		return diag_error(f->diag, "not a whole .npy file");
	head = p[6] >= 2 ? (size_t)p[8] | (size_t)p[9] << 8
		| (size_t)p[10] << 16 | (size_t)p[11] << 24
		: (size_t)p[8] | (size_t)p[9] << 8;
	if (head > n - start || head > 65536)
		return diag_error(f->diag, "not a whole .npy file");
	text = arena_printf(f->arena, "%.*s", (int)head,
	                    (const char *)p + start);
	s = npy_key(text, "'descr'");
	for (size_t i = 0; s && i < sizeof types / sizeof *types; i++)
		if (strncmp(s, types[i].text, 5) == 0)
			t->dt = types[i].dt;
	if (t->dt == DT_NONE)
		return diag_error(f->diag, ".npy file has an element type that "
		                  "is not supported");
	s = npy_key(text, "'fortran_order'");
	if (!s || strncmp(s, "False", 5) != 0)
		return diag_error(f->diag, ".npy file is in Fortran order");
	s = npy_key(text, "'shape'");
	if (!s || *s++ != '(')
		return diag_error(f->diag, ".npy file without a shape");
	t->nelem = 1;
	while (*s >= '0' && *s <= '9') {
		int64_t d = 0;

		for (; *s >= '0' && *s <= '9'; s++)
			if (!mul_ok(d, 10, &d) || !add_ok(d, *s - '0', &d))
				return diag_error(f->diag, "extent too large");
		if (t->shape.rank == MAX_RANK
		    || !mul_ok(t->nelem, d, &t->nelem))
			return diag_error(f->diag, "shape too large");
		t->shape.dim[t->shape.rank++] = d;
		s += strspn(s, ", ");
	}
	if (!mul_ok(t->nelem, dtype_info[t->dt].nbytes, &t->nbytes)
	    || (uint64_t)t->nbytes != n - start - head)
		return diag_error(f->diag, ".npy file has %zu bytes of data, "
		                  "its shape needs %jd", n - start - head,
		                  (intmax_t)t->nbytes);
	t->data = p + start + head;
	return true;
}

static bool
load_const(struct onnx_file *f, const unsigned char *p, size_t n,
           struct onnx_tensor *t)
{
	struct wire w;
	Onnx__TensorProto *proto;

	if (n >= 6 && memcmp(p, "\x93NUMPY", 6) == 0)
		return load_npy(f, p, n, t);
	if (!wire_strip(f->arena, f->diag, WIRE_TENSOR, p, n, &w))
		return false;
	proto = onnx_unpack(f, &onnx__tensor_proto__descriptor, &w);
	if (!proto || !onnx_tensor_load_from(f, &w, p, proto, t))
		return false;
	if (t->external)
		return diag_error(f->diag, "external data is not read from a "
		                  "--const file");
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
