/* Messages between the stages of a pipeline: each send of a program has a
 * queue, from a rank of one stage to the rank of the same number in another.
 * A message is kept until it is received, so that a stage sends and goes on.
 */
#ifndef RUNTIME_RANKS_STAGE_MESSAGES_H
#define RUNTIME_RANKS_STAGE_MESSAGES_H

#include "runtime/ckr_abi.h"
#include "runtime/team/process_group.h"

struct stage_messages;

/* The ranks as messages see them: those of all stages, or this process's. */
struct message_view {
	const struct ckr_library *lib;
	uint32_t ranks;                 /* of a stage */
	uint32_t processes;             /* of a run with as many as can be:
	                                 * stages that are a multiple of it
	                                 * apart, times ranks, share some */
	struct process_group *team;     /* NULL: all live here */
};

/* Memory for all messages that are under way at once when the turns of
 * program[0] run in the order of their table, or program[2] runs.  To be closed
 * after a failure too. */
ckr_status messages_open(struct stage_messages **, const struct message_view *,
                         struct err *);
void messages_close(struct stage_messages *);
/* Bytes of that memory. */
uint64_t messages_bytes(const struct stage_messages *);

/* What rank `rank` of its stage sends by instruction s of a program: room for
 * it, then the message itself. */
ckr_status messages_reserve(struct stage_messages *, const struct ckr_instr *s,
                            uint32_t rank, const struct pg_task *, void **room,
                            struct err *);
ckr_status messages_send(struct stage_messages *, const struct ckr_instr *s,
                         uint32_t rank, const struct pg_task *, struct err *);
/* The oldest message to it that has not been received; in a run of several
 * processes it waits. */
ckr_status messages_receive(struct stage_messages *, const struct ckr_instr *s,
                            uint32_t rank, const struct pg_task *,
                            const void **message, struct err *);
/* Forget all messages, after a step that failed. */
void messages_drop(struct stage_messages *);

#endif
