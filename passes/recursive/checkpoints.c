/* Checkpointing: forward states in memory, and forward run again from them.
 *
 * what    plans for graphs of any shape and size, without any search.  A state
 *         is all that forward nodes after a place read from before it; the
 *         places cut forward into parts with about equal bytes for backward.
 * method  Every part runs again from the state before it (Chen et al.,
 *         "Training deep nets with sublinear memory cost", 2016): of n equal
 *         values about 2 sqrt(n) are in memory.  With room for c states only,
 *         states inside a stretch are made again, at the places of Griewank and
 *         Walther ("Algorithm 799: Revolve", 2000): r runs of each part serve
 *         (c + r over c) parts.  The last parts may be kept whole, and are not
 *         run again.
 *         Which numbers of parts, states and parts kept: see designs.c.
 * cost    linear in the steps that are built
 */
#include "passes/recursive/designs.h"
#include "passes/recursive/rerun.h"

#include <stdlib.h>
#include <string.h>

/* A state in memory: the part it stands before, and how many may be added. */
struct kept_state {
	int32_t part, states;
	int32_t held;                   /* where its storages begin */
	int64_t runs;                   /* of each part after, at most */
};

struct checkpoints {
	const struct remat *r;
	const uint8_t *constraint;
	NodeId turn;
	Arena *arena;
	NodeId *last;                   /* by storage: last forward reader */
	int64_t *tape;                  /* by node: bytes for backward of all
	                                 * nodes before it */
	int64_t *cross;                 /* by node: bytes of the state */
	NodeId *position;               /* by node from turn on: the earliest
	                                 * node of which it reads results */
	NodeId *cut;                    /* by part: its first node */
	/* of the plan being built */
	struct rerun run;
	NodeId next;                    /* first run that is due */
	struct kept_state *frame;
	int32_t *held, nframe, nheld;   /* storages of all frames */
};

/* ---- what follows from the graph ---- */

/* Made by forward and free to go. */
static bool
may_recompute(const struct checkpoints *c, int32_t s)
{
	const struct storage *st = &c->r->store[s];

	return st->candidate && st->def < c->turn && c->constraint[s] != 'k'
		&& c->r->node[st->def].clonable;
}

/* The latest forward node of which node i reads a result; 0: of none. */
static NodeId
latest_read(const struct checkpoints *c, NodeId i)
{
	const struct rnode *n = &c->r->node[i];
	NodeId latest = 0;

	for (int k = 0; k < n->nread; k++)
		if (may_recompute(c, n->read[k])
		    && c->r->store[n->read[k]].def > latest)
			latest = c->r->store[n->read[k]].def;
	return latest;
}

/* A node after the turn stands at the latest forward node that it or one
 * after it reads; or, if that is nearer to what most nodes read themselves, at
 * the earliest of those that it and the ones before it read. */
static void
find_positions(struct checkpoints *c)
{
	NodeId n = c->r->nnode, position = 0, latest;
	NodeId *low = arena_array(c->arena, (size_t)n + 1, sizeof *low);
	double far = 0;

	c->position = arena_array(c->arena, (size_t)n + 1, sizeof *c->position);
	for (NodeId i = n; i-- > c->turn;) {
		latest = latest_read(c, i);
		position = latest > position ? latest : position;
		c->position[i] = position;
		far += latest ? position - latest : 0;
	}
	position = c->turn;
	for (NodeId i = c->turn; i < n; i++) {
		latest = latest_read(c, i);
		position = latest && latest < position ? latest : position;
		low[i] = position;
		far -= latest ? latest - position : 0;
	}
	c->position = far > 0 ? low : c->position;
}

static void
measure_states(struct checkpoints *c)
{
	const struct remat *r = c->r;
	bool *backward = arena_array(c->arena, (size_t)r->nstore + 1,
	                             sizeof *backward);

	c->last = arena_array(c->arena, (size_t)r->nstore + 1,
	                      sizeof *c->last);
	c->tape = arena_array(c->arena, (size_t)r->nnode + 2,
	                      sizeof *c->tape);
	c->cross = arena_array(c->arena, (size_t)r->nnode + 2,
	                       sizeof *c->cross);
	for (NodeId i = 1; i < r->nnode; i++)
		for (int k = 0; k < r->node[i].nread; k++) {
			int32_t s = r->node[i].read[k];

			backward[s] |= i >= c->turn;
			c->last[s] = i < c->turn ? i : c->last[s];
		}
	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *st = &r->store[s];

		if (!may_recompute(c, s))
			continue;
		if (backward[s])
			c->tape[st->def + 1] += st->size;
		if (c->last[s] > st->def) {
			c->cross[st->def + 1] += st->size;
			c->cross[c->last[s] + 1] -= st->size;
		}
	}
	for (NodeId i = 1; i <= c->turn; i++) {
		c->tape[i] += c->tape[i - 1];
		c->cross[i] += c->cross[i - 1];
	}
}

/* Parts with about equal bytes for backward, each from where the smallest
 * state is near by; returns the mean bytes of a state. */
static double
cut_into(void *data, int32_t parts)
{
	struct checkpoints *c = data;
	int64_t all = c->tape[c->turn], near = all / parts / 3;
	double sum = 0;
	NodeId at = 1;

	c->cut[0] = 1;
	for (int32_t k = 1; k < parts; k++) {
		int64_t ideal = (int64_t)((double)all / parts * k);
		NodeId from = c->cut[k - 1] + 1, to, best;
		NodeId most = c->turn - (NodeId)(parts - k);

		at = at < from ? from : at;
		while (at < most && c->tape[at] < ideal - near)
			at++;
		best = at;
		for (to = at; to < most && c->tape[to] <= ideal + near; to++)
			if (c->cross[to] < c->cross[best]
			    || (c->cross[to] == c->cross[best]
			        && llabs(c->tape[to] - ideal)
			        < llabs(c->tape[best] - ideal)))
				best = to;
		c->cut[k] = best;
		sum += (double)c->cross[best];
	}
	c->cut[parts] = c->turn;
	return sum / (parts - 1);
}

/* ---- runs again ---- */

static void
forget_made(struct checkpoints *c)
{
	while (c->run.nmade > 0)
		c->run.here[c->run.made[--c->run.nmade]] = false;
}

/* A state's storages that no earlier state has: those of nodes from..to - 1
 * that are read after. */
static void
push_state(struct checkpoints *c, int32_t part, int32_t states)
{
	const struct kept_state *before = &c->frame[c->nframe - 1];
	NodeId from = c->cut[before->part], to = c->cut[part];

	c->frame[c->nframe++] = (struct kept_state){ part, states, c->nheld,
	                                        before->runs };
	for (NodeId i = from; i < to; i++)
		for (int k = 0; k < c->r->node[i].nwrite; k++) {
			int32_t s = c->r->node[i].write[k];

			if (may_recompute(c, s) && c->last[s] >= to
			    && !c->constraint[s])
				c->held[c->nheld++] = s;
		}
}

/* Run again up to a part, and hold the state before it. */
static void
rerun_to_part(struct checkpoints *c, int32_t part, int32_t states)
{
	int32_t from = c->nheld;

	forget_made(c);
	push_state(c, part, states);
	rerun_begin(&c->run);
	for (int32_t k = from; k < c->nheld; k++)
		rerun_want(&c->run, c->held[k]);
	rerun_missing(&c->run, NULL, NULL);
	forget_made(c);
	for (int32_t k = from; k < c->nheld; k++)
		c->run.here[c->held[k]] = true;
}

/* What nodes after the turn need for themselves, up to those that belong
 * before the part; then these nodes. */
static void
run_backward_from(struct checkpoints *c, int32_t part)
{
	const struct remat *r = c->r;
	NodeId end = c->next;

	rerun_begin(&c->run);
	for (;
	     end < r->nnode && (part == 0 || c->position[end] >= c->cut[part]);
	     end++)
		for (int k = 0; k < r->node[end].nread; k++)
			rerun_want(&c->run, r->node[end].read[k]);
	rerun_missing(&c->run, NULL, NULL);
	for (; c->next < end; c->next++)
		rerun_first(&c->run, c->next);
	forget_made(c);
}

/* The state stays until the part before it has been run again. */
static void
pop_state(struct checkpoints *c)
{
	int32_t from = c->frame[--c->nframe].held;

	while (c->nheld > from)
		c->run.made[c->run.nmade++] = c->held[--c->nheld];
}

/* The next state after the last one, of the parts before `end`. */
static int32_t
next_state(struct checkpoints *c, int32_t end, bool first)
{
	struct kept_state *f = &c->frame[c->nframe - 1];

	c->run.ok = c->run.ok && !watch_off(c->r->watch);
	return f->part + design_parts_before(end - f->part, f->states, first,
	                                     &f->runs);
}

/* In the first run what is held stays for free. */
static void
begin_plan(struct checkpoints *c, const struct design *d)
{
	const struct remat *r = c->r;
	int32_t rest = d->parts - d->kept;
	NodeId whole = c->cut[rest];

	c->run.out->n = c->run.nmade = c->nheld = c->nframe = 0;
	c->run.ok = true;
	c->frame[c->nframe++] = (struct kept_state){ 0, d->states, 0, rest };
	for (struct kept_state *f = c->frame;
	     rest - f->part > 1 && f->states > 0 && c->run.ok;
	     f = &c->frame[c->nframe - 1])
		push_state(c, next_state(c, rest, true), f->states - 1);
	push_state(c, rest, 0);
	for (int32_t s = 0; s < r->nstore; s++)
		c->run.here[s] = !may_recompute(c, s)
			|| (r->store[s].def >= whole && !c->constraint[s]);
	for (int32_t k = 0; k < c->nheld; k++)
		c->run.here[c->held[k]] = true;
	for (NodeId i = 1; i < c->turn; i++)
		rerun_first(&c->run, i);
	c->next = c->turn;
}

static void
build_plan(struct checkpoints *c, const struct design *d)
{
	int32_t end = d->parts - d->kept;

	cut_into(c, d->parts);
	begin_plan(c, d);
	run_backward_from(c, end);
	for (int32_t s = 0; s < c->r->nstore; s++)
		if (may_recompute(c, s) && c->r->store[s].def >= c->cut[end])
			c->run.here[s] = false;
	pop_state(c);
	while (end > 0 && c->run.ok) {
		struct kept_state *f = &c->frame[c->nframe - 1];
		int32_t parts = end - f->part;

		if (parts > 1 && f->states > 0) {
			rerun_to_part(c, next_state(c, end, false),
			              f->states - 1);
			continue;
		}
		run_backward_from(c, --end);
		if (parts == 1)
			pop_state(c);
	}
}

/* ---- entry ---- */

static bool
prepare_states(struct checkpoints *c, struct step_list *out)
{
	size_t n = (size_t)c->r->nstore + 1, m = c->r->nnode;

	if (c->turn < 3 || c->turn >= c->r->nnode)
		return false;
	rerun_open(&c->run, c->r, out, c->arena);
	find_positions(c);
	measure_states(c);
	c->cut = arena_array(c->arena, m + 1, sizeof *c->cut);
	c->frame = arena_array(c->arena, m + 1, sizeof *c->frame);
	c->held = arena_array(c->arena, n, sizeof *c->held);
	return c->tape[c->turn] > 0;
}

void
checkpoints_all(const struct remat *r, const uint8_t *constraint, NodeId turn,
                struct step_list *out, int64_t work, void (*offer)(void *),
                void *data)
{
	struct checkpoints c = { .r = r, .constraint = constraint, .turn = turn,
	                         .arena = arena_new() };
	struct design *d = arena_array(c.arena, DESIGNS_MAX, sizeof *d);
	int32_t n = 0;

	if (prepare_states(&c, out))
		n = designs_list(&(struct design_of){
			.forward = (int32_t)turn - 1,
			.nodes = (int32_t)r->nnode,
			.bytes = c.tape[turn], .limit = out->limit,
			.work = (double)work,
			.state = cut_into, .data = &c }, d);
	for (int32_t k = 0; k < n && !watch_off(r->watch); k++) {
		build_plan(&c, &d[k]);
		if (c.run.ok)
			offer(data);
	}
	arena_free(c.arena);
}
