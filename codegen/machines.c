/* The table of machines. */
#include "codegen/cpu/cpu.h"
#include "codegen/cuda/cuda.h"
#include "codegen/machine.h"

const struct machine machines[] = {
	{ .name = "cpu", .text = "the CPU",
	  .target = &target_cpu, .emitter = &emitter_cpu,
	  .compiler = &compiler_cpu, .option = {
		[MACHINE_COMPILER] = { .name = "cc", .arg = "CMD",
			.value = "cc", .help = "C compiler, e.g. "
			"\"ccache gcc\" (default: cc)" },
		[MACHINE_ARCH] = { .name = "march", .arg = "ARCH",
			.value = "native", .help = "instruction set, as for "
			"the C compiler's -march (default: native)" } } },
	{ .name = "cuda", .text = "an NVIDIA GPU",
	  .target = &target_cuda, .emitter = &emitter_cuda,
	  .compiler = &compiler_cuda, .device = "H100", .option = {
		[MACHINE_COMPILER] = { .name = "nvcc", .arg = "CMD",
			.value = "nvcc", .help = "with --target cuda: CUDA "
			"compiler (default: nvcc)" },
		[MACHINE_ARCH] = { .name = "arch", .arg = "sm_NN",
			.value = "sm_90", .help = "with --target cuda: GPU "
			"architecture (default: sm_90)", .checked = true,
			.accepts = cuda_is_arch, .expected = "an NVIDIA "
			"architecture such as sm_80 or sm_90" } } },
	{ 0 },
};
