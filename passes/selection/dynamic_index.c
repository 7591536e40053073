/* indexing and joining padded dims (dynamic.c).
 *
 * Indexing, slicing and joining at data-dependent positions become gathers.  An
 * index beyond the valid rows is out of range, so the step fails with the name
 * of the node, as without padding.
 */
#include "passes/selection/dynamic_rules.h"

static ValId
const_i64(struct fold *f, int64_t x)
{
	return val_scalar(f->g, DT_I64, (double)x);
}

/* ---- the first rows ---- */

/* The number of valid rows of x's dim, as i64[]. */
static ValId
valid_count_of(struct fold *f, ValId x, int axis, NodeId like)
{
	const struct padded_dim *p = padded_of(f, x);

	if (!p || p->axis != axis)
		return const_i64(f, extent(f, x, axis));
	return fold_valid_count(f, p->size, p->row_size, DT_I64, like);
}

/* The same, for comparison with row indices: valid rows must come first. */
static ValId
compact_count_of(struct fold *f, ValId x, int axis, NodeId like)
{
	const struct padded_dim *p = padded_of(f, x);

	if (p && p->axis == axis)
		fold_require_compact(f, p->size);
	return valid_count_of(f, x, axis, like);
}

/* Gather x at idx along axis, which becomes a padded dim of that size. */
static ValId
gather_rows(struct fold *f, ValId x, int axis, ValId idx, int size, NodeId like)
{
	Attr a = attr_default(OP_GATHER);
	ValId in[2] = { x, idx };

	a.GATHER.axis = axis;
	x = fold_emit(f, OP_GATHER, 2, in, &a, like);
	if (!x || !set_padded(f, f->g->val[x].def, 0, axis, size))
		return 0;
	x = fold_one_if_empty(f, x, like);
	return x && set_padded(f, f->g->val[x].def, 0, axis, size) ? x : 0;
}

static ValId
row_numbers(struct fold *f, int64_t n)
{
	int64_t *row = arena_array(f->mem, (size_t)n, sizeof *row);

	for (int64_t i = 0; i < n; i++)
		row[i] = i;
	return val_const(f->g, NULL, DT_I64, SHAPE(n), row);
}

ValId
fold_first_rows(struct fold *f, ValId x, int axis, int size, bool all,
                NodeId like)
{
	const struct dynamic_size s = f->size[size - 1];
	ValId row = row_numbers(f, s.bound), have, beyond, idx;

	fold_require_compact(f, size);
	have = compact_count_of(f, x, axis, like);
	beyond = const_i64(f, extent(f, x, axis));
	idx = fold_where(f, fold_binary(f, OP_LT, row, have, like), row, beyond,
	                 like);
	if (all)
		idx = fold_where(f, fold_binary(f, OP_EQ, have, s.count, like),
		                 idx, beyond, like);
	if (idx)
		idx = fold_where(f, fold_valid_mask(f, size, 0, 1, like), idx,
		                 const_i64(f, 0), like);
	return gather_rows(f, x, axis, idx, size, like);
}

/* ---- indexing a padded dim ---- */

/* idx made non-negative, and `beyond` where the element does not exist. */
static ValId
bounded_index(struct fold *f, ValId idx, ValId have, ValId beyond, NodeId like)
{
	const struct padded_dim *p = padded_of(f, idx);
	ValId zero = const_i64(f, 0), fits, at = fold_cast(f, idx, DT_I64,
	                                                   like);

	at = fold_where(f, fold_binary(f, OP_LT, at, zero, like),
	                fold_binary(f, OP_ADD, at, have, like), at, like);
	fits = fold_binary(f, OP_AND, fold_binary(f, OP_GE, at, zero, like),
	                   fold_binary(f, OP_LT, at, have, like), like);
	at = fold_where(f, fits, at, beyond, like);
	if (!at || !p || p->axis < 0)
		return at;
	return fold_where(f, fold_valid_mask(f, p->size, p->axis,
	                                     rank_of(f, idx), like), at, zero,
	                  like);
}

/* Indices into the padded dim of x, made non-negative, and beyond x where the
 * row is not valid. */
static ValId
bounded_row(struct fold *f, ValId idx, ValId x, NodeId like)
{
	int axis = padded_axis(f, x);

	return bounded_index(f, idx, compact_count_of(f, x, axis, like),
	                     const_i64(f, extent(f, x, axis)), like);
}

/* The same for tuples that index `dims` dims. */
static ValId
bounded_tuple(struct fold *f, ValId idx, ValId x, int dims, NodeId like)
{
	int axis = padded_axis(f, x);
	int64_t *dim = arena_array(f->mem, (size_t)dims, sizeof *dim);
	uint8_t *which = arena_array(f->mem, (size_t)dims, sizeof *which);
	ValId whole, have;

	for (int d = 0; d < dims; d++) {
		dim[d] = extent(f, x, d);
		which[d] = d == axis;
	}
	whole = val_const(f->g, NULL, DT_I64, SHAPE(dims), dim);
	have = fold_where(f, val_const(f->g, NULL, DT_BOOL, SHAPE(dims), which),
	                  compact_count_of(f, x, axis, like), whole, like);
	return bounded_index(f, idx, have, whole, like);
}

/* Whether idx, tuples over `dims` dims of x, is the nonzero of a mask over the
 * padded dim of x: it then refers to valid rows only. */
static bool
is_nested_nonzero(struct fold *f, ValId idx, ValId x, int dims)
{
	const struct padded_dim *p = padded_of(f, idx), *of = padded_of(f, x);
	const struct dynamic_size *s = p ? &f->size[p->size - 1] : NULL;
	const Shape *from = s ? &f->g->val[s->from].shape : NULL;

	if (!p || !of || s->outer != of->size || s->outer_axis != of->axis
	    || from->rank != dims || !fold_is_indices(f, idx, p->size))
		return false;
	for (int d = 0; d < dims; d++)
		if (from->dim[d] != extent(f, x, d))
			return false;
	return true;
}

/* Turn node id into a choice between its former result and 1: without selected
 * rows, the result may not be safe to compute with. */
static bool
one_if_empty(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	Attr a = n->attr;
	ValId in[3];

	if (dtype_info[out_val(f, n)->dt].cls != 'f')
		return true;
	in[0] = fold_any_valid(f, n->out[0], id);
	n = &f->g->node[id];
	in[1] = fold_emit(f, n->op, n->nin, n->in, &a, id);
	if (!in[0] || !in[1])
		return false;
	in[2] = val_scalar(f->g, f->g->val[in[1]].dt, 1);
	n = &f->g->node[id];
	n->op = OP_WHERE;
	n->attr = attr_default(OP_WHERE);
	n->in = arena_copy(f->g->arena, in, sizeof in);
	n->nin = 3;
	return true;
}

/* Set operand 1 to idx. */
static bool
set_index(struct fold *f, NodeId id, ValId idx)
{
	if (idx)
		f->g->node[id].in[1] = idx;
	return idx != 0;
}

static bool
handle_gather(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	int xa = padded_axis(f, n->in[0]), ia = padded_axis(f, n->in[1]);
	int axis = (int)n->attr.GATHER.axis;
	int size = ia >= 0 ? padded_of(f, n->in[1])->size : 0;

	(void)was;
	if (symbols_of(f, n->in[0]) || symbols_of(f, n->in[1])
	    || (xa >= 0 && ia >= 0 && xa != axis))
		return refuse_dynamic(f, id, any_size(f, n),
		                      "indexes a dim of data-dependent size");
	if (xa == axis && !is_nested_nonzero(f, n->in[1], n->in[0], 1)
	    && !set_index(f, id, bounded_row(f, n->in[1], n->in[0], id)))
		return false;
	if (xa == axis && ia < 0)
		return true;
	n = &f->g->node[id];
	if (xa >= 0 && xa != axis)
		return set_padded(f, id, 0, xa < axis ? xa : xa
		                  + rank_of(f, n->in[1]) - 1,
		                  padded_of(f, n->in[0])->size);
	return set_padded(f, id, 0, axis + ia, size) && one_if_empty(f, id);
}

static bool
handle_gather_nd(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct padded_dim *p = padded_of(f, n->in[1]);
	int xa = padded_axis(f, n->in[0]), ia = padded_axis(f, n->in[1]);
	int last = rank_of(f, n->in[1]) - 1;
	int dims = (int)extent(f, n->in[1], last);

	(void)was;
	if (symbols_of(f, n->in[0]) || (p && p->symbol) || ia == last
	    || n->attr.GATHER_ND.batch || (xa >= dims && ia >= 0))
		return refuse_dynamic(f, id, any_size(f, n),
		                      "indexes a dim of data-dependent size");
	if (xa >= dims)
		return set_padded(f, id, 0, last + xa - dims,
		                  padded_of(f, n->in[0])->size);
	if (xa >= 0 && !is_nested_nonzero(f, n->in[1], n->in[0], dims)
	    && !set_index(f, id, bounded_tuple(f, n->in[1], n->in[0], dims,
	                                       id)))
		return false;
	return ia < 0 || (set_padded(f, id, 0, ia, p->size)
	                  && one_if_empty(f, id));
}

/* x and idx have the same padded dim, or x has one along the indexed axis, and
 * idx perhaps another one there. */
static bool
handle_gather_elements(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	int xa = padded_axis(f, n->in[0]), ia = padded_axis(f, n->in[1]);
	int axis = (int)n->attr.GATHER_ELEMENTS.axis;

	(void)was;
	if (xa == axis && (ia < 0 || ia == axis)
	    && !symbols_of(f, n->in[0]) && !symbols_of(f, n->in[1])) {
		int size = ia < 0 ? 0 : padded_of(f, n->in[1])->size;

		return set_index(f, id,
		                 bounded_row(f, n->in[1], n->in[0], id))
			&& (!size || (set_padded(f, id, 0, ia, size)
			              && one_if_empty(f, id)));
	}
	if (xa < 0 || xa != ia
	    || padded_of(f, n->in[0])->size != padded_of(f, n->in[1])->size)
		return refuse_dynamic(f, id, any_size(f, n),
		                      "indexes a dim of data-dependent size");
	return set_padded(f, id, 0, xa, padded_of(f, n->in[0])->size);
}

/* ---- joining ---- */

/* Mask of the valid rows in place; of < 0: -of rows, all valid. */
static ValId
place_mask_of(struct fold *f, int64_t of, NodeId like)
{
	uint8_t *all;

	if (of > 0)
		return fold_place_mask(f, (int)of, 0, 1, like);
	all = arena_array(f->mem, (size_t)-of, sizeof *all);
	for (int64_t i = 0; i < -of; i++)
		all[i] = 1;
	return val_const(f->g, NULL, DT_BOOL, SHAPE(-of), all);
}

/* The size of two concatenated padded dims, or of one and a fixed number of
 * rows (negative); 0 after a diagnostic. */
static int
concat_size(struct fold *f, int64_t a, int64_t b, ValId count, int64_t bound,
            NodeId like)
{
	struct dynamic_size s = { .count = count, .bound = bound,
		.concat = { a, b } };
	int size;

	s.from = f->size[(a > 0 ? a : b) - 1].from;
	for (size_t i = 0; i < f->nsize; i++)
		if (f->size[i].concat[0] == a
		    && f->size[i].concat[1] == b)
			return (int)i + 1;
	s.mask = fold_binary(f, OP_CONCAT, place_mask_of(f, a, like),
	                     place_mask_of(f, b, like), like);
	size = s.mask ? fold_add_size(f, &s) : 0;
	for (int k = 0; size && k < 2; k++)
		if (s.concat[k] > 0)
			fold_unite_order(f, (int)s.concat[k], size);
	return size;
}

/* Concatenate x and y along axis, which is padded in one of them. */
static ValId
concat_two(struct fold *f, ValId x, ValId y, int axis, NodeId like)
{
	const struct padded_dim *a = padded_of(f, x), *b = padded_of(f, y);
	int64_t nx = extent(f, x, axis), ny = extent(f, y, axis);
	ValId first = valid_count_of(f, x, axis, like), row, idx, all, in[2];
	Attr attr = attr_default(OP_CONCAT);
	int size;

	all = fold_binary(f, OP_ADD, first, valid_count_of(f, y, axis, like),
	                  like);
	size = all ? concat_size(f, a ? a->size : -nx, b ? b->size : -ny, all,
	                         nx + ny, like) : 0;
	if (!size)
		return 0;
	row = row_numbers(f, nx + ny);
	idx = fold_binary(f, OP_ADD, row,
	                  fold_binary(f, OP_SUB, const_i64(f, nx), first, like),
	                  like);
	idx = fold_where(f, fold_binary(f, OP_LT, row, first, like), row, idx,
	                 like);
	row = fold_where(f, fold_binary(f, OP_LT, const_i64(f, 0), first, like),
	                 const_i64(f, 0), const_i64(f, nx), like);
	idx = fold_where(f, fold_valid_mask(f, size, 0, 1, like), idx, row,
	                 like);
	in[0] = x;
	in[1] = y;
	attr.CONCAT.axis = axis;
	x = idx ? fold_emit(f, OP_CONCAT, 2, in, &attr, like) : 0;
	y = x ? gather_rows(f, x, axis, idx, size, like) : 0;
	fold_add_placed(f, y, x, size);
	return y;
}

/* Concatenate padded dims, and fixed numbers of rows. */
static bool
concat_rows(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	int axis = (int)n->attr.CONCAT.axis;
	ValId y = n->in[0];

	for (int i = 0; i < n->nin; i++)
		if (padded_of(f, n->in[i])
		    && (padded_axis(f, n->in[i]) != axis
		        || symbols_of(f, n->in[i])))
			return refuse_dynamic(f, id, any_size(f, n),
			              "concatenates a dim of data-dependent "
			              "size with another");
	for (int i = 1; y && i < f->g->node[id].nin; i++) {
		ValId x = f->g->node[id].in[i];

		if (padded_of(f, y) || padded_of(f, x)) {
			y = concat_two(f, y, x, axis, id);
			continue;
		}
		y = fold_emit(f, OP_CONCAT, 2, (ValId[]){ y, x },
		              &f->g->node[id].attr, id);
	}
	if (!y)
		return false;
	fold_set_op(f, id, OP_IDENTITY, y);
	return set_padded(f, id, 0, axis, padded_of(f, y)->size);
}

static bool
handle_concat(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	int at = -1, size = 0;

	(void)was;
	for (int i = 0; i < n->nin; i++)
		if (padded_axis(f, n->in[i]) >= 0) {
			at = padded_axis(f, n->in[i]);
			size = padded_of(f, n->in[i])->size;
		}
	if (n->attr.CONCAT.axis == at)
		return concat_rows(f, id);
	for (int i = 0; i < n->nin; i++)
		if (padded_axis(f, n->in[i]) != at
		    || padded_of(f, n->in[i])->size != size)
			return refuse_dynamic(f, id, any_size(f, n),
			              "concatenates a dim of data-dependent "
			              "size with another");
	return set_padded(f, id, 0, at, size);
}

/* ---- the rules ---- */

const struct dynamic_rule
	dynamic_concat = { handle_concat, .may = ~0u, .moves = ~0u },
	dynamic_gather = { handle_gather, .may = 3, .moves = 1 },
	dynamic_gather_nd = { handle_gather_nd, .may = 3 },
	dynamic_gather_elements = { handle_gather_elements, .may = 3 };
