/* What moves between ranks of one process: all of it at once, where it begins.
 *
 * A test wants to know whether steps between the beginning and the end leave
 * alone what they must.  CKR_LATE=1: it is moved at the end, from what lies
 * there then; CKR_LATE=2: at the end, what lay there in the beginning.  Until
 * then what is received is NaN, unless it is what is sent still.
 */
#include "runtime/ranks/transfers.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/dtype.h"

enum { LATE_SAME = 1, LATE_COPY };

static uint64_t
bytes(const struct ckr_tensor *t)
{
	return comm_nelem(t) * dtype_row[t->dtype].nbytes;
}

/* Of a device's memory: through the host's. */
static ckr_status
run_by_host(const struct crew *crew, const struct comm *m, struct err *e)
{
	uint64_t nx = bytes(m->tx), ny = bytes(m->ty);
	void *x[CKR_MAX_RANKS], *y[CKR_MAX_RANKS];
	char *room = malloc((nx + ny) * m->ranks + 1);
	struct comm on_host = *m;

	if (!room)
		return err_set(e, CKR_ENOMEM, "out of memory");
	for (uint32_t k = 0; k < m->ranks; k++) {
		x[k] = room + k * (nx + ny);
		y[k] = room + k * (nx + ny) + nx;
		crew->get(crew->user, x[k], m->x[k], nx);
	}
	on_host.x = x;
	on_host.y = y;
	comm_run(&on_host);
	for (uint32_t k = 0; k < m->ranks; k++)
		crew->put(crew->user, m->y[k], y[k], ny);
	free(room);
	return CKR_OK;
}

/* What moves in a group of n ranks: here `first`, and `apart` places on. */
static ckr_status
run_group(const struct transfers *t, const struct transfer *x, uint32_t first,
          uint32_t apart, uint32_t n, struct err *e)
{
	const struct crew *crew = &t->crew;
	void *from[CKR_MAX_RANKS], *to[CKR_MAX_RANKS];
	struct comm m = { .what = x->what, .tx = x->tx, .ty = x->ty,
		.x = from, .y = to, .ranks = n, .threads = crew->threads };

	for (uint32_t k = 0; k < n; k++) {
		uint32_t r = first + k * apart;

		from[k] = x->copy ? (char *)x->copy + r * bytes(x->tx)
		          : crew->operand(crew->user, x, r, 0);
		to[k] = crew->operand(crew->user, x, r, 1);
	}
	if (crew->get && !comm_is_still(&m))
		return run_by_host(crew, &m, e);
	comm_run(&m);
	return CKR_OK;
}

static ckr_status
run(const struct transfers *t, const struct transfer *x, struct err *e)
{
	uint32_t tp = t->crew.tp, dp = t->crew.dp;

	if (x->what->axis == CKR_DP)
		for (uint32_t r = 0; r < tp; r++)
			CKR_TRY(run_group(t, x, r, tp, dp, e));
	else
		for (uint32_t q = 0; q < dp; q++)
			CKR_TRY(run_group(t, x, q * tp, 1, tp, e));
	return CKR_OK;
}

/* ---- late ---- */

static bool
is_late(const struct transfers *t, const struct transfer *x)
{
	return t->late && x->end > x->step && !t->crew.get;
}

static ckr_status
delay(const struct transfers *t, struct transfer *x, struct err *e)
{
	const struct crew *crew = &t->crew;

	if (t->late == LATE_COPY) {
		x->copy = malloc(bytes(x->tx) * crew->count + 1);
		if (!x->copy)
			return err_set(e, CKR_ENOMEM, "out of memory");
	}
	for (uint32_t r = 0; r < crew->count; r++) {
		void *from = crew->operand(crew->user, x, r, 0);
		void *to = crew->operand(crew->user, x, r, 1);

		if (x->copy)
			memcpy((char *)x->copy + r * bytes(x->tx), from,
			       bytes(x->tx));
		if (x->copy || from != to)
			memset(to, 0xff, bytes(x->ty));
	}
	return CKR_OK;
}

/* ---- the carrier ---- */

static ckr_status
open_here(struct transfers *t, struct err *e)
{
	const char *late = getenv("CKR_LATE");

	(void)e;
	t->late = late ? atoi(late) : 0;
	return CKR_OK;
}

static void
close_here(struct transfers *t)
{
	(void)t;
}

static ckr_status
begin(struct transfers *t, struct transfer *x, struct err *e)
{
	if (is_late(t, x))
		return delay(t, x, e);
	return run(t, x, e);
}

static ckr_status
test(struct transfers *t, struct err *e)
{
	(void)t;
	(void)e;
	return CKR_OK;
}

static void
drop(struct transfers *t, struct transfer *x)
{
	(void)t;
	free(x->copy);
	x->copy = NULL;
}

static ckr_status
wait_here(struct transfers *t, struct transfer *x, struct err *e)
{
	if (is_late(t, x))
		CKR_TRY(run(t, x, e));
	drop(t, x);
	return CKR_OK;
}

const struct carrier carry_here = { open_here, close_here, begin, test,
	wait_here, drop, NULL };
