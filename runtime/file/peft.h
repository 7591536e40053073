/* adapter_config.json of PEFT: which modules have an adapter, and its scale. */
#ifndef RUNTIME_FILE_PEFT_H
#define RUNTIME_FILE_PEFT_H

#include "runtime/base/err.h"

/* Path of the configuration of a file of adapters; NULL: no memory.  Caller
 * frees. */
char *peft_config_path(const char *adapters);
/* Length of the module's name in a weight's name: "a.b" of "a.b.weight"; the
 * whole length if there is no dot. */
size_t peft_module(const char *weight);
bool peft_same_module(const char *weight, const char *other);
/* The scales that the configuration has for the adapters of n named weights;
 * *there: the file exists. */
ckr_status peft_scales(const char *adapters, const char *const *weight,
                       size_t n, double *scale, bool *there, struct err *);

#endif
