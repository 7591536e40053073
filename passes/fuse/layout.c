/* Layout: the storage and the strides of every value.
 *
 * Inputs, parameters, constants, states and what kernels compute are owners,
 * row-major, but the outputs of attention: if they are transposed, from
 * [B,H,T,D] to [B,T,H,D] mostly, they lie so in memory at once, and the
 * transposition costs nothing.  Reshape, transpose, slice and expand become
 * views wherever strides can say it (for reshape: numpy's rule) and readers
 * can take it; where no reader can, the node itself carries the copy out (its
 * output is an owner); where only some can, they get a `copy` of their own.
 *
 * Readers that take any strides: loop, copy, concat, views, the mask of
 * attention.  A matrix operand of matmul needs stride 1 in one of its last two
 * dims and no overlap in the other.  Attention needs stride 1 in the last dim.
 * All other operands, and values that outlive the step, are row-major.
 *
 * needs  P_STATIC, P_FUSED     gives  P_LAYOUT
 * cost   nodes * rank
 * refuses  sizes that overflow, values beyond what addresses there are, more
 *          than 2^60 bytes in all
 */
#include "passes/pass.h"
#include "runtime/support/number.h"

#include <string.h>

struct stride_layout {
	Pass *p;
	Graph *g;
	struct uses uses;
	NodeId *order;
	uint32_t norder;
	size_t cap;
	ValId *copy_of;                 /* row-major copy of a value; 0: none */
	size_t ncopy;
};

static void
push_ordered(struct stride_layout *l, NodeId id)
{
	l->order = arena_grow(l->p->scratch, l->order, l->norder, &l->cap,
	                      (size_t)l->norder + 1, sizeof *l->order);
	l->order[l->norder++] = id;
}

/* ---- owners ---- */

/* Bytes that a process has addresses for, on all machines that are known. */
#define ADDRESSES ((int64_t)1 << 47)

static bool
too_large(const struct stride_layout *l, const Val *v, int64_t nbytes)
{
	const Node *n = v->def ? &l->g->node[v->def] : NULL;
	const char *label = n ? node_label(l->g, n) : NULL;
	char size[24], shape[128];

	return diag_error(l->p->diag, "%s '%s'%s%s%s: %s takes %s; a process "
	                  "can address 128 TiB",
	                  n ? "node" : "value", label ? label : v->name,
	                  n ? " (" : "", n ? node_type(l->g, n) : "",
	                  n ? ")" : "", shape_text(shape, sizeof shape, v->dt,
	                                           &v->shape),
	                  number_bytes(size, (double)nbytes));
}

static bool
lay_contiguous(struct stride_layout *l, Val *v)
{
	int64_t align = l->p->target->align, nbytes = val_data_bytes(v), padded;

	if (nbytes < 0 || !add_ok(nbytes, align - 1, &padded))
		return diag_error(l->p->diag, "value '%s' is too large",
		                  v->name);
	if (nbytes > ADDRESSES)
		return too_large(l, v, nbytes);
	padded -= padded % align;
	v->laid_out = true;
	v->base = 0;
	v->start = 0;
	v->nbytes = padded ? padded : align;
	shape_strides(&v->shape, v->stride);
	return true;
}

/* The transposition that reads [B,H,T,D] with D last, NULL if there is none or
 * if somebody else wants the value as it is. */
static const Node *
find_regrouping(const struct stride_layout *l, ValId v)
{
	const Graph *g = l->g;

	if (g->val[v].output || g->val[v].shape.rank != 4)
		return NULL;
	FOR_USES (i, &l->uses, v) {
		const Node *n = &g->node[l->uses.node[i]];
		if (n->op == OP_TRANSPOSE
		    && n->attr.TRANSPOSE.perm.v[3] == 3)
			return n;
	}
	return NULL;
}

/* Strides of v that make its transposition by n row-major. */
static void
lay_out_as_read(Val *v, const Node *n)
{
	const IntList *perm = &n->attr.TRANSPOSE.perm;
	int64_t step = 1;

	for (int d = perm->n; d-- > 0; step *= v->shape.dim[perm->v[d]])
		v->stride[perm->v[d]] = step;
}

/* ---- views ---- */

/* An axis of one element gets the stride that it would have in a dense array
 * around the next axis: readers that look for a unit stride then find it. */
static void
settle_strides(Val *v)
{
	for (int d = v->shape.rank; d-- > 0; ) {
		bool last = d == v->shape.rank - 1;
		if (v->shape.dim[d] != 1)
			continue;
		v->stride[d] = last ? 1 : v->stride[d + 1]
		                          * v->shape.dim[d + 1];
		if (v->stride[d] <= 0)
			v->stride[d] = 1;
	}
}

/* Give the output of a view op the place of a view of its input; false if
 * that cannot be said in strides. */
static bool
make_view(Graph *g, const Node *n)
{
	const Val *x = &g->val[n->in[0]];
	Val *y = &g->val[n->out[0]];
	int rank = y->shape.rank, pad;
	int64_t stride[MAX_RANK] = { 0 }, start = x->start;

	switch (n->op) {
	case OP_RESHAPE:
		if (!shape_view(&x->shape, x->stride, &y->shape, stride))
			return false;
		break;
	case OP_TRANSPOSE:
		for (int d = 0; d < rank; d++)
			stride[d] = x->stride[n->attr.TRANSPOSE.perm.v[d]];
		break;
	case OP_SLICE:
		for (int d = 0; d < rank; d++) {
			start += n->attr.SLICE.start.v[d] * x->stride[d];
			stride[d] = n->attr.SLICE.step.v[d] * x->stride[d];
		}
		break;
	default:                        /* expand */
		pad = rank - x->shape.rank;
		for (int d = pad; d < rank; d++)
			if (x->shape.dim[d - pad] != 1)
				stride[d] = x->stride[d - pad];
	}
	y->laid_out = true;
	y->base = val_owner(g, n->in[0]);
	y->start = start;
	y->nbytes = 0;
	memcpy(y->stride, stride, sizeof stride);
	settle_strides(y);
	return true;
}

/* ---- what readers take ---- */

/* One of the last two strides is 1, rows or columns do not overlap. */
static bool
has_matrix_strides(const Val *v)
{
	int r = v->shape.rank;

	if (r < 2)
		return val_contiguous(v);
	const int64_t *dim = &v->shape.dim[r - 2], *stride = &v->stride[r - 2];
	for (int d = 0; d < r; d++)
		if (v->stride[d] < 0)
			return false;
	return (stride[1] == 1 && stride[0] >= dim[1])
	       || (stride[0] == 1 && stride[1] >= dim[0]);
}

static bool
has_unit_rows(const Val *v)
{
	for (int d = 0; d < v->shape.rank; d++)
		if (v->stride[d] < 0)
			return false;
	return v->shape.rank > 0 && v->stride[v->shape.rank - 1] == 1;
}

static bool
accepts_strides(const Graph *g, const Node *n, int k)
{
	const Val *v = &g->val[n->in[k]];

	if (op_info[n->op].flags & (F_VIEW | F_STRIDES) || val_contiguous(v))
		return true;
	if (op_info[n->op].flags & F_MATRICES)
		return k < 2 && has_matrix_strides(v);
	switch (n->op) {
	case OP_ATTENTION:
		return k == 3 || has_unit_rows(v);
	case OP_ATTENTION_GRAD:
		return k == 6 || (k < 5 && has_unit_rows(v));
	default:
		return false;
	}
}

/* A view is of use if some reader takes it, and none outside the step. */
static bool
view_is_wanted(const struct stride_layout *l, ValId v)
{
	const Graph *g = l->g;
	const Val *y = &g->val[v];
	ValKind of = g->val[val_owner(g, v)].kind;

	/* what a step overwrites does not keep its result */
	if (y->output && (of == V_PARAM || of == V_BUFFER))
		return false;
	if (val_contiguous(y))
		return true;
	if (y->output || y->param || g->loss == v)
		return false;
	FOR_USES (i, &l->uses, v) {
		const Node *n = &g->node[l->uses.node[i]];
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] == v && accepts_strides(g, n, k))
				return true;
	}
	return false;
}

/* ---- the walk ---- */

static ValId *
copy_slot(struct stride_layout *l, ValId v)
{
	if (v >= l->ncopy) {
		size_t cap = l->ncopy;
		l->copy_of = arena_grow(l->p->scratch, l->copy_of, l->ncopy,
		                        &cap, (size_t)v + 1,
		                        sizeof *l->copy_of);
		l->ncopy = cap;
	}
	return &l->copy_of[v];
}

/* Row-major copies for operands that this node cannot take as they are. */
static bool
copy_operands(struct stride_layout *l, NodeId id)
{
	Graph *g = l->g;

	for (int k = 0; k < g->node[id].nin; k++) {
		ValId v = g->node[id].in[k];
		if (!v || accepts_strides(g, &g->node[id], k))
			continue;
		if (!*copy_slot(l, v)) {
			ValId c = emit_op(g, l->p->diag, OP_COPY, 1, &v, NULL,
			                  id);
			if (!c || !lay_contiguous(l, &g->val[c]))
				return false;
			push_ordered(l, g->val[c].def);
			*copy_slot(l, v) = c;
		}
		g->node[id].in[k] = *copy_slot(l, v);
	}
	return true;
}

static bool
place_outputs(struct stride_layout *l, NodeId id)
{
	Graph *g = l->g;
	Node *n = &g->node[id];
	bool permutes = n->op == OP_ATTENTION
	                || (n->op == OP_ATTENTION_GRAD
	                    && !n->attr.ATTENTION_GRAD.packed);

	if (op_info[n->op].flags & F_VIEW && make_view(g, n)
	    && view_is_wanted(l, n->out[0]))
		return true;
	for (int k = 0; k < n->nout; k++) {
		if (!n->out[k])
			continue;
		Val *y = &g->val[n->out[k]];
		if (!lay_contiguous(l, y))
			return false;
		const Node *reader = permutes ? find_regrouping(l, n->out[k])
			: NULL;
		if (reader)
			lay_out_as_read(y, reader);
	}
	return true;
}

/* Every later sum of sizes is a part of this one and so needs no check; what
 * recomputation repeats stays within the distance of the limit to 2^63. */
static bool
check_total_bytes(const Pass *p, const Graph *g)
{
	int64_t total = 0;

	FOR_VALS (v, g)
		if (v->laid_out && !v->base
		    && (!add_ok(total, v->nbytes, &total)
		        || total > GRAPH_BYTES_MAX))
			return diag_error(p->diag, "the model is too large: "
			                  "its values take more than 2^60 "
			                  "bytes");
	return true;
}

bool
pass_layout(Pass *p, Graph *g)
{
	struct stride_layout l = { .p = p,
		                   .g = g,
		                   .uses = graph_uses(g, p->scratch) };
	NodeId last = g->nnode;

	FOR_VALS (v, g)
		if (v->kind != V_TEMP && shape_known(&v->shape)
		    && !lay_contiguous(&l, v))
			return false;
	for (NodeId id = 1; id < last; id++) {
		if (!copy_operands(&l, id) || !place_outputs(&l, id))
			return false;
		push_ordered(&l, id);
	}
	if (l.norder + 1 != last)
		graph_reorder(g, l.order, l.norder);
	return check_total_bytes(p, g);
}
