/* Shared by the readers of nested graphs: flat.c on top of flat_loop.c on top
 * of flat_build.c. */
#ifndef FRONTEND_ONNX_FLAT_READ_H
#define FRONTEND_ONNX_FLAT_READ_H

#include "frontend/onnx/flat.h"
#include "frontend/onnx/onnx.h"

#include <string.h>

enum { MAX_CALLS = 64 };

struct bucket {
	const char *name;
	int val;
};

struct name_scope {
	struct name_scope *up;          /* enclosing graph, seen from a
	                                 * subgraph */
	struct bucket *slot;
	size_t size, used;
};

struct call {
	const struct call *up;
	const Onnx__FunctionProto *function;
	int depth;
};

/* What a list of nodes is read under. */
struct context {
	struct name_scope names;
	const struct call *call;
	const struct attr_scope *attrs;
	const char *prefix;             /* of names; "" at the top */
	Onnx__OperatorSetIdProto **opset;
	size_t nopset;
	bool top;
	bool bound;                     /* its inputs have names already */
};

static inline const char *
flat_text(const char *s)
{
	return s ? s : "";
}

static inline bool
flat_is_onnx(const char *domain)
{
	return !*domain || strcmp(domain, "ai.onnx") == 0;
}

/* flat_build.c: names and lists */
void flat_name_set(struct flat *, struct name_scope *, const char *name,
                   int val);
/* 0: not in this scope. */
int flat_name_here(const struct name_scope *, const char *name);
/* 0: in no scope. */
int flat_name_get(const struct name_scope *, const char *name);
int flat_add_val(struct flat *, const struct context *, const char *name);
struct flat_node *flat_add_node(struct flat *);
/* y is another name for x. */
void flat_add_identity(struct flat *, int x, int y);

/* flat_known.c: the one number or truth value in a value; if it is not known,
 * false, and it is requested. */
bool flat_number(struct flat *, int val, int64_t *);
/* The same of a tensor of the file. */
bool tensor_number(struct flat *, const Onnx__TensorProto *, int64_t *);
/* As flat_find, but if nothing is known it is requested. */
const struct flat_known *flat_request(struct flat *, int val);
/* Request what importing the node takes: ranks, positions. */
void flat_request_inputs(struct flat *, const struct flat_node *);

/* flat_const.c: the contents of a Constant node; NULL: strings, or after a
 * diagnostic, when *ok is false. */
const Onnx__TensorProto *constant_tensor(struct flat *,
                                         const struct flat_node *, bool *ok);
/* The same into n->constant; false after a diagnostic. */
bool flat_constant(struct flat *, struct flat_node *n);

/* Reads the nodes of a nested graph. */
typedef bool FlatReader(struct flat *, struct context *,
                        const Onnx__GraphProto *);

/* opset.c: whether the model's IR version is known; false after a
 * diagnostic. */
bool ir_check(struct flat *);
/* The same for the version of the default domain. */
bool opset_check(struct flat *, const struct context *);
/* 0: the domain is not imported. */
int opset_of(const struct context *, const char *domain);

/* flat_loop.c: a Loop or Scan whose number of trips the file says becomes
 * that many copies of its body, which the reader reads.  True if it was one
 * and is dealt with; *ok says how. */
bool flat_unroll(struct flat *, const struct context *,
                 const struct flat_node *, FlatReader *, bool *ok);

#endif
