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
		p->at = arena_array(w->arena, (size_t)p->step_cap + 1,
		                    sizeof *p->at);
	}
	if (p->inst_cap < w->inst_cap) {
		p->inst_cap = w->inst_cap;
		p->of = arena_array(w->arena, (size_t)p->inst_cap + 1,
		                    sizeof *p->of);
	}
	p->at[0] = (struct pause_step){ 0 };
	for (int32_t k = 0; k < w->nstep; k++) {
		const struct rnode *n = &w->r->node[w->step[k].node];

		p->at[k + 1] = (struct pause_step){ .start = p->at[k].start
			+ (w->step[k].inlined ? n->least_sec : n->sec) };
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
	double sec = p->at[k].start - p->at[o->last + 1].start;

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

	for (int32_t y = 0; y < w->ninst; y++) {
		const struct storage *s = &r->store[w->of_inst[y]];
		const struct pause_of *o = &p->of[y];
		double size = (double)s->size;

		if (w->first[y] < 0 || s->output
		    || o->sec * r->host->rate < 2 * size)
			continue;
		p->at[o->from + 1].more += size;
		p->at[o->to].more -= size;
		p->at[o->from].begun += size;
		p->at[o->to].ended += size;
	}
}

static double
at_most(double x, double y)
{
	return x < y ? x : y;
}

/* What a lane has carried behind step k, of what it had before and of no more
 * than `sum`. */
static double
carry(const struct schedule *w, int32_t k, double carried, double sum)
{
	const struct pause_step *at = &w->pauses->at[k];

	return at_most(carried + w->r->host->rate * (at[1].start - at->start),
	               sum);
}

void
pauses_take(struct schedule *w)
{
	struct pause_step *at = w->pauses->at;
	double room = (double)w->r->host->room;
	double pausing = 0, sum = 0, carried = 0;

	sum_pauses(w);
	for (int32_t k = 0; k < w->nstep; k++) {
		pausing += at[k].more;
		at[k].there = at_most(at_most(pausing, room), carried);
		/* what pauses from step k on leaves from its end on */
		carried = carry(w, k, carried, sum);
		sum += at[k].begun;
	}
	carried = sum = 0;
	for (int32_t k = w->nstep - 1; k >= 0; k--) {
		w->live[k] -= (int64_t)at_most(at[k].there, carried);
		carried = carry(w, k, carried, sum);
		sum += at[k].ended;
	}
}
