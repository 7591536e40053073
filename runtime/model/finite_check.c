/* Finite check with rollback: detects non-finite losses and gradients before an
 * update uses them, and restores the state before the step.
 *
 * The loss is checked when it is known, which is before any parameter has
 * changed; gradients are checked before the first update, or, where none is,
 * each as it comes.  Those of a scaled loss are checked in any case, as they
 * decide about the scale.  A library that updates inside the backward pass has
 * gradients that cannot be undone, so there the loss decides alone, and
 * ckr_check_finite finds what came of it.
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
block_has_nonfinite(const void *p, uint64_t n, int size, uint64_t mask)
{
	int bad = 0;

	switch (size) {
	case 2: ANY_SET(uint16_t) break;
	case 4: ANY_SET(uint32_t) break;
	default: ANY_SET(uint64_t) break;
	}
	return bad;
}

/* No parallel region with an if clause: OpenMP allocates memory even for a
 * region of one thread, and steps allocate nothing. */
static bool
any_nonfinite(const char *p, uint64_t n, int size, uint64_t mask, int threads)
{
	int bad = 0;

	if (n <= BLOCK)
		return block_has_nonfinite(p, n, size, mask);
#pragma omp parallel for schedule(static) num_threads(threads) \
	reduction(|:bad)
	for (uint64_t b = 0; b < n; b += BLOCK)
		bad |= block_has_nonfinite(p + b * (uint64_t)size,
		                           n - b < BLOCK ? n - b : BLOCK, size,
		                           mask);
	return bad;
}

/* The first of n elements that is not finite; n: none. */
static uint64_t
first_nonfinite(uint8_t dtype, const void *p, uint64_t n, int threads)
{
	int size = dtype_row[dtype].nbytes;
	uint64_t mask = exponent_bits(dtype), i = 0;
	const char *at = p;

	if (!mask || !any_nonfinite(at, n, size, mask, threads))
		return n;
	while (!block_has_nonfinite(at + i * (uint64_t)size, 1, size, mask))
		i++;
	return i;
}

/* Whether t is finite; *x: the first element, as they lie in memory, that is
 * not. */
static bool
is_rank_finite(const ckr_ctx *c, const struct ckr_tensor *t, const char *p,
               double *x)
{
	uint64_t n = rt_nelem(t), at, size = dtype_row[t->dtype].nbytes;
	int64_t from, to;

	rt_reach(t, &from, &to);
	/* gaps hold other values */
	if ((uint64_t)(to - from) != n * size)
		return true;
	p -= (int64_t)t->offset - from;
	at = first_nonfinite(t->dtype, p, n, c->env.threads);
	if (at == n)
		return true;
	*x = dtype_double(t->dtype, p + at * size);
	/* the sign of a NaN tells nobody anything */
	*x = isnan(*x) ? (double)NAN : *x;
	return false;
}

/* Have a GPU check a tensor, unless it has gaps. */
static void
enqueue_check(ckr_ctx *c, const struct ckr_tensor *t, const char *p)
{
	int64_t from, to;

	rt_reach(t, &from, &to);
	if ((uint64_t)(to - from) == rt_nbytes(t))
		c->lib->finite(p - ((int64_t)t->offset - from), rt_nelem(t),
		               t->dtype, &c->env);
}

/* The same of a tensor on a GPU: checked there, and here if it is not. */
static bool
is_finite_on_gpu(ckr_ctx *c, const struct ckr_tensor *t, const char *p,
                 double *x)
{
	uint64_t n = rt_nbytes(t);
	bool good = true;
	int64_t from, to;
	char *here;

	enqueue_check(c, t, p);
	if (!rt_found_nonfinite(c))
		return true;
	rt_reach(t, &from, &to);
	p -= (int64_t)t->offset - from;
	here = malloc(n + 1);
	if (here) {
		c->device->call->copy_d2h(c->device, here, p, n);
		good = is_rank_finite(c, t, here + ((int64_t)t->offset - from),
		                      x);
		free(here);
	}
	return good;
}

static bool
is_tensor_finite(ckr_ctx *c, const struct loaded_program *b,
                 const struct ckr_tensor *t, double *x)
{
	FOR_RANKS (r, c) {
		const char *at = rt_at(c, b, r, t);

		if (c->device->deferred ? !is_finite_on_gpu(c, t, at, x)
		                        : !is_rank_finite(c, t, at, x))
			return false;
	}
	return true;
}

/* ---- what a step writes before its loss is known ---- */

/* What outlives a step. */
static bool
outlives_step(const struct ckr_tensor *t)
{
	return t->kind == CKR_PARAM || t->kind == CKR_BUFFER
	       || (t->kind == CKR_STATE
	           && !(t->state && !strcmp(t->state, "grad")));
}

/* Whether step i may write before the check is done.  On a device, steps behind
 * the check run meanwhile, but for updates. */
static bool
may_run_unchecked(const ckr_ctx *c, int32_t i, uint32_t upto)
{
	const struct ckr_instr *s = &c->lib->program[0].instr[i];

	return (uint32_t)i < upto
	       || (c->device->deferred && s->phase != CKR_UPDATE);
}

/* Whether a step before `upto` writes over the shared tensor t. */
static bool
is_written_before(const ckr_ctx *c, const struct ckr_tensor *t, uint32_t upto)
{
	const struct ckr_program *p = &c->lib->program[0];
	int64_t from, to, lo, hi;

	rt_reach(t, &from, &to);
	for (uint32_t i = c->lib->nshared; i < p->ntensor; i++) {
		const struct ckr_tensor *u = &p->tensor[i];

		/* a view lies there too, but is not written */
		if (!(u->flags & CKR_RESIDENT) || u->ready < 0
		    || !may_run_unchecked(c, u->ready, upto)
		    || !p->instr[u->ready].run)
			continue;
		rt_reach(u, &lo, &hi);
		if (lo < to && from < hi)
			return true;
	}
	return false;
}

uint32_t
rt_commit_step(const struct ckr_program *p)
{
	uint32_t at = p->apply;

	if (p->loss >= 0 && p->tensor[p->loss].ready >= (int32_t)at)
		at = (uint32_t)p->tensor[p->loss].ready + 1;
	return at;
}

ckr_status
finite_open(ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	struct finite_check *g = &c->finite;
	uint32_t upto = rt_commit_step(p);

	g->saved = calloc(c->lib->nshared + 1, sizeof(*g->saved));
	if (!g->saved)
		return rt_no_memory(c);
	for (uint32_t i = 0; c->lib->optimizer && i < c->lib->nshared; i++)
		if (outlives_step(&p->tensor[i])
		    && is_written_before(c, &p->tensor[i], upto)) {
			g->saved[g->nsaved++] = i;
			g->nbytes += p->tensor[i].nbytes;
		}
	g->snapshot = c->device->call->alloc_pinned(c->device, g->nbytes
	                                     * c->world.count + 1);
	if (!g->snapshot)
		return device_failed(c->device, &c->err) ? CKR_ENOMEM
		       : rt_no_memory(c);
	memset(g->snapshot, 0, g->nbytes * c->world.count);
	return CKR_OK;
}

void
finite_close(ckr_ctx *c)
{
	free(c->finite.saved);
	if (c->finite.snapshot)
		c->device->call->free_pinned(c->device, c->finite.snapshot);
	c->finite = (struct finite_check){ .nsaved = 0 };
}

static void
copy_saved(ckr_ctx *c, unsigned char *copy, bool back)
{
	for (uint32_t k = 0; k < c->finite.nsaved * c->world.count; k++) {
		uint32_t i = c->finite.saved[k % c->finite.nsaved];
		const struct ckr_tensor *t = &c->lib->program[0].tensor[i];
		void *at = rt_at(c, &c->plan, k / c->finite.nsaved, t);

		if (back)
			c->device->call->copy_h2d(c->device, at, copy,
			                          t->nbytes);
		else
			c->device->call->copy_d2h_async(c->device, copy, at,
			                                t->nbytes);
		copy += t->nbytes;
	}
}

void
finite_save(ckr_ctx *c)
{
	c->finite.nonfinite = c->finite.overflow = false;
	copy_saved(c, c->finite.snapshot, false);
}

void
finite_roll_back(ckr_ctx *c)
{
	copy_saved(c, c->finite.snapshot, true);
}

void
finite_save_to(ckr_ctx *c, unsigned char *copy)
{
	copy_saved(c, copy, false);
}

void
finite_restore(ckr_ctx *c, unsigned char *copy)
{
	copy_saved(c, copy, true);
}

/* ---- checking ---- */

ckr_status
finite_check_loss(ckr_ctx *c, const struct loaded_program *b, uint32_t step)
{
	const struct ckr_program *p = b->p;
	double loss;

	if (c->finite.off || p->loss < 0
	    || p->tensor[p->loss].ready != (int32_t)step)
		return CKR_OK;
	loss = rt_scalar(c, b);
	c->finite.nonfinite |= !isfinite(loss);
	if (isfinite(loss) || c->finite.mode == CKR_NAN_GO)
		return CKR_OK;
	return err_set(&c->err, CKR_ENAN, "step %llu: the loss is not finite: "
	               "%g", (unsigned long long)c->step + 1,
	               isnan(loss) ? (double)NAN : loss);
}

/* Whether gradient t waits before `step` for the updates, or, if there are
 * none, has just come. */
static bool
is_pending_grad(const struct ckr_program *p, const struct ckr_tensor *t,
                uint32_t step)
{
	int32_t at = (int32_t)step;

	if (t->kind != CKR_GRAD || t->param < 0 || t->ready < 0)
		return false;
	return p->apply == p->ninstr ? t->ready == at - 1
	       : t->ready < at && t->last >= at;
}

/* A gradient is not: x. */
static ckr_status
report_bad_gradient(ckr_ctx *c, const char *of, double x)
{
	char name[NAME_TEXT], scale[64] = "";

	if (c->lib->loss_scaled)
		snprintf(scale, sizeof(scale), " at a loss scale of %g",
		         (double)c->env.loss_scale);
	/* of a loss that is not finite none could be */
	c->finite.overflow = !c->finite.nonfinite && scale_can_fall(c);
	c->finite.nonfinite = true;
	if (!c->finite.overflow && c->finite.mode == CKR_NAN_GO)
		return CKR_OK;
	return err_set(&c->err, CKR_ENAN, "step %llu: the gradient of '%s' is "
	               "not finite: %g%s", (unsigned long long)c->step + 1,
	               err_name(name, sizeof(name), of),
	               isnan(x) ? (double)NAN : x, scale);
}

/* Whether gradients are checked before `step`. */
static bool
must_check_grads(const ckr_ctx *c, const struct ckr_program *p, uint32_t step)
{
	return c->env.micro + 1 == c->env.nmicro
	       && (p->apply == p->ninstr ? c->lib->loss_scaled
	                                : step == p->apply);
}

ckr_status
finite_check_grads(ckr_ctx *c, const struct loaded_program *b, uint32_t step)
{
	const struct ckr_program *p = b->p;
	double x;

	if (c->finite.off || !must_check_grads(c, p, step))
		return CKR_OK;
	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		if (is_pending_grad(p, t, step)
		    && !is_tensor_finite(c, b, t, &x))
			return report_bad_gradient(c, p->tensor[t->param].name,
			                           x);
	}
	return CKR_OK;
}

void
finite_enqueue(ckr_ctx *c, const struct loaded_program *b, uint32_t i)
{
	const struct ckr_program *p = b->p;
	bool due = must_check_grads(c, p, i + 1);

	if (p->loss >= 0 && p->tensor[p->loss].ready == (int32_t)i)
		enqueue_check(c, &p->tensor[p->loss],
		              rt_at(c, b, 0, &p->tensor[p->loss]));
	for (uint32_t k = 0; k < p->ntensor && due; k++)
		if (is_pending_grad(p, &p->tensor[k], i + 1))
			enqueue_check(c, &p->tensor[k],
			              rt_at(c, b, 0, &p->tensor[k]));
}

/* A mask among the buffers may well hold infinities: what no step writes is
 * not checked. */
static ckr_status
find_nonfinite(ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	char name[NAME_TEXT];
	double x;

	CKR_TRY(rt_send_env(c));
	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		if (!outlives_step(t) || t->flags & CKR_FROZEN
		    || (t->kind == CKR_BUFFER
		        && !is_written_before(c, t, p->ninstr))
		    || is_tensor_finite(c, &c->plan, t, &x))
			continue;
		return err_set(&c->err, CKR_ENAN, "after step %llu '%s' is "
		               "not finite: %g", (unsigned long long)c->step,
		               err_name(name, sizeof(name), t->name),
		               isnan(x) ? (double)NAN : x);
	}
	return CKR_OK;
}

ckr_status
ckr_check_finite(ckr_ctx *c)
{
	CKR_TRY(rt_need_quiet(c));
	return peers_agree(c, find_nonfinite(c), "checking parameters");
}
