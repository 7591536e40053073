/* Checks of options that depend on each other. */
#ifndef FRONTEND_DRIVER_OPTS_CHECK_H
#define FRONTEND_DRIVER_OPTS_CHECK_H

#include <stdio.h>

struct cli;

/* opts_stages.c: of a pipeline; it sets opt.stages and the number of
 * micro-batches.  CLI_GO, or the exit status after a message. */
int check_stages(struct cli *, FILE *err);
/* opts_stages.c: the option that a pipeline cannot be combined with, and what
 * to do; NULL: there is none. */
const char *stages_conflict(const struct cli *, const char **remedy);

#endif
