/* Gathers and scatters in which each sample accesses only its own rows.
 *
 * x[arange(batch), i] looks up, for every sample, something of its own row of
 * x, and so does x[mask], row by row: the numbers of rows are those of the
 * rank's samples.  GatherND's batch says the same without numbers.
 */
#include "passes/data_parallel/dp_partition.h"

static bool writes_padding_row(const struct dp_partition *, NodeId, int row);

/* ---- a row more ---- */

/* Whether y is x without its last element along axis. */
static bool
drops_last_row(const struct dp_partition *d, const Node *n, int axis)
{
	const Shape *x = &d->g->val[n->in[0]].shape;
	const Shape *y = &d->g->val[n->out[0]].shape;

	for (int i = 0; n->op == OP_SLICE && i < x->rank; i++)
		if (n->attr.SLICE.start.v[i] || n->attr.SLICE.step.v[i] != 1
		    || y->dim[i] != x->dim[i] - (i == axis))
			return false;
	return n->op == OP_SLICE;
}

/* Whether what the node writes to is a row longer than its samples, for what
 * does not count, and loses it again. */
static bool
is_padded_by_row(const struct dp_partition *d, const Node *n, int axis)
{
	const struct uses *u = &d->uses;

	if ((n->op != OP_SCATTER_ND && n->op != OP_SCATTER_ELEMENTS)
	    || d->g->val[n->out[0]].output || n->out[0] >= d->nold_val)
		return false;
	FOR_USES (i, u, n->out[0])
		if (!drops_last_row(d, &d->g->node[u->node[i]], axis))
			return false;
	return true;
}

bool
dp_infer_padded_rows(const struct dp_partition *d, const Node *n,
                     Placement *out)
{
	const struct uses *u = &d->uses;
	const Placement *s;
	const Shape *y;

	if (n->op != OP_PAD && n->op != OP_SLICE)
		return false;
	s = dp_placement(d, n->in[0]);
	y = &d->g->val[n->out[0]].shape;
	if (s->kind != PLACEMENT_SHARD || s->first_axis != s->axis
	    || s->nsegment != 1 || n->out[0] >= d->nold_val)
		return false;
	out[0] = placement_dim(s->axis, DP_RANKS * y->dim[s->axis]);
	if (n->op == OP_SLICE)
		return drops_last_row(d, n, s->axis)
			&& writes_padding_row(d, d->g->val[n->in[0]].def,
		                              s->axis);
	for (int i = 0; i < y->rank; i++)
		if (n->attr.PAD.begin.v[i]
		    || n->attr.PAD.end.v[i] != (i == s->axis))
			return false;
	FOR_USES (i, u, n->out[0]) {
		const Node *to = &d->g->node[u->node[i]];

		if (to->in[0] != n->out[0] || !is_padded_by_row(d, to, s->axis))
			return false;
	}
	return true;
}

/* ---- lookups ---- */

/* What a node looks up, or writes: idx picks rows of dims of data. */
struct lookup {
	int axis;               /* the first dim that is picked in */
	int dims;               /* how many are */
	bool tuple;             /* ... by the last dim of idx */
	bool along;             /* other dims of idx are those of data */
	bool write;
	int shift;              /* of the dims of idx in what is read */
};

static bool
find_lookup(const struct dp_partition *d, const Node *n, struct lookup *l)
{
	const Shape *idx = n->nin > 1 ? &d->g->val[n->in[1]].shape : NULL;
	Attr a = n->attr;

	*l = (struct lookup){ .dims = 1 };
	switch (n->op) {
	case OP_GATHER:
		l->axis = (int)n->attr.GATHER.axis;
		l->axis += l->axis < 0 ? d->g->val[n->in[0]].shape.rank : 0;
		l->shift = l->axis;
		return true;
	case OP_SCATTER_ELEMENTS:
		l->write = true;
		/* fallthrough */
	case OP_GATHER_ELEMENTS:
		l->axis = (int)*attr_int_of(n->op, &a, "axis");
		l->axis += l->axis < 0 ? idx->rank : 0;
		l->along = true;
		return true;
	case OP_SCATTER_ND:
		l->write = true;
		/* fallthrough */
	case OP_GATHER_ND:
		l->tuple = true;
		l->dims = (int)idx->dim[idx->rank - 1];
		return true;
	default:
		return false;
	}
}

/* What idx has for dim `row` of data. */
static struct column
index_column(const struct dp_partition *d, const Node *n,
             const struct lookup *l, int row, int dim)
{
	const Shape *idx = &d->g->val[n->in[1]].shape;

	return (struct column){ n->in[1], l->tuple ? idx->rank - 1 : -1,
	                        row - l->axis, dim };
}

/* Whether idx has, for dim `row` of data, the numbers of each sample's own
 * rows; dim: of idx, has the samples; -1: unknown. */
static bool
is_own_row(const struct dp_partition *d, const Node *n, const struct lookup *l,
           int row, int dim)
{
	int64_t extent = d->g->val[n->in[0]].shape.dim[row];
	struct column c = index_column(d, n, l, row, dim);
	struct sample_index y;

	if (!dp_find_sample_index(d, c, &y))
		return false;
	if (y.beyond && (--extent != y.beyond || !is_padded_by_row(d, n, row)))
		return false;
	for (c.at = 0; l->tuple && c.at < l->dims; c.at++)
		if (c.at != row && !dp_lacks_sample_index(d, c))
			return false;
	return y.stride * d->samples == extent && y.lo >= 0 && y.hi < y.stride;
}

/* Whether a scatter writes what does not count to the last element of row. */
static bool
writes_padding_row(const struct dp_partition *d, NodeId id, int row)
{
	const Node *n = &d->g->node[id];
	struct lookup l;
	struct sample_index y;

	return id && is_padded_by_row(d, n, row) && find_lookup(d, n, &l)
		&& row >= l.axis && row < l.axis + l.dims
		&& dp_find_sample_index(d, index_column(d, n, &l, row, -1), &y)
		&& y.beyond == d->g->val[n->in[0]].shape.dim[row] - 1;
}

/* The row of data that goes with samples of idx, and with the dim of those: -1
 * for any, of a constant. */
static bool
find_row(const struct dp_partition *d, const Node *n, const struct lookup *l,
         int *row, int *dim)
{
	const Shape *idx = &d->g->val[n->in[1]].shape;
	const Placement *s = dp_placement(d, n->in[1]);
	bool any = *dim < 0 && s->kind != PLACEMENT_SHARD;
	bool several = s->kind == PLACEMENT_SHARD && s->nsegment > 1;

	if (!any && (*dim >= idx->rank - l->tuple
	             || (l->along && *dim != l->axis)))
		return false;
	for (int r = l->axis; r < l->axis + l->dims; r++) {
		if (*row >= 0 && r != *row)
			continue;
		for (int k = any ? 0 : *dim; k < (any ? idx->rank - l->tuple
		                                  : *dim + 1); k++)
			if ((!l->along || k == l->axis)
			    && is_own_row(d, n, l, r, several ? -1 : k)) {
				*row = r;
				*dim = k;
				return true;
			}
	}
	return false;
}

static Placement
shift_split(Placement s, int by)
{
	s.axis += by;
	s.first_axis += by;
	return s;
}

/* The batch of a gather_nd: dims that data and idx share. */
static bool
is_batch_dim(const Node *n, int axis)
{
	return n->op == OP_GATHER_ND && axis < n->attr.GATHER_ND.batch;
}

bool
dp_follow_own_rows(const struct dp_partition *d, const Node *n, int value_index,
                   Placement *at)
{
	struct lookup l;
	bool idx = value_index == 1, is = find_lookup(d, n, &l);
	bool data = is
		&& (value_index == 0 || (l.write && value_index == n->nin));
	Placement s = at[value_index];
	int row = -1, dim = -1;

	if (!is || s.kind != PLACEMENT_SHARD || s.first_axis != s.axis)
		return false;
	if (!data && !idx && !l.write)
		s = shift_split(s, -l.shift);
	if (s.axis < 0)
		return false;
	if (is_batch_dim(n, s.axis)) {
		at[0] = at[1] = at[2] = s;
		return true;
	}
	if (n->op == OP_GATHER_ND && n->attr.GATHER_ND.batch)
		return false;
	if (data)
		row = s.axis;
	else
		dim = s.axis;
	if ((s.nsegment > 1
	     && (data || !dp_has_kind(d, n->in[1], PLACEMENT_SHARD)))
	    || !find_row(d, n, &l, &row, &dim))
		return false;
	if (data && dp_has_kind(d, n->in[1], PLACEMENT_SHARD)) {
		s = *dp_placement(d, n->in[1]);
		for (int k = 0; k < placement_listed(&s); k++)
			s.segment[k] /= DP_RANKS;
	} else if (data) {
		s = placement_dim(dim, d->g->val[n->in[1]].shape.dim[dim]);
	}
	at[0] = placement_dim(row, d->g->val[n->in[0]].shape.dim[row]);
	at[1] = s;
	at[2] = l.write ? s : shift_split(s, l.shift);
	if (l.write)
		at[n->nin] = at[0];
	return true;
}

bool
dp_infer_own_rows(const struct dp_partition *d, const Node *n, Placement *out,
                  bool *is)
{
	struct lookup l;
	const Placement *x, *idx;
	int row = -1, dim = -1;

	*is = find_lookup(d, n, &l);
	if (!*is)
		return false;
	x = dp_placement(d, n->in[0]);
	idx = dp_placement(d, n->in[1]);
	if (n->op == OP_GATHER_ND && n->attr.GATHER_ND.batch) {
		*is = (x->kind == PLACEMENT_SHARD && is_batch_dim(n, x->axis))
			|| dp_has_sample_index(d, n->in[1]);
		out[0] = *x;
		return x->kind == PLACEMENT_SHARD && is_batch_dim(n, x->axis)
			&& placement_eq(x, idx)
			&& !dp_has_sample_index(d, n->in[1]);
	}
	if (idx->kind == PLACEMENT_SHARD && idx->first_axis == idx->axis)
		dim = idx->axis;
	if (x->kind == PLACEMENT_SHARD)
		row = x->axis;
	*is = (x->kind == PLACEMENT_SHARD || idx->kind == PLACEMENT_SHARD
	       || (l.write && dp_has_kind(d, n->in[2], PLACEMENT_SHARD)))
		&& (row < 0 || (row >= l.axis && row < l.axis + l.dims))
		&& find_row(d, n, &l, &row, &dim);
	if (!*is || x->kind != PLACEMENT_SHARD || x->nsegment != 1
	    || x->first_axis != x->axis)
		return false;
	if (idx->kind == PLACEMENT_PARTIAL)
		return false;
	out[0] = idx->kind == PLACEMENT_SHARD ? *idx
	       : placement_dim(dim, DP_RANKS
	                       * d->g->val[n->in[1]].shape.dim[dim]);
	if (l.write && !placement_eq(dp_placement(d, n->in[2]), &out[0]))
		return false;
	out[0] = l.write ? *x : shift_split(out[0], l.shift);
	return true;
}

bool
dp_indexes_rows(const struct dp_partition *d, const Node *n, ValId v,
                const Placement *s)
{
	const struct uses *u = &d->uses;
	ValId y = n->out[0];
	int last = d->g->val[y].shape.rank - 1;
	struct column c = { v, last, 0, s->axis };
	struct sample_index x;

	if (n->op != OP_CONCAT || n->attr.CONCAT.axis != last
	    || s->kind != PLACEMENT_SHARD || s->first_axis != s->axis
	    || s->nsegment != 1 || y >= d->nold_val)
		return false;
	FOR_USES (i, u, y) {
		const Node *by = &d->g->node[u->node[i]];

		if ((by->op != OP_GATHER_ND && by->op != OP_SCATTER_ND)
		    || by->in[1] != y || by->in[0] == y)
			return false;
	}
	for (; c.at < d->g->val[v].shape.dim[last]; c.at++)
		if (dp_find_sample_index(d, c, &x) && x.stride)
			return true;
	return false;
}

/* ---- which values hold sample indices ---- */

static void
mark_index(struct dp_partition *d, ValId v)
{
	size_t had = d->nindexed;

	if (v >= had) {
		d->indexed = arena_grow(d->p->scratch, d->indexed, had,
		                       &d->indexed_cap, (size_t)v + 1,
		                       sizeof *d->indexed);
		d->nindexed = (size_t)v + 1;
		for (size_t i = had; i < d->nindexed; i++)
			d->indexed[i] = false;
	}
	d->indexed[v] = true;
}

/* Whether the node asks whether indices are negative, which they are not. */
static bool
is_sign_test(const struct dp_partition *d, const Node *n)
{
	struct column c = { n->in[0], -1, 0, -1 };
	struct sample_index x;
	double zero;

	return n->op == OP_LT && val_splat(d->g, n->in[1], &zero) && zero == 0
		&& dp_find_sample_index(d, c, &x) && x.lo >= 0;
}

bool
dp_follow_sample_index(struct dp_partition *d, const Node *n,
                       const Placement *out)
{
	bool any = false;

	if (n->op == OP_SELECTED && dp_has_kind(d, n->in[0], PLACEMENT_SHARD))
		mark_index(d, n->out[0]);
	for (int k = 0; k < n->nin; k++) {
		any |= dp_has_sample_index(d, n->in[k])
			&& !(k == 1 && dp_is_lookup(n->op));
		if (n->op == OP_CONCAT
		    && dp_has_kind(d, n->in[k], PLACEMENT_REPLICATE_PARTIAL)
		    && dp_indexes_rows(d, n, n->in[k], &out[0]))
			mark_index(d, n->out[0]);
	}
	if (!any || is_sign_test(d, n))
		return true;
	for (int k = 0; k < n->nout; k++) {
		struct column c = { n->out[k], -1, 0, -1 };
		struct sample_index x;

		if (n->out[k] && (dtype_info[d->g->val[n->out[k]].dt].cls != 'i'
		                  || out[k].kind == PLACEMENT_PARTIAL
		                  || op_info[n->op].flags & F_WRITES))
			return false;
		if (!dp_find_sample_index(d, c, &x) || x.stride)
			mark_index(d, n->out[k]);
	}
	return true;
}
