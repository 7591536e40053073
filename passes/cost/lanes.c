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
