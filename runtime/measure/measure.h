/* Room measure: what steps do, seen from beside them: traces, profiles, and the
 * check of a plan against a run without recomputation.
 *
 * in      a world, steps, which it observes
 * out     a trace, a profile, the first tensor that differs
 * must not know   files of weights, evaluation
 */
#ifndef RUNTIME_MEASURE_MEASURE_H
#define RUNTIME_MEASURE_MEASURE_H

#include <stdio.h>

#include "runtime/stepping/stepping.h"

struct measure;

/* NULL: no memory. */
struct measure *measure_open(struct world *, struct stepping *);
/* Writes a trace that has begun, in a run of one process. */
void measure_close(struct measure *);

/* As the functions of ckr.h, for an open model and between steps. */
ckr_status measure_trace(struct measure *, const char *path);
ckr_status measure_profile(struct measure *, const char *path);
ckr_status measure_profile_table(struct measure *, FILE *);
ckr_status measure_check(struct measure *, const struct ckr_hyper *,
                         double *loss, struct ckr_checked *);

#endif
