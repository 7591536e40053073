/* Finite check with rollback: detects non-finite losses and gradients before an
 * update uses them, and restores the state before the step.
 *
 * The loss is checked when it is known, which is before any parameter has
 * changed; gradients are checked before the first update, or, where none is,
 * each as it comes.  Those of a scaled loss are checked in any case, as they
 * decide about the scale.  A library that updates inside the backward pass has
 * gradients that cannot be undone, so there the loss decides alone, and
 * stepping_check_finite finds what came of it.
 * Buffers that the forward pass writes (running statistics) are copied when a
 * step begins.
 */
#include "runtime/base/dtype.h"
#include "runtime/stepping/inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 14, HOST_PIECE = 1 << 20 };

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

/* The first byte of a tensor whose first element is at p; NULL: it has gaps,
 * which hold other values. */
static const char *
first_byte(const struct ckr_tensor *t, const char *p)
{
	int64_t from, to;

	tensor_reach(t, &from, &to);
	return (uint64_t)(to - from) == tensor_nbytes(t)
	       ? p - ((int64_t)t->offset - from) : NULL;
}

/* Whether the bytes of t at p are finite; *x: the first element, as they lie in
 * memory, that is not. */
static bool
is_finite_here(const struct stepping *c, const struct ckr_tensor *t,
               const char *p, double *x)
{
	uint64_t n = tensor_nelem(t);
	uint64_t at = first_nonfinite(t->dtype, p, n, c->env.threads);

	if (at == n)
		return true;
	*x = dtype_double(t->dtype, p + at * tensor_elem_bytes(t));
	/* the sign of a NaN tells nobody anything */
	*x = isnan(*x) ? (double)NAN : *x;
	return false;
}

/* Have a GPU check a tensor, unless it has gaps. */
static void
enqueue_check(struct stepping *c, const struct loaded_program *b, uint32_t r,
              const struct ckr_tensor *t)
{
	const char *p = first_byte(t, world_at(c->world, b, r, t));

	if (p)
		c->lib->finite(p, tensor_nelem(t), t->dtype, &c->env);
}

/* The same of bytes on a GPU, which has checked them: looked at here if they
 * are not. */
static bool
is_finite_on_gpu(struct stepping *c, const struct ckr_tensor *t, const char *p,
                 double *x)
{
	uint64_t n = tensor_nbytes(t);
	bool good = true;
	char *here;

	if (!env_found_nonfinite(c))
		return true;
	here = malloc(n + 1);
	if (here) {
		c->device->call->copy_d2h(c->device, here, p, n);
		good = is_finite_here(c, t, here, x);
		free(here);
	}
	return good;
}

/* The same of a tensor in a host block, piece by piece. */
static ckr_status
check_in_host(struct stepping *c, const struct ckr_tensor *t, const char *p,
              bool *good, double *x)
{
	uint64_t size = tensor_elem_bytes(t), n = tensor_nelem(t);
	uint64_t most = tensor_piece(t, HOST_PIECE);
	char *here = malloc(HOST_PIECE);
	ckr_status s = here ? CKR_OK : err_no_memory(c->err);

	for (uint64_t at = 0; at < n && *good && s == CKR_OK; at += most) {
		struct ckr_tensor part = tensor_part(t, at, n - at < most
		                                     ? n - at : most);

		s = world_pull(c->world, &part, p + at * size, here);
		*good = s != CKR_OK || is_finite_here(c, &part, here, x);
	}
	free(here);
	return s;
}

static bool
is_tensor_finite(struct stepping *c, const struct loaded_program *b,
                 const struct ckr_tensor *t, double *x)
{
	FOR_STAGE (r, c->world, t->stage) {
		const char *p = first_byte(t, world_at(c->world, b, r, t));

		if (p && c->device->deferred)
			enqueue_check(c, b, r, t);
		if (p && (c->device->deferred ? !is_finite_on_gpu(c, t, p, x)
		                              : !is_finite_here(c, t, p, x)))
			return false;
	}
	return true;
}

/* Of one that outlives steps, wherever it lies. */
static ckr_status
check_shared_tensor(struct stepping *c, const struct ckr_tensor *t, bool *good,
                    double *x)
{
	const struct loaded_program *b = &c->world->plan;

	*good = true;
	if (!(t->flags & CKR_HOST)) {
		*good = is_tensor_finite(c, b, t, x);
		return CKR_OK;
	}
	FOR_STAGE (r, c->world, t->stage)
		CKR_TRY(check_in_host(c, t, world_at(c->world, b, r, t), good,
		                      x));
	return CKR_OK;
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
may_run_unchecked(const struct stepping *c, int32_t i, uint32_t upto)
{
	const struct ckr_instr *s = &c->lib->program[0].instr[i];

	return (uint32_t)i < upto
	       || (c->device->deferred && s->phase != CKR_UPDATE);
}

/* Whether a step before `upto` writes over the shared tensor t. */
static bool
is_written_before(const struct stepping *c, const struct ckr_tensor *t,
                  uint32_t upto)
{
	const struct ckr_program *p = &c->lib->program[0];

	for (uint32_t i = c->lib->nshared; i < p->ntensor; i++) {
		const struct ckr_tensor *u = &p->tensor[i];

		/* a view lies there too, but is not written */
		if (u->flags & CKR_RESIDENT && u->ready >= 0
		    && may_run_unchecked(c, u->ready, upto)
		    && p->instr[u->ready].run && tensor_overlaps(u, t))
			return true;
	}
	return false;
}

ckr_status
finite_open(struct stepping *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	struct finite_check *g = &c->finite;
	uint32_t upto = program_commit(p);

	g->saved = calloc(c->lib->nshared + 1, sizeof(*g->saved));
	if (!g->saved)
		return err_no_memory(c->err);
	for (uint32_t i = 0; c->lib->optimizer && i < c->lib->nshared; i++)
		if (outlives_step(&p->tensor[i])
		    && is_written_before(c, &p->tensor[i], upto)) {
			g->saved[g->nsaved++] = i;
			g->nbytes += p->tensor[i].nbytes;
		}
	g->snapshot = device_alloc_pinned(c->device, g->nbytes
	                                  * c->world->count);
	return g->snapshot ? CKR_OK : device_no_memory(c->device, c->err);
}

void
finite_close(struct stepping *c)
{
	free(c->finite.saved);
	device_free_pinned(c->device, c->finite.snapshot);
}

/* Between them and their copy. */
static void
copy_saved(struct stepping *c, unsigned char *copy, bool back)
{
	const struct finite_check *f = &c->finite;

	for (uint32_t k = 0; k < f->nsaved * c->world->count; k++) {
		uint32_t i = f->saved[k % f->nsaved];
		const struct ckr_tensor *t = &c->lib->program[0].tensor[i];
		uint32_t r = k / f->nsaved;
		void *at;

		if (world_stage(c->world, r) != t->stage)
			continue;
		at = world_plan_at(c->world, r, t);
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
finite_save(struct stepping *c, unsigned char *copy)
{
	copy_saved(c, copy, false);
}

void
finite_restore(struct stepping *c, unsigned char *copy)
{
	copy_saved(c, copy, true);
}

bool
stepping_writes_early(const struct stepping *c, uint32_t i)
{
	bool written = false;

	for (uint32_t k = 0; k < c->finite.nsaved; k++)
		written |= c->finite.saved[k] == i;
	return written;
}

/* ---- checking ---- */

ckr_status
finite_check_loss(struct stepping *c, const struct loaded_program *b,
                  uint32_t step)
{
	const struct ckr_program *p = b->p;
	double loss;

	if (c->finite.off || p->loss < 0
	    || p->tensor[p->loss].ready != (int32_t)step)
		return CKR_OK;
	loss = loss_read(c, b);
	c->finite.nonfinite |= !isfinite(loss);
	if (isfinite(loss) || c->finite.mode == CKR_NAN_GO)
		return CKR_OK;
	return err_set(c->err, CKR_ENAN, "step %llu: the loss is not finite: "
	               "%g", (unsigned long long)c->progress->step + 1,
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
report_bad_gradient(struct stepping *c, const char *of, double x)
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
	return err_set(c->err, CKR_ENAN, "step %llu: the gradient of '%s' is "
	               "not finite: %g%s",
	               (unsigned long long)c->progress->step + 1,
	               err_name(name, sizeof(name), of), x, scale);
}

/* Whether gradients are checked before `step`.  Those of stages are before the
 * first update of any: updates of other stages have written over them. */
static bool
must_check_grads(const struct stepping *c, const struct ckr_program *p,
                 uint32_t step)
{
	return stepping_is_last(c) && !c->lib->nstage
	       && (p->apply == p->ninstr ? c->lib->loss_scaled
	                                : step == p->apply);
}

ckr_status
finite_check_grads(struct stepping *c, const struct loaded_program *b,
                   uint32_t step)
{
	return must_check_grads(c, b->p, step)
	       ? finite_check_waiting_grads(c, b, step) : CKR_OK;
}

/* Have a GPU check all gradients that wait before `step`. */
static void
enqueue_grad_checks(struct stepping *c, const struct loaded_program *b,
                    uint32_t step)
{
	struct ckr_joined_launch checks;

	instr_begin_joined(c, &checks);
	for (uint32_t i = 0; i < b->p->ntensor; i++) {
		const struct ckr_tensor *t = &b->p->tensor[i];

		if (is_pending_grad(b->p, t, step))
			FOR_STAGE (r, c->world, t->stage)
				enqueue_check(c, b, r, t);
	}
	instr_end_joined(c);
}

static bool
are_finite_on_gpu(struct stepping *c, const struct loaded_program *b,
                  uint32_t step)
{
	enqueue_grad_checks(c, b, step);
	return !env_found_nonfinite(c);
}

ckr_status
finite_check_waiting_grads(struct stepping *c, const struct loaded_program *b,
                           uint32_t step)
{
	const struct ckr_program *p = b->p;
	double x;

	if (c->finite.off || (c->device->deferred
	                      && are_finite_on_gpu(c, b, step)))
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
finite_enqueue(struct stepping *c, const struct loaded_program *b, uint32_t i)
{
	const struct ckr_program *p = b->p;

	if (p->loss >= 0 && p->tensor[p->loss].ready == (int32_t)i)
		enqueue_check(c, b, 0, &p->tensor[p->loss]);
	if (must_check_grads(c, p, i + 1))
		enqueue_grad_checks(c, b, i + 1);
}

void
finite_load(struct stepping *c)
{
	const struct loaded_program *b = &c->world->plan;

	for (uint32_t i = 0; i < b->p->ninstr; i++)
		finite_enqueue(c, b, i);
	/* other values may lie there by now */
	env_found_nonfinite(c);
}

/* A mask among the buffers may well hold infinities: what no step writes is
 * not checked. */
static ckr_status
find_nonfinite(struct stepping *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	char name[NAME_TEXT];
	bool good;
	double x;

	CKR_TRY(env_send(c));
	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		if (!outlives_step(t) || t->flags & CKR_FROZEN
		    || (t->kind == CKR_BUFFER
		        && !is_written_before(c, t, p->ninstr)))
			continue;
		CKR_TRY(check_shared_tensor(c, t, &good, &x));
		if (good)
			continue;
		return err_set(c->err, CKR_ENAN, "after step %llu '%s' is "
		               "not finite: %g",
		               (unsigned long long)c->progress->step,
		               err_name(name, sizeof(name), t->name), x);
	}
	return CKR_OK;
}

ckr_status
stepping_check_finite(struct stepping *c)
{
	return world_agree(c->world, find_nonfinite(c), "checking parameters");
}
