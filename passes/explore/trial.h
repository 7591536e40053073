/* A plan with other options, of which nothing is said. */
#ifndef PASSES_EXPLORE_TRIAL_H
#define PASSES_EXPLORE_TRIAL_H

#include "passes/passes.h"

struct trial {
	struct options options;         /* p's without reports, to be changed */
	struct watch watch;             /* the time limit is each trial's own */
	Pass pass;                      /* what was found; its plan is NULL if
	                                 * there is none */
	Graph *graph;
};

/* p's options. */
void trial_init(struct trial *, const Pass *p);
/* In bytes, in place of one in percent. */
void set_budget_bytes(struct options *, int64_t bytes);
void pin_budget(Pass *, int64_t bytes);
/* A copy of the graph and where to report; trial_init is done. */
void trial_begin(struct trial *, const Graph *);
/* Plan a copy of the graph, which has been through pass loss. */
void trial_plan(struct trial *, const Graph *);
/* Take a copy of the graph, which has been through pass loss, to before pass
 * autodiff.  False after a diagnostic. */
bool trial_shard(struct trial *, const Graph *);
/* Plan a copy of the graph that another trial has sharded, for other numbers
 * of replicas or micro-batches, if both have several. */
void trial_plan_sharded(struct trial *, const struct trial *);
/* Differentiate such a copy, and no more: for forward_line_list. */
bool trial_differentiate(struct trial *, const struct trial *);
void trial_close(struct trial *);

#endif
