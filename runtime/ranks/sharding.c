#include "runtime/ranks/sharding.h"

/* Elements of a tensor, at most: sums and products of extents cannot overflow.
 */
#define MOST ((uint64_t)1 << 48)

/* Extent of a shard of segment k. */
static uint64_t
shard_extent(const struct sharding *p, uint32_t k)
{
	return (p->segment[k] + p->nshard - 1) / p->nshard;
}

static bool
multiply_count(uint64_t *product, int64_t by)
{
	return by >= 0
		&& !__builtin_mul_overflow(*product, (uint64_t)by, product)
		&& *product <= MOST;
}

bool
sharding_of(struct sharding *p, const struct ckr_placement *s, uint32_t ranks,
            int rank, const int64_t *dim)
{
	*p = (struct sharding){ .outer = 1, .inner = 1, .nreplica = 1 };
	if (s->kind != CKR_SHARD || s->axis >= rank || s->first_axis > s->axis
	    || !s->nsegment || s->nsegment > CKR_MAX_DIMS || !s->replication
	    || ranks % s->replication)
		return false;
	p->replication = s->replication;
	p->nsegment = s->nsegment;
	p->mirror = s->mirror;
	p->nshard = ranks / s->replication;
	for (int i = 0; i < rank; i++)
		if ((i < s->first_axis && !multiply_count(&p->outer, dim[i]))
		    || (i > s->axis && !multiply_count(&p->inner, dim[i])))
			return false;
	for (uint32_t k = 0; k < p->nsegment; k++) {
		p->segment[k] = s->segment[k];
		if (p->segment[k] > MOST)
			return false;
		p->whole += p->segment[k];
		p->local += shard_extent(p, k);
	}
	p->nrun = p->outer * p->nsegment * p->nshard;
	return true;
}

bool
sharding_of_tensor(struct sharding *p, const struct ckr_tensor *t,
                   uint32_t ranks, uint32_t replicas)
{
	const int64_t *dim = t->shard_of ? t->shard_of : t->dim;
	struct ckr_placement one = { .axis = (uint8_t)(t->rank - 1),
		.nsegment = 1, .replication = ranks, .segment = { 1 } };
	const struct ckr_placement *s = t->placement;

	if (t->rank == 0)
		return false;
	if (!s || s->kind != CKR_SHARD) {
		for (int i = 0; i < t->rank; i++)
			one.segment[0] *= (uint64_t)dim[i];
		s = &one;
	}
	if (!sharding_of(p, s, ranks, t->rank, dim))
		return false;
	if (!t->shard_of)
		return true;
	if (!replicas)
		return false;
	p->nreplica = replicas;
	p->replica_shard = (sharding_shard_elems(p) + replicas - 1) / replicas;
	p->nrun *= replicas;
	return true;
}

/* The part of a rank's run that lies in the shard of one replica. */
static struct shard_run
in_shard(const struct sharding *p, struct shard_run u, uint32_t replica)
{
	uint64_t from = replica * p->replica_shard;
	uint64_t to = from + p->replica_shard;
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

uint64_t
sharding_run_of(const struct sharding *p, uint64_t i, uint64_t shard)
{
	if (p->mirror && i % p->nsegment % 2)
		shard = p->nshard - 1 - shard;
	return i * p->nshard + shard;
}

static struct shard_run
rank_run(const struct sharding *p, uint64_t i)
{
	uint64_t q = i % p->nshard, seg = i / p->nshard % p->nsegment;
	uint64_t o = i / p->nshard / p->nsegment, whole = o * p->whole;
	uint64_t local = o * p->local, size = shard_extent(p, (uint32_t)seg);
	uint64_t extent = p->segment[seg], from = q * size;

	for (uint32_t k = 0; k < seg; k++) {
		whole += p->segment[k];
		local += shard_extent(p, k);
	}
	from = from < extent ? from : extent;
	size = size < extent - from ? size : extent - from;
	return (struct shard_run){ (whole + from) * p->inner, local * p->inner,
		                   size * p->inner,
		                   (uint32_t)(sharding_run_of(p, seg, q)
		                              % p->nshard) * p->replication,
		                   0 };
}

struct shard_run
sharding_run(const struct sharding *p, uint64_t i)
{
	if (!p->replica_shard)
		return rank_run(p, i);
	return in_shard(p, rank_run(p, i / p->nreplica),
	                (uint32_t)(i % p->nreplica));
}

bool
sharding_next_overlap(const struct sharding *from, const struct sharding *to,
                      struct shard_overlap *o)
{
	while (o->i < from->nrun && o->k < to->nrun) {
		struct shard_run u = sharding_run(from, o->i);
		struct shard_run v = sharding_run(to, o->k);
		uint64_t u_end = u.whole + u.n, v_end = v.whole + v.n;
		uint64_t at = o->at, end = u_end < v_end ? u_end : v_end;

		o->at = end > at ? end : at;
		o->i += o->at >= u_end;
		o->k += o->at >= v_end;
		if (at >= end)
			continue;
		o->from = u.rank;
		o->to = v.rank;
		o->x = u.local + at - u.whole;
		o->y = v.local + at - v.whole;
		o->n = end - at;
		return true;
	}
	return false;
}

struct shard_stride
sharding_runs_of_rank(const struct sharding *p, uint32_t rank, uint32_t replica)
{
	return (struct shard_stride){
		(uint64_t)(rank / p->replication) * p->nreplica
			+ (p->replica_shard ? replica % p->nreplica : 0),
		p->nshard * p->nreplica
	};
}

bool
sharding_rank_holds(const struct sharding *p, const struct shard_run *u,
                    uint32_t rank, uint32_t replica)
{
	return rank >= u->rank && rank < u->rank + p->replication
		&& (!p->replica_shard
		    || replica % p->nreplica == u->replica);
}

uint64_t
shard_run_part(const struct shard_run *u, uint64_t at, uint64_t n,
               uint64_t *first)
{
	uint64_t end = u->whole + u->n < at + n ? u->whole + u->n : at + n;

	*first = u->whole > at ? u->whole : at;
	return end > *first ? end - *first : 0;
}

uint64_t
sharding_longest_run(const struct sharding *p)
{
	uint64_t most = 0;

	for (uint32_t k = 0; k < p->nsegment; k++)
		if (shard_extent(p, k) > most)
			most = shard_extent(p, k);
	most *= p->inner;
	return p->replica_shard && p->replica_shard < most ? p->replica_shard
							   : most;
}

uint64_t
sharding_shard_elems(const struct sharding *p)
{
	return p->replica_shard ? p->replica_shard
				: p->outer * p->local * p->inner;
}
