/* Room fold_build: the state of the walk of pass fold, and the functions by
 * which its rules inspect, build and replace nodes.
 *
 * in      a graph and what the walk has found so far
 * out     new nodes in the walk's order, each computed where its operands are
 *         known, and one for all that are equal
 * must not know the rules
 */
#ifndef PASSES_FOLD_BUILD_FOLD_BUILD_H
#define PASSES_FOLD_BUILD_FOLD_BUILD_H

#include "ir/base/table.h"
#include "passes/eval/eval.h"

/* Facts about a value that the walk has found. */
struct val_facts {
	ValId replacement;      /* value to use instead; 0: itself */
	bool folded;            /* contents were computed by this pass */
	bool large;             /* constant, but too large to compute */
	bool const_expr;        /* depends on large and other constants only */
	bool from_extents;      /* constant, from extents of non-constants */
	struct padded_dim *padded;      /* NULL: no padding (fold_padding.h) */
};

struct fold {
	Pass *p;
	Graph *g;
	Arena *mem;             /* computed contents; survivors are copied */
	NodeId *order;          /* the new node order so far */
	uint32_t norder;
	size_t cap;
	struct val_facts *facts;
	size_t nfacts, facts_cap;
	struct dynamic_size *size;      /* by id - 1 */
	size_t nsize, size_cap;
	int64_t bytes, steps;   /* spent on constants, see fold_cse.c */
	struct table known;     /* constant nodes by hash */
	struct placed {
		ValId v, instead;       /* see fold_add_placed */
		int size;
	} *placed;
	size_t nplaced, placed_cap;
	struct extents *extents;        /* NULL: numbers stay constants */
	struct batch_number {
		ValId v;                /* number from extents */
		bool alone;             /* it met data of one element */
	} *batch_number;
	size_t nbatch_number, batch_number_cap;
	bool split_refused;     /* refused to split a padded dim, which causes
	                         * further refusals */
};

enum step {
	STEP_KEEP,              /* the node stays, perhaps changed */
	STEP_GONE,              /* the node's output was replaced */
	STEP_FAIL,              /* a diagnostic was given */
};

/* Return STEP_FAIL unless v. */
#define TRY(v) do { if (!(v)) return STEP_FAIL; } while (0)

/* Facts of a value, which may be newer than the walk.  Valid until the next
 * call. */
struct val_facts *fold_facts(struct fold *, ValId);
/* Whether a node reads extents. */
bool fold_reads_extents(const Graph *);
/* Whether the node's constant result depends on extents of non-constants. */
bool fold_is_from_extents(struct fold *, const Node *);
/* Compute the node's outputs if possible. */
enum eval_status fold_eval(struct fold *, NodeId);
/* Append the node to the new order. */
void fold_push(struct fold *, NodeId);
/* Compute the node, reuse an equal one or append it; false after an error. */
bool fold_finish(struct fold *, NodeId);

/* ---- new nodes; 0, after a diagnostic, gives 0 ---- */

ValId fold_emit(struct fold *, Op, int nin, const ValId *in, const Attr *,
                NodeId like);
ValId fold_binary(struct fold *, Op, ValId, ValId, NodeId like);
ValId fold_where(struct fold *, ValId c, ValId yes, ValId no, NodeId like);
/* Return x itself if it has that type, or that shape. */
ValId fold_cast(struct fold *, ValId x, DType, NodeId like);
ValId fold_reshape(struct fold *, ValId x, const Shape *, NodeId like);
ValId fold_expand(struct fold *, ValId x, const Shape *, NodeId like);
/* Slice with a start and a step per axis and the extents of the shape.  Returns
 * x itself if the slice is whole. */
ValId fold_slice(struct fold *, ValId x, const IntList *start,
                 const IntList *step, const Shape *, NodeId like);

/* Elements at .. at + n - 1 of an axis. */
ValId fold_slice_axis(struct fold *, ValId x, int axis, int64_t at, int64_t n,
                      NodeId like);
/* Indices with negative ones counted from the end, extent; zero: a 0 of their
 * type. */
ValId fold_wrap_index(struct fold *, ValId idx, ValId zero, ValId extent,
                      NodeId like);
/* 0, 1, 2, ... in that shape; refused if longer than a range may be. */
ValId fold_numbers(struct fold *, int64_t count, const Shape *, NodeId like);

/* ---- change a node ---- */

/* Give node id another op, with default attributes and the single input x. */
void fold_set_op(struct fold *, NodeId id, Op, ValId x);
/* Replace `from` by `to`, which takes over the name of a graph output.  In that
 * case `to` is a computed value and no output itself. */
void fold_replace(struct fold *, ValId from, ValId to);
/* Replace output 0 of node id by x, broadcast to the output's shape; fails if x
 * is 0.  A graph
 * output keeps its name: x takes over the name if it has none to keep, else the
 * node stays as a copy. */
enum step fold_set_broadcast(struct fold *, NodeId id, ValId x);

/* ---- queries ---- */

bool fold_is_whole(const IntList *start, const IntList *step, const Shape *x,
                   const Shape *y);

static inline const Val *
in_val(const struct fold *f, const Node *n, int i)
{
	return &f->g->val[n->in[i]];
}

static inline Val *
out_val(const struct fold *f, const Node *n)
{
	return &f->g->val[n->out[0]];
}

static inline bool
has_operand(const Node *n, int i)
{
	return i < n->nin && n->in[i] != 0;
}

/* Whether all operands from `first` on are absent or constant. */
static inline bool
are_const(const struct fold *f, const Node *n, int first)
{
	for (int i = first; i < n->nin; i++)
		if (n->in[i] && !val_is_const(in_val(f, n, i)))
			return false;
	return true;
}

/* Write the reason why v, a large constant, was not computed to buf.  Returns
 * buf. */
const char *fold_excess(const struct fold *, ValId v, char *buf, size_t size);
/* Write the reason why v is not a constant to buf.  Returns buf. */
const char *fold_reason(struct fold *, ValId v, char *buf, size_t size);

static inline bool
complain(struct fold *f, const Node *n, const char *what)
{
	return node_error(f->g, f->p->diag, n, "%s", what);
}

/* ---- fold_cse.c ---- */

/* Whether computing a constant node takes more than its share of time or
 * memory; if not, the cost is recorded as spent. */
bool fold_is_expensive(struct fold *, const Node *);
/* Estimated --fold-limit, in MiB, under which the node would be computed. */
int64_t fold_steps_enough(const struct fold *, const Node *);
/* The result of an equal node added before; 0: none. */
ValId fold_find_equal(struct fold *, NodeId);
void fold_add_known(struct fold *, NodeId);

#endif
