/* What moves between ranks in processes of their own: of each group one
 * transfer after the other, in the order in which they begin, which is the same
 * in all processes.  Groups do not wait for each other.
 *
 * Between steps somebody looks at what has arrived; how much that is while a
 * step computes depends on the MPI.
 */
#include "runtime/model/fetch.h"
#include "runtime/model/transfers.h"

#include <stdlib.h>

struct lane {
	struct transfer *first, *last;  /* that have begun; NULL: none */
	struct between m;               /* of the first one, once it moves */
	bool moves;
	char *room;                     /* 2 * TEAM_ROOM; NULL: the team's */
};

struct lanes {
	struct lane of[LINK_GROUPS];
};

static enum link_group
group_of(const struct transfer *t)
{
	return t->b->p->step[t->step].comm->axis == CKR_DP ? LINK_DP : LINK_TP;
}

static bool
has_two(const ckr_ctx *c)
{
	return c->world.tp > 1 && c->world.dp > 1;
}

uint64_t
transfers_bytes(const ckr_ctx *c)
{
	return c->team && has_two(c) ? 2 * TEAM_ROOM : 0;
}

static ckr_status
open_apart(ckr_ctx *c)
{
	struct lanes *l = c->transfers->lanes = calloc(1, sizeof(*l));

	if (!l)
		return rt_no_memory(c);
	if (!has_two(c))
		return CKR_OK;
	l->of[LINK_DP].room = calloc(2, TEAM_ROOM);
	return l->of[LINK_DP].room ? CKR_OK : rt_no_memory(c);
}

static void
close_apart(ckr_ctx *c)
{
	if (c->transfers->lanes)
		free(c->transfers->lanes->of[LINK_DP].room);
	free(c->transfers->lanes);
}

/* The first one of a lane begins to move. */
static void
set_off(ckr_ctx *c, struct lane *l)
{
	const struct transfer *t = l->first;

	fetch_comm(c, t->b, &t->b->p->step[t->step], &l->m);
	l->m.out = l->room ? l->room : c->team->out;
	l->m.in = l->room ? l->room + TEAM_ROOM : c->team->in;
	between_begin(&l->m);
	l->moves = true;
}

static ckr_status
move_on(ckr_ctx *c, struct lane *l)
{
	while (l->first) {
		bool done;

		if (!l->moves)
			set_off(c, l);
		CKR_TRY(between_look(&l->m, &done, &c->err));
		if (!done)
			return CKR_OK;
		l->first->done = true;
		l->first = l->first->next;
		l->moves = false;
	}
	return CKR_OK;
}

static ckr_status
test(ckr_ctx *c)
{
	for (int g = 0; g < LINK_GROUPS; g++)
		CKR_TRY(move_on(c, &c->transfers->lanes->of[g]));
	return CKR_OK;
}

static ckr_status
begin(ckr_ctx *c, struct transfer *t)
{
	struct lane *l = &c->transfers->lanes->of[group_of(t)];

	if (l->first)
		l->last->next = t;
	else
		l->first = t;
	l->last = t;
	return move_on(c, l);
}

struct waiter {
	ckr_ctx *c;
	const struct transfer *t;
};

/* Named is what is under way, which may be one that began before. */
static ckr_status
look(void *user, bool *done, const struct team_task **at, uint64_t *moved,
     struct err *e)
{
	const struct waiter *w = user;
	struct lane *of = w->c->transfers->lanes->of;

	(void)e;                        /* the context's */
	*moved = 0;
	CKR_TRY(test(w->c));
	for (int g = 0; g < LINK_GROUPS; g++)
		*moved += of[g].m.moved;
	*at = &of[group_of(w->t)].m.task;
	*done = w->t->done;
	return CKR_OK;
}

static ckr_status
wait_apart(ckr_ctx *c, struct transfer *t)
{
	struct waiter w = { c, t };

	return team_await(c->team, &(struct team_look){ look, &w }, &c->err);
}

/* Without its group there is no run. */
static void
drop(ckr_ctx *c, struct transfer *t)
{
	c->transfers->lanes->of[group_of(t)] = (struct lane){
		.room = c->transfers->lanes->of[group_of(t)].room };
}

const struct carrier carry_apart = { open_apart, close_apart, begin, test,
	wait_apart, drop };
