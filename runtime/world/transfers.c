/* Transfers between ranks while a program runs.  All ranks carry out an
 * instruction, and only then is anything moved. */
#include "runtime/offload/offload.h"
#include "runtime/ranks/stage_messages.h"
#include "runtime/support/now.h"
#include "runtime/world/inside.h"

#include <stdlib.h>
#include <string.h>

static void *
operand_of_transfer(void *user, const struct transfer *t, uint32_t rank, int i)
{
	const struct loaded_program *b = t->of;
	const struct world *w = user;

	/* of a stage one rank lives in a process */
	if (w->team)
		rank = world_first_of(w, t->stage);
	return b->ptr[rank][b->p->instr[t->step].arg0 + (uint32_t)i];
}

static void
copy_to_host(void *user, void *host, const void *at, uint64_t n)
{
	const struct world *w = user;

	w->device->call->copy_d2h(w->device, host, at, n);
}

static void
copy_from_host(void *user, void *at, const void *host, uint64_t n)
{
	const struct world *w = user;

	w->device->call->copy_h2d(w->device, at, host, n);
	w->device->call->sync(w->device);
}

static ckr_status
open_messages(struct world *w)
{
	struct message_view view = { w->lib, w->tp * w->dp, world_processes(w),
		w->team, w->memory->nccl ? w->device : NULL };

	return w->stages > 1 ? messages_open(&w->memory->messages, &view,
	                                     w->err) : CKR_OK;
}

ckr_status
transfers_open_world(struct world *w)
{
	bool host = w->device->addressable;
	struct comm_view view = { .team = w->team, .nccl = w->memory->nccl,
		.program = w->lib->program,
		.mesh = world_mesh(w),
		.count = w->count, .rank = w->first, .threads = w->threads,
		.user = w, .operand = operand_of_transfer,
		.copy_d2h = host ? NULL : copy_to_host,
		.copy_h2d = host ? NULL : copy_from_host };

	CKR_TRY(open_messages(w));
	view.messages = messages_room(w->memory->messages);
	CKR_TRY(transfers_open(&w->memory->transfers, &view, w->err));
	if (w->memory->messages)
		messages_set_transfers(w->memory->messages,
		                       w->memory->transfers);
	return CKR_OK;
}

static bool
joins_stages(const struct ckr_instr *s)
{
	return s->comm && s->comm->axis == CKR_STAGES
	       && !comm_is_message(s->comm);
}

/* To the memory of messages, or from it: host memory, or with NCCL the GPU's.
 */
static void
copy_message(struct world *w, void *to, const void *from, uint64_t n, bool out)
{
	const struct device_calls *call = w->device->call;

	if (w->memory->nccl)
		nccl_copy_rows(w->memory->nccl, false, to, from, n, 1, n, n);
	else if (out)
		call->copy_d2h(w->device, to, from, n);
	else
		call->copy_h2d(w->device, to, from, n);
	if (!w->memory->nccl && !out)
		call->sync(w->device);
}

static ckr_status
send_message(struct world *w, const struct ckr_instr *s, uint32_t rank,
             const void *from, const struct pg_task *task)
{
	struct stage_messages *m = w->memory->messages;
	void *room;

	CKR_TRY(messages_reserve(m, s, rank, task, &room, w->err));
	copy_message(w, room, from, task->bytes, true);
	return messages_send(m, s, rank, task, w->err);
}

static ckr_status
receive_message(struct world *w, const struct ckr_instr *s, uint32_t rank,
                void *to, const struct pg_task *task)
{
	const void *message;

	CKR_TRY(messages_receive(w->memory->messages, s, rank, task, &message,
	                         w->err));
	copy_message(w, to, message, task->bytes, false);
	return CKR_OK;
}

/* A message of each rank of a stage that lives here. */
static ckr_status
exchange_messages(struct world *w, const struct loaded_program *b, uint32_t i,
                  uint64_t step)
{
	const struct ckr_instr *s = &b->p->instr[i];
	const struct ckr_tensor *t = &b->p->tensor[b->p->arg[s->arg0]];
	struct pg_task task = { .op = s->op, .of = t->name, .step = step,
		.bytes = tensor_nbytes(t) };

	FOR_STAGE (r, w, s->stage) {
		uint32_t rank = world_rank_of(w, r) % (w->tp * w->dp);
		void *at = b->ptr[r][s->arg0];

		CKR_TRY(s->comm->kind == CKR_SEND
		        ? send_message(w, s, rank, at, &task)
		        : receive_message(w, s, rank, at, &task));
	}
	return CKR_OK;
}

/* The instruction of a stage with the number of instruction i among the
 * collectives of all stages. */
static uint32_t
same_collective(const struct ckr_program *p, uint32_t i, uint32_t stage)
{
	uint32_t number = 0, k;

	for (k = 0; k < i; k++)
		number += joins_stages(&p->instr[k])
			&& p->instr[k].stage == p->instr[i].stage;
	for (k = 0; k < p->ninstr; k++)
		if (joins_stages(&p->instr[k]) && p->instr[k].stage == stage
		    && !number--)
			break;
	return k;
}

static ckr_status
run_here(const struct comm *m)
{
	comm_run(m);
	return CKR_OK;
}

/* The same in device memory, by way of the host. */
static ckr_status
run_by_host(struct world *w, const struct comm *m)
{
	uint64_t n = tensor_nbytes(m->tx);
	void *x[CKR_MAX_GROUP], *y[CKR_MAX_GROUP];
	struct comm here = *m;
	char *room = malloc(2 * n * m->ranks + 1);

	if (!room)
		return err_no_memory(w->err);
	for (uint32_t k = 0; k < m->ranks; k++) {
		x[k] = room + 2 * k * n;
		y[k] = room + (2 * k + 1) * n;
		w->device->call->copy_d2h(w->device, x[k], m->x[k], n);
	}
	here.x = x;
	here.y = y;
	comm_run(&here);
	for (uint32_t k = 0; k < m->ranks; k++)
		w->device->call->copy_h2d(w->device, m->y[k], y[k], n);
	w->device->call->sync(w->device);
	free(room);
	return device_status(w->device, w->err);
}

/* A collective of all stages, which live here.  Turns are in an order in which
 * each stage has made its operand when the first comes to its instruction, and
 * the others follow. */
static ckr_status
join_stages(struct world *w, const struct loaded_program *b, uint32_t i)
{
	const struct ckr_program *p = b->p;
	const struct ckr_instr *s = &p->instr[i];
	uint32_t ranks = w->tp * w->dp, at[CKR_MAX_GROUP];
	void *x[CKR_MAX_GROUP], *y[CKR_MAX_GROUP];
	struct comm m = { .what = s->comm,
		.tx = &p->tensor[p->arg[s->arg0]],
		.ty = &p->tensor[p->arg[s->arg0 + 1]],
		.x = x, .y = y, .ranks = w->stages, .threads = w->threads };

	w->memory->arrived = (w->memory->arrived + 1) % w->stages;
	if (w->memory->arrived != 1)
		return CKR_OK;
	for (uint32_t k = 0; k < w->stages; k++)
		at[k] = p->instr[same_collective(p, i, k)].arg0;
	for (uint32_t r = 0; r < ranks; r++) {
		for (uint32_t k = 0; k < w->stages; k++) {
			void **arg = b->ptr[k * ranks + r] + at[k];

			x[k] = arg[0];
			y[k] = arg[1];
		}
		CKR_TRY(w->device->addressable ? run_here(&m)
		        : run_by_host(w, &m));
	}
	return CKR_OK;
}

static struct offload *
offload_of(const struct world *w)
{
	return w->owner->memory->offload;
}

/* The same if stages live in several processes, each of which has several of
 * them: their operands are added up in the order of stages. */
static ckr_status
join_chunks(struct world *w, const struct loaded_program *b, uint32_t i,
            uint64_t step)
{
	const struct ckr_program *p = b->p;
	const struct ckr_instr *s = &p->instr[i];
	const struct ckr_tensor *t = &p->tensor[p->arg[s->arg0]];
	uint64_t n = tensor_nbytes(t);
	struct pg_task task = { .op = s->op, .of = s->origin, .step = step,
		.bytes = (uint64_t)s->bytes };
	uint32_t nrank = w->stages / w->chunks;
	void *x[CKR_MAX_GROUP], *y[CKR_MAX_GROUP];
	struct comm m = { .what = s->comm, .tx = t, .ty = t, .x = x, .y = y,
		.ranks = w->stages, .threads = w->threads };
	int count[CKR_MAX_GROUP], at[CKR_MAX_GROUP];
	char *mine, *all;
	ckr_status status;

	w->memory->arrived = (w->memory->arrived + 1) % w->chunks;
	if (w->memory->arrived != 1)
		return CKR_OK;
	mine = malloc(n * (w->chunks + 2 * (uint64_t)w->stages) + 1);
	if (!mine)
		return err_no_memory(w->err);
	all = mine + n * w->chunks;
	FOR_RANKS (r, w) {
		uint32_t k = same_collective(p, i, world_stage(w, r));

		w->device->call->copy_d2h(w->device, mine + r * n,
		                          b->ptr[r][p->instr[k].arg0], n);
	}
	for (uint32_t k = 0; k < nrank; k++) {
		count[k] = (int)(w->chunks * n);
		at[k] = (int)k * count[k];
	}
	status = pg_allgather(w->team, COMM_STAGES, mine, count[0],
	                      &(struct transport_side){ all, count, at }, &task,
	                      w->err);
	for (uint32_t k = 0; k < w->stages; k++) {
		x[k] = all + (k % nrank * w->chunks + k / nrank) * n;
		y[k] = all + (w->stages + k) * n;
	}
	if (status == CKR_OK)
		comm_run(&m);
	FOR_RANKS (r, w) {
		uint32_t k = same_collective(p, i, world_stage(w, r));

		w->device->call->copy_h2d(w->device,
			b->ptr[r][p->instr[k].arg0 + 1],
			y[world_stage(w, r)], n);
	}
	w->device->call->sync(w->device);
	free(mine);
	return status == CKR_OK ? device_status(w->device, w->err) : status;
}

/* Between device and host memory, on every rank. */
static void
begin_offload(struct world *w, const struct loaded_program *b, uint32_t i)
{
	const struct ckr_instr *s = &b->p->instr[i];
	bool fetch = s->comm->kind == CKR_FETCH;
	const struct ckr_tensor *t = &b->p->tensor[b->p->arg[s->arg0]];

	FOR_RANKS (r, w) {
		void **at = &b->ptr[r][s->arg0];

		offload_begin(offload_of(w),
		              fetch ? OFFLOAD_FETCH : OFFLOAD_STORE,
		              at[fetch], at[!fetch], tensor_nbytes(t), i,
		              s->comm->end);
	}
}

static ckr_status
begin_collective(struct world *w, const struct loaded_program *b, uint32_t i,
               uint64_t step)
{
	const struct ckr_instr *s = &b->p->instr[i];
	const int32_t *arg = b->p->arg + s->arg0;
	struct transfer t = { .of = b, .step = i, .end = s->comm->end,
		.stage = s->stage,
		.what = s->comm, .tx = &b->p->tensor[arg[0]],
		.ty = &b->p->tensor[arg[1]], .task = { .op = s->op,
		.of = s->origin, .step = step,
		.bytes = (uint64_t)s->bytes } };

	return transfers_begin(w->memory->transfers, &t, w->err);
}

void
world_begin_turn(struct world *w, struct loaded_program *b,
                 const struct ckr_turn *t)
{
	operands_take_slot(w, b, t->stage, t->slot);
	messages_begin_turn(w->memory->messages,
	                    (uint32_t)(t - w->lib->turn));
}

ckr_status
world_begin_updates(struct world *w, uint64_t step)
{
	return messages_begin_updates(w->memory->messages, step, w->err);
}

ckr_status
world_finish_messages(struct world *w)
{
	return w->memory->messages && w->memory->nccl
	       ? transfers_finish_messages(w->memory->transfers, w->err)
	       : CKR_OK;
}

ckr_status
world_begin_transfer(struct world *w, const struct loaded_program *b,
                     uint32_t i, uint64_t step)
{
	const struct ckr_comm *m = b->p->instr[i].comm;

	if (comm_is_message(m))
		return exchange_messages(w, b, i, step);
	if (joins_stages(&b->p->instr[i]) && !w->team)
		return join_stages(w, b, i);
	if (joins_stages(&b->p->instr[i]) && w->chunks > 1)
		return join_chunks(w, b, i, step);
	if (comm_is_host(m))
		begin_offload(w, b, i);
	else
		CKR_TRY(begin_collective(w, b, i, step));
	return m->end == i ? world_end_transfers(w, i) : CKR_OK;
}

/* Tell who asks how long the process has waited for the transfer that
 * instruction `step` had begun. */
static void
report_wait(struct world *w, uint32_t step, double from)
{
	if (w->waited)
		w->waited(w->waited_user, step, from, now_sec());
}

/* Those that end with instruction i or before. */
static ckr_status
end_offloads(struct world *w, uint32_t i)
{
	int64_t begin;

	for (int k = 0; offload_of(w) && k < OFFLOAD_LANES; k++) {
		double from = w->waited ? now_sec() : 0;

		CKR_TRY(offload_wait(offload_of(w), (enum offload_lane)k, i,
		                     &begin, w->err));
		/* an instruction's own transfer is part of it */
		if (begin >= 0 && begin < i)
			report_wait(w, (uint32_t)begin, from);
	}
	return CKR_OK;
}

/* Transfers between ranks. */
static ckr_status
end_exchanges(struct world *w, uint32_t i)
{
	struct transfers *all = w->memory->transfers;
	struct transfer *t;

	CKR_TRY(transfers_test(all, w->err));
	while ((t = transfers_due(all, i))) {
		bool late = t->end > t->step && t->of == &w->plan;
		double from = late && w->waited ? now_sec() : 0;
		uint32_t step = t->step;

		CKR_TRY(transfers_wait(all, t, w->err));
		if (late)
			report_wait(w, step, from);
	}
	return CKR_OK;
}

ckr_status
world_end_transfers(struct world *w, uint32_t i)
{
	CKR_TRY(end_offloads(w, i));
	return end_exchanges(w, i);
}

bool
world_exchanges(const struct ckr_program *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->ninstr; i++)
		any |= p->instr[i].comm && !comm_is_host(p->instr[i].comm);
	return any;
}

ckr_status
world_finish_offloads(struct world *w)
{
	return end_offloads(w, UINT32_MAX);
}

ckr_status
world_finish_exchanges(struct world *w)
{
	return w->memory->transfers ? end_exchanges(w, UINT32_MAX) : CKR_OK;
}

void
world_drop_transfers(struct world *w)
{
	struct err ignored;
	int64_t begin;

	transfers_drop(w->memory->transfers);
	messages_drop(w->memory->messages);
	w->memory->arrived = 0;
	for (int k = 0; offload_of(w) && k < OFFLOAD_LANES; k++)
		offload_wait(offload_of(w), (enum offload_lane)k, UINT32_MAX,
		             &begin, &ignored);
}
