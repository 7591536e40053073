/* Configurations that drop what the next part reads.
 *
 * what    of every kind the open configurations that plans may use, what they
 *         put back into memory while backward is at the next part, and what
 *         their own part needs
 * method  An open configuration is a closed one, its twin, less the outputs
 *         for the next part.  These and all that they are made of again come
 *         back when backward reaches the next part, at the latest, and stay.
 *         So the next part needs their bytes more, and the part itself those
 *         that it uses later; both at most.  The bytes are rounded up to a few
 *         levels, so that composing tells few cases apart.
 * cost    configurations squared at worst
 */
#include "passes/curve/parts.h"

#include <stdlib.h>
#include <string.h>

enum { OPEN_MAX = 48 };

struct trial {
	int32_t config, twin;
	int64_t back;                   /* bytes at the next part */
	int64_t stays;                  /* of these, at the part itself */
	double sec;
};

static uint64_t
mask_of(const struct kind *k, bool crosses)
{
	uint64_t m = 0;

	for (int32_t i = 0; i < k->npick; i++)
		if (crosses ? k->pick[i].crosses : k->pick[i].direct)
			m |= (uint64_t)1 << i;
	return m;
}

/* The measured closed configuration that keeps just these; -1. */
static int32_t
find_twin(const struct kind *k, uint64_t keep)
{
	int64_t bytes = picks_bytes(k, keep);
	int32_t lo = 0, hi = k->nconfig;

	while (lo < hi) {               /* by falling bytes */
		int32_t mid = lo + (hi - lo) / 2;

		if (k->config[mid].bytes > bytes)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < k->nconfig && k->config[lo].bytes == bytes; lo++)
		if (k->config[lo].keep == keep && k->config[lo].measured
		    && !k->config[lo].open)
			return lo;
	return -1;
}

static bool
try_open(const struct parts *y, const struct kind *k, int32_t id,
         struct trial *t)
{
	const struct part *p = &y->part[k->model];
	const struct config *c = &k->config[id];
	uint64_t direct = mask_of(k, false), gone, back, again;

	gone = mask_of(k, true) & direct & ~c->keep;
	t->config = id;
	t->twin = find_twin(k, c->keep | gone);
	if (t->twin < 0)
		return false;
	back = picks_needed(k, gone, c->keep) & ~c->keep;
	t->back = picks_bytes(k, back);
	t->stays = picks_bytes(k, back & direct & ~gone);
	t->sec = k->config[t->twin].sec;
	again = picks_needed(k, direct & ~gone, c->keep) & ~c->keep;
	for (int32_t i = 0; i < k->npick; i++) {
		NodeId n = p->node[k->pick[i].node];

		if ((back & ~again) >> i & 1
		    && (i == 0 || k->pick[i - 1].node != k->pick[i].node
		        || !((back & ~again) >> (i - 1) & 1)))
			t->sec += y->r->node[n].sec;
	}
	return true;
}

static bool
beats(const struct kind *k, const struct trial *a, const struct trial *b)
{
	const struct config *x = &k->config[a->config];
	const struct config *y = &k->config[b->config];

	return x->bytes <= y->bytes && a->sec <= b->sec
		&& a->back <= b->back && a->stays <= b->stays;
}

static int
by_back(const void *a, const void *b)
{
	const struct trial *x = a, *y = b;

	if (x->back != y->back)
		return x->back < y->back ? -1 : 1;
	return x->config < y->config ? -1 : x->config > y->config;
}

/* Cut the trials, by rising bytes, into a few levels. */
static void
make_levels(struct kind *k, const struct trial *t, int32_t n)
{
	k->nlevel = n < PART_LEVELS ? n : PART_LEVELS;
	for (int32_t l = 0; l < k->nlevel; l++)
		k->level[l] = t[(l + 1) * n / k->nlevel - 1].back;
	for (int32_t i = 0; i < n; i++) {
		struct config *c = &k->config[t[i].config];

		for (c->level = 0; k->level[c->level] < t[i].back; c->level++)
			;
		k->plan[k->nplan + k->nopen++] = t[i].config;
	}
}

static void
set_needs(struct kind *k, const struct trial *t)
{
	for (int32_t i = 0; i < k->nneed; i++) {
		int64_t *n = k->need[i].of;

		n[t->config] = n[t->twin] + t->stays;
	}
}

static void
open_kind(struct parts *y, int32_t kind)
{
	struct kind *k = &y->kind[kind];
	struct trial list[OPEN_MAX];
	int32_t n = 0;

	/* from the leanest on */
	for (int32_t c = k->nconfig - 1; c >= 0 && n < OPEN_MAX; c--) {
		bool beaten = !k->config[c].open
			|| !try_open(y, k, c, &list[n]);

		for (int32_t i = 0; !beaten && i < n; i++)
			beaten = beats(k, &list[i], &list[n]);
		n += !beaten;
	}
	qsort(list, (size_t)n, sizeof *list, by_back);
	for (int32_t i = 0; i < n; i++) {
		set_needs(k, &list[i]);
		k->config[list[i].config].sec = list[i].sec;
	}
	make_levels(k, list, n);
}

void
parts_open(struct parts *y)
{
	for (int32_t k = 0; k < y->nkind; k++)
		open_kind(y, k);
}
