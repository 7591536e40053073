/* The C compiler. */
#ifndef CODEGEN_CC_H
#define CODEGEN_CC_H

#include "ir/base/arena.h"
#include "ir/base/diag.h"

struct codegen_options;

/* Run the C compiler in dir on model.c, giving model.so there. */
bool cc_run(const char *dir, const struct codegen_options *, Arena *, Diag *);
/* The flags, for the head comment. */
const char *cc_flags(const struct codegen_options *, Arena *);

#endif
