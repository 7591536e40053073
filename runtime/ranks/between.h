/* What moves between ranks that live in processes of their own. */
#ifndef CKR_BETWEEN_H
#define CKR_BETWEEN_H

#include "runtime/ranks/comm.h"
#include "runtime/team/team.h"

/* A collective as one of its ranks takes part.  x, y: its operands, without
 * gaps. */
struct between {
	struct team *team;
	enum link_group group;
	uint32_t rank, ranks;           /* of the group */
	const struct ckr_comm *what;
	const struct ckr_tensor *tx, *ty;
	const char *x;
	char *y;
	int threads;
	struct team_task task;
};

/* CKR_ERANK as team_gather.  The bits are those of comm_run. */
ckr_status between_run(const struct between *, struct err *);
/* y = the sum of what each rank of the group has in x, n elements: no more
 * than TEAM_ROOM / ranks bytes. */
ckr_status between_sum(const struct between *, uint8_t dtype, const void *x,
                       uint64_t n, void *y, struct err *);

#endif
