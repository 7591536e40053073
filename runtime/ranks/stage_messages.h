/* Messages between the stages of a pipeline: each send of a program has a
 * queue, from a rank of one stage to the rank of the same number in another.
 * A message is kept until it is received, so that a stage sends and goes on.
 *
 * Between GPUs of several processes messages are calls of NCCL.  A GPU carries
 * them out one by one, and a send may wait until its receiver has come to it.
 * So a process receives early: before it sends in turn t of the table, it
 * begins to receive what turns before t send to it, in the order of turns; and
 * before updates, which begin with a sum over all stages, what all turns have
 * sent.
 *
 * No deadlock: of the turns that are not over, take the first in the table.
 * The turns that send to its process before it are over, so it comes to its
 * sends.  The receiver of one is in a later turn, or before it.  There it
 * begins to receive this message before it sends, and before it receives from a
 * later turn; until then it waits for turns that are over, and for its own
 * ranks.
 */
#ifndef RUNTIME_RANKS_STAGE_MESSAGES_H
#define RUNTIME_RANKS_STAGE_MESSAGES_H

#include "runtime/ranks/transfers.h"

struct stage_messages;

/* The ranks as messages see them: those of all stages, or this process's. */
struct message_view {
	const struct ckr_library *lib;
	uint32_t ranks;                 /* of a stage */
	uint32_t processes;             /* of a run with as many as can be:
	                                 * stages that are a multiple of it
	                                 * apart, times ranks, share some */
	struct process_group *team;     /* NULL: all live here */
	/* Messages lie in this GPU's memory, and NCCL carries them; NULL:
	 * in host memory. */
	struct device *gpu;
};

/* Memory for all messages that are under way at once when the turns of
 * program[0] run in the order of their table, or program[2] runs.  To be closed
 * after a failure too. */
ckr_status messages_open(struct stage_messages **, const struct message_view *,
                         struct err *);
void messages_close(struct stage_messages *);
/* Bytes of that memory; how many messages have room in it. */
uint64_t messages_bytes(const struct stage_messages *);
uint32_t messages_room(const struct stage_messages *);
/* By NCCL: the transfers that carry them, with that many messages. */
void messages_set_transfers(struct stage_messages *, struct transfers *);
/* The instructions that follow are those of turn `turn` of the table. */
void messages_begin_turn(struct stage_messages *, uint32_t turn);
/* All turns before updates are over, in training step `step`. */
ckr_status messages_begin_updates(struct stage_messages *, uint64_t step,
                                  struct err *);

/* What rank `rank` of its stage sends by instruction s of a program: room for
 * it, then the message itself. */
ckr_status messages_reserve(struct stage_messages *, const struct ckr_instr *s,
                            uint32_t rank, const struct pg_task *, void **room,
                            struct err *);
ckr_status messages_send(struct stage_messages *, const struct ckr_instr *s,
                         uint32_t rank, const struct pg_task *, struct err *);
/* The oldest message to it that has not been received; in a run of several
 * processes it waits, or by NCCL kernels that are enqueued next do. */
ckr_status messages_receive(struct stage_messages *, const struct ckr_instr *s,
                            uint32_t rank, const struct pg_task *,
                            const void **message, struct err *);
/* Forget all messages, after a step that failed. */
void messages_drop(struct stage_messages *);

#endif
