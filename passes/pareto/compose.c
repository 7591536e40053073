/* Plans and a bound for every amount of memory, from parts.
 *
 * what    the curve of seconds of recompute against memory; plans on it
 * method  Dynamic programming over parts from the last to the first.  A part
 *         with a Pareto point works if what is kept of earlier parts and what
 *         it needs itself fit; so what a row of parts asks for is slack beside
 *         the former, and
 *             slack(i) = max(slack(i + 1) + bytes of the point,
 *                            what part i needs with it)
 *         whatever the memory is: one pass gives the whole curve.  Lists hold
 *         the fastest answer in each of BUCKETS ranges of slack.  After a
 *         point with an unsaved boundary the next part saves its own, and needs
 *         more.
 *         With K slots, slack is beside K times what is kept of earlier parts:
 *             slack(i) = max(slack(i + 1) + K bytes of the point,
 *                            what part i needs with it
 *                            + (K - 1) bytes kept from part i on)
 *         so that answers also tell what they keep.
 * bound   The same over all points, with what any plan needs and keeps
 *         (partition_least has the proof); a range holds its least slack, its
 *         least seconds and the least that is kept, so that nothing is lost.
 *         Bytes that a plan may free in other ways, in all slots, are bought at
 *         their price when the bound is read.
 *         The fewer parts, the finer the ranges.
 *         With host memory a part needs less by what has been sent before: at
 *         most what a lane carries in the seconds of first runs and clones
 *         before it, and of waits.  A second that is spent elsewhere might be
 *         waited instead, at the same place or before, so that slack is worth a
 *         lane's seconds when the bound is read, and slower answers are beaten
 *         as without.
 * source  slack as the state of the program is that of Griewank's and
 *         Walther's revolve and of rotor (Beaumont et al., 2019), on parts with
 *         points
 * cost    parts * BUCKETS * points
 */
#include "passes/pareto/pareto.h"
#include "passes/remat_model/remat_host.h"

#include <math.h>
#include <string.h>

enum {
	BUCKETS = 4096, BOUND_BUCKETS = 1 << 16, BOUND_WORK = 1 << 22,
	HALVINGS = 8                    /* of the range of the bound, at most */
};

/* An answer for a part and all later parts. */
struct curve_entry {
	int64_t slack;
	int64_t kept;                   /* bytes of a slot */
	double sec, least;              /* reckoned; no plan takes less */
	int32_t point, next;
};

struct curve_row {
	struct curve_entry *at;         /* by rising slack, falling seconds */
	int32_t n;
};

/* All that is remembered of an answer: its point, and the answer for the later
 * parts. */
struct link {
	int32_t point, next;
};

struct pareto_curve {
	struct partition *y;
	const struct remat_host *host;  /* NULL: no host memory */
	/* Bytes that have gone to host memory in a plan that neither waits nor
	 * repeats anything, at most: while backward is at a part, by part. */
	int64_t *sent;
	int64_t top;
	int64_t zero;                   /* slack of no bytes: with host memory
	                                 * parts may need less than that */
	int64_t end_forward;            /* slack of no part */
	int64_t others;                 /* slots but the one in use */
	struct curve_row first;         /* of the first part */
	struct link **row;              /* by part */
	/* the same after a part with an unsaved boundary, which puts bytes
	 * back; by level */
	struct link *(*after_unsaved)[PART_LEVELS];
	struct curve_row bound;         /* NULL: not computed yet; */
	int64_t bound_top;              /* ... of answers with less slack */
};

/* What is under construction: a bucket each. */
struct buckets {
	struct curve_entry *at;         /* sec < 0: empty */
	int32_t n, lo, hi;              /* all others are empty */
	int64_t width;
	Arena *arena;
};

static void
buckets_open(struct buckets *c, int32_t n, int64_t top)
{
	c->arena = arena_new();
	c->n = c->lo = n;
	c->hi = -1;
	c->at = arena_array(c->arena, (size_t)n, sizeof *c->at);
	c->width = top / n + 1;
	for (int32_t i = 0; i < c->n; i++)
		c->at[i].sec = -1;
}

/* The bucket for so much slack. */
static struct curve_entry *
bucket_of(struct buckets *c, int64_t slack)
{
	int32_t i = (int32_t)(slack / c->width);

	c->lo = i < c->lo ? i : c->lo;
	c->hi = i > c->hi ? i : c->hi;
	return &c->at[i];
}

/* The buckets' undominated entries; clears them. */
static struct curve_row
buckets_flush(struct buckets *c, Arena *arena)
{
	struct curve_row row = { NULL, 0 };
	double best = INFINITY;

	for (int32_t i = c->lo; i <= c->hi; i++)
		if (c->at[i].sec >= 0 && c->at[i].sec < best) {
			best = c->at[i].sec;
			c->at[c->lo + row.n++] = c->at[i];
		}
	row.at = arena_array(arena, (size_t)row.n + 1, sizeof *row.at);
	if (row.n)
		memcpy(row.at, c->at + c->lo,
		       (size_t)row.n * sizeof *row.at);
	for (int32_t i = c->lo; i <= c->hi; i++)
		c->at[i].sec = -1;
	c->lo = c->n;
	c->hi = -1;
	return row;
}

/* ---- plans ---- */

static void
insert_entry(struct buckets *c, const struct curve_entry *new)
{
	struct curve_entry *e = bucket_of(c, new->slack);

	if (e->sec < 0 || new->sec < e->sec
	    || (new->sec <= e->sec && new->slack < e->slack))
		*e = *new;
}

/* Part i with its j-th useful point before the answers of later parts, which
 * with it take less than `limit`.  Where a point is beaten by one that needs
 * more, it is of use only as long as that need is not met. */
static void
put_before(const struct pareto_curve *v, int32_t i, int32_t j, int64_t more,
           int64_t limit, const struct curve_row *behind, struct buckets *c)
{
	const struct curve_part *p = &v->y->part[i];
	const struct part_class *k = &v->y->class[p->class];
	int32_t id = k->plan[j];
	const struct part_point *f = &k->point[id];
	int64_t least = p->need->of[id] + p->need_more + more;
	int64_t to = j < k->nplan ? p->need->limit[j] : INT64_MAX;

	if (least >= v->top)
		return;
	if (to < INT64_MAX && to + p->need_more + more < limit)
		limit = to + p->need_more + more;
	for (int32_t e = 0; e < behind->n; e++) {
		const struct curve_entry *b = &behind->at[e];
		int64_t kept = b->kept + f->bytes, other = v->others * kept;
		struct curve_entry new = {
			b->slack + (v->others + 1) * f->bytes, kept,
			b->sec + f->sec, b->least + f->least, id, e };

		if (new.slack >= v->top)
			break;
		if (new.slack - other >= limit || least + other >= v->top)
			continue;
		if (new.slack < least + other)
			new.slack = least + other;
		insert_entry(c, &new);
	}
}

/* Points of part i that save its boundary. */
static void
put_saved_points(const struct pareto_curve *v, int32_t i, int64_t more,
                 int64_t limit, const struct curve_row *behind,
                 struct buckets *c)
{
	const struct curve_part *p = &v->y->part[i];

	for (int32_t j = 0; j < v->y->class[p->class].nplan; j++)
		put_before(v, i, j, more, limit, behind, c);
}

static struct link *
links_of(const struct curve_row *row, Arena *arena)
{
	struct link *l = arena_array(arena, (size_t)row->n + 1, sizeof *l);

	for (int32_t i = 0; i < row->n; i++)
		l[i] = (struct link){ row->at[i].point, row->at[i].next };
	return l;
}

/* The saved answers when the part before puts `more` bytes back: the same
 * from where no need is felt. */
static struct curve_row
compose_after_unsaved(const struct pareto_curve *v, int32_t i, int64_t more,
                      const struct curve_row *saved,
                      const struct curve_row *behind, struct buckets *c,
                      Arena *arena)
{
	const struct curve_part *p = &v->y->part[i];
	int64_t felt = v->others ? INT64_MAX
		: p->need->most + p->need_more + more;

	put_saved_points(v, i, more, felt, behind, c);
	for (int32_t e = 0; e < saved->n; e++)
		if (saved->at[e].slack >= felt)
			insert_entry(c, &saved->at[e]);
	return buckets_flush(c, arena);
}

static void
compose_plans(struct pareto_curve *v)
{
	const struct partition *y = v->y;
	struct curve_row behind = { NULL, 0 };
	struct curve_row after_unsaved[PART_LEVELS] = { 0 };
	Arena *old = arena_new();       /* of the next rows */
	struct buckets c;

	buckets_open(&c, BUCKETS, v->top);
	insert_entry(&c, &(struct curve_entry){
		.slack = v->others * y->kept, .kept = y->kept });
	behind = buckets_flush(&c, old);
	for (int32_t i = y->n - 1; i >= 0 && !watch_over(y->r->watch); i--) {
		const struct part_class *k = &y->class[y->part[i].class];
		const struct part_class *b = i > 0
			? &y->class[y->part[i - 1].class] : k;
		Arena *fresh = i > 0 ? arena_new() : y->arena;
		struct curve_row row, next[PART_LEVELS] = { 0 };

		put_saved_points(v, i, 0, INT64_MAX, &behind, &c);
		row = buckets_flush(&c, fresh);
		for (int32_t l = 0; i > 0 && l < b->nlevel; l++) {
			next[l] = compose_after_unsaved(v, i, b->level[l], &row,
			                                &behind, &c, fresh);
			v->after_unsaved[i][l] = links_of(&next[l], y->arena);
		}
		for (int32_t e = 0; e < row.n; e++)
			insert_entry(&c, &row.at[e]);
		for (int32_t j = 0; i + 1 < y->n && j < k->nunsaved; j++) {
			int32_t at = k->nplan + j;
			int32_t level = k->point[k->plan[at]].level;

			put_before(v, i, at, 0, INT64_MAX,
			           &after_unsaved[level], &c);
		}
		row = buckets_flush(&c, fresh);
		v->row[i] = links_of(&row, y->arena);
		behind = row;
		memcpy(after_unsaved, next, sizeof next);
		arena_free(old);
		old = fresh;
	}
	if (old != y->arena)            /* no time for the others */
		arena_free(old);
	else
		v->first = behind;
	arena_free(c.arena);
}

/* ---- bound ---- */

/* The least half, quarter, ... of the top within which answers are of use:
 * more than all that plans may free in other ways cannot be freed. */
static int64_t
bound_top(const struct pareto_curve *v, int64_t memory)
{
	const struct partition *y = v->y;
	int64_t top = v->top;

	if (v->host)                    /* any slack can be waited for */
		return top;
	for (int32_t k = 0; k < y->nfreeable; k++)
		memory += (v->others + 1) * y->freeable[k].bytes;
	for (int k = 0; k < HALVINGS && top / 2 > memory; k++)
		top /= 2;
	return top;
}

/* The nearer the top, the finer, and the fewer. */
static int32_t
bound_buckets(const struct pareto_curve *v)
{
	int32_t n = BOUND_WORK / v->y->n;

	if (n > BOUND_BUCKETS)
		n = BOUND_BUCKETS;
	for (int64_t top = v->top; top / 4 >= v->bound_top; top /= 4)
		n /= 2;
	/* no more than there are amounts to tell apart */
	return n > v->bound_top / 64 ? (int32_t)(v->bound_top / 64) + 1 : n;
}

static inline void
put_slack(struct curve_entry *e, int64_t slack, int64_t kept, double sec)
{
	bool empty = e->sec < 0;

	e->slack = empty || slack < e->slack ? slack : e->slack;
	e->kept = empty || kept < e->kept ? kept : e->kept;
	e->sec = empty || sec < e->sec ? sec : e->sec;
}

/* Where one micro-batch is in flight: answers `later`, of which those with more
 * slack are faster, in buckets: each with `more` slack and seconds, `least`
 * slack at least, less than `to`. */
static void
insert_later(struct buckets *c, const struct curve_row *later, int64_t more,
             double sec, int64_t least, int64_t to)
{
	const struct curve_entry *x = later->at, *end = x + later->n;
	struct curve_entry *e = NULL;   /* a bucket, for slack below `edge` */
	int64_t edge = 0;

	while (x + 1 < end && x[1].slack + more <= least
	       && x[1].slack + more < to)
		x++;                    /* the last one is the fastest */
	if (x < end && x->slack + more < to) {
		e = bucket_of(c, x->slack + more < least ? least
		              : x->slack + more);
		edge = (e - c->at + 1) * c->width;
	}
	for (; x < end && x->slack + more < to; x++) {
		int64_t slack = x->slack + more;

		slack = slack < least ? least : slack;
		while (slack >= edge) {
			edge += c->width;
			e++;
		}
		put_slack(e, slack, 0, x->sec + sec);
	}
	if (e)
		bucket_of(c, edge - 1);
}

/* The same where others are, which keep what this one keeps; this one needs
 * `least` beside that, and less than `to`. */
static void
insert_later_kept(const struct pareto_curve *v, struct buckets *c,
                  const struct curve_row *later, int64_t more, double sec,
                  int64_t least, int64_t to)
{
	for (int32_t e = 0; e < later->n; e++) {
		const struct curve_entry *x = &later->at[e];
		int64_t kept = x->kept + more, needs = least + v->others * kept;
		int64_t slack = x->slack + (v->others + 1) * more;

		if (slack >= v->bound_top)
			break;
		if (slack - v->others * kept >= to || needs >= v->bound_top)
			continue;
		slack = slack < needs ? needs : slack;
		put_slack(bucket_of(c, slack), slack, kept, x->sec + sec);
	}
}

/* The same with host memory: in the seconds of clones a lane sends more. */
static void
insert_later_sent(const struct pareto_curve *v, struct buckets *c,
                  const struct curve_row *later, int32_t at,
                  const struct part_point *f, int64_t least, int64_t to)
{
	for (int32_t e = 0; e < later->n; e++) {
		const struct curve_entry *x = &later->at[e];
		double sec = x->sec + f->least;
		int64_t slack = x->slack + f->min_later_bytes;
		int64_t needs = v->zero + least - v->sent[at]
			- remat_host_bytes(v->host, sec);

		if (slack >= v->bound_top || slack >= v->zero + to)
			continue;
		slack = slack > needs ? slack : needs;
		slack = slack > 0 ? slack : 0;
		if (slack < v->bound_top)
			put_slack(bucket_of(c, slack), slack, 0, sec);
	}
}

/* All points of a part before answers of later parts. */
static void
insert_part_points(const struct pareto_curve *v, int32_t at,
                   const struct curve_row *b, struct buckets *c)
{
	const struct curve_part *p = &v->y->part[at];
	const struct part_class *k = &v->y->class[p->class];

	for (int32_t j = 0; j < k->nlow; j++) {
		const struct part_point *f = &k->point[k->low[j]];
		int64_t least = p->least->of[k->low[j]] + p->least_more;
		int64_t to = p->least->limit[j];

		if (!v->host && least >= v->bound_top)
			continue;
		to = to > v->bound_top - p->least_more ? v->bound_top
			: to + p->least_more;
		if (v->host)
			insert_later_sent(v, c, b, at, f, least, to);
		else if (v->others)
			insert_later_kept(v, c, b, f->min_later_bytes, f->least,
			                  least, to);
		else
			insert_later(c, b, f->min_later_bytes, f->least, least,
			             to);
	}
}

static void
find_bound(struct pareto_curve *v)
{
	struct partition *y = v->y;
	Arena *old = arena_new();       /* of the next row */
	struct curve_row behind;
	struct buckets c;
	int64_t least;

	v->bound = (struct curve_row){ NULL, 0 };
	buckets_open(&c, bound_buckets(v), v->bound_top);
	least = v->host ? v->end_forward : v->others * y->least_kept;
	put_slack(bucket_of(&c, least), least, y->least_kept, 0);
	behind = buckets_flush(&c, old);
	for (int32_t i = y->n - 1; i >= 0 && !watch_over(y->r->watch); i--) {
		Arena *fresh = i > 0 ? arena_new() : y->arena;

		insert_part_points(v, i, &behind, &c);
		behind = buckets_flush(&c, fresh);
		arena_free(old);
		old = fresh;
	}
	if (old != y->arena)            /* no time for the others */
		arena_free(old);
	else
		v->bound = behind;
	arena_free(c.arena);
}

/* Answers within so much slack, or within more of which the rest is freed in
 * ways of which the answers know nothing. */
static double
least_within(const struct pareto_curve *v, const struct curve_row *row,
             int64_t slack)
{
	const struct partition *y = v->y;
	double best = INFINITY;

	for (int32_t i = 0; i < row->n; i++) {
		int64_t over = row->at[i].slack - slack;
		double sec = row->at[i].sec;

		for (int32_t k = 0; k < y->nfreeable && over > 0; k++) {
			const struct freeable *l = &y->freeable[k];
			int64_t bytes = (v->others + 1) * l->bytes;
			double price = l->price / (double)(v->others + 1);

			if (v->host) {  /* lanes run beside these clones */
				double more = 1 + v->host->rate * price;

				price /= more;
				more *= (double)bytes;
				bytes = more < (double)v->top
					? (int64_t)ceil(more) : v->top;
			}
			sec += price * (double)(over < bytes ? over : bytes);
			over -= bytes;
		}
		if (v->host && over > 0) {      /* it waits */
			sec += (double)over / v->host->rate;
			over = 0;
		}
		if (over <= 0 && sec < best)
			best = sec;
	}
	return best;
}

/* ---- entry ---- */

struct pareto_curve *
pareto_new(struct partition *y)
{
	struct pareto_curve *v = arena_alloc(y->arena, sizeof *v);
	uint8_t *drop = arena_array(y->arena, (size_t)y->r->nstore + 1, 1);

	v->y = y;
	v->row = arena_array(y->arena, (size_t)y->n, sizeof *v->row);
	v->after_unsaved =
		arena_array(y->arena, (size_t)y->n, sizeof *v->after_unsaved);
	remat_keep_all(y->r, y->constraint, drop);
	v->top = schedule_set(schedule_new(y->r, y->arena), drop).live;
	v->top += v->top / 16 + 1;
	v->others = y->r->slots > 1 ? y->r->slots - 1 : 0;
	compose_plans(v);
	return v->first.at ? v : NULL;
}

struct pareto_curve *
pareto_with_host(const struct pareto_curve *of, const struct remat_host *h)
{
	const struct partition *y = of->y;
	struct pareto_curve *v = arena_alloc(y->arena, sizeof *v);
	NodeId last = y->part[y->n - 1].lo - 1;

	*v = *of;
	v->host = h;
	v->bound.at = NULL;
	v->zero = v->top;
	v->top *= 2;
	v->end_forward = v->zero + y->before - remat_host_sent(h, last);
	if (v->end_forward < 0)
		v->end_forward = 0;
	v->sent = arena_array(y->arena, (size_t)y->n, sizeof *v->sent);
	for (int32_t i = 0; i < y->n; i++) {
		NodeId end = i > 0 ? y->part[i - 1].lo : y->r->nnode;

		v->sent[i] = remat_host_sent(h, end);
	}
	return v;
}

int32_t
pareto_count(const struct pareto_curve *v)
{
	return v->first.n;
}

/* The row is by rising slack, callers count from the fastest. */
static const struct curve_entry *
entry_of(const struct pareto_curve *v, int32_t i)
{
	return &v->first.at[v->first.n - 1 - i];
}

int64_t
pareto_bytes(const struct pareto_curve *v, int32_t i)
{
	return entry_of(v, i)->slack;
}

double
pareto_least(const struct pareto_curve *v, int32_t i)
{
	return entry_of(v, i)->least;
}

void
pareto_plan(const struct pareto_curve *v, int32_t i, uint8_t *drop)
{
	const struct partition *y = v->y;
	struct link e = { entry_of(v, i)->point, entry_of(v, i)->next };

	remat_keep_all(y->r, y->constraint, drop);
	for (int32_t s = 0; s < y->r->nstore; s++)
		if (y->forced[s])
			drop[s] = 0;
	for (int32_t at = 0; at < y->n; at++) {
		const struct curve_part *p = &y->part[at];
		const struct part_point *c = &y->class[p->class].point[e.point];

		part_set(y, p, c, drop);
		if (at + 1 < y->n)
			e = c->unsaved
				? v->after_unsaved[at + 1][c->level][e.next]
				: v->row[at + 1][e.next];
	}
}

double
pareto_bound(struct pareto_curve *v, int64_t memory)
{
	int64_t top;

	memory += v->zero;
	if (memory >= v->top)
		return 0;
	top = bound_top(v, memory);
	if (!v->bound.at || top != v->bound_top) {
		v->bound_top = top;
		find_bound(v);
	}
	return v->bound.n ? least_within(v, &v->bound, memory) : 0;
}
