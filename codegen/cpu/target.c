/* The CPU as passes and rules see it. */
#include "codegen/cpu/conv_tile.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/tile.h"

/* Of two in bytes; -1: too many. */
static int64_t
larger_workspace(int64_t a, int64_t b)
{
	return a < 0 || b < 0 ? -1 : larger(a, b);
}

static int64_t
cpu_workspace(const Graph *g, const Node *n, int threads)
{
	if (threads < 1)
		threads = 1;
	if (!staging_needed(g, n))
		return rule_workspace(cpu_op, g, n, threads);
	if (!conv_takes_bf16(g, n))
		return staging_bytes(g, n, threads);
	return larger_workspace(staging_bytes(g, n, threads),
	                        rule_workspace(cpu_op, g, n, threads));
}

static int64_t
cpu_classifier_rows(int64_t rows, int64_t classes, bool half)
{
	(void)half;             /* logits are float32 */
	return tile_classifier_rows(rows, classes, 0);
}

const struct target target_cpu = {
	.align = 64,
	.fuses = FUSE_CLASSIFIER | FUSE_PACKED | FUSE_ACCUMULATE | FUSE_FROZEN
	         | FUSE_PRETRANSPOSED | FUSE_EXPERTS,
	.workspace = cpu_workspace, .classifier_rows = cpu_classifier_rows,
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

static void
cpu_attention(struct emit *e, const Node *n, const Val *q, const Val *k)
{
	EMIT_MEMBERS(e, "rows ld workspace",
	             tile_attention_rows(q->shape.dim[2]),
	             (k->shape.dim[2] + 15) / 16 * 16, tile_attention(e->g, n));
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

static bool
cpu_emit(struct emit *e, const Node *n)
{
	bool ok;

	if (!staging_needed(e->g, n))
		return emit_node(e, n);
	if (!conv_takes_bf16(e->g, n))
		return staging_emit(e, n);
	out_line(e->out, "if (env->bgemm) {");
	ok = emit_node(e, n);
	out_line(e->out, "} else {");
	e->without_units = true;
	ok = ok && staging_emit(e, n);
	e->without_units = false;
	out_line(e->out, "}");
	return ok;
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

const char *const cpu_texts[] = { "half.h", "sums.h", NULL };

const struct target_emitter emitter_cpu = {
	.op = cpu_op, .kernels = "kernels.c", .texts = cpu_texts,
	.prefix = "", .suffix = ".h",
	.jobs = "blocked", .job_text = "conv_blocks.h", .emit = cpu_emit,
	.function = cpu_function, .loops_operands = true,
	.operand = cpu_operand, .takes = cpu_takes, .nest = cpu_nest,
	.work_items = cpu_work_items, .product = cpu_product,
	.reduce = cpu_reduce, .attention = cpu_attention, .norm = cpu_norm,
	.norm_grad = cpu_norm_grad,
};
