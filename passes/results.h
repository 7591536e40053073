/* What passes leave behind beside the graph: for later passes, reports and
 * code.
 */
#ifndef PASSES_RESULTS_H
#define PASSES_RESULTS_H

#include <math.h>

#include "ir/ir.h"
#include "ir/plan.h"

/* Low-rank weights A and B beside a weight, which merged is W + scale B A; of
 * that what is turned, [in, out], takes the transpose. */
struct adapter {
	ValId weight, a, b;
	double scale;
	bool turned;
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

/* Found in the model, and made of it. */
struct results {
	const char *added;              /* what --loss added to the graph; NULL:
	                                 * nothing */
	struct other_batch other_batch;
	Graph *forward;                 /* the graph that evaluates, with its
	                                 * loss and all outputs; NULL: opt->eval
	                                 * is off */
	struct loss_formula loss_formula; /* loss of a data set */
	int nadapter;
	struct adapter *adapter;
	double strategy_sec;            /* cost of the sharding strategy */
	int nrunner_up;                 /* values that --explain names */
	struct runner_up *runner_up;
};

/* Two plans for the slots of a stage. */
struct slot_pair {
	int slots;                      /* that have the first one, which is
	                                 * faster; the others have the second */
	int64_t slot_bytes[2];
	const uint8_t *drop[2];         /* as planned.drop */
};

/* Found by planning: how a step runs in memory. */
struct planned {
	Plan *plan;                     /* plan of the final graph */
	Graph *reference;               /* keep-everything schedule, placed;
	                                 * NULL if options are slim */
	Plan *reference_plan;
	const int32_t *layer;           /* by value of the reference: number of
	                                 * its layer from 0; -1: none */
	int64_t budget;                 /* bytes, once known; -1: none; 0: of a
	                                 * graph that was planned before */
	int64_t baseline_peak;          /* peak bytes of keep-everything; 0:
	                                 * unknown */
	int64_t minimum_peak;           /* smallest budget that works; 0:
	                                 * unknown */
	bool refused;                   /* the budget was too small */
	bool updates_in_backward;       /* gradients are applied as soon as they
	                                 * are complete */
	double bound_sec;               /* no plan of bound_class is faster */
	const char *bound_class;        /* NULL: no bound was computed */
	double solver_sec;              /* time spent planning */
	double recompute_sec;           /* seconds of recomputation in the
	                                 * chosen plan */
	double step_sec;                /* seconds of its step, */
	double exposed_sec;             /* if transfers run beside computation,
	                                 * about: overlap.h */
	const struct overlap_choice *transfers; /* which do so; NULL: not
	                                 * known */
	uint32_t nstate, nhost_state;   /* optimizer states and master weights
	                                 * that may be offloaded, that are */
	struct one_percent *one_percent; /* NULL: not wanted */
	int nalternative; /* presets beside auto, for --dump=plan */
	struct alternative *alternative;
	struct pareto_front *pareto_front; /* time against budget; NULL: not
	                                    * wanted */
	const uint8_t *drop;            /* by storage of the planner: dropped;
	                                 * NULL: the plan is no set */
	int32_t ndrop;
	bool like;                      /* an equal graph's set was offered */
	const struct slot_pair *pair;   /* faster than one plan for all slots;
	                                 * NULL: none is known */
	bool low_memory;                /* planned in that variant */
	bool state_parts;               /* as few states as are enough are in
	                                 * host memory */
	struct pipeline *pipeline;      /* --pp: the stages; NULL: one step runs
	                                 * the graph */
};

/* Bytes as --memory-budget takes a percentage, rounded up, so that what works
 * in bytes works in percent; 0: there is nothing to compare with. */
static inline double
planned_percent(const struct planned *p, int64_t bytes)
{
	return p->baseline_peak > 0
		? ceil(100 * (double)bytes / (double)p->baseline_peak) : 0;
}

/* One stage.  Its graph has the parameters, buffers, states, inputs and outputs
 * that its nodes access, under the names of the whole graph. */
struct pipeline_stage {
	Graph *graph;                   /* after the last pass; owned by the
	                                 * pipeline */
	struct planned planned;         /* of this graph */
	int slots;                      /* most micro-batches between their
	                                 * forward and their backward turn */
	int through_slots;              /* with turns of weights: between their
	                                 * forward and their weight turn, */
	int weight_slots;               /* between backward and weight turn; 0:
	                                 * there are no such turns */
	int64_t slot_bytes;             /* what one of them keeps meanwhile */
	struct turn *turn;
	int nturn;
	struct second_plan {            /* of some slots */
		Graph *graph;           /* NULL: all have the first plan */
		struct planned planned;
		int slots;              /* that have it */
		int64_t slot_bytes;     /* of one of them */
		const bool *has;        /* by slot: whether it does */
	} second;
};

/* Where one stage ends and the next begins: behind the node that makes a value;
 * by names of values, of which NULL is none. */
struct stage_cut {
	const char *after;
	const char *earlier, *later;    /* the next places to cut */
};

/* Micro-batches run through all stages.  Rank r of the pipeline has the stages
 * r, nrank + r, 2 nrank + r...: its chunks.  With one chunk the schedule is
 * 1F1B or ZB-H1 (Qi et al. 2023), with more the interleaved one (Narayanan et
 * al. 2021). */
struct pipeline {
	int nrank, nchunk;
	bool zero_bubble;               /* ZB-H1 */
	int nstage, nmicro;             /* nstage = nrank * nchunk */
	struct pipeline_stage *stage;   /* [nstage] */
	const struct stage_cut *cut;    /* [nstage - 1] */
	const int *of_val;              /* by value of the whole graph: the
	                                 * stage that computes it; -1: none
	                                 * alone */
	int64_t first_tag, ntag;        /* of messages */
	struct pipeline *evaluation;    /* what evaluates, likewise owned; NULL:
	                                 * nothing */
};

#endif
