/* Properties of values with padded dims, and the functions that the rules for
 * them use. */
#ifndef PASSES_FOLD_FOLD_PADDING_H
#define PASSES_FOLD_FOLD_PADDING_H

#include "passes/fold/fold_build.h"

/* A nonzero whose operand is not constant. */
struct dynamic_size {
	ValId from;             /* its operand */
	ValId indices;          /* i64[rank, bound]: its result; 0: not used */
	ValId count;            /* i64[]: number of indices */
	int64_t bound;          /* upper bound of count */
	int64_t concat[2];      /* not 0: no nonzero, but the concatenation of
	                         * two: sizes by id, or -extent */
	ValId mask;             /* ... and the mask of valid rows in place */
	int outer, outer_axis;  /* `from` has that padded dim along that axis,
	                         * with 0 in the padding; 0: none */
	int parent;             /* the order of rows is that one's; 0: see
	                         * here (union-find) */
	bool compact;           /* valid rows have to be the first ones */
};

/* What is known of a value beyond its shape. */
struct padded_dim {
	int axis;               /* dim that is padded; -1: none */
	int size;               /* id of the number of its valid rows */
	int64_t row_size;       /* elements of a row: the dim was merged with
	                         * others */
	const int64_t *symbol;  /* symbolic counts, by element of a constant:
	                         * 0 a number, id the count of that size,
	                         * SYMBOL_DERIVED computed from counts; NULL:
	                         * all are numbers */
};

enum { SYMBOL_DERIVED = -1 };

/* ---- what rules are written with (fold_padding.c) ---- */

const struct padded_dim *padded_of(struct fold *, ValId);       /* or NULL */
int padded_axis(struct fold *, ValId);                  /* -1: none */
const int64_t *symbols_of(struct fold *, ValId);        /* NULL: none */
/* Some data-dependent size of the inputs. */
int any_size(struct fold *, const Node *);
/* Output k of the node is padded along axis; -1: it is not. */
bool set_padded(struct fold *, NodeId, int k, int axis, int size);
/* Output 0 is padded along axis, with rows of so many elements. */
bool set_padded_flat(struct fold *, NodeId, int axis, int size,
                     int64_t row_size);
/* Add a data-dependent size; its id. */
int fold_add_size(struct fold *, const struct dynamic_size *);
/* Room for what is known of v, for the caller to fill in. */
struct padded_dim *need_padded(struct fold *, ValId v);
/* False: "WHAT: how many are not zero is known only at run time". */
bool refuse_dynamic(struct fold *, NodeId, int size, const char *what);
/* x with `fill` in the padding. */
ValId fold_fill_padding(struct fold *, ValId x, double fill, NodeId like);
/* The number of valid rows, times some other extents, in type dt. */
ValId fold_valid_count(struct fold *, int id, int64_t times, DType dt,
                       NodeId like);
/* Whether there are any valid rows, as bool that broadcasts against the rows
 * of x. */
ValId fold_any_valid(struct fold *, ValId x, NodeId like);
/* x, which is padded, or 1 where no row is valid: there may be nothing then
 * that is safe to compute with. */
ValId fold_one_if_empty(struct fold *, ValId x, NodeId like);
/* The first elements of x along axis, as a padded dim of that size.  The step
 * ends if more rows are valid than x has; all: or less. */
ValId fold_first_rows(struct fold *, ValId x, int axis, int size, bool all,
                      NodeId like);
/* Elements of a vector from which on all are zero whatever the run does, as
 * those of counts of indices that are always smaller; its extent if nothing
 * is known. */
int64_t fold_reachable_extent(struct fold *, ValId);
/* Operand k, a shape in which numbers of elements that are not 0 stand, as a
 * constant with symbolic counts; stays if it is none. */
void fold_counted_shape(struct fold *, NodeId, int k);
/* Which rows are valid, as bool that broadcasts against rank dims. */
ValId fold_valid_mask(struct fold *, int id, int axis, int rank, NodeId like);
/* Which are valid where rows are in place. */
ValId fold_place_mask(struct fold *, int id, int axis, int rank, NodeId like);

/* ---- order of rows (fold_order.c) ---- */

/* An op reads row indices of the padded dim. */
void fold_require_compact(struct fold *, int size);
/* Rows of both are compact, or of neither. */
void fold_unite_order(struct fold *, int, int);
/* `instead` takes the place of v should the rows stay in place. */
void fold_add_placed(struct fold *, ValId v, ValId instead, int size);
/* Once all nodes are there: one of the two goes. */
void fold_choose_order(struct fold *);
/* Whether idx has, row by row, the indices that the nonzero finds. */
bool fold_is_indices(const struct fold *, ValId idx, int size);
/* Take the rows of x, perhaps of several elements, as rows of that size; false:
 * nothing says that they are the same. */
bool fold_unify_size(struct fold *, ValId x, int size);

static inline int
rank_of(const struct fold *f, ValId v)
{
	return f->g->val[v].shape.rank;
}

static inline int64_t
extent(const struct fold *f, ValId v, int axis)
{
	return f->g->val[v].shape.dim[axis];
}

#endif
