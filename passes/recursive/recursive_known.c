/* Sequences of steps, and the known plans made of them: none is both slower
 * and larger than another. */
#include "passes/recursive/recursive_known.h"

#include <string.h>

enum { PLANS = 256 };

bool
steps_add(struct step_list *s, NodeId node, bool clone, uint32_t makes)
{
	if (s->n >= s->limit)
		return false;
	if (s->n == s->cap) {
		struct rstep *old = s->step;
		int32_t cap = s->cap ? 2 * s->cap : 1024;

		s->step = arena_array(s->arena, (size_t)cap, sizeof *s->step);
		if (s->n)
			memcpy(s->step, old, (size_t)s->n * sizeof *old);
		s->cap = cap;
	}
	s->step[s->n++] = (struct rstep){ .node = node, .clone = clone,
	                                     .makes = makes };
	return true;
}

/* ---- known plans ---- */

static bool
is_dominated_by(const struct known_plan *f, int64_t live, double sec)
{
	return f->live >= live && f->sec >= sec;
}

struct remat_cost
recursive_try(struct recursive_search *d)
{
	struct plan_pool *k = &d->known;
	struct remat_cost c = schedule_steps(k->trial, d->steps.step,
	                                     d->steps.n);
	struct known_plan *f;
	int32_t n = 0;

	if (c.live >= d->top || c.sec < d->floor)
		return c;
	for (int32_t i = 0; i < k->n; i++)
		if (k->plan[i].live <= c.live && k->plan[i].sec <= c.sec)
			return c;
	for (int32_t i = 0; i < k->n; i++)
		if (!is_dominated_by(&k->plan[i], c.live, c.sec))
			k->plan[n++] = k->plan[i];
	k->n = n;
	if (n == PLANS)
		return c;
	if (!k->plan)
		k->plan = arena_array(d->r->arena, PLANS, sizeof *k->plan);
	f = &k->plan[k->n++];
	*f = (struct known_plan){ .live = c.live, .placed = -1, .sec = c.sec,
	                     .nstep = d->steps.n };
	f->step = arena_copy(d->r->arena, d->steps.step,
	                     (size_t)d->steps.n * sizeof *f->step);
	return c;
}
