/* All passes on a graph, without code. */
#ifndef TESTS_FUZZ_PLAN_H
#define TESTS_FUZZ_PLAN_H

#include "passes/passes.h"

/* As the command line has them without options, but for small limits. */
struct options plan_options(void);
/* The passes named (NULL: all), and the plan written out; false after a
 * diagnostic.  The graph stays the caller's. */
bool plan_all(Graph *, const struct options *, const char *passes, Diag *);

#endif
