#include "ir/base/watch.h"

#include <math.h>
#include <time.h>

double
watch_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool
watch_over(struct watch *w)
{
	if (!w)
		return false;
	if (!w->late && w->end > 0 && watch_clock() >= w->end)
		w->late = true;
	return w->late || watch_off(w);
}

double
watch_left(const struct watch *w)
{
	return w && w->end > 0 ? fmax(w->end - watch_clock(), 0) : INFINITY;
}

void
watch_begin(struct watch *w, double sec)
{
	if (w && sec > 0 && w->end <= 0)
		w->end = watch_clock() + sec;
}
