/* Room report: reads the plan, changes nothing.
 *
 * in      a plan and what the passes left
 * out     tables, JSON and pictures
 * must not know how anything was decided
 */
#ifndef PASSES_REPORT_REPORT_H
#define PASSES_REPORT_REPORT_H

#include "passes/pass.h"
#include "runtime/support/json_write.h"

/* What was planned, as the user gave it. */
struct report_source {
	const char *model;              /* path */
	int nflag;
	const char *const *flag;
};

/* --json.  Pass: with the memory by layer and the Pareto front that it found;
 * NULL: without.  False, and nothing is written: the plan was not replayed. */
bool plan_write_json(const Pass *, const Plan *, const struct report_source *,
                     FILE *);
/* Parts of it, for other objects: version, model and flags; what follows. */
void plan_write_source(struct json_out *, const struct report_source *,
                       const char *workload);
void plan_write_members(struct json_out *, const Pass *, const Plan *);

/* pipeline_text.c: of p->planned.pipeline, whose stages have plans.  Seconds of
 * a step; idle: by stage, the share of the turns' seconds in which its rank
 * waits; NULL: not wanted. */
double pipeline_seconds(const struct pipeline *, double *idle);
/* Bytes of the rank that needs most. */
int64_t pipeline_peak(const struct pipeline *);
void pipeline_print(const Pass *, FILE *);                    /* --dump=plan */
/* --json; false, and nothing is written: a plan was not replayed. */
bool pipeline_write_json(const Pass *, const struct report_source *, FILE *);

/* What becomes of a place of the arena: of its owner and what lies in it.  A
 * place is kept if anything in it is: views and results in place, too.  Steps
 * are numbers; -1: none. */
struct report_place {
	Decision decision;              /* D_NULL: no activation lies there */
	int32_t layer;                  /* from 0; -1: in none */
	int64_t written;                /* first step that writes the tensor */
	int64_t read[PH_COUNT];         /* by phase, first step but for views
	                                 * that reads it or what lies in it */
	double forward_sec;             /* what computing it again would take */
	double recompute_sec;           /* ... takes in the plan; a step with
	                                 * results in several places counts for
	                                 * the first that it recomputes */
};

extern const char *const report_phase[PH_COUNT];        /* names of phases */

/* places.c: by tensor.  Lives as long as the pass. */
struct report_place *report_places(const Pass *, const Plan *);
/* A forward value that takes memory of its own in the arena. */
bool report_is_row(const Plan *, int64_t i);
/* Why the plan decided so about tensor i's place; put writes a node's name. */
void report_reason(const Plan *, const struct report_place *, int64_t i,
                   Decision, void (*put)(const char *, FILE *), FILE *);
/* A row of a table of bytes, in a column of this width and with a unit. */
void report_bytes(const char *what, int width, int64_t n, FILE *);
void plan_print_table(const Pass *, const Plan *, FILE *);   /* --dump=plan */
void plan_print_memory(const Pass *, const Plan *, FILE *);  /* --dump=memory */
void plan_print_shard(const Pass *, const Plan *, FILE *);   /* --dump=shard */
/* A line or more about one tensor; nothing if there are no ranks. */
void plan_explain_split(const Pass *, const Plan *, int64_t id, FILE *);
/* --report: a page about the plan. */
void page_print(const Pass *, const Plan *, const struct report_source *,
                FILE *);
/* False, after a message with names like it: there is no such value. */
bool plan_explain(const Pass *, const Plan *, const char *value, FILE *);

#endif
