/* An ONNX model as one flat list of nodes over numbered values: functions are
 * inlined, constant conditions resolved, names gone, nodes in topological
 * order.  Import, classification and inspection all work on this form.
 */
#ifndef FRONTEND_ONNX_FLAT_H
#define FRONTEND_ONNX_FLAT_H

#include "frontend/onnx/onnx.h"

/* Attributes of the calls around a function's body: an attribute of a node in
 * the body may refer to one of them by name. */
struct attr_scope {
	const struct attr_scope *up;    /* of the caller */
	Onnx__AttributeProto **given, **fallback;
	size_t ngiven, nfallback;
};

enum verdict { VERDICT_NONE, VERDICT_PARAM, VERDICT_BUFFER, VERDICT_CONST };

struct flat_val {
	const char *name;               /* never NULL; not unique */
	int def, slot;                  /* writer; -1: none */
	const Onnx__TensorProto *init;  /* initializer, or NULL */
	const Onnx__ValueInfoProto *info;       /* graph input, or NULL */
	const char *file;               /* --const file, or NULL */
	int nuse;                       /* by nodes that are needed */
	bool output;
	/* classify.c, for initializers and inputs named by --param */
	enum verdict verdict;
	bool frozen, reached, weight_slot, state_slot;
	bool idle;                      /* called a parameter, and the loss does
	                                 * not reach it */
	bool by_option;                 /* an option decided */
	bool named;                     /* a parameter by its name alone, which
	                                 * could be a buffer's */
	bool made_up;                   /* the exporter invented its name */
	const char *reason;
	int tie;                        /* initializer with which it shares its
	                                 * contents by accident; 0: none */
	bool untied;                    /* ... and no longer does */
	/* import */
	ValId val;
	struct sequence *seq;
};

struct flat_node {
	const Onnx__NodeProto *p;       /* op_type is never NULL */
	const char *name, *domain, *type;       /* name: "#12" if it has none */
	const struct onnx_op *op;       /* NULL: unknown */
	int opset;
	const struct attr_scope *scope;
	const Onnx__TensorProto *constant;      /* of a Constant; or NULL */
	int nin, nout;
	int *in, *out;                  /* value numbers; 0: absent */
	bool needed;                    /* an output depends on it */
	int index;                      /* in the file; -1: inlined */
};

/* A parameter that stands for n that were equal by accident. */
struct flat_tie {
	int val, n;
};

/* What folding has found out about a value that control flow, or how many
 * axes there are, depends on. */
struct flat_known {
	const char *name;
	bool is_number;
	int64_t number;
	Shape shape;
};

enum { FLAT_LOST = 3 };

/* Of the default domain: the oldest are in optable.c. */
enum { NEWEST_OPSET = 28 };

struct flat {
	Arena *arena;
	struct onnx_file *file;
	Diag *diag;
	struct flat_val *val;           /* [0] is unused */
	int nval;
	struct flat_node *node;
	int nnode;
	int *input, ninput;             /* graph inputs in the file's order */
	int *output, noutput;
	int opset;                      /* of the default domain */
	size_t val_cap, node_cap;
	int ninlined;                   /* calls of functions */
	bool stop;                      /* calls without end: reported */
	struct name_scope *functions;   /* flat.c's */
	struct name_scope *nested;      /* ... initializers of nested graphs */
	const struct flat_known *known;
	struct name_scope *known_at;    /* flat_known.c's */
	int *requested, nrequested;     /* values that should have been known */
	size_t requested_cap;
	struct flat_tie *tie;           /* classify.c's */
	int ntie;
	int nuntied;                    /* values with `untied` */
	const char **mutated;           /* buffers that forward assigns to, by
	                                 * the exporter's signature */
	int nmutated;
	size_t mutated_cap;
	const char *lost[FLAT_LOST];    /* the first of them, by name */
	int nlost;                      /* parameters that the exporter's
	                                 * signature has and the file not */
	int nlostnorm;                  /* the same of BatchNorms */
	int nlostweight;                /* those called "weight" among nlost */
	size_t tie_cap;
};

/* flat_known.c: what is known of a value, by its name; or NULL. */
const struct flat_known *flat_find(const struct flat *, int val);
/* template.c: the export template, into the file; flat values know their ids
 * in the graph by now. */
void template_build(struct onnx_file *, const struct flat *);

/* NULL after diagnostics. */
struct flat *flat_new(struct onnx_file *, Diag *, Arena *,
                      const struct flat_known *, int nknown);
/* Which nodes the outputs depend on, and how often values are used; to be
 * called again when outputs have changed. */
void flat_mark_needed(struct flat *);
/* flat_const.c: the initializer or Constant node's tensor of a value; NULL
 * if it is neither.  Looks through Identity. */
const Onnx__TensorProto *flat_tensor(const struct flat *, int val);

/* value_info.c: what the file says of the inner value of that name; NULL:
 * nothing. */
const Onnx__ValueInfoProto *flat_value_info(const struct flat *,
                                            const char *name);
/* The names of what PyTorch's optimizer computed that constant of, directly or
 * not, as a list in Python; NULL: no note. */
const char *flat_folded_from(const struct flat *, const char *name);

/* sparse.c: the same tensor, dense; NULL after diagnostics. */
const Onnx__TensorProto *sparse_dense(struct flat *,
                                      const Onnx__SparseTensorProto *);

/* ---- attr.c: attributes, typed, defaulted and checked ---- */

struct attr_reader {
	struct onnx_file *file;
	Diag *diag;
	const struct flat_node *node;
	uint64_t seen;                  /* attributes asked for, by position */
	bool failed;
};

void attr_begin(struct attr_reader *, struct flat *, const struct flat_node *);
/* False if a read failed, or there are attributes that nobody asked for. */
bool attr_end(struct attr_reader *);
bool attr_has(struct attr_reader *, const char *name);
int64_t attr_int(struct attr_reader *, const char *name, int64_t otherwise);
double attr_float(struct attr_reader *, const char *name, double otherwise);
/* One of the words in the list; its position, or 0 with `failed` set. */
int attr_word(struct attr_reader *, const char *name, int otherwise,
              const char *const *words, int nword);
/* False if absent.  Lists longer than MAX_RANK * 2 are an error. */
struct attr_ints {
	int n;
	int64_t v[2 * MAX_RANK];
};
bool attr_ints(struct attr_reader *, const char *name, struct attr_ints *);
/* The attribute itself, with its type checked unless `type` is 0; NULL if
 * absent. */
const Onnx__AttributeProto *attr_get(struct attr_reader *, const char *name,
                                     int type);
/* Without a reader, for those who look at nodes from outside. */
const Onnx__AttributeProto *attr_find(const struct flat_node *,
                                      const char *name);

#endif
