/* Plans by the time of a step in which transfers run beside computation.
 *
 * method  A transfer that begins early or ends late holds memory, so a plan of
 *         fewer bytes may wait less.
 */
#include "passes/planner/exposed.h"
#include "passes/overlap/overlap.h"

double
exposed_seconds(const Pass *p, const struct plan_source *s,
                const struct known_plan *plan, bool *all)
{
	Graph *trial = graph_clone(s->g);
	double sec;

	if (plan) {
		known_eval(s->w, plan);
		schedule_apply(s->w, trial);
	}
	sec = overlap_exposed_seconds(p, trial, all);
	graph_free(trial);
	return sec;
}

const struct known_plan *
least_exposed(const Pass *p, const struct plan_source *s,
              const struct known_plan *fastest)
{
	static const double share[] = { 0.98, 0.96, 0.93, 0.9 };
	const double arena = (double)(p->planned.budget
	                              - s->w->r->resident);
	const struct known_plan *best = fastest, *last = fastest;
	bool all;
	double least = exposed_seconds(p, s, fastest, &all);

	for (size_t i = 0; i < sizeof share / sizeof *share
	     && !watch_over(p->watch); i++) {
		const struct known_plan *plan =
			selector_best(s->c, (int64_t)(share[i] * arena));
		double sec;

		if (!plan || plan == last)
			continue;
		last = plan;
		sec = exposed_seconds(p, s, plan, &all);
		if (sec < least * (1 - 1e-9)) {
			least = sec;
			best = plan;
		}
	}
	return best;
}
