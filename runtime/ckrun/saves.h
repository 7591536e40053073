/* The checkpoints of a run, written between steps or, with --save-async, beside
 * them. */
#ifndef RUNTIME_CKRUN_SAVES_H
#define RUNTIME_CKRUN_SAVES_H

#include "runtime/ckrun/ckrun_options.h"

struct saves {
	const struct ckrun_options *o;
	ckr_ctx *m;
	const char *writing;            /* option's file that is being written
	                                 * beside training; NULL: none */
	uint64_t step;                  /* the step after which it was begun */
	int64_t saved;                  /* step that --save holds; -1: none */
};

/* With --save-async, allocates its memory. */
ckr_status saves_open(struct saves *, ckr_ctx *, const struct ckrun_options *);
/* Write the file of --save or --save-best.  beside: with --save-async, begin to
 * write it.  Waits for the one before. */
ckr_status saves_write(struct saves *, const char *path, bool beside);
/* Whenever steps allow it, so that a failure to write ends the run soon. */
ckr_status saves_poll(struct saves *);
ckr_status saves_wait(struct saves *);

#endif
