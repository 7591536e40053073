/* A compiler and its arguments. */
#ifndef CODEGEN_CC_H
#define CODEGEN_CC_H

#include <signal.h>

#include "ir/base/arena.h"
#include "ir/base/diag.h"

enum { CC_ARGS = 128 };

struct command {
	const char *what;               /* "C compiler", for messages */
	const char *remedy;             /* advice if it is not installed */
	const char *makes;              /* file that it writes */
	const char *argv[CC_ARGS + 1];
	int n;
	int given;                      /* the first of these are the user's */
};

/* A compiler of generated code. */
struct compiler {
	const char *what, *remedy;      /* as in struct command */
	const char *arch;               /* "-march=", before the architecture;
	                                 * NULL: there is none */
	const char *const *fixed;       /* arguments, up to NULL */
	const char *const *strict;      /* warnings are errors; without, -w */
};

/* A command that begins with the program and its first arguments (words, split
 * on blanks), and goes on with the compiler's. */
struct command cc_command(const struct compiler *, const char *words,
                          const char *arch, bool strict, Arena *);
/* Add an argument; does nothing if the command has no program. */
void cc_add(struct command *, const char *arg);
/* The command line, for the comment at the head of generated files. */
const char *cc_text(const struct command *, Arena *);
/* Run n commands in dir, in this order, as many at a time as there are
 * processors.  The first failure is reported and ends the others; so does
 * *stop, unless stop is NULL. */
bool cc_run(const char *dir, struct command *, int n,
            const volatile sig_atomic_t *stop, Arena *, Diag *);

#endif
