/* The turns of all stages.
 *
 * method  The k-th forward turn of a rank is that of micro-batch
 *         k / PV * P + k % P in chunk k % PV / P, for P ranks of V chunks; its
 *         backward turns take the chunks the other way round.  A rank runs so
 *         many forward turns ahead, then forward and backward in turns, then
 *         the backward turns that are left: with one chunk as many as ranks
 *         follow (1F1B), else 2 (P - rank - 1) + (V - 1) P (Narayanan et al.
 *         2021, section 2.2)
 *         ZB-H1 (Qi et al. 2023): 1F1B, of which backward turns are two.
 *         Behind the backward turn of micro-batch m stands the weight turn of
 *         m - rank, so that all ranks have as many micro-batches in flight as
 *         the first
 *         Backward and weight turns of a stage stand in the order of
 *         micro-batches, so that gradients are added up in the order in which
 *         one rank does it.
 * cost    linear in turns; turns_seconds: times ranks
 */
#include "passes/pipeline/pipeline.h"

#include <math.h>

/* The turns of a rank while they are listed. */
struct rank_turns {
	struct pipeline *l;
	int rank;
	uint32_t n;                     /* turns so far */
};

static struct pipeline_stage *
stage_of(const struct rank_turns *t, int chunk)
{
	return &t->l->stage[chunk * t->l->nrank + t->rank];
}

static void
add_turn(struct rank_turns *t, int chunk, enum turn_kind kind, int micro)
{
	struct pipeline_stage *s = stage_of(t, chunk);

	s->turn[s->nturn++] = (struct turn){ .kind = kind,
		.micro = (uint32_t)micro, .order = t->n++ };
}

/* Forward or backward turn k of the rank. */
static void
add_pass(struct rank_turns *t, enum turn_kind kind, int k)
{
	int p = t->l->nrank, v = t->l->nchunk, chunk = k % (p * v) / p;

	add_turn(t, kind == TURN_FORWARD ? chunk : v - 1 - chunk, kind,
	         k / (p * v) * p + k % p);
}

static int
turns_ahead(const struct rank_turns *t)
{
	const struct pipeline *l = t->l;
	int after = l->nrank - t->rank - 1, all = l->nmicro * l->nchunk;
	int ahead = l->nchunk == 1 ? after
		: 2 * after + (l->nchunk - 1) * l->nrank;

	return ahead < all - 1 ? ahead : all - 1;
}

static void
list_turns(struct rank_turns *t)
{
	int all = t->l->nmicro * t->l->nchunk, ahead = turns_ahead(t);

	for (int k = 0; k < all + ahead; k++) {
		if (k < all)
			add_pass(t, TURN_FORWARD, k);
		if (k >= ahead)
			add_pass(t, TURN_BACKWARD, k - ahead);
		if (t->l->zero_bubble && k >= ahead + t->rank)
			add_pass(t, TURN_WEIGHT, k - ahead - t->rank);
	}
	for (int m = all > t->rank ? all - t->rank : 0;
	     t->l->zero_bubble && m < all; m++)
		add_turn(t, 0, TURN_WEIGHT, m);
	for (int c = 0; c < t->l->nchunk; c++)
		add_turn(t, c, TURN_UPDATE, t->l->nmicro - 1);
}

/* Most micro-batches of the stage between their turns of two kinds. */
static int
most_between(const struct pipeline_stage *s, enum turn_kind from,
             enum turn_kind to)
{
	int under_way = 0, most = 0;

	for (int i = 0; i < s->nturn; i++) {
		under_way += (s->turn[i].kind == from)
			- (s->turn[i].kind == to);
		most = under_way > most ? under_way : most;
	}
	return most;
}

/* As many as are needed, taken one after the other. */
static void
take_slots(struct pipeline_stage *s, bool zero_bubble)
{
	int all;

	s->slots = most_between(s, TURN_FORWARD, TURN_BACKWARD);
	if (zero_bubble) {
		s->through_slots = most_between(s, TURN_FORWARD, TURN_WEIGHT);
		s->weight_slots = most_between(s, TURN_BACKWARD, TURN_WEIGHT);
	}
	all = zero_bubble ? s->through_slots : s->slots;
	for (int i = 0; i < s->nturn; i++)
		s->turn[i].slot = (uint16_t)(s->turn[i].micro % (uint32_t)all);
}

void
turns_schedule(struct pipeline *l, Arena *arena)
{
	for (int k = 0; k < l->nstage; k++) {
		l->stage[k].turn = arena_array(arena, 3 * (size_t)l->nmicro + 1,
		                               sizeof *l->stage[k].turn);
		l->stage[k].nturn = 0;
	}
	for (int r = 0; r < l->nrank; r++)
		list_turns(&(struct rank_turns){ .l = l, .rank = r });
	for (int k = 0; k < l->nstage; k++)
		take_slots(&l->stage[k], l->zero_bubble);
}

/* ---- what follows from turns ---- */

/* The stage that has turn `order` of a rank; at: by stage, its next turn. */
static int
stage_with(const struct pipeline *l, int rank, uint32_t order, const int *at)
{
	for (int k = rank; k < l->nstage; k += l->nrank)
		if (at[k] < l->stage[k].nturn
		    && l->stage[k].turn[at[k]].order == order)
			return k;
	return -1;
}

int
turns_in_flight(const struct pipeline *l, int rank)
{
	Arena *a = arena_new();
	int *at = arena_array(a, (size_t)l->nstage, sizeof *at);
	int under_way = 0, most = 0, k;

	for (uint32_t i = 0; (k = stage_with(l, rank, i, at)) >= 0; i++) {
		enum turn_kind kind = l->stage[k].turn[at[k]++].kind;

		under_way += kind == TURN_FORWARD ? 1
			: kind == (l->zero_bubble ? TURN_WEIGHT
			           : TURN_BACKWARD) ? -1 : 0;
		most = under_way > most ? under_way : most;
	}
	arena_free(a);
	return most;
}

/* The clocks of ranks while turns run. */
struct clocks {
	const struct pipeline *l;
	int *at;                        /* by stage: its next turn */
	uint32_t *order;                /* by rank: the same */
	double *now;                    /* by rank */
	double *over[2];                /* by stage and micro-batch: when its
	                                 * forward and backward turns end */
};

/* When what the turn receives is there; NAN: not yet known. */
static double
time_of_operands(const struct clocks *c, int k, const struct turn *t)
{
	int from = t->kind == TURN_FORWARD ? k - 1 : k + 1;

	if (t->kind > TURN_BACKWARD || from < 0 || from == c->l->nstage)
		return 0;
	return c->over[t->kind][from * c->l->nmicro + (int)t->micro];
}

/* The next turn of a rank, if it can run; whether it did. */
static bool
run_turn(struct clocks *c, int rank, const double *const seconds[TURN_UPDATE])
{
	int k = stage_with(c->l, rank, c->order[rank], c->at);
	const struct turn *t = k < 0 ? NULL : &c->l->stage[k].turn[c->at[k]];
	double from = t ? time_of_operands(c, k, t) : NAN;

	if (isnan(from))
		return false;
	if (t->kind != TURN_UPDATE) {
		c->now[rank] = fmax(c->now[rank], from) + seconds[t->kind][k];
		if (t->kind != TURN_WEIGHT)
			c->over[t->kind][k * c->l->nmicro + (int)t->micro] =
				c->now[rank];
	}
	c->at[k]++;
	c->order[rank]++;
	return true;
}

double
turns_seconds(const struct pipeline *l, const double *forward,
              const double *backward, const double *weight, double *busy)
{
	const double *const seconds[TURN_UPDATE] = { forward, backward,
		                                     weight };
	Arena *a = arena_new();
	size_t n = (size_t)l->nstage * (size_t)l->nmicro;
	struct clocks c = { .l = l,
		.at = arena_array(a, (size_t)l->nstage, sizeof *c.at),
		.order = arena_array(a, (size_t)l->nrank, sizeof *c.order),
		.now = arena_array(a, (size_t)l->nrank, sizeof *c.now),
		.over = { arena_array(a, n, sizeof(double)),
			  arena_array(a, n, sizeof(double)) } };
	double all = 0;

	for (size_t i = 0; i < n; i++)
		c.over[0][i] = c.over[1][i] = NAN;
	for (bool moved = true; moved;) {
		moved = false;
		for (int r = 0; r < l->nrank; r++)
			while (run_turn(&c, r, seconds))
				moved = true;
	}
	for (int r = 0; r < l->nrank; r++) {
		all = fmax(all, c.now[r]);
		if (busy)
			busy[r] = 0;
	}
	for (int k = 0; k < l->nstage && busy; k++)
		busy[k % l->nrank] += l->nmicro * (forward[k] + backward[k]
			+ (l->zero_bubble ? weight[k] : 0));
	arena_free(a);
	return all;
}
