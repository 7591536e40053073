/* Asynchronous steps: a step is enqueued on the GPU after the step before.  The
 * host waits for a step when it ends, and may begin one more meanwhile.
 *
 * - Inputs are copied into the next of two staging buffers of pinned memory,
 *   and from there by the copy-in stream as soon as no step of the micro-batch
 *   before reads them: while it is updating.  Events say when a staging buffer
 *   has been read, and when inputs have arrived.
 * - The device writes the results of a step (losses, the norm, what kernels
 *   have found, what forward overwrites) into pinned memory of that step.  The
 *   host reads them behind the step's last event.
 * - Kernels check the loss and gradients where the finite check would.  What
 *   they find, or an index out of range, stands until the host clears it.
 *   Until then updates do nothing, those of the next step included.
 * - Such a step is rolled back, with the next one: what forward has overwritten
 *   is restored, so that all is as before the step.  Then the step runs again,
 *   synchronously.  That computes the same bits, says what was wrong where, and
 *   decides whether the step fails or is skipped.  The next one is enqueued
 *   again when it is ended: by then it is known whether a step was skipped.
 *
 * A micro-batch is three portions of work at most: the steps of one that is not
 * the last; of the last those up to where updates begin, and the rest.  A
 * portion is captured the first time, when libraries have loaded what they need
 * in a synchronous step, and launched as a graph from then on.
 * What differs between launches, kernels read from memory: inputs, and the
 * environment.  Transfers of host memory are recorded with the kernels; all of
 * a portion end with it.  CKR_GRAPHS=0, or if a library cannot be recorded:
 * kernel by kernel.
 */
#include "runtime/stepping/inside.h"
#include "runtime/support/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };                    /* of staged inputs */

/* What kernels find is the end of an environment. */
#define FOUND offsetof(struct ckr_env, fault)

/* ---- opening ---- */

static bool
is_staged(const struct stepping *c, uint32_t i)
{
	return world_input(c->world, &c->lib->program[0].tensor[i]);
}

static uint64_t
staged_bytes(const struct ckr_tensor *t)
{
	return (tensor_nbytes(t) + ALIGN - 1) / ALIGN * ALIGN;
}

/* The step from which none reads an input, or a view of one. */
static uint32_t
end_of_input_reads(const struct stepping *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	uint32_t end = 0;

	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		for (uint32_t k = 0; k < c->lib->nshared; k++) {
			if (is_staged(c, k) && t->flags & CKR_RESIDENT
			    && t->last >= (int32_t)end
			    && tensor_overlaps(t, &p->tensor[k]))
				end = (uint32_t)t->last + 1;
		}
	}
	return end;
}

/* Whether steps of the plan can be enqueued: nothing but kernels and transfers
 * of host memory is in them, and what is read behind them is in one place. */
static bool
can_run_steps_async(const struct stepping *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	const struct ckr_tensor *norm = c->norm.tensor;

	if (!c->device->deferred || c->world->poison || world_exchanges(p)
	    || c->world->team || c->world->count > 1
	    || (p->loss >= 0 && p->tensor[p->loss].placement)
	    || (norm && norm->ready >= (int32_t)program_commit(p)))
		return false;
	for (uint32_t i = 0; i < c->lib->nshared; i++)
		if (is_staged(c, i) && !tensor_is_dense(&p->tensor[i]))
			return false;
	return true;
}

static bool
alloc_inflight(struct stepping *c, struct inflight_step *f)
{
	uint64_t n = library_micro_batches(c->lib);

	f->finished = c->device->call->event_new(c->device);
	f->results = device_alloc_pinned(c->device, sizeof(*f->results)
		+ n * (sizeof(*f->env) + sizeof(*f->losses))
		+ c->finite.nbytes);
	if (!f->results || !f->finished)
		return false;
	f->env = (struct ckr_env *)(f->results + 1);
	f->losses = (uint64_t *)(f->env + n);
	f->saved = (unsigned char *)(f->losses + n);
	return true;
}

static bool
alloc_staging(struct stepping *c, struct staging_buffer *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->lib->nshared; i++)
		if (is_staged(c, i))
			n += staged_bytes(&c->lib->program[0].tensor[i]);
	s->at = device_alloc_pinned(c->device, n);
	s->copied = c->device->call->event_new(c->device);
	return s->at && s->copied;
}

ckr_status
async_open(struct stepping *c)
{
	struct async_state *l = &c->async;
	const char *wish = getenv("CKR_GRAPHS");
	bool ok = true;

	l->possible = can_run_steps_async(c);
	if (!l->possible)
		return CKR_OK;
	l->graphs = !(wish && !strcmp(wish, "0"));
	l->inputs_end = end_of_input_reads(c);
	l->read = c->device->call->event_new(c->device);
	for (int k = 0; k < STAGING_BUFFERS && ok; k++)
		ok = alloc_staging(c, &l->staging[k]);
	for (int k = 0; k < MAX_INFLIGHT && ok; k++)
		ok = alloc_inflight(c, &l->inflight[k]);
	return ok && l->read ? CKR_OK : device_no_memory(c->device, c->err);
}

static void
drop_graphs(struct stepping *c)
{
	struct async_state *l = &c->async;

	c->device->call->sync(c->device);
	for (int k = 0; k < SEGMENTS; k++) {
		if (l->graph[k])
			c->device->call->graph_free(c->device, l->graph[k]);
		l->graph[k] = NULL;
	}
	l->stale = false;
}

void
async_close(struct stepping *c)
{
	const struct device_calls *call;
	struct async_state *l = &c->async;

	if (!l->possible)
		return;
	call = c->device->call;
	drop_graphs(c);
	for (int k = 0; k < STAGING_BUFFERS; k++) {
		device_free_pinned(c->device, l->staging[k].at);
		call->event_free(c->device, l->staging[k].copied);
	}
	for (int k = 0; k < MAX_INFLIGHT; k++) {
		device_free_pinned(c->device, l->inflight[k].results);
		call->event_free(c->device, l->inflight[k].finished);
	}
	call->event_free(c->device, l->read);
}

/* ---- portions ---- */

static bool
is_in_segment(const struct stepping *c, enum step_segment which, int32_t phase)
{
	if (which == SEGMENT_COUNT)
		return phase == CKR_COUNT + c->count.pass - 1;
	return phase < CKR_COUNT
		&& (which != SEGMENT_EARLIER || phase != CKR_UPDATE);
}

static ckr_status
enqueue_steps(struct stepping *c, enum step_segment which, uint32_t from,
	      uint32_t to)
{
	const struct ckr_program *p = c->world->plan.p;

	for (uint32_t i = from, next; i < to; i = next) {
		next = i + 1;
		if (!is_in_segment(c, which, p->instr[i].phase)) {
			CKR_TRY(world_end_transfers(c->world, i));
			continue;
		}
		CKR_TRY(instr_run_some(c, &c->world->plan, i, to, &next));
		finite_enqueue(c, &c->world->plan, next - 1);
	}
	return instr_check_launches(c, to);
}

/* Recorded work that fails may run all the same: engines of cuDNN may allocate
 * or wait.  What fails there, too, says so. */
static void
give_up_graphs(struct stepping *c)
{
	struct device *d = c->device;
	size_t n = strlen(d->libraries);

	if (env_is_on("CKR_LOG"))
		fprintf(stderr, "ckr: no CUDA graphs: %s\n",
		        d->first.text[0] ? d->first.text : c->err->text);
	snprintf(d->libraries + n, sizeof(d->libraries) - n,
	         ", without CUDA graphs");
	world_finish_offloads(c->world);        /* none is under way */
	device_forget_error(d);
	c->lib->launch_error();
	c->async.graphs = false;
}

static void
record_segment(struct stepping *c, enum step_segment which, uint32_t from,
	       uint32_t to)
{
	ckr_status s;
	void *work;

	c->device->call->graph_begin(c->device);
	s = enqueue_steps(c, which, from, to);
	if (s == CKR_OK)
		s = world_finish_offloads(c->world);
	work = c->device->call->graph_end(c->device);
	if (s == CKR_OK && work) {
		c->async.graph[which] = work;
		return;
	}
	if (work)
		c->device->call->graph_free(c->device, work);
	give_up_graphs(c);
}

static ckr_status
enqueue_segment(struct stepping *c, enum step_segment which)
{
	const struct ckr_program *p = c->world->plan.p;
	uint32_t commit = program_commit(p);
	uint32_t from = which == SEGMENT_UPDATES ? commit : 0;
	uint32_t to = which <= SEGMENT_EARLIER ? p->update
		: which == SEGMENT_LAST        ? commit
					       : p->ninstr;

	if (from >= to)
		return CKR_OK;
	if (c->async.graphs && c->count.pass <= 1 && !c->async.graph[which])
		record_segment(c, which, from, to);
	if (!c->async.graphs || c->count.pass > 1)
		return enqueue_steps(c, which, from, to);
	c->device->call->graph_launch(c->device, c->async.graph[which]);
	return device_status(c->device, c->err);
}

/* ---- enqueuing a step ---- */

bool
async_is_busy(const struct stepping *c)
{
	return c->async.inflight[0].queued || c->async.inflight[1].queued;
}

/* Inputs from where they are set to staging (copy: NULL), or from there to
 * where steps read them.  A count pass copies only those that it reads,
 * unless all are wanted. */
static void
copy_inputs(struct stepping *c, const struct staging_buffer *s, bool all,
            void (*copy)(struct device *, void *, const void *, uint64_t))
{
	char *at = s->at;
	bool wanted;

	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		const struct ckr_tensor *t = &c->lib->program[0].tensor[i];

		if (!is_staged(c, i))
			continue;
		wanted = all || stepping_reads_input(c, i);
		if (wanted && copy)
			copy(c->device, world_plan_at(c->world, 0, t), at,
			     tensor_nbytes(t));
		else if (wanted)
			memcpy(at, world_input(c->world, t), tensor_nbytes(t));
		at += staged_bytes(t);
	}
}

/* Inputs on their way; fresh: as they are set now. */
static void
stage_inputs(struct stepping *c, struct inflight_step *f, bool fresh)
{
	const struct device_calls *call = c->device->call;
	struct async_state *l = &c->async;

	if (fresh) {
		f->staging = &l->staging[l->next_staging++ % STAGING_BUFFERS];
		call->event_sync(c->device, f->staging->copied);
		copy_inputs(c, f->staging, f->staged, NULL);
	}
	call->event_wait(c->device, l->read, DEVICE_COPY_IN);
	copy_inputs(c, f->staging, f->staged, call->copy_h2d_async);
	call->event_record(c->device, f->staging->copied, DEVICE_COPY_IN);
	call->event_wait(c->device, f->staging->copied, DEVICE_COMPUTE);
}

/* The environment of a micro-batch; all: what was found before is forgotten. */
static void
send_micro_env(struct stepping *c, struct inflight_step *f, bool all)
{
	struct ckr_env *env = &f->env[c->env.micro];

	*env = c->env;
	env->skip_finite_check = c->finite.off;
	c->device->call->copy_h2d(c->device, c->device_env, env,
	                          all ? sizeof(*env) : FOUND);
}

static void
copy_back_found(struct stepping *c, struct ckr_env *to)
{
	c->device->call->copy_d2h_async(c->device, (char *)to + FOUND,
	                                (char *)c->device_env + FOUND,
	                                sizeof(*to) - FOUND);
}

static void
copy_back_loss(struct stepping *c, struct inflight_step *f)
{
	const struct ckr_program *p = c->world->plan.p;
	const struct ckr_tensor *t = p->loss < 0 ? NULL : &p->tensor[p->loss];

	if (t)
		c->device->call->copy_d2h_async(c->device,
			&f->losses[c->env.micro], world_plan_at(c->world, 0, t),
			tensor_elem_bytes(t));
}

/* The last micro-batch, from the steps before updates on. */
static ckr_status
enqueue_updates(struct stepping *c, struct inflight_step *f)
{
	const struct device_calls *call = c->device->call;
	bool soon = c->async.inputs_end <= program_commit(c->world->plan.p);

	if (soon)
		call->event_record(c->device, c->async.read, DEVICE_COMPUTE);
	if (c->norm.tensor && c->env.clip > 0)
		call->copy_d2h_async(c->device, &f->results->norm,
		                     world_plan_at(c->world, 0, c->norm.tensor),
		                     sizeof(f->results->norm));
	copy_back_found(c, &f->results->found[0]);
	CKR_TRY(enqueue_segment(c, SEGMENT_UPDATES));
	if (!soon)
		call->event_record(c->device, c->async.read, DEVICE_COMPUTE);
	copy_back_found(c, &f->results->found[1]);
	return CKR_OK;
}

/* first: nothing of this or another step has been enqueued before. */
static ckr_status
enqueue_inputs_and_env(struct stepping *c, struct inflight_step *f, bool first,
                       bool fresh)
{
	/* in the first count pass, if there is one */
	bool begins = c->env.micro == 0
		&& c->count.pass == (c->count.npass > 0);

	if (!f->staged || begins) {
		CKR_TRY(fresh ? count_feed(c, c->env.micro) : CKR_OK);
		stage_inputs(c, f, fresh);
	}
	send_micro_env(c, f, first && c->env.micro == 0);
	return CKR_OK;
}

static ckr_status
enqueue_count(struct stepping *c, struct inflight_step *f, bool first,
              bool fresh)
{
	ckr_status s = CKR_OK;

	for (int r = 1; r <= c->count.npass && s == CKR_OK; r++)
		for (uint32_t m = 0; m < c->env.nmicro && s == CKR_OK; m++) {
			c->count.pass = r;
			c->env.micro = m;
			s = enqueue_inputs_and_env(c, f, first && r == 1,
			                           fresh);
			if (s == CKR_OK)
				s = enqueue_segment(c, SEGMENT_COUNT);
			c->device->call->event_record(c->device, c->async.read,
			                              DEVICE_COMPUTE);
		}
	c->count.pass = 0;
	return s;
}

static ckr_status
enqueue_micro(struct stepping *c, struct inflight_step *f, bool first,
              bool fresh)
{
	bool last = stepping_is_last(c);

	CKR_TRY(enqueue_inputs_and_env(c, f, first, fresh));
	CKR_TRY(enqueue_segment(c, last ? SEGMENT_LAST : SEGMENT_EARLIER));
	copy_back_loss(c, f);
	if (last)
		return enqueue_updates(c, f);
	c->device->call->event_record(c->device, c->async.read, DEVICE_COMPUTE);
	return CKR_OK;
}

void
async_enqueue(struct stepping *c, struct inflight_step *f, bool fresh)
{
	bool first = !async_is_busy(c);
	struct err was = *c->err;

	if (c->async.stale)
		drop_graphs(c);
	c->env.step = c->progress->step;
	c->env.nmicro = library_micro_batches(c->lib);
	c->env.fault = NULL;
	run_forget_outputs(c);
	f->status = CKR_OK;
	f->loss = 0;
	f->queued = true;
	f->staged = !c->feed || c->env.nmicro == 1;
	env_select_rank(c, 0);
	finite_save(c, f->saved);
	f->status = enqueue_count(c, f, first, fresh);
	first &= !c->count.npass;
	for (uint32_t m = 0; m < c->env.nmicro && f->status == CKR_OK; m++) {
		c->env.micro = m;
		f->status = enqueue_micro(c, f, first, fresh);
	}
	c->device->call->event_record(c->device, f->finished, DEVICE_COMPUTE);
	f->err = *c->err;
	*c->err = was;
}

void
async_roll_back(struct stepping *c, struct inflight_step *f)
{
	c->device->call->sync(c->device);
	finite_restore(c, f->saved);
	c->device->call->sync(c->device);
	for (int k = 0; k < MAX_INFLIGHT; k++)
		c->async.inflight[k].queued = false;
}

void
async_restore_inputs(struct stepping *c, const struct inflight_step *f)
{
	copy_inputs(c, f->staging, true, c->device->call->copy_h2d);
}
