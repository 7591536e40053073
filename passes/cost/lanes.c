/* Seconds of a step in which transfers run beside computation. */
#include "passes/cost/lanes.h"

double
lanes_seconds(const struct lane_step *step, int64_t n, Arena *scratch)
{
	double *due = arena_array(scratch, (size_t)n + 1, sizeof *due);
	double now = 0, link = 0;

	for (int64_t i = 0; i < n; i++) {
		if (step[i].sends) {
			link = (now > link ? now : link) + step[i].sec;
			if (due[step[i].end] < link)
				due[step[i].end] = link;
		} else {
			now += step[i].sec;
		}
		now = now > due[i] ? now : due[i];
	}
	return now;
}
