/* Time against budget: what --curve shows.  Built by planner.c from
 * the choice that also serves budgets; a point is a plan that was placed.
 *
 * There are two variants of a graph: updates after backward, and updates in
 * backward, which is planned second.
 */
#ifndef PASSES_PLANNER_PARETO_FRONT_H
#define PASSES_PLANNER_PARETO_FRONT_H

#include "passes/planner/choose.h"
#include "runtime/support/json_write.h"

struct pareto_point {
	const char *name;               /* a preset's name; NULL: chosen by the
	                                 * planner */
	int64_t budget;                 /* bytes of the budget that this plan
	                                 * was chosen for */
	int64_t peak;                   /* bytes that the plan needs */
	double step_sec, recompute_sec;
	double bound_sec;               /* no plan within the budget has a
	                                 * faster step; 0: no bound was
	                                 * computed */
	const char *bound_class;
	bool updates_in_backward;       /* updates run in backward */
};

struct pareto_front {
	struct pareto_point *point;     /* points by rising budget */
	int n;
	struct pareto_point *preset;
	int npreset;
	int64_t *grid;                  /* budgets planned for the graph that
	                                 * updates after backward, rising */
	int ngrid;
	/* the variant with updates after backward, until the one with updates
	 * in backward was added; NULL: no such one follows */
	Graph *after_backward;
	const struct remat *remat;
	struct plan_selector *choice;
	int64_t whole;                  /* peak bytes of keep-everything */
	double base_sec;                /* seconds of its step */
};

/* Add the points of one variant of the graph to the Pareto front, and the
 * presets to the alternatives, each in the variant that needs less memory.
 * Both variants are asked for the presets of both.  after_backward: the graph
 * of the variant with updates after backward if the other one follows, which
 * frees it; else NULL. */
void pareto_front_add(Pass *, const struct remat *, struct plan_selector *,
                      Graph *after_backward);
void pareto_front_print(const Pass *, FILE *);
/* Two members of a JSON object, "curve" and "presets". */
void pareto_front_write_json(struct json_out *, const struct pareto_front *);

/* pareto_front_svg.c */
void pareto_front_svg(const Pass *, const char *title, FILE *);

#endif
