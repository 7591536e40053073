/* What moves between ranks that live in processes of their own, in parts that
 * fit into the memory for them.  A part is begun when the one before it has
 * arrived, whenever somebody looks, so that ranks compute meanwhile.
 *
 * Bytes are moved, and sums taken here: whoever owns a part of the result adds
 * what all ranks have of it in their order, as comm.c does, so that bits depend
 * neither on the size of parts nor on who came first.  A part is a range of a
 * rank's own elements: every rank has the same, but that a last piece may end
 * early, and carries zeros then.
 */
#include "runtime/ranks/between.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/dtype.h"

enum {
	BLOCK = 4096,                   /* elements added together */
	SMALL = 1 << 15,                /* not worth waking threads for */
	SHORT = 4096                    /* bytes that all take of all */
};

static uint64_t
size_of(const struct between *b)
{
	return dtype_row[b->tx->dtype].nbytes;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Elements of a part if the memory holds so many of them. */
static uint64_t
part_of(uint64_t parts, uint64_t size)
{
	return PG_BUFFER / parts / size / 16 * 16;
}

static void
lay(struct counts *c, uint32_t rank, uint64_t at, uint64_t nbytes)
{
	c->count[rank] = (int)nbytes;
	c->at[rank] = (int)at;
}

size_t
between_room(uint32_t ranks)
{
	return ranks * (2 * sizeof(uint64_t) + 4 * sizeof(int));
}

static void
lay_room(struct between *b)
{
	uint64_t *pair = b->room;
	int *count = (int *)(pair + 2 * (size_t)b->ranks);

	b->met = (struct pairs){ pair, pair + b->ranks };
	b->sent = (struct counts){ count, count + b->ranks };
	count += 2 * (size_t)b->ranks;
	b->come = (struct counts){ count, count + b->ranks };
}

/* What this rank has in `come`, to all. */
static ckr_status
gather(struct between *b, const void *from, void *to, struct err *e)
{
	struct link_side side = { to, b->come.count, b->come.at };

	return pg_begin_allgather(b->team, b->group, from,
	                          b->come.count[b->rank], &side, &b->task, e);
}

/* Of `sent` to each, of `come` from each into the memory. */
static ckr_status
exchange(struct between *b, const void *from, struct err *e)
{
	struct link_side out = { (void *)(uintptr_t)from, b->sent.count,
		b->sent.at };
	struct link_side in = { b->in, b->come.count, b->come.at };

	return pg_begin_alltoall(b->team, b->group, &out, &in, &b->task, e);
}

/* ---- sums ---- */

/* n elements of each rank lie one behind the other in the memory. */
static void
add_up(const struct between *b, uint8_t dtype, bool max, uint64_t n, void *y)
{
	uint64_t size = dtype_row[dtype].nbytes;
	const char *in = b->in;

#pragma omp parallel for num_threads(b->threads) if (n > SMALL)
	for (uint64_t at = 0; at < n; at += BLOCK) {
		const void *x[CKR_MAX_RANKS];

		for (uint32_t r = 0; r < b->ranks; r++)
			x[r] = in + (r * n + at) * size;
		comm_reduce(dtype, max, x, b->ranks, least(n - at, BLOCK),
		            (char *)y + at * size);
	}
}

static void
lay_alike(struct counts *c, uint32_t ranks, uint64_t nbytes)
{
	for (uint32_t r = 0; r < ranks; r++)
		lay(c, r, r * nbytes, nbytes);
}

ckr_status
between_sum(const struct between *b, uint8_t dtype, const void *x, uint64_t n,
            void *y, struct err *e)
{
	uint64_t nbytes = n * dtype_row[dtype].nbytes;
	struct between sum = *b;
	struct link_side side = { .base = b->team->in };
	ckr_status status;

	sum.room = malloc(between_room(b->ranks));
	if (!sum.room)
		return err_set(e, CKR_ENOMEM, "out of memory");
	lay_room(&sum);
	lay_alike(&sum.come, b->ranks, nbytes);
	side.count = sum.come.count;
	side.at = sum.come.at;
	sum.in = b->team->in;
	status = pg_allgather(b->team, b->group, x, (int)nbytes, &side,
	                      &b->task, e);
	if (status == CKR_OK)
		add_up(&sum, dtype, false, n, y);
	free(sum.room);
	return status;
}

/* Of a part, the elements that rank r adds up; *at: where. */
static uint64_t
share(const struct between *b, uint32_t r, uint64_t *at)
{
	uint64_t per = (b->n + b->ranks - 1) / b->ranks;

	*at = least(r * per, b->n);
	return least(per, b->n - *at);
}

static void
lay_shares(const struct between *b, struct counts *c)
{
	uint64_t at, k;

	for (uint32_t r = 0; r < b->ranks; r++) {
		k = share(b, r, &at);
		lay(c, r, at * size_of(b), k * size_of(b));
	}
}

/* All take of all, or each rank adds up a share and gives it to the others. */
static ckr_status
begin_sum(struct between *b, struct err *e)
{
	uint64_t size = size_of(b), at;
	const char *x = b->x + b->at * size;

	if (b->whole) {
		lay_alike(&b->come, b->ranks, b->n * size);
		return gather(b, x, b->in, e);
	}
	if (b->summed) {
		lay_shares(b, &b->come);
		return gather(b, b->out, b->y + b->at * size, e);
	}
	lay_shares(b, &b->sent);
	lay_alike(&b->come, b->ranks, share(b, b->rank, &at) * size);
	return exchange(b, x, e);
}

static void
end_sum(struct between *b)
{
	bool max = b->what->max;
	uint64_t at;

	if (b->whole) {
		add_up(b, b->tx->dtype, max, b->n, b->y + b->at * size_of(b));
		return;
	}
	if (!b->summed)
		add_up(b, b->tx->dtype, max, share(b, b->rank, &at), b->out);
	b->summed = !b->summed;
}

/* ---- pieces ---- */

/* The part of all pieces, between the whole and a buffer that has one piece
 * behind the other. */
static void
move_part(struct between *b, char *whole, char *buf, bool to_whole)
{
	const struct pieces *p = &b->from;
	uint64_t size = size_of(b), end = b->at + b->n;

	for (uint64_t i = b->run; i < p->nrun; i++) {
		struct piece_run u = pieces_run(p, i);
		uint64_t lo = u.local > b->at ? u.local : b->at;
		uint64_t hi = least(u.local + u.n, end), q = i % p->npiece;
		char *w = whole + (u.whole + lo - u.local) * size;
		char *z = buf + (q * b->n + lo - b->at) * size;

		if (u.local >= end)
			break;
		/* runs of one place on all ranks stay together */
		if (q == 0)
			b->run = i;
		if (lo < hi)
			memcpy(to_whole ? w : z, to_whole ? z : w,
			       (hi - lo) * size);
	}
}

static ckr_status
begin_gather(struct between *b, struct err *e)
{
	uint64_t nbytes = b->n * size_of(b);
	uint32_t shared = b->from.shared;

	for (uint32_t r = 0; r < b->ranks; r++)
		lay(&b->come, r, r / shared * nbytes, r % shared ? 0 : nbytes);
	return gather(b, b->x + b->at * size_of(b), b->in, e);
}

static ckr_status
begin_scatter(struct between *b, struct err *e)
{
	uint64_t nbytes = b->n * size_of(b);

	for (uint32_t r = 0; r < b->ranks; r++)
		lay(&b->sent, r, r / b->from.shared * nbytes, nbytes);
	lay_alike(&b->come, b->ranks, nbytes);
	memset(b->out, 0, b->from.npiece * nbytes);
	move_part(b, (char *)(uintptr_t)b->x, b->out, false);
	return exchange(b, b->out, e);
}

/* A rank's own part of a whole, or zeros around it. */
static void
own(const struct between *b)
{
	const struct pieces *p = &b->from;
	uint64_t size = size_of(b);
	bool grad = b->what->kind == CKR_OWN_GRAD;

	memset(b->y, 0, comm_nelem(b->ty) * size);
	for (uint64_t i = b->rank / p->shared; i < p->nrun; i += p->npiece) {
		struct piece_run u = pieces_run(p, i);

		memcpy(b->y + (grad ? u.whole : u.local) * size,
		       b->x + (grad ? u.local : u.whole) * size, u.n * size);
	}
}

/* ---- pieces to other pieces ---- */

/* What of n elements that follow `met` is of this part: where it begins among
 * them, and at in the buffer. */
static uint64_t
of_part(const struct between *b, uint64_t met, uint64_t n, uint64_t *skip,
        uint64_t *at)
{
	uint64_t lo = met > b->at ? met : b->at;
	uint64_t hi = least(met + n, b->at + b->n);

	*skip = lo - met;
	*at = lo - b->at;
	return lo < hi ? hi - lo : 0;
}

/* n elements from place x of rank a to place y of rank r: into the buffer, or
 * out of it. */
static void
take_part(struct between *b, uint32_t a, uint32_t r, uint64_t x, uint64_t y,
          uint64_t n, bool come)
{
	uint64_t size = size_of(b), skip, at, k;

	if (a == b->rank && !come) {
		k = of_part(b, b->met.out[r], n, &skip, &at);
		memcpy(b->out + (r * b->n + at) * size,
		       b->x + (x + skip) * size, k * size);
		b->met.out[r] += n;
	}
	if (r == b->rank) {
		k = of_part(b, b->met.in[a], n, &skip, &at);
		if (come)
			memcpy(b->y + (y + skip) * size,
			       b->in + (a * b->n + at) * size, k * size);
		b->met.in[a] += n;
	}
}

/* Both lists of runs cover the whole in order. */
static void
walk(struct between *b, bool come)
{
	const struct pieces *from = &b->from, *to = &b->to;
	uint64_t at = 0;

	memset(b->met.out, 0, b->ranks * sizeof(*b->met.out));
	memset(b->met.in, 0, b->ranks * sizeof(*b->met.in));
	for (uint64_t i = 0, k = 0; i < from->nrun && k < to->nrun;) {
		struct piece_run u = pieces_run(from, i);
		struct piece_run v = pieces_run(to, k);
		uint64_t end = least(u.whole + u.n, v.whole + v.n);

		for (uint32_t r = v.rank; r < v.rank + to->shared && at < end;
		     r++)
			take_part(b, u.rank, r, u.local + at - u.whole,
			          v.local + at - v.whole, end - at, come);
		at = end > at ? end : at;
		i += at >= u.whole + u.n;
		k += at >= v.whole + v.n;
	}
}

static uint64_t
in_part(const struct between *b, uint64_t met)
{
	return met > b->at ? least(met - b->at, b->n) : 0;
}

static ckr_status
begin_exchange(struct between *b, struct err *e)
{
	uint64_t size = size_of(b);

	walk(b, false);
	for (uint32_t r = 0; r < b->ranks; r++) {
		lay(&b->sent, r, r * b->n * size,
		    in_part(b, b->met.out[r]) * size);
		lay(&b->come, r, r * b->n * size,
		    in_part(b, b->met.in[r]) * size);
	}
	return exchange(b, b->out, e);
}

/* ---- all ---- */

/* Elements that parts are made of, and how many one may have.  Of two ranks
 * each takes as much either way.  No pair has more in common than all that one
 * of them holds. */
static void
measure(struct between *b)
{
	uint64_t size = size_of(b), n = comm_nelem(b->tx);

	switch (b->what->kind) {
	case CKR_ALL_REDUCE:
		b->whole = b->ranks == 2 || n * size <= SHORT;
		b->total = n;
		b->part = part_of(b->whole ? b->ranks : 2, size);
		return;
	case CKR_ALL_GATHER:
		b->total = pieces_room(&b->from);
		b->part = part_of(b->from.npiece, size);
		return;
	case CKR_REDUCE_SCATTER:
	case CKR_ALL_TO_ALL:
		b->total = pieces_room(&b->from);
		b->part = part_of(b->ranks, size);
		return;
	default:
		own(b);
	}
}

void
between_begin(struct between *b)
{
	lay_room(b);
	b->total = b->at = b->n = b->run = 0;
	b->flying = b->summed = false;
	if (comm_nelem(b->tx) == 0)
		return;
	if (b->what->kind != CKR_ALL_REDUCE)
		pieces_of(&b->from, b->what->split, b->ranks, b->tx->rank,
		          b->tx->dim);
	if (b->what->kind == CKR_ALL_TO_ALL) {
		pieces_of(&b->to, b->what->to, b->ranks, b->ty->rank,
		          b->ty->dim);
		memset(b->y, 0, comm_nelem(b->ty) * size_of(b));
	}
	measure(b);
}

static ckr_status
begin_part(struct between *b, struct err *e)
{
	b->n = least(b->part, b->total - b->at);
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
end_part(struct between *b)
{
	switch (b->what->kind) {
	case CKR_ALL_REDUCE:
		end_sum(b);
		break;
	case CKR_ALL_GATHER:
		move_part(b, b->y, b->in, true);
		break;
	case CKR_REDUCE_SCATTER:
		add_up(b, b->tx->dtype, false, b->n,
		       b->y + b->at * size_of(b));
		break;
	default:
		walk(b, true);
	}
	if (!b->summed)
		b->at += b->n;
}

ckr_status
between_look(struct between *b, bool *done, struct err *e)
{
	bool come;

	*done = false;
	if (b->flying) {
		CKR_TRY(pg_test(b->team, b->group, &come, &b->task, e));
		if (!come)
			return CKR_OK;
		b->flying = false;
		b->moved++;
		end_part(b);
	}
	*done = b->at >= b->total;
	if (*done)
		return CKR_OK;
	CKR_TRY(begin_part(b, e));
	b->flying = true;
	return CKR_OK;
}

static ckr_status
look(void *user, bool *done, const struct pg_task **at, uint64_t *moved,
     struct err *e)
{
	struct between *b = user;

	*at = &b->task;
	CKR_TRY(between_look(b, done, e));
	*moved = b->moved;
	return CKR_OK;
}

ckr_status
between_run(struct between *b, struct err *e)
{
	ckr_status status;

	b->room = malloc(between_room(b->ranks));
	if (!b->room)
		return err_set(e, CKR_ENOMEM, "out of memory");
	b->out = b->team->out;
	b->in = b->team->in;
	between_begin(b);
	status = pg_wait(b->team, &(struct pg_poll){ look, b }, e);
	free(b->room);
	return status;
}
