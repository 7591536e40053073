/* order of the rows of a padded dim (dynamic.c).
 *
 * Valid rows are compact, the first `count` of all rows, or in place, each at
 * its element of the mask.  In place no sample mixes with others, so replicas
 * can partition a batch, and a write under the same mask is a `where`.  This
 * form is correct unless an op reads the index of a row, which only the walk
 * finds out (fold_require_compact).  So both forms are built, and one is
 * removed at the end.
 */
#include "passes/selection/padding.h"
#include "passes/selection/selection.h"

/* ---- sizes whose rows have one order: a union-find forest ---- */

static struct dynamic_size *
find_root(struct fold *f, int size)
{
	while (f->size[size - 1].parent)
		size = f->size[size - 1].parent;
	return &f->size[size - 1];
}

void
fold_require_compact(struct fold *f, int size)
{
	find_root(f, size)->compact = true;
}

void
fold_unite_order(struct fold *f, int a, int b)
{
	struct dynamic_size *x = find_root(f, a), *y = find_root(f, b);

	if (x == y)
		return;
	y->compact |= x->compact;
	x->parent = (int)(y - f->size) + 1;
}

/* ---- looking through moves ---- */

/* The value that v is a reshape of, through any number of reshapes. */
static ValId
skip_reshapes(const struct fold *f, ValId v)
{
	const Graph *g = f->g;

	while (g->val[v].def && g->node[g->val[v].def].op == OP_RESHAPE)
		v = g->node[g->val[v].def].in[0];
	return v;
}

bool
fold_is_indices(const struct fold *f, ValId idx, int size)
{
	const struct dynamic_size *s = &f->size[size - 1];
	const Node *n = &f->g->node[f->g->val[idx].def];
	bool one = f->g->val[s->from].shape.rank == 1;

	if (!s->indices)
		return false;
	if (one && skip_reshapes(f, idx) == s->indices)
		return true;
	idx = one ? skip_reshapes(f, idx) : idx;
	n = &f->g->node[f->g->val[idx].def];
	return n->op == OP_TRANSPOSE && n->in[0] == s->indices;
}

/* Whether mask v has the elements of mask m, each repeated that many times. */
static bool
repeats_each(const struct fold *f, ValId v, ValId m, int64_t times)
{
	const Node *n;
	const Shape *x, *y;

	v = skip_reshapes(f, v);
	m = skip_reshapes(f, m);
	if (v == m || f->g->val[v].def == 0)
		return v == m && times == 1;
	n = &f->g->node[f->g->val[v].def];
	if (n->op != OP_EXPAND || skip_reshapes(f, n->in[0]) != m)
		return false;
	x = &f->g->val[n->in[0]].shape;
	y = &f->g->val[v].shape;
	for (int d = y->rank - 1; d >= 0; d--) {
		int from = d - y->rank + x->rank;

		if (from >= 0 && x->dim[from] > 1)
			break;
		times = times % y->dim[d] ? 0 : times / y->dim[d];
	}
	return times == 1;
}

bool
fold_unify_size(struct fold *f, ValId x, int size)
{
	struct padded_dim *p = fold_facts(f, x)->padded;
	const struct dynamic_size *s = &f->size[size - 1], *own;

	if (p->size == size && p->row_size == 1)
		return true;
	own = &f->size[p->size - 1];
	if (s->concat[0] || own->concat[0] || s->bound != own->bound
	    * p->row_size || !repeats_each(f, s->from, own->from, p->row_size))
		return false;
	fold_unite_order(f, p->size, size);
	p->size = size;
	p->row_size = 1;
	return true;
}

/* ---- choice at the end ---- */

/* Whether all users of v, indices of rows of another padded dim, gather along
 * that dim, or from the mask that defines it. */
static bool
only_indexes_outer(struct fold *f, const struct uses *u, ValId v,
                   const struct dynamic_size *s)
{
	const Graph *g = f->g;

	FOR_USES (i, u, v) {
		const Node *n = &g->node[u->node[i]];
		const struct padded_dim *p = padded_of(f, n->in[0]);
		ValId asked = n->in[0];
		const Node *by = &g->node[g->val[asked].def];

		if (n->op == OP_RESHAPE || n->op == OP_TRANSPOSE) {
			if (!only_indexes_outer(f, u, n->out[0], s))
				return false;
			continue;
		}
		if (g->val[asked].def && by->op == OP_CAST)
			asked = by->in[0];
		if (n->in[0] == v || (n->op != OP_GATHER
		                      && n->op != OP_GATHER_ND)
		    || !((p && p->size == s->outer) || asked == s->from))
			return false;
	}
	return !g->val[v].output;
}

/* Require compact rows if row indices are read as numbers. */
static void
find_read_indices(struct fold *f)
{
	struct uses u;
	bool any = false;

	for (size_t i = 0; i < f->nsize; i++)
		any |= f->size[i].outer > 0 && f->size[i].indices;
	if (!any)
		return;
	u = graph_uses(f->g, f->p->scratch);
	for (size_t i = 0; i < f->nsize; i++) {
		const struct dynamic_size *s = &f->size[i];

		if (s->outer && s->indices
		    && !only_indexes_outer(f, &u, s->indices, s))
			fold_require_compact(f, s->outer);
	}
}

void
fold_choose_order(struct fold *f)
{
	Graph *g = f->g;
	ValId *now = f->nplaced ? arena_array(f->p->scratch, g->nval,
	                                      sizeof *now) : NULL;

	find_read_indices(f);
	for (size_t i = 0; i < f->nplaced; i++) {
		const struct placed *p = &f->placed[i];

		if (find_root(f, p->size)->compact)
			continue;
		now[p->v] = p->instead;
		if (g->val[p->v].output)
			fold_set_op(f, g->val[p->v].def, OP_COPY, p->instead);
	}
	FOR_NODES (n, g)
		for (int k = 0; now && k < n->nin; k++)
			while (now[n->in[k]])
				n->in[k] = now[n->in[k]];
	for (size_t i = 0; i < f->nsize; i++) {
		ValId at = f->size[i].indices;

		if (at && !find_root(f, (int)i + 1)->compact)
			g->node[g->val[at].def].attr.SELECTED.compact = 0;
	}
}
