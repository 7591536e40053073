/* By how much gradients of two runs differ, where the plan rounds values.
 *
 * Of a parameter: norm of the difference over norm of the gradient.  A
 * gradient that is zero but for rounding (the key bias of attention: softmax
 * ignores a constant) is all noise; such a one, below a hundredth of what
 * elements have on average, counts only in the sum over all.
 */
#include "runtime/compare/compare.h"
#include "runtime/measure/inside.h"

#include <math.h>
#include <stdlib.h>

/* More is no rounding to 16 bits, which gives some thousandths. */
static const double BOUND = 0.1;

struct drift {
	struct measure *c;
	struct gradient {
		uint64_t nelem;
		struct elements x;      /* bytes NULL: none was seen */
	} of[];                         /* [nshared] */
};

uint64_t
drift_count_rounded(const struct ckr_program *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->ntensor; i++)
		n += p->tensor[i].flags & CKR_ROUNDED && p->tensor[i].ready >= 0
		     && p->instr[p->tensor[i].ready].phase == CKR_FORWARD;
	return n;
}

struct drift *
drift_new(struct measure *c)
{
	struct drift *d = calloc(1, sizeof(*d) + c->lib->nshared
	                         * sizeof(d->of[0]));

	if (d)
		d->c = c;
	return d;
}

void
drift_free(struct drift *d)
{
	for (uint32_t i = 0; d && i < d->c->lib->nshared; i++)
		free((void *)(uintptr_t)d->of[i].x.bytes);
	free(d);
}

ckr_status
drift_note(struct drift *d, const struct loaded_program *b, uint32_t i)
{
	const struct ckr_tensor *t = &b->p->tensor[i];
	struct world *w = d->c->world;
	struct ckr_tensor whole = world_whole(w, t);
	struct gradient *g;
	void *dense;

	if (t->kind != CKR_GRAD || t->param < 0)
		return CKR_OK;
	g = &d->of[t->param];
	free((void *)(uintptr_t)g->x.bytes);
	dense = malloc(whole.nbytes + 1);
	*g = (struct gradient){ tensor_nelem(&whole), { .dtype = t->dtype,
		.bytes = dense } };
	return dense ? world_gather(w, b, t, dense) : err_no_memory(w->err);
}

static int
by_magnitude(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Largest and median of those of n that are no noise; all: the sums. */
static void
rank_gradients(const struct tensor_diff *f, uint32_t n,
               const struct tensor_diff *all, double *ratio,
               struct ckr_checked *to)
{
	size_t count = 0;

	for (uint32_t i = 0; i < n; i++) {
		double least = 1e-4 * all->square[1] / (double)all->nelem
			* (double)f[i].nelem;

		if (!(f[i].square[1] > least))
			continue;
		ratio[count] = sqrt(f[i].square[0] / f[i].square[1]);
		if (ratio[count] >= to->largest) {
			to->largest = ratio[count];
			to->where = f[i].name;
		}
		count++;
	}
	qsort(ratio, count, sizeof(*ratio), by_magnitude);
	to->median = count ? ratio[count / 2] : 0;
}

/* Gradients of both runs into f, and their sums. */
static ckr_status
compare_gradients(const struct drift *plan, const struct drift *without,
                  struct tensor_diff *f, struct tensor_diff *all)
{
	const struct measure *c = plan->c;

	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		const struct gradient *x = &plan->of[i], *y = &without->of[i];

		if (!x->x.bytes || !y->x.bytes || x->nelem != y->nelem)
			continue;
		f[i].name = (char *)(uintptr_t)
			c->lib->program[0].tensor[i].name;
		f[i].nelem = x->nelem;
		CKR_TRY(compare_tensor(&f[i], (struct elements[]){ x->x, y->x },
		                       NULL, c->err));
		all->nelem += f[i].nelem;
		all->square[0] += f[i].square[0];
		all->square[1] += f[i].square[1];
	}
	return CKR_OK;
}

ckr_status
drift_check(const struct drift *plan, const struct drift *without,
            struct ckr_checked *n)
{
	struct measure *c = plan->c;
	unsigned long long step = stepping_progress(c->steps)->step + 1;
	struct tensor_diff *f = calloc(c->lib->nshared + 1, sizeof(*f));
	struct tensor_diff all = { .nelem = 0 };
	double *ratio = calloc(c->lib->nshared + 1, sizeof(*ratio));
	ckr_status s = f && ratio ? compare_gradients(plan, without, f, &all)
	               : err_no_memory(c->err);

	if (s == CKR_OK)
		rank_gradients(f, c->lib->nshared, &all, ratio, n);
	n->differ = all.square[0] == 0 ? 0
	            : sqrt(all.square[0] / all.square[1]);
	free(f);
	free(ratio);
	if (s != CKR_OK || n->differ <= BOUND)
		return s;
	if (!isfinite(all.square[0]))
		return err_set(c->err, CKR_EMISMATCH, "step %llu: gradients "
		               "differ from those without recomputation in "
		               "finite elements; a value saved in f16 may "
		               "exceed 65504; try: ckc --save-dtype bf16",
		               step);
	return err_set(c->err, CKR_EMISMATCH, "step %llu: gradients differ "
	               "from those without recomputation by %.3g of their "
	               "norm; rounding to 16 bits explains at most %g", step,
	               n->differ, BOUND);
}
