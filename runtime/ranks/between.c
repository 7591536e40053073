/* What moves between ranks that live in processes of their own, in parts that
 * fit into the memory of the team.
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

/* Elements of a part if the team's memory holds so many of them. */
static uint64_t
part_of(uint64_t parts, uint64_t size)
{
	return TEAM_ROOM / parts / size / 16 * 16;
}

/* ---- counts ---- */

/* Bytes of all ranks, and where: one behind the other, or as they come. */
struct counts {
	int count[CKR_MAX_RANKS], at[CKR_MAX_RANKS];
};

static void
lay(struct counts *c, uint32_t rank, uint64_t at, uint64_t nbytes)
{
	c->count[rank] = (int)nbytes;
	c->at[rank] = (int)at;
}

static ckr_status
gather(const struct between *b, const void *from, const struct counts *c,
       void *to, struct err *e)
{
	struct link_side side = { to, c->count, c->at };

	return team_gather(b->team, b->group, from, c->count[b->rank], &side,
	                   &b->task, e);
}

static ckr_status
exchange(const struct between *b, const void *from, const struct counts *out,
         const struct counts *in, struct err *e)
{
	struct link_side a = { (void *)(uintptr_t)from, out->count, out->at };
	struct link_side z = { b->team->in, in->count, in->at };

	return team_exchange(b->team, b->group, &a, &z, &b->task, e);
}

/* ---- sums ---- */

/* n elements of each rank lie one behind the other in the team's memory. */
static void
add_up(const struct between *b, uint8_t dtype, bool max, uint64_t n, void *y)
{
	uint64_t size = dtype_row[dtype].nbytes;
	const char *in = b->team->in;

#pragma omp parallel for num_threads(b->threads) if (n > SMALL)
	for (uint64_t at = 0; at < n; at += BLOCK) {
		const void *x[CKR_MAX_RANKS];

		for (uint32_t r = 0; r < b->ranks; r++)
			x[r] = in + (r * n + at) * size;
		comm_reduce(dtype, max, x, b->ranks, least(n - at, BLOCK),
		            (char *)y + at * size);
	}
}

static ckr_status
sum_short(const struct between *b, uint8_t dtype, bool max, const void *x,
          uint64_t n, void *y, struct err *e)
{
	uint64_t nbytes = n * dtype_row[dtype].nbytes;
	struct counts c;

	for (uint32_t r = 0; r < b->ranks; r++)
		lay(&c, r, r * nbytes, nbytes);
	CKR_TRY(gather(b, x, &c, b->team->in, e));
	add_up(b, dtype, max, n, y);
	return CKR_OK;
}

/* Each rank adds up a share of them. */
static ckr_status
sum_long(const struct between *b, const char *x, uint64_t n, char *y,
         struct err *e)
{
	uint64_t size = size_of(b), per = (n + b->ranks - 1) / b->ranks;
	uint64_t mine = 0;
	struct counts share, in;

	for (uint32_t r = 0; r < b->ranks; r++) {
		uint64_t at = least(r * per, n), k = least(per, n - at);

		lay(&share, r, at * size, k * size);
		if (r == b->rank)
			mine = k;
	}
	for (uint32_t r = 0; r < b->ranks; r++)
		lay(&in, r, r * mine * size, mine * size);
	CKR_TRY(exchange(b, x, &share, &in, e));
	add_up(b, b->tx->dtype, b->what->max, mine, b->team->out);
	return gather(b, b->team->out, &share, y, e);
}

ckr_status
between_sum(const struct between *b, uint8_t dtype, const void *x, uint64_t n,
            void *y, struct err *e)
{
	return sum_short(b, dtype, false, x, n, y, e);
}

/* Of two ranks each takes as much either way. */
static ckr_status
all_reduce(const struct between *b, struct err *e)
{
	uint64_t size = size_of(b), n = comm_nelem(b->tx);
	bool whole = b->ranks == 2 || n * size <= SHORT;
	uint64_t part = part_of(whole ? b->ranks : 2, size);

	for (uint64_t at = 0; at < n; at += part) {
		uint64_t k = least(part, n - at);
		const char *x = b->x + at * size;
		char *y = b->y + at * size;

		CKR_TRY(whole ? sum_short(b, b->tx->dtype, b->what->max, x, k,
		                          y, e)
		              : sum_long(b, x, k, y, e));
	}
	return CKR_OK;
}

/* ---- pieces ---- */

/* Elements at .. at + n - 1 of all pieces, between the whole and a buffer that
 * has one piece behind the other.  *first: a run before which there is none of
 * them, moved on. */
static void
move_part(const struct between *b, const struct pieces *p, uint64_t at,
          uint64_t n, char *whole, char *buf, bool to_whole, uint64_t *first)
{
	uint64_t size = size_of(b);

	for (uint64_t i = *first; i < p->nrun; i++) {
		struct piece_run u = pieces_run(p, i);
		uint64_t lo = u.local > at ? u.local : at, q = i % p->npiece;
		uint64_t hi = least(u.local + u.n, at + n);
		char *w = whole + (u.whole + lo - u.local) * size;
		char *z = buf + (q * n + lo - at) * size;

		if (u.local >= at + n)
			break;
		/* runs of one place on all ranks stay together */
		if (q == 0)
			*first = i;
		if (lo < hi)
			memcpy(to_whole ? w : z, to_whole ? z : w,
			       (hi - lo) * size);
	}
}

static ckr_status
all_gather(const struct between *b, const struct pieces *p, struct err *e)
{
	uint64_t size = size_of(b), local = pieces_room(p), first = 0;
	uint64_t part = part_of(p->npiece, size);

	for (uint64_t at = 0; at < local; at += part) {
		uint64_t n = least(part, local - at);
		struct counts c;

		for (uint32_t r = 0; r < b->ranks; r++)
			lay(&c, r, r / p->shared * n * size,
			    r % p->shared ? 0 : n * size);
		CKR_TRY(gather(b, b->x + at * size, &c, b->team->in, e));
		move_part(b, p, at, n, b->y, b->team->in, true, &first);
	}
	return CKR_OK;
}

static ckr_status
reduce_scatter(const struct between *b, const struct pieces *p,
               struct err *e)
{
	uint64_t size = size_of(b), local = pieces_room(p), first = 0;
	uint64_t part = part_of(b->ranks, size);

	for (uint64_t at = 0; at < local; at += part) {
		uint64_t n = least(part, local - at);
		struct counts out, in;

		for (uint32_t r = 0; r < b->ranks; r++) {
			lay(&out, r, r / p->shared * n * size, n * size);
			lay(&in, r, r * n * size, n * size);
		}
		memset(b->team->out, 0, p->npiece * n * size);
		move_part(b, p, at, n, (char *)(uintptr_t)b->x, b->team->out,
		          false, &first);
		CKR_TRY(exchange(b, b->team->out, &out, &in, e));
		add_up(b, b->tx->dtype, b->what->max, n, b->y + at * size);
	}
	return CKR_OK;
}

/* A rank's own part of a whole, or zeros around it. */
static void
own(const struct between *b, const struct pieces *p)
{
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

/* Elements that go from one rank to another, in the whole's order; those of a
 * turn are at .. at + n - 1 of each pair. */
struct turn {
	uint64_t at, n;
	uint64_t out[CKR_MAX_RANKS], in[CKR_MAX_RANKS]; /* met so far */
};

/* What of n elements that follow `met` is of this turn: where it begins among
 * them, and at in the buffer. */
static uint64_t
of_turn(const struct turn *t, uint64_t met, uint64_t n, uint64_t *skip,
        uint64_t *at)
{
	uint64_t lo = met > t->at ? met : t->at;
	uint64_t hi = least(met + n, t->at + t->n);

	*skip = lo - met;
	*at = lo - t->at;
	return lo < hi ? hi - lo : 0;
}

/* n elements from place x of rank a to place y of rank r: into the buffer, or
 * out of it. */
static void
take_turn(const struct between *b, struct turn *t, uint32_t a, uint32_t r,
          uint64_t x, uint64_t y, uint64_t n, bool sent)
{
	uint64_t size = size_of(b), skip, at, k;

	if (a == b->rank && !sent) {
		k = of_turn(t, t->out[r], n, &skip, &at);
		memcpy(b->team->out + (r * t->n + at) * size,
		       b->x + (x + skip) * size, k * size);
		t->out[r] += n;
	}
	if (r == b->rank) {
		k = of_turn(t, t->in[a], n, &skip, &at);
		if (sent)
			memcpy(b->y + (y + skip) * size,
			       b->team->in + (a * t->n + at) * size, k * size);
		t->in[a] += n;
	}
}

/* Both lists of runs cover the whole in order. */
static void
walk(const struct between *b, const struct pieces *from,
     const struct pieces *to, struct turn *t, bool sent)
{
	uint64_t at = 0;

	memset(t->out, 0, sizeof(t->out));
	memset(t->in, 0, sizeof(t->in));
	for (uint64_t i = 0, k = 0; i < from->nrun && k < to->nrun;) {
		struct piece_run u = pieces_run(from, i);
		struct piece_run v = pieces_run(to, k);
		uint64_t end = least(u.whole + u.n, v.whole + v.n);

		for (uint32_t r = v.rank; r < v.rank + to->shared && at < end;
		     r++)
			take_turn(b, t, u.rank, r, u.local + at - u.whole,
			          v.local + at - v.whole, end - at, sent);
		at = end > at ? end : at;
		i += at >= u.whole + u.n;
		k += at >= v.whole + v.n;
	}
}

static uint64_t
in_turn(const struct turn *t, uint64_t met)
{
	return met > t->at ? least(met - t->at, t->n) : 0;
}

/* No pair has more in common than all that one of them holds. */
static ckr_status
all_to_all(const struct between *b, const struct pieces *from,
           const struct pieces *to, struct err *e)
{
	uint64_t size = size_of(b);
	struct turn t = { .n = part_of(b->ranks, size) };

	memset(b->y, 0, comm_nelem(b->ty) * size);
	for (; t.at < pieces_room(from); t.at += t.n) {
		struct counts out, in;

		walk(b, from, to, &t, false);
		for (uint32_t r = 0; r < b->ranks; r++) {
			lay(&out, r, r * t.n * size,
			    in_turn(&t, t.out[r]) * size);
			lay(&in, r, r * t.n * size,
			    in_turn(&t, t.in[r]) * size);
		}
		CKR_TRY(exchange(b, b->team->out, &out, &in, e));
		walk(b, from, to, &t, true);
	}
	return CKR_OK;
}

ckr_status
between_run(const struct between *b, struct err *e)
{
	struct pieces from, to;

	if (comm_nelem(b->tx) == 0)
		return CKR_OK;
	if (b->what->kind == CKR_ALL_REDUCE)
		return all_reduce(b, e);
	pieces_of(&from, b->what->split, b->ranks, b->tx->rank, b->tx->dim);
	switch (b->what->kind) {
	case CKR_ALL_GATHER:
		return all_gather(b, &from, e);
	case CKR_REDUCE_SCATTER:
		return reduce_scatter(b, &from, e);
	case CKR_ALL_TO_ALL:
		pieces_of(&to, b->what->to, b->ranks, b->ty->rank, b->ty->dim);
		return all_to_all(b, &from, &to, e);
	default:
		own(b, &from);
		return CKR_OK;
	}
}
