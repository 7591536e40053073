/* Properties of values with padded dims, and functions for their rules. */
#ifndef PASSES_SELECTION_PADDING_H
#define PASSES_SELECTION_PADDING_H

#include "passes/fold_build/fold_build.h"

/* The data-dependent size of a nonzero, or of a concatenation. */
struct dynamic_size {
	ValId from;             /* operand of the nonzero */
	ValId indices;          /* i64[rank, bound]: result; 0: unused */
	ValId count;            /* i64[]: number of indices */
	int64_t bound;          /* upper bound of count */
	int64_t concat[2];      /* concatenation, else 0: two sizes by id, or
	                         * as -extent */
	ValId mask;             /* concatenation: mask of rows in place */
	int outer, outer_axis;  /* id and axis of the padded dim of `from`,
	                         * whose padding is 0; 0: none */
	int parent;             /* size with the same order of rows; 0: root
	                         * (union-find) */
	bool compact;           /* valid rows must come first */
};

/* Padding of a value, and symbolic counts in it. */
struct padded_dim {
	int axis;               /* padded dim; -1: none */
	int size;               /* id of the number of valid rows */
	int64_t row_size;       /* elements of a row; above 1 if the dim was
	                         * merged with others */
	const int64_t *symbol;  /* by element of a constant: 0 a number, id the
	                         * count of that size, SYMBOL_DERIVED computed
	                         * from counts; NULL: all are numbers */
};

enum { SYMBOL_DERIVED = -1 };

/* ---- building blocks of rules (padding.c) ---- */

const struct padded_dim *padded_of(struct fold *, ValId);       /* or NULL */
int padded_axis(struct fold *, ValId);                  /* -1: none */
const int64_t *symbols_of(struct fold *, ValId);        /* NULL: none */
/* Any data-dependent size of the inputs. */
int any_size(struct fold *, const Node *);
/* Mark output k of the node as padded along axis (-1: not padded). */
bool set_padded(struct fold *, NodeId, int k, int axis, int size);
/* Mark output 0 as padded along axis, with row_size elements a row. */
bool set_padded_flat(struct fold *, NodeId, int axis, int size,
                     int64_t row_size);
/* Add a data-dependent size; returns its id. */
int fold_add_size(struct fold *, const struct dynamic_size *);
/* Record `instead` as the form of v for rows in place. */
void fold_add_placed(struct fold *, ValId v, ValId instead, int size);
/* The struct padded_dim of v, added if absent, for the caller to fill in. */
struct padded_dim *need_padded(struct fold *, ValId v);
/* Reports "WHAT: how many are not zero is known only at run time"; false. */
bool refuse_dynamic(struct fold *, NodeId, int size, const char *what);
/* x with `fill` in the padding. */
ValId fold_fill_padding(struct fold *, ValId x, double fill, NodeId like);
/* The number of valid rows, times some other extents, in type dt. */
ValId fold_valid_count(struct fold *, int id, int64_t times, DType dt,
                       NodeId like);
/* Whether any row is valid, as bool that broadcasts against the rows of x. */
ValId fold_any_valid(struct fold *, ValId x, NodeId like);
/* The padded x, or 1 if no row is valid: then x may hold no value that is safe
 * to compute with. */
ValId fold_one_if_empty(struct fold *, ValId x, NodeId like);
/* The first elements of x along axis, as a padded dim of that size.  The step
 * fails if more rows are valid than x has; all: or fewer. */
ValId fold_first_rows(struct fold *, ValId x, int axis, int size, bool all,
                      NodeId like);
/* Length of the part of a vector that may be nonzero, as for counts of indices
 * with a smaller bound; the extent if unknown. */
int64_t fold_reachable_extent(struct fold *, ValId);
/* If operand k is a shape with numbers of nonzero elements, turn it into a
 * constant with symbolic counts. */
void fold_counted_shape(struct fold *, NodeId, int k);
/* Mask of valid rows, as bool that broadcasts against rank dims. */
ValId fold_valid_mask(struct fold *, int id, int axis, int rank, NodeId like);
/* Mask of valid rows for rows in place. */
ValId fold_place_mask(struct fold *, int id, int axis, int rank, NodeId like);

/* ---- order of rows (row_order.c) ---- */

/* Record that an op reads row indices of the padded dim. */
void fold_require_compact(struct fold *, int size);
/* Give both sizes the same order of rows. */
void fold_unite_order(struct fold *, int, int);
/* Whether idx equals, row by row, the indices of the nonzero. */
bool fold_is_indices(const struct fold *, ValId idx, int size);
/* Treat the rows of x, perhaps of several elements, as rows of that size; false
 * if they are not provably the same. */
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
