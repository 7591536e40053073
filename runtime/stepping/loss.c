/* The loss tensor. */
#include "runtime/base/dtype.h"
#include "runtime/stepping/inside.h"

#include <math.h>

double
loss_read(struct stepping *c, const struct loaded_program *b)
{
	const struct ckr_tensor *t;
	double whole;

	if (b->p->loss < 0 || !world_has_stage(c->world,
	        b->p->tensor[b->p->loss].stage))
		return NAN;
	t = &b->p->tensor[b->p->loss];
	if (!t->placement)
		return world_number(c->world, t, world_at(c->world, b,
			world_first_of(c->world, t->stage), t));
	return tensor_nelem(t) == 1
	       && world_gather(c->world, b, t, &whole) == CKR_OK
	       ? dtype_double(t->dtype, &whole) : NAN;
}

ckr_status
loss_share(struct stepping *c, const struct loaded_program *b, double *x)
{
	const struct world *w = c->world;
	struct pg_task task = { .op = "the loss of the step",
		.step = c->progress->step + 1 };

	if (!w->team || w->stages == 1 || b->p->loss < 0)
		return CKR_OK;
	return pg_broadcast(w->team, world_process_of(w,
		b->p->tensor[b->p->loss].stage), x, sizeof(*x), &task,
		c->err);
}

double
loss_of_sum(const struct stepping *c, double sum)
{
	return c->lib->loss_adds ? sum : sum / c->env.nmicro;
}

void
loss_show(struct stepping *c, const struct loaded_program *b, double loss)
{
	const struct ckr_tensor *t = &b->p->tensor[b->p->loss];
	double value;
	size_t bad;

	if (c->env.nmicro == 1 || b->p->loss < 0 || t->placement)
		return;
	dtype_convert(&value, t->dtype, &loss, CKR_F64, 1, &bad);
	FOR_STAGE (r, c->world, t->stage)
		c->device->call->copy_h2d(c->device,
			world_at(c->world, b, r, t), &value,
			tensor_elem_bytes(t));
	c->device->call->sync(c->device);
}
