/* Interface of the functions that import one ONNX node each. */
#ifndef FRONTEND_IMPORT_NODE_IMPORT_H
#define FRONTEND_IMPORT_NODE_IMPORT_H

#include "frontend/import/import.h"
#include "frontend/onnx/onnx.h"
#include "frontend/import/optable.h"

/* A tensor sequence never becomes a value.  It is a tensor still to be split,
 * or a list of values. */
struct sequence {
	bool split;                     /* a tensor; false: a list */
	ValId x, sizes;                 /* tensor, sizes of its parts */
	Attr part;                      /* attributes of a part but its index */
	int64_t n;                      /* length; -1: unknown (tensor only) */
	ValId *elem;                    /* list of values */
};

struct importer {
	Graph *g;
	struct flat *f;
	Arena *arena;
	Diag *diag;
	const struct import_options *opt;
	struct flat_node *n;            /* current node */
	struct attr_reader r;
	uint32_t origin;
	int64_t elements;               /* sequence elements made so far */
};

/* Input i of the current node, or 0 if absent. */
ValId imp_in(struct importer *, int i);
bool imp_has(const struct importer *, int i);
/* Whether output i has a reader. */
bool imp_is_used(const struct importer *, int i);
void imp_out(struct importer *, int i, ValId);
/* Append a node with the origin of the current node and return its output 0.
 * Drops absent trailing inputs.  attr NULL: defaults. */
ValId imp_node(struct importer *, Op, const Attr *attr, int nin,
               const ValId *in);
#define EMIT_NODE(m, op, attr, ...) \
	imp_node(m, op, attr, sizeof((ValId[]){ __VA_ARGS__ }) \
	         / sizeof(ValId), (ValId[]){ __VA_ARGS__ })
/* Import the current node as one op with the same inputs. */
bool imp_same(struct importer *, Op, const Attr *attr);
/* A scalar constant of x's type. */
ValId imp_like(struct importer *, ValId x, double);
static inline ValId
unary(struct importer *m, Op op, ValId x)
{
	return EMIT_NODE(m, op, NULL, x);
}

static inline ValId
binary(struct importer *m, Op op, ValId x, ValId y)
{
	return EMIT_NODE(m, op, NULL, x, y);
}

/* x op number */
static inline ValId
with(struct importer *m, Op op, ValId x, double number)
{
	return binary(m, op, x, imp_like(m, x, number));
}

/* Make y output 0 of the current node; returns true. */
static inline bool
set_output(struct importer *m, ValId y)
{
	imp_out(m, 0, y);
	return true;
}

/* Output k of the node whose output 0 is v. */
ValId imp_output(const struct importer *, ValId v, int k);
ValId imp_ints(struct importer *, int n, const int64_t *);
ValId imp_one(struct importer *, int64_t);              /* i64[1] */
ValId imp_scalar(struct importer *, int64_t);           /* i64[] */
/* Extent `axis` of x as i64[1]; an i64[1] as i64[]. */
ValId imp_extent(struct importer *, ValId x, int64_t axis);
ValId imp_scalar_of(struct importer *, ValId one);
ValId imp_cast(struct importer *, ValId x, DType);
/* 0, 1, ..., n - 1, for n as i64[] */
ValId imp_range(struct importer *, ValId n);
/* 0, 1, ..., n - 1, for n as i64[1] */
ValId imp_count(struct importer *, ValId n);
/* Ones of a shape that the graph computes. */
ValId imp_ones(struct importer *, ValId shape, DType);
/* x[n] as [1, .., n, .., 1] with n at axis `at` of `rank`. */
ValId imp_reshape_along(struct importer *, ValId x, int at, int rank);
/* x in the shape whose extents are n values i64[1]. */
ValId imp_reshape(struct importer *, ValId x, int n, const ValId *extent);
ValId imp_concat(struct importer *, int64_t axis, int n, const ValId *);
ValId imp_transpose(struct importer *, ValId x, IntList perm);
ValId imp_unsqueeze(struct importer *, ValId x, int64_t axis);
/* Attributes of an IR op, with those that the row of the operator names read
 * from the current node. */
Attr imp_attrs(struct importer *, Op);
/* Contents of a constant input; false if it is not constant. */
bool imp_const(const struct importer *, int i, int64_t *x);
bool imp_const_float(const struct importer *, int i, double *x);
/* The shape of input i as far as it is known. */
Shape imp_shape(struct importer *, int i);
/* The rank of input i; false if not known yet. */
bool imp_rank(struct importer *, int i, int *rank);
/* Extent of a value, or -1 if unknown; axis may be negative. */
int64_t imp_dim(const struct importer *, ValId, int axis);
/* Report an error of the current node; returns false. */
bool imp_fail(struct importer *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A list attribute; absent: empty.  imp_axis_list has its own message for a
 * list that is too long. */
bool imp_list(struct importer *, const char *name, IntList *);
bool imp_axis_list(struct importer *, const char *name, IntList *);
/* Axes as an attribute (before opset `since`) or as input i.  Stores the list
 * in *list, or returns the input. */
ValId imp_axes(struct importer *, int i, int since, const char *name,
               IntList *list);
/* A reduction over the axes that are given as an input or, if that is 0, as a
 * list. */
ValId imp_reduce(struct importer *, Op, ValId x, ValId axes, const IntList *,
                 bool keepdims, bool noop);
/* A constant, parameter or buffer with the contents of a tensor. */
ValId imp_stored(struct importer *, ValKind, const char *name,
                 const struct onnx_tensor *);
/* A tensor attribute as a constant. */
ValId imp_tensor(struct importer *, const Onnx__TensorProto *,
                 const char *name);
/* Attributes of sliding windows, into those of the op that has them; the kernel
 * also into *kernel. */
bool imp_windows(struct importer *, Op, Attr *, IntList *kernel);

/* ---- operators: import the current node; false after a diagnostic ---- */

typedef bool ImportNode(struct importer *);

#define ONNX(name, domain, since, least, most, run, ...) ImportNode run_##run;
#include "frontend/import/operators.h"

#endif
