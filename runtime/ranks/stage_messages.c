#include "runtime/ranks/stage_messages.h"
#include "runtime/base/dtype.h"
#include "runtime/ranks/comm.h"

#include <stdlib.h>
#include <string.h>

/* The messages of one tag.  Their numbers count from 0 on each rank. */
struct queue {
	uint64_t bytes;                 /* of a message */
	uint32_t room;                  /* messages that a rank may have under
	                                 * way */
	char *memory;                   /* [ranks][room][bytes] */
	uint64_t *sent, *received;      /* [ranks] */
	struct transport_message *moving;       /* [room]: of a process */
	uint64_t begun;                 /* by NCCL: how many it has begun to
	                                 * receive */
	uint64_t *transfer;             /* [room]: by NCCL: numbers of
	                                 * transfers; 0: none */
};

/* What other processes send to this one, in the order of the table of turns, or
 * of the program that evaluates. */
struct arrivals {
	struct arrival {
		const struct ckr_instr *send;
		uint32_t order;         /* its turn, or its instruction */
	} *all;
	uint32_t n, at;                 /* those before `at` have begun */
	uint32_t last;                  /* order of the latest call */
};

struct stage_messages {
	struct message_view view;
	uint32_t n;                     /* tags */
	uint32_t ranks;                 /* that live here, of each stage */
	uint32_t home;                  /* the process of rank 0 of the stages
	                                 * that live here */
	struct queue *of;               /* [n] by tag */
	struct transfers *transfers;    /* by NCCL */
	uint32_t turn;                  /* now */
	uint32_t first_update;          /* the first turn of updates */
	struct arrivals step, evaluation;
};

static bool
is_of_kind(const struct ckr_instr *s, enum ckr_comm_kind kind)
{
	return s->comm && s->comm->kind == kind;
}

/* Tags are numbers from 0 on; two plans of a stage send the same. */
static uint32_t
count_tags(const struct ckr_program *p, uint32_t n)
{
	for (uint32_t i = 0; i < p->ninstr; i++)
		if (is_of_kind(&p->instr[i], CKR_SEND)
		    && p->instr[i].comm->tag >= n)
			n = p->instr[i].comm->tag + 1;
	return n;
}

/* ---- how many are under way ---- */

/* The instructions of a turn: under[tag] messages before and after.  False: it
 * receives what has not been sent. */
static bool
count_turn(struct stage_messages *m, const struct ckr_program *p,
           const struct ckr_turn *t, uint32_t *under)
{
	for (uint32_t i = t->first; i < t->end; i++) {
		const struct ckr_instr *s = &p->instr[i];
		const struct ckr_tensor *x;
		struct queue *q;

		if (is_of_kind(s, CKR_RECEIVE) && under[s->comm->tag]-- == 0)
			return false;
		if (!is_of_kind(s, CKR_SEND))
			continue;
		x = &p->tensor[p->arg[s->arg0]];
		q = &m->of[s->comm->tag];
		q->bytes = comm_nelem(x) * dtype_row[x->dtype].nbytes;
		if (++under[s->comm->tag] > q->room)
			q->room = under[s->comm->tag];
	}
	return true;
}

static ckr_status
find_room(struct stage_messages *m, struct err *e)
{
	const struct ckr_library *lib = m->view.lib;
	const struct ckr_program *evaluation = &lib->program[2];
	const struct ckr_turn all = { .end = evaluation->ninstr };
	uint32_t *under = calloc(m->n + 1, sizeof(*under));
	bool ok = true;

	if (!under)
		return err_no_memory(e);
	/* as steps run, and as an evaluation does */
	for (uint32_t i = 0; i < lib->nturn && ok; i++)
		ok = count_turn(m, &lib->program[0], &lib->turn[i],
		                under);
	memset(under, 0, m->n * sizeof(*under));
	ok = ok && count_turn(m, evaluation, &all, under);
	free(under);
	return ok ? CKR_OK : err_set(e, CKR_EDATA, "%s: a turn receives what "
	                             "no turn before it has sent; compile the "
	                             "model again", lib->name);
}

/* ---- memory ---- */

static bool
open_queue(struct queue *q, const struct stage_messages *m)
{
	uint64_t bytes = q->bytes * q->room * m->ranks + 1;
	struct device *gpu = m->view.gpu;
	bool moves = m->view.team && !gpu;

	q->memory = gpu ? gpu->call->alloc(gpu, bytes) : malloc(bytes);
	q->sent = calloc(2 * (size_t)m->ranks, sizeof(*q->sent));
	q->received = q->sent + m->ranks;
	if (moves)
		q->moving = calloc(q->room + 1, sizeof(*q->moving));
	q->transfer = calloc(q->room + 1, sizeof(*q->transfer));
	for (uint32_t k = 0; q->moving && k < q->room; k++)
		q->moving[k].done = true;
	return q->memory && q->sent && q->transfer
	       && (q->moving || !moves);
}

/* The process that has this rank of a stage. */
static uint32_t
process_of(const struct stage_messages *m, uint32_t stage, uint32_t rank)
{
	return (stage * m->view.ranks + rank) % m->view.processes;
}

/* Whether it moves between processes. */
static bool
is_far(const struct stage_messages *m, const struct ckr_instr *s)
{
	return m->view.team && process_of(m, s->stage, 0)
	       != process_of(m, s->comm->peer, 0);
}

/* Whether this process, or a rank here, sends or receives it. */
static bool
is_ours(const struct stage_messages *m, const struct ckr_instr *s)
{
	return !m->view.team || process_of(m, s->stage, 0) == m->home;
}

static ckr_status
open_queues(struct stage_messages *m, const struct ckr_program *p,
            struct err *e)
{
	for (uint32_t i = 0; i < p->ninstr; i++) {
		const struct ckr_instr *s = &p->instr[i];
		struct queue *q;

		if (!s->comm || !comm_is_message(s->comm) || !is_ours(m, s))
			continue;
		q = &m->of[s->comm->tag];
		if (m->view.team && !m->view.gpu
		    && (q->bytes > INT32_MAX
		        || s->comm->tag >= CKR_MESSAGE_TAGS))
			return err_set(e, CKR_EUNSUPPORTED, "message %u of "
			               "%llu bytes between stages: expected at "
			               "most %d messages of %d bytes between "
			               "processes", s->comm->tag,
			               (unsigned long long)q->bytes,
			               CKR_MESSAGE_TAGS, INT32_MAX);
		if (!q->memory && !open_queue(q, m))
			return m->view.gpu ? device_no_memory(m->view.gpu, e)
			       : err_no_memory(e);
	}
	return CKR_OK;
}

/* Adds what instructions first .. end - 1 send to this process. */
static bool
add_arrivals(const struct stage_messages *m, struct arrivals *a,
             const struct ckr_program *p, uint32_t first, uint32_t end,
             uint32_t order)
{
	for (uint32_t i = first; i < end; i++) {
		const struct ckr_instr *s = &p->instr[i];
		struct arrival *more;

		if (!is_of_kind(s, CKR_SEND) || !is_far(m, s)
		    || process_of(m, s->comm->peer, 0) != m->home)
			continue;
		more = realloc(a->all, (a->n + 1) * sizeof(*a->all));
		if (!more)
			return false;
		a->all = more;
		a->all[a->n++] = (struct arrival){ s, order };
	}
	return true;
}

static ckr_status
list_arrivals(struct stage_messages *m, struct err *e)
{
	const struct ckr_library *lib = m->view.lib;
	const struct ckr_program *p = lib->program;
	bool ok = true;

	while (m->first_update < lib->nturn
	       && lib->turn[m->first_update].kind != CKR_TURN_UPDATE)
		m->first_update++;
	for (uint32_t i = 0; i < lib->nturn && ok && m->view.gpu; i++)
		ok = add_arrivals(m, &m->step, &p[0], lib->turn[i].first,
		                  lib->turn[i].end, i);
	for (uint32_t i = 0; i < p[2].ninstr && ok && m->view.gpu; i++)
		ok = add_arrivals(m, &m->evaluation, &p[2], i, i + 1, i);
	return ok ? CKR_OK : err_no_memory(e);
}

ckr_status
messages_open(struct stage_messages **out, const struct message_view *view,
              struct err *e)
{
	struct stage_messages *m = *out = calloc(1, sizeof(*m));

	if (!m)
		return err_no_memory(e);
	m->view = *view;
	m->ranks = view->team ? 1 : view->ranks;
	if (view->team)
		m->home = view->team->rank / view->ranks * view->ranks;
	m->n = count_tags(&view->lib->program[2],
	                  count_tags(&view->lib->program[0], 0));
	m->of = calloc(m->n + 1, sizeof(*m->of));
	if (!m->of)
		return err_no_memory(e);
	CKR_TRY(find_room(m, e));
	CKR_TRY(open_queues(m, &view->lib->program[0], e));
	CKR_TRY(open_queues(m, &view->lib->program[2], e));
	return list_arrivals(m, e);
}

static void
free_queue(const struct stage_messages *m, struct queue *q)
{
	if (m->view.gpu)
		m->view.gpu->call->free(m->view.gpu, q->memory);
	else
		free(q->memory);
	free(q->sent);
	free(q->moving);
	free(q->transfer);
}

void
messages_close(struct stage_messages *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; m->of && i < m->n; i++)
		free_queue(m, &m->of[i]);
	free(m->of);
	free(m->step.all);
	free(m->evaluation.all);
	free(m);
}

uint64_t
messages_bytes(const struct stage_messages *m)
{
	uint64_t n = 0;

	for (uint32_t i = 0; m && i < m->n; i++)
		if (m->of[i].memory)
			n += m->of[i].bytes * m->of[i].room * m->ranks;
	return n;
}

uint32_t
messages_room(const struct stage_messages *m)
{
	uint32_t n = 0;

	for (uint32_t i = 0; m && i < m->n; i++)
		if (m->of[i].memory)
			n += m->of[i].room;
	return n;
}

void
messages_set_transfers(struct stage_messages *m, struct transfers *t)
{
	m->transfers = t;
}

/* ---- messages ---- */

static char *
message_at(const struct queue *q, uint32_t rank, uint64_t number)
{
	return q->memory + (rank * q->room + number % q->room) * q->bytes;
}

static ckr_status
out_of_order(const struct ckr_instr *s, struct err *e)
{
	return err_set(e, CKR_EDATA, "stage %u: %s (message %u): messages are "
	               "out of order", s->stage, s->op, s->comm->tag);
}

/* The message with that number between this process and another, of which the
 * memory is free, or will be. */
static struct transport_message *
moving_message(struct stage_messages *m, const struct ckr_instr *s,
               uint64_t number)
{
	struct queue *q = &m->of[s->comm->tag];

	return &q->moving[number % q->room];
}

static ckr_status
begin_message(struct stage_messages *m, const struct ckr_instr *s,
              uint64_t number, const struct pg_task *task, struct err *e)
{
	struct queue *q = &m->of[s->comm->tag];
	struct transport_message *x = moving_message(m, s, number);

	*x = (struct transport_message){
		.rank = process_of(m, s->comm->peer,
		                   m->view.team->rank % m->view.ranks),
		.tag = s->comm->tag, .data = message_at(q, 0, number),
		.n = (int)q->bytes, .out = s->comm->kind == CKR_SEND };
	return pg_begin_message(m->view.team, x, task, e);
}

/* ---- by NCCL ---- */

/* Begin message `number` of the queue of instruction s: to stage `other`, or
 * from it. */
static ckr_status
begin_transfer(struct stage_messages *m, const struct ckr_instr *s,
               uint32_t other, bool out, uint64_t number,
               const struct pg_task *task, struct err *e)
{
	struct queue *q = &m->of[s->comm->tag];
	const struct nccl_message x = { message_at(q, 0, number), q->bytes,
		process_of(m, other, 0) / m->view.ranks, out };

	return transfers_begin_message(m->transfers, &x, task,
	                               &q->transfer[number % q->room], e);
}

/* Begin to receive the next arrival. */
static ckr_status
begin_arrival(struct stage_messages *m, struct arrivals *a,
              const struct pg_task *task, struct err *e)
{
	const struct ckr_instr *s = a->all[a->at++].send;
	const struct ckr_program *p = a == &m->step ? &m->view.lib->program[0]
		: &m->view.lib->program[2];
	struct queue *q = &m->of[s->comm->tag];
	struct pg_task own = { .op = "receive", .step = task->step,
		.of = p->tensor[p->arg[s->arg0]].name, .bytes = q->bytes };

	return begin_transfer(m, s, s->stage, false, q->begun++, &own, e);
}

/* A program comes to what has this order; to an earlier one: it runs again. */
static void
come_to(struct arrivals *a, uint32_t order)
{
	if (order < a->last)
		a->at = 0;
	a->last = order;
}

/* The arrivals of the program that s is an instruction of, and its order among
 * them. */
static struct arrivals *
arrivals_of(struct stage_messages *m, const struct ckr_instr *s,
            uint32_t *order)
{
	const struct ckr_program *p = &m->view.lib->program[2];
	bool evaluates = s >= p->instr && s < p->instr + p->ninstr;
	struct arrivals *a = evaluates ? &m->evaluation : &m->step;

	*order = evaluates ? (uint32_t)(s - p->instr) : m->turn;
	come_to(a, *order);
	return a;
}

static ckr_status
begin_arrivals_before(struct stage_messages *m, struct arrivals *a,
                      uint32_t order, const struct pg_task *task, struct err *e)
{
	while (a->at < a->n && a->all[a->at].order < order)
		CKR_TRY(begin_arrival(m, a, task, e));
	return CKR_OK;
}

void
messages_begin_turn(struct stage_messages *m, uint32_t turn)
{
	m->turn = turn;
	come_to(&m->step, turn);
}

ckr_status
messages_begin_updates(struct stage_messages *m, uint64_t step, struct err *e)
{
	const struct pg_task task = { .step = step };

	return begin_arrivals_before(m, &m->step, m->first_update, &task, e);
}

/* Up to message `number` of the queue that instruction s receives from. */
static ckr_status
begin_arrivals_to(struct stage_messages *m, const struct ckr_instr *s,
                  uint64_t number, const struct pg_task *task, struct err *e)
{
	const struct queue *q = &m->of[s->comm->tag];
	uint32_t order;
	struct arrivals *a = arrivals_of(m, s, &order);

	for (uint32_t k = 0; q->begun <= number; k++) {
		if (k == a->n)
			return out_of_order(s, e);
		/* the program runs again, from the order that it ended with */
		a->at = a->at < a->n ? a->at : 0;
		CKR_TRY(begin_arrival(m, a, task, e));
	}
	return CKR_OK;
}

/* ---- both ---- */

ckr_status
messages_reserve(struct stage_messages *m, const struct ckr_instr *s,
                 uint32_t rank, const struct pg_task *task, void **room,
                 struct err *e)
{
	struct queue *q = &m->of[s->comm->tag];

	rank = m->view.team ? 0 : rank;
	*room = message_at(q, rank, q->sent[rank]);
	if (is_far(m, s) && m->view.gpu) {
		uint32_t order;
		struct arrivals *a = arrivals_of(m, s, &order);

		CKR_TRY(begin_arrivals_before(m, a, order, task, e));
		return transfers_await_message(m->transfers,
			q->transfer[q->sent[0] % q->room], e);
	}
	if (is_far(m, s))
		return pg_await_message(m->view.team, moving_message(m, s,
			q->sent[0]), task, e);
	return q->sent[rank] - q->received[rank] == q->room ? out_of_order(s, e)
	       : CKR_OK;
}

ckr_status
messages_send(struct stage_messages *m, const struct ckr_instr *s,
              uint32_t rank, const struct pg_task *task, struct err *e)
{
	struct queue *q = &m->of[s->comm->tag];
	uint64_t number = q->sent[m->view.team ? 0 : rank]++;

	if (is_far(m, s) && m->view.gpu)
		return begin_transfer(m, s, s->comm->peer, true, number, task,
		                      e);
	return is_far(m, s) ? begin_message(m, s, number, task, e) : CKR_OK;
}

ckr_status
messages_receive(struct stage_messages *m, const struct ckr_instr *s,
                 uint32_t rank, const struct pg_task *task,
                 const void **message, struct err *e)
{
	struct queue *q = &m->of[s->comm->tag];
	uint64_t number;

	rank = m->view.team ? 0 : rank;
	if (!is_far(m, s) && q->sent[rank] == q->received[rank])
		return out_of_order(s, e);
	number = q->received[rank]++;
	*message = message_at(q, rank, number);
	if (!is_far(m, s))
		return CKR_OK;
	if (m->view.gpu) {
		CKR_TRY(begin_arrivals_to(m, s, number, task, e));
		return transfers_await_message(m->transfers,
			q->transfer[number % q->room], e);
	}
	CKR_TRY(begin_message(m, s, number, task, e));
	return pg_await_message(m->view.team, moving_message(m, s, number),
	                        task, e);
}

/* Between processes a step that fails does so when all are done: none is under
 * way. */
void
messages_drop(struct stage_messages *m)
{
	for (uint32_t i = 0; m && i < m->n && !m->view.team; i++)
		memset(m->of[i].sent, 0,
		       2 * (size_t)m->ranks * sizeof(*m->of[i].sent));
}
