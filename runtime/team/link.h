/* The interface of a message-passing library: one table of functions that move
 * bytes between the processes of a run.
 *
 * It lives in a shared object of its own, ckr_NAME.so, which exports it as
 * `ckr_link`, so that nothing else is linked to such a library.  There is one
 * run per process; all calls come from the thread that opened it.
 * What returns text has failed, and that says why, for as long as no other
 * call fails.
 *
 * Transfers are begun, then tested until they are done: one at a time in each
 * group.  Until one is done what it sends and its counts stay as they are, and
 * nobody touches what it receives.  All ranks of a group begin the same ones in
 * the same order; of different groups in any.
 *
 * Knows: nothing of models.
 */
#ifndef RUNTIME_TEAM_LINK_H
#define RUNTIME_TEAM_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CKR_LINK_VERSION 3

/* All ranks; those that share the parts of one replica; those that hold the
 * same part of all replicas. */
enum link_group { LINK_ALL, LINK_TP, LINK_DP, LINK_GROUPS };

struct link_place {
	uint32_t rank, size;            /* of all */
	/* Local ranks: those on this machine, this one included, in order,
	 * and the heartbeat of each in memory that they share. */
	uint32_t nlocal;
	const uint32_t *local;
	atomic_uint *const *heartbeat;
	double timeout;                 /* given: seconds to wait for them */
};

/* Bytes from and to each rank of a group: r's are count[r] at base + at[r]. */
struct link_side {
	void *base;
	const int *count, *at;
};

struct ckr_link {
	uint32_t version;               /* CKR_LINK_VERSION */
	const char *name;               /* in messages */
	/* Take part in the run; returns when all have come. */
	const char *(*open)(struct link_place *);
	/* Groups of ranks: rank = replica * tp + part.  Again for others. */
	const char *(*split)(uint32_t tp);
	/* Begin: `n` bytes of each rank to all of its group. */
	const char *(*allgather)(enum link_group, const void *from, int n,
	                         const struct link_side *to);
	/* Begin: from each rank to each, of its group. */
	const char *(*alltoall)(enum link_group, const struct link_side *from,
	                        const struct link_side *to);
	/* The group's last one; done, too, if none is under way. */
	const char *(*test)(enum link_group, bool *done);
	/* Out-of-band messages of one word: send to all others, whatever they
	 * are at; receive one that has arrived. */
	void (*send_oob)(uint64_t word);
	bool (*receive_oob)(uint32_t *from, uint64_t *word);
	/* End all processes with this exit status. */
	void (*abort)(int status);
	/* Leave the run; returns when all leave it.  No other call follows. */
	void (*close)(void);
};

#endif
