/* Logs of steps for other programs: JSON lines, CSV, and event files of
 * TensorBoard. */
#ifndef RUNTIME_CKRUN_LOG_H
#define RUNTIME_CKRUN_LOG_H

#include "runtime/ckrun/ckrun_options.h"
#include "runtime/ckrun/console.h"

struct log {
	FILE *file, *events;            /* NULL: none */
	bool csv;
	const char *path, *folder;      /* path of file, folder of events */
};

/* Open the logs of --log and --tensorboard, if this process writes them.  A run
 * that resumes from a checkpoint appends.  To be closed after a failure too. */
ckr_status log_open(struct log *, ckr_ctx *, const struct ckrun_options *);
void log_row(struct log *, const struct step_row *);
/* Write the row of `ckrun eval`. */
void log_score(struct log *, const struct score *);
/* Fails unless all rows are written. */
ckr_status log_flush(struct log *, ckr_ctx *);
void log_close(struct log *);

#endif
