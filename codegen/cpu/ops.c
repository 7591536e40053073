/* Ops on the CPU: rules of its own, and workspace. */
#include "codegen/cpu/conv_tile.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/tile.h"

const struct op_rule cpu_op[OP_COUNT] = {
	[OP_TOPK] = { .work = work_topk },
	[OP_MATMUL] = { .work = work_matmul },
	[OP_EXPERT_MATMUL] = { cpu_expert_matmul, work_expert_matmul },
	[OP_EXPERT_DW] = { cpu_expert_dw, work_expert_dw },
	[OP_EXPERT_SLOTS] = { cpu_expert_slots, work_expert_slots },
	[OP_DET] = { .work = work_det },
	[OP_DET_GRAD] = { .work = work_det },
	[OP_LAYERNORM] = { .work = work_norm },
	[OP_LAYERNORM_GRAD] = { .work = work_norm_grad },
	[OP_RMSNORM] = { .work = work_norm },
	[OP_RMSNORM_GRAD] = { .work = work_norm_grad },
	[OP_CLASSIFIER] = { cpu_classifier, work_classifier },
	[OP_CONV] = { cpu_conv, work_conv },
	[OP_CONV_DX] = { cpu_conv_dx, work_conv },
	[OP_CONV_DW] = { cpu_conv_dw, work_conv },
	[OP_ATTENTION] = { .work = work_attention },
	[OP_ATTENTION_GRAD] = { .work = work_attention },
	[OP_ADAFACTOR] = { .work = work_adafactor },
	[OP_ADAFACTOR_SQUARES] = { .work = work_adafactor_squares },
};
