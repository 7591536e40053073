/* Classify masks known at compile time: constants, or constant expressions
 * bounded by intervals.
 *
 * A mask that is added hides a key where it is MASKED_SCORE or less: exp
 * underflows to zero there unless scores differ by thousands.
 */
#include "passes/canon/mask.h"

#include <math.h>
#include <string.h>

enum visibility { ATTENDED, MASKED, MIXED };

static enum visibility
visibility_at(const Val *v, int64_t i)
{
	double x = val_float(v, i);

	if (v->dt == DT_BOOL)
		return x != 0 ? ATTENDED : MASKED;
	return x == 0 ? ATTENDED : x <= MASKED_SCORE ? MASKED : MIXED;
}

static int64_t
extent_from_end(const Val *v, int back)
{
	return v->shape.rank >= back ? v->shape.dim[v->shape.rank - back] : 1;
}

static bool
masks_nothing(const Val *v)
{
	int64_t n = val_nelem(v);

	for (int64_t i = 0; i < n; i++)
		if (visibility_at(v, i) != ATTENDED)
			return false;
	return true;
}

/* Key j is shown to query i iff j <= i + S - T, in all leading dims. */
static bool
is_causal(const Val *v, int64_t t, int64_t s)
{
	int64_t n = val_nelem(v);

	if (extent_from_end(v, 2) != t || extent_from_end(v, 1) != s)
		return false;
	/* a query without keys still compares their scores plus the mask */
	if (t > s && v->dt != DT_BOOL && n > 0 && !isinf(val_float(v, 0)))
		return false;
	for (int64_t k = 0; k < n; k++) {
		int64_t j = k % s, i = k / s % t;

		if (visibility_at(v, k) != (j <= i + s - t ? ATTENDED : MASKED))
			return false;
	}
	return true;
}

bool
mask_is_boolean(const Val *v)
{
	int64_t n = val_nelem(v), s = extent_from_end(v, 1);
	bool some = true;

	for (int64_t k = 0; k < n; k++) {
		enum visibility x = visibility_at(v, k);

		if (x == MIXED)
			return false;
		if (k % s == 0) {
			if (!some)
				return false;
			some = false;
		}
		some |= x == ATTENDED;
	}
	return some;
}

enum { BOXES = 1 << 12, ROWS_MAX = 1 << 24 };

/* State of the scan over a mask's boxes. */
struct mask_scan {
	struct rewrite *w;
	const Val *v;
	int64_t t, s;
	bool masks, causal;
	bool *attends;                  /* by query: sees a key */
	size_t attends_cap;
	struct box stack[BOXES];
	int n;
};

static enum visibility
box_visibility(struct mask_scan *y, const struct box *b, bool *mixed)
{
	double lo, hi;

	*mixed = false;
	if (!const_expr_range(y->w, val_id(y->w->g, y->v), b, &lo, &hi))
		return MIXED;
	if (y->v->dt == DT_BOOL) {
		*mixed = lo == 0 && hi != 0;
		return lo != 0 ? ATTENDED : MASKED;
	}
	if (lo == 0 && hi == 0)
		return ATTENDED;
	if (hi <= MASKED_SCORE)
		return MASKED;
	*mixed = lo <= 0 && hi >= 0 && lo != hi;
	return MIXED;
}

/* Whether a causal mask shows or hides the whole box; MIXED: neither. */
static enum visibility
causal_visibility(const struct mask_scan *y, const struct box *b)
{
	int last = y->v->shape.rank - 1;
	int64_t skew = y->s - y->t;

	return b->hi[last] - 1 <= b->lo[last - 1] + skew ? ATTENDED
		: b->lo[last] > b->hi[last - 1] - 1 + skew ? MASKED
		: MIXED;
}

/* Record a box whose elements are all shown, or all hidden. */
static void
record_box(struct mask_scan *y, const struct box *b, bool shown)
{
	int last = y->v->shape.rank - 1;
	int64_t rows = 1, at[MAX_RANK];

	y->causal = y->causal
		&& causal_visibility(y, b) == (shown ? ATTENDED : MASKED);
	y->masks |= !shown;
	for (int d = 0; d < last; d++) {
		at[d] = b->lo[d];
		rows *= b->hi[d] - b->lo[d];
	}
	for (int64_t i = 0; shown && i < rows; i++) {
		int64_t row = 0;

		for (int d = 0; d < last; d++)
			row = row * y->v->shape.dim[d] + at[d];
		y->attends[row] = true;
		for (int d = last; d-- > 0; at[d] = b->lo[d])
			if (++at[d] < b->hi[d])
				break;
	}
}

/* Push both halves of the box, cut along its longest side. */
static bool
split_box(struct mask_scan *y, const struct box *b)
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
	y->stack[y->n] = y->stack[y->n + 1] = *b;
	y->stack[y->n].lo[side] = b->lo[side] + most / 2;
	y->stack[y->n + 1].hi[side] = b->lo[side] + most / 2;
	y->n += 2;
	return true;
}

/* Whether the mask is boolean or hides with -inf (see is_causal). */
static bool
masks_infinitely(struct mask_scan *y)
{
	struct box first = { .lo = { 0 } };
	double lo, hi;

	for (int d = 0; d < y->v->shape.rank; d++)
		first.hi[d] = 1;
	return y->v->dt == DT_BOOL
		|| (const_expr_range(y->w, val_id(y->w->g, y->v), &first, &lo,
		                     &hi) && isinf(lo));
}

/* All scans share this memory. */
static struct mask_scan *
start_scan(struct rewrite *w, const struct masks *m, const Val *v, size_t rows)
{
	struct mask_scan *y = w->mask_scan;

	if (!y)
		w->mask_scan = y = arena_alloc(w->mem, sizeof *y);
	y->w = w;
	y->v = v;
	y->t = m->t;
	y->s = m->s;
	y->n = 1;
	y->stack[0] = (struct box){ .lo = { 0 } };
	y->masks = false;
	y->attends = arena_grow(w->mem, y->attends, 0, &y->attends_cap, rows,
	                        sizeof *y->attends);
	memset(y->attends, 0, rows * sizeof *y->attends);
	return y;
}

/* mask_kind of a constant expression.  Boxes that are partly shown are halved;
 * those across the diagonal of a possible causal mask are halved without
 * evaluation. */
static enum mask_kind
const_expr_mask_kind(struct rewrite *w, const struct masks *m, ValId v)
{
	const Val *mask = &w->g->val[v];
	int64_t n = val_nelem(mask);
	int64_t rows = n > 0 ? n / extent_from_end(mask, 1) : 0;
	struct mask_scan *y;
	bool whole = true;

	if (rows < 1 || rows > ROWS_MAX)
		return OTHER;
	y = start_scan(w, m, mask, (size_t)rows);
	y->causal = y->v->shape.rank > 1 && extent_from_end(y->v, 2) == m->t
		&& extent_from_end(y->v, 1) == m->s;
	for (int d = 0; d < y->v->shape.rank; d++)
		y->stack[0].hi[d] = y->v->shape.dim[d];
	while (y->n > 0) {
		const struct box b = y->stack[--y->n];
		bool mixed = !whole && y->causal
			&& causal_visibility(y, &b) == MIXED;
		enum visibility seen = mixed ? MIXED
			: box_visibility(y, &b, &mixed);

		whole = false;
		if (mixed ? !split_box(y, &b) : seen == MIXED)
			return OTHER;
		if (!mixed)
			record_box(y, &b, seen == ATTENDED);
	}
	if (!y->masks)
		return MASKS_NOTHING;
	if (y->causal && (m->t <= m->s || masks_infinitely(y)))
		return CAUSAL;
	for (int64_t i = 0; i < rows; i++)
		if (!y->attends[i])
			return OTHER;
	return BOOLEAN;
}

enum mask_kind
mask_kind(struct rewrite *w, const struct masks *m, ValId v)
{
	const Val *c = &w->g->val[v];

	if (w->mask[v] != UNCLASSIFIED)
		return w->mask[v];
	if (w->const_expr[v])
		w->mask[v] = const_expr_mask_kind(w, m, v);
	else
		w->mask[v] = masks_nothing(c) ? MASKS_NOTHING
			: is_causal(c, m->t, m->s) ? CAUSAL
			: mask_is_boolean(c) ? BOOLEAN : OTHER;
	return w->mask[v];
}

bool
mask_is_infinite(struct rewrite *w, ValId v)
{
	const Val *c = &w->g->val[v];
	int64_t n = val_nelem(c);
	struct box all = { .lo = { 0 } };
	double lo, hi;

	if (c->dt == DT_BOOL)
		return true;
	for (int d = 0; d < c->shape.rank; d++)
		all.hi[d] = c->shape.dim[d];
	if (w->const_expr[v])
		return const_expr_range(w, v, &all, &lo, &hi) && isinf(lo);
	for (int64_t i = 0; i < n; i++)
		if (visibility_at(c, i) == MASKED)
			return isinf(val_float(c, i));
	return true;
}

bool
mask_attends_at(const Val *v, int64_t i)
{
	return visibility_at(v, i) == ATTENDED;
}
