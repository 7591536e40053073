/* The command line of the C compiler. */
#include "codegen/cc.h"
#include "codegen/codegen.h"
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
};

void
cpu_command(struct command *c, const struct codegen_options *opt, Arena *a)
{
	c->what = "C compiler";
	c->remedy = "install gcc or clang, or name one with --cc";
	cc_program(c, opt->cc && *opt->cc ? opt->cc : "cc", a);
	cc_add(c, arena_printf(a, "-march=%s",
	                       opt->march ? opt->march : "native"));
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		cc_add(c, fixed[i]);
	cc_add(c, opt->werror ? "-Wall" : "-w");
	if (opt->werror) {
		cc_add(c, "-Wextra");
		cc_add(c, "-Werror");
	}
}
