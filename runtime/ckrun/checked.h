/* What --check found, over all steps. */
#ifndef CKRUN_CHECKED_H
#define CKRUN_CHECKED_H

#include "runtime/ckr.h"

/* Another step: tensors are added up, of differences the largest remains. */
void checked_add(struct ckr_checked *, const struct ckr_checked *step);
void checked_print(const struct ckr_checked *);

#endif
