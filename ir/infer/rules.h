/* Shared by the rules of shape inference, infer_*.c.
 *
 * Static operands (shape of a reshape, axes of a reduction) are read where
 * they are constants; where they are absent the attributes hold the same, as
 * pass `fold` leaves them; where they are computed, extents are unknown.
 * Unknown ranks and extents give unknown ones; a contradiction is reported
 * with both sides.
 */
#ifndef IR_INFER_RULES_H
#define IR_INFER_RULES_H

#include <string.h>

#include "ir/infer/infer.h"

enum { INFER_TEXT = 160 }; /* bytes for a shape in a message */

struct infer {
	Graph *g;
	Diag *d;
	Node *n;
};

typedef bool ShapeRule(struct infer *);

#define OP(id, text, sig, attr, rules, emit) rules
#define RULES(shape, eval, dynamic, cost, grad, shard) ShapeRule infer_##shape;
#include "ir/ops.h"

/* ---- operands ---- */

static inline bool
has(const struct infer *c, int i)
{
	return i < c->n->nin && c->n->in[i];
}

/* Of an absent one no type is known. */
static inline const Val *
in(const struct infer *c, int i)
{
	return &c->g->val[has(c, i) ? c->n->in[i] : 0];
}

/* A copy: rules go on to change it. */
static inline Shape
shape_of(const struct infer *c, int i)
{
	return in(c, i)->shape;
}

static inline char
class_of(const struct infer *c, int i)
{
	return dtype_info[in(c, i)->dt].cls;
}

/* Operand i's type and shape as text. */
const char *rule_text(char buf[INFER_TEXT], const struct infer *, int i);

/* Whether operand i gives a list of integers, and how much of it is known. */
enum operand_state { ABSENT, COMPUTED, KNOWN };
enum operand_state rule_operand(const struct infer *, int i);
/* Length of operand i as a list; -1 if unknown.  A scalar is a list of one. */
int64_t rule_length(const struct infer *, int i);
/* Operand i as a list; the list stays as it is if that is not known. */
bool rule_list(struct infer *, int i, IntList *);
/* Axes of operand i or, where it is absent, of the list, marked in set.  A
 * computed operand leaves the list as it is. */
bool rule_axes(struct infer *, int i, IntList *, int rank, bool set[MAX_RANK]);

/* ---- demands: false after a diagnostic; absent operands meet them ---- */

#define rule_fail(c, ...) node_error((c)->g, (c)->d, (c)->n, __VA_ARGS__)
bool rule_same_type(struct infer *, int i, int j);
/* cls: the classes of dtypes.h allowed, e.g. "iu"; what: them in words. */
bool rule_want_class(struct infer *, int i, const char *cls, const char *what);
/* Operand i must have this shape as far as both are known. */
bool rule_want_shape(struct infer *, int i, const Shape *, const char *what);
bool rule_want_rank(struct infer *, int i, int min);
/* A negative axis counts from the end.  A scalar passes for a vector of one
 * element, as ONNX has it. */
bool rule_axis(struct infer *, int64_t axis, int rank, int *out);
/* Broadcast of operands first..last-1; absent ones do not matter. */
bool rule_broadcast(struct infer *, int first, int last, Shape *);
/* Append extents first..last-1 of the second shape to the first. */
bool rule_append(struct infer *, Shape *, const Shape *, int first, int last);

/* ---- results ---- */

static inline Shape
unknown(int rank)
{
	Shape s = { .rank = rank > MAX_RANK ? -1 : rank };

	for (int i = 0; i < s.rank; i++)
		s.dim[i] = -1;
	return s;
}

/* Equal as far as both are known. */
bool rule_dims_fit(const Shape *, const Shape *);
/* Output k has this type and shape.  What is known already is checked, what
 * is not is filled in. */
bool rule_result(struct infer *, int k, DType, Shape);
/* Output 0 has operand 0's type and this shape. */
bool rule_shape(struct infer *, Shape);
/* Extent of x[start:end:step] on an axis, clamped as ONNX and numpy do. */
int64_t rule_slice_extent(int64_t dim, int64_t start, int64_t end,
                          int64_t step);

#endif
