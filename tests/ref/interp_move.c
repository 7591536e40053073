/* Reference interpreter: layout, indexing and reductions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ref/interp_int.h"

/* ---- layout ---- */

bool
interp_copy(struct call *c)
{
	if (c->in[0].n != c->out[0].n)
		return interp_fail(c, "element counts differ");
	memcpy(c->out[0].x, c->in[0].x, (size_t)c->in[0].n * sizeof(double));
	return true;
}

bool
interp_offload_into(struct call *c)
{
	memcpy(c->out[0].x, c->in[1].x, (size_t)c->in[1].n * sizeof(double));
	return true;
}

bool
interp_expand(struct call *c)
{
	struct ten *y = &c->out[0];
	int64_t idx[MAX_RANK];

	for (int64_t i = 0; i < y->n; i++) {
		interp_unravel(&y->s, i, idx);
		y->x[i] = c->in[0].x[interp_bcast(&c->in[0].s, &y->s, idx)];
	}
	return true;
}

bool
interp_transpose(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct ten *y = &c->out[0];
	const IntList *perm = &c->a->TRANSPOSE.perm;
	int64_t idx[MAX_RANK], src[MAX_RANK];

	for (int64_t i = 0; i < y->n; i++) {
		interp_unravel(&y->s, i, idx);
		for (int k = 0; k < y->s.rank; k++)
			src[perm->n ? perm->v[k] : y->s.rank - 1 - k] = idx[k];
		y->x[i] = x->x[interp_ravel(&x->s, src)];
	}
	return true;
}

bool
interp_slice(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct ten *y = &c->out[0];
	const IntList *start = &c->a->SLICE.start, *step = &c->a->SLICE.step;
	int64_t idx[MAX_RANK];

	if (start->n != x->s.rank || step->n != x->s.rank)
		return interp_fail(c, "not folded");
	for (int64_t i = 0; i < y->n; i++) {
		interp_unravel(&y->s, i, idx);
		for (int k = 0; k < y->s.rank; k++) {
			idx[k] = start->v[k] + idx[k] * step->v[k];
			if (idx[k] < 0 || idx[k] >= x->s.dim[k])
				return interp_fail(c, "out of bounds");
		}
		y->x[i] = x->x[interp_ravel(&x->s, idx)];
	}
	return true;
}

bool
interp_concat(struct call *c)
{
	struct ten *y = &c->out[0];
	int axis = axis_of(c->a->CONCAT.axis, y->s.rank);
	int64_t at = 0, idx[MAX_RANK];

	for (int k = 0; k < c->nin; k++) {
		const struct ten *x = &c->in[k];

		for (int64_t i = 0; i < x->n; i++) {
			interp_unravel(&x->s, i, idx);
			idx[axis] += at;
			y->x[interp_ravel(&y->s, idx)] = x->x[i];
		}
		at += x->s.dim[axis];
	}
	return at == y->s.dim[axis] ? true : interp_fail(c, "extents");
}

/* Source of position i of n elements; -1: the fill value. */
static int64_t
pad_source(int64_t i, int64_t n, int64_t mode)
{
	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case 1:
		while (i < 0 || i >= n)
			i = n == 1 ? 0 : i < 0 ? -i : 2 * (n - 1) - i;
		return i;
	case 2:
		return i < 0 ? 0 : n - 1;
	case 3:
		return ((i % n) + n) % n;
	default:
		return -1;
	}
}

bool
interp_pad(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct ten *y = &c->out[0];
	const IntList *begin = &c->a->PAD.begin;
	int64_t idx[MAX_RANK];

	if (begin->n != x->s.rank)
		return interp_fail(c, "not folded");
	for (int64_t i = 0; i < y->n; i++) {
		bool inside = true;

		interp_unravel(&y->s, i, idx);
		for (int k = 0; k < y->s.rank; k++) {
			idx[k] = pad_source(idx[k] - begin->v[k], x->s.dim[k],
			                    c->a->PAD.mode);
			inside &= idx[k] >= 0;
		}
		y->x[i] = inside ? x->x[interp_ravel(&x->s, idx)]
		                 : c->a->PAD.value;
	}
	return true;
}

bool
interp_tile(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct ten *y = &c->out[0];
	int64_t idx[MAX_RANK];

	for (int64_t i = 0; i < y->n; i++) {
		interp_unravel(&y->s, i, idx);
		for (int k = 0; k < y->s.rank; k++)
			idx[k] %= x->s.dim[k];
		y->x[i] = x->x[interp_ravel(&x->s, idx)];
	}
	return true;
}

bool
interp_trilu(struct call *c)
{
	struct ten *y = &c->out[0];
	int64_t idx[MAX_RANK], k = c->a->TRILU.k;

	for (int64_t i = 0; i < y->n; i++) {
		int64_t d;

		interp_unravel(&y->s, i, idx);
		d = idx[y->s.rank - 1] - idx[y->s.rank - 2] - k;
		y->x[i] = (c->a->TRILU.upper ? d >= 0 : d <= 0)
		          ? c->in[0].x[i] : 0;
	}
	return true;
}

/* ---- indexing ---- */

static bool
wrap_index(struct call *c, double raw, int64_t n, int64_t *i)
{
	*i = (int64_t)raw;
	if (*i < 0)
		*i += n;
	if (*i < 0 || *i >= n)
		return interp_fail(c, "index %lld out of range of %lld",
		                   (long long)raw, (long long)n);
	return true;
}

/* Where index `raw` is among a rank's n rows of v, a piece of `part` in all, or
 * the rows of a replica's experts, of `all` (0: it is all of them); -1: another
 * rank or replica has it. */
static bool
find_row(struct call *c, double raw, ValId v, int64_t part, int64_t all,
         int64_t n, int64_t *at)
{
	if (!wrap_index(c, raw, part ? part : all ? all : n, at))
		return false;
	if (part)
		*at -= interp_piece(c, v) * n;
	else if (all)
		*at -= interp_shard(c->it, true) * n;
	if (*at < 0 || *at >= n)
		*at = -1;
	return true;
}

bool
interp_gather(struct call *c)
{
	const struct ten *x = &c->in[0], *idx = &c->in[1];
	int axis = axis_of(c->a->GATHER.axis, x->s.rank);
	int64_t outer = interp_extent(&x->s, 0, axis), n = x->s.dim[axis];
	int64_t inner = interp_extent(&x->s, axis + 1, x->s.rank);

	for (int64_t o = 0; o < outer; o++)
		for (int64_t j = 0; j < idx->n; j++) {
			double *y = c->out[0].x + (o * idx->n + j) * inner;
			int64_t at;

			if (!find_row(c, idx->x[j], c->n->in[0],
			              c->a->GATHER.whole_extent,
			              c->a->GATHER.all, n, &at))
				return false;
			for (int64_t k = 0; k < inner; k++)
				y[k] = at < 0 ? 0
				     : x->x[(o * n + at) * inner + k];
		}
	return true;
}

bool
interp_scatter_add(struct call *c)
{
	const struct ten *idx = &c->in[0], *upd = &c->in[1];
	struct ten *y = &c->out[0];
	int axis = axis_of(c->a->SCATTER_ADD.axis, y->s.rank);
	int64_t outer = interp_extent(&y->s, 0, axis), n = y->s.dim[axis];
	int64_t inner = interp_extent(&y->s, axis + 1, y->s.rank);

	if (upd->n != outer * idx->n * inner)
		return interp_fail(c, "extents");
	for (int64_t i = 0; i < y->n; i++)
		y->x[i] = c->nin > 2 && c->in[2].x ? c->in[2].x[i] : 0;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t j = 0; j < idx->n; j++) {
			int64_t at;

			if (!find_row(c, idx->x[j], c->n->out[0],
			              c->a->SCATTER_ADD.whole_extent,
			              c->a->SCATTER_ADD.all, n, &at))
				return false;
			for (int64_t k = 0; at >= 0 && k < inner; k++)
				y->x[(o * n + at) * inner + k] +=
				    upd->x[(o * idx->n + j) * inner + k];
		}
	return true;
}

bool
interp_gather_elements(struct call *c)
{
	const struct ten *x = &c->in[0], *ix = &c->in[1];
	int axis = axis_of(c->a->GATHER_ELEMENTS.axis, x->s.rank);
	int64_t idx[MAX_RANK];

	for (int64_t i = 0; i < ix->n; i++) {
		interp_unravel(&ix->s, i, idx);
		if (!wrap_index(c, ix->x[i], x->s.dim[axis], &idx[axis]))
			return false;
		c->out[0].x[i] = x->x[interp_ravel(&x->s, idx)];
	}
	return true;
}

static double
combined(int64_t how, double old, double new)
{
	switch (how) {
	case 1: return old + new;
	case 2: return old * new;
	case 3: return maximum(old, new);
	case 4: return -maximum(-old, -new);
	default: return new;
	}
}

bool
interp_scatter_elements(struct call *c)
{
	const struct ten *x = &c->in[0], *ix = &c->in[1], *upd = &c->in[2];
	int axis = axis_of(c->a->SCATTER_ELEMENTS.axis, x->s.rank);
	int64_t idx[MAX_RANK];

	if (!interp_copy(c))
		return false;
	for (int64_t i = 0; i < ix->n; i++) {
		double *to;

		interp_unravel(&ix->s, i, idx);
		if (!wrap_index(c, ix->x[i], x->s.dim[axis], &idx[axis]))
			return false;
		to = &c->out[0].x[interp_ravel(&x->s, idx)];
		*to = combined(c->a->SCATTER_ELEMENTS.add, *to, upd->x[i]);
	}
	return true;
}

/* Start in x of the piece that the index tuple number j addresses. */
static bool
nd_start(struct call *c, const Shape *x, const struct ten *ix, int batch,
         int64_t j, int64_t *start, int64_t *len)
{
	int64_t depth = ix->s.dim[ix->s.rank - 1], at = 0;
	int64_t per = interp_extent(&ix->s, batch, ix->s.rank - 1);

	if (batch > 0)
		at = j / per;
	for (int64_t k = 0; k < depth; k++) {
		int64_t i, n = x->dim[batch + k];

		if (!wrap_index(c, ix->x[j * depth + k], n, &i))
			return false;
		at = at * n + i;
	}
	*len = interp_extent(x, batch + (int)depth, x->rank);
	*start = at * *len;
	return true;
}

bool
interp_gather_nd(struct call *c)
{
	const struct ten *x = &c->in[0], *ix = &c->in[1];
	int64_t n = interp_extent(&ix->s, 0, ix->s.rank - 1), start, len;

	for (int64_t j = 0; j < n; j++) {
		if (!nd_start(c, &x->s, ix, (int)c->a->GATHER_ND.batch, j,
		              &start, &len))
			return false;
		memcpy(c->out[0].x + j * len, x->x + start,
		       (size_t)len * sizeof(double));
	}
	return true;
}

bool
interp_scatter_nd(struct call *c)
{
	const struct ten *x = &c->in[0], *ix = &c->in[1], *upd = &c->in[2];
	int64_t n = interp_extent(&ix->s, 0, ix->s.rank - 1), start, len;

	if (!interp_copy(c))
		return false;
	for (int64_t j = 0; j < n; j++) {
		if (!nd_start(c, &x->s, ix, 0, j, &start, &len))
			return false;
		for (int64_t k = 0; k < len; k++) {
			double *to = &c->out[0].x[start + k];
			double u = upd->x[j * len + k];

			*to = combined(c->a->SCATTER_ND.add, *to, u);
		}
	}
	return true;
}

bool
interp_cumsum(struct call *c)
{
	const struct ten *x = &c->in[0];
	int axis = axis_of(c->a->CUMSUM.axis, x->s.rank);
	int64_t n = x->s.dim[axis];
	int64_t inner = interp_extent(&x->s, axis + 1, x->s.rank);
	int64_t lines = n > 0 ? x->n / n : 0;

	for (int64_t l = 0; l < lines; l++) {
		int64_t base = l / inner * n * inner + l % inner;
		double sum = c->a->CUMSUM.product ? 1 : 0;

		for (int64_t j = 0; j < n; j++) {
			int64_t k = c->a->CUMSUM.reverse ? n - 1 - j : j;
			double v = x->x[base + k * inner], old = sum;

			sum = c->a->CUMSUM.product ? sum * v : sum + v;
			c->out[0].x[base + k * inner] =
			    c->a->CUMSUM.exclusive ? old : sum;
		}
	}
	return true;
}

bool
interp_argmax(struct call *c)
{
	const struct ten *x = &c->in[0];
	int axis = axis_of(c->a->ARGMAX.axis, x->s.rank);
	int64_t n = x->s.dim[axis];
	int64_t inner = interp_extent(&x->s, axis + 1, x->s.rank);

	for (int64_t l = 0; l < c->out[0].n; l++) {
		const double *p = x->x + l / inner * n * inner + l % inner;
		int64_t best = 0;

		for (int64_t j = 1; j < n; j++)
			if (p[j * inner] > p[best * inner] ||
			    (c->a->ARGMAX.last &&
			     p[j * inner] == p[best * inner]))
				best = j;
		c->out[0].x[l] = (double)best;
	}
	return true;
}

/* ---- reductions ---- */

bool
interp_reduce(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct ten *y = &c->out[0];
	const IntList *axes = &c->a->REDUCE_SUM.axes;
	bool all = axes->n == 0 && !c->a->REDUCE_SUM.noop;
	bool red[MAX_RANK] = { false }, *seen;
	int64_t idx[MAX_RANK], count = 1;
	Op op = c->n->op;

	for (int k = 0; k < axes->n; k++)
		red[axis_of(axes->v[k], x->s.rank)] = true;
	for (int k = 0; k < x->s.rank; k++) {
		red[k] |= all;
		count *= red[k] ? x->s.dim[k] : 1;
	}
	for (int64_t i = 0; i < y->n; i++)
		y->x[i] = op == OP_REDUCE_PROD;
	seen = interp_need(calloc((size_t)y->n + 1, 1));
	for (int64_t i = 0; i < x->n; i++) {
		int64_t at = 0;
		double v = x->x[i];

		interp_unravel(&x->s, i, idx);
		for (int k = 0; k < x->s.rank; k++)
			if (!red[k])
				at = at * x->s.dim[k] + idx[k];
		switch (op) {
		case OP_REDUCE_PROD: y->x[at] *= v; break;
		case OP_REDUCE_MAX:
			y->x[at] = seen[at] ? maximum(y->x[at], v) : v;
			break;
		case OP_REDUCE_MIN:
			y->x[at] = seen[at] ? -maximum(-y->x[at], -v) : v;
			break;
		default: y->x[at] += v; break;
		}
		seen[at] = true;
	}
	free(seen);
	for (int64_t i = 0; op == OP_REDUCE_MEAN && i < y->n; i++)
		y->x[i] /= (double)count;
	return true;
}

bool
interp_selected(struct call *c)
{
	const struct ten *x = &c->in[0];
	bool compact = c->a->SELECTED.compact;
	int64_t count = 0, first = -1, idx[MAX_RANK] = { 0 };
	double *y = c->out[0].x;

	for (int64_t i = 0; i < x->n; i++) {
		if (x->x[i] == 0)
			continue;
		first = first < 0 ? i : first;
		interp_unravel(&x->s, i, idx);
		for (int d = 0; y && compact && d < x->s.rank; d++)
			y[d * x->n + count] = (double)idx[d];
		count++;
	}
	for (int64_t i = compact ? count : 0; y && i < x->n; i++) {
		bool own = !compact && x->x[i] != 0;

		interp_unravel(&x->s, own ? i : count ? first : 0, idx);
		for (int d = 0; d < x->s.rank; d++)
			y[d * x->n + i] = (double)idx[d];
	}
	if (c->nout > 1 && c->out[1].x)
		c->out[1].x[0] = (double)count;
	return true;
}

bool
interp_fill(struct call *c)
{
	for (int64_t i = 0; i < c->out[0].n; i++)
		c->out[0].x[i] = c->a->FILL.value;
	return true;
}

/* By repeated selection of the best that is left. */
bool
interp_topk(struct call *c)
{
	const struct ten *x = &c->in[0];
	int axis = axis_of(c->a->TOPK.axis, x->s.rank);
	int64_t n = x->s.dim[axis], k = c->a->TOPK.k;
	int64_t inner = interp_extent(&x->s, axis + 1, x->s.rank);
	int64_t lines = n ? x->n / n : 0;
	bool *taken = interp_need(calloc((size_t)n + 1, sizeof *taken));

	for (int64_t l = 0; l < lines; l++) {
		const double *from = x->x + l / inner * n * inner + l % inner;

		memset(taken, 0, (size_t)n * sizeof *taken);
		for (int64_t q = 0; q < k; q++) {
			int64_t at = -1, to = (l / inner * k + q) * inner
			                      + l % inner;

			for (int64_t j = 0; j < n; j++)
				if (!taken[j] && (at < 0
				    || (c->a->TOPK.largest
				        ? from[j * inner] > from[at * inner]
				        : from[j * inner] < from[at * inner])))
					at = j;
			taken[at] = true;
			if (c->out[0].x)
				c->out[0].x[to] = from[at * inner];
			if (c->out[1].x)
				c->out[1].x[to] = (double)at;
		}
	}
	free(taken);
	return true;
}
