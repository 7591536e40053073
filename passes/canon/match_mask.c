/* Attention masks: see struct masks in match.h. */
#include "passes/canon/mask.h"

#include <math.h>

/* Reuse the result of the same mask in the previous layer. */
static bool
is_cached_mask(const struct rewrite *w, ValId from, bool keep)
{
	return w->mask_cache.made && w->mask_cache.from == from
		&& w->mask_cache.keep == keep
		&& val_is_const(&w->g->val[w->mask_cache.made]);
}

static ValId
cache_mask(struct rewrite *w, ValId from, bool keep, ValId made)
{
	w->mask_cache.from = from;
	w->mask_cache.keep = keep;
	w->mask_cache.made = made;
	return made;
}

static ValId
to_boolean(struct rewrite *w, ValId mask)
{
	const Val *v = &w->g->val[mask];
	int64_t n = val_nelem(v);
	uint8_t *keep;

	if (w->const_expr[mask])
		return rw_binary(w, OP_EQ, mask, rw_const_like(w, mask, 0));
	if (is_cached_mask(w, mask, true))
		return w->mask_cache.made;
	keep = arena_array(w->mem, (size_t)n, 1);
	for (int64_t i = 0; i < n; i++)
		keep[i] = mask_attends_at(v, i);
	return cache_mask(w, mask, true, rw_const(w, DT_BOOL, v->shape, keep));
}

/* Whether v is a constant or a constant expression. */
static bool
is_known(const struct rewrite *w, ValId v)
{
	return val_is_const(&w->g->val[v]) || w->const_expr[v];
}

static bool
push_mask(struct rewrite *w, struct masks *m, ValId v)
{
	if (m->n == (int)(sizeof m->v / sizeof m->v[0]) || w->trained[v]
	    || (rw_dt(w, v) != DT_BOOL && !rw_float(w, v)))
		return false;
	m->v[m->n++] = v;
	return true;
}

static bool
add_known_mask(struct rewrite *w, struct masks *m, ValId v)
{
	if (rw_dt(w, v) != DT_BOOL && !rw_float(w, v))
		return false;
	switch (mask_kind(w, m, v)) {
	case MASKS_NOTHING:
		return true;
	case CAUSAL:
		m->causal = true;
		m->finite_known |= !mask_is_infinite(w, v);
		return true;
	case BOOLEAN:
		m->finite_known |= !mask_is_infinite(w, v);
		return push_mask(w, m, rw_dt(w, v) == DT_BOOL ? v
		                                         : to_boolean(w, v));
	default:
		return push_mask(w, m, v);
	}
}

/* The constant condition c, or its opposite, as a boolean constant. */
static ValId
const_condition(struct rewrite *w, ValId c, bool keep)
{
	const Val *v = &w->g->val[c];
	int64_t n = val_nelem(v);
	uint8_t *shown = arena_array(w->mem, (size_t)n, 1);

	for (int64_t i = 0; i < n; i++)
		shown[i] = (val_int(v, i) != 0) == keep;
	return rw_const(w, DT_BOOL, v->shape, shown);
}

/* A known condition, or its opposite, as a bool mask of kept scores. */
static ValId
attended_where(struct rewrite *w, ValId c, bool keep)
{
	ValId made;

	if (keep && rw_dt(w, c) == DT_BOOL)
		return c;
	if (w->const_expr[c])
		return rw_unary(w, OP_NOT, c);
	if (is_cached_mask(w, c, keep))
		return w->mask_cache.made;
	made = const_condition(w, c, keep);
	rw_grow(w);
	return cache_mask(w, c, keep, made);
}

/* Whether every query sees a key by the boolean mask c. */
static bool
attends_all(struct rewrite *w, const struct masks *m, ValId c)
{
	enum mask_kind v;

	if (!w->const_expr[c])
		return mask_is_boolean(&w->g->val[c]);
	v = mask_kind(w, m, c);
	return v == MASKS_NOTHING || v == BOOLEAN
		|| (v == CAUSAL && m->t <= m->s);
}

bool
masks_add_where(struct rewrite *w, struct masks *m, ValId c, bool keep,
                double hidden)
{
	bool known;

	c = rw_unexpanded(w, c);
	if (hidden > MASKED_SCORE)
		return false;
	known = is_known(w, c) && (rw_dt(w, c) == DT_BOOL || !w->const_expr[c]);
	if (known)
		c = attended_where(w, c, keep);
	else if (!keep)
		c = rw_unary(w, OP_NOT, c);
	if (!c || m->nfinite == (int)(sizeof m->v / sizeof m->v[0]))
		return false;
	if (!isinf(hidden)) {
		m->may_mask_all |= m->nfinite || !known
			|| !attends_all(w, m, c);
		m->mixed |= m->nfinite && m->hidden != hidden;
		m->finite[m->nfinite++] = c;
		m->hidden = hidden;
	}
	return masks_add(w, m, c);
}

/* where(c, x, -inf) and where(c, -inf, x): c hides, and x may hide too. */
static bool
add_where_mask(struct rewrite *w, struct masks *m, NodeId n)
{
	for (int i = 1; i <= 2; i++) {
		double x;

		if (rw_scalar(w, rw_in(w, n, i), &x) && isinf(x) && x < 0)
			return masks_add_where(w, m, rw_in(w, n, 0), i == 2, x)
				&& masks_add(w, m, rw_in(w, n, 3 - i));
	}
	return push_mask(w, m, rw_out(w, n));
}

bool
masks_add(struct rewrite *w, struct masks *m, ValId v)
{
	NodeId n;
	ValId a, b;

	v = rw_unexpanded(w, v);
	/* of an expression that is neither, a part may be causal */
	if (val_is_const(&w->g->val[v])
	    || (w->const_expr[v] && mask_kind(w, m, v) != OTHER))
		return add_known_mask(w, m, v);
	n = rw_is(w, v, OP_WHERE);
	if (n && rw_float(w, v))
		return add_where_mask(w, m, n);
	n = rw_is(w, v, OP_AND);
	if (!n)
		n = rw_is(w, v, OP_ADD);
	if (!n)
		return push_mask(w, m, v);
	a = rw_unexpanded(w, rw_in(w, n, 0));
	b = rw_unexpanded(w, rw_in(w, n, 1));
	/* the known half may be a causal mask */
	if (is_known(w, a) || is_known(w, b))
		return masks_add(w, m, a) && masks_add(w, m, b);
	return push_mask(w, m, v);
}

ValId
masks_attended(struct rewrite *w, const struct masks *m)
{
	Attr top = attr_default(OP_REDUCE_MAX), cast = attr_cast(DT_F32);
	ValId all = m->finite[0];

	for (int i = 1; all && i < m->nfinite; i++)
		all = rw_binary(w, OP_AND, all, m->finite[i]);
	top.REDUCE_MAX.axes = (IntList){ 1, { 3 } };
	all = rw_rank4(w, all);
	all = rw_emit(w, OP_CAST, 1, &all, &cast);
	all = rw_emit(w, OP_REDUCE_MAX, 1, &all, &top);
	return all ? rw_binary(w, OP_GT, all, rw_const_like(w, all, 0)) : 0;
}

static ValId
join_masks_of(struct rewrite *w, const struct masks *m, bool boolean)
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

/* Warn once, because layers share masks. */
static void
warn_of_finite(struct rewrite *w)
{
	const Node *n = &w->g->node[w->at];

	if (!w->warned_finite)
		diag_warn(w->p->diag, "node '%s' (%s): a finite constant mask "
		          "is combined with an added mask: queries whose "
		          "visible keys are all masked out (left padding) "
		          "attend to hidden keys in the file, but not in fused "
		          "attention; if the loss counts such queries, try: "
		          "--attention unfused",
		          node_label(w->g, n), node_type(w->g, n));
	w->warned_finite = true;
}

ValId
masks_join(struct rewrite *w, const struct masks *m, bool *ok)
{
	ValId b = join_masks_of(w, m, true), f = join_masks_of(w, m, false), v;

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
