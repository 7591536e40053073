/* Points with an unsaved boundary: they drop what the next part reads.
 *
 * what    of every class the unsaved points that plans may use, what they
 *         put back into memory while backward is at the next part, and what
 *         their own part needs
 * method  An unsaved point is a saved one, its twin, less the outputs
 *         for the next part.  These and all that they are made of again come
 *         back when backward reaches the next part, at the latest, and stay.
 *         So the next part needs their bytes more, and the part itself those
 *         that it uses later; both at most.  The bytes are rounded up to a few
 *         levels, so that composing tells few cases apart.
 * cost    points squared at worst
 */
#include "passes/pareto/partition.h"

#include <stdlib.h>
#include <string.h>

enum { UNSAVED_MAX = 48 };

struct unsaved_trial {
	int32_t point, twin;
	int64_t back;                   /* bytes at the next part */
	int64_t stays;                  /* of these, at the part itself */
	double sec;
};

static uint64_t
decision_mask(const struct part_class *k, bool crosses)
{
	uint64_t m = 0;

	for (int32_t i = 0; i < k->ndecision; i++)
		if (crosses ? k->decision[i].crosses : k->decision[i].direct)
			m |= (uint64_t)1 << i;
	return m;
}

/* The measured saved point that keeps just these; -1. */
static int32_t
find_saved_twin(const struct part_class *k, uint64_t keep)
{
	int64_t bytes = decisions_bytes(k, keep);
	int32_t lo = 0, hi = k->npoint;

	while (lo < hi) {               /* by falling bytes */
		int32_t mid = lo + (hi - lo) / 2;

		if (k->point[mid].bytes > bytes)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < k->npoint && k->point[lo].bytes == bytes; lo++)
		if (k->point[lo].keep == keep && k->point[lo].measured
		    && !k->point[lo].unsaved)
			return lo;
	return -1;
}

static bool
try_unsaved(const struct partition *y, const struct part_class *k, int32_t id,
            struct unsaved_trial *t)
{
	const struct curve_part *p = &y->part[k->model];
	const struct part_point *c = &k->point[id];
	uint64_t direct = decision_mask(k, false), gone, back, again;

	gone = decision_mask(k, true) & direct & ~c->keep;
	t->point = id;
	t->twin = find_saved_twin(k, c->keep | gone);
	if (t->twin < 0)
		return false;
	back = decisions_needed(k, gone, c->keep) & ~c->keep;
	t->back = decisions_bytes(k, back);
	t->stays = decisions_bytes(k, back & direct & ~gone);
	t->sec = k->point[t->twin].sec;
	again = decisions_needed(k, direct & ~gone, c->keep) & ~c->keep;
	for (int32_t i = 0; i < k->ndecision; i++) {
		NodeId n = p->node[k->decision[i].node];

		if ((back & ~again) >> i & 1
		    && (i == 0 || k->decision[i - 1].node != k->decision[i].node
		        || !((back & ~again) >> (i - 1) & 1)))
			t->sec += y->r->node[n].sec;
	}
	return true;
}

static bool
dominates_trial(const struct part_class *k, const struct unsaved_trial *a,
                const struct unsaved_trial *b)
{
	const struct part_point *x = &k->point[a->point];
	const struct part_point *y = &k->point[b->point];

	return x->bytes <= y->bytes && a->sec <= b->sec
		&& a->back <= b->back && a->stays <= b->stays;
}

static int
by_back(const void *a, const void *b)
{
	const struct unsaved_trial *x = a, *y = b;

	if (x->back != y->back)
		return x->back < y->back ? -1 : 1;
	return x->point < y->point ? -1 : x->point > y->point;
}

/* Cut the trials, by rising bytes, into a few levels. */
static void
make_levels(struct part_class *k, const struct unsaved_trial *t, int32_t n)
{
	k->nlevel = n < PART_LEVELS ? n : PART_LEVELS;
	for (int32_t l = 0; l < k->nlevel; l++)
		k->level[l] = t[(l + 1) * n / k->nlevel - 1].back;
	for (int32_t i = 0; i < n; i++) {
		struct part_point *c = &k->point[t[i].point];

		for (c->level = 0; k->level[c->level] < t[i].back; c->level++)
			;
		k->plan[k->nplan + k->nunsaved++] = t[i].point;
	}
}

static void
set_needs(struct part_class *k, const struct unsaved_trial *t)
{
	for (int32_t i = 0; i < k->nneed; i++) {
		int64_t *n = k->need[i].of;

		n[t->point] = n[t->twin] + t->stays;
	}
}

static void
unsave_class(struct partition *y, int32_t class)
{
	struct part_class *k = &y->class[class];
	struct unsaved_trial list[UNSAVED_MAX];
	int32_t n = 0;

	/* from the smallest on */
	for (int32_t c = k->npoint - 1; c >= 0 && n < UNSAVED_MAX; c--) {
		bool beaten = !k->point[c].unsaved
			|| !try_unsaved(y, k, c, &list[n]);

		for (int32_t i = 0; !beaten && i < n; i++)
			beaten = dominates_trial(k, &list[i], &list[n]);
		n += !beaten;
	}
	qsort(list, (size_t)n, sizeof *list, by_back);
	for (int32_t i = 0; i < n; i++) {
		set_needs(k, &list[i]);
		k->point[list[i].point].sec = list[i].sec;
	}
	make_levels(k, list, n);
}

void
partition_unsaved(struct partition *y)
{
	for (int32_t k = 0; k < y->nclass; k++)
		unsave_class(y, k);
}
