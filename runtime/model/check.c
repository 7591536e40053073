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
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/peers.h"

/* ---- by how much gradients of the two runs differ ----
 *
 * Of a parameter: norm of the difference over norm of the gradient.  A
 * gradient that is zero but for rounding (the key bias of attention: softmax
 * ignores a constant) is all noise; such a one, below a hundredth of what
 * elements have on average, counts only in the sum over all.
 */

/* More is no rounding to 16 bits, which gives some thousandths. */
static const double BOUND = 0.1;

struct drift {
	uint32_t n;                     /* parameters */
	struct gradient {
		uint8_t dtype;
		uint64_t nelem;
		void *dense;            /* NULL: none was seen */
	} of[];
};

static uint64_t
drift_rounded(const struct ckr_program *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->ntensor; i++)
		n += p->tensor[i].flags & CKR_ROUNDED && p->tensor[i].ready >= 0
		     && p->instr[p->tensor[i].ready].phase == CKR_FORWARD;
	return n;
}

static struct drift *
drift_new(const ckr_ctx *c)
{
	uint32_t n = c->lib->nshared;
	struct drift *d = calloc(1, sizeof(*d) + n * sizeof(d->of[0]));

	if (d)
		d->n = n;
	return d;
}

static void
drift_free(struct drift *d)
{
	for (uint32_t i = 0; d && i < d->n; i++)
		free(d->of[i].dense);
	free(d);
}

static ckr_status
drift_note(struct drift *d, ckr_ctx *c, const struct loaded_program *b,
           uint32_t i)
{
	const struct ckr_tensor *t = &b->p->tensor[i];
	struct ckr_tensor w = rt_whole(c, t);
	struct gradient *g;

	if (t->kind != CKR_GRAD || t->param < 0)
		return CKR_OK;
	g = &d->of[t->param];
	free(g->dense);
	*g = (struct gradient){ t->dtype, rt_nelem(&w), malloc(w.nbytes + 1) };
	return g->dense ? rt_gather_whole(c, b, t, g->dense) : rt_no_memory(c);
}

static double
gradient_element(const struct gradient *g, uint64_t k)
{
	return dtype_double(g->dtype, (const char *)g->dense
	                    + k * dtype_row[g->dtype].nbytes);
}

/* Squares of the difference and of the gradient by keep-everything. */
static void
sum_squared_difference(const struct gradient *plan, const struct gradient *all,
                       double sum[2])
{
	sum[0] = sum[1] = 0;
	for (uint64_t k = 0; k < all->nelem; k++) {
		double x = gradient_element(all, k);
		double y = gradient_element(plan, k);
		/* infinities and what is no number may be the same, too */
		double d = y == x || (isnan(y) && isnan(x)) ? 0 : y - x;

		sum[0] += d * d;
		sum[1] += x * x;
	}
}

static int
by_magnitude(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool
have_both(const struct drift *plan, const struct drift *all, uint32_t i)
{
	return plan->of[i].dense && all->of[i].dense
	       && plan->of[i].nelem == all->of[i].nelem;
}

/* Largest and median of those that are no noise; total: squares, and
 * elements, of all. */
static void
rank_all(const struct drift *all, const double (*sum)[2],
         const double total[3], double *ratio, const char *const *name,
         struct ckr_checked *n)
{
	size_t count = 0;

	for (uint32_t i = 0; i < all->n; i++) {
		double least = 1e-4 * total[1] / total[2]
			* (double)all->of[i].nelem;

		if (!(sum[i][1] > least))
			continue;
		ratio[count] = sqrt(sum[i][0] / sum[i][1]);
		if (ratio[count] >= n->largest) {
			n->largest = ratio[count];
			n->where = name[i];
		}
		count++;
	}
	qsort(ratio, count, sizeof(*ratio), by_magnitude);
	n->median = count ? ratio[count / 2] : 0;
}

static ckr_status
drift_check(const struct drift *plan, const struct drift *all, ckr_ctx *c,
            struct ckr_checked *n)
{
	double total[3] = { 0 };
	double (*sum)[2] = calloc(all->n + 1, sizeof(*sum));
	double *ratio = calloc(all->n + 1, sizeof(*ratio));
	const char **name = calloc(all->n + 1, sizeof(*name));
	bool ok = sum && ratio && name;

	for (uint32_t i = 0; ok && i < all->n; i++) {
		if (!have_both(plan, all, i))
			continue;
		name[i] = c->lib->program[0].tensor[i].name;
		sum_squared_difference(&plan->of[i], &all->of[i], sum[i]);
		total[0] += sum[i][0];
		total[1] += sum[i][1];
		total[2] += (double)all->of[i].nelem;
	}
	if (ok)
		rank_all(all, (const double (*)[2])sum, total, ratio, name, n);
	n->differ = total[0] == 0 ? 0 : sqrt(total[0] / total[1]);
	free(sum);
	free(ratio);
	free(name);
	if (!ok)
		return rt_no_memory(c);
	if (n->differ <= BOUND)
		return CKR_OK;
	if (!isfinite(total[0]))
		return err_set(&c->err, CKR_EMISMATCH, "step %llu: gradients "
		               "differ from those without recomputation in "
		               "finite elements; a value saved in f16 may "
		               "exceed 65504; try: ckc --save-dtype bf16",
		               (unsigned long long)c->step + 1);
	return err_set(&c->err, CKR_EMISMATCH, "step %llu: gradients differ "
	               "from those without recomputation by %.3g of their "
	               "norm; rounding to 16 bits explains at most %g",
	               (unsigned long long)c->step + 1, n->differ, BOUND);
}

/* ---- the two runs ---- */

struct traced_run {
	ckr_ctx *c;
	const struct ckr_program *p;
	const struct loaded_program *b;
	uint64_t *hash;                 /* of tensor i; 0: not seen */
	struct drift *drift;            /* gradients; NULL: bits are equal */
	double loss;
	ckr_status end;                 /* CKR_OK or CKR_ENAN */
};

static ckr_status
hash_part(struct traced_run *s, uint32_t i, uint32_t rank)
{
	const struct ckr_tensor *t = &s->p->tensor[i];
	const void *from = rt_at(s->c, s->b, rank, t);
	uint64_t n = rt_nbytes(t), h = s->hash[i] ? s->hash[i] : 1;
	ckr_status status = CKR_OK;
	void *dense;

	if (rt_is_dense(t) && s->c->device->addressable) {
		h = mem_hash(h, from, n);
	} else {
		dense = malloc(n + 1);
		if (!dense)
			return rt_no_memory(s->c);
		status = rt_pull(s->c, t, from, dense);
		h = mem_hash(h, dense, n);
		free(dense);
	}
	s->hash[i] = h ? h : 1;
	return status;
}

static ckr_status
hash_tensor(struct traced_run *s, uint32_t i)
{
	FOR_RANKS (r, s->c)
		CKR_TRY(hash_part(s, i, r));
	return CKR_OK;
}

/* Tensors are few and steps are many: a list per step would be faster, but
 * this is not where the time goes. */
static ckr_status
after_step(void *user, uint32_t step)
{
	struct traced_run *s = user;

	for (uint32_t i = 0; i < s->p->ntensor; i++)
		if (s->p->tensor[i].ready == (int32_t)step
		    && s->p->tensor[i].dtype) {
			CKR_TRY(hash_tensor(s, i));
			if (s->drift)
				CKR_TRY(drift_note(s->drift, s->c, s->b, i));
		}
	return CKR_OK;
}

static ckr_status
run_new(struct traced_run *s, ckr_ctx *c, const struct loaded_program *b)
{
	*s = (struct traced_run){ .c = c, .p = b->p, .b = b };
	s->hash = calloc(b->p->ntensor + 1, sizeof(*s->hash));
	return s->hash ? CKR_OK
	       : rt_no_memory(c);
}

static ckr_status
run_traced(struct traced_run *s)
{
	struct instr_hook w = { after_step, s };

	memset(s->hash, 0, s->p->ntensor * sizeof(*s->hash));
	s->end = rt_run(s->c, s->b, &w, &s->loss);
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
	int32_t made = rt_made(plan->p, i);
	const struct ckr_instr *s = made >= 0 ? &plan->p->instr[made] : NULL;
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
	               made, origin);
}

static bool
is_again(const struct ckr_program *p, uint32_t i)
{
	int32_t made = rt_made(p, i);

	return made >= 0 && p->instr[made].phase == CKR_RECOMPUTE;
}

/* Tensor i of the plan has nothing to be compared with. */
static ckr_status
check_unmatched(const struct traced_run *plan, uint32_t i,
                struct ckr_checked *n)
{
	const struct ckr_tensor *t = &plan->p->tensor[i];
	int32_t made = rt_made(plan->p, i);
	char name[NAME_TEXT];

	n->alone++;
	if (!is_again(plan->p, i))
		return CKR_OK;
	return err_set(&plan->c->err, CKR_EUNSUPPORTED, "'%s', recomputed by "
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
	int32_t made = rt_made(plan->p, i);

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
		return err_set(&plan->c->err, CKR_EMISMATCH, "the loss "
		               "differs: %.9g with the plan, %.9g without "
		               "recomputation",
		               plan->loss, all->loss);
	return plan->end;
}

/* The resident blocks of all ranks, out of a copy or into it. */
static void
copy_resident(ckr_ctx *c, char *copy, bool back)
{
	FOR_RANKS (r, c) {
		const struct block *b = &c->resident[r];

		if (back)
			c->device->call->copy_h2d(c->device, b->p, copy,
			                          b->size);
		else
			c->device->call->copy_d2h(c->device, copy, b->p,
			                          b->size);
		copy += b->size;
	}
}

/* Both runs and what they show; the plan's comes second, so that its state
 * stays, and it is the one that is traced and timed. */
static ckr_status
run_both(struct traced_run *all, struct traced_run *plan, char *saved,
         struct ckr_checked *n)
{
	ckr_ctx *c = plan->c;
	struct trace *trace = c->trace;
	struct profile *profile = c->profile;
	ckr_status s;

	c->trace = NULL;
	c->profile = NULL;
	s = run_traced(all);
	c->trace = trace;
	c->profile = profile;
	if (s != CKR_OK)
		return s;
	copy_resident(c, saved, true);
	if (trace)
		trace_step_begin(trace, &c->env);
	CKR_TRY(run_traced(plan));
	s = compare_runs(plan, all, n);
	if (s == CKR_OK && plan->drift)
		s = drift_check(plan->drift, all->drift, c, n);
	/* that both ended alike all know, but not that this one differs */
	c->err.known = false;
	return peers_agree(c, s, "comparing");
}

static ckr_status
check_with(ckr_ctx *c, struct traced_run *all, struct traced_run *plan,
           struct ckr_checked *n)
{
	char *saved = malloc(c->resident[0].size * c->world.count + 1);
	ckr_status s;

	CKR_TRY(peers_agree(c, saved ? CKR_OK : rt_no_memory(c),
	                    "allocating memory"));
	copy_resident(c, saved, false);
	s = run_both(all, plan, saved, n);
	if (s != CKR_OK)
		copy_resident(c, saved, true);
	free(saved);
	return s;
}

ckr_status
ckr_check(ckr_ctx *c, const struct ckr_hyper *hyper, double *loss,
          struct ckr_checked *checked)
{
	const struct ckr_program *ref;
	struct loaded_program alone = { .p = NULL };
	struct traced_run all = { .c = c }, plan = { .c = c };
	struct ckr_checked n = { 0 };
	uint64_t rounded;
	ckr_status s;

	CKR_TRY(rt_need_quiet(c));
	ref = &c->lib->program[c->lib->program[1].ninstr ? 1 : 0];
	CKR_TRY(rt_prepare(c, hyper));
	s = rt_load_program(c, &alone, ref, false, false);
	if (s == CKR_OK)
		s = run_new(&all, c, &alone);
	if (s == CKR_OK)
		s = run_new(&plan, c, &c->plan);
	rounded = drift_rounded(c->plan.p);
	if (s == CKR_OK && rounded) {
		all.drift = drift_new(c);
		plan.drift = drift_new(c);
		s = all.drift && plan.drift ? CKR_OK : rt_no_memory(c);
	}
	s = peers_agree(c, s, "allocating memory");
	if (s == CKR_OK)
		do {
			n = (struct ckr_checked){ .rounded = rounded };
			s = check_with(c, &all, &plan, &n);
		} while (s == CKR_ENAN && scale_try_again(c));
	if (loss)
		*loss = plan.loss;
	if (checked)
		*checked = n;
	free(all.hash);
	free(plan.hash);
	drift_free(all.drift);
	drift_free(plan.drift);
	rt_unload_program(c, &alone);
	return rt_done(c, s);
}
