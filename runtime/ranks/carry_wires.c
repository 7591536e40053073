/* What moves between ranks on GPUs of their own: the host gives the GPU a
 * transfer where a step begins it, and where it ends has kernels wait for it.
 * It waits itself only for what kernels have made, and looks at the others
 * meanwhile: whose transfer has been come to here and does not end is late.
 *
 * Sums are the library's: of two ranks they have the bits of comm.c's, of more
 * the order is another, and 16-bit floats may be rounded on the way.  Ranks
 * that have a sum have the same bits of it.
 */
#include "runtime/ranks/route.h"
#include "runtime/ranks/transfers.h"

#include <stdlib.h>
#include <time.h>

#include "runtime/base/dtype.h"

/* What a step moves. */
struct hop {
	const struct ckr_comm *what;
	struct route route;
};

struct wired {
	struct hop *hop;
	uint32_t nhop, next;            /* next: where the last one was found,
	                                 * and one on */
	uint32_t depth;
	struct pg_task *task[WIRE_LANES];       /* [depth], by number */
	uint64_t given[WIRE_LANES];
	uint64_t scratch[WIRE_LANES];
};

/* ---- opening ---- */

static uint32_t
lane_of(const struct ckr_comm *w)
{
	return w->axis == CKR_DP ? CKR_DP : CKR_TP;
}

static uint32_t
count(const struct ckr_program *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nstep; i++)
		n += p->step[i].comm != NULL;
	return n;
}

static bool
find_hops(struct transfers *t, const struct ckr_program *p)
{
	const struct crew *crew = &t->crew;
	struct wired *w = t->wired;

	for (uint32_t i = 0; i < p->nstep; i++) {
		const struct ckr_comm *what = p->step[i].comm;
		const int32_t *arg = p->arg + p->step[i].arg0;
		bool dp = what && lane_of(what) == CKR_DP;
		struct hop *h = &w->hop[w->nhop];

		if (!what)
			continue;
		h->what = what;
		w->nhop++;
		if (!route_find(&h->route, what, dp ? crew->dp : crew->tp,
		                dp ? crew->replica : crew->rank,
		                &p->tensor[arg[0]], &p->tensor[arg[1]]))
			return false;
		if (h->route.scratch > w->scratch[lane_of(what)])
			w->scratch[lane_of(what)] = h->route.scratch;
	}
	return true;
}

static bool
make(struct transfers *t)
{
	const struct ckr_program *p = t->crew.program;
	struct wired *w = t->wired = calloc(1, sizeof(*w));
	bool ok = true;
	size_t hops = 0;

	if (!w)
		return false;
	for (int i = 0; i < CKR_PROGRAMS; i++)
		hops += count(&p[i]);
	w->hop = calloc(hops + 1, sizeof(*w->hop));
	w->depth = 2 * t->most + 64;
	for (int i = 0; i < WIRE_LANES; i++) {
		w->task[i] = calloc(w->depth, sizeof(*w->task[i]));
		if (!w->task[i])
			return false;
	}
	for (int i = 0; i < CKR_PROGRAMS; i++)
		ok = ok && w->hop && find_hops(t, &p[i]);
	return ok;
}

static ckr_status quiet(void *, struct err *);

static ckr_status
open_wires(struct transfers *t, struct err *e)
{
	if (!make(t))
		return err_set(e, CKR_ENOMEM, "out of memory");
	for (int i = 0; i < WIRE_LANES; i++)
		CKR_TRY(wires_take(t->crew.wires, i, t->wired->depth,
		                   t->wired->scratch[i], e));
	wires_watch(t->crew.wires, quiet, t);
	return CKR_OK;
}

static void
close_wires(struct transfers *t)
{
	struct wired *w = t->wired;

	wires_watch(t->crew.wires, NULL, NULL);
	for (uint32_t i = 0; w && w->hop && i < w->nhop; i++)
		route_free(&w->hop[i].route);
	for (int i = 0; w && i < WIRE_LANES; i++)
		free(w->task[i]);
	if (w)
		free(w->hop);
	free(w);
}

static uint64_t
bytes(const struct transfers *t)
{
	return t->wired->scratch[CKR_TP] + t->wired->scratch[CKR_DP];
}

/* ---- giving ---- */

/* Where a transfer goes: the wires of its group, and its operands. */
struct way {
	struct wires *wires;
	const struct route *route;
	int lane;                       /* -1: none, on the stream of kernels */
	uint32_t ranks, rank;
	uint8_t dtype;
	bool max;
	char *x, *y, *scratch;
	uint64_t n;                     /* elements of x */
};

static void
copy(const struct way *w, const struct moves *list, char *to, const char *from)
{
	for (uint32_t i = 0; i < list->n; i++) {
		const struct move *m = &list->one[i];

		wires_copy(w->wires, w->lane, to + m->to, from + m->from,
		           m->width, m->rows, m->to_pitch, m->from_pitch);
	}
}

static void
broadcast(const struct way *w)
{
	const struct route *r = w->route;

	wires_together(w->wires, true);
	for (uint32_t q = 0; q < r->npiece; q++)
		if (r->span[q].n)
			wires_broadcast(w->wires, w->lane, w->x,
			                w->y + r->span[q].at, r->span[q].n,
			                q * r->shared);
	wires_together(w->wires, false);
}

/* Those that share a piece get it from its owner. */
static void
hand_on(const struct way *w)
{
	const struct route *r = w->route;
	uint32_t owner = w->rank / r->shared * r->shared;

	wires_together(w->wires, true);
	for (uint32_t k = owner + 1; k < owner + r->shared; k++)
		if (w->rank == owner)
			wires_send(w->wires, w->lane, w->y, r->each, k);
		else if (w->rank == k)
			wires_receive(w->wires, w->lane, w->y, r->each, owner);
	wires_together(w->wires, false);
}

static void
zero_tail(const struct way *w)
{
	wires_zero(w->wires, w->lane, w->y + w->route->tail.at,
	           w->route->tail.n);
}

static void
reduce(const struct way *w, const char *x)
{
	const struct route *r = w->route;
	uint64_t size = dtype_row[w->dtype].nbytes;

	wires_together(w->wires, true);
	for (uint32_t q = 0; q < r->npiece; q++)
		if (r->span[q].n)
			wires_reduce(w->wires, w->lane, x + r->span[q].at,
			             w->y, r->span[q].n / size, w->dtype,
			             q * r->shared);
	wires_together(w->wires, false);
	zero_tail(w);
	if (r->shared > 1)
		hand_on(w);
}

static void
exchange(const struct way *w)
{
	const struct route *r = w->route;

	wires_together(w->wires, true);
	for (uint32_t k = 0; k < w->ranks; k++) {
		if (k != w->rank && r->out[k].n)
			wires_send(w->wires, w->lane, w->scratch + r->out[k].at,
			           r->out[k].n, k);
		if (k != w->rank && r->in[k].n)
			wires_receive(w->wires, w->lane,
			              w->scratch + r->in[k].at, r->in[k].n, k);
	}
	wires_together(w->wires, false);
}

static void
send(const struct way *w)
{
	const struct route *r = w->route;
	char *x = r->into ? w->scratch : w->x;
	char *y = r->out_of ? w->scratch : w->y;

	switch (r->how) {
	case ROUTE_OWN:
		break;
	case ROUTE_ALL_REDUCE:
		wires_all_reduce(w->wires, w->lane, x, y, w->n, w->dtype,
		                 w->max);
		break;
	case ROUTE_ALL_GATHER:
		wires_all_gather(w->wires, w->lane, x, y, r->each);
		break;
	case ROUTE_BROADCAST:
		broadcast(w);
		break;
	case ROUTE_REDUCE_SCATTER:
		wires_reduce_scatter(w->wires, w->lane, x, y,
		                     r->each / dtype_row[w->dtype].nbytes,
		                     w->dtype);
		zero_tail(w);
		break;
	case ROUTE_REDUCE:
		reduce(w, x);
		break;
	case ROUTE_EXCHANGE:
		exchange(w);
		break;
	}
}

static void
give(const struct way *w, const struct ckr_tensor *ty)
{
	const struct route *r = w->route;

	if (r->clear_y)
		wires_zero(w->wires, w->lane, w->y,
		           comm_nelem(ty) * dtype_row[w->dtype].nbytes);
	if (r->clear_scratch)
		wires_zero(w->wires, w->lane, w->scratch, r->scratch);
	copy(w, &r->pack, w->scratch, w->x);
	send(w);
	copy(w, &r->unpack, w->y, r->how == ROUTE_OWN ? w->x : w->scratch);
}

/* Each step has a row of its own, and steps come in the same order time after
 * time. */
static const struct route *
find(struct wired *w, const struct ckr_comm *what)
{
	while (w->hop[w->next % w->nhop].what != what)
		w->next++;
	return &w->hop[w->next++ % w->nhop].route;
}

static ckr_status
begin(struct transfers *t, struct transfer *x, struct err *e)
{
	const struct crew *crew = &t->crew;
	struct wired *wired = t->wired;
	int lane = (int)lane_of(x->what);
	bool dp = lane == CKR_DP;
	struct way w = { .wires = crew->wires,
		.route = find(wired, x->what), .lane = lane,
		.ranks = dp ? crew->dp : crew->tp,
		.rank = dp ? crew->replica : crew->rank,
		.dtype = x->tx->dtype, .max = x->what->max,
		.x = crew->operand(crew->user, x, 0, 0),
		.y = crew->operand(crew->user, x, 0, 1),
		.scratch = wires_scratch(crew->wires, lane),
		.n = comm_nelem(x->tx) };

	/* a rank alone has the result where it is */
	if (w.n == 0 || (w.ranks == 1 && w.x == w.y))
		return CKR_OK;
	if (w.route->how == ROUTE_OWN) {
		w.lane = -1;
		give(&w, x->ty);
		return wires_status(crew->wires, e);
	}
	x->number = wires_begin(crew->wires, lane);
	CKR_TRY(wires_status(crew->wires, e));
	wired->given[lane] = x->number;
	wired->task[lane][(x->number - 1) % wired->depth] = x->task;
	give(&w, x->ty);
	wires_end(crew->wires, lane);
	return wires_status(crew->wires, e);
}

static ckr_status
test(struct transfers *t, struct err *e)
{
	return wires_status(t->crew.wires, e);
}

static ckr_status
wait_wires(struct transfers *t, struct transfer *x, struct err *e)
{
	wires_await(t->crew.wires, (int)lane_of(x->what), x->number);
	return wires_status(t->crew.wires, e);
}

static void
drop(struct transfers *t, struct transfer *x)
{
	(void)t;
	(void)x;
}

/* ---- waiting ---- */

/* What the GPU has come to and others have not; NULL: it computes.  *moved:
 * transfers that have ended. */
static const struct pg_task *
late_one(const struct transfers *t, uint64_t *moved)
{
	const struct wired *w = t->wired;
	const struct pg_task *first = NULL;

	*moved = 0;
	for (int i = 0; i < WIRE_LANES; i++) {
		uint64_t over = wires_over(t->crew.wires, i);

		*moved += over;
		if (!first && over < w->given[i]
		    && wires_begun(t->crew.wires, i, over + 1))
			first = &w->task[i][over % w->depth];
	}
	return first;
}

static ckr_status
look(void *user, bool *done, const struct pg_task **at, uint64_t *moved,
     struct err *e)
{
	static const struct pg_task none = { .op = "the GPU's work" };
	struct transfers *t = user;
	const struct pg_task *late = late_one(t, moved);
	const char *trouble = wires_trouble(t->crew.wires);
	char text[2 * NAME_TEXT];

	*at = late ? late : &none;
	*done = !late || wires_quiet(t->crew.wires);
	CKR_TRY(wires_status(t->crew.wires, e));
	if (trouble)
		return err_set(e, CKR_ERANK, "%s: %s",
		               pg_task_text(text, sizeof(text), *at),
		               trouble);
	return CKR_OK;
}

/* Nothing is hung where the library's calls are ended from here. */
static ckr_status
quiet(void *user, struct err *e)
{
	struct transfers *t = user;
	struct pg_poll l = { look, t };
	ckr_status s = CKR_OK;
	uint64_t moved;

	while (s == CKR_OK && !wires_quiet(t->crew.wires)) {
		if (late_one(t, &moved))
			s = pg_wait(t->crew.team, &l, e);
		else
			nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
	if (s != CKR_OK)
		wires_abort(t->crew.wires);
	return s;
}

const struct carrier carry_wires = { open_wires, close_wires, begin, test,
	wait_wires, drop, bytes };
