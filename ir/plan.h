/* The plan: one training step as tensors and a schedule, exactly what --json
 * writes (rules: docs/plan-file.md).  Built from the final graph by
 * passes/account, checked by passes/replay, read by codegen.
 *
 * Tensors are the laid-out values that the schedule touches, plus one
 * workspace tensor per step that has scratch.  Bytes include the padding to
 * `alignment`.  Ids are indices into tensor[] and step[]; times are seconds as
 * the device's costs predict them.  Everything lies in the arena that it was
 * built in, but for the names of arguments and of the model, which are
 * borrowed.
 */
#ifndef IR_PLAN_H
#define IR_PLAN_H

#include "ir/ir.h"
#include "runtime/support/loss_formula.h"

/* Names of what ckc adds to the outputs of a graph that evaluates, sums over
 * labels of classes: how many count, how many are those of the largest scores,
 * and their cross entropy. */
#define EVAL_COUNTED "eval.counted"
#define EVAL_CORRECT "eval.correct"
#define EVAL_ENTROPY "eval.entropy"
#define EVAL_TERM "eval.term"           /* of struct loss_formula */

/* The loss of a data set, computed from the outputs that a graph for evaluation
 * has for each batch: a formula in postfix form. */
struct formula_term {
	enum formula_op op;
	double number;                  /* operand of FORMULA_NUMBER */
	const char *output;             /* other operands: name of a scalar
	                                 * output; NULL: the loss */
};

struct loss_formula {
	int n;                          /* terms; 0: the loss depends on the
	                                 * batch size */
	struct formula_term term[FORMULA_TERMS];
	const char *by_batch;           /* why it depends on the batch size */
	const char *no_program;         /* why the library has no evaluation
	                                 * program; NULL: it has one */
};

typedef enum {
	K_PARAM, K_BUFFER, K_CONSTANT, K_INPUT, K_GRAD, K_STATE, K_ACTIVATION,
	K_ADJOINT, K_RECOMPUTED, K_WORKSPACE,
	K_TRANSFERRED,                  /* copy by a transfer between device and
	                                 * host memory */
	K_COUNT
} TensorKind;

typedef enum { D_NULL, D_KEEP, D_RECOMPUTE, D_FREE, D_OFFLOAD } Decision;

struct plan_tensor {
	const char *name, *onnx;        /* tensor's name; ONNX value, or NULL */
	ValId val;                      /* value of the graph; 0: a workspace,
	                                 * or there is no graph */
	int64_t node;                   /* `ckc plan` only, else -1 */
	TensorKind kind;
	DType dt;                       /* DT_NONE: null in JSON */
	Shape shape;
	int64_t bytes;
	bool resident;
	bool host;                      /* in host memory */
	int64_t offset;                 /* bytes from the arena's begin; -1:
	                                 * null */
	int64_t of, alias_of;           /* tensor that this clone repeats;
	                                 * tensor in whose bytes it lies; -1 */
	int64_t copy_of;                /* K_TRANSFERRED: see plan_copy_of */
	int64_t low_precision_of;       /* tensor that it holds in 16 bits;
	                                 * -1 */
	int64_t alias_offset;           /* bytes from the begin of alias_of */
	bool output;
	Decision decision;
	bool saved;                     /* alive from forward into backward */
	int64_t first, last;            /* steps between which its bytes are
	                                 * taken */
	Placement placement;            /* how the whole value lies on ranks */
	const struct replica_shard *shard; /* as Val.shard */
};

/* Steps compute one after the other.  Transfers go over the links of a node,
 * over the network between nodes, or from and to host memory. */
enum lane { LANE_COMPUTE, LANE_LINK, LANE_NETWORK, LANE_FETCH, LANE_OFFLOAD,
            LANES };

/* Whether it connects ranks. */
static inline bool
lane_is_link(enum lane lane)
{
	return lane == LANE_LINK || lane == LANE_NETWORK;
}

static inline bool
lane_is_host(enum lane lane)
{
	return lane == LANE_FETCH || lane == LANE_OFFLOAD;
}

struct plan_inlined {
	int64_t of;
	double flops, seconds;
};

struct plan_step {
	const char *op;
	NodeId gnode;                   /* node of the graph; 0: there is no
	                                 * graph */
	int64_t node;                   /* `ckc plan` only, else -1 */
	int nonnx;
	const char **onnx;
	Phase phase;
	int64_t of;                     /* -1: first run */
	int64_t wait;                   /* step after which a transfer that this
	                                 * step only begins has ended; 0 */
	bool view;
	int ninlined;
	struct plan_inlined *inlined;
	int nread, nwrite;
	int64_t *read, *write;          /* tensor ids; write -1: an output that
	                                 * is not wanted */
	int64_t workspace;
	double flops, bytes, seconds;
	double lane_sec;                /* seconds on its lane */
	double product;                 /* FLOPs of matrix products alone */
	double sent;                    /* bytes that a transfer moves */
	enum lane lane;                 /* where; LANE_COMPUTE: it moves none */
};

struct plan_summary {
	int64_t budget;                 /* bytes; -1: null */
	int64_t baseline_peak;          /* bytes of keep-everything; -1: null */
	int64_t alignment;
	int64_t peak, resident, arena;  /* bytes; peak is the sum of the
	                                 * others */
	int64_t host;                   /* bytes of host memory, not part of
	                                 * these */
	int64_t live_bound;             /* most bytes of the arena alive at one
	                                 * step */
	int64_t param, buffer, constant, input, grad, optimizer, workspace;
	int64_t saved;                  /* bytes alive after forward */
	/* saved values kept in 16 bits */
	int64_t nlow_precision, low_precision_bytes;
	double forward_sec, backward_sec, weight_sec, update_sec;
	double recompute_sec, step_sec;
	double recompute_flops, step_flops;
	double sent, sent_sec;          /* bytes sent between ranks; seconds of
	                                 * a step that they take */
	double fetched, offloaded;      /* bytes from and to host memory; */
	double host_sec;                /* seconds of a step that they take */
	double exposed_sec;             /* seconds of a step in which transfers
	                                 * run beside computation */
	double bound_sec;               /* no plan of bound_class has a faster
	                                 * step */
	const char *bound_class;
	double overhead, gap;           /* seconds of recomputation, and seconds
	                                 * above the bound, as shares of a step
	                                 * that recomputes nothing */
	double solver_sec;
};

typedef struct Plan {
	int64_t slots, slot_bytes;      /* micro-batches in flight; what each
	                                 * saves between forward and backward.
	                                 * Of several, their slots come first in
	                                 * the arena, and offsets below
	                                 * slot_bytes are those of the first */
	int64_t other_slots;            /* bytes of the slots in flight under
	                                 * the stage's other plan */
	/* With turns of weights slots follow of what lives from forward to
	 * there, then of what lives from backward to there; offsets are those
	 * of the first of each.  Where there is one slot alone, what has it may
	 * lie anywhere. */
	int64_t through_slots, through_bytes;
	int64_t weight_slots, weight_bytes;     /* 0: no such turns */
	int64_t ranks;                  /* this is the plan of one of so many
	                                 * ranks; 0: of one alone */
	bool from_graph;                /* made by `ckc plan` of a standalone
	                                 * graph */
	bool replayed;                  /* every claim of the plan was found
	                                 * true: without that, no file and no
	                                 * code is written */
	const struct device_profile *device;    /* whose seconds these are */
	struct plan_summary sum;
	struct plan_tensor *tensor;
	int64_t ntensor;
	struct plan_step *step;
	int64_t nstep;
} Plan;

/* A stage of a pipeline runs a list of turns.  forward: its nodes of phase
 * forward, up to graph_boundary; backward: from there to the first one of phase
 * update, or to graph_weight_boundary if the stage has turns of weights;
 * weight: from there on; update: the rest.  Count passes run before the first
 * turn, on each stage alone. */
enum turn_kind { TURN_FORWARD, TURN_BACKWARD, TURN_WEIGHT, TURN_UPDATE,
                 TURN_KINDS };

struct turn {
	enum turn_kind kind;
	uint16_t slot;                  /* where backward finds what forward
	                                 * saved */
	uint32_t micro;                 /* micro-batch; of an update, and its
	                                 * slot: the last one */
	uint32_t order;                 /* its number among the turns of all
	                                 * stages of its rank */
};

/* Bytes of the slots of what lives from forward to backward alone; 0: it lies
 * anywhere. */
static inline int64_t
plan_first_pool_bytes(const Plan *p)
{
	return p->slots > 1 || p->other_slots > 0
		? p->slots * p->slot_bytes + p->other_slots : 0;
}

/* Bytes of all slots. */
static inline int64_t
plan_slots_bytes(const Plan *p)
{
	return plan_first_pool_bytes(p)
		+ (p->through_slots > 1
		   ? p->through_slots * p->through_bytes : 0)
		+ (p->weight_slots > 1 ? p->weight_slots * p->weight_bytes : 0);
}

/* The activation that a transfer has copied here; -1. */
static inline int64_t
plan_copy_of(const struct plan_tensor *t)
{
	return t->kind == K_TRANSFERRED ? t->copy_of : -1;
}

/* The tensor that a transfer sends; it receives write[0]. */
static inline int64_t
plan_sent(const struct plan_step *s)
{
	return s->read[s->nread - 1];
}

/* The step after which the results of step i are there. */
static inline int64_t
plan_end(const Plan *p, int64_t i)
{
	return p->step[i].wait ? p->step[i].wait : i;
}

/* Seconds for which a step waits for transfers of host memory, if those between
 * ranks count in full. */
static inline double
plan_waits(const struct plan_summary *s)
{
	double sec = s->exposed_sec - (s->step_sec - s->host_sec);

	return s->host_sec > 0 && sec > 0 ? sec : 0;
}

#endif
