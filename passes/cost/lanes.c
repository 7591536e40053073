/* Seconds of a step in which transfers run beside computation. */
#include "passes/cost/lanes.h"

double
lanes_seconds(const struct lane_step *step, int64_t n, Arena *scratch)
{
	double *due = arena_array(scratch, (size_t)n + 1, sizeof *due);
	double free_at[LANES] = { 0 }, now = 0;

	for (int64_t i = 0; i < n; i++) {
		double *lane = &free_at[step[i].lane];

		if (step[i].lane == LANE_COMPUTE) {
			now += step[i].sec;
		} else {
			*lane = (now > *lane ? now : *lane) + step[i].sec;
			if (due[step[i].end] < *lane)
				due[step[i].end] = *lane;
		}
		now = now > due[i] ? now : due[i];
	}
	return now;
}

double
lanes_of_plan(const Plan *p, bool micro, Arena *scratch)
{
	struct lane_step *step = arena_array(scratch, (size_t)p->nstep + 1,
	                                     sizeof *step);

	for (int64_t i = 0; i < p->nstep; i++)
		if (!micro || p->step[i].phase != PH_UPDATE)
			step[i] = (struct lane_step){ p->step[i].lane_sec,
				p->step[i].lane, plan_end(p, i) };
	return lanes_seconds(step, p->nstep, scratch);
}
