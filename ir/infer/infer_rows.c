/* Shape rules: products, norms, losses, attention. */
#include "ir/infer/rules.h"

bool
infer_rnn(struct infer *c)
{
	static const int gates[] = { 1, 3, 4 };
	int64_t kind = c->n->attr.RNN.kind;
	Shape x = shape_of(c, 0), w = shape_of(c, 1), r = shape_of(c, 2);
	Shape y = unknown(3), h = unknown(2), want;
	int64_t n;

	if (kind < 0 || kind > 2)
		return rule_fail(c, "kind: expected 0 to 2, found %lld",
		                 (long long)kind);
	if ((x.rank >= 0 && x.rank != 3) || (w.rank >= 0 && w.rank != 2)
	    || (r.rank >= 0 && r.rank != 2))
		return rule_fail(c, "expected operands of ranks 3, 2 and 2, "
				 "found %d, %d and %d", x.rank, w.rank, r.rank);
	n = r.rank == 2 ? r.dim[1] : -1;
	if (n >= 0) {
		want = SHAPE(gates[kind] * n, n);
		if (n > INT32_MAX || !rule_want_shape(c, 2, &want, "weights"))
			return false;
		want.dim[1] = x.rank == 3 ? x.dim[2] : -1;
		if (!rule_want_shape(c, 1, &want, "weights"))
			return false;
		want = SHAPE(2 * gates[kind] * n);
		if (!rule_want_shape(c, 3, &want, "bias"))
			return false;
		want = SHAPE(3 * n);
		if (!rule_want_shape(c, 7, &want, "peepholes"))
			return false;
	}
	y.dim[2] = h.dim[1] = n;
	if (x.rank == 3) {
		y.dim[0] = x.dim[0];
		y.dim[1] = h.dim[0] = x.dim[1];
	}
	for (int i = 5; i < 7; i++)
		if (!rule_want_shape(c, i, &h, "state"))
			return false;
	want = SHAPE(h.dim[0]);
	if (!rule_want_class(c, 4, "iu", "integers")
	    || !rule_want_shape(c, 4, &want, "lengths"))
		return false;
	return rule_shape(c, y)
	       && rule_result(c, 1, in(c, 0)->dt, h)
	       && rule_result(c, 2, in(c, 0)->dt, h);
}

/* ---- products ---- */

/* Rows and columns of operand i after its transposition; a vector is a row on
 * the left and a column on the right. */
static void
matrix_extents(const struct infer *c, int i, bool trans, int64_t *rows,
	       int64_t *cols)
{
	const Shape held = val_weights_shape(in(c, i)), *s = &held;
	int64_t last = s->dim[s->rank - 1];

	if (s->rank == 1) {
		*rows = i == 0 ? 1 : last;
		*cols = i == 0 ? last : 1;
		return;
	}
	*rows = trans ? last : s->dim[s->rank - 2];
	*cols = trans ? s->dim[s->rank - 2] : last;
}

static bool
matmul_shape(struct infer *c, Shape *s)
{
	Shape a = shape_of(c, 0), b = shape_of(c, 1);
	int64_t m, k, k2, n;
	char at[INFER_TEXT], bt[INFER_TEXT];
	int ra = a.rank, rb = b.rank;

	matrix_extents(c, 0, c->n->attr.MATMUL.ta != 0, &m, &k);
	matrix_extents(c, 1, c->n->attr.MATMUL.tb != 0, &k2, &n);
	if (k >= 0 && k2 >= 0 && k != k2)
		return rule_fail(c,
				 "inner dims %lld and %lld of the matrices "
				 "differ: %s%s and %s%s",
				 (long long)k, (long long)k2,
				 rule_text(at, c, 0),
				 c->n->attr.MATMUL.ta ? " transposed" : "",
				 rule_text(bt, c, 1),
				 c->n->attr.MATMUL.tb ? " transposed" : "");
	a.rank = ra > 2 ? ra - 2 : 0;
	b.rank = rb > 2 ? rb - 2 : 0;
	if (!shape_broadcast(&a, &b))
		return rule_fail(c,
				 "batch dims do not broadcast: %s and %s",
				 rule_text(at, c, 0), rule_text(bt, c, 1));
	*s = a;
	if (ra > 1)
		s->dim[s->rank++] = m;
	if (rb > 1)
		s->dim[s->rank++] = n;
	return true;
}

bool
infer_matmul(struct infer *c)
{
	Shape s = unknown(-1), row;
	bool stored = val_takes_stored(in(c, 0), in(c, 1));

	if (!rule_want_rank(c, 0, 1) || !rule_want_rank(c, 1, 1)
	    || (stored ? !rule_want_class(c, 0, "f", "floats")
	        : !rule_same_type(c, 0, 1)
	          || !rule_want_class(c, 0, "fiu", "numbers")))
		return false;
	if (in(c, 0)->shape.rank < 0 || in(c, 1)->shape.rank < 0)
		return rule_shape(c, s);
	if (!matmul_shape(c, &s))
		return false;
	row = SHAPE(s.rank ? s.dim[s.rank - 1] : 1);
	return rule_want_shape(c, 2, &row, "bias") && rule_same_type(c, 0, 2)
	       && rule_want_shape(c, 3, &s, "accumulator")
	       && rule_same_type(c, 0, 3) && rule_shape(c, s);
}

bool
infer_matmul_end(struct infer *c)
{
	int end = (int)c->n->attr.MATMUL_END.end;
	Shape s;

	if (in(c, 0)->shape.rank != 2 || in(c, 1)->shape.rank != 2)
		return rule_fail(c, "expected matrices");
	if (end < END_ROWS || end > END_GELU_GRAD
	    || has(c, 3) != (end == END_GELU_GRAD))
		return rule_fail(c, "invalid end %d with%s x", end,
				 has(c, 3) ? "" : "out");
	return rule_same_type(c, 0, 1)
	       && rule_want_class(c, 0, "f", "floats")
	       && matmul_shape(c, &s)
	       && rule_want_shape(c, 2, &s, "accumulator")
	       && rule_same_type(c, 0, 2)
	       && rule_want_shape(c, 3, &s, "x") && rule_same_type(c, 0, 3)
	       && rule_shape(c, s)
	       && rule_result(c, 1, in(c, 0)->dt,
	                      SHAPE(s.dim[end != END_ROWS]));
}

/* Rows of operand `rows` go with the indices, operand 2. */
static bool
check_expert_rows(struct infer *c, int rows)
{
	Shape idx = shape_of(c, 2), a = shape_of(c, rows);

	if (!rule_want_class(c, 0, "f", "floats") || !rule_same_type(c, 0, 1)
	    || !rule_want_class(c, 2, "iu", "integers"))
		return false;
	if ((idx.rank >= 0 && idx.rank != 1) || (a.rank >= 0 && a.rank != 2))
		return rule_fail(c, "expected rows and a list of indices");
	if (idx.rank == 1 && a.rank == 2 && idx.dim[0] >= 0 && a.dim[0] >= 0
	    && idx.dim[0] != a.dim[0])
		return rule_fail(c, "%lld indices for %lld rows",
				 (long long)idx.dim[0], (long long)a.dim[0]);
	return true;
}

/* Of all experts, so many have a matrix here. */
static bool
check_experts(struct infer *c, int64_t all, int64_t experts)
{
	return all == 0 || all >= experts
		|| rule_fail(c, "all: expected 0 or at least %lld experts, "
		             "found %lld", (long long)experts, (long long)all);
}

bool
infer_expert_matmul(struct infer *c)
{
	Shape x = shape_of(c, 0), w = shape_of(c, 1);
	bool tb = c->n->attr.EXPERT_MATMUL.tb;
	int64_t k;

	if (!check_expert_rows(c, 0)
	    || !check_experts(c, c->n->attr.EXPERT_MATMUL.all,
	                      w.rank == 3 ? w.dim[0] : 0))
		return false;
	if (x.rank < 0 || w.rank < 0)
		return rule_shape(c, unknown(2));
	if (w.rank != 3)
		return rule_fail(c, "expected matrices of experts, found "
				 "rank %d", w.rank);
	k = w.dim[tb ? 2 : 1];
	if (x.dim[1] >= 0 && k >= 0 && x.dim[1] != k)
		return rule_fail(c, "inner dims %lld and %lld differ",
				 (long long)x.dim[1], (long long)k);
	return rule_shape(c, SHAPE(x.dim[0], w.dim[tb ? 1 : 2]));
}

bool
infer_expert_dw(struct infer *c)
{
	Shape a = shape_of(c, 0), b = shape_of(c, 1);
	int64_t experts = c->n->attr.EXPERT_DW.experts;

	if (!check_expert_rows(c, 0) || !check_expert_rows(c, 1))
		return false;
	if (experts < 0)
		return rule_fail(c, "experts: expected a number >= 0, found "
				 "%lld", (long long)experts);
	if (!check_experts(c, c->n->attr.EXPERT_DW.all, experts))
		return false;
	return rule_shape(c, SHAPE(experts, a.rank < 0 ? -1 : a.dim[1],
	                           b.rank < 0 ? -1 : b.dim[1]));
}

bool
infer_expert_slots(struct infer *c)
{
	const Attr *a = &c->n->attr;
	int64_t replicas = a->EXPERT_SLOTS.replicas, slots;
	int64_t room = a->EXPERT_SLOTS.room, all = a->EXPERT_SLOTS.all;

	if (!rule_want_class(c, 0, "iu", "integers"))
		return false;
	if (replicas < 1 || room < 0 || all < 1 || all % replicas
	    || !mul_ok(replicas, room, &slots))
		return rule_fail(c, "expected experts of %lld replicas, with "
		                 "room for rows, found %lld experts, %lld rows",
		                 (long long)replicas, (long long)all,
		                 (long long)room);
	if (shape_of(c, 0).rank >= 0 && shape_of(c, 0).rank != 1)
		return rule_fail(c, "expected a list of indices");
	return rule_result(c, 0, DT_I64, shape_of(c, 0))
		&& rule_result(c, 1, DT_I64, SHAPE(slots))
		&& rule_result(c, 2, in(c, 0)->dt, SHAPE(slots));
}

bool
infer_take_rows(struct infer *c)
{
	Shape x = shape_of(c, 0), at = shape_of(c, 1), back = shape_of(c, 2);

	if (!rule_want_class(c, 1, "i", "integers")
	    || !rule_want_class(c, 2, "i", "integers"))
		return false;
	if (x.rank < 0 || at.rank < 0 || back.rank < 0)
		return rule_shape(c, unknown(-1));
	if (x.rank < 1 || at.rank != 1 || back.rank != 1
	    || (x.dim[0] >= 0 && back.dim[0] >= 0 && x.dim[0] != back.dim[0]))
		return rule_fail(c, "expected rows, a list of them, and one "
		                 "for each row");
	x.dim[0] = at.dim[0];
	return rule_shape(c, x);
}

/* ---- normalisation ---- */

/* Splits x's shape at the axis: statistics in front, a row behind. */
static bool
split_rows(struct infer *c, int x, int64_t axis, Shape *lead, Shape *row)
{
	Shape s = shape_of(c, x);
	int at;

	*lead = *row = unknown(-1);
	if (s.rank < 0)
		return true;
	if (s.rank == 0)
		return rule_fail(c, "expected rank 1 or more, found a scalar");
	if (!rule_axis(c, axis, s.rank, &at))
		return false;
	lead->rank = row->rank = 0;
	return rule_append(c, lead, &s, 0, at)
	       && rule_append(c, row, &s, at, s.rank);
}

/* Scale or bias: of a row's shape, and until `fold` has run of any that
 * broadcasts to x. */
static bool
check_scale(struct infer *c, int i, const Shape *row, const char *what)
{
	Shape s = shape_of(c, i), x = shape_of(c, 0), y = x;

	if (c->g->props & P_STATIC || s.rank < 0 || x.rank < 0
	    || rule_dims_fit(row, &s))
		return rule_want_shape(c, i, row, what);
	return (s.rank <= x.rank && shape_broadcast(&y, &s)
	        && rule_dims_fit(&x, &y))
	       || rule_want_shape(c, i, row, what);
}

/* layernorm and rmsnorm, which has neither bias nor mean. */
bool
infer_norm(struct infer *c)
{
	Shape lead, row;

	return split_rows(c, 0, c->n->attr.LAYERNORM.axis, &lead, &row)
	       && rule_want_class(c, 0, "f", "floats")
	       && check_scale(c, 1, &row, "scale")
	       && check_scale(c, 2, &row, "bias")
	       && rule_shape(c, shape_of(c, 0))
	       && rule_result(c, 1, DT_F32, lead)
	       && rule_result(c, 2, DT_F32, lead);
}

bool
infer_norm_grad(struct infer *c)
{
	Shape lead, row, x = shape_of(c, 1);
	int acc = op_accumulator(c->n->op), rstd = acc - 1;

	return split_rows(c, 1, c->n->attr.LAYERNORM_GRAD.axis, &lead, &row)
	       && rule_want_shape(c, 0, &x, "adjoint")
	       && rule_want_shape(c, 2, &row, "scale")
	       && (rstd == 3 || rule_want_shape(c, 3, &lead, "mean"))
	       && rule_want_shape(c, rstd, &lead, "rstd")
	       && rule_want_shape(c, acc, &x, "accumulator")
	       && rule_same_type(c, 1, acc)
	       && rule_result(c, 0, in(c, 1)->dt, x)
	       && rule_result(c, 1, in(c, 2)->dt, row)
	       && rule_result(c, 2, in(c, 2)->dt, row);
}

/* ---- losses ---- */

/* Labels must be scores' shape without axis 1; returns that in *want. */
static bool
check_labels(struct infer *c, int scores, int labels, int weights, Shape *want)
{
	Shape x = shape_of(c, scores), classes;

	*want = shape_of(c, labels);
	if (!rule_want_class(c, scores, "f", "floats")
	    || !rule_want_class(c, labels, "iu", "integers"))
		return false;
	if (x.rank < 0)
		return true;
	if (!rule_want_rank(c, scores, 2))
		return false;
	want->rank = 1;
	want->dim[0] = x.dim[0];
	classes = SHAPE(x.dim[1]);
	return rule_append(c, want, &x, 2, x.rank)
	       && rule_want_shape(c, labels, want, "labels")
	       && rule_want_shape(c, weights, &classes, "weights");
}

/* sce and nll have `reduction` at the same place. */
static Shape
loss_shape(const struct infer *c, const Shape *labels)
{
	return c->n->attr.SCE.reduction == 0 ? *labels : shape_scalar();
}

/* What other ranks know of their pieces of the classes. */
static bool
check_stats(struct infer *c, const Shape *rows)
{
	Shape want = SHAPE(c->g->ranks, rows->dim[0], 3);

	if (!has(c, 3) && c->n->attr.SCE.whole_extent == 0)
		return true;
	if (!has(c, 3) || c->n->attr.SCE.whole_extent <= 0 || has(c, 2)
	    || rows->rank != 1)
		return rule_fail(c, "a shard of the classes needs logits of "
		                 "rank 2, statistics and no class weights");
	return rule_want_shape(c, 3, &want, "stats");
}

bool
infer_sce(struct infer *c)
{
	Shape rows;

	return check_labels(c, 0, 1, 2, &rows)
	       && check_stats(c, &rows)
	       && rule_shape(c, loss_shape(c, &rows))
	       && rule_result(c, 1, DT_F32, rows)
	       && rule_result(c, 2, DT_F32, shape_scalar());
}

bool
infer_vocab_stats(struct infer *c)
{
	Shape rows;

	return check_labels(c, 0, 1, 2, &rows)
	       && (rows.rank == 1 || rule_fail(c, "expected logits of rank 2"))
	       && rule_result(c, 0, DT_F32, SHAPE(1, rows.dim[0], 3));
}

bool
infer_sce_grad(struct infer *c)
{
	Shape rows, loss, one = shape_scalar();

	if (!check_labels(c, 1, 2, 5, &rows))
		return false;
	loss = loss_shape(c, &rows);
	return rule_want_shape(c, 0, &loss, "gradient of the loss")
	       && rule_want_shape(c, 3, &rows, "log-sum-exp")
	       && rule_want_shape(c, 4, &one, "divisor")
	       && rule_result(c, 0, in(c, 1)->dt, shape_of(c, 1));
}

bool
infer_nll(struct infer *c)
{
	Shape rows;

	return check_labels(c, 0, 1, 2, &rows)
	       && rule_shape(c, loss_shape(c, &rows))
	       && rule_result(c, 1, DT_F32, shape_scalar());
}

bool
infer_nll_grad(struct infer *c)
{
	const IntList *l = &c->n->attr.NLL_GRAD.shape;
	Shape s = shape_make(l->n, l->v), rows = {.rank = 1}, loss, classes;

	if (s.rank < 2)
		return rule_fail(c,
				 "attribute shape: expected rank 2 or more");
	rows.dim[0] = s.dim[0];
	classes = SHAPE(s.dim[1]);
	if (!rule_append(c, &rows, &s, 2, s.rank)
	    || !rule_want_class(c, 1, "iu", "integers")
	    || !rule_want_shape(c, 1, &rows, "labels")
	    || !rule_want_shape(c, 3, &classes, "weights"))
		return false;
	loss = loss_shape(c, &rows);
	return rule_want_shape(c, 0, &loss, "gradient of the loss")
	       && rule_shape(c, s);
}

bool
infer_classifier(struct infer *c)
{
	Shape x = shape_of(c, 0), w = shape_of(c, 1), rows, bias;
	int tb = c->n->attr.CLASSIFIER.tb != 0;
	Shape want = unknown(2), one = shape_scalar();

	if (c->n->nout < 3 || c->n->nout > 4)
		return rule_fail(c, "expected 3 or 4 outputs, found %d",
		                 c->n->nout);
	if (c->n->attr.CLASSIFIER.reduction == 0)
		return rule_fail(c, "expected a reduced (scalar) loss");
	if (!rule_want_shape(c, 0, &want, "rows")
	    || !rule_want_class(c, 0, "f", "floats")
	    || !rule_want_class(c, 1, "f", "floats")
	    || !rule_want_class(c, 2, "iu", "integers"))
		return false;
	if (x.rank == 2)
		want.dim[tb] = x.dim[1];
	if (!rule_want_shape(c, 1, &want, "weights"))
		return false;
	rows = SHAPE(x.rank == 2 ? x.dim[0] : -1);
	bias = SHAPE(w.rank == 2 ? w.dim[!tb] : -1);
	return rule_want_shape(c, 2, &rows, "labels")
	       && rule_want_shape(c, 3, &bias, "bias")
	       && rule_want_shape(c, 4, &one, "gradient of the loss")
	       && rule_result(c, 0, DT_F32, one)
	       && rule_result(c, 1, in(c, 0)->dt, x)
	       && rule_result(c, 2, in(c, 0)->dt, w)
	       && rule_result(c, 3, in(c, 0)->dt, bias);
}

/* ---- attention ---- */

struct attention_dims {
	int64_t b, h, g, t, s, d, e;
};

static bool
unify(int64_t *a, int64_t b)
{
	if (*a < 0)
		*a = b;
	return *a < 0 || b < 0 || *a == b;
}

/* Extents of the operands q, k, v that start at i; unknown ones are -1. */
static bool
read_attention_dims(struct infer *c, int i, struct attention_dims *h)
{
	char q[INFER_TEXT], k[INFER_TEXT], v[INFER_TEXT];
	Shape s[3];
	Shape four = unknown(4);

	for (int j = 0; j < 3; j++) {
		if (!rule_want_shape(c, i + j, &four, "query, key or value")
		    || !rule_want_class(c, i + j, "f", "floats")
		    || !rule_same_type(c, i, i + j))
			return false;
		s[j] = shape_of(c, i + j);
		if (s[j].rank < 0)
			s[j] = four;
	}
	*h = (struct attention_dims){
		s[0].dim[0], s[0].dim[1], s[1].dim[1], s[0].dim[2],
		s[1].dim[2], s[0].dim[3], s[2].dim[3]};
	if (!unify(&h->b, s[1].dim[0]) || !unify(&h->b, s[2].dim[0])
	    || !unify(&h->g, s[2].dim[1]) || !unify(&h->s, s[2].dim[2])
	    || !unify(&h->d, s[1].dim[3]) || (h->g == 0 && h->h != 0)
	    || (h->g > 0 && h->h >= 0 && h->h % h->g != 0))
		return rule_fail(c,
				 "shapes of query, key and value do not match: "
				 "%s, %s, %s",
				 rule_text(q, c, i), rule_text(k, c, i + 1),
				 rule_text(v, c, i + 2));
	return true;
}

static bool
check_mask(struct infer *c, int i, const struct attention_dims *h)
{
	Shape scores = SHAPE(h->b, h->h, h->t, h->s), both = scores;
	char want[INFER_TEXT], found[INFER_TEXT];

	if (!has(c, i))
		return true;
	if (!rule_want_class(c, i, "fb", "floats or bool"))
		return false;
	if (in(c, i)->shape.rank <= 4
	    && shape_broadcast(&both, &in(c, i)->shape)
	    && rule_dims_fit(&both, &scores))
		return true;
	return rule_fail(c, "mask %s does not broadcast to %s",
			 rule_text(found, c, i),
			 shape_text(want, INFER_TEXT, DT_NONE, &scores));
}

bool
infer_attention(struct infer *c)
{
	struct attention_dims h;

	return read_attention_dims(c, 0, &h) && check_mask(c, 3, &h)
	       && rule_shape(c, SHAPE(h.b, h.h, h.t, h.e))
	       && rule_result(c, 1, DT_F32, SHAPE(h.b, h.h, h.t));
}

bool
infer_attention_grad(struct infer *c)
{
	struct attention_dims h;
	Shape o, lse, packed;
	int64_t width = -1;

	if (!read_attention_dims(c, 1, &h) || !check_mask(c, 6, &h))
		return false;
	o = SHAPE(h.b, h.h, h.t, h.e);
	lse = SHAPE(h.b, h.h, h.t);
	if (!rule_want_shape(c, 0, &o, "adjoint")
	    || !rule_want_shape(c, 4, &o, "output")
	    || !rule_want_shape(c, 5, &lse, "log-sum-exp"))
		return false;
	if (!c->n->attr.ATTENTION_GRAD.packed) {
		if (c->n->nout != 3)
			return rule_fail(c, "expected 3 outputs, found %d",
					 c->n->nout);
		return rule_result(c, 0, in(c, 1)->dt, shape_of(c, 1))
		       && rule_result(c, 1, in(c, 2)->dt, shape_of(c, 2))
		       && rule_result(c, 2, in(c, 3)->dt, shape_of(c, 3));
	}
	if (c->n->nout != 1)
		return rule_fail(c, "expected 1 output, found %d", c->n->nout);
	if (!unify(&h.d, h.e) || !unify(&h.t, h.s))
		return rule_fail(c, "packed gradients need queries and keys of "
		                 "the same shape");
	if (h.h >= 0 && h.g >= 0 && h.d >= 0
	    && !mul_ok(h.h + 2 * h.g, h.d, &width))
		return rule_fail(c, "extent overflows");
	packed = SHAPE(h.b, h.t, width);
	return rule_result(c, 0, in(c, 1)->dt, packed);
}

/* ---- update ---- */

bool
infer_fill(struct infer *c)
{
	const IntList *l = &c->n->attr.FILL.shape;

	for (int i = 0; i < l->n; i++)
		if (l->v[i] < 0)
			return rule_fail(c, "extent %lld is out of range",
				(long long)l->v[i]);
	return rule_result(c, 0, DT_F32, shape_make(l->n, l->v));
}

bool
infer_scalar(struct infer *c)
{
	return rule_result(c, 0, DT_F32, shape_scalar());
}
