/* The steps of a run: begun one ahead of the one that is told of where the
 * model can, ended in order, with all that is told of each. */
#ifndef CKRUN_STEPS_H
#define CKRUN_STEPS_H

#include "runtime/ckrun/ckrun_options.h"
#include "runtime/data/data.h"
#include "runtime/ckrun/tell.h"

enum { STEPS_AHEAD = 2 };

/* One that was begun. */
struct begun {
	struct ckr_hyper hyper;
	double at;                      /* seconds */
	bool odd;                       /* a warning of its data, or before */
};

struct steps {
	const struct options *o;
	ckr_ctx *m;
	const struct data *data;
	uint64_t total, before;         /* in all; done before this run */
	bool has_loss, exact;           /* exact: the loss is one f32 */
	bool has_norm;                  /* of all gradients */
	uint64_t skipped;               /* steps of this run by --on-nan */
	uint64_t overflows;             /* ... and by the loss scale */
	struct ckr_checked checked;
	struct begun begun[STEPS_AHEAD];
	uint32_t first, count;          /* of them, counted on and on */
	double started, ended;          /* the first one, the last one; in
	                                 * seconds */
};

/* Whether no step of this run has come to gradients. */
bool steps_only_skipped(const struct steps *);
/* Begin the next step. */
ckr_status steps_begin(struct steps *);
/* Whether the one behind those begun can be begun now, and the state between
 * is not wanted. */
bool steps_can_begin(const struct steps *);
/* End the first one begun: what is to be told of it, *odd: its data too. */
ckr_status steps_end(struct steps *, struct row *, bool *odd);

#endif
