/* Which heads the kernels on tensor cores take. */
#include "codegen/cuda/cuda.h"

int
cuda_attention_columns(const Val *q, const Val *k, const Val *v)
{
	(void)q;
	(void)k;
	(void)v;
	return 0;
}
