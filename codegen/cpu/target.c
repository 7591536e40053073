/* The CPU as passes see it, and its kernels by op. */
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/tile.h"

static int64_t
cpu_classifier_rows(int64_t rows, int64_t classes, bool half)
{
	(void)half;             /* logits are float32 */
	return tile_classifier_rows(rows, classes, 0);
}

const struct target target_cpu = {
	.name = "cpu", .align = 64,
	.fuses = FUSE_CLASSIFIER | FUSE_PACKED | FUSE_ACCUMULATE
	         | FUSE_PRETRANSPOSED,
	.workspace = tile_workspace, .classifier_rows = cpu_classifier_rows,
};

/* ---- what rules ask ---- */

static const char *
cpu_operand(const struct emit *e, const Val *v, int at, bool constant)
{
	(void)v;
	(void)constant;
	return arena_printf(e->arena, "p[%d]", at);
}

/* Others are staged. */
static bool
cpu_takes(DType dt)
{
	return dt == DT_F32;
}

static void
cpu_work_items(struct emit *e, int64_t count, bool shared)
{
	if (shared && count > 1)
		out_line(e->out, "#pragma omp parallel for "
		         "num_threads(env->threads)");
	out_line(e->out, "for (int64_t t = 0; t < %lld; t++) {",
	         (long long)count);
}

static const char *
cpu_attention_kernel(const struct emit *e, const Val *q, const Val *v)
{
	(void)e;
	(void)q;
	(void)v;
	return "";
}

static void
cpu_attention(struct emit *e, const Node *n, const Val *q, const Val *k)
{
	out_line(e->out, ".rows = %lld, .ld = %lld, .workspace = %lld,",
	         (long long)tile_attention_rows(q->shape.dim[2]),
	         (long long)((k->shape.dim[2] + 15) / 16 * 16),
	         (long long)tile_attention(e->g, n));
}

/* Offset of a row converted to float32 in workspace: after the partial sums. */
static void
cpu_norm(struct emit *e, const Node *n, bool grad)
{
	if (!tile_is_mixed(e->g, n))
		out_line(e->out, "\tNULL");
	else
		out_line(e->out, "\t(float *)p[%d] + %lld", emit_workspace(n),
		         grad ? (long long)tile_norm_parts(e->g, n) : 0LL);
}

static void
cpu_norm_grad(struct emit *e, const Node *n, int64_t rows)
{
	(void)n;
	out_line(e->out, "              %lld,",
	         (long long)tile_part_rows(rows));
}

/* ---- kernels ---- */

static EmitRule *const rule[OP_COUNT] = {
#define EMIT(cpu, work) emit_##cpu
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = emit,
#include "ir/ops.h"
};

/* its workspace is on the stack */
#define work_batchnorm work_none

WorkRule *const work_rule[OP_COUNT] = {
#define EMIT(cpu, work) work_##work
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = emit,
#include "ir/ops.h"
};

static bool
cpu_emit(struct emit *e, const Node *n)
{
	return (tile_staged(e->g, n) ? emit_staged : rule[n->op])(e, n);
}

bool
cpu_emit_plain(struct emit *e, const Node *n)
{
	return rule[n->op](e, n);
}

static void
cpu_function(struct out *o, const struct emit *e, const char *name,
         const char *body)
{
	(void)e;
	out_put(o, "\nvoid\n%s(void *const *p, const int64_t *c, "
	        "struct ckr_env *env)\n{\n\t(void)p, (void)c, (void)env;\n"
	        "%s}\n", name, body);
}

static const struct target_text texts[] = {
	{ ~0u, "half.h" },
	{ ~0u, "sums.h" },
	{ NEED_RANDOM, "words.h" },
	{ NEED_ROWS, "rows.h" },
	{ NEED_NORM, "norm.h" },
	{ NEED_DET, "det.h" },
	{ NEED_INDEX, "index.h" },
	{ NEED_SHARD, "shard.h" },
	{ NEED_REDUCE, "reduce.h" },
	{ NEED_GEMM, "gemm.h" },
	{ NEED_TILES, "tiles.h" },
	{ NEED_ATTENTION, "attention.h" },
	{ NEED_ATTENTION_GRAD, "attention_grad.h" },
	{ NEED_CLASSIFIER, "classifier.h" },
	{ NEED_UPDATE, "update.h" },
	{ NEED_ADAFACTOR, "adafactor.h" },
	{ NEED_CONV, "conv.h" },
	{ NEED_DEPTHWISE, "thin.h" },
	{ NEED_BLOCKED, "conv_blocks.h" },
	{ NEED_BATCHNORM, "batchnorm.h" },
	{ NEED_POOL, "pool.h" },
	{ NEED_SAMPLE, "sample.h" },
	{ 0 },
};

const struct target_emitter emitter_cpu = {
	.target = &target_cpu, .kernels = "kernels.c",
	.jobs = "blocked", .job_text = "conv_blocks.h", .emit = cpu_emit,
	.function = cpu_function, .texts = texts, .command = cpu_command,
	.operand = cpu_operand, .loops_operands = true, .takes = cpu_takes,
	.nest = cpu_nest,
	.work_items = cpu_work_items, .attention = cpu_attention,
	.attention_kernel = cpu_attention_kernel,
	.norm = cpu_norm, .norm_grad = cpu_norm_grad,
};
