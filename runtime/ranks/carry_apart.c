/* What moves between ranks in processes of their own: of each group one
 * transfer after the other, in the order in which they begin, which is the same
 * in all processes.  Groups do not wait for each other.
 *
 * Between steps somebody looks at what has arrived; how much that is while a
 * step computes depends on the MPI.
 */
#include "runtime/ranks/transfers.h"

#include <stdlib.h>

struct lane {
	struct transfer *first, *last;  /* that have begun; NULL: none */
	struct between m;               /* of the first one, once it moves */
	bool moves;
	char *room;                     /* 2 * TEAM_ROOM; NULL: the team's */
	void *counts;                   /* of between_room bytes */
};

static struct lane *
lane_of(const struct transfers *t, const struct transfer *x)
{
	return &t->lane[x->what->axis == CKR_DP ? LINK_DP : LINK_TP];
}

static uint32_t
group_size(const struct transfers *t, const struct transfer *x)
{
	return x->what->axis == CKR_DP ? t->crew.dp : t->crew.tp;
}

static bool
has_two(const struct crew *crew)
{
	return crew->tp > 1 && crew->dp > 1;
}

static uint64_t
bytes(const struct transfers *t)
{
	return has_two(&t->crew) ? 2 * PG_BUFFER : 0;
}

static ckr_status
open_apart(struct transfers *t, struct err *e)
{
	const struct crew *c = &t->crew;
	uint32_t most = c->tp > c->dp ? c->tp : c->dp;
	bool ok;

	t->lane = calloc(LINK_GROUPS, sizeof(*t->lane));
	ok = t->lane;
	for (int g = 0; ok && g < LINK_GROUPS; g++) {
		t->lane[g].counts = malloc(between_room(most));
		ok = t->lane[g].counts;
	}
	if (ok && has_two(&t->crew)) {
		t->lane[LINK_DP].room = calloc(2, PG_BUFFER);
		ok = t->lane[LINK_DP].room;
	}
	return ok ? CKR_OK : err_set(e, CKR_ENOMEM, "out of memory");
}

static void
close_apart(struct transfers *t)
{
	for (int g = 0; t->lane && g < LINK_GROUPS; g++) {
		free(t->lane[g].room);
		free(t->lane[g].counts);
	}
	free(t->lane);
}

/* The first one of a lane begins to move. */
static void
set_off(const struct transfers *t, struct lane *l)
{
	const struct transfer *x = l->first;
	const struct crew *crew = &t->crew;
	bool dp = x->what->axis == CKR_DP;
	uint64_t moved = l->m.moved;

	l->m = (struct between){ .team = crew->team,
		.group = dp ? LINK_DP : LINK_TP,
		.rank = dp ? crew->replica : crew->rank,
		.ranks = group_size(t, x),
		.what = x->what, .tx = x->tx, .ty = x->ty,
		.x = crew->operand(crew->user, x, 0, 0),
		.y = crew->operand(crew->user, x, 0, 1),
		.threads = crew->threads, .task = x->task, .moved = moved,
		.room = l->counts };
	l->m.out = l->room ? l->room : crew->team->out;
	l->m.in = l->room ? l->room + PG_BUFFER : crew->team->in;
	between_begin(&l->m);
	l->moves = true;
}

static ckr_status
move_on(const struct transfers *t, struct lane *l, struct err *e)
{
	while (l->first) {
		bool done;

		if (!l->moves)
			set_off(t, l);
		CKR_TRY(between_look(&l->m, &done, e));
		if (!done)
			return CKR_OK;
		l->first->done = true;
		l->first = l->first->next;
		l->moves = false;
	}
	return CKR_OK;
}

static ckr_status
test(struct transfers *t, struct err *e)
{
	for (int g = 0; g < LINK_GROUPS; g++)
		CKR_TRY(move_on(t, &t->lane[g], e));
	return CKR_OK;
}

/* In a group of one, which no memory is there for beside the other's. */
static void
keep(const struct crew *crew, struct transfer *x)
{
	void *from = crew->operand(crew->user, x, 0, 0);
	void *to = crew->operand(crew->user, x, 0, 1);

	comm_run(&(struct comm){ x->what, x->tx, x->ty, &from, &to, 1,
	                         crew->threads });
	x->done = true;
}

static ckr_status
begin(struct transfers *t, struct transfer *x, struct err *e)
{
	struct lane *l = lane_of(t, x);

	if (group_size(t, x) == 1) {
		keep(&t->crew, x);
		return CKR_OK;
	}
	if (l->first)
		l->last->next = x;
	else
		l->first = x;
	l->last = x;
	return move_on(t, l, e);
}

struct waiter {
	struct transfers *t;
	const struct transfer *x;
};

/* Named is what is under way, which may be one that began before. */
static ckr_status
look(void *user, bool *done, const struct pg_task **at, uint64_t *moved,
     struct err *e)
{
	const struct waiter *w = user;

	*moved = 0;
	CKR_TRY(test(w->t, e));
	for (int g = 0; g < LINK_GROUPS; g++)
		*moved += w->t->lane[g].m.moved;
	*at = &lane_of(w->t, w->x)->m.task;
	*done = w->x->done;
	return CKR_OK;
}

static ckr_status
wait_apart(struct transfers *t, struct transfer *x, struct err *e)
{
	struct waiter w = { t, x };

	return pg_wait(t->crew.team, &(struct pg_poll){ look, &w }, e);
}

/* Without it there is no run: none is begun any more. */
static void
drop(struct transfers *t, struct transfer *x)
{
	struct lane *l = lane_of(t, x);

	l->first = l->last = NULL;
	l->moves = false;
}

const struct carrier carry_apart = { open_apart, close_apart, begin, test,
	wait_apart, drop, bytes };
