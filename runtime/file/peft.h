/* adapter_config.json of PEFT: which modules have an adapter, and its scale. */
#ifndef RUNTIME_FILE_PEFT_H
#define RUNTIME_FILE_PEFT_H

#include "runtime/base/err.h"

/* Where it is for a file of adapters; NULL: no memory.  Caller frees. */
char *peft_config_path(const char *adapters);
/* Bytes of a weight's name that are its module's: "a.b" of "a.b.weight"; of a
 * name without a dot all. */
size_t peft_module(const char *weight);
bool peft_same_module(const char *weight, const char *other);
/* What it has n adapters scaled by, of the weights called so; *there: there is
 * such a file. */
ckr_status peft_scales(const char *adapters, const char *const *weight,
                       size_t n, double *scale, bool *there, struct err *);

#endif
