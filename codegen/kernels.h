/* The distinct kernels of a library's programs. */
#ifndef CODEGEN_KERNELS_H
#define CODEGEN_KERNELS_H

#include "codegen/rules/emit.h"

struct kernel {
	Op op;
	const char *body, *name;
	struct out text;
};

struct kernels {
	struct kernel *v;
	size_t n, cap;
};

/* Emit the steps of a program; sets its kernels and their constants.  False
 * after a diagnostic. */
bool kernels_add_program(struct kernels *, struct emit *,
                         struct emitted_program *);
/* Print the kernels in the order of their names: no text here depends on the
 * order of steps. */
void kernels_print(struct out *, struct kernels *, const struct emit *);

#endif
