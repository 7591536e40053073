/* Ops on a GPU: rules of its own, and the workspace of kernels, which depends
 * only on shapes. */
#include "codegen/cuda/cuda.h"

/* ORDER WORK: kernels/lines.cuh, kernels/cuda_squares.cuh */
enum {
	PARTS = 1056,                   /* of the rows of a norm's gradient */
	LOSS_PARTS = 256,
	SQUARE_TILE = 1 << 16,          /* elements */
	DET_TASKS = 1 << 14,
	BATCH_BLOCKS = 1024,
};

/* Elements of dims from .. to - 1 of operand i; -1: too many. */
static int64_t
extent_of_dims(const Graph *g, const Node *n, int i, int64_t from, int64_t to)
{
	const Shape *s = &g->val[n->in[i]].shape;
	int64_t all = 1;

	for (int64_t d = from; d < to && all >= 0; d++)
		if (!mul_ok(all, s->dim[d], &all))
			return -1;
	return all;
}

int64_t
cuda_part_rows(int64_t rows)
{
	return rows > PARTS ? (rows + PARTS - 1) / PARTS : 1;
}

/* Two sums for each part of the rows.  ORDER WORK: ckr_norm_grad_rows(). */
static int64_t
work_norm_grad(const Graph *g, const Node *n, int threads)
{
	int rank = g->val[n->in[1]].shape.rank;
	int64_t axis = n->attr.LAYERNORM_GRAD.axis, rows, width, part;

	(void)threads;
	axis += axis < 0 ? rank : 0;
	rows = extent_of_dims(g, n, 1, 0, axis);
	width = extent_of_dims(g, n, 1, axis, rank);
	if (rows < 0 || width < 0)
		return -1;
	part = cuda_part_rows(rows);
	return mul_ok((rows + part - 1) / part, 8 * width, &rows)
	     ? cuda_bytes(rows, 1) : -1;
}

/* Also the rows' log-sum-exp, if that is not an output.  ORDER WORK: ckr_sce().
 */
static int64_t
work_loss(const Graph *g, const Node *n, int threads)
{
	int64_t rows = extent_of_dims(g, n, 1, 0, g->val[n->in[1]].shape.rank);

	(void)threads;
	if (n->nout < 3 || n->out[1])
		rows = 0;
	return rows < 0 ? -1 : cuda_bytes(rows + 2 * LOSS_PARTS, 4);
}

/* Tiles of sums of squares. */
static int64_t
count_square_tiles(int64_t n)
{
	return (n + SQUARE_TILE - 1) / SQUARE_TILE;
}

static int64_t
work_squares(const Graph *g, const Node *n, int threads)
{
	int64_t all = 0;

	(void)threads;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			all += count_square_tiles(
				shape_nelem(&g->val[n->in[i]].shape));
	return cuda_bytes(all, 4);
}

/* A number per matrix of what Adafactor updates, two per tile, `more`. */
static int64_t
work_factors(const Graph *g, const Node *n, int64_t more)
{
	const Val *p = &g->val[n->in[0]];
	const Shape *s = p->shard ? &p->shard->shape : &p->shape;
	int64_t matrices = 1;

	for (int i = 0; i < s->rank - 2; i++)
		if (!mul_ok(matrices, s->dim[i], &matrices))
			return -1;
	return cuda_bytes(matrices + 2 * count_square_tiles(val_nelem(p))
	                  + more, 4);
}

/* ORDER WORK: ckr_adafactor(). */
static int64_t
work_adafactor(const Graph *g, const Node *n, int threads)
{
	(void)threads;
	return work_factors(g, n, 3);
}

/* ORDER WORK: ckr_adafactor_squares(). */
static int64_t
work_adafactor_squares(const Graph *g, const Node *n, int threads)
{
	int64_t means = 0;

	(void)threads;
	for (int k = 2; k < 4 && n->in[3]; k++)
		means += val_nelem(&g->val[n->in[k]]);
	return work_factors(g, n, means);
}

/* Three numbers per row of a gradient.  ORDER WORK: struct ckr_row_stats. */
static int64_t
work_attention_grad(const Graph *g, const Node *n, int threads)
{
	(void)threads;
	return cuda_bytes(extent_of_dims(g, n, 1, 0, 3), 12);
}

/* The places of the best so far, of every line. */
static int64_t
work_topk(const Graph *g, const Node *n, int threads)
{
	const Shape *s = &g->val[n->in[0]].shape;
	int64_t axis = n->attr.TOPK.axis, lines = 1;

	(void)threads;
	axis += axis < 0 ? s->rank : 0;
	for (int i = 0; i < s->rank; i++)
		lines *= i == axis ? 1 : s->dim[i];
	return cuda_bytes(lines * n->attr.TOPK.k, 8);
}

/* Two matrices of doubles for each thread.  ORDER CUDA: CKR_DET_TASKS */
static int64_t
work_det(const Graph *g, const Node *n, int threads)
{
	const Shape *s = &g->val[n->in[n->nin - 1]].shape;
	int64_t count = 1, size = s->dim[s->rank - 1], all;

	(void)threads;
	for (int i = 0; i < s->rank - 2; i++)
		count *= s->dim[i];
	count = count < DET_TASKS ? count : DET_TASKS;
	return mul_ok(size, size, &all) && mul_ok(all, count, &all)
		? cuda_bytes(all, 16) : -1;
}

/* Sums of parts, and what follows from them for each channel.
 * ORDER CUDA: struct ckr_batch */
static int64_t
work_batchnorm(const Graph *g, const Node *n, int threads)
{
	const Shape *s = &g->val[n->in[0]].shape;
	int64_t parts = s->dim[1] > BATCH_BLOCKS ? s->dim[1] : BATCH_BLOCKS;

	(void)threads;
	return cuda_bytes(2 * parts + 3 * s->dim[1], 4);
}

/* The result in float32, if it is not. */
static int64_t
work_sums(const Graph *g, const Node *n, int threads)
{
	const Val *y = &g->val[n->out[0]];

	(void)threads;
	return n->out[0] && dtype_is_half(y->dt)
		? cuda_bytes(shape_nelem(&y->shape), 4) : 0;
}

const struct op_rule cuda_op[OP_COUNT] = {
	[OP_TOPK] = { .work = work_topk },
	[OP_PAD] = { cuda_pad, NULL },
	[OP_REDUCE_SUM] = { .work = cuda_work_reduce },
	[OP_REDUCE_MEAN] = { .work = cuda_work_reduce },
	[OP_REDUCE_MAX] = { .work = cuda_work_reduce },
	[OP_REDUCE_MIN] = { .work = cuda_work_reduce },
	[OP_REDUCE_PROD] = { .work = cuda_work_reduce },
	[OP_MATMUL] = { .work = cuda_work_matmul },
	[OP_MATMUL_END] = { cuda_matmul_end, cuda_work_matmul },
	[OP_EXPERT_MATMUL] = { cuda_expert_matmul, cuda_work_expert_matmul },
	[OP_EXPERT_DW] = { cuda_expert_dw, cuda_work_expert_dw },
	[OP_EXPERT_SLOTS] = { cuda_expert_slots, NULL },
	[OP_DET] = { .work = work_det },
	[OP_DET_GRAD] = { .work = work_det },
	[OP_LAYERNORM_GRAD] = { .work = work_norm_grad },
	[OP_RMSNORM_GRAD] = { .work = work_norm_grad },
	[OP_SCE] = { .work = work_loss },
	[OP_NLL] = { .work = work_loss },
	[OP_CLASSIFIER] = { cuda_classifier, cuda_work_classifier },
	[OP_CONV] = { cuda_conv, cuda_work_conv },
	[OP_CONV_DX] = { cuda_conv_dx, cuda_work_conv },
	[OP_CONV_DW] = { cuda_conv_dw, cuda_work_conv },
	[OP_BATCHNORM] = { .work = work_batchnorm },
	[OP_BATCHNORM_GRAD] = { .work = work_batchnorm },
	[OP_MAXPOOL_GRAD] = { .work = work_sums },
	[OP_RESIZE] = { cuda_resize, NULL },
	[OP_GRID_SAMPLE_GRAD] = { .work = work_sums },
	[OP_ATTENTION_GRAD] = { .work = work_attention_grad },
	[OP_GRAD_NORM] = { cuda_grad_norm, work_squares },
	[OP_SUM_SQUARES] = { cuda_sum_squares, work_squares },
	[OP_ADAFACTOR] = { .work = work_adafactor },
	[OP_ADAFACTOR_SQUARES] = { .work = work_adafactor_squares },
};
