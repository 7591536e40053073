/* The table of machines with the third one's row. */
#include "codegen/cpu/cpu.h"
#include "codegen/machine.h"
#include "tests/machine/plain.h"

const struct machine machines[] = {
	{ .name = "cpu", .text = "the CPU",
	  .target = &target_cpu, .emitter = &emitter_cpu,
	  .compiler = &compiler_cpu, .option = {
		[MACHINE_COMPILER] = { .name = "cc", .arg = "CMD",
			.value = "cc", .help = "C compiler" },
		[MACHINE_ARCH] = { .name = "march", .arg = "ARCH",
			.value = "native", .help = "instruction set" } } },
	{ .name = "plain", .text = "plain C",
	  .target = &target_plain, .emitter = &emitter_plain,
	  .compiler = &compiler_plain, .option = {
		[MACHINE_COMPILER] = { .name = "plain-cc", .arg = "CMD",
			.value = "cc", .help = "with --target plain: C "
			"compiler" } } },
	{ 0 },
};
