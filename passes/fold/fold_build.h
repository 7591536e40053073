/* The state of the walk of pass fold, and the functions by which its rules
 * inspect, build and replace nodes. */
#ifndef PASSES_FOLD_FOLD_BUILD_H
#define PASSES_FOLD_FOLD_BUILD_H

#include "passes/eval/eval.h"

/* What the walk knows of a value. */
struct val_facts {
	ValId replacement;      /* use this one instead; 0: itself */
	bool folded;            /* its contents were computed here */
	bool large;             /* constant, but too large to compute */
	bool const_expr;        /* follows from such and other constants */
	bool from_extents;      /* constant, of the extents of what is none */
	struct padded_dim *padded;      /* NULL: no padding (fold_padding.h) */
};

struct fold {
	Pass *p;
	Graph *g;
	Arena *mem;             /* contents computed; survivors are copied */
	NodeId *order;          /* the new node order so far */
	uint32_t norder;
	size_t cap;
	struct val_facts *facts;
	size_t nfacts, facts_cap;
	struct dynamic_size *size;      /* by id - 1 */
	size_t nsize, size_cap;
	int64_t bytes, steps;   /* spent on constants, see fold_cse.c */
	NodeId *slot;           /* nodes of constants, by what they compute */
	size_t nslot, nseen;
	struct placed {
		ValId v, instead;       /* see fold_add_placed */
		int size;
	} *placed;
	size_t nplaced, placed_cap;
	struct extents *extents;        /* NULL: numbers are as they are */
	struct batch_number {
		ValId v;                /* a number from extents ... */
		bool alone;             /* ... and data of one element */
	} *batch_number;
	size_t nbatch_number, batch_number_cap;
	bool split_refused;     /* a split of a padded dim was refused: other
	                         * refusals follow from it */
};

enum step {
	STEP_KEEP,              /* the node, perhaps changed, stays */
	STEP_GONE,              /* its output was replaced */
	STEP_FAIL,              /* a diagnostic was given */
};

/* STEP_FAIL unless v. */
#define TRY(v) do { if (!(v)) return STEP_FAIL; } while (0)

/* Of a value that may have appeared since the walk began; valid until the
 * next call. */
struct val_facts *fold_facts(struct fold *, ValId);
/* Compute the node's outputs if that can be done. */
enum eval_status fold_eval(struct fold *, NodeId);
/* Put the node after those of the new order. */
void fold_push(struct fold *, NodeId);
/* The first if it can be, else the second; false after a diagnostic. */
bool fold_finish(struct fold *, NodeId);

/* ---- new nodes; all return 0 after a diagnostic ---- */

ValId fold_emit(struct fold *, Op, int nin, const ValId *in, const Attr *,
                NodeId like);
/* x itself if it has that shape. */
ValId fold_reshape(struct fold *, ValId x, const Shape *, NodeId like);
ValId fold_expand(struct fold *, ValId x, const Shape *, NodeId like);
/* One start and step per axis; the shape has the extents.  x itself if that
 * is all of it. */
ValId fold_slice(struct fold *, ValId x, const IntList *start,
                 const IntList *step, const Shape *, NodeId like);

/* 0, 1, 2, ..., of that shape; refused where no range may be so long. */
ValId fold_numbers(struct fold *, int64_t count, const Shape *, NodeId like);

/* ---- another meaning for a node ---- */

/* Node id now has another op, with its default attributes, and the one input
 * x. */
void fold_set_op(struct fold *, NodeId id, Op, ValId x);
/* `to` takes the place of `from`, and its name if that is a graph output; then
 * `to` is computed, and none itself. */
void fold_replace(struct fold *, ValId from, ValId to);
/* Output 0 of node id is x, broadcast to the output's shape.  A graph output
 * keeps its name: x takes it over if x has no name to keep, else the node
 * stays as a copy. */
enum step fold_set_broadcast(struct fold *, NodeId id, ValId x);

/* ---- looking ---- */

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

/* All operands from first on are absent or constant. */
static inline bool
are_const(const struct fold *f, const Node *n, int first)
{
	for (int i = first; i < n->nin; i++)
		if (n->in[i] && !val_is_const(in_val(f, n, i)))
			return false;
	return true;
}

/* Why v, a constant marked as large, was not computed, into buf, which is
 * returned. */
const char *fold_excess(const struct fold *, ValId v, char *buf, size_t size);
/* Why v is not a constant, into buf, which is returned. */
const char *fold_reason(struct fold *, ValId v, char *buf, size_t size);

static inline bool
complain(struct fold *f, const Node *n, const char *what)
{
	return diag_at(f->p->diag, node_label(f->g, n), node_type(f->g, n),
	               "%s", what);
}

#endif
