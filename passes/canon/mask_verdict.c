/* The keys that a mask known at compile time hides: a constant, or a formula
 * of constants, bounded by intervals.
 *
 * A mask that is added counts as hiding a key where it is MASK_HIDDEN or less:
 * exp underflows to zero there unless scores differ by thousands.
 */
#include "passes/canon/mask.h"

#include <math.h>
#include <string.h>

enum seen { SHOWN, NOT_SHOWN, NEITHER };

static enum seen
seen_at(const Val *v, int64_t i)
{
	double x = val_float(v, i);

	if (v->dt == DT_BOOL)
		return x != 0 ? SHOWN : NOT_SHOWN;
	return x == 0 ? SHOWN : x <= MASK_HIDDEN ? NOT_SHOWN : NEITHER;
}

static int64_t
extent(const Val *v, int back)
{
	return v->shape.rank >= back ? v->shape.dim[v->shape.rank - back] : 1;
}

static bool
hides_nothing(const Val *v)
{
	int64_t n = val_nelem(v);

	for (int64_t i = 0; i < n; i++)
		if (seen_at(v, i) != SHOWN)
			return false;
	return true;
}

/* Key j is shown to query i iff j <= i + S - T, in all leading dims. */
static bool
is_causal(const Val *v, int64_t t, int64_t s)
{
	int64_t n = val_nelem(v);

	if (extent(v, 2) != t || extent(v, 1) != s)
		return false;
	/* a query that sees no key: with what is added it still compares */
	if (t > s && v->dt != DT_BOOL && n > 0 && !isinf(val_float(v, 0)))
		return false;
	for (int64_t k = 0; k < n; k++) {
		int64_t j = k % s, i = k / s % t;

		if (seen_at(v, k) != (j <= i + s - t ? SHOWN : NOT_SHOWN))
			return false;
	}
	return true;
}

bool
mask_is_boolean(const Val *v)
{
	int64_t n = val_nelem(v), s = extent(v, 1);
	bool some = true;

	for (int64_t k = 0; k < n; k++) {
		enum seen x = seen_at(v, k);

		if (x == NEITHER)
			return false;
		if (k % s == 0) {
			if (!some)
				return false;
			some = false;
		}
		some |= x == SHOWN;
	}
	return some;
}

enum { BOXES = 1 << 12, ROWS_MAX = 1 << 24 };

/* What is known of a mask while its boxes are looked at. */
struct survey {
	struct rewrite *w;
	const Val *v;
	int64_t t, s;
	bool hides, causal;
	bool *some;                     /* by query: it sees a key */
	size_t some_cap;
	struct box todo[BOXES];
	int n;
};

static enum seen
seen_in(struct survey *y, const struct box *b, bool *mixed)
{
	double lo, hi;

	*mixed = false;
	if (!formula_bounds(y->w, val_id(y->w->g, y->v), b, &lo, &hi))
		return NEITHER;
	if (y->v->dt == DT_BOOL) {
		*mixed = lo == 0 && hi != 0;
		return lo != 0 ? SHOWN : NOT_SHOWN;
	}
	if (lo == 0 && hi == 0)
		return SHOWN;
	if (hi <= MASK_HIDDEN)
		return NOT_SHOWN;
	*mixed = lo <= 0 && hi >= 0 && lo != hi;
	return NEITHER;
}

/* Whether a causal mask shows all of the box, or hides it; NEITHER: both. */
static enum seen
causal_in(const struct survey *y, const struct box *b)
{
	int last = y->v->shape.rank - 1;
	int64_t skew = y->s - y->t;

	return b->hi[last] - 1 <= b->lo[last - 1] + skew ? SHOWN
		: b->lo[last] > b->hi[last - 1] - 1 + skew ? NOT_SHOWN
		: NEITHER;
}

/* All elements of the box are shown, or hidden. */
static void
note_box(struct survey *y, const struct box *b, bool shown)
{
	int last = y->v->shape.rank - 1;
	int64_t rows = 1, at[MAX_RANK];

	y->causal = y->causal
		&& causal_in(y, b) == (shown ? SHOWN : NOT_SHOWN);
	y->hides |= !shown;
	for (int d = 0; d < last; d++) {
		at[d] = b->lo[d];
		rows *= b->hi[d] - b->lo[d];
	}
	for (int64_t i = 0; shown && i < rows; i++) {
		int64_t row = 0;

		for (int d = 0; d < last; d++)
			row = row * y->v->shape.dim[d] + at[d];
		y->some[row] = true;
		for (int d = last; d-- > 0; at[d] = b->lo[d])
			if (++at[d] < b->hi[d])
				break;
	}
}

/* Halves the box along its longest side, onto the stack. */
static bool
split_box(struct survey *y, const struct box *b)
{
	int side = -1;
	int64_t most = 1;

	for (int d = 0; d < y->v->shape.rank; d++)
		if (b->hi[d] - b->lo[d] > most) {
			most = b->hi[d] - b->lo[d];
			side = d;
		}
	if (side < 0 || y->n + 2 > BOXES)
		return false;
	y->todo[y->n] = y->todo[y->n + 1] = *b;
	y->todo[y->n].lo[side] = b->lo[side] + most / 2;
	y->todo[y->n + 1].hi[side] = b->lo[side] + most / 2;
	y->n += 2;
	return true;
}

/* A query that sees no key: with what is added it still compares. */
static bool
hides_wholly(struct survey *y)
{
	struct box first = { .lo = { 0 } };
	double lo, hi;

	for (int d = 0; d < y->v->shape.rank; d++)
		first.hi[d] = 1;
	return y->v->dt == DT_BOOL
		|| (formula_bounds(y->w, val_id(y->w->g, y->v), &first, &lo,
		                   &hi) && isinf(lo));
}

/* Room for one survey after the other. */
static struct survey *
new_survey(struct rewrite *w, const struct masks *m, const Val *v, size_t rows)
{
	struct survey *y = w->survey;

	if (!y)
		w->survey = y = arena_alloc(w->mem, sizeof *y);
	y->w = w;
	y->v = v;
	y->t = m->t;
	y->s = m->s;
	y->n = 1;
	y->todo[0] = (struct box){ .lo = { 0 } };
	y->hides = false;
	y->some = arena_grow(w->mem, y->some, 0, &y->some_cap, rows,
	                     sizeof *y->some);
	memset(y->some, 0, rows * sizeof *y->some);
	return y;
}

/* As mask_verdict, of a formula: boxes that are neither shown nor hidden as a
 * whole are halved, those across the diagonal of what may be a causal mask
 * without a look. */
static enum mask_verdict
formula_verdict(struct rewrite *w, const struct masks *m, ValId v)
{
	const Val *mask = &w->g->val[v];
	int64_t n = val_nelem(mask), rows = n > 0 ? n / extent(mask, 1) : 0;
	struct survey *y;
	bool whole = true;

	if (rows < 1 || rows > ROWS_MAX)
		return OTHER;
	y = new_survey(w, m, mask, (size_t)rows);
	y->causal = y->v->shape.rank > 1 && extent(y->v, 2) == m->t
		&& extent(y->v, 1) == m->s;
	for (int d = 0; d < y->v->shape.rank; d++)
		y->todo[0].hi[d] = y->v->shape.dim[d];
	while (y->n > 0) {
		const struct box b = y->todo[--y->n];
		bool mixed = !whole && y->causal
			&& causal_in(y, &b) == NEITHER;
		enum seen seen = mixed ? NEITHER : seen_in(y, &b, &mixed);

		whole = false;
		if (mixed ? !split_box(y, &b) : seen == NEITHER)
			return OTHER;
		if (!mixed)
			note_box(y, &b, seen == SHOWN);
	}
	if (!y->hides)
		return HIDES_NOTHING;
	if (y->causal && (m->t <= m->s || hides_wholly(y)))
		return CAUSAL;
	for (int64_t i = 0; i < rows; i++)
		if (!y->some[i])
			return OTHER;
	return BOOLEAN;
}

enum mask_verdict
mask_verdict(struct rewrite *w, const struct masks *m, ValId v)
{
	const Val *c = &w->g->val[v];

	if (w->mask[v] != UNSEEN)
		return w->mask[v];
	if (w->formula[v])
		w->mask[v] = formula_verdict(w, m, v);
	else
		w->mask[v] = hides_nothing(c) ? HIDES_NOTHING
			: is_causal(c, m->t, m->s) ? CAUSAL
			: mask_is_boolean(c) ? BOOLEAN : OTHER;
	return w->mask[v];
}

bool
mask_hides_for_good(struct rewrite *w, ValId v)
{
	const Val *c = &w->g->val[v];
	int64_t n = val_nelem(c);
	struct box all = { .lo = { 0 } };
	double lo, hi;

	if (c->dt == DT_BOOL)
		return true;
	for (int d = 0; d < c->shape.rank; d++)
		all.hi[d] = c->shape.dim[d];
	if (w->formula[v])
		return formula_bounds(w, v, &all, &lo, &hi) && isinf(lo);
	for (int64_t i = 0; i < n; i++)
		if (seen_at(c, i) == NOT_SHOWN)
			return isinf(val_float(c, i));
	return true;
}

bool
mask_shows(const Val *v, int64_t i)
{
	return seen_at(v, i) == SHOWN;
}
