/* By how much the gradients of two runs differ, where a plan rounds what
 * backward reads.
 *
 * Of a parameter: norm of the difference over norm of the gradient.  A
 * gradient that is zero but for rounding (the key bias of attention: softmax
 * ignores a constant) is all noise; such a one, below a hundredth of what
 * elements have on average, counts only in the sum over all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/rt.h"

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

uint64_t
drift_rounded(const struct ckr_program *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->ntensor; i++)
		n += p->tensor[i].flags & CKR_ROUNDED && p->tensor[i].ready >= 0
		     && p->step[p->tensor[i].ready].phase == CKR_FORWARD;
	return n;
}

struct drift *
drift_new(const ckr_ctx *c)
{
	uint32_t n = c->lib->nshared;
	struct drift *d = calloc(1, sizeof(*d) + n * sizeof(d->of[0]));

	if (d)
		d->n = n;
	return d;
}

void
drift_free(struct drift *d)
{
	for (uint32_t i = 0; d && i < d->n; i++)
		free(d->of[i].dense);
	free(d);
}

ckr_status
drift_note(struct drift *d, ckr_ctx *c, const struct bound *b, uint32_t i)
{
	const struct ckr_tensor *t = &b->p->tensor[i];
	struct ckr_tensor w = rt_whole(c, t);
	struct gradient *g;

	if (t->kind != CKR_GRAD || t->owner < 0)
		return CKR_OK;
	g = &d->of[t->owner];
	free(g->dense);
	*g = (struct gradient){ t->dtype, rt_nelem(&w), malloc(w.nbytes + 1) };
	return g->dense ? rt_get(c, b, t, g->dense) : rt_no_memory(c);
}

static double
element(const struct gradient *g, uint64_t k)
{
	return dtype_double(g->dtype, (const char *)g->dense
	                    + k * dtype_row[g->dtype].nbytes);
}

/* Squares of the difference and of the gradient by keep-everything. */
static void
measure(const struct gradient *plan, const struct gradient *all, double sum[2])
{
	sum[0] = sum[1] = 0;
	for (uint64_t k = 0; k < all->nelem; k++) {
		double x = element(all, k), y = element(plan, k);
		/* infinities and what is no number may be the same, too */
		double d = y == x || (isnan(y) && isnan(x)) ? 0 : y - x;

		sum[0] += d * d;
		sum[1] += x * x;
	}
}

static int
by_size(const void *a, const void *b)
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
	qsort(ratio, count, sizeof(*ratio), by_size);
	n->median = count ? ratio[count / 2] : 0;
}

ckr_status
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
		measure(&plan->of[i], &all->of[i], sum[i]);
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
		               "differ from those of keep-everything in what "
		               "is finite: a value kept in 16 bits may be "
		               "beyond 65504, where f16 ends; try ckc "
		               "--save-dtype bf16",
		               (unsigned long long)c->step + 1);
	return err_set(&c->err, CKR_EMISMATCH, "step %llu: gradients differ "
	               "from those of keep-everything by %.3g of their norm: "
	               "rounding to 16 bits gives at most %g",
	               (unsigned long long)c->step + 1, n->differ, BOUND);
}
