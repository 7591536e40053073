/* Host memory beside the arena: see remat_host.c. */
#ifndef PASSES_REMAT_MODEL_REMAT_HOST_H
#define PASSES_REMAT_MODEL_REMAT_HOST_H

#include "passes/remat_model/remat_model.h"

struct remat_host {
	double rate;                    /* bytes that a lane carries in a
	                                 * second */
	int64_t room;                   /* bytes of host memory */
	double *start;                  /* by node: seconds of first runs before
	                                 * it */
};

/* The longest pause between two uses of an instance. */
struct pause_of {
	int32_t from, to, last;         /* steps; last: the latest use */
	double sec;
};

struct pauses {
	int32_t step_cap, inst_cap;
	struct pause_of *of;            /* by instance */
	struct pause_step {
		double start;           /* seconds before it */
		double more;            /* bytes that pause at it, more than
		                         * at the step before */
		double begun, ended;    /* bytes whose pause begins; and
		                         * ends */
		double there;           /* bytes in host memory, at most, if
		                         * none has to come back */
	} *at;                          /* by step */
};

struct remat_host *remat_host_new(const struct remat *, double rate,
                                  int64_t room);
/* Bytes that a lane carries in that time, and host memory holds. */
int64_t remat_host_bytes(const struct remat_host *, double sec);
/* Bytes that have gone there before the first run of a node, at most, if
 * nothing runs again and nothing waits before it. */
static inline int64_t
remat_host_sent(const struct remat_host *h, NodeId before)
{
	return remat_host_bytes(h, h->start[before]);
}

/* Of the steps of a schedule, in order: what is made and used at step k.  Then
 * what is in host memory is taken away from w->live. */
void pauses_open(struct schedule *);
void pauses_made(struct schedule *, int32_t y, int32_t k);
void pauses_used(struct schedule *, int32_t y, int32_t k);
void pauses_take(struct schedule *);

#endif
