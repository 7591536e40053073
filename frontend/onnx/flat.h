/* An ONNX model as one flat list of nodes over numbered values: functions are
 * inlined, constant conditions resolved, names replaced by numbers, nodes in
 * topological order.  Import, classification and inspection read this form.
 */
#ifndef FRONTEND_ONNX_FLAT_H
#define FRONTEND_ONNX_FLAT_H

#include "frontend/onnx/onnx.h"

/* Attributes of the calls around a function's body: an attribute of a node in
 * the body may refer to one of them by name. */
struct attr_scope {
	const struct attr_scope *up;    /* the caller's scope */
	Onnx__AttributeProto **given, **fallback;
	size_t ngiven, nfallback;
};

enum verdict { VERDICT_NONE, VERDICT_PARAM, VERDICT_BUFFER, VERDICT_CONST };

struct flat_val {
	const char *name;               /* never NULL; not unique */
	int def, slot;                  /* writer (-1: none) and its output */
	const Onnx__TensorProto *init;  /* initializer, or NULL */
	const Onnx__ValueInfoProto *info;       /* graph input, or NULL */
	const char *file;               /* --const file, or NULL */
	int nuse;                       /* reads by needed nodes */
	bool output;                    /* graph output */
	/* classify.c, for initializers and inputs named by --param */
	enum verdict verdict;
	bool frozen, reached, weight_slot, state_slot;
	bool idle;                      /* named like a parameter, but without
	                                 * a gradient from the loss */
	bool by_option;                 /* verdict set by an option */
	bool named;                     /* parameter by its name alone; may be a
	                                 * buffer */
	bool made_up;                   /* the exporter invented its name */
	const char *reason;             /* reason of the verdict */
	int tie;                        /* initializer accidentally merged with
	                                 * this one; 0: none */
	bool untied;                    /* the tie was dissolved */
	/* import */
	ValId val;                      /* value in the graph */
	struct sequence *seq;           /* value of a sequence, or NULL */
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
	bool needed;                    /* an output depends on the node */
	int index;                      /* position in the file; -1: inlined */
};

/* A parameter into which the exporter merged n equal ones. */
struct flat_tie {
	int val, n;
};

/* A folded value on which control flow or a rank depends. */
struct flat_known {
	const char *name;
	bool is_number;
	int64_t number;
	Shape shape;
};

enum { FLAT_LOST = 3 };

/* Newest opset of the default domain; operators.h has the oldest ones. */
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
	int ninlined;                   /* inlined function calls */
	bool stop;                      /* endless recursion was reported */
	struct name_scope *functions;   /* flat_read.c: local functions */
	struct name_scope *nested;      /* flat_read.c: nested initializers */
	const struct flat_known *known;
	struct name_scope *known_at;    /* flat_known.c: `known` by name */
	int *requested, nrequested;     /* values to fold before the next try */
	size_t requested_cap;
	struct flat_tie *tie;           /* classify.c: merged parameters */
	int ntie;
	int nuntied;                    /* values with `untied` */
	const struct signature *signature;      /* signature.c */
	const char **mutated;           /* names of buffers that forward writes,
	                                 * from the exporter's signature */
	int nmutated;
	size_t mutated_cap;
	const char *lost[FLAT_LOST];    /* names of the first lost parameters */
	int nlost;                      /* parameters in the exporter's
	                                 * signature but not in the file */
	int nlostnorm;                  /* lost parameters of BatchNorms */
	int nlostweight;                /* lost parameters named "weight" */
	size_t tie_cap;
};

/* flat_known.c: the folded value of that name, or NULL. */
const struct flat_known *flat_find(const struct flat *, int val);
/* template.c: build the export template in the file.  Takes flat values with
 * their graph ids. */
void template_build(struct onnx_file *, const struct flat *);

#define FOR_FLAT_NODES(n, f) \
	for (struct flat_node *n = (f)->node; n < (f)->node + (f)->nnode; n++)
#define FOR_FLAT_VALS(v, f) \
	for (struct flat_val *v = (f)->val + 1; v < (f)->val + (f)->nval; v++)

/* Returns NULL after diagnostics. */
struct flat *flat_new(struct onnx_file *, Diag *, Arena *,
                      const struct flat_known *, int nknown);
/* Set `needed` of nodes and `nuse` of values.  Call again when outputs have
 * changed. */
void flat_mark_needed(struct flat *);
/* flat_const.c: the tensor of an initializer or Constant node; NULL for other
 * values.  Looks through Identity. */
const Onnx__TensorProto *flat_tensor(const struct flat *, int val);
/* Load a tensor as a constant, for val_int and val_float.  Returns its number
 * of elements; -1: NULL, or its data are absent. */
int64_t flat_load(const struct flat *, const Onnx__TensorProto *, Val *);

/* value_info.c: the file's ValueInfo of that inner value; NULL: none. */
const Onnx__ValueInfoProto *flat_value_info(const struct flat *,
                                            const char *name);
/* Names of all values from which PyTorch's optimizer folded the constant, as a
 * Python list; NULL: no note. */
const char *flat_folded_from(const struct flat *, const char *name);

/* sparse.c: converts a sparse tensor to dense; NULL after diagnostics. */
const Onnx__TensorProto *sparse_dense(struct flat *,
                                      const Onnx__SparseTensorProto *);

/* ---- attr.c: attributes, typed, defaulted and checked ---- */

struct attr_reader {
	struct onnx_file *file;
	Diag *diag;
	const struct flat_node *node;
	uint64_t seen;                  /* bits of attributes already read */
	bool failed;
};

void attr_begin(struct attr_reader *, struct flat *, const struct flat_node *);
/* False if a read failed or an attribute was never read. */
bool attr_end(struct attr_reader *);
bool attr_has(struct attr_reader *, const char *name);
int64_t attr_int(struct attr_reader *, const char *name, int64_t otherwise);
double attr_float(struct attr_reader *, const char *name, double otherwise);
/* Position of the attribute's word in the list, or 0 with `failed` set. */
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
/* The attribute of that name, unchecked, without a reader; NULL if absent. */
const Onnx__AttributeProto *attr_find(const struct flat_node *,
                                      const char *name);

#endif
