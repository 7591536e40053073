/* Sample indices: where they originate, how ops propagate them, and which uses
 * are valid.
 *
 * Replicas count their samples from 0.  That is valid only for an index into a
 * value with samples, so the indices that a mask finds are followed from op to
 * op.
 */
#include "passes/shard/deal.h"

enum { VISITS = 256 };  /* nodes that are looked at for a column */

static bool find(const struct deal *, struct column, struct numbers *,
                 int *left);

static int64_t
product(const Shape *s, int from, int to)
{
	int64_t n = 1;

	for (int i = from; i < to; i++)
		n *= s->dim[i];
	return n;
}

/* The dim whose only element is taken, others being whole; -1: another. */
static int
sliced(const Shape *x, const Node *n, const Shape *y)
{
	int found = -1;

	for (int i = 0; i < y->rank; i++) {
		if (y->dim[i] == x->dim[i])
			continue;
		if (found >= 0 || y->dim[i] != 1)
			return -1;
		found = i;
	}
	for (int i = 0; i < y->rank; i++)
		if (i != found && (n->attr.SLICE.start.v[i]
		                   || n->attr.SLICE.step.v[i] != 1))
			return -1;
	return found;
}

/* Where a move takes the column from, in c; false: from several. */
static bool
comes_from(const struct deal *d, const Node *n, struct column *c)
{
	const Shape *x = &d->g->val[n->in[0]].shape;
	const Shape *y = &d->g->val[n->out[0]].shape;
	bool all = c->axis < 0 || y->dim[c->axis] == 1;
	int last = x->rank - 1;

	switch (n->op) {
	case OP_CAST:
		if (d->g->val[n->out[0]].dt != DT_I64
		    && d->g->val[n->out[0]].dt != DT_I32)
			return false;
		break;
	case OP_EXPAND:
		if (!all)
			return false;
		*c = (struct column){ .axis = -1, .dim = -1 };
		break;
	case OP_TRANSPOSE:
		c->axis = c->axis < 0 ? -1
		        : (int)n->attr.TRANSPOSE.perm.v[c->axis];
		c->dim = -1;
		break;
	case OP_RESHAPE:
		if (!all && (c->axis != y->rank - 1
		             || x->dim[last] != y->dim[c->axis]))
			return false;
		*c = (struct column){ .axis = all ? -1 : last, .at = c->at,
			.dim = -1 };
		break;
	case OP_SLICE:
		if (!all || sliced(x, n, y) < 0)
			return false;
		c->axis = sliced(x, n, y);
		c->at = n->attr.SLICE.start.v[c->axis];
		break;
	default:
		return false;
	}
	c->v = n->in[0];
	return true;
}

/* ---- where numbers begin ---- */

/* The places of elements of a mask that has samples. */
static bool
of_selected(const struct deal *d, const Node *n, const struct column *c,
            struct numbers *y)
{
	const Shape *x = &d->g->val[n->in[0]].shape;
	const Split *s = deal_state(d, n->in[0]);
	int k = c->axis < 0 ? 0 : (int)c->at;

	if (c->axis > 0 || (c->axis < 0 && x->rank > 1) || s->kind != SPLIT_S
	    || n->attr.SELECTED.compact)
		return false;
	*y = (struct numbers){ 0, 0, x->dim[k] - 1, 0 };
	if (k > s->axis || k < s->lead)
		return true;
	y->each = x->dim[k] / d->samples;
	y->hi = y->each - 1;
	return s->lead == s->axis && s->npart == 1
		&& x->dim[k] % d->samples == 0;
}

/* A constant that counts its own place in the dim of the samples. */
static bool
of_const(const struct deal *d, const struct column *c, struct numbers *y)
{
	const Val *x = &d->g->val[c->v];
	int last = x->shape.rank - 1;
	int64_t each = 1, inner, all = val_nelem(x);
	double same;

	if (val_splat(d->g, c->v, &same)) {
		*y = (struct numbers){ 0, (int64_t)same, (int64_t)same, 0 };
		return same >= 0 && same < INT32_MAX;
	}
	if (x->kind != V_CONST || !x->data || c->dim < 0
	    || c->dim > last || (c->axis >= 0 && c->axis != last))
		return false;
	each = c->axis < 0 ? 1 : x->shape.dim[last];
	inner = product(&x->shape, c->dim + 1, x->shape.rank)
	      / (c->dim < last ? each : 1);
	for (int64_t i = 0; i < all / each; i++)
		if (val_int(x, i * each + c->at)
		    != i / inner % x->shape.dim[c->dim])
			return false;
	each = x->shape.dim[c->dim] / d->samples;
	*y = (struct numbers){ each, 0, each - 1, 0 };
	return each * d->samples == x->shape.dim[c->dim];
}

/* ---- following them ---- */

static bool
combine(Op op, const struct numbers *a, const struct numbers *b,
        struct numbers *y)
{
	y->beyond = 0;
	if (a->beyond || b->beyond)
		return false;
	if (op == OP_ADD)
		return !__builtin_add_overflow(a->each, b->each, &y->each)
			&& !__builtin_add_overflow(a->lo, b->lo, &y->lo)
			&& !__builtin_add_overflow(a->hi, b->hi, &y->hi);
	if (b->each || b->lo != b->hi)
		return false;
	return !__builtin_mul_overflow(a->each, b->lo, &y->each)
		&& !__builtin_mul_overflow(a->lo, b->lo, &y->lo)
		&& !__builtin_mul_overflow(a->hi, b->lo, &y->hi);
}

/* Of elements of the same places, or of one number. */
static bool
of_two(const struct deal *d, const Node *n, struct column c,
       struct numbers *y, int *left)
{
	struct numbers x[2];

	for (int k = 0; k < 2; k++) {
		const Val *v = &d->g->val[c.v = n->in[k]];
		double same;

		if (!val_splat(d->g, c.v, &same)
		    && !shape_eq(&v->shape, &d->g->val[n->out[0]].shape))
			return false;
		if (!find(d, c, &x[k], left))
			return false;
	}
	return combine(n->op, &x[0], &x[1], y)
		|| (n->op == OP_MUL && combine(n->op, &x[1], &x[0], y));
}

/* where(v < 0, ..., v), of v that is not; or where(c, v, beyond), with a number
 * for all or for each of the last dim. */
static bool
of_where(const struct deal *d, const Node *n, struct column c,
         struct numbers *y, int *left)
{
	const Val *yes = &d->g->val[n->in[1]], *no = &d->g->val[n->in[2]];
	const Shape *s = &d->g->val[n->out[0]].shape;
	const Node *less = &d->g->node[d->g->val[n->in[0]].def];
	int64_t many = val_nelem(no);
	double zero;

	if (no->kind == V_CONST && no->data) {
		bool each = no->shape.rank == 1 && c.axis == s->rank - 1
			&& many == s->dim[c.axis];

		c.v = n->in[1];
		if ((many != 1 && !each) || !shape_eq(&yes->shape, s)
		    || !find(d, c, y, left) || y->beyond)
			return false;
		y->beyond = val_int(no, many == 1 ? 0 : c.at);
		return y->beyond > 0;
	}
	c.v = n->in[2];
	return shape_eq(&no->shape, s) && less->op == OP_LT
		&& less->in[0] == c.v && val_splat(d->g, less->in[1], &zero)
		&& zero == 0 && find(d, c, y, left) && y->lo >= 0;
}

/* The operand of a concat that element *at comes from, where it is *at. */
static ValId
part_of(const struct deal *d, const Node *n, int64_t *at)
{
	int k = 0;

	for (; k < n->nin - 1; k++) {
		const Shape *x = &d->g->val[n->in[k]].shape;
		int64_t here = x->dim[n->attr.CONCAT.axis];

		if (*at < here)
			break;
		*at -= here;
	}
	return n->in[k];
}

static bool
find(const struct deal *d, struct column c, struct numbers *y, int *left)
{
	const Node *n = &d->g->node[d->g->val[c.v].def];

	if (--*left < 0)
		return false;
	switch (d->g->val[c.v].def ? n->op : OP_COUNT) {
	case OP_SELECTED:
		return d->g->val[c.v].slot == 0 && of_selected(d, n, &c, y);
	case OP_CONCAT:
		if (n->attr.CONCAT.axis != c.axis)
			return false;
		c.v = part_of(d, n, &c.at);
		return find(d, c, y, left);
	case OP_ADD: case OP_MUL:
		return of_two(d, n, c, y, left);
	case OP_WHERE:
		return of_where(d, n, c, y, left);
	case OP_COUNT:
		return of_const(d, &c, y);
	default:
		return comes_from(d, n, &c)
			&& find(d, c, y, left);
	}
}

bool
deal_find_numbers(const struct deal *d, struct column c, struct numbers *y)
{
	int left = VISITS;

	return d->samples > 0 && find(d, c, y, &left);
}

/* Whether elements of a constant are those of the first sample in its dim. */
static bool
repeats_first(const struct deal *d, const struct column *c)
{
	const Val *x = &d->g->val[c->v];
	int last = x->shape.rank - 1;
	int64_t width = c->axis < 0 ? 1 : x->shape.dim[last], inner, each;
	double same;

	if (val_splat(d->g, c->v, &same))
		return true;
	if (!x->data || c->dim < 0 || c->dim > last
	    || (c->axis >= 0 && c->axis != last)
	    || x->shape.dim[c->dim] % d->samples)
		return false;
	each = x->shape.dim[c->dim] / d->samples;
	inner = product(&x->shape, c->dim + 1, x->shape.rank)
	      / (c->dim < last ? width : 1);
	for (int64_t i = 0; i < val_nelem(x) / width; i++) {
		int64_t at = i / inner % x->shape.dim[c->dim];
		int64_t first = i - (at - at % each) * inner;

		if (val_int(x, i * width + c->at)
		    != val_int(x, first * width + c->at))
			return false;
	}
	return true;
}

bool
deal_is_unnumbered(const struct deal *d, struct column c)
{
	struct numbers x;

	if (deal_find_numbers(d, c, &x))
		return x.each == 0 && !x.beyond;
	for (;;) {
		const Node *n = &d->g->node[d->g->val[c.v].def];

		if (!d->g->val[c.v].def)
			return d->g->val[c.v].kind != V_CONST
				|| repeats_first(d, &c);
		if (n->op == OP_CONCAT && n->attr.CONCAT.axis == c.axis)
			c.v = part_of(d, n, &c.at);
		else if (!comes_from(d, n, &c))
			return !deal_has_numbers(d, c.v);
	}
}

/* ---- what else is made of numbers ---- */

bool
deal_has_numbers(const struct deal *d, ValId v)
{
	return v < d->nnumbered && d->numbered[v];
}

static void
mark(struct deal *d, ValId v)
{
	size_t had = d->nnumbered;

	if (v >= had) {
		d->numbered = arena_grow(d->p->scratch, d->numbered, had,
		                        &d->numbered_cap, (size_t)v + 1,
		                        sizeof *d->numbered);
		d->nnumbered = (size_t)v + 1;
		for (size_t i = had; i < d->nnumbered; i++)
			d->numbered[i] = false;
	}
	d->numbered[v] = true;
}

/* Whether the node asks whether numbers are negative, which they are not. */
static bool
is_sign(const struct deal *d, const Node *n)
{
	struct column c = { n->in[0], -1, 0, -1 };
	struct numbers x;
	double zero;

	return n->op == OP_LT && val_splat(d->g, n->in[1], &zero) && zero == 0
		&& deal_find_numbers(d, c, &x) && x.lo >= 0;
}

bool
deal_follow_numbers(struct deal *d, const Node *n, const Split *out)
{
	bool any = false;

	if (n->op == OP_SELECTED && deal_is(d, n->in[0], SPLIT_S))
		mark(d, n->out[0]);
	for (int k = 0; k < n->nin; k++) {
		any |= deal_has_numbers(d, n->in[k])
			&& !(k == 1 && deal_looks_up(n->op));
		if (n->op == OP_CONCAT && deal_is(d, n->in[k], SPLIT_R)
		    && deal_numbers_rows(d, n, n->in[k], &out[0]))
			mark(d, n->out[0]);
	}
	if (!any || is_sign(d, n))
		return true;
	for (int k = 0; k < n->nout; k++) {
		struct column c = { n->out[k], -1, 0, -1 };
		struct numbers x;

		if (n->out[k] && (dtype_info[d->g->val[n->out[k]].dt].cls != 'i'
		                  || out[k].kind == SPLIT_P
		                  || op_info[n->op].flags & F_WRITES))
			return false;
		if (!deal_find_numbers(d, c, &x) || x.each)
			mark(d, n->out[k]);
	}
	return true;
}
