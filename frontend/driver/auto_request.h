/* What the options of --auto ask for. */
#ifndef FRONTEND_DRIVER_AUTO_REQUEST_H
#define FRONTEND_DRIVER_AUTO_REQUEST_H

#include "frontend/driver/opts.h"
#include "passes/auto/auto.h"
#include "passes/cost/cost.h"

/* Fill *r for this model, as it was imported, and device (NULL: the default).
 * False after a diagnostic. */
bool auto_request(const struct cli *, const Graph *,
                  struct auto_request *r, Arena *, Diag *);
/* Whether replicas may share experts; of a graph after pass loss. */
void auto_take_experts(const struct cli *, const Graph *,
                       struct auto_request *);
/* Samples of a micro-batch, -1 if unknown; *name: what --dim gives them by,
 * NULL if it does not. */
int64_t auto_batch(const struct options *, const Graph *, const char **name,
                   Arena *);
/* The options under which a configuration is planned, within the budget or
 * without one. */
struct options auto_configured(const struct cli *, const struct auto_request *,
                               const struct auto_config *, bool budget,
                               Arena *);
/* The command line without what --auto searches, and with a configuration:
 * arguments of ckc from argv[1] on; how many. */
int auto_arguments(const struct cli *, const struct auto_request *,
                   const struct auto_config *, const char *out,
                   const char ***argument, Arena *);

#endif
