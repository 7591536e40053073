/* The norm of all gradients, as a compiled step has it for clipping.
 *
 * Kernels compute it where clip is above 0: to have it without clipping, clip
 * is infinity, which scales nothing.  It lies in the arena until the last
 * update has read it, and is taken when it is ready.
 */
#include "runtime/model/rt.h"

#include <math.h>
#include <string.h>

void
norm_open(ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];

	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		if (t->ready >= 0 && t->dtype == CKR_F32 && rt_nelem(t) == 1
		    && !strcmp(p->step[t->ready].op, "grad_norm"))
			c->norm.tensor = t;
	}
	c->norm.value = NAN;
}

float
norm_clip(const ckr_ctx *c, double clip)
{
	return c->norm.wanted && !(clip > 0) ? INFINITY : (float)clip;
}

void
norm_after(ckr_ctx *c, const struct bound *b, uint32_t step)
{
	const struct ckr_tensor *t = c->norm.tensor;

	if (t && b->p == &c->lib->program[0] && t->ready == (int32_t)step
	    && c->env.clip > 0)
		c->norm.value = rt_number(c, t, rt_at(c, b, 0, t));
}

ckr_status
ckr_grad_norm(ckr_ctx *c, double *norm)
{
	CKR_TRY(rt_need_ready(c));
	if (!c->norm.tensor)
		return err_set(&c->err, CKR_EUNSUPPORTED, "%s has no norm of "
		               "all gradients: it applies them as they appear, "
		               "or not at all", c->path);
	c->norm.wanted = true;
	if (norm)
		*norm = c->norm.value;
	return CKR_OK;
}
