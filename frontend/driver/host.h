/* --device host: a profile of this machine, measured once and cached. */
#ifndef FRONTEND_DRIVER_HOST_H
#define FRONTEND_DRIVER_HOST_H

#include "frontend/driver/opts.h"
#include "passes/cost/cost.h"

/* host.ck, embedded at build time. */
extern const char model_host[];

/* Set the graph's device from --device, if given.  False after a diagnostic. */
bool device_set(const struct cli *, Graph *, struct watch *, Arena *, Diag *);

/* Path of ckrun: beside this ckc, else found in PATH. */
const char *host_runner(Arena *);

#endif
