/* Whole tensors from ranks in processes of their own: every process gets them,
 * as all ask for the same. */
#ifndef CKR_FETCH_H
#define CKR_FETCH_H

#include "runtime/ranks/between.h"
#include "runtime/model/rt.h"

struct fetch {
	ckr_ctx *c;
	const struct ckr_tensor *t;
	struct pieces pieces, batch;    /* if it is cut; if replicas differ */
	uint64_t run;                   /* of pieces: none before it is left */
	uint64_t most;                  /* elements at a time */
	const char *local;
	void *packed;                   /* NULL: it lies without gaps */
	/* Of what is cut: the ranks that hold it, this one, and bytes that each
	 * has of a range and their place in the team's memory. */
	enum link_group link;
	uint32_t owners, mine;
	int *nbytes, *place;
	struct between group;           /* of the replica */
};

ckr_status fetch_begin(struct fetch *, ckr_ctx *, const struct bound *,
                       const struct ckr_tensor *);
/* Elements at .. at + n - 1 of the whole; ranges come in order; n <= most. */
ckr_status fetch_next(struct fetch *, uint64_t at, uint64_t n, void *out);
void fetch_end(struct fetch *);
/* All of it. */
ckr_status fetch_all(ckr_ctx *, const struct bound *,
                     const struct ckr_tensor *, char *dense);

#endif
