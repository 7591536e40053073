/* Transfers between ranks in separate processes.  Each group has a queue: one
 * transfer after the other, in the order in which they begin, which is the same
 * in all processes.  Groups do not wait for each other.  Joined transfers go
 * together if they fit into a chunk.
 *
 * Transfers are polled between steps.  How much arrives while a step computes
 * depends on the MPI.
 */
#include "runtime/ranks/transfers.h"

#include <stdlib.h>

struct process_queue {
	struct transfer *first, *last;  /* that have begun; NULL: none */
	struct chunked_comm comm;       /* of the first one, once active */
	uint32_t active;                /* how many it moves; 0: none yet */
	char *buffer;                   /* 2 * PG_BUFFER; NULL: the team's */
	void *counts;                   /* of chunked_state_bytes */
};

static struct process_queue *
queue_of(const struct transfers *t, const struct transfer *x)
{
	return &t->queue[group_of_axis(x->what->axis)];
}

static uint32_t
ranks_of_transfer(const struct transfers *t, const struct transfer *x)
{
	return ranks_of_axis(&t->view, x->what->axis).n;
}

/* The ranks of a replica have the team's buffers, other groups their own, but
 * for the only group there is. */
static bool
has_own_buffer(const struct comm_view *view, int axis)
{
	bool alone = view->mesh.tp == 1 && !view->mesh.zero_group
		&& !view->mesh.expert_group && !view->mesh.context
		&& view->mesh.stages <= 1;

	return axis != CKR_TP && !alone && ranks_of_axis(view, axis).n > 1
		&& has_axis(view, axis);
}

static uint64_t
extra_buffer_bytes(const struct transfers *t)
{
	uint64_t n = 0;

	for (int axis = 0; axis < CKR_AXES; axis++)
		n += has_own_buffer(&t->view, axis) ? 2 * PG_BUFFER : 0;
	return n;
}

static ckr_status
open_process(struct transfers *t, struct err *e)
{
	const struct comm_view *c = &t->view;
	uint32_t most = c->mesh.tp > c->mesh.dp ? c->mesh.tp : c->mesh.dp;

	most = most > c->mesh.stages ? most : c->mesh.stages;
	bool ok;

	t->queue = calloc(COMM_GROUPS, sizeof(*t->queue));
	ok = t->queue;
	for (int g = 0; ok && g < COMM_GROUPS; g++) {
		t->queue[g].counts = malloc(chunked_state_bytes(most));
		ok = t->queue[g].counts;
	}
	for (int axis = 0; ok && axis < CKR_AXES; axis++)
		if (has_own_buffer(c, axis)) {
			char *buffer = calloc(2, PG_BUFFER);

			t->queue[group_of_axis(axis)].buffer = buffer;
			ok = buffer;
		}
	return ok ? CKR_OK : err_no_memory(e);
}

static void
close_process(struct transfers *t)
{
	for (int g = 0; t->queue && g < COMM_GROUPS; g++) {
		free(t->queue[g].buffer);
		free(t->queue[g].counts);
	}
	free(t->queue);
}

/* Whether all that the first one is joined with have begun. */
static bool
has_message(const struct process_queue *q)
{
	const struct transfer *x = q->first;

	while (x->what->joined && x->next)
		x = x->next;
	return !x->what->joined;
}

/* How many from the first one on go in one message. */
static uint32_t
join_begun(const struct transfers *t, struct process_queue *q)
{
	const struct comm_view *view = &t->view;
	uint32_t ranks = ranks_of_transfer(t, q->first), n = 0;
	struct joined_comm *last = NULL;

	for (struct transfer *x = q->first; x; x = x->next) {
		x->part = (struct joined_comm){ .what = x->what, .tx = x->tx,
			.x = view->operand(view->user, x, 0, 0),
			.y = view->operand(view->user, x, 0, 1) };
		if (!chunked_join(&x->part, last, ranks))
			break;
		last = &x->part;
		n++;
		if (!x->what->joined)
			break;
	}
	return n > 1 ? n : 1;
}

/* Begin to move the first one of a queue. */
static void
start_first(const struct transfers *t, struct process_queue *q)
{
	const struct transfer *x = q->first;
	const struct comm_view *view = &t->view;
	struct comm_ranks of = ranks_of_axis(view, x->what->axis);
	uint64_t arrived = q->comm.arrived;

	q->comm = (struct chunked_comm){ .team = view->team,
		.group = group_of_axis(x->what->axis),
		.rank = rank_in_group(view, &of), .ranks = of.n,
		.what = x->what, .tx = x->tx, .ty = x->ty,
		.x = view->operand(view->user, x, 0, 0),
		.y = view->operand(view->user, x, 0, 1),
		.threads = view->threads, .task = x->task, .arrived = arrived,
		.state = q->counts };
	q->comm.out = q->buffer ? q->buffer : view->team->out;
	q->comm.in = q->buffer ? q->buffer + PG_BUFFER : view->team->in;
	q->active = x->what->joined ? join_begun(t, q) : 1;
	if (q->active > 1)
		q->comm.joined = &x->part;
	chunked_begin(&q->comm);
}

static ckr_status
advance_queue(const struct transfers *t, struct process_queue *q, struct err *e)
{
	while (q->first) {
		bool done;

		if (!q->active && !has_message(q))
			return CKR_OK;
		if (!q->active)
			start_first(t, q);
		CKR_TRY(chunked_poll(&q->comm, &done, e));
		if (!done)
			return CKR_OK;
		for (; q->active > 0; q->active--) {
			q->first->done = true;
			q->first = q->first->next;
		}
	}
	return CKR_OK;
}

static ckr_status
test_process(struct transfers *t, struct err *e)
{
	for (int g = 0; g < COMM_GROUPS; g++)
		CKR_TRY(advance_queue(t, &t->queue[g], e));
	return CKR_OK;
}

/* In a group of one rank, which has no buffers. */
static void
copy_in_process(const struct comm_view *view, struct transfer *x)
{
	void *from = view->operand(view->user, x, 0, 0);
	void *to = view->operand(view->user, x, 0, 1);

	comm_run(&(struct comm){ x->what, x->tx, x->ty, &from, &to, 1,
	                         view->threads });
	x->done = true;
}

static ckr_status
begin_process(struct transfers *t, struct transfer *x, struct err *e)
{
	struct process_queue *q = queue_of(t, x);

	if (ranks_of_transfer(t, x) == 1) {
		copy_in_process(&t->view, x);
		return CKR_OK;
	}
	if (q->first)
		q->last->next = x;
	else
		q->first = x;
	q->last = x;
	return advance_queue(t, q, e);
}

struct waiter {
	struct transfers *t;
	const struct transfer *x;
};

/* *at is the transfer that is moving now, which may be an earlier one. */
static ckr_status
poll_process(void *user, bool *done, const struct pg_task **at,
             uint64_t *moved, struct err *e)
{
	const struct waiter *w = user;

	*moved = 0;
	CKR_TRY(test_process(w->t, e));
	for (int g = 0; g < COMM_GROUPS; g++)
		*moved += w->t->queue[g].comm.arrived;
	*at = &queue_of(w->t, w->x)->comm.task;
	*done = w->x->done;
	return CKR_OK;
}

static ckr_status
wait_process(struct transfers *t, struct transfer *x, struct err *e)
{
	struct waiter w = { t, x };

	return pg_wait(t->view.team, &(struct pg_poll){ poll_process, &w },
	               e);
}

/* Empties the queue: after a failed transfer the run is over. */
static void
drop_process(struct transfers *t, struct transfer *x)
{
	struct process_queue *q = queue_of(t, x);

	q->first = q->last = NULL;
	q->active = 0;
}

const struct comm_backend backend_process = {
	.open = open_process,
	.close = close_process,
	.begin = begin_process,
	.test = test_process,
	.wait = wait_process,
	.drop = drop_process,
	.bytes = extra_buffer_bytes,
};
