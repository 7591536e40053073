/* Declarations that the rules of the replay share. */
#ifndef PASSES_REPLAY_REPLAY_RULES_H
#define PASSES_REPLAY_REPLAY_RULES_H

#include <inttypes.h>

#include "passes/pass.h"

struct replay {
	const Plan *p;
	Diag *diag;
	Arena *arena;
	int faults;
	int64_t *owner;                 /* tensor in whose bytes it lies */
	int64_t *value;                 /* first-run tensor of the same value */
	bool *valid;
	int64_t *writer;
	bool *again;                    /* computed more than once */
	bool *copied;                   /* to host memory and back */
	int64_t **sharing;              /* by owner: tensors in its bytes */
	int64_t *nsharing;
	int64_t *first, *last;          /* of owners' places */
	bool *taken;
	int64_t boundary;               /* last forward step */
	int64_t turned;                 /* last step of forward and backward */
	struct {
		int64_t n, bytes, at;   /* slots; of each; the first one */
		int64_t all;            /* with those of another plan; 0: one
		                         * micro-batch alone keeps something */
	} pool[3];                      /* of what lives from forward to
	                                 * backward; with turns of weights: from
	                                 * forward, from backward to there */
	int64_t slots_end;              /* where there is one slot alone, what
	                                 * has it may lie anywhere */
	char where[96];
};

/* Faults carry the name of the rule that the plan file's description gives
 * it. */
#define FAULT(r, rule, ...) \
	((r)->faults++, (void)diag_internal((r)->diag, \
	 "replay: " rule ": " __VA_ARGS__))

/* "tensor 12 (NAME)"; valid until the next call. */
static inline const char *
name(struct replay *r, int64_t t)
{
	snprintf(r->where, sizeof r->where, "tensor %" PRId64 " (%s)", t,
	         r->p->tensor[t].name ? r->p->tensor[t].name : "?");
	return r->where;
}

static inline void
claim(struct replay *r, const char *rule, const char *what, int64_t claimed,
      int64_t found)
{
	if (claimed != found)
		FAULT(r, "%s", "%s is claimed to be %" PRId64 ", found %"
		      PRId64, rule, what, claimed, found);
}

/* replay_values.c: which values exist and who computes them.  `alias` fills
 * in owners, `values` the values that tensors hold. */
void replay_aliases(struct replay *);
void replay_values(struct replay *);
void replay_repeats(struct replay *);
/* replay_waits.c: what is on its way between ranks nobody touches. */
void replay_waits(struct replay *);
void replay_host(struct replay *);

/* replay_memory.c: how long places are taken, where they lie, and what it
 * all amounts to. */
void replay_lifetimes(struct replay *);
void replay_memory(struct replay *);
void replay_sums(struct replay *);

#endif
