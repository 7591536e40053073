/* A step that a GPU is given as work in a queue, behind the one before: nobody
 * waits for it until it is ended, and one more may be begun meanwhile.
 *
 * - Inputs are copied into the next of two slots of pinned memory, and brought
 *   from there by the device's other queue as soon as no step of the
 *   micro-batch before reads them: while it is updating.  Marks say when a slot
 *   has been read, and when inputs have come.
 * - What is read behind a step (losses, the norm, what kernels have found, what
 *   forward overwrites) the device writes into pinned memory of that flight,
 *   which is read behind the flight's last mark.
 * - Kernels look at the loss and at gradients where the guard would.  What they
 *   find, or an index out of range, stands until the host takes it back, and
 *   updates do nothing while it does: neither those of the step, nor those of
 *   the one behind it.
 * - A step that ends like that is recalled, with the one behind it: what
 *   forward has overwritten is put back, so that all is as before the step, and
 *   the step is carried out again, plainly.  That comes to the same bits, says
 *   what was wrong where, and decides whether the step fails or is skipped.
 *   The one behind it is given anew when it is ended: by then its settings are
 *   known to follow a step that was skipped.
 *
 * A micro-batch is three portions of work at most: the steps of one that is not
 * the last; of the last those up to where updates begin, and the rest.  A
 * portion is captured the first time, when libraries have loaded what they need
 * in a step that was carried out plainly, and launched as a whole from then on.
 * What differs between launches, kernels read from memory: inputs, and the
 * environment.  CKR_GRAPHS=0: kernel by kernel.
 */
#include "runtime/model/rt.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };                    /* inputs in a slot */

/* What kernels find is the end of an environment. */
#define FOUND offsetof(struct ckr_env, fault)

/* ---- opening ---- */

static bool
is_dealt(const ckr_ctx *c, uint32_t i)
{
	return c->whole && c->whole[i];
}

static uint64_t
slot_bytes(const struct ckr_tensor *t)
{
	return (rt_nbytes(t) + ALIGN - 1) / ALIGN * ALIGN;
}

/* The step from which none reads an input, or a view of one. */
static uint32_t
inputs_end(const ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	uint32_t end = 0;

	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		for (uint32_t k = 0; k < c->lib->nshared; k++) {
			int64_t from, to, lo, hi;

			if (!is_dealt(c, k) || !(t->flags & CKR_RESIDENT)
			    || t->last < (int32_t)end)
				continue;
			rt_reach(&p->tensor[k], &from, &to);
			rt_reach(t, &lo, &hi);
			if (lo < to && from < hi)
				end = (uint32_t)t->last + 1;
		}
	}
	return end;
}

/* Whether the device can be given steps of the plan: nothing but kernels is in
 * them, and what is read behind them is in one place. */
static bool
can_be_late(const ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	const struct ckr_tensor *norm = c->norm.tensor;

	if (c->device->host || c->poison || c->team || c->world.count > 1
	    || (p->loss >= 0 && p->tensor[p->loss].split)
	    || (norm && norm->ready >= (int32_t)rt_commits_at(p)))
		return false;
	for (uint32_t i = 0; i < p->nstep; i++)
		if (p->step[i].comm)
			return false;
	for (uint32_t i = 0; i < c->lib->nshared; i++)
		if (is_dealt(c, i) && !rt_is_dense(&p->tensor[i]))
			return false;
	return true;
}

/* Pinned, and zeros. */
static void *
take_pinned(ckr_ctx *c, uint64_t n)
{
	void *p = c->device->call->take_host(c->device, n + 1);

	if (p)
		memset(p, 0, n + 1);
	return p;
}

static bool
open_flight(ckr_ctx *c, struct flight *f)
{
	uint64_t n = ckr_micro_batches(c);

	f->env = take_pinned(c, n * sizeof(*f->env));
	f->losses = take_pinned(c, n * sizeof(*f->losses));
	f->found = take_pinned(c, 2 * sizeof(*f->found));
	f->norm = take_pinned(c, sizeof(*f->norm));
	f->held = take_pinned(c, c->guard.nbytes);
	f->done = c->device->call->mark_new(c->device);
	return f->env && f->losses && f->found && f->norm && f->held
	       && f->done;
}

static bool
open_slot(ckr_ctx *c, struct slot *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->lib->nshared; i++)
		if (is_dealt(c, i))
			n += slot_bytes(&c->lib->program[0].tensor[i]);
	s->at = take_pinned(c, n);
	s->brought = c->device->call->mark_new(c->device);
	return s->at && s->brought;
}

ckr_status
late_open(ckr_ctx *c)
{
	struct late *l = &c->late;
	const char *wish = getenv("CKR_GRAPHS");
	bool ok = true;

	l->can = can_be_late(c);
	if (!l->can)
		return CKR_OK;
	l->graphs = !(wish && !strcmp(wish, "0"));
	l->inputs_end = inputs_end(c);
	l->read = c->device->call->mark_new(c->device);
	for (int k = 0; k < SLOTS && ok; k++)
		ok = open_slot(c, &l->slot[k]);
	for (int k = 0; k < FLIGHTS && ok; k++)
		ok = open_flight(c, &l->flight[k]);
	if (ok && l->read)
		return CKR_OK;
	return device_failed(c->device, &c->err) ? CKR_ENOMEM
	       : rt_no_memory(c);
}

static void
drop_pinned(ckr_ctx *c, void *p)
{
	if (p)
		c->device->call->drop_host(c->device, p);
}

void
late_forget(ckr_ctx *c)
{
	struct late *l = &c->late;

	if (!l->can)
		return;
	c->device->call->sync(c->device);
	for (int k = 0; k < PORTIONS; k++) {
		if (l->graph[k])
			c->device->call->forget(c->device, l->graph[k]);
		l->graph[k] = NULL;
	}
}

void
late_close(ckr_ctx *c)
{
	struct late *l = &c->late;

	if (!l->can)
		return;
	late_forget(c);
	for (int k = 0; k < SLOTS; k++) {
		drop_pinned(c, l->slot[k].at);
		c->device->call->mark_free(c->device, l->slot[k].brought);
	}
	for (int k = 0; k < FLIGHTS; k++) {
		struct flight *f = &l->flight[k];

		drop_pinned(c, f->env);
		drop_pinned(c, f->losses);
		drop_pinned(c, f->found);
		drop_pinned(c, f->norm);
		drop_pinned(c, f->held);
		c->device->call->mark_free(c->device, f->done);
	}
	c->device->call->mark_free(c->device, l->read);
	*l = (struct late){ .can = false };
}

/* ---- portions ---- */

static bool
is_in(const ckr_ctx *c, enum portion which, int32_t phase)
{
	if (which == PORTION_COUNT)
		return phase == CKR_COUNT + c->count.round - 1;
	return phase < CKR_COUNT
	       && (which != PORTION_EARLIER || phase != CKR_UPDATE);
}

static ckr_status
give_steps(ckr_ctx *c, enum portion which, uint32_t from, uint32_t to)
{
	const struct ckr_program *p = c->plan.p;

	for (uint32_t i = from; i < to; i++) {
		if (!is_in(c, which, p->step[i].phase))
			continue;
		CKR_TRY(rt_run_one(c, &c->plan, i));
		guard_watch(c, &c->plan, i);
	}
	return rt_launched(c, to);
}

static ckr_status
keep(ckr_ctx *c, enum portion which, uint32_t from, uint32_t to)
{
	ckr_status s;
	void *work;

	c->device->call->capture(c->device);
	s = give_steps(c, which, from, to);
	work = c->device->call->captured(c->device);
	if (s == CKR_OK)
		c->late.graph[which] = work;
	else if (work)
		c->device->call->forget(c->device, work);
	return s;
}

static ckr_status
give_portion(ckr_ctx *c, enum portion which)
{
	const struct ckr_program *p = c->plan.p;
	uint32_t looks = rt_commits_at(p);
	uint32_t from = which == PORTION_UPDATES ? looks : 0;
	uint32_t to = which <= PORTION_EARLIER ? p->update
	              : which == PORTION_LAST ? looks : p->nstep;

	if (from >= to)
		return CKR_OK;
	if (!c->late.graphs || c->count.round > 1)
		return give_steps(c, which, from, to);
	if (!c->late.graph[which])
		CKR_TRY(keep(c, which, from, to));
	if (c->late.graph[which])
		c->device->call->launch(c->device, c->late.graph[which]);
	return device_status(c->device, &c->err);
}

/* ---- giving the device a step ---- */

bool
late_is_busy(const ckr_ctx *c)
{
	return c->late.flight[0].given || c->late.flight[1].given;
}

/* Between a slot and where inputs are set, or where steps read them: of a round
 * those that it reads, unless the step has all there then. */
static void
move_inputs(ckr_ctx *c, const struct slot *s, bool all,
            void (*bring)(struct device *, void *, const void *, uint64_t))
{
	char *at = s->at;
	bool wanted;

	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		const struct ckr_tensor *t = &c->lib->program[0].tensor[i];

		if (!is_dealt(c, i))
			continue;
		wanted = all || count_wants(c, i);
		if (wanted && bring)
			bring(c->device, rt_at(c, &c->plan, 0, t), at,
			      rt_nbytes(t));
		else if (wanted)
			memcpy(at, c->whole[i], rt_nbytes(t));
		at += slot_bytes(t);
	}
}

/* Inputs on their way; fresh: as they are set now. */
static void
deal(ckr_ctx *c, struct flight *f, bool fresh)
{
	const struct device_calls *call = c->device->call;
	struct late *l = &c->late;

	if (fresh) {
		f->slot = &l->slot[l->turn++ % SLOTS];
		call->await(c->device, f->slot->brought);
		move_inputs(c, f->slot, f->kept, NULL);
	}
	call->follow(c->device, l->read, DEVICE_BRINGS);
	move_inputs(c, f->slot, f->kept, call->bring);
	call->set(c->device, f->slot->brought, DEVICE_BRINGS);
	call->follow(c->device, f->slot->brought, DEVICE_WORK);
}

/* The environment of a micro-batch; all: what was found before is forgotten. */
static void
send_env(ckr_ctx *c, struct flight *f, bool all)
{
	struct ckr_env *env = &f->env[c->env.micro];

	*env = c->env;
	env->lax = c->guard.lax;
	c->device->call->put(c->device, c->device_env, env,
	                     all ? sizeof(*env) : FOUND);
}

static void
fetch_found(ckr_ctx *c, struct ckr_env *to)
{
	c->device->call->fetch(c->device, (char *)to + FOUND,
	                       (char *)c->device_env + FOUND,
	                       sizeof(*to) - FOUND);
}

static void
fetch_loss(ckr_ctx *c, struct flight *f)
{
	const struct ckr_program *p = c->plan.p;
	const struct ckr_tensor *t = p->loss < 0 ? NULL : &p->tensor[p->loss];

	if (t)
		c->device->call->fetch(c->device, &f->losses[c->env.micro],
		                       rt_at(c, &c->plan, 0, t),
		                       dtype_row[t->dtype].nbytes);
}

/* The last micro-batch, from the steps before updates on. */
static ckr_status
give_updates(ckr_ctx *c, struct flight *f)
{
	const struct device_calls *call = c->device->call;
	bool soon = c->late.inputs_end <= rt_commits_at(c->plan.p);

	if (soon)
		call->set(c->device, c->late.read, DEVICE_WORK);
	if (c->norm.tensor && c->env.clip > 0)
		call->fetch(c->device, f->norm,
		            rt_at(c, &c->plan, 0, c->norm.tensor),
		            sizeof(*f->norm));
	fetch_found(c, &f->found[0]);
	CKR_TRY(give_portion(c, PORTION_UPDATES));
	if (!soon)
		call->set(c->device, c->late.read, DEVICE_WORK);
	fetch_found(c, &f->found[1]);
	return CKR_OK;
}

/* first: nothing of this or another step has been given before. */
static ckr_status
begin_micro(ckr_ctx *c, struct flight *f, bool first, bool fresh)
{
	/* in the first round, if there is one */
	bool begins = c->env.micro == 0
		&& c->count.round == (c->count.rounds > 0);

	if (!f->kept || begins) {
		CKR_TRY(fresh ? rt_feed(c, c->env.micro) : CKR_OK);
		deal(c, f, fresh);
	}
	send_env(c, f, first && c->env.micro == 0);
	return CKR_OK;
}

static ckr_status
give_count(ckr_ctx *c, struct flight *f, bool first, bool fresh)
{
	ckr_status s = CKR_OK;

	for (int r = 1; r <= c->count.rounds && s == CKR_OK; r++)
		for (uint32_t m = 0; m < c->env.nmicro && s == CKR_OK; m++) {
			c->count.round = r;
			c->env.micro = m;
			s = begin_micro(c, f, first && r == 1, fresh);
			if (s == CKR_OK)
				s = give_portion(c, PORTION_COUNT);
			c->device->call->set(c->device, c->late.read,
			                     DEVICE_WORK);
		}
	c->count.round = 0;
	return s;
}

static ckr_status
give_micro(ckr_ctx *c, struct flight *f, bool first, bool fresh)
{
	bool last = c->env.micro + 1 == c->env.nmicro;

	CKR_TRY(begin_micro(c, f, first, fresh));
	CKR_TRY(give_portion(c, last ? PORTION_LAST : PORTION_EARLIER));
	fetch_loss(c, f);
	if (last)
		return give_updates(c, f);
	c->device->call->set(c->device, c->late.read, DEVICE_WORK);
	return CKR_OK;
}

void
late_give(ckr_ctx *c, struct flight *f, bool fresh)
{
	bool first = !late_is_busy(c);
	struct err was = c->err;

	c->env.step = c->step;
	c->env.nmicro = ckr_micro_batches(c);
	c->env.fault = NULL;
	c->outputs = NULL;
	f->status = CKR_OK;
	f->loss = 0;
	f->given = true;
	f->kept = !c->feed || c->env.nmicro == 1;
	rt_become(c, 0);
	guard_hold(c, f->held);
	f->status = give_count(c, f, first, fresh);
	first &= !c->count.rounds;
	for (uint32_t m = 0; m < c->env.nmicro && f->status == CKR_OK; m++) {
		c->env.micro = m;
		f->status = give_micro(c, f, first, fresh);
	}
	c->device->call->set(c->device, f->done, DEVICE_WORK);
	f->err = c->err;
	c->err = was;
}

ckr_status
late_give_again(ckr_ctx *c, struct flight *f)
{
	if (f->given || f->status != CKR_OK)
		return CKR_OK;
	CKR_TRY(rt_prepare(c, &f->hyper));
	late_give(c, f, !f->kept);
	return CKR_OK;
}

void
late_recall(ckr_ctx *c, struct flight *f)
{
	c->device->call->sync(c->device);
	guard_return(c, f->held);
	c->device->call->sync(c->device);
	for (int k = 0; k < FLIGHTS; k++)
		c->late.flight[k].given = false;
}

void
late_restore_inputs(ckr_ctx *c, const struct flight *f)
{
	move_inputs(c, f->slot, true, c->device->call->put);
}
