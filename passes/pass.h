/* The arguments and results of a pass.
 *
 * in      what the user asked for (struct options), where to report, memory
 * out     results that outlive a pass (struct Pass)
 * unaware of any pass: passes.h has the table of them
 */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "runtime/support/glob.h"
#include "ir/base/watch.h"
#include "ir/ir.h"
#include "ir/plan.h"
#include "ir/target.h"

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

/* --lora GLOB=RANK:ALPHA. */
struct lora_wish {
	const char *glob;
	int64_t rank;
	double alpha;
};

/* Low-rank weights A and B beside a weight, which merged is W + scale B A; of
 * that what is turned, [in, out], takes the transpose. */
struct adapter {
	ValId weight, a, b;
	double scale;
	bool turned;
};

/* --dp: any number of replicas; the same if the batch can be split; none
 * at all, but what would be added up over them, or over micro-batches. */
enum { DP_ANY = -1, DP_TRY = -2, DP_SUMS = -3, DP_MICRO = -4 };
enum remat_mode { REMAT_AUTO, REMAT_NONE, REMAT_FULL, REMAT_SELECTIVE,
                  REMAT_EVERY };
enum optimizer {
	OPT_NONE,
#define OPTIMIZER(id, name, op, coupled, state0, state1, uses, defaults) \
	OPT_##id,
#include "runtime/support/optimizers.h"
};
enum tri { TRI_AUTO, TRI_ON, TRI_OFF };

/* What the user asked for; filled by frontend/driver/opts.c, read by passes. */
struct options {
	int ndim;
	struct dim_binding *dim;
	int nshape;
	struct shape_binding *shape;
	int nwish, nparam, nnodecay;
	const struct glob_wish *wish;   /* --train and --freeze, in order */
	const char **param;             /* names */
	const char **nodecay;
	int nlora;
	struct lora_wish *lora;
	bool untie;                     /* clone accidental ties (default) */
	const char *loss;               /* output name, "ce[:X]", "mse[:X]" */
	const char **output;            /* further outputs to keep (globs) */
	int noutput;
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
	int64_t pp, interleave, microbatches;   /* accounting only; 0: none */
	int64_t tp;                     /* ranks of the tensor-parallel group;
	                                 * 0: none */
	int64_t dp;                     /* replicas; DP_ANY, DP_TRY; 0: one
	                                 * alone */
	bool zero;                      /* replicas shard the optimizer
	                                 * states */
	bool sp;                        /* ranks shard rows between products */
	int nshard;
	struct shard_constraint *shard;
	uint32_t strategy_seed;         /* not 0: strategies have random costs,
	                                 * for tests */
	bool strategy_per_node;         /* equal layers are not counted once,
	                                 * for tests */
	const char *explain;            /* value to explain; NULL: none */
	double step_time;               /* measured seconds; 0: none */
	enum tri update_in_backward;
	bool forward_only;
	bool eval;                      /* the loss of a data set is wanted, */
	bool evaluator;                 /* and beside training a program that
	                                 * evaluates; see forward.h */
	int64_t budget_bytes;           /* -1: none */
	double budget_pct;              /* > 0: of the keep-everything total */
	enum remat_mode remat;
	int64_t remat_every;            /* k of every=K */
	int nkeep, nrecompute;
	const char **keep, **recompute; /* globs */
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
	bool slim;                      /* neither code nor reports follow: no
	                                 * reference */
};

/* Cost of one node, filled by passes/cost/cost.c. */
struct cost {
	double flops, bytes, sec;
	double product;                 /* FLOPs of matrix products alone */
	double sent;                    /* bytes sent to other ranks */
};

/* What the graph of another batch size tells of this one; see other_batch.c. */
struct other_batch {
	bool is_other;                  /* this is the graph of the other batch
	                                 * size */
	bool agrees;                    /* both graphs are partitioned alike */
	const char *why;                /* why they are not; NULL: unknown */
	const struct output_rows {
		const char *name;       /* of an output that evaluates */
		enum sample_rows rows;
		int batch;              /* 1 + dim of its samples; 0; -1:
		                         * unknown */
	} *row;                         /* ends with a NULL; NULL: unknown */
};

typedef struct Pass {
	Diag *diag;
	const struct options *opt;
	const struct target *target;    /* the machine; never NULL */
	Arena *scratch;                /* reset by the runner after each pass */
	Arena *keep;                    /* lives as long as the compilation */
	/* NULL, or what the pass adds to its dump, and for whom, in scratch */
	void (*notes)(const void *noted, FILE *);
	const void *noted;
	/* results that outlive a pass */
	const char *added;              /* what --loss added to the graph; NULL:
	                                 * nothing */
	Graph *reference;               /* keep-everything schedule, placed;
	                                 * NULL if options are slim */
	Plan *plan;                     /* plan of the final graph */
	Plan *reference_plan;
	struct other_batch other_batch;
	Graph *forward;                 /* the graph that evaluates, with its
	                                 * loss and all outputs; NULL: opt->eval
	                                 * is off */
	struct loss_formula loss_formula; /* loss of a data set */
	struct one_percent *one_percent; /* NULL: not wanted */
	int nadapter;
	struct adapter *adapter;
	int nalternative;             /* presets beside auto, for --dump=plan */
	struct alternative *alternative;
	int64_t baseline_peak;          /* peak bytes of keep-everything; -1:
	                                 * unknown */
	int64_t minimum_peak;           /* smallest budget that works; -1:
	                                 * unknown */
	int64_t budget;                 /* bytes, once known; -1: none */
	double bound_sec;               /* no plan of bound_class is faster */
	const char *bound_class;        /* NULL: no bound was computed */
	struct pareto_front *pareto_front; /* time against budget; NULL: not
	                                    * wanted */
	double solver_sec;              /* time spent planning */
	double recompute_sec;           /* seconds of recomputation in the
	                                 * chosen plan */
	/* how updates run; see run.c */
	bool low_memory;                /* the low-memory variant, for small
	                                 * budgets */
	bool updates_in_backward;       /* the variant with updates in
	                                 * backward */
	bool allow_refusal;             /* too small a budget is no error yet */
	bool refused;                   /* the budget was too small */
	Arena *retired;                 /* outlives the graph; NULL: none */
	double strategy_sec;            /* cost of the sharding strategy */
	int nrunner_up;                 /* values that --explain names */
	struct runner_up *runner_up;
	const int32_t *layer;           /* by value of the reference: number of
	                                 * its layer from 0; -1: none */
	FILE *progress;                 /* NULL: silent */
	struct watch *watch;            /* when to leave off; NULL: never */
	bool debug;
} Pass;

/* A preset or the automatic choice, as it would turn out. */
struct alternative {
	const char *name;
	int64_t peak;                   /* bytes; -1: not feasible */
	double step_sec, recompute_sec;
};

/* The cost of another placement of a value over ranks. */
struct runner_up {
	const char *value;
	double sec;                     /* seconds of the best strategy with
	                                 * this placement; -1: there is none */
	Placement placement;            /* placement of the value in that
	                                 * strategy */
};

typedef bool PassFn(Pass *, Graph *);

#endif
