/* Checks of options that depend on each other. */
#ifndef FRONTEND_DRIVER_OPTS_CHECK_H
#define FRONTEND_DRIVER_OPTS_CHECK_H

#include <stdio.h>

struct cli;

/* opts_stages.c: of a pipeline; it sets opt.stages and the number of
 * micro-batches.  CLI_GO, or the exit status after a message. */
int check_stages(struct cli *, FILE *err);

#endif
