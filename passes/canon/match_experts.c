/* Rule for mixtures of experts: exporters gather the matrix of each row's
 * expert,
 *
 *	matmul(gather(w, idx), x [.., K, 1])    or    matmul(x [.., 1, K], ..)
 *
 * which copies a matrix per row.  expert_matmul(x, w, idx) copies none.  Its
 * kernels take float32 and 16 bits.
 */
#include "ir/target.h"
#include "passes/canon/match.h"
#include "runtime/support/number.h"

enum { LARGE_COPY = 64 << 20 };         /* bytes */

struct expert_product {
	ValId x, w, idx;
	bool left;                      /* the matrices are the left side */
	bool tb;
	int64_t k;                      /* inner extent */
};

/* A gather of matrices w [E,N,K], by indices that have a shape of their own. */
static bool
read_gather(const struct rewrite *w, ValId v, struct expert_product *p)
{
	NodeId n = rw_is(w, v, OP_GATHER), nd = rw_is(w, v, OP_GATHER_ND);
	const Shape *idx;

	if (n ? w->g->node[n].attr.GATHER.axis != 0
	      : !nd || w->g->node[nd].attr.GATHER_ND.batch)
		return false;
	n = n ? n : nd;
	p->w = rw_in(w, n, 0);
	p->idx = rw_in(w, n, 1);
	idx = rw_shape(w, p->idx);
	return (rw_dt(w, p->w) == DT_F32 || dtype_is_half(rw_dt(w, p->w)))
		&& rw_shape(w, p->w)->rank == 3
		&& (!nd || idx->dim[idx->rank - 1] == 1);
}

/* The other side has one row or column for each matrix. */
static bool
read_product(const struct rewrite *w, NodeId root, struct expert_product *p)
{
	const Attr *a = &w->g->node[root].attr;
	const Shape *m, *x;
	bool flipped;                   /* columns of x are rows in memory */

	for (int i = 0; i < 2; i++) {
		if (!read_gather(w, rw_in(w, root, i), p))
			continue;
		p->left = i == 0;
		p->x = rw_in(w, root, !i);
		p->tb = p->left ? !a->MATMUL.ta : a->MATMUL.tb != 0;
		flipped = p->left ? a->MATMUL.tb : a->MATMUL.ta;
		m = rw_shape(w, p->w);
		x = rw_shape(w, p->x);
		p->k = m->dim[p->tb ? 2 : 1];
		if (x->rank >= 2 && a->MATMUL.alpha == 1
		    && x->dim[x->rank - (p->left != flipped ? 1 : 2)] == 1)
			return true;
	}
	return false;
}

/* Rows [n,K] of x, one for each index. */
static ValId
rows_of(struct rewrite *w, const struct expert_product *p, Shape lead)
{
	Shape rows = SHAPE(shape_nelem(&lead), p->k);
	const Shape *s = rw_shape(w, p->x);
	Shape x = *s;
	ValId v;

	x.rank--;
	x.dim[x.rank - 1] = p->k;
	v = rw_reshape(w, p->x, &x);
	lead.dim[lead.rank++] = p->k;
	return rw_reshape(w, rw_expand(w, v, &lead), &rows);
}

bool
match_experts(struct rewrite *w, NodeId root)
{
	const Shape out = *rw_shape(w, rw_out(w, root));
	Attr a = attr_default(OP_EXPERT_MATMUL);
	struct expert_product p;
	Shape lead = out, rows;
	ValId in[3], v;

	lead.rank -= 2;
	if (!(w->p->target->fuses & FUSE_EXPERTS)
	    || !read_product(w, root, &p) || rw_in(w, root, 2)
	    || rw_in(w, root, 3)
	    || shape_nelem(&lead) != shape_nelem(rw_shape(w, p.idx)))
		return false;
	rows = SHAPE(shape_nelem(&lead));
	a.EXPERT_MATMUL.tb = p.tb;
	in[0] = rows_of(w, &p, lead);
	in[1] = p.w;
	in[2] = rw_reshape(w, p.idx, &rows);
	v = rw_emit(w, OP_EXPERT_MATMUL, 3, in, &a);
	w->origin_node = rw_def(w, v);
	return rw_replace(w, root, rw_reshape(w, v, &out));
}

/* Matrices of a parameter by integers, more of them than it has. */
static bool
copies_matrices(const Graph *g, const Node *n)
{
	const Val *x = &g->val[n->in[0]];
	int64_t bytes = val_data_bytes(&g->val[n->out[0]]);

	return n->nin == 2 && dtype_info[g->val[n->in[1]].dt].cls == 'i'
		&& x->kind == V_PARAM && x->shape.rank > 2
		&& bytes > LARGE_COPY && bytes > val_data_bytes(x);
}

void
experts_warn(Pass *p, const Graph *g)
{
	char all[24], copies[24];

	FOR_NODES (n, g) {
		const Val *x = &g->val[n->in[0]], *y = &g->val[n->out[0]];

		if (!copies_matrices(g, n))
			continue;
		number_bytes(all, (double)val_data_bytes(x));
		number_bytes(copies, (double)val_data_bytes(y));
		diag_warn(p->diag, "node '%s' (%s): copies matrices of "
		          "parameter '%s' of %s, one for each index: %s; only "
		          "products of one float32 or 16-bit row with each "
		          "matrix need no copies", node_label(g, n),
		          node_type(g, n), x->name, all, copies);
	}
}
