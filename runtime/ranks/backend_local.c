/* Transfers between ranks of one process, all carried out where they begin.
 *
 * CKR_LATE is for tests of whether the steps between the beginning and the end
 * of a transfer leave its operands alone.  1: it moves at the end what is there
 * then; 2: it moves at the end what was there at the beginning.  Until then the
 * result is NaN, unless it overlaps what is still to be sent.
 */
#include "runtime/ranks/transfers.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/dtype.h"

enum { DELAY_SAME = 1, DELAY_COPY };

static uint64_t
local_bytes(const struct ckr_tensor *t)
{
	return comm_nelem(t) * dtype_row[t->dtype].nbytes;
}

/* For operands in device memory: copies them through host memory. */
static ckr_status
run_through_host(const struct comm_view *view, const struct comm *m,
                 struct err *e)
{
	uint64_t nx = local_bytes(m->tx), ny = local_bytes(m->ty);
	void *x[CKR_MAX_GROUP], *y[CKR_MAX_GROUP];
	char *room = malloc((nx + ny) * m->ranks + 1);
	struct comm on_host = *m;

	if (!room)
		return err_no_memory(e);
	for (uint32_t k = 0; k < m->ranks; k++) {
		x[k] = room + k * (nx + ny);
		y[k] = room + k * (nx + ny) + nx;
		view->copy_d2h(view->user, x[k], m->x[k], nx);
	}
	on_host.x = x;
	on_host.y = y;
	comm_run(&on_host);
	for (uint32_t k = 0; k < m->ranks; k++)
		view->copy_h2d(view->user, m->y[k], y[k], ny);
	free(room);
	return CKR_OK;
}

/* Run the collective of a group. */
static ckr_status
run_group(const struct transfers *t, const struct transfer *x,
          const struct comm_ranks *of, struct err *e)
{
	const struct comm_view *view = &t->view;
	void *from[CKR_MAX_GROUP], *to[CKR_MAX_GROUP];
	struct comm m = { .what = x->what, .tx = x->tx, .ty = x->ty,
		.x = from, .y = to, .ranks = of->n, .threads = view->threads };

	for (uint32_t k = 0; k < of->n; k++) {
		uint32_t r = of->first + k * of->by;

		from[k] = x->copy ? (char *)x->copy + r * local_bytes(x->tx)
		          : view->operand(view->user, x, r, 0);
		to[k] = view->operand(view->user, x, r, 1);
	}
	if (view->copy_d2h && !comm_is_still(&m))
		return run_through_host(view, &m, e);
	comm_run(&m);
	return CKR_OK;
}

static ckr_status
run_groups(const struct transfers *t, const struct transfer *x, struct err *e)
{
	for (uint32_t r = 0; r < t->view.count; r++) {
		struct comm_ranks of = comm_ranks_of(
			&t->view.mesh, group_of_axis(x->what->axis), r);

		if (of.first == r && is_in_stage(&t->view, r, x->stage))
			CKR_TRY(run_group(t, x, &of, e));
	}
	return CKR_OK;
}

/* ---- delayed ---- */

static bool
is_delayed(const struct transfers *t, const struct transfer *x)
{
	return t->delay && x->end > x->step && !t->view.copy_d2h;
}

static ckr_status
start_delayed(const struct transfers *t, struct transfer *x, struct err *e)
{
	const struct comm_view *view = &t->view;

	if (t->delay == DELAY_COPY) {
		x->copy = malloc(local_bytes(x->tx) * view->count + 1);
		if (!x->copy)
			return err_no_memory(e);
	}
	for (uint32_t r = 0; r < view->count; r++) {
		void *from, *to;

		if (!is_in_stage(view, r, x->stage))
			continue;
		from = view->operand(view->user, x, r, 0);
		to = view->operand(view->user, x, r, 1);
		if (x->copy)
			memcpy((char *)x->copy + r * local_bytes(x->tx), from,
			       local_bytes(x->tx));
		if (x->copy || from != to)
			memset(to, 0xff, local_bytes(x->ty));
	}
	return CKR_OK;
}

/* ---- the backend ---- */

static ckr_status
open_local(struct transfers *t, struct err *e)
{
	const char *late = getenv("CKR_LATE");

	(void)e;
	t->delay = late ? atoi(late) : 0;
	return CKR_OK;
}

static ckr_status
begin_local(struct transfers *t, struct transfer *x, struct err *e)
{
	if (is_delayed(t, x))
		return start_delayed(t, x, e);
	return run_groups(t, x, e);
}

static void
drop_local(struct transfers *t, struct transfer *x)
{
	(void)t;
	free(x->copy);
	x->copy = NULL;
}

static ckr_status
wait_local(struct transfers *t, struct transfer *x, struct err *e)
{
	if (is_delayed(t, x))
		CKR_TRY(run_groups(t, x, e));
	drop_local(t, x);
	return CKR_OK;
}

const struct comm_backend backend_local = {
	.open = open_local,
	.begin = begin_local,
	.wait = wait_local,
	.drop = drop_local,
};
