/* ckr_check: one step with keep-everything and one with the plan, from the same
 * state, compared bit by bit.
 *
 * Every tensor that has a value is hashed at the moment it is final; the
 * tables say which tensors of the two schedules belong together, so that a
 * value computed again is compared each time.  Hashes instead of copies: the
 * check needs no more memory than the two arenas and one copy of the resident
 * block.
 *
 * Where the plan rounds what backward reads, bits are equal in forward alone.
 * Gradients of the two runs are copied then, and measured.
 */
#include "runtime/measure/inside.h"

#include <stdlib.h>
#include <string.h>

struct traced_run {
	struct measure *c;
	const struct ckr_program *p;
	struct loaded_program *b;
	struct observer observer;
	uint64_t *hash;                 /* of tensor i; 0: not seen */
	struct drift *drift;            /* gradients; NULL: bits are equal */
	double loss;
	ckr_status end;                 /* CKR_OK or CKR_ENAN */
};

static ckr_status
hash_tensor(struct traced_run *s, uint32_t i)
{
	const struct ckr_tensor *t = &s->p->tensor[i];
	struct world *w = s->c->world;
	bool direct = world_is_direct(w, t);
	uint64_t n = tensor_nbytes(t), h = s->hash[i] ? s->hash[i] : 1;
	void *dense = direct ? NULL : malloc(n + 1);
	ckr_status status = direct || dense ? CKR_OK : err_no_memory(w->err);

	FOR_STAGE (r, w, t->stage) {
		const void *at = world_at(w, s->b, r, t);

		if (status != CKR_OK)
			break;
		if (dense)
			status = world_pull(w, t, at, dense);
		h = mem_hash(h, dense ? dense : at, n);
		h = h ? h : 1;
	}
	s->hash[i] = h;
	free(dense);
	return status;
}

/* Only the last micro-batch runs updates, of which some stand among the steps
 * of backward. */
static bool
is_made_now(const struct traced_run *s, uint32_t i)
{
	int32_t made = program_made(s->p, i);

	return made < 0 || s->p->instr[made].phase != CKR_UPDATE
		|| stepping_is_last(s->c->steps);
}

/* Tensors are few and steps are many: a list per step would be faster, but
 * this is not where the time goes. */
static ckr_status
note_ready(void *user, const struct loaded_program *b, uint32_t step)
{
	struct traced_run *s = user;

	for (uint32_t i = 0; i < b->p->ntensor; i++)
		if (b->p->tensor[i].ready == (int32_t)step
		    && b->p->tensor[i].dtype && is_made_now(s, i)) {
			CKR_TRY(hash_tensor(s, i));
			if (s->drift)
				CKR_TRY(drift_note(s->drift, b, i));
		}
	return CKR_OK;
}

static ckr_status
run_new(struct traced_run *s, struct measure *c, struct loaded_program *b,
        bool rounds)
{
	*s = (struct traced_run){ .c = c, .p = b->p, .b = b,
		.observer = { .after = note_ready, .user = s } };
	s->hash = calloc(b->p->ntensor + 1, sizeof(*s->hash));
	s->drift = rounds ? drift_new(c) : NULL;
	return s->hash && (s->drift || !rounds) ? CKR_OK
	       : err_no_memory(c->err);
}

static void
run_free(struct traced_run *s)
{
	free(s->hash);
	drift_free(s->drift);
}

/* others: what else observes the step. */
static ckr_status
run_traced(struct traced_run *s, struct observer *others)
{
	struct observer **first = stepping_observers(s->c->steps);
	struct observer *was = *first;

	memset(s->hash, 0, s->p->ntensor * sizeof(*s->hash));
	s->observer.next = others;
	*first = &s->observer;
	stepping_announce(s->c->steps);
	s->end = stepping_run(s->c->steps, s->b, &s->loss);
	*first = was;
	if (s->end != CKR_OK && s->end != CKR_ENAN)
		return s->end;
	/* what the step has left behind */
	for (uint32_t i = 0; i < s->c->lib->nshared; i++)
		CKR_TRY(hash_tensor(s, i));
	return CKR_OK;
}

static bool
have_same_shape(const struct ckr_tensor *a, const struct ckr_tensor *b)
{
	return a->dtype == b->dtype && a->rank == b->rank
	       && !memcmp(a->dim, b->dim, a->rank * sizeof(*a->dim));
}

static ckr_status
report_difference(const struct traced_run *plan, uint32_t i)
{
	const struct ckr_tensor *t = &plan->p->tensor[i];
	int32_t made = program_made(plan->p, i);
	const struct ckr_instr *s = made >= 0 ? &plan->p->instr[made] : NULL;
	char name[NAME_TEXT], origin[NAME_TEXT] = "";
	unsigned long long step = stepping_progress(plan->c->steps)->step + 1;

	if (s && s->origin)
		err_name(origin, sizeof(origin), s->origin);
	err_name(name, sizeof(name), t->name);
	if (!s)
		return err_set(plan->c->err, CKR_EMISMATCH, "step %llu: '%s' "
		               "differs after the update",
		               step, name);
	return err_set(plan->c->err, CKR_EMISMATCH, "step %llu: '%s', made by "
	               "%s %d (%s), is the first tensor that differs",
	               step, name, s->op, made, origin);
}

static bool
is_again(const struct ckr_program *p, uint32_t i)
{
	int32_t made = program_made(p, i);

	return made >= 0 && p->instr[made].phase == CKR_RECOMPUTE;
}

/* Tensor i of the plan has nothing to be compared with. */
static ckr_status
check_unmatched(const struct traced_run *plan, uint32_t i,
                struct ckr_checked *n)
{
	const struct ckr_tensor *t = &plan->p->tensor[i];
	int32_t made = program_made(plan->p, i);
	char name[NAME_TEXT];

	n->alone++;
	if (!is_again(plan->p, i))
		return CKR_OK;
	return err_set(plan->c->err, CKR_EUNSUPPORTED, "'%s', recomputed by "
	               "%s %d, has no counterpart to compare with: this "
	               "library cannot be checked",
	               err_name(name, sizeof(name), t->name ? t->name : ""),
	               plan->p->instr[made].op, made);
}

/* Index in the reference program of tensor i of the plan; -1: none. */
static int64_t
partner_index(const struct traced_run *plan, const struct traced_run *all,
              uint32_t i)
{
	const struct ckr_tensor *t = &plan->p->tensor[i];
	int64_t o = plan->p == all->p || i < plan->c->lib->nshared
	            ? (int64_t)i : t->twin;

	return o >= 0 && o < (int64_t)all->p->ntensor && all->hash[o]
	       && have_same_shape(t, &all->p->tensor[o]) ? o : -1;
}

/* Rounding comes behind it. */
static bool
is_made_by_forward(const struct traced_run *plan, uint32_t i)
{
	int32_t made = program_made(plan->p, i);

	return i >= plan->c->lib->nshared && made >= 0
	       && plan->p->instr[made].phase == CKR_FORWARD;
}

/* Compare in the plan's order of execution. */
static ckr_status
compare_runs(const struct traced_run *plan, const struct traced_run *all,
             struct ckr_checked *n)
{
	int64_t first = -1;

	for (uint32_t i = 0; i < plan->p->ntensor; i++) {
		const struct ckr_tensor *t = &plan->p->tensor[i];
		int64_t o = partner_index(plan, all, i);

		if (!plan->hash[i]
		    || (plan->drift && !is_made_by_forward(plan, i)))
			continue;
		if (o < 0) {
			CKR_TRY(check_unmatched(plan, i, n));
			continue;
		}
		n->compared++;
		n->again += is_again(plan->p, i);
		if (plan->hash[i] == all->hash[o])
			continue;
		/* unsigned: those ready from the start come last */
		if (first < 0 || (uint32_t)t->ready
		    < (uint32_t)plan->p->tensor[first].ready)
			first = i;
	}
	if (first >= 0)
		return report_difference(plan, (uint32_t)first);
	if (memcmp(&plan->loss, &all->loss, sizeof(plan->loss)))
		return err_set(plan->c->err, CKR_EMISMATCH, "the loss "
		               "differs: %.9g with the plan, %.9g without "
		               "recomputation",
		               plan->loss, all->loss);
	return plan->end;
}

/* Both runs and what they show; the plan's comes second, so that its state
 * stays, and it is the one that is traced and timed. */
static ckr_status
run_both(struct traced_run *all, struct traced_run *plan, char *saved,
         struct ckr_checked *n)
{
	struct measure *c = plan->c;
	ckr_status s;

	CKR_TRY(run_traced(all, NULL));
	CKR_TRY(world_copy_lasting(c->world, saved, true));
	CKR_TRY(run_traced(plan, *stepping_observers(c->steps)));
	s = compare_runs(plan, all, n);
	if (s == CKR_OK && plan->drift)
		s = drift_check(plan->drift, all->drift, n);
	/* that both ended alike all know, but not that this one differs */
	c->err->known = false;
	return world_agree(c->world, s, "comparing");
}

static ckr_status
check_with(struct measure *c, struct traced_run *all, struct traced_run *plan,
           struct ckr_checked *n)
{
	char *saved = malloc(world_lasting_bytes(c->world) + 1);
	ckr_status s;

	CKR_TRY(world_agree(c->world, saved ? CKR_OK : err_no_memory(c->err),
	                    "allocating memory"));
	s = world_copy_lasting(c->world, saved, false);
	if (s == CKR_OK) {
		s = run_both(all, plan, saved, n);
		if (s != CKR_OK)
			world_copy_lasting(c->world, saved, true);
	}
	free(saved);
	return s;
}

ckr_status
measure_check(struct measure *c, const struct ckr_hyper *hyper, double *loss,
              struct ckr_checked *checked)
{
	const struct ckr_program *p = c->lib->program;
	uint64_t rounded = drift_count_rounded(p);
	struct loaded_program alone = { .p = NULL };
	struct traced_run all = { .c = c }, plan = { .c = c };
	struct ckr_checked n = { 0 };
	ckr_status s;

	CKR_TRY(stepping_prepare(c->steps, hyper));
	s = world_load(c->world, &alone, &p[p[1].ninstr ? 1 : 0], false, false);
	if (s == CKR_OK)
		s = run_new(&all, c, &alone, rounded > 0);
	if (s == CKR_OK)
		s = run_new(&plan, c, &c->world->plan, rounded > 0);
	s = world_agree(c->world, s, "allocating memory");
	if (s == CKR_OK)
		do {
			n = (struct ckr_checked){ .rounded = rounded };
			s = check_with(c, &all, &plan, &n);
		} while (s == CKR_ENAN && stepping_again(c->steps));
	if (loss)
		*loss = plan.loss;
	if (checked)
		*checked = n;
	run_free(&all);
	run_free(&plan);
	world_unload(c->world, &alone);
	return stepping_done(c->steps, s);
}
