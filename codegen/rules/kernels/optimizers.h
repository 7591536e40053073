/* Updates of parameters: the formulas of the optimizers that work element by
 * element, and what all updates share.
 *
 * 16-bit parameters and states are rounded at random, up with a probability
 * that is the part cut off: a step smaller than half a unit in the last place
 * would otherwise be lost each time, and the weights of a norm, which begin at
 * 1, would never move.  The halves of words that decide depend on seed, step,
 * parameter and element alone.
 *
 * CKR_OPTIMIZER(name, states), which the machine defines before, opens the
 * formula of the op `name` (runtime/support/optimizers.h) with the parameters
 *
 *     const struct ckr_step *s, float *p, float *m, float *v, float g
 *
 * of which m and v are the states as far as there are any, and g is the
 * gradient as it comes.
 */
#ifndef CODEGEN_RULES_KERNELS_OPTIMIZERS_H
#define CODEGEN_RULES_KERNELS_OPTIMIZERS_H

/* How a rank's shard of a parameter lies in the whole: shard number `shard`
 * with `size` of each segment of the sharded dim, `local` in all.  The update
 * begins with the shard's element `first`. */
struct ckr_shard {
	int64_t first, shard, inner, local;
	int nsegment;
	int64_t segment[CKR_MAX_DIMS], size[CKR_MAX_DIMS];
};

/* Place in the whole of element i of what is updated; *left: how many follow it
 * there as here, itself included. */
CKR_LANE uint64_t
ckr_shard_index(const struct ckr_shard *c, int64_t i, int64_t *left)
{
	int64_t row, at, whole = 0, n = 0;
	int k = 0;

	i += c->first;
	row = i / c->inner;
	at = row % c->local;
	for (; at >= c->size[k]; k++) {
		at -= c->size[k];
		n += c->segment[k];
	}
	for (int j = 0; j < c->nsegment; j++)
		whole += c->segment[j];
	*left = (c->size[k] - at) * c->inner - i % c->inner;
	n += c->shard * c->size[k] + at;
	return (uint64_t)((row / c->local * whole + n) * c->inner
	                  + i % c->inner);
}

/* Types of what is updated, of the gradient and of the states; stream of the
 * rounding, whose words are those of elements of the whole.  shard NULL: y is
 * not sharded.  copy: the type of a copy of the new parameter, rounded to
 * nearest; CKR_NONE: there is none. */
struct ckr_update_types {
	int y, g, state;
	uint32_t stream;
	const struct ckr_shard *shard;
	int copy;
};

/* Up or down at random, by the low bits of a word; cut: the bits of x that are
 * cut off. */
CKR_LANE float
ckr_round_random(float x, uint32_t word, uint32_t cut)
{
	uint32_t u = ckr_float_bits(x), r = (u + (word & cut)) & ~cut;

	return ckr_bits_float((u & 0x7f800000) == 0x7f800000 ? u : r);
}

/* The bits that a 16-bit type has no room for. */
CKR_LANE uint32_t
ckr_cut_off(int type)
{
	return type == CKR_BF16 ? 0xffff : 0x1fff;
}

/* ---- numbers of a step ---- */

/* The factor of gradients: clipping, and the inverse of the loss scale, which
 * the norm does not contain. */
CKR_LANE float
ckr_clip_scale(const float *norm, const struct ckr_env *env)
{
	float clip = norm && env->clip > 0 && *norm > env->clip
	             ? env->clip / *norm : 1.0f;

	return clip * env->unscale;
}

/* How a parameter is updated.  decay: without a decay of its own it has the
 * step's; coupled: decay is part of the gradient. */
struct ckr_way {
	int decay, coupled;
	struct ckr_param_group own;
};

CKR_LANE float
ckr_own_lr(const struct ckr_way *way, const struct ckr_env *env)
{
	return env->lr * way->own.lr;
}

CKR_LANE float
ckr_own_decay(const struct ckr_way *way, const struct ckr_env *env)
{
	return way->own.decay >= 0 ? way->own.decay
	       : way->decay ? env->weight_decay : 0.0f;
}

/* keep: what decay leaves of the parameter, pull: what it adds to the gradient;
 * an optimizer has one of both.  rate, root: lr and 1 / sqrt(v) without the
 * bias of averages that start at 0. */
struct ckr_step {
	float scale, lr, pull, keep, b1, b2, eps, momentum, rate, root;
	int coupled, nesterov;
};

CKR_LANE struct ckr_step
ckr_step_of(const float *norm, const struct ckr_way *way,
            const struct ckr_env *env)
{
	struct ckr_step s;

	s.scale = ckr_clip_scale(norm, env);
	s.lr = ckr_own_lr(way, env);
	s.pull = ckr_own_decay(way, env);
	s.keep = way->coupled ? 1.0f : 1.0f - s.lr * s.pull;
	s.b1 = env->beta1;
	s.b2 = env->beta2;
	s.eps = env->eps;
	s.momentum = env->momentum;
	s.rate = s.lr / env->c1;
	s.root = 1.0f / __builtin_sqrtf(env->c2);
	s.coupled = way->coupled;
	s.nesterov = env->nesterov;
	return s;
}

/* The gradient, with the decay if that is part of it. */
CKR_LANE float
ckr_step_grad(const struct ckr_step *s, float p, float g)
{
	return s->coupled ? g * s->scale + s->pull * p : g * s->scale;
}

/* ---- formulas ---- */

CKR_OPTIMIZER(sgd, 0)
{
	*p = *p * s->keep - s->lr * (g * s->scale);
}

/* SGD as PyTorch has it: decay is part of the gradient, and the first average
 * is the gradient itself, which starting from 0 makes it.  Sutskever et al.,
 * "On the importance of initialization and momentum", 2013, but for where lr
 * stands. */
CKR_OPTIMIZER(sgdm, 1)
{
	float d = g * s->scale + s->pull * *p;

	*m = s->momentum * *m + d;
	*p = *p - s->lr * (s->nesterov ? d + s->momentum * *m : *m);
}

/* Loshchilov and Hutter, "Decoupled weight decay regularization", 2019;
 * coupled: Adam. */
CKR_OPTIMIZER(adamw, 2)
{
	float d = ckr_step_grad(s, *p, g);

	*m = s->b1 * *m + (1.0f - s->b1) * d;
	*v = s->b2 * *v + (1.0f - s->b2) * (d * d);
	*p = *p * s->keep
		- s->rate * *m / (__builtin_sqrtf(*v) * s->root + s->eps);
}

/* Chen et al., "Symbolic discovery of optimization algorithms", 2023,
 * algorithm 2.  A NaN stays one. */
CKR_OPTIMIZER(lion, 1)
{
	float d = g * s->scale, c = s->b1 * *m + (1.0f - s->b1) * d;

	*m = s->b2 * *m + (1.0f - s->b2) * d;
	*p = *p * s->keep - s->lr * ckr_sign(c);
}

/* ---- averages ---- */

/* The average after an update that made p, as torch.lerp: from the nearer end,
 * so that a weight of 1 gives p. */
CKR_LANE float
ckr_ema_next(float average, float p, float weight)
{
	return weight < 0.5f ? average + weight * (p - average)
	                     : p - (p - average) * (1.0f - weight);
}

#endif
