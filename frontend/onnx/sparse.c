/* Convert sparse tensors to dense.  Elements are listed by linear index or by
 * coordinates; all others are zero. */
#include "frontend/onnx/flat.h"

#include <string.h>

/* Most bytes; a larger tensor is taken for a mistake. */
enum { DENSE_MAX = 256 << 20 };

static bool
wrong(struct flat *f, const char *name, const char *what)
{
	return diag_error(f->diag, "sparse tensor '%s': %s", name, what);
}

/* Position of element i; false if it lies outside. */
static bool
linear_index(const struct onnx_tensor *idx, const Shape *s, int64_t i,
             int64_t nelem, int64_t *at)
{
	const char *data = idx->data;
	int64_t k;

	*at = 0;
	if (idx->shape.rank == 1) {
		memcpy(at, data + 8 * i, 8);
		return *at >= 0 && *at < nelem;
	}
	for (int d = 0; d < s->rank; d++) {
		memcpy(&k, data + 8 * (i * s->rank + d), 8);
		if (k < 0 || k >= s->dim[d])
			return false;
		*at = *at * s->dim[d] + k;
	}
	return true;
}

static bool
check_parts(struct flat *f, const char *name, const struct onnx_tensor *val,
            const struct onnx_tensor *idx, const Shape *s)
{
	bool flat = idx->shape.rank == 1;

	if (val->shape.rank != 1 || idx->dt != DT_I64 || idx->shape.rank < 1
	    || idx->shape.rank > 2 || idx->shape.dim[0] != val->nelem
	    || (!flat && idx->shape.dim[1] != s->rank))
		return wrong(f, name, "indices and values do not match");
	if (!val->data || !idx->data)
		return wrong(f, name, "external data is not supported");
	return true;
}

const Onnx__TensorProto *
sparse_dense(struct flat *f, const Onnx__SparseTensorProto *p)
{
	struct onnx_tensor val, idx;
	Onnx__TensorProto *t = arena_alloc(f->arena, sizeof *t);
	Onnx__TensorProto shape = ONNX__TENSOR_PROTO__INIT;
	const char *name = p->values && p->values->name ? p->values->name : "";
	struct onnx_tensor all;
	int64_t at;
	int size;

	if (!p->values || !p->indices) {
		wrong(f, name, "values or indices are missing");
		return NULL;
	}
	if (!onnx_tensor_load(f->file, p->values, &val)
	    || !onnx_tensor_load(f->file, p->indices, &idx))
		return NULL;
	shape.name = p->values->name;
	shape.has_data_type = 1;
	shape.data_type = p->values->data_type;
	shape.n_dims = p->n_dims;
	shape.dims = p->dims;
	if (!onnx_tensor_info(f->file, &shape, &all))
		return NULL;
	if (all.nbytes > DENSE_MAX) {
		wrong(f, name, "more than 256 MiB when dense");
		return NULL;
	}
	if (!check_parts(f, name, &val, &idx, &all.shape))
		return NULL;
	size = dtype_info[val.dt].nbytes;
	shape.has_raw_data = 1;
	shape.raw_data.len = (size_t)all.nbytes;
	shape.raw_data.data = arena_alloc(f->file->arena,
	                                  (size_t)all.nbytes + 1);
	for (int64_t i = 0; i < val.nelem; i++) {
		if (!linear_index(&idx, &all.shape, i, all.nelem, &at)) {
			wrong(f, name, "an index is out of range");
			return NULL;
		}
		memcpy(shape.raw_data.data + at * size,
		       (const char *)val.data + i * size, (size_t)size);
	}
	*t = shape;
	return t;
}
