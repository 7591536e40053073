/* The command line of nvcc. */
#include "codegen/cuda/cuda.h"

#include <string.h>

/* --fmad=false: an operation contracted here and not there would give a value
 * that is recomputed other bits. */
static const char *const fixed[] = {
	"-std=c++20", "-O3", "--fmad=false", "-cudart=static",
	"-Xcompiler=-fPIC,-fvisibility=hidden,-O2",
	"-Xlinker=--as-needed", NULL
};

static const char *const strict[] = { "-Werror=all-warnings", NULL };

const struct compiler compiler_cuda = {
	.what = "CUDA compiler",
	.remedy = "install NVIDIA's CUDA Toolkit, or name its nvcc with "
	          "--nvcc",
	.arch = "-arch=", .fixed = fixed, .strict = strict,
};

bool
cuda_is_arch(const char *arg)
{
	size_t n = strncmp(arg, "sm_", 3) ? 0 : strspn(arg + 3, "0123456789");

	return n >= 2 && n <= 3 && strlen(arg + 3 + n) <= 1
		&& strspn(arg + 3 + n, "af") == strlen(arg + 3 + n);
}
