/* The command line of nvcc. */
#include "codegen/cc.h"
#include "codegen/codegen.h"
#include "codegen/cuda/cuda.h"

/* --fmad=false: an operation contracted here and not there would give a value
 * that is recomputed other bits. */
static const char *const fixed[] = {
	"-std=c++20", "-O3", "--fmad=false", "-cudart=static",
	"-Xcompiler=-fPIC,-fvisibility=hidden,-O2",
	"-Xlinker=--as-needed",
};

void
cuda_command(struct command *c, const struct codegen_options *opt, Arena *a)
{
	c->what = "CUDA compiler";
	c->remedy = "install NVIDIA's CUDA Toolkit, or name its nvcc with "
	            "--nvcc";
	cc_program(c, opt->nvcc && *opt->nvcc ? opt->nvcc : "nvcc", a);
	cc_add(c, arena_printf(a, "-arch=%s", opt->arch));
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		cc_add(c, fixed[i]);
	cc_add(c, opt->werror ? "-Werror=all-warnings" : "-w");
}
