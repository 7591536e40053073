/* Designs of checkpointing plans: see checkpoints.c. */
#ifndef PASSES_RECURSIVE_DESIGNS_H
#define PASSES_RECURSIVE_DESIGNS_H

#include "passes/recursive/checkpoints.h"

enum { DESIGNS_MAX = 8192 };

struct design {
	int32_t parts;                  /* number of parts that forward is cut
	                                 * into */
	int32_t states;                 /* most states in memory at a time */
	int32_t kept;                   /* number of parts at the end that are
	                                 * kept whole */
	double bytes, runs;             /* estimates: bytes in memory, runs of
	                                 * forward */
};

/* What designs are made for. */
struct design_of {
	int32_t forward, nodes;         /* number of forward nodes; of all
	                                 * nodes */
	int64_t bytes;                  /* bytes of storages that backward
	                                 * reads */
	int32_t limit;                  /* most steps of one plan */
	double work;                    /* steps of all plans together, about */
	/* mean bytes of a state if forward has so many parts */
	double (*state)(void *data, int32_t parts);
	void *data;
};

/* Designs that no other design beats in both estimated bytes and runs, fewest
 * runs first; returns how many. */
int32_t designs_list(const struct design_of *, struct design *);
/* Of so many parts, with room for so many further states: the parts before the
 * next one; first: in the run that is not one again.  *runs, at least the runs
 * that they take, becomes these: a bound for the parts on either side too, so
 * that a chain of calls takes steps in proportion to its length. */
int32_t design_parts_before(int32_t parts, int32_t states, bool first,
                            int64_t *runs);

#endif
