/* The command line of the C compiler. */
#include "codegen/cpu/cpu.h"

/* -fno-trapping-math only says that nobody looks at the floating-point
 * exception flags; results stay IEEE's. */
static const char *const fixed[] = {
	"-std=c11", "-O2", "-ffp-contract=off", "-fno-math-errno",
	"-fno-trapping-math", "-fwrapv", "-fopenmp", "-fPIC",
	"-fvisibility=hidden",
#ifdef __x86_64__
	/* some compilers shy away from AVX-512 where it is twice as fast */
	"-mprefer-vector-width=512",
#endif
	NULL
};

static const char *const strict[] = { "-Wall", "-Wextra", "-Werror", NULL };

const struct compiler compiler_cpu = {
	.what = "C compiler",
	.remedy = "try: apt-get install gcc libc6-dev, or --cc COMMAND",
	.arch = "-march=", .fixed = fixed, .strict = strict,
};
