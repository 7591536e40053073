/* Steps: walking the table of kernel calls. */
#include "runtime/stepping/inside.h"

#include <math.h>

/* Behind step i: what is not finite may come of bad data, which a GPU goes on
 * with. */
static ckr_status
prefer_fault(struct stepping *c, const struct loaded_program *b, uint32_t i,
             ckr_status s)
{
	if (s == CKR_ENAN)
		CKR_TRY(instr_check_faults(c, b, i + 1));
	return s;
}

/* ---- count passes ---- */

static ckr_status
count_micro(struct stepping *c, const struct loaded_program *b)
{
	int32_t phase = CKR_COUNT + c->count.pass - 1;
	ckr_status s = count_begin_micro(c, b);

	for (uint32_t i = 0; i < b->p->ninstr && s == CKR_OK; i++)
		if (b->p->instr[i].phase == phase)
			s = instr_defer(c, instr_run(c, b, i), i);
	CKR_TRY(s);
	CKR_TRY(world_finish_exchanges(c->world));
	return instr_defer(c, instr_check_faults(c, b, b->p->ninstr),
	                   b->p->ninstr);
}

static ckr_status
run_count_passes(struct stepping *c, const struct loaded_program *b)
{
	ckr_status s = CKR_OK;

	for (int r = 1; r <= c->count.npass && s == CKR_OK; r++)
		for (uint32_t m = 0; m < c->env.nmicro && s == CKR_OK; m++) {
			c->count.pass = r;
			c->env.micro = m;
			s = instr_defer(c, count_feed(c, m), 0);
			if (s == CKR_OK)
				s = count_micro(c, b);
		}
	c->count.pass = 0;
	return s;
}

/* ---- steps ---- */

/* Whether step i has no part in the micro-batch. */
static bool
is_skipped_in_micro(const struct ckr_program *p, uint32_t i, bool last)
{
	int32_t phase = p->instr[i].phase;

	return phase >= CKR_COUNT || (phase == CKR_UPDATE && !last);
}

static ckr_status
tell_observers(struct stepping *c, const struct loaded_program *b, uint32_t i)
{
	for (struct observer *o = c->observer; o; o = o->next)
		if (o->after)
			CKR_TRY(instr_defer(c, o->after(o->user, b, i), i));
	return CKR_OK;
}

/* Instructions first .. end - 1 for this micro-batch. */
static ckr_status
run_instrs(struct stepping *c, const struct loaded_program *b, uint32_t first,
           uint32_t end)
{
	const struct ckr_program *p = b->p;
	bool last = stepping_is_last(c);
	uint32_t commit = program_commit(p);
	ckr_status s;

	for (uint32_t i = first, next; i < end; i = next) {
		next = i + 1;
		if (i == commit)
			CKR_TRY(instr_defer(c, instr_check_faults(c, b, i), i));
		if (is_skipped_in_micro(p, i, last)) {
			CKR_TRY(world_end_transfers(c->world, i));
			/* a transfer of backward may have ended here */
			if (p->instr[i].phase == CKR_UPDATE)
				CKR_TRY(tell_observers(c, b, i));
			continue;
		}
		s = instr_run_some(c, b, i, i < commit ? commit : end, &next);
		CKR_TRY(instr_defer(c, s, i));
		s = prefer_fault(c, b, i, finite_check_loss(c, b, i));
		CKR_TRY(instr_defer(c, s, i));
		norm_after(c, b, i);
		CKR_TRY(tell_observers(c, b, i));
		s = prefer_fault(c, b, i, finite_check_grads(c, b, next));
		CKR_TRY(instr_defer(c, s, i));
		/* nothing is updated that one of them would not */
		if (last && next == p->apply && !c->lib->nstage)
			CKR_TRY(instr_agree(c));
	}
	return instr_check_faults(c, b, end);
}

static ckr_status
run_micro(struct stepping *c, const struct loaded_program *b, double *sum)
{
	uint32_t end = stepping_is_last(c) ? b->p->ninstr : b->p->update;
	ckr_status s = instr_defer(c, count_feed(c, c->env.micro), 0);

	if (s == CKR_OK)
		s = count_begin_micro(c, b);
	if (s == CKR_OK)
		s = run_instrs(c, b, 0, end);
	if (s == CKR_OK || s == CKR_ENAN)
		*sum += loss_read(c, b);
	return s;
}

static bool
has_loss(const struct loaded_program *b, const struct ckr_turn *t)
{
	int32_t ready = b->p->loss < 0 ? -1 : b->p->tensor[b->p->loss].ready;

	return ready >= (int32_t)t->first && ready < (int32_t)t->end;
}

/* Where updates begin.  Gradients that other stages send come behind that; the
 * stages that compute them check them. */
static uint32_t
first_update(const struct ckr_library *lib)
{
	uint32_t first = lib->program[0].apply;

	for (uint32_t i = 0; i < lib->nturn; i++)
		if (lib->turn[i].kind == CKR_TURN_UPDATE
		    && lib->turn[i].first < first)
			first = lib->turn[i].first;
	return first;
}

/* When all gradients here are complete: nothing is updated that another process
 * would not. */
static ckr_status
agree_on_updates(struct stepping *c, const struct loaded_program *b)
{
	uint32_t i = first_update(c->lib);
	ckr_status s = finite_check_waiting_grads(c, b, i);

	c->env.micro = c->env.nmicro - 1;
	CKR_TRY(instr_defer(c, prefer_fault(c, b, i - 1, s), i));
	s = world_begin_updates(c->world, c->progress->step + 1);
	CKR_TRY(instr_defer(c, s, i));
	return instr_agree(c);
}

/* A turn of a stage whose ranks live here.  Its inputs are set again: those of
 * other micro-batches have been set since. */
static ckr_status
run_turn(struct stepping *c, struct loaded_program *b, const struct ckr_turn *t,
         double *sum)
{
	ckr_status s;

	c->env.micro = t->micro;
	world_begin_turn(c->world, b, t);
	s = instr_defer(c, count_feed(c, t->micro), t->first);
	if (s == CKR_OK)
		s = count_begin_micro(c, b);
	if (s == CKR_OK)
		s = instr_defer(c, run_instrs(c, b, t->first, t->end), t->end);
	if (s == CKR_OK)
		s = world_finish_exchanges(c->world);
	if (has_loss(b, t) && (s == CKR_OK || s == CKR_ENAN))
		*sum += loss_read(c, b);
	return s;
}

/* The turns of the stages that live here. */
static ckr_status
run_turns(struct stepping *c, struct loaded_program *b, double *sum)
{
	ckr_status s = CKR_OK;
	bool agreed = false;

	for (uint32_t i = 0; i < c->lib->nturn && s == CKR_OK; i++) {
		const struct ckr_turn *t = &c->lib->turn[i];

		if (!world_has_stage(c->world, t->stage))
			continue;
		if (!agreed && t->kind == CKR_TURN_UPDATE) {
			s = agree_on_updates(c, b);
			agreed = true;
		}
		if (s == CKR_OK)
			s = run_turn(c, b, t, sum);
	}
	return s == CKR_OK && !agreed ? agree_on_updates(c, b) : s;
}

static ckr_status
run_micros(struct stepping *c, struct loaded_program *b, double *sum)
{
	ckr_status s = CKR_OK;

	for (uint32_t m = 0; m < c->env.nmicro && s == CKR_OK; m++) {
		c->env.micro = m;
		s = run_micro(c, b, sum);
	}
	return s;
}

ckr_status
stepping_run(struct stepping *c, struct loaded_program *b, double *loss)
{
	double sum = 0;
	int was = instr_enter(c);
	ckr_status s = CKR_OK;

	instr_reset(c);
	c->env.nmicro = library_micro_batches(c->lib);
	c->norm.value = NAN;
	c->finite.nonfinite = c->finite.overflow = false;
	finite_save(c, c->finite.snapshot);
	s = run_count_passes(c, b);
	if (s == CKR_OK)
		s = c->lib->nstage ? run_turns(c, b, &sum)
		    : run_micros(c, b, &sum);
	if (s == CKR_OK)
		s = instr_agree(c);
	if (s != CKR_OK) {
		world_drop_transfers(c->world);
		finite_restore(c, c->finite.snapshot);
		c->norm.value = NAN;
	}
	if (s == CKR_OK || s == CKR_ENAN) {
		ckr_status shared = loss_share(c, b, &sum);

		s = shared == CKR_OK ? s : shared;
	}
	if (s == CKR_OK)
		loss_show(c, b, loss_of_sum(c, sum));
	instr_leave(c, was);
	if (loss)
		*loss = loss_of_sum(c, sum);
	return s;
}
