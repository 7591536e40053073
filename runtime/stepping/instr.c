/* One instruction of a program, on all ranks that live here; faults that
 * kernels find, and failures that processes have to agree on. */
#include "runtime/stepping/inside.h"
#include "runtime/support/now.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* ---- running ---- */

static ckr_status
fault_of_instr(struct stepping *c, const struct ckr_instr *s)
{
	const char *why = c->env.fault;
	char origin[NAME_TEXT];

	long long value = (long long)c->env.fault_value;
	/* a share, in hundredths */
	bool share = why[0] == '-';

	c->env.fault = NULL;
	err_name(origin, sizeof(origin), s->origin ? s->origin : "");
	if (share)
		return err_set(c->err, CKR_EDATA, "step %llu: node '%s' (%s): "
		               "%s %lld.%02lld; try: ckc --expert-capacity "
		               "%lld.%02lld",
		               (unsigned long long)c->progress->step + 1,
		               origin, s->op, why, value / 100, value % 100,
		               value / 100, value % 100);
	return err_set(c->err, CKR_EDATA,
	               "step %llu: node '%s' (%s): %s: %lld",
	               (unsigned long long)c->progress->step + 1, origin,
	               s->op, why, value);
}

/* The range of bytes of rank r's arena that a tensor of its stage lies in. */
static void
reach_in_arena(const struct world *w, const struct loaded_program *b,
               uint32_t r, const struct ckr_tensor *t, int64_t *from,
               int64_t *to)
{
	uint64_t slot = t->flags & CKR_SLOT
		? library_slot(&w->lib->stage[t->stage], t, b->slot[r]) : 0;

	tensor_reach(t, from, to);
	*from += (int64_t)slot;
	*to += (int64_t)slot;
}

/* CKR_POISON: NaN in every byte of the arena that no tensor needs after step
 * s: of tensors that die here, minus those that live on.  What no node reads
 * stays for those who observe the step. */
static void
poison_dead_bytes(const struct world *w, const struct loaded_program *b,
                  uint32_t r, uint32_t s)
{
	const struct ckr_program *p = b->p;

	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];
		int64_t from, to, lo, hi;
		unsigned char *keep;

		if (t->flags & (CKR_RESIDENT | CKR_HOST | CKR_OUTPUT | CKR_LOSS)
		    || t->last != (int32_t)s || t->ready == (int32_t)s)
			continue;
		reach_in_arena(w, b, r, t, &from, &to);
		keep = from < to ? calloc(1, (size_t)(to - from)) : NULL;
		if (!keep)
			continue;
		for (uint32_t k = 0; k < p->ntensor; k++) {
			const struct ckr_tensor *u = &p->tensor[k];

			if (u->flags & (CKR_RESIDENT | CKR_HOST)
			    || u->stage != t->stage || u->ready > (int32_t)s
			    || (u->last <= (int32_t)s
			        && !(u->flags & (CKR_OUTPUT | CKR_LOSS))))
				continue;
			reach_in_arena(w, b, r, u, &lo, &hi);
			lo = lo > from ? lo : from;
			hi = hi < to ? hi : to;
			if (lo < hi)
				memset(keep + (lo - from), 1,
				       (size_t)(hi - lo));
		}
		for (int64_t k = from; k < to; k++)
			if (!keep[k - from])
				b->arena[r].p[k] = 0xff;
		free(keep);
	}
}

/* Whether what watches asks for times. */
static bool
is_timed(const struct stepping *c)
{
	bool timed = false;

	for (const struct observer *o = c->observer; o; o = o->next)
		timed |= o->ran || o->waited;
	return timed;
}

/* What local rank r does of instruction i, or what moves between all. */
static ckr_status
run_timed(struct stepping *c, const struct loaded_program *b, uint32_t i,
          uint32_t r, bool moves)
{
	const struct ckr_instr *s = &b->p->instr[i];
	bool timed = is_timed(c);
	double from = timed ? now_sec() : 0, to;
	ckr_status status = CKR_OK;

	cpu_monitor_poll(c->cpu_monitor);
	if (moves)
		status = world_begin_transfer(c->world, b, i,
		                              c->progress->step + 1);
	else
		s->run(b->ptr[r] + s->arg0,
		       b->p->constant ? b->p->constant + s->const0 : NULL,
		       &c->env);
	if (!timed)
		return status;
	c->device->call->sync(c->device);
	to = now_sec();
	for (struct observer *o = c->observer; o; o = o->next)
		if (o->ran)
			o->ran(o->user, i, from, to, moves);
	return status;
}

ckr_status
instr_run(struct stepping *c, const struct loaded_program *b, uint32_t i)
{
	const struct ckr_instr *s = &b->p->instr[i];
	bool computes = s->run && c->deferred.status == CKR_OK;

	if (!world_has_stage(c->world, s->stage))
		return CKR_OK;
	c->env.group = hyper_group(c, b->p, i);
	FOR_STAGE (r, c->world, s->stage) {
		if (!computes)
			break;
		env_select_rank(c, r);
		CKR_TRY(run_timed(c, b, i, r, false));
		if (c->env.fault)
			return fault_of_instr(c, s);
	}
	env_select_rank(c, 0);
	if (s->comm)
		CKR_TRY(run_timed(c, b, i, 0, true));
	CKR_TRY(world_end_transfers(c->world, i));
	FOR_STAGE (r, c->world, s->stage)
		if (c->world->poison && c->device->addressable)
			poison_dead_bytes(c->world, b, r, i);
	return CKR_OK;
}

/* Whether a GPU may apply the update of instruction i together with those next
 * to it: it writes nothing in the arena, so none reads what another writes. */
static bool
may_join(const struct ckr_program *p, uint32_t i)
{
	const struct ckr_instr *s = &p->instr[i];
	bool joins = s->joins && s->run && !s->comm;

	for (uint32_t k = 0; k < s->narg && joins; k++) {
		int32_t t = p->arg[s->arg0 + k];

		joins = t < 0 || p->tensor[t].ready != (int32_t)i
		        || p->tensor[t].flags & CKR_RESIDENT;
	}
	return joins;
}

/* The end of the instructions from i on, before `to`, that are launched
 * together. */
static uint32_t
end_of_joined(const struct stepping *c, const struct ckr_program *p,
              uint32_t i, uint32_t to)
{
	uint32_t end = i;

	/* what watches sees every instruction */
	if (!c->async.possible || c->observer)
		return i + 1;
	while (end < to && may_join(p, end)
	       && p->instr[end].phase == p->instr[i].phase)
		end++;
	return end > i ? end : i + 1;
}

void
instr_begin_joined(struct stepping *c, struct ckr_joined_launch *all)
{
	all->n = 0;
	c->env.joined = all;
}

void
instr_end_joined(struct stepping *c)
{
	struct ckr_joined_launch *all = c->env.joined;

	c->env.joined = NULL;
	if (all->n)
		all->launch(all, &c->env);
}

ckr_status
instr_run_some(struct stepping *c, const struct loaded_program *b, uint32_t i,
               uint32_t to, uint32_t *next)
{
	struct ckr_joined_launch updates;
	ckr_status s = CKR_OK;

	*next = end_of_joined(c, b->p, i, to);
	if (*next == i + 1)
		return instr_run(c, b, i);
	instr_begin_joined(c, &updates);
	for (; i < *next && s == CKR_OK; i++)
		s = instr_run(c, b, i);
	if (s != CKR_OK)
		updates.n = 0;
	instr_end_joined(c);
	return s;
}

int
instr_enter(const struct stepping *c)
{
	int was = omp_get_max_threads();

	omp_set_num_threads(c->env.threads);
	c->device->call->take_libraries(c->device);
	return was;
}

void
instr_leave(const struct stepping *c, int was)
{
	c->device->call->release_libraries(c->device);
	omp_set_num_threads(was);
}

/* ---- faults on a GPU ---- */

/* Which step met the bad data in c->env nobody can say. */
static ckr_status
fault_somewhere(struct stepping *c)
{
	const struct ckr_instr none = { .op = "unknown op" };

	if (!c->env.fault)
		c->env.fault = "bad data";
	return fault_of_instr(c, &none);
}

ckr_status
instr_fault_in_updates(struct stepping *c, const struct ckr_env *found)
{
	env_set_fault(c, found);
	return fault_somewhere(c);
}

/* Whether step i runs again to find a fault before step `end`.  Nothing is sent
 * to other processes, which may have met none.  Of stages steps of the same one
 * and the same phase do: others have gone on. */
static bool
may_run_again(const struct stepping *c, const struct ckr_program *p,
              uint32_t i, uint32_t end)
{
	const struct ckr_instr *x = &p->instr[i], *last = &p->instr[end - 1];

	if (x->comm && (c->world->team || c->lib->nstage))
		return false;
	return !c->lib->nstage
		|| (x->phase == last->phase && x->stage == last->stage);
}

/* Kernels of a GPU have met bad data before step `end`: in which step, unless
 * there were updates, which would be done twice. */
static ckr_status
find_fault(struct stepping *c, const struct loaded_program *b, uint32_t end)
{
	for (uint32_t i = 0; i < end && end <= b->p->apply; i++) {
		if (!may_run_again(c, b->p, i, end))
			continue;
		c->env.fault = NULL;
		CKR_TRY(env_send(c));
		CKR_TRY(instr_run(c, b, i));
		CKR_TRY(env_read_back(c));
		if (c->env.fault)
			return fault_of_instr(c, &b->p->instr[i]);
	}
	return fault_somewhere(c);
}

ckr_status
instr_check_launches(struct stepping *c, uint32_t i)
{
	const char *why = c->device->deferred ? c->lib->launch_error() : NULL;

	if (!why)
		return CKR_OK;
	return err_set(c->err, CKR_EIO, "GPU %s: a kernel launch failed "
	               "before step %u: %s; compile the model for this GPU "
	               "(ckc --arch)", c->device->name, i, why);
}

ckr_status
instr_check_faults(struct stepping *c, const struct loaded_program *b,
                   uint32_t i)
{
	CKR_TRY(instr_check_launches(c, i));
	CKR_TRY(env_read_back(c));
	/* of a fault that is known others follow */
	if (c->deferred.status != CKR_OK)
		c->env.fault = NULL;
	return c->env.fault ? find_fault(c, b, i) : CKR_OK;
}

/* ---- between processes ---- */

ckr_status
instr_defer(struct stepping *c, ckr_status s, uint32_t i)
{
	uint64_t passes = (uint64_t)(c->count.pass ? c->count.pass - 1
	                                           : c->count.npass);

	if (s == CKR_OK || s == CKR_ERANK || !c->world->team)
		return s;
	if (c->deferred.status == CKR_OK)
		c->deferred = (struct deferred_error){ s,
			(passes * c->env.nmicro + c->env.micro)
					* c->lib->program[0].ninstr
				+ i,
			*c->err
		};
	return CKR_OK;
}

uint64_t
instr_peak(const struct stepping *c)
{
	uint64_t now = world_touched(c->world);

	return now > c->peak ? now : c->peak;
}

enum { BAD = 1, OVERFLOW = 2 };

ckr_status
instr_agree(struct stepping *c)
{
	struct pg_task task = { .op = "agreement on the step",
		.step = c->progress->step + 1 };
	struct finite_check *f = &c->finite;
	/* others may wait for these; a fault in the step is the cause */
	ckr_status s = instr_defer(c, world_finish_messages(c->world),
	                           c->lib->program[0].ninstr);
	struct pg_vote v = { .status = c->deferred.status,
		.order = c->deferred.order,
		.flags = (f->nonfinite ? BAD : 0)
			| (f->overflow ? OVERFLOW : 0) };

	CKR_TRY(s);
	CKR_TRY(world_finish_exchanges(c->world));
	if (v.status != CKR_OK)
		*c->err = c->deferred.err;
	if (!c->world->team)
		return v.status;
	v.most = instr_peak(c);
	s = pg_agree(c->world->team, &v, &task, c->err);
	c->peak = v.most;
	f->nonfinite = v.flags & BAD;
	f->overflow = v.flags & OVERFLOW;
	return s;
}

void
instr_reset(struct stepping *c)
{
	c->env.step = c->progress->step;
	c->env.fault = NULL;
	c->deferred.status = CKR_OK;
	run_forget_outputs(c);
	world_drop_transfers(c->world);
}
