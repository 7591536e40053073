/* Settings of a step: defaults, checks, and the environment of kernels. */
#include "runtime/library/tensor.h"
#include "runtime/stepping/inside.h"
#include "runtime/support/word_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Settings that only some optimizers have, by word_list.h. */
static const struct {
	const char *name, *own;
} optimizer_row[] = {
#define OPTIMIZER(id, name, op, coupled, state0, state1, uses, defaults) \
	{ name, uses },
#include "runtime/support/optimizers.h"
};

struct ckr_hyper
hyper_of_library(const struct ckr_library *lib)
{
	struct ckr_hyper h = { .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999,
		.eps = 1e-8, .weight_decay = 0.01, .beta2_decay = -0.8,
		.clip_threshold = 1, .eps2 = 1e-3, .ema_decay = 0.999 };

#define SET(setting, value) h.setting = value;
#define OPTIMIZER(id, name, op, coupled, state0, state1, uses, defaults) \
	if (!strcmp(library_optimizer(lib), name)) { \
		defaults \
	}
#include "runtime/support/optimizers.h"
#undef SET
	return h;
}

static bool
has_averages(const struct ckr_library *lib)
{
	bool any = false;

	for (uint32_t i = 0; lib && i < lib->nshared && !any; i++)
		any = tensor_is_average(&lib->program[0].tensor[i]);
	return any;
}

bool
hyper_is_used(const struct ckr_library *lib, const char *name)
{
	const char *optimizer = library_optimizer(lib);
	bool special = false;

	if (!strcmp(name, "ema_decay"))
		return has_averages(lib);
	for (size_t i = 0; i < sizeof(optimizer_row) / sizeof(*optimizer_row);
	     i++) {
		if (!word_is_listed(optimizer_row[i].own, name))
			continue;
		if (!strcmp(optimizer_row[i].name, optimizer))
			return true;
		special = true;
	}
	return !special && strcmp(optimizer, "none") != 0;
}

void
hyper_set_env(struct stepping *c, const struct ckr_hyper *hyper)
{
	struct ckr_hyper h = hyper ? *hyper : hyper_of_library(c->lib);
	struct ckr_env *env = &c->env;
	double t = (double)(c->progress->step - c->progress->skipped) + 1;

	env->lr = (float)h.lr;
	env->beta1 = (float)h.beta1;
	env->beta2 = (float)h.beta2;
	env->eps = (float)h.eps;
	env->weight_decay = (float)h.weight_decay;
	env->momentum = (float)h.momentum;
	env->seed = c->progress->seed;
	env->clip = norm_clip(c, h.clip);
	scale_prepare(c, hyper);
	/* of the betas that kernels have: 1 - 0.999f is 1.3e-5 less than 0.001,
	 * and an average must not be corrected by another one's weights */
	env->c1 = (float)(1 - pow(env->beta1, t));
	env->c2 = (float)(1 - pow(env->beta2, t));
	env->nesterov = h.nesterov;
	env->one_minus_beta2 = (float)pow(t, h.beta2_decay);
	env->max_lr = (float)(1 / sqrt(t));
	env->eps2 = (float)h.eps2;
	env->threshold = (float)h.clip_threshold;
	env->ema_weight = t > 1 ? (float)(1 - h.ema_decay) : 1;
}

static ckr_status
need_not_negative(struct stepping *c, const char *name, double x)
{
	return x >= 0 && isfinite(x) ? CKR_OK
	       : err_set(c->err, CKR_EARG, "%s must be 0 or more, got %g", name,
	                 x);
}

/* What only some optimizers know. */
static ckr_status
check_special(struct stepping *c, const struct ckr_hyper *h)
{
	bool sgdm = hyper_is_used(c->lib, "momentum");

	CKR_TRY(need_not_negative(c, "momentum", h->momentum));
	if (h->momentum != 0 && !sgdm)
		return err_set(c->err, CKR_EUNSUPPORTED, "this model's "
		               "optimizer is %s, which keeps no momentum; "
		               "compile it with --optimizer sgdm, or leave "
		               "momentum at 0", library_optimizer(c->lib));
	if (h->nesterov && sgdm && h->momentum == 0)
		return err_set(c->err, CKR_EARG, "nesterov needs momentum");
	if (!hyper_is_used(c->lib, "eps2"))
		return CKR_OK;
	if (!(h->beta2_decay <= 0) || !isfinite(h->beta2_decay))
		return err_set(c->err, CKR_EARG, "beta2-decay must be 0 or "
		               "less, got %g", h->beta2_decay);
	if (!(h->clip_threshold >= 1))
		return err_set(c->err, CKR_EARG, "clip-threshold must be at "
		               "least 1, got %g", h->clip_threshold);
	if (!(h->eps2 >= 0))
		return err_set(c->err, CKR_EARG, "eps2 must be 0 or more, got "
		               "%g", h->eps2);
	return CKR_OK;
}

static ckr_status
check_hyper(struct stepping *c, const struct ckr_hyper *h)
{
	if (!h)
		return CKR_OK;
	if (!(h->beta1 >= 0 && h->beta1 < 1 && h->beta2 >= 0 && h->beta2 < 1))
		return err_set(c->err, CKR_EARG, "betas must be at least 0 "
		               "and below 1, got %g and %g", h->beta1,
		               h->beta2);
	if (!(h->ema_decay >= 0 && h->ema_decay < 1))
		return err_set(c->err, CKR_EARG, "ema-decay must be at least 0 "
		               "and below 1, got %g", h->ema_decay);
	CKR_TRY(need_not_negative(c, "lr", h->lr));
	CKR_TRY(need_not_negative(c, "weight_decay", h->weight_decay));
	if (!(h->eps >= 0) || !(h->clip >= 0)
	    || (unsigned)h->on_nan > CKR_NAN_GO)
		return err_set(c->err, CKR_EARG, "eps or clip is negative or "
		               "not a number, or on_nan is unknown");
	CKR_TRY(check_special(c, h));
	CKR_TRY(scale_check(c, h->loss_scale));
	if (h->clip > 0 && !c->lib->clip_ok)
		return err_set(c->err, CKR_EUNSUPPORTED, "this model updates "
		               "in backward and cannot clip gradients; compile "
		               "it with --update-in-backward off");
	return CKR_OK;
}

/* ---- parameter groups ---- */

struct ckr_param_group
hyper_group(const struct stepping *c, const struct ckr_program *p, uint32_t i)
{
	const struct ckr_instr *s = &p->instr[i];
	const struct ckr_param_group *group = c->run->group;
	int32_t of = -1;

	for (uint32_t k = 0; group && s->phase == CKR_UPDATE && k < s->narg
	     && of < 0; k++) {
		int32_t at = p->arg[s->arg0 + k];

		if (at >= 0)
			of = p->tensor[at].kind == CKR_PARAM ? at
			     : p->tensor[at].param;
	}
	if (of >= 0 && p->tensor[of].tied)
		of = (int32_t)p->tensor[of].tied - 1;
	return of < 0 ? (struct ckr_param_group){ 1, -1 } : group[of];
}

/* All alike. */
static ckr_status
alloc_groups(struct stepping *c)
{
	uint32_t n = c->lib->nshared;
	struct ckr_param_group *group = c->run->group;

	if (group)
		return CKR_OK;
	group = malloc((n + 1) * sizeof(*group));
	if (!group)
		return err_no_memory(c->err);
	for (uint32_t i = 0; i < n; i++)
		group[i] = (struct ckr_param_group){ 1, -1 };
	c->run->group = group;
	return CKR_OK;
}

ckr_status
stepping_set_group(struct stepping *c, const char *name, double factor,
                   double decay)
{
	const struct ckr_tensor *t;
	uint32_t i;
	char text[NAME_TEXT];

	t = library_find(c->lib, name, &i);
	if (!t || t->kind != CKR_PARAM || t->flags & CKR_FROZEN)
		return err_set(c->err, CKR_EARG, "%s: expected the name of a "
		               "trainable parameter, found '%s'",
		               c->world->library->path,
		               err_name(text, sizeof(text), name));
	if (!(factor >= 0) || !isfinite((float)factor)
	    || !isfinite((float)decay))
		return err_set(c->err, CKR_EARG, "'%s': expected a factor of "
		               "0 or more and a finite decay, found %g and %g",
		               err_name(text, sizeof(text), name), factor,
		               decay);
	CKR_TRY(alloc_groups(c));
	c->run->group[i] = (struct ckr_param_group){ (float)factor,
	                                             (float)decay };
	run_forget_graphs(c);
	return CKR_OK;
}

static bool
has_backward(const struct ckr_program *p)
{
	for (uint32_t i = 0; i < p->ninstr; i++)
		if (p->instr[i].phase != CKR_FORWARD)
			return true;
	return false;
}

ckr_status
stepping_prepare(struct stepping *c, const struct ckr_hyper *hyper)
{
	CKR_TRY(check_hyper(c, hyper));
	hyper_set_env(c, hyper);
	c->env.training = has_backward(&c->lib->program[0]);
	c->finite.mode = !c->lib->optimizer ? CKR_NAN_GO
	                : hyper ? hyper->on_nan : CKR_NAN_STOP;
	c->finite.off = c->finite.mode == CKR_NAN_GO && !scale_can_fall(c);
	return world_make_copies(c->world);
}
