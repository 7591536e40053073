/* What moves between ranks of one process: all of it at once, where it begins.
 *
 * A test wants to know whether steps between the beginning and the end leave
 * alone what they must.  CKR_LATE=1: it is moved at the end, from what lies
 * there then; CKR_LATE=2: at the end, what lay there in the beginning.  Until
 * then what is received is NaN, unless it is what is sent still.
 */
#include "runtime/model/transfers.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/ranks/comm.h"

enum { LATE_SAME = 1, LATE_COPY };

/* Between ranks on one GPU: through the host's memory. */
static void
run_by_host(ckr_ctx *c, const struct comm *m)
{
	uint64_t nx = rt_nbytes(m->tx), ny = rt_nbytes(m->ty);
	void *x[CKR_MAX_RANKS], *y[CKR_MAX_RANKS];
	char *room = malloc((nx + ny) * m->ranks + 1);
	struct comm on_host = *m;

	if (!room) {
		err_set(&c->device->first, CKR_ENOMEM, "out of memory");
		return;
	}
	for (uint32_t k = 0; k < m->ranks; k++) {
		x[k] = room + k * (nx + ny);
		y[k] = room + k * (nx + ny) + nx;
		c->device->call->get(c->device, x[k], m->x[k], nx);
	}
	on_host.x = x;
	on_host.y = y;
	comm_run(&on_host);
	for (uint32_t k = 0; k < m->ranks; k++)
		c->device->call->put(c->device, m->y[k], y[k], ny);
	c->device->call->sync(c->device);
	free(room);
}

/* What moves in a group of n ranks: here `first`, and `apart` places on. */
static void
run_group(ckr_ctx *c, const struct transfer *t, uint32_t first, uint32_t apart,
          uint32_t n)
{
	const struct bound *b = t->b;
	const struct ckr_step *s = &b->p->step[t->step];
	const int32_t *arg = b->p->arg + s->arg0;
	void *x[CKR_MAX_RANKS], *y[CKR_MAX_RANKS];
	struct comm m = { .what = s->comm, .tx = &b->p->tensor[arg[0]],
		.ty = &b->p->tensor[arg[1]], .x = x, .y = y, .ranks = n,
		.threads = c->env.threads };

	for (uint32_t k = 0; k < n; k++) {
		uint32_t r = first + k * apart;

		x[k] = t->copy ? (char *)t->copy + r * rt_nbytes(m.tx)
		       : b->ptr[r][s->arg0];
		y[k] = b->ptr[r][s->arg0 + 1];
	}
	if (c->device->host)
		comm_run(&m);
	else
		run_by_host(c, &m);
}

static void
run(ckr_ctx *c, const struct transfer *t)
{
	const struct world *w = &c->world;

	if (t->b->p->step[t->step].comm->axis == CKR_DP)
		for (uint32_t r = 0; r < w->tp; r++)
			run_group(c, t, r, w->tp, w->dp);
	else
		for (uint32_t q = 0; q < w->dp; q++)
			run_group(c, t, q * w->tp, 1, w->tp);
}

/* ---- late ---- */

static bool
is_late(const ckr_ctx *c, const struct transfer *t)
{
	return c->transfers->late && t->end > t->step && c->device->host;
}

static ckr_status
delay(ckr_ctx *c, struct transfer *t)
{
	const struct ckr_step *s = &t->b->p->step[t->step];
	const int32_t *arg = t->b->p->arg + s->arg0;
	uint64_t nx = rt_nbytes(&t->b->p->tensor[arg[0]]);
	uint64_t ny = rt_nbytes(&t->b->p->tensor[arg[1]]);

	if (c->transfers->late == LATE_COPY) {
		t->copy = malloc(nx * c->world.count + 1);
		if (!t->copy)
			return rt_no_memory(c);
	}
	FOR_RANKS (r, c) {
		void *x = t->b->ptr[r][s->arg0], *y = t->b->ptr[r][s->arg0 + 1];

		if (t->copy)
			memcpy((char *)t->copy + r * nx, x, nx);
		if (t->copy || x != y)
			memset(y, 0xff, ny);
	}
	return CKR_OK;
}

/* ---- the carrier ---- */

static ckr_status
open_here(ckr_ctx *c)
{
	const char *late = getenv("CKR_LATE");

	c->transfers->late = late ? atoi(late) : 0;
	return CKR_OK;
}

static void
close_here(ckr_ctx *c)
{
	(void)c;
}

static ckr_status
begin(ckr_ctx *c, struct transfer *t)
{
	if (is_late(c, t))
		return delay(c, t);
	run(c, t);
	return CKR_OK;
}

static ckr_status
test(ckr_ctx *c)
{
	(void)c;
	return CKR_OK;
}

static void
drop(ckr_ctx *c, struct transfer *t)
{
	(void)c;
	free(t->copy);
	t->copy = NULL;
}

static ckr_status
wait_here(ckr_ctx *c, struct transfer *t)
{
	if (is_late(c, t))
		run(c, t);
	drop(c, t);
	return CKR_OK;
}

const struct carrier carry_here = { open_here, close_here, begin, test,
	wait_here, drop };
