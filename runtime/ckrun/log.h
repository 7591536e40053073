/* Logs of steps for other programs: JSON lines, CSV, and event files of
 * TensorBoard. */
#ifndef RUNTIME_CKRUN_LOG_H
#define RUNTIME_CKRUN_LOG_H

#include "runtime/ckrun/ckrun_options.h"
#include "runtime/ckrun/console.h"

struct log {
	FILE *file, *events;            /* NULL: none */
	bool csv;
	const char *path, *folder;      /* of both */
};

/* Those of --log and --tensorboard that this process writes; a run that goes
 * on in a checkpoint goes on in the log.  It can be closed in any case. */
ckr_status log_open(struct log *, ckr_ctx *, const struct ckrun_options *);
void log_row(struct log *, const struct step_row *);
/* One row: of `ckrun eval`. */
void log_score(struct log *, const struct score *);
/* That all of it is written. */
ckr_status log_flush(struct log *, ckr_ctx *);
void log_close(struct log *);

#endif
