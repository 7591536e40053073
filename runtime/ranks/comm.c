/* Collectives between ranks of one process: each walks over the runs of shards,
 * or over blocks for sums of whole tensors.
 *
 * Sums and maxima are taken in the order of ranks, so that their bits depend on
 * nothing else; 16-bit floats are widened and rounded once.
 */
#include "runtime/ranks/comm.h"

#include <string.h>

#include "runtime/base/dtype.h"
#include "runtime/support/half.h"

enum {
	BLOCK = 2048,                   /* elements handled together */
	SMALL = 1 << 15,                /* not worth waking threads for */
};

/* ---- adding ---- */

struct sum {
	uint8_t dtype;
	bool max;
	uint32_t ranks;
	const void *const *x;
};

#define PLAIN(x) (x)
#define SIMD _Pragma("omp simd")
/* Elements at .. at + n - 1 of all ranks into y, n at most BLOCK.  simd: a
 * pragma for loops that every compiler makes vectors of. */
#define REDUCE(type, wide, load, store, simd) do { \
	wide acc[BLOCK]; \
	const type *first = (const type *)s->x[0] + at; \
	type *to = y; \
	for (uint64_t i = 0; i < n; i++) \
		acc[i] = load(first[i]); \
	for (uint32_t r = 1; r < s->ranks; r++) { \
		const type *from = (const type *)s->x[r] + at; \
		if (s->max) { \
			for (uint64_t i = 0; i < n; i++) { \
				wide b = load(from[i]); \
				/* a NaN wins */ \
				acc[i] = acc[i] > b || acc[i] != acc[i] \
				         ? acc[i] : b; \
			} \
		} else { \
			simd \
			for (uint64_t i = 0; i < n; i++) \
				acc[i] += load(from[i]); \
		} \
	} \
	for (uint64_t i = 0; i < n; i++) \
		to[i] = (type)store(acc[i]); \
} while (0)

static void
reduce_block(const struct sum *s, uint64_t at, uint64_t n, void *y)
{
	switch (s->dtype) {
	case CKR_F32: REDUCE(float, float, PLAIN, PLAIN, SIMD); break;
	case CKR_F64: REDUCE(double, double, PLAIN, PLAIN, SIMD); break;
	case CKR_F16:
		REDUCE(uint16_t, float, half_to_float, float_to_half, );
		break;
	case CKR_BF16:
		REDUCE(uint16_t, float, bf16_to_float, float_to_bf16, );
		break;
	case CKR_I64: REDUCE(int64_t, uint64_t, (uint64_t), PLAIN, ); break;
	case CKR_I32: REDUCE(int32_t, int64_t, PLAIN, PLAIN, ); break;
	default: break;
	}
}

static bool
can_reduce(uint8_t dtype, bool max)
{
	switch (dtype) {
	case CKR_F32: case CKR_F64: case CKR_F16: case CKR_BF16: case CKR_I32:
		return true;
	case CKR_I64:
		return !max;            /* added as unsigned */
	default:
		return false;
	}
}

void
comm_reduce(uint8_t dtype, bool max, const void *const *x, uint32_t ranks,
            uint64_t n, void *y)
{
	struct sum s = { .dtype = dtype, .max = max, .ranks = ranks, .x = x };

	for (uint64_t at = 0; at < n; at += BLOCK)
		reduce_block(&s, at, n - at < BLOCK ? n - at : BLOCK,
		             (char *)y + at * dtype_row[dtype].nbytes);
}

/* ---- collectives ---- */

static uint64_t
comm_elem_bytes(const struct comm *c)
{
	return dtype_row[c->tx->dtype].nbytes;
}

uint64_t
comm_nelem(const struct ckr_tensor *t)
{
	uint64_t n = 1;

	for (int i = 0; i < t->rank; i++)
		n *= (uint64_t)t->dim[i];
	return n;
}

static struct sum
sum_of(const struct comm *c)
{
	return (struct sum){ .dtype = c->tx->dtype, .max = c->what->max,
		.ranks = c->ranks, .x = (const void *const *)c->x };
}

static void
local_all_reduce(const struct comm *c)
{
	const struct sum s = sum_of(c);
	uint64_t size = comm_elem_bytes(c), n = comm_nelem(c->tx);

#pragma omp parallel for num_threads(c->threads) if (n > SMALL)
	for (uint64_t at = 0; at < n; at += BLOCK) {
		uint64_t left = n - at < BLOCK ? n - at : BLOCK;
		char *first = (char *)c->y[0] + at * size;

		reduce_block(&s, at, left, first);
		for (uint32_t r = 1; r < c->ranks; r++)
			memcpy((char *)c->y[r] + at * size, first,
			       left * size);
	}
}

/* Part of a run, at most BLOCK elements. */
static void
copy_run_block(const struct comm *c, const struct sharding *p,
               struct shard_run u)
{
	uint64_t size = comm_elem_bytes(c), nbytes = u.n * size;
	uint64_t whole = u.whole * size, local = u.local * size;
	uint32_t end = u.rank + p->replication;
	const struct sum s = sum_of(c);
	_Alignas(8) char buf[BLOCK * 8];

	switch (c->what->kind) {
	case CKR_ALL_GATHER:
		for (uint32_t r = 0; r < c->ranks; r++)
			memcpy((char *)c->y[r] + whole,
			       (char *)c->x[u.rank] + local, nbytes);
		break;
	case CKR_REDUCE_SCATTER:
		reduce_block(&s, u.whole, u.n, buf);
		for (uint32_t r = u.rank; r < end; r++)
			memcpy((char *)c->y[r] + local, buf, nbytes);
		break;
	case CKR_LOCAL_SHARD:
		for (uint32_t r = u.rank; r < end; r++)
			memcpy((char *)c->y[r] + local,
			       (char *)c->x[r] + whole, nbytes);
		break;
	case CKR_LOCAL_SHARD_GRAD:
		for (uint32_t r = u.rank; r < end; r++)
			memcpy((char *)c->y[r] + whole,
			       (char *)c->x[r] + local, nbytes);
		break;
	default:
		break;
	}
}

static void
copy_runs(const struct comm *c, const struct sharding *p)
{
	uint64_t blocks = (sharding_longest_run(p) + BLOCK - 1) / BLOCK;
	uint64_t n = comm_nelem(c->tx);

#pragma omp parallel for num_threads(c->threads) if (n > SMALL)
	for (uint64_t i = 0; i < p->nrun * blocks; i++) {
		struct shard_run u = sharding_run(p, i / blocks);
		uint64_t at = i % blocks * BLOCK;

		if (at >= u.n)
			continue;
		u.whole += at;
		u.local += at;
		u.n = u.n - at < BLOCK ? u.n - at : BLOCK;
		copy_run_block(c, p, u);
	}
}

static void
copy_overlaps(const struct comm *c, const struct sharding *from,
              const struct sharding *to)
{
	uint64_t size = comm_elem_bytes(c);
	struct shard_overlap o = { 0 };

	while (sharding_next_overlap(from, to, &o))
		for (uint32_t r = o.to; r < o.to + to->replication; r++)
			memcpy((char *)c->y[r] + o.y * size,
			       (char *)c->x[o.from] + o.x * size, o.n * size);
}

/* Zeros where nothing is moved to. */
static void
zero_results(const struct comm *c)
{
	for (uint32_t r = 0; r < c->ranks; r++)
		memset(c->y[r], 0, comm_nelem(c->ty) * comm_elem_bytes(c));
}

static bool
is_padded(const struct sharding *p)
{
	return p->local * p->nshard != p->whole;
}

bool
comm_is_still(const struct comm *c)
{
	return c->ranks == 1 && c->x[0] == c->y[0];
}

void
comm_run(const struct comm *c)
{
	struct sharding from, to;

	if (comm_nelem(c->tx) == 0 || comm_is_still(c))
		return;
	if (c->what->kind == CKR_ALL_REDUCE) {
		local_all_reduce(c);
		return;
	}
	sharding_of(&from, c->what->placement, c->ranks, c->tx->rank,
	            c->tx->dim);
	to = from;
	if (c->what->kind == CKR_ALL_TO_ALL)
		sharding_of(&to, c->what->to, c->ranks, c->ty->rank,
		            c->ty->dim);
	if (c->what->kind == CKR_LOCAL_SHARD_GRAD
	    || (c->what->kind != CKR_ALL_GATHER && is_padded(&to)))
		zero_results(c);
	if (c->what->kind == CKR_ALL_TO_ALL)
		copy_overlaps(c, &from, &to);
	else
		copy_runs(c, &from);
}

double
comm_sent(const struct ckr_comm *w, uint32_t ranks, const struct ckr_tensor *x,
          const struct ckr_tensor *y)
{
	double once = (double)(w->kind == CKR_ALL_GATHER ? y : x)->nbytes;
	int rounds = w->kind == CKR_ALL_REDUCE ? 2 : 1;

	if (w->kind == CKR_LOCAL_SHARD || w->kind == CKR_LOCAL_SHARD_GRAD)
		return 0;
	return once * rounds * (ranks - 1) / ranks;
}

/* ---- tables ---- */

static bool
fits_sharding(const struct ckr_tensor *t, const struct ckr_placement *s,
              uint32_t ranks, bool whole, struct sharding *p)
{
	return s && sharding_of(p, s, ranks, t->rank, t->dim)
		&& comm_nelem(t)
		== (whole ? p->outer * p->whole * p->inner
	                  : sharding_shard_elems(p));
}

bool
comm_sane(const struct ckr_comm *w, uint32_t ranks,
          const struct ckr_tensor *x, const struct ckr_tensor *y)
{
	struct sharding p, q;
	bool to_whole = w->kind == CKR_ALL_GATHER
		|| w->kind == CKR_LOCAL_SHARD_GRAD;

	if (x->dtype != y->dtype || x->dtype == CKR_NONE)
		return false;
	if (w->kind == CKR_ALL_REDUCE)
		return can_reduce(x->dtype, w->max)
		       && comm_nelem(x) == comm_nelem(y);
	if (w->kind == CKR_REDUCE_SCATTER && !can_reduce(x->dtype, false))
		return false;
	if (w->kind == CKR_ALL_TO_ALL)
		return fits_sharding(x, w->placement, ranks, false, &p)
			&& fits_sharding(y, w->to, ranks, false, &q)
			&& p.outer * p.whole * p.inner
			== q.outer * q.whole * q.inner;
	return w->kind <= CKR_LOCAL_SHARD_GRAD
		&& fits_sharding(x, w->placement, ranks, !to_whole, &p)
		&& fits_sharding(y, w->placement, ranks, to_whole, &q);
}
