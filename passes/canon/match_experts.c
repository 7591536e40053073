/* Rules for mixtures of experts: exporters gather the matrix of each row's
 * expert,
 *
 *	matmul(gather(w, idx), x [.., K, 1])    or    matmul(x [.., 1, K], ..)
 *
 * which copies a matrix per row.  expert_matmul(x, w, idx) copies none.  Its
 * kernels take float32 and 16 bits.  Several rows that share an index, where
 * there are more indices than matrices, are rows with that index each.
 *
 * Biases, gather(b [E,N], idx), are added to rows as the product has them, so
 * that both are the rows of the same indices.
 */
#include "ir/target.h"
#include "passes/canon/match.h"
#include "runtime/support/number.h"

enum { LARGE_COPY = 64 << 20 };         /* bytes */

struct expert_product {
	ValId x, w, idx;
	bool left;                      /* the matrices are the left side */
	bool tb;
	bool columns;                   /* x has a row per column */
	int64_t rows;                   /* for each matrix */
	int64_t k;                      /* inner extent */
};

/* A gather along dim 0 of w, by indices that have a shape of their own. */
static bool
read_gather(const struct rewrite *w, ValId v, int rank, ValId *x, ValId *idx)
{
	NodeId n = rw_is(w, v, OP_GATHER), nd = rw_is(w, v, OP_GATHER_ND);
	const Shape *s;

	if (n ? w->g->node[n].attr.GATHER.axis != 0
	      : !nd || w->g->node[nd].attr.GATHER_ND.batch)
		return false;
	n = n ? n : nd;
	*x = rw_in(w, n, 0);
	*idx = rw_in(w, n, 1);
	s = rw_shape(w, *idx);
	return (rw_dt(w, *x) == DT_F32 || dtype_is_half(rw_dt(w, *x)))
		&& rw_shape(w, *x)->rank == rank
		&& (!nd || s->dim[s->rank - 1] == 1);
}

/* The other side has rows or columns for each matrix. */
static bool
read_product(const struct rewrite *w, NodeId root, struct expert_product *p)
{
	const Attr *a = &w->g->node[root].attr;
	const Shape *m, *x;

	for (int i = 0; i < 2; i++) {
		if (!read_gather(w, rw_in(w, root, i), 3, &p->w, &p->idx))
			continue;
		p->left = i == 0;
		p->x = rw_in(w, root, !i);
		p->tb = p->left ? !a->MATMUL.ta : a->MATMUL.tb != 0;
		p->columns = p->left ? !a->MATMUL.tb : a->MATMUL.ta != 0;
		m = rw_shape(w, p->w);
		x = rw_shape(w, p->x);
		p->k = m->dim[p->tb ? 2 : 1];
		if (x->rank < 2 || a->MATMUL.alpha != 1)
			continue;
		p->rows = x->dim[x->rank - (p->columns ? 1 : 2)];
		if (p->rows == 1
		    || shape_nelem(rw_shape(w, p->idx)) > m->dim[0])
			return true;
	}
	return false;
}

/* The last two dims change places. */
static ValId
turned(struct rewrite *w, ValId v)
{
	int rank = rw_shape(w, v)->rank, perm[MAX_RANK];

	for (int i = 0; i < rank; i++)
		perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
	return rw_transpose(w, v, perm);
}

/* Rows [n,K] of x, so many for each index. */
static ValId
rows_of(struct rewrite *w, const struct expert_product *p, Shape lead)
{
	Shape rows, x = *rw_shape(w, p->x);
	ValId v = p->x;

	if (p->rows > 1) {
		v = p->columns ? turned(w, v) : v;
		lead.dim[lead.rank++] = p->rows;
	} else {
		x.rank--;
		x.dim[x.rank - 1] = p->k;
		v = rw_reshape(w, v, &x);
	}
	rows = SHAPE(shape_nelem(&lead), p->k);
	lead.dim[lead.rank++] = p->k;
	return rw_reshape(w, rw_expand(w, v, &lead), &rows);
}

/* Of each row the index. */
static ValId
indices_of(struct rewrite *w, const struct expert_product *p, Shape lead)
{
	Shape all;
	ValId v = p->idx;

	if (p->rows > 1) {
		lead.dim[lead.rank++] = 1;
		v = rw_reshape(w, v, &lead);
		lead.dim[lead.rank - 1] = p->rows;
		v = rw_expand(w, v, &lead);
	}
	all = SHAPE(shape_nelem(&lead));
	return rw_reshape(w, v, &all);
}

/* The rows y [n,N] as the product has them. */
static ValId
result_of(struct rewrite *w, const struct expert_product *p, ValId y,
          const Shape *out)
{
	Shape s = *out;

	if (!p->left || p->rows == 1)
		return rw_reshape(w, y, out);
	s.dim[s.rank - 1] = out->dim[s.rank - 2];
	s.dim[s.rank - 2] = out->dim[s.rank - 1];
	return turned(w, rw_reshape(w, y, &s));
}

bool
match_experts(struct rewrite *w, NodeId root)
{
	const Shape out = *rw_shape(w, rw_out(w, root));
	Attr a = attr_default(OP_EXPERT_MATMUL);
	struct expert_product p;
	Shape lead = out;
	ValId in[3], v;

	lead.rank -= 2;
	if (!(w->p->target->fuses & FUSE_EXPERTS)
	    || !read_product(w, root, &p) || rw_in(w, root, 2)
	    || rw_in(w, root, 3)
	    || shape_nelem(&lead) != shape_nelem(rw_shape(w, p.idx)))
		return false;
	a.EXPERT_MATMUL.tb = p.tb;
	in[0] = rows_of(w, &p, lead);
	in[1] = p.w;
	in[2] = indices_of(w, &p, lead);
	v = rw_emit(w, OP_EXPERT_MATMUL, 3, in, &a);
	w->origin_node = rw_def(w, v);
	return rw_replace(w, root, result_of(w, &p, v, &out));
}

/* v before its reshapes. */
static ValId
unshaped(const struct rewrite *w, ValId v)
{
	NodeId n;

	while ((n = rw_is(w, v, OP_RESHAPE)))
		v = rw_in(w, n, 0);
	return v;
}

/* A sum of a product, whatever its shape, and biases of its indices. */
struct expert_bias {
	ValId y, bias, idx;             /* rows; parameter; as the product's */
	bool done;                      /* the sum is one of rows */
};

static bool
read_bias(const struct rewrite *w, NodeId root, struct expert_bias *p)
{
	int64_t n = shape_nelem(rw_shape(w, rw_out(w, root)));

	for (int i = 0; i < 2; i++) {
		ValId a = rw_in(w, root, i), b = rw_in(w, root, !i), idx;
		NodeId product;

		p->y = unshaped(w, a);
		product = rw_is(w, p->y, OP_EXPERT_MATMUL);
		if (!product || shape_nelem(rw_shape(w, a)) != n
		    || shape_nelem(rw_shape(w, b)) != n
		    || !read_gather(w, unshaped(w, b), 2, &p->bias, &idx))
			continue;
		p->idx = rw_in(w, product, 2);
		p->done = p->y == a && rw_is(w, b, OP_GATHER)
			&& idx == p->idx;
		return unshaped(w, idx) == unshaped(w, p->idx);
	}
	return false;
}

bool
match_experts_bias(struct rewrite *w, NodeId root)
{
	const Shape out = *rw_shape(w, rw_out(w, root));
	Attr a = attr_default(OP_GATHER);
	struct expert_bias p;
	ValId v;

	if (!read_bias(w, root, &p) || p.done)
		return false;
	v = rw_emit(w, OP_GATHER, 2, (ValId[]){ p.bias, p.idx }, &a);
	v = rw_binary(w, OP_ADD, p.y, v);
	return rw_replace(w, root, rw_reshape(w, v, &out));
}

/* ---- copies that remain ---- */

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

/* Copied matrices, as values have them that are made of them alone. */
struct copies {
	const Graph *g;
	int64_t size;                   /* elements of a matrix */
	bool leading;                   /* dims of indices come first */
};

static struct copies
copies_of(const Graph *g, const Node *n)
{
	const Shape *idx = &g->val[n->in[1]].shape;
	int64_t count = shape_nelem(idx);

	if (n->op == OP_GATHER_ND)
		count /= idx->dim[idx->rank - 1];
	return (struct copies){ g, val_nelem(&g->val[n->out[0]]) / count,
		n->op != OP_GATHER || n->attr.GATHER.axis == 0 };
}

/* The node reshapes them, or turns each. */
static bool
keeps_matrices(const struct copies *c, const Node *n)
{
	const IntList *perm = &n->attr.TRANSPOSE.perm;

	if (n->op == OP_RESHAPE || n->op == OP_CAST)
		return true;
	for (int i = 0; n->op == OP_TRANSPOSE && i < perm->n - 2; i++)
		if (c->leading && perm->v[i] != i)
			return false;
	return n->op == OP_TRANSPOSE;
}

/* The first product that takes them from v; NULL: there is none.  Rows of other
 * shapes, as those of embeddings, are no matrices. */
static const Node *
product_of(const struct copies *c, ValId v)
{
	const Node *found;

	FOR_NODES (n, c->g)
		for (int k = 0; k < n->nin && k < 2; k++) {
			const Shape *s = &c->g->val[n->in[k]].shape;

			if (n->in[k] != v)
				continue;
			if (n->op == OP_MATMUL && s->rank > 2 && c->size
			    == s->dim[s->rank - 1] * s->dim[s->rank - 2])
				return n;
			found = k == 0 && keeps_matrices(c, n)
				? product_of(c, n->out[0]) : NULL;
			if (found)
				return found;
		}
	return NULL;
}

static int64_t
batch_of(const Shape *s)
{
	return shape_span(s, 0, s->rank - 2);
}

/* Why rule match_experts does not take the product of matrices of that size. */
static const char *
why_copied(const Graph *g, const Node *n, const Node *product, int64_t size)
{
	const Val *x = &g->val[n->in[0]];

	if (x->dt != DT_F32 && !dtype_is_half(x->dt))
		return "its matrices are neither float32 nor 16-bit floats";
	if (n->op == OP_GATHER ? n->attr.GATHER.axis != 0
	                       : n->attr.GATHER_ND.batch != 0)
		return "the index does not select along dim 0";
	if (x->shape.rank > 3)
		return "the parameter has several dims of matrices";
	if (product->attr.MATMUL.alpha != 1)
		return "the product is scaled";
	if (batch_of(&g->val[product->out[0]].shape)
	    > val_nelem(&g->val[n->out[0]]) / size)
		return "the product repeats each matrix";
	return "the gather's result is reshaped or transposed before the "
		"product";
}

static bool
refuse_copies(Pass *p, const Graph *g, const Node *n, const Node *product,
              int64_t size)
{
	char all[24], copies[24];

	number_bytes(all, (double)val_data_bytes(&g->val[n->in[0]]));
	number_bytes(copies, (double)val_data_bytes(&g->val[n->out[0]]));
	return node_error(g, p->diag, n, "copies a matrix of parameter '%s' "
	                  "(%s) for each index, %s in all, for product '%s': "
	                  "%s; try: matmul(x, w[index]) of w [experts, K, N]",
	                  g->val[n->in[0]].name, all, copies,
	                  node_label(g, product),
	                  why_copied(g, n, product, size));
}

static void
warn_of_copies(Pass *p, const Graph *g, const Node *n)
{
	char all[24], copies[24];

	number_bytes(all, (double)val_data_bytes(&g->val[n->in[0]]));
	number_bytes(copies, (double)val_data_bytes(&g->val[n->out[0]]));
	diag_warn(p->diag, "node '%s' (%s): copies rows of parameter '%s' (%s) "
	          "for each index, %s in all; only matmul(x, w[index]) of w "
	          "[experts, K, N] needs no copies", node_label(g, n),
	          node_type(g, n), g->val[n->in[0]].name, all, copies);
}

bool
experts_check_copies(Pass *p, const Graph *g)
{
	FOR_NODES (n, g) {
		const Node *product;
		struct copies c;

		if (!copies_matrices(g, n))
			continue;
		c = copies_of(g, n);
		product = product_of(&c, n->out[0]);
		if (product)
			return refuse_copies(p, g, n, product, c.size);
		warn_of_copies(p, g, n);
	}
	return true;
}
