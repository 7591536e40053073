/* --device host: this machine, measured once and kept. */
#ifndef FRONTEND_HOST_H
#define FRONTEND_HOST_H

#include "frontend/opts.h"
#include "passes/cost.h"

/* host.ck, embedded at build time. */
extern const char model_host[];

/* The profile of this machine with as many threads as the options allow.
 * NULL after a diagnostic. */
const struct device *host_device(const struct cli *, Arena *, Diag *);

#endif
