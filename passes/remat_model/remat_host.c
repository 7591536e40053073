/* Host memory beside the arena, as a fluid: what a schedule may have there at
 * each of its steps.
 *
 * method  Bytes that no step uses for a while, their longest pause, may be in
 *         host memory.  One lane takes them there, another one brings them
 *         back, at the same rate: at a step there is no more than what has been
 *         made and carried since the step began, nor than what can be carried
 *         and used until it ends.
 * cost    linear in the operands of the schedule
 */
#include "passes/remat_model/remat_host.h"

#include <string.h>

struct remat_host *
remat_host_new(const struct remat *r, double rate, int64_t room)
{
	struct remat_host *h = arena_alloc(r->arena, sizeof *h);

	h->rate = rate;
	h->room = room;
	h->start = arena_array(r->arena, (size_t)r->nnode + 1,
	                       sizeof *h->start);
	for (NodeId i = 1; i < r->nnode; i++)
		h->start[i + 1] = h->start[i] + r->node[i].sec;
	return h;
}

int64_t
remat_host_bytes(const struct remat_host *h, double sec)
{
	double bytes = h->rate * sec;

	return bytes < (double)h->room ? (int64_t)bytes : h->room;
}

/* ---- pauses ---- */

void
pauses_open(struct schedule *w)
{
	struct pauses *p = w->pauses;

	if (!p)
		p = w->pauses = arena_alloc(w->arena, sizeof *p);
	if (p->step_cap < w->nstep) {
		p->step_cap = 2 * w->nstep;
		p->start = arena_array(w->arena, (size_t)p->step_cap + 1,
		                       sizeof *p->start);
		p->idle = arena_array(w->arena, (size_t)p->step_cap + 1,
		                      sizeof *p->idle);
		p->away = arena_array(w->arena, (size_t)p->step_cap + 1,
		                      sizeof *p->away);
		p->begun = arena_array(w->arena, (size_t)p->step_cap + 1,
		                       sizeof *p->begun);
		p->ended = arena_array(w->arena, (size_t)p->step_cap + 1,
		                       sizeof *p->ended);
	}
	if (p->inst_cap < w->inst_cap) {
		p->inst_cap = w->inst_cap;
		p->of = arena_array(w->arena, (size_t)p->inst_cap + 1,
		                    sizeof *p->of);
	}
	for (int32_t k = 0; k < w->nstep; k++) {
		const struct rnode *n = &w->r->node[w->step[k].node];

		p->start[k + 1] = p->start[k]
			+ (w->step[k].inlined ? n->least_sec : n->sec);
	}
}

void
pauses_made(struct schedule *w, int32_t y, int32_t k)
{
	w->pauses->of[y] = (struct pause_of){ .last = k };
}

void
pauses_used(struct schedule *w, int32_t y, int32_t k)
{
	struct pauses *p = w->pauses;
	struct pause_of *o = &p->of[y];
	double sec = p->start[k] - p->start[o->last + 1];

	if (sec > o->sec) {
		o->sec = sec;
		o->from = o->last;
		o->to = k;
	}
	o->last = k;
}

/* ---- lanes ---- */

static void
sum_pauses(struct schedule *w)
{
	const struct remat *r = w->r;
	struct pauses *p = w->pauses;
	size_t n = ((size_t)w->nstep + 1) * sizeof(double);

	memset(p->idle, 0, n);
	memset(p->begun, 0, n);
	memset(p->ended, 0, n);
	for (int32_t y = 0; y < w->ninst; y++) {
		const struct storage *s = &r->store[w->of_inst[y]];
		const struct pause_of *o = &p->of[y];
		double size = (double)s->size;

		if (w->first[y] < 0 || s->output
		    || o->sec * r->host->rate < 2 * size)
			continue;
		p->idle[o->from + 1] += size;
		p->idle[o->to] -= size;
		p->begun[o->from] += size;
		p->ended[o->to] += size;
	}
}

static double
at_most(double x, double y)
{
	return x < y ? x : y;
}

void
pauses_take(struct schedule *w)
{
	struct pauses *p = w->pauses;
	double rate = w->r->host->rate, room = (double)w->r->host->room;
	double idle = 0, sum = 0, carried = 0;

	sum_pauses(w);
	for (int32_t k = 0; k < w->nstep; k++) {
		idle += p->idle[k];
		p->away[k] = at_most(at_most(idle, room), carried);
		/* what pauses from step k on leaves from its end on */
		carried = at_most(carried + rate * (p->start[k + 1]
		                                    - p->start[k]), sum);
		sum += p->begun[k];
	}
	carried = sum = 0;
	for (int32_t k = w->nstep - 1; k >= 0; k--) {
		p->away[k] = at_most(p->away[k], carried);
		carried = at_most(carried + rate * (p->start[k + 1]
		                                    - p->start[k]), sum);
		sum += p->ended[k];
		w->live[k] -= (int64_t)p->away[k];
	}
}
