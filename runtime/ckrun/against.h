/* ckrun A.so --against B.so: two libraries of one model take the same steps
 * from the same parameters, and differences are reported. */
#ifndef CKRUN_AGAINST_H
#define CKRUN_AGAINST_H

#include "runtime/ckrun/ckrun_options.h"

/* Exit status: DONE if all is within the tolerance. */
int against_run(struct ckrun_options *);

#endif
