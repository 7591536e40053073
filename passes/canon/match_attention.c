/* Rules for attention.
 *
 *     softmax(scale q k^T [+ mask]) [dropout] v
 *
 * with all the variants of exporters: the scale on q, on k, on
 * both or on the product; k transposed in any way; masks added or chosen by
 * where; NaN rows set to zero; key heads repeated for groups of query heads.
 * Operands of rank 2 and 3 get leading dims of 1.  Not matched are scores or
 * probabilities with other readers, trained masks (the op has no gradient for
 * them), and axes in another order.
 */
#include "passes/canon/match.h"

#include <math.h>

enum { MAX_CHAIN = 8 };

struct scores {
	NodeId product;
	double scale;
	int nmask;
	struct {
		ValId v;
		bool where, keep;       /* chosen by where, not added */
		double hidden;
	} mask[MAX_CHAIN];
};

/* ---- between q k^T and the softmax ---- */

static bool walk_scores(const struct rewrite *, ValId, struct scores *,
                        int depth);

static bool
walk_scores_add(const struct rewrite *w, NodeId n, struct scores *s, int depth)
{
	const Shape *out = rw_shape(w, rw_out(w, n));

	for (int i = 0; i < 2; i++) {
		struct scores save = *s;

		s->mask[s->nmask].where = false;
		s->mask[s->nmask++].v = rw_in(w, n, 1 - i);
		if (shape_eq(rw_shape(w, rw_in(w, n, i)), out)
		    && walk_scores(w, rw_in(w, n, i), s, depth - 1))
			return true;
		*s = save;
	}
	return false;
}

static bool
walk_scores_where(const struct rewrite *w, NodeId n, struct scores *s,
                  int depth)
{
	const Shape *out = rw_shape(w, rw_out(w, n));

	for (int i = 1; i <= 2; i++) {
		struct scores save = *s;
		double x;

		if (!rw_scalar(w, rw_in(w, n, 3 - i), &x) || x > -1e4
		    || !shape_eq(rw_shape(w, rw_in(w, n, i)), out))
			continue;
		s->mask[s->nmask].where = true;
		s->mask[s->nmask].keep = i == 1;
		s->mask[s->nmask].hidden = x;
		s->mask[s->nmask++].v = rw_in(w, n, 0);
		if (walk_scores(w, rw_in(w, n, i), s, depth - 1))
			return true;
		*s = save;
	}
	return false;
}

/* Match from the softmax's operand up to the product. */
static bool
walk_scores(const struct rewrite *w, ValId v, struct scores *s, int depth)
{
	NodeId n = rw_def(w, v);
	ValId x;
	double c = 1;

	if (depth == 0 || !n || !rw_single(w, v))
		return false;
	switch (w->g->node[n].op) {
	case OP_MATMUL:
		s->product = n;
		return !rw_in(w, n, 2) && !rw_in(w, n, 3);
	case OP_ADD:
		/* an outer factor would scale the mask too */
		return s->scale == 1 && walk_scores_add(w, n, s, depth);
	case OP_WHERE:
		return s->scale == 1 && walk_scores_where(w, n, s, depth);
	case OP_MUL:
	case OP_DIV:
		x = rw_scaled(w, v, &c, true);
		s->scale *= c;
		return x != v && walk_scores(w, x, s, depth - 1);
	default:
		return false;
	}
}

/* Match from the second product's operand up to the softmax; its node, or 0. */
static NodeId
walk_scores_softmax(const struct rewrite *w, ValId p, double *ratio,
                    int64_t *stream)
{
	NodeId n;

	n = rw_is(w, p, OP_DROPOUT);
	if (n && rw_single(w, p)) {
		*ratio = w->g->node[n].attr.DROPOUT.ratio;
		*stream = w->g->node[n].attr.DROPOUT.stream;
		p = rw_in(w, n, 0);
	}
	n = rw_is(w, p, OP_WHERE);
	if (n && rw_single(w, p)) {
		NodeId nan = rw_is(w, rw_in(w, n, 0), OP_ISNAN);
		ValId x = rw_in(w, n, 2);
		double zero;

		if (!nan || rw_in(w, nan, 0) != x || w->nuse[x] != 2
		    || w->g->val[x].output
		    || !rw_scalar(w, rw_in(w, n, 1), &zero) || zero != 0)
			return 0;
		p = x;
	} else if (!rw_single(w, p)) {
		return 0;
	}
	n = rw_is(w, p, OP_SOFTMAX);
	return n && w->g->node[n].attr.SOFTMAX.axis
		== rw_shape(w, p)->rank - 1 ? n : 0;
}

/* ---- operands ---- */

/* v as [.., rows, depth]: undo the swap of the last two dims in a transpose,
 * and keep the rest of it. */
static ValId
skip_transpose(struct rewrite *w, ValId v, bool swapped, double *scale)
{
	NodeId t;
	int perm[MAX_RANK], rank = rw_shape(w, v)->rank, last;

	v = rw_scaled(w, v, scale, false);
	if (!swapped)
		return v;
	for (int i = 0; i < rank; i++)
		perm[i] = i;
	t = rw_is(w, v, OP_TRANSPOSE);
	if (t) {
		for (int i = 0; i < rank; i++)
			perm[i] = (int)w->g->node[t].attr.TRANSPOSE.perm.v[i];
		v = rw_scaled(w, rw_in(w, t, 0), scale, false);
	}
	last = perm[rank - 1];
	perm[rank - 1] = perm[rank - 2];
	perm[rank - 2] = last;
	return rw_transpose(w, v, perm);
}

/* q [B,H,T,D], k [B,G,S,D], v [B,G,S,E] with G a divisor of H. */
static bool
operands_fit(const struct rewrite *w, const ValId in[3])
{
	const int64_t *q = rw_shape(w, in[0])->dim;
	const int64_t *k = rw_shape(w, in[1])->dim;
	const int64_t *v = rw_shape(w, in[2])->dim;

	return q[0] == k[0] && q[0] == v[0] && k[1] == v[1] && k[1] > 0
		&& q[1] % k[1] == 0 && q[3] == k[3] && k[2] == v[2]
		&& rw_dt(w, in[0]) == rw_dt(w, in[1])
		&& rw_dt(w, in[0]) == rw_dt(w, in[2]);
}

static bool
collect_masks(struct rewrite *w, const struct scores *s, struct masks *m)
{
	for (int i = 0; i < s->nmask; i++) {
		ValId v = s->mask[i].v;

		m->mixed |= !s->mask[i].where || isinf(s->mask[i].hidden);
		if (s->mask[i].where
		    ? !masks_add_where(w, m, v, s->mask[i].keep,
		                       s->mask[i].hidden)
		    : !masks_add(w, m, v))
			return false;
	}
	return !m->may_mask_all || !m->mixed;
}

/* The output o, but the mean of all values, without dropout, for a query that
 * sees no key; the node gives zero. */
static ValId
attend_all_if_masked(struct rewrite *w, const struct masks *m, ValId o, ValId v)
{
	Attr a = attr_default(OP_REDUCE_MEAN);
	ValId in[3] = { masks_attended(w, m), o, 0 };

	a.REDUCE_MEAN.axes = (IntList){ 1, { 2 } };
	in[2] = rw_emit(w, OP_REDUCE_MEAN, 1, &v, &a);
	return rw_emit(w, OP_WHERE, 3, in, NULL);
}

/* Build the attention; its output, or 0. */
static ValId
build_attention(struct rewrite *w, NodeId root, struct scores *s, Attr *a)
{
	const Attr *pv = &w->g->node[root].attr;
	const Attr *qk = &w->g->node[s->product].attr;
	bool ta = qk->MATMUL.ta, tb = qk->MATMUL.tb, tv = pv->MATMUL.tb;
	struct masks m = { .n = 0 };
	ValId in[4], o;
	double one = 1;
	bool ok;

	s->scale *= qk->MATMUL.alpha;
	in[0] = skip_transpose(w, rw_in(w, s->product, 0), ta, &s->scale);
	in[1] = in[0] ? skip_transpose(w, rw_in(w, s->product, 1), !tb,
	                               &s->scale) : 0;
	in[2] = rw_in(w, root, 1);
	if (tv)
		in[2] = skip_transpose(w, in[2], true, &one);
	for (int i = 0; i < 3; i++) {
		in[i] = rw_rank4(w, in[i]);
		if (!in[i])
			return 0;
	}
	if (one != 1 || !operands_fit(w, in))
		return 0;
	m.t = rw_shape(w, in[0])->dim[2];
	m.s = rw_shape(w, in[1])->dim[2];
	if (!collect_masks(w, s, &m))
		return 0;
	in[3] = masks_join(w, &m, &ok);
	if (!ok)
		return 0;
	a->ATTENTION.scale = s->scale;
	a->ATTENTION.causal = m.causal;
	o = rw_emit(w, OP_ATTENTION, in[3] ? 4 : 3, in, a);
	w->origin_node = rw_def(w, o);
	return o && m.may_mask_all ? attend_all_if_masked(w, &m, o, in[2])
		: o;
}

bool
match_attention(struct rewrite *w, NodeId root)
{
	struct scores s = { .scale = 1 };
	Attr a = attr_default(OP_ATTENTION);
	const Attr *pv = &w->g->node[root].attr;
	const Shape out = *rw_shape(w, rw_out(w, root));
	NodeId softmax;
	ValId v;

	if (!w->p->opt->fused_attention || pv->MATMUL.ta
	    || pv->MATMUL.alpha != 1 || rw_in(w, root, 2)
	    || rw_in(w, root, 3) || out.rank > 4)
		return false;
	softmax = walk_scores_softmax(w, rw_in(w, root, 0), &a.ATTENTION.ratio,
	                              &a.ATTENTION.stream);
	if (!softmax || !walk_scores(w, rw_in(w, softmax, 0), &s, MAX_CHAIN)
	    || rw_shape(w, rw_out(w, s.product))->rank != out.rank
	    || rw_shape(w, rw_in(w, s.product, 0))->rank != out.rank
	    || rw_shape(w, rw_in(w, s.product, 1))->rank != out.rank
	    || rw_shape(w, rw_in(w, root, 1))->rank != out.rank)
		return false;
	v = build_attention(w, root, &s, &a);
	if (!v)
		return w->failed;
	return rw_replace(w, root, rw_reshape(w, v, &out));
}

/* ---- attention nodes, matched here or imported ---- */

/* Simplify the mask. */
bool
match_attention_mask(struct rewrite *w, NodeId root)
{
	struct masks m = { .n = 0 };
	ValId old = rw_in(w, root, 3), mask;
	bool ok;

	if (!old)
		return false;
	m.causal = w->g->node[root].attr.ATTENTION.causal;
	m.t = rw_shape(w, rw_in(w, root, 0))->dim[2];
	m.s = rw_shape(w, rw_in(w, root, 1))->dim[2];
	if (!masks_add(w, &m, old))
		return false;
	if (m.causal == w->g->node[root].attr.ATTENTION.causal
	    && (m.n > 1 || (m.n == 1 && m.v[0] == old)))
		return false;
	mask = masks_join(w, &m, &ok);
	if (!ok || mask == old)
		return false;
	w->origin_node = root;
	rw_set_in(w, root, 3, mask);
	if (!mask)
		w->g->node[root].nin = 3;
	w->g->node[root].attr.ATTENTION.causal = m.causal;
	return true;
}

/* k [B,H,S,D] that repeats each of G heads H/G times, as
 *   [B,G,S,D] -> [B,G,1,S,D] -> expand [B,G,R,S,D] -> [B,H,S,D]
 * Returns the original [B,G,S,D]; 0: no such repetition. */
static ValId
skip_head_groups(struct rewrite *w, ValId v, int64_t *heads)
{
	NodeId r = rw_is(w, v, OP_RESHAPE), e;
	Shape small, big, out = *rw_shape(w, v);

	e = r ? rw_is(w, rw_in(w, r, 0), OP_EXPAND) : 0;
	if (!e)
		return 0;
	big = *rw_shape(w, rw_out(w, e));
	small = *rw_shape(w, rw_in(w, e, 0));
	if (big.rank != 5 || small.rank != 5 || small.dim[2] != 1
	    || big.dim[0] != out.dim[0] || big.dim[3] != out.dim[2]
	    || big.dim[4] != out.dim[3])
		return 0;
	for (int i = 0; i < 5; i++)
		if (i != 2 && small.dim[i] != big.dim[i])
			return 0;
	*heads = out.dim[1] = small.dim[1];
	return rw_reshape(w, rw_in(w, e, 0), &out);
}

/* Move scales of q and k into the op and drop repeated key heads. */
bool
match_attention_kv(struct rewrite *w, NodeId root)
{
	double c = 1;
	ValId q = rw_scaled(w, rw_in(w, root, 0), &c, false);
	ValId k = rw_scaled(w, rw_in(w, root, 1), &c, false);
	int64_t gk = 0, gv = 0;
	ValId k0 = skip_head_groups(w, k, &gk);
	ValId v0 = skip_head_groups(w, rw_in(w, root, 2), &gv);
	bool group = k0 && v0 && gk == gv;

	if (w->failed)
		return true;
	if (c == 1 && !group)
		return false;
	w->origin_node = root;
	w->g->node[root].attr.ATTENTION.scale *= c;
	rw_set_in(w, root, 0, q);
	rw_set_in(w, root, 1, group ? k0 : k);
	if (group)
		rw_set_in(w, root, 2, v0);
	return true;
}

/* ---- the decomposed form, when fused attention is not wanted ---- */

static ValId
repeat_heads(struct rewrite *w, ValId v, int64_t h)
{
	Shape s = *rw_shape(w, v), five, big;

	if (s.dim[1] == h)
		return v;
	five = SHAPE(s.dim[0], s.dim[1], 1, s.dim[2], s.dim[3]);
	big = SHAPE(s.dim[0], s.dim[1], h / s.dim[1], s.dim[2], s.dim[3]);
	s.dim[1] = h;
	v = rw_reshape(w, v, &five);
	v = rw_expand(w, v, &big);
	return rw_reshape(w, v, &s);
}

/* Numbers from `first` on, in that shape. */
static ValId
const_range(struct rewrite *w, int64_t first, Shape s)
{
	int64_t n = shape_nelem(&s);
	int64_t *x = arena_array(w->mem, (size_t)n, sizeof *x);

	for (int64_t i = 0; i < n; i++)
		x[i] = first + i;
	return rw_const(w, DT_I64, s, x);
}

/* The mask by which query i of t sees keys up to i + s - t of s: a boolean
 * constant, or nodes that compute it if it would be too large. */
static ValId
causal_mask(struct rewrite *w, int64_t t, int64_t s)
{
	ValId made = w->causal.made;
	int64_t n;
	uint8_t *keep;

	if (made && w->causal.t == t && w->causal.s == s
	    && (val_is_const(&w->g->val[made]) || w->nuse[made] > 0))
		return made;
	if (!mul_ok(t, s, &n))
		return 0;
	if (n > w->p->opt->fold_limit) {
		made = rw_binary(w, OP_LE, const_range(w, 0, SHAPE(1, s)),
		                 const_range(w, s - t, SHAPE(t, 1)));
	} else {
		keep = arena_array(w->mem, (size_t)n, 1);
		for (int64_t i = 0; i < n; i++)
			keep[i] = i % s <= i / s + s - t;
		made = rw_const(w, DT_BOOL, SHAPE(t, s), keep);
	}
	w->causal.made = made;
	w->causal.t = t;
	w->causal.s = s;
	return made;
}

static ValId
mask_scores(struct rewrite *w, ValId scores, ValId mask)
{
	ValId in[3];

	if (!mask || !scores)
		return 0;
	if (rw_dt(w, mask) != DT_BOOL)
		return rw_binary(w, OP_ADD, scores, mask);
	in[0] = mask;
	in[1] = scores;
	in[2] = rw_const_like(w, scores, -INFINITY);
	return rw_emit(w, OP_WHERE, 3, in, NULL);
}

/* Decompose attention on request, or if the mask needs a gradient, which the op
 * does not have. */
bool
match_attention_split(struct rewrite *w, NodeId root)
{
	Attr at = w->g->node[root].attr, a = attr_default(OP_MATMUL);
	int64_t h = rw_shape(w, rw_in(w, root, 0))->dim[1];
	ValId q = rw_in(w, root, 0), mask = rw_in(w, root, 3), s;
	ValId k, v;

	if (w->p->opt->fused_attention && !(mask && w->trained[mask]))
		return false;
	k = repeat_heads(w, rw_in(w, root, 1), h);
	v = repeat_heads(w, rw_in(w, root, 2), h);
	if (!k || !v)
		return false;
	a.MATMUL.tb = 1;
	s = rw_emit(w, OP_MATMUL, 2, (ValId[]){ q, k }, &a);
	if (s && at.ATTENTION.scale != 1)
		s = rw_binary(w, OP_MUL, s,
		              rw_const_like(w, s, at.ATTENTION.scale));
	if (at.ATTENTION.causal && s)
		s = mask_scores(w, s, causal_mask(w, rw_shape(w, s)->dim[2],
		                                  rw_shape(w, s)->dim[3]));
	if (mask)
		s = mask_scores(w, s, mask);
	a = attr_default(OP_SOFTMAX);
	a.SOFTMAX.axis = 3;
	s = rw_emit(w, OP_SOFTMAX, 1, &s, &a);
	a = attr_default(OP_DROPOUT);
	a.DROPOUT.ratio = at.ATTENTION.ratio;
	a.DROPOUT.stream = at.ATTENTION.stream;
	a.DROPOUT.batch_segments = at.ATTENTION.batch_segments;
	a.DROPOUT.half = at.ATTENTION.half;
	if (s && at.ATTENTION.ratio > 0)
		s = rw_emit(w, OP_DROPOUT, 1, &s, &a);
	return rw_replace(w, root, rw_binary(w, OP_MATMUL, s, v));
}
