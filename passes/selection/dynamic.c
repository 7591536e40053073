/* dims of data-dependent size, such as that of NonZero.
 *
 * A nonzero of a computed operand becomes `selected`, which has room for all
 * elements: its first `count` rows are valid, the others repeat the first.
 * The walk then tracks each value with such a padded dim (struct padded_dim),
 * and each constant made from its extent.  XLA calls this a bounded dynamic
 * dimension.  An op that keeps rows apart stays as it is.  An op that combines
 * rows gets a mask first: sums, products over the dim, losses, scatters.  The
 * result is a graph of fixed extents that computes the same from the valid
 * rows, so later passes, above all the gradient, need not know of padding.
 * Indexing, slicing and joining rows by numbers of the run become gathers
 * (dynamic_index.c).
 *
 * Refused are ops without a rule in the `dynamic` column of ops.h, two padded
 * dims in one value, a padded dim that meets another dim of equal extent by
 * chance, a symbolic count in arithmetic, and outputs.
 *
 * Padding repeats a valid row, or holds 1 if no row is valid, so it holds only
 * numbers that the model computes anyway.  This keeps out infinities, which a
 * later mask would turn into NaN in gradients.
 *
 * cost   nothing without such a nonzero, else one more visit of each node
 */
#include "passes/selection/dynamic_rules.h"

static const struct dynamic_rule *const rule[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, dynamic, cost, grad, shard) &dynamic_##dynamic
#include "ir/ops.h"
};

/* Bit i of a mask of inputs; those from 31 on share one. */
static bool
has_bit(unsigned mask, int i)
{
	return mask >> (i < 31 ? i : 31) & 1;
}

/* ---- symbolic counts ---- */

/* Store the symbols of v, unless all are 0. */
static bool
set_symbols(struct fold *f, ValId v, const int64_t *symbol)
{
	int64_t n = symbol ? val_nelem(&f->g->val[v]) : 0;

	for (int64_t i = 0; i < n; i++)
		if (symbol[i] != 0) {
			need_padded(f, v)->symbol = symbol;
			break;
		}
	return true;
}

/* Symbols after a node that moves elements: its own rule, applied to them. */
static const int64_t *
moved_symbols(struct fold *f, NodeId id)
{
	Graph *g = f->g;
	Node *n = &g->node[id], *twin;
	unsigned moves = rule[n->op]->moves;
	ValId *in = arena_array(f->p->scratch, (size_t)n->nin, sizeof *in);
	ValId y;

	for (int i = 0; i < n->nin; i++) {
		const int64_t *symbol = symbols_of(f, in[i] = n->in[i]);
		Shape s = g->val[in[i]].shape;

		if (!has_bit(moves, i) && symbol)
			return NULL;
		if (!has_bit(moves, i))
			continue;
		if (!symbol)
			symbol = arena_array(f->p->scratch,
			                     (size_t)shape_nelem(&s) + 1,
			                     sizeof *symbol);
		in[i] = val_new(g, V_CONST, NULL, DT_I64, s);
		g->val[in[i]].data = symbol;
	}
	twin = node_new(g, g->node[id].op, g->node[id].nin, in, 0, 0);
	n = &g->node[id];
	twin->attr = n->attr;
	if (n->op == OP_CAST)
		twin->attr.CAST.to = DT_I64;
	y = twin->out[0];
	g->val[y].dt = DT_I64;
	g->val[y].shape = g->val[n->out[0]].shape;
	if (eval_node(f->p, g, twin, f->p->scratch) != EVAL_DONE)
		return NULL;
	return g->val[y].data;
}

/* Whether input k of an eq is negative everywhere, unlike counts, and the other
 * holds plain counts and numbers. */
static bool
no_count_equals(struct fold *f, const Node *n, int k)
{
	const Val *x = in_val(f, n, k);
	const int64_t *symbol = symbols_of(f, n->in[1 - k]);
	int64_t many = val_nelem(in_val(f, n, 1 - k));

	if (dtype_info[x->dt].cls != 'i' || symbols_of(f, n->in[k]) || !symbol)
		return false;
	for (int64_t i = 0; i < many; i++)
		if (symbol[i] == SYMBOL_DERIVED)
			return false;
	for (int64_t i = 0; i < val_nelem(x); i++)
		if (val_int(x, i) >= 0)
			return false;
	return true;
}

/* Handle a node of constants, some with symbolic counts. */
static bool
set_output_symbols(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	const int64_t *symbol = NULL;
	int64_t *derived;

	if (n->op == OP_EQ && (no_count_equals(f, n, 0)
	                       || no_count_equals(f, n, 1)))
		return true;
	if (rule[n->op]->moves)
		symbol = moved_symbols(f, id);
	n = &f->g->node[id];
	if (symbol)
		return set_symbols(f, n->out[0], symbol);
	for (int k = 0; k < n->nout; k++) {
		int64_t many = n->out[k] ? val_nelem(&f->g->val[n->out[k]]) : 0;

		derived = arena_array(f->p->scratch, (size_t)many + 1,
		                      sizeof *derived);
		for (int64_t i = 0; i < many; i++)
			derived[i] = SYMBOL_DERIVED;
		if (many > 0)
			set_symbols(f, n->out[k], derived);
	}
	return true;
}

/* ---- nonzero, and the walk ---- */

/* Fill the padding of a nonzero's operand with 0; stores its size in *s. */
static bool
mask_nested(struct fold *f, NodeId id, struct dynamic_size *s)
{
	ValId x = f->g->node[id].in[0];
	const struct padded_dim *p = padded_of(f, x);

	if (!p)
		return true;
	s->outer = p->size;
	s->outer_axis = p->axis;
	if (p->axis < 0 || p->row_size > 1)
		return refuse_dynamic(f, id, p->axis < 0 ? 1 : p->size,
		                      "takes the nonzero elements of a "
		                      "data-dependent size");
	x = fold_fill_padding(f, x, 0, id);
	if (x)
		f->g->node[id].in[0] = x;
	return x != 0;
}

static bool
handle_nonzero(struct fold *f, NodeId id)
{
	struct dynamic_size s = { .count = 0 };
	Node *n = &f->g->node[id];
	ValId y = n->out[0];
	int rank, size = 0;

	if (!mask_nested(f, id, &s))
		return false;
	n = &f->g->node[id];
	s.from = n->in[0];
	s.bound = val_nelem(in_val(f, n, 0));
	rank = in_val(f, n, 0)->shape.rank;
	if (s.bound < 2 || rank == 0)
		return true;            /* refused later */
	for (size_t i = 0; i < f->nsize && !size; i++)
		if (f->size[i].from == s.from && !f->size[i].concat[0])
			size = (int)i + 1;
	if (size && f->size[size - 1].indices) {
		fold_set_op(f, id, OP_IDENTITY, f->size[size - 1].indices);
		f->g->val[y].shape = SHAPE(rank, s.bound);
		return set_padded(f, id, 0, 1, size);
	}
	n->op = OP_SELECTED;
	n->attr = attr_default(OP_SELECTED);
	n->out = arena_array(f->g->arena, 2, sizeof *n->out);
	n->out[0] = y;
	n->nout = 2;
	s.count = val_new(f->g, V_TEMP, arena_printf(f->p->scratch, "%s.count",
	                  f->g->val[y].name), DT_I64, shape_scalar());
	n = &f->g->node[id];
	n->out[1] = s.count;
	f->g->val[s.count].def = id;
	f->g->val[s.count].result_index = 1;
	f->g->val[y].shape = SHAPE(rank, s.bound);
	s.indices = y;
	if (size)
		f->size[size - 1].indices = y;
	else
		size = fold_add_size(f, &s);
	return shape_infer(f->g, f->p->diag, &f->g->node[id])
		&& set_padded(f, id, 0, 1, size);
}

/* The first `many` indices that v, a nonzero's result or its transpose, can
 * hold; 0: v is another value. */
static ValId
all_indices(struct fold *f, ValId v, int64_t many)
{
	const Graph *g = f->g;
	const Node *def = &g->node[g->val[v].def];
	bool turned = def->op == OP_TRANSPOSE;
	const struct dynamic_size *s = &f->size[padded_of(f, v)->size - 1];
	const Shape *x = &g->val[s->from].shape;
	Shape shape = g->val[v].shape;
	int64_t *at;

	if (!s->indices || (turned ? def->in[0] : v) != s->indices)
		return 0;
	shape.dim[!turned] = many;
	at = arena_array(f->mem, (size_t)(many * x->rank), sizeof *at);
	for (int64_t i = 0; i < many; i++) {
		int64_t rest = i;

		for (int d = x->rank - 1; d >= 0; d--) {
			at[turned ? i * x->rank + d : d * many + i]
				= rest % x->dim[d];
			rest /= x->dim[d];
		}
	}
	return val_const(f->g, NULL, DT_I64, shape, at);
}

/* Whether the node splits into `many` pieces of one row each. */
static bool
splits_each_row(struct fold *f, const Node *n, int64_t many)
{
	const Val *sizes = has_operand(n, 1) ? in_val(f, n, 1) : NULL;

	if (!sizes)
		return n->attr.SPLIT.count == many;
	if (!val_is_const(sizes) || val_nelem(sizes) != many)
		return false;
	for (int64_t i = 0; i < many; i++)
		if (val_int(sizes, i) != 1)
			return false;
	return true;
}

/* A traced loop over nonzero elements has a piece for each element that was
 * nonzero in the trace.  If all were, make it a loop over all: for a zero
 * element (an expert without tokens) its body does nothing.  Otherwise the file
 * is valid only for the batch of the trace. */
static bool
split_all_rows(struct fold *f, NodeId id, const struct padded_dim *p)
{
	const Node *n = &f->g->node[id];
	const struct dynamic_size *s = &f->size[p->size - 1];
	int64_t many = f->g->val[s->from].shape.rank == 1
	             ? fold_reachable_extent(f, s->from) : s->bound;
	ValId all = splits_each_row(f, n, many) ? all_indices(f, n->in[0], many)
		: 0;

	if (!all) {
		refuse_dynamic(f, id, p->size, "splits a dim of data-dependent "
		               "size: a loop over nonzero() was traced with a "
		               "batch that does not reach all elements; for a "
		               "mixture of experts, export with "
		               "experts_implementation=\"batched_mm\"");
		f->split_refused = true;
		return false;
	}
	if (n->attr.SPLIT.index == 0)
		diag_note(f->p->diag, "node '%s' (%s): a loop over nonzero() "
		          "was traced with all %jd possible elements and "
		          "always runs for all of them", node_label(f->g, n),
		          node_type(f->g, n), (intmax_t)many);
	f->g->node[id].in[0] = all;
	return true;
}

bool
fold_dynamic_operands(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	unsigned shapes = rule[n->op]->shape;
	const struct padded_dim *p;
	int64_t axis;

	for (int i = 0; i < n->nin; i++)
		if (has_bit(shapes, i) && f->g->node[id].in[i])
			fold_counted_shape(f, id, i);
	n = &f->g->node[id];
	p = n->op == OP_SPLIT ? padded_of(f, n->in[0]) : NULL;
	axis = n->attr.SPLIT.axis;
	if (!p || p->axis < 0)
		return true;
	axis += axis < 0 ? rank_of(f, n->in[0]) : 0;
	return axis != p->axis || split_all_rows(f, id, p);
}

bool
fold_dynamic_node(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct dynamic_rule *r = rule[was->op];
	bool data = false, other = false, constant = true;

	if (n->op == OP_NONZERO && !val_is_const(in_val(f, n, 0))
	    && shape_known(&in_val(f, n, 0)->shape))
		return handle_nonzero(f, id);
	if (!f->nsize)
		return true;
	for (int i = 0; i < was->nin; i++) {
		const struct padded_dim *p = padded_of(f, was->in[i]);

		if (!p)
			continue;
		if (!has_bit(r->may, i))
			return dynamic_none.run(f, id, was);
		if (p->axis >= 0 && p->row_size > 1 && !has_bit(r->flat, i))
			return refuse_dynamic(f, id, p->size,
			                      "works across a dim of "
			                      "data-dependent size");
		data |= p->symbol && !has_bit(r->shape, i);
		other |= p->axis >= 0 || has_bit(r->shape, i);
	}
	if (other && !r->run(f, id, was))
		return false;
	if (!data)
		return true;
	n = &f->g->node[id];
	for (int i = 0; i < n->nin; i++)
		constant &= !n->in[i] || val_is_const(in_val(f, n, i));
	if (!constant)
		return refuse_dynamic(f, id, any_size(f, was),
		                      "computes with a data-dependent size");
	return set_output_symbols(f, id);
}

bool
fold_dynamic_replaced(struct fold *f, NodeId id, ValId v, uint32_t nval)
{
	ValId x = fold_facts(f, v)->replacement;
	const struct padded_dim *a = padded_of(f, v), *b = padded_of(f, x);
	const struct padded_dim none = { .axis = -1 };
	const struct padded_dim *p = a ? a : b;

	if (x >= nval) {
		struct padded_dim *same = fold_facts(f, v)->padded;

		fold_facts(f, x)->padded = same;
		return true;
	}
	a = a ? a : &none;
	b = b ? b : &none;
	if (a->axis == b->axis && (a->axis < 0 || a->size == b->size)
	    && !a->symbol == !b->symbol)
		return true;
	return refuse_dynamic(f, id, p->size ? p->size : 1,
	                      "not supported in this form");
}

bool
fold_dynamic_outputs(struct fold *f)
{
	Graph *g = f->g;
	bool ok = true;

	for (ValId v = 1; f->nsize && v < g->nval; v++) {
		const struct padded_dim *p = padded_of(f, v);
		int size = p && p->axis >= 0 ? p->size : 1;
		char why[192];

		if (!p || !g->val[v].output)
			continue;
		fold_reason(f, f->size[size - 1].from, why, sizeof why);
		if (f->p->opt->forward_only)
			ok = diag_error(f->p->diag, "output '%s' has a "
			                "data-dependent size: %s",
			                g->val[v].name, why);
		else
			diag_warn(f->p->diag, "output '%s' is dropped, because "
			          "its size is data-dependent: %s",
			          g->val[v].name, why);
		g->val[v].output = false;
	}
	return ok;
}
