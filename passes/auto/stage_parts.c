/* Stages of a model of n layers, from the plan of one with a few.
 *
 * cut     the forward nodes of few layers are repeated to those of all, and cut
 *         as pass pipeline does
 * part    of the plan, the steps that differentiate or compute nodes between
 *         two places, by the ONNX nodes that they come from; what they read of
 *         others is received, what others read of theirs is sent
 * layers  a stage with more layers than the part grows as a part of three does
 *         over one of two
 * cost    steps for each stage that is not like another one
 */
#include "passes/auto/stages.h"

#include <math.h>
#include <string.h>

#include "passes/cost/cost.h"
#include "passes/cost/lanes.h"

/* Layers of the part of a stage begin with the second; the last but one ends it
 * unless the stage has the model's end. */
enum { FIRST = 1 };

struct parts {
	const struct few_layers *f;
	const Plan *p;
	bool zero_bubble;
	int64_t *start;                 /* by layer, and behind all: number of
	                                 * its first node in the line */
	int64_t period;                 /* nodes of a layer */
	int64_t more;                   /* nodes of layers that are left out */
	double *up, *down;              /* by place: seconds of messages there,
	                                 * of forward and of backward */
	double tied;                    /* bytes of gradients that all stages
	                                 * pass on */
	double tied_sec, norm_sec;      /* seconds of their way back; of the sum
	                                 * of a norm over stages */
	int64_t *at;                    /* by step: place in the line; -1 */
	bool *in;                       /* by step: it is of this part */
	bool *own, *used;               /* by tensor: a step of this part uses
	                                 * it, any step of forward and
	                                 * backward */
	bool *made;                     /* ... a step of this part writes it */
	bool *waits;                    /* by step: messages wait for it */
	int64_t *first, *last;          /* by tensor: numbers of steps */
	Arena *arena;
};

/* Operand k of a step, results behind those that it reads; -1. */
static int64_t
tensor_at(const Plan *p, const struct plan_step *s, int k)
{
	return auto_root(p, k < s->nread ? s->read[k] : s->write[k - s->nread]);
}

/* ---- the line ---- */

static void
find_places(struct parts *x)
{
	const struct few_layers *f = x->f;
	size_t size = (size_t)f->g->norigin + 1;
	int64_t *of = arena_array(x->arena, size, sizeof *of);
	double *most = arena_array(x->arena, size, sizeof *most);

	for (uint32_t i = 0; i < f->g->norigin; i++)
		of[i] = -1;
	/* views of a product's operands and results take no time */
	for (uint32_t i = 0; i < f->line.n; i++) {
		const Node *n = &f->differentiated->node[f->line.node[i]];
		double sec = f->line.sec[i];

		for (int k = 0; k < n->norigin; k++)
			if (of[n->origin[k]] < 0 || sec > most[n->origin[k]]) {
				of[n->origin[k]] = i;
				most[n->origin[k]] = sec;
			}
	}
	x->at = arena_array(x->arena, (size_t)x->p->nstep + 1, sizeof *x->at);
	for (int64_t i = 0; i < x->p->nstep; i++) {
		const Node *n = &f->g->node[x->p->step[i].gnode];

		x->at[i] = -1;
		for (int k = 0; k < n->norigin; k++)
			if (of[n->origin[k]] > x->at[i])
				x->at[i] = of[n->origin[k]];
	}
}

static int32_t
layer_of_node(const struct few_layers *f, uint32_t i)
{
	const Node *n = &f->differentiated->node[f->line.node[i]];
	int32_t layer = -1;

	for (int k = 0; k < n->norigin; k++)
		if (f->layer[n->origin[k]] > layer)
			layer = f->layer[n->origin[k]];
	return layer;
}

/* False: layers do not have equally many nodes. */
static bool
find_layers(struct parts *x)
{
	const struct few_layers *f = x->f;
	int32_t next = 0;

	x->start = arena_array(x->arena, (size_t)f->few + 1, sizeof *x->start);
	for (uint32_t i = 0; i < f->line.n; i++) {
		int32_t layer = layer_of_node(f, i);

		while (next <= layer)
			x->start[next++] = i;
		if (layer == f->few - 1)
			x->start[f->few] = i + 1;
	}
	if (next != f->few)
		return false;
	x->period = x->start[FIRST + 1] - x->start[FIRST];
	x->more = x->period * (f->layers - f->few);
	for (int32_t k = FIRST + 1; k < f->few; k++)
		if (x->start[k + 1] - x->start[k] != x->period)
			return false;
	return true;
}

/* The line of all layers: the third is repeated. */
static void
repeat_layers(const struct parts *x, struct forward_line *to)
{
	const struct forward_line *l = &x->f->line;
	int64_t from = x->start[FIRST + 2];
	size_t n = l->n + (size_t)x->more;
	double *sec = arena_array(x->arena, n + 1, sizeof *sec);
	double *crosses = arena_array(x->arena, n + 2, sizeof *crosses);
	bool *parts = arena_array(x->arena, n + 1, sizeof *parts);

	for (size_t i = 0; i <= n; i++) {
		int64_t k = (int64_t)i;

		if (k >= from)
			k = k - from < x->more
				? from - x->period + (k - from) % x->period
				: k - x->more;
		crosses[i] = l->crosses[k];
		parts[i] = l->parts[k];
		sec[i] = i < n ? l->sec[k] : 0;
	}
	*to = (struct forward_line){ .n = (uint32_t)n, .sec = sec,
		.crosses = crosses, .parts = parts };
}

/* Places a and b of the line of all layers: those of the part for it; returns
 * the layers that it lacks. */
static int64_t
find_part(const struct parts *x, int64_t *a, int64_t *b)
{
	const int64_t few = x->f->few, begin = x->start[FIRST];
	const int64_t end = x->start[few - 1], second = begin + x->period;
	int64_t lacks = 0;

	if (*b > end + x->more) {
		/* it has the model's end, or some of the last layer */
		*b -= x->more;
		*a -= x->more;
		if (*a < begin)
			lacks = (begin - *a + x->period - 1) / x->period;
		*a += lacks * x->period;
		return lacks;
	}
	if (*a >= second) {
		int64_t moved = (*a - begin) / x->period * x->period;

		*a -= moved;
		*b -= moved;
	}
	if (*b > end)
		lacks = (*b - end + x->period - 1) / x->period;
	*b -= lacks * x->period;
	return lacks;
}

/* ---- messages ---- */

static double
message_seconds(const struct parts *x, int stages, double bytes)
{
	const Graph *g = x->f->differentiated;
	struct ring ring = group_ring(g, GROUP_RANKS);

	ring.stride = ring.ranks * (g->replicas > 0 ? g->replicas : 1);
	ring.ranks = stages;
	return device_ring_seconds(device_of(g), ring, bytes);
}

/* A value goes from stage to stage to the last reader. */
static void
add_crossing(struct parts *x, int stages, const Val *v, int64_t from,
             int64_t to)
{
	const int64_t whole = x->start[x->f->few] - x->start[0];
	double bytes = (double)val_data_bytes(v);
	double sec = message_seconds(x, stages, bytes);

	for (int64_t i = from + 1; i <= to; i++)
		x->up[i] += sec;
	for (int64_t i = to + 1; i <= from; i++)
		x->down[i] += sec;
	if (from - to < whole)
		return;
	x->tied += bytes;
	x->tied_sec += sec;
}

static void
find_messages(struct parts *x, int stages)
{
	const Graph *g = x->f->differentiated;
	const struct forward_line *l = &x->f->line;
	size_t n = (size_t)l->n + 2;
	int64_t *of = arena_array(x->arena, (size_t)g->nnode + 1, sizeof *of);
	int64_t *reader = arena_array(x->arena, g->nval, sizeof *reader);

	x->up = arena_array(x->arena, n, sizeof *x->up);
	x->down = arena_array(x->arena, n, sizeof *x->down);
	for (uint32_t i = 0; i < l->n; i++)
		of[g->node[l->node[i]].place] = i + 1;
	FOR_VALS (v, g)
		reader[val_id(g, v)] = -1;
	FOR_NODES (m, g)
		for (int k = 0; of[m->place] > 0 && k < m->nin; k++) {
			const Val *v = &g->val[m->in[k]];
			int64_t at = of[m->place] - 1;
			int64_t *to = &reader[m->in[k]];
			bool back = g->node[v->def].phase != PH_FORWARD;

			if (v->def && (*to < 0 || (back ? at < *to : at > *to)))
				*to = at;
		}
	FOR_VALS (v, g) {
		int64_t from = v->def ? of[g->node[v->def].place] - 1 : -1;
		int64_t to = reader[val_id(g, v)];

		if (from >= 0 && to >= 0
		    && (g->node[v->def].phase == PH_FORWARD ? to > from
		        : to < from))
			add_crossing(x, stages, v, from, to);
	}
	x->norm_sec = message_seconds(x, stages, sizeof(float));
}

/* ---- a part ---- */

static bool
is_update(const Plan *p, int64_t i)
{
	return p->step[i].phase == PH_UPDATE;
}

/* Whether the step uses a tensor of the set that does not stay. */
static bool
uses(const Plan *p, int64_t i, const bool *set, bool writes)
{
	const struct plan_step *s = &p->step[i];
	int begin = writes ? s->nread : 0;
	int end = writes ? s->nread + s->nwrite : s->nread;

	for (int k = begin; k < end; k++) {
		int64_t t = tensor_at(p, s, k);

		if (t >= 0 && !p->tensor[t].resident && set[t])
			return true;
	}
	return false;
}

static void
take_step(struct parts *x, int64_t i)
{
	const struct plan_step *s = &x->p->step[i];

	x->in[i] = true;
	for (int k = 0; k < s->nread + s->nwrite; k++) {
		int64_t t = tensor_at(x->p, s, k);

		if (t < 0)
			continue;
		x->own[t] = true;
		x->made[t] |= k >= s->nread;
	}
}

/* Steps of forward and backward between places a and b; those without a place
 * that read of them, or that they read. */
static void
take_steps(struct parts *x, int64_t a, int64_t b)
{
	const Plan *p = x->p;

	memset(x->in, 0, (size_t)p->nstep * sizeof *x->in);
	memset(x->own, 0, (size_t)p->ntensor * sizeof *x->own);
	memset(x->made, 0, (size_t)p->ntensor * sizeof *x->made);
	for (int64_t i = 0; i < p->nstep; i++)
		if (!is_update(p, i)
		    && ((x->at[i] >= a && x->at[i] < b)
		        || (x->at[i] < 0 && uses(p, i, x->made, false))))
			take_step(x, i);
	for (int64_t i = p->nstep; i-- > 0; )
		if (!is_update(p, i) && !x->in[i] && x->at[i] < 0
		    && uses(p, i, x->own, true))
			take_step(x, i);
}

/* Marks what messages to the stage in front wait for. */
static void
mark_waits(struct parts *x, int64_t a)
{
	const Plan *p = x->p;
	bool *needed = arena_array(x->arena, (size_t)p->ntensor + 1,
	                           sizeof *needed);

	for (int64_t i = p->nstep; i-- > 0; ) {
		const struct plan_step *s = &p->step[i];

		x->waits[i] = false;
		if (s->phase != PH_BACKWARD)
			continue;
		if (x->in[i])
			x->waits[i] = uses(p, i, needed, true);
		if (x->waits[i] || (x->at[i] >= 0 && x->at[i] < a))
			for (int k = 0; k < s->nread; k++) {
				int64_t t = tensor_at(p, s, k);

				needed[t < 0 ? p->ntensor : t] = t >= 0;
			}
	}
}

/* The kind of turn that has the step. */
static enum turn_kind
turn_of_step(const struct parts *x, int64_t i)
{
	const struct plan_step *s = &x->p->step[i];

	return s->phase == PH_UPDATE ? TURN_UPDATE
		: s->phase == PH_FORWARD ? TURN_FORWARD
		: x->zero_bubble && !x->waits[i] ? TURN_WEIGHT : TURN_BACKWARD;
}

static void
extend_life(struct parts *x, int64_t t, int64_t at, int64_t begin)
{
	if (t < 0 || x->p->tensor[t].resident || x->p->tensor[t].host
	    || !x->own[t])
		return;
	if (x->first[t] < 0)
		x->first[t] = x->made[t] ? at : begin;
	x->last[t] = at;
}

/* Whether the part has the step among turns of the kind.  Updates may begin
 * during backward, but not before turns of weights. */
static bool
is_in_turn(const struct parts *x, int64_t i, const double *share, int kind)
{
	enum turn_kind of = turn_of_step(x, i);

	if (of == TURN_UPDATE && !x->zero_bubble)
		of = TURN_BACKWARD;
	return share[i] > 0 && (int)of == kind;
}

/* What lives from forward to backward, from forward to weight turns, from
 * backward to weight turns; the rest. */
enum pool { POOL_SAVED, POOL_THROUGH, POOL_KEPT, POOL_NONE, POOLS };

static enum pool
pool_of_life(const int64_t *begin, int64_t first, int64_t last)
{
	bool forward = first < begin[TURN_BACKWARD];
	bool weight = last >= begin[TURN_WEIGHT];

	return forward && weight ? POOL_THROUGH
		: forward && last >= begin[TURN_BACKWARD] ? POOL_SAVED
		: weight && first < begin[TURN_WEIGHT] ? POOL_KEPT : POOL_NONE;
}

static void
add_life(double *change, int64_t first, int64_t last, double bytes)
{
	change[first] += bytes;
	change[last + 1] -= bytes;
}

/* From step `from` on, of pools as often as said, and the rest. */
static double
most_alive(double *const change[POOLS], int64_t from, int64_t n, double saved,
           double through, double kept)
{
	double live = 0, most = 0;

	for (int64_t i = 0; i < n; i++) {
		live += change[POOL_NONE][i] + saved * change[POOL_SAVED][i]
			+ through * change[POOL_THROUGH][i]
			+ kept * change[POOL_KEPT][i];
		most = i < from ? most : fmax(most, live);
	}
	return most;
}

/* Bytes alive by number of steps of this part. */
static void
measure_live(struct parts *x, int64_t b, const double *share,
             struct stage_part *to)
{
	const Plan *p = x->p;
	double *change[POOLS], held[POOLS] = { 0 };
	int64_t begin[TURN_KINDS], n = 0;

	for (int k = 0; k < POOLS; k++)
		change[k] = arena_array(x->arena, (size_t)p->nstep + 2,
		                        sizeof *change[k]);
	for (int64_t t = 0; t < p->ntensor; t++)
		x->first[t] = x->last[t] = -1;
	for (int kind = 0; kind < TURN_KINDS; kind++) {
		begin[kind] = n;
		for (int64_t i = 0; i < p->nstep; i++) {
			const struct plan_step *s = &p->step[i];

			if (!is_in_turn(x, i, share, kind))
				continue;
			for (int k = 0; k < s->nread + s->nwrite; k++)
				extend_life(x, tensor_at(p, s, k), n,
				         begin[kind]);
			n++;
		}
	}
	/* a gradient that comes first in backward is sent on or added */
	if (b < (int64_t)x->f->line.n)
		add_life(change[POOL_NONE], begin[TURN_BACKWARD],
		         begin[TURN_BACKWARD], x->tied);
	for (int64_t t = 0; t < p->ntensor; t++) {
		double bytes = (double)p->tensor[t].bytes;
		enum pool pool = pool_of_life(begin, x->first[t], x->last[t]);

		if (x->first[t] < 0)
			continue;
		add_life(change[pool], x->first[t], x->last[t], bytes);
		held[pool] += bytes;
	}
	to->saved = held[POOL_SAVED];
	to->through = held[POOL_THROUGH];
	to->kept = held[POOL_KEPT];
	to->live = most_alive(change, 0, n, 1, 1, 1);
	for (int i = 0; i < 4; i++)
		to->rest[i / 2][i % 2] = most_alive(change,
			begin[TURN_BACKWARD], begin[TURN_WEIGHT], !(i / 2), 0,
			!(i % 2));
}

/* Whose a tensor is that an update uses. */
enum owner { NOBODY, OWN, OTHER, ALL };

/* The update's steps: a step is of this part if it uses what the part does, or
 * what such steps make.  What also uses tensors of other parts, as the norm of
 * all gradients, is shared in proportion to bytes, and its results are for all
 * parts.  share: by step. */
static void
take_updates(struct parts *x, double *share)
{
	const Plan *p = x->p;
	uint8_t *of = arena_array(x->arena, (size_t)p->ntensor + 1, sizeof *of);

	for (int64_t t = 0; t < p->ntensor; t++)
		of[t] = x->own[t] ? OWN : x->used[t] ? OTHER : NOBODY;
	for (int64_t i = 0; i < p->nstep; i++) {
		const struct plan_step *s = &p->step[i];
		double bytes[ALL + 1] = { 0 };
		enum owner who;

		share[i] = x->in[i];
		if (!is_update(p, i))
			continue;
		for (int k = 0; k < s->nread + s->nwrite; k++) {
			int64_t t = tensor_at(p, s, k);

			if (t >= 0)
				bytes[of[t]] += (double)p->tensor[t].bytes;
		}
		who = bytes[OWN] > 0 ? bytes[OTHER] > 0 ? ALL : OWN
			: bytes[OTHER] > 0 ? OTHER
			: bytes[ALL] > 0 ? ALL : OTHER;
		share[i] = who == OTHER ? 0 : bytes[OWN] <= 0 ? 1
			: bytes[OWN] / (bytes[OWN] + bytes[OTHER]);
		for (int k = 0; k < s->nread + s->nwrite; k++) {
			int64_t t = tensor_at(p, s, k);

			if (t < 0 || of[t] != NOBODY)
				continue;
			of[t] = (uint8_t)who;
			x->own[t] |= who == OWN;
			x->made[t] |= who == OWN && k >= s->nread;
		}
	}
}

/* Messages that other transfers and computation wait for. */
static void
add_messages(double sec, struct lane_step *step, int64_t *n,
             struct stage_part *to)
{
	step[*n] = (struct lane_step){ sec, LANE_LINK, *n };
	++*n;
	to->all += sec;
	to->sent_sec += sec;
}

static void
count_step(const struct parts *x, int64_t i, double share,
           struct stage_part *to)
{
	const struct plan_step *s = &x->p->step[i];
	enum turn_kind kind = turn_of_step(x, i);
	double sec = share * s->seconds;

	if (lane_is_link(s->lane)) {
		to->sent_sec += share * s->lane_sec;
		to->sent += share * s->sent;
	} else {
		*(kind == TURN_UPDATE ? &to->update_compute : &to->compute) +=
			sec;
	}
	if (kind == TURN_UPDATE)
		return;
	to->all += sec;
	to->forward += kind == TURN_FORWARD ? sec : 0;
	to->weight += kind == TURN_WEIGHT ? sec : 0;
}

static void
measure_seconds(struct parts *x, int64_t a, int64_t b, const double *share,
                struct stage_part *to)
{
	const Plan *p = x->p;
	size_t size = (size_t)p->nstep + 3;
	struct lane_step *step = arena_array(x->arena, size, sizeof *step);
	int64_t *number = arena_array(x->arena, size, sizeof *number);
	int64_t n = 0, m;
	bool forward = true, norm = false;

	for (int64_t i = 0; i < p->nstep; i++) {
		if (share[i] > 0 && p->step[i].phase != PH_FORWARD && forward) {
			add_messages(x->up[b], step, &n, to);
			to->forward += x->up[b];
			forward = false;
		}
		if (is_update(p, i))
			continue;
		number[i] = n;
		if (share[i] > 0)
			step[n++] = (struct lane_step){ p->step[i].lane_sec,
				p->step[i].lane, i };
		if (share[i] > 0)
			count_step(x, i, 1, to);
	}
	add_messages(x->down[a], step, &n, to);
	m = n;
	for (int64_t i = 0; i < p->nstep; i++) {
		if (!is_update(p, i))
			continue;
		number[i] = n;
		if (share[i] <= 0)
			continue;
		step[n++] = (struct lane_step){ share[i] * p->step[i].lane_sec,
			p->step[i].lane, i };
		count_step(x, i, share[i], to);
	}
	for (int64_t i = 0; i < p->nstep; i++) {
		int64_t end = number[plan_end(p, i)];

		if (share[i] > 0)
			step[number[i]].end = end < n ? end : n - 1;
	}
	to->update = lanes_seconds(step, n, x->arena);
	for (int64_t i = m; i < n; i++)
		step[i].sec = 0;
	to->turn = lanes_seconds(step, n, x->arena);
	to->update += (a == 0 ? x->tied_sec : 0) - to->turn;
	for (int64_t i = 0; i < p->nstep; i++)
		norm |= share[i] > 0 && share[i] < 1;
	to->update += norm ? x->norm_sec : 0;
}

/* Between places a and b of the line of few layers. */
static void
measure_part(struct parts *x, int64_t a, int64_t b, struct stage_part *to)
{
	const Plan *p = x->p;
	double *share = arena_array(x->arena, (size_t)p->nstep + 1,
	                            sizeof *share);

	*to = (struct stage_part){ .layers = (double)(b - a)
		/ (double)x->period };
	take_steps(x, a, b);
	if (x->zero_bubble)
		mark_waits(x, a);
	take_updates(x, share);
	measure_live(x, b, share, to);
	measure_seconds(x, a, b, share, to);
	for (int64_t t = 0; t < p->ntensor; t++)
		if (x->own[t] && p->tensor[t].resident && !p->tensor[t].host)
			to->resident += (double)p->tensor[t].bytes;
}

static void
add_layers(struct stage_part *to, const struct stage_part *more,
           const struct stage_part *less, double n)
{
#define ADD(member) to->member += n * (more->member - less->member)
	ADD(turn);
	ADD(forward);
	ADD(weight);
	ADD(all);
	ADD(compute);
	ADD(update);
	ADD(update_compute);
	ADD(sent_sec);
	ADD(sent);
	ADD(resident);
	ADD(live);
	ADD(saved);
	ADD(through);
	ADD(kept);
	ADD(rest[0][0]);
	ADD(rest[0][1]);
	ADD(rest[1][0]);
	ADD(rest[1][1]);
	ADD(layers);
#undef ADD
}

static void
find_used(struct parts *x)
{
	const Plan *p = x->p;

	for (int64_t i = 0; i < p->nstep; i++)
		for (int k = 0; !is_update(p, i)
		     && k < p->step[i].nread + p->step[i].nwrite; k++) {
			int64_t t = tensor_at(p, &p->step[i], k);

			if (t >= 0)
				x->used[t] = true;
		}
}

bool
stages_of_layers(const struct few_layers *f, int n, bool zero_bubble,
                 struct stage_part *to, Arena *arena)
{
	const size_t tensors = (size_t)f->plan->ntensor + 1;
	const size_t steps = (size_t)f->plan->nstep + 1;
	struct parts x = { .f = f, .p = f->plan, .zero_bubble = zero_bubble,
		.in = arena_array(arena, steps, sizeof(bool)),
		.waits = arena_array(arena, steps, sizeof(bool)),
		.own = arena_array(arena, tensors, sizeof(bool)),
		.used = arena_array(arena, tensors, sizeof(bool)),
		.made = arena_array(arena, tensors, sizeof(bool)),
		.first = arena_array(arena, tensors, sizeof(int64_t)),
		.last = arena_array(arena, tensors, sizeof(int64_t)),
		.arena = arena };
	uint32_t *at = arena_array(arena, (size_t)n + 1, sizeof *at);
	int64_t *part = arena_array(arena, 2 * (size_t)n + 2, sizeof *part);
	struct stage_part *found = arena_array(arena, (size_t)n, sizeof *found);
	struct stage_part more, less;
	struct forward_line line;

	find_places(&x);
	find_used(&x);
	if (!find_layers(&x))
		return false;
	find_messages(&x, n);
	repeat_layers(&x, &line);
	if (!forward_line_cut(&line, f->differentiated, n, at, arena))
		return false;
	measure_part(&x, x.start[FIRST], x.start[FIRST + 3], &more);
	measure_part(&x, x.start[FIRST], x.start[FIRST + 2], &less);
	for (int k = 0; k < n; k++) {
		int64_t *a = &part[2 * k], *b = a + 1, lacks;
		int like = 0;

		*a = at[k];
		*b = at[k + 1];
		lacks = find_part(&x, a, b);
		while (part[2 * like] != *a || part[2 * like + 1] != *b)
			like++;
		if (like == k)
			measure_part(&x, *a, *b, &found[k]);
		to[k] = found[k] = found[like];
		add_layers(&to[k], &more, &less, (double)lacks);
	}
	return true;
}
