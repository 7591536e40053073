/* Attention masks: see struct masks in match.h.
 *
 * A mask that is added counts as hiding a key where it is HIDDEN or less:
 * exp underflows to zero there unless scores differ by thousands.
 */
#include "passes/canon/match.h"

#include <math.h>

static const double HIDDEN = -1e4;

enum seen { SHOWN, NOT_SHOWN, NEITHER };

static enum seen
seen_at(const Val *v, int64_t i)
{
	double x = val_float(v, i);

	if (v->dt == DT_BOOL)
		return x != 0 ? SHOWN : NOT_SHOWN;
	return x == 0 ? SHOWN : x <= HIDDEN ? NOT_SHOWN : NEITHER;
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

/* Only shown and hidden keys, and every query sees one: the same as a
 * boolean mask whatever the scores. */
static bool
is_boolean(const Val *v)
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

/* What was made of a mask for the layer before serves the next one too. */
static bool
was_remade(const struct rewrite *w, ValId from, bool keep)
{
	return w->remade.made && w->remade.from == from
		&& w->remade.keep == keep
		&& val_is_const(&w->g->val[w->remade.made]);
}

static ValId
remade(struct rewrite *w, ValId from, bool keep, ValId made)
{
	w->remade.from = from;
	w->remade.keep = keep;
	w->remade.made = made;
	return made;
}

static ValId
to_boolean(struct rewrite *w, ValId mask)
{
	const Val *v = &w->g->val[mask];
	int64_t n = val_nelem(v);
	uint8_t *keep;

	if (w->formula[mask])
		return rw_binary(w, OP_EQ, mask, rw_const_like(w, mask, 0));
	if (was_remade(w, mask, true))
		return w->remade.made;
	keep = arena_array(w->mem, (size_t)n, 1);
	for (int64_t i = 0; i < n; i++)
		keep[i] = seen_at(v, i) == SHOWN;
	return remade(w, mask, true, rw_const(w, DT_BOOL, v->shape, keep));
}

/* A constant, or what follows from constants. */
static bool
is_known(const struct rewrite *w, ValId v)
{
	return val_is_const(&w->g->val[v]) || w->formula[v];
}

static bool
push(struct rewrite *w, struct masks *m, ValId v)
{
	if (m->n == (int)(sizeof m->v / sizeof m->v[0]) || w->trained[v]
	    || (rw_dt(w, v) != DT_BOOL && !rw_float(w, v)))
		return false;
	m->v[m->n++] = v;
	return true;
}

enum verdict { UNSEEN, HIDES_NOTHING, CAUSAL, BOOLEAN, OTHER };

/* ---- masks that are not written out ---- */

enum { BOXES = 1 << 12, ROWS_MAX = 1 << 24 };

/* What is known of a mask while its boxes are looked at. */
struct survey {
	struct rewrite *w;
	const Val *v;
	int64_t t, s;
	bool hides, causal, *some;      /* by query: it sees a key */
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
	if (hi <= HIDDEN)
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

/* As verdict_on, of a formula: boxes that are neither shown nor hidden as a
 * whole are halved, those across the diagonal of what may be a causal mask
 * without a look. */
static enum verdict
formula_verdict(struct rewrite *w, const struct masks *m, ValId v)
{
	struct survey *y = arena_alloc(w->mem, sizeof *y);
	int64_t n = val_nelem(&w->g->val[v]), rows;
	bool whole = true;

	*y = (struct survey){ .w = w, .v = &w->g->val[v], .t = m->t,
	                      .s = m->s, .n = 1 };
	rows = n > 0 ? n / extent(y->v, 1) : 0;
	if (rows < 1 || rows > ROWS_MAX)
		return OTHER;
	y->some = arena_array(w->mem, (size_t)rows, sizeof *y->some);
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

/* What a constant or a formula does as a mask; masks are large and shared by
 * layers, so it is found once. */
static enum verdict
verdict_on(struct rewrite *w, const struct masks *m, ValId v)
{
	const Val *c = &w->g->val[v];

	if (w->mask[v] != UNSEEN)
		return w->mask[v];
	if (w->formula[v])
		w->mask[v] = formula_verdict(w, m, v);
	else
		w->mask[v] = hides_nothing(c) ? HIDES_NOTHING
			: is_causal(c, m->t, m->s) ? CAUSAL
			: is_boolean(c) ? BOOLEAN : OTHER;
	return w->mask[v];
}

/* Whether a known mask adds -inf where it hides; a finite number beside
 * another mask's leaves a query that both hide all keys from comparing them. */
static bool
hides_for_good(struct rewrite *w, ValId v)
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

static bool
take_known(struct rewrite *w, struct masks *m, ValId v)
{
	if (rw_dt(w, v) != DT_BOOL && !rw_float(w, v))
		return false;
	switch (verdict_on(w, m, v)) {
	case HIDES_NOTHING:
		return true;
	case CAUSAL:
		m->causal = true;
		m->finite_known |= !hides_for_good(w, v);
		return true;
	case BOOLEAN:
		m->finite_known |= !hides_for_good(w, v);
		return push(w, m, rw_dt(w, v) == DT_BOOL ? v
		                                         : to_boolean(w, v));
	default:
		return push(w, m, v);
	}
}

/* The constant condition c, or its opposite, as a boolean constant. */
static ValId
condition(struct rewrite *w, ValId c, bool keep)
{
	const Val *v = &w->g->val[c];
	int64_t n = val_nelem(v);
	uint8_t *shown = arena_array(w->mem, (size_t)n, 1);

	for (int64_t i = 0; i < n; i++)
		shown[i] = (val_int(v, i) != 0) == keep;
	return rw_const(w, DT_BOOL, v->shape, shown);
}

/* Where a known condition, or its opposite, leaves scores. */
static ValId
shown_by(struct rewrite *w, ValId c, bool keep)
{
	ValId made;

	if (keep && rw_dt(w, c) == DT_BOOL)
		return c;
	if (w->formula[c])
		return rw_unary(w, OP_NOT, c);
	if (was_remade(w, c, keep))
		return w->remade.made;
	made = condition(w, c, keep);
	rw_grow(w);
	return remade(w, c, keep, made);
}

/* Whether every query sees a key by the boolean mask c. */
static bool
sees_all(struct rewrite *w, const struct masks *m, ValId c)
{
	enum verdict v;

	if (!w->formula[c])
		return is_boolean(&w->g->val[c]);
	v = verdict_on(w, m, c);
	return v == HIDES_NOTHING || v == BOOLEAN
		|| (v == CAUSAL && m->t <= m->s);
}

bool
masks_where(struct rewrite *w, struct masks *m, ValId c, bool keep,
            double hidden)
{
	bool known;

	c = rw_unexpanded(w, c);
	if (hidden > HIDDEN)
		return false;
	known = is_known(w, c) && (rw_dt(w, c) == DT_BOOL || !w->formula[c]);
	if (known)
		c = shown_by(w, c, keep);
	else if (!keep)
		c = rw_unary(w, OP_NOT, c);
	if (!c || m->nfinite == (int)(sizeof m->v / sizeof m->v[0]))
		return false;
	if (!isinf(hidden)) {
		m->blind |= m->nfinite || !known || !sees_all(w, m, c);
		m->mixed |= m->nfinite && m->hidden != hidden;
		m->finite[m->nfinite++] = c;
		m->hidden = hidden;
	}
	return masks_take(w, m, c);
}

/* where(c, x, -inf) and where(c, -inf, x): c hides, and so may x. */
static bool
take_where(struct rewrite *w, struct masks *m, NodeId n)
{
	for (int i = 1; i <= 2; i++) {
		double x;

		if (rw_scalar(w, rw_in(w, n, i), &x) && isinf(x) && x < 0)
			return masks_where(w, m, rw_in(w, n, 0), i == 2, x)
				&& masks_take(w, m, rw_in(w, n, 3 - i));
	}
	return push(w, m, rw_out(w, n));
}

bool
masks_take(struct rewrite *w, struct masks *m, ValId v)
{
	NodeId n;
	ValId a, b;

	v = rw_unexpanded(w, v);
	/* of a formula that is neither, a part may be causal */
	if (val_is_const(&w->g->val[v])
	    || (w->formula[v] && verdict_on(w, m, v) != OTHER))
		return take_known(w, m, v);
	n = rw_is(w, v, OP_WHERE);
	if (n && rw_float(w, v))
		return take_where(w, m, n);
	n = rw_is(w, v, OP_AND);
	if (!n)
		n = rw_is(w, v, OP_ADD);
	if (!n)
		return push(w, m, v);
	a = rw_unexpanded(w, rw_in(w, n, 0));
	b = rw_unexpanded(w, rw_in(w, n, 1));
	/* the known half may be a causal mask */
	if (is_known(w, a) || is_known(w, b))
		return masks_take(w, m, a) && masks_take(w, m, b);
	return push(w, m, v);
}

ValId
masks_seeing(struct rewrite *w, const struct masks *m)
{
	Attr top = attr_default(OP_REDUCE_MAX), cast = attr_default(OP_CAST);
	ValId all = m->finite[0];

	for (int i = 1; all && i < m->nfinite; i++)
		all = rw_binary(w, OP_AND, all, m->finite[i]);
	cast.CAST.to = DT_F32;
	top.REDUCE_MAX.axes = (IntList){ 1, { 3 } };
	all = rw_rank4(w, all);
	all = rw_emit(w, OP_CAST, 1, &all, &cast);
	all = rw_emit(w, OP_REDUCE_MAX, 1, &all, &top);
	return all ? rw_binary(w, OP_GT, all, rw_const_like(w, all, 0)) : 0;
}

static ValId
join_kind(struct rewrite *w, const struct masks *m, bool boolean)
{
	ValId all = 0;

	for (int i = 0; i < m->n; i++) {
		if ((rw_dt(w, m->v[i]) == DT_BOOL) != boolean)
			continue;
		all = !all ? m->v[i]
			: rw_binary(w, boolean ? OP_AND : OP_ADD, all,
			            m->v[i]);
		if (!all)
			return 0;
	}
	return all;
}

/* Once: layers share masks. */
static void
warn_of_finite(struct rewrite *w)
{
	const Node *n = &w->g->node[w->at];
	const char *label = node_label(w->g, n);

	if (!w->warned_finite)
		diag_warn(w->p->diag, "node '%s' (%s): a finite constant mask "
		          "beside an added one: a query whose visible keys "
		          "are all masked out (padding on the left) attends "
		          "to hidden keys in the file, but not here; if the "
		          "loss counts such queries, try: --attention "
		          "unfused",
		          label ? label : w->g->val[n->out[0]].name,
		          node_type(w->g, n));
	w->warned_finite = true;
}

ValId
masks_join(struct rewrite *w, const struct masks *m, bool *ok)
{
	ValId b = join_kind(w, m, true), f = join_kind(w, m, false), v;

	if (f && m->finite_known)
		warn_of_finite(w);
	*ok = !w->failed;
	v = b ? b : f;
	if (!v || w->failed)
		return 0;
	if (b && f) {
		ValId in[3] = { b, f, rw_const_like(w, f, -INFINITY) };

		v = rw_emit(w, OP_WHERE, 3, in, NULL);
	}
	v = rw_rank4(w, v);
	*ok = v != 0;
	return v;
}
