/* Ranks of a tensor-parallel group, all in this process: their memory, whole
 * tensors out of and into what they hold, what moves between them.
 *
 * Ranks take turns: each carries out a step, then the next one, and only then
 * is anything moved.  Constants and inputs, which no step writes, lie in the
 * first rank's memory alone.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/model/comm.h"
#include "runtime/model/rt.h"

/* ---- memory ---- */

static bool
is_common(const ckr_ctx *c, const struct ckr_tensor *t)
{
	return t->flags & CKR_RESIDENT && t->offset >= c->common[0]
	       && t->offset < c->common[1];
}

void *
rt_at(const ckr_ctx *c, const struct bound *b, uint32_t rank,
      const struct ckr_tensor *t)
{
	const struct block *in = t->flags & CKR_RESIDENT ? c->resident
	                         : b->arena;

	return in[is_common(c, t) ? 0 : rank].p + t->offset;
}

static void **
operands(const ckr_ctx *c, const struct bound *b, uint32_t rank)
{
	const struct ckr_program *p = b->p;
	uint64_t n = 0;
	void **ptr;

	for (uint32_t i = 0; i < p->nstep; i++)
		if (n < (uint64_t)p->step[i].arg0 + p->step[i].narg)
			n = (uint64_t)p->step[i].arg0 + p->step[i].narg;
	ptr = malloc((n + 1) * sizeof(*ptr));
	if (!ptr)
		return NULL;
	for (uint64_t i = 0; i < n; i++)
		ptr[i] = p->arg[i] < 0 ? NULL
		         : rt_at(c, b, rank, &p->tensor[p->arg[i]]);
	return ptr;
}

bool
rt_point(const ckr_ctx *c, struct bound *b)
{
	FOR_RANKS (r, c) {
		free(b->ptr[r]);
		b->ptr[r] = operands(c, b, r);
		if (!b->ptr[r])
			return false;
	}
	return true;
}

ckr_status
rt_bind(ckr_ctx *c, struct bound *b, const struct ckr_program *p, bool paint,
        bool at_end)
{
	*b = (struct bound){ .p = p };
	b->arena = calloc(c->ranks, sizeof(*b->arena));
	b->ptr = calloc(c->ranks, sizeof(*b->ptr));
	if (!b->arena || !b->ptr)
		return rt_no_memory(c);
	FOR_RANKS (r, c)
		CKR_TRY(block_map(&b->arena[r], p->arena_bytes, paint, at_end,
		                  c->env.threads, &c->err));
	return rt_point(c, b) ? CKR_OK : rt_no_memory(c);
}

void
rt_unbind(const ckr_ctx *c, struct bound *b)
{
	FOR_RANKS (r, c) {
		if (b->arena)
			block_unmap(&b->arena[r]);
		if (b->ptr)
			free(b->ptr[r]);
	}
	free(b->arena);
	free(b->ptr);
	*b = (struct bound){ .p = NULL };
}

/* ---- whole tensors ---- */

static bool
is_cut(const struct ckr_tensor *t)
{
	return t->split && t->split->kind == CKR_CUT;
}

static struct pieces
pieces(const ckr_ctx *c, const struct ckr_tensor *t)
{
	struct pieces p;

	pieces_of(&p, t->split, c->ranks, t->rank, t->dim);
	return p;
}

struct ckr_tensor
rt_whole(const struct ckr_tensor *t)
{
	struct ckr_tensor w = *t;
	int64_t n = 1;

	w.split = NULL;
	if (is_cut(t)) {
		w.dim[t->split->axis] = 0;
		for (int k = 0; k < t->split->npart; k++)
			w.dim[t->split->axis] += (int64_t)t->split->part[k];
	}
	for (int i = w.rank - 1; i >= 0; i--) {
		w.stride[i] = n;
		n *= w.dim[i];
	}
	w.nbytes = rt_nbytes(&w);
	return w;
}

void *
rt_flat(const ckr_ctx *c, const struct bound *b, const struct ckr_tensor *t)
{
	return t->split || !rt_is_dense(t) ? NULL : rt_at(c, b, 0, t);
}

/* A rank's runs between the whole and its own elements, both dense. */
static void
move_runs(const ckr_ctx *c, const struct ckr_tensor *t, uint32_t rank,
          char *whole, char *local, bool gather)
{
	struct pieces p = pieces(c, t);
	uint64_t size = dtype_row[t->dtype].nbytes;

	for (uint64_t i = 0; i < p.nrun; i++) {
		struct piece_run u = pieces_run(&p, i);

		if (rank < u.rank || rank >= u.rank + p.shared)
			continue;
		memcpy(gather ? whole + u.whole * size : local + u.local * size,
		       gather ? local + u.local * size : whole + u.whole * size,
		       u.n * size);
	}
}

static void
gather(const ckr_ctx *c, const struct bound *b, const struct ckr_tensor *t,
       char *whole, char *local)
{
	FOR_RANKS (r, c) {
		rt_pack(t, rt_at(c, b, r, t), local);
		move_runs(c, t, r, whole, local, true);
	}
}

/* local: room for the summands of all ranks. */
static ckr_status
add_up(ckr_ctx *c, const struct bound *b, const struct ckr_tensor *t,
       void *whole, char *local)
{
	const void **x = malloc(c->ranks * sizeof(*x));

	if (!x)
		return rt_no_memory(c);
	FOR_RANKS (r, c) {
		x[r] = local + r * rt_nbytes(t);
		rt_pack(t, rt_at(c, b, r, t), local + r * rt_nbytes(t));
	}
	comm_sum(t->dtype, x, c->ranks, rt_nelem(t), whole);
	free(x);
	return CKR_OK;
}

ckr_status
rt_get(ckr_ctx *c, const struct bound *b, const struct ckr_tensor *t,
       void *dense)
{
	ckr_status s = CKR_OK;
	char *local;

	if (!t->split) {
		rt_pack(t, rt_at(c, b, 0, t), dense);
		return CKR_OK;
	}
	local = malloc(rt_nbytes(t) * c->ranks + 1);
	if (!local)
		return rt_no_memory(c);
	if (is_cut(t))
		gather(c, b, t, dense, local);
	else
		s = add_up(c, b, t, dense, local);
	free(local);
	return s;
}

/* A summand is all of it on one rank and zeros on the others. */
ckr_status
rt_put(ckr_ctx *c, const struct ckr_tensor *t, const void *dense)
{
	char *local = t->split ? calloc(1, rt_nbytes(t) + 1) : NULL;

	if (t->split && !local)
		return rt_no_memory(c);
	FOR_RANKS (r, c) {
		const void *from = t->split ? local : dense;

		if (is_cut(t)) {
			/* what a last piece lacks is zeros */
			memset(local, 0, rt_nbytes(t));
			move_runs(c, t, r, (char *)(uintptr_t)dense, local,
			          false);
		} else if (r == 0)
			from = dense;
		if (r == 0 || !is_common(c, t))
			rt_unpack(t, rt_at(c, &c->plan, r, t), from);
	}
	free(local);
	return CKR_OK;
}

ckr_status
rt_read(ckr_ctx *c, const struct bound *b, const struct ckr_tensor *t,
        const void **from, void **copy)
{
	struct ckr_tensor w = rt_whole(t);

	*copy = NULL;
	*from = rt_flat(c, b, t);
	if (*from)
		return CKR_OK;
	*from = *copy = malloc(w.nbytes + 1);
	return *copy ? rt_get(c, b, t, *copy) : rt_no_memory(c);
}

/* ---- steps ---- */

void
rt_comm(ckr_ctx *c, const struct bound *b, const struct ckr_step *s)
{
	const struct ckr_tensor *t = b->p->tensor;
	const int32_t *arg = b->p->arg + s->arg0;
	void *x[CKR_MAX_RANKS], *y[CKR_MAX_RANKS];
	struct comm m = { .what = s->comm, .tx = &t[arg[0]],
		.ty = &t[arg[1]], .x = x, .y = y, .ranks = c->ranks,
		.threads = c->env.threads };

	FOR_RANKS (r, c) {
		x[r] = b->ptr[r][s->arg0];
		y[r] = b->ptr[r][s->arg0 + 1];
	}
	comm_run(&m);
}

/* ---- tables ---- */

static bool
sane_tensor(const struct ckr_library *lib, const struct ckr_tensor *t)
{
	const struct ckr_split *s = t->split;
	struct pieces p;

	if (!s || s->kind == CKR_SUMMAND)
		return !s || t->kind != CKR_INPUT;
	if (t->kind == CKR_CONSTANT || t->kind == CKR_INPUT
	    || !pieces_of(&p, s, lib->ranks, t->rank, t->dim))
		return false;
	return rt_nelem(t) == pieces_room(&p);
}

static bool
sane_step(const struct ckr_library *lib, const struct ckr_program *p,
          const struct ckr_step *s)
{
	const int32_t *arg = p->arg + s->arg0;

	if (!s->comm)
		return true;
	return !s->run && s->narg == 2 && arg[0] >= 0 && arg[1] >= 0
	       && rt_is_dense(&p->tensor[arg[0]])
	       && rt_is_dense(&p->tensor[arg[1]])
	       && comm_sane(s->comm, lib->ranks, &p->tensor[arg[0]],
	                    &p->tensor[arg[1]]);
}

bool
rt_ranks_sane(const struct ckr_library *lib, const struct ckr_program *p)
{
	if (lib->ranks > CKR_MAX_RANKS)
		return false;
	for (uint32_t i = 0; i < p->ntensor; i++)
		if (!sane_tensor(lib, &p->tensor[i]))
			return false;
	for (uint32_t i = 0; i < p->nstep; i++)
		if (!sane_step(lib, p, &p->step[i]))
			return false;
	return true;
}
