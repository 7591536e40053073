/* Time against budget: what --curve shows.  Built by planner.c from
 * the choice that also serves budgets; a point is a plan that was placed.
 *
 * A graph has up to four variants: updates after backward or in it, optimizer
 * states on the device or in host memory.  The first of each is planned first.
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
	double step_sec;                /* with what it waits for transfers */
	double recompute_sec;
	double base_sec;                /* a step without both */
	int64_t sent;                   /* bytes that a step sends to host
	                                 * memory */
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
	int64_t *grid;                  /* budgets planned for the first
	                                 * variant, rising */
	int ngrid;
	struct plan_source first;       /* that variant, until the next one is
	                                 * added; it owns its graph */
	int64_t whole;                  /* peak bytes of keep-everything */
	double base_sec;                /* seconds of its step */
};

/* Add the points of one variant of the graph to the Pareto front, and the
 * presets to the alternatives, each in the variant that needs less memory.  The
 * variant planned first is asked for the presets of the second, too: it leaves
 * its graph here if it has one of its own. */
void pareto_front_add(Pass *, struct plan_source *);
/* Of `sec` seconds, those above a step without recomputation and waits, as a
 * part of that. */
double pareto_overhead(const struct pareto_point *, double sec);
void pareto_front_print(const Pass *, FILE *);
/* Two members of a JSON object, "curve" and "presets". */
void pareto_front_write_json(struct json_out *, const struct pareto_front *);

/* pareto_front_svg.c */
void pareto_front_svg(const Pass *, const char *title, FILE *);

#endif
