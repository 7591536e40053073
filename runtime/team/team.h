/* The process group of a run, called team, as one of its processes sees it:
 * collectives, agreement, and which of them does not come.
 *
 * Every call is made by all of them, in the same order, by the thread that
 * opened the team.  There is one team in a process, whoever opens it.  What is
 * begun and not done is the group's only transfer: others wait until then.
 *
 * Knows: bytes and messages.  Must not know: models. */
#ifndef CKR_TEAM_H
#define CKR_TEAM_H

#include "runtime/base/err.h"
#include "runtime/team/link.h"

struct team {
	uint32_t rank, size;
	uint32_t mates, mate;           /* processes on this machine, and which
	                                 * of them this is */
	/* memory that transfers go through, TEAM_ROOM bytes each */
	char *out, *in;
};

enum { TEAM_ROOM = 4 << 20 };

/* What is waited for, in words. */
struct team_task {
	const char *op, *of;            /* of: NULL: nothing that has a name */
	uint64_t step, bytes;           /* step: 1 is the first, 0: none */
	bool patient;                   /* files take PATIENT times as long */
};

/* Of one process, and of all. */
struct team_vote {
	ckr_status status;
	uint64_t order;                 /* of the failure: the least counts */
	uint32_t flags;                 /* those that any process has */
	uint64_t most;                  /* the largest of them */
};

/* NULL without a failure: this process was started alone.  timeout: seconds
 * after which one that has not come is given up. */
ckr_status team_open(struct team **, double timeout, struct err *);
void team_close(struct team *);
/* Groups of tp ranks, from now on. */
ckr_status team_divide(struct team *, uint32_t tp, struct err *);
/* CKR_ERANK: one of them does not come, in words; the team serves no more than
 * team_abort then. */
ckr_status team_gather(struct team *, enum link_group, const void *from, int n,
                       const struct link_side *to, const struct team_task *,
                       struct err *);
/* The same, and pieces from each to each; they return at once.  Until it is
 * done what is sent stays as it is, and nobody touches the counts, nor what is
 * received. */
ckr_status team_begin_gather(struct team *, enum link_group, const void *from,
                             int n, const struct link_side *to,
                             const struct team_task *, struct err *);
ckr_status team_begin_exchange(struct team *, enum link_group,
                               const struct link_side *from,
                               const struct link_side *to,
                               const struct team_task *, struct err *);
ckr_status team_test(struct team *, enum link_group, bool *done,
                     const struct team_task *, struct err *);

/* What somebody waits for: `look` moves it on without waiting.  *at: what is
 * waited for now; *moved changes when others have been heard of. */
struct team_look {
	ckr_status (*look)(void *user, bool *done, const struct team_task **at,
	                   uint64_t *moved, struct err *);
	void *user;
};
/* Until it is done.  CKR_ERANK as team_gather. */
ckr_status team_await(struct team *, const struct team_look *, struct err *);

/* n bytes of each process to all, side by side; n is at most TEAM_ROOM /
 * size. */
ckr_status team_share(struct team *, const void *mine, int n, void *all,
                      const struct team_task *, struct err *);
/* n bytes of one process to all; n is at most TEAM_ROOM. */
ckr_status team_spread(struct team *, uint32_t from, void *, int n,
                       const struct team_task *, struct err *);
/* How all ended: with the failure of the first that failed, whose message is
 * everybody's then. */
ckr_status team_agree(struct team *, struct team_vote *,
                      const struct team_task *, struct err *);
void team_abort(struct team *, int status);
/* Before a call that waits for all and that nobody can look into: one that does
 * not return in time ends the process with this message.  NULL: it has. */
void team_limit(struct team *, const char *message);
/* "step 12: all_reduce of 'h.3/Add' (98304 bytes)"; returns buf. */
const char *team_task_text(char *buf, size_t size, const struct team_task *);

#endif
