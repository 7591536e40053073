/* The pipeline and what its passes share. */
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "ir/glob.h"
#include "ir/ir.h"
#include "ir/plan.h"
#include "passes/watch.h"

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

enum remat_mode { REMAT_AUTO, REMAT_NONE, REMAT_FULL, REMAT_SELECTIVE,
                  REMAT_EVERY };
enum optimizer { OPT_NONE, OPT_SGD, OPT_SGDM, OPT_ADAM, OPT_ADAMW, OPT_LION,
                 OPT_ADAFACTOR };
enum tri { TRI_AUTO, TRI_ON, TRI_OFF };

/* What the user asked for; filled by frontend/opts.c, read by passes. */
struct options {
	int ndim;
	struct dim_binding *dim;
	int nshape;
	struct shape_binding *shape;
	int nwish, nparam, nnodecay;
	const struct glob_wish *wish;   /* --train and --freeze, in order */
	const char **param;             /* names */
	const char **nodecay;
	bool untie;                     /* clone accidental ties (default) */
	const char *loss;               /* output name, "ce[:X]", "mse[:X]" */
	const char **output;            /* further outputs to keep (globs) */
	int noutput;
	enum optimizer optimizer;       /* default adamw */
	int64_t grad_accum;             /* default 1 */
	bool dropout;                   /* on: as the graph says */
	bool fused_attention;           /* default true */
	DType dtype;                    /* float type of the step; DT_NONE: as
	                                 * the file has it */
	bool store_masks;               /* dropout masks are values */
	const char *device;             /* profile; NULL: the default */
	int64_t pp, interleave, microbatches;   /* accounting only; 0: none */
	int64_t tp;                     /* the same */
	bool sp;
	double step_time;               /* measured seconds; 0: none */
	enum tri update_in_backward;
	bool forward_only;
	int64_t budget_bytes;           /* -1: none */
	double budget_pct;              /* > 0: of the keep-everything total */
	enum remat_mode remat;
	int64_t remat_every;            /* k of every=K */
	int nkeep, nrecompute;
	const char **keep, **recompute; /* globs */
	double gap_pct, plan_sec;
	bool curve;                     /* time against budget */
	int threads;                    /* the most that the library will use */
	int64_t fold_limit;             /* bytes of one folded constant */
	bool stats;
	bool account;                   /* of memory, see cheap.c */
	bool compare;                   /* list presets beside the choice */
	bool slim;                      /* neither code nor reports follow: no
	                                 * reference */
};

/* Cost of one node, filled by passes/cost.c. */
struct cost {
	double flops, bytes, sec;
	double product;                 /* of the flops, those of products */
};

typedef struct Pass {
	Diag *diag;
	const struct options *opt;
	Arena *scratch;                /* reset by the runner after each pass */
	Arena *keep;                    /* lives as long as the compilation */
	bool changed;
	/* results that outlive a pass */
	const char *added;              /* what --loss gave the graph; NULL:
	                                 * nothing */
	Graph *reference;               /* keep-everything schedule, placed;
	                                 * NULL if options are slim */
	Plan *plan;                     /* of the final graph */
	Plan *reference_plan;
	struct cheap *cheap;            /* NULL: not asked for */
	int nalternative;             /* presets beside auto, for --dump=plan */
	struct alternative *alternative;
	int64_t baseline_peak;          /* keep-everything total; -1 unknown */
	int64_t minimum_peak;           /* smallest budget that works; -1 */
	int64_t budget;                 /* in bytes, once known; -1: none */
	double bound_sec;               /* no plan of bound_class is faster */
	const char *bound_class;        /* NULL: no bound was computed */
	struct frontier *frontier;      /* time against budget; NULL: not asked
	                                 * for */
	double solver_sec;              /* time spent planning */
	double recompute_sec;           /* of the chosen plan, predicted */
	/* how updates run; see run.c */
	bool early;                     /* in backward */
	bool lenient;                   /* too small a budget is no error yet */
	bool refused;                   /* but was found */
	Arena *retired;                 /* outlives the graph; NULL: none */
	const int32_t *layer;           /* by value of the reference: number of
	                                 * its layer from 0; -1: none */
	FILE *progress;                 /* NULL: silent */
	struct watch *watch;              /* when to leave off; NULL: never */
	bool debug;
} Pass;

/* A preset or the automatic choice, as it would turn out. */
struct alternative {
	const char *name;
	int64_t peak;                   /* -1: not feasible */
	double step_sec, recompute_sec;
};

typedef bool PassFn(Pass *, Graph *);

struct pass_info {
	const char *name;
	PassFn *run;
	uint32_t needs, gives, breaks;
	const char *help;
};

/* The pipeline in order; the last entry has name NULL. */
extern const struct pass_info pass_table[];

PassFn pass_bind, pass_fold, pass_canon, pass_loss, pass_precision,
       pass_autodiff, pass_optim, pass_fuse, pass_layout, pass_plan,
       pass_inplace, pass_place, pass_replay;

/* ---- run.c ---- */

struct dump_request {
	const char *passes;             /* "a,b" or "all"; NULL: none */
	const char *dir;                /* NN-pass.ck go here; NULL: stdout */
};

/* Run the passes named in `only` ("a,b" in that order, or "none"), or the
 * whole table if NULL, up to and including stop_after (NULL: to the end).
 * False after a diagnostic, which "interrupted" is one of. */
bool pass_run(Pass *, Graph *, const char *only, const char *stop_after,
              const struct dump_request *);

/* ---- shared helpers ---- */

/* cost.c: cost of one node under the device profile. */
struct cost node_cost(const Graph *, const Node *);
/* Of a loop whose work another one does again without storing it; part of
 * node_cost of that one. */
struct cost inlined_cost(const Graph *, const Node *first);

/* optim.c: puts every update behind the last node that may need what it
 * overwrites, when a plan runs forward nodes again. */
void optim_settle(Graph *, Arena *scratch);

/* autodiff.c's table of gradient rules and its helpers: passes/grad.h.
 * report.c: */
Plan *plan_build(Pass *, const Graph *);        /* into p->keep */
/* What is said of a lower bound beside a plan of `step` seconds, `base` of
 * which any plan takes: should the bound be wrong, the plan is not, and goes
 * without. */
double bound_shown(double bound, double base, double step);
/* False, and nothing is written: the plan was not replayed. */
bool plan_write_json(const Plan *, FILE *);
/* "12.6 MB": three digits and a unit. */
const char *report_bytes(char buf[24], double);
void plan_print_table(const Pass *, const Plan *, FILE *);   /* --dump=plan */
void plan_print_memory(const Pass *, const Plan *, FILE *);  /* --dump=memory */
bool plan_explain(const Pass *, const Plan *, const char *value, FILE *);
/* replay.c: shares no code with the planner; reports every fault. */
bool plan_replay(Plan *, Diag *);

#endif
