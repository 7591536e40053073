/* Scratch that kernels ask for on a GPU: one rule per name in the work column
 * of ops.h.  Shapes alone decide.
 */
#include "codegen/cuda/cuda.h"

enum {
	ALIGN = 256,
	GEMM_BYTES = 32 << 20,          /* that the library makes use of */
};

static int64_t
bytes(int64_t n, int64_t size)
{
	int64_t all;

	if (n < 0 || !mul_ok(n, size, &all) || all > INT64_MAX / 4)
		return -1;
	return (all + ALIGN - 1) / ALIGN * ALIGN;
}

static int64_t
work_none(const Graph *g, const Node *n)
{
	(void)g;
	(void)n;
	return 0;
}

/* Room for four parts of a sum cut along k. */
static int64_t
work_matmul(const Graph *g, const Node *n)
{
	int64_t all = bytes(shape_nelem(&g->val[n->out[0]].shape), 16);

	return all < 0 || all > GEMM_BYTES ? GEMM_BYTES : all;
}

/* The places of the best so far, of every line. */
static int64_t
work_topk(const Graph *g, const Node *n)
{
	const Shape *s = &g->val[n->in[0]].shape;
	int64_t axis = n->attr.TOPK.axis, lines = 1;

	axis += axis < 0 ? s->rank : 0;
	for (int i = 0; i < s->rank; i++)
		lines *= i == axis ? 1 : s->dim[i];
	return bytes(lines * n->attr.TOPK.k, 8);
}

#define work_norm work_none
#define work_norm_grad work_none
#define work_det work_none
#define work_conv work_none
#define work_batchnorm work_none
#define work_classifier work_none
#define work_attention work_none
#define work_adafactor work_none

typedef int64_t WorkRule(const Graph *, const Node *);

static WorkRule *const rule[OP_COUNT] = {
#define EMIT(cpu, work) work_##work
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = emit,
#include "ir/ops.h"
};

int64_t
cuda_workspace(const Graph *g, const Node *n, int threads)
{
	(void)threads;
	return rule[n->op](g, n);
}
