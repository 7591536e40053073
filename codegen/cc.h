/* A compiler and its arguments. */
#ifndef CODEGEN_CC_H
#define CODEGEN_CC_H

#include <signal.h>

#include "ir/base/arena.h"
#include "ir/base/diag.h"

enum { CC_ARGS = 128 };

struct command {
	const char *what;               /* "C compiler" */
	const char *remedy;             /* if it is not there */
	const char *makes;              /* a file */
	const char *argv[CC_ARGS + 1];
	int n;
};

/* The program and its fixed arguments: words, split on blanks. */
void cc_program(struct command *, const char *words, Arena *);
/* Nothing if there is no program. */
void cc_add(struct command *, const char *arg);
/* The words, for the head comment. */
const char *cc_text(const struct command *, Arena *);
/* Run n commands in dir, as many at a time as there are processors, in this
 * order.  The first that fails is diagnosed and ends the others, and so does
 * *stop when it is set; NULL: never. */
bool cc_run(const char *dir, struct command *, int n,
            const volatile sig_atomic_t *stop, Arena *, Diag *);

#endif
