/* The CPU as passes see it, and its kernels by op. */
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/texts.h"
#include "codegen/cpu/tile.h"

static int64_t
classifier_rows(int64_t rows, int64_t classes)
{
	return tile_classifier_rows(rows, classes, 0);
}

const struct target target_cpu = {
	.name = "cpu", .align = 64,
	.fuses = FUSE_CLASSIFIER | FUSE_PACKED | FUSE_ACCUMULATE,
	.workspace = tile_workspace, .classifier_rows = classifier_rows,
};

static EmitRule *const rule[OP_COUNT] = {
#define EMIT(cpu, work) emit_##cpu
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = emit,
#include "ir/ops.h"
};

WorkRule *const work_rule[OP_COUNT] = {
#define EMIT(cpu, work) work_##work
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = emit,
#include "ir/ops.h"
};

bool
cpu_emit(struct emit *e, const Node *n)
{
	return (tile_staged(e->g, n) ? emit_staged : rule[n->op])(e, n);
}

bool
cpu_emit_plain(struct emit *e, const Node *n)
{
	return rule[n->op](e, n);
}

void
cpu_texts(struct out *o, unsigned need)
{
	static const struct {
		unsigned need;
		const char *text;
	} part[] = {
		{ ~0u, codegen_text_half },
		{ NEED_RANDOM | NEED_ATTENTION | NEED_HALF_UPDATE,
		  codegen_text_random },
		{ NEED_ROWS | NEED_SHARD | NEED_CLASSIFIER, codegen_text_rows },
		{ NEED_NORM, codegen_text_norm },
		{ NEED_DET, codegen_text_det },
		{ NEED_INDEX | NEED_SHARD, codegen_text_index },
		{ NEED_SHARD, codegen_text_shard },
		{ NEED_REDUCE, codegen_text_reduce },
		{ NEED_GEMM | NEED_CLASSIFIER, codegen_text_gemm },
		{ NEED_ATTENTION, codegen_text_attention },
		{ NEED_CLASSIFIER, codegen_text_classifier },
		{ NEED_UPDATE | NEED_HALF_UPDATE, codegen_text_update },
		{ NEED_HALF_UPDATE, codegen_text_half_update },
		{ NEED_ADAFACTOR, codegen_text_adafactor },
		{ NEED_CONV, codegen_text_conv },
		{ NEED_CONV, codegen_text_thin },
		{ NEED_BLOCKS, codegen_text_blocks },
		{ NEED_BLOCKS, codegen_text_conv_blocks },
		{ NEED_BATCHNORM, codegen_text_batchnorm },
		{ NEED_POOL, codegen_text_pool },
		{ NEED_SAMPLE, codegen_text_sample },
	};

	out_put(o, "\n%s\n"
	        "#ifdef __clang__   /* helpers that this model does not use;\n"
	        "                    * loops that gcc alone vectorises */\n"
	        "#pragma clang diagnostic ignored \"-Wpass-failed\"\n"
	        "#pragma clang diagnostic ignored \"-Wunused-function\"\n"
	        "#endif\n\n%s", codegen_text_ckr_abi, codegen_text_math);
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (need & part[i].need)
			out_put(o, "\n%s", part[i].text);
}

