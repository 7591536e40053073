/* The norm of all gradients: what a compiled step has for clipping.  Kernels
 * compute it where clip is above 0: to have it without clipping, clip is
 * infinity, which scales nothing.  It lies in the arena until the last update
 * has read it, and is taken when it is ready.
 */
#include "runtime/stepping/inside.h"

#include <math.h>
#include <string.h>

void
norm_open(struct stepping *c)
{
	const struct ckr_program *p = &c->lib->program[0];

	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		if (t->ready >= 0 && t->dtype == CKR_F32 && tensor_nelem(t) == 1
		    && world_has_stage(c->world, t->stage)
		    && !strcmp(p->instr[t->ready].op, "grad_norm"))
			c->norm.tensor = t;
	}
	c->norm.value = NAN;
}

float
norm_clip(const struct stepping *c, double clip)
{
	return c->norm.wanted && !(clip > 0) ? INFINITY : (float)clip;
}

void
norm_after(struct stepping *c, const struct loaded_program *b, uint32_t step)
{
	const struct ckr_tensor *t = c->norm.tensor;

	if (t && b->p == &c->lib->program[0] && t->ready == (int32_t)step
	    && c->env.clip > 0)
		c->norm.value = world_number(c->world, t,
		                             world_at(c->world, b,
			world_first_of(c->world, t->stage), t));
}

ckr_status
stepping_grad_norm(struct stepping *c, double *norm)
{
	if (!c->norm.tensor)
		return err_set(c->err, CKR_EUNSUPPORTED, "%s has no global "
		               "gradient norm: it updates in backward, or does "
		               "not train", c->world->library->path);
	c->norm.wanted = true;
	if (norm)
		*norm = c->norm.value;
	return CKR_OK;
}
