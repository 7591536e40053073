/* ckr_check: one step under keep-everything and under the plan, from the same
 * state, compared bit by bit.
 *
 * Every named tensor is hashed at the moment it has its final value; tensors
 * of the two schedules belong together by name (a value computed again is
 * called NAME.again).  Hashes instead of copies: the check needs no more
 * memory than the two arenas and one copy of the resident block.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rt.h"

struct side {
	ckr_ctx *c;
	const struct ckr_program *p;
	const struct block *arena;
	uint64_t *hash;                 /* of tensor i; 0: not seen */
	uint32_t *by_name;              /* named tensors, sorted */
	uint32_t nnamed;
	double loss;
};

static uint64_t
mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint64_t
hash_bytes(uint64_t h, const unsigned char *p, uint64_t n)
{
	uint64_t x;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&x, p, 8);
		h = mix(h, x);
	}
	x = 0;
	memcpy(&x, p, n);
	return mix(h, x + n);
}

static ckr_status
hash_tensor(struct side *s, uint32_t i)
{
	const struct ckr_tensor *t = &s->p->tensor[i];
	const void *from = rt_at(s->c, s->arena, t);
	uint64_t n = rt_nelem(t) * dtype_row[t->dtype].nbytes;
	uint64_t h = s->hash[i] ? s->hash[i] : 1;
	void *dense;

	if (rt_is_dense(t)) {
		h = hash_bytes(h, from, n);
	} else {
		dense = malloc(n + 1);
		if (!dense)
			return err_set(&s->c->err, CKR_ENOMEM, "out of memory");
		rt_pack(t, from, dense);
		h = hash_bytes(h, dense, n);
		free(dense);
	}
	s->hash[i] = h ? h : 1;
	return CKR_OK;
}

/* Tensors are few and steps are many: a list per step would be faster, but
 * this is not where the time goes. */
static ckr_status
after_step(void *user, uint32_t step)
{
	struct side *s = user;

	for (uint32_t k = 0; k < s->nnamed; k++)
		if (s->p->tensor[s->by_name[k]].ready == (int32_t)step)
			CKR_TRY(hash_tensor(s, s->by_name[k]));
	return CKR_OK;
}

static int
by_name(const void *a, const void *b, void *user)
{
	const struct side *s = user;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int d = strcmp(s->p->tensor[x].name, s->p->tensor[y].name);

	return d ? d : x < y ? -1 : x > y;
}

static ckr_status
side_new(struct side *s, ckr_ctx *c, const struct ckr_program *p,
         const struct block *arena)
{
	*s = (struct side){ .c = c, .p = p, .arena = arena };
	s->hash = calloc(p->ntensor + 1, sizeof(*s->hash));
	s->by_name = calloc(p->ntensor + 1, sizeof(*s->by_name));
	if (!s->hash || !s->by_name)
		return err_set(&c->err, CKR_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < p->ntensor; i++)
		if (p->tensor[i].name && p->tensor[i].dtype)
			s->by_name[s->nnamed++] = i;
	qsort_r(s->by_name, s->nnamed, sizeof(*s->by_name), by_name, s);
	return CKR_OK;
}

static void
side_free(struct side *s)
{
	free(s->hash);
	free(s->by_name);
}

static ckr_status
side_run(struct side *s, void **ptr)
{
	struct watch w = { after_step, s };

	CKR_TRY(rt_run(s->c, s->p, ptr, s->arena, &w, &s->loss));
	/* what the step has left behind */
	for (uint32_t i = 0; i < s->c->lib->nshared; i++)
		CKR_TRY(hash_tensor(s, i));
	return CKR_OK;
}

/* The tensor of the other side called by the first n bytes of name. */
static int64_t
lookup(const struct side *s, const char *name, size_t n)
{
	uint32_t lo = 0, hi = s->nnamed;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const char *other = s->p->tensor[s->by_name[mid]].name;
		int d = strncmp(other, name, n);

		if (!d && other[n])
			d = 1;
		if (!d)
			return s->by_name[mid];
		if (d < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -1;
}

static int64_t
partner(const struct side *s, const char *name)
{
	size_t n = strlen(name);
	int64_t i = lookup(s, name, n);

	if (i < 0 && n > 6 && !strcmp(name + n - 6, ".again"))
		i = lookup(s, name, n - 6);
	return i;
}

static bool
comparable(const struct ckr_tensor *a, const struct ckr_tensor *b)
{
	return a->dtype == b->dtype && a->rank == b->rank
	       && !memcmp(a->dim, b->dim, a->rank * sizeof(*a->dim));
}

static ckr_status
differs(const struct side *plan, uint32_t i)
{
	const struct ckr_tensor *t = &plan->p->tensor[i];
	const struct ckr_step *s = t->ready >= 0 ? &plan->p->step[t->ready]
	                           : NULL;
	char name[NAME_TEXT], origin[NAME_TEXT] = "";

	if (s && s->origin)
		err_name(origin, sizeof(origin), s->origin);
	err_name(name, sizeof(name), t->name);
	if (!s)
		return err_set(&plan->c->err, CKR_EMISMATCH, "step %llu: '%s' "
		               "differs after the update",
		               (unsigned long long)plan->c->step + 1, name);
	return err_set(&plan->c->err, CKR_EMISMATCH, "step %llu: '%s', made by "
	               "%s %d (%s), is the first tensor that differs",
	               (unsigned long long)plan->c->step + 1, name, s->op,
	               t->ready, origin);
}

/* Compare in the plan's order of execution. */
static ckr_status
compare(const struct side *plan, const struct side *all, uint64_t *compared)
{
	int64_t first = -1;

	for (uint32_t k = 0; k < plan->nnamed; k++) {
		uint32_t i = plan->by_name[k];
		const struct ckr_tensor *t = &plan->p->tensor[i];
		int64_t o = partner(all, t->name);

		if (o < 0 || !comparable(t, &all->p->tensor[o])
		    || !plan->hash[i] || !all->hash[o])
			continue;
		++*compared;
		if (plan->hash[i] == all->hash[o])
			continue;
		/* unsigned: those ready from the start come last */
		if (first < 0 || (uint32_t)t->ready
		    < (uint32_t)plan->p->tensor[first].ready)
			first = i;
	}
	if (first >= 0)
		return differs(plan, (uint32_t)first);
	if (memcmp(&plan->loss, &all->loss, sizeof(plan->loss)))
		return err_set(&plan->c->err, CKR_EMISMATCH, "the loss "
		               "differs: %.9g by the plan, %.9g keeping "
		               "everything",
		               plan->loss, all->loss);
	return CKR_OK;
}

/* Both runs; the plan's comes second, so that its state stays. */
static ckr_status
run_both(struct side *all, void **all_ptr, struct side *plan, void **ptr,
         void *saved)
{
	ckr_ctx *c = plan->c;

	memcpy(saved, c->resident.p, c->resident.size);
	CKR_TRY(side_run(all, all_ptr));
	memcpy(c->resident.p, saved, c->resident.size);
	return side_run(plan, ptr);
}

ckr_status
ckr_check(ckr_ctx *c, const struct ckr_hyper *hyper, double *loss,
          uint64_t *compared)
{
	const struct ckr_program *ref;
	struct block arena = { .p = NULL };
	struct side all = { .c = c }, plan = { .c = c };
	void **ptr = NULL, *saved;
	uint64_t n = 0;
	ckr_status s;

	if (!c->ready)
		return err_set(&c->err, CKR_EARG, "no model is open");
	ref = &c->lib->program[c->lib->program[1].nstep ? 1 : 0];
	CKR_TRY(rt_prepare(c, hyper));
	saved = malloc(c->resident.size + 1);
	s = block_map(&arena, ref->arena_bytes, false, false, c->env.threads,
	              &c->err);
	if (s == CKR_OK)
		ptr = rt_bind(c, ref, &arena);
	if (s == CKR_OK && (!ptr || !saved))
		s = err_set(&c->err, CKR_ENOMEM, "out of memory");
	if (s == CKR_OK)
		s = side_new(&all, c, ref, &arena);
	if (s == CKR_OK)
		s = side_new(&plan, c, &c->lib->program[0], &c->arena);
	if (s == CKR_OK)
		s = run_both(&all, ptr, &plan, c->ptr, saved);
	if (s == CKR_OK)
		s = compare(&plan, &all, &n);
	if (loss)
		*loss = plan.loss;
	if (compared)
		*compared = n;
	if (s == CKR_OK)
		s = rt_done(c);
	side_free(&all);
	side_free(&plan);
	block_unmap(&arena);
	free(ptr);
	free(saved);
	return s;
}
