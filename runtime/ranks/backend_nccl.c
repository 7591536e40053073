/* Transfers between processes that have a GPU each, by NCCL.  The host enqueues
 * a transfer at the step that begins it.  At the step that ends it, the compute
 * stream waits for it.  The host waits only for kernels, and checks the other
 * processes meanwhile: if a transfer that the GPU has reached does not end, one
 * of them is late.
 *
 * Sums are the library's: of two ranks they have the bits of comm.c's, of more
 * the order is another, and 16-bit floats may be rounded on the way.  Ranks
 * that have a sum have the same bits of it.
 */
#include "runtime/ranks/copy_schedule.h"
#include "runtime/ranks/transfers.h"

#include <stdlib.h>
#include <time.h>

#include "runtime/base/dtype.h"

/* The schedule of one transfer of a program. */
struct comm_schedule {
	const struct ckr_comm *what;
	struct copy_schedule schedule;
};

/* A transfer: its group and its operands. */
struct nccl_call {
	struct transfer *of;
	struct nccl_transport *nccl;
	const struct copy_schedule *schedule;
	int group;
	bool in_transfer;               /* else on the compute stream */
	uint32_t ranks, rank;
	uint8_t dtype;
	bool max;
	char *x, *y, *workspace;
	uint64_t n;                     /* elements of x */
};

struct nccl_state {
	struct comm_schedule *schedule;
	uint32_t nschedule;
	uint32_t next;                  /* behind the one found last */
	uint32_t depth;
	struct pg_task *task;           /* [depth], by number */
	uint64_t nbegun;
	uint64_t workspace;             /* bytes */
	struct nccl_call *call;         /* [t->most], of one message */
	uint32_t ncall;
};

/* ---- opening ---- */

/* What follows in the message is aligned like GPU memory. */
static uint64_t
workspace_in_message(const struct copy_schedule *r)
{
	const uint64_t ALIGN = 256;

	return (r->workspace + ALIGN - 1) / ALIGN * ALIGN;
}

static bool
build_schedules(struct transfers *t, const struct ckr_program *p)
{
	const struct comm_view *view = &t->view;
	struct nccl_state *w = t->nccl;
	uint64_t message = 0;           /* bytes of its workspaces */

	for (uint32_t i = 0; i < p->ninstr; i++) {
		const struct ckr_comm *what = p->instr[i].comm;
		const int32_t *arg = p->arg + p->instr[i].arg0;
		struct comm_schedule *h = &w->schedule[w->nschedule];
		struct comm_ranks of;

		if (!what || comm_is_message(what))
			continue;
		h->what = what;
		w->nschedule++;
		of = ranks_of_axis(view, what->axis);
		if (!schedule_build(&h->schedule, what, of.n,
		                    rank_in_group(view, &of),
		                    &p->tensor[arg[0]], &p->tensor[arg[1]]))
			return false;
		message += workspace_in_message(&h->schedule);
		if (message > w->workspace)
			w->workspace = message;
		if (!what->joined)
			message = 0;
	}
	return true;
}

static bool
alloc_state(struct transfers *t)
{
	const struct ckr_program *p = t->view.program;
	struct nccl_state *w = t->nccl = calloc(1, sizeof(*w));
	bool ok;

	if (!w)
		return false;
	w->schedule = calloc(t->total + 1, sizeof(*w->schedule));
	w->call = calloc(t->most + 1, sizeof(*w->call));
	w->depth = 2 * (t->most + t->view.messages) + 64;
	w->task = calloc(w->depth, sizeof(*w->task));
	ok = w->schedule && w->call && w->task;
	for (int i = 0; i < CKR_PROGRAMS; i++)
		ok = ok && build_schedules(t, &p[i]);
	return ok;
}

static ckr_status wait_for_kernels(void *, struct err *);

static ckr_status
open_nccl(struct transfers *t, struct err *e)
{
	if (!alloc_state(t))
		return err_no_memory(e);
	CKR_TRY(nccl_alloc(t->view.nccl, t->nccl->depth, t->nccl->workspace,
	                   e));
	nccl_set_before_wait(t->view.nccl, wait_for_kernels, t);
	return CKR_OK;
}

static void
close_nccl(struct transfers *t)
{
	struct nccl_state *w = t->nccl;

	nccl_set_before_wait(t->view.nccl, NULL, NULL);
	for (uint32_t i = 0; w && w->schedule && i < w->nschedule; i++)
		schedule_free(&w->schedule[i].schedule);
	if (w) {
		free(w->task);
		free(w->schedule);
		free(w->call);
	}
	free(w);
}

static uint64_t
nccl_workspace_bytes(const struct transfers *t)
{
	return t->nccl->workspace;
}

/* ---- enqueuing ---- */

static void
enqueue_copies(const struct nccl_call *w, const struct copy_list *list,
               char *to, const char *from)
{
	for (uint32_t i = 0; i < list->n; i++) {
		const struct strided_copy *m = &list->one[i];

		nccl_copy_rows(w->nccl, w->in_transfer, to + m->to,
		               from + m->from, m->width, m->rows, m->to_pitch,
		               m->from_pitch);
	}
}

static void
broadcast_pieces(const struct nccl_call *w)
{
	const struct copy_schedule *r = w->schedule;

	nccl_group(w->nccl, true);
	for (uint32_t q = 0; q < r->nshard; q++)
		if (r->span[q].n)
			nccl_broadcast(w->nccl, w->group, w->x,
			               w->y + r->span[q].at, r->span[q].n,
			               q * r->replication);
	nccl_group(w->nccl, false);
}

static void
reduce_pieces(const struct nccl_call *w, const char *x)
{
	const struct copy_schedule *r = w->schedule;
	uint64_t size = dtype_row[w->dtype].nbytes;

	nccl_group(w->nccl, true);
	for (uint32_t q = 0; q < r->nshard; q++)
		if (r->span[q].n)
			nccl_reduce(w->nccl, w->group, x + r->span[q].at, w->y,
			            r->span[q].n / size, w->dtype,
			            q * r->replication);
	nccl_group(w->nccl, false);
}

static void
exchange_ranges(const struct nccl_call *w)
{
	const struct copy_schedule *r = w->schedule;

	nccl_group(w->nccl, true);
	for (uint32_t k = 0; k < w->ranks; k++) {
		if (k != w->rank && r->out[k].n)
			nccl_send(w->nccl, w->group,
			          w->workspace + r->out[k].at, r->out[k].n, k);
		if (k != w->rank && r->in[k].n)
			nccl_receive(w->nccl, w->group,
			             w->workspace + r->in[k].at, r->in[k].n, k);
	}
	nccl_group(w->nccl, false);
}

static void
enqueue_collective(const struct nccl_call *w)
{
	const struct copy_schedule *r = w->schedule;
	char *x = r->packs ? w->workspace : w->x;
	char *y = r->unpacks ? w->workspace : w->y;

	switch (r->kind) {
	case SCHED_LOCAL_SHARD:
		break;
	case SCHED_ALL_REDUCE:
		nccl_all_reduce(w->nccl, w->group, x, y, w->n, w->dtype,
		                w->max);
		break;
	case SCHED_ALL_GATHER:
		nccl_all_gather(w->nccl, w->group, x, y, r->shard_bytes);
		break;
	case SCHED_BROADCAST:
		broadcast_pieces(w);
		break;
	case SCHED_REDUCE_SCATTER:
		nccl_reduce_scatter(w->nccl, w->group, x, y,
		                    r->shard_bytes / dtype_row[w->dtype].nbytes,
		                    w->dtype);
		break;
	case SCHED_REDUCE:
		reduce_pieces(w, x);
		break;
	case SCHED_EXCHANGE:
		exchange_ranges(w);
		break;
	}
}

static void
enqueue_packs(const struct nccl_call *w)
{
	const struct copy_schedule *r = w->schedule;

	if (r->clear_y)
		nccl_zero(w->nccl, w->in_transfer, w->y,
		          comm_nelem(w->of->ty) * dtype_row[w->dtype].nbytes);
	if (r->clear_workspace)
		nccl_zero(w->nccl, w->in_transfer, w->workspace, r->workspace);
	enqueue_copies(w, &r->pack, w->workspace, w->x);
}

/* The owner of a shard sends it to the other ranks that hold it. */
static void
share_with_holders(const struct nccl_call *w)
{
	const struct copy_schedule *r = w->schedule;
	uint32_t owner = w->rank / r->replication * r->replication;

	nccl_group(w->nccl, true);
	for (uint32_t k = owner + 1; k < owner + r->replication; k++)
		if (w->rank == owner)
			nccl_send(w->nccl, w->group, w->y, r->shard_bytes, k);
		else if (w->rank == k)
			nccl_receive(w->nccl, w->group, w->y, r->shard_bytes,
			             owner);
	nccl_group(w->nccl, false);
}

static void
zero_tail(const struct nccl_call *w)
{
	nccl_zero(w->nccl, w->in_transfer, w->y + w->schedule->tail.at,
	          w->schedule->tail.n);
}

static void
enqueue_unpacks(const struct nccl_call *w)
{
	const struct copy_schedule *r = w->schedule;

	if (r->kind == SCHED_REDUCE_SCATTER || r->kind == SCHED_REDUCE)
		zero_tail(w);
	if (r->kind == SCHED_REDUCE && r->replication > 1)
		share_with_holders(w);
	enqueue_copies(w, &r->unpack, w->y,
	               r->kind == SCHED_LOCAL_SHARD ? w->x : w->workspace);
}

/* Begin the transfer with the next number. */
static ckr_status
begin_number(struct transfers *t, const struct pg_task *task, uint64_t *number,
             struct err *e)
{
	struct nccl_state *nccl = t->nccl;

	*number = nccl_begin(t->view.nccl);
	CKR_TRY(nccl_status(t->view.nccl, e));
	nccl->nbegun = *number;
	nccl->task[(*number - 1) % nccl->depth] = *task;
	return CKR_OK;
}

/* All of a message, in one call of NCCL. */
static ckr_status
enqueue_message(struct transfers *t, struct err *e)
{
	struct nccl_transport *to = t->view.nccl;
	struct nccl_state *nccl = t->nccl;
	const struct nccl_call *w = nccl->call;
	uint32_t n = nccl->ncall;
	uint64_t number;

	nccl->ncall = 0;
	CKR_TRY(begin_number(t, &w->of->task, &number, e));
	for (uint32_t i = 0; i < n; i++) {
		w[i].of->number = number;
		enqueue_packs(&w[i]);
	}
	if (n > 1)
		nccl_group(to, true);
	for (uint32_t i = 0; i < n; i++)
		enqueue_collective(&w[i]);
	if (n > 1)
		nccl_group(to, false);
	for (uint32_t i = 0; i < n; i++)
		enqueue_unpacks(&w[i]);
	nccl_end(to);
	return nccl_status(to, e);
}

/* The search begins after the row found last, because instructions run in the
 * same order in every step. */
static const struct copy_schedule *
next_schedule(struct nccl_state *w, const struct ckr_comm *what)
{
	while (w->schedule[w->next % w->nschedule].what != what)
		w->next++;
	return &w->schedule[w->next++ % w->nschedule].schedule;
}

/* Workspace of the message's calls so far. */
static uint64_t
message_workspace(const struct nccl_state *nccl)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < nccl->ncall; i++)
		n += workspace_in_message(nccl->call[i].schedule);
	return n;
}

static ckr_status
begin_nccl(struct transfers *t, struct transfer *x, struct err *e)
{
	const struct comm_view *view = &t->view;
	struct nccl_state *nccl = t->nccl;
	int group = x->what->axis;
	struct comm_ranks of = ranks_of_axis(view, group);
	char *workspace = nccl_workspace(view->nccl);
	struct nccl_call w = { .of = x, .nccl = view->nccl,
		.schedule = next_schedule(nccl, x->what), .group = group,
		.ranks = of.n, .rank = rank_in_group(view, &of),
		.dtype = x->tx->dtype, .max = x->what->max,
		.x = view->operand(view->user, x, 0, 0),
		.y = view->operand(view->user, x, 0, 1),
		.workspace = workspace ? workspace + message_workspace(nccl)
			: NULL,
		.n = comm_nelem(x->tx) };
	/* a rank alone has the result where it is */
	bool moves = w.n > 0 && !(w.ranks == 1 && w.x == w.y);

	if (moves && w.schedule->kind == SCHED_LOCAL_SHARD) {
		enqueue_packs(&w);
		enqueue_unpacks(&w);
	} else if (moves) {
		w.in_transfer = true;
		nccl->call[nccl->ncall++] = w;
	}
	if (x->what->joined || nccl->ncall == 0)
		return nccl_status(view->nccl, e);
	return enqueue_message(t, e);
}

static ckr_status
test_nccl(struct transfers *t, struct err *e)
{
	return nccl_status(t->view.nccl, e);
}

static ckr_status
wait_nccl(struct transfers *t, struct transfer *x, struct err *e)
{
	return transfers_await_message(t, x->number, e);
}

/* Forgets a message that has not been enqueued, too. */
static void
drop_nccl(struct transfers *t, struct transfer *x)
{
	(void)x;
	t->nccl->ncall = 0;
}

/* ---- between stages ---- */

ckr_status
transfers_begin_message(struct transfers *t, const struct nccl_message *m,
                        const struct pg_task *task, uint64_t *number,
                        struct err *e)
{
	struct nccl_transport *to = t->view.nccl;

	CKR_TRY(begin_number(t, task, number, e));
	if (m->out)
		nccl_send(to, CKR_STAGES, m->at, m->n, m->stage);
	else
		nccl_receive(to, CKR_STAGES, m->at, m->n, m->stage);
	nccl_end(to);
	return nccl_status(to, e);
}

ckr_status
transfers_await_message(struct transfers *t, uint64_t number, struct err *e)
{
	nccl_await(t->view.nccl, number);
	return nccl_status(t->view.nccl, e);
}

/* ---- waiting ---- */

static const struct pg_task computing = { .op = "the GPU's work" };

/* The transfer that the GPU has reached and others have not; NULL: it computes.
 * *moved: transfers that have ended. */
static const struct pg_task *
find_stalled(const struct transfers *t, uint64_t *moved)
{
	const struct nccl_state *w = t->nccl;
	uint64_t over = *moved = nccl_count_ended(t->view.nccl);

	return over < w->nbegun && nccl_has_begun(t->view.nccl, over + 1)
	       ? &w->task[over % w->depth] : NULL;
}

static ckr_status
poll_transfers(void *user, bool *done, const struct pg_task **at,
               uint64_t *moved, struct err *e)
{
	struct transfers *t = user;
	const struct pg_task *late = find_stalled(t, moved);
	const char *trouble = nccl_async_error(t->view.nccl);
	char text[2 * NAME_TEXT];

	*at = late ? late : &computing;
	*done = *moved == t->nccl->nbegun;
	CKR_TRY(nccl_status(t->view.nccl, e));
	if (trouble)
		return err_set(e, CKR_ERANK, "%s: %s",
		               pg_task_text(text, sizeof(text), *at),
		               trouble);
	return CKR_OK;
}

/* The same as far as kernels wait for them. */
static ckr_status
poll_kernels(void *user, bool *done, const struct pg_task **at, uint64_t *moved,
             struct err *e)
{
	struct transfers *t = user;

	CKR_TRY(poll_transfers(t, done, at, moved, e));
	*done = *at == &computing || nccl_kernels_done(t->view.nccl);
	return CKR_OK;
}

ckr_status
transfers_finish_messages(struct transfers *t, struct err *e)
{
	struct pg_poll l = { poll_transfers, t };
	ckr_status s = pg_wait(t->view.team, &l, e);

	if (s != CKR_OK)
		nccl_abort(t->view.nccl);
	return s;
}

/* device.before_wait.  After a failure NCCL's calls are aborted: none hangs. */
static ckr_status
wait_for_kernels(void *user, struct err *e)
{
	struct transfers *t = user;
	struct pg_poll l = { poll_kernels, t };
	ckr_status s = CKR_OK;
	uint64_t moved;

	while (s == CKR_OK && !nccl_kernels_done(t->view.nccl)) {
		if (find_stalled(t, &moved))
			s = pg_wait(t->view.team, &l, e);
		else
			nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
	if (s != CKR_OK)
		nccl_abort(t->view.nccl);
	return s;
}

const struct comm_backend backend_nccl = {
	.open = open_nccl,
	.close = close_nccl,
	.begin = begin_nccl,
	.test = test_nccl,
	.wait = wait_nccl,
	.drop = drop_nccl,
	.bytes = nccl_workspace_bytes,
};
