/* Room ir: the one IR of ckc, from import to emission.
 *
 * in      shapes, memory and messages of ir/base
 * out     graphs, and what every pass asks of an op: rows, shapes, placements
 * must not know ONNX, passes and machines
 *
 * A Graph holds arrays of values and nodes, referred to by id; id 0 is
 * "none".  The order of the node array is the order of execution and a
 * topological order at all times.  No pointer into an array survives a call
 * that adds to it.
 *
 * Every value is written once (SSA).  Memory comes late: pass `layout` gives
 * values strides and makes some of them views of others, pass `place` gives
 * owners an offset in the arena.
 *
 * Glossary.  activation: value computed in phase forward.  adjoint: gradient
 * of an activation.  grad: gradient of a parameter.  resident: in memory of
 * its own during the whole step, outside the arena.  view: a value that lies
 * in the bytes of another.  clone: a value computed again (Val.of).
 */
#ifndef IR_IR_H
#define IR_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/base/arena.h"
#include "ir/base/diag.h"
#include "ir/base/shape.h"

/* NOSTAT lies above every operand of a variadic op. */
enum { VARIADIC = 255, NOSTAT = INT32_MAX };
/* What a matmul_end ends with: sums of the left factor's rows, of the right
 * one's columns, GELU's gradient. */
enum { END_ROWS = 1, END_COLUMNS, END_GELU_GRAD };

/* All values of a graph together, and all scratch memory; far enough from
 * 2^63 for sums of sizes to need no further checks. */
#define GRAPH_BYTES_MAX ((int64_t)1 << 60)

typedef uint32_t ValId;
typedef uint32_t NodeId;

/* ---- op.c: ops ---- */

typedef enum {
	OP_NONE,
#define OP(id, text, sig, attr, rules, emit) OP_##id,
#include "ir/ops.h"
	OP_COUNT
} Op;

enum {
	F_EW = 1,               /* element-wise; may stand in a loop's body */
	F_VIEW = 4,             /* may be carried out by aliasing */
	F_RNG = 8,              /* draws random numbers: needs attr stream */
	F_REDUCE = 16,
	F_ROWS = 32,            /* independent rows */
	F_CONTRACT = 64,        /* made of matrix products */
	F_WRITES = 128,         /* outputs overwrite inputs: its effect */
	F_UPDATE = 1024,        /* an optimizer's step of input 0 */

	/* operands that are not static: of which class */
	F_FLOATS = 1 << 11,
	F_INTS = 1 << 12,
	F_BOOLS = 1 << 13,

	/* type of output 0, if not operand 0's */
	F_TO_BOOL = 1 << 14,
	F_TO_I64 = 1 << 15,
	F_TO_ATTR = 1 << 16,    /* attr to or dt */
	F_OF_1 = 1 << 17,       /* operand 1's */
	F_OF_2 = 1 << 18,       /* operand 2's */

	F_STAGED = 1 << 19,     /* its kernel knows no 16-bit floats */
	F_STRIDES = 1 << 20,    /* ... takes operands of any strides */
	F_ALONE = 1 << 21,      /* F_EW, but `fuse` makes no loop of it */
	F_WIDE_0 = 1 << 22,     /* operand 0 is wanted in f32 */
	F_WIDE_3 = 1 << 23,     /* operand 3 is, if given */
	F_LABELS_1 = 1 << 24,   /* operand 1 is labels of a loss */
	F_LABELS_2 = 1 << 25,   /* operand 2 is */
	F_COMM = 1 << 26,       /* between or about ranks: has no kernel */
	F_LIN0 = 1 << 27,       /* linear in operand 0, the others fixed */
	F_LIN1 = 1 << 28,       /* ... in operand 1 */
	F_LIN2 = 1 << 29,       /* ... in operand 2 */
	F_JOINT = 1 << 30,      /* ... in all of those, or all, together */
};
/* Infinite, or without a derivative, at numbers that mean nothing; or its
 * gradient rule makes use of such an op. */
#define F_POLES (UINT64_C(1) << 31)
#define F_ZERO (UINT64_C(1) << 38)      /* of zeros: zeros, in the same place */
#define F_BIAS2 (UINT64_C(1) << 39)     /* operand 2, if given, is 1-D, added */
#define F_HALF (UINT64_C(1) << 40)      /* 16-bit operands, if there are any */
#define F_HALF_0 (UINT64_C(1) << 41)    /* ... the first one; F_FULL: none */
#define F_FULL (UINT64_C(1) << 42)
#define F_IMAGES (UINT64_C(1) << 43)    /* dim 0 of operands: independent,
                                         * unless it is the axis */
#define F_OVER (UINT64_C(1) << 44)      /* may be written over operand 0 */
/* Output 0 is added to operand n, if given, and may be written over it. */
#define F_ACC(n) (UINT64_C(n) << 45)
#define F_SENDS (UINT64_C(1) << 48)     /* moves bytes between ranks, or
                                         * between device and host memory */
/* F_UPDATE: the last operand and output are a copy of the new operand 0. */
#define F_COPY (UINT64_C(1) << 49)
/* Operands 0 and 1 may be matrices whose rows do not lie side by side. */
#define F_MATRICES (UINT64_C(1) << 50)
/* The result or its slope may be infinite, or no number, for finite operands.
 */
#define F_STEEP (UINT64_C(1) << 51)
/* Logarithms: float32, and so is what they are of, back to a F_ENDS op. */
#define F_LOG (UINT64_C(1) << 52)
/* Results crowd at the end of their range: 1 - y has few bits in 16. */
#define F_ENDS (UINT64_C(1) << 53)
/* Fold leaves none in a static graph: no target has a kernel for it. */
#define F_FOLDED (UINT64_C(1) << 54)
/* Neighbours may go in one message, see nodes_may_join. */
#define F_JOINS (UINT64_C(1) << 55)
/* Operand 0, or 1, may be blocks of quantised weights. */
#define F_BLOCKS_0 (UINT64_C(1) << 56)
#define F_BLOCKS_1 (UINT64_C(1) << 57)
/* From host memory to the device's, and the other way: has no kernel. */
#define F_FETCH (UINT64_C(1) << 58)
#define F_OFFLOAD (UINT64_C(1) << 59)
#define F_HOST (F_FETCH | F_OFFLOAD)
/* Between stages of a pipeline: sends its operand, or receives its result. */
#define F_STAGES (UINT64_C(1) << 60)
/* FLOPs per element of the largest operand, at most 63; 0 is 1. */
#define FLOPS(n) (UINT64_C(n) << 32)

#define ATTR(...) struct { char none_; __VA_ARGS__ }
#define I(name, def) int64_t name;
#define F(name, def) double name;
#define L(name) IntList name;
/* One struct per op in a union, named after the op: n->attr.SOFTMAX.axis. */
typedef union Attr {
	char none_;
#define OP(id, text, sig, attr, rules, emit) attr id;
#include "ir/ops.h"
} Attr;
#undef I
#undef F
#undef L
enum attr_type { AT_INT, AT_FLOAT, AT_LIST };

struct attr_info {
	const char *name;
	enum attr_type type;
	size_t offset;                  /* in Attr */
	double def;                     /* AT_FLOAT */
	int64_t idef;                   /* AT_INT */
};

struct op_info {
	const char *text;
	int min, max, nout, nstat;
	uint64_t flags;
};
extern const struct op_info op_info[OP_COUNT];

static inline int
op_flops(Op op)
{
	int n = (int)(op_info[op].flags / FLOPS(1) & 63);

	return n ? n : 1;
}

/* Whether `fuse` makes a loop of it, or takes it into one. */
bool op_fuses(Op);
/* The operand that output 0 is added to; 0: none. */
int op_accumulator(Op);
/* F_UPDATE: the operand that is the gradients' norm. */
int op_norm(Op);
/* F_WRITES: the operand that output k is written over. */
int op_overwrites(Op, int k);
/* OP_NONE if there is none of that name. */
Op op_find(const char *text);
/* The attributes of an op in table order; *n: how many. */
const struct attr_info *op_attrs(Op, int *n);
/* The op's attribute of that name and type; NULL if it has none. */
int64_t *attr_int_of(Op, Attr *, const char *name);
double *attr_float_of(Op, Attr *, const char *name);
IntList *attr_list_of(Op, Attr *, const char *name);
Attr attr_default(Op);
/* Of a reshape and of an expand to a known shape, and of a cast. */
Attr attr_reshape(const Shape *);
Attr attr_expand(const Shape *);
Attr attr_cast(DType);
bool attr_equal(Op, const Attr *, const Attr *);
/* Type of output 0 by the row's flags; from: the types of the first three
 * operands, DT_NONE where there is none. */
DType op_type(Op, const Attr *, const DType from[3]);

/* ---- values ---- */

typedef enum {
	V_TEMP,                         /* computed by a node */
	V_INPUT,                        /* given at every step */
	V_PARAM,                        /* weights; trained unless frozen */
	V_BUFFER,                       /* state that is not trained */
	V_CONST,
	V_STATE,                        /* starts at zero, "copy" does not */
	V_KIND_COUNT
} ValKind;

/* Of a group, and replicas: CKR_MAX_GROUP of runtime/ckr_abi.h. */
enum { GROUP_MAX = 1024 };

/* How a value lies on the ranks of a tensor-parallel group, and its adjoint
 * with it (f and g of Korthikanti et al. 2023 follow from that). */
typedef enum {
	PLACEMENT_REPLICATE,            /* every rank has all; adjoint: too */
	PLACEMENT_REPLICATE_PARTIAL,    /* the same; adjoint: Partial */
	PLACEMENT_SHARD,                /* each a shard; adjoint: too */
	PLACEMENT_PARTIAL,              /* each a summand; adjoint: Replicate,
	                                 * or ReplicatePartial */
} PlacementKind;

/* PLACEMENT_SHARD: the merged dims first_axis..axis are nsegment segments of
 * segment[] elements; if there are more than MAX_RANK, all have segment[0].
 * Each is sharded into ranks / replication shards of equal extent, rounded up:
 * the last is padded with zeros.  Each group of `replication` consecutive ranks
 * holds the same shard.  A rank's extents: 1 for dims first_axis..axis-1, and
 * for dim axis its shards of all segments, one after the other. */
typedef struct {
	PlacementKind kind;
	int axis, first_axis;
	int nsegment;
	int64_t replication;
	int64_t segment[MAX_RANK];
	bool mirror;                    /* every second segment is shared out
	                                 * from the last rank to the first */
} Placement;

/* What is sharded over replicas: how a rank would have it otherwise.
 * Those elements, in row-major order and merged, are divided into a shard for
 * every replica, of equal extent, rounded up: the last is padded with zeros.
 * All dims of a shard but the last are 1 (ZeRO).  rows: each shard has an equal
 * number of rows along dim 0, with the other dims and the placement of the
 * whole, and ops read it as it is (experts). */
struct replica_shard {
	Shape shape;
	Placement placement;            /* Replicate if the value is whole */
	bool rows;
};

/* Whether an output has a row for each sample, along its first dim, that
 * depends on no other sample. */
enum sample_rows { ROWS_UNKNOWN, ROWS_OWN, ROWS_NONE };

typedef struct Val {
	const char *name;               /* unique in the graph, never NULL */
	uint32_t nsuffix;               /* NAME.N is taken up to this N */
	const char *onnx;               /* ONNX value it holds or whose gradient
	                                 * it is; NULL: none */
	ValKind kind;
	DType dt;
	Shape shape;
	NodeId def;                     /* node that writes it; 0 unless
	                                 * V_TEMP */
	int result_index;               /* which output of def it is */
	bool output;                    /* it must survive the step */
	enum sample_rows rows;          /* of an output: whether it has rows, if
	                                 * known */
	bool frozen;                    /* V_PARAM that is not trained */
	bool resident;                  /* V_TEMP in memory of its own */
	bool host;                      /* in host memory beside the device's:
	                                 * only F_HOST ops and views take it */
	ValId of;                       /* value that this clone repeats, or
	                                 * that a transfer has copied; 0:
	                                 * neither */
	ValId low_precision_of;         /* value that this holds in 16 bits;
	                                 * 0 */
	ValId param;                    /* parameter of this V_STATE, or
	                                 * parameter whose final gradient this
	                                 * V_TEMP is; 0 */
	ValId grad_of;                  /* value whose adjoint this is; 0 */
	const char *state;              /* V_STATE: "m", ...; "copy": 16 bits;
	                                 * "total": of micro-batches, of no
	                                 * parameter */
	Placement placement;            /* shape is one rank's */
	const struct replica_shard *shard; /* the whole of which this is one
	                                    * replica's shard; NULL: replicas
	                                    * have all of it */
	int batch;                      /* 1 + dim sharded over replicas; 0:
	                                 * none */

	/* contents: V_CONST, V_PARAM, V_BUFFER; NULL while unread or absent
	 * (planning from shapes).  Of the whole value if it is sharded.
	 * Any alignment: val_int or memcpy.  nbytes = elements * size.  Owned
	 * by the graph's arena or a mapping that outlives the graph. */
	const void *data;

	/* layout, in elements of dt; valid once laid_out */
	bool laid_out;
	ValId base;                     /* owner that this is a view of; 0: this
	                                 * is an owner */
	int64_t start;                  /* first element within the owner */
	int64_t stride[MAX_RANK];
	int64_t nbytes;                 /* owners: bytes occupied, padded */
	int64_t offset;                 /* bytes from the arena's begin; -1: not
	                                 * placed */
	/* import only: symbolic extents, NULL where there is none */
	const char *dim_name[MAX_RANK];
} Val;

/* ---- nodes ---- */

typedef enum {
	PH_FORWARD, PH_RECOMPUTE, PH_BACKWARD,
	PH_WEIGHT,                      /* of backward, what no other stage of a
	                                 * pipeline waits for */
	PH_UPDATE, PH_COUNT
} Phase;

/* One op inside a loop.  arg >= 0: the loop's input; arg < 0: the result of
 * scalar op ~arg.  Arguments broadcast to the loop's shape. */
struct scalar_op {
	Op op;
	DType dt;
	int narg;
	int arg[3];
	Attr attr;
};

struct body {
	int nop;
	struct scalar_op *op;
	int *result;                    /* scalar op whose result output i is */
};

typedef struct Node {
	Op op;
	Phase phase;
	int nin, nout;
	ValId *in, *out;              /* an input may be 0 (absent optional), an
	                                 * output too (not wanted) */
	Attr attr;
	struct body *body;              /* OP_LOOP */
	NodeId of;                      /* node that this clone repeats; 0 */
	NodeId wait;                    /* node after which the transfer that
	                                 * begins here has ended; 0 */
	int count_pass;                 /* n: runs in count pass n, a pre-pass
	                                 * over all micro-batches before the
	                                 * step; 0: in the step */
	uint32_t place;                 /* place in forward of this node, or of
	                                 * the one that it differentiates, from
	                                 * pass autodiff to pass pipeline; 0;
	                                 * not in the text form */
	int ninlined;                   /* OP_LOOP: loops whose work it does */
	NodeId *inlined;                /* again, in the order of the body */
	int norigin;                    /* ONNX nodes it carries out or */
	uint32_t *origin;             /* differentiates: Graph.origin indices */
	int64_t workspace;              /* bytes of scratch memory, from
	                                 * codegen's rules */
	int64_t workspace_at;           /* offset of the workspace in the arena
	                                 * (P_PLACED) */
} Node;

struct origin {
	const char *name;              /* never NULL; "#12" if it had no name */
	const char *op;                 /* ONNX op type */
};

/* --halves: samples run as two chains of nodes. */
enum halves {
	HALVES_NONE,
	HALVES_ONE,             /* inputs have half the samples, until pass
	                         * replicate makes both halves */
	HALVES_BOTH
};

/* Attribute `group` of a collective: which ranks take part. */
enum rank_group {
	GROUP_RANKS,            /* those of a replica */
	GROUP_REPLICAS,         /* one of every replica */
	GROUP_SHARDS,           /* one of every replica of a zero group */
	GROUP_COPIES,           /* one of every zero group, which hold the same
	                         * shards */
	GROUP_EXPERTS,          /* one of every replica of an expert group */
	GROUP_EXPERT_COPIES,    /* one of every expert group, which hold the
	                         * same experts */
	GROUP_STAGES,           /* one of every stage of a pipeline */
	GROUP_CONTEXT,          /* one of every replica that has the same
	                         * samples (Graph.context) */
	GROUP_COUNT
};

struct device_profile;
typedef struct Graph {
	Arena *arena;
	const char *name;               /* model file's stem */
	Val *val;                       /* val[0] is unused */
	uint32_t nval;                  /* ids are 1..nval-1 */
	Node *node;                     /* node[0] is unused */
	uint32_t nnode;
	struct origin *origin;          /* origin[0] is unused: ckc's own */
	uint32_t norigin;
	ValId loss;                     /* scalar output to train on; 0: none */
	uint32_t props;                 /* P_* below */
	size_t val_cap, node_cap, origin_cap;
	Node *spare;                    /* for graph_reorder */
	size_t spare_cap;
	int64_t nstream;                /* number of random streams handed
	                                 * out */
	int64_t ranks;                  /* ranks that the graph is sharded over;
	                                 * 0: it is not sharded */
	int64_t replicas;               /* likely number of replicas; 0: made
	                                 * for one alone */
	bool exact;                     /* there are exactly so many replicas */
	int64_t zero_group;             /* so many replicas side by side, one of
	                                 * a zero group each, hold the shards of
	                                 * a whole; 0: all of them do */
	int64_t expert_group;           /* likewise: of the experts */
	int64_t stages, stage;          /* number of stages of the pipeline, and
	                                 * which one this is, from 0; 0: of
	                                 * none */
	int64_t slots;                  /* micro-batches that keep at the same
	                                 * time what is alive between forward
	                                 * and backward; 0: one */
	int64_t other_slots;            /* bytes that others keep meanwhile,
	                                 * under another plan of the stage */
	int64_t through_slots;          /* if phase weight has a turn of its
	                                 * own: those that keep what is alive
	                                 * from forward to there, */
	int64_t weight_slots;           /* and from backward to there; 0: it has
	                                 * none */
	int64_t context;                /* so many replicas side by side have
	                                 * the same samples, each a part of
	                                 * their positions; 0: each has its
	                                 * own */
	bool zigzag;                    /* ... one stretch from the beginning,
	                                 * the other as far from the end: equal
	                                 * work of causal attention */
	enum halves halves;
	bool adds;                      /* losses of micro-batches add up to the
	                                 * step's loss; else it is their mean */
	struct table *names;            /* ids of values by name (graph.c) */
	const struct device_profile *device; /* device whose costs are used
	                                      * (passes/cost/cost.h); NULL: the
	                                      * default */
} Graph;
#define FOR_NODES(n, g) \
	for (Node *n = (g)->node + 1; n < (g)->node + (g)->nnode; n++)
#define FOR_VALS(v, g) \
	for (Val *v = (g)->val + 1; v < (g)->val + (g)->nval; v++)

static inline NodeId
node_id(const Graph *g, const Node *n)
{
	return (NodeId)(n - g->node);
}

static inline ValId
val_id(const Graph *g, const Val *v)
{
	return (ValId)(v - g->val);
}

/* Properties of a graph.  A pass names those it needs, gives and breaks. */
enum {
	P_BOUND = 1,            /* inputs have known shapes */
	P_STATIC = 2,           /* all shapes known, no static operands left */
	P_CANON = 4,            /* recognised ops, 2-D linear products */
	P_LOSS = 8,             /* g->loss is a scalar float value */
	P_BWD = 16,             /* backward is there */
	P_UPD = 32,             /* optimizer steps are there */
	P_FUSED = 64,           /* loops, classifier */
	P_LAYOUT = 128,         /* values laid out, views decided */
	P_PLANNED = 256,        /* has clones; node order is the schedule */
	P_PLACED = 512,         /* owners have offsets */
	P_SHARD = 1024,         /* values say how they lie on ranks */
};

/* ---- graph.c: building ---- */

/* The last node of phase forward: what backward and updates need of it lies in
 * a micro-batch's slot.  0: there is none. */
NodeId graph_boundary(const Graph *);
static inline int64_t
graph_slots(const Graph *g)
{
	return g->slots > 1 ? g->slots : 1;
}
/* The last node of phases forward and backward, if phase weight has a turn of
 * its own: what that and updates need of them lies in slots.  0: it has
 * none. */
NodeId graph_weight_boundary(const Graph *);

Graph *graph_new(const char *name);
void graph_free(Graph *);
/* A deep copy with the same ids (contents of values are shared). */
Graph *graph_clone(const Graph *);
/* A copy in less time, to be freed before g: texts and bodies are g's, and its
 * values are not found by name. */
Graph *graph_trial(const Graph *g);
/* How many ranks a group has; 0: unknown. */
int64_t graph_group_size(const Graph *, int64_t group);
/* Which ranks a collective is between (enum rank_group). */
int64_t node_group(const Node *);
/* Whether it sends to another stage of a pipeline, or receives. */
static inline bool
node_is_message(const Node *n)
{
	return op_info[n->op].flags & F_STAGES;
}
/* Of such a node: the other stage; the tag, which both ends have; whether it
 * sends. */
struct node_message {
	int64_t peer, tag;
	bool sends;
};
struct node_message node_message(const Node *);
/* What a node with F_SENDS sends. */
ValId node_sent(const Node *);
/* Whether what two nodes transfer may go in one message: the same op, with
 * F_JOINS, in one group, which run as often as each other. */
bool nodes_may_join(const Node *, const Node *);
/* Whether node id, if there is one, goes in one message with the node before
 * it: that has not ended when this one begins.  All of a message end behind
 * its last one. */
bool node_joins(const Graph *, NodeId id);
/* The last node of node id's message. */
NodeId message_last(const Graph *, NodeId id);
/* The group over which a whole is sharded (struct replica_shard); rows: into
 * rows. */
enum rank_group graph_shard_group(const Graph *, bool rows);
/* The first input that has dims, whose first one is that of the samples; NULL:
 * there is none. */
const Val *graph_batch_input(const Graph *);
/* Whether dim i of an input is that of the samples, which `first`,
 * graph_batch_input, has as its first one: of the same name, or also the first
 * one and as large. */
bool holds_samples(const Val *, int i, const Val *first);

/* A new value; name is copied and made unique by a suffix ".N" if taken
 * (NULL: "tN").  Shape and dt may be unknown (rank -1, DT_NONE). */
ValId val_new(Graph *, ValKind, const char *name, DType, Shape);
/* A constant whose contents are copied into the arena. */
ValId val_const(Graph *, const char *name, DType, Shape, const void *data);
ValId val_scalar(Graph *, DType, double);
ValId val_find(const Graph *, const char *name);       /* 0: none */
/* The value of `of` that is one thing with v of g (element_equal); 0: none. */
ValId val_counterpart(const Graph *of, const Graph *g, ValId v);
/* Give a value another name, made unique as by val_new. */
void val_rename(Graph *, ValId, const char *name);

/* The parameter that v is, or its 16-bit copy, moved and rounded alone; 0: of
 * none. */
ValId val_param_of(const Graph *, ValId v);
bool graph_has_op(const Graph *, Op);

/* Append a node with nout fresh outputs (0: as many as the row says); reads
 * attributes' defaults.  Sets phase, count_pass and origin from `like` (0:
 * forward, none).  Shapes are not inferred: call shape_infer when attributes
 * are set.  Returned pointer is valid until the next addition. */
Node *node_new(Graph *, Op, int nin, const ValId *in, int nout, NodeId like);
/* Append a copy of a node of another graph, whose origins this one has, too;
 * map: by value of that graph, which value of this one it is.  Sets their
 * definitions. */
Node *node_copy(Graph *, const Node *, const ValId *map);
uint32_t origin_new(Graph *, const char *name, const char *op);
/* a |= b, sorted and without doubles. */
void node_add_origin(Graph *, Node *, const uint32_t *origin, int n);

/* Under which name (NULL: none) and type messages speak of a node: ONNX's. */
const char *node_label(const Graph *, const Node *);
const char *node_type(const Graph *, const Node *);
/* An error about a node; false. */
bool node_error(const Graph *, Diag *, const Node *, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Whether the graph or the ONNX file has that name for a value, or one that
 * the glob matches. */
bool val_is_named(const Val *, const char *name);
bool val_matches(const Val *, const char *glob);

/* Replace every use of `from` as an input by `to` in nodes first..last-1. */
void val_replace(Graph *, ValId from, ValId to, NodeId first, NodeId last);
/* Rebuild the node array as listed, a topological order: nodes' ids change.
 * Those that are not listed vanish; their outputs stay as dead values. */
void graph_reorder(Graph *, const NodeId *order, uint32_t n);
/* Delete nodes none of whose outputs is used (graph outputs, final gradients'
 * updates and nodes with side effects are uses), and unused values other than
 * inputs, parameters and buffers lose their contents. */
void graph_dce(Graph *);

/* Consumers of values: side table, allocated in the arena given. */
struct uses {
	uint32_t *first;                /* [nval + 1] into node */
	NodeId *node;                   /* consumers in order of execution */
};
struct uses graph_uses(const Graph *, Arena *);
/* The places in `node` of v's consumers. */
#define FOR_USES(i, uses, v) \
	for (uint32_t i = (uses)->first[v]; i < (uses)->first[(v) + 1]; i++)

/* --halves: the half of an input's samples that n takes, 1 or 2; 0: none. */
int graph_half_of(const Graph *, const Node *n);

/* ---- value contents ---- */

int64_t val_nelem(const Val *);                 /* -1: unknown */
int64_t val_data_bytes(const Val *);            /* elements * size, unpadded */
/* The shape; of blocks of quantised weights that of the weights. */
Shape val_weights_shape(const Val *);
static inline bool
val_is_blocks(const Val *v)
{
	return dtype_is_blocks(v->dt);
}
/* A frozen parameter of fewer bits than float32, or what ranks have gathered of
 * one: matmul takes it as if it had the type of the left side. */
static inline bool
val_is_stored(const Val *v)
{
	return val_is_blocks(v)
	       || (v->kind == V_PARAM && v->frozen && dtype_is_half(v->dt));
}
/* Whether matmul(a, b) takes a b that is stored so. */
static inline bool
val_takes_stored(const Val *a, const Val *b)
{
	return val_is_stored(b) && (val_is_blocks(b) || a->dt == DT_F32);
}
bool val_is_const(const Val *);                 /* V_CONST with contents */
/* Element i of a constant, converted; integers exactly. */
int64_t val_int(const Val *, int64_t i);
double val_float(const Val *, int64_t i);
/* True and *x set if v is a constant all of whose elements are equal. */
bool val_splat(const Graph *, ValId v, double *x);
ValId val_owner(const Graph *, ValId);          /* itself unless a view */
bool val_contiguous(const Val *);               /* laid out row-major, dense */
/* Lowest and highest element that a value, not empty, has in its owner; false
 * if they overflow. */
bool val_reach(const Val *, int64_t *first, int64_t *last);

#endif
