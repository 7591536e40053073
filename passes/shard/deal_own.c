/* Rows that each sample looks up, or writes, for itself.
 *
 * x[arange(batch), i] looks up, for every sample, something of its own row of
 * x: the numbers of rows are those of the rank's samples.  GatherND's batch
 * says the same without numbers.
 */
#include "passes/shard/deal.h"

static int64_t
product(const Shape *s, int from, int to)
{
	int64_t n = 1;

	for (int i = from; i < to; i++)
		n *= s->dim[i];
	return n;
}

/* Whether number `at` of the tuples in idx is that of their place in dim. */
static bool
counts(const struct deal *d, ValId idx, int64_t at, int dim)
{
	const Val *x = &d->g->val[idx];
	const Node *n = &d->g->node[x->def];
	int last = x->shape.rank - 1;
	int64_t inner = product(&x->shape, dim + 1, last);
	int64_t each = x->shape.dim[last], all = product(&x->shape, 0, last);

	if (n->op == OP_CAST)
		return counts(d, n->in[0], at, dim);
	if (n->op == OP_CONCAT && n->attr.CONCAT.axis == last) {
		for (int k = 0; k < n->nin; k++) {
			each = d->g->val[n->in[k]].shape.dim[last];
			if (at < each)
				return counts(d, n->in[k], at, dim);
			at -= each;
		}
	}
	if (x->kind != V_CONST || !x->data)
		return false;
	for (int64_t i = 0; i < all; i++)
		if (val_int(x, i * each + at) != i / inner % x->shape.dim[dim])
			return false;
	return true;
}

struct own {
	int row;                        /* dim of data */
	int dim;                        /* of the tuples, which counts them */
};

/* row, dim: -1 if any will do. */
static bool
find_own(const struct deal *d, const Node *n, int row, int dim, struct own *o)
{
	const Shape *x = &d->g->val[n->in[0]].shape;
	const Shape *idx = &d->g->val[n->in[1]].shape;
	int last = idx->rank - 1;

	if (n->op != OP_SCATTER_ND && n->op != OP_GATHER_ND)
		return false;
	o->row = o->dim = row < 0 ? dim : row;
	if (n->op == OP_GATHER_ND && n->attr.GATHER_ND.batch)
		return o->row < n->attr.GATHER_ND.batch;
	for (o->row = 0; o->row < idx->dim[last]; o->row++)
		for (o->dim = 0; o->dim < last; o->dim++)
			if ((row < 0 || o->row == row)
			    && (dim < 0 || o->dim == dim)
			    && x->dim[o->row] == idx->dim[o->dim]
			    && counts(d, n->in[1], o->row, o->dim))
				return true;
	return false;
}

bool
deal_follow_own(const struct deal *d, const Node *n, int port, Split *at)
{
	bool data = port == 0 || (n->op == OP_SCATTER_ND && port == n->nin);
	int axis = at[port].axis;
	struct own o;
	Split x, rows;

	if (at[port].lead != axis || at[port].npart != 1
	    || !find_own(d, n, data ? axis : -1, data ? -1 : axis, &o))
		return false;
	x = split_cut(o.row, at[port].part[0]);
	rows = split_cut(o.dim, at[port].part[0]);
	at[0] = x;
	at[1] = rows;
	at[2] = rows;           /* what is written, or read */
	if (n->op == OP_SCATTER_ND)
		at[n->nin] = x;
	return true;
}

bool
deal_infer_own(const struct deal *d, const Node *n, Split *out, bool *is)
{
	const Split *x = deal_state(d, n->in[0]), *rows = NULL;
	struct own o;

	for (int k = 1; k < n->nin; k++)
		if (deal_is(d, n->in[k], SPLIT_S))
			rows = deal_state(d, n->in[k]);
	*is = (rows || x->kind == SPLIT_S)
		&& find_own(d, n, rows ? -1 : x->axis,
		            rows ? rows->axis : -1, &o);
	if (!*is)
		return false;
	for (int k = 0; k < n->nin; k++) {
		const Split *s = deal_state(d, n->in[k]);

		if (k == 1 && s->kind == SPLIT_R)
			continue;
		if (s->kind != SPLIT_S || s->npart != 1 || s->lead != s->axis
		    || s->axis != (k ? o.dim : o.row))
			return false;
	}
	out[0] = split_cut(n->op == OP_SCATTER_ND ? o.row : o.dim, x->part[0]);
	return true;
}

bool
deal_numbers_rows(const struct deal *d, const Node *n, ValId v,
                  const Split *s)
{
	const struct uses *u = &d->uses;
	ValId y = n->out[0];
	int last = d->g->val[y].shape.rank - 1;
	bool is = false;

	if (n->op != OP_CONCAT || n->attr.CONCAT.axis != last
	    || s->lead != s->axis)
		return false;
	FOR_USES (i, u, y) {
		const Node *by = &d->g->node[u->node[i]];

		if ((by->op != OP_GATHER_ND && by->op != OP_SCATTER_ND)
		    || by->in[1] != y || by->in[0] == y)
			return false;
	}
	for (int64_t k = 0; k < d->g->val[v].shape.dim[last]; k++)
		is |= counts(d, v, k, s->axis);
	return is;
}
