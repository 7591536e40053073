/* Points of a part's Pareto front: what to keep of it.
 *
 * what    for every class of part the ways to keep some of its values and to
 *         repeat the nodes that the others need, none worse than another in
 *         bytes, seconds and memory at once
 * method  From the last decision to the first: one that is needed, by backward
 *         or by a node repeated, is kept, or its node is repeated and needs
 *         what it reads.  Decisions that are not needed are neither.  Where
 *         that makes too many partial answers, those that need the same of
 *         what is to come are thinned to the ones that are best in bytes and
 *         seconds.
 * cost    points squared, by class
 */
#include "passes/pareto/partition.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED = 4096, MEASURED = 160 };

/* Some decisions taken, from the last on. */
struct partial {
	uint64_t needed, keep;
	int64_t bytes, min_bytes, direct; /* kept; as bounds count it; of that
	                                   * what backward itself reads */
	uint64_t gone;                  /* dropped decisions that cross */
	double sec;
	bool unsaved;
};

struct partial_list {
	struct partial *at;
	int32_t n, cap;
	Arena *arena;
};

static void
append_partial(struct partial_list *l, const struct partial *p)
{
	if (l->n == l->cap) {
		struct partial *more = arena_array(l->arena,
			(size_t)l->cap * 2 + 16, sizeof *more);

		if (l->n)
			memcpy(more, l->at, (size_t)l->n * sizeof *more);
		l->at = more;
		l->cap = l->cap * 2 + 16;
	}
	l->at[l->n++] = *p;
}

/* Take decisions [from, to), all of one node. */
static void
decide_node(const struct part_class *k, int32_t from, int32_t to, double sec,
            const struct partial *p, struct partial_list *out)
{
	uint64_t mine = 0, requested = 0, drop = 0;

	for (int32_t i = from; i < to; i++) {
		mine |= (uint64_t)1 << i;
		requested |= (uint64_t)k->decision[i].dropped << i;
	}
	mine &= p->needed;
	requested &= mine;
	do {
		struct partial q = *p;

		for (int32_t i = from; i < to; i++) {
			const struct decision *x = &k->decision[i];

			if (drop >> i & 1) {
				q.unsaved |= x->crosses && !x->dropped;
				q.gone |= (uint64_t)x->crosses << i;
			} else if (mine >> i & 1) {
				q.bytes += x->bytes;
				q.min_bytes += x->min_bytes;
				q.direct += x->direct ? x->min_bytes : 0;
			}
		}
		q.keep |= mine & ~drop;
		if (drop) {
			q.sec += sec;
			q.needed |= k->decision[from].needs;
		}
		if ((drop & requested) == requested)
			append_partial(out, &q);
		drop = (drop - mine) & mine;    /* next subset */
	} while (drop);
}

/* Those that are equal for what is to come together, the smaller first. */
static int
by_need(const void *a, const void *b)
{
	const struct partial *x = a, *y = b;

	if (x->needed != y->needed)
		return x->needed < y->needed ? -1 : 1;
	if (x->unsaved != y->unsaved)
		return x->unsaved ? 1 : -1;
	if (!x->gone != !y->gone)
		return x->gone ? 1 : -1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	if (x->sec < y->sec || x->sec > y->sec)
		return x->sec < y->sec ? -1 : 1;
	return x->keep < y->keep ? -1 : x->keep > y->keep;
}

/* No worse in seconds, nor in any kind of bytes; for plans and bounds. */
static bool
dominates_partial(const struct partial *x, const struct partial *y)
{
	return x->needed == y->needed && x->unsaved == y->unsaved
		&& !x->gone == !y->gone && x->sec <= y->sec
		&& x->bytes <= y->bytes && x->min_bytes <= y->min_bytes
		&& x->direct <= y->direct;
}

/* Drop partial answers that another beats in bytes and seconds. */
static void
prune_partials(struct partial_list *l, uint64_t to_come)
{
	int32_t n = 0;

	for (int32_t i = 0; i < l->n; i++)
		l->at[i].needed &= to_come;
	qsort(l->at, (size_t)l->n, sizeof *l->at, by_need);
	for (int32_t i = 0; i < l->n; i++) {
		if (n == 0 || !dominates_partial(&l->at[n - 1], &l->at[i]))
			l->at[n++] = l->at[i];
	}
	l->n = n;
}

/* By falling bytes, the faster first. */
static int
by_falling_bytes(const void *a, const void *b)
{
	const struct part_point *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->least < y->least || x->least > y->least)
		return x->least < y->least ? -1 : 1;
	return x->keep < y->keep ? -1 : x->keep > y->keep;
}

/* What only clones read may go, but then clones are there of what crosses and
 * of all that they were made of and that backward reads, too.  Of many
 * points that one stands for not even that is sure. */
static int64_t
min_later_bytes_of(const struct part_class *k, const struct partial *p)
{
	int64_t least = p->min_bytes - p->direct;

	for (int32_t x = 0; x < k->ndecision; x++) {
		uint64_t back = decisions_needed(k, (uint64_t)1 << x, p->keep);
		int64_t bytes = 0;

		if (!(p->gone >> x & 1))
			continue;
		for (int32_t i = 0; i < k->ndecision; i++)
			if ((back & ~p->keep) >> i & 1 && k->decision[i].direct
			    && (i == x || !k->decision[i].crosses))
				bytes += k->decision[i].first;
		if (k->thinned)
			bytes = 0;
		least = bytes < least ? bytes : least;
	}
	return p->direct + least;
}

/* Take decisions [from, to) in all of *now, in which memory is short for all
 * that could be made of them at once. */
static struct partial_list
decide_all(struct part_class *k, int32_t from, int32_t to, double sec,
           const struct partial_list *now, struct watch *watch)
{
	struct partial_list next = { .arena = arena_new() };
	int32_t most = 8 * LISTED;

	for (int32_t i = 0; i < now->n && !watch_over(watch); i++) {
		decide_node(k, from, to, sec, &now->at[i], &next);
		if (next.n <= most && (i + 1 < now->n || next.n <= LISTED))
			continue;
		prune_partials(&next, ((uint64_t)1 << from) - 1);
		k->thinned = true;
		most = next.n > most / 2 ? 2 * next.n : most;
	}
	return next;
}

/* All points of a class; false: there are too many, or no time. */
static bool
list_points(struct partition *y, struct part_class *k)
{
	const struct curve_part *p = &y->part[k->model];
	struct watch *watch = y->r->watch;
	struct partial none = { 0 };
	struct partial_list now = { .arena = arena_new() }, next;

	for (int32_t i = 0; i < k->ndecision; i++)
		none.needed |= (uint64_t)k->decision[i].direct << i;
	append_partial(&now, &none);
	for (int32_t to = k->ndecision, from; to > 0; to = from) {
		int32_t node = k->decision[to - 1].node;
		double sec = y->r->node[p->node[node]].least_sec;

		for (from = to - 1; from > 0
		     && k->decision[from - 1].node == node; from--)
			;
		next = decide_all(k, from, to, sec, &now, watch);
		arena_free(now.arena);
		now = next;
		if (now.n > 4 * LISTED || watch_over(watch))
			break;
	}
	if (now.n <= 4 * LISTED && !watch_over(watch)) {
		k->npoint = now.n;
		k->point = arena_array(y->arena, (size_t)now.n + 1,
		                       sizeof *k->point);
		for (int32_t i = 0; i < now.n; i++)
			k->point[i] = (struct part_point){
				.keep = now.at[i].keep,
				.bytes = now.at[i].bytes,
				.min_bytes = now.at[i].min_bytes,
				.min_later_bytes =
					min_later_bytes_of(k, &now.at[i]),
				.least = now.at[i].sec,
				.sec = now.at[i].sec,
				.unsaved = now.at[i].unsaved
			};
		qsort(k->point, (size_t)k->npoint, sizeof *k->point,
		      by_falling_bytes);
	}
	arena_free(now.arena);
	return k->npoint > 0;
}

/* Which to measure: saved ones that none beats in bytes and seconds, then
 * those that only these beat, and so on.  By order of bytes. */
static void
choose_measured(struct part_class *k)
{
	int32_t n = 0;

	for (int round = 0; n < MEASURED && round < 8; round++) {
		double best = -1;

		for (int32_t i = k->npoint - 1; i >= 0 && n < MEASURED;
		     i--) {
			struct part_point *c = &k->point[i];

			if (c->unsaved || c->measured
			    || (best >= 0 && c->least >= best))
				continue;
			best = c->least;
			c->measured = true;
			n++;
		}
	}
	k->nmeasured = n;
}

/* ---- dominated ones ---- */

/* Point c is no worse than d in bytes and seconds. */
static bool
no_worse(const struct part_class *k, int32_t c, int32_t d, bool low)
{
	const struct part_point *x = &k->point[c], *z = &k->point[d];

	return low ? x->min_later_bytes <= z->min_later_bytes
		&& x->least <= z->least
		: x->bytes <= z->bytes && x->sec <= z->sec;
}

/* No use beside d: at no part is it better in anything. */
static bool
is_beaten(const struct part_class *k, int32_t c, int32_t d, bool low)
{
	const struct needs *n = low ? k->least : k->need;

	if (!no_worse(k, d, c, low)
	    || (low && k->point[d].min_bytes > k->point[c].min_bytes))
		return false;
	for (int32_t i = 0; i < (low ? k->nleast : k->nneed); i++)
		if (n[i].of[d] > n[i].of[c])
			return false;
	return true;
}

static int32_t *
list_undominated(struct partition *y, int32_t class, bool low, int32_t *count)
{
	const struct part_class *k = &y->class[class];
	int32_t *list = arena_array(y->arena, (size_t)k->npoint + 1, 4);
	int32_t n = 0;

	/* the small ones first, and equal ones by seconds */
	for (int32_t c = k->npoint - 1; c >= 0 && !watch_over(y->r->watch);
	     c--) {
		bool out = !low && !k->point[c].measured;

		for (int32_t i = 0; !out && i < n; i++)
			out = is_beaten(k, c, list[i], low);
		if (!out)
			list[n++] = c;
	}
	*count = n;
	return list;
}

/* By need of those in the list: where a point that is beaten in bytes
 * and seconds stops being of use.  Not for unsaved ones in plans, of which the
 * seconds are guessed. */
static void
find_limits(const struct partition *y, const struct part_class *k,
            const int32_t *list, int32_t count, bool low, struct needs *n)
{
	n->limit = arena_array(y->arena, (size_t)count + 1, sizeof *n->limit);
	for (int32_t i = 0; i < count && !watch_over(y->r->watch); i++) {
		n->limit[i] = INT64_MAX;
		for (int32_t j = 0; j < count; j++) {
			bool same = no_worse(k, list[i], list[j], low);

			if (i != j && no_worse(k, list[j], list[i], low)
			    && !(same && j > i)
			    && n->of[list[j]] < n->limit[i])
				n->limit[i] = n->of[list[j]];
		}
		if (i == 0 || n->of[list[i]] > n->most)
			n->most = n->of[list[i]];
	}
}

bool
partition_solve(struct partition *y)
{
	for (int32_t i = 0; i < y->nclass; i++) {
		struct part_class *k = &y->class[i];

		if (!list_points(y, k))
			return false;
		choose_measured(k);
		if (!k->nmeasured)
			return false;
	}
	partition_least(y);
	partition_measure(y);
	for (int32_t i = 0; i < y->nclass; i++)
		y->class[i].plan = list_undominated(y, i, false,
		                                    &y->class[i].nplan);
	partition_unsaved(y);
	for (int32_t i = 0; i < y->nclass; i++) {
		struct part_class *k = &y->class[i];

		k->low = list_undominated(y, i, true, &k->nlow);
		for (int32_t j = 0; j < k->nneed; j++)
			find_limits(y, k, k->plan, k->nplan, false,
			            &k->need[j]);
		for (int32_t j = 0; j < k->nleast; j++)
			find_limits(y, k, k->low, k->nlow, true,
			            &k->least[j]);
	}
	return !watch_over(y->r->watch);
}
