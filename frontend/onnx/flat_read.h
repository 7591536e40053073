/* Reading nested graphs.  Each file uses those below it:
 *
 *	flat.c          the list: outputs, order, what is needed
 *	flat_read.c     graphs, nodes, calls, branches
 *	flat_loop.c     loops, whose bodies it has flat_read.c read
 *	flat_known.c    values that the file does not hold
 *	flat_const.c    values that it does; opset.c: versions
 *	flat_build.c    names in scope, the growing lists
 */
#ifndef FRONTEND_ONNX_FLAT_READ_H
#define FRONTEND_ONNX_FLAT_READ_H

#include "frontend/onnx/flat.h"
#include "frontend/onnx/onnx.h"
#include "ir/base/table.h"

#include <string.h>

enum { MAX_CALLS = 64 };

struct binding {
	const char *name;
	int val;
};

struct name_scope {
	struct name_scope *up;          /* scope of the enclosing graph, or
	                                 * NULL */
	struct binding *one;
	size_t n, cap;
	struct table at;                /* indices into `one`, from 1, by
	                                 * name */
};

struct call {
	const struct call *up;
	const Onnx__FunctionProto *function;
	int depth;
};

/* Environment in which a list of nodes is read. */
struct context {
	struct name_scope names;
	const struct call *call;
	const struct attr_scope *attrs;
	const char *prefix;             /* prefix of names; "" at the top */
	Onnx__OperatorSetIdProto **opset;
	size_t nopset;
	bool top;
	bool bound;                     /* inputs of the graph have values */
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
/* Value of the name in this scope; 0: none. */
int flat_name_here(const struct name_scope *, const char *name);
/* The same in this and all enclosing scopes. */
int flat_name_get(const struct name_scope *, const char *name);
int flat_add_val(struct flat *, const struct context *, const char *name);
struct flat_node *flat_add_node(struct flat *);
/* y is another name for x. */
void flat_add_identity(struct flat *, int x, int y);

/* flat_known.c: a value's single number or truth value.  If unknown, requests
 * the value and returns false. */
bool flat_number(struct flat *, int val, int64_t *);
/* The single number or truth value of a tensor of the file. */
bool tensor_number(struct flat *, const Onnx__TensorProto *, int64_t *);
/* As flat_find, but requests an unknown value. */
const struct flat_known *flat_request(struct flat *, int val);
/* Request the values that importing the node needs: ranks, positions. */
void flat_request_inputs(struct flat *, const struct flat_node *);

/* flat_const.c: the contents of a Constant node; NULL for strings, and after a
 * diagnostic, with *ok false. */
const Onnx__TensorProto *constant_tensor(struct flat *,
                                         const struct flat_node *, bool *ok);
/* Store constant_tensor() in n->constant; false after a diagnostic. */
bool flat_constant(struct flat *, struct flat_node *n);

/* flat_read.c: read the model's functions and its graph. */
bool flat_read_model(struct flat *, struct context *);
/* Reads the nodes of a nested graph. */
typedef bool FlatReader(struct flat *, struct context *,
                        const Onnx__GraphProto *);

/* opset.c: whether ckc knows the model's IR version; false after a
 * diagnostic. */
bool ir_check(struct flat *);
/* Whether ckc knows the default domain's opset; false after a diagnostic. */
bool opset_check(struct flat *, const struct context *);
/* Opset of a domain; 0: not imported. */
int opset_of(const struct context *, const char *domain);

/* flat_loop.c: unroll a Loop or Scan with a known trip count; the reader reads
 * the body once per trip.  True if the node was such a loop; *ok: no
 * diagnostic was given. */
bool flat_unroll(struct flat *, const struct context *,
                 const struct flat_node *, FlatReader *, bool *ok);

#endif
