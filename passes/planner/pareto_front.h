/* Time against budget: what --curve shows.  Built by plan.c from the choice
 * that also serves budgets; a point is a plan that was placed.
 */
#ifndef PASSES_PLANNER_PARETO_FRONT_H
#define PASSES_PLANNER_PARETO_FRONT_H

#include "passes/planner/choose.h"

struct pareto_point {
	const char *name;               /* a preset; NULL: chosen */
	int64_t budget;                 /* for which this plan is taken */
	int64_t peak;                   /* what it needs of that */
	double step_sec, recompute_sec;
	double bound_sec;               /* of a step within that budget; 0:
	                                 * none was computed */
	const char *bound_class;
	bool updates_in_backward;       /* updates run in backward */
};

struct pareto_front {
	struct pareto_point *point;   /* by budget; slower ones first */
	int n;
	struct pareto_point *preset;
	int npreset;
	int64_t *grid;                  /* budgets of the first form, rising */
	int ngrid;
	/* the first form, until the second one was added; NULL: there is none
	 * to come */
	Graph *first;
	struct remat *remat;
	struct plan_selector *choice;
	int64_t whole;                  /* peak of keep-everything */
	double base_sec;                /* its step */
};

/* Add what one form of the graph can do to p->pareto_front, and the presets
 * among p->alternative, each in the form that needs less.  Both forms are asked
 * for the presets of both.  `first` is the graph of the first form if a second
 * one is to come, and is freed with it. */
void pareto_front_add(Pass *, struct remat *, struct plan_selector *,
                      Graph *first);
void pareto_front_print(const Pass *, FILE *);
/* Two members of a JSON object, "curve" and "presets". */
char *pareto_front_json(const Pass *, Arena *keep);

/* pareto_front_svg.c */
void pareto_front_svg(const Pass *, const char *title, FILE *);

#endif
