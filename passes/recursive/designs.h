/* Designs of checkpointing plans: see checkpoints.c. */
#ifndef PASSES_RECURSIVE_DESIGNS_H
#define PASSES_RECURSIVE_DESIGNS_H

#include "passes/recursive/checkpoints.h"

enum { DESIGNS_MAX = 8192 };

struct design {
	int32_t parts;                  /* of forward */
	int32_t states;                 /* in memory at most */
	int32_t kept;                   /* parts at the end */
	double bytes, runs;             /* reckoned; runs of forward */
};

/* What designs are made for. */
struct design_of {
	int32_t forward, nodes;         /* forward ones, all */
	int64_t bytes;                  /* that backward reads */
	int32_t limit;                  /* steps of a plan */
	double work;                    /* steps of all plans, about */
	/* mean bytes of a state between so many parts */
	double (*state)(void *data, int32_t parts);
	void *data;
};

/* Those that no other is reckoned to beat in both bytes and runs, the fewest
 * runs first; returns how many. */
int32_t designs_list(const struct design_of *, struct design *);
/* Of so many parts, with room for so many further states: the parts before the
 * next one; first: in the run that is not one again.  *runs, at least the runs
 * that they take, becomes these: a bound for the parts on either side too, so
 * that a chain of calls takes steps in proportion to its length. */
int32_t design_parts_before(int32_t parts, int32_t states, bool first,
                            int64_t *runs);

#endif
