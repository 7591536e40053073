/* Opening of what steps need, the progress of a run, and bytes. */
#include "runtime/stepping/inside.h"

#include <stdlib.h>

static void
pass_on_wait(void *user, uint32_t i, double from, double to)
{
	struct stepping *c = user;

	for (struct observer *o = c->observer; o; o = o->next)
		if (o->waited)
			o->waited(o->user, i, from, to);
}

ckr_status
stepping_open(struct stepping **out, struct world *w, const char *blas,
              uint64_t seed, struct stepping *with)
{
	struct stepping *c = calloc(1, sizeof(*c));

	*out = c;
	if (!c)
		return err_no_memory(w->err);
	c->err = w->err;
	c->lib = w->lib;
	c->world = w;
	c->device = w->device;
	c->env.threads = w->threads;
	if (with)
		run_join(c, with);
	else
		CKR_TRY(run_start(c, seed));
	w->waited = pass_on_wait;
	w->waited_user = c;
	env_select_rank(c, 0);
	c->cpu_monitor = cpu_monitor_open(w->threads, w->library->dl);
	return c->device->call->open_libraries(c->device, c->lib, blas, &c->env,
	                                       c->err);
}

ckr_status
stepping_open_memory(struct stepping *c)
{
	CKR_TRY(env_open(c));
	CKR_TRY(count_open(c));
	CKR_TRY(finite_open(c));
	norm_open(c);
	return async_open(c);
}

void
stepping_close(struct stepping *c)
{
	if (!c)
		return;
	cpu_monitor_close(c->cpu_monitor);
	async_close(c);
	count_close(c);
	finite_close(c);
	env_close(c);
	run_leave(c);
	free(c);
}

struct progress *
stepping_progress(struct stepping *c)
{
	return c->progress;
}

struct observer **
stepping_observers(struct stepping *c)
{
	return &c->observer;
}

void
stepping_observe(struct stepping *c, struct observer *o)
{
	o->next = c->observer;
	c->observer = o;
}

void
stepping_unobserve(struct stepping *c, const struct observer *o)
{
	struct observer **at = &c->observer;

	while (*at && *at != o)
		at = &(*at)->next;
	if (*at)
		*at = o->next;
}

const struct ckr_env *
stepping_env(const struct stepping *c)
{
	return &c->env;
}

/* ---- bytes ---- */

uint64_t
stepping_peak_bytes(const struct stepping *c)
{
	return async_is_busy(c) ? c->peak : instr_peak(c);
}

uint64_t
stepping_planned_bytes(const struct stepping *c)
{
	const struct ckr_program *p = c->lib->program;
	uint64_t forward = p[0].resident_bytes + p[2].arena_bytes;

	return c->evaluated && forward > c->lib->peak_bytes ? forward
	       : c->lib->peak_bytes;
}

uint64_t
stepping_held_bytes(const struct stepping *c)
{
	return c->finite.nbytes * (c->async.possible ? 1 + MAX_INFLIGHT : 1);
}
