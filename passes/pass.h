/* Room passes: the context in which a pass runs.
 *
 * in      what the user asked for (struct options), where to report, memory
 * out     what outlives a pass (struct results, struct planned)
 * must not know any pass: passes.h has the table of them
 */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "ir/base/watch.h"
#include "ir/infer/infer.h"
#include "ir/ir.h"
#include "ir/target.h"
#include "passes/options.h"
#include "passes/results.h"

/* Cost of one node, filled by passes/cost/cost.c. */
struct cost {
	double flops, bytes, sec;
	double product;                 /* FLOPs of matrix products alone */
	double started;                 /* elements of their results */
	double sent;                    /* bytes that a transfer moves */
	enum lane lane;                 /* where; LANE_COMPUTE: it moves none */
};

/* The form of a step that is planned, where several are: explore.h. */
struct variant {
	bool low_memory;                /* updates in backward, and no copies of
	                                 * parameters that stay in memory */
	bool offload_states;            /* optimizer states and master weights
	                                 * in host memory, */
	int64_t state_room;             /* ... of so many bytes; 0: no limit */
	bool allow_refusal;             /* too small a budget is no error yet */
	double below;                   /* seconds of the best form so far; 0:
	                                 * none is known */
};

typedef struct Pass {
	Diag *diag;
	const struct options *opt;
	const struct target *target;    /* the machine; never NULL */
	Arena *scratch;                 /* of one pass; the runner frees it */
	Arena *keep;                    /* lives as long as the compilation */
	Arena *retired;                 /* outlives the graph; NULL: none */
	FILE *progress;                 /* NULL: silent */
	struct watch *watch;            /* when to leave off; NULL: never */
	bool debug;                     /* verify after every pass */
	bool sharded_before;            /* the graph was when passes began: its
	                                 * placements are the user's */
	/* NULL, or what the pass adds to its dump, and for whom, in scratch */
	void (*notes)(const void *noted, FILE *);
	const void *noted;
	struct variant variant;
	const struct planned *like;     /* plan of an equal graph: its set is
	                                 * taken if it fits; NULL: none */
	const Graph *whole;             /* what this graph is a stage of; NULL:
	                                 * it is none */
	bool no_overlap;                /* transfers end where they begin */
	const Graph *training;          /* the graph whose parameters this one
	                                 * evaluates with, as they lie there;
	                                 * NULL: this graph trains */
	const struct pipeline *stages;  /* of training; NULL: none */
	/* Of a stage that is refused: the most bytes, and the most percent of
	 * a stage's own peak, that a stage behind it needs at least.  NULL:
	 * not wanted. */
	void (*least_behind)(struct Pass *, int64_t *bytes, double *percent);
	const void *least_of;           /* struct stages_left of
	                                 * plan_stages.c */
	struct results result;
	struct planned planned;
} Pass;

/* Whether this form is planned before any other: what is said once is said of
 * it. */
static inline bool
is_first_variant(const Pass *p)
{
	return !p->variant.low_memory && !p->variant.offload_states;
}

/* Whether what updates alone use lies in host memory between them. */
static inline bool
pass_offloads_states(const Pass *p)
{
	return p->opt->offload == OFFLOAD_STATE || p->variant.offload_states;
}

typedef bool PassFn(Pass *, Graph *);

#endif
