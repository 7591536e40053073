/* Loss scaling for gradients that pass through f16, which holds numbers from
 * 6e-8 to 65504.  Adjoints of the loss are scaled up, and updates divide
 * gradients by the scale in float32.
 *
 * The rule is that of PyTorch's GradScaler: a step whose gradients overflow is
 * skipped and halves the scale; many good ones in a row double it.  Powers of
 * two, so that nothing is rounded by it.  A loss that is not finite itself, or
 * gradients that are not at the least scale, no scale could help: those are
 * the finite check's.
 */
#include "runtime/stepping/inside.h"

#include <math.h>

enum { MOST = 1 << 24, INTERVAL = 2000 };

bool
scale_is_possible(uint64_t x)
{
	return x && x <= MOST && !(x & (x - 1));
}

ckr_status
scale_check(struct stepping *c, double x)
{
	float f = (float)x;

	if (x == 0)
		return CKR_OK;
	if (!c->lib->loss_scaled)
		return err_set(c->err, CKR_EUNSUPPORTED, "%s has no f16 "
		               "gradients, so the loss is not scaled; leave "
		               "the loss scale at 0, or compile a model with "
		               "matrix products with ckc --dtype f16",
		               c->world->library->path);
	if (!(f > 0) || !isfinite(f) || !isfinite(1 / f))
		return err_set(c->err, CKR_EARG, "the loss scale must be a "
		               "number above 0, or 0 for dynamic loss scaling, "
		               "got %g", x);
	return CKR_OK;
}

static void
set_env(struct stepping *c)
{
	double x = !c->lib->loss_scaled ? 1
	           : c->scale.fixed > 0 ? c->scale.fixed : c->progress->scale;

	c->env.loss_scale = (float)x;
	c->env.unscale = (float)(1 / x);
}

void
scale_prepare(struct stepping *c, const struct ckr_hyper *h)
{
	struct loss_scale *s = &c->scale;

	s->fixed = h ? h->loss_scale : 0;
	s->interval = h && h->scale_interval ? h->scale_interval : INTERVAL;
	/* without updates there is nothing to skip */
	s->again = (h && h->scale_again)
		|| c->world->plan.p->apply == c->world->plan.p->ninstr;
	set_env(c);
}

bool
scale_can_fall(const struct stepping *c)
{
	return c->lib->loss_scaled && !(c->scale.fixed > 0)
		&& c->progress->scale > 1;
}

static void
halve_scale(struct stepping *c)
{
	c->progress->scale /= 2;
	c->progress->scale_good = 0;
}

bool
stepping_again(struct stepping *c)
{
	if (!c->finite.overflow || !c->scale.again)
		return false;
	halve_scale(c);
	set_env(c);
	return true;
}

void
scale_after(struct stepping *c, bool updated)
{
	struct progress *p = c->progress;

	if (!c->lib->loss_scaled || c->scale.fixed > 0)
		return;
	if (c->finite.overflow) {
		halve_scale(c);
	} else if (!updated) {
		p->scale_good = 0;
	} else if (++p->scale_good >= c->scale.interval) {
		p->scale = fmin(2 * p->scale, MOST);
		p->scale_good = 0;
	}
}
