/* Parameter groups: learning rate factors and weight decay of single
 * parameters. */
#include <math.h>
#include <stdlib.h>

#include "runtime/model/rt.h"

/* All alike. */
static ckr_status
alloc_groups(ckr_ctx *c)
{
	uint32_t n = c->lib->nshared;

	if (c->group)
		return CKR_OK;
	c->group = malloc((n + 1) * sizeof(*c->group));
	if (!c->group)
		return rt_no_memory(c);
	for (uint32_t i = 0; i < n; i++)
		c->group[i] = (struct ckr_param_group){ 1, -1 };
	return CKR_OK;
}

ckr_status
ckr_set_group(ckr_ctx *c, const char *name, double factor, double decay)
{
	const struct ckr_tensor *t;
	uint32_t i;
	char text[NAME_TEXT];

	CKR_TRY(rt_need_quiet(c));
	t = rt_find(c, name, &i);
	if (!t || t->kind != CKR_PARAM || t->flags & CKR_FROZEN)
		return err_set(&c->err, CKR_EARG, "%s: expected the name of a "
		               "trainable parameter, found '%s'", c->path,
		               err_name(text, sizeof(text), name));
	if (!(factor >= 0) || !isfinite((float)factor)
	    || !isfinite((float)decay))
		return err_set(&c->err, CKR_EARG, "'%s': expected a factor of "
		               "0 or more and a finite decay, found %g and %g",
		               err_name(text, sizeof(text), name), factor,
		               decay);
	CKR_TRY(alloc_groups(c));
	c->group[i] = (struct ckr_param_group){ (float)factor, (float)decay };
	async_drop_graphs(c);
	return CKR_OK;
}
