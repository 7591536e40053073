/* The plan: one training step as tensors and a schedule, exactly what --json
 * writes (rules: docs/plan-file.md).  Built from the final
 * graph by passes/account, checked by passes/replay, read by codegen.
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

/* The loss of a data set by what a graph that evaluates says of its batches, in
 * postfix form. */
struct formula_term {
	enum formula_op op;
	double number;                  /* FORMULA_NUMBER */
	const char *output;             /* other operands: a scalar; NULL: the
	                                 * loss */
};

struct loss_formula {
	int n;                          /* 0: it depends on the batch size */
	struct formula_term term[FORMULA_TERMS];
	const char *by_batch;           /* why then */
	const char *no_program;         /* why a library holds none that
	                                 * evaluates; NULL: it does */
};

typedef enum {
	K_PARAM, K_BUFFER, K_CONSTANT, K_INPUT, K_GRAD, K_STATE, K_ACTIVATION,
	K_ADJOINT, K_RECOMPUTED, K_WORKSPACE, K_COUNT
} TensorKind;

typedef enum { D_NULL, D_KEEP, D_RECOMPUTE, D_FREE } Decision;

struct plan_tensor {
	const char *name, *onnx;        /* onnx may be NULL */
	ValId val;                     /* 0: workspace, or no graph behind it */
	int64_t node;                   /* `ckc plan` only, else -1 */
	TensorKind kind;
	DType dt;                       /* DT_NONE: null */
	Shape shape;
	int64_t bytes;
	bool resident;
	int64_t offset;                 /* arena; -1: null */
	int64_t of, alias_of;           /* whose copy, in whose bytes; -1 */
	int64_t low_precision_of;       /* what it holds in 16 bits; -1 */
	int64_t alias_offset;           /* bytes from there */
	bool output;
	Decision decision;
	bool saved;                     /* alive from forward into backward */
	int64_t first, last;            /* steps that its place is taken */
	Placement placement;            /* how the whole lies on ranks */
	const struct replica_shard *shard; /* as Val.shard */
};

struct plan_inlined {
	int64_t of;
	double flops, seconds;
};

struct plan_step {
	const char *op;
	NodeId gnode;                   /* 0: no graph behind it */
	int64_t node;                   /* `ckc plan` only, else -1 */
	int nonnx;
	const char **onnx;
	Phase phase;
	int64_t of;                     /* -1: first run */
	int64_t wait;                   /* step behind which a transfer that
	                                 * only begins here has ended; 0 */
	bool view;
	int ninlined;
	struct plan_inlined *inlined;
	int nread, nwrite;
	int64_t *read, *write;          /* tensor ids; write -1: null */
	int64_t workspace;
	double flops, bytes, seconds;
	double product;                 /* of the flops, those of products */
	double sent;                    /* bytes that a rank sends */
};

struct plan_summary {
	int64_t budget;                 /* -1: null */
	int64_t baseline_peak;          /* -1: null */
	int64_t alignment;
	int64_t peak, resident, arena;  /* bytes; peak is the sum */
	int64_t live_bound;             /* of the arena: most alive at once */
	int64_t param, buffer, constant, input, grad, optimizer, workspace;
	int64_t saved;                  /* bytes alive behind forward */
	int64_t nlow_precision, low_precision_bytes; /* kept in 16 bits: values,
	                                              * bytes */
	double forward_sec, backward_sec, update_sec, recompute_sec, step_sec;
	double recompute_flops, step_flops;
	double sent, sent_sec;          /* between ranks: bytes, of a step */
	double hidden_sec;              /* of them, while others compute */
	double bound_sec;               /* no plan of the class is faster */
	const char *bound_class;
	double overhead, gap;           /* recompute, and what is above the
	                                 * bound, as shares of a step that
	                                 * recomputes nothing */
	double solver_sec;
};

typedef struct Plan {
	int64_t ranks;                  /* that this is one rank's plan of; 0 */
	bool from_graph;                /* workload: graph instead of model */
	bool replayed;                  /* all that it claims was found true:
	                                 * no file and no code without that */
	const char *model;
	int nflag;
	const char *const *flag;
	const char *device;             /* JSON text or NULL */
	const char *memory;             /* JSON text or NULL */
	const char *curve;              /* members of a JSON object or NULL */
	struct plan_summary sum;
	struct plan_tensor *tensor;
	int64_t ntensor;
	struct plan_step *step;
	int64_t nstep;
} Plan;

/* The step behind which step i's results are there. */
static inline int64_t
plan_end(const Plan *p, int64_t i)
{
	return p->step[i].wait ? p->step[i].wait : i;
}

#endif
