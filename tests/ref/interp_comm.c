/* Reference interpreter: what goes between ranks, and which elements of a
 * whole value a rank holds, both from the words of ir/ir.h and ir/ops.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ref/interp_int.h"

/* ---- a whole value and its pieces ---- */

static int64_t
stretches(const Placement *s)
{
	int64_t n = 0;

	for (int i = 0; i < s->nsegment; i++)
		n += s->segment[i];
	return n;
}

Shape
interp_whole_shape(const Placement *s, const Shape *local)
{
	Shape whole = *local;

	if (s->kind == PLACEMENT_SHARD)
		whole.dim[s->axis] = stretches(s);
	return whole;
}

/* Element `at` of a rank's extent: which of the taken-together dims it is. */
static int64_t
place_of(const Placement *s, int64_t ranks, int64_t rank, int64_t at)
{
	int64_t pieces = ranks / s->replication, start = 0;

	for (int i = 0; i < s->nsegment; i++) {
		int64_t extent = (s->segment[i] + pieces - 1) / pieces;
		int64_t mine = rank / s->replication;

		if (s->mirror && i % 2 == 1)
			mine = pieces - 1 - mine;

		if (at < extent) {
			at += mine * extent;
			return at < s->segment[i] ? start + at : -1;
		}
		at -= extent;
		start += s->segment[i];
	}
	return -1;
}

int64_t
interp_whole(const struct interp *it, const Placement *s, const Shape *local,
             int64_t i)
{
	int64_t inner, n, at;

	if (s->kind != PLACEMENT_SHARD)
		return i;
	inner = interp_extent(local, s->axis + 1, local->rank);
	n = local->dim[s->axis];
	at = place_of(s, it->ranks, it->rank, i / inner % n);
	return at < 0 ? -1 : (i / inner / n * stretches(s) + at) * inner
	                     + i % inner;
}

/* Where element i of one of several that have `run` elements in turn is in all
 * of them. */
static int64_t
spread(int64_t i, int64_t run, int64_t one, int64_t all)
{
	return (i / run * all + one) * run + i % run;
}

uint64_t
interp_draw(const struct call *c, Op op, const Attr *attr, int out, int64_t i)
{
	Attr a = *attr;
	const int64_t *batch = attr_int_of(op, &a, "batch_segments");
	const int64_t *pos = attr_int_of(op, &a, "position_segments");
	const Placement *s = &c->g->val[c->n->out[out]].placement;
	Shape whole = interp_whole_shape(s, &c->out[out].s);
	int64_t n = interp_nelem(&whole), context = c->g->context;
	int64_t replicas = c->it->replicas, replica = c->it->replica;

	i = interp_whole(c->it, s, &c->out[out].s, i);
	if (context && pos && *pos) {
		int64_t part = replica % context;

		if (c->g->zigzag && i / (n / *pos) % 2 == 1)
			part = context - 1 - part;
		i = spread(i, n / *pos, part, context);
		n *= context;
	}
	if (context) {
		replicas /= context;
		replica /= context;
	}
	if (batch && *batch && c->it->world)
		i = spread(i, n / *batch, replica, replicas);
	return (uint64_t)i;
}

int64_t
interp_piece(const struct call *c, ValId v)
{
	const Placement *s = &c->g->val[v].placement;

	return c->it->rank / (s->kind == PLACEMENT_SHARD ? s->replication : 1);
}

bool
interp_join(const struct interp *it, ValId v, const Placement *s, double *whole)
{
	const Val held = interp_held(&it->g->val[v]);
	const Shape *local = &held.shape;
	int64_t n = interp_nelem(local);

	for (int r = 0; r < it->ranks; r++) {
		struct interp *from = it->group[r];
		const double *x = interp_get(from, v);
		bool first = s->kind == PLACEMENT_SHARD ? r % s->replication == 0
		           : r == 0;

		for (int64_t i = 0; i < n; i++) {
			int64_t to = interp_whole(from, s, local, i);

			if (to >= 0 && first)
				whole[to] = x[i];
			else if (to >= 0 && !same_number(whole[to], x[i]))
				return false;
		}
	}
	return true;
}

/* ---- between replicas ---- */

static int
group_of_shards(const struct interp *it, bool experts)
{
	int64_t n = experts ? it->g->expert_group : it->g->zero_group;

	return n > 0 && n < it->replicas ? (int)n : it->replicas;
}

int
interp_shard(const struct interp *it, bool experts)
{
	return it->replica % group_of_shards(it, experts);
}

/* Whether replica r is in this one's group of that number. */
static bool
in_group(const struct interp *it, int64_t group, int r)
{
	int n = group_of_shards(it, group >= GROUP_EXPERTS);

	switch (group) {
	case GROUP_SHARDS: case GROUP_EXPERTS:
		return r / n == it->replica / n;
	case GROUP_COPIES: case GROUP_EXPERT_COPIES:
		return r % n == it->replica % n;
	case GROUP_CONTEXT:
		return r / it->g->context == it->replica / it->g->context;
	default:
		return true;
	}
}

static const double *
of_replica(const struct call *c, int r)
{
	return interp_get(c->it->world[r * c->it->ranks + c->it->rank],
	                  c->n->in[0]);
}

static double
sum_of_replicas(const struct call *c, int64_t group, int64_t i)
{
	double sum = 0;

	for (int r = 0; r < c->it->replicas; r++)
		if (in_group(c->it, group, r))
			sum += of_replica(c, r)[i];
	return sum;
}

bool
interp_gather_rows(struct call *c)
{
	int64_t at = 0;

	for (int r = 0; r < c->it->replicas; r++)
		for (int64_t i = 0; in_group(c->it, c->a->GATHER_ROWS.group, r)
		     && i < c->in[0].n; i++)
			c->out[0].x[at++] = of_replica(c, r)[i];
	return true;
}

bool
interp_sum_rows(struct call *c)
{
	int64_t first = interp_shard(c->it, true) * c->out[0].n;

	for (int64_t i = 0; i < c->out[0].n; i++)
		c->out[0].x[i] = sum_of_replicas(c, c->a->SUM_ROWS.group,
		                                 first + i);
	return true;
}

bool
interp_exchange_rows(struct call *c)
{
	int64_t block = c->in[0].n / group_of_shards(c->it, true), to = 0;
	int64_t from = interp_shard(c->it, true) * block;

	for (int r = 0; r < c->it->replicas; r++)
		for (int64_t i = 0; in_group(c->it, c->a->EXCHANGE_ROWS.group,
		                             r) && i < block; i++)
			c->out[0].x[to++] = of_replica(c, r)[from + i];
	return true;
}

/* ---- between stages ---- */

bool
interp_send(struct call *c)
{
	struct mail *m = c->it->mail ? &c->it->mail[c->a->SEND.tag] : NULL;

	if (!m || m->x)
		return interp_fail(c, "a message is on its way");
	m->n = c->in[0].n;
	m->x = interp_need(malloc((size_t)m->n * sizeof *m->x + 1));
	for (int64_t i = 0; i < m->n; i++)
		m->x[i] = c->in[0].x[i];
	return true;
}

bool
interp_receive(struct call *c)
{
	struct mail *m = c->it->mail ? &c->it->mail[c->a->RECEIVE.tag] : NULL;

	if (!m || !m->x || m->n != c->out[0].n)
		return interp_fail(c, "there is no such message");
	for (int64_t i = 0; i < m->n; i++)
		c->out[0].x[i] = m->x[i];
	free(m->x);
	m->x = NULL;
	return true;
}

/* ---- collectives ---- */

/* A placement of operand 0, as the interpreter has that. */
static Placement
held_cut(const struct call *c, const Placement *s)
{
	Val v = c->g->val[c->n->in[0]];

	v.placement = *s;
	return interp_held(&v).placement;
}

/* As the ops that cut name their attributes. */
static Placement
cut_of(const struct call *c)
{
	const Attr *a = c->a;
	Placement s = { PLACEMENT_SHARD, (int)a->OWN.axis, (int)a->OWN.first_axis,
		a->OWN.segment.n, a->OWN.replication, { 0 }, false };

	for (int i = 0; i < s.nsegment; i++)
		s.segment[i] = a->OWN.segment.v[i];
	s.mirror = a->OWN.mirror != 0;
	return held_cut(c, &s);
}

static Placement
cut_to(const struct call *c)
{
	const Attr *a = c->a;
	Placement s = { PLACEMENT_SHARD, (int)a->ALL_TO_ALL.to_axis,
		(int)a->ALL_TO_ALL.to_first_axis, a->ALL_TO_ALL.to_segment.n,
		a->ALL_TO_ALL.to_replication, { 0 }, false };

	s.mirror = a->ALL_TO_ALL.mirror != 0;
	for (int i = 0; i < s.nsegment; i++)
		s.segment[i] = a->ALL_TO_ALL.to_segment.v[i];
	return held_cut(c, &s);
}

static bool
ranks_missing(struct call *c)
{
	if (node_group(c->n) == GROUP_CONTEXT
	    || c->it->ranks == (c->g->ranks > 0 ? c->g->ranks : 1))
		return false;
	interp_fail(c, "a graph of %lld ranks is run by %d",
	            (long long)c->g->ranks, c->it->ranks);
	return true;
}

static double
of_rank(const struct call *c, int r, int64_t i)
{
	return interp_get(c->it->group[r], c->n->in[0])[i];
}

static double
sum_of_ranks(const struct call *c, int64_t i)
{
	double sum = 0;

	for (int r = 0; r < c->it->ranks; r++)
		sum += of_rank(c, r, i);
	return sum;
}

bool
interp_all_reduce(struct call *c)
{
	double *y = c->out[0].x;
	int64_t group = c->a->ALL_REDUCE.group;

	for (int64_t i = 0; group != GROUP_RANKS && i < c->out[0].n; i++)
		y[i] = sum_of_replicas(c, group, i);
	if (group != GROUP_RANKS)
		return c->a->ALL_REDUCE.reduction == 0
			|| interp_fail(c, "a maximum over replicas");
	if (ranks_missing(c))
		return false;
	for (int64_t i = 0; i < c->out[0].n; i++) {
		if (c->a->ALL_REDUCE.reduction == 0) {
			y[i] = sum_of_ranks(c, i);
			continue;
		}
		y[i] = of_rank(c, 0, i);
		for (int r = 1; r < c->it->ranks; r++)
			y[i] = maximum(y[i], of_rank(c, r, i));
	}
	return true;
}

/* Replicas with the same samples, as ranks of a group.  Returns whether the
 * node is between these; *ok: how it went. */
static bool
run_in_context(struct call *c, InterpFn *run, bool *ok)
{
	struct interp *it = c->it, *one, *group[GROUP_MAX];
	int n = (int)it->g->context, mine;

	if (node_group(c->n) != GROUP_CONTEXT)
		return false;
	mine = it->replica % n;
	one = interp_need(calloc((size_t)n, sizeof *one));
	for (int k = 0; k < n; k++) {
		group[k] = &one[k];
		one[k] = *it->world[(it->replica - mine + k) * it->ranks
		                    + it->rank];
		one[k].group = group;
		one[k].ranks = n;
		one[k].rank = k;
	}
	c->it = &one[mine];
	*ok = run(c);
	c->it = it;
	memcpy(it->error, one[mine].error, sizeof it->error);
	free(one);
	return true;
}

static bool
join_operand(struct call *c, const Placement *s, double *whole)
{
	return interp_join(c->it, c->n->in[0], s, whole)
		|| interp_fail(c, "ranks that share a piece differ in it");
}

static bool
run_all_gather(struct call *c)
{
	Placement s = cut_of(c);

	return !ranks_missing(c) && join_operand(c, &s, c->out[0].x);
}

bool
interp_all_gather(struct call *c)
{
	bool ok;

	return run_in_context(c, run_all_gather, &ok) ? ok : run_all_gather(c);
}

static bool
run_reduce_scatter(struct call *c)
{
	Placement s = cut_of(c);

	if (ranks_missing(c))
		return false;
	for (int64_t i = 0; i < c->out[0].n; i++) {
		int64_t from = interp_whole(c->it, &s, &c->out[0].s, i);

		c->out[0].x[i] = from < 0 ? 0 : sum_of_ranks(c, from);
	}
	return true;
}

bool
interp_reduce_scatter(struct call *c)
{
	bool ok;

	return run_in_context(c, run_reduce_scatter, &ok) ? ok : run_reduce_scatter(c);
}

static void
take_piece(struct call *c, const Placement *s, const double *whole)
{
	for (int64_t i = 0; i < c->out[0].n; i++) {
		int64_t from = interp_whole(c->it, s, &c->out[0].s, i);

		c->out[0].x[i] = from < 0 ? 0 : whole[from];
	}
}

static bool
run_all_to_all(struct call *c)
{
	Placement from = cut_of(c), to = cut_to(c);
	Shape shape = interp_whole_shape(&from, &c->in[0].s);
	double *whole = interp_need(calloc((size_t)interp_nelem(&shape) + 1,
	                                   sizeof *whole));
	bool ok = !ranks_missing(c) && join_operand(c, &from, whole);

	if (ok)
		take_piece(c, &to, whole);
	free(whole);
	return ok;
}

bool
interp_all_to_all(struct call *c)
{
	bool ok;

	return run_in_context(c, run_all_to_all, &ok) ? ok : run_all_to_all(c);
}

static bool
run_own(struct call *c)
{
	Placement s = cut_of(c);

	if (ranks_missing(c))
		return false;
	take_piece(c, &s, c->in[0].x);
	return true;
}

bool
interp_own(struct call *c)
{
	bool ok;

	return run_in_context(c, run_own, &ok) ? ok : run_own(c);
}

static bool
run_own_grad(struct call *c)
{
	Placement s = cut_of(c);

	if (ranks_missing(c))
		return false;
	for (int64_t i = 0; i < c->out[0].n; i++)
		c->out[0].x[i] = 0;
	for (int64_t i = 0; i < c->in[0].n; i++) {
		int64_t to = interp_whole(c->it, &s, &c->in[0].s, i);

		if (to >= 0)
			c->out[0].x[to] = c->in[0].x[i];
	}
	return true;
}

bool
interp_own_grad(struct call *c)
{
	bool ok;

	return run_in_context(c, run_own_grad, &ok) ? ok : run_own_grad(c);
}
