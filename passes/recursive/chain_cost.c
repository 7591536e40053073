/* What each part of a chain costs.
 *
 * method  read off the exact evaluation of two plans: all cuts kept and each
 *         part made again, and everything kept
 */
#include "passes/recursive/chain.h"

/* Seconds from each cut to the next. */
static void
measure_sweeps(struct chain *c)
{
	chain_begin(c);
	for (int32_t i = 0; i < c->npart; i++)
		chain_hold_cut(c, i);
	for (int32_t i = 0; i + 1 < c->npart; i++) {
		double sec = 0;

		c->run.out->n = 0;
		c->run.here[c->cut[i]] = false;
		chain_sweep(c, i);
		for (int32_t k = 0; k < c->run.out->n; k++)
			sec += c->r->node[c->run.out->step[k].node].sec;
		c->cost[i].sec = sec;
		c->cost[i].cut = c->r->store[c->cut[i]].size;
	}
}

/* By step of the sequence measured: the part it belongs to. */
static int32_t *
step_parts(const struct chain *c, Arena *a)
{
	const struct remat *r = c->r;
	const struct schedule *w = c->trial;
	int32_t *of = arena_array(a, (size_t)w->nstep + 1, 4), part = 0;

	for (int32_t k = w->nstep - 1; k >= 0; k--) {
		NodeId i = w->step[k].node;

		if (!w->step[k].clone && r->node[i].backward)
			part = c->backward_part[i];
		of[k] = part;
	}
	return of;
}

/* Bytes of gradients by step of the sequence measured. */
static int64_t *
gradient_bytes(const struct chain *c, Arena *a)
{
	const struct remat *r = c->r;
	const struct schedule *w = c->trial;
	int64_t *live = arena_array(a, (size_t)w->nstep + 2, sizeof *live);

	for (int32_t y = 0; y < w->ninst; y++)
		if (w->block[y] == y && w->first[y] >= 0
		    && r->node[r->store[w->of_inst[y]].def].backward) {
			int64_t size = r->store[w->of_inst[y]].size;

			live[w->first[y]] += size;
			live[w->last[y] < w->nstep ? w->last[y] + 1
				: w->nstep] -= size;
		}
	for (int32_t k = 0; k < w->nstep; k++)
		live[k + 1] += live[k];
	return live;
}

/* Sums over clones, by part; the largest sums of bytes with all cuts there. */
static void
measure_parts(struct chain *c, bool tape)
{
	const struct remat *r = c->r;
	const struct schedule *w = c->trial;
	Arena *a = arena_new();
	int32_t *part = step_parts(c, a), last = -1;
	int64_t *grad = gradient_bytes(c, a);
	int64_t *before = arena_array(a, (size_t)c->npart + 1, sizeof *before);

	for (int32_t i = 0; i < c->npart; i++) {
		before[i + 1] = before[i] + c->cost[i].cut;
		c->cost[i].once = tape ? 0 : c->cost[i].once;
		c->cost[i].all = tape ? c->cost[i].all : 0;
		c->cost[i].peak = c->cost[i].sweep = c->cost[i].fixed = 0;
	}
	for (int32_t k = 0; k < w->nstep; k++) {
		NodeId i = w->step[k].node;
		bool first = !w->step[k].clone && i < c->begin;
		int32_t p = part[k];
		struct part_cost *o = &c->cost[p];

		if (w->step[k].clone)
			*(tape ? &o->once : &o->all) += r->node[i].sec;
		if (tape)
			continue;
		if (first) {
			if (r->node[i].nwrite == 0)
				continue;
			p = c->part_of[r->node[i].write[0]];
			if (w->live[k] - before[p] > c->cost[p].sweep)
				c->cost[p].sweep = w->live[k] - before[p];
			continue;
		}
		if (w->live[k] - before[p] > o->peak)
			o->peak = w->live[k] - before[p];
		if (p != last)
			o->fixed = grad[k];
		last = p;
	}
	arena_free(a);
}

bool
chain_measure(struct chain *c)
{
	const struct remat *r = c->r;

	measure_sweeps(c);
	chain_begin(c);
	for (int32_t i = 0; i < c->npart; i++)
		chain_hold_tape(c, i);
	for (int32_t i = c->npart - 1; i >= 0; i--)
		chain_backward(c, i);
	if (!c->run.ok)
		return false;
	schedule_steps(c->trial, c->run.out->step, c->run.out->n);
	measure_parts(c, true);
	chain_begin(c);
	for (int32_t i = 0; i < c->npart; i++)
		chain_hold_cut(c, i);
	for (int32_t i = c->npart - 1; i >= 0; i--) {
		chain_sweep_tape(c, i, false);
		chain_backward(c, i);
	}
	if (!c->run.ok)
		return false;
	schedule_steps(c->trial, c->run.out->step, c->run.out->n);
	measure_parts(c, false);
	for (int32_t i = 0; i < c->npart; i++) {
		c->cost[i].tape = 0;
		for (int32_t k = c->store_at[i]; k < c->store_at[i + 1]; k++)
			if (chain_on_tape(c, c->store[k]))
				c->cost[i].tape += r->store[c->store[k]].size;
	}
	return true;
}
