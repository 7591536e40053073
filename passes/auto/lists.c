/* Lists of candidates, and their order. */
#include "passes/auto/inside.h"

#include <math.h>
#include <stdlib.h>

/* Equal seconds may differ by rounding: then fewer devices, fewer bytes. */
int
list_by_seconds(const void *a, const void *b)
{
	const struct auto_candidate *p = *(struct auto_candidate *const *)a;
	const struct auto_candidate *q = *(struct auto_candidate *const *)b;
	float x = (float)p->plan.sec, y = (float)q->plan.sec;
	int64_t n = auto_ranks(&p->config), m = auto_ranks(&q->config);

	if (x < y || x > y)
		return x < y ? -1 : 1;
	if (n != m)
		return n < m ? -1 : 1;
	if (p->plan.peak != q->plan.peak)
		return p->plan.peak < q->plan.peak ? -1 : 1;
	return p < q ? -1 : p > q;
}

/* Of equals the one that needs least memory: if it does not fit, none does. */
int
list_by_bound(const void *a, const void *b)
{
	const struct auto_candidate *p = *(struct auto_candidate *const *)a;
	const struct auto_candidate *q = *(struct auto_candidate *const *)b;

	if (p->bound < q->bound || p->bound > q->bound)
		return p->bound < q->bound ? -1 : 1;
	if (p->config.zero != q->config.zero)
		return p->config.zero > q->config.zero ? -1 : 1;
	return p < q ? -1 : p > q;
}

struct auto_candidate **
list_states(const struct auto_found *f, enum auto_state least,
            enum auto_state most, int64_t *n, Arena *a)
{
	struct auto_candidate **v = arena_array(a, (size_t)f->n + 1, sizeof *v);

	*n = 0;
	for (int64_t i = 0; i < f->n; i++)
		if (f->candidate[i].state >= least
		    && f->candidate[i].state <= most)
			v[(*n)++] = &f->candidate[i];
	return v;
}

/* Seconds that a candidate has to be faster than to be the first of `shown`. */
double
list_cutoff(const struct search *s, int64_t shown, Arena *a)
{
	int64_t n;
	struct auto_candidate **v = list_states(s->found, AUTO_PLANNED,
	                                        AUTO_PLANNED, &n, a);

	qsort(v, (size_t)n, sizeof *v, list_by_seconds);
	return n < shown ? INFINITY : v[shown - 1]->plan.sec;
}

/* Candidates that have the plan of another one. */
void
list_follow_same(struct auto_found *f)
{
	for (int64_t i = 0; i < f->n; i++) {
		struct auto_candidate *c = &f->candidate[i];
		const struct auto_candidate was = *c;

		if (c->same < 0)
			continue;
		*c = f->candidate[c->same];
		c->config = was.config;
		c->without = was.without;
		c->same = was.same;
	}
}

/* Of v[0..n-1] those that no other one decides; how many. */
int64_t
list_drop_same(struct auto_candidate **v, int64_t n)
{
	int64_t k = 0;

	for (int64_t i = 0; i < n; i++)
		if (v[i]->same < 0)
			v[k++] = v[i];
	return k;
}
