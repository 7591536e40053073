/* What the user asked for, as the driver reads it from the command line. */
#ifndef PASSES_OPTIONS_H
#define PASSES_OPTIONS_H

#include "runtime/support/glob.h"
#include "ir/ir.h"

struct dim_binding {
	const char *name;       /* dim's name, or INPUT.AXIS */
	int64_t size;
	bool used;
};

struct shape_binding {
	const char *input;
	Shape shape;
	bool used;
};

/* --shard: the placement of values that match; axis of PLACEMENT_SHARD. */
struct shard_constraint {
	const char *glob;
	PlacementKind kind;
	int axis;
};

/* --precision GLOB=TYPE or op:GLOB=TYPE; the last one that fits counts. */
struct precision_wish {
	const char *glob;
	bool op;
	DType dt;
};

/* --frozen-dtype [GLOB=]TYPE. */
struct type_wish {
	const char *glob;
	DType dt;
};

/* --lora GLOB=RANK:ALPHA. */
struct lora_wish {
	const char *glob;
	int64_t rank;
	double alpha;
};

/* --dp: any number of replicas; the same if the batch can be split; none
 * at all, but what would be added up over them, or over micro-batches. */
enum { DP_ANY = -1, DP_TRY = -2, DP_SUMS = -3, DP_MICRO = -4 };
/* --zero auto: the stage that choose_zero.h finds. */
enum { ZERO_AUTO = -1 };
enum remat_mode { REMAT_AUTO, REMAT_NONE, REMAT_FULL, REMAT_SELECTIVE,
                  REMAT_EVERY };
enum optimizer {
	OPT_NONE,
#define OPTIMIZER(id, name, op, coupled, state0, state1, uses, defaults) \
	OPT_##id,
#include "runtime/support/optimizers.h"
};
enum tri { TRI_AUTO, TRI_ON, TRI_OFF };
enum offload_choice { OFFLOAD_OFF, OFFLOAD_STATE, OFFLOAD_AUTO };
enum cp_attention { EXCHANGE_AUTO, EXCHANGE_KEYS, EXCHANGE_HEADS };
enum halves_choice { SPLIT_OFF, SPLIT_ON, SPLIT_AUTO };

/* What the user asked for; filled by frontend/driver/opts.c, read by passes. */
struct options {
	int ndim;
	struct dim_binding *dim;
	const char *batch_dim;          /* the name in --dim NAME=?; NULL */
	int nshape;
	struct shape_binding *shape;
	int nwish;
	const struct glob_wish *wish;   /* --train and --freeze, in order */
	struct name_list param;
	struct name_list nodecay;
	bool ema;                       /* keep averages of parameters */
	int nlora;
	struct lora_wish *lora;
	bool untie;                     /* clone accidental ties (default) */
	const char *loss;               /* output name, "ce[:X]", "mse[:X]" */
	struct name_list output;        /* further outputs to keep */
	enum optimizer optimizer;       /* default adamw */
	int64_t grad_accum;             /* default 1 */
	bool dropout;                   /* on: as the graph says */
	bool fused_attention;           /* default true */
	bool epilogues;                 /* products end with fused ops
	                                 * (default) */
	DType dtype;                    /* float type of the step; DT_NONE: as
	                                 * the file has it */
	int nprecision;
	struct precision_wish *precision;
	bool masters;                   /* parameters are float32 then, too
	                                 * (default) */
	int nfrozen_dtype;
	struct type_wish *frozen_dtype; /* types that frozen parameters are
	                                 * stored in */
	enum tri resident_copies;       /* updates write 16-bit copies of
	                                 * parameters */
	DType grad_dtype;               /* type of all gradients: DT_F32;
	                                 * DT_NONE: as they are computed */
	DType state_dtype;              /* type of optimizer states; DT_NONE:
	                                 * f32 */
	DType save_dtype;               /* 16-bit type of values saved for
	                                 * backward; DT_NONE: saved as
	                                 * computed */
	bool store_masks;               /* dropout masks are values */
	const char *device;             /* device profile; NULL: the default */
	int64_t pp;                     /* stages of a pipeline; 0: none */
	int64_t interleave, microbatches; /* of its account; 0: none */
	struct name_list stage;         /* values after which it is cut; none:
	                                 * stages take equally long */
	bool stages;                    /* the graph is cut into stages; else
	                                 * they are an account of memory */
	int64_t chunks;                 /* stages of each rank of the pipeline
	                                 * (interleaved schedule); 0: one */
	bool zero_bubble;               /* schedule zb-h1 */
	int64_t tp;                     /* ranks of the tensor-parallel group;
	                                 * 0: none */
	int64_t dp;                     /* replicas; DP_ANY, DP_TRY; 0: one
	                                 * alone */
	int64_t zero;                   /* ZeRO stage: replicas shard optimizer
	                                 * states (1), gradients of
	                                 * micro-batches (2), parameters (3) */
	int64_t zero_group;             /* ... of so many replicas side by side;
	                                 * 0: of all */
	int64_t cp;                     /* replicas side by side that share the
	                                 * positions of their samples; 0: each
	                                 * has all */
	const char *cp_input;           /* an input with positions; NULL: by the
	                                 * names of dims, */
	int64_t cp_axis;                /* along this dim */
	enum cp_attention cp_attention; /* what they exchange for attention */
	int64_t ep;                     /* replicas side by side that share the
	                                 * experts; 0: each has all */
	double expert_capacity;         /* rows that a replica has room for, as
	                                 * a share of equal ones; 0: for all */
	bool expert_drop;               /* rows beyond it give zeros */
	bool sp;                        /* ranks shard rows between products */
	int nshard;
	struct shard_constraint *shard;
	uint32_t strategy_seed;         /* not 0: strategies have random costs,
	                                 * for tests */
	bool strategy_draft;            /* give up unless the best strategies
	                                 * are found in little work */
	bool strategy_per_node;         /* equal layers are not counted once,
	                                 * for tests */
	const char *explain;            /* value to explain; NULL: none */
	double step_time;               /* measured seconds; 0: none */
	enum tri update_in_backward;
	enum offload_choice offload;    /* what lies in host memory between its
	                                 * uses */
	int64_t host_memory;            /* bytes of it; 0: no limit */
	struct name_list offload_values; /* values that are offloaded anyhow */
	enum halves_choice halves;      /* a batch runs as two chains */
	bool forward_only;
	bool eval;                      /* the loss of a data set is wanted, */
	bool evaluator;                 /* and beside training a program that
	                                 * evaluates; see
	                                 * evaluation_program.h */
	int64_t budget_bytes;           /* -1: none */
	double budget_pct;              /* > 0: of the keep-everything total */
	enum remat_mode remat;
	int64_t remat_every;            /* k of every=K */
	struct name_list keep, recompute;
	double gap_pct, plan_sec;
	bool curve;                     /* plan for all budgets: time against
	                                 * budget */
	int threads;                    /* most threads that the library will
	                                 * use */
	int64_t fold_limit;             /* bytes of one folded constant */
	bool stats;
	bool quiet;                     /* no notes */
	bool account;                   /* account of memory, see
	                                 * one_percent.c */
	bool compare;                   /* list presets beside the chosen
	                                 * plan */
	bool candidate;                 /* one of several that are tried: a
	                                 * refusal suggests no other options */
	bool brief;                     /* a plan in little time, as those of
	                                 * large graphs are made */
	bool slim;                      /* neither code nor reports follow: no
	                                 * reference */
};

#endif
