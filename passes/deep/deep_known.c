/* Sequences of steps, and the known plans made of them: none is both slower
 * and larger than another. */
#include "passes/deep/deep_known.h"

#include <string.h>

enum { PLANS = 256 };

bool
steps_add(struct steps *s, NodeId node, bool clone, uint32_t makes)
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
worse(const struct found *f, int64_t live, double sec)
{
	return f->live >= live && f->sec >= sec;
}

struct remat_cost
deep_try(struct deep *d)
{
	struct remat *r = d->r;
	struct remat_cost c = remat_eval_steps(r, d->steps.step, d->steps.n);
	struct found *f;
	int32_t n = 0;

	if (c.live >= d->top || c.sec < d->floor)
		return c;
	for (int32_t i = 0; i < d->n; i++)
		if (d->plan[i].live <= c.live && d->plan[i].sec <= c.sec)
			return c;
	for (int32_t i = 0; i < d->n; i++)
		if (!worse(&d->plan[i], c.live, c.sec))
			d->plan[n++] = d->plan[i];
	d->n = n;
	if (n == PLANS)
		return c;
	if (!d->plan)
		d->plan = arena_array(r->arena, PLANS, sizeof *d->plan);
	f = &d->plan[d->n++];
	*f = (struct found){ .live = c.live, .placed = -1, .sec = c.sec,
	                     .nstep = d->steps.n };
	f->step = arena_copy(r->arena, d->steps.step,
	                     (size_t)d->steps.n * sizeof *f->step);
	return c;
}

static int64_t
placed(struct deep *d, struct found *f)
{
	if (f->placed < 0) {
		Arena *scratch = arena_new();

		found_eval(d->r, f);
		f->placed = remat_packed(d->r, scratch);
		arena_free(scratch);
	}
	return f->placed;
}

struct found *
deep_best(struct deep *d, int64_t arena)
{
	struct found *best = NULL;

	for (int32_t i = 0; i < d->n && !(best && watch_over(d->r->watch));
	     i++) {
		struct found *f = &d->plan[i];

		if (f->live <= arena && (!best || f->sec < best->sec
		    || (f->sec <= best->sec && f->live < best->live))
		    && placed(d, f) <= arena)
			best = f;
	}
	return best;
}

int64_t
deep_least(struct deep *d)
{
	int64_t least = INT64_MAX;

	for (;;) {
		struct found *next = NULL;

		for (int32_t i = 0; i < d->n; i++) {
			struct found *f = &d->plan[i];

			if (f->placed >= 0)
				least = f->placed < least ? f->placed : least;
			else if (!next || f->live < next->live)
				next = f;
		}
		if (!next || next->live >= least
		    || (least < INT64_MAX && watch_over(d->r->watch)))
			return least;
		placed(d, next);
	}
}
