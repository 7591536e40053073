/* A micro-batch on a GPU as three pieces of work at most, each launched as a
 * whole: the steps of a micro-batch that is not the last, those of the last
 * up to where the loss and the gradients are looked at, and the updates.
 *
 * A piece is carried out step by step the first time, when libraries load what
 * they need, kept the second time and launched from then on.  What differs
 * between launches, kernels read from memory: inputs, and the environment.
 */
#include "runtime/model/rt.h"

#include <stdlib.h>
#include <string.h>

enum piece { EARLIER, LAST, UPDATES };

void
graphs_open(ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	const char *wish = getenv("CKR_GRAPHS");

	c->graphs = !c->device->host && !c->poison && c->world.count == 1
		&& !(wish && !strcmp(wish, "0"));
	for (uint32_t i = 0; i < p->nstep; i++)
		c->graphs &= !p->step[i].comm;
}

bool
graphs_fit(const ckr_ctx *c, const struct bound *b, const struct watch *w)
{
	return c->graphs && b == &c->plan && !w && !c->trace && !c->profile
		&& !c->grads;
}

void
graphs_free(ckr_ctx *c)
{
	for (int k = 0; k < GRAPHS; k++) {
		if (c->graph[k].work)
			c->device->call->forget(c->device, c->graph[k].work);
		c->graph[k] = (struct graph){ .work = NULL };
	}
}

static ckr_status
steps(ckr_ctx *c, const struct bound *b, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		CKR_TRY(rt_run_one(c, b, i));
	return CKR_OK;
}

static ckr_status
piece(ckr_ctx *c, const struct bound *b, enum piece which, uint32_t from,
      uint32_t to)
{
	struct graph *g = &c->graph[which];
	ckr_status s;

	if (!g->seen) {
		g->seen = true;
		return steps(c, b, from, to);
	}
	if (!g->work && from < to) {
		c->device->call->capture(c->device);
		s = steps(c, b, from, to);
		g->work = c->device->call->captured(c->device);
		CKR_TRY(s);
	}
	if (g->work)
		c->device->call->launch(c->device, g->work);
	return device_status(c->device, &c->err);
}

ckr_status
graphs_micro(ckr_ctx *c, const struct bound *b)
{
	const struct ckr_program *p = b->p;
	uint32_t looks = rt_commits_at(p);

	if (c->env.micro + 1 < c->env.nmicro) {
		CKR_TRY(piece(c, b, EARLIER, 0, p->update));
		return rt_look(c, b, p->update);
	}
	CKR_TRY(piece(c, b, LAST, 0, looks));
	CKR_TRY(rt_look(c, b, looks));
	if (p->loss >= 0)
		CKR_TRY(guard_loss(c, b, (uint32_t)p->tensor[p->loss].ready));
	for (uint32_t i = 0; i < looks && c->norm.tensor; i++)
		norm_after(c, b, i);
	CKR_TRY(guard_grads(c, b, looks));
	CKR_TRY(piece(c, b, UPDATES, looks, p->nstep));
	return rt_look(c, b, p->nstep);
}
