/* Whole tensors and the pieces of them that ranks hold, as runs of elements
 * that are contiguous in both: all transfers between the two consist of
 * them. */
#include "runtime/ranks/pieces.h"

/* No tensor has more elements. */
#define MOST ((uint64_t)1 << 48)

/* Extent of the pieces of a segment. */
static uint64_t
per_rank_extent(const struct pieces *p, uint32_t k)
{
	return (p->part[k] + p->npiece - 1) / p->npiece;
}

static bool
multiply_count(uint64_t *product, int64_t by)
{
	return by >= 0 && !__builtin_mul_overflow(*product, (uint64_t)by,
	                                          product)
	       && *product <= MOST;
}

bool
pieces_of(struct pieces *p, const struct ckr_split *s, uint32_t ranks,
          int rank, const int64_t *dim)
{
	*p = (struct pieces){ .outer = 1, .inner = 1, .nshard = 1 };
	if (s->kind != CKR_SHARD || s->axis >= rank || s->first_axis > s->axis
	    || !s->nsegment || s->nsegment > CKR_MAX_DIMS || !s->replication
	    || ranks % s->replication)
		return false;
	p->shared = s->replication;
	p->npart = s->nsegment;
	p->npiece = ranks / s->replication;
	for (int i = 0; i < rank; i++)
		if ((i < s->first_axis && !multiply_count(&p->outer, dim[i]))
		    || (i > s->axis && !multiply_count(&p->inner, dim[i])))
			return false;
	for (uint32_t k = 0; k < p->npart; k++) {
		p->part[k] = s->segment[k];
		if (p->part[k] > MOST)
			return false;
		p->whole += p->part[k];
		p->local += per_rank_extent(p, k);
	}
	p->nrun = p->outer * p->npart * p->npiece;
	return true;
}

bool
pieces_of_tensor(struct pieces *p, const struct ckr_tensor *t, uint32_t ranks,
                 uint32_t replicas)
{
	const int64_t *dim = t->shard_of ? t->shard_of : t->dim;
	struct ckr_split one = { .axis = (uint8_t)(t->rank - 1),
		.nsegment = 1, .replication = ranks, .segment = { 1 } };
	const struct ckr_split *s = t->split;

	if (t->rank == 0)
		return false;
	if (!s || s->kind != CKR_SHARD) {
		for (int i = 0; i < t->rank; i++)
			one.segment[0] *= (uint64_t)dim[i];
		s = &one;
	}
	if (!pieces_of(p, s, ranks, t->rank, dim))
		return false;
	if (!t->shard_of)
		return true;
	if (!replicas)
		return false;
	p->nshard = replicas;
	p->shard = (pieces_padded_elems(p) + replicas - 1) / replicas;
	p->nrun *= replicas;
	return true;
}

/* Of a rank's run, what is in one replica's piece. */
static struct piece_run
in_shard(const struct pieces *p, struct piece_run u, uint32_t replica)
{
	uint64_t from = replica * p->shard, to = from + p->shard;
	uint64_t end = u.local + u.n, at = u.local;

	if (from > at)
		at = from < end ? from : end;
	if (to < end)
		end = to > at ? to : at;
	u.whole += at - u.local;
	u.n = end - at;
	u.local = at > from ? at - from : 0;
	u.replica = replica;
	return u;
}

static struct piece_run
rank_run(const struct pieces *p, uint64_t i)
{
	uint64_t piece = i % p->npiece, end = i / p->npiece % p->npart;
	uint64_t o = i / p->npiece / p->npart, whole = o * p->whole;
	uint64_t local = o * p->local, size = per_rank_extent(p, (uint32_t)end);
	uint64_t part = p->part[end], from = piece * size;

	for (uint32_t k = 0; k < end; k++) {
		whole += p->part[k];
		local += per_rank_extent(p, k);
	}
	from = from < part ? from : part;
	size = size < part - from ? size : part - from;
	return (struct piece_run){ (whole + from) * p->inner,
	                           local * p->inner, size * p->inner,
	                           (uint32_t)piece * p->shared, 0 };
}

struct piece_run
pieces_run(const struct pieces *p, uint64_t i)
{
	if (!p->shard)
		return rank_run(p, i);
	return in_shard(p, rank_run(p, i / p->nshard),
	                (uint32_t)(i % p->nshard));
}

struct piece_step
pieces_held(const struct pieces *p, uint32_t rank, uint32_t replica)
{
	return (struct piece_step){ (uint64_t)(rank / p->shared) * p->nshard
	                            + (p->shard ? replica : 0),
	                            p->npiece * p->nshard };
}

bool
pieces_hold(const struct pieces *p, const struct piece_run *u, uint32_t rank,
            uint32_t replica)
{
	return rank >= u->rank && rank < u->rank + p->shared
	       && (!p->shard || replica == u->replica);
}

uint64_t
pieces_longest(const struct pieces *p)
{
	uint64_t most = 0;

	for (uint32_t k = 0; k < p->npart; k++)
		if (per_rank_extent(p, k) > most)
			most = per_rank_extent(p, k);
	most *= p->inner;
	return p->shard && p->shard < most ? p->shard : most;
}

uint64_t
pieces_padded_elems(const struct pieces *p)
{
	return p->shard ? p->shard : p->outer * p->local * p->inner;
}
