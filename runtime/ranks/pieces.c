/* Whole tensors and the pieces of them that ranks hold, as runs of elements
 * that lie side by side in both: all that moves between the two is made of
 * them.
 */
#include "runtime/ranks/pieces.h"

/* No tensor has more elements. */
#define MOST ((uint64_t)1 << 48)

/* Extent of the pieces of a stretch. */
static uint64_t
extent(const struct pieces *p, uint32_t k)
{
	return (p->part[k] + p->npiece - 1) / p->npiece;
}

static bool
count(uint64_t *product, int64_t by)
{
	return by >= 0 && !__builtin_mul_overflow(*product, (uint64_t)by,
	                                          product)
	       && *product <= MOST;
}

bool
pieces_of(struct pieces *p, const struct ckr_split *s, uint32_t ranks,
          int rank, const int64_t *dim)
{
	*p = (struct pieces){ .outer = 1, .inner = 1 };
	if (s->kind != CKR_CUT || s->axis >= rank || s->lead > s->axis
	    || !s->npart || s->npart > CKR_MAX_RANK || !s->shared
	    || ranks % s->shared)
		return false;
	p->shared = s->shared;
	p->npart = s->npart;
	p->npiece = ranks / s->shared;
	for (int i = 0; i < rank; i++)
		if ((i < s->lead && !count(&p->outer, dim[i]))
		    || (i > s->axis && !count(&p->inner, dim[i])))
			return false;
	for (uint32_t k = 0; k < p->npart; k++) {
		p->part[k] = s->part[k];
		if (p->part[k] > MOST)
			return false;
		p->whole += p->part[k];
		p->local += extent(p, k);
	}
	p->nrun = p->outer * p->npart * p->npiece;
	return true;
}

struct piece_run
pieces_run(const struct pieces *p, uint64_t i)
{
	uint64_t piece = i % p->npiece, end = i / p->npiece % p->npart;
	uint64_t o = i / p->npiece / p->npart, whole = o * p->whole;
	uint64_t local = o * p->local, size = extent(p, (uint32_t)end);
	uint64_t part = p->part[end], from = piece * size;

	for (uint32_t k = 0; k < end; k++) {
		whole += p->part[k];
		local += extent(p, k);
	}
	from = from < part ? from : part;
	size = size < part - from ? size : part - from;
	return (struct piece_run){ (whole + from) * p->inner,
	                           local * p->inner, size * p->inner,
	                           (uint32_t)piece * p->shared };
}

uint64_t
pieces_longest(const struct pieces *p)
{
	uint64_t most = 0;

	for (uint32_t k = 0; k < p->npart; k++)
		if (extent(p, k) > most)
			most = extent(p, k);
	return most * p->inner;
}

uint64_t
pieces_room(const struct pieces *p)
{
	return p->outer * p->local * p->inner;
}
