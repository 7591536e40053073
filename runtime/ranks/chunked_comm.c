/* Collectives between processes, in chunks that fit into buffers.  The poll
 * that finds that a chunk has arrived begins the next one, so that ranks
 * compute meanwhile.
 *
 * Sums are taken here: the rank that owns a share of the result adds the
 * ranks' operands in the order of ranks, as comm.c does.  So bits depend
 * neither on the size of chunks nor on the order of arrival.  A chunk is the
 * same range of each rank's shard; where the last shard is shorter, the rest is
 * zeros.
 */
#include "runtime/ranks/chunked_comm.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/dtype.h"

enum {
	BLOCK = 4096,                   /* elements added together */
	SMALL = 1 << 15,                /* not worth waking threads for */
	SHORT = 4096                    /* bytes that all send to all */
};

static uint64_t
element_bytes(const struct chunked_comm *b)
{
	return dtype_row[b->tx->dtype].nbytes;
}

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Elements of a chunk if a buffer holds `parts` chunks. */
static uint64_t
max_chunk(uint64_t parts, uint64_t size)
{
	return PG_BUFFER / parts / size / 16 * 16;
}

static void
set_count(struct counts *c, uint32_t rank, uint64_t at, uint64_t nbytes)
{
	c->count[rank] = (int)nbytes;
	c->at[rank] = (int)at;
}

size_t
chunked_state_bytes(uint32_t ranks)
{
	return ranks * (2 * sizeof(uint64_t) + 4 * sizeof(int));
}

static void
lay_out_state(struct chunked_comm *b)
{
	uint64_t *pair = b->state;
	int *count = (int *)(pair + 2 * (size_t)b->ranks);

	b->seen = (struct pairs){ pair, pair + b->ranks };
	b->sent = (struct counts){ count, count + b->ranks };
	count += 2 * (size_t)b->ranks;
	b->received = (struct counts){ count, count + b->ranks };
}

/* This rank's `received` count of bytes to all ranks. */
static ckr_status
begin_allgather(struct chunked_comm *b, const void *from, void *to,
                struct err *e)
{
	struct transport_side side = { to, b->received.count, b->received.at };

	return pg_begin_allgather(b->team, b->group, from,
	                          b->received.count[b->rank], &side, &b->task,
	                          e);
}

/* `sent` to each, `received` from each into the buffer. */
static ckr_status
begin_all_to_all(struct chunked_comm *b, const void *from, struct err *e)
{
	struct transport_side out = { (void *)(uintptr_t)from, b->sent.count,
		                      b->sent.at };
	struct transport_side in = { b->in, b->received.count, b->received.at };

	return pg_begin_alltoall(b->team, b->group, &out, &in, &b->task, e);
}

/* ---- sums ---- */

/* Reduce n elements of each rank, which lie `pitch` bytes apart. */
static void
reduce_received(const struct chunked_comm *b, const char *in, uint64_t pitch,
                uint8_t dtype, bool max, uint64_t n, void *y)
{
	uint64_t size = dtype_row[dtype].nbytes;

#pragma omp parallel for num_threads(b->threads) if (n > SMALL)
	for (uint64_t at = 0; at < n; at += BLOCK) {
		const void *x[CKR_MAX_GROUP];

		for (uint32_t r = 0; r < b->ranks; r++)
			x[r] = in + r * pitch + at * size;
		comm_reduce(dtype, max, x, b->ranks, min_u64(n - at, BLOCK),
		            (char *)y + at * size);
	}
}

static void
set_equal_counts(struct counts *c, uint32_t ranks, uint64_t nbytes)
{
	for (uint32_t r = 0; r < ranks; r++)
		set_count(c, r, r * nbytes, nbytes);
}

ckr_status
chunked_sum(const struct chunked_comm *b, uint8_t dtype, const void *x,
            uint64_t n, void *y, struct err *e)
{
	uint64_t nbytes = n * dtype_row[dtype].nbytes;
	struct chunked_comm sum = *b;
	struct transport_side side = { .base = b->team->in };
	ckr_status status;

	sum.state = malloc(chunked_state_bytes(b->ranks));
	if (!sum.state)
		return err_no_memory(e);
	lay_out_state(&sum);
	set_equal_counts(&sum.received, b->ranks, nbytes);
	side.count = sum.received.count;
	side.at = sum.received.at;
	sum.in = b->team->in;
	status = pg_allgather(b->team, b->group, x, (int)nbytes, &side,
	                      &b->task, e);
	if (status == CKR_OK)
		reduce_received(&sum, sum.in, nbytes, dtype, false, n, y);
	free(sum.state);
	return status;
}

/* Number of elements of a chunk that rank r sums; *at: the first one. */
static uint64_t
chunk_share(const struct chunked_comm *b, uint32_t r, uint64_t *at)
{
	uint64_t per = (b->n + b->ranks - 1) / b->ranks;

	*at = min_u64(r * per, b->n);
	return min_u64(per, b->n - *at);
}

static void
set_share_counts(const struct chunked_comm *b, struct counts *c)
{
	uint64_t at, k;

	for (uint32_t r = 0; r < b->ranks; r++) {
		k = chunk_share(b, r, &at);
		set_count(c, r, at * element_bytes(b), k * element_bytes(b));
	}
}

/* Every rank gets all operands, or each rank sums a share and sends it to the
 * others. */
static ckr_status
begin_sum(struct chunked_comm *b, struct err *e)
{
	uint64_t size = element_bytes(b), at;
	const char *x = b->x + b->at * size;

	if (b->whole) {
		set_equal_counts(&b->received, b->ranks, b->n * size);
		return begin_allgather(b, x, b->in, e);
	}
	if (b->summed) {
		set_share_counts(b, &b->received);
		return begin_allgather(b, b->out, b->y + b->at * size, e);
	}
	set_share_counts(b, &b->sent);
	set_equal_counts(&b->received, b->ranks,
	                 chunk_share(b, b->rank, &at) * size);
	return begin_all_to_all(b, x, e);
}

static void
end_sum(struct chunked_comm *b)
{
	bool max = b->what->max;
	uint64_t size = element_bytes(b), at;

	if (b->whole) {
		reduce_received(b, b->in, b->n * size, b->tx->dtype, max, b->n,
		                b->y + b->at * size);
		return;
	}
	if (!b->summed) {
		uint64_t n = chunk_share(b, b->rank, &at);

		reduce_received(b, b->in, n * size, b->tx->dtype, max, n,
		                b->out);
	}
	b->summed = !b->summed;
}

/* ---- shards ---- */

/* Copy the chunk of all shards between the whole tensor and a buffer that has
 * one shard after the other, so many bytes apart. */
static void
copy_chunk(struct chunked_comm *b, char *whole, char *buf, uint64_t pitch,
           bool to_whole)
{
	const struct sharding *p = &b->from;
	uint64_t size = element_bytes(b), end = b->at + b->n;

	for (uint64_t i = b->run; i < p->nrun; i++) {
		struct shard_run u = sharding_run(p, i);
		uint64_t lo = u.local > b->at ? u.local : b->at;
		uint64_t hi = min_u64(u.local + u.n, end);
		uint64_t q = u.rank / p->replication;
		char *w = whole + (u.whole + lo - u.local) * size;
		char *z = buf + q * pitch + (lo - b->at) * size;

		if (u.local >= end)
			break;
		/* runs of one place on all ranks stay together */
		if (i % p->nshard == 0)
			b->run = i;
		if (lo < hi)
			memcpy(to_whole ? w : z, to_whole ? z : w,
			       (hi - lo) * size);
	}
}

static ckr_status
begin_gather(struct chunked_comm *b, struct err *e)
{
	uint64_t nbytes = b->n * element_bytes(b);
	uint32_t shared = b->from.replication;

	for (uint32_t r = 0; r < b->ranks; r++)
		set_count(&b->received, r, r / shared * nbytes,
		          r % shared ? 0 : nbytes);
	return begin_allgather(b, b->x + b->at * element_bytes(b), b->in, e);
}

static ckr_status
begin_scatter(struct chunked_comm *b, struct err *e)
{
	uint64_t nbytes = b->n * element_bytes(b);

	for (uint32_t r = 0; r < b->ranks; r++)
		set_count(&b->sent, r, r / b->from.replication * nbytes,
		          nbytes);
	set_equal_counts(&b->received, b->ranks, nbytes);
	memset(b->out, 0, b->from.nshard * nbytes);
	copy_chunk(b, (char *)(uintptr_t)b->x, b->out, nbytes, false);
	return begin_all_to_all(b, b->out, e);
}

/* A rank's shard of the whole tensor, or its gradient: zeros around it. */
static void
copy_local_shard(const struct chunked_comm *b)
{
	const struct sharding *p = &b->from;
	uint64_t size = element_bytes(b);
	bool grad = b->what->kind == CKR_LOCAL_SHARD_GRAD;

	memset(b->y, 0, comm_nelem(b->ty) * size);
	for (uint64_t i = 0; i < p->nrun / p->nshard; i++) {
		struct shard_run u = sharding_run(p, sharding_run_of(
			p, i, b->rank / p->replication));

		memcpy(b->y + (grad ? u.whole : u.local) * size,
		       b->x + (grad ? u.local : u.whole) * size, u.n * size);
	}
}

/* ---- joined ---- */

enum { PART_ALIGN = 64 };

bool
chunked_join(struct joined_comm *p, struct joined_comm *last, uint32_t ranks)
{
	struct sharding s;

	sharding_of(&s, p->what->placement, ranks, p->tx->rank, p->tx->dim);
	p->nbytes = sharding_shard_elems(&s) * dtype_row[p->tx->dtype].nbytes;
	p->nbytes = (p->nbytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
	p->at = last ? last->at + last->nbytes : 0;
	if (s.replication > 1 || p->at + p->nbytes > PG_BUFFER / ranks)
		return false;
	if (last)
		last->next = p;
	return true;
}

/* Bytes of a rank's parts, which lie together in buffers. */
static uint64_t
joined_pitch(const struct chunked_comm *b)
{
	const struct joined_comm *last = b->joined;

	while (last->next)
		last = last->next;
	return last->at + last->nbytes;
}

/* p alone, in a chunk that is all of its shard. */
static struct chunked_comm
one_joined(const struct chunked_comm *b, const struct joined_comm *p)
{
	struct chunked_comm one = *b;

	one.what = p->what;
	one.tx = p->tx;
	one.at = one.run = 0;
	sharding_of(&one.from, p->what->placement, b->ranks, p->tx->rank,
	            p->tx->dim);
	one.n = sharding_shard_elems(&one.from);
	return one;
}

static ckr_status
begin_joined(struct chunked_comm *b, struct err *e)
{
	bool gathers = b->what->kind == CKR_ALL_GATHER;
	uint64_t pitch = joined_pitch(b);

	memset(b->out, 0, gathers ? pitch : b->ranks * pitch);
	for (const struct joined_comm *p = b->joined; p; p = p->next) {
		struct chunked_comm one = one_joined(b, p);

		if (gathers)
			memcpy(b->out + p->at, p->x,
			       one.n * element_bytes(&one));
		else
			copy_chunk(&one, (char *)(uintptr_t)p->x,
			           b->out + p->at, pitch, false);
	}
	set_equal_counts(&b->sent, b->ranks, pitch);
	set_equal_counts(&b->received, b->ranks, pitch);
	return gathers ? begin_allgather(b, b->out, b->in, e)
	       : begin_all_to_all(b, b->out, e);
}

static void
end_joined(struct chunked_comm *b)
{
	uint64_t pitch = joined_pitch(b);

	for (const struct joined_comm *p = b->joined; p; p = p->next) {
		struct chunked_comm one = one_joined(b, p);

		if (p->what->kind == CKR_ALL_GATHER)
			copy_chunk(&one, p->y, b->in + p->at, pitch, true);
		else
			reduce_received(&one, b->in + p->at, pitch,
			                p->tx->dtype, false, one.n, p->y);
	}
}

/* ---- shards to other shards ---- */

/* How many of the n elements from `seen` on are in this chunk.  *skip: elements
 * before it; *at: its place in the buffer. */
static uint64_t
clip_to_chunk(const struct chunked_comm *b, uint64_t seen, uint64_t n,
              uint64_t *skip, uint64_t *at)
{
	uint64_t lo = seen > b->at ? seen : b->at;
	uint64_t hi = min_u64(seen + n, b->at + b->n);

	*skip = lo - seen;
	*at = lo - b->at;
	return lo < hi ? hi - lo : 0;
}

/* What rank r gets: into the buffer, or out of it. */
static void
copy_overlap(struct chunked_comm *b, const struct shard_overlap *o, uint32_t r,
             bool receive)
{
	uint64_t size = element_bytes(b), skip, at, k;

	if (o->from == b->rank && !receive) {
		k = clip_to_chunk(b, b->seen.out[r], o->n, &skip, &at);
		memcpy(b->out + (r * b->n + at) * size,
		       b->x + (o->x + skip) * size, k * size);
		b->seen.out[r] += o->n;
	}
	if (r == b->rank) {
		k = clip_to_chunk(b, b->seen.in[o->from], o->n, &skip, &at);
		if (receive)
			memcpy(b->y + (o->y + skip) * size,
			       b->in + (o->from * b->n + at) * size, k * size);
		b->seen.in[o->from] += o->n;
	}
}

static void
walk_overlaps(struct chunked_comm *b, bool receive)
{
	struct shard_overlap o = { 0 };

	memset(b->seen.out, 0, b->ranks * sizeof(*b->seen.out));
	memset(b->seen.in, 0, b->ranks * sizeof(*b->seen.in));
	while (sharding_next_overlap(&b->from, &b->to, &o))
		for (uint32_t r = o.to; r < o.to + b->to.replication; r++)
			copy_overlap(b, &o, r, receive);
}

static uint64_t
overlap_elems(const struct chunked_comm *b, uint64_t seen)
{
	return seen > b->at ? min_u64(seen - b->at, b->n) : 0;
}

static ckr_status
begin_exchange(struct chunked_comm *b, struct err *e)
{
	uint64_t size = element_bytes(b);

	walk_overlaps(b, false);
	for (uint32_t r = 0; r < b->ranks; r++) {
		set_count(&b->sent, r, r * b->n * size,
		          overlap_elems(b, b->seen.out[r]) * size);
		set_count(&b->received, r, r * b->n * size,
		          overlap_elems(b, b->seen.in[r]) * size);
	}
	return begin_all_to_all(b, b->out, e);
}

/* ---- all ---- */

/* Elements in all, and of a chunk.  Of two ranks each takes as much either way.
 * No pair has more in common than all that one of them holds. */
static void
choose_chunk(struct chunked_comm *b)
{
	uint64_t size = element_bytes(b), n = comm_nelem(b->tx);

	switch (b->what->kind) {
	case CKR_ALL_REDUCE:
		b->whole = b->ranks == 2 || n * size <= SHORT;
		b->total = n;
		b->chunk = max_chunk(b->whole ? b->ranks : 2, size);
		return;
	case CKR_ALL_GATHER:
		b->total = sharding_shard_elems(&b->from);
		b->chunk = max_chunk(b->from.nshard, size);
		return;
	case CKR_REDUCE_SCATTER:
	case CKR_ALL_TO_ALL:
		b->total = sharding_shard_elems(&b->from);
		b->chunk = max_chunk(b->ranks, size);
		return;
	default:
		copy_local_shard(b);
	}
}

void
chunked_begin(struct chunked_comm *b)
{
	lay_out_state(b);
	b->total = b->at = b->n = b->run = 0;
	b->in_flight = b->summed = false;
	if (b->joined) {
		b->total = b->chunk = 1;
		return;
	}
	if (comm_nelem(b->tx) == 0)
		return;
	if (b->what->kind != CKR_ALL_REDUCE)
		sharding_of(&b->from, b->what->placement, b->ranks, b->tx->rank,
		            b->tx->dim);
	if (b->what->kind == CKR_ALL_TO_ALL) {
		sharding_of(&b->to, b->what->to, b->ranks, b->ty->rank,
		            b->ty->dim);
		memset(b->y, 0, comm_nelem(b->ty) * element_bytes(b));
	}
	choose_chunk(b);
}

static ckr_status
begin_chunk(struct chunked_comm *b, struct err *e)
{
	b->n = min_u64(b->chunk, b->total - b->at);
	if (b->joined)
		return begin_joined(b, e);
	switch (b->what->kind) {
	case CKR_ALL_REDUCE:
		return begin_sum(b, e);
	case CKR_ALL_GATHER:
		return begin_gather(b, e);
	case CKR_REDUCE_SCATTER:
		return begin_scatter(b, e);
	default:
		return begin_exchange(b, e);
	}
}

static void
end_chunk(struct chunked_comm *b)
{
	uint64_t size = element_bytes(b);

	if (b->joined) {
		end_joined(b);
		b->at++;
		return;
	}
	switch (b->what->kind) {
	case CKR_ALL_REDUCE:
		end_sum(b);
		break;
	case CKR_ALL_GATHER:
		copy_chunk(b, b->y, b->in, b->n * size, true);
		break;
	case CKR_REDUCE_SCATTER:
		reduce_received(b, b->in, b->n * size, b->tx->dtype, false,
		                b->n, b->y + b->at * size);
		break;
	default:
		walk_overlaps(b, true);
	}
	if (!b->summed)
		b->at += b->n;
}

ckr_status
chunked_poll(struct chunked_comm *b, bool *done, struct err *e)
{
	bool arrived;

	*done = false;
	if (b->in_flight) {
		CKR_TRY(pg_test(b->team, b->group, &arrived, &b->task, e));
		if (!arrived)
			return CKR_OK;
		b->in_flight = false;
		b->arrived++;
		end_chunk(b);
	}
	*done = b->at >= b->total;
	if (*done)
		return CKR_OK;
	CKR_TRY(begin_chunk(b, e));
	b->in_flight = true;
	return CKR_OK;
}
