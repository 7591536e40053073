/* Plans by the time of a step in which transfers run beside computation.
 *
 * method  A transfer that begins early or ends late holds memory, so a plan of
 *         fewer bytes may wait less.
 */
#include "passes/planner/exposed.h"

#include <math.h>

double
exposed_seconds(const Pass *p, const struct plan_source *s,
                const struct known_plan *plan, double enough, bool *all,
                struct overlap_choice *found)
{
	Graph *trial = graph_trial(s->g);
	double sec;

	if (plan) {
		known_eval(s->w, plan);
		schedule_apply(s->w, trial);
	}
	sec = overlap_exposed_seconds(p, trial, enough, all, found);
	graph_free(trial);
	return sec;
}

const struct known_plan *
least_exposed(const Pass *p, const struct plan_source *s,
              const struct known_plan *fastest, struct transfers_found *to)
{
	static const double share[] = { 0.98, 0.96, 0.93, 0.9 };
	const double arena = (double)(p->planned.budget
	                              - s->w->r->resident);
	const double below = p->variant.below > 0 ? p->variant.below : INFINITY;
	const struct known_plan *best = fastest, *last = fastest;
	bool all;

	to->sec = exposed_seconds(p, s, fastest, below, &all, &to->choice);
	to->known = true;

	for (size_t i = 0; i < sizeof share / sizeof *share
	     && !watch_over(p->watch); i++) {
		const struct known_plan *plan =
			selector_best(s->c, (int64_t)(share[i] * arena));
		struct overlap_choice choice;
		double sec;

		if (!plan || plan == last)
			continue;
		last = plan;
		sec = exposed_seconds(p, s, plan, fmin(to->sec, below), &all,
		                      &choice);
		if (sec < to->sec * (1 - 1e-9)) {
			to->sec = sec;
			to->choice = choice;
			best = plan;
		}
	}
	return best;
}
