/* Following a cut through ops that move elements. */
#include "ir/shard/shard.h"

bool
shard_transpose(struct shard_rule *c)
{
	const IntList *perm = &c->n->attr.TRANSPOSE.perm;
	bool back = c->from >= c->nin;
	int other = back ? 0 : 1, where[MAX_RANK];
	Split to = *given(c);

	for (int i = 0; i < perm->n; i++)
		where[back ? i : (int)perm->v[i]] = back ? (int)perm->v[i] : i;
	to.lead = where[given(c)->lead];
	to.axis = where[given(c)->axis];
	for (int i = given(c)->lead; i < given(c)->axis; i++)
		if (where[i + 1] != where[i] + 1)
			return false;
	c->at[other] = to;
	return true;
}

/* Elements of dims first..last-1. */
static int64_t
product(const Shape *s, int first, int last)
{
	int64_t n = 1;

	for (int i = first; i < last; i++)
		n *= s->dim[i];
	return n;
}

static bool
is_uniform(const Split *s)
{
	for (int i = 1; i < split_listed(s); i++)
		if (s->part[i] != s->part[0])
			return false;
	return true;
}

static int64_t
pieces(const Split *s, int64_t ranks)
{
	return ranks / s->shared;
}

static int64_t
div_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* Cuts of dims lead..axis of shape `to`, taken as one part, with stretches of
 * `run` elements of which a piece has `piece`. */
static bool
try_one_part(const Shape *to, int lead, int64_t run, int64_t piece,
             Split *s, int64_t ranks)
{
	int64_t n = 1;

	for (int axis = lead; axis < to->rank; axis++) {
		int64_t post = product(to, axis + 1, to->rank);

		n *= to->dim[axis];
		if (n * post != run || div_up(n, pieces(s, ranks)) * post
		    != piece)
			continue;
		s->lead = lead;
		s->axis = axis;
		s->npart = 1;
		s->part[0] = n;
		while (s->lead < s->axis && to->dim[s->lead] == 1)
			s->lead++;
		return true;
	}
	return false;
}

/* All stretches have `run` elements, and there are `count` of them. */
static bool
find_uniform(const Shape *to, int64_t count, int64_t run, int64_t piece,
             Split *s, int64_t ranks)
{
	int64_t shared;

	for (int lead = 0; lead < to->rank; lead++)
		if (product(to, 0, lead) == count
		    && try_one_part(to, lead, run, piece, s, ranks))
			return true;
	for (int axis = to->rank; axis-- > 0; ) {
		int64_t pre = product(to, 0, axis);
		int64_t post = product(to, axis + 1, to->rank);
		int64_t n = pre > 0 && count % pre == 0 ? count / pre : 0;
		int64_t part = n > 0 && to->dim[axis] % n == 0
			? to->dim[axis] / n : 0;

		if (n < 2 || n > STRETCHES_MAX || part * post != run
		    || part % pieces(s, ranks)
		    || part / pieces(s, ranks) * post != piece)
			continue;
		shared = s->shared;
		*s = split_stretches(axis, n, part);
		s->shared = shared;
		return true;
	}
	return false;
}

/* What a reshape makes of a split; false if it has no name there. */
static bool
split_reshape(const Split *s, int64_t ranks, const Shape *from,
              const Shape *to, Split *result)
{
	int64_t pre = product(from, 0, s->lead);
	int64_t post = product(from, s->axis + 1, from->rank);

	*result = *s;
	if (is_uniform(s))
		return find_uniform(to, pre * s->npart, s->part[0] * post,
		                    div_up(s->part[0], pieces(s, ranks))
		                    * post, result, ranks);
	for (int axis = 0; axis < to->rank; axis++)
		if (product(to, 0, axis) == pre
		    && to->dim[axis] == from->dim[s->axis]
		    && product(to, axis + 1, to->rank) == post) {
			result->axis = result->lead = axis;
			return true;
		}
	return false;
}

Split
split_normal(const Split *s, int64_t ranks, const Shape *whole)
{
	Split to;

	if (s->kind != SPLIT_S
	    || !split_reshape(s, ranks, whole, whole, &to))
		return *s;
	return to;
}

/* The cut dim itself stays, best as the same one. */
static bool
same_dim(const Split *s, const Shape *from, const Shape *to, Split *y)
{
	for (int i = -1; i < to->rank; i++) {
		int axis = i < 0 ? s->axis : i;

		if (axis >= to->rank
		    || product(to, 0, axis) != product(from, 0, s->axis)
		    || to->dim[axis] != from->dim[s->axis])
			continue;
		*y = *s;
		y->axis = y->lead = axis;
		return true;
	}
	return false;
}

/* A rank's shapes do not tell [1,8] of 4 x 8 from that of 1 x 32, so a stated
 * result is compared piece by piece; otherwise the cut lies on the first dim
 * that is more than one. */
static bool
reshape_local(struct shard_rule *c)
{
	const Split *s = given(c), *y = &c->g->val[c->n->out[0]].split;
	const Shape *from = &c->g->val[c->n->in[0]].shape;
	const Shape *to = &c->g->val[c->n->out[0]].shape;
	Shape x = c->shape[0], whole = split_whole(y, to);
	Split guess = *s;

	if (y->kind == SPLIT_S) {
		Split a = split_normal(y, c->ranks, &whole);

		if (!split_reshape(s, c->ranks, &x, &whole, &guess)
		    || !split_eq(&guess, &a))
			return false;
		c->at[1] = *y;
		return true;
	}
	if (same_dim(s, from, to, &c->at[1]))
		return true;
	for (int lead = 0; lead < to->rank; lead++) {
		int axis = lead;
		int64_t whole_run = product(&x, s->axis, x.rank), post;

		if (product(to, 0, lead) != product(from, 0, s->axis)
		    || !is_uniform(s))
			continue;
		while (axis + 1 < to->rank && to->dim[axis] == 1)
			axis++;
		post = product(to, axis + 1, to->rank);
		if (s->npart > 1 || whole_run % post)
			break;
		guess.axis = guess.lead = axis;
		guess.part[0] = whole_run / post;
		if (split_piece(&guess, c->ranks) != to->dim[axis])
			break;
		c->at[1] = guess;
		return true;
	}
	return false;
}

bool
shard_reshape(struct shard_rule *c)
{
	int other = c->from == 0 ? 1 : 0;

	if (c->stated)
		return reshape_local(c);
	return split_reshape(given(c), c->ranks, &c->shape[c->from],
	                     &c->shape[other], &c->at[other]);
}

/* How many stretches from `first` on have `extent` elements, of which each of
 * the pieces has its part; -1: they end elsewhere. */
static int
stretches_of(const Split *s, int first, int64_t extent, int64_t npiece)
{
	int i = first;

	if (s->npart > MAX_RANK) {
		int64_t each = s->part[0] / npiece;

		return each > 0 && extent % each == 0
			&& extent / each <= s->npart - first
			? (int)(extent / each) : -1;
	}
	for (; i < s->npart && extent > 0; i++)
		extent -= s->part[i] / npiece;
	return extent == 0 ? i - first : -1;
}

/* Stretches that elements first..first+count-1 of the cut dim are; a rank
 * counts in its own. */
static bool
whole_stretches(const struct shard_rule *c, int64_t first, int64_t count,
                Split *to)
{
	const Split *s = given(c);
	int64_t npiece = c->stated ? pieces(s, c->ranks) : 1;
	int skip = stretches_of(s, 0, first, npiece);
	int n = skip < 0 ? -1 : stretches_of(s, skip, count, npiece);

	to->npart = 0;
	return n > 0 && split_append_from(to, s, skip, n);
}

bool
shard_slice(struct shard_rule *c)
{
	const Attr *a = &c->n->attr;
	const Shape *x = &c->g->val[c->n->in[0]].shape;
	const Shape *y = &c->g->val[c->n->out[0]].shape;
	int other = c->from == 0 ? 1 : 0;
	Split to = *given(c);

	for (int i = to.lead; i <= to.axis; i++) {
		if (a->SLICE.start.v[i] == 0 && y->dim[i] == x->dim[i])
			continue;
		if (to.lead != to.axis || c->from != 0
		    || a->SLICE.step.v[i] != 1
		    || !whole_stretches(c, a->SLICE.start.v[i], y->dim[i],
		                        &to))
			return false;
	}
	c->at[other] = to;
	return true;
}

/* Equal elements take the place of the stated result's stretches from `first`
 * on, of which a rank has as many. */
static Split
uniform_piece(const struct shard_rule *c, int p, int first)
{
	const Split *y = &c->g->val[c->n->out[0]].split;
	int axis = (int)c->n->attr.CONCAT.axis, n = -1;
	int64_t extent = c->g->val[c->n->in[p]].shape.dim[axis];
	Split one = *given(c);

	one.npart = 0;
	if (y->kind == SPLIT_S && y->axis == axis)
		n = stretches_of(y, first, extent, pieces(y, c->ranks));
	if (n < 1 || !split_append_from(&one, y, first, n))
		one.kind = SPLIT_I;
	return one;
}

/* The cut lies on the dim along which operands are joined: each brings its
 * stretches. */
static bool
join_cuts(struct shard_rule *c)
{
	int axis = (int)c->n->attr.CONCAT.axis;
	Split to = *given(c);

	if (c->from >= c->nin || to.lead != to.axis)
		return false;
	to.npart = 0;
	for (int p = 0; p < c->nin; p++) {
		Split one = !c->stated ? split_cut(axis, c->shape[p].dim[axis])
			: port_is(c, p) ? c->stated[p]
			: uniform_piece(c, p, to.npart);

		if (one.kind != SPLIT_S || one.axis != axis
		    || one.shared != to.shared
		    || !split_append_from(&to, &one, 0, one.npart))
			return false;
		c->at[p] = one;
	}
	c->at[c->nin] = to;
	return split_piece(&to, c->ranks) > 0;
}

bool
shard_concat(struct shard_rule *c)
{
	if (given(c)->axis == c->n->attr.CONCAT.axis)
		return join_cuts(c);
	if (cuts_dim(given(c), (int)c->n->attr.CONCAT.axis))
		return false;
	for (int p = 0; p < c->nport; p++)
		c->at[p] = *given(c);
	return true;
}

/* A rank's stretches among others of zeros, which the stated result says: the
 * gradient of a slice that is one of several. */
static bool
pad_stretches(struct shard_rule *c)
{
	const Split *s = given(c), *y = &c->g->val[c->n->out[0]].split;
	const Attr *a = &c->n->attr;
	int64_t npiece;
	int i;

	if (!c->stated || c->from != 0 || y->kind != SPLIT_S
	    || y->axis != s->axis || y->shared != s->shared
	    || a->PAD.mode != 0)
		return false;
	npiece = pieces(y, c->ranks);
	i = stretches_of(y, 0, a->PAD.begin.v[s->axis], npiece);
	if (i < 0 || s->npart > y->npart - i)
		return false;
	for (int k = 0; k < split_listed(s); k++)
		if (split_stretch(y, i + k) != s->part[k])
			return false;
	i += s->npart;
	c->at[1] = *y;
	return stretches_of(y, i, a->PAD.end.v[s->axis], npiece)
		== y->npart - i;
}

/* What is added at neither end may be cut. */
bool
shard_pad(struct shard_rule *c)
{
	const Attr *a = &c->n->attr;

	if (pad_stretches(c))
		return true;
	for (int i = given(c)->lead; i <= given(c)->axis; i++)
		if (a->PAD.begin.v[i] != 0 || a->PAD.end.v[i] != 0)
			return false;
	c->at[c->from == 0 ? 1 : 0] = *given(c);
	return true;
}
