/* Losses and gradients that are not numbers: found before an update uses
 * them, and the state put back to what it was before the step.
 *
 * The loss is looked at when it is known, which is before any parameter has
 * changed; gradients are looked at before the first update, or, where none is,
 * each as it comes.  Those of a scaled loss are looked at in any case, as they
 * decide about the scale.  A library that updates inside the backward pass has
 * gradients that no one could take back, so there the loss decides alone, and
 * ckr_finite finds what came of it.
 * Buffers that the forward pass writes (running statistics) are copied when a
 * step begins.
 */
#include "runtime/model/peers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 14 };

/* ---- numbers ---- */

/* Bits of the exponent, all of which are set where a value is not finite. */
static uint64_t
exponent_bits(uint8_t dtype)
{
	switch (dtype) {
	case CKR_F32: return 0x7f800000;
	case CKR_F64: return (uint64_t)0x7ff << 52;
	case CKR_F16: return 0x7c00;
	case CKR_BF16: return 0x7f80;
	default: return 0;
	}
}

#define ANY_SET(type) \
	_Pragma("omp simd reduction(|:bad)") \
	for (uint64_t i = 0; i < n; i++) { \
		type u; \
		memcpy(&u, (const char *)p + i * sizeof(u), sizeof(u)); \
		bad |= (u & (type)mask) == (type)mask; \
	}

static bool
block_is_bad(const void *p, uint64_t n, int size, uint64_t mask)
{
	int bad = 0;

	switch (size) {
	case 2: ANY_SET(uint16_t) break;
	case 4: ANY_SET(uint32_t) break;
	default: ANY_SET(uint64_t) break;
	}
	return bad;
}

/* Not a parallel region with an if: OpenMP's run time takes memory for one
 * that runs on one thread. */
static bool
any_bad(const char *p, uint64_t n, int size, uint64_t mask, int threads)
{
	int bad = 0;

	if (n <= BLOCK)
		return block_is_bad(p, n, size, mask);
#pragma omp parallel for schedule(static) num_threads(threads) \
	reduction(|:bad)
	for (uint64_t b = 0; b < n; b += BLOCK)
		bad |= block_is_bad(p + b * (uint64_t)size,
		                    n - b < BLOCK ? n - b : BLOCK, size, mask);
	return bad;
}

/* The first of n elements that is not finite; n: none. */
static uint64_t
first_bad(uint8_t dtype, const void *p, uint64_t n, int threads)
{
	int size = dtype_row[dtype].nbytes;
	uint64_t mask = exponent_bits(dtype), i = 0;
	const char *at = p;

	if (!mask || !any_bad(at, n, size, mask, threads))
		return n;
	while (!block_is_bad(at + i * (uint64_t)size, 1, size, mask))
		i++;
	return i;
}

/* Whether t is finite; *x: the first element, as they lie in memory, that is
 * not. */
static bool
part_is_finite(const ckr_ctx *c, const struct ckr_tensor *t, const char *p,
               double *x)
{
	uint64_t n = rt_nelem(t), at, size = dtype_row[t->dtype].nbytes;
	int64_t from, to;

	rt_reach(t, &from, &to);
	/* gaps hold other values */
	if ((uint64_t)(to - from) != n * size)
		return true;
	p -= (int64_t)t->offset - from;
	at = first_bad(t->dtype, p, n, c->env.threads);
	if (at == n)
		return true;
	*x = dtype_double(t->dtype, p + at * size);
	/* the sign of a NaN tells nobody anything */
	*x = isnan(*x) ? (double)NAN : *x;
	return false;
}

/* Have a GPU look at a tensor, unless it has gaps. */
static void
watch(ckr_ctx *c, const struct ckr_tensor *t, const char *p)
{
	int64_t from, to;

	rt_reach(t, &from, &to);
	if ((uint64_t)(to - from) == rt_nbytes(t))
		c->lib->finite(p - ((int64_t)t->offset - from), rt_nelem(t),
		               t->dtype, &c->env);
}

/* The same of a tensor on a GPU: looked at there, and here if it is not. */
static bool
is_finite_there(ckr_ctx *c, const struct ckr_tensor *t, const char *p,
                double *x)
{
	uint64_t n = rt_nbytes(t);
	bool good = true;
	int64_t from, to;
	char *here;

	watch(c, t, p);
	if (!rt_found_bad(c))
		return true;
	rt_reach(t, &from, &to);
	p -= (int64_t)t->offset - from;
	here = malloc(n + 1);
	if (here) {
		c->device->call->get(c->device, here, p, n);
		good = part_is_finite(c, t, here + ((int64_t)t->offset - from),
		                      x);
		free(here);
	}
	return good;
}

static bool
is_finite(ckr_ctx *c, const struct bound *b, const struct ckr_tensor *t,
          double *x)
{
	FOR_RANKS (r, c) {
		const char *at = rt_at(c, b, r, t);

		if (c->device->host ? !part_is_finite(c, t, at, x)
		                    : !is_finite_there(c, t, at, x))
			return false;
	}
	return true;
}

/* ---- what a step writes before its loss is known ---- */

/* What outlives a step. */
static bool
lasts(const struct ckr_tensor *t)
{
	return t->kind == CKR_PARAM || t->kind == CKR_BUFFER
	       || (t->kind == CKR_STATE
	           && !(t->state && !strcmp(t->state, "grad")));
}

/* Whether step i may write before the guard has looked.  What a device is
 * given at once goes on behind that, but for updates. */
static bool
is_early(const ckr_ctx *c, int32_t i, uint32_t upto)
{
	const struct ckr_step *s = &c->lib->program[0].step[i];

	return (uint32_t)i < upto
	       || (!c->device->host && s->phase != CKR_UPDATE);
}

/* Whether a step before `upto` writes over the shared tensor t. */
static bool
is_written(const ckr_ctx *c, const struct ckr_tensor *t, uint32_t upto)
{
	const struct ckr_program *p = &c->lib->program[0];
	int64_t from, to, lo, hi;

	rt_reach(t, &from, &to);
	for (uint32_t i = c->lib->nshared; i < p->ntensor; i++) {
		const struct ckr_tensor *u = &p->tensor[i];

		/* a view lies there too, but is not written */
		if (!(u->flags & CKR_RESIDENT) || u->ready < 0
		    || !is_early(c, u->ready, upto)
		    || !p->step[u->ready].run)
			continue;
		rt_reach(u, &lo, &hi);
		if (lo < to && from < hi)
			return true;
	}
	return false;
}

uint32_t
rt_commits_at(const struct ckr_program *p)
{
	uint32_t at = p->apply;

	if (p->loss >= 0 && p->tensor[p->loss].ready >= (int32_t)at)
		at = (uint32_t)p->tensor[p->loss].ready + 1;
	return at;
}

ckr_status
guard_open(ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	struct guard *g = &c->guard;
	uint32_t upto = rt_commits_at(p);

	g->held = calloc(c->lib->nshared + 1, sizeof(*g->held));
	if (!g->held)
		return rt_no_memory(c);
	for (uint32_t i = 0; c->lib->optimizer && i < c->lib->nshared; i++)
		if (lasts(&p->tensor[i])
		    && is_written(c, &p->tensor[i], upto)) {
			g->held[g->nheld++] = i;
			g->nbytes += p->tensor[i].nbytes;
		}
	g->copy = c->device->call->take_host(c->device, g->nbytes
	                                     * c->world.count + 1);
	if (!g->copy)
		return device_failed(c->device, &c->err) ? CKR_ENOMEM
		       : rt_no_memory(c);
	memset(g->copy, 0, g->nbytes * c->world.count);
	return CKR_OK;
}

void
guard_close(ckr_ctx *c)
{
	free(c->guard.held);
	if (c->guard.copy)
		c->device->call->drop_host(c->device, c->guard.copy);
	c->guard = (struct guard){ .nheld = 0 };
}

static void
copy_held(ckr_ctx *c, unsigned char *copy, bool back)
{
	for (uint32_t k = 0; k < c->guard.nheld * c->world.count; k++) {
		uint32_t i = c->guard.held[k % c->guard.nheld];
		const struct ckr_tensor *t = &c->lib->program[0].tensor[i];
		void *at = rt_at(c, &c->plan, k / c->guard.nheld, t);

		if (back)
			c->device->call->put(c->device, at, copy, t->nbytes);
		else
			c->device->call->fetch(c->device, copy, at, t->nbytes);
		copy += t->nbytes;
	}
}

void
guard_begin(ckr_ctx *c)
{
	c->guard.bad = c->guard.overflow = false;
	copy_held(c, c->guard.copy, false);
}

void
guard_undo(ckr_ctx *c)
{
	copy_held(c, c->guard.copy, true);
}

void
guard_hold(ckr_ctx *c, unsigned char *copy)
{
	copy_held(c, copy, false);
}

void
guard_return(ckr_ctx *c, unsigned char *copy)
{
	copy_held(c, copy, true);
}

/* ---- looking ---- */

ckr_status
guard_loss(ckr_ctx *c, const struct bound *b, uint32_t step)
{
	const struct ckr_program *p = b->p;
	double loss;

	if (c->guard.lax || p->loss < 0
	    || p->tensor[p->loss].ready != (int32_t)step)
		return CKR_OK;
	loss = rt_scalar(c, b);
	c->guard.bad |= !isfinite(loss);
	if (isfinite(loss) || c->guard.mode == CKR_NAN_GO)
		return CKR_OK;
	return err_set(&c->err, CKR_ENAN, "step %llu: the loss is not finite: "
	               "%g", (unsigned long long)c->step + 1,
	               isnan(loss) ? (double)NAN : loss);
}

/* Whether gradient t waits before `step` for the updates, or, if there are
 * none, has just come. */
static bool
waits(const struct ckr_program *p, const struct ckr_tensor *t, uint32_t step)
{
	int32_t at = (int32_t)step;

	if (t->kind != CKR_GRAD || t->owner < 0 || t->ready < 0)
		return false;
	return p->apply == p->nstep ? t->ready == at - 1
	       : t->ready < at && t->last >= at;
}

/* A gradient is not: x. */
static ckr_status
bad_gradient(ckr_ctx *c, const char *of, double x)
{
	char name[NAME_TEXT], scale[64] = "";

	if (c->lib->loss_scaled)
		snprintf(scale, sizeof(scale), " at a loss scale of %g",
		         (double)c->env.loss_scale);
	/* of a loss that is not finite none could be */
	c->guard.overflow = !c->guard.bad && scale_can_fall(c);
	c->guard.bad = true;
	if (!c->guard.overflow && c->guard.mode == CKR_NAN_GO)
		return CKR_OK;
	return err_set(&c->err, CKR_ENAN, "step %llu: the gradient of '%s' is "
	               "not finite: %g%s", (unsigned long long)c->step + 1,
	               err_name(name, sizeof(name), of),
	               isnan(x) ? (double)NAN : x, scale);
}

/* Whether gradients are looked at before `step`. */
static bool
grads_are_due(const ckr_ctx *c, const struct ckr_program *p, uint32_t step)
{
	return c->env.micro + 1 == c->env.nmicro
	       && (p->apply == p->nstep ? c->lib->loss_scaled
	                                : step == p->apply);
}

ckr_status
guard_grads(ckr_ctx *c, const struct bound *b, uint32_t step)
{
	const struct ckr_program *p = b->p;
	double x;

	if (c->guard.lax || !grads_are_due(c, p, step))
		return CKR_OK;
	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		if (waits(p, t, step) && !is_finite(c, b, t, &x))
			return bad_gradient(c, p->tensor[t->owner].name, x);
	}
	return CKR_OK;
}

void
guard_watch(ckr_ctx *c, const struct bound *b, uint32_t i)
{
	const struct ckr_program *p = b->p;
	bool due = grads_are_due(c, p, i + 1);

	if (p->loss >= 0 && p->tensor[p->loss].ready == (int32_t)i)
		watch(c, &p->tensor[p->loss],
		      rt_at(c, b, 0, &p->tensor[p->loss]));
	for (uint32_t k = 0; k < p->ntensor && due; k++)
		if (waits(p, &p->tensor[k], i + 1))
			watch(c, &p->tensor[k],
			      rt_at(c, b, 0, &p->tensor[k]));
}

/* A mask among the buffers may well hold infinities: what no step writes is
 * not looked at. */
static ckr_status
find_bad(ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	char name[NAME_TEXT];
	double x;

	CKR_TRY(rt_send_env(c));
	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		if (!lasts(t) || t->flags & CKR_FROZEN
		    || (t->kind == CKR_BUFFER
		        && !is_written(c, t, p->nstep))
		    || is_finite(c, &c->plan, t, &x))
			continue;
		return err_set(&c->err, CKR_ENAN, "after step %llu '%s' is "
		               "not finite: %g", (unsigned long long)c->step,
		               err_name(name, sizeof(name), t->name),
		               isnan(x) ? (double)NAN : x);
	}
	return CKR_OK;
}

ckr_status
ckr_finite(ckr_ctx *c)
{
	CKR_TRY(rt_need_quiet(c));
	return peers_agree(c, find_bad(c), "looking at parameters");
}
