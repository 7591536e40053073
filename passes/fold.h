/* What fold.c and its rewriting rules (fold_rules.h) share. */
#ifndef PASSES_FOLD_H
#define PASSES_FOLD_H

#include "passes/eval.h"

/* What the walk knows of a value. */
struct val_note {
	ValId now;              /* use this one instead; 0: itself */
	bool folded;            /* its contents were computed here */
	bool large;             /* constant, but too large to compute */
};

struct fold {
	Pass *p;
	Graph *g;
	Arena *mem;             /* contents computed; survivors are copied */
	NodeId *order;          /* the new node order so far */
	uint32_t norder;
	size_t cap;
	struct val_note *note;
	size_t nnote, note_cap;
};

enum step {
	STEP_KEEP,              /* the node, perhaps changed, stays */
	STEP_GONE,              /* its output was replaced */
	STEP_FAIL,              /* a diagnostic was given */
};

/* fold_static.c: turn constant static operands into attributes, and ops that
 * are another op in disguise into that op. */
bool fold_absorb(struct fold *, NodeId);
/* fold_rules.c: drop or rewrite a node that is not constant. */
enum step fold_simplify(struct fold *, NodeId);

/* fold_rnn.c */
enum step fold_rnn(struct fold *, NodeId);

/* ---- fold.c: building; all return 0 after a diagnostic ---- */

struct val_note *fold_note(struct fold *, ValId);
ValId fold_emit(struct fold *, Op, int nin, const ValId *in, const Attr *,
                NodeId like);
ValId fold_reshape(struct fold *, ValId x, const Shape *, NodeId like);
ValId fold_expand(struct fold *, ValId x, const Shape *, NodeId like);
ValId fold_slice(struct fold *, ValId x, const IntList *start,
                 const IntList *step, const Shape *, NodeId like);
/* Node id now has another op and the one input x. */
void fold_turn(struct fold *, NodeId id, Op, ValId x);
enum step fold_turn_reshape(struct fold *, NodeId id, ValId x);
/* Output 0 of node id is x, broadcast to the output's shape. */
enum step fold_become(struct fold *, NodeId id, ValId x);
void fold_shape_list(IntList *, const Shape *);
bool fold_is_whole(const IntList *start, const IntList *step, const Shape *x,
                   const Shape *y);

#endif
