/* The choice among known plans, and the refusal when none fits. */
#ifndef PASSES_PLANNER_CHOOSE_H
#define PASSES_PLANNER_CHOOSE_H

#include "passes/remat_model/plan_pool.h"

struct plan_selector;

/* A graph before it is planned, and what its plans are made from. */
struct plan_source {
	const Graph *g;
	Graph *own;                     /* the same, a copy; or NULL */
	struct schedule *w;             /* of the graph's storages, w->r */
	const uint8_t *constraint;      /* by storage: what the user chose */
	struct plan_selector *c;        /* NULL: not needed so far */
};

/* The plan that keeps all that the user leaves to choose, not placed. */
struct known_plan keep_all_plan(const struct plan_source *);

/* Learn what does not depend on the budget. */
struct plan_selector *selector_new(const struct remat *,
                                   const uint8_t *constraint,
                                   const struct options *);
/* The same for plans that may have values in host memory: of `room` bytes, to
 * and from which a lane each carries so many bytes a second.  Plans are sets
 * that are measured with host memory as a fluid (remat_host.c): a step of one
 * may have to wait.  Bounds are of the seconds of clones and waits together. */
struct plan_selector *selector_host(struct plan_selector *, double rate,
                                    int64_t room);
/* Smallest arena that works, and the plan that does it.  Plans that repeat
 * nodes more than once are looked for on the way, which takes its time. */
int64_t selector_least(struct plan_selector *);
const struct known_plan *selector_smallest(struct plan_selector *);
/* The plan for an arena of so many bytes; NULL: none known. */
const struct known_plan *selector_best(struct plan_selector *, int64_t arena);
/* A plan for such an arena in less time, slower than that of a smaller one now
 * and then. */
const struct known_plan *selector_near(struct plan_selector *, int64_t arena);
/* The same of sets alone, of those that are known for every budget: in step i
 * of n from the least arena to that of keep-everything. */
const struct known_plan *selector_known_set(struct plan_selector *, int i,
                                            int n);
/* Seconds of recompute below which no plan of a class gets: of class "once",
 * which sets are, or "any". */
struct recompute_bound {
	double sec;
	const char *class;
};

/* Bytes of the plan that keeps everything. */
int64_t selector_top(const struct plan_selector *);
/* For the class of the plan taken. */
struct recompute_bound selector_bound(struct plan_selector *, int64_t arena,
                                      const struct known_plan *);

/* refuse.c: say that the budget is too small, by how much, what fills it and
 * what would help.  The schedule is that of the smallest peak.  False. */
bool remat_refuse(Pass *, const struct schedule *);

#endif
