#include "runtime/ranks/copy_schedule.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/dtype.h"
#include "runtime/base/mem.h"

/* ---- copies ---- */

static bool
is_next_row(const struct strided_copy *m, uint64_t from, uint64_t to)
{
	return from == m->from + m->rows * m->from_pitch
	       && to == m->to + m->rows * m->to_pitch;
}

/* Whether n bytes lengthen the copy, or are a row more of it. */
static bool
extend_copy(struct strided_copy *m, uint64_t from, uint64_t to, uint64_t n)
{
	if (m->rows == 1 && from == m->from + m->width
	    && to == m->to + m->width) {
		m->width += n;
		return true;
	}
	if (n != m->width)
		return false;
	if (m->rows == 1 && from >= m->from + n && to >= m->to + n) {
		m->from_pitch = from - m->from;
		m->to_pitch = to - m->to;
	} else if (m->rows == 1 || !is_next_row(m, from, to))
		return false;
	m->rows++;
	return true;
}

/* last: where copies of its kind went on, UINT32_MAX if there is none. */
static bool
append_copy(struct copy_list *list, uint32_t *last, uint64_t from, uint64_t to,
            uint64_t n)
{
	void *more;

	if (n == 0
	    || (*last != UINT32_MAX
	        && extend_copy(&list->one[*last], from, to, n)))
		return true;
	more = mem_append(list->one, list->n, sizeof(*list->one));
	if (!more)
		return false;
	list->one = more;
	*last = list->n;
	list->one[list->n++] = (struct strided_copy){ from, to, n, 1, 0, 0 };
	return true;
}

void
schedule_free(struct copy_schedule *r)
{
	free(r->pack.one);
	free(r->unpack.one);
	free(r->span);
	free(r->out);
	*r = (struct copy_schedule){ .kind = SCHED_LOCAL_SHARD };
}

/* ---- shards of a whole tensor ---- */

/* Append copies between shard q of the whole tensor and the same shard at
 * offset `at` of the other side. */
static bool
copy_shard(struct copy_list *list, const struct sharding *p, uint64_t q,
           uint64_t at, uint64_t size, bool to_whole)
{
	uint64_t outer = p->nshard * p->nsegment;

	for (uint64_t k = 0; k < p->nsegment; k++) {
		uint32_t last = UINT32_MAX;

		for (uint64_t i = sharding_run_of(p, k, q); i < p->nrun;
		     i += outer) {
			struct shard_run u = sharding_run(p, i);
			uint64_t w = u.whole * size, z = at + u.local * size;

			if (!append_copy(list, &last, to_whole ? z : w,
			                 to_whole ? w : z, u.n * size))
				return false;
		}
	}
	return true;
}

static bool
copy_shards(struct copy_list *list, const struct sharding *p, uint64_t size,
            uint64_t apart, bool to_whole)
{
	for (uint64_t q = 0; q < p->nshard; q++)
		if (!copy_shard(list, p, q, q * apart, size, to_whole))
			return false;
	return true;
}

/* The copies between the whole tensor and this rank's shard. */
static bool
schedule_local_shard(struct copy_schedule *r, const struct sharding *p,
                     uint32_t rank, uint64_t size, bool grad)
{
	r->kind = SCHED_LOCAL_SHARD;
	r->clear_y = grad || p->local * p->nshard != p->whole;
	return copy_shard(&r->unpack, p, rank / p->replication, 0, size, grad);
}

/* Whether every shard is one run; *even: and all have the same length. */
static bool
collect_spans(struct copy_schedule *r, const struct sharding *p, uint64_t size,
              bool *even)
{
	if (p->nrun != p->nshard)
		return false;
	*even = p->replication == 1;
	for (uint64_t q = 0; q < p->nshard; q++) {
		struct shard_run u = sharding_run(p, q);

		r->span[q] = (struct byte_range){ u.whole * size, u.n * size };
		*even &= u.n * size == r->shard_bytes;
	}
	return true;
}

static bool
schedule_gather(struct copy_schedule *r, const struct sharding *p,
                uint32_t ranks, uint64_t size)
{
	bool even;

	if (collect_spans(r, p, size, &even)) {
		r->kind = even ? SCHED_ALL_GATHER : SCHED_BROADCAST;
		return true;
	}
	r->kind = SCHED_ALL_GATHER;
	r->unpacks = true;
	r->workspace = ranks * r->shard_bytes;
	return copy_shards(&r->unpack, p, size, p->replication * r->shard_bytes,
	                   true);
}

/* Ranks that hold the same shard must get the same bits, so one of them sums.
 */
static bool
schedule_scatter(struct copy_schedule *r, const struct sharding *p,
                 uint32_t rank, uint64_t size)
{
	uint64_t n, q = rank / p->replication;
	bool even;

	if (collect_spans(r, p, size, &even)) {
		n = r->span[q].n;
		r->kind = even ? SCHED_REDUCE_SCATTER : SCHED_REDUCE;
		r->tail = (struct byte_range){ n, r->shard_bytes - n };
		return true;
	}
	r->kind = p->replication == 1 ? SCHED_REDUCE_SCATTER : SCHED_REDUCE;
	r->packs = r->clear_workspace = true;
	r->workspace = p->nshard * r->shard_bytes;
	for (uint64_t k = 0; k < p->nshard; k++)
		r->span[k] = (struct byte_range){ k * r->shard_bytes,
			                          r->shard_bytes };
	return copy_shards(&r->pack, p, size, r->shard_bytes, false);
}

/* ---- shards to other shards ---- */

/* Bytes counted so far to and from a rank, and their last copies. */
struct peer_progress {
	uint64_t out, in;
	uint32_t last_out, last_in;
};

/* What rank b gets; count: it is only counted. */
static bool
count_or_copy(struct copy_schedule *r, struct peer_progress *m, uint32_t rank,
              const struct shard_overlap *o, uint32_t b, uint64_t size,
              bool count)
{
	struct peer_progress *to = &m[b], *from = &m[o->from];
	uint64_t n = o->n * size;
	bool ok = true;

	if (o->from == rank) {
		if (!count)
			ok = append_copy(&r->pack, &to->last_out, o->x * size,
			                 r->out[b].at + to->out, n);
		to->out += n;
	}
	if (ok && b == rank) {
		if (!count)
			ok = append_copy(&r->unpack, &from->last_in,
			                 r->in[o->from].at + from->in,
			                 o->y * size, n);
		from->in += n;
	}
	return ok;
}

static bool
schedule_overlaps(struct copy_schedule *r, struct peer_progress *m,
                  const struct sharding *from, const struct sharding *to,
                  uint32_t rank, uint64_t size, bool count)
{
	uint32_t ranks = (uint32_t)(from->nshard * from->replication);
	struct shard_overlap o = { 0 };
	bool ok = true;

	for (uint32_t k = 0; k < ranks; k++)
		m[k] = (struct peer_progress){ 0, 0, UINT32_MAX, UINT32_MAX };
	while (ok && sharding_next_overlap(from, to, &o))
		for (uint32_t b = o.to; b < o.to + to->replication && ok; b++)
			ok = count_or_copy(r, m, rank, &o, b, size, count);
	return ok;
}

/* Bytes that a rank keeps are not sent: `in` of the rank itself is its `out`.
 */
static bool
schedule_exchange(struct copy_schedule *r, const struct sharding *from,
                  const struct sharding *to, uint32_t ranks, uint32_t rank,
                  uint64_t size)
{
	struct peer_progress *m = calloc(ranks, sizeof(*m));
	bool ok;

	r->kind = SCHED_EXCHANGE;
	r->packs = r->unpacks = r->clear_y = true;
	r->out = calloc(2 * (size_t)ranks, sizeof(*r->out));
	if (!m || !r->out) {
		free(m);
		return false;
	}
	r->in = r->out + ranks;
	schedule_overlaps(r, m, from, to, rank, size, true);
	for (uint32_t k = 0; k < ranks; k++) {
		r->out[k] = (struct byte_range){ r->workspace, m[k].out };
		r->workspace += m[k].out;
	}
	for (uint32_t k = 0; k < ranks; k++) {
		r->in[k] = (struct byte_range){ r->workspace, m[k].in };
		if (k == rank)
			r->in[k].at = r->out[k].at;
		else
			r->workspace += m[k].in;
	}
	ok = schedule_overlaps(r, m, from, to, rank, size, false);
	free(m);
	return ok;
}

/* ---- all ---- */

bool
schedule_build(struct copy_schedule *r, const struct ckr_comm *w,
               uint32_t ranks, uint32_t rank, const struct ckr_tensor *x,
               const struct ckr_tensor *y)
{
	uint64_t size = dtype_row[x->dtype].nbytes;
	struct sharding p, to;

	*r = (struct copy_schedule){ .kind = SCHED_ALL_REDUCE };
	if (w->kind == CKR_ALL_REDUCE)
		return true;
	sharding_of(&p, w->placement, ranks, x->rank, x->dim);
	r->nshard = (uint32_t)p.nshard;
	r->replication = p.replication;
	r->shard_bytes = sharding_shard_elems(&p) * size;
	if (w->kind == CKR_ALL_GATHER || w->kind == CKR_REDUCE_SCATTER) {
		r->span = calloc(p.nshard, sizeof(*r->span));
		if (!r->span)
			return false;
	}
	switch (w->kind) {
	case CKR_ALL_GATHER:
		return schedule_gather(r, &p, ranks, size);
	case CKR_REDUCE_SCATTER:
		return schedule_scatter(r, &p, rank, size);
	case CKR_ALL_TO_ALL:
		sharding_of(&to, w->to, ranks, y->rank, y->dim);
		return schedule_exchange(r, &p, &to, ranks, rank, size);
	default:
		return schedule_local_shard(r, &p, rank, size,
		                            w->kind == CKR_LOCAL_SHARD_GRAD);
	}
}
