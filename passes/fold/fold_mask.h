/* Properties of values with padded dims, and the functions that the rules for
 * them use. */
#ifndef PASSES_FOLD_MASK_H
#define PASSES_FOLD_MASK_H

#include "passes/fold/fold_build.h"

/* A nonzero whose operand is not constant. */
struct selection {
	ValId from;             /* what it looks at */
	ValId at;               /* i64[rank, bound]: where it finds something;
	                         * 0: nobody has asked */
	ValId count;            /* i64[]: how many it finds */
	int64_t bound;          /* at most so many */
	int64_t joins[2];       /* not 0: no nonzero but two behind each other,
	                         * selections by id or -extent */
	ValId mask;             /* ... of which these count in place */
	int of, of_axis;        /* `from` has the lanes of that selection along
	                         * that axis, 0 where these do not count; 0 */
	int like;               /* lies as that selection does; 0: see here */
	bool compact;           /* its lanes have to be the first ones */
};

/* What is known of a value beyond its shape. */
struct lanes {
	int axis;               /* dim whose first lanes alone count; -1 */
	int id;                 /* ... as many as this selection finds */
	int64_t times;          /* ... so many times: lanes of more than one
	                         * element, side by side */
	const int64_t *mark;    /* contents, by element: 0 as they are, id the
	                         * count of that selection, MARK_LOST made of
	                         * counts; NULL: all as they are */
};

enum { MARK_LOST = -1 };

/* ---- what rules are written with (fold_mask.c) ---- */

const struct lanes *lanes_of(struct fold *, ValId);     /* NULL: none */
int lanes_axis(struct fold *, ValId);                   /* -1: none */
const int64_t *lanes_marks(struct fold *, ValId);       /* NULL: none */
/* Some selection that the inputs tell of. */
int lanes_any(struct fold *, const Node *);
/* Output k of the node has lanes along axis; -1: it has none. */
bool lanes_give(struct fold *, NodeId, int k, int axis, int sel);
/* Output 0 has lanes of so many elements each along axis. */
bool lanes_give_flat(struct fold *, NodeId, int axis, int sel, int64_t times);
/* Another selection; its id. */
int fold_select(struct fold *, const struct selection *);
/* Room for what is known of v, for the caller to fill in. */
struct lanes *lanes_room(struct fold *, ValId v);
/* False: "WHAT: how many are not zero is known only at run time". */
bool lanes_refuse(struct fold *, NodeId, int sel, const char *what);
/* x with `fill` in the lanes that do not count. */
ValId fold_mask(struct fold *, ValId x, double fill, NodeId like);
/* The number of lanes that count, times some other extents, in type dt. */
ValId fold_count(struct fold *, int id, int64_t times, DType dt, NodeId like);
/* Whether there are any lanes that count, as bool that broadcasts against the
 * lanes of x. */
ValId fold_any(struct fold *, ValId x, NodeId like);
/* x, which has lanes, or 1 where nothing is selected: there may be nothing then
 * that is safe to compute with. */
ValId fold_or_one(struct fold *, ValId x, NodeId like);
/* The first elements of x along axis as lanes of selection sel.  The step ends
 * if more count than x has; all: or less. */
ValId fold_cut(struct fold *, ValId x, int axis, int sel, bool all,
               NodeId like);
/* Elements of a vector from which on all are zero whatever the run does, as
 * those of counts of indices that are always smaller; its extent if nothing
 * is known. */
int64_t fold_reachable(struct fold *, ValId);
/* Operand k, a shape in which numbers of elements that are not 0 stand, as a
 * constant with marks; stays if it is none. */
void fold_counted_shape(struct fold *, NodeId, int k);
/* Which lanes count, as bool that broadcasts against rank dims. */
ValId fold_valid(struct fold *, int id, int axis, int rank, NodeId like);
/* Which do where they lie in place. */
ValId fold_found(struct fold *, int id, int axis, int rank, NodeId like);

/* ---- where lanes lie (fold_compact.c) ---- */

/* Somebody reads numbers of lanes of the selection. */
void fold_compact(struct fold *, int sel);
/* Lanes of both are compact, or of neither. */
void fold_lie_alike(struct fold *, int, int);
/* `instead` takes the place of v should the lanes of sel stay in place. */
void fold_in_place(struct fold *, ValId v, ValId instead, int sel);
/* Once all nodes are there: one of the two goes. */
void fold_settle(struct fold *);
/* Whether idx has, lane by lane, the indices of what the selection finds. */
bool fold_is_places(const struct fold *, ValId idx, int sel);
/* Take the lanes of x, perhaps of several elements, as those of selection sel;
 * false: nothing says that they are the same. */
bool fold_see_as(struct fold *, ValId x, int sel);

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
