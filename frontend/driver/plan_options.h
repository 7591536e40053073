/* What the plan of a command line says, without code or reports. */
#ifndef FRONTEND_DRIVER_PLAN_OPTIONS_H
#define FRONTEND_DRIVER_PLAN_OPTIONS_H

#include "frontend/driver/opts.h"
#include "passes/auto/auto.h"
#include "passes/cost/cost.h"
#include "passes/pass.h"

/* Load and plan the model, for a child process: memory and files that this
 * takes stay.  c: plan_only, quiet; device: NULL for the default; flops: fill
 * the members of *to that count FLOPs. */
void plan_options(struct cli *c, const struct device_profile *device,
                  bool flops, const volatile sig_atomic_t *stop,
                  struct auto_plan *to);
/* What the finished pipeline says; without a plan, why there is none. */
void measure_plan(const Pass *, bool flops, struct auto_plan *to);

#endif
