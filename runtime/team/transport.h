/* A transport: the interface of a message-passing library, as one table of
 * functions that move bytes between the processes of a run.
 *
 * A transport may live in a shared object of its own, ckr_NAME.so, which
 * exports the table as `ckr_transport`, so that nothing else is linked to the
 * library.  There is one run per process; all calls come from the thread that
 * opened it.  A function that returns text has failed; the text says why, and
 * is valid until the next call that fails.
 *
 * Transfers are begun, then tested until they are done: one at a time in each
 * group.  Until a transfer is done, the bytes that it sends and its counts stay
 * as they are, and nobody touches the bytes that it receives.  All ranks of a
 * group begin the same transfers in the same order; the order between groups is
 * free.
 */
#ifndef RUNTIME_TEAM_TRANSPORT_H
#define RUNTIME_TEAM_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CKR_TRANSPORT_VERSION 5

/* COMM_ALL: all ranks; then the groups of enum ckr_axis, all within a stage:
 * world rank = (stage * dp + replica) * tp + rank; but for COMM_STAGES. */
enum comm_group {
	COMM_ALL, COMM_TP, COMM_DP, COMM_SHARDS, COMM_COPIES, COMM_EXPERTS,
	COMM_EXPERT_COPIES, COMM_STAGES, COMM_CONTEXT, COMM_GROUPS
};

static inline enum comm_group
group_of_axis(int axis)
{
	return (enum comm_group)(COMM_TP + axis);
}

/* How the ranks of a run form groups. */
struct comm_mesh {
	uint32_t tp, dp;                /* ranks of a replica; replicas */
	uint32_t zero_group;            /* replicas of a zero group; 0: all */
	uint32_t expert_group;          /* likewise */
	uint32_t stages;                /* of a pipeline; 0: there is none */
	uint32_t context;               /* replicas with the same samples; 0:
	                                 * each has its own */
};

/* The ranks of a group: first + k * by, 0 <= k < n. */
struct comm_ranks {
	uint32_t first, by, n;
};

/* The group in which that world rank is. */
static inline struct comm_ranks
comm_ranks_of(const struct comm_mesh *m, enum comm_group g, uint32_t rank)
{
	uint32_t tp = m->tp, dp = m->dp, replica = rank / tp % dp;
	uint32_t some = g < COMM_EXPERTS ? m->zero_group : m->expert_group;
	uint32_t size = some ? some : dp;
	uint32_t stage = rank / (tp * dp) * tp * dp, r = stage + rank % tp;
	uint32_t stages = m->stages ? m->stages : 1;
	uint32_t context = m->context ? m->context : 1;

	switch (g) {
	case COMM_TP:
		return (struct comm_ranks){ stage + replica * tp, 1, tp };
	case COMM_DP:
		return (struct comm_ranks){ r, tp, dp };
	case COMM_SHARDS: case COMM_EXPERTS:
		return (struct comm_ranks){ r + replica / size * size * tp, tp,
			                    size };
	case COMM_COPIES: case COMM_EXPERT_COPIES:
		return (struct comm_ranks){ r + replica % size * tp, tp * size,
			                    dp / size };
	case COMM_STAGES:
		return (struct comm_ranks){ rank % (tp * dp), tp * dp, stages };
	case COMM_CONTEXT:
		return (struct comm_ranks){ r + replica / context * context
			                    * tp, tp, context };
	default:
		return (struct comm_ranks){ 0, 1, tp * dp * stages };
	}
}

/* This process in the run. */
struct transport_place {
	uint32_t rank, size;            /* its rank; ranks of the run */
	/* Local ranks: the ranks on this machine, including this one, in
	 * order, and the heartbeat of each in memory that they share. */
	uint32_t nlocal;
	const uint32_t *local;
	atomic_uint *const *heartbeat;
	double timeout;                 /* set by the caller: seconds to wait
	                                 * for the other processes */
};

/* Bytes from and to each rank of a group: rank r's are count[r] bytes at
 * base + at[r]. */
struct transport_side {
	void *base;
	const int *count, *at;
};

/* A message from one rank to another.  Those of one pair of ranks and one tag
 * arrive in the order in which they are sent.  Nobody touches the struct and
 * its bytes until the message is done. */
struct transport_message {
	uint32_t rank;                  /* the other side's */
	uint32_t tag;                   /* below CKR_MESSAGE_TAGS */
	void *data;
	int n;                          /* bytes, as many on both sides */
	bool out;                       /* this side sends */
	bool done;
	/* ---- of the transport ---- */
	struct transport_message *next;
	void *request;
};

enum { CKR_MESSAGE_TAGS = 32000 };      /* MPI promises 32767 */

struct ckr_transport {
	uint32_t version;               /* CKR_TRANSPORT_VERSION */
	const char *name;               /* in messages */
	/* Take part in the run; returns when all processes have joined. */
	const char *(*open)(struct transport_place *);
	/* Form the groups but COMM_ALL.  May be called again. */
	const char *(*split)(const struct comm_mesh *);
	/* Begin: `n` bytes of each rank to all ranks of its group. */
	const char *(*allgather)(enum comm_group, const void *from, int n,
	                         const struct transport_side *to);
	/* Begin: bytes from each rank to each rank of its group. */
	const char *(*alltoall)(enum comm_group,
	                        const struct transport_side *from,
	                        const struct transport_side *to);
	/* Whether the group's last transfer is done; also true if there is
	 * none. */
	const char *(*test)(enum comm_group, bool *done);
	/* Begin a message; whether it is done. */
	const char *(*begin_message)(struct transport_message *);
	const char *(*test_message)(struct transport_message *);
	/* Out-of-band messages of one word: send to all other processes,
	 * whatever they are doing; receive one that has arrived. */
	void (*send_oob)(uint64_t word);
	bool (*receive_oob)(uint32_t *from, uint64_t *word);
	/* End all processes with this exit status. */
	void (*abort)(int status);
	/* Leave the run; returns when all processes leave.  No other call
	 * follows. */
	void (*close)(void);
};

#endif
