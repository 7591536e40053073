/* The attention heads that the tensor-core kernels support. */
#include "codegen/cuda/cuda.h"

/* Rows are counted in 32 bits, a tile beyond the last. */
enum { SMALL = 64, LARGE = 128, MOST_ROWS = INT32_MAX - 1024 };

int
cuda_attention_columns(const Val *q, const Val *v)
{
	int64_t wide = q->shape.dim[3];

	if (v->shape.dim[3] > wide)
		wide = v->shape.dim[3];
	if (!dtype_is_half(q->dt) || q->shape.dim[2] > MOST_ROWS
	    || v->shape.dim[2] > MOST_ROWS)
		return 0;
	return wide <= SMALL ? SMALL : wide <= LARGE ? LARGE : 0;
}
