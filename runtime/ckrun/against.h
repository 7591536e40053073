/* ckrun A.so --against B.so: runs the same steps in two libraries of one model,
 * from the same parameters, and reports differences. */
#ifndef RUNTIME_CKRUN_AGAINST_H
#define RUNTIME_CKRUN_AGAINST_H

#include "runtime/ckrun/ckrun_options.h"

/* Exit status: DONE if all is within the tolerance. */
int against_run(struct ckrun_options *);

#endif
