#include "runtime/ranks/copy_schedule.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/dtype.h"

static uint64_t
min_end(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

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
	if (n == 0
	    || (*last != UINT32_MAX
	        && extend_copy(&list->one[*last], from, to, n)))
		return true;
	if (list->n == list->room) {
		uint32_t room = list->room ? 2 * list->room : 8;
		void *more = realloc(list->one, room * sizeof(*list->one));

		if (!more)
			return false;
		list->one = more;
		list->room = room;
	}
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
	*r = (struct copy_schedule){ .kind = SCHED_OWN };
}

/* ---- pieces of a whole ---- */

/* Those of piece q between the whole, and `at` of what holds pieces. */
static bool
copy_piece(struct copy_list *list, const struct pieces *p, uint64_t q,
           uint64_t at, uint64_t size, bool to_whole)
{
	uint64_t per = p->npiece, outer = per * p->npart;

	for (uint64_t k = 0; k < p->npart; k++) {
		uint32_t last = UINT32_MAX;

		for (uint64_t i = k * per + q; i < p->nrun; i += outer) {
			struct piece_run u = pieces_run(p, i);
			uint64_t w = u.whole * size, z = at + u.local * size;

			if (!append_copy(list, &last, to_whole ? z : w,
			                 to_whole ? w : z, u.n * size))
				return false;
		}
	}
	return true;
}

static bool
copy_pieces(struct copy_list *list, const struct pieces *p, uint64_t size,
            uint64_t apart, bool to_whole)
{
	for (uint64_t q = 0; q < p->npiece; q++)
		if (!copy_piece(list, p, q, q * apart, size, to_whole))
			return false;
	return true;
}

/* A rank's own. */
static bool
schedule_own(struct copy_schedule *r, const struct pieces *p, uint32_t rank,
             uint64_t size, bool grad)
{
	r->kind = SCHED_OWN;
	r->clear_y = grad || p->local * p->npiece != p->whole;
	return copy_piece(&r->unpack, p, rank / p->shared, 0, size, grad);
}

/* Pieces that lie in one run each; and, if none is short, nothing between. */
static bool
collect_spans(struct copy_schedule *r, const struct pieces *p, uint64_t size,
              bool *even)
{
	if (p->nrun != p->npiece)
		return false;
	*even = p->shared == 1;
	for (uint64_t q = 0; q < p->npiece; q++) {
		struct piece_run u = pieces_run(p, q);

		r->span[q] = (struct byte_range){ u.whole * size, u.n * size };
		*even &= u.n * size == r->piece_bytes;
	}
	return true;
}

static bool
schedule_gather(struct copy_schedule *r, const struct pieces *p, uint32_t ranks,
                uint64_t size)
{
	bool even;

	if (collect_spans(r, p, size, &even)) {
		r->kind = even ? SCHED_ALL_GATHER : SCHED_BROADCAST;
		return true;
	}
	r->kind = SCHED_ALL_GATHER;
	r->unpacks = true;
	r->scratch = ranks * r->piece_bytes;
	return copy_pieces(&r->unpack, p, size, p->shared * r->piece_bytes,
	                   true);
}

/* Those that share a piece are to have the same bits, so that one of them takes
 * the sum. */
static bool
schedule_scatter(struct copy_schedule *r, const struct pieces *p, uint32_t rank,
                 uint64_t size)
{
	uint64_t n, q = rank / p->shared;
	bool even;

	if (collect_spans(r, p, size, &even)) {
		n = r->span[q].n;
		r->kind = even ? SCHED_REDUCE_SCATTER : SCHED_REDUCE;
		r->tail = (struct byte_range){ n, r->piece_bytes - n };
		return true;
	}
	r->kind = p->shared == 1 ? SCHED_REDUCE_SCATTER : SCHED_REDUCE;
	r->packs = r->clear_scratch = true;
	r->scratch = p->npiece * r->piece_bytes;
	for (uint64_t k = 0; k < p->npiece; k++)
		r->span[k] = (struct byte_range){ k * r->piece_bytes,
			r->piece_bytes };
	return copy_pieces(&r->pack, p, size, r->piece_bytes, false);
}

/* ---- pieces to other pieces ---- */

/* Bytes counted so far to and from a rank, and their last copies. */
struct peer_progress {
	uint64_t out, in;
	uint32_t last_out, last_in;
};

/* n bytes from place x of rank a to place y of rank b; count: they are only
 * counted. */
static bool
count_or_copy(struct copy_schedule *r, struct peer_progress *m, uint32_t rank,
              uint32_t a, uint32_t b, struct strided_copy at, bool count)
{
	bool ok = true;

	if (a == rank) {
		if (!count)
			ok = append_copy(&r->pack, &m[b].last_out, at.from,
			                 r->out[b].at + m[b].out, at.width);
		m[b].out += at.width;
	}
	if (ok && b == rank) {
		if (!count)
			ok = append_copy(&r->unpack, &m[a].last_in,
			                 r->in[a].at + m[a].in, at.to,
			                 at.width);
		m[a].in += at.width;
	}
	return ok;
}

/* Both lists of runs cover the whole in order. */
static bool
schedule_overlaps(struct copy_schedule *r, struct peer_progress *m,
                  const struct pieces *from, const struct pieces *to,
                  uint32_t rank, uint64_t size, bool count)
{
	uint32_t ranks = (uint32_t)(from->npiece * from->shared);
	uint64_t at = 0;
	bool ok = true;

	for (uint32_t k = 0; k < ranks; k++)
		m[k] = (struct peer_progress){ 0, 0, UINT32_MAX, UINT32_MAX };
	for (uint64_t i = 0, k = 0; i < from->nrun && k < to->nrun && ok;) {
		struct piece_run u = pieces_run(from, i);
		struct piece_run v = pieces_run(to, k);
		uint64_t end = min_end(u.whole + u.n, v.whole + v.n);
		struct strided_copy n = { (u.local + at - u.whole) * size,
			(v.local + at - v.whole) * size, (end - at) * size,
			1, 0, 0 };

		for (uint32_t b = v.rank; b < v.rank + to->shared && at < end
		     && ok; b++)
			ok = count_or_copy(r, m, rank, u.rank, b, n, count);
		at = end > at ? end : at;
		i += at >= u.whole + u.n;
		k += at >= v.whole + v.n;
	}
	return ok;
}

/* What a rank keeps is not sent: it is taken from where it was put. */
static bool
schedule_exchange(struct copy_schedule *r, const struct pieces *from,
                  const struct pieces *to, uint32_t ranks, uint32_t rank,
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
		r->out[k] = (struct byte_range){ r->scratch, m[k].out };
		r->scratch += m[k].out;
	}
	for (uint32_t k = 0; k < ranks; k++) {
		r->in[k] = (struct byte_range){ r->scratch, m[k].in };
		if (k == rank)
			r->in[k].at = r->out[k].at;
		else
			r->scratch += m[k].in;
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
	struct pieces p, to;

	*r = (struct copy_schedule){ .kind = SCHED_ALL_REDUCE };
	if (w->kind == CKR_ALL_REDUCE)
		return true;
	pieces_of(&p, w->split, ranks, x->rank, x->dim);
	r->npiece = (uint32_t)p.npiece;
	r->shared = p.shared;
	r->piece_bytes = pieces_padded_elems(&p) * size;
	if (w->kind == CKR_ALL_GATHER || w->kind == CKR_REDUCE_SCATTER) {
		r->span = calloc(p.npiece, sizeof(*r->span));
		if (!r->span)
			return false;
	}
	switch (w->kind) {
	case CKR_ALL_GATHER:
		return schedule_gather(r, &p, ranks, size);
	case CKR_REDUCE_SCATTER:
		return schedule_scatter(r, &p, rank, size);
	case CKR_ALL_TO_ALL:
		pieces_of(&to, w->to, ranks, y->rank, y->dim);
		return schedule_exchange(r, &p, &to, ranks, rank, size);
	default:
		return schedule_own(r, &p, rank, size,
		                    w->kind == CKR_LOCAL_SHARD_GRAD);
	}
}
